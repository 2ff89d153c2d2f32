"""Whether one state of 100,000 bodies pays on two threads: the best cases for it, against one thread.

    python benchmarks/large.py --parallel

    chains    two mechanisms, chains of n / 2 hinges: one after the other, or one on each thread
    branches  one mechanism with two branches of n / 2 on the ground: in one go, or each branch on a thread of its own;
              a route of that kind could be no faster than this
    triad     a = b + s c over arrays far beyond the caches: what one and two cores draw from memory

Loops release the interpreter's lock. Runs alternate, wall clock; best and median of both. A machine with other work to
do shows that work: the load is printed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numba import njit

import dalembert as da
import large_models as models

SECONDS = 8.0
"""For each case."""

TRIAD = 8_000_000
"""Doubles in each of three arrays."""


def branches(n: int) -> da.Mechanism:
    """Return two chains of n / 2 hinges, side by side on the ground."""
    b = da.Builder(f"two branches of {n // 2}")
    for k in range(2):
        for i in range(n // 2):
            b.body(f"b{k}.{i}", **models.LINK)
            parent, place = (f"b{k}.{i - 1}", (0, 0, -1)) if i else ("world", (float(k), 0, 0))
            b.joint(f"j{k}.{i}", "revolute", parent=parent, child=f"b{k}.{i}", axis=models.AXES[i % 3], position=place)
    return b.build()


def ready(mechanism: da.Mechanism) -> Callable[[], Any]:
    """Return a call of forward dynamics at a state."""
    kernel, state = mechanism.compile("forward", backend="looped"), models.state(mechanism)
    return lambda: kernel(*state)


@njit(nogil=True)
def triad(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> None:
    """Set a = b + 3 c."""
    for i in range(len(a)):
        a[i] = b[i] + 3.0 * c[i]


def of_memory(count: int) -> Callable[[], Any]:
    """Return a triad over one of `count` parts of its arrays."""
    a, b, c = np.ones((3, TRIAD // count))  # not zeros, which the system may all keep in one page
    return lambda: triad(a, b, c)


def compared(one: Callable[[], Any], two: list[Callable[[], Any]], seconds: float) -> dict[str, float]:
    """Return seconds of `one`, and of both of `two` at once, best and median."""
    found: tuple[list[float], list[float]] = [], []
    with ThreadPoolExecutor(len(two)) as pool:

        def both() -> None:
            for each in [pool.submit(action) for action in two]:
                each.result()

        for action in (one, both):
            action()
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            for action, times in zip((one, both), found, strict=True):
                begin = time.perf_counter()
                action()
                times.append(time.perf_counter() - begin)
    names = ("serial", "threads")
    best = {f"{name}_best": min(times) for name, times in zip(names, found, strict=True)}
    return best | {f"{name}_median": float(np.median(times)) for name, times in zip(names, found, strict=True)}


def measured(n: int = 100_000, seconds: float = SECONDS) -> dict[str, Any]:
    """Print and return serial beside two threads."""
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; ms, best (median)")
    halves = [ready(models.chain(n // 2, held=False)) for _ in range(2)]
    cases = {
        "chains": (lambda: [half() for half in halves], halves),
        "branches": (ready(branches(n)), halves),
        "triad": (of_memory(1), [of_memory(2) for _ in range(2)]),
    }
    found: dict[str, Any] = {"cores": os.cpu_count(), "load": os.getloadavg()[0]}
    print("case              serial              two threads   gain")
    for name, (one, two) in cases.items():
        row = found[name] = compared(one, two, seconds)
        gain = row["serial_best"] / row["threads_best"]
        times = [
            f"{1e3 * row[f'{way}_best']:8.2f} ({1e3 * row[f'{way}_median']:7.2f})" for way in ("serial", "threads")
        ]
        print(f"{name:9}  {times[0]}   {times[1]}  {gain:5.2f}", flush=True)
    drawn = {way: 24e-9 * TRIAD / found["triad"][f"{way}_best"] for way in ("serial", "threads")}
    print(f"triad: {drawn['serial']:.1f} GB/s on one core, {drawn['threads']:.1f} GB/s on two")
    print(f"load at the end {os.getloadavg()[0]:.1f}")
    return found
