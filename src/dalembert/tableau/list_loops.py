"""Lists of numbers in one store, linked by their length: the data of sparse elimination with fill.

A list that outgrows its room moves to the end of the store; a full store ends the run, and the caller comes again with
a larger one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dalembert.tableau.graph_loops import compiled

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
