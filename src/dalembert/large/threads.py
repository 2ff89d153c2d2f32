"""One state on several threads: branches of a tree side by side."""

from __future__ import annotations

import heapq
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dalembert.kernel.engine import Workers
from dalembert.large.joints import PLACE, ROOM
from dalembert.large.large_tree import BACK, BEGIN, INWARD, OUTWARD, TAKE, LargeTree, forward
from dalembert.large.passive import NO_FORCE
from dalembert.large.simd4 import padded
from dalembert.types import Array

# ----------------------------------------------------------------------------------------------------------------------
# One state on several threads: which branches of a tree go to threads of their own. Integers only, made once.
#
# Bodies are numbered depth first, so a subtree is a range of them, and so are trees side by side on the ground. The
# *trunk* is what carries the branches; it is worked on by one thread, outward before them and inward after them. With n
# bodies, t of them trunk and the largest branch of s, p threads take about
#
#     t + max(s, (n - t) / p)        instead of n
#
# so branches are cut where the tree parts: the largest first, as long as that sum gets smaller.


FEWEST = 10_000
"""Bodies below which a state is not split: two hand-overs to threads cost some 0.1 ms. On two cores 10,000 bodies are
1.3 times as fast, 7,000 some 1.2, 5,000 not at all."""

LEAST_GAIN = 1.2
"""What a split must promise, in bodies: caches, memory and hand-overs take their share of it."""

SMALLEST = 32
"""Bodies of a branch that is not left in the trunk; what it hands over is as much memory as half a body."""

FINE = 8
"""Branches for each thread, where the tree parts often enough, so that they can be shared out evenly."""

PIECES = 2
"""Tasks for each thread: whoever is late has less to catch up with. More tasks gain less: each costs some 10 µs."""

OVERHANG = 0.1
"""Part of the largest branch that is counted as waited for."""

MOST_CUTS = 10_000


@dataclass(frozen=True, eq=False)
class Branches:
    """A tree cut for a number of threads.

    Attributes
    ----------
    ranges : (b, 2)
        First body of each branch and the one behind its last, in the order of bodies.
    tasks
        Pairs: first branch of a task and the one behind its last; the largest task first.
    trunk : (k, 3)
        Ranges of bodies in their order: begin, end, and which branch it is, -1 for the trunk's own.
    gain
        Bodies over those that the busiest thread works on, the trunk's included.
    words
        What `report` says.
    """

    ranges: Array
    tasks: tuple[tuple[int, int], ...]
    trunk: Array
    gain: float
    words: str

    @property
    def pays(self) -> bool:
        """Whether it is worth it."""
        return len(self.tasks) > 1

    @classmethod
    def of(cls, parent: Array, threads: int, fewest: int = FEWEST) -> Branches:
        """Cut a tree for some threads; trees of fewer bodies than `fewest` are left whole."""
        n = len(parent)
        if n < fewest:
            return whole(n, f"{n} bodies, and below {fewest} handing over to threads takes longer than it saves")
        ranges = cut(parent, threads)
        if len(ranges) == 1:
            chain = np.array_equal(parent, np.arange(-1, n - 1))
            return whole(n, "it is one chain" if chain else f"it has no two branches of {SMALLEST} bodies or more")
        trunk_bodies = n - sum(end - begin for begin, end in ranges)
        tasks = grouped(ranges, PIECES * threads)
        gain = n / (trunk_bodies + makespan([bodies for bodies, _, _ in tasks], threads))
        if gain < LEAST_GAIN:
            return whole(n, f"its branches on {threads} threads would make it {gain:.2f} times as fast at best", gain)
        trunk = f"carried by {trunk_bodies} of {n} bodies" if trunk_bodies else "side by side on the ground"
        words = f"one state: {len(ranges)} branches on {threads} threads, {trunk}"
        return cls(np.array(ranges), tuple((first, last) for _, first, last in tasks), items(ranges, n), gain, words)


def whole(n: int, why: str, gain: float = 1.0) -> Branches:
    """Return a tree that is not cut."""
    return Branches(np.array([[0, n]]), ((0, 1),), np.array([[0, n, 0]]), gain, f"one state is not split: {why}")


