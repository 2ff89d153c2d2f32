"""Chaplygin's sleigh: a blade that cannot slip sideways, and a motion that ends straight although no energy is lost.

python examples/chaplygin_sleigh.py
"""

import casadi as ca
import numpy as np
from scipy.integrate import solve_ivp

import dalembert as da

MASS, INERTIA, OFFSET = 2.0, 0.3, 0.4
q, v = ca.SX.sym("q", 3), ca.SX.sym("v", 3)
across = ca.vertcat(-ca.sin(q[2]), ca.cos(q[2]))
sleigh = da.Lagrangian(
    q,
    v,
    kinetic=MASS / 2 * ca.sumsqr(v[:2] + OFFSET * v[2] * across) + INERTIA / 2 * v[2] ** 2,
    constraints={"blade": ca.dot(across, v[:2])},  # contains velocities: non-holonomic
    coordinates=("x", "y", "angle"),
)


def rate(t, y):
    """Return velocities and accelerations."""
    return np.concatenate((y[3:], sleigh.solve(y[:3], y[3:]).acceleration))


times = np.linspace(0.0, 3.0, 7)
b = (INERTIA + MASS * OFFSET**2) / MASS
run = solve_ivp(rate, (0, 3), [0, 0, 0, 0, 0, 1 / np.sqrt(b)], t_eval=times, rtol=1e-10, atol=1e-12, method="DOP853")
exact = 1 / np.sqrt(b) / np.cosh(OFFSET / b * times)  # the turn dies out as a hyperbolic secant
for t, turn, closed in zip(times, run.y[5], exact, strict=True):
    print(f"t = {t:.1f} s: turns at {turn:.9f} rad/s, closed form {closed:.9f}")
print(f"energy kept to {np.ptp(sleigh.energy(run.y[:3].T, run.y[3:].T).total):.0e} J")
