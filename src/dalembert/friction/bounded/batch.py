# pyright: reportCallIssue=false, reportArgumentType=false
"""Many states of intervals in compiled code, one after the other.

Symbols as in `elimination.py`; J = W^T L^-T without the span of Q (a row per contact), P = I - Q^T Q:

    G = J J^T,   a = L^-T (P L^-1 (f + W T) + b)
"""

from __future__ import annotations

import numpy as np

from dalembert.friction.bounded.box import SOLVED, accelerations, least_norm, solve_box
from dalembert.friction.elimination import (
    CONTRADICTS,
    GOOD,
    NOT_DEFINITE,
    NOT_FINITE,
    UNSOLVED,
    backward,
    dot,
    eliminated,
    forward,
    particular,
    prescribed_terms,
    project,
)
from dalembert.friction.limits import AT_LIMIT, STILL, UNSEEN
from dalembert.friction.problem import ContactProblem
from dalembert.friction.resolution import BatchResolution, FrictionStatus, least_multipliers
from dalembert.kernel.loops import compiled
from dalembert.types import Array


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
        # matrices that all samples share are eliminated once
        if s == 0 or not common:
            sound = eliminated(M[min(s, M.shape[0] - 1)], A[min(s, A.shape[0] - 1)], W[Ws].T, L, Q, R, J)
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
        onset = abs(x[i]) >= limit[i] * (1.0 - AT_LIMIT) and abs(c[i]) > STILL * size[i]
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


def interval_samples(problem: ContactProblem, T: Array) -> BatchResolution:
    """Run the loop over all states; T (N, m) comes in as the first guess."""
    (N, n), m, sets = problem.f.shape, T.shape[1], problem.contacts
    a, xi, residual = np.full((N, n), np.nan), np.full((N, m), np.nan), np.full(N, np.nan)
    code, status, rounds = np.zeros((N, m), dtype=np.int64), np.zeros(N, dtype=np.int64), np.zeros(N, dtype=np.int64)
    arrays = problem.M, problem.f, problem.W, problem.A, problem.drift, ~sets.sliding, sets.mu, sets.known
    data = tuple(np.ascontiguousarray(x) for x in (*arrays, problem.contact_drift))
    resolve_samples(*data, a, T, xi, code, status, residual, rounds)
    T[status != FrictionStatus.SOLVED] = np.nan
    lam = least_multipliers(problem.M, problem.f, problem.W, problem.A, a, T)
    return BatchResolution(a, T, xi, lam, code, status, residual, rounds)
