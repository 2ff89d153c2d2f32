"""A long program in pieces of a few thousand operations, so that compile time grows linearly.

A value that is needed after its chunk passes through a slot of a scratch block; slots are reused. A chunk
ends, within a window, where the fewest values are alive.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dalembert.kernel.program import LEAF_CODES, Program
from dalembert.kernel.schedule import last_uses, live_values

CHUNK_SIZE = 4000  # operations; compile time per operation grows by a quarter from 4000 to 16000
WIDE, WIDE_CHUNK_SIZE = 1000, 200  # values alive at once from which on registers are hard to assign; chunks are short
WINDOW = 0.25  # a chunk may be this much shorter or longer to end at a narrow place


@dataclass(frozen=True)
class Chunks:
    """Where a program is cut, and which values cross the cuts.

    Attributes
    ----------
    bounds
        Chunk k is the instructions `bounds[k]:bounds[k + 1]`; leaves lie before `bounds[0]`.
    slot : dict
        Place in the scratch block of each value that a later chunk uses.
    slots
        Size of the scratch block, in values.
    """

    bounds: tuple[int, ...]
    slot: dict[int, int]
    slots: int

    def __len__(self) -> int:
        return len(self.bounds) - 1


def split(program: Program, size: int | None = None) -> Chunks:
    """Cut a scheduled program (leaves first) into chunks of about `size` operations; by default what compiles well."""
    first = int(np.count_nonzero(np.isin(program.op, LEAF_CODES)))
    live = live_values(program)
    if size is None:
        size = WIDE_CHUNK_SIZE if int(live.max(initial=0)) > WIDE else CHUNK_SIZE
    bounds = [first]
    slack = int(size * WINDOW)
    while len(program) - bounds[-1] > size + slack:
        low = bounds[-1] + size - slack
        bounds.append(low + int(np.argmin(live[low - 1 : low + 2 * slack])))
    if len(program) > first or len(bounds) > 1:
        bounds.append(len(program))
    slot, slots = _assign_slots(program, bounds)
    return Chunks(tuple(bounds), slot, slots)


def _assign_slots(program: Program, bounds: list[int]) -> tuple[dict[int, int], int]:
    """Give each value that leaves its chunk a slot; a slot is free again after the last chunk that reads it."""
    chunk_of = np.searchsorted(bounds, np.arange(len(program)), side="right") - 1
    last = chunk_of[last_uses(program)]
    crossing = np.flatnonzero((last > chunk_of) & (chunk_of >= 0))
    slot: dict[int, int] = {}
    free: list[int] = []
    release: list[list[int]] = [[] for _ in range(len(bounds) + 1)]
    slots = 0
    now = 0
    for value in crossing.tolist():
        while now < chunk_of[value]:
            free.extend(release[now])
            now += 1
        if free:
            slot[value] = free.pop()
        else:
            slot[value] = slots
            slots += 1
        release[last[value]].append(slot[value])
    return slot, slots
