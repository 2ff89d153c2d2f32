# pyright: reportCallIssue=false, reportArgumentType=false
"""Interior points on the cones of friction, polished by Newton's method."""

from __future__ import annotations

import numpy as np

from dalembert.friction.cones.second_order_cones import (
    add_forces,
    assemble,
    corrected,
    factor,
    image,
    reach,
    rows_times,
    scaling,
    substitute,
)
from dalembert.friction.cones.sweeps import TINY, derivative, local_map, part_explained
from dalembert.friction.contact_problem import UNILATERAL
from dalembert.kernel.loops import reordered

# ----------------------------------------------------------------------------------------------------------------------
# Many redundant contacts, in compiled code: primal-dual interior points in the space of accelerations.
#
# Symbols, per contact: x = (mu r_N, r_T) forces and z = (u_N / mu, u_T), both in the second-order cone Q; R rows in
# these units, divided by the root of the mass; y = R^T x acceleration times that root; h free contact acceleration;
# shift = |u_T| on the normal (De Saxce), 0 for the associated problem, tilt its derivative; V the scaling of Nesterov
# and Todd.
#
#     u = R y + h,   u + shift = z,   y = R^T x,   x in Q,   z in Q,   x o z = (centre) e        o: the Jordan product
#     (I + R^T V^-2 (I + tilt) R) dy = R^T (V^-1 c - V^-2 missed) - (y - R^T x),   missed = u + shift - z
#     dz = missed + (I + tilt) R dy,   dx = V^-1 (c - V^-1 dz),   c by Mehrotra's predictor and corrector
#
# The matrix is definite however redundant the contacts are, and of the size of the mass matrix: half of the contact
# rows in a stack of boxes, and banded. |u_T| is convex: after a step z_N is raised by what the linear prediction
# misses, which keeps it in the cone and the first equation exact. For Coulomb's law nothing is proved: where steps no
# longer help, the best point met is returned, and judged elsewhere by De Saxce's form. The plain twin is
# `tests/reference/interior.py`.
#
# Sources: S. Mehrotra, SIAM J. Optim. 2 (1992) 575-601; Yu. E. Nesterov, M. J. Todd, SIAM J. Optim. 8 (1998) 324-364.
# Cost a step, w the width of a span: 3 w^2 + 30 w + 150 multiplications a contact, w^2 a coordinate.


STALLED = 6
"""Steps in a row that do not halve the gap, after which the method stops."""


@reordered
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


@reordered
def largest(x):
    """Return the largest |x|, (k, 3)."""
    most = 0.0
    for i in range(x.shape[0]):
        most = max(most, abs(x[i, 0]), abs(x[i, 1]), abs(x[i, 2]))
    return most


@reordered
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


@reordered
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


@reordered
def scaled(x, z, tilt, V, D, C, lam, c):
    """Write V^-1, D = V^-2, C = V^-2 (I + tilt), lam = V^-1 z and c = -lam of all contacts."""
    for i in range(x.shape[0]):
        scaling(x, z, i, V, D)
        image(V, z, i, lam)
        for j in range(3):
            c[i, j] = -lam[i, j]
            C[i, j, 0] = D[i, j, 0]
            C[i, j, 1], C[i, j, 2] = D[i, j, 1] + D[i, j, 0] * tilt[i, 1], D[i, j, 2] + D[i, j, 0] * tilt[i, 2]


@reordered
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


@reordered
def moved(step, x, z, y, dx, dz, dy):
    """Go a step."""
    for i in range(x.shape[0]):
        for j in range(3):
            x[i, j] += step * dx[i, j]
            z[i, j] += step * dz[i, j]
    for j in range(y.size):
        y[j] += step * dy[j]


@reordered
def raised(R, span, h, y, step, missed, u, z):
    """Raise z_N by what |u_T| has grown beyond its linear prediction."""
    rows_times(R, span, y, u)
    for i in range(h.shape[0]):
        p, q = u[i, 1] + h[i, 1], u[i, 2] + h[i, 2]
        z[i, 0] = max(z[i, 0], u[i, 0] + h[i, 0] + np.sqrt(p * p + q * q) - (1.0 - step) * missed[i, 0])


