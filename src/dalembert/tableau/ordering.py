"""Pivot orders of all blocks, put together: the patterns of L and U."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from jaxtyping import Float, Int

from dalembert.tableau.decomposition import Blocks
from dalembert.tableau.graph_loops import depth_first
from dalembert.tableau.markowitz_loops import markowitz
from dalembert.tableau.matching import match
from dalembert.tableau.pattern import Pattern

Array = np.ndarray

SWEEPS = 3
"""Rounds of row and column scaling before pivots are compared (Ruiz 2001); rounding of scales does not matter here."""

GENERIC_THRESHOLD = 1e-6
"""Of pivots where no values are known: any entry will do that elimination has not made a zero."""

NO_LIMIT = np.iinfo(np.int64).max

FIRST_ROOM = 4
"""The store for fill holds at first this many times the entries of a block; doubled as long as it is too small."""


def order_blocks(
    pattern: Pattern, blocks: Blocks, numbers: Any, marks: Int[Array, " entries"], threshold: float
) -> tuple[Array, Array, Array, Array, Array, Array, Array]:
    """Return rows, cols, begins, and L and U as (indptr, positions) of the whole system."""
    rows, cols = blocks.rows.copy(), blocks.cols.copy()
    lower, upper = [], []
    for b in np.flatnonzero(blocks.sizes > 1):
        first, last = blocks.begins[b], blocks.begins[b + 1]
        own_rows, own_cols, entries, own = _block(pattern, rows[first:last], cols[first:last])
        values = _generic(len(entries)) if numbers is None else _equilibrated(own, numbers[entries])
        pivots, low, up = _order(own, values, marks[entries], GENERIC_THRESHOLD if numbers is None else threshold)
        rows[first:last], cols[first:last] = own_rows[pivots[:, 0]], own_cols[pivots[:, 1]]
        lower.append(low + first)
        upper.append(up + first)
    n = len(rows)
    return rows, cols, blocks.begins, *_compressed(lower, n), *_compressed(upper, n)


def _block(pattern: Pattern, rows: Array, cols: Array) -> tuple[Array, Array, Array, sp.csr_array]:
    """Return sorted rows and columns of a block, the places of its entries in A, and its own CSR pattern."""
    rows, cols = np.sort(rows), np.sort(cols)
    spans = [np.arange(int(pattern.indptr[i]), int(pattern.indptr[i + 1])) for i in rows]
    entries = np.concatenate(spans)
    local = np.searchsorted(cols, pattern.indices[entries])
    inside = (local < len(cols)) & (cols[np.minimum(local, len(cols) - 1)] == pattern.indices[entries])
    owner = np.repeat(np.arange(len(rows)), [len(span) for span in spans])[inside]
    indptr = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=len(rows)))])
    shape = (len(rows), len(cols))
    return rows, cols, entries[inside], sp.csr_array((np.ones(len(owner)), local[inside], indptr), shape=shape)


def _generic(entries: int) -> Float[Array, "entries 1"]:
    """Return values that stand for any others: of similar size, and nothing cancels."""
    return np.random.default_rng(0).uniform(1.0, 2.0, (entries, 1))


def _equilibrated(own: Any, values: Float[Array, "entries K"]) -> Float[Array, "entries K"]:
    """Return the values with rows and columns scaled to largest entries of about one, point by point."""
    row = np.repeat(np.arange(own.shape[0]), np.diff(own.indptr))
    scaled = values.copy()
    for k in range(values.shape[1]):
        for _ in range(SWEEPS):
            for at in (row, own.indices):
                largest = np.zeros(own.shape[0])
                np.maximum.at(largest, at, np.abs(scaled[:, k]))
                scaled[:, k] /= np.where(largest > 0.0, largest, 1.0)[at]
    return scaled


def _order(own: Any, values: Array, marks: Array, threshold: float) -> tuple[Array, Array, Array]:
    """Return pivots (row, column), and entries (row, column) of L and U as positions; the cheaper of two orders.

    A symmetric pattern keeps its symmetry (partners on the diagonal): free pivots would cost more, always.
    """
    turned: Any = sp.csr_array(own.T)
    turned.sort_indices()
    symmetric = np.array_equal(own.indptr, turned.indptr) and np.array_equal(own.indices, turned.indices)
    partner = np.arange(own.shape[0]) if symmetric else match(Pattern.of(own)).col_of_row
    ways = (True,) if symmetric else (False, True)
    best = None
    for way in ways:
        limit = NO_LIMIT if best is None else _cost(best)
        best = _one_order(own, turned, values, marks, partner, threshold, way, limit) or best
    assert best is not None
    return best


def _cost(order: tuple[Array, Array, Array]) -> int:
    """Return multiplications of a factorization."""
    pivots, low, up = order
    width = np.bincount(up[:, 0], minlength=len(pivots))
    return int(width[low[:, 1]].sum()) + len(low)


def _one_order(
    own: Any, turned: Any, values: Array, marks: Array, partner: Array, threshold: float, first: bool, limit: int
) -> tuple[Array, Array, Array] | None:
    """Run the elimination once, and put its pivots depth first; None where it costs more than `limit`."""
    n = own.shape[0]
    indptr, indices, col_indptr, col_indices = (
        x.astype(np.int64) for x in (own.indptr, own.indices, turned.indptr, turned.indices)
    )
    capacity = FIRST_ROOM * own.nnz + 16 * n
    while True:
        pivots, low, start, length, entries = markowitz(
            indptr, indices, values, marks, partner, col_indptr, col_indices, threshold, first, capacity, limit
        )
        if len(pivots):
            break
        capacity *= 2
    if pivots[0, 0] < 0:
        return None
    row_place, col_place = np.empty(n, np.int64), np.empty(n, np.int64)
    row_place[pivots[:, 0]] = col_place[pivots[:, 1]] = np.arange(n)
    low = np.column_stack([row_place[low[:, 0]], low[:, 1]])
    of_row = np.repeat(np.arange(n), length)
    within = np.arange(len(of_row)) - np.repeat(np.cumsum(length) - length, length)
    up = np.column_stack([row_place[of_row], col_place[entries[start[of_row] + within]]])
    up = up[up[:, 0] != up[:, 1]]
    order = _depth_first(n, low, up)
    place = np.empty(n, np.int64)
    place[order] = np.arange(n)
    return pivots[order], place[low], place[up]


def _depth_first(n: int, low: Int[Array, "lower 2"], up: Int[Array, "upper 2"]) -> Int[Array, " n"]:
    """Return an order with the same L and U in which pivots stand near those that use them: memory is read locally."""
    later = np.concatenate([low[:, 0], up[:, 1]])
    earlier = np.concatenate([low[:, 1], up[:, 0]])
    order = np.argsort(later, kind="stable")
    indptr = np.concatenate([[0], np.cumsum(np.bincount(later, minlength=n))]).astype(np.int64)
    return depth_first(indptr, earlier[order].astype(np.int64))


def _compressed(parts: list[Array], n: int) -> tuple[Array, Array]:
    """Return entries (row, column) as CSR: indptr and ascending columns."""
    entries = np.concatenate(parts) if parts else np.empty((0, 2), np.int64)
    order = np.lexsort((entries[:, 1], entries[:, 0]))
    indptr = np.zeros(n + 1, np.int64)
    np.cumsum(np.bincount(entries[:, 0], minlength=n), out=indptr[1:])
    return indptr, np.ascontiguousarray(entries[order, 1])
