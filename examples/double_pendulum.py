"""A double pendulum: equations from its energy, a batch of 100,000 states, and the textbook's formula.

python examples/double_pendulum.py
"""

import casadi as ca
import numpy as np

import dalembert as da

q, v = ca.SX.sym("theta", 2), ca.SX.sym("omega", 2)
m1, m2, l1, l2 = (ca.SX.sym(name) for name in ("m1", "m2", "l1", "l2"))
first = l1 * ca.vertcat(ca.sin(q[0]), -ca.cos(q[0]))
second = first + l2 * ca.vertcat(ca.sin(q[1]), -ca.cos(q[1]))
system = da.Lagrangian(
    q,
    v,
    kinetic=m1 / 2 * ca.sumsqr(ca.jtimes(first, q, v)) + m2 / 2 * ca.sumsqr(ca.jtimes(second, q, v)),
    potential=9.81 * (m1 * first[1] + m2 * second[1]),
    parameters=[m1, m2, l1, l2],
)

rng = np.random.default_rng(0)
theta, omega = rng.uniform(-3, 3, (2, 100_000, 2))
length = rng.uniform(0.5, 2.0, 100_000)  # every sample has its own second rod
s = system.forward(theta, omega, parameters={"m1": 1.0, "m2": 0.7, "l1": 0.9, "l2": length})
print(s)

(a, b), (p, r) = theta.T, omega.T
below = 2.7 - 0.7 * np.cos(2 * (a - b))
above = -9.81 * 2.7 * np.sin(a) - 0.7 * 9.81 * np.sin(a - 2 * b)
above -= 2 * np.sin(a - b) * 0.7 * (r**2 * length + p**2 * 0.9 * np.cos(a - b))
print(f"largest difference to the textbook: {np.abs(s.acceleration[:, 0] - above / (0.9 * below)).max():.0e} rad/s^2")
