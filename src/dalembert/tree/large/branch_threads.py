"""One state of an open tree on several threads: branches side by side, the trunk between them on the caller's.

    trunk outward -> branches outward and inward -> trunk inward and back -> branches back

Threads meet twice a call; where springs act on bodies, once more, since all bodies must be placed before.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from dalembert.kernel.threads import Workers
from dalembert.tree.large.articulate import PLACE, ROOM
from dalembert.tree.large.branches import Branches
from dalembert.tree.large.lanes import padded
from dalembert.tree.large.passive import NO_FORCE
from dalembert.tree.large.sweeps import BACK, BEGIN, INWARD, OUTWARD, TAKE, forward
from dalembert.tree.large.tree import LargeTree

Array = np.ndarray


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
        given = tree.arguments(q, v, tau, NO_FORCE, out)
        if len(self.trunk_outward):
            forward(self.trunk_outward, mine.places[0], *rows, *given)
        if tree.passive.acts_on_bodies:
            self._share(self.outward, rows, given)
            given = tree.with_forces(given, v)
            self._share(self.inward, rows, given)
        else:
            self._share(self.both, rows, given)
        forward(self.trunk_back, mine.places[0], *rows, *given)
        self._share(self.back, rows, given)
        tree.memory.worst[:] = mine.worst[-1]
        return float(tree.memory.worst[0])

    def _share(self, tasks: list[Array], rows: tuple[Array, Array], given: tuple[Any, ...]) -> None:
        """Run the steps of all tasks on all threads."""
        places = self.memory.places  # the caller's: other threads would see their own

        def work(lane: int, steps: Array) -> None:
            forward(steps, places[lane], *rows, *given)

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
    own = [(begin, end, row) for begin, end, k in plan.trunk if k < 0]
    inward = [(TAKE, begin, k, row) if k >= 0 else (INWARD, begin, end, row) for begin, end, k in plan.trunk[::-1]]
    return np.array([*((OUTWARD, *x) for x in own), (BEGIN, 0, 0, row), *inward, *((BACK, *x) for x in own)])


def only(steps: Array, *which: int) -> Array:
    """Return the steps that are named."""
    return steps[np.isin(steps[:, 0], which)]
