"""Contacts of a height field with convex shapes: its triangles below the shape, one by one, solid below.

A cell is two triangles, along the diagonal from (x_i, y_j) to (x_i+1, y_j+1). Where a shape is below the plane of a
triangle the contact is along the triangle's normal, within its sides; where it is above, at the nearest points, unless
a neighbour that rises beyond the common edge is nearer.
"""

from __future__ import annotations

import numpy as np

from dalembert.contact.gjk_loops import gjk
from dalembert.contact.manifold_loops import SAME, add, clipped, face_of
from dalembert.contact.memory import FIELDS
from dalembert.contact.support_loops import core_radius, support
from dalembert.kernel.loops import reordered_inner

CORNER = 1e-9
"""Barycentric coordinate that is zero."""

UPRIGHT = 1e-9
"""Sine of a normal and a triangle's below which they are one."""

NUMBERS = 1 << 20
"""Feature numbers of one triangle."""


@reordered_inner
def cell_of(f, start, count, x):
    """Return the interval of a grid f[start : start + count] in which x is, the first or last beyond it."""
    low, high = 0, count - 1
    while high - low > 1:
        middle = (low + high) // 2
        if f[start + middle] <= x:
            low = middle
        else:
            high = middle
    return low


@reordered_inner
def on_heightfield(field, shape, H, m, margin):
    """Write the contacts of a height field (the first) with a convex shape; return how many."""
    at = H.i[FIELDS] + 3 * field.hull
    start, nx, ny = H.i[at], H.i[at + 1], H.i[at + 2]
    R, S, low, high = field.R, shape.R, m.beyond[0], m.beyond[1]
    for a in range(3):
        c, e = 0.0, margin
        for i in range(3):
            c += R[i, a] * (shape.p[i] - field.p[i])
        for j in range(3):
            turn = R[0, a] * S[0, j] + R[1, a] * S[1, j] + R[2, a] * S[2, j]
            c += turn * shape.middle[j]
            e += abs(turn) * shape.half[j]
        low[a], high[a] = c - e, c + e
    f, y0, z0 = H.f, start + nx, start + nx + ny
    count = 0
    if high[0] < f[start] or low[0] > f[y0 - 1] or high[1] < f[y0] or low[1] > f[z0 - 1]:
        return 0
    i0, i1 = cell_of(f, start, nx, low[0]), cell_of(f, start, nx, high[0])
    j0, j1 = cell_of(f, y0, ny, low[1]), cell_of(f, y0, ny, high[1])
    bottom = low[2]
    for i in range(i0, i1 + 1):
        for j in range(j0, j1 + 1):
            k = z0 + i * ny + j
            if max(max(f[k], f[k + 1]), max(f[k + ny], f[k + ny + 1])) < bottom:
                continue
            for t in range(2):
                set_triangle(field, H, m, start, nx, ny, i, j, t)
                count = on_triangle_of_field(field, shape, H, m, margin, count, (2 * (i * ny + j) + t) * NUMBERS)
    return count


@reordered_inner
def node(H, start, nx, ny, i, j, out):
    """Write the place of a node of the grid; return whether there is one."""
    if i < 0 or j < 0 or i >= nx or j >= ny:
        return False
    out[0], out[1], out[2] = H.f[start + i], H.f[start + nx + j], H.f[start + nx + ny + i * ny + j]
    return True


@reordered_inner
def set_triangle(field, H, m, start, nx, ny, i, j, t):
    """Write the corners of a triangle, from its first, and those of its neighbours beyond its sides."""
    T, C, B = m.triangle, m.corners, m.beyond
    if t == 0:
        node(H, start, nx, ny, i, j, C[0])
        node(H, start, nx, ny, i + 1, j, C[1])
        node(H, start, nx, ny, i + 1, j + 1, C[2])
        known = (
            node(H, start, nx, ny, i, j - 1, B[0]),
            node(H, start, nx, ny, i + 2, j + 1, B[1]),
            node(H, start, nx, ny, i, j + 1, B[2]),
        )
    else:
        node(H, start, nx, ny, i, j, C[0])
        node(H, start, nx, ny, i + 1, j + 1, C[1])
        node(H, start, nx, ny, i, j + 1, C[2])
        known = (
            node(H, start, nx, ny, i + 1, j, B[0]),
            node(H, start, nx, ny, i + 1, j + 2, B[1]),
            node(H, start, nx, ny, i - 1, j, B[2]),
        )
    for s in range(3):
        m.cell[s] = 1.0 if known[s] else 0.0
    ox, oy, oz = C[0, 0], C[0, 1], C[0, 2]
    for c in range(3):
        T.p[c] = field.p[c] + field.R[c, 0] * ox + field.R[c, 1] * oy + field.R[c, 2] * oz
        for d in range(3):
            T.R[c, d] = field.R[c, d]
    for s in range(3):
        C[s, 0], C[s, 1], C[s, 2] = C[s, 0] - ox, C[s, 1] - oy, C[s, 2] - oz
        B[s, 0], B[s, 1], B[s, 2] = B[s, 0] - ox, B[s, 1] - oy, B[s, 2] - oz
    T.kind, T.hull = field.kind, 0
    T.reach = max(abs(C[1, 0]) + abs(C[1, 1]) + abs(C[1, 2]), abs(C[2, 0]) + abs(C[2, 1]) + abs(C[2, 2]))
    x = (
        C[1, 1] * C[2, 2] - C[1, 2] * C[2, 1],
        C[1, 2] * C[2, 0] - C[1, 0] * C[2, 2],
        C[1, 0] * C[2, 1] - C[1, 1] * C[2, 0],
    )
    s = 1.0 / np.sqrt(x[0] * x[0] + x[1] * x[1] + x[2] * x[2])
    for c in range(3):
        m.cell[3 + c] = s * (field.R[c, 0] * x[0] + field.R[c, 1] * x[1] + field.R[c, 2] * x[2])


