"""Distance of two convex cores that are apart: the algorithm of Gilbert, Johnson and Keerthi.

The difference A - B of two cores is convex; its point v nearest to 0 is as long as the cores are apart. A simplex of
support points w = s_A(-v) - s_B(v) comes nearer and nearer:

    |v| >= distance >= v . w / |v|

All points are seen from the origin of the first shape, so that places far from the world's origin cost no digits.

Sources: E. Gilbert, D. Johnson, S. Keerthi 1988; C. Ericson, "Real-Time Collision Detection" (2005), 5.1.5;
G. van den Bergen, "Collision Detection in Interactive 3D Environments" (2003), ch. 4.
"""

from __future__ import annotations

import numpy as np

from dalembert.contact.kinds import CYLINDER, ELLIPSOID
from dalembert.contact.smooth_loops import polish
from dalembert.contact.support_loops import support
from dalembert.kernel.loops import reordered_inner

MOST_ROUNDS = 96
"""Support points of one search; flat shapes take 4 to 8, round ones up to 60."""

FLAT = 1e-13
"""Height of a tetrahedron over its longest edge that is rounding."""

CUT = 1e-15
"""Distance over the size of the shapes at which cores touch."""

CLOSE = 1e-15
"""Distance between both bounds over the size of the shapes at which the search ends."""

NEAR = 1e-5
"""The same where Newton's method takes over for round shapes."""


@reordered_inner
def on_triangle(S, i, j, k):
    """Return barycentric coordinates of the point of the triangle (i, j, k) of S nearest to 0 (Ericson 5.1.5)."""
    ax, ay, az = S[i, 0], S[i, 1], S[i, 2]
    bx, by, bz = S[j, 0] - ax, S[j, 1] - ay, S[j, 2] - az
    cx, cy, cz = S[k, 0] - ax, S[k, 1] - ay, S[k, 2] - az
    d1 = -(bx * ax + by * ay + bz * az)
    d2 = -(cx * ax + cy * ay + cz * az)
    bb, bc, cc = bx * bx + by * by + bz * bz, bx * cx + by * cy + bz * cz, cx * cx + cy * cy + cz * cz
    d3, d4, d5, d6 = d1 - bb, d2 - bc, d1 - bc, d2 - cc
    if d1 <= 0.0 and d2 <= 0.0:
        return 1.0, 0.0, 0.0
    if d3 >= 0.0 and d4 <= d3:
        return 0.0, 1.0, 0.0
    vc = d1 * d4 - d3 * d2
    if vc <= 0.0 and d1 >= 0.0 and d3 <= 0.0:
        v = d1 / (d1 - d3)
        return 1.0 - v, v, 0.0
    if d6 >= 0.0 and d5 <= d6:
        return 0.0, 0.0, 1.0
    vb = d5 * d2 - d1 * d6
    if vb <= 0.0 and d2 >= 0.0 and d6 <= 0.0:
        w = d2 / (d2 - d6)
        return 1.0 - w, 0.0, w
    va = d3 * d6 - d5 * d4
    if va <= 0.0 and d4 - d3 >= 0.0 and d5 - d6 >= 0.0:
        w = (d4 - d3) / ((d4 - d3) + (d5 - d6))
        return 0.0, 1.0 - w, w
    s = 1.0 / (va + vb + vc)
    return 1.0 - vb * s - vc * s, vb * s, vc * s


@reordered_inner
def outside(S, i, j, k, o):
    """Return whether 0 lies on the other side of the plane (i, j, k) of S than the vertex o: 1 yes, 0 no, -1 flat."""
    bx, by, bz = S[j, 0] - S[i, 0], S[j, 1] - S[i, 1], S[j, 2] - S[i, 2]
    cx, cy, cz = S[k, 0] - S[i, 0], S[k, 1] - S[i, 1], S[k, 2] - S[i, 2]
    ox, oy, oz = S[o, 0] - S[i, 0], S[o, 1] - S[i, 1], S[o, 2] - S[i, 2]
    nx, ny, nz = by * cz - bz * cy, bz * cx - bx * cz, bx * cy - by * cx
    here = -(nx * S[i, 0] + ny * S[i, 1] + nz * S[i, 2])
    there = nx * ox + ny * oy + nz * oz
    longest = np.sqrt((nx * nx + ny * ny + nz * nz) * (ox * ox + oy * oy + oz * oz))
    if abs(there) <= FLAT * longest:
        return -1
    return 1 if here * there < 0.0 else 0


@reordered_inner
def nearest(S, count, weights):
    """Write the weights of the point of the simplex S[:count] nearest to 0; return whether 0 is inside."""
    weights[0] = weights[1] = weights[2] = weights[3] = 0.0
    if count == 1:
        weights[0] = 1.0
        return False
    if count == 2:
        dx, dy, dz = S[1, 0] - S[0, 0], S[1, 1] - S[0, 1], S[1, 2] - S[0, 2]
        q = dx * dx + dy * dy + dz * dz
        t = -(S[0, 0] * dx + S[0, 1] * dy + S[0, 2] * dz) / q if q > 0.0 else 0.0
        t = min(max(t, 0.0), 1.0)
        weights[0], weights[1] = 1.0 - t, t
        return False
    if count == 3:
        weights[0], weights[1], weights[2] = on_triangle(S, 0, 1, 2)
        return False
    best, inside = np.inf, True
    for f in range(4):
        i, j, k, o = (0, 1, 2, 3) if f == 0 else (0, 2, 3, 1) if f == 1 else (0, 3, 1, 2) if f == 2 else (1, 3, 2, 0)
        if outside(S, i, j, k, o) == 0:
            continue
        inside = False
        a, b, c = on_triangle(S, i, j, k)
        x = a * S[i, 0] + b * S[j, 0] + c * S[k, 0]
        y = a * S[i, 1] + b * S[j, 1] + c * S[k, 1]
        z = a * S[i, 2] + b * S[j, 2] + c * S[k, 2]
        d = x * x + y * y + z * z
        if d < best:
            best = d
            weights[0] = weights[1] = weights[2] = weights[3] = 0.0
            weights[i], weights[j], weights[k] = a, b, c
    return inside


