"""What a backend is: an engine that evaluates one function on checked arrays, and the table of backends.

A backend is a function `(source, options) -> Engine`. Adding one is adding a line to `BACKENDS`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol

import numpy as np

from dalembert.errors import UnsupportedError
from dalembert.kernel.program import Port
from dalembert.kernel.source import Source

DTYPES = ("float64", "float32")
WIDTHS = (1, 2, 4, 8, 16)


@dataclass(frozen=True)
class Options:
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
    short: Callable[..., Any] | None

    def call(self, inputs: Sequence[Any], out: Any, with_status: bool) -> tuple[list[Any], Any]:
        """Evaluate a batch or a single sample."""
        ...

    def elapsed(self) -> float | None:
        """Return the seconds of the last call where calls return before they are done; else None."""
        return None

    def peak(self) -> float | None:
        """Return what one thread can issue, in operations per second; None where that is not known."""
        ...


def _lazily(module: str) -> Callable[[Source, Options], Engine]:
    """Return a backend that is imported when it is first used."""
    return lambda source, options: import_module(f"dalembert.kernel.{module}").engine(source, options)


BACKENDS: dict[str, Callable[[Source, Options], Engine]] = {
    "cpu": _lazily("cpu_engine"),
    "c": _lazily("c_engine"),
    "cuda": _lazily("cuda_engine"),
    "numpy": _lazily("numpy_engine"),
}


def type_name(dtype: Any) -> str:
    """Return the name of a type that is compiled; `dtype` is spelled as NumPy allows."""
    try:
        name = np.dtype(dtype).name
    except TypeError:
        name = None
    if name not in DTYPES or dtype is None:
        raise UnsupportedError(f"dtype {dtype!r} is not compiled; there are {', '.join(map(repr, DTYPES))}")
    return name


def make_options(dtype: Any, threads: Any, width: Any) -> Options:
    """Return checked options; whole numbers may be NumPy's."""
    count = _whole(threads)
    if count is None or count < 1:
        raise UnsupportedError(f"threads={threads!r}: a positive whole number is needed")
    samples = None if width is None else _whole(width)
    if width is not None and samples not in WIDTHS:
        raise UnsupportedError(f"width={width!r}: samples per vector are one of {', '.join(map(str, WIDTHS))}")
    return Options(type_name(dtype), count, samples)


def _whole(value: Any) -> int | None:
    """Return a whole number; None for anything else, truth values among it."""
    return int(value) if isinstance(value, int | np.integer) and not isinstance(value, bool) else None


def make_engine(source: Source, backend: str, options: Options) -> Engine:
    """Return the engine of a backend, or say which backends and types there are."""
    if not isinstance(backend, str) or backend not in BACKENDS:
        known = ", ".join(map(repr, BACKENDS))
        raise UnsupportedError(f"backend {backend!r} does not exist; there are {known}, and 'looped' for mechanisms")
    return BACKENDS[backend](source, options)
