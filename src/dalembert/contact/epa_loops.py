"""Depth of two convex cores that cut each other: the expanding polytope algorithm.

A polytope inside the difference A - B grows where its surface is nearest to 0, by the support point along the normal of
the nearest face. The offset of that face is less than the depth, the support function along its normal not less.

Sources: G. van den Bergen, "Collision Detection in Interactive 3D Environments" (2003), 4.3.8.
"""

from __future__ import annotations

import numpy as np

from dalembert.contact.gjk_loops import is_round, on_triangle
from dalembert.contact.memory import FACES, VERTICES
from dalembert.contact.smooth_loops import polish
from dalembert.contact.support_loops import support
from dalembert.kernel.loops import reordered_inner

ROUNDED = 1e-7
"""Distance between both bounds over the size at which Newton's method takes over for round shapes. Other places whose
depth is nearer to the least one than this are not told apart."""

FLAT = 1e-13
"""The same at which the search ends."""

SEES = 1e-14
"""Height over a face, over the size, from which a point sees it."""

NEW = 1e-10
"""Distance over the size from which a point is not in the span of others."""

PATIENCE = 60
"""Points that may come without a better bound: then rounding has turned faces that are slivers."""

RESERVE = 40
"""Faces that one point may add at least."""


@reordered_inner
def face_plane(m, f):
    """Write normal and offset of a face of the polytope; its normal points away from the inside."""
    P, F = m.points, m.faces
    i, j, k = F[f, 0], F[f, 1], F[f, 2]
    bx, by, bz = P[j, 0] - P[i, 0], P[j, 1] - P[i, 1], P[j, 2] - P[i, 2]
    cx, cy, cz = P[k, 0] - P[i, 0], P[k, 1] - P[i, 1], P[k, 2] - P[i, 2]
    nx, ny, nz = by * cz - bz * cy, bz * cx - bx * cz, bx * cy - by * cx
    s = np.sqrt(nx * nx + ny * ny + nz * nz)
    if s <= 1e-30 * (bx * bx + by * by + bz * bz) or s == 0.0:
        m.planes[f, 3] = np.inf
        return
    m.planes[f, 0], m.planes[f, 1], m.planes[f, 2] = nx / s, ny / s, nz / s
    m.planes[f, 3] = (nx * P[i, 0] + ny * P[i, 1] + nz * P[i, 2]) / s


