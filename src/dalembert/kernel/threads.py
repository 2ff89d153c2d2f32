"""Threads that share the samples of a batch."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

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
        if self._pool is None or self._pool[0] != os.getpid():
            from concurrent.futures import ThreadPoolExecutor

            self._pool = (os.getpid(), ThreadPoolExecutor(self.threads, "dalembert-kernel"))
        pool = self._pool[1]
        for job in [pool.submit(work, first, min(first + size, samples)) for first in range(0, samples, size)]:
            job.result()
