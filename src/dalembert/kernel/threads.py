"""Threads that share the samples of a batch, or the parts of one sample."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor


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
            for each in helpers:
                if not each.cancel():  # one that has not even begun has nothing left to do
                    each.result()

    def _ready(self) -> ThreadPoolExecutor:
        if self._pool is None or self._pool[0] != os.getpid():
            from concurrent.futures import ThreadPoolExecutor

            self._pool = (os.getpid(), ThreadPoolExecutor(self.threads, "dalembert-kernel"))
        return self._pool[1]
