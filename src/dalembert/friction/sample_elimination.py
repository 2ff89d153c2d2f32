# pyright: reportCallIssue=false, reportArgumentType=false
"""Masses and constraint rows of a sample eliminated from its contact rows, in compiled code: the loops of batches.

Symbols: M = L L^T, Q an orthonormal basis of the rows of A L^-T = R Q, b in their span with A L^-T b = -drift.
"""

from __future__ import annotations

import numpy as np

from dalembert.friction.limits import CONSISTENT, CONSISTENT_MOTION, DEPENDENT_CONSTRAINT, UNSEEN
from dalembert.kernel.loops import compiled
from dalembert.kkt.limits import EPS, MASS_FACTOR
from dalembert.status import Status

GOOD, UNSOLVED, NOT_DEFINITE = int(Status.SOLVED), int(Status.NOT_CONVERGED), int(Status.MASSLESS)
NOT_FINITE, CONTRADICTS = int(Status.NONFINITE), int(Status.INCONSISTENT)
"""Verdicts, as compiled loops read them."""


@compiled
def factored(M, L):
    """Write the Cholesky factor; False where M is not definite beyond rounding.

    With d_i = L_ii^2 / M_ii, a pivot d_i carries the rounding of those before it, n eps (1 + sum_p 1 / d_p) at most:
    a small one makes what follows uncertain, and a motion without mass may end with a pivot far above eps.
    """
    n = M.shape[0]
    rounding, growth = MASS_FACTOR * n * EPS, 1.0
    for i in range(n):
        for j in range(i + 1):
            total = M[i, j]
            for p in range(j):
                total -= L[i, p] * L[j, p]
            if i == j:
                if not total > rounding * growth * M[i, i]:
                    return False
                growth += M[i, i] / total
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
        if left > DEPENDENT_CONSTRAINT * size:
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
        elif abs(total) > CONSISTENT * terms + CONSISTENT_MOTION * size * motion:
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
def eliminated(M, A, H, L, Q, R, J):
    """Write L, Q, R, and J = H L^-T without the span of Q, H (p, n) contact rows; False where M is not definite."""
    if not factored(M, L):
        return False
    orthonormal(A, L, Q, R)
    for i in range(H.shape[0]):
        J[i] = H[i]
        forward(L, J[i])
        admissible(Q, J[i])
    return True
