"""What a traced function costs: operations, and the longest chain of operations that wait for each other."""

from __future__ import annotations

from typing import NamedTuple

import casadi as ca

FREE = (ca.OP_INPUT, ca.OP_OUTPUT, ca.OP_CONST, ca.OP_PARAMETER)
"""Instructions that compute nothing."""


class Cost(NamedTuple):
    """Operations of a function, and its depth."""

    operations: int
    depth: int


def cost_of(function: ca.Function) -> Cost:
    """Return the cost of an SX function."""
    operations = deepest = 0
    levels: dict[int, int] = {}  # by work register, which later values use again
    for k in range(function.n_instructions()):
        kind = function.instruction_id(k)
        if kind == ca.OP_OUTPUT:
            continue
        (target,) = function.instruction_output(k)
        if kind in FREE:
            levels[target] = 0
            continue
        operations += 1
        levels[target] = 1 + max(levels[source] for source in function.instruction_input(k))
        deepest = max(deepest, levels[target])
    return Cost(operations, deepest)
