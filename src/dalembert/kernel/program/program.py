"""Straight-line programs: their operations, and how CasADi's map onto them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import IntEnum, auto
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# ----------------------------------------------------------------------------------------------------------------------
# The operations of a program: a small set of its own, and how CasADi's operations map onto it.
#
# CasADi's `sq`, `twice`, `inv` and `constpow` are spelled with the operations here; `fma` and its two sisters
# do not exist in CasADi and come from `fuse`. Comparisons and logic give 1.0 and 0.0, as in CasADi.


class Op(IntEnum):
    """One operation; operands are called a, b, c."""

    CONST = 0  # the value itself
    INPUT = auto()  # a: which input, b: which element, counted along rows (C order)
    ADD = auto()
    SUB = auto()
    MUL = auto()
    DIV = auto()
    NEG = auto()
    FMA = auto()  # a b + c, rounded once
    FMS = auto()  # a b - c, rounded once
    FNMA = auto()  # c - a b, rounded once
    SQRT = auto()
    FABS = auto()
    FLOOR = auto()
    CEIL = auto()
    SIGN = auto()  # -1, 1, or a itself where it is zero or NaN
    COPYSIGN = auto()
    FMIN = auto()  # the other operand where one is NaN
    FMAX = auto()
    LT = auto()
    LE = auto()
    EQ = auto()
    NE = auto()
    NOT = auto()
    AND = auto()
    OR = auto()
    IF_ELSE_ZERO = auto()  # b where a is not zero, else 0
    FMOD = auto()  # C's fmod: sign of a
    REMAINDER = auto()  # C's remainder: nearest multiple
    EXP = auto()
    EXPM1 = auto()
    LOG = auto()
    LOG1P = auto()
    POW = auto()
    SIN = auto()
    COS = auto()
    TAN = auto()
    ASIN = auto()
    ACOS = auto()
    ATAN = auto()
    ATAN2 = auto()  # a: ordinate, b: abscissa
    SINH = auto()
    COSH = auto()
    TANH = auto()
    ASINH = auto()
    ACOSH = auto()
    ATANH = auto()
    HYPOT = auto()
    ERF = auto()
    ERFINV = auto()


LEAVES = frozenset({Op.CONST, Op.INPUT})
TERNARY = frozenset({Op.FMA, Op.FMS, Op.FNMA})
COMMUTATIVE = frozenset({Op.ADD, Op.MUL, Op.EQ, Op.NE, Op.AND, Op.OR, Op.HYPOT})
BINARY = COMMUTATIVE | {
    Op.SUB,
    Op.DIV,
    Op.COPYSIGN,
    Op.FMIN,
    Op.FMAX,
    Op.LT,
    Op.LE,
    Op.IF_ELSE_ZERO,
    Op.FMOD,
    Op.REMAINDER,
    Op.POW,
    Op.ATAN2,
}
# Calls of a routine rather than one or two machine operations; the schedule groups them.
ELEMENTARY = frozenset(op for op in Op if op >= Op.FMOD)

ARITY = {op: 0 if op in LEAVES else 3 if op in TERNARY else 2 if op in BINARY else 1 for op in Op}

# CasADi operations that are one operation here; the rest is handled or refused in `trace`.
SAME_IN_CASADI = tuple(op for op in Op if op not in LEAVES | TERNARY)


def casadi_table() -> dict[int, Op]:
    """Return CasADi's operation codes for the operations that exist on both sides."""
    import casadi

    return {getattr(casadi, f"OP_{op.name}"): op for op in SAME_IN_CASADI}


def casadi_names() -> dict[int, str]:
    """Return the name of every operation code that this CasADi knows, without its prefix."""
    import casadi

    return {getattr(casadi, name): name[3:] for name in dir(casadi) if name.startswith("OP_")}


# ----------------------------------------------------------------------------------------------------------------------
# A program: straight-line code in which every value is computed once.
#
# Instruction i computes value i from earlier values; there are no branches and no names, only flat arrays. A
# backend is a file that prints, or runs, a Program. The passes `optimise`, `fuse` and `schedule` take a Program
# and return one.


