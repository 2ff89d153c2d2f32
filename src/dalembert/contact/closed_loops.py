"""Signed distances in closed form: spheres and capsules among each other, spheres with boxes and cylinders, two boxes.

Each writes nearest points of both cores (seen from the first shape's origin), the unit normal from the first to the
second and the signed distance into `m`.

Sources: C. Ericson, "Real-Time Collision Detection" (2005), 5.1.9; S. Gottschalk, M. Lin, D. Manocha 1996 (axes of
boxes).
"""

from __future__ import annotations

import numpy as np

from dalembert.contact.kinds import CAPSULE
from dalembert.kernel.loops import reordered_inner

PARALLEL = 1e-12
"""Squared sine of two segments that are parallel."""

TURNED = 1e-6
"""Sine of two edges of boxes from which their cross product is an axis; below, faces separate as well as they."""

FACES_FIRST = 1e-10
"""By how much edges must separate two boxes better than faces, over the size: ties do not turn with rounding."""


@reordered_inner
def answer(m, ax, ay, az, bx, by, bz, nx, ny, nz, d):
    """Write the answer."""
    m.a[0], m.a[1], m.a[2], m.b[0], m.b[1], m.b[2] = ax, ay, az, bx, by, bz
    m.n[0], m.n[1], m.n[2], m.distance = nx, ny, nz, d


@reordered_inner
def two_segments(one, two, m):
    """Write the nearest points of the cores of spheres and capsules; of parallel segments those in the middle."""
    e = one.size[1] if one.kind == CAPSULE else 0.0
    f = two.size[1] if two.kind == CAPSULE else 0.0
    ux, uy, uz = one.R[0, 2], one.R[1, 2], one.R[2, 2]
    vx, vy, vz = two.R[0, 2], two.R[1, 2], two.R[2, 2]
    rx, ry, rz = two.p[0] - one.p[0], two.p[1] - one.p[1], two.p[2] - one.p[2]
    c = ux * vx + uy * vy + uz * vz
    ru, rv = rx * ux + ry * uy + rz * uz, rx * vx + ry * vy + rz * vz
    wx, wy, wz = uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx
    det = wx * wx + wy * wy + wz * wz
    if det > PARALLEL and e > 0.0 and f > 0.0:
        s = min(max((ru - c * rv) / det, -e), e)
    else:  # the middle of what lies beside each other, or the end that is nearer
        low, high = max(-e, ru - f), min(e, ru + f)
        s = min(max(0.5 * (low + high), -e), e)
    t = min(max(c * s - rv, -f), f)
    s = min(max(ru + c * t, -e), e)
    t = min(max(c * s - rv, -f), f)
    ax, ay, az = s * ux, s * uy, s * uz
    bx, by, bz = rx + t * vx, ry + t * vy, rz + t * vz
    dx, dy, dz = bx - ax, by - ay, bz - az
    d = np.sqrt(dx * dx + dy * dy + dz * dz)
    if d > 0.0:
        answer(m, ax, ay, az, bx, by, bz, dx / d, dy / d, dz / d, d)
    elif det > PARALLEL and e > 0.0 and f > 0.0:
        w = np.sqrt(det)
        answer(m, ax, ay, az, bx, by, bz, wx / w, wy / w, wz / w, 0.0)
    else:
        across(m, ax, ay, az, bx, by, bz, ux, uy, uz)


@reordered_inner
def across(m, ax, ay, az, bx, by, bz, ux, uy, uz):
    """Write an answer of no distance whose normal is anywhere across the direction u."""
    if abs(ux) < 0.6:
        x, y, z = 0.0, uz, -uy
    else:
        x, y, z = -uz, 0.0, ux
    w = np.sqrt(x * x + y * y + z * z)
    answer(m, ax, ay, az, bx, by, bz, x / w, y / w, z / w, 0.0)