@reordered_inner
def away(P, count, turn):
    """Return a direction out of the span of the first points; turns go through axes and signs."""
    sign = 1.0 if turn % 2 == 0 else -1.0
    d = (turn // 2) % 3
    x, y, z = (1.0, 0.0, 0.0) if d == 0 else (0.0, 1.0, 0.0) if d == 1 else (0.0, 0.0, 1.0)
    if count == 1:
        return sign * x, sign * y, sign * z
    bx, by, bz = P[1, 0] - P[0, 0], P[1, 1] - P[0, 1], P[1, 2] - P[0, 2]
    if count == 2:
        return sign * (by * z - bz * y), sign * (bz * x - bx * z), sign * (bx * y - by * x)
    cx, cy, cz = P[2, 0] - P[0, 0], P[2, 1] - P[0, 1], P[2, 2] - P[0, 2]
    return sign * (by * cz - bz * cy), sign * (bz * cx - bx * cz), sign * (bx * cy - by * cx)


@reordered_inner
def is_new(P, count, size):
    """Return whether the point P[count] is out of the span of those before it."""
    dx, dy, dz = P[count, 0] - P[0, 0], P[count, 1] - P[0, 1], P[count, 2] - P[0, 2]
    least = NEW * NEW * size * size
    if count == 1:
        return dx * dx + dy * dy + dz * dz > least
    bx, by, bz = P[1, 0] - P[0, 0], P[1, 1] - P[0, 1], P[1, 2] - P[0, 2]
    if count == 2:
        nx, ny, nz = by * dz - bz * dy, bz * dx - bx * dz, bx * dy - by * dx
        return nx * nx + ny * ny + nz * nz > least * (bx * bx + by * by + bz * bz)
    cx, cy, cz = P[2, 0] - P[0, 0], P[2, 1] - P[0, 1], P[2, 2] - P[0, 2]
    nx, ny, nz = by * cz - bz * cy, bz * cx - bx * cz, bx * cy - by * cx
    w = nx * dx + ny * dy + nz * dz
    return w * w > least * (nx * nx + ny * ny + nz * nz)


@reordered_inner
def tetrahedron(one, two, H, m, count, size):
    """Complete the simplex of GJK to a tetrahedron with 0 inside or on it, faces turned outward; return success."""
    P, F = m.points, m.faces
    for i in range(count):
        for c in range(9):
            P[i, c] = m.simplex[i, c]
    for turn in range(12):
        if count == 4:
            break
        x, y, z = away(P, count, turn)
        if x * x + y * y + z * z > 0.0:
            support(one, two, H, m, x, y, z, P, count)
            if is_new(P, count, size):
                count += 1
    if count < 4:
        return False
    x, y, z = away(P, 3, 0)
    flip = x * (P[3, 0] - P[0, 0]) + y * (P[3, 1] - P[0, 1]) + z * (P[3, 2] - P[0, 2]) > 0.0
    for f in range(4):
        i, j, k = (0, 1, 2) if f == 0 else (0, 3, 1) if f == 1 else (1, 3, 2) if f == 2 else (2, 3, 0)
        F[f, 0] = i
        F[f, 1], F[f, 2] = (k, j) if flip else (j, k)
        face_plane(m, f)
        m.alive[f] = 1
    return True


@reordered_inner
def nearest_face(m, faces):
    """Return the face of the polytope that is nearest to 0, -1 for none."""
    best, least = -1, np.inf
    for f in range(faces):
        if m.alive[f] and m.planes[f, 3] < least:
            best, least = f, m.planes[f, 3]
    return best


@reordered_inner
def seen_faces(m, count, faces, best, size):
    """Collect the faces that the newest point sees, joined to the nearest one by edges; return how many.

    Of faces that rounding has turned some would be seen that lie apart; without these the rim stays one circle.
    """
    P, F, N, seen = m.points, m.faces, m.planes, m.seen
    found = 1
    seen[0] = best
    m.alive[best] = 0
    for f in range(faces):
        if not m.alive[f]:
            continue
        if N[f, 0] * P[count, 0] + N[f, 1] * P[count, 1] + N[f, 2] * P[count, 2] - N[f, 3] > SEES * size:
            seen[found] = f
            m.alive[f] = 0
            found += 1
    connected, grows = 1, True
    while grows:
        grows = False
        for s in range(connected, found):
            f = seen[s]
            if touches(F, seen, connected, f):
                seen[s] = seen[connected]
                seen[connected] = f
                connected += 1
                grows = True
    for s in range(connected, found):
        m.alive[seen[s]] = 1
    return connected


@reordered_inner
def touches(F, seen, connected, f):
    """Return whether a face has an edge in common with one of those that are connected."""
    for e in range(3):
        a, b = F[f, e], F[f, (e + 1) % 3]
        for s in range(connected):
            g = seen[s]
            if (F[g, 0] == b and F[g, 1] == a) or (F[g, 1] == b and F[g, 2] == a) or (F[g, 2] == b and F[g, 0] == a):
                return True
    return False


@reordered_inner
def join(m, count, faces, best, size):
    """Take away the faces that the newest point sees and join their rim to it; return faces, -1 without success."""
    F, alive, rim, seen = m.faces, m.alive, m.rim, m.seen
    edges, gone = 0, seen_faces(m, count, faces, best, size)
    for s in range(gone):
        f = seen[s]
        for e in range(3):
            a, b = F[f, e], F[f, (e + 1) % 3]
            found = -1
            for t in range(edges):
                if rim[t, 0] == b and rim[t, 1] == a:
                    found = t
            if found >= 0:
                edges -= 1
                rim[found, 0], rim[found, 1] = rim[edges, 0], rim[edges, 1]
            elif edges < FACES:
                rim[edges, 0], rim[edges, 1] = a, b
                edges += 1
    if edges != gone + 2:  # not a disc: rounding has spoilt the polytope
        for s in range(gone):
            alive[seen[s]] = 1
        return -1
    slot = 0
    for t in range(edges):
        while slot < faces and alive[slot]:
            slot += 1
        if slot >= FACES:
            return -1
        F[slot, 0], F[slot, 1], F[slot, 2] = rim[t, 0], rim[t, 1], count
        alive[slot] = 1
        face_plane(m, slot)
        faces = max(faces, slot + 1)
    return faces


@reordered_inner
def witness(m, face):
    """Write points, normal and distance of a face into the answer; its three vertices into the simplex."""
    S = m.simplex
    for r in range(3):
        for c in range(9):
            S[r, c] = m.points[m.faces[face, r], c]
    u, v, w = on_triangle(S, 0, 1, 2)
    for c in range(3):
        m.a[c] = u * S[0, 3 + c] + v * S[1, 3 + c] + w * S[2, 3 + c]
        m.b[c] = u * S[0, 6 + c] + v * S[1, 6 + c] + w * S[2, 6 + c]
        m.n[c] = m.planes[face, c]
    m.distance = -m.planes[face, 3]


@reordered_inner
def epa(one, two, H, m, count, size):
    """Write points, normal and (negative) distance of cores that cut; count: size of GJK's simplex. Return success.

    The least of the support function along normals so far is an upper bound of the depth, and the answer.
    """
    if not tetrahedron(one, two, H, m, count, size):
        return False
    P, N = m.points, m.planes
    smooth = is_round(one) or is_round(two)
    enough = ROUNDED if smooth else FLAT
    count, faces, bound, idle = 4, 4, np.inf, 0
    while True:
        m.rounds[1] += 1
        best = nearest_face(m, faces)
        if best < 0:
            return bound < np.inf
        x, y, z, least = N[best, 0], N[best, 1], N[best, 2], N[best, 3]
        support(one, two, H, m, x, y, z, P, count)
        h = x * P[count, 0] + y * P[count, 1] + z * P[count, 2]
        idle += 1
        if h < bound:
            bound, idle = h, 0
            witness(m, best)
            m.distance = -h
        last = count >= VERTICES - 4 or faces > FACES - RESERVE or idle > PATIENCE
        if bound - least <= enough * size or last:
            if not smooth or polish(one, two, H, m, m.simplex, 3, size) or enough <= FLAT or last:
                return True
            enough *= 1e-2
            continue
        now = join(m, count, faces, best, size)
        if now < 0:
            if smooth:
                polish(one, two, H, m, m.simplex, 3, size)
            return True
        faces = now
        count += 1
