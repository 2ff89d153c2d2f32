"""Dense elimination with row exchanges: what repairs a plan whose pivots failed."""

from __future__ import annotations

from dalembert.tableau.graph_loops import compiled


@compiled
def dense_factor(A, exchanges):
    """Overwrite A by its factors P A = L U, rows scaled implicitly; return whether every pivot is nonzero."""
    n = A.shape[0]
    for k in range(n):
        best, pivot = -1.0, k
        for i in range(k, n):
            size = 0.0
            for j in range(k, n):
                size = max(size, abs(A[i, j]))
            share = abs(A[i, k]) / size if size > 0.0 else 0.0
            if share > best:
                best, pivot = share, i
        exchanges[k] = pivot
        if pivot != k:
            for j in range(n):
                A[k, j], A[pivot, j] = A[pivot, j], A[k, j]
        if not abs(A[k, k]) > 0.0:
            return False
        for i in range(k + 1, n):
            if A[i, k] != 0.0:
                factor = A[i, k] / A[k, k]
                A[i, k] = factor
                for j in range(k + 1, n):
                    A[i, j] -= factor * A[k, j]
    return True


@compiled
def dense_solve(A, exchanges, b):
    """Solve in place: b becomes x."""
    n = A.shape[0]
    for k in range(n):
        pivot = exchanges[k]
        if pivot != k:
            b[k], b[pivot] = b[pivot], b[k]
    for k in range(n):
        for j in range(k):
            b[k] -= A[k, j] * b[j]
    for k in range(n - 1, -1, -1):
        for j in range(k + 1, n):
            b[k] -= A[k, j] * b[j]
        b[k] /= A[k, k]
