# pyright: reportCallIssue=false, reportArgumentType=false
"""Sparse matrices of symmetric pattern by their envelope, in compiled code: what lies between first and last entry.

L U without pivoting fills nothing outside the envelope: p b^2 operations with b rows of envelope, against p^3.
Source: A. George, J. W. Liu, "Computer Solution of Large Sparse Positive Definite Systems" (1981), ch. 4.
"""

from __future__ import annotations

import numba
import numpy as np

compiled = numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "reassoc"})


@compiled
def block_envelope(G, first):
    """Return the first and last column with an entry, per row, rows of one contact alike."""
    p = G.shape[0]
    low, high = np.empty(p, dtype=np.int64), np.empty(p, dtype=np.int64)
    for i in range(first.size - 1):
        a, b = first[i], first[i + 1]
        left, right = a, b - 1
        for j in range(a, b):
            c = 0
            while c < left and G[j, c] == 0.0:
                c += 1
            left, c = c, p - 1
            while c > right and G[j, c] == 0.0:
                c -= 1
            right = c
        low[a:b], high[a:b] = left, right
    return low, high


@compiled
def factor(A, L, U, low):
    """Write L (unit diagonal) and U^T, rows within the envelope, with L U = A; no pivoting."""
    for i in range(A.shape[0]):
        Li, Ui = L[i], U[i]
        for j in range(low[i], i):
            Lj, Uj = L[j], U[j]
            lower, upper = A[i, j], A[j, i]
            for k in range(max(low[i], low[j]), j):
                lower -= Li[k] * Uj[k]
                upper -= Lj[k] * Ui[k]
            Li[j], Ui[j] = lower / Uj[j], upper
        total = A[i, i]
        for k in range(low[i], i):
            total -= Li[k] * Ui[k]
        Ui[i] = total if abs(total) > 1e-16 * abs(A[i, i]) else 1e-16 * abs(A[i, i])


@compiled
def substitute(L, U, low, x):
    """Overwrite x by the solution of L U y = x."""
    p = x.size
    for i in range(p):
        Li, total = L[i], x[i]
        for k in range(low[i], i):
            total -= Li[k] * x[k]
        x[i] = total
    for i in range(p - 1, -1, -1):
        Ui = U[i]
        x[i] /= Ui[i]
        for k in range(low[i], i):
            x[k] -= Ui[k] * x[i]


@compiled
def times(G, low, high, x, out):
    """Write G x, entries outside the envelope left out."""
    for i in range(x.size):
        Gi, total = G[i], 0.0
        for j in range(low[i], high[i] + 1):
            total += Gi[j] * x[j]
        out[i] = total