LEAF_CODES = np.array(sorted(LEAVES))
ARITIES = np.array([ARITY[op] for op in Op])


@dataclass(frozen=True)
class Port:
    """An input or output: its name and its shape.

    CasADi's columns are vectors here. `shape` is that of one sample's array: `(n,)` for a column, `(rows,
    cols)` for any other matrix, C order.
    """

    name: str
    rows: int
    cols: int

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Shape of one sample."""
        return (self.rows,) if self.cols == 1 else (self.rows, self.cols)

    @property
    def size(self) -> int:
        """Number of elements, structural zeros included."""
        return self.rows * self.cols


@dataclass(frozen=True, eq=False)
class Program:
    """Straight-line code.

    Attributes
    ----------
    name
        Name of the traced function.
    inputs, outputs
        What goes in and out, in order.
    op : (n,) uint8
        The operation (`Op`) of each instruction.
    a, b, c : (n,) int32
        Operands: indices of earlier instructions, -1 where there is none. Of an `INPUT`, a is the input and b
        the element in C order.
    value : (n,) float64
        The value of a `CONST`, else 0.
    result_port, result_element, result_value : (k,) int32
        Element `result_element` (C order) of output `result_port` is value `result_value`. Elements that are
        not listed are structural zeros.
    """

    name: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    op: NDArray[np.uint8]
    a: NDArray[np.int32]
    b: NDArray[np.int32]
    c: NDArray[np.int32]
    value: NDArray[np.float64]
    result_port: NDArray[np.int32]
    result_element: NDArray[np.int32]
    result_value: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.op)

    @property
    def operations(self) -> int:
        """Number of instructions that compute something: all but constants and inputs."""
        return int(np.count_nonzero(~np.isin(self.op, LEAF_CODES)))

    def count(self) -> dict[str, int]:
        """Count operations by kind, most frequent first."""
        kinds = Counter(self.op[~np.isin(self.op, LEAF_CODES)].tolist())
        return {Op(code).name.lower(): number for code, number in kinds.most_common()}

    def operands(self) -> tuple[list[int], list[int], list[int], list[int]]:
        """Return op, a, b, c as lists in which every a, b, c is a value or -1 (leaves have none)."""
        arity = ARITIES[self.op]
        a, b = np.where(arity > 0, self.a, -1), np.where(arity > 1, self.b, -1)
        return self.op.tolist(), a.tolist(), b.tolist(), self.c.tolist()

    def results(self) -> Iterator[tuple[int, int, int]]:
        """Return output, element and value of every result."""
        return zip(self.result_port.tolist(), self.result_element.tolist(), self.result_value.tolist(), strict=True)

    def replace(
        self,
        op: Sequence[int],
        a: Sequence[int],
        b: Sequence[int],
        c: Sequence[int],
        value: Sequence[float],
        result_value: Sequence[int],
    ) -> Program:
        """Return a program with the same ports and results but other instructions."""
        return Program(
            self.name,
            self.inputs,
            self.outputs,
            np.array(op, np.uint8),
            np.array(a, np.int32),
            np.array(b, np.int32),
            np.array(c, np.int32),
            np.array(value, np.float64),
            self.result_port,
            self.result_element,
            np.array(result_value, np.int32),
        )

    def select(self, order: NDArray[Any]) -> Program:
        """Return the program with instructions `order`, a topological order that holds all that is needed."""
        place = np.full(len(self) + 1, -1, np.int32)  # the last entry maps "none" to "none"
        place[order] = np.arange(len(order), dtype=np.int32)
        op = self.op[order]
        leaf = np.isin(op, LEAF_CODES)
        a = np.where(leaf, self.a[order], place[np.where(leaf, -1, self.a[order])])
        b = np.where(leaf, self.b[order], place[np.where(leaf, -1, self.b[order])])
        c = place[self.c[order]]
        return Program(
            self.name,
            self.inputs,
            self.outputs,
            op,
            a.astype(np.int32),
            b.astype(np.int32),
            c,
            self.value[order],
            self.result_port,
            self.result_element,
            place[self.result_value],
        )
