"""The operations of a program: a small set of its own, and how CasADi's operations map onto it.

CasADi's `sq`, `twice`, `inv` and `constpow` are spelled with the operations here; `fma` and its two sisters
do not exist in CasADi and come from `fuse`. Comparisons and logic give 1.0 and 0.0, as in CasADi.
"""

from __future__ import annotations

from enum import IntEnum, auto


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
