"""The choice of one pivot: least Markowitz cost among entries that are sound at every probed point, compiled.

The search is Zlatev's: rows and columns with few entries first, until enough of them had an acceptable pivot. Partners
(the diagonal of a symmetric pattern, matched pairs else) are looked at first where asked for. Sources stand in
`markowitz_loops`.
"""

from __future__ import annotations

import numpy as np

from dalembert.tableau.graph_loops import compiled
from dalembert.tableau.list_loops import find, link, unlink

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
        count = step if step <= longest else n + 1
        if best[0] <= 2 * (count - 1) * (count - 1) + 1:
            return best
        j = cols.head[count]
        while j >= 0 and looked < SEARCHED:
            following = cols.after[j]
            best = _best_of_col(rows, cols, values, marks, threshold, j, best)
            if best[1] < 0 and count <= n:
                unlink(cols, j)
                link(cols, j, True)
            looked += best[1] >= 0
            j = following
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
    for accepted in (threshold, 1e-12, 0.0):
        if i < 0:
            _, i, j = _search(rows, cols, values, marks, accepted)
    return i, j


PARTNER_SHARE = 0.1
"""A partner may be smaller than other pivots by this factor: it keeps the symmetry, and so the fill low."""
