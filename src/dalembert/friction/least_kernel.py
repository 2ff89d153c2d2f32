# pyright: reportCallIssue=false, reportArgumentType=false
"""The least-norm forces among the optimal ones, in compiled code.

Optimal forces differ by null(B), B = Z^T W (Z the admissible motions; B = W without constraints), within the box;
contacts about to slip are fixed at their limits. With R an orthonormal basis of the row space of B over the others, the
least-norm member is the projection of 0 onto a polytope,

    minimise |x|^2 / 2  subject to  R^T x = R^T x0,  lower <= x <= upper        x = clip(R y)

and y is the maximiser of a concave, piecewise quadratic function: a Newton method with a line search ends after
finitely many steps. Masses do not enter.
"""

from __future__ import annotations

import numpy as np

from dalembert.friction.box_kernel import WRONG, accelerations
from dalembert.kernel.loops import loop

compiled = loop(nogil=True, error_model="numpy")

STEPS = 60
"""Newton steps; a handful is usual."""

ROUNDING = 2e-16
"""Part of the forces below which their sums cannot be told from exact ones."""

DEPENDENT = 1e-13
"""A singular value of unit columns below this part of the largest is rounding."""


@compiled
def row_space(B, index):
    """Return an orthonormal basis of the row space of B[:, index], (k, r), its rank decided on unit columns."""
    p, k = B.shape[0], index.size
    if p == 0:
        return np.empty((k, 0))
    F, d = np.empty((p, k)), np.ones(k)
    for j in range(k):
        size = 0.0
        for i in range(p):
            F[i, j] = B[i, index[j]]
            size = max(size, abs(F[i, j]))
        if size > 0.0:
            d[j] = 1.0 / size
    for j in range(k):
        F[:, j] *= d[j]
    _, values, Vt = np.linalg.svd(F, full_matrices=False)
    rank = 0
    while rank < values.size and values[rank] > DEPENDENT * values[0]:
        rank += 1
    basis = np.empty((k, rank))
    for j in range(rank):
        basis[:, j] = Vt[j] / d
    if rank == 0 or rank == k:
        return basis
    q, _ = np.linalg.qr(basis)
    return np.ascontiguousarray(q)


@compiled
def dual(R, y, b, lower, upper, x):
    """Write x = clip(R y); return the dual function b^T y - sum of max over the box, to be maximised."""
    total = 0.0
    for j in range(y.size):
        total += b[j] * y[j]
    for i in range(x.size):
        z = 0.0
        for j in range(y.size):
            z += R[i, j] * y[j]
        x[i] = min(max(z, lower[i]), upper[i])
        total -= z * x[i] - 0.5 * x[i] * x[i]
    return total


@compiled
def project(R, b, lower, upper, x):
    """Write the least-norm x with R^T x = b within the box; return whether the Newton method ended."""
    r = b.size
    y, trial = np.zeros(r), np.empty(r)
    value = dual(R, y, b, lower, upper, x)
    scale, before = np.abs(b).max() + 1e-300, np.inf
    for _ in range(STEPS):
        missing = b - R.T @ x
        left = np.abs(missing).max()
        if left <= ROUNDING * scale or (left <= 4.0 * WRONG * scale and left >= before):
            return True
        before = left
        H = np.zeros((r, r))
        z = R @ y
        for i in range(x.size):
            if lower[i] < z[i] < upper[i] or (z[i] == x[i] and lower[i] < upper[i]):
                for j in range(r):
                    for p in range(r):
                        H[j, p] += R[i, j] * R[i, p]
        values, vectors = np.linalg.eigh(H)
        along = vectors.T @ missing
        for j in range(r):
            along[j] /= max(values[j], 1e-9)
        step = vectors @ along
        slope, t, new = step @ missing, 1.0, value
        for _ in range(40):
            trial[:] = y + t * step
            new = dual(R, trial, b, lower, upper, x)
            if new >= value + 1e-4 * t * slope or t < 1e-10:
                break
            t *= 0.5
        y[:] = trial
        value = new
    return np.abs(b - R.T @ x).max() <= 1e2 * WRONG * scale


@compiled
def least_norm(B, G, g, lower, upper, x):
    """Replace optimal forces x by the least-norm ones; return the dimension of the family they are chosen from."""
    m = x.size
    c, size = np.empty(m), np.empty(m)
    accelerations(G, g, x, c, size)
    loose = np.zeros(m, dtype=np.bool_)
    for i in range(m):
        inside = lower[i] < x[i] < upper[i]
        loose[i] = lower[i] < upper[i] and (inside or abs(c[i]) <= 8.0 * WRONG * size[i])
    index = np.flatnonzero(loose)
    if index.size == 0:
        return 0
    R = row_space(B, index)
    family = index.size - R.shape[1]
    if family == 0:
        return 0
    if R.shape[1] == 0:
        for i in range(index.size):
            x[index[i]] = min(max(0.0, lower[index[i]]), upper[index[i]])
        return family
    new = np.empty(index.size)
    if project(R, R.T @ x[index], lower[index], upper[index], new):
        x[index] = new
    return family
