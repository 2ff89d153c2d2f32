# pyright: reportCallIssue=false, reportArgumentType=false
"""Linear algebra of cones and of contact rows with narrow spans, in compiled code."""

from __future__ import annotations

import numpy as np

from dalembert.kernel.loops import reordered

# ----------------------------------------------------------------------------------------------------------------------
# Algebra of the second-order cone Q = {x_0 >= |(x_1, x_2)|}, one cone per contact, in compiled code.
#
# Symbols: J = diag(1, -1, -1); o the Jordan product, x o z = (x^T z, x_0 z_1 + z_0 x_1, ...); V the scaling of Nesterov
# and Todd, V x = V^-1 z = lam. With w the scaling point, v = (w + e) / sqrt(2 w_0 + 2) and p, q = J v, J w:
#
#     V^-1 = (2 p p^T - J) / eta,   V^-2 = (2 q q^T - J) / eta^2
#
# A contact with fewer rows has zeros in their place: the faces x_2 = 0 and x_1 = x_2 = 0 of Q are the smaller cones.
#
# Functions take whole arrays and the number of a contact: a view of its part costs more than the arithmetic.
#
# Source: L. Vandenberghe, "The CVXOPT linear and quadratic cone program solvers" (2010), sec. 4, 5.


FAR = 1e3
"""Longest step that is looked for."""


@reordered
def determinant(x, i):
    """Return x^T J x = (x_0 - |x_1|)(x_0 + |x_1|) of contact i: near the boundary squares would cancel."""
    reach = np.sqrt(x[i, 1] * x[i, 1] + x[i, 2] * x[i, 2])
    return (x[i, 0] - reach) * (x[i, 0] + reach)


@reordered
def scaling(x, z, i, inverse, square):
    """Write V^-1 and V^-2 of contact i, (k, 3, 3)."""
    xx, zz = np.sqrt(determinant(x, i)), np.sqrt(determinant(z, i))
    p, q = 1.0 / xx, 1.0 / zz
    half = 0.5 / np.sqrt(0.5 + 0.5 * (x[i, 0] * z[i, 0] + x[i, 1] * z[i, 1] + x[i, 2] * z[i, 2]) * (p * q))
    w0 = (z[i, 0] * q + x[i, 0] * p) * half
    w1, w2 = (x[i, 1] * p - z[i, 1] * q) * half, (x[i, 2] * p - z[i, 2] * q) * half
    mean, size = 1.0 / (w0 + 1.0), xx * q
    _outer(w0, w1, w2, 2.0 * size, size, i, square)
    root = np.sqrt(size)
    _outer(w0 + 1.0, w1, w2, mean * root, root, i, inverse)


@reordered
def _outer(a, b, c, factor, size, i, out):
    """Write factor (a, b, c)(a, b, c)^T - size J."""
    out[i, 0, 0], out[i, 1, 1], out[i, 2, 2] = factor * a * a - size, factor * b * b + size, factor * c * c + size
    out[i, 0, 1] = out[i, 1, 0] = factor * a * b
    out[i, 0, 2] = out[i, 2, 0] = factor * a * c
    out[i, 1, 2] = out[i, 2, 1] = factor * b * c


@reordered
def image(B, x, i, out):
    """Write B x of contact i; x and out may not be the same."""
    a, b, c = x[i, 0], x[i, 1], x[i, 2]
    out[i, 0] = B[i, 0, 0] * a + B[i, 0, 1] * b + B[i, 0, 2] * c
    out[i, 1] = B[i, 1, 0] * a + B[i, 1, 1] * b + B[i, 1, 2] * c
    out[i, 2] = B[i, 2, 0] * a + B[i, 2, 1] * b + B[i, 2, 2] * c