def cut(parent: Array, threads: int) -> list[tuple[int, int]]:
    """Return the ranges of all branches: the largest is cut again and again, the best of all stages is taken."""
    n, size = len(parent), sizes(parent)
    small = n // (FINE * threads)
    start = forests(size, small)
    largest_first = [(begin - end, begin) for begin, end in start]
    heapq.heapify(largest_first)
    cuts: list[tuple[int, list[int]]] = []
    trunk, uncut = 0, 0  # bodies of the trunk; of the largest branch that cannot be cut
    best, count = np.inf, 0
    while True:
        largest = max(uncut, -largest_first[0][0] if largest_first else 0)
        cost = trunk + max(largest, (n - trunk) / threads) + OVERHANG * largest
        if cost < best:
            best, count = cost, len(cuts)
        if not largest_first or -largest_first[0][0] <= small or len(cuts) == MOST_CUTS:
            break
        bodies, begin = heapq.heappop(largest_first)
        parts = parting(begin, size)
        if not parts:
            uncut = max(uncut, -bodies)
            continue
        cuts.append((begin, parts))
        trunk += -bodies - sum(size[c] for c in parts)
        for c in parts:
            heapq.heappush(largest_first, (-size[c], c))
    return sorted(remaining(start, dict(cuts[:count]), size))


def sizes(parent: Array) -> list[int]:
    """Return the number of bodies of every subtree."""
    size, up = [1] * len(parent), parent.tolist()
    for i in range(len(up) - 1, 0, -1):
        if up[i] >= 0:
            size[up[i]] += size[i]
    return size


def forests(size: list[int], most: int) -> list[tuple[int, int]]:
    """Return the trees on the ground as ranges, small neighbours together as far as `most` bodies."""
    spans: list[tuple[int, int]] = []
    i = 0
    while i < len(size):
        end = i + size[i]
        if spans and end - spans[-1][0] <= most:
            spans[-1] = (spans[-1][0], end)
        else:
            spans.append((i, end))
        i = end
    return spans


def parting(i: int, size: list[int]) -> list[int]:
    """Return the roots of the branches into which the subtree of body i parts first; none where it is one chain."""
    while True:
        parts = [c for c in children(i, size) if size[c] >= SMALLEST]
        if len(parts) != 1:
            return parts
        i = parts[0]


def children(i: int, size: list[int]) -> Iterator[int]:
    """Yield the children of body i."""
    c = i + 1
    while c < i + size[i]:
        yield c
        c += size[c]


def remaining(start: list[tuple[int, int]], cuts: dict[int, list[int]], size: list[int]) -> Iterator[tuple[int, int]]:
    """Yield the ranges that are left of `start` when subtrees are cut into the parts that `cuts` names."""
    waiting = list(start)
    while waiting:
        begin, end = waiting.pop()
        if begin in cuts:
            waiting += [(c, c + size[c]) for c in cuts[begin]]
        else:
            yield begin, end


def grouped(ranges: list[tuple[int, int]], count: int) -> list[tuple[int, int, int]]:
    """Return at most `count` tasks, neighbours together, the largest first: bodies, first branch, one behind the last.

    Where all branches are lined up, a branch belongs to the task in whose part of the line its middle is.
    """
    size = np.array([end - begin for begin, end in ranges])
    ends = np.cumsum(size)
    task = (count * (2 * ends - size)) // (2 * ends[-1])
    first = np.flatnonzero(np.diff(task, prepend=-1))
    bodies = np.add.reduceat(size, first)
    return sorted(zip(bodies.tolist(), first.tolist(), [*first[1:].tolist(), len(size)], strict=True), reverse=True)


def makespan(tasks: list[int], threads: int) -> int:
    """Return how much the busiest thread has to do if the one that is free takes the next task."""
    busy = [0] * threads
    for task in tasks:
        heapq.heapreplace(busy, busy[0] + task)
    return max(busy)


def items(ranges: list[tuple[int, int]], n: int) -> Array:
    """Return trunk and branches in the order of bodies: begin, end, number of the branch or -1."""
    spans, i = [], 0
    for k, (begin, end) in enumerate(ranges):
        if i < begin:
            spans.append((i, begin, -1))
        spans.append((begin, end, k))
        i = end
    return np.array(spans + ([(i, n, -1)] if i < n else []))


