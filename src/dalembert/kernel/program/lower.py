"""From a CasADi function to a program ready to print: all passes, and what they achieved.

Constant folding, common subexpressions, dead code, fused multiply-add, order.
"""

from __future__ import annotations

import math
import struct
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dalembert.kernel.program.columns import ColumnFunction, ColumnPart, ColumnProgram, divide, unrolled
from dalembert.kernel.program.order import REGISTERS, most_alive, schedule
from dalembert.kernel.program.program import COMMUTATIVE, Op, Program
from dalembert.kernel.program.trace import trace

# ----------------------------------------------------------------------------------------------------------------------
# Constants folded, duplicates and dead code removed; nothing that changes a rounded result.
#
# Only identities that hold for every IEEE 754 number, signed zeros and infinities included, are used (the sign
# of a NaN may change): x + (-y) = x - y, x * 1 = x, x / 2^k = x * 2^-k. So x * 0, x - x and x + 0 stay. The one
# exception is a power with a small constant integer exponent, which becomes multiplications (error at most 1.5
# ulp).


# Folding is exact where IEEE 754 defines the result; elementary functions are left to the backend.
FOLDED: dict[int, Callable[..., float]] = {
    Op.ADD: lambda x, y: x + y,
    Op.SUB: lambda x, y: x - y,
    Op.MUL: lambda x, y: x * y,
    Op.DIV: lambda x, y: float(np.divide(x, y)),
    Op.NEG: lambda x: -x,
    Op.SQRT: lambda x: float(np.sqrt(x)),
    Op.FABS: math.fabs,
    Op.FLOOR: lambda x: float(np.floor(x)),
    Op.CEIL: lambda x: float(np.ceil(x)),
    Op.LT: lambda x, y: float(x < y),
    Op.LE: lambda x, y: float(x <= y),
    Op.EQ: lambda x, y: float(x == y),
    Op.NE: lambda x, y: float(x != y),
    Op.NOT: lambda x: float(x == 0),
    Op.AND: lambda x, y: float(x != 0 and y != 0),
    Op.OR: lambda x, y: float(x != 0 or y != 0),
    Op.COPYSIGN: math.copysign,
}
LARGEST_EXPONENT = 4  # x^4 by multiplication is within 1.5 ulp of the power


def optimise(program: Program) -> Program:
    """Return an equivalent program without duplicates, constant operations and dead code."""
    numbering = _Numbering()
    result = numbering.run(program)
    merged = program.replace(numbering.op, numbering.a, numbering.b, [-1] * len(numbering.op), numbering.value, result)
    return remove_dead(merged)


def remove_dead(program: Program) -> Program:
    """Return the program without instructions that no output needs."""
    op, a, b, c = program.operands()
    needed = bytearray(len(op))
    for value in program.result_value.tolist():
        needed[value] = 1
    for i in range(len(op) - 1, -1, -1):
        if needed[i]:
            for operand in (a[i], b[i], c[i]):
                if operand >= 0:
                    needed[operand] = 1
    return program.select(np.flatnonzero(np.frombuffer(needed, np.uint8)))


class _Numbering:
    """Value numbering: every distinct (operation, operands) is emitted once."""

    def __init__(self) -> None:
        self.op: list[int] = []
        self.a: list[int] = []
        self.b: list[int] = []
        self.value: list[float] = []
        self.known: dict[tuple[int, int, int] | bytes, int] = {}

    def run(self, program: Program) -> list[int]:
        """Give every value of a program its number; return those of its results."""
        new: list[int] = []
        rows = zip(program.op.tolist(), program.a.tolist(), program.b.tolist(), program.value.tolist(), strict=True)
        with np.errstate(all="ignore"):
            for op, a, b, value in rows:
                if op == Op.CONST:
                    new.append(self.constant(value))
                elif op == Op.INPUT:
                    new.append(self.emit(op, a, b))
                else:
                    new.append(self.number(op, new[a], new[b] if b >= 0 else -1))
        return [new[value] for value in program.result_value.tolist()]

    def emit(self, op: int, a: int, b: int) -> int:
        """Return the value of this operation, new or known."""
        key = (op, a, b)
        number = self.known.get(key)
        if number is None:
            number = self.known[key] = len(self.op)
            self.append(op, a, b, 0.0)
        return number

    def constant(self, value: float) -> int:
        """Return the constant `value`; -0.0 and 0.0 are two constants."""
        key = struct.pack("d", value)
        number = self.known.get(key)
        if number is None:
            number = self.known[key] = len(self.op)
            self.append(Op.CONST, -1, -1, value)
        return number

    def append(self, op: int, a: int, b: int, value: float) -> None:
        """Append one instruction."""
        self.op.append(op)
        self.a.append(a)
        self.b.append(b)
        self.value.append(value)

    def is_constant(self, x: int) -> bool:
        """Say whether value x is a constant."""
        return self.op[x] == Op.CONST

    def number(self, op: int, x: int, y: int) -> int:
        """Return the value of an operation, simplified where that is exact."""
        if self.is_constant(x) and (y < 0 or self.is_constant(y)) and op in FOLDED:
            values = (self.value[x],) if y < 0 else (self.value[x], self.value[y])
            return self.constant(FOLDED[op](*values))
        rule = RULES.get(op)
        simple = rule(self, x, y) if rule else None
        if simple is not None:
            return simple
        if y >= 0 and x > y and op in COMMUTATIVE:
            x, y = y, x
        return self.emit(op, x, y)


def _neg(n: _Numbering, x: int, _: int) -> int | None:
    return n.a[x] if n.op[x] == Op.NEG else None