@reordered
def reach(x, dx):
    """Return the longest step, at most `FAR`, that keeps all x + step dx in the cones."""
    longest = FAR
    for i in range(x.shape[0]):
        p0, p1, p2, d0, d1, d2 = x[i, 0], x[i, 1], x[i, 2], dx[i, 0], dx[i, 1], dx[i, 2]
        if d1 == 0.0 and d2 == 0.0 and p1 == 0.0 and p2 == 0.0:
            if d0 < 0.0:
                longest = min(longest, -p0 / d0)
            continue
        q, h = d0 * d0 - d1 * d1 - d2 * d2, p0 * d0 - p1 * d1 - p2 * d2
        c = determinant(x, i)
        under = h * h - q * c
        if under >= 0.0 and (q < 0.0 or h < 0.0):
            longest = min(longest, c / (np.sqrt(under) - h))
    return longest


@reordered
def corrected(lam, dx, dz, i, centre, c):
    """Write the quotient by lam, in the Jordan product, of centre e - lam o lam - dx o dz, of contact i."""
    l0, l1, l2, x0, x1, x2 = lam[i, 0], lam[i, 1], lam[i, 2], dx[i, 0], dx[i, 1], dx[i, 2]
    z0, z1, z2 = dz[i, 0], dz[i, 1], dz[i, 2]
    c0 = centre - (l0 * l0 + l1 * l1 + l2 * l2) - (x0 * z0 + x1 * z1 + x2 * z2)
    c1 = -2.0 * l0 * l1 - x0 * z1 - z0 * x1
    c2 = -2.0 * l0 * l2 - x0 * z2 - z0 * x2
    first, part = (l0 * c0 - l1 * c1 - l2 * c2) / determinant(lam, i), 1.0 / l0
    c[i, 0], c[i, 1], c[i, 2] = first, (c1 - first * l1) * part, (c2 - first * l2) * part


# ----------------------------------------------------------------------------------------------------------------------
# Contact rows that touch few neighbouring coordinates each, in compiled code: products, I + R^T C R, its elimination.
#
# Symbols: R (k, 3, w) rows of k contacts, of which only the coordinates at_i .. at_i + w_i - 1 are kept (the span, w_i
# a multiple of 4 up to w); C (k, 3, 3) a block per contact; A = I + R^T C R, zero outside the columns low_j .. high_j -
# 1 of row j (the envelope).
#
# L U without pivoting fills nothing outside the envelope: w^2 operations a coordinate to eliminate and 3 w^2 a contact
# to assemble, w the width of a span (12 for two bodies), against n^3 and 3 k n^2 for dense ones. Source: A. George, J.
# W. Liu, "Computer Solution of Large Sparse Positive Definite Systems" (1981), ch. 4.


LANES = 4
"""Spans are filled up to a multiple of this: inner loops then have no remainder."""


@reordered
def gathered(J, first):
    """Return R (k, 3, w), the starts and widths of the spans (k, 2), the envelope (n, 2); J (p, n) are dense rows.

    A contact with fewer than three rows gets zeros in their place, and n is at least w.
    """
    k, n = first.size - 1, J.shape[1]
    span, width = np.empty((k, 2), dtype=np.int64), LANES
    # the columns that each contact touches, in whole registers
    for i in range(k):
        lo, hi = n, 0
        for a in range(first[i], first[i + 1]):
            row, j = J[a], 0
            while j < lo and row[j] == 0.0:
                j += 1
            lo, j = min(lo, j), n
            while j > hi and row[j - 1] == 0.0:
                j -= 1
            hi = max(hi, j)
        span[i, 0], span[i, 1] = lo, (max(hi - lo, 1) + LANES - 1) // LANES * LANES
        width = max(width, span[i, 1])
    # rows without the zeros around them, and for each column the first and last that it is coupled with
    size = max(n, width)
    R, envelope = np.zeros((k, 3, width)), np.empty((size, 2), dtype=np.int64)
    for j in range(size):
        envelope[j, 0], envelope[j, 1] = j, j + 1
    for i in range(k):
        span[i, 0] = min(span[i, 0], size - span[i, 1])
        start, stop = span[i, 0], span[i, 0] + span[i, 1]
        for a in range(first[i], first[i + 1]):
            for j in range(start, min(n, stop)):
                R[i, a - first[i], j - start] = J[a, j]
        for j in range(start, stop):
            envelope[j, 0], envelope[j, 1] = min(envelope[j, 0], start), max(envelope[j, 1], stop)
    for j in range(1, size):
        envelope[j, 1] = max(envelope[j, 1], envelope[j - 1, 1])
    return R, span, envelope


