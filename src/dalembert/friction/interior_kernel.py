# pyright: reportCallIssue=false, reportArgumentType=false
"""Many redundant contacts, in compiled code: a primal-dual interior-point method on the cones of friction.

Symbols, per contact: x = (mu r_N, r_T) and z = (u_N / mu, u_T), both in the second-order cone Q; G, g in these units;
shift = |u_T| on the normal (De Saxce), 0 for the associated problem, tilt its derivative; J = diag(1, -1, -1).

    G x + g + shift = z,   x in Q,   z in Q,   x o z = (centre) e         o: the Jordan product
    ((I + tilt) G + V^2) dx = V c - (G x + g + shift - z),   dz = V (c - V dx),   lam = V x = V^-1 z

V = eta (2 v v^T - J) of Nesterov and Todd; c by Mehrotra's predictor and corrector. G + V^2 is definite however
redundant the contacts are, and as sparse as G. For Coulomb's law nothing is proved: where steps no longer help the
method stops with the best point met, and what it returns is judged elsewhere, by De Saxce's form.

Sources: S. Mehrotra, SIAM J. Optim. 2 (1992) 575-601; Yu. E. Nesterov, M. J. Todd, SIAM J. Optim. 8 (1998) 324-364;
L. Vandenberghe, "The CVXOPT linear and quadratic cone program solvers" (2010), sec. 4, 5. Cost: p b^2 a step, b rows of
envelope.
"""

from __future__ import annotations

import numba
import numpy as np

from dalembert.friction.envelope_kernel import block_envelope, factor, substitute, times

compiled = numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "reassoc"})

TINY = 1e-300
"""Keeps quotients of zero data finite."""

NEAR = 0.99
"""Part of the way to the boundary that a step may take."""

PROXIMAL = 1e-14
"""Part of the mean diagonal added to the matrix of a step (not to the equations): null(G) would divide by nothing."""

STALLED = 3
"""Steps in a row that do not halve the gap, after which the method stops."""


@compiled
def indefinite(x, y, a, b):
    """Return x^T J y of one contact."""
    total = x[a] * y[a]
    for j in range(a + 1, b):
        total -= x[j] * y[j]
    return total


@compiled
def determinant(x, a, b):
    """Return x^T J x of one contact, (x_0 - |x_1|)(x_0 + |x_1|): near the boundary squares would cancel."""
    reach = 0.0
    for j in range(a + 1, b):
        reach += x[j] * x[j]
    reach = np.sqrt(reach)
    return (x[a] - reach) * (x[a] + reach)


@compiled
def scaling(x, z, a, b, v):
    """Write v with V = eta (2 v v^T - J), V x = V^-1 z; return eta."""
    xx, zz = np.sqrt(determinant(x, a, b)), np.sqrt(determinant(z, a, b))
    dot = 0.0
    for j in range(a, b):
        dot += x[j] / xx * z[j] / zz
    gamma = np.sqrt(0.5 * (1.0 + dot))
    v[a] = (z[a] / zz + x[a] / xx) / (2.0 * gamma)
    for j in range(a + 1, b):
        v[j] = (z[j] / zz - x[j] / xx) / (2.0 * gamma)
    root = np.sqrt(2.0 * (v[a] + 1.0))
    v[a] = (v[a] + 1.0) / root
    for j in range(a + 1, b):
        v[j] /= root
    return np.sqrt(zz / xx)


@compiled
def scaled(v, eta, a, b, x, out, inverse):
    """Write V x, or V^-1 x, of one contact."""
    sign, size = (-1.0, 1.0 / eta) if inverse else (1.0, eta)
    dot = v[a] * x[a]
    for j in range(a + 1, b):
        dot += sign * v[j] * x[j]
    out[a] = size * (2.0 * v[a] * dot - x[a])
    for j in range(a + 1, b):
        out[j] = size * (2.0 * sign * v[j] * dot + x[j])


@compiled
def add_square(v, eta, a, b, L):
    """Add V^2 to the block of one contact."""
    column, image = np.zeros(3), np.zeros(3)
    for j in range(b - a):
        column[:] = 0.0
        column[j] = 1.0
        for _ in range(2):
            dot = 0.0
            for k in range(b - a):
                dot += v[a + k] * column[k]
            for k in range(b - a):
                image[k] = eta * (2.0 * v[a + k] * dot - (column[k] if k == 0 else -column[k]))
            column[:] = image
        for k in range(b - a):
            L[a + k, a + j] += column[k]


@compiled
def reach(x, dx, first):
    """Return the longest step, at most 1e3, that keeps x + step dx in the cones."""
    longest = 1e3
    for i in range(first.size - 1):
        a, b = first[i], first[i + 1]
        q, h, c = indefinite(dx, dx, a, b), indefinite(x, dx, a, b), determinant(x, a, b)
        if b - a == 1:
            if dx[a] < 0.0:
                longest = min(longest, -x[a] / dx[a])
            continue
        under = h * h - q * c
        if under >= 0.0 and (q < 0.0 or h < 0.0):
            longest = min(longest, c / (np.sqrt(under) - h))
    return longest


@compiled
def divide(lam, c, a, b):
    """Divide c by lam, the inverse of the Jordan product, of one contact."""
    det, dot = determinant(lam, a, b), lam[a] * c[a]
    for j in range(a + 1, b):
        dot -= lam[j] * c[j]
    c[a] = dot / det
    for j in range(a + 1, b):
        c[j] = (c[j] - c[a] * lam[j]) / lam[a]


