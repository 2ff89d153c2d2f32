"""Contact points of faces that lie on each other: one face is clipped by the sides of the other.

The reference is a face whose normal separates the shapes as well as the best direction does, to a part of the size;
points of the other face that are within its sides and the margin are contacts, with distances along the reference's
normal, which rounding cannot turn. Two parallel lines, sides of cylinders and capsules, have two points. Everything
else has one.

A contact's feature is its corner, or the edge and the side that cross: the same number as long as they touch.

Sources: C. Ericson, "Real-Time Collision Detection" (2005), 5.5; I. Sutherland, G. Hodgman 1974.
"""

from __future__ import annotations

import numpy as np

from dalembert.contact.kinds import BOX, CAPSULE, CYLINDER, HEIGHTFIELD, HULL
from dalembert.contact.memory import (
    AROUND,
    AROUND_STARTS,
    CORNERS,
    FACE_CORNERS,
    FACE_STARTS,
    HEAD,
    NORMALS,
)
from dalembert.contact.support_loops import FEW, climb, core_radius, support
from dalembert.kernel.loops import reordered_inner

RIM = 16
"""Corners of a cylinder's end."""

COSINE, SINE = float(np.cos(2.0 * np.pi / RIM)), float(np.sin(2.0 * np.pi / RIM))

MOST_CORNERS = 32
"""Corners of a hull's face that are clipped; of more, evenly spaced ones."""

ALIGNED = 0.9998
"""Cosine of the normal and a face's from which the face is tried as reference: 1.1 degrees."""

FACING = 0.7
"""Cosine from which the other face, or line, has more than one point to offer."""

TIE = 1e-8
"""Distance over the size that a face's normal may be worse than the best one and yet be the reference."""

SAME = 1e-5
"""Points nearer than this, over the size, are one."""

ON = 1e-10
"""How far a corner may be beyond a side, over the size, and be kept."""

LEVEL = 1e-3
"""Sine of two lines that are parallel."""

CROSSING = 1 << 20
FIRST, SECOND = 1 << 44, 2 << 44
"""Parts of a feature's number: which shape has the reference face, the edge, the side or corner."""


@reordered_inner
def face_of(shape, H, m, slot, side, base, x, y, z):
    """Write the face whose normal is nearest to (x, y, z), seen from `base`; return its corners and that cosine.

    Sides of cylinders and capsules are lines of two corners; round shapes have none.
    """
    R, size, kind = shape.R, shape.size, shape.kind
    poly, label = m.polygon[slot], m.label[slot]
    dx = R[0, 0] * x + R[1, 0] * y + R[2, 0] * z
    dy = R[0, 1] * x + R[1, 1] * y + R[2, 1] * z
    dz = R[0, 2] * x + R[1, 2] * y + R[2, 2] * z
    count, cosine = 0, -1.0
    lx = ly = lz = 0.0
    if kind == BOX:
        ax, ay, az = abs(dx), abs(dy), abs(dz)
        i = 0 if ax >= ay and ax >= az else 1 if ay >= az else 2
        d = dx if i == 0 else dy if i == 1 else dz
        s = 1.0 if d >= 0.0 else -1.0
        cosine, count = abs(d), 4
        j, k = (i + 1) % 3, (i + 2) % 3
        for c in range(4):
            u = s * size[j] if c == 0 or c == 3 else -s * size[j]
            v = size[k] if c < 2 else -size[k]
            poly[c, i], poly[c, j], poly[c, k] = s * size[i], u, v
            label[c, 0] = (1 << i if s > 0.0 else 0) + (1 << j if u > 0.0 else 0) + (1 << k if v > 0.0 else 0)
        lx, ly, lz = s if i == 0 else 0.0, s if i == 1 else 0.0, s if i == 2 else 0.0
    elif kind == CYLINDER and abs(dz) > FACING:
        s = 1.0 if dz >= 0.0 else -1.0
        cosine, lz, count = abs(dz), s, RIM
        r = np.sqrt(dx * dx + dy * dy)
        u, v = (size[0] * dx / r, size[0] * dy / r) if r > 1e-12 else (size[0], 0.0)
        for c in range(RIM):
            poly[c, 0], poly[c, 1], poly[c, 2], label[c, 0] = u, v, s * size[1], c
            u, v = COSINE * u - s * SINE * v, COSINE * v + s * SINE * u
    elif kind in (CYLINDER, CAPSULE):
        r = np.sqrt(dx * dx + dy * dy)
        if r > 0.5:
            cosine, lx, ly, count = r, dx / r, dy / r, 2
            u, v, w = (lx, ly, 0.0) if kind == CYLINDER else (dx, dy, dz)  # a capsule's ends are round
            for c in range(2):
                end = size[1] if c == 0 else -size[1]
                poly[c, 0], poly[c, 1], poly[c, 2], label[c, 0] = size[0] * u, size[0] * v, end + size[0] * w, c
    elif kind == HULL:
        count, cosine, lx, ly, lz = hull_face(shape, H, m.guess, side, poly, label, dx, dy, dz)
    elif kind == HEIGHTFIELD:
        count, cosine, lx, ly, lz = 3, 1.0, dx, dy, dz
        for c in range(3):
            poly[c, 0], poly[c, 1], poly[c, 2], label[c, 0] = m.corners[c, 0], m.corners[c, 1], m.corners[c, 2], c
    for c in range(count):
        u, v, w = poly[c, 0], poly[c, 1], poly[c, 2]
        for i in range(3):
            poly[c, i] = R[i, 0] * u + R[i, 1] * v + R[i, 2] * w + (shape.p[i] - base[i])
        label[c, 0] += 1
        label[c, 1] = label[c, 0]
    for i in range(3):
        m.normal[slot, i] = R[i, 0] * lx + R[i, 1] * ly + R[i, 2] * lz
    return count, cosine


