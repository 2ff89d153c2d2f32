"""Four reals at once: the processor's vector registers as a type that compiled loops may use.

A vector of space is three lanes and one that nobody reads; a matrix is its columns. Numba knows scalars and arrays
only, and its vectoriser does not see through a loop in which every body depends on the last. So the loops over bodies
say themselves what goes into a register. On a processor with shorter registers LLVM uses two.

Loads and stores are of four reals: the fourth is whatever stands behind a vector. Arrays are made one entry longer
than needed (`padded`), and what stands behind a vector is written after it; at the end of a row, which may be another
thread's beginning, `last_and_three` writes the last of one vector again and all of the next.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core.datamodel import models
from numba.core.datamodel.registry import register_default
from numba.extending import intrinsic, overload

from dalembert.kernel.loops import pasted

WIDTH = 4

compiled: Any = intrinsic
"""`intrinsic` for type checkers: what it makes has other arguments than what it is made from."""

_REGISTER = ir.VectorType(ir.DoubleType(), WIDTH)
_PLACE = ir.IntType(32)


class LanesType(types.Type):
    """The type of four reals in one register."""

    def __init__(self) -> None:
        super().__init__("lanes")


LANES = LanesType()


@register_default(LanesType)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, dmm, fe_type) -> None:
        super().__init__(dmm, fe_type, _REGISTER)


def padded(rows: int, columns: int) -> np.ndarray:
    """Return zeros (rows, columns) with room behind the last row, so that its last vector may be loaded whole."""
    return np.zeros(rows * columns + WIDTH)[: rows * columns].reshape(rows, columns)


def _between(name: str):
    """Return an operation of LLVM between two registers; products and sums may be contracted."""

    @compiled
    def apply(typing, a, b):
        def emit(context, builder, signature, arguments):
            return getattr(builder, name)(*arguments, flags=("contract",))

        return LANES(LANES, LANES), emit

    return apply


_add, _subtract, _multiply = _between("fadd"), _between("fsub"), _between("fmul")


@compiled
def every(typing, x):
    """every(x): x in all lanes."""

    def emit(context, builder, signature, arguments):
        lane = builder.insert_element(ir.Constant(_REGISTER, ir.Undefined), arguments[0], _PLACE(0))
        return builder.shuffle_vector(lane, lane, ir.Constant(ir.VectorType(_PLACE, WIDTH), [0] * WIDTH))

    return LANES(types.float64), emit


def constant(*values: float):
    """Return a function of nothing: a register with these lanes."""

    @compiled
    def apply(typing):
        return LANES(), lambda context, builder, signature, arguments: ir.Constant(_REGISTER, list(values))

    return apply


nothing = constant(0.0, 0.0, 0.0, 0.0)
along_x, along_y, along_z = constant(1.0, 0.0, 0.0, 0.0), constant(0.0, 1.0, 0.0, 0.0), constant(0.0, 0.0, 1.0, 0.0)


@overload(operator.add)
def _plus(a, b):
    if a is LANES and b is LANES:
        return lambda a, b: _add(a, b)
    return None


@overload(operator.sub)
def _minus(a, b):
    if a is LANES and b is LANES:
        return lambda a, b: _subtract(a, b)
    return None


@overload(operator.mul)
def _times(a, b):
    if a is LANES and b is LANES:
        return lambda a, b: _multiply(a, b)
    if isinstance(a, types.Float) and b is LANES:
        return lambda a, b: _multiply(every(a), b)
    return None


def shuffle(*places: int):
    """Return a function of two registers: lanes 0 to 3 are of the first, 4 to 7 of the second."""

    @compiled
    def apply(typing, a, b):
        def emit(context, builder, signature, arguments):
            return builder.shuffle_vector(*arguments, ir.Constant(ir.VectorType(_PLACE, WIDTH), list(places)))

        return LANES(LANES, LANES), emit

    return apply


def lane(k: int):
    """Return a function of one register: its lane k, a real."""

    @compiled
    def apply(typing, a):
        def emit(context, builder, signature, arguments):
            return builder.extract_element(arguments[0], _PLACE(k))

        return types.float64(LANES), emit

    return apply


@compiled
def lanes(typing, x, y, z):
    """lanes(x, y, z): three reals and a zero."""

    def emit(context, builder, signature, arguments):
        whole = ir.Constant(_REGISTER, [0.0] * WIDTH)
        for k, value in enumerate(arguments):
            whole = builder.insert_element(whole, value, _PLACE(k))
        return whole

    return LANES(types.float64, types.float64, types.float64), emit


@compiled
def size(typing, a):
    """size(a): absolute values, lane by lane."""

    def emit(context, builder, signature, arguments):
        bits = ir.VectorType(ir.IntType(64), WIDTH)
        without_sign = ir.Constant(bits, [2**63 - 1] * WIDTH)
        return builder.bitcast(builder.and_(builder.bitcast(arguments[0], bits), without_sign), _REGISTER)

    return LANES(LANES), emit


def _address(context, builder, array_type, array, place):
    pointer = builder.gep(context.make_array(array_type)(context, builder, array).data, [place])
    return builder.bitcast(pointer, _REGISTER.as_pointer())


@compiled
def load(typing, array, place):
    """load(array, place): four reals of a contiguous array, counted from its beginning; bounds are the caller's."""

    def emit(context, builder, signature, arguments):
        return builder.load(_address(context, builder, signature.args[0], *arguments), align=8)

    return LANES(array, types.intp), emit


@compiled
def store(typing, array, place, x):
    """store(array, place, x): write four reals."""

    def emit(context, builder, signature, arguments):
        array, place, x = arguments
        builder.store(x, _address(context, builder, signature.args[0], array, place), align=8)
        return context.get_dummy_value()

    return types.void(array, types.intp, LANES), emit


_turned = shuffle(1, 2, 0, 3)
_low, _high = shuffle(0, 4, 1, 5), shuffle(2, 6, 3, 7)
_row0, _row1, _row2 = shuffle(0, 1, 4, 7), shuffle(2, 3, 5, 7), shuffle(0, 1, 6, 7)
first, second, third, fourth = lane(0), lane(1), lane(2), lane(3)
all_first, all_second, all_third = shuffle(0, 0, 0, 0), shuffle(1, 1, 1, 1), shuffle(2, 2, 2, 2)
three, last_and_three = shuffle(0, 1, 2, 7), shuffle(2, 4, 5, 6)


@pasted
def yzx(a):
    """Return (a_y, a_z, a_x)."""
    return _turned(a, a)


@pasted
def cross(a, b):
    """Return the cross product."""
    return yzx(a * yzx(b) - b * yzx(a))


@pasted
def cross_of_sizes(a, b):
    """Return the cross product with all signs taken as plus."""
    return yzx(a * yzx(b) + b * yzx(a))


@pasted
def total(a):
    """Return the sum of the three lanes that count."""
    return first(a) + second(a) + third(a)


@pasted
def transposed(a, b, c):
    """Return the rows of the matrix with columns a, b, c."""
    low, high = _low(a, b), _high(a, b)
    return _row0(low, c), _row1(low, c), _row2(high, c)
