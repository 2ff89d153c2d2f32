"""The order of evaluation: few values alive at a time, few moved to memory and back."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from dalembert.kernel.program.program import ELEMENTARY, LEAF_CODES, LEAVES, Op, Program

# ----------------------------------------------------------------------------------------------------------------------
# The cost of an order of evaluation with few registers: values that must be stored, and loaded again.
#
# Simulates the best possible replacement: of the values in registers, the one that is needed last goes (Belady 1966).
# Compilers come close to it, so the order with the smaller count runs faster.


REGISTERS = 28  # vector registers that hold values; the rest is busy with constants and operands
NEVER = 1 << 60


def traffic(order: Sequence[int], operands: Sequence[tuple[int, ...]], registers: int = REGISTERS) -> int:
    """Return stores plus loads of values computed in `order`.

    Parameters
    ----------
    order
        Values in the order in which they are computed.
    operands
        For every value the values it needs; those not in `order` are in memory from the start.
    registers
        How many values fit.
    """
    uses: dict[int, list[int]] = {}
    for place in range(len(order) - 1, -1, -1):
        for x in operands[order[place]]:
            uses.setdefault(x, []).append(place)
    inside: dict[int, int] = {}  # value in a register -> its next use
    stored: set[int] = set()
    computed: set[int] = set()
    heap: list[tuple[int, int]] = []
    moves = 0

    def hold(x: int) -> None:
        pending = uses.get(x)
        inside[x] = pending[-1] if pending else NEVER
        heapq.heappush(heap, (-inside[x], x))

    for value in order:
        needed = operands[value]
        for x in needed:
            if x not in inside:
                moves += 1
            if uses[x]:
                uses[x].pop()
        for x in needed:
            if uses[x]:
                hold(x)
            else:
                inside.pop(x, None)
        if uses.get(value):
            computed.add(value)
            hold(value)
        while len(inside) > registers:
            next_use, x = heapq.heappop(heap)
            if inside.get(x) == -next_use:
                del inside[x]
                if x in computed and x not in stored:
                    moves += 1
                    stored.add(x)
    return moves


# ----------------------------------------------------------------------------------------------------------------------
# An order of evaluation by the nearest gain: of the operations that can be done next, the one that frees most values.
#
# Ties go to the operation whose operands were touched last, which are likely to be in registers still. Against
# depth-first order it does better on wide graphs whose values are shared (trees of bodies), worse on narrow ones.


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
    users_left = {v: len(users[v]) for v in values}
    touched: dict[int, int] = {}
    heap: list[tuple[int, int, int]] = []

    def offer(v: int) -> None:
        inner = [x for x in operands[v] if x in members]
        freed = sum(users_left[x] == 1 for x in inner)
        recent = max((touched.get(x, -1) for x in inner), default=-1)
        heapq.heappush(heap, ((users_left[v] > 0) - freed, -recent, v))

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
            users_left[x] -= 1
            touched[x] = time
            if users_left[x] <= LARGEST_FAN:
                for user in users[x]:
                    if not waiting[user] and user not in done:
                        offer(user)
        for user in users[v]:
            waiting[user] -= 1
            if not waiting[user]:
                offer(user)
    return order


# ----------------------------------------------------------------------------------------------------------------------
# The order of evaluation: few values alive at a time.
#
# Depth first: each output is computed right after what only it needs; of two operands the one that needs more registers
# comes first (Sethi & Ullman 1970, exact for trees, a good rule for graphs). Elementary functions are calls that
# clobber registers, so they are grouped: all of one level (functions of inputs, then functions of those, ...) stand
# together. Between two groups of calls the `greedy` order is taken where it moves fewer values to memory and back
# (`traffic`).


def schedule(program: Program, registers: int = REGISTERS) -> Program:
    """Return the program reordered for a number of registers: constants and inputs, then operations."""
    op, a, b, c = program.operands()
    order: list[int] = np.flatnonzero(np.isin(program.op, LEAF_CODES)).tolist()
    operands = [tuple({x for x in row if x >= 0 and op[x] != Op.CONST}) for row in zip(a, b, c, strict=True)]
    for calls, segment in _segments(depth_first(program), op):
        better = segment
        if not calls and len(segment) > REGISTERS:
            other = greedy(segment, operands)
            better = min(segment, other, key=lambda candidate: traffic(candidate, operands, registers))
        order += better
    return program.select(np.array(order, np.int64))


def depth_first(program: Program) -> list[int]:
    """Return the operations depth first, elementary functions of one level together."""
    op, a, b, c = program.operands()
    need = _registers(op, a, b, c)
    level = _levels(op, a, b, c)
    done = bytearray(code in LEAVES for code in op)
    order: list[int] = []
    groups: list[list[int]] = [[] for _ in range(max(level, default=0) + 1)]
    for i, code in enumerate(op):
        if code in ELEMENTARY:
            groups[level[i]].append(i)

    def visit(root: int) -> None:
        stack = [root]
        while stack:
            i = stack[-1]
            if done[i]:
                stack.pop()
                continue
            pending = [x for x in (a[i], b[i], c[i]) if x >= 0 and not done[x]]
            if pending:
                stack.extend(sorted(pending, key=need.__getitem__))
            else:
                done[i] = 1
                order.append(i)
                stack.pop()

    for group in groups[1:]:
        for i in group:
            for operand in (a[i], b[i]):
                if operand >= 0:
                    visit(operand)
        for i in sorted(group, key=a.__getitem__):  # sin x and cos x side by side
            visit(i)
    for value in program.result_value.tolist():
        visit(value)
    return order


def _segments(order: list[int], op: list[int]) -> Iterator[tuple[bool, list[int]]]:
    """Yield runs of calls and of other operations: whether they are calls, and their values."""
    for calls, run in itertools.groupby(order, key=lambda i: op[i] in ELEMENTARY):
        yield calls, list(run)


def _registers(op: list[int], a: list[int], b: list[int], c: list[int]) -> list[int]:
    """Return the Sethi-Ullman number of each value: registers needed to compute it as a tree."""
    need = [0] * len(op)
    for i in range(len(op)):
        below = sorted((need[x] for x in (a[i], b[i], c[i]) if x >= 0), reverse=True)
        need[i] = max([1, *(n + place for place, n in enumerate(below))])
    return need


def _levels(op: list[int], a: list[int], b: list[int], c: list[int]) -> list[int]:
    """Return how many elementary functions lie on the longest way to each value, itself included."""
    level = [0] * len(op)
    for i, code in enumerate(op):
        below = max((level[x] for x in (a[i], b[i], c[i]) if x >= 0), default=0)
        level[i] = below + (code in ELEMENTARY)
    return level


def last_uses(program: Program) -> NDArray[np.int64]:
    """Return the last instruction that uses each value; the value's own index where none does."""
    last = np.arange(len(program))
    at = np.arange(len(program))
    for column in program.operands()[1:]:
        operand = np.array(column, np.int64)
        used = operand >= 0
        np.maximum.at(last, operand[used], at[used])
    return last


def live_values(program: Program) -> NDArray[np.int64]:
    """Return how many computed values are alive after each instruction; constants and inputs do not count."""
    change = np.zeros(len(program) + 1, np.int64)
    computed = np.flatnonzero(~np.isin(program.op, LEAF_CODES))
    change[computed] += 1
    np.add.at(change, last_uses(program)[computed], -1)
    return np.cumsum(change[:-1])


def most_alive(program: Program) -> int:
    """Return the largest number of computed values alive at once, the one being computed included."""
    live = live_values(program)
    computed = ~np.isin(program.op, LEAF_CODES)
    return int((np.concatenate([[0], live[:-1]]) + computed).max(initial=0)) if len(program) else 0
