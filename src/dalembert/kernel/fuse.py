"""Fused multiply-add, decided once for every target.

Leaving contraction to a compiler lets scalar and vector code round differently. Here a product that is used
once, by an addition or subtraction, becomes one `fma`; backends print it as such, so a sample's result does
not depend on the width of the vector it was computed in.
"""

from __future__ import annotations

import numpy as np

from dalembert.kernel.operations import Op
from dalembert.kernel.optimise import remove_dead
from dalembert.kernel.program import Program


def fuse(program: Program) -> Program:
    """Return the program with a b + c, a b - c and c - a b as single operations, rounded once."""
    op, a, b, c = program.operands()
    uses = count_uses(program)
    new_a, new_b = program.a.tolist(), program.b.tolist()
    for i, code in enumerate(op):
        if code not in (Op.ADD, Op.SUB):
            continue
        x, y = a[i], b[i]
        if op[y] == Op.MUL and uses[y] == 1:
            op[i] = Op.FMA if code == Op.ADD else Op.FNMA
            product, rest = y, x
        elif op[x] == Op.MUL and uses[x] == 1:
            op[i] = Op.FMA if code == Op.ADD else Op.FMS
            product, rest = x, y
        else:
            continue
        new_a[i], new_b[i], c[i] = a[product], b[product], rest
    fused = program.replace(op, new_a, new_b, c, program.value.tolist(), program.result_value.tolist())
    return remove_dead(fused)


def count_uses(program: Program) -> list[int]:
    """Return how often each value is an operand or a result."""
    operands = [np.array(column, np.int64) for column in program.operands()[1:]]
    used = np.concatenate([column[column >= 0] for column in operands] + [program.result_value])
    return np.bincount(used, minlength=len(program)).tolist()