def _add(n: _Numbering, x: int, y: int) -> int | None:
    if n.op[y] == Op.NEG:
        return n.number(Op.SUB, x, n.a[y])
    if n.op[x] == Op.NEG:
        return n.number(Op.SUB, y, n.a[x])
    return None


def _sub(n: _Numbering, x: int, y: int) -> int | None:
    if n.op[y] == Op.NEG:
        return n.number(Op.ADD, x, n.a[y])
    zero = n.is_constant(y) and n.value[y] == 0.0 and math.copysign(1.0, n.value[y]) > 0
    return x if zero else None


def _mul(n: _Numbering, x: int, y: int) -> int | None:
    if n.op[x] == Op.NEG and n.op[y] == Op.NEG:
        return n.number(Op.MUL, n.a[x], n.a[y])
    for factor, other in ((x, y), (y, x)):
        if n.is_constant(factor) and abs(n.value[factor]) == 1.0:
            return other if n.value[factor] > 0 else n.number(Op.NEG, other, -1)
    return None


def _div(n: _Numbering, x: int, y: int) -> int | None:
    if not n.is_constant(y) or n.value[y] == 0.0 or not math.isfinite(n.value[y]):
        return None
    mantissa, exponent = math.frexp(n.value[y])
    if abs(mantissa) == 0.5 and abs(exponent) < 1000:
        return n.number(Op.MUL, x, n.constant(1.0 / n.value[y]))
    return None


def _pow(n: _Numbering, x: int, y: int) -> int | None:
    if not n.is_constant(y) or n.value[y] not in range(-LARGEST_EXPONENT, LARGEST_EXPONENT + 1):
        return None
    exponent = int(n.value[y])
    if exponent == 0:
        return n.constant(1.0)
    power = x
    if abs(exponent) > 1:
        power = n.number(Op.MUL, x, x)
    if abs(exponent) > 2:
        power = n.number(Op.MUL, power, power if abs(exponent) == 4 else x)
    return power if exponent > 0 else n.number(Op.DIV, n.constant(1.0), power)


RULES: dict[int, Callable[[_Numbering, int, int], int | None]] = {
    Op.NEG: _neg,
    Op.ADD: _add,
    Op.SUB: _sub,
    Op.MUL: _mul,
    Op.DIV: _div,
    Op.POW: _pow,
}


# ----------------------------------------------------------------------------------------------------------------------
# Fused multiply-add, decided once for every target.
#
# Leaving contraction to a compiler lets scalar and vector code round differently. Here a product that is used
# once, by an addition or subtraction, becomes one `fma`; backends print it as such, so a sample's result does
# not depend on the width of the vector it was computed in.


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


# ----------------------------------------------------------------------------------------------------------------------
# All passes, one after the other.


@dataclass(frozen=True)
class Lowering:
    """A program and its history.

    Attributes
    ----------
    program
        Optimised, fused, scheduled: constants and inputs first.
    traced
        Operations before any pass.
    live_before, live_after
        Largest number of values alive at once, in CasADi's order and in the final one.
    seconds
        Time of all passes.
    """

    program: Program
    traced: int
    live_before: int
    live_after: int
    seconds: float

    def figures(self) -> dict[str, Any]:
        """Return the numbers that a kernel reports, by the names of `KernelReport`."""
        return {
            "operations": self.program.count(),
            "traced_operations": self.traced,
            "live_before": self.live_before,
            "live_after": self.live_after,
            "lower_seconds": self.seconds,
        }


def lower(function: Any, registers: int = REGISTERS) -> Lowering:
    """Trace a CasADi function and run every pass: `schedule(fuse(optimise(trace(function))))`.

    `registers` is how many values the target holds without memory; it decides the order. The columns of a
    `ColumnFunction` are written out.
    """
    start = time.perf_counter()
    if isinstance(function, ColumnFunction):
        traced = trace(function.function)
        divided = divide(function, fuse(optimise(traced)))
        fused, operations = remove_dead(unrolled(divided)), divide(function, traced).operations
    else:
        traced = trace(function)
        fused, operations = fuse(optimise(traced)), traced.operations
    program = schedule(fused, registers)
    return Lowering(
        program,
        operations,
        most_alive(fused),
        most_alive(program),
        time.perf_counter() - start,
    )


# ----------------------------------------------------------------------------------------------------------------------
# The same for functions with columns, which keep the program of one column as it is.


@dataclass(frozen=True)
class ColumnLowering:
    """A program with columns and its history, as `Lowering`; numbers of values alive are those of the head."""

    program: ColumnProgram
    traced: int
    live_before: int
    live_after: int
    seconds: float

    def figures(self) -> dict[str, Any]:
        """Return the numbers that a kernel reports: operations of a sample, those of every column among them."""
        kinds = Counter(self.program.head.count())
        for body in self.program.bodies:
            kinds.update({kind: number * body.alike.count for kind, number in body.program.count().items()})
        return {
            "operations": dict(kinds.most_common()),
            "traced_operations": self.traced,
            "live_before": self.live_before,
            "live_after": self.live_after,
            "lower_seconds": self.seconds,
        }


def lower_columns(function: ColumnFunction, registers: int = REGISTERS) -> ColumnLowering:
    """Trace a function with columns and run every pass; head and bodies are scheduled each by itself."""
    start = time.perf_counter()
    traced = trace(function.function)
    divided = divide(function, fuse(optimise(traced)))
    head = schedule(remove_dead(divided.head), registers)
    bodies = tuple(ColumnPart(schedule(remove_dead(body.program), registers), body.alike) for body in divided.bodies)
    return ColumnLowering(
        replace(divided, head=head, bodies=bodies),
        divide(function, traced).operations,
        most_alive(divided.head),
        most_alive(head),
        time.perf_counter() - start,
    )
