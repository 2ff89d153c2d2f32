"""The contract of a backend, the table of backends, and the threads that share a batch."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dalembert.errors import UnsupportedError
from dalembert.kernel.program.program import Port
from dalembert.kernel.source import FunctionSource

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

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


class SampleStatus(IntEnum):
    """Outcome of one sample."""

    FINITE = 0
    NON_FINITE = 1


class Evaluation(NamedTuple):
    """Result of `Kernel.call`.

    Attributes
    ----------
    outputs
        One array per output, `shape` or `(N, *shape)`.
    status : uint8
        `SampleStatus` of each sample, in the shape of the batch; () for a single call. It looks at the outputs: a value
        that is not finite on the way to outputs that are (1/inf, atan of a pole, the branch that was not taken) is no
        failure.
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
