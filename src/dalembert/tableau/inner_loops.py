"""Compiled loops of the inner-product form: L row by row against U column by column, lists merged."""

from __future__ import annotations

from dalembert.tableau.graph_loops import compiled


@compiled
def _product(row_ptr, cols, col_ptr, col_rows, col_places, work, i, j, limit):
    """Return the sum over k < limit of l_ik u_kj."""
    total = 0.0
    e, f = row_ptr[i], col_ptr[j]
    while e < row_ptr[i + 1] and f < col_ptr[j + 1]:
        k, m = cols[e], col_rows[f]
        if k >= limit or m >= limit:
            break
        if k == m:
            total += work[e] * work[col_places[f]]
            e += 1
            f += 1
        elif k < m:
            e += 1
        else:
            f += 1
    return total


@compiled
def factor_inner(row_ptr, cols, col_ptr, col_rows, col_places, diagonal, work):
    """Overwrite the entries of A with those of L (unit diagonal) and U."""
    for i in range(row_ptr.size - 1):
        for e in range(row_ptr[i], row_ptr[i + 1]):
            j = cols[e]
            limit = min(i, j)
            work[e] -= _product(row_ptr, cols, col_ptr, col_rows, col_places, work, i, j, limit)
            if j < i:
                work[e] /= work[diagonal[j]]


@compiled
def solve_inner(row_ptr, cols, diagonal, work, y):
    """Solve L U y = y in place."""
    n = row_ptr.size - 1
    for i in range(n):
        for e in range(row_ptr[i], diagonal[i]):
            y[i] -= work[e] * y[cols[e]]
    for i in range(n - 1, -1, -1):
        for e in range(diagonal[i] + 1, row_ptr[i + 1]):
            y[i] -= work[e] * y[cols[e]]
        y[i] /= work[diagonal[i]]
