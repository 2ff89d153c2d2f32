"""Sparse elimination by inner products, the seed's second method, compiled.

Crout's form over a static pattern: every entry of L and U is its entry of A minus the inner product of a sparse row of
L with a sparse column of U, found by merging their lists (T. Murata, T. Oguni, Y. Karaki, "Supercomputer: application
to scientific computing", Maruzen 1985, in Japanese, cited by seed 003, sec. 5.2; written from the idea, not from it).
Same pivot order as the other engines; blocks are not told apart, so that L has entries, and fill, that a plan only
moves to the right side.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float, Int

from dalembert.tableau.inner_loops import factor_inner, solve_inner
from dalembert.tableau.plan import Plan

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
