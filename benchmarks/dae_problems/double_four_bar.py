"""Double four-bar linkage (N-four-bar, N = 2): five uniform rods; every half turn all lie in a line and A loses rank.

Source: IFToMM benchmark A02 (M. Gonzalez et al., Multibody Syst. Dyn. 16 (2006)); reference on the parallelogram branch
by its equation theta'' = (7/6) g sin theta in 130-bit arithmetic. A published Exudyn series converges to it (8 digits).
"""

from __future__ import annotations

import casadi as ca
import numpy as np

import dalembert as da

from .published import Published

GRAVITY, MASS, LENGTH = 9.81, 1.0, 1.0
BODIES = ["bar 0", "bar 1", "bar 2", "coupler 0", "coupler 1"]


def system() -> da.Lagrangian:
    """Return 15 coordinates (x, y, angle of five rods) with 14 constraints; angle 0 is along x."""
    q, v = ca.SX.sym("q", 15), ca.SX.sym("v", 15)
    centre = [q[3 * i : 3 * i + 2] for i in range(5)]
    half = [ca.vertcat(ca.cos(q[3 * i + 2]), ca.sin(q[3 * i + 2])) * LENGTH / 2 for i in range(5)]
    speeds = [v[3 * i : 3 * i + 2] for i in range(5)]
    kinetic = sum(MASS * ca.sumsqr(speeds[i]) / 2 + MASS * LENGTH**2 / 24 * v[3 * i + 2] ** 2 for i in range(5))
    begin, end = [c - h for c, h in zip(centre, half, strict=True)], [c + h for c, h in zip(centre, half, strict=True)]
    rows = {f"ground {i}": begin[i] - ca.vertcat(i * LENGTH, 0) for i in range(3)}
    rows |= {
        "pin 0": end[0] - begin[3],
        "pin 1a": end[1] - end[3],
        "pin 1b": end[1] - begin[4],
        "pin 2": end[2] - end[4],
    }
    names = [f"{axis} of {body}" for body in BODIES for axis in ("x", "y", "angle")]
    potential = sum(MASS * GRAVITY * c[1] for c in centre)
    return da.Lagrangian(q, v, kinetic=kinetic, potential=potential, constraints=rows, coordinates=names)


def start() -> tuple[np.ndarray, np.ndarray]:
    """Return bars upright, couplers horizontal, the upper pins moving at 1 m/s to the right."""
    q = [[i, 0.5, np.pi / 2] for i in range(3)] + [[0.5 + i, 1.0, 0.0] for i in range(2)]
    v = [[0.5, 0.0, -1.0]] * 3 + [[1.0, 0.0, 0.0]] * 2
    return np.ravel(q), np.ravel(v)


THETA = 31.7505971869861018170813
PROBLEM = Published(
    name="double_four_bar",
    build=system,
    q=start()[0],
    v=start()[1],
    t_end=10.0,
    groups={
        "positions": {"x of bar 0": 0.32845811154081537865 / 2, "y of bar 0": 0.94451853817860096216 / 2},
        "velocities": {"x of bar 0'": 1.42305147020694412328 / 2, "y of bar 0'": -0.49486884548704295899 / 2},
    },
)
