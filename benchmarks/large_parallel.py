"""One state of 100,000 bodies on two threads, beside one thread; and what could be gained at best.

    python benchmarks/large.py --parallel

    branches  one mechanism with two branches of n / 2 on the ground: `compile("forward")` without and with threads=2
    tree      every link carries two others, the same
    chain     no branches: the same, which is not split
    chains    two mechanisms, chains of n / 2 hinges: one after the other, or one on each thread. No route that splits a
              state can be faster than this
    triad     a = b + s c over arrays far beyond the caches: what one and two cores draw from memory
    halving   a chain cut in two: what that could gain and does (`large_halving.py`, which is not part of the library)

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
import large_halving
import large_models as models

SECONDS = 8.0
"""For each case."""

TRIAD = 8_000_000
"""Doubles in each of three arrays."""

Action = Callable[[], Any]


def branches(n: int) -> da.Mechanism:
    """Return two chains of n / 2 hinges, side by side on the ground."""
    b = da.Builder(f"two branches of {n // 2}")
    for k in range(2):
        for i in range(n // 2):
            b.body(f"b{k}.{i}", **models.LINK)
            parent, place = (f"b{k}.{i - 1}", (0, 0, -1)) if i else ("world", (float(k), 0, 0))
            b.joint(f"j{k}.{i}", "revolute", parent=parent, child=f"b{k}.{i}", axis=models.AXES[i % 3], position=place)
    return b.build()


def ready(mechanism: da.Mechanism, threads: int = 1) -> Action:
    """Return a call of forward dynamics at a state; with threads print what they share."""
    kernel, state = mechanism.compile("forward", backend="looped", threads=threads), models.state(mechanism)
    if threads > 1:
        print(f"{mechanism.name}: {kernel.report().shared}")
    return lambda: kernel(*state)


@njit(nogil=True)
def triad(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> None:
    """Set a = b + 3 c."""
    for i in range(len(a)):
        a[i] = b[i] + 3.0 * c[i]


def of_memory(count: int) -> Action:
    """Return a triad over one of `count` parts of its arrays."""
    a, b, c = np.ones((3, TRIAD // count))  # not zeros, which the system may all keep in one page
    return lambda: triad(a, b, c)


def at_once(actions: list[Action]) -> Action:
    """Return all actions, each on a thread of its own."""
    pool = ThreadPoolExecutor(len(actions))

    def both() -> None:
        for each in [pool.submit(action) for action in actions]:
            each.result()

    return both


def compared(serial: Action, threads: Action, seconds: float) -> dict[str, float]:
    """Return seconds of both, best and median."""
    found: tuple[list[float], list[float]] = [], []
    for action in (serial, threads):
        action()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for action, times in zip((serial, threads), found, strict=True):
            begin = time.perf_counter()
            action()
            times.append(time.perf_counter() - begin)
    names = ("serial", "threads")
    best = {f"{name}_best": min(times) for name, times in zip(names, found, strict=True)}
    return best | {f"{name}_median": float(np.median(times)) for name, times in zip(names, found, strict=True)}


def cases(n: int) -> dict[str, tuple[Action, Action]]:
    """Return what is measured: on one thread, on two."""
    shapes = {"branches": branches(n), "tree": models.tree(n), "chain": models.chain(n, held=False)}
    halves = [ready(models.chain(n // 2, held=False)) for _ in range(2)]
    routes = {name: (ready(mechanism), ready(mechanism, 2)) for name, mechanism in shapes.items()}
    return routes | {
        "chains": (lambda: [half() for half in halves], at_once(halves)),
        "triad": (of_memory(1), at_once([of_memory(2) for _ in range(2)])),
    }


def measured(n: int = 100_000, seconds: float = SECONDS) -> dict[str, Any]:
    """Print and return serial beside two threads."""
    found: dict[str, Any] = {"cores": os.cpu_count(), "load": os.getloadavg()[0]}
    actions = cases(n)
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; ms, best (median)")
    print("case              serial          two threads      times as fast, best (median)")
    for name, (one, two) in actions.items():
        row = found[name] = compared(one, two, seconds)
        times = [
            f"{1e3 * row[f'{way}_best']:8.2f} ({1e3 * row[f'{way}_median']:7.2f})" for way in ("serial", "threads")
        ]
        gains = [row[f"serial_{word}"] / row[f"threads_{word}"] for word in ("best", "median")]
        print(f"{name:9}  {times[0]}   {times[1]}  {gains[0]:5.2f} ({gains[1]:.2f})", flush=True)
    drawn = {way: 24e-9 * TRIAD / found["triad"][f"{way}_best"] for way in ("serial", "threads")}
    print(f"triad: {drawn['serial']:.1f} GB/s on one core, {drawn['threads']:.1f} GB/s on two")
    found["halving"] = large_halving.measured(n, compared, seconds)
    print(f"load at the end {os.getloadavg()[0]:.1f}")
    return found
