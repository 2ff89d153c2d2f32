"""Pivots with little fill, sound at every probed point: Markowitz elimination, compiled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dalembert.kernel.loops import compiled
from dalembert.kkt.limits import LEAST_THRESHOLD

# ----------------------------------------------------------------------------------------------------------------------
# Lists of numbers in one store, linked by their length: the data of sparse elimination with fill.
#
# A list that outgrows its room moves to the end of the store; a full store ends the run, and the caller comes again
# with a larger one.


SLACK = 3
"""Room for fill that each list has at first."""


class Lists(NamedTuple):
    """Lists of numbers in one store, linked by their length; `top` has the end of the store and the longest length."""

    entries: NDArray[np.int64]
    start: NDArray[np.int64]
    length: NDArray[np.int64]
    room: NDArray[np.int64]
    top: NDArray[np.int64]
    head: NDArray[np.int64]
    bucket: NDArray[np.int64]
    after: NDArray[np.int64]
    before: NDArray[np.int64]


@compiled
def link(lists, i, late):
    """Put list i at the head of those of its length; a late one behind all others."""
    bucket = lists.head.size - 1 if late else lists.length[i]
    first = lists.head[bucket]
    lists.after[i], lists.before[i], lists.head[bucket], lists.bucket[i] = first, -1, i, bucket
    if first >= 0:
        lists.before[first] = i
    if not late and bucket > lists.top[1]:
        lists.top[1] = bucket


@compiled
def unlink(lists, i):
    """Take list i out."""
    after, before = lists.after[i], lists.before[i]
    if before >= 0:
        lists.after[before] = after
    else:
        lists.head[lists.bucket[i]] = after
    if after >= 0:
        lists.before[after] = before


@compiled
def make_room(lists, i):
    """Move list i to the end of the store with twice its room; return where it was, -1 if the store is full."""
    start, length = lists.start[i], lists.length[i]
    room = 2 * lists.room[i] + SLACK
    top = lists.top[0]
    if top + room > lists.entries.size:
        return -1
    for e in range(length):
        lists.entries[top + e] = lists.entries[start + e]
    lists.start[i], lists.room[i], lists.top[0] = top, room, top + room
    return start


@compiled
def fill_lists(indptr, indices, size, capacity):
    """Return lists that hold a CSR pattern."""
    n = indptr.size - 1
    entries, start, room = np.empty(capacity, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    length = np.diff(indptr)
    top = 0
    for i in range(n):
        start[i], room[i] = top, length[i] + SLACK
        for e in range(length[i]):
            entries[top + e] = indices[indptr[i] + e]
        top += room[i]
    empty = np.full(n, -1, np.int64)
    heads = np.full(size + 2, -1, np.int64)
    return Lists(entries, start, length, room, np.array([top, 0]), heads, empty.copy(), empty.copy(), empty.copy())


@compiled
def find(lists, i, wanted):
    """Return the place of a number in list i."""
    for e in range(lists.start[i], lists.start[i] + lists.length[i]):
        if lists.entries[e] == wanted:
            return e
    return -1


@compiled
def drop(lists, i, wanted):
    """Remove a number from list i, which is not linked."""
    place = find(lists, i, wanted)
    lists.length[i] -= 1
    lists.entries[place] = lists.entries[lists.start[i] + lists.length[i]]
    return place


# ----------------------------------------------------------------------------------------------------------------------
# The choice of one pivot: least Markowitz cost among entries that are sound at every probed point, compiled.
#
# The search is Zlatev's: rows and columns with few entries first, until enough of them had an acceptable pivot.
# Partners (the diagonal of a symmetric pattern, matched pairs else) are looked at first where asked for. Sources stand
# in `pivots.py`.


SEARCHED = 4
"""Rows or columns with an acceptable pivot that are looked at (Zlatev: more gain nothing)."""


@compiled
def _quality(rows, values, i, at):
    """Return the least ratio, over probed points, of an entry to the largest of its row."""
    worst = 1.0
    start, stop = rows.start[i], rows.start[i] + rows.length[i]
    for k in range(values.shape[1]):
        largest = 0.0
        for e in range(start, stop):
            largest = max(largest, abs(values[e, k]))
        if largest == 0.0:
            return 0.0
        worst = min(worst, abs(values[at, k]) / largest)
    return worst


@compiled
def _best_of_row(rows, cols, values, marks, threshold, i, best):
    """Return the best acceptable pivot of row i, or `best`."""
    for e in range(rows.start[i], rows.start[i] + rows.length[i]):
        j = rows.entries[e]
        cost = 2 * (rows.length[i] - 1) * (cols.length[j] - 1) + (1 - marks[e])
        if cost < best[0] and _quality(rows, values, i, e) >= threshold:
            best = (cost, i, j)
    return best


@compiled
def _best_of_col(rows, cols, values, marks, threshold, j, best):
    """Return the best acceptable pivot of column j, or `best`."""
    for c in range(cols.start[j], cols.start[j] + cols.length[j]):
        i = cols.entries[c]
        if 2 * (rows.length[i] - 1) * (cols.length[j] - 1) >= best[0]:
            continue
        e = find(rows, i, j)
        cost = 2 * (rows.length[i] - 1) * (cols.length[j] - 1) + (1 - marks[e])
        if cost < best[0] and _quality(rows, values, i, e) >= threshold:
            best = (cost, i, j)
    return best


@compiled
def _search(rows, cols, values, marks, threshold):
    """Return cost, row and column of the next pivot; row -1 if none is acceptable.

    A list without an acceptable pivot goes behind all others until an elimination changes it.
    """
    n = rows.length.size
    best = (np.int64(4) * n * n, np.int64(-1), np.int64(-1))
    looked = 0
    longest = max(rows.top[1], cols.top[1])
    for step in range(1, longest + 2):
        # shortest lists first; n + 1 are those that had no acceptable pivot
        count = step if step <= longest else n + 1
        if best[0] <= 2 * (count - 1) * (count - 1) + 1:
            return best
        # columns of this length
        j = cols.head[count]
        while j >= 0 and looked < SEARCHED:
            following = cols.after[j]
            best = _best_of_col(rows, cols, values, marks, threshold, j, best)
            if best[1] < 0 and count <= n:
                unlink(cols, j)
                link(cols, j, True)
            looked += best[1] >= 0
            j = following
        # rows of this length
        i = rows.head[count]
        while i >= 0 and looked < SEARCHED:
            following = rows.after[i]
            best = _best_of_row(rows, cols, values, marks, threshold, i, best)
            if best[1] < 0 and count <= n:
                unlink(rows, i)
                link(rows, i, True)
            looked += best[1] >= 0
            i = following
        if looked >= SEARCHED:
            return best
    return best


@compiled
def _search_partners(rows, cols, values, partner, threshold):
    """Return cost, row and column of the next pivot among partners; row -1 if none is acceptable."""
    n = rows.length.size
    best = (np.int64(4) * n * n, np.int64(-1), np.int64(-1))
    looked = 0
    for count in range(1, rows.top[1] + 1):
        if best[0] <= 2 * (count - 1) * (count - 1) or looked >= SEARCHED:
            return best
        i = rows.head[count]
        while i >= 0 and looked < SEARCHED:
            following, j = rows.after[i], partner[i]
            cost = 2 * (rows.length[i] - 1) * (cols.length[j] - 1)
            if cost < best[0]:
                if _quality(rows, values, i, find(rows, i, j)) >= threshold:
                    best = (cost, i, j)
                else:
                    unlink(rows, i)
                    link(rows, i, True)
            looked += best[1] >= 0
            i = following
    return best


@compiled
def next_pivot(rows, cols, values, marks, partner, threshold, partners_first):
    """Return the next pivot: a partner if wanted and sound, else by the threshold, else whatever is left."""
    i = j = -1
    if partners_first:
        _, i, j = _search_partners(rows, cols, values, partner, PARTNER_SHARE * threshold)
    for accepted in (threshold, LEAST_THRESHOLD, 0.0):
        if i < 0:
            _, i, j = _search(rows, cols, values, marks, accepted)
    return i, j


PARTNER_SHARE = 0.1
"""A partner may be smaller than other pivots by this factor: it keeps the symmetry, and so the fill low."""


# ----------------------------------------------------------------------------------------------------------------------
# Pivots with little fill, numerically sound at every probed point: compiled right-looking elimination.
#
# H. M. Markowitz, "The elimination form of the inverse", Management Science 3 (1957) 255-269: take the pivot a_ij with
# the least (r_i - 1)(c_j - 1), r_i and c_j the entries left in its row and column. A pivot must also be at least
# `threshold` times the largest entry of its row, at every probed point (I. S. Duff, J. K. Reid, "Some design features
# of a sparse matrix code", ACM TOMS 5 (1979) 18-35; Z. Zlatev's restricted search, SIAM J. Numer. Anal. 17 (1980)
# 18-30). Among equal costs, marked entries (declared causality, constants) come first.
#
# Where asked for, pivots are first looked for among partners (the diagonal of a symmetric pattern, matched pairs else):
# least (r - 1)(c - 1) is then the minimum degree order, which keeps a symmetric pattern symmetric.
#
# Rows keep entries, values (one per probed point) and marks; columns keep row numbers only.


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
    # the matrix as lists by row, with its numbers at the probed points
    for i in range(n):
        for e in range(indptr[i + 1] - indptr[i]):
            _copy(numbers, rows.start[i] + e, values, indptr[i] + e)
            flags[rows.start[i] + e] = marks[indptr[i] + e]
            missing[i] = missing[i] and indices[indptr[i] + e] != partner[i]
    # lists of equal length are linked; rows whose partner is missing wait
    for i in range(n - 1, -1, -1):
        link(rows, i, missing[i])
        link(cols, i, False)
    where = np.full(n, -1, np.int64)
    pivots, lower = np.empty((n, 2), np.int64), np.empty((capacity, 2), np.int64)
    count = spent = 0
    # one pivot after the other, with fill, until too much work is spent or the store is full
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
