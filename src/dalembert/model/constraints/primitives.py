"""The rows of which joints between two frames are made; each residual has exactly the derivatives it states.

Symbols: frames 1 and 2 with R, p, v, w, a, wd as in `kinematics`; d = p1 - p2; u a direction fixed in frame 1, s one
fixed in frame 2 (Haug 1989, "Computer aided kinematics and dynamics", sec. 9.2: dot-1, dot-2, spherical constraints).
"""

from __future__ import annotations

import numpy as np

from dalembert.model.constraints.algebra import Matrix, cross, dot
from dalembert.model.constraints.kinematics import FrameKinematics
from dalembert.model.constraints.rows import Rows, stacked

X, Y, Z = (np.eye(3)[:, [i]] for i in range(3))


def coincident(one: FrameKinematics, two: FrameKinematics) -> Rows:
    """Return phi = R2^T (p1 - p2), three rows in the axes of frame 2: no common motion of both frames changes it."""
    return stacked([along(one, two, axis) for axis in (X, Y, Z)])


def perpendicular(one: FrameKinematics, u: Matrix, two: FrameKinematics, s: Matrix, value: float = 0.0) -> Rows:
    """Return phi = u . s - value for u (3, 1) of frame 1 and s (3, 1) of frame 2, each in its own axes.

    phi_dot = (u x s) . (w1 - w2)
    """
    u, s = one.direction(u), two.direction(s)
    normal = cross(u, s)
    du, ds = cross(one.w, u), cross(two.w, s)
    drift = dot(normal, one.wd - two.wd) + 2 * dot(du, ds)
    drift = drift + dot(cross(one.w, du), s) + dot(u, cross(two.w, ds))
    return Rows(dot(u, s) - value, normal.T @ (one.Jw - two.Jw), dot(normal, one.w - two.w), drift)


def along(one: FrameKinematics, two: FrameKinematics, s: Matrix, value: float = 0.0) -> Rows:
    """Return phi = s . d - value for s (3, 1) of frame 2: how far frame 1 is along it.

    phi_dot = s . (v1 - v2) + (w2 x s) . d
    """
    s = two.direction(s)
    d, v = one.position - two.position, one.v - two.v
    moment, ds = cross(s, d), cross(two.w, s)
    jacobian = s.T @ (one.Jv - two.Jv) + moment.T @ two.Jw
    drift = dot(s, one.a - two.a) + 2 * dot(ds, v) + dot(moment, two.wd) + dot(cross(two.w, ds), d)
    return Rows(dot(s, d) - value, jacobian, dot(s, v) + dot(moment, two.w), drift)


def twist(one: FrameKinematics, two: FrameKinematics) -> Rows:
    """Return three rows, rotation of frame 1 about x, y and z of frame 2: the sine of the angle times its axis.

    phi_x = (y1 . z2 - z1 . y2) / 2 and so on in a cycle; without any product of small angles lost, and with A equal to
    the relative angular velocity where the frames are aligned.
    """
    rows = []
    for j, k in ((Y, Z), (Z, X), (X, Y)):
        first, second = perpendicular(one, j, two, k), perpendicular(one, k, two, j)
        rows.append(first.plus(second.scaled(-1.0)).scaled(0.5))
    return stacked(rows)


def aligned(one: FrameKinematics, two: FrameKinematics, axis: Matrix, e1: Matrix, e2: Matrix) -> Rows:
    """Return two rows, rotation of frame 1 about e1 and e2 of frame 2: `axis` of frame 1 stays that of frame 2."""
    return stacked([perpendicular(one, e2, two, axis), perpendicular(one, e1, two, axis).scaled(-1.0)])
