"""Ctrl-C: compiled loops that it ends, pieces of work that it waits for."""

from __future__ import annotations

import mmap
import os
import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np

from dalembert.kernel.loops import compiled
from dalembert.types import Array

# ----------------------------------------------------------------------------------------------------------------------
# A compiled loop that Ctrl-C ends.
#
# Python's handler of Ctrl-C does not run while compiled code runs in the main thread. But the signal's number is
# written to a file at once (`signal.set_wakeup_fd`), and this file is memory that the loop reads: it ends after its
# step, and what was found so far is returned. Loops in other threads watch it if the main thread waits for them
# (`problem.py`). Where the platform has none of this, nothing is done.


LENGTH = 64
"""Bytes that are written and read: as many signals of other kinds may arrive before."""

NEVER = np.zeros(0, np.uint8)
SIGINT = int(signal.SIGINT)


_shared: list[Array] = []
"""Memory that loops in all threads watch, while many integrations run."""


@contextmanager
def interruptible(shared: bool = False) -> Iterator[Array]:
    """Give the memory that a loop watches for Ctrl-C; empty where that is not ours to take.

    Where it is `shared`, every loop that runs meanwhile, in any thread, watches the same.
    """
    if _shared:
        yield _shared[0]
        return
    main = threading.current_thread() is threading.main_thread()
    if not main or not callable(signal.getsignal(signal.SIGINT)):
        yield NEVER
        return
    descriptor, memory = _memory(os.getpid())
    memory[:] = 0
    os.lseek(descriptor, 0, os.SEEK_SET)
    before, handler = _wake(descriptor), signal.signal(signal.SIGINT, _nothing)
    watched = memory if before is not None else NEVER
    try:
        if shared:
            _shared.append(watched)
        yield watched
    finally:
        _shared.clear()
        signal.signal(signal.SIGINT, handler)
        if before is not None:
            signal.set_wakeup_fd(before)


@cache
def _memory(process: int) -> tuple[int, Array]:
    """Return a file and the same bytes as an array; one per process."""
    with tempfile.TemporaryFile() as file:
        descriptor = os.dup(file.fileno())
    os.ftruncate(descriptor, LENGTH)
    os.set_blocking(descriptor, False)
    return descriptor, np.frombuffer(mmap.mmap(descriptor, LENGTH), np.uint8)


def _wake(descriptor: int) -> int | None:
    """Have signals written to a file; return the one before, None where that is not possible."""
    try:
        return signal.set_wakeup_fd(descriptor, warn_on_full_buffer=False)
    except (ValueError, OSError):
        return None


def _nothing(number: int, frame: Any) -> None:
    """Stand in for Python's handler while the loop runs."""


@compiled
def interrupted(keyboard):
    """Return whether Ctrl-C was pressed."""
    for i in range(keyboard.size):
        if keyboard[i] == 0:
            return False
        if keyboard[i] == SIGINT:
            return True
    return False


# ----------------------------------------------------------------------------------------------------------------------
# Ctrl-C put off until a piece of work is whole: a step with its sample, a block with its place in the file.


@contextmanager
def undisturbed() -> Iterator[None]:
    """Hold Ctrl-C back: it comes through at the end, a second one at once. In other threads nothing is done."""
    handler: Any = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return
    received: list[tuple[int, Any]] = []

    def hold(number: int, frame: Any) -> None:
        received.append((number, frame))
        if len(received) > 1:
            handler(number, frame)

    signal.signal(signal.SIGINT, hold)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
    if received:
        handler(*received[0])
