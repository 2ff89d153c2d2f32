# pyright: reportCallIssue=false, reportArgumentType=false
"""Many states of bounded friction in compiled code, one after the other: the loop of `batch.py`.

Symbols as in `problem.py`: M = L L^T, J = W^T L^-T (a row per contact), Q an orthonormal basis of the rows of A L^-T,
P = I - Q^T Q, b in their span with A L^-T b = -drift:

    G = J P J^T,   a = L^-T (P L^-1 (f + W T) + b)
"""

from __future__ import annotations

import numpy as np

from dalembert.friction.bounded.box import SOLVED, WRONG, accelerations, least_norm, solve_box
from dalembert.kernel.loops import loop

compiled = loop(nogil=True, error_model="numpy")

GOOD, UNSOLVED, NOT_DEFINITE, NOT_FINITE, CONTRADICTS = 0, 3, 6, 7, 8
"""Codes of `FrictionStatus`."""

DEPENDENT = 1e-11
"""What is left of a constraint row beside those before it: below this part of the row it depends on them."""

UNSEEN = 1e-14
"""What the constraint rows leave of a contact direction, or of g, is rounding below this part, as in `problem`."""

CONSISTENT = 1e-9
"""A dependent row's drift may miss what the others imply by this part of its terms."""

ROUNDED = 1e-13
"""And by this part of the row's size times that of the prescribed motion: where the terms vanish, all is rounding."""


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
def orthonormal(A, L, Q, R):
    """Write Q and R with A L^-T = R Q, rows of Q orthonormal, or zero where a row depends on those before."""
    for i in range(A.shape[0]):
        row = A[i].copy()
        forward(L, row)
        size = np.sqrt(dot(row, row))
        R[i] = 0.0
        for _ in range(2):  # once more for the digits that the first time loses
            for j in range(i):
                part = dot(Q[j], row)
                R[i, j] += part
                for p in range(row.size):
                    row[p] -= part * Q[j, p]
        left = np.sqrt(dot(row, row))
        Q[i] = 0.0
        if left > DEPENDENT * size:
            R[i, i] = left
            Q[i] = row / left


@compiled
def particular(Q, R, drift, b):
    """Write b in the span of Q with R Q b = -drift; False where a dependent row contradicts the others."""
    k = drift.size
    part = np.zeros(k)
    b[:] = 0.0
    motion = 0.0
    for i in range(k):
        total, terms, size = -drift[i], abs(drift[i]), 0.0
        for j in range(i):
            total -= R[i, j] * part[j]
            terms += abs(R[i, j] * part[j])
            size = np.hypot(size, R[i, j])
        if R[i, i] > 0.0:
            part[i] = total / R[i, i]
            motion = np.hypot(motion, part[i])
            for p in range(b.size):
                b[p] += part[i] * Q[i, p]
        elif abs(total) > CONSISTENT * terms + ROUNDED * size * motion:
            return False
    return True


@compiled
def project(Q, x):
    """Take the part within the span of Q out of x."""
    for i in range(Q.shape[0]):
        part = dot(Q[i], x)
        for p in range(x.size):
            x[p] -= part * Q[i, p]


@compiled
def prescribed_terms(L, Q, b):
    """Return what L^-T b is summed from, b in the span of Q: it may be rounding where the terms cancel."""
    n = b.size
    terms = np.zeros(n)
    for i in range(Q.shape[0]):
        part = abs(dot(Q[i], b))
        for p in range(n):
            terms[p] += part * abs(Q[i, p])
    for i in range(n - 1, -1, -1):
        for p in range(i + 1, n):
            terms[i] += abs(L[p, i]) * terms[p]
        terms[i] /= L[i, i]
    return terms


@compiled
def admissible(Q, x):
    """Take the span of Q out of x, twice for the digits; what is rounding then becomes zero."""
    size = np.sqrt(dot(x, x))
    project(Q, x)
    project(Q, x)
    if np.sqrt(dot(x, x)) <= UNSEEN * size:
        x[:] = 0.0


