"""Pendulums in Cartesian coordinates, with closed-form references.

`pendulum`: IFToMM benchmark A01 (m = L = 1, g = 9.81, from the horizontal), reference by Jacobi's elliptic functions to
40 digits. `pendulum_period2`: SUNDIALS' example cvPendulum_dns, g tuned so that the period is 2: g = (2 K(1/2))^2;
after any even time the state is the initial one.
"""

from __future__ import annotations

import casadi as ca
import numpy as np

import dalembert as da

from .published import Published

GRAVITY_OF_PERIOD_2 = 13.750371636040745654980191559621


def system(gravity: float = 9.81) -> da.Lagrangian:
    """Return a unit mass on a unit rod; the multiplier is the tension."""
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    return da.Lagrangian(
        q,
        v,
        kinetic=ca.sumsqr(v) / 2,
        potential=gravity * q[1],
        constraints={"rod": (ca.sumsqr(q) - 1) / 2},
        coordinates=["x", "y"],
    )


PENDULUM = Published(
    name="pendulum",
    build=system,
    q=np.array([-1.0, 0.0]),
    v=np.zeros(2),
    t_end=10.0,
    groups={
        "positions": {"x": -0.27508746257611686005, "y": -0.96141920509912506427},
        "velocities": {"x'": 4.1755981009517288365, "y'": -1.1947490545604752716},
        "multipliers": {"lam[rod]": 28.294567206067250641},
    },
)
PERIOD2 = Published(
    name="pendulum_period2",
    build=lambda: system(GRAVITY_OF_PERIOD_2),
    q=np.array([1.0, 0.0]),
    v=np.zeros(2),
    t_end=30.0,
    groups={"positions": {"x": 1.0, "y": 0.0}},
)
