"""Compiled loops: their decorators, kernels called by address, and the bar while they are compiled."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import event
from numba.extending import intrinsic, overload

from dalembert.kernel.cache import ALIGNMENT
from dalembert.kernel.loop_cache import PACKAGE, LoopCache, functions_of
from dalembert.kernel.loop_linking import LoopCompiler, LoopDispatcher
from dalembert.progress import ProgressBar

if TYPE_CHECKING:
    from dalembert.kernel.kernel import Kernel

# ----------------------------------------------------------------------------------------------------------------------
# The decorator of all compiled loops: Numba, with the cache of `loop_cache.py`.


def loop(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator that compiles a function when it is first called, by `numba.njit(cache=True, **options)`."""

    def decorate(function: Callable[..., Any]) -> Any:
        dispatcher: Any = numba.njit(pipeline_class=LoopCompiler, **options)(function)
        if hasattr(dispatcher, "_cache"):  # with NUMBA_DISABLE_JIT it is the function itself
            dispatcher._cache = LoopCache(function)
            dispatcher.__class__ = LoopDispatcher
        return dispatcher

    return decorate


compiled = loop(nogil=True, error_model="numpy")
"""The usual way: without the interpreter lock, divisions as in NumPy."""

steady = loop(nogil=True, error_model="numpy", _nrt=False)
"""For loops that allocate nothing: references to arrays are not counted, which took as long as all kernels."""

inner = loop(nogil=True, error_model="numpy", _nrt=False, no_cpython_wrapper=True, no_cfunc_wrapper=True)
"""As `steady`, for loops that only other loops call: no code is made by which Python could call them."""

nested = loop(
    nogil=True, error_model="numpy", _nrt=True, fastmath=False, no_cpython_wrapper=True, no_cfunc_wrapper=True
)
"""As `compiled`, for loops that only other loops call, and that may make arrays."""

inlined = loop(nogil=True, error_model="numpy", inline="always")
"""For functions with one call site: passing dozens of arrays costs as much as a Newton step."""

fused = loop(nogil=True, error_model="numpy", fastmath={"contract"})
"""As `compiled`; a product and a sum may be rounded once (fma), and nothing else is changed."""

fused_allocating = loop(nogil=True, error_model="numpy", fastmath={"contract"}, _nrt=True)
"""As `fused`, for loops that make arrays, also where one that makes none (`fused_steady`) calls them."""

fused_steady = loop(nogil=True, error_model="numpy", fastmath={"contract"}, _nrt=False)
"""As `fused`, for loops that make no arrays: Numba then counts no references to those it is given. Where helpers with
branches are inlined, or rows of arrays are named, it would do so at every body, by calls that no register survives.
What such a loop calls inherits this unless it says otherwise, as `fused_allocating` does."""

reordered = loop(nogil=True, error_model="numpy", fastmath={"contract", "reassoc"})
"""As `fused`, and sums are added in any order, so that they fill vector registers. The last digits depend on it: for
iterations whose answer is measured elsewhere."""

reordered_inner = loop(nogil=True, error_model="numpy", fastmath={"contract", "reassoc"}, _nrt=False)
"""As `reordered`, for loops that make no arrays: where rows of arrays are passed on, every reference that is counted is
an atomic operation, and dozens of them cost more than the sums of a small problem."""

reordered_steady = loop(nogil=True, error_model="numpy", fastmath={"reassoc"}, _nrt=False)
"""Sums in any order, without fma, in loops that make no arrays."""

once = loop()
"""For loops that run while a system is prepared: Numba's own options."""

pasted = numba.njit(inline="always")
"""For helpers of a few lines: Numba writes them into the loops that call them, whose options they get. They are never
compiled for themselves, so nothing of theirs is kept on disk."""


# ----------------------------------------------------------------------------------------------------------------------
# A compiled kernel called from a compiled loop, by its address.
#
# A `Kernel`'s code is `run(table, first, stop, scratch)` (see `kernel/llvm/driver.py`): the table holds addresses and
# strides of the arrays it reads and writes. A Python function behind a ctypes callback of the same signature can stand
# in its place (inputs and events given as callables): it takes the interpreter lock by itself, so the loop may run
# without.


