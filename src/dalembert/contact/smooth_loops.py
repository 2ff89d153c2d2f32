"""Newton's method for the nearest points of round shapes: the last digits that polytopes reach slowly.

The signed distance of two convex cores is that of their difference from 0, with its support function h,

    -h(n) = -(h_A(n) + h_B(-n)),    largest over unit normals n where the cores are apart, and a local maximum where
    they cut.

Where a core touches with an edge u, n stays across u; with a face, n is its normal. What is left of n, a circle or a
sphere, is smooth, with the gradient t . w and the curvature t . (ds_A + ds_B) t - h along a tangent t.
"""

from __future__ import annotations

import numpy as np

from dalembert.contact.kinds import CYLINDER, ELLIPSOID, SPHERE
from dalembert.contact.support_loops import bending, support
from dalembert.kernel.loops import reordered_inner

STEPS = 16
"""Steps of Newton's method; from 1e-5 it takes two or three."""

LEAST_SINE = 1e-9
"""Two edges with a smaller sine are parallel: their normal is not that of their cross product."""

AGREES = 1e-10
"""Distance over the size between the points found and the normal's line at which an answer is a local optimum."""

FARTHEST = 0.3
"""Radians of one step."""


@reordered_inner
def touching_edge(shape, base, S, count, column, edge):
    """Return what a core touches with, from the points of a simplex.

    Start, direction and length are written into edge (7,).
    0 a point or a smooth surface; 1 an edge along the direction; 2 a face with the direction as normal.
    """
    edge[3] = edge[4] = edge[5] = edge[6] = 0.0
    if shape.kind == SPHERE or shape.kind == ELLIPSOID:
        return 0
    if shape.kind == CYLINDER:
        return touching_side(shape, base, S, count, column, edge)
    ux = uy = uz = wx = wy = wz = 0.0
    found = 0
    for i in range(1, count):
        x, y, z = S[i, column] - S[0, column], S[i, column + 1] - S[0, column + 1], S[i, column + 2] - S[0, column + 2]
        if x == 0.0 and y == 0.0 and z == 0.0:
            continue
        if found == 0:
            ux, uy, uz, found = x, y, z, 1
        elif not (x == ux and y == uy and z == uz):
            wx, wy, wz, found = x, y, z, 2
    if found == 2:
        ux, uy, uz = uy * wz - uz * wy, uz * wx - ux * wz, ux * wy - uy * wx
    length = np.sqrt(ux * ux + uy * uy + uz * uz)
    if length == 0.0:
        return 0
    for c in range(3):
        edge[c] = S[0, column + c]
    edge[3], edge[4], edge[5], edge[6] = ux / length, uy / length, uz / length, length
    return found


@reordered_inner
def touching_side(shape, base, S, count, column, edge):
    """Write the line on a cylinder's side that touches, where points of both its rims do; return 1, or 0 without."""
    R, h = shape.R, shape.size[1]
    low, high = False, False
    for i in range(count):
        z = 0.0
        for c in range(3):
            z += R[c, 2] * (S[i, column + c] - (shape.p[c] - base[c]))
        low, high = low or z < 0.0, high or z > 0.0
    if not (low and high):
        return 0
    for c in range(3):
        edge[c], edge[3 + c] = shape.p[c] - base[c] - h * R[c, 2], R[c, 2]
    edge[6] = 2.0 * h
    return 1


