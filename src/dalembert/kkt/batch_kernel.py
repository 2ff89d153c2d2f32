"""Route `schur` for a whole batch, in compiled code: W samples side by side in the innermost axis.

The plain twin is `routes/schur.py` with one step of `residual.refined`; the same letters are used:
M = L L^T, Y = L^-1 A^T, S = Y^T Y = Ls Ls^T. Every step is a loop over matrix entries around a loop over the W
samples of a block, which the compiler turns into vector instructions. A sample is accepted under the same rules as
in the twin; all others are left to it.

Operations per sample: n^3/3 (M = L L^T) + n^2 m (Y) + n m^2 (S) + m^3/3 (S = Ls Ls^T)
+ n^3/3 + m^3/3 (traces of inverses) + 6 (n^2 + n m) (solve, refine, residual), multiplications and additions.
"""

from __future__ import annotations

import numba
import numpy as np

W = 32
"""Samples per block: long enough to amortise the loops, short enough for the block to stay in the cache."""


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def schur_batch(M, A, f, c, limit, regular, a, lam, residual_motion, residual_constraint, accepted):
    """Solve all samples; `accepted[s]` says whether the certificate of sample s holds (its numbers are undefined if not).

    M (N, n, n), A (N, m, n), f (N, n), c (N, m) may have any strides; outputs are a (N, n), lam (N, m) and the three
    arrays (N,).
    """
    N, n = f.shape
    m = c.shape[1]
    L, Y, S = np.empty((n, n, W)), np.empty((n, m, W)), np.empty((m, m, W))
    d, e = np.empty((n, W)), np.empty((m, W))
    fw, aw, r1, g = np.empty((n, W)), np.empty((n, W)), np.empty((n, W)), np.empty((n, W))
    cw, lw, r2, h = np.empty((m, W)), np.empty((m, W)), np.empty((m, W)), np.empty((m, W))
    Mw, Aw = np.empty((n, n, W)), np.empty((m, n, W))
    spread, column = np.empty(W), np.empty((max(n, m), W))
    for start in range(0, N, W):
        count = min(W, N - start)
        _load_matrices(M, A, start, count, Mw, Aw)
        _load_vectors(f, start, count, fw)
        _load_vectors(c, start, count, cw)
        _cholesky(Mw, L, d)
        _forward_rows(L, Aw, Y)
        _gram(Y, S)
        _cholesky(S, S, e)
        spread[:] = 0.0
        _inverse_trace(L, d, column, spread)
        _inverse_trace(S, e, column, spread)
        _solve(L, Y, S, fw, cw, g, h, aw, lw)
        _defect(Mw, Aw, fw, cw, aw, lw, r1, r2)
        _solve(L, Y, S, r1, r2, g, h, r1, r2)
        aw += r1
        lw += r2
        _certify(Mw, Aw, fw, cw, aw, lw, d, e, g, h, start, count, residual_motion, residual_constraint)
        for w in range(count):
            s = start + w
            for i in range(n):
                a[s, i] = aw[i, w]
            for i in range(m):
                lam[s, i] = lw[i, w]
            worst = max(residual_motion[s], residual_constraint[s])
            accepted[s] = worst <= limit and spread[w] <= regular


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"}, inline="never")
def _load_matrices(M, A, start, count, Mw, Aw):
    """Copy a block, samples innermost; missing lanes repeat the last sample."""
    n, m = M.shape[1], A.shape[1]
    for w in range(W):
        s = start + min(w, count - 1)
        for i in range(n):
            for j in range(n):
                Mw[i, j, w] = M[s, i, j]
        for i in range(m):
            for j in range(n):
                Aw[i, j, w] = A[s, i, j]


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"}, inline="never")
def _load_vectors(x, start, count, xw):
    """Copy a block of vectors, samples innermost."""
    for w in range(W):
        s = start + min(w, count - 1)
        for i in range(x.shape[1]):
            xw[i, w] = x[s, i]


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"}, inline="never")
def _cholesky(P, L, d):
    """Factor P = L L^T (in place allowed) and store d = diag(P)^-1/2; a failed sample becomes NaN."""
    n = P.shape[0]
    for i in range(n):
        for w in range(W):
            d[i, w] = 1.0 / np.sqrt(P[i, i, w])
        for j in range(i + 1):
            for w in range(W):
                L[i, j, w] = P[i, j, w]
            for k in range(j):
                for w in range(W):
                    L[i, j, w] -= L[i, k, w] * L[j, k, w]
            if i == j:
                for w in range(W):
                    L[i, i, w] = 1.0 / np.sqrt(L[i, i, w])
            else:
                for w in range(W):
                    L[i, j, w] *= L[j, j, w]


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"}, inline="never")
def _forward_rows(L, A, Y):
    """Solve L Y = A^T; the diagonal of L holds reciprocals."""
    n, m = Y.shape[0], Y.shape[1]
    for i in range(n):
        for j in range(m):
            for w in range(W):
                Y[i, j, w] = A[j, i, w]
        for k in range(i):
            for j in range(m):
                for w in range(W):
                    Y[i, j, w] -= L[i, k, w] * Y[k, j, w]
        for j in range(m):
            for w in range(W):
                Y[i, j, w] *= L[i, i, w]


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"}, inline="never")
def _gram(Y, S):
    """Form the lower triangle of S = Y^T Y."""
    n, m = Y.shape[0], Y.shape[1]
    for i in range(m):
        for j in range(i + 1):
            for w in range(W):
                S[i, j, w] = 0.0
            for k in range(n):
                for w in range(W):
                    S[i, j, w] += Y[k, i, w] * Y[k, j, w]


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"}, inline="never")
def _inverse_trace(L, d, x, spread):
    """Raise spread to trace((D P D)^-1) = sum of squares of L^-1 D^-1, column by column."""
    n = L.shape[0]
    total = np.zeros(W)
    for j in range(n):
        for i in range(j, n):
            for w in range(W):
                x[i, w] = 1.0 / d[j, w] if i == j else 0.0
            for k in range(j, i):
                for w in range(W):
                    x[i, w] -= L[i, k, w] * x[k, w]
            for w in range(W):
                x[i, w] *= L[i, i, w]
                total[w] += x[i, w] * x[i, w]
    for w in range(W):
        spread[w] = total[w] if not total[w] <= spread[w] else spread[w]


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"}, inline="never")
def _solve(L, Y, S, f, c, g, h, a, lam):
    """Solve for (a, lam); outputs may be the right sides themselves."""
    n, m = L.shape[0], S.shape[0]
    for i in range(n):
        for w in range(W):
            g[i, w] = f[i, w]
        for k in range(i):
            for w in range(W):
                g[i, w] -= L[i, k, w] * g[k, w]
        for w in range(W):
            g[i, w] *= L[i, i, w]
    for i in range(m):
        for w in range(W):
            h[i, w] = -c[i, w]
        for k in range(n):
            for w in range(W):
                h[i, w] += Y[k, i, w] * g[k, w]
        for k in range(i):
            for w in range(W):
                h[i, w] -= S[i, k, w] * h[k, w]
        for w in range(W):
            h[i, w] *= S[i, i, w]
    _backward(S, h, lam)
    for i in range(n):
        for k in range(m):
            for w in range(W):
                g[i, w] -= Y[i, k, w] * lam[k, w]
    _backward(L, g, a)


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"}, inline="never")
def _backward(L, g, x):
    """Solve L^T x = g."""
    n = L.shape[0]
    for i in range(n - 1, -1, -1):
        for w in range(W):
            x[i, w] = g[i, w]
        for k in range(i + 1, n):
            for w in range(W):
                x[i, w] -= L[k, i, w] * x[k, w]
        for w in range(W):
            x[i, w] *= L[i, i, w]


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"}, inline="never")
def _defect(M, A, f, c, a, lam, r1, r2):
    """Form r1 = f - M a - A^T lam and r2 = c - A a."""
    n, m = M.shape[0], A.shape[0]
    for i in range(n):
        for w in range(W):
            r1[i, w] = f[i, w]
        for k in range(n):
            for w in range(W):
                r1[i, w] -= M[i, k, w] * a[k, w]
        for k in range(m):
            for w in range(W):
                r1[i, w] -= A[k, i, w] * lam[k, w]
    for i in range(m):
        for w in range(W):
            r2[i, w] = c[i, w]
        for k in range(n):
            for w in range(W):
                r2[i, w] -= A[i, k, w] * a[k, w]


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"}, inline="never")
def _certify(M, A, f, c, a, lam, d, e, r1, r2, start, count, residual_motion, residual_constraint):
    """Write the relative residuals, as `residual.residual` defines them."""
    n, m = M.shape[0], A.shape[0]
    applied, inertial, constrained = np.zeros(W), np.zeros(W), np.zeros(W)
    moved, asked, off1, off2 = np.zeros(W), np.zeros(W), np.zeros(W), np.zeros(W)
    for i in range(n):
        for w in range(W):
            r1[i, w] = 0.0
        for k in range(n):
            for w in range(W):
                r1[i, w] += M[i, k, w] * a[k, w]
        for w in range(W):
            applied[w] += (d[i, w] * f[i, w]) ** 2
            inertial[w] += (d[i, w] * r1[i, w]) ** 2
            moved[w] += (a[i, w] / d[i, w]) ** 2
            constrained[w] += (d[i, w] * (f[i, w] - r1[i, w])) ** 2
    _defect(M, A, f, c, a, lam, r1, r2)
    for i in range(n):
        for w in range(W):
            off1[w] += (d[i, w] * r1[i, w]) ** 2
    for i in range(m):
        for w in range(W):
            asked[w] += (e[i, w] * c[i, w]) ** 2
            off2[w] += (e[i, w] * r2[i, w]) ** 2
    for w in range(count):
        forces = max(applied[w], max(inertial[w], constrained[w]))
        accelerations = max(applied[w], max(moved[w], asked[w]))
        residual_motion[start + w] = np.sqrt(off1[w] / forces) if off1[w] > 0.0 else off1[w]
        residual_constraint[start + w] = np.sqrt(off2[w] / accelerations) if off2[w] > 0.0 else off2[w]
