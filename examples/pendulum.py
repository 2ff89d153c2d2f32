"""A pendulum in Cartesian coordinates: the rod is a constraint, its pull a reaction.

python examples/pendulum.py
"""

import casadi as ca
import numpy as np
from scipy.integrate import solve_ivp
from scipy.special import ellipk

import dalembert as da

q, v, length = ca.SX.sym("q", 2), ca.SX.sym("v", 2), ca.SX.sym("length")
pendulum = da.Lagrangian(
    q,
    v,
    kinetic=ca.sumsqr(v) / 2,
    potential=9.81 * q[1],
    constraints={"rod": (ca.sumsqr(q) - length**2) / 2},
    parameters={"length": (length, 1.0)},
    coordinates=("x", "y"),
)
print(pendulum.solve([np.sin(0.5), -np.cos(0.5)], [0.0, 0.0]))


def rate(t, y):
    """Return velocities and accelerations."""
    return np.concatenate((y[2:], pendulum.solve(y[:2], y[2:]).acceleration))


def lowest(t, y):
    """Cross zero where the bob passes below the pivot."""
    return y[0]


run = solve_ivp(rate, (0.0, 2.0), [1.0, 0.0, 0.0, 0.0], rtol=1e-10, atol=1e-10, events=lowest, method="DOP853")
exact = np.sqrt(1.0 / 9.81) * ellipk(0.5)  # a quarter of the period from 90 degrees: sqrt(l / g) K(sin^2 45)
print(f"\nfrom 90 degrees to the lowest point: {run.t_events[0][0]:.9f} s, exact {exact:.9f} s")
print(f"length kept to {np.abs(pendulum.constraint(run.y[:2].T)).max():.0e}")
