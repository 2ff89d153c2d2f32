"""Support points of convex shapes, and how they move with the direction.

    s(d) = the point of a shape that is farthest along d,      h(d) = d . s(d),      ds/dd = second derivative of h

Spheres and capsules are cores, a point and a segment, with a radius around them. The core of a point never moves, that
of a cylinder along its rim, that of an ellipsoid everywhere.

Sources: G. van den Bergen, "Collision Detection in Interactive 3D Environments" (2003), 4.3.4.
"""

from __future__ import annotations

import numpy as np

from dalembert.contact.kinds import BOX, CAPSULE, CYLINDER, ELLIPSOID, HEIGHTFIELD, SPHERE
from dalembert.contact.memory import HEAD, NEIGHBOUR_STARTS, NEIGHBOURS
from dalembert.kernel.loops import reordered_inner

FEW = 24
"""Vertices of a hull that are looked at in turn; beyond, a walk along its edges is shorter."""

UPRIGHT = 1e-14
"""A direction whose part across a cylinder's axis is less than this has no rim of its own."""


@reordered_inner
def core_radius(shape):
    """Return the radius around a core."""
    return shape.size[0] if shape.kind == SPHERE or shape.kind == CAPSULE else 0.0


@reordered_inner
def climb(hull, H, guess, side, x, y, z):
    """Return the vertex of a hull that is farthest along (x, y, z): from the last one along edges that rise."""
    i, f = H.i, H.f
    first, last = i[HEAD + 4 * hull], i[HEAD + 4 * hull + 1]
    best, top = first, -np.inf
    if last - first <= FEW:
        for k in range(first, last):
            d = f[3 * k] * x + f[3 * k + 1] * y + f[3 * k + 2] * z
            if d > top:
                best, top = k, d
        return best
    best = guess[side]
    if best < first or best >= last:
        best = first
    top = f[3 * best] * x + f[3 * best + 1] * y + f[3 * best + 2] * z
    rises = True
    while rises:
        rises = False
        at = i[NEIGHBOUR_STARTS] + best
        for k in range(i[at], i[at + 1]):
            j = i[i[NEIGHBOURS] + k]
            d = f[3 * j] * x + f[3 * j + 1] * y + f[3 * j + 2] * z
            if d > top:
                best, top, rises = j, d, True
    guess[side] = best
    return best


@reordered_inner
def local_support(shape, H, m, side, x, y, z):
    """Return the point of a core that is farthest along (x, y, z), all in the shape's axes."""
    kind, size = shape.kind, shape.size
    if kind == SPHERE:
        return 0.0, 0.0, 0.0
    if kind == CAPSULE:
        return 0.0, 0.0, size[1] if z >= 0.0 else -size[1]
    if kind == BOX:
        return size[0] if x >= 0.0 else -size[0], size[1] if y >= 0.0 else -size[1], size[2] if z >= 0.0 else -size[2]
    if kind == CYLINDER:
        r = np.sqrt(x * x + y * y)
        s = size[0] / r if r > UPRIGHT * abs(z) and r > 0.0 else 0.0
        return s * x, s * y, size[1] if z >= 0.0 else -size[1]
    if kind == ELLIPSOID:
        a, b, c = size[0] * x, size[1] * y, size[2] * z
        r = np.sqrt(a * a + b * b + c * c)
        return size[0] * a / r, size[1] * b / r, size[2] * c / r
    if kind == HEIGHTFIELD:  # one of its triangles
        best, top = 0, -np.inf
        for k in range(3):
            d = m.corners[k, 0] * x + m.corners[k, 1] * y + m.corners[k, 2] * z
            if d > top:
                best, top = k, d
        return m.corners[best, 0], m.corners[best, 1], m.corners[best, 2]
    k = climb(shape.hull, H, m.guess, side, x, y, z)
    return H.f[3 * k], H.f[3 * k + 1], H.f[3 * k + 2]


@reordered_inner
def support(one, two, H, m, x, y, z, out, row):
    """Write w = a - b, a, b into out[row]: a of the first core farthest along (x, y, z), b of the second against it.

    Both are seen from the origin of the first shape.
    """
    R, o = one.R, one.p
    u, v, w = local_support(
        one, H, m, 0,
        R[0, 0] * x + R[1, 0] * y + R[2, 0] * z,
        R[0, 1] * x + R[1, 1] * y + R[2, 1] * z,
        R[0, 2] * x + R[1, 2] * y + R[2, 2] * z,
    )  # fmt: skip
    for i in range(3):
        out[row, 3 + i] = R[i, 0] * u + R[i, 1] * v + R[i, 2] * w
    R, p = two.R, two.p
    u, v, w = local_support(
        two, H, m, 1,
        -(R[0, 0] * x + R[1, 0] * y + R[2, 0] * z),
        -(R[0, 1] * x + R[1, 1] * y + R[2, 1] * z),
        -(R[0, 2] * x + R[1, 2] * y + R[2, 2] * z),
    )  # fmt: skip
    for i in range(3):
        out[row, 6 + i] = R[i, 0] * u + R[i, 1] * v + R[i, 2] * w + (p[i] - o[i])
        out[row, i] = out[row, 3 + i] - out[row, 6 + i]


@reordered_inner
def bending(shape, x, y, z, ex, ey, ez, fx, fy, fz):
    """Return e . (ds/dd) f at the direction d = (x, y, z): how far the support point moves along e when d turns to f.

    cylinder: r t t^T / |d across|, t along the rim;  ellipsoid with D = diag(size^2): D / h - (D d)(D d)^T / h^3.
    """
    kind, R, size = shape.kind, shape.R, shape.size
    if kind != CYLINDER and kind != ELLIPSOID:
        return 0.0
    dx, dy, dz = (R[0, 0] * x + R[1, 0] * y + R[2, 0] * z, R[0, 1] * x + R[1, 1] * y + R[2, 1] * z,
                  R[0, 2] * x + R[1, 2] * y + R[2, 2] * z)  # fmt: skip
    ax, ay, az = (R[0, 0] * ex + R[1, 0] * ey + R[2, 0] * ez, R[0, 1] * ex + R[1, 1] * ey + R[2, 1] * ez,
                  R[0, 2] * ex + R[1, 2] * ey + R[2, 2] * ez)  # fmt: skip
    bx, by, bz = (R[0, 0] * fx + R[1, 0] * fy + R[2, 0] * fz, R[0, 1] * fx + R[1, 1] * fy + R[2, 1] * fz,
                  R[0, 2] * fx + R[1, 2] * fy + R[2, 2] * fz)  # fmt: skip
    if kind == CYLINDER:
        r = np.sqrt(dx * dx + dy * dy)
        if r <= UPRIGHT * abs(dz):
            return 0.0
        return size[0] * (dx * ay - dy * ax) * (dx * by - dy * bx) / (r * r * r)
    A, B, C = size[0] * size[0], size[1] * size[1], size[2] * size[2]
    h = np.sqrt(A * dx * dx + B * dy * dy + C * dz * dz)
    straight = A * ax * bx + B * ay * by + C * az * bz
    return straight / h - (A * dx * ax + B * dy * ay + C * dz * az) * (A * dx * bx + B * dy * by + C * dz * bz) / (
        h * h * h
    )
