"""Ctrl-C put off until a piece of work is whole: a step with its sample, a block with its place in the file."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


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
