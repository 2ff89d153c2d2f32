"""Car axis: two masses on stiff springs and a rod, over a bumpy road that moves one end.

Source: F. Mazzia, C. Magherini, "Test Set for Initial Value Problem Solvers", release 2.4, problem "Car axis" (S.
Schneider 1994); reference recomputed in 130-bit arithmetic, the published vectors have 9 to 14 digits. Multipliers of
the other sign here.
"""

from __future__ import annotations

import casadi as ca
import numpy as np

import dalembert as da

from .published import Published

EPS, MASS, LENGTH, REST, RADIUS, FREQUENCY, GRAVITY = 1e-2, 10.0, 1.0, 0.5, 0.1, 10.0, 1.0
NAMES = ["xl", "yl", "xr", "yr"]
POSITIONS = [
    4.9345578427524092131526793e-02, 4.9698946023000810676293397e-01,
    1.0417425248854261151947762e00, 3.7391102726536581935789770e-01,
]  # fmt: skip
VELOCITIES = [
    -7.7058368403592084283940558e-02, 7.4468665920684164914017532e-03,
    1.7556815753541736629740615e-02, 7.7034104377960106312064279e-01,
]  # fmt: skip
MULTIPLIERS = [4.7368865908533265153134760e-03, 1.1046803312595658398606007e-03]


def system() -> da.Lagrangian:
    """Return four coordinates, two constraints, one of them moving."""
    p, v, t = ca.SX.sym("p", 4), ca.SX.sym("v", 4), ca.SX.sym("t")
    xl, yl, xr, yr = ca.vertsplit(p)
    k = MASS * EPS**2 / 2
    yb = RADIUS * ca.sin(FREQUENCY * t)
    xb = ca.sqrt(LENGTH**2 - yb**2)
    left, right = ca.sqrt(xl**2 + yl**2), ca.sqrt((xr - xb) ** 2 + (yr - yb) ** 2)
    return da.Lagrangian(
        p,
        v,
        kinetic=k * ca.sumsqr(v) / 2,
        potential=((left - REST) ** 2 + (right - REST) ** 2) / 2 + k * GRAVITY * (yl + yr),
        constraints={"square": xl * xb + yl * yb, "rod": (xl - xr) ** 2 + (yl - yr) ** 2 - LENGTH**2},
        time=t,
        coordinates=NAMES,
    )


PROBLEM = Published(
    name="car_axis",
    build=system,
    q=np.array([0.0, 0.5, 1.0, 0.5]),
    v=np.array([-0.5, 0.0, -0.5, 0.0]),
    t_end=3.0,
    groups={
        "positions": dict(zip(NAMES, POSITIONS, strict=True)),
        "velocities": dict(zip([f"{x}'" for x in NAMES], VELOCITIES, strict=True)),
        "multipliers": dict(zip(["lam[square]", "lam[rod]"], MULTIPLIERS, strict=True)),
    },
)
