"""Blocks of runs: what a worker computes, as columns, and writes.

A study is cut into blocks of consecutive runs; a block is one task of an executor and one shard of a store. What a
block holds depends on the study and on its runs alone, never on who computes it or what was computed before.
"""

from __future__ import annotations

import pickle
import platform
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from importlib.metadata import version
from typing import Any

import numpy as np

from dalembert._version import __version__
from dalembert.ensemble.batches import compiled_runs
from dalembert.ensemble.designs import Design
from dalembert.ensemble.experiment import STATUSES, Experiment, Outcome, attempt, single
from dalembert.ensemble.keep import Keeper, kept_of
from dalembert.errors import DalembertError, ModelError
from dalembert.types import Array

REASON = 400
"""Bytes that are kept of the reason why a run has no answer."""

LOST = "the run killed its worker twice: memory that ran out, or a crash in compiled code"

PILOTS = 20
"""Runs that are tried until one tells the shapes of what is kept."""

EVENT_FIELDS = ("run", "time", "contact", "old", "new")
"""What is recorded of every event."""


def versions() -> dict[str, str]:
    """Return the versions that must agree between workers for runs to have the same bits."""
    found = {"dalembert": __version__}
    found |= {name: version(name) for name in ("numpy", "scipy", "numba", "casadi")}
    return found | {"python": ".".join(platform.python_version_tuple()[:2]), "machine": platform.machine()}


class WorkerMismatchError(DalembertError):
    """A worker has other versions than the process that began the study."""