@reordered_inner
def polish(one, two, H, m, S, count, size):
    """Improve m.a, m.b, m.n and m.distance; return whether they are a local optimum to `AGREES`.

    S: rows of the simplex, or the three of a face, as support points. The better of both normals stays.
    """
    edge1, edge2 = m.edge[0], m.edge[1]
    kind1 = touching_edge(one, one.p, S, count, 3, edge1)
    kind2 = touching_edge(two, one.p, S, count, 6, edge2)
    ux, uy, uz, vx, vy, vz = edge1[3], edge1[4], edge1[5], edge2[3], edge2[4], edge2[5]
    nx, ny, nz = m.n[0], m.n[1], m.n[2]
    cx, cy, cz = uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx
    sine = np.sqrt(cx * cx + cy * cy + cz * cz)
    free = 2
    if kind1 == 2:
        cx, cy, cz, free = ux, uy, uz, 0
    elif kind2 == 2:
        cx, cy, cz, free = vx, vy, vz, 0
    elif kind1 == 1 and kind2 == 1 and sine > LEAST_SINE:
        cx, cy, cz, free = cx / sine, cy / sine, cz / sine, 0
    elif kind1 == 1:
        cx, cy, cz, free = ux, uy, uz, 1
    elif kind2 == 1:
        cx, cy, cz, free = vx, vy, vz, 1
    along = cx * nx + cy * ny + cz * nz
    if free == 0:
        s = 1.0 if along >= 0.0 else -1.0
        nx, ny, nz = s * cx, s * cy, s * cz
    elif free == 1:
        nx, ny, nz = nx - along * cx, ny - along * cy, nz - along * cz
        s = 1.0 / np.sqrt(nx * nx + ny * ny + nz * nz)
        nx, ny, nz = s * nx, s * ny, s * nz
    row = m.points[254:256]
    for _ in range(STEPS):
        m.rounds[2] += 1
        support(one, two, H, m, nx, ny, nz, row, 0)
        if free == 0:
            break
        h = nx * row[0, 0] + ny * row[0, 1] + nz * row[0, 2]
        if free == 1:
            ex, ey, ez = ny * cz - nz * cy, nz * cx - nx * cz, nx * cy - ny * cx
            g = ex * row[0, 0] + ey * row[0, 1] + ez * row[0, 2]
            k = (
                bending(one, nx, ny, nz, ex, ey, ez, ex, ey, ez)
                + bending(two, -nx, -ny, -nz, ex, ey, ez, ex, ey, ez)
                - h
            )
            if not k > 0.0:
                return False
            a, b, fx, fy, fz = -g / k, 0.0, 0.0, 0.0, 0.0
        else:
            if abs(nx) < 0.6:
                ex, ey, ez = 0.0, nz, -ny
            else:
                ex, ey, ez = -nz, 0.0, nx
            s = 1.0 / np.sqrt(ex * ex + ey * ey + ez * ez)
            ex, ey, ez = s * ex, s * ey, s * ez
            fx, fy, fz = ny * ez - nz * ey, nz * ex - nx * ez, nx * ey - ny * ex
            g0 = ex * row[0, 0] + ey * row[0, 1] + ez * row[0, 2]
            g1 = fx * row[0, 0] + fy * row[0, 1] + fz * row[0, 2]
            k00 = (
                bending(one, nx, ny, nz, ex, ey, ez, ex, ey, ez)
                + bending(two, -nx, -ny, -nz, ex, ey, ez, ex, ey, ez)
                - h
            )
            k01 = bending(one, nx, ny, nz, ex, ey, ez, fx, fy, fz) + bending(two, -nx, -ny, -nz, ex, ey, ez, fx, fy, fz)
            k11 = (
                bending(one, nx, ny, nz, fx, fy, fz, fx, fy, fz)
                + bending(two, -nx, -ny, -nz, fx, fy, fz, fx, fy, fz)
                - h
            )
            det = k00 * k11 - k01 * k01
            if not (k00 > 0.0 and det > 0.0):
                return False
            a, b = -(k11 * g0 - k01 * g1) / det, -(k00 * g1 - k01 * g0) / det
        step = np.sqrt(a * a + b * b)
        if step <= 2e-16:
            break
        if step > FARTHEST:
            a, b = a * FARTHEST / step, b * FARTHEST / step
        nx, ny, nz = nx + a * ex + b * fx, ny + a * ey + b * fy, nz + a * ez + b * fz
        s = 1.0 / np.sqrt(nx * nx + ny * ny + nz * nz)
        nx, ny, nz = s * nx, s * ny, s * nz
    h = nx * row[0, 0] + ny * row[0, 1] + nz * row[0, 2]
    return place(one, two, H, m, S, row, kind1, kind2, nx, ny, nz, h, size)


