"""Plans: what a study costs, from pilot runs; the size of its blocks.

    seconds = (start + runs s) / (cores efficiency)       bytes = runs (columns + kept)

with s the mean time of a pilot run after the first, which loads or compiles its code. Runs that go through compiled
loops together are timed together: alone each would seem to cost what its block costs.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass

import numpy as np

from dalembert.ensemble.batches import refusal, refuse_backend, route_of
from dalembert.ensemble.blocks import StudyJob, arrived, compute, empty_arrays, with_shapes

TARGET = 10.0
"""Seconds of a block: long beside what a scheduler takes for a task, short beside what a death may cost."""

PER_WORKER = 4
"""Blocks that each worker gets at least, so that none waits long for the last."""

MOST_BLOCKS = 100_000
"""Blocks of a study: a scheduler and a folder take so many."""

TIMED = 3
"""Pieces whose time decides the size of blocks."""

FEW = 64
"""Runs of the first piece."""

GUESS = 1.0
"""Seconds of a run that cannot be timed."""

PIECE, PIECE_IN_STEP = 0.02, 0.5
"""Seconds of a piece of compiled runs that is timed; the second where all runs go in step, and few cost as many."""


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


def timed(job: StudyJob, pieces: int) -> tuple[int, list[float], Counter[str]]:
    """Return the runs of a piece, seconds per run in each of some pieces, and what became of all their runs.

    Code is there after the pilot run. A piece is one run, or as many as take `PIECE` seconds in compiled loops.
    """
    enough, pieces = (PIECE, pieces) if job.backend == "cpu" else (PIECE_IN_STEP, min(pieces, TIMED))
    together = route_of(job).startswith("compiled")
    size = min(FEW, job.runs) if together else 1
    seconds = [_seconds(job, 0, size)[0] for _ in range(2 if together else 1)][-1]  # loops are loaded by the first
    while together and seconds < enough and size < job.runs:
        size = min(job.runs, max(2 * size, min(8 * size, int(size * enough / max(seconds, 1e-9)) + 1)))
        seconds = _seconds(job, 0, size)[0]
    found, counts = [], Counter[str]()
    for k in range(max(1, min(pieces, job.runs // size))):
        seconds, several = _seconds(job, k * size, (k + 1) * size)
        found.append(seconds / size)
        counts += several
    return size, found, counts


def _seconds(job: StudyJob, first: int, stop: int) -> tuple[float, Counter[str]]:
    begun = time.perf_counter()
    columns = compute(job, first, stop)
    return time.perf_counter() - begun, columns.counts


def block_of(job: StudyJob | bytes, workers: int) -> int:
    """Return the runs of a block, from the time of some runs."""
    job = arrived(job)
    return _block(job, float(np.mean(timed(job, TIMED)[1])), workers)


def safe_block(job: StudyJob, workers: int) -> int:
    """Return the runs of a block where runs that are timed kill their worker."""
    return _block(job, GUESS, workers)


def _block(job: StudyJob, seconds: float, workers: int) -> int:
    each = PER_WORKER if job.backend == "cpu" else 1  # in step few runs take as long as many
    size = min(int(TARGET / max(seconds, 1e-9)), -(-job.runs // (each * workers)))
    return max(1, size, -(-job.runs // MOST_BLOCKS))


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
    route
        How runs are made, and why.
    backend
        Of the study: cores are devices where it is not "cpu".
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
    route: str = ""
    backend: str = "cpu"

    @property
    def unit(self) -> str:
        """What hours are counted of."""
        return "core" if self.backend == "cpu" else "device"

    def __str__(self) -> str:
        error = self.spread / np.sqrt(self.pilots) / max(self.seconds_per_run, 1e-300)
        known = f"+- {error:.0%}, " if np.isfinite(error) else ""
        several = f"{self.cores} {self.unit}{'s' * (self.cores > 1)}"
        lines = [
            f"{self.runs:.4g} runs on {several}: {duration_words(self.wall_seconds)}, "
            f"{self.core_hours:.3g} {self.unit} hours, {self.bytes / 1e9:.3g} GB",
            f"  {1e3 * self.seconds_per_run:.3g} ms a run ({known}{self.pilots} pilot runs, {self.failed} "
            f"without an answer); first run {self.start:.2g} s",
            f"  {self.blocks} blocks of {self.block} runs; {self.route}",
        ]
        return "\n".join(lines + ([f"  price {self.price:.4g}"] if self.price else []))


def pilot(job: StudyJob, pilots: int, cores: int, price: float) -> StudyPlan:
    """Return the plan of a study, from the times of its first runs."""
    begun = time.perf_counter()
    refuse_backend(job, refusal(job))
    job = with_shapes(job)
    start = time.perf_counter() - begun
    size, times, counts = timed(job, max(2, pilots))
    s, runs = float(np.mean(times)), size * len(times)
    failed = runs - counts["completed"] - counts["event"]
    spread = float(np.std(times, ddof=1)) * np.sqrt(size) if len(times) > 1 else np.nan
    block = _block(job, s, cores)
    hours = job.runs * s / 3600.0
    return StudyPlan(
        job.runs, cores, runs, s, spread, start, start + job.runs * s / cores, hours, job.runs * bytes_per_run(job),
        block, -(-job.runs // block), failed, price * hours, route_of(job), job.backend,
    )  # fmt: skip