@reordered_inner
def hull_face(shape, H, guess, side, poly, label, dx, dy, dz):
    """Write the face of a hull whose normal is nearest to a direction; of large hulls among those around its vertex."""
    i, f, hull = H.i, H.f, shape.hull
    at = HEAD + 4 * hull
    first, last = i[at + 2], i[at + 3]
    all_of_them = last - first <= FEW
    if not all_of_them:
        vertex = climb(hull, H, guess, side, dx, dy, dz)
        first, last = i[i[AROUND_STARTS] + vertex], i[i[AROUND_STARTS] + vertex + 1]
    best, cosine = first, -2.0
    for k in range(first, last):
        face = k if all_of_them else i[i[AROUND] + k]
        n = i[NORMALS] + 3 * face
        d = f[n] * dx + f[n + 1] * dy + f[n + 2] * dz
        if d > cosine:
            best, cosine = face, d
    start, stop = i[i[FACE_STARTS] + best], i[i[FACE_STARTS] + best + 1]
    count = min(stop - start, MOST_CORNERS)
    for c in range(count):
        k = i[i[FACE_CORNERS] + start + c * (stop - start) // count]
        poly[c, 0], poly[c, 1], poly[c, 2] = f[3 * k], f[3 * k + 1], f[3 * k + 2]
        label[c, 0] = k - i[at]
    n = i[NORMALS] + 3 * best
    return count, cosine, f[n], f[n + 1], f[n + 2]


@reordered_inner
def clip(m, reference, sides, slot, corners, size):
    """Clip the polygon or line in a slot by the sides of the reference's; return the corners left, with labels."""
    ref, poly, other = m.polygon[reference], m.polygon[slot], m.polygon[2]
    label, labels = m.label[slot], m.label[2]
    N, count, on = m.normal[reference], corners, ON * size
    for e in range(sides):
        f = e + 1 if e + 1 < sides else 0
        ex, ey, ez = ref[f, 0] - ref[e, 0], ref[f, 1] - ref[e, 1], ref[f, 2] - ref[e, 2]
        sx, sy, sz = ey * N[2] - ez * N[1], ez * N[0] - ex * N[2], ex * N[1] - ey * N[0]
        s = 1.0 / np.sqrt(sx * sx + sy * sy + sz * sz)
        sx, sy, sz = s * sx, s * sy, s * sz
        o = sx * ref[e, 0] + sy * ref[e, 1] + sz * ref[e, 2]
        new, mark = 0, m.label[reference, e, 0]
        for a in range(count):
            da = sx * poly[a, 0] + sy * poly[a, 1] + sz * poly[a, 2] - o
            if da <= on and new < CORNERS - 1:
                for c in range(3):
                    other[new, c] = poly[a, c]
                labels[new, 0], labels[new, 1] = label[a, 0], label[a, 1]
                new += 1
            b = a + 1 if a + 1 < count else 0
            if count == 1 or (corners == 2 and b == 0):
                continue
            db = sx * poly[b, 0] + sy * poly[b, 1] + sz * poly[b, 2] - o
            if ((da <= on < db and da < -on) or (db <= on < da and db < -on)) and new < CORNERS - 1:
                t = da / (da - db)
                for c in range(3):
                    other[new, c] = poly[a, c] + t * (poly[b, c] - poly[a, c])
                labels[new, 0] = CROSSING * (label[a, 1] & (CROSSING - 1)) + mark
                labels[new, 1] = mark if da <= on else label[a, 1]
                new += 1
        count = new
        for a in range(count):
            for c in range(3):
                poly[a, c] = other[a, c]
            label[a, 0], label[a, 1] = labels[a, 0], labels[a, 1]
    return count


@reordered_inner
def add(m, count, x, y, z, nx, ny, nz, d, feature, same):
    """Append a contact unless one is nearer than `same`; the eight deepest stay. Return how many there are."""
    for e in range(count):
        o = m.contacts[e]
        if abs(o[0] - x) + abs(o[1] - y) + abs(o[2] - z) <= same:
            return count
    row = count
    if count == 8:
        row = 0
        for e in range(1, 8):
            row = e if m.contacts[e, 6] > m.contacts[row, 6] else row
        if m.contacts[row, 6] <= d:
            return count
        count = 7
    o = m.contacts[row]
    o[0], o[1], o[2], o[3], o[4], o[5], o[6] = x, y, z, nx, ny, nz, d
    m.features[row] = feature
    return count + 1


@reordered_inner
def loss(one, two, H, m, slot, sign, best):
    """Return by how much the normal of a face separates worse than the best distance."""
    N, row = m.normal[slot], m.points[254:256]
    nx, ny, nz = sign * N[0], sign * N[1], sign * N[2]
    support(one, two, H, m, nx, ny, nz, row, 0)
    h = nx * row[0, 0] + ny * row[0, 1] + nz * row[0, 2]
    return best + h + core_radius(one) + core_radius(two)


@reordered_inner
def on_faces(one, two, H, m, size, margin):
    """Write the contacts of two shapes from m.a, m.b, m.n, m.distance (of surfaces); return how many."""
    n, base = m.n, one.p
    c1, cosine1 = face_of(one, H, m, 0, 0, base, n[0], n[1], n[2])
    c2, cosine2 = face_of(two, H, m, 1, 1, base, -n[0], -n[1], -n[2])
    count = 0
    if c1 >= 2 and c2 >= 2:
        worse1 = worse2 = np.inf
        if c1 > 2 and cosine1 > ALIGNED and cosine2 > FACING:
            worse1 = loss(one, two, H, m, 0, 1.0, m.distance)
        if c2 > 2 and cosine2 > ALIGNED and cosine1 > FACING:
            worse2 = loss(one, two, H, m, 1, -1.0, m.distance)
        if min(worse1, worse2) <= TIE * size:
            first = worse1 <= worse2 + 1e-12 * size
            count = clipped(m, base, 0, 0 if first else 1, c1 if first else c2, c2 if first else c1, size, margin)
        elif c1 == 2 and c2 == 2 and cosine1 > ALIGNED and cosine2 > ALIGNED:
            count = beside(m, base, size, margin)
    deepest = np.inf
    for e in range(count):
        deepest = min(deepest, m.contacts[e, 6])
    if count == 0 or deepest > m.distance + TIE * size:
        count = single(m, base, count, size, margin)
    return count


@reordered_inner
def single(m, base, count, size, margin):
    """Append the nearest points as one contact; return how many there are."""
    if m.distance > margin:
        return count
    x, y, z = 0.5 * (m.a[0] + m.b[0]), 0.5 * (m.a[1] + m.b[1]), 0.5 * (m.a[2] + m.b[2])
    n = m.n
    return add(m, count, base[0] + x, base[1] + y, base[2] + z, n[0], n[1], n[2], m.distance, 0, SAME * size)


@reordered_inner
def clipped(m, base, count, reference, sides, corners, size, margin):
    """Append the contacts of the other face within the reference's sides: eight at most, spread evenly."""
    N, sign = m.normal[reference], 1.0 if reference == 0 else -1.0
    ref, slot = m.polygon[reference], 1 - reference
    o = N[0] * ref[0, 0] + N[1] * ref[0, 1] + N[2] * ref[0, 2]
    left = clip(m, reference, sides, slot, corners, size)
    poly, deepest, least = m.polygon[slot], 0, np.inf
    for i in range(left):
        d = N[0] * poly[i, 0] + N[1] * poly[i, 1] + N[2] * poly[i, 2] - o
        m.spread[i] = d
        if d < least - ON * size:
            deepest, least = i, d
    tried = min(left, 8)
    for k in range(tried):
        i = (deepest + k * left // tried) % left
        d = m.spread[i]
        if d <= margin:
            x, y, z = poly[i, 0] - 0.5 * d * N[0], poly[i, 1] - 0.5 * d * N[1], poly[i, 2] - 0.5 * d * N[2]
            feature = m.label[slot, i, 0] + (FIRST if reference == 0 else SECOND)
            count = add(
                m, count, base[0] + x, base[1] + y, base[2] + z, sign * N[0], sign * N[1], sign * N[2], d, feature,
                SAME * size,
            )  # fmt: skip
    return count


@reordered_inner
def beside(m, base, size, margin):
    """Write the two ends of what two parallel lines have beside each other; none where they cross."""
    P, Q, n = m.polygon[0], m.polygon[1], m.n
    ux, uy, uz = P[1, 0] - P[0, 0], P[1, 1] - P[0, 1], P[1, 2] - P[0, 2]
    vx, vy, vz = Q[1, 0] - Q[0, 0], Q[1, 1] - Q[0, 1], Q[1, 2] - Q[0, 2]
    uu = ux * ux + uy * uy + uz * uz
    uv = ux * vx + uy * vy + uz * vz
    vv = vx * vx + vy * vy + vz * vz
    if uu * vv - uv * uv > LEVEL * LEVEL * uu * vv or uu == 0.0 or vv == 0.0:
        return 0
    s0 = ((Q[0, 0] - P[0, 0]) * ux + (Q[0, 1] - P[0, 1]) * uy + (Q[0, 2] - P[0, 2]) * uz) / uu
    s1 = s0 + uv / uu
    low, high = max(0.0, min(s0, s1)), min(1.0, max(s0, s1))
    if high - low <= SAME:
        return 0
    count = 0
    for e in range(2):
        s = low if e == 0 else high
        t = (s - s0) / (s1 - s0)
        ax, ay, az = P[0, 0] + s * ux, P[0, 1] + s * uy, P[0, 2] + s * uz
        bx, by, bz = Q[0, 0] + t * vx, Q[0, 1] + t * vy, Q[0, 2] + t * vz
        d = (bx - ax) * n[0] + (by - ay) * n[1] + (bz - az) * n[2]
        if d <= margin:
            x, y, z = base[0] + 0.5 * (ax + bx), base[1] + 0.5 * (ay + by), base[2] + 0.5 * (az + bz)
            count = add(m, count, x, y, z, n[0], n[1], n[2], d, FIRST + CROSSING + e + 1, SAME * size)
    return count
