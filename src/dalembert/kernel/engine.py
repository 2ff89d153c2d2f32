"""Engines: the function they evaluate, the contract of a backend, the table of backends, threads that share a batch."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dalembert.errors import ModelError, UnsupportedError
from dalembert.kernel import cache
from dalembert.kernel.program.program import Port

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

# ----------------------------------------------------------------------------------------------------------------------
# The function of a kernel, given or built on demand.
#
# A kernel that is in the cache needs no expressions to run, only to be differentiated or exported. So its function may
# be named by its content (`parts`) and built on demand.


class FunctionSource:
    """A CasADi function, or how to get it.

    Parameters
    ----------
    function
        The function, where it is there; one with columns that are computed alike is a `ColumnFunction`.
    build
        Else, what returns it.
    parts
        Text that determines what `build` returns, as far as this package's code does not.
    """

    def __init__(
        self, function: Any = None, build: Callable[[], Any] | None = None, parts: Sequence[str] | None = None
    ) -> None:
        if function is not None:
            check_function(function)
        if parts is not None:
            _check_parts(parts)
        self._function = function
        self._build = build
        self.parts = None if parts is None else tuple(parts)
        self._text: str | None = None

    @property
    def function(self) -> Any:
        """The CasADi function, all columns written out; built now where it was not yet."""
        from dalembert.kernel.program.columns import written_out

        return written_out(self.expressions)

    @property
    def expressions(self) -> Any:
        """The function as it was made, what a backend lowers; built now where it was not yet."""
        if self._function is None:
            made = self._build() if self._build is not None else _from_text(self._text or "")
            check_function(made)
            self._function = made
        return self._function

    def key(self, parts: Sequence[str]) -> str | None:
        """Return the name of an entry of the cache; None where the cache is off or the function is no text."""
        if cache.cache_folder() is None:
            return None
        if self.parts is not None:
            return cache.key(["by name", cache.package_stamp(), *self.parts, "compiled", *parts])
        text = self.text()
        return None if text is None else cache.key(["by content", text, *parts])

    def text(self) -> str | None:
        """Return the function as text; None where CasADi cannot write it."""
        if self._text is not None:
            return self._text
        try:
            return self.expressions.serialize()
        except RuntimeError:
            return None

    def __getstate__(self) -> dict[str, Any]:
        text = self.text()
        if text is None:
            raise UnsupportedError(
                f"the function {self.function.name()!r} cannot be written as text, so its kernel cannot be pickled; "
                "make the kernel anew in the other process"
            )
        return {"_function": None, "_build": None, "parts": self.parts, "_text": text}


def check_function(function: Any) -> None:
    """Refuse what is no CasADi function."""
    if not hasattr(type(function), "unrolled") and not all(
        hasattr(function, name) for name in ("n_in", "n_out", "sparsity_in", "name")
    ):
        raise UnsupportedError(
            f"a kernel is made from a casadi.Function, not from {type(function).__name__}; "
            "wrap expressions as casadi.Function(name, [inputs], [outputs])"
        )


def _check_parts(parts: Sequence[str]) -> None:
    if (
        isinstance(parts, str)
        or not isinstance(parts, Sequence)
        or not parts
        or not all(isinstance(part, str) for part in parts)
    ):
        raise ModelError(f"the key of a kernel is a list of strings that determine its content, not {parts!r:.80}")


def _from_text(text: str) -> Any:
    from dalembert.kernel.program.columns import from_text

    return from_text(text)


# ----------------------------------------------------------------------------------------------------------------------
# Threads that share the samples of a batch, or the parts of one sample.


class Workers:
    """A pool that is made when it is first needed, and again in a forked process, where its threads are gone."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._pool: tuple[int, ThreadPoolExecutor] | None = None

    def share(self, work: Callable[[int, int], object], samples: int, grain: int) -> None:
        """Call `work(first, stop)` on parts of 0..samples that begin at multiples of `grain`."""
        parts = min(self.threads, -(-samples // grain))
        if parts <= 1:
            work(0, samples)
            return
        size = -(-samples // (parts * grain)) * grain
        pool = self._ready()
        for job in [pool.submit(work, first, min(first + size, samples)) for first in range(0, samples, size)]:
            job.result()

    def take_turns(self, work: Callable[[int, Any], object], tasks: Sequence[Any]) -> None:
        """Call `work(lane, task)` for every task; lanes are threads, 0 the caller's; who is free takes the next."""
        waiting = deque(tasks)

        def some(lane: int) -> None:
            while waiting:
                try:
                    task = waiting.popleft()
                except IndexError:  # another was faster
                    return
                work(lane, task)

        pool = self._ready()
        helpers = [pool.submit(some, lane) for lane in range(1, min(self.threads, len(tasks)))]
        try:
            some(0)
        finally:
            waiting.clear()
            for helper in helpers:
                if not helper.cancel():  # one that has not even begun has nothing left to do
                    helper.result()

    def _ready(self) -> ThreadPoolExecutor:
        if self._pool is None or self._pool[0] != os.getpid():
            from concurrent.futures import ThreadPoolExecutor

            self._pool = (os.getpid(), ThreadPoolExecutor(self.threads, "dalembert-kernel"))
        return self._pool[1]


# ----------------------------------------------------------------------------------------------------------------------
# The status of a sample, which a call gives beside its outputs.


class Evaluation(NamedTuple):
    """Result of `Kernel.call`.

    Attributes
    ----------
    outputs
        One array per output, `shape` or `(N, *shape)`.
    status : uint8
        `Status` of each sample, in the shape of the batch; () for a single call. It depends on the outputs
        alone: intermediate values may be infinite (1/inf, atan of a pole, the branch that was not taken).
    """

    outputs: tuple[Any, ...]
    status: NDArray[np.uint8]


# ----------------------------------------------------------------------------------------------------------------------
# The contract of a backend, an engine that evaluates one function on checked arrays; the table of backends.
#
# A backend is a function `(source, options) -> Engine`. Adding one is adding a line to `BACKENDS`.


DTYPES = ("float64", "float32")
WIDTHS = (1, 2, 4, 8, 16)


@dataclass(frozen=True)
class KernelOptions:
    """How to compile: name of the real type, number of threads, samples per vector (None: chosen)."""

    dtype: str = "float64"
    threads: int = 1
    width: int | None = None


class Engine(Protocol):
    """A compiled function.

    `call` takes one array per input and returns one per output, and the status where it is wanted: `(N,)`
    uint8, 1 for each sample with a non-finite output. `figures` are numbers for the report.
    """

    name: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    figures: dict[str, Any]

    @property
    def short(self) -> Callable[..., Any] | None:
        """A Python function of machine code for single samples, where the backend has one."""
        ...

    def call(self, inputs: Sequence[Any], out: Any, with_status: bool) -> tuple[list[Any], Any]:
        """Evaluate a batch or a single sample."""
        ...

    def elapsed(self) -> float | None:
        """Return the seconds of the last call where calls return before they are done; else None."""
        return None

    def peak(self) -> float | None:
        """Return what one thread can issue, in operations per second; None where that is not known."""
        ...


def _cpu(source: FunctionSource, options: KernelOptions) -> Engine:
    from dalembert.kernel.llvm.engine import engine

    return engine(source, options)


def _c(source: FunctionSource, options: KernelOptions) -> Engine:
    from dalembert.kernel.c.engine import engine

    return engine(source, options)


def _cuda(source: FunctionSource, options: KernelOptions) -> Engine:
    from dalembert.kernel.cuda.engine import engine

    return engine(source, options)


def _numpy(source: FunctionSource, options: KernelOptions) -> Engine:
    from dalembert.kernel.numpy_twin import engine

    return engine(source, options)


BACKENDS: dict[str, Callable[[FunctionSource, KernelOptions], Engine]] = {
    "cpu": _cpu,
    "c": _c,
    "cuda": _cuda,
    "numpy": _numpy,
}
"""Every backend; each is imported when it is first used."""


def type_name(dtype: Any) -> str:
    """Return the name of a type that is compiled; `dtype` is spelled as NumPy allows."""
    try:
        name = np.dtype(dtype).name
    except TypeError:
        name = None
    if name not in DTYPES or dtype is None:
        raise UnsupportedError(f"dtype {dtype!r} is not compiled; there are {', '.join(map(repr, DTYPES))}")
    return name


def make_options(dtype: Any, threads: Any, width: Any) -> KernelOptions:
    """Return checked options; whole numbers may be NumPy's."""
    count = _whole(threads)
    if count is None or count < 1:
        raise UnsupportedError(f"threads={threads!r}: a positive whole number is needed")
    samples = None if width is None else _whole(width)
    if width is not None and samples not in WIDTHS:
        raise UnsupportedError(f"width={width!r}: samples per vector are one of {', '.join(map(str, WIDTHS))}")
    return KernelOptions(type_name(dtype), count, samples)


def _whole(value: Any) -> int | None:
    """Return a whole number; None for anything else, truth values among it."""
    return int(value) if isinstance(value, int | np.integer) and not isinstance(value, bool) else None


def make_engine(source: FunctionSource, backend: str, options: KernelOptions) -> Engine:
    """Return the engine of a backend, or say which backends and types there are."""
    if not isinstance(backend, str) or backend not in BACKENDS:
        known = ", ".join(map(repr, BACKENDS))
        raise UnsupportedError(f"backend {backend!r} does not exist; there are {known}, and 'looped' for mechanisms")
    return BACKENDS[backend](source, options)
