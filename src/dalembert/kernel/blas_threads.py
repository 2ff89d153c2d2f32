"""Threads of OpenBLAS: one while matrices are small.

Matrices of a mechanism have tens of rows: threads cost ten times what they share, and the more cores a machine has the
worse. What NumPy and SciPy bring along is told by its own functions; another BLAS is left alone.
"""

from __future__ import annotations

import contextlib
import ctypes
import sys
import threading
from collections.abc import Callable, Iterator
from functools import cache

SETTERS = (
    "scipy_openblas_{}_num_threads64_", "scipy_openblas_{}_num_threads", "openblas_{}_num_threads64_",
    "openblas_{}_num_threads",
)  # fmt: skip
"""Names of the functions that get and set the number of threads, by who built the library."""

USERS = ("numpy.linalg._umath_linalg", "scipy.linalg._fblas")
"""Modules that are linked to it; one that is not imported has started no threads."""


@cache
def _controls(module: str) -> tuple[Callable[[], int], Callable[[int], None]] | None:
    """Return what gets and sets the number of threads of the library that a module is linked to."""
    try:
        library = ctypes.CDLL(sys.modules[module].__file__)
    except (OSError, AttributeError, TypeError):
        return None
    for name in SETTERS:
        with contextlib.suppress(AttributeError):
            return getattr(library, name.format("get")), getattr(library, name.format("set"))
    return None


_lock, _inside = threading.Lock(), 0
_before: list[tuple[Callable[[int], None], int]] = []


@contextlib.contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let OpenBLAS work in the calling thread; the last of several users at a time gives its threads back."""
    global _inside
    with _lock:
        _inside += 1
        if _inside == 1:
            for get, set_to in filter(None, (_controls(name) for name in USERS if name in sys.modules)):
                _before.append((set_to, get()))
                set_to(1)
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if not _inside:
                while _before:
                    set_to, count = _before.pop()
                    set_to(count)