@reordered
def balance(R, span, x, y, apart):
    """Write R^T x - y; return its largest entry, over that of y."""
    for j in range(y.size):
        apart[j] = -y[j]
    add_forces(R, span, x, apart)
    off, size = 0.0, TINY
    for j in range(y.size):
        off, size = max(off, abs(apart[j])), max(size, abs(y[j]))
    return off / size


@reordered
def copied(x, out):
    """Write x to out, (k, 3)."""
    for i in range(x.shape[0]):
        for j in range(3):
            out[i, j] = x[i, j]


@reordered
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
        # residuals of the laws and of the balance; the best x so far is remembered
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
        # one elimination for two directions: straight to the answer, then corrected and centred
        scaled(x, z, tilt, V, D, C, lam, c)
        assemble(R, span, envelope, C, A, work)
        factor(A, envelope)
        direction(R, span, A, envelope, V, D, tilt, c, missed, apart, dy, dx, dz, sx, sz)
        # how far the first direction could go says how much to centre (Mehrotra)
        step = min(1.0, reach(x, dx), reach(z, dz))
        for i in range(k):
            corrected(lam, sx, sz, i, centre * (1.0 - step) ** 3, c)
        direction(R, span, A, envelope, V, D, tilt, c, missed, apart, dy, dx, dz, sx, sz)
        # a step that stays inside the cones; with Coulomb's law z_N follows |u_T|
        step = min(1.0, near * min(reach(x, dx), reach(z, dz)))
        moved(step, x, z, y, dx, dz, dy)
        if coulomb:
            raised(R, span, h, y, step, missed, u, z)
    return used, best


# ----------------------------------------------------------------------------------------------------------------------
# The last digits of many redundant contacts, in compiled code: Newton's method in the space of accelerations.
#
# Symbols as in `sweeps.py`: F(r) = r - map(r - rho u), u = J J^T r + g, P the derivative of the map; J (k, 3, w) rows
# divided by the root of the mass. Redundant contacts make Newton's equation singular; a proximal part EPSILON of P
# keeps the blocks E = I - (1 - EPSILON) P regular, and its error falls by that factor each step:
#
#     E dr + rho P J w = -F,   w = J^T dr      =>      (I + J^T C J) w = -J^T E^-1 F,   C = rho E^-1 P
#     dr = -E^-1 F - C J w
#
# The matrix has the size of the mass matrix and the envelope of `second_order_cones.py`: one elimination a step, as
# the interior points, against 2 p^3 / 3 in the space of reactions.


EPSILON = 1e-8
"""Proximal part: large against rounding, small against what a step may miss."""


@reordered
def has_interior(kind, sliding):
    """Say whether interior points know all these contacts: unilateral ones at rest."""
    for i in range(kind.size):
        if kind[i] != UNILATERAL or sliding[i]:
            return False
    return kind.size > 0


@reordered
def inverted(B, i, out):
    """Write the inverse of a 3 x 3 block to block i."""
    a, b, c, d, e, f, g, h, k = B[0, 0], B[0, 1], B[0, 2], B[1, 0], B[1, 1], B[1, 2], B[2, 0], B[2, 1], B[2, 2]
    p, q, s = e * k - f * h, f * g - d * k, d * h - e * g
    scale = 1.0 / (a * p + b * q + c * s)
    out[i, 0, 0], out[i, 0, 1], out[i, 0, 2] = scale * p, scale * (c * h - b * k), scale * (b * f - c * e)
    out[i, 1, 0], out[i, 1, 1], out[i, 1, 2] = scale * q, scale * (a * k - c * g), scale * (c * d - a * f)
    out[i, 2, 0], out[i, 2, 1], out[i, 2, 2] = scale * s, scale * (b * g - a * h), scale * (a * e - b * d)


