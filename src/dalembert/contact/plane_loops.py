"""Contacts of a plane with convex shapes: the points of the shape nearest to it, as many as can stand on it."""

from __future__ import annotations

import numpy as np

from dalembert.contact.kinds import BOX, CAPSULE, CYLINDER, ELLIPSOID, SPHERE
from dalembert.contact.manifold_loops import SAME, add, face_of
from dalembert.contact.memory import HEAD
from dalembert.contact.support_loops import climb, core_radius, local_support
from dalembert.kernel.loops import reordered_inner

HALF_ROOT_3 = 0.8660254037844386


@reordered_inner
def corner(shape, m, count, x, y, z, base):
    """Append a point of a shape, in its axes, to the polygon of slot 0, seen from `base`; return how many there are."""
    R, poly = shape.R, m.polygon[0]
    for i in range(3):
        poly[count, i] = R[i, 0] * x + R[i, 1] * y + R[i, 2] * z + (shape.p[i] - base[i])
    m.label[0, count, 0] = count + 1
    return count + 1


@reordered_inner
def lowest_points(shape, H, m, nx, ny, nz, base):
    """Write the points of a core that may touch a plane of normal n into slot 0; return how many.

    A box has its corners, a capsule its ends, a cylinder four points of its rims, a hull the corners of the face that
    is turned most to the plane, and its lowest vertex.
    """
    kind, size, R = shape.kind, shape.size, shape.R
    dx = -(R[0, 0] * nx + R[1, 0] * ny + R[2, 0] * nz)
    dy = -(R[0, 1] * nx + R[1, 1] * ny + R[2, 1] * nz)
    dz = -(R[0, 2] * nx + R[1, 2] * ny + R[2, 2] * nz)
    count = 0
    if kind in (SPHERE, ELLIPSOID):
        x, y, z = local_support(shape, H, m, 1, dx, dy, dz)
        count = corner(shape, m, count, x, y, z, base)
    elif kind == BOX:
        for c in range(8):
            x, y, z = size[0] if c & 1 else -size[0], size[1] if c & 2 else -size[1], size[2] if c & 4 else -size[2]
            count = corner(shape, m, count, x, y, z, base)
    elif kind == CAPSULE:
        count = corner(shape, m, count, 0.0, 0.0, size[1], base)
        count = corner(shape, m, count, 0.0, 0.0, -size[1], base)
    elif kind == CYLINDER:
        r = np.sqrt(dx * dx + dy * dy)
        x, y = (size[0] * dx / r, size[0] * dy / r) if r > 1e-12 else (size[0], 0.0)
        low = size[1] if dz >= 0.0 else -size[1]
        count = corner(shape, m, count, x, y, low, base)
        count = corner(shape, m, count, x, y, -low, base)
        count = corner(shape, m, count, -0.5 * x - HALF_ROOT_3 * y, -0.5 * y + HALF_ROOT_3 * x, low, base)
        count = corner(shape, m, count, -0.5 * x + HALF_ROOT_3 * y, -0.5 * y - HALF_ROOT_3 * x, low, base)
    else:
        count, _ = face_of(shape, H, m, 0, 1, base, -nx, -ny, -nz)
        k = climb(shape.hull, H, m.guess, 1, dx, dy, dz)
        count = corner(shape, m, count, H.f[3 * k], H.f[3 * k + 1], H.f[3 * k + 2], base)
        m.label[0, count - 1, 0] = k - H.i[HEAD + 4 * shape.hull] + 1
    return count


@reordered_inner
def on_plane(plane, shape, H, m, size, margin):
    """Write the contacts of a plane (the first) with a convex shape; return how many. The nearest comes first."""
    R, base = plane.R, plane.p
    nx, ny, nz = R[0, 2], R[1, 2], R[2, 2]
    corners = lowest_points(shape, H, m, nx, ny, nz, base)
    poly, r = m.polygon[0], core_radius(shape)
    deepest, least = 0, np.inf
    for c in range(corners):
        m.spread[c] = nx * poly[c, 0] + ny * poly[c, 1] + nz * poly[c, 2] - r
        if m.spread[c] < least - 1e-12 * size:
            deepest, least = c, m.spread[c]
    m.n[0], m.n[1], m.n[2], m.distance = nx, ny, nz, m.spread[deepest]
    count = place_corner(m, 0, deepest, r, nx, ny, nz, base, size, margin)
    skip = 1 if corners <= 9 else 2 if corners <= 16 else 4
    for c in range(1, corners):
        if (c - 1) % skip == 0:
            count = place_corner(m, count, (deepest + c) % corners, r, nx, ny, nz, base, size, margin)
    return count


@reordered_inner
def place_corner(m, count, c, r, nx, ny, nz, base, size, margin):
    """Append a corner as a contact if it is within the margin."""
    d = m.spread[c]
    if d > margin:
        return count
    poly, back = m.polygon[0], r + 0.5 * d
    x, y, z = poly[c, 0] - back * nx, poly[c, 1] - back * ny, poly[c, 2] - back * nz
    return add(m, count, base[0] + x, base[1] + y, base[2] + z, nx, ny, nz, d, m.label[0, c, 0], SAME * size)