@reordered_inner
def drop_idle(S, count, weights, v):
    """Keep the vertices with weight, in order, and write their point into v; return how many."""
    kept, x, y, z = 0, 0.0, 0.0, 0.0
    for i in range(count):
        if weights[i] > 0.0:
            x += weights[i] * S[i, 0]
            y += weights[i] * S[i, 1]
            z += weights[i] * S[i, 2]
            if i != kept:
                for c in range(9):
                    S[kept, c] = S[i, c]
                weights[kept] = weights[i]
            kept += 1
    v[0], v[1], v[2] = x, y, z
    return kept


@reordered_inner
def is_round(shape):
    """Return whether the support point of a core moves smoothly with the direction."""
    return shape.kind == CYLINDER or shape.kind == ELLIPSOID


@reordered_inner
def gjk(one, two, H, m, size, stop):
    """Write nearest points, normal and distance of the cores; return 0, or the vertices of the simplex if they cut.

    Beyond the distance `stop` the search ends early, with -1.
    m.v is the first direction: that of the last step, if there is one, from the second shape to the first.
    """
    S, v, weights = m.simplex, m.v, m.weights
    if v[0] == 0.0 and v[1] == 0.0 and v[2] == 0.0:
        v[0], v[1], v[2] = one.p[0] - two.p[0], one.p[1] - two.p[1], one.p[2] - two.p[2]
        if v[0] == 0.0 and v[1] == 0.0 and v[2] == 0.0:
            v[0] = 1.0
    count, first, last = 0, True, np.inf
    both_round = is_round(one) or is_round(two)
    near = NEAR if both_round else 0.0
    for turn in range(MOST_ROUNDS):
        m.rounds[0] += 1
        support(one, two, H, m, -v[0], -v[1], -v[2], S, count)
        vv = v[0] * v[0] + v[1] * v[1] + v[2] * v[2]
        vw = v[0] * S[count, 0] + v[1] * S[count, 1] + v[2] * S[count, 2]
        length = np.sqrt(vv)
        if vw > stop * length:
            return -1
        if not first:
            gap = vv - vw
            if gap <= CLOSE * size * length or gap <= 4e-16 * vv:
                break
            if gap <= near * size * length:
                touching_points(m, count)
                if polish(one, two, H, m, S, count, size):
                    return 0
                near *= 1e-3
            if known(S, count):
                break
        first = False
        count += 1
        if nearest(S, count, weights):
            return 4
        count = drop_idle(S, count, weights, v)
        now = v[0] * v[0] + v[1] * v[1] + v[2] * v[2]
        if now <= CUT * size * CUT * size:
            return count
        if turn > 3 and now >= last:
            break
        last = now
    touching_points(m, count)
    if both_round:
        polish(one, two, H, m, S, count, size)
    if count == 3:
        square_up(m, size)
    return 0


@reordered_inner
def known(S, count):
    """Return whether the newest support point S[count] is in the simplex already."""
    same = False
    for i in range(count):
        same = same or (S[i, 0] == S[count, 0] and S[i, 1] == S[count, 1] and S[i, 2] == S[count, 2])
    return same


@reordered_inner
def touching_points(m, count):
    """Write the points of both cores, the normal and the distance from weights and v."""
    S, weights, v = m.simplex, m.weights, m.v
    d = np.sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2])
    for c in range(3):
        a, b = 0.0, 0.0
        for i in range(count):
            a += weights[i] * S[i, 3 + c]
            b += weights[i] * S[i, 6 + c]
        m.a[c], m.b[c], m.n[c] = a, b, -v[c] / d
    m.distance = d


WELL_SHAPED = 1e-4
"""Sine of an angle of a triangle from which its normal is known better than the difference of near points."""


@reordered_inner
def square_up(m, size):
    """Take the normal of a face: the difference of two points that are nearly one has few digits."""
    S = m.simplex
    bx, by, bz = S[1, 0] - S[0, 0], S[1, 1] - S[0, 1], S[1, 2] - S[0, 2]
    cx, cy, cz = S[2, 0] - S[0, 0], S[2, 1] - S[0, 1], S[2, 2] - S[0, 2]
    nx, ny, nz = by * cz - bz * cy, bz * cx - bx * cz, bx * cy - by * cx
    s = np.sqrt(nx * nx + ny * ny + nz * nz)
    longest = np.sqrt(max(bx * bx + by * by + bz * bz, cx * cx + cy * cy + cz * cz))
    if m.distance > 0.1 * size or s <= WELL_SHAPED * longest * longest:
        return
    d = (nx * S[0, 0] + ny * S[0, 1] + nz * S[0, 2]) / s
    s = -s if d > 0.0 else s
    if abs(abs(d) - m.distance) <= 1e-12 * size:
        m.n[0], m.n[1], m.n[2], m.distance = nx / s, ny / s, nz / s, abs(d)
