"""Blocks of runs by compiled loops: what varies as arrays, what is kept as columns; the rest goes run by run.

    route_of(job)      how its runs are made, and why
    compiled_runs     rows of a block that were made so; those that were not are left to `experiment.run`

Both ways have the same bits (`simulate/batch/batch.py`), so a store does not know which was taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from threading import Lock
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from dalembert.ensemble.distributions import NormalVariable
from dalembert.ensemble.experiment import SystemExperiment, _is_maker, _named, single
from dalembert.ensemble.keep import Keeper, of_state
from dalembert.errors import DalembertError, ModelError
from dalembert.model.named_state import configuration_of_names, velocity_of_names
from dalembert.simulate.reductions import ENDS, column
from dalembert.types import Array

if TYPE_CHECKING:
    from dalembert.ensemble.blocks import StudyJob
    from dalembert.simulate.batch.batch import FinishedRuns, RunBatch

TRIED = 20
"""Runs whose start is tried until one can be prepared: as many as are piloted for the shapes of what is kept."""


class BatchPool:
    """Prepared systems of a study: one for each thread that computes blocks at the same time.

    It is freed with the study's experiment, to which it must not refer.
    """

    def __init__(self, variables: tuple[str, ...]) -> None:
        self.variables = variables
        self.free: list[RunBatch] = []
        self.lock, self.reason = Lock(), ""

    def taken(self, job: StudyJob) -> RunBatch | None:
        """Return a prepared system, or None where there is none: `reason` says why."""
        with self.lock:
            if self.reason and not self.reason.startswith("compiled"):
                return None
            if self.free:
                return self.free.pop()
        try:
            batch = self._made(job)
        except DalembertError as error:
            self.reason = f"run by run: {error}"
            return None
        except Exception as error:  # what a single run refuses, or raises: there it has its status
            self.reason = f"run by run: {type(error).__name__}: {error}"
            return None
        self.reason = batch.reason
        return batch

    def give_back(self, batch: RunBatch) -> None:
        """Let others use a prepared system."""
        with self.lock:
            self.free.append(batch)

    def _made(self, job: StudyJob) -> RunBatch:
        from dalembert.simulate.batch.batch import RunBatch, UnsuitedError

        experiment = job.experiment
        assert isinstance(experiment, SystemExperiment)
        if _is_maker(experiment.system):
            raise UnsuitedError("a function makes the systems")
        parts = [name for name in self.variables if name in ("q", "v") or name[:2] in ("q:", "v:")]
        parameters = [name for name in self.variables if name not in parts]
        common = not any(name == "q" or name.startswith("q:") for name in parts)
        for i in range(min(TRIED, job.runs)):
            try:
                system, q, v = experiment.at(single(job.design.draw(i, i + 1), 0))
                return RunBatch(
                    system, experiment.duration, q, v, {**experiment.options, "progress": False}, parameters, common,
                    "" if job.backend == "cpu" else job.backend,
                )  # fmt: skip
            except UnsuitedError:
                raise
            except Exception as error:
                if i + 1 == min(TRIED, job.runs):
                    raise UnsuitedError(f"none of the first {i + 1} runs can be prepared: {error}") from error
        raise UnsuitedError("there are no runs")


_pools: WeakKeyDictionary[Any, dict[tuple[str, ...], BatchPool]] = WeakKeyDictionary()
_lock = Lock()


def pool_of(job: StudyJob) -> BatchPool | str:
    """Return the prepared systems of a study, or why it has none."""
    if not job.batches:
        return "run by run: batches=False"
    if not isinstance(job.experiment, SystemExperiment):
        return "run by run: each run is a scene of its own, whose model may be another"
    functions = [each.name for each in job.keep if each.function is not None]
    if functions:
        return f"run by run: keep {functions[0]!r} is a function of a run"
    variables = tuple(job.design.variables)
    with _lock:
        pools = _pools.setdefault(job.experiment, {})
        return pools.setdefault(variables, BatchPool(variables))


def route_of(job: StudyJob) -> str:
    """Return how the runs of a study are made: "compiled: ...", or "run by run: ..." with the reason."""
    pool = pool_of(job)
    if isinstance(pool, str):
        return pool
    batch = pool.taken(job)
    if batch is not None:
        pool.give_back(batch)
    return pool.reason


def refusal(job: StudyJob) -> str:
    """Return why a backend does not take a study, "" where it does: no run of it would go through the backend."""
    route = route_of(job)
    return "" if job.backend == "cpu" or route.startswith("compiled") else route.removeprefix("run by run: ")


def refuse_backend(job: StudyJob, reason: str) -> None:
    """Refuse a study that a backend does not take."""
    if reason:
        raise ModelError(
            f"backend={job.backend!r} does not take this study: {reason}; leave backend= away: processors take it"
        )


def compiled_runs(
    job: StudyJob, values: Mapping[str, Array], wanted: Array
) -> Iterator[tuple[Array, FinishedRuns, RunBatch, dict[str, Array]]]:
    """Yield rows of a block that compiled loops have made, their runs, and what is kept of each by name."""
    pool = pool_of(job)
    batch = None if isinstance(pool, str) or not wanted.any() else pool.taken(job)
    if batch is None or isinstance(pool, str):
        if wanted.any():
            refuse_backend(job, refusal(job))  # of a worker: nothing goes another way without a word
        return
    experiment = job.experiment
    assert isinstance(experiment, SystemExperiment)
    rows = np.flatnonzero(wanted)
    try:
        given = {name: x[rows] for name, x in values.items()}
        q, v = starts_of(experiment, batch.system, given)
        parameters = {name: given[name] for name in batch.names}
        numbers = batch.values(parameters, rows.size)[0]
        ends = all(keeper.times is None for keeper in job.keep)  # others are of the ends, or of runs made again
        for finished in batch.run(q, v, parameters, rows.size, experiment.project, ends):
            if finished.rows.size:
                kept, good = kept_of_runs(batch, finished, job, numbers)
                yield rows[finished.rows[good]], finished.chosen(good), batch, {n: x[good] for n, x in kept.items()}
    except MemoryError as error:
        if job.backend == "cpu":
            raise
        raise ModelError(
            f"the device has no memory for {rows.size} runs at once ({error}); give block={max(1, rows.size // 4)}"
        ) from error
    except DalembertError as error:  # of this block: its runs are made one by one, and have it as their reason
        if job.backend != "cpu":  # nothing goes another way without a word
            raise ModelError(f"backend={job.backend!r} cannot make a block of {rows.size} runs: {error}") from error
        pool.reason = pool.reason if pool.reason.startswith("run by run") else f"{pool.reason}; a block: {error}"
    finally:
        pool.give_back(batch)


def starts_of(experiment: SystemExperiment, system: Any, values: Mapping[str, Array]) -> tuple[Any, Any]:
    """Return the starts of runs, (N, nq) or what is common to all, and the same of velocities."""
    q, v = experiment.q, values.get("v", experiment.v)
    if "q" in values:
        q = system.integrate(q.mean, values["q"]) if isinstance(q, NormalVariable) else values["q"]
    by_name = configuration_of_names, velocity_of_names
    found = []
    for letter, fixed, resolved in zip("qv", (q, v), by_name, strict=True):
        named = {name: x for name, x in values.items() if name.startswith(f"{letter}:")}
        found.append(_named_rows(system, fixed, named, letter) if named else resolved(system, fixed))
    return found[0], found[1]


def _named_rows(system: Any, fixed: Any, values: Mapping[str, Array], letter: str) -> Array:
    """Return starts of which some coordinates vary, (N, n): by columns, where that is what names mean."""
    size = len(next(iter(values.values())))
    one = lambda k: _named(system, fixed, single(values, k), letter)  # noqa: E731
    names = system.configuration_names if letter == "q" else system.coordinates
    rows = np.tile(one(0), (size, 1))
    if all(name[2:] in names for name in values):
        for name, x in values.items():
            rows[:, names.index(name[2:])] = x
        if all(rows[k].tobytes() == one(k).tobytes() for k in (0, size - 1)):
            return rows
    return np.array([one(k) for k in range(size)])


# ----------------------------------------------------------------------------------------------------------------------
# What is kept of many runs.


def kept_of_runs(batch: RunBatch, f: FinishedRuns, job: StudyJob, values: Array) -> tuple[dict[str, Array], Array]:
    """Return what is kept of each run, (K, ...), and of which runs all of it could be told."""
    several = [each for each in job.keep if each.reduces]
    numbers, good = batch.reduced(f, [(each.quantity, each.take, each.norm) for each in several], values)
    kept = {each.name: rows for each, rows in zip(several, numbers, strict=True)}
    good = good if several else np.ones(f.rows.size, bool)
    for each in job.keep:
        if each.times is not None:
            kept[each.name] = _at_times(batch, f, each, values, good)
        elif not each.reduces:
            kept[each.name] = _at_end(f, each)
        if kept[each.name].shape[1:] != job.shapes[each.name]:
            good[:] = False
            kept[each.name] = np.full((f.rows.size, *job.shapes[each.name]), np.nan)
    return {each.name: kept[each.name] for each in job.keep}, good


def _at_times(batch: RunBatch, f: FinishedRuns, keeper: Keeper, values: Array, good: Array) -> Array:
    times = keeper.times
    assert times is not None
    inside = times <= f.run.t[f.stop - 1].min()
    ends = f.run.t[f.stop - 1]
    if (times < f.run.t[f.first].max()).any() or ends.min() != ends.max():
        good[:] = False  # refused, run by run
        return np.full((f.rows.size, times.size), np.nan)
    q, v, reached = batch.states(f, times[inside], values)
    good &= reached
    rows = of_state(f.run, keeper.quantity, q, v)
    found = np.full((f.rows.size, times.size, *rows.shape[2:]), np.nan)
    found[:, inside] = rows
    return found


def _at_end(f: FinishedRuns, keeper: Keeper) -> Array:
    """Return a quantity at the first or the last sample of each run."""
    rows = column(f.run, keeper.quantity)
    rows = np.linalg.norm(rows, axis=1) if keeper.norm and rows.ndim == 2 else rows
    return np.asarray(rows[f.stop - 1 if ENDS[keeper.take] else f.first], float)