SIGNATURE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)
"""C signature of a kernel's `run`."""


def bind(kernel: Kernel, arrays: Mapping[str, np.ndarray]) -> tuple[list[int], Any]:
    """Return address, table and scratch of a kernel that reads and writes the arrays of its ports' names."""
    engine = kernel.engine
    words: list[int] = []
    for port in (*kernel.inputs, *kernel.outputs):
        words += [_address(arrays[port.name]), 0, 0, arrays[port.name].itemsize]
    table = np.array([*words, 0], np.int64)
    scratch = np.zeros(engine.layout.scratch_bytes + ALIGNMENT, np.uint8)  # type: ignore[attr-defined]
    start = _address(scratch) + -_address(scratch) % ALIGNMENT
    return [engine.machine.address, _address(table), start], (table, scratch)  # type: ignore[attr-defined]


def _address(array: np.ndarray) -> int:
    """Return where an array lies; several times faster than `array.ctypes.data`."""
    return array.__array_interface__["data"][0]


def invoke(address, table, scratch):
    """Run one sample of the code at `address`; plain twin of the compiled call."""
    SIGNATURE(int(address))(int(table), 0, 1, int(scratch))


@intrinsic
def _jump(typing_context, address, table, scratch):
    signature = types.void(types.int64, types.int64, types.int64)

    def generate(context, builder, signature, arguments):
        word, pointer = ir.IntType(64), ir.IntType(8).as_pointer()
        code = ir.FunctionType(ir.VoidType(), [pointer, word, word, pointer]).as_pointer()
        address, table, scratch = arguments
        function = builder.inttoptr(address, code)
        where = [builder.inttoptr(x, pointer) for x in (table, scratch)]
        builder.call(function, [where[0], word(0), word(1), where[1]])
        return context.get_dummy_value()

    return signature, generate


@overload(invoke)
def _invoke_compiled(address, table, scratch):
    def run(address, table, scratch):
        _jump(address, table, scratch)  # type: ignore[call-arg]

    return run


# ----------------------------------------------------------------------------------------------------------------------
# The bar that is shown while loops are compiled: what, and that it happens once on a machine.


PATIENCE = 1.0
"""Seconds before the bar appears."""

ROOMS = {
    "kkt": "batches of block systems",
    "friction": "the friction solver",
    "large": "the recursions of large mechanisms",
    "tableau": "the sparse elimination",
    "contact": "collision detection",
    "simulate.contact": "contact geometry",
    "simulate.events": "the location of events",
    "simulate.steppers": "the time stepper",
    "simulate": "the time stepper",
}
"""What the loops of a room do, for the person who waits."""


class CompileWatch(event.Listener):
    """Follows Numba through the functions that one entry needs; compilation is nested, the outermost is the entry."""

    def __init__(self) -> None:
        self.depth, self.count = 0, 0
        self.bar: ProgressBar | None = None

    def on_start(self, event: Any) -> None:
        """Note that a function's compilation begins."""
        function = event.data["dispatcher"].py_func
        if not self.depth:
            module = str(function.__module__)
            if not module.startswith(PACKAGE):
                return
            room = module.removeprefix(f"{PACKAGE}.")
            what = next((words for name, words in ROOMS.items() if room.startswith(name)), room)
            self.count = 0
            self.bar = ProgressBar(
                f"compiling {what}, once on this machine", 0, functions_of(function), patience=PATIENCE
            )
        self.depth += 1
        self._show()

    def on_end(self, event: Any) -> None:
        """Note that a function's compilation has ended, with or without success."""
        if not self.depth:
            return
        self.depth -= 1
        self.count += 1
        self._show()
        if not self.depth and self.bar is not None:
            self.bar.stop()
            self.bar = None

    def _show(self) -> None:
        if self.bar is not None:
            self.bar(min(self.count, self.bar.end))


def watch_compiling() -> None:
    """Show a bar from here on whenever loops of this package are compiled in a terminal."""
    event.register("numba:compile", CompileWatch())


watch_compiling()
