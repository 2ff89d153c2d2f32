"""How an order of evaluation fares with few registers: values that must be stored, and loaded again.

Simulates the best possible replacement: of the values in registers, the one that is needed last goes (Belady 1966).
Compilers come close to it, so the order with the smaller count runs faster.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

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