@compiled
def complementarity(lam, dx, dz, centre, first, c):
    """Write the quotient by lam of (centre e - lam o lam - dx o dz), dx and dz in scaled units."""
    for i in range(first.size - 1):
        a, b = first[i], first[i + 1]
        c[a] = centre
        for j in range(a, b):
            c[a] -= lam[j] * lam[j] + dx[j] * dz[j]
        for j in range(a + 1, b):
            c[j] = -2.0 * lam[a] * lam[j] - dx[a] * dz[j] - dz[a] * dx[j]
        divide(lam, c, a, b)


@compiled
def direction(L, U, low, first, v, eta, c, missed, dx, dz, sx, sz):
    """Write the step dx, dz for a right side c, and both in scaled units, sx = V dx and sz = V^-1 dz."""
    k = first.size - 1
    for i in range(k):
        scaled(v, eta[i], first[i], first[i + 1], c, dx, False)
    dx -= missed
    substitute(L, U, low, dx)
    for i in range(k):
        a, b = first[i], first[i + 1]
        scaled(v, eta[i], a, b, dx, sx, False)
        for j in range(a, b):
            sz[j] = c[j] - sx[j]
        scaled(v, eta[i], a, b, sz, dz, False)


@compiled
def in_cone_units(G, g, first, mu, low, high):
    """Return G and g for x and z, and the units: r = unit x."""
    p = g.size
    S, unit = np.zeros((p, p)), np.ones(p)
    for i in range(mu.size):
        if first[i + 1] - first[i] > 1:
            unit[first[i]] = 1.0 / mu[i]
    for i in range(p):
        for j in range(low[i], high[i] + 1):
            S[i, j] = unit[i] * unit[j] * G[i, j]
    return S, g * unit, unit


@compiled
def missing(S, h, low, high, first, coulomb, x, z, missed, tilt):
    """Write G x + g + shift - z, and tilt = d shift / d u_T; return the largest missing part and x^T z."""
    wrong, gap = 0.0, 0.0
    times(S, low, high, x, missed)
    for i in range(first.size - 1):
        a, b = first[i], first[i + 1]
        shift = 0.0
        for j in range(a, b):
            missed[j] += h[j]
            gap += x[j] * z[j]
            shift += missed[j] * missed[j] if j > a else 0.0
        if coulomb:
            shift = np.sqrt(shift) + TINY
            missed[a] += shift
            for j in range(a + 1, b):
                tilt[j] = missed[j] / shift
        for j in range(a, b):
            missed[j] -= z[j]
            wrong = max(wrong, abs(missed[j]))
    return wrong, gap


@compiled
def assemble(S, low, high, first, coulomb, tilt, x, z, A, v, eta, lam):
    """Write A = (I + tilt) G + V^2, the scaling v, eta and lam = V x."""
    shift = PROXIMAL * np.trace(S) / x.size
    for i in range(x.size):
        A[i, low[i] : high[i] + 1] = S[i, low[i] : high[i] + 1]
        A[i, i] += shift
    for i in range(eta.size):
        a, b = first[i], first[i + 1]
        if coulomb:
            for j in range(a + 1, b):
                A[a, low[j] : high[j] + 1] += tilt[j] * S[j, low[j] : high[j] + 1]
        eta[i] = scaling(x, z, a, b, v)
        scaled(v, eta[i], a, b, x, lam, False)
        add_square(v, eta[i], a, b, A)


@compiled
def interior(G, g, first, mu, coulomb, r, tolerance, steps):
    """Write reactions r; return the steps taken and the best gap, relative. All contacts unilateral, mu > 0."""
    p, k = g.size, first.size - 1
    low, high = block_envelope(G, first)
    S, h, unit = in_cone_units(G, g, first, mu, low, high)
    A, L, U = np.zeros((p, p)), np.zeros((p, p)), np.zeros((p, p))
    size, x, z, eta, tilt = np.abs(h).max() + TINY, np.zeros(p), np.zeros(p), np.empty(k), np.zeros(p)
    x[first[:-1]], z[first[:-1]] = size * p / (np.trace(S) + TINY), size
    v, lam, c, missed = np.empty(p), np.empty(p), np.empty(p), np.empty(p)
    dx, dz, sx, sz = np.empty(p), np.empty(p), np.empty(p), np.empty(p)
    used, best, stalled = 0, np.inf, 0
    while used < steps:
        used += 1
        wrong, total = missing(S, h, low, high, first, coulomb, x, z, missed, tilt)
        centre = total / k
        if not 0.0 <= centre < np.inf:  # rounding has left the cones
            break
        gap = max(wrong / size, centre / (size * (np.abs(x).max() + TINY)))
        stalled = stalled + 1 if gap > 0.5 * best else 0
        if gap < best:
            best, r[:] = gap, x * unit
        if gap <= tolerance or stalled == STALLED:
            break
        assemble(S, low, high, first, coulomb, tilt, x, z, A, v, eta, lam)
        factor(A, L, U, low)
        sx[:], sz[:] = 0.0, 0.0
        complementarity(lam, sx, sz, 0.0, first, c)
        direction(L, U, low, first, v, eta, c, missed, dx, dz, sx, sz)
        step = min(1.0, reach(x, dx, first), reach(z, dz, first))
        complementarity(lam, sx, sz, centre * (1.0 - step) ** 3, first, c)
        direction(L, U, low, first, v, eta, c, missed, dx, dz, sx, sz)
        step = min(1.0, NEAR * min(reach(x, dx, first), reach(z, dz, first)))
        x += step * dx
        z += step * dz
    return used, best