@dataclass(frozen=True, eq=False)
class StudyJob:
    """All that a worker needs to know of a study.

    Attributes
    ----------
    shapes
        Of what is kept of one run, by name.
    block
        Runs of a block.
    store
        Where blocks are written; "" where they are handed back.
    record_events
        Whether every event is recorded, not their number alone.
    batches
        Whether runs go through compiled loops together where they can; the bits are the same either way.
    backend
        "cpu": processors; else the backend of kernels on which all runs of a block go in step with each other.
    """

    experiment: Experiment
    design: Design
    keep: tuple[Keeper, ...]
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    block: int = 1
    store: str = ""
    record_events: bool = False
    versions: dict[str, str] = field(default_factory=dict)
    batches: bool = True
    backend: str = "cpu"

    @property
    def runs(self) -> int:
        """Number of runs."""
        return self.design.runs

    @property
    def blocks(self) -> int:
        """Number of blocks."""
        return -(-self.runs // self.block)

    def ends(self, block: int) -> tuple[int, int]:
        """Return the first run of a block, and the one after its last."""
        return block * self.block, min((block + 1) * self.block, self.runs)

    def outcome(self, i: int, values: Mapping[str, Any] | None = None) -> Outcome:
        """Return run i; its values are drawn if none are given."""
        return attempt(lambda: self.run(i, values))

    def run(self, i: int, values: Mapping[str, Any] | None = None) -> Any:
        """Return the trajectory of run i, or raise what it, or a function that draws for it, raises."""
        values = single(self.design.draw(i, i + 1), 0) if values is None else values
        self.design.raise_undrawn(i, values)
        return self.experiment.run(values)


@dataclass(eq=False)
class RunColumns:
    """The runs of a block, N of them, as columns.

    Attributes
    ----------
    arrays
        By name: status (N,), reason (N, REASON), end_time, event_count, steps (N,), inputs/..., kept/...; alone (N,),
        whether `da.simulate` made the run, where the others went through another backend.
    events
        Rows of `EVENT_FIELDS`.
    """

    first: int
    arrays: dict[str, Array]
    events: list[tuple[int, float, str, str, str]] = field(default_factory=list)

    @property
    def counts(self) -> Counter[str]:
        """Number of runs by status."""
        return Counter(STATUSES[code] for code in self.arrays["status"])


def empty_arrays(job: StudyJob, count: int) -> dict[str, Array]:
    """Return the columns of runs that are missing."""
    arrays: dict[str, Array] = {
        "status": np.zeros(count, np.uint8), "reason": np.zeros((count, REASON), np.uint8),
        "end_time": np.full(count, np.nan), "event_count": np.zeros(count, np.int64),
        "steps": np.zeros(count, np.int64),
    }  # fmt: skip
    if job.backend != "cpu":
        arrays["alone"] = np.zeros(count, np.uint8)
    for name, variable in job.design.variables.items():
        arrays[f"inputs/{name}"] = np.full((count, *variable.shape), np.nan)
    for name, shape in job.shapes.items():
        arrays[f"kept/{name}"] = np.full((count, *shape), np.nan)
    return arrays


def compute(job: StudyJob, first: int, stop: int, lost: Sequence[int] = ()) -> RunColumns:
    """Run the runs first ... stop - 1; those that are lost are not tried."""
    columns = RunColumns(first, empty_arrays(job, stop - first))
    values = job.design.draw(first, stop)
    for name, rows in values.items():
        columns.arrays[f"inputs/{name}"][:] = rows
    wanted = np.ones(stop - first, bool)
    wanted[[i - first for i in lost if first <= i < stop]] = False
    for rows, finished, batch, kept in compiled_runs(job, values, wanted) if job.shapes else ():
        _write_all(job, columns, rows, finished, batch, kept)
        wanted[rows] = False
    if job.backend != "cpu":
        columns.arrays["alone"][wanted] = 1
    for row in range(stop - first):
        i = first + row
        if not wanted[row] and i not in lost:
            continue
        lost_now = Outcome(None, "lost", LOST) if i in lost else None
        _write(job, columns, row, lost_now or job.outcome(i, single(values, row)))
    columns.events.sort(key=lambda event: event[0])
    return columns


def _write_all(
    job: StudyJob, columns: RunColumns, rows: Array, finished: Any, batch: Any, kept: dict[str, Array]
) -> None:
    """Write runs that reached their end in compiled loops; events lie in the order of runs."""
    arrays = columns.arrays
    arrays["status"][rows] = STATUSES.index("completed")
    arrays["end_time"][rows] = finished.run.t[finished.stop - 1]
    arrays["steps"][rows] = finished.steps
    of = dict(zip(finished.rows.tolist(), rows.tolist(), strict=True))
    owners = [of[int(k)] for k in finished.events[:, 0]]
    np.add.at(arrays["event_count"], owners, 1)
    if job.record_events:
        several = zip(owners, finished.events, strict=True)
        columns.events += [(columns.first + row, *batch.runner.described(event)) for row, event in several]
    for name, values in kept.items():
        arrays[f"kept/{name}"][rows] = values


def _write(job: StudyJob, columns: RunColumns, row: int, outcome: Outcome) -> None:
    arrays, run = columns.arrays, outcome.run
    if run is not None:
        arrays["end_time"][row], arrays["event_count"][row] = run.t[-1], len(run.events)
        arrays["steps"][row] = run.steps
        if job.record_events:
            i = columns.first + row
            columns.events += [(i, float(e.time), str(e.contact), str(e.old), str(e.new)) for e in run.events]
        try:
            for name, value in kept_of(run, job.keep, job.shapes).items():
                arrays[f"kept/{name}"][row] = value
        except DalembertError as error:
            if outcome.ok:  # a run that did not reach its end has its own reason
                outcome = Outcome(None, "failed", str(error))
    arrays["status"][row] = STATUSES.index(outcome.status)
    text = outcome.reason.encode()[:REASON]
    arrays["reason"][row, : len(text)] = np.frombuffer(text, np.uint8)


def reason_text(row: Array) -> str:
    """Return a reason out of its bytes; a letter that was cut is left out."""
    return bytes(row).rstrip(b"\0").decode(errors="ignore")


def pilot_shapes(job: StudyJob | bytes, i: int) -> dict[str, tuple[int, ...]] | str:
    """Return the shapes of what is kept of run i, or why it has no answer."""
    job = arrived(job)
    outcome = job.outcome(i)
    if not outcome.ok:
        return f"run {i}: {outcome.status}, {outcome.reason}"
    return {name: value.shape for name, value in kept_of(outcome.run, job.keep, None).items()}


def with_shapes(
    job: StudyJob, shapes_of: Callable[[StudyJob, int], dict[str, tuple[int, ...]] | str] = pilot_shapes
) -> StudyJob:
    """Return the job with the shapes of what is kept, from the first run that reaches its end."""
    if job.shapes.keys() == {keeper.name for keeper in job.keep}:
        return job
    reasons = []
    for i in range(min(PILOTS, job.runs)):
        found = shapes_of(job, i)
        if not isinstance(found, str):
            return replace(job, shapes=found)
        reasons.append(found)
    raise ModelError(
        f"none of the first {len(reasons)} runs reached its end, so that nothing can be kept; {reasons[0]}"
    )


# ----------------------------------------------------------------------------------------------------------------------
# The worker's side: a job arrives as bytes, once per process it is made into objects.


def packed(job: StudyJob) -> bytes:
    """Return a job as bytes; functions go by value where `cloudpickle` is there (it comes with Dask)."""
    try:
        import cloudpickle as pickler
    except ImportError:
        pickler = pickle
    try:
        return pickler.dumps(job)
    except Exception as error:
        raise ModelError(
            f"the study cannot be sent to another process: {error}; functions must be at the top of a module, or "
            'install cloudpickle: pip install "dalembert[cluster]"'
        ) from error


_arrived: dict[str, StudyJob] = {}
"""The job that this process works on, by the digest of its bytes."""


def job_of(payload: bytes) -> StudyJob:
    """Return the job in the bytes, made when they first arrive; other versions than the sender's are refused."""
    key = sha256(payload).hexdigest()
    if key not in _arrived:
        job = pickle.loads(payload)
        here = versions()
        other = [
            f"{name} {here[name]} instead of {job.versions[name]}" for name in here if here[name] != job.versions[name]
        ]
        if other:
            raise WorkerMismatchError(
                f"worker {platform.node()} has {', '.join(other)}: runs would not have the same bits; install the same "
                "versions on all machines"
            )
        _arrived.clear()
        _arrived[key] = job
    return _arrived[key]


def arrived(job: bytes | StudyJob) -> StudyJob:
    """Return a job that was sent, or is one already."""
    return job if isinstance(job, StudyJob) else job_of(job)


def run_block(payload: bytes | StudyJob, first: int, stop: int, lost: Sequence[int] = (), write: bool = True) -> Any:
    """Compute a block; write it to the store and return the counts of statuses, or return it where there is none.

    With `write` False it is computed and forgotten: whether it can be, is what is asked.
    """
    job = arrived(payload)
    columns = compute(job, first, stop, lost)
    if not write:
        return None
    if not job.store:
        return columns
    from dalembert.ensemble.store import write_block

    write_block(job, columns)
    return columns.counts
