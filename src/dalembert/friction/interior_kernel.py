# pyright: reportCallIssue=false, reportArgumentType=false
"""Many redundant contacts, in compiled code: primal-dual interior points in the space of accelerations.

Symbols, per contact: x = (mu r_N, r_T) forces and z = (u_N / mu, u_T), both in the second-order cone Q; R rows in these
units, divided by the root of the mass; y = R^T x acceleration times that root; h free contact acceleration; shift =
|u_T| on the normal (De Saxce), 0 for the associated problem, tilt its derivative; V the scaling of Nesterov and Todd.

    u = R y + h,   u + shift = z,   y = R^T x,   x in Q,   z in Q,   x o z = (centre) e        o: the Jordan product
    (I + R^T V^-2 (I + tilt) R) dy = R^T (V^-1 c - V^-2 missed) - (y - R^T x),   missed = u + shift - z
    dz = missed + (I + tilt) R dy,   dx = V^-1 (c - V^-1 dz),   c by Mehrotra's predictor and corrector

The matrix is definite however redundant the contacts are, and of the size of the mass matrix: half of the contact rows
in a stack of boxes, and banded. |u_T| is convex: after a step z_N is raised by what the linear prediction misses,
which keeps it in the cone and the first equation exact. For Coulomb's law nothing is proved: where steps no longer
help, the best point met is returned, and judged elsewhere by De Saxce's form. The plain twin is `interior.py`.

Sources: S. Mehrotra, SIAM J. Optim. 2 (1992) 575-601; Yu. E. Nesterov, M. J. Todd, SIAM J. Optim. 8 (1998) 324-364.
Cost a step, w the width of a span: 3 w^2 + 30 w + 150 multiplications a contact, w^2 a coordinate.
"""

from __future__ import annotations

import numpy as np

from dalembert.friction.cone_algebra_kernel import corrected, image, reach, scaling
from dalembert.friction.span_kernel import add_forces, assemble, factor, rows_times, substitute
from dalembert.kernel.loops import loop

compiled = loop(nogil=True, error_model="numpy", fastmath={"contract", "reassoc"})

TINY = 1e-300
"""Keeps quotients of zero data finite."""

STALLED = 6
"""Steps in a row that do not halve the gap, after which the method stops."""


@compiled
def in_cone_units(J, g, mu):
    """Return R, h and the units, r = unit x, of contacts (k, 3); without friction the tangents are left out."""
    k, w = mu.size, J.shape[2]
    R, h, unit = np.empty((k, 3, w)), np.empty((k, 3)), np.empty((k, 3))
    for i in range(k):
        for j in range(3):
            to_units, back = 1.0, 1.0
            if mu[i] > 0.0 and j == 0:
                to_units, back = 1.0 / mu[i], 1.0 / mu[i]
            elif mu[i] <= 0.0 and j > 0:
                to_units, back = 0.0, 0.0
            unit[i, j], h[i, j] = back, to_units * g[i, j]
            for m in range(w):
                R[i, j, m] = to_units * J[i, j, m]
    return R, h, unit


@compiled
def largest(x):
    """Return the largest |x|, (k, 3)."""
    most = 0.0
    for i in range(x.shape[0]):
        most = max(most, abs(x[i, 0]), abs(x[i, 1]), abs(x[i, 2]))
    return most


@compiled
def first_point(R, h, force, acceleration):
    """Return x and z, (2, k, 3), on the axes of the cones: these factors times the sizes of the data."""
    size, total, point = largest(h) + TINY, TINY, np.zeros((2, h.shape[0], 3))
    for i in range(h.shape[0]):
        for j in range(3):
            for m in range(R.shape[2]):
                total += R[i, j, m] * R[i, j, m]
    for i in range(h.shape[0]):
        point[0, i, 0], point[1, i, 0] = force * h.size * size / total, acceleration * size
    return point


@compiled
def missing(h, coulomb, x, u, z, tilt, missed):
    """Turn u = R y into missed = u + h + shift - z; write tilt; return the largest missing part and x^T z."""
    wrong, total = 0.0, 0.0
    for i in range(h.shape[0]):
        a, b, c = u[i, 0] + h[i, 0], u[i, 1] + h[i, 1], u[i, 2] + h[i, 2]
        if coulomb:
            shift = np.sqrt(b * b + c * c) + TINY
            tilt[i, 1], tilt[i, 2] = b / shift, c / shift
            a += shift
        a, b, c = a - z[i, 0], b - z[i, 1], c - z[i, 2]
        missed[i, 0], missed[i, 1], missed[i, 2] = a, b, c
        wrong = max(wrong, abs(a), abs(b), abs(c))
        total += x[i, 0] * z[i, 0] + x[i, 1] * z[i, 1] + x[i, 2] * z[i, 2]
    return wrong, total


@compiled
def scaled(x, z, tilt, V, D, C, lam, c):
    """Write V^-1, D = V^-2, C = V^-2 (I + tilt), lam = V^-1 z and c = -lam of all contacts."""
    for i in range(x.shape[0]):
        scaling(x, z, i, V, D)
        image(V, z, i, lam)
        for j in range(3):
            c[i, j] = -lam[i, j]
            C[i, j, 0] = D[i, j, 0]
            C[i, j, 1], C[i, j, 2] = D[i, j, 1] + D[i, j, 0] * tilt[i, 1], D[i, j, 2] + D[i, j, 0] * tilt[i, 2]


