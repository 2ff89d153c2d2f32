"""Plans: what a study costs, from pilot runs; the size of its blocks.

    seconds = (start + runs s) / (cores efficiency)       bytes = runs (columns + kept)

with s the mean time of a pilot run after the first, which loads or compiles its code.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from dalembert.ensemble.blocks import StudyJob, compute, empty_arrays, with_shapes

TARGET = 10.0
"""Seconds of a block: long beside what a scheduler takes for a task, short beside what a death may cost."""

PER_WORKER = 4
"""Blocks that each worker gets at least, so that none waits long for the last."""

MOST_BLOCKS = 100_000
"""Blocks of a study: a scheduler and a folder take so many."""

TIMED = 3
"""Runs whose time decides the size of blocks."""


UNITS = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s"))


def duration_words(seconds: float) -> str:
    """Return a duration in the largest unit that fits."""
    for size, unit in UNITS:
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.2g} s"


def bytes_per_run(job: StudyJob) -> int:
    """Return what a run takes before compression; reasons of runs that reached their end take nothing in a store."""
    return sum(rows.nbytes for name, rows in empty_arrays(job, 1).items() if name != "reason")


def seconds_per_run(job: StudyJob, runs: int) -> list[float]:
    """Return the times of the first runs; code is there after the pilot run."""
    found = []
    for i in range(min(runs, job.runs)):
        begun = time.perf_counter()
        compute(job, i, i + 1)
        found.append(time.perf_counter() - begun)
    return found


def block_of(job: StudyJob, workers: int) -> int:
    """Return the runs of a block."""
    return _block(float(np.mean(seconds_per_run(job, TIMED))), job.runs, workers)


def _block(seconds: float, runs: int, workers: int) -> int:
    size = min(int(TARGET / max(seconds, 1e-9)), -(-runs // (PER_WORKER * workers)))
    return max(1, size, -(-runs // MOST_BLOCKS))


@dataclass(frozen=True)
class StudyPlan:
    """What a study will cost.

    Attributes
    ----------
    runs, cores
        Of the study.
    seconds_per_run, spread
        Mean over the pilot runs, and their standard deviation.
    start
        Seconds of the first run, in which code is loaded or compiled, once per process.
    wall_seconds, core_hours
        Of the whole study, with all cores busy.
    bytes
        Of the arrays before compression.
    block, blocks
        Runs of a block, number of blocks.
    failed
        Pilot runs that did not reach their end.
    price
        For all core hours.
    """

    runs: int
    cores: int
    pilots: int
    seconds_per_run: float
    spread: float
    start: float
    wall_seconds: float
    core_hours: float
    bytes: int
    block: int
    blocks: int
    failed: int
    price: float

    def __str__(self) -> str:
        error = self.spread / np.sqrt(self.pilots) / max(self.seconds_per_run, 1e-300)
        lines = [
            f"{self.runs:.4g} runs on {self.cores} cores: {duration_words(self.wall_seconds)}, "
            f"{self.core_hours:.3g} core hours, {self.bytes / 1e9:.3g} GB",
            f"  {1e3 * self.seconds_per_run:.3g} ms a run (+- {error:.0%}, {self.pilots} pilot runs, {self.failed} "
            f"without an answer); first run {self.start:.2g} s",
            f"  {self.blocks} blocks of {self.block} runs",
        ]
        return "\n".join(lines + ([f"  price {self.price:.4g}"] if self.price else []))


def pilot(job: StudyJob, pilots: int, cores: int, price: float) -> StudyPlan:
    """Return the plan of a study, from the times of its first runs."""
    begun = time.perf_counter()
    job = with_shapes(job)
    start = time.perf_counter() - begun
    times = seconds_per_run(job, max(2, pilots))
    s = float(np.mean(times))
    columns = compute(job, 0, min(len(times), job.runs))
    failed = len(times) - columns.counts["completed"] - columns.counts["event"]
    block = _block(s, job.runs, cores)
    hours = job.runs * s / 3600.0
    return StudyPlan(
        job.runs, cores, len(times), s, float(np.std(times, ddof=1)) if len(times) > 1 else 0.0, start,
        start + job.runs * s / cores, hours, job.runs * bytes_per_run(job), block, -(-job.runs // block), failed,
        price * hours,
    )  # fmt: skip
