# pyright: reportCallIssue=false, reportArgumentType=false
"""Many states of bounded friction in compiled code, one after the other: the loop of `batch.py`.

Symbols as in `problem.py`: M = L L^T, J = W^T L^-T (a row per contact), G = J J^T, a = L^-T (L^-1 (f + W T)).
"""

from __future__ import annotations

import numba
import numpy as np

from dalembert.friction.box_kernel import SOLVED, WRONG, accelerations, solve_box
from dalembert.friction.least_kernel import least_norm

compiled = numba.njit(cache=True, nogil=True, error_model="numpy")

GOOD, UNSOLVED, NOT_DEFINITE, NOT_FINITE = 0, 3, 6, 7
"""Codes of `FrictionStatus`."""


@compiled
def factored(M, L):
    """Write the Cholesky factor; False where M is not definite beyond rounding."""
    n = M.shape[0]
    for i in range(n):
        for j in range(i + 1):
            total = M[i, j]
            for p in range(j):
                total -= L[i, p] * L[j, p]
            if i == j:
                if not total > 1e-14 * M[i, i]:
                    return False
                L[i, i] = np.sqrt(total)
            else:
                L[i, j] = total / L[j, j]
    return True


@compiled
def forward(L, b):
    """Solve L x = b in place."""
    for i in range(b.size):
        total = b[i]
        for p in range(i):
            total -= L[i, p] * b[p]
        b[i] = total / L[i, i]


@compiled
def dot(x, y):
    """Return x^T y."""
    total = 0.0
    for i in range(x.size):
        total += x[i] * y[i]
    return total


@compiled
def backward(L, b):
    """Solve L^T x = b in place."""
    for i in range(b.size - 1, -1, -1):
        total = b[i]
        for p in range(i + 1, b.size):
            total -= L[p, i] * b[p]
        b[i] = total / L[i, i]


@compiled
def resolve_samples(M, f, W, rest, limits, moving, drift, a, T, xi, code, status, residual, rounds):
    """Resolve all samples; M (N or 1, n, n), W (N or 1, n, m), the others (N, ...). Outputs are written.

    `code`: 0 sticks, 1 slides, +2 or -2 about to slip in that direction; T comes in as the first guess.
    """
    N, n = f.shape
    m = limits.shape[1]
    L, J = np.zeros((n, n)), np.empty((m, n))
    last, sound = -1, False
    for s in range(N):
        Ms, Ws = min(s, M.shape[0] - 1), min(s, W.shape[0] - 1)
        if Ms != last or W.shape[0] > 1 or s == 0:
            last = Ms
            sound = factored(M[Ms], L)
            if sound:
                for j in range(m):
                    column = W[Ws, :, j].copy()
                    forward(L, column)
                    J[j] = column
        if not (np.isfinite(f[s]).all() and np.isfinite(drift[s]).all() and np.isfinite(limits[s]).all()):
            status[s] = NOT_FINITE
            continue
        if not sound:
            status[s] = NOT_DEFINITE
            continue
        load = f[s] + W[Ws] @ moving[s]
        forward(L, load)
        index = np.flatnonzero(rest[s])
        k = index.size
        G, g, B = np.empty((k, k)), np.empty(k), np.empty((n, k))
        for i in range(k):
            B[:, i] = W[Ws, :, index[i]]
            g[i] = dot(J[index[i]], load) + drift[s, index[i]]
            for j in range(k):
                G[i, j] = dot(J[index[i]], J[index[j]])
        x, limit = T[s][index], limits[s][index]
        if k:
            found, rounds[s], residual[s] = solve_box(G, g, -limit, limit, x)
            least_norm(B, G, g, -limit, limit, x)
            status[s] = GOOD if found == SOLVED else UNSOLVED
        else:
            status[s], rounds[s], residual[s] = GOOD, 0, 0.0
        c, size = np.empty(k), np.empty(k)
        accelerations(G, g, x, c, size)
        T[s] = moving[s]
        code[s] = 1
        for i in range(k):
            T[s, index[i]] = x[i]
            onset = abs(x[i]) >= limit[i] * (1.0 - 1e-12) and abs(c[i]) > WRONG * size[i]
            code[s, index[i]] = (2 if c[i] > 0.0 else -2) if onset else 0
        load = f[s] + W[Ws] @ T[s]
        forward(L, load)
        backward(L, load)
        a[s] = load
        xi[s] = W[Ws].T @ load + drift[s]
        for i in range(k):
            if code[s, index[i]] == 0:
                xi[s, index[i]] = 0.0
