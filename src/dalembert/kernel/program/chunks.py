"""Long programs in chunks of a few thousand operations, and the values that pass between them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from dalembert.kernel.program.order import REGISTERS, greedy, last_uses, live_values, traffic
from dalembert.kernel.program.program import ELEMENTARY, LEAF_CODES, Op, Program

# ----------------------------------------------------------------------------------------------------------------------
# A long program in pieces of a few thousand operations, so that compile time grows linearly.
#
# A value that is needed after its chunk passes through a slot of a scratch block; slots are reused. A chunk
# ends, within a window, where the fewest values are alive.


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


# ----------------------------------------------------------------------------------------------------------------------
# Values between the parts of a program: stored, or computed again, whichever is cheaper.
#
# A value that a later part needs can be stored and read back, or be computed again there from inputs and from values
# that are stored. On a GPU a value costs as much to store and read as dozens of operations, and much of what crosses a
# cut is a few operations away from something smaller. The cheapest choice for one part is a minimum cut of a network in
# which every value has a node "needed" and a node "computed again" (project selection; Rhys 1970, Picard 1976):
#
#     needed v  -> again v        capacity: the price of storing v and of reading it
#     again v   -> sink           capacity: the price of its operation
#     again v   -> needed x       infinite, for every operand x that is no input and no constant
#     source    -> needed r       infinite, for every value r of an earlier part that this part uses
#
# Cut edges are what is paid. Parts are looked at in order; what an earlier one stored costs a later one a read only.


PRICE = {**dict.fromkeys(ELEMENTARY, 20), Op.DIV: 4, Op.SQRT: 8}  # in operations; all else 1
INFINITE = 1 << 28


@dataclass(frozen=True)
class ChunkPlan:
    """What each part computes, in order (its own values, and those it computes again), and what passes between them."""

    chunks: Chunks
    orders: tuple[tuple[int, ...], ...]


def plan(program: Program, chunks: Chunks, price: int, registers: int = REGISTERS) -> ChunkPlan:
    """Return what to store and what to compute again, where a value stored or read costs `price` operations.

    `registers` is how many values the target holds; it decides the order inside a part that computes values again.
    """
    _, *columns = program.operands()
    operands = [tuple(x for x in row if x >= chunks.bounds[0]) for row in zip(*columns, strict=True)]
    stored: dict[int, int] = {}  # value -> last part that reads it
    orders: list[tuple[int, ...]] = []
    for k in range(len(chunks)):
        values = range(chunks.bounds[k], chunks.bounds[k + 1])
        roots = {x for i in values for x in operands[i] if x < values.start}
        again: set[int] = set()
        if roots and price:
            again, read = _cut(program, operands, roots, stored, price)
        else:
            read = roots
        stored |= dict.fromkeys(read, k)
        orders.append(tuple(_order(program, values, again, operands, registers) if again else values))
    return ChunkPlan(_with_slots(chunks, stored), tuple(orders))


def _cut(
    program: Program, operands: Sequence[tuple[int, ...]], roots: set[int], stored: Iterable[int], price: int
) -> tuple[set[int], set[int]]:
    """Return the values that one part computes again, and those that it reads."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import breadth_first_order, maximum_flow

    known = set(stored)
    values = sorted(_ancestors(roots, operands))
    place = {value: j for j, value in enumerate(values)}
    n = len(values)
    source, sink = 2 * n, 2 * n + 1
    edges = [(source, place[value], INFINITE) for value in roots]
    for value, j in place.items():
        edges.append((j, n + j, price if value in known else 2 * price))
        edges.append((n + j, sink, PRICE.get(program.op[value], 1)))
        edges += [(n + j, place[x], INFINITE) for x in set(operands[value])]
    start, end, capacity = (np.array(column, np.int32) for column in zip(*edges, strict=True))
    network = csr_array((capacity, (start, end)), shape=(2 * n + 2, 2 * n + 2))
    rest = csr_array(network - maximum_flow(network, source, sink).flow)
    rest.data = np.where(rest.data > 0, 1, 0)
    rest.eliminate_zeros()
    reached = set(breadth_first_order(rest, source, return_predecessors=False).tolist())
    needed = {value for value, j in place.items() if j in reached}
    again = {value for value in needed if n + place[value] in reached}
    return again, needed - again


def _ancestors(roots: Iterable[int], operands: Sequence[tuple[int, ...]]) -> set[int]:
    """Return the roots and all they are computed from."""
    ancestors: set[int] = set()
    stack = list(roots)
    while stack:
        value = stack.pop()
        if value not in ancestors:
            ancestors.add(value)
            stack += operands[value]
    return ancestors


def _order(
    program: Program, own: range, again: set[int], operands: Sequence[tuple[int, ...]], registers: int
) -> list[int]:
    """Return a part's values: elementary functions first, the rest just before it is needed, or greedily."""
    order: list[int] = []
    pending = set(again)
    visit = _visitor(order, pending, operands)
    for value in sorted(x for x in again if program.op[x] in ELEMENTARY):
        visit(value)
    calls = list(order)
    order.clear()
    for value in own:
        for x in operands[value]:
            visit(x)
        order.append(value)
    return calls + min(order, greedy(order, operands), key=lambda rest: traffic(rest, operands, registers))


def _visitor(order: list[int], pending: set[int], operands: Sequence[tuple[int, ...]]) -> Callable[[int], None]:
    """Return a function that appends a pending value to `order`, after what it needs."""

    def visit(root: int) -> None:
        stack = [root]
        while stack:
            value = stack[-1]
            before = [x for x in operands[value] if x in pending and x != value] if value in pending else []
            if before:
                stack += before
                continue
            stack.pop()
            if value in pending:
                pending.remove(value)
                order.append(value)

    return visit


def _with_slots(chunks: Chunks, stored: dict[int, int]) -> Chunks:
    """Give stored values slots; one is free again after the last part that reads its value."""
    part_of = np.searchsorted(chunks.bounds, np.arange(chunks.bounds[-1] if stored else 0), side="right") - 1
    slot: dict[int, int] = {}
    free: list[int] = []
    release: list[list[int]] = [[] for _ in range(len(chunks) + 1)]
    slots, now = 0, 0
    for value in sorted(stored):
        while now < part_of[value]:
            free += release[now]
            now += 1
        if not free:
            free.append(slots)
            slots += 1
        slot[value] = free.pop()
        release[stored[value]].append(slot[value])
    return Chunks(chunks.bounds, slot, slots)
