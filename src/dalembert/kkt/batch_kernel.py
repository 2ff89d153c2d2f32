# pyright: reportCallIssue=false, reportArgumentType=false
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

from dalembert.kkt.lanes import LINE, W, combine

compiled = numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})

ZERO, ONE, MINUS = 0, 1, 2
"""Rows of the workspace that hold constants."""


@compiled
def schur_batch(
    M, A, f, c, symmetric, rounding, limit, regular, a, lam, residual_motion, residual_constraint, accepted
):
    """Solve all samples; `accepted[s]` says whether sample s is certified (if not, its numbers mean nothing).

    M (N, n, n), A (N, m, n), f (N, n), c (N, m) may have any strides; outputs are a (N, n), lam (N, m) and the
    three arrays (N,). All work happens in one array of rows of W samples, where matrices and vectors have row numbers.
    """
    N, n = f.shape
    m = c.shape[1]
    Mw = 3
    Aw = Mw + n * n
    L = Aw + m * n
    Y = L + n * n
    S = Y + m * n
    d = S + m * m
    e, fw = d + n, d + n + m
    cw, aw = fw + n, fw + n + m
    lw, r1 = aw + n, aw + n + m
    r2, g = r1 + n, r1 + n + m
    h, x = g + n, g + n + m
    spread = x + max(n, m) + 1
    rows = np.empty((spread + 1, W))
    rows[ZERO], rows[ONE], rows[MINUS] = 0.0, 1.0, -1.0
    base = rows.ctypes.data
    worst, skew = np.empty((2, W)), np.empty(W)
    for start in range(0, N, W):
        count = min(W, N - start)
        _load(M, start, count, rows[Mw:])
        _load(A, start, count, rows[Aw:])
        _load(f[:, None], start, count, rows[fw:])
        _load(c[:, None], start, count, rows[cw:])
        _skewness(rows, Mw, n, skew)
        _cholesky(rows, base, Mw, L, d, n)
        for j in range(m):
            _forward(base, L, Aw + j * n, Y + j * n, n)
        for i in range(m):
            for j in range(i + 1):
                combine(base, S + i * m + j, ZERO, Y + i * n, 1, Y + j * n, 1, n, MINUS)
        _cholesky(rows, base, S, S, e, m)
        rows[spread] = 0.0
        _inverse_trace(rows, base, L, d, x, n, spread)
        _inverse_trace(rows, base, S, e, x, m, spread)
        _solve(base, L, Y, S, fw, cw, g, h, aw, lw, n, m)
        _certify(rows, base, Mw, Aw, fw, cw, aw, lw, r1, r2, d, e, g, n, m, worst)
        if not (worst <= rounding).all():
            _solve(base, L, Y, S, r1, r2, g, h, r1, r2, n, m)
            for i in range(n + m):
                combine(base, aw + i, aw + i, r1 + i, 1, MINUS, 1, 1, ONE)
            _certify(rows, base, Mw, Aw, fw, cw, aw, lw, r1, r2, d, e, g, n, m, worst)
        for w in range(count):
            s = start + w
            for i in range(n):
                a[s, i] = rows[aw + i, w]
            for i in range(m):
                lam[s, i] = rows[lw + i, w]
            residual_motion[s], residual_constraint[s] = worst[:, w]
            sound = rows[spread, w] <= regular and skew[w] <= symmetric
            accepted[s] = sound and residual_motion[s] <= limit and residual_constraint[s] <= limit


@compiled
def _load(x, start, count, out):
    """Copy a block, samples innermost, a cache line of lanes at a time; missing lanes repeat the last sample."""
    columns = x.shape[2]
    for first in range(0, W, LINE):
        for i in range(x.shape[1]):
            for j in range(columns):
                row = out[i * columns + j]
                for w in range(first, first + LINE):
                    row[w] = x[start + min(w, count - 1), i, j]


@compiled
def _skewness(rows, M, n, skew):
    """Write max |M - M^T| / max |M| per lane."""
    difference, largest = np.zeros(W), np.zeros(W)
    for i in range(n):
        for j in range(i + 1):
            for w in range(W):
                difference[w] = max(difference[w], abs(rows[M + i * n + j, w] - rows[M + j * n + i, w]))
                largest[w] = max(largest[w], abs(rows[M + i * n + j, w]))
    for w in range(W):
        skew[w] = difference[w] / largest[w]


