"""An order of evaluation by the nearest gain: of the operations that can be done next, the one that frees most values.

Ties go to the operation whose operands were touched last, which are likely to be in registers still. Against
depth-first order it does better on wide graphs whose values are shared (trees of bodies), worse on narrow ones.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

LARGEST_FAN = 12  # a value with more waiting users is not looked at again each time one of them is served


def greedy(values: Sequence[int], operands: Sequence[tuple[int, ...]]) -> list[int]:
    """Return `values` in another topological order; operands outside `values` count as given."""
    members = set(values)
    users: dict[int, list[int]] = {v: [] for v in values}
    waiting: dict[int, int] = {}
    for v in values:
        inner = [x for x in operands[v] if x in members]
        waiting[v] = len(inner)
        for x in inner:
            users[x].append(v)
    left = {v: len(users[v]) for v in values}
    touched: dict[int, int] = {}
    heap: list[tuple[int, int, int]] = []

    def offer(v: int) -> None:
        inner = [x for x in operands[v] if x in members]
        freed = sum(left[x] == 1 for x in inner)
        recent = max((touched.get(x, -1) for x in inner), default=-1)
        heapq.heappush(heap, ((left[v] > 0) - freed, -recent, v))

    for v in values:
        if not waiting[v]:
            offer(v)
    order: list[int] = []
    done: set[int] = set()
    while heap:
        _, _, v = heapq.heappop(heap)
        if v in done:
            continue
        done.add(v)
        order.append(v)
        time = touched[v] = len(order)
        for x in operands[v]:
            if x not in members:
                continue
            left[x] -= 1
            touched[x] = time
            if left[x] <= LARGEST_FAN:
                for user in users[x]:
                    if not waiting[user] and user not in done:
                        offer(user)
        for user in users[v]:
            waiting[user] -= 1
            if not waiting[user]:
                offer(user)
    return order