@reordered_inner
def from_local(one, two, m, x, y, z, nx, ny, nz, d):
    """Write the answer for a point on the second shape and the inward normal, in its axes; d: the centre's distance."""
    R = two.R
    ox, oy, oz = two.p[0] - one.p[0], two.p[1] - one.p[1], two.p[2] - one.p[2]
    answer(
        m, 0.0, 0.0, 0.0,
        R[0, 0] * x + R[0, 1] * y + R[0, 2] * z + ox,
        R[1, 0] * x + R[1, 1] * y + R[1, 2] * z + oy,
        R[2, 0] * x + R[2, 1] * y + R[2, 2] * z + oz,
        R[0, 0] * nx + R[0, 1] * ny + R[0, 2] * nz,
        R[1, 0] * nx + R[1, 1] * ny + R[1, 2] * nz,
        R[2, 0] * nx + R[2, 1] * ny + R[2, 2] * nz, d,
    )  # fmt: skip


@reordered_inner
def sphere_box(one, two, m):
    """Write the nearest point of a box to a sphere's centre; inside, that of the nearest face."""
    R, h = two.R, two.size
    rx, ry, rz = one.p[0] - two.p[0], one.p[1] - two.p[1], one.p[2] - two.p[2]
    cx = R[0, 0] * rx + R[1, 0] * ry + R[2, 0] * rz
    cy = R[0, 1] * rx + R[1, 1] * ry + R[2, 1] * rz
    cz = R[0, 2] * rx + R[1, 2] * ry + R[2, 2] * rz
    x, y, z = min(max(cx, -h[0]), h[0]), min(max(cy, -h[1]), h[1]), min(max(cz, -h[2]), h[2])
    dx, dy, dz = x - cx, y - cy, z - cz
    d = np.sqrt(dx * dx + dy * dy + dz * dz)
    if d > 0.0:
        from_local(one, two, m, x, y, z, dx / d, dy / d, dz / d, d)
        return
    ex, ey, ez = h[0] - abs(cx), h[1] - abs(cy), h[2] - abs(cz)
    if ex <= ey and ex <= ez:
        s = 1.0 if cx >= 0.0 else -1.0
        from_local(one, two, m, s * h[0], cy, cz, -s, 0.0, 0.0, -ex)
    elif ey <= ez:
        s = 1.0 if cy >= 0.0 else -1.0
        from_local(one, two, m, cx, s * h[1], cz, 0.0, -s, 0.0, -ey)
    else:
        s = 1.0 if cz >= 0.0 else -1.0
        from_local(one, two, m, cx, cy, s * h[2], 0.0, 0.0, -s, -ez)


@reordered_inner
def sphere_cylinder(one, two, m):
    """Write the nearest point of a cylinder to a sphere's centre; inside, that of its side or the nearer end."""
    R, r, h = two.R, two.size[0], two.size[1]
    rx, ry, rz = one.p[0] - two.p[0], one.p[1] - two.p[1], one.p[2] - two.p[2]
    cx = R[0, 0] * rx + R[1, 0] * ry + R[2, 0] * rz
    cy = R[0, 1] * rx + R[1, 1] * ry + R[2, 1] * rz
    cz = R[0, 2] * rx + R[1, 2] * ry + R[2, 2] * rz
    rho = np.sqrt(cx * cx + cy * cy)
    ux, uy = (cx / rho, cy / rho) if rho > 0.0 else (1.0, 0.0)
    out, up = max(rho - r, 0.0), max(abs(cz) - h, 0.0)
    s = 1.0 if cz >= 0.0 else -1.0
    d = np.sqrt(out * out + up * up)
    if d > 0.0:
        at = min(rho, r)
        from_local(one, two, m, at * ux, at * uy, s * min(abs(cz), h), -out * ux / d, -out * uy / d, -s * up / d, d)
    elif r - rho <= h - abs(cz):
        from_local(one, two, m, r * ux, r * uy, cz, -ux, -uy, 0.0, rho - r)
    else:
        from_local(one, two, m, cx, cy, s * h, 0.0, 0.0, -s, abs(cz) - h)


