# pyright: reportCallIssue=false, reportArgumentType=false
"""Algebra of the second-order cone Q = {x_0 >= |(x_1, x_2)|}, one cone per contact, in compiled code.

Symbols: J = diag(1, -1, -1); o the Jordan product, x o z = (x^T z, x_0 z_1 + z_0 x_1, ...); V the scaling of Nesterov
and Todd, V x = V^-1 z = lam. With w the scaling point, v = (w + e) / sqrt(2 w_0 + 2) and p, q = J v, J w:

    V^-1 = (2 p p^T - J) / eta,   V^-2 = (2 q q^T - J) / eta^2

A contact with fewer rows has zeros in their place: the faces x_2 = 0 and x_1 = x_2 = 0 of Q are the smaller cones.

Functions take whole arrays and the number of a contact: a view of its part costs more than the arithmetic.

Source: L. Vandenberghe, "The CVXOPT linear and quadratic cone program solvers" (2010), sec. 4, 5.
"""

from __future__ import annotations

import numpy as np

from dalembert.kernel.loops import loop

compiled = loop(nogil=True, error_model="numpy", fastmath={"contract", "reassoc"})

FAR = 1e3
"""Longest step that is looked for."""


@compiled
def determinant(x, i):
    """Return x^T J x = (x_0 - |x_1|)(x_0 + |x_1|) of contact i: near the boundary squares would cancel."""
    reach = np.sqrt(x[i, 1] * x[i, 1] + x[i, 2] * x[i, 2])
    return (x[i, 0] - reach) * (x[i, 0] + reach)


@compiled
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


@compiled
def _outer(a, b, c, factor, size, i, out):
    """Write factor (a, b, c)(a, b, c)^T - size J."""
    out[i, 0, 0], out[i, 1, 1], out[i, 2, 2] = factor * a * a - size, factor * b * b + size, factor * c * c + size
    out[i, 0, 1] = out[i, 1, 0] = factor * a * b
    out[i, 0, 2] = out[i, 2, 0] = factor * a * c
    out[i, 1, 2] = out[i, 2, 1] = factor * b * c


@compiled
def image(B, x, i, out):
    """Write B x of contact i; x and out may not be the same."""
    a, b, c = x[i, 0], x[i, 1], x[i, 2]
    out[i, 0] = B[i, 0, 0] * a + B[i, 0, 1] * b + B[i, 0, 2] * c
    out[i, 1] = B[i, 1, 0] * a + B[i, 1, 1] * b + B[i, 1, 2] * c
    out[i, 2] = B[i, 2, 0] * a + B[i, 2, 1] * b + B[i, 2, 2] * c


@compiled
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


@compiled
def corrected(lam, dx, dz, i, centre, c):
    """Write the quotient by lam, in the Jordan product, of centre e - lam o lam - dx o dz, of contact i."""
    l0, l1, l2, x0, x1, x2 = lam[i, 0], lam[i, 1], lam[i, 2], dx[i, 0], dx[i, 1], dx[i, 2]
    z0, z1, z2 = dz[i, 0], dz[i, 1], dz[i, 2]
    c0 = centre - (l0 * l0 + l1 * l1 + l2 * l2) - (x0 * z0 + x1 * z1 + x2 * z2)
    c1 = -2.0 * l0 * l1 - x0 * z1 - z0 * x1
    c2 = -2.0 * l0 * l2 - x0 * z2 - z0 * x2
    first, part = (l0 * c0 - l1 * c1 - l2 * c2) / determinant(lam, i), 1.0 / l0
    c[i, 0], c[i, 1], c[i, 2] = first, (c1 - first * l1) * part, (c2 - first * l2) * part
