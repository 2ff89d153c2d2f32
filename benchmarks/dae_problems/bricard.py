"""Bricard's mechanism: five rods in a spatial loop of six revolute joints, 30 rows of rank 29, one degree of freedom.

Source: IFToMM benchmark A04 (M. Gonzalez et al., Multibody Syst. Dyn. 16 (2006)); reference by an independent
quaternion code, rank fixed at 29, to 12 digits; Exudyn converges to the same numbers (8 digits).
"""

from __future__ import annotations

import casadi as ca
import numpy as np

import dalembert as da

from .published import Published

POINTS = np.array([[0, 0, 0], [1, 0, 0], [1, -1, 0], [1, -1, 1], [0, -1, 1], [0, 0, 1]], dtype=float)
AXES = np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 0]], dtype=float)
GRAVITY = np.array([0.0, -9.81, 0.0])
LONG, ACROSS = 0.02 / 12, 1.01 / 12


def rotation(p: ca.SX) -> ca.SX:
    """Return the rotation matrix of a unit quaternion (w, x, y, z)."""
    w, x, y, z = ca.vertsplit(p)
    return ca.blockcat(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def spin(p: ca.SX, rate: ca.SX) -> ca.SX:
    """Return the angular velocity in the body, 2 conj(p) p'."""
    w, x, y, z = ca.vertsplit(p)
    E = ca.blockcat([[-x, w, z, -y], [-y, -z, w, x], [-z, y, -x, w]])
    return 2 * E @ rate


def joint(R: ca.SX, other: ca.SX, axis: np.ndarray) -> ca.SX:
    """Return two rows: the axis, fixed in R, is perpendicular to two directions fixed in `other`."""
    across = [np.roll(axis, 1), np.roll(axis, 2)]
    return ca.vertcat(*[ca.dot(R @ axis, other @ a) for a in across])


def system() -> da.Lagrangian:
    """Return 35 coordinates (centre and quaternion of five rods), 30 rows of joints and 5 of quaternions."""
    q, v = ca.SX.sym("q", 35), ca.SX.sym("v", 35)
    bodies = [(q[7 * i : 7 * i + 3], q[7 * i + 3 : 7 * i + 7]) for i in range(5)]
    R = [rotation(p) for _, p in bodies]
    kinetic, potential, rows = ca.SX(0), ca.SX(0), {}
    for i, (x, p) in enumerate(bodies):
        along = np.abs(POINTS[i + 1] - POINTS[i])
        w = spin(p, v[7 * i + 3 : 7 * i + 7])
        kinetic += ca.sumsqr(v[7 * i : 7 * i + 3]) / 2 + ca.dot(np.where(along > 0, LONG, ACROSS), w * w) / 2
        potential -= ca.dot(GRAVITY, x)
        rows[f"unit {i}"] = (ca.sumsqr(p) - 1) / 2
    eye = ca.SX.eye(3)
    for k in range(6):
        before = (ca.SX(POINTS[0]), eye) if k == 0 else (bodies[k - 1][0] + R[k - 1] @ _arm(k - 1, k), R[k - 1])
        after = (ca.SX(POINTS[5]), eye) if k == 5 else (bodies[k][0] + R[k] @ _arm(k, k), R[k])
        rows[f"joint {k}"] = ca.vertcat(before[0] - after[0], joint(before[1], after[1], AXES[k]))
    names = [f"{c}{i}" for i in range(5) for c in ("x", "y", "z", "pw", "px", "py", "pz")]
    return da.Lagrangian(q, v, kinetic=kinetic, potential=potential, constraints=rows, coordinates=names)


def _arm(body: int, point: int) -> np.ndarray:
    """Return a joint's place in the frame of a rod, which is the world's at the start."""
    return POINTS[point] - (POINTS[body] + POINTS[body + 1]) / 2


def start() -> np.ndarray:
    """Return the coordinates at rest."""
    centres = (POINTS[:-1] + POINTS[1:]) / 2
    return np.concatenate([np.concatenate([c, [1.0, 0, 0, 0]]) for c in centres])


def corner(result) -> np.ndarray:
    """Return the fourth joint point at the end, (3,)."""
    x = np.array([result[f"{c}2"][-1] for c in ("x", "y", "z")])
    p = [float(result[f"{c}2"][-1]) for c in ("pw", "px", "py", "pz")]
    return x + np.asarray(ca.DM(ca.evalf(rotation(ca.SX(p))))) @ _arm(2, 3)


CORNER_AT_1 = np.array([0.5105014611872, -1.6491675993948, 0.1401231145532])
PROBLEM = Published(name="bricard", build=system, q=start(), v=np.zeros(35), t_end=1.0, groups={})