@reordered_inner
def overlap(one, two, nx, ny, nz, t):
    """Return how far two boxes are apart along an axis on which their centres are t apart."""
    sep = abs(t)
    for j in range(3):
        sep -= one.size[j] * abs(one.R[0, j] * nx + one.R[1, j] * ny + one.R[2, j] * nz)
        sep -= two.size[j] * abs(two.R[0, j] * nx + two.R[1, j] * ny + two.R[2, j] * nz)
    return sep


@reordered_inner
def box_axes(one, two, m, size):
    """Write the axis that separates two boxes best, or cuts them least, into m.n; return its number and separation.

    0 to 2: faces of the first box, 3 to 5: of the second, 6 + 3 i + j: edges i and j.
    """
    best, kind, R, S = -np.inf, 0, one.R, two.R
    tx, ty, tz = two.p[0] - one.p[0], two.p[1] - one.p[1], two.p[2] - one.p[2]
    tie = FACES_FIRST * size
    for f in range(6):
        if f < 3:
            nx, ny, nz = R[0, f], R[1, f], R[2, f]
        else:
            nx, ny, nz = S[0, f - 3], S[1, f - 3], S[2, f - 3]
        t = tx * nx + ty * ny + tz * nz
        sep = overlap(one, two, nx, ny, nz, t)
        if sep > best + (tie if f >= 3 else 0.0):
            best, kind = sep, f
            s = 1.0 if t >= 0.0 else -1.0
            m.n[0], m.n[1], m.n[2] = s * nx, s * ny, s * nz
    for i in range(3):
        for j in range(3):
            nx = R[1, i] * S[2, j] - R[2, i] * S[1, j]
            ny = R[2, i] * S[0, j] - R[0, i] * S[2, j]
            nz = R[0, i] * S[1, j] - R[1, i] * S[0, j]
            w = np.sqrt(nx * nx + ny * ny + nz * nz)
            if w < TURNED:
                continue
            nx, ny, nz = nx / w, ny / w, nz / w
            t = tx * nx + ty * ny + tz * nz
            sep = overlap(one, two, nx, ny, nz, t)
            if sep > best + (0.0 if kind > 5 else tie):
                best, kind = sep, 6 + 3 * i + j
                s = 1.0 if t >= 0.0 else -1.0
                m.n[0], m.n[1], m.n[2] = s * nx, s * ny, s * nz
    return kind, best


@reordered_inner
def box_edges(one, two, m, kind, sep):
    """Write the points in which two edges that cut each other are nearest."""
    i, j = (kind - 6) // 3, (kind - 6) % 3
    R, S, n = one.R, two.R, m.n
    ex, ey, ez, fx, fy, fz = R[0, i], R[1, i], R[2, i], S[0, j], S[1, j], S[2, j]
    ax = ay = az = 0.0
    bx, by, bz = two.p[0] - one.p[0], two.p[1] - one.p[1], two.p[2] - one.p[2]
    for k in range(3):
        if k != i:
            s = one.size[k] if R[0, k] * n[0] + R[1, k] * n[1] + R[2, k] * n[2] > 0.0 else -one.size[k]
            ax, ay, az = ax + s * R[0, k], ay + s * R[1, k], az + s * R[2, k]
        if k != j:
            s = -two.size[k] if S[0, k] * n[0] + S[1, k] * n[1] + S[2, k] * n[2] > 0.0 else two.size[k]
            bx, by, bz = bx + s * S[0, k], by + s * S[1, k], bz + s * S[2, k]
    wx, wy, wz = bx - ax, by - ay, bz - az
    c = ex * fx + ey * fy + ez * fz
    e, f = ex * wx + ey * wy + ez * wz, fx * wx + fy * wy + fz * wz
    det = 1.0 - c * c
    u, v = (e - c * f) / det, (c * e - f) / det
    answer(m, ax + u * ex, ay + u * ey, az + u * ez, bx + v * fx, by + v * fy, bz + v * fz, n[0], n[1], n[2], sep)
