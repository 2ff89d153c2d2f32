# pyright: reportCallIssue=false, reportArgumentType=false, reportAttributeAccessIssue=false
"""Many arrays as one argument of compiled loops: a table of addresses and shapes, and views of single arrays.

A loop that passes dozens of arrays to others is compiled for minutes: every call copies, counts and types all of them.
Here the only argument is the table, (arrays, 4) whole numbers: address and up to three lengths; a loop asks for the
arrays that it reads, by their place in the table. Views own nothing: who makes the table keeps the arrays alive.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from llvmlite import ir
from numba import carray, types  # pyright: ignore[reportPrivateImportUsage]
from numba.core import config
from numba.extending import intrinsic, overload

from dalembert.kernel.loops import SIGNATURE, compiled
from dalembert.types import Array

READ = frozenset(np.dtype(kind) for kind in (np.float64, np.int64, np.bool_))
"""Types of arrays that loops read."""

_FIRST_BYTE, _ADDRESS = ctypes.c_char.from_buffer, ctypes.addressof
_LENGTHS = {0: (0, 0, 0), 1: (0, 0), 2: (0,), 3: ()}
"""What fills the three lengths of a row, by the number of dimensions."""


def table_of(arrays: Mapping[str, Array], names: Sequence[str]) -> Array:
    """Return the table of arrays in the order of names; they must be contiguous, and kept alive."""
    words: list[int] = []
    for name in names:
        array = arrays[name]
        if array.dtype not in READ or not array.flags.c_contiguous:
            raise TypeError(f"{name}: loops read contiguous arrays of float64, int64 or bool, not {array.dtype}")
        try:  # four times as fast as the array interface: a run asks for hundreds of addresses
            address = _ADDRESS(_FIRST_BYTE(array)) if array.size else 0
        except TypeError:  # not writable
            address = array.__array_interface__["data"][0]
        words += (address, *array.shape, *_LENGTHS[array.ndim])
    return np.array(words, np.int64).reshape(-1, 4)


def _view(table: Array, place: int, dtype: type, ndim: int) -> Array:
    """Return a view; plain twin of the compiled ones."""
    shape = tuple(int(x) for x in table[place, 1 : 1 + ndim])
    count = int(np.prod(shape))
    if not count:
        return np.zeros(shape, dtype)
    size = count * np.dtype(dtype).itemsize
    buffer = (ctypes.c_char * size).from_address(int(table[place, 0]))
    return np.frombuffer(buffer, dtype).reshape(shape)


def vector(table: Array, place: int) -> Array:
    """Return an array of numbers, (n,)."""
    return _view(table, place, np.float64, 1)


def matrix(table: Array, place: int) -> Array:
    """Return an array of numbers, (m, n)."""
    return _view(table, place, np.float64, 2)


def cube(table: Array, place: int) -> Array:
    """Return an array of numbers, (l, m, n)."""
    return _view(table, place, np.float64, 3)


def whole(table: Array, place: int) -> Array:
    """Return an array of whole numbers, (n,)."""
    return _view(table, place, np.int64, 1)


def whole_matrix(table: Array, place: int) -> Array:
    """Return an array of whole numbers, (m, n)."""
    return _view(table, place, np.int64, 2)


def flags(table: Array, place: int) -> Array:
    """Return an array of truth values, (n,)."""
    return _view(table, place, np.bool_, 1)


def table_at(address: int, rows: int) -> Array:
    """Return the table that lies at an address."""
    buffer = (ctypes.c_char * (rows * 32)).from_address(int(address))
    return np.frombuffer(buffer, np.int64).reshape(rows, 4)


@intrinsic
def _pointer(typing_context, address):
    def generate(context, builder, signature, arguments):
        return builder.inttoptr(arguments[0], ir.IntType(8).as_pointer())

    return types.voidptr(types.int64), generate


@overload(vector)
def _vector(table, place):
    def view(table, place):
        return carray(_pointer(table[place, 0]), (table[place, 1],), np.float64)

    return view


@overload(matrix)
def _matrix(table, place):
    def view(table, place):
        return carray(_pointer(table[place, 0]), (table[place, 1], table[place, 2]), np.float64)

    return view


@overload(cube)
def _cube(table, place):
    def view(table, place):
        return carray(_pointer(table[place, 0]), (table[place, 1], table[place, 2], table[place, 3]), np.float64)

    return view


@overload(whole)
def _whole(table, place):
    def view(table, place):
        return carray(_pointer(table[place, 0]), (table[place, 1],), np.int64)

    return view


@overload(whole_matrix)
def _whole_matrix(table, place):
    def view(table, place):
        return carray(_pointer(table[place, 0]), (table[place, 1], table[place, 2]), np.int64)

    return view


@overload(flags)
def _flags(table, place):
    def view(table, place):
        return carray(_pointer(table[place, 0]), (table[place, 1],), np.bool_)

    return view


@overload(table_at)
def _table_at(address, rows):
    def view(address, rows):
        return carray(address, (rows, 4), np.int64)

    return view


class Unit:
    """A loop that other loops call by its address: it is compiled and kept on its own, not once more in each of them.

    Its function is `run(table, first, stop, scratch)` as of a kernel (`kernel.loops.invoke`); arguments and results are
    in arrays of the table.
    """

    def __init__(self, function: Callable[..., None]) -> None:
        self.function = function
        self._code: Any = None

    @property
    def address(self) -> int:
        """Where the code lies; compiled, or loaded, when first asked for."""
        if config.DISABLE_JIT:
            self._code = self._code or SIGNATURE(self.function)
            return ctypes.cast(self._code, ctypes.c_void_p).value or 0
        if self._code is None:
            dispatcher = compiled(self.function)
            dispatcher.by_address = True
            dispatcher.compile(UNIT)
            self._code = dispatcher.overloads[UNIT]
        return self._code.library.get_pointer_to_function(self._code.fndesc.llvm_cfunc_wrapper_name)


UNIT = (types.voidptr, types.int64, types.int64, types.voidptr)
"""Types of a unit's arguments."""
