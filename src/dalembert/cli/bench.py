"""`dalembert bench [FILE]`: how long dynamics and a run take here."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import tyro

from dalembert.cli.target import print_json, scene_of
from dalembert.errors import ModelError

REQUESTS = ("forward", "inverse", "mass_matrix", "energy")
"""What is timed, as the names of compiled functions."""

SHORTEST = 0.1
"""Seconds that a measurement takes at least; the best of several is told."""

MOST_BATCH = 1_000_000
"""States of a batch: numbers beside it must fit into the memory."""

REPEATS = 3


@dataclass(frozen=True)
class Bench:
    """Time dynamics of a robot or scene on this machine: one state, a batch, and its run in time.

    The first call compiles; it is not timed. Times depend on the machine: compare ratios from one run.

    For example:

        dalembert bench

        dalembert bench robot.urdf --batch 10000
    """

    file: Annotated[Path, tyro.conf.Positional] = Path("stanford_arm")
    """A robot file, a scene or its name."""

    batch: int = 1000
    """States of a batch."""

    base: Literal["auto", "fixed", "floating"] = "auto"
    """What holds the root of a robot file."""

    packages: tuple[Path, ...] = ()
    """Folders besides the file's own from which models may be read."""

    json: bool = False
    """Print plain data instead of words."""

    def run(self) -> int:
        """Measure, print a table, and return the exit code."""
        if self.batch < 1:
            raise ModelError(f"--batch {self.batch} must be at least 1")
        scene = scene_of(self.file, (), self.packages, self.base)
        m = scene.mechanism
        if not 1 <= self.batch <= MOST_BATCH:
            raise ModelError(f"--batch {self.batch}: states are at least one and at most {MOST_BATCH}")
        q, v = scene.start
        timings: dict[str, Any] = {}
        for name in REQUESTS:
            kernel = m.compile(name)
            state = {"q": q, "v": v, "tau": np.zeros(m.nv), "a": np.zeros(m.nv), "t": np.zeros(1)}
            arguments = [state.get(port.name, np.zeros(port.shape)) for port in kernel.inputs]
            many = [np.tile(x, (self.batch, *(1 for _ in np.shape(x)))) for x in arguments]
            timings[name] = {"one state, us": 1e6 * _seconds(lambda k=kernel, x=arguments: k(*x)),
                           "in a batch, us": 1e6 * _seconds(lambda k=kernel, x=many: k(*x)) / self.batch}  # fmt: skip
        run_time = None
        if scene.content.simulate is not None:
            scene.run(progress=False)
            run_time = _seconds(lambda: scene.run(progress=False))
        if self.json:
            print_json(
                {"mechanism": m.name, "nv": m.nv, "machine": platform.machine(), "times": timings, "run, s": run_time}
            )
            return 0
        print(f"{m.name}: {len(m.bodies)} bodies, nv {m.nv}, {len(m.names)} constraint rows")
        print(f"{'':14s}{'one state':>12s}{f'of {self.batch}':>12s}")
        for name, timing in timings.items():
            print(f"{name:14s}{timing['one state, us']:9.2f} us{timing['in a batch, us']:9.3f} us")
        if run_time is not None:
            print(f"the run of {scene.options['duration']:g} s takes {run_time:.3g} s")
        return 0


def _seconds(call: Callable[[], Any]) -> float:
    """Return the shortest time of a call, seconds."""
    call()
    best = np.inf
    for _ in range(REPEATS):
        count, begin = 0, time.perf_counter()
        while (spent := time.perf_counter() - begin) < SHORTEST:
            call()
            count += 1
        best = min(best, spent / count)
    return float(best)