@reordered
def distance(J, span, g, mu, law, kind, sliding, s, rho, r, root, u, y, out, F):
    """Write u, y and F; return the largest |F| over the largest of its terms (NaN counts as infinite)."""
    for j in range(root.size):
        root[j] = 0.0
    add_forces(J, span, r, root)
    rows_times(J, span, root, u)
    worst, size = 0.0, TINY
    for i in range(mu.size):
        for j in range(3):
            size = max(size, rho[i] * abs(u[i, j]), rho[i] * abs(g[i, j]), abs(r[i, j]))
            y[3 * i + j] = r[i, j] - rho[i] * (u[i, j] + g[i, j])
        local_map(y, 3 * i, 3 * i + 3, mu[i], law, kind[i], sliding[i], s, out)
        for j in range(3):
            F[i, j] = r[i, j] - out[3 * i + j]
            if not abs(F[i, j]) < np.inf:
                return np.inf
            worst = max(worst, abs(F[i, j]))
    size *= part_explained(g.ravel(), r.ravel(), 3 * np.arange(mu.size + 1), mu, kind, rho)
    return worst / size


@reordered
def blocks_of(mu, law, kind, sliding, s, rho, y, F, E, C, right):
    """Write E^-1, C and -E^-1 F of all contacts."""
    P, B = np.zeros((3, 3)), np.empty((3, 3))
    for i in range(mu.size):
        derivative(y, 3 * i, 3 * i + 3, mu[i], law, kind[i], sliding[i], s, P)
        for j in range(3):
            for m in range(3):
                B[j, m] = (1.0 if j == m else 0.0) - (1.0 - EPSILON) * P[j, m]
        inverted(B, i, E)
        for j in range(3):
            for m in range(3):
                C[i, j, m] = rho[i] * (E[i, j, 0] * P[0, m] + E[i, j, 1] * P[1, m] + E[i, j, 2] * P[2, m])
        image(E, F, i, right)
        for j in range(3):
            right[i, j] *= -1.0


@reordered
def polish(J, span, envelope, g, mu, law, kind, sliding, s, r, tolerance, steps):
    """Improve r (k, 3), overwritten by the best met; return its distance and the steps."""
    k, n = J.shape[0], envelope.shape[0]
    # rho = 1 / trace of a contact's own block of G
    rho = np.ones(k)
    for i in range(k):
        trace = 0.0
        for j in range(3):
            for m in range(J.shape[2]):
                trace += J[i, j, m] * J[i, j, m]
        if trace > 0.0:
            rho[i] = 1.0 / trace
    vectors, blocks = np.zeros((5, k, 3)), np.empty((2, k, 3, 3))
    F, u, right, step, kept, E, C = vectors[0], vectors[1], vectors[2], vectors[3], vectors[4], blocks[0], blocks[1]
    y, out, root, work, A = np.zeros(3 * k), np.zeros(3 * k), np.zeros(n), np.empty((3, J.shape[2])), np.empty((n, n))
    copied(r, kept)
    best = distance(J, span, g, mu, law, kind, sliding, s, rho, r, root, u, y, out, F)
    used = 0
    while used < steps and best > tolerance:
        used += 1
        # Newton's step in the space of accelerations: I + R^T C R, banded
        blocks_of(mu, law, kind, sliding, s, rho, y, F, E, C, right)
        assemble(J, span, envelope, C, A, work)
        factor(A, envelope)
        for j in range(n):
            root[j] = 0.0
        add_forces(J, span, right, root)
        substitute(A, envelope, root)
        rows_times(J, span, root, u)
        for i in range(k):
            image(C, u, i, step)
            for j in range(3):
                r[i, j] += right[i, j] - step[i, j]
        # the best point met is kept
        found = distance(J, span, g, mu, law, kind, sliding, s, rho, r, root, u, y, out, F)
        if not found < np.inf:
            break
        if found < best:
            best = found
            copied(r, kept)
    copied(kept, r)
    return best, used
