"""The short way of a call: a Python function made of machine code.

Checking and converting arrays in Python costs several microseconds, more than most kernels take. This is a
`PyCFunction` written in LLVM (`short_call.ll`): it looks into the NumPy arrays itself and, where every input is an
aligned array of the right type and shape, makes the outputs, runs the code and returns them. Where the outputs are
given too, after the inputs, it writes them, provided that they are contiguous and share no memory. A last argument None
asks for the status as well: a tuple (outputs ..., status), or the status alone where the outputs were given. In every
other case it returns `NotImplemented`, and the caller goes the long way.

Batches of more than a few hundred microseconds run without the interpreter lock. The scratch memory belongs to one call
at a time: a call that finds it taken goes the long way. All objects are made before that is looked at, since making
objects may run other Python code.
"""

from __future__ import annotations

import ctypes
import sys
import sysconfig
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalembert.kernel import cache as disk
from dalembert.kernel.cache import fingerprint
from dalembert.kernel.llvm.code_in_memory import Code, Machine, c_function
from dalembert.kernel.program.program import Port

# Words of the descriptor, before the ports.
WORDS = (
    "array_type",
    "dtype",
    "inputs",
    "outputs",
    "run",
    "run_single",
    "scratch",
    "busy",
    "empty",
    "incref",
    "refusal",
    "new_tuple",
    "set_item",
    "decref",
    "largest",
    "none",
    "byte_type",
    "item",
    "brief",
    "save_thread",
    "restore_thread",
    "record",
    "clock_id",
    "clock",
    "strict",
)
PORT_WORDS = 3  # axes, length of the first, length of the second
METH_FASTCALL = 0x0080
OBJECT_HEAD = 16  # bytes of PyObject_HEAD that the offsets in the text assume
PYARRAY_EMPTY = 184  # place of PyArray_Empty in NumPy's C API
LARGEST_OUTPUTS = 64
UNTIMED = 63  # single calls that follow a timed one and are not timed themselves: looking at a clock takes 5 % of one
RECORD_WORDS = 6  # samples of the last call; calls left untimed; seconds and nanoseconds of its begin and of its end
BYTE = np.dtype(np.uint8)


class _MethodDef(ctypes.Structure):
    """CPython's PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


@dataclass(frozen=True)
class ShortCall:
    """Two built-in functions, and the memory they point to; `plain` takes inputs only, and no more of them."""

    function: Callable[..., Any]
    plain: Callable[..., Any]
    memory: tuple[Any, ...]
    record: Any

    def last(self) -> tuple[int, float] | None:
        """Return samples and seconds of the last call that was timed; None before the first, and after `forget`."""
        samples, _, *times = self.record
        if not samples:
            return None
        return samples, max(times[2] - times[0] + 1e-9 * (times[3] - times[1]), 1e-9)

    def forget(self) -> None:
        """Let the next call be timed, as the first was."""
        self.record[0] = 0


@cache
def available() -> bool:
    """Say whether this interpreter is laid out as assumed: CPython with its lock, 64 bit."""
    return (
        sys.implementation.name == "cpython"
        and object.__basicsize__ == OBJECT_HEAD
        and not sysconfig.get_config_var("Py_GIL_DISABLED")
        and np.lib.NumpyVersion(np.__version__) >= "2.0.0"
        and hasattr(time, "CLOCK_MONOTONIC")
    )


def data_address(array: NDArray[Any]) -> int:
    """Return where an array's elements begin; far quicker than `array.ctypes.data` where the layout is known."""
    if not available():
        return array.ctypes.data
    return ctypes.c_void_p.from_address(id(array) + OBJECT_HEAD).value or 0