# ----------------------------------------------------------------------------------------------------------------------
# One state of an open tree on several threads: branches side by side, the trunk between them on the caller's.
#
#     trunk outward -> branches outward and inward -> trunk inward and back -> branches back
#
# Threads meet twice a call; where springs act on bodies, once more, since all bodies must be placed before.


class BranchMemory(threading.local):
    """What the threads of one caller do not share: gathering places; and what branches hand to the trunk."""

    def __init__(self, slots: int, branches: int, threads: int) -> None:
        self.places = [padded(max(slots, 1), PLACE) for _ in range(threads)]
        self.handed, self.worst = padded(branches + 1, ROOM), np.zeros((branches + 1, 2))  # the trunk's last


class BranchedTree:
    """Forward dynamics of one state by branches; answers are those of `LargeTree.forward`, to the bit."""

    def __init__(self, tree: LargeTree, plan: Branches, threads: int) -> None:
        self.tree, self.workers = tree, Workers(threads)
        self.memory = BranchMemory(tree.layout.slots, len(plan.ranges), threads)
        trunk, branches = of_trunk(plan), [of_branches(plan.ranges, *task) for task in plan.tasks]
        self.trunk_outward, self.trunk_back = only(trunk, OUTWARD), only(trunk, BEGIN, INWARD, TAKE, BACK)
        self.outward, self.inward, self.both, self.back = (
            [only(task, *steps) for task in branches]
            for steps in ((OUTWARD,), (BEGIN, INWARD), (OUTWARD, BEGIN, INWARD), (BACK,))
        )

    @property
    def bytes(self) -> int:
        """Size of what one caller needs beside the tree's own memory."""
        return sum(x.nbytes for x in (*self.memory.places, self.memory.handed, self.memory.worst))

    def forward(self, q: Array, v: Array, tau: Array, out: Array) -> float:
        """Fill out (nv,) with accelerations; return the least relative pivot."""
        tree, mine = self.tree, self.memory
        rows = mine.handed, mine.worst
        arguments = tree.arguments(q, v, tau, NO_FORCE, out)
        if len(self.trunk_outward):
            forward(self.trunk_outward, mine.places[0], *rows, *arguments)
        if tree.passive.acts_on_bodies:
            self._share(self.outward, rows, arguments)
            arguments = tree.with_forces(arguments, v)
            self._share(self.inward, rows, arguments)
        else:
            self._share(self.both, rows, arguments)
        forward(self.trunk_back, mine.places[0], *rows, *arguments)
        self._share(self.back, rows, arguments)
        tree.memory.worst[:] = mine.worst[-1]
        return float(tree.memory.worst[0])

    def _share(self, tasks: list[Array], rows: tuple[Array, Array], arguments: tuple[Any, ...]) -> None:
        """Run the steps of all tasks on all threads."""
        places = self.memory.places  # the caller's: other threads would see their own

        def work(lane: int, steps: Array) -> None:
            forward(steps, places[lane], *rows, *arguments)

        self.workers.take_turns(work, tasks)


def of_branches(ranges: Array, first: int, last: int) -> Array:
    """Return the steps of a task: its branches, one after the other."""
    steps = []
    for k in range(first, last):
        begin, end = ranges[k]
        steps += [(OUTWARD, begin, end, k), (BEGIN, begin, end, k), (INWARD, begin, end, k), (BACK, begin, end, k)]
    return np.array(steps)


def of_trunk(plan: Branches) -> Array:
    """Return the steps of the trunk, whose row is behind those of the branches."""
    row = len(plan.ranges)
    pieces = [(begin, end, row) for begin, end, k in plan.trunk if k < 0]
    inward = [(TAKE, begin, k, row) if k >= 0 else (INWARD, begin, end, row) for begin, end, k in plan.trunk[::-1]]
    return np.array([*((OUTWARD, *x) for x in pieces), (BEGIN, 0, 0, row), *inward, *((BACK, *x) for x in pieces)])


def only(steps: Array, *which: int) -> Array:
    """Return the steps that are named."""
    return steps[np.isin(steps[:, 0], which)]