@compiled
def _cholesky(rows, base, P, L, d, n):
    """Factor P = L L^T (in place allowed), reciprocals on the diagonal; d = diag(P)^-1/2. A failed lane becomes NaN."""
    for i in range(n):
        for w in range(W):
            rows[d + i, w] = 1.0 / np.sqrt(rows[P + i * n + i, w])
        for j in range(i):
            combine(base, L + i * n + j, P + i * n + j, L + i * n, 1, L + j * n, 1, j, L + j * n + j)
        pivot = L + i * n + i
        combine(base, pivot, P + i * n + i, L + i * n, 1, L + i * n, 1, i, ONE)
        for w in range(W):
            rows[pivot, w] = 1.0 / np.sqrt(rows[pivot, w])


@compiled
def _forward(base, L, b, x, n):
    """Solve L x = b."""
    for i in range(n):
        combine(base, x + i, b + i, L + i * n, 1, x, 1, i, L + i * n + i)


@compiled
def _backward(base, L, b, x, n):
    """Solve L^T x = b."""
    for i in range(n - 1, -1, -1):
        combine(base, x + i, b + i, L + (i + 1) * n + i, n, x + i + 1, 1, n - 1 - i, L + i * n + i)


@compiled
def _inverse_trace(rows, base, L, d, x, n, spread):
    """Raise row `spread` to trace((D P D)^-1), the sum of squares of L^-1 D^-1, column by column; NaN stays."""
    total = x + n
    rows[total] = 0.0
    for j in range(n):
        for w in range(W):
            rows[x + j, w] = rows[L + j * n + j, w] / rows[d + j, w]
        for i in range(j + 1, n):
            combine(base, x + i, ZERO, L + i * n + j, 1, x + j, 1, i - j, L + i * n + i)
        combine(base, total, total, x + j, 1, x + j, 1, n - j, ONE)
    for w in range(W):
        if not -rows[total, w] <= rows[spread, w]:
            rows[spread, w] = -rows[total, w]


@compiled
def _solve(base, L, Y, S, f, c, g, h, a, lam, n, m):
    """Solve for (a, lam); the outputs may be the right sides themselves."""
    _forward(base, L, f, g, n)
    for i in range(m):
        combine(base, h + i, c + i, Y + i * n, 1, g, 1, n, MINUS)
    _forward(base, S, h, h, m)
    _backward(base, S, h, lam, m)
    for i in range(n):
        combine(base, g + i, g + i, Y + i, n, lam, 1, m, ONE)
    _backward(base, L, g, a, n)


@compiled
def _defect(base, M, A, f, c, a, lam, r1, r2, n, m):
    """Form r1 = f - M a - A^T lam and r2 = c - A a."""
    for i in range(n):
        combine(base, r1 + i, f + i, M + i * n, 1, a, 1, n, ONE)
        combine(base, r1 + i, r1 + i, A + i, n, lam, 1, m, ONE)
    for i in range(m):
        combine(base, r2 + i, c + i, A + i * n, 1, a, 1, n, ONE)


@compiled
def _certify(rows, base, M, A, f, c, a, lam, r1, r2, d, e, inertial, n, m, worst):
    """Form the residuals, and their sizes relative to the data as `residual.residual` defines them, (2, W)."""
    _defect(base, M, A, f, c, a, lam, r1, r2, n, m)
    for i in range(n):
        combine(base, inertial + i, ZERO, M + i * n, 1, a, 1, n, MINUS)
    applied, pushed, held, moved, asked, off_motion, off_constraint = np.zeros((7, W))
    for i in range(n):
        for w in range(W):
            scale = rows[d + i, w]
            applied[w] += (scale * rows[f + i, w]) ** 2
            pushed[w] += (scale * rows[inertial + i, w]) ** 2
            moved[w] += (rows[a + i, w] / scale) ** 2
            off_motion[w] += (scale * rows[r1 + i, w]) ** 2
    for i in range(m):
        for w in range(W):
            held[w] += (rows[lam + i, w] / rows[e + i, w]) ** 2
            asked[w] += (rows[e + i, w] * rows[c + i, w]) ** 2
            off_constraint[w] += (rows[e + i, w] * rows[r2 + i, w]) ** 2
    for w in range(W):
        worst[0, w] = _ratio(off_motion[w], max(applied[w], pushed[w], held[w]))
        worst[1, w] = _ratio(off_constraint[w], max(applied[w], moved[w], asked[w]))


@compiled
def _ratio(part, whole):
    """Return the square root of part / whole, 0 for 0 / 0, NaN for NaN."""
    return np.sqrt(part / whole) if part != 0.0 else 0.0