@compiled
def resolve_samples(M, f, W, A, rows_drift, rest, limits, moving, drift, a, T, xi, code, status, residual, rounds):
    """Resolve all samples; M, W, A (N or 1, ...), the others (N, ...). Outputs are written.

    `code`: 0 sticks, 1 slides, +2 or -2 about to slip in that direction; T comes in as the first guess.
    """
    N, n = f.shape
    m, c = limits.shape[1], A.shape[1]
    L, J, Q, R, b = np.zeros((n, n)), np.empty((m, n)), np.zeros((c, n)), np.zeros((c, c)), np.zeros(n)
    common, sound = M.shape[0] == 1 and W.shape[0] == 1 and A.shape[0] == 1, False
    for s in range(N):
        Ws = min(s, W.shape[0] - 1)
        if s == 0 or not common:
            sound = factored(M[min(s, M.shape[0] - 1)], L)
            if sound:
                orthonormal(A[min(s, A.shape[0] - 1)], L, Q, R)
                for j in range(m):
                    J[j] = W[Ws, :, j]
                    forward(L, J[j])
                    admissible(Q, J[j])
        finite = np.isfinite(f[s]).all() and np.isfinite(drift[s]).all() and np.isfinite(limits[s]).all()
        if not (finite and np.isfinite(rows_drift[s]).all()):
            status[s] = NOT_FINITE
            continue
        if not sound:
            status[s] = NOT_DEFINITE
            continue
        if not particular(Q, R, rows_drift[s], b):
            status[s] = CONTRADICTS
            continue
        resolve_one(
            L, J, Q, b, W[Ws], f[s], rest[s], limits[s], moving[s], drift[s], a[s], T[s], xi[s], code[s], status,
            residual, rounds, s,
        )  # fmt: skip


@compiled
def resolve_one(L, J, Q, b, W, f, rest, limits, moving, drift, a, T, xi, code, status, residual, rounds, s):
    """Resolve sample s, its matrices factored."""
    n, index = f.size, np.flatnonzero(rest)
    k = index.size
    load = f + W @ moving
    forward(L, load)
    load += b
    G, g, B = np.empty((k, k)), np.empty(k), np.empty((n, k))
    inward = b.copy()  # W^T a = J (load) + W^T L^-T b: what the constraints prescribe is not in J
    backward(L, inward)
    known = prescribed_terms(L, Q, b)
    for i in range(k):
        j = index[i]
        B[:, i] = J[j] if Q.shape[0] else W[:, j]
        g[i] = dot(J[j], load) + dot(W[:, j], inward) + drift[j]
        terms = abs(drift[j])
        for p in range(n):
            terms += abs(J[j, p] * load[p]) + abs(W[p, j]) * known[p]
        if abs(g[i]) <= UNSEEN * terms:
            g[i] = 0.0
        for p in range(k):
            G[i, p] = dot(J[j], J[index[p]])
    x, limit = T[index], limits[index]
    if k:
        found, rounds[s], residual[s] = solve_box(G, g, -limit, limit, x)
        least_norm(B, G, g, -limit, limit, x)
        status[s] = GOOD if found == SOLVED else UNSOLVED
    else:
        status[s], rounds[s], residual[s] = GOOD, 0, 0.0
    c, size = np.empty(k), np.empty(k)
    accelerations(G, g, x, c, size)
    T[:] = moving
    code[:] = 1
    for i in range(k):
        T[index[i]] = x[i]
        onset = abs(x[i]) >= limit[i] * (1.0 - 1e-12) and abs(c[i]) > WRONG * size[i]
        code[index[i]] = (2 if c[i] > 0.0 else -2) if onset else 0
    load = f + W @ T
    forward(L, load)
    project(Q, load)
    load += b
    backward(L, load)
    a[:] = load
    xi[:] = W.T @ load + drift
    for i in range(k):
        if code[index[i]] == 0:
            xi[index[i]] = 0.0