@cache
def _machine() -> Machine:
    """Return the function's code, from the cache where it is there."""
    name = disk.key(["short call", *fingerprint()])
    entry = disk.read(name)
    if entry is not None:
        return Machine(Code.stored(*entry))
    from dalembert.kernel.llvm.compile import compile_text

    text = Path(__file__).with_suffix(".ll").read_text()
    # longest names first: INPUTS is part of no other word, but OUTPUTS is part of LARGEST_OUTPUTS
    text = text.replace("LARGEST_OUTPUTS", str(LARGEST_OUTPUTS)).replace("PORT_WORDS", str(PORT_WORDS))
    text = (
        text.replace("UNTIMED", str(UNTIMED))
        .replace("FIRST_PORT", str(len(WORDS)))
        .replace("HEADER", str(bytes.__basicsize__ - 1))
    )
    for place, word in enumerate(WORDS):
        text = text.replace(f"i64 {word.upper()})", f"i64 {place})")
    code = compile_text(text, inline=True)
    disk.write(name, code.header(), code.data)
    return Machine(code)


def short_call(
    inputs: Sequence[Port],
    outputs: Sequence[Port],
    dtype: np.dtype[Any],
    run: tuple[int, int],
    scratch: int,
    brief: int,
    largest: int,
) -> ShortCall | None:
    """Return a function of one array per input that evaluates them, or returns `NotImplemented`.

    Parameters
    ----------
    run
        Addresses of the kernel's code: for batches, and for a single sample.
    scratch
        Address of memory that only this function uses; all three must outlive it.
    brief, largest
        Batches of more samples than `brief` run without the interpreter lock; of more than `largest`, the long way.

    Returns
    -------
    None where this interpreter is not laid out as assumed, or there are no or too many outputs.
    """
    if not available() or not 0 < len(outputs) <= LARGEST_OUTPUTS:
        return None
    machine = _machine()
    busy = ctypes.c_int64(0)
    record = (ctypes.c_int64 * RECORD_WORDS)()
    words = {
        "array_type": id(np.ndarray),
        "dtype": id(dtype),
        "inputs": len(inputs),
        "outputs": len(outputs),
        "run": run[0],
        "run_single": run[1],
        "scratch": scratch,
        "busy": ctypes.addressof(busy),
        "empty": _numpy_api(PYARRAY_EMPTY),
        "incref": _address("Py_IncRef"),
        "refusal": id(NotImplemented),
        "new_tuple": _address("PyTuple_New"),
        "set_item": _address("PyTuple_SetItem"),
        "decref": _address("Py_DecRef"),
        "largest": largest,
        "none": id(None),
        "byte_type": id(BYTE),
        "item": dtype.itemsize,
        "brief": brief,
        "save_thread": _address("PyEval_SaveThread"),
        "restore_thread": _address("PyEval_RestoreThread"),
        "record": ctypes.addressof(record),
        "clock_id": time.CLOCK_MONOTONIC,
        "clock": c_function("clock_gettime"),
    }
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype, make.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
    functions = []
    for strict in (0, 1):
        numbers = [(words | {"strict": strict})[name] for name in WORDS]
        for port in (*inputs, *outputs):
            numbers += [len(port.shape), *port.shape, 0][:PORT_WORDS]
        functions.append(make(_definition(), np.array(numbers, np.int64).tobytes(), None))
    return ShortCall(functions[0], functions[1], (busy, dtype, machine), record)


@cache
def _definition() -> int:
    """Return the address of the one definition that all these functions have.

    CPython reads it when a function is freed, which may be after everything else that a kernel is made of, or as the
    last thing of a process: it is never freed.
    """
    definition = _MethodDef(b"short_call", _machine().address, METH_FASTCALL, None)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(definition))
    return ctypes.addressof(definition)


def _address(name: str) -> int:
    return ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0


def _numpy_api(place: int) -> int:
    """Return the address of a function of NumPy's C API."""
    multiarray = import_module("numpy._core._multiarray_umath")  # the capsule has no public name
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    table = ctypes.cast(pointer(multiarray._ARRAY_API, None), ctypes.POINTER(ctypes.c_void_p))
    return table[place] or 0
