# pyright: reportCallIssue=false, reportArgumentType=false
"""Algebra of the second-order cone Q = {x_0 >= |(x_1, x_2)|}, one cone per contact, in compiled code.

Symbols: J = diag(1, -1, -1); o the Jordan product, x o z = (x^T z, x_0 z_1 + z_0 x_1, ...); V the scaling of Nesterov
and Todd, V x = V^-1 z = lam. With w the scaling point, v = (w + e) / sqrt(2 w_0 + 2) and p, q = J v, J w:

    V^-1 = (2 p p^T - J) / eta,   V^-2 = (2 q q^T - J) / eta^2

A contact with fewer rows has zeros in their place: the faces x_2 = 0 and x_1 = x_2 = 0 of Q are the smaller cones.

Source: L. Vandenberghe, "The CVXOPT linear and quadratic cone program solvers" (2010), sec. 4, 5.
"""

from __future__ import annotations

import numba
import numpy as np

compiled = numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "reassoc"})

FAR = 1e3
"""Longest step that is looked for."""


@compiled
def determinant(x):
    """Return x^T J x = (x_0 - |x_1|)(x_0 + |x_1|): near the boundary squares would cancel."""
    reach = np.sqrt(x[1] * x[1] + x[2] * x[2])
    return (x[0] - reach) * (x[0] + reach)


@compiled
def scaling(x, z, inverse, square):
    """Write V^-1 and V^-2, (3, 3)."""
    xx, zz = np.sqrt(determinant(x)), np.sqrt(determinant(z))
    p, q = 1.0 / xx, 1.0 / zz
    half = 0.5 / np.sqrt(0.5 + 0.5 * (x[0] * z[0] + x[1] * z[1] + x[2] * z[2]) * (p * q))
    w0 = (z[0] * q + x[0] * p) * half
    w1, w2 = (x[1] * p - z[1] * q) * half, (x[2] * p - z[2] * q) * half
    mean, size = 1.0 / (w0 + 1.0), xx * q
    _outer(w0, w1, w2, 2.0 * size, size, square)
    root = np.sqrt(size)
    _outer(w0 + 1.0, w1, w2, mean * root, root, inverse)


@compiled
def _outer(a, b, c, factor, size, out):
    """Write factor (a, b, c)(a, b, c)^T - size J."""
    out[0, 0], out[1, 1], out[2, 2] = factor * a * a - size, factor * b * b + size, factor * c * c + size
    out[0, 1] = out[1, 0] = factor * a * b
    out[0, 2] = out[2, 0] = factor * a * c
    out[1, 2] = out[2, 1] = factor * b * c


@compiled
def image(B, x, out):
    """Write B x of one contact; x and out may not be the same."""
    out[0] = B[0, 0] * x[0] + B[0, 1] * x[1] + B[0, 2] * x[2]
    out[1] = B[1, 0] * x[0] + B[1, 1] * x[1] + B[1, 2] * x[2]
    out[2] = B[2, 0] * x[0] + B[2, 1] * x[1] + B[2, 2] * x[2]


@compiled
def product(A, B, out):
    """Write A B of one contact."""
    for i in range(3):
        for j in range(3):
            out[i, j] = A[i, 0] * B[0, j] + A[i, 1] * B[1, j] + A[i, 2] * B[2, j]


@compiled
def reach(x, dx):
    """Return the longest step, at most `FAR`, that keeps all x + step dx in the cones."""
    longest = FAR
    for i in range(x.shape[0]):
        p, d = x[i], dx[i]
        if d[1] == 0.0 and d[2] == 0.0 and p[1] == 0.0 and p[2] == 0.0:
            if d[0] < 0.0:
                longest = min(longest, -p[0] / d[0])
            continue
        q, h = d[0] * d[0] - d[1] * d[1] - d[2] * d[2], p[0] * d[0] - p[1] * d[1] - p[2] * d[2]
        c = determinant(p)
        under = h * h - q * c
        if under >= 0.0 and (q < 0.0 or h < 0.0):
            longest = min(longest, c / (np.sqrt(under) - h))
    return longest


@compiled
def corrected(lam, dx, dz, centre, c):
    """Write the quotient by lam, in the Jordan product, of centre e - lam o lam - dx o dz, of one contact."""
    c0 = centre - (lam[0] * lam[0] + lam[1] * lam[1] + lam[2] * lam[2])
    c0 -= dx[0] * dz[0] + dx[1] * dz[1] + dx[2] * dz[2]
    c1 = -2.0 * lam[0] * lam[1] - dx[0] * dz[1] - dz[0] * dx[1]
    c2 = -2.0 * lam[0] * lam[2] - dx[0] * dz[2] - dz[0] * dx[2]
    c[0] = (lam[0] * c0 - lam[1] * c1 - lam[2] * c2) / determinant(lam)
    c[1], c[2] = (c1 - c[0] * lam[1]) / lam[0], (c2 - c[0] * lam[2]) / lam[0]