@reordered_inner
def place(one, two, H, m, S, row, kind1, kind2, nx, ny, nz, h, size):
    """Write the nearest points for a normal: on what touches, with a - b = h n; return whether there are such."""
    support(one, two, H, m, m.n[0], m.n[1], m.n[2], row, 1)
    before = m.n[0] * row[1, 0] + m.n[1] * row[1, 1] + m.n[2] * row[1, 2]
    if not h <= before + AGREES * size:
        return False
    e1, e2 = m.edge[0], m.edge[1]
    ax, ay, az, bx, by, bz = row[0, 3], row[0, 4], row[0, 5], row[0, 6], row[0, 7], row[0, 8]
    near = AGREES * size
    if kind1 == 2 and kind2 == 0:
        ax, ay, az = bx + h * nx, by + h * ny, bz + h * nz
        if not in_triangle(S, 3, ax, ay, az, nx, ny, nz):
            return False
    elif kind2 == 2 and kind1 == 0:
        bx, by, bz = ax - h * nx, ay - h * ny, az - h * nz
        if not in_triangle(S, 6, bx, by, bz, nx, ny, nz):
            return False
    elif kind1 == 2 or kind2 == 2:
        ax, ay, az, bx, by, bz = m.a[0], m.a[1], m.a[2], m.b[0], m.b[1], m.b[2]
    else:
        rx, ry, rz = ax - bx - h * nx, ay - by - h * ny, az - bz - h * nz
        e, f = rx * e1[3] + ry * e1[4] + rz * e1[5], rx * e2[3] + ry * e2[4] + rz * e2[5]
        c = e1[3] * e2[3] + e1[4] * e2[4] + e1[5] * e2[5]
        s, t, det = 0.0, 0.0, 1.0 - c * c
        if kind1 == 1 and kind2 == 1 and det > LEAST_SINE * LEAST_SINE:
            s, t = (c * f - e) / det, (f - c * e) / det
        elif kind1 == 1:
            s = -e
        elif kind2 == 1:
            t = f
        ax, ay, az = ax + s * e1[3], ay + s * e1[4], az + s * e1[5]
        bx, by, bz = bx + t * e2[3], by + t * e2[4], bz + t * e2[5]
        if not (on_edge(kind1, e1, ax, ay, az, near) and on_edge(kind2, e2, bx, by, bz, near)):
            return False
    rx, ry, rz = ax - bx - h * nx, ay - by - h * ny, az - bz - h * nz
    if not rx * rx + ry * ry + rz * rz <= near * near:
        return False
    m.a[0], m.a[1], m.a[2], m.b[0], m.b[1], m.b[2] = ax, ay, az, bx, by, bz
    m.n[0], m.n[1], m.n[2], m.distance = nx, ny, nz, -h
    return True


@reordered_inner
def on_edge(kind, edge, x, y, z, near):
    """Return whether a point on the line of an edge is between its ends; where there is no edge it is."""
    if kind != 1:
        return True
    t = (x - edge[0]) * edge[3] + (y - edge[1]) * edge[4] + (z - edge[2]) * edge[5]
    return -near <= t <= edge[6] + near


@reordered_inner
def in_triangle(S, column, x, y, z, nx, ny, nz):
    """Return whether a point is within the triangle of three points of a simplex, seen along n."""
    positive = negative = False
    for i in range(3):
        j = i + 1 if i < 2 else 0
        ex, ey, ez = (
            S[j, column] - S[i, column],
            S[j, column + 1] - S[i, column + 1],
            S[j, column + 2] - S[i, column + 2],
        )
        px, py, pz = x - S[i, column], y - S[i, column + 1], z - S[i, column + 2]
        turn = nx * (ey * pz - ez * py) + ny * (ez * px - ex * pz) + nz * (ex * py - ey * px)
        positive, negative = positive or turn > 0.0, negative or turn < 0.0
    return not (positive and negative)