@compiled
def direction(R, span, A, envelope, V, D, tilt, c, missed, apart, dy, dx, dz, sx, sz):
    """Write the step dy, dx, dz for a right side c, and the last two in scaled units: sz = V^-1 dz, sx = V dx."""
    k = c.shape[0]
    for i in range(k):
        image(V, c, i, dx)
        image(D, missed, i, dz)
        for j in range(3):
            dx[i, j] -= dz[i, j]
    for j in range(dy.size):
        dy[j] = apart[j]
    add_forces(R, span, dx, dy)
    substitute(A, envelope, dy)
    rows_times(R, span, dy, dz)
    for i in range(k):
        dz[i, 0] += missed[i, 0] + tilt[i, 1] * dz[i, 1] + tilt[i, 2] * dz[i, 2]
        dz[i, 1] += missed[i, 1]
        dz[i, 2] += missed[i, 2]
        image(V, dz, i, sz)
        for j in range(3):
            sx[i, j] = c[i, j] - sz[i, j]
        image(V, sx, i, dx)


@compiled
def moved(step, x, z, y, dx, dz, dy):
    """Go a step."""
    for i in range(x.shape[0]):
        for j in range(3):
            x[i, j] += step * dx[i, j]
            z[i, j] += step * dz[i, j]
    for j in range(y.size):
        y[j] += step * dy[j]


@compiled
def raised(R, span, h, y, step, missed, u, z):
    """Raise z_N by what |u_T| has grown beyond its linear prediction."""
    rows_times(R, span, y, u)
    for i in range(h.shape[0]):
        p, q = u[i, 1] + h[i, 1], u[i, 2] + h[i, 2]
        z[i, 0] = max(z[i, 0], u[i, 0] + h[i, 0] + np.sqrt(p * p + q * q) - (1.0 - step) * missed[i, 0])


@compiled
def balance(R, span, x, y, apart):
    """Write R^T x - y; return its largest entry, over that of y."""
    for j in range(y.size):
        apart[j] = -y[j]
    add_forces(R, span, x, apart)
    off, size = 0.0, TINY
    for j in range(y.size):
        off, size = max(off, abs(apart[j])), max(size, abs(y[j]))
    return off / size


@compiled
def copied(x, out):
    """Write x to out, (k, 3)."""
    for i in range(x.shape[0]):
        for j in range(3):
            out[i, j] = x[i, j]


@compiled
def interior(R, span, envelope, h, coulomb, near, point, kept, tolerance, steps):
    """Go on from point = (x, z), overwritten; write the best x met; return the steps taken and its gap, relative.

    Rows R (k, 3, w) and h (k, 3) in cone units; all contacts unilateral and at rest. A step goes `near` of the way to
    the boundary.
    """
    k, n, x, z = R.shape[0], envelope.shape[0], point[0], point[1]
    blocks, vectors, flat = np.empty((3, k, 3, 3)), np.zeros((9, k, 3)), np.zeros((3, n))
    V, D, C = blocks[0], blocks[1], blocks[2]
    u, tilt, missed, lam, c = vectors[0], vectors[1], vectors[2], vectors[3], vectors[4]
    dx, dz, sx, sz = vectors[5], vectors[6], vectors[7], vectors[8]
    A, work, size = np.empty((n, n)), np.empty((3, R.shape[2])), largest(h) + TINY
    y, dy, apart = flat[0], flat[1], flat[2]
    add_forces(R, span, x, y)
    used, best, stalled = 0, np.inf, 0
    while used < steps:
        rows_times(R, span, y, u)
        wrong, total = missing(h, coulomb, x, u, z, tilt, missed)
        centre = total / k
        if not 0.0 <= centre < np.inf:  # rounding has left the cones
            break
        gap = max(wrong / size, centre / (size * (largest(x) + TINY)), balance(R, span, x, y, apart))
        stalled = stalled + 1 if gap > 0.5 * best else 0
        if gap < best:
            best = gap
            copied(x, kept)
        if gap <= tolerance or stalled == STALLED:
            break
        used += 1
        scaled(x, z, tilt, V, D, C, lam, c)
        assemble(R, span, envelope, C, A, work)
        factor(A, envelope)
        direction(R, span, A, envelope, V, D, tilt, c, missed, apart, dy, dx, dz, sx, sz)
        step = min(1.0, reach(x, dx), reach(z, dz))
        for i in range(k):
            corrected(lam, sx, sz, i, centre * (1.0 - step) ** 3, c)
        direction(R, span, A, envelope, V, D, tilt, c, missed, apart, dy, dx, dz, sx, sz)
        step = min(1.0, near * min(reach(x, dx), reach(z, dz)))
        moved(step, x, z, y, dx, dz, dy)
        if coulomb:
            raised(R, span, h, y, step, missed, u, z)
    return used, best
