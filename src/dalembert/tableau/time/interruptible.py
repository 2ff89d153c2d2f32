"""A compiled loop that Ctrl-C ends: it runs in a thread of its own, and the main thread waits for it.

Python's handler of Ctrl-C runs in the main thread only, and not while compiled code runs there. So the main thread
waits, and tells the loop to end by a word in its state; what was found so far is returned.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, "dalembert-loop")


def interruptible(call: Callable[[], Any], state: Any) -> Any:
    """Return what the call returns; Ctrl-C asks it to end, by `interrupt` in its state."""
    if threading.current_thread() is not threading.main_thread():
        return call()
    future = _pool().submit(call)
    while True:
        try:
            return future.result()
        except KeyboardInterrupt:
            state[0].interrupt = 1