@reordered_inner
def on_triangle_of_field(field, shape, H, m, margin, count, number):
    """Append the contacts of one triangle with a shape; return how many there are."""
    T, r = m.triangle, core_radius(shape)
    N0, N1, N2 = m.cell[3], m.cell[4], m.cell[5]
    size = max(T.reach, shape.reach)
    row = m.points[254:256]
    support(T, shape, H, m, N0, N1, N2, row, 0)
    d = N0 * row[0, 6] + N1 * row[0, 7] + N2 * row[0, 8] - r
    if d > margin:
        return count
    before = count
    if d > 0.0:
        m.v[0] = m.v[1] = m.v[2] = 0.0
        if gjk(T, shape, H, m, size + abs(row[0, 6]) + abs(row[0, 7]) + abs(row[0, 8]), margin + r) != 0:
            return count
        n = m.n
        along = n[0] * N0 + n[1] * N1 + n[2] * N2
        if along < 1.0 - 0.5 * UPRIGHT and not is_ridge(field, m, size):
            return count
        if along < 1.0 - 1e-12:
            x, y, z, d = m.a[0], m.a[1], m.a[2], m.distance - r
            s = 0.5 * d
            count = add(
                m,
                count,
                T.p[0] + x + s * n[0],
                T.p[1] + y + s * n[1],
                T.p[2] + z + s * n[2],
                n[0],
                n[1],
                n[2],
                d,
                number,
                SAME * size,
            )
            return count
    face_of(T, H, m, 0, 0, T.p, N0, N1, N2)
    corners, cosine = face_of(shape, H, m, 1, 1, T.p, -N0, -N1, -N2)
    if corners < 2 or cosine < 0.7:
        corners = 1
        for c in range(3):
            m.polygon[1, 0, c] = row[0, 6 + c] - r * m.normal[0, c]
        m.label[1, 0, 0] = m.label[1, 0, 1] = 1
    count = clipped(m, T.p, count, 0, 3, corners, size, margin)
    for e in range(before, count):
        m.features[e] = number + m.features[e] % NUMBERS
    return count


@reordered_inner
def is_ridge(field, m, size):
    """Return whether no neighbour beyond the sides on which the nearest point lies rises towards the shape."""
    C, n, a, R = m.corners, m.n, m.a, field.R
    x = (R[0, 0] * a[0] + R[1, 0] * a[1] + R[2, 0] * a[2], R[0, 1] * a[0] + R[1, 1] * a[1] + R[2, 1] * a[2],
         R[0, 2] * a[0] + R[1, 2] * a[1] + R[2, 2] * a[2])  # fmt: skip
    u = (R[0, 0] * n[0] + R[1, 0] * n[1] + R[2, 0] * n[2], R[0, 1] * n[0] + R[1, 1] * n[1] + R[2, 1] * n[2],
         R[0, 2] * n[0] + R[1, 2] * n[1] + R[2, 2] * n[2])  # fmt: skip
    whole = (C[1, 0] - C[0, 0]) * (C[2, 1] - C[0, 1]) - (C[1, 1] - C[0, 1]) * (C[2, 0] - C[0, 0])
    for s in range(3):
        e = s + 1 if s < 2 else 0
        part = (C[e, 0] - C[s, 0]) * (x[1] - C[s, 1]) - (C[e, 1] - C[s, 1]) * (x[0] - C[s, 0])
        if part <= CORNER * whole and m.cell[s] > 0.0:
            B = m.beyond[s]
            if u[0] * (B[0] - x[0]) + u[1] * (B[1] - x[1]) + u[2] * (B[2] - x[2]) > 1e-9 * size:
                return False
    return True
