"""Sparse elimination by inner products, seed 003's second method: the rival of the plan's own executors."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float, Int

from dalembert.kernel.loops import compiled
from dalembert.tableau.elimination.plan import Plan

# ----------------------------------------------------------------------------------------------------------------------
# Compiled loops of the inner-product form: L row by row against U column by column, lists merged.


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


# ----------------------------------------------------------------------------------------------------------------------
# Sparse elimination by inner products, the seed's second method, compiled.
#
# Crout's form over a static pattern: every entry of L and U is its entry of A minus the inner product of a sparse row
# of L with a sparse column of U, found by merging their lists (T. Murata, T. Oguni, Y. Karaki, "Supercomputer:
# application to scientific computing", Maruzen 1985, in Japanese, cited by seed 003, sec. 5.2; written from the idea,
# not from it). Same pivot order as the other engines; blocks are not told apart, so that L has entries, and fill, that
# a plan only moves to the right side.


Array = np.ndarray


class InnerProduct:
    """A plan as sorted rows of L and columns of U of the whole permuted matrix, blocks not told apart."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        row, col, _ = plan.places
        k = np.arange(plan.n)
        keys = _filled(plan.n, row, col)
        rows, cols = keys // plan.n, keys % plan.n
        self.row_ptr = np.searchsorted(rows, np.arange(plan.n + 1)).astype(np.int64)
        self.cols = cols.astype(np.int64)
        order = np.lexsort((rows, cols))
        self.col_ptr = np.searchsorted(cols[order], np.arange(plan.n + 1)).astype(np.int64)
        self.col_rows, self.col_places = rows[order].astype(np.int64), order.astype(np.int64)
        self.source = np.searchsorted(keys, row * plan.n + col).astype(np.int64)
        self.diagonal = np.searchsorted(keys, k * plan.n + k).astype(np.int64)

    def solve(self, values: Any, right: Any) -> Float[Array, " n"]:
        """Factor and solve one system."""
        work = np.zeros(len(self.cols))
        work[self.source] = values
        factor_inner(self.row_ptr, self.cols, self.col_ptr, self.col_rows, self.col_places, self.diagonal, work)
        y = np.asarray(right, dtype=float)[self.plan.rows]
        solve_inner(self.row_ptr, self.cols, self.diagonal, work, y)
        x = np.empty(self.plan.n)
        x[self.plan.cols] = y
        return x


def _filled(n: int, row: Int[Array, " entries"], col: Int[Array, " entries"]) -> Int[Array, " filled"]:
    """Return the entries of L + U as sorted keys row * n + column: row k takes over what rows of U it is reduced by."""
    found: list[set[int]] = [set() for _ in range(n)]
    for i, j in zip(row.tolist(), col.tolist(), strict=True):
        found[i].add(j)
    upper: list[list[int]] = []
    for k in range(n):
        own, left = found[k], sorted(j for j in found[k] if j < k)
        while left:
            j = left.pop(0)
            fresh = set(upper[j]) - own
            own |= fresh
            left = sorted({*left, *(c for c in fresh if c < k)})
        upper.append([c for c in own if c > k])
    return np.array([i * n + j for i in range(n) for j in sorted(found[i])], np.int64)