@reordered
def rows_times(R, span, y, u):
    """Write u = R y, (k, 3)."""
    for i in range(R.shape[0]):
        first, second, third, at = 0.0, 0.0, 0.0, span[i, 0]
        part = y[at : at + span[i, 1]]
        for j in range(part.size):
            first += R[i, 0, j] * part[j]
            second += R[i, 1, j] * part[j]
            third += R[i, 2, j] * part[j]
        u[i, 0], u[i, 1], u[i, 2] = first, second, third


@reordered
def add_forces(R, span, x, y):
    """Add R^T x to y, (n,)."""
    for i in range(R.shape[0]):
        p, q, s, at = x[i, 0], x[i, 1], x[i, 2], span[i, 0]
        part = y[at : at + span[i, 1]]
        for j in range(part.size):
            part[j] += p * R[i, 0, j] + q * R[i, 1, j] + s * R[i, 2, j]


@reordered
def assemble(R, span, envelope, C, A, work):
    """Write A = I + R^T C R within the envelope; `work` is (3, w)."""
    for j in range(A.shape[0]):
        A[j, envelope[j, 0] : envelope[j, 1]] = 0.0
        A[j, j] = 1.0
    for i in range(R.shape[0]):
        at, width = span[i, 0], span[i, 1]
        for m in range(3):
            p, q, s = C[i, m, 0], C[i, m, 1], C[i, m, 2]
            for j in range(width):
                work[m, j] = p * R[i, 0, j] + q * R[i, 1, j] + s * R[i, 2, j]
        for m in range(width):
            p, q, s, row = R[i, 0, m], R[i, 1, m], R[i, 2, m], at + m
            for j in range(0, width, LANES):  # four sums before four stores
                a = A[row, at + j] + p * work[0, j] + q * work[1, j] + s * work[2, j]
                b = A[row, at + j + 1] + p * work[0, j + 1] + q * work[1, j + 1] + s * work[2, j + 1]
                c = A[row, at + j + 2] + p * work[0, j + 2] + q * work[1, j + 2] + s * work[2, j + 2]
                d = A[row, at + j + 3] + p * work[0, j + 3] + q * work[1, j + 3] + s * work[2, j + 3]
                A[row, at + j], A[row, at + j + 1], A[row, at + j + 2], A[row, at + j + 3] = a, b, c, d


@reordered
def factor(A, envelope):
    """Overwrite A by L (below, unit diagonal left out) and U, row by row; no pivoting."""
    for i in range(A.shape[0]):
        row = A[i]
        for m in range(envelope[i, 0], i):
            above = A[m]
            part = row[m] / above[m]
            row[m] = part
            for j in range(m + 1, envelope[m, 1]):
                row[j] -= part * above[j]


@reordered
def substitute(A, envelope, b):
    """Overwrite b by the solution of L U y = b."""
    n = b.size
    for i in range(n):
        row, part, total = A[i, envelope[i, 0] : i], b[envelope[i, 0] : i], b[i]
        for j in range(part.size):
            total -= row[j] * part[j]
        b[i] = total
    for i in range(n - 1, -1, -1):
        row, part, total = A[i, i + 1 : envelope[i, 1]], b[i + 1 : envelope[i, 1]], b[i]
        for j in range(part.size):
            total -= row[j] * part[j]
        b[i] = total / A[i, i]
