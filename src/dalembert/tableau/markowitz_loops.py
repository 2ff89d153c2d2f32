"""Pivots with little fill, numerically sound at every probed point: compiled right-looking elimination.

H. M. Markowitz, "The elimination form of the inverse", Management Science 3 (1957) 255-269: take the pivot a_ij with
the least (r_i - 1)(c_j - 1), r_i and c_j the entries left in its row and column. A pivot must also be at least
`threshold` times the largest entry of its row, at every probed point (I. S. Duff, J. K. Reid, "Some design features of
a sparse matrix code", ACM TOMS 5 (1979) 18-35; Z. Zlatev's restricted search, SIAM J. Numer. Anal. 17 (1980) 18-30).
Among equal costs, marked entries (declared causality, constants) come first.

Where asked for, pivots are first looked for among partners (the diagonal of a symmetric pattern, matched pairs else):
least (r - 1)(c - 1) is then the minimum degree order, which keeps a symmetric pattern symmetric.

Rows keep entries, values (one per probed point) and marks; columns keep row numbers only.
"""

from __future__ import annotations

import numpy as np

from dalembert.tableau.graph_loops import compiled
from dalembert.tableau.list_loops import drop, fill_lists, find, link, make_room, unlink
from dalembert.tableau.pivot_loops import next_pivot


@compiled
def _append_fill(rows, cols, values, marks, partner, missing, i, j):
    """Add a zero entry (i, j); return its place, -1 if a store is full."""
    if partner[i] == j:
        missing[i] = False
    if rows.length[i] == rows.room[i]:
        old = make_room(rows, i)
        if old < 0:
            return -1
        for e in range(rows.length[i]):
            _copy(values, rows.start[i] + e, values, old + e)
            marks[rows.start[i] + e] = marks[old + e]
    if cols.length[j] == cols.room[j] and make_room(cols, j) < 0:
        return -1
    place = rows.start[i] + rows.length[i]
    rows.entries[place], marks[place] = j, 0
    for k in range(values.shape[1]):
        values[place, k] = 0.0
    rows.length[i] += 1
    cols.entries[cols.start[j] + cols.length[j]] = i
    cols.length[j] += 1
    return place


@compiled
def _copy(target, to, source, at):
    """Copy the values of one entry (loops: array expressions take Numba minutes to compile)."""
    for k in range(target.shape[1]):
        target[to, k] = source[at, k]


@compiled
def _subtract(values, e, factor, other):
    """Subtract multiples of another entry's values."""
    for k in range(values.shape[1]):
        values[e, k] -= factor[k] * values[other, k]


@compiled
def _update_row(rows, cols, values, marks, partner, missing, where, pivot, at, i, j):
    """Subtract a multiple of the pivot row from row i, which loses column j; return whether there was room."""
    place = find(rows, i, j)
    factor = np.empty(values.shape[1])
    for k in range(factor.size):
        factor[k] = values[place, k] / values[at, k] if values[at, k] != 0.0 else 0.0
    missing[i] = missing[i] or partner[i] == j
    rows.length[i] -= 1
    last = rows.start[i] + rows.length[i]
    rows.entries[place], marks[place] = rows.entries[last], marks[last]
    _copy(values, place, values, last)
    for e in range(rows.start[i], rows.start[i] + rows.length[i]):
        hit = where[rows.entries[e]]
        if hit >= 0:
            _subtract(values, e, factor, hit)
            where[rows.entries[e]] = -2 - hit
    for e in range(rows.start[pivot], rows.start[pivot] + rows.length[pivot]):
        column = rows.entries[e]
        if column == j:
            continue
        if where[column] <= -2:
            where[column] = e
            continue
        fresh = _append_fill(rows, cols, values, marks, partner, missing, i, column)
        if fresh < 0:
            return False
        _subtract(values, fresh, factor, e)
    return True


@compiled
def _eliminate(rows, cols, values, marks, partner, missing, where, i, j, lower, count, step):
    """Eliminate column j with row i; return the number of entries of L so far, -1 if a store is full."""
    unlink(rows, i)
    start, stop = rows.start[i], rows.start[i] + rows.length[i]
    for e in range(start, stop):
        column = rows.entries[e]
        unlink(cols, column)
        drop(cols, column, i)
        where[column] = e
    at = where[j]
    where[j] = -1
    for c in range(cols.start[j], cols.start[j] + cols.length[j]):
        other = cols.entries[c]
        unlink(rows, other)
        full = count == lower.shape[0]
        if full or not _update_row(rows, cols, values, marks, partner, missing, where, i, at, other, j):
            return -1
        link(rows, other, missing[other])
        lower[count, 0], lower[count, 1] = other, step
        count += 1
    for e in range(start, stop):
        column = rows.entries[e]
        where[column] = -1
        if column != j:
            link(cols, column, False)
    return count


@compiled
def markowitz(
    indptr, indices, values, marks, partner, col_indptr, col_indices, threshold, partners_first, capacity, limit
):
    """Return pivots (n, 2), the entries (row, step) of L, and row starts, lengths, entries of U; empty if too small.

    The run is given up, with pivots of -1, where it takes more than `limit` multiplications.

    `values` (entries, K) are the entries at K probed points, equilibrated; `marks` (entries,) prefer a pivot;
    `partner` (n,) is the column that belongs to each row (its matched unknown, or the diagonal), used only with
    `partners_first`.
    """
    n, probes = indptr.size - 1, values.shape[1]
    rows, cols = fill_lists(indptr, indices, n, capacity), fill_lists(col_indptr, col_indices, n, capacity)
    numbers, flags = np.zeros((capacity, probes)), np.zeros(capacity, np.int64)
    missing = np.full(n, partners_first)
    for i in range(n):
        for e in range(indptr[i + 1] - indptr[i]):
            _copy(numbers, rows.start[i] + e, values, indptr[i] + e)
            flags[rows.start[i] + e] = marks[indptr[i] + e]
            missing[i] = missing[i] and indices[indptr[i] + e] != partner[i]
    for i in range(n - 1, -1, -1):
        link(rows, i, missing[i])
        link(cols, i, False)
    where = np.full(n, -1, np.int64)
    pivots, lower = np.empty((n, 2), np.int64), np.empty((capacity, 2), np.int64)
    count = spent = 0
    for step in range(n):
        i, j = next_pivot(rows, cols, numbers, flags, partner, threshold, partners_first)
        pivots[step, 0], pivots[step, 1] = i, j
        spent += (cols.length[j] - 1) * rows.length[i]
        if spent > limit:
            pivots[:] = -1
            return pivots, lower[:0], rows.start, rows.length, rows.entries
        count = _eliminate(rows, cols, numbers, flags, partner, missing, where, i, j, lower, count, step)
        if count < 0:
            return pivots[:0], lower[:0], rows.start, rows.length, rows.entries
    return pivots, lower[:count], rows.start, rows.length, rows.entries
