"""A bead on a wire that turns at a constant rate: a constraint that depends on time, and does work.

python examples/bead_on_a_wire.py
"""

import casadi as ca
import numpy as np
from scipy.integrate import solve_ivp

import dalembert as da

RATE = 1.5
q, v, t = ca.SX.sym("q", 2), ca.SX.sym("v", 2), ca.SX.sym("t")
bead = da.Lagrangian(
    q,
    v,
    kinetic=ca.sumsqr(v) / 2,
    constraints={"wire": ca.cos(RATE * t) * q[1] - ca.sin(RATE * t) * q[0]},
    time=t,
    coordinates=("x", "y"),
)


def rate(t, y):
    """Return velocities and accelerations."""
    return np.concatenate((y[2:], bead.solve(y[:2], y[2:], t=t).acceleration))


times = np.linspace(0.0, 1.5, 6)
run = solve_ivp(rate, (0, 1.5), [1, 0, 0, RATE], t_eval=times, rtol=1e-10, atol=1e-12, method="DOP853")
push = bead.forward(run.y[:2].T, run.y[2:].T, t=times)["wire"]
for k, moment in enumerate(times):
    radius, closed = np.hypot(*run.y[:2, k]), np.cosh(RATE * moment)  # r'' = RATE^2 r
    force = 2 * RATE**2 * np.sinh(RATE * moment)  # Coriolis: 2 m RATE r'
    print(
        f"t = {moment:.1f} s: r = {radius:.8f} m (exact {closed:.8f}), wire pushes {push[k]:.6f} N (exact {force:.6f})"
    )
