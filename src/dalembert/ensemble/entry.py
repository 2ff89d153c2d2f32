"""`da.ensemble`: one system, many runs; begun, resumed, opened, and planned before it is paid for."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dalembert.checks import one_number, whole_number
from dalembert.ensemble.batches import refusal, refuse_backend
from dalembert.ensemble.blocks import (
    LOST,
    RunColumns,
    StudyJob,
    arrived,
    compute,
    packed,
    pilot_shapes,
    versions,
    with_shapes,
)
from dalembert.ensemble.designs import Design, design_of
from dalembert.ensemble.executors import BlockWorkers, Driver, ThreadWorkers, available_cores, workers_of
from dalembert.ensemble.experiment import (
    Experiment,
    StoredExperiment,
    SystemExperiment,
    split_parameters,
    split_start,
    stored_experiment,
)
from dalembert.ensemble.keep import keepers, keepers_of
from dalembert.ensemble.plan import StudyPlan, block_of, duration_words, pilot, safe_block
from dalembert.ensemble.store import (
    SCHEMA,
    DamagedStoreError,
    StoredColumns,
    block_size,
    checked_names,
    create,
    mend_layout,
    remove_partial,
)
from dalembert.ensemble.study import MemoryColumns, Study
from dalembert.errors import DalembertError, ModelError
from dalembert.names import near_matches
from dalembert.progress import ProgressBar

MOST_IN_MEMORY = 2 * 2**30
"""Bytes that a study without a store may hold."""


class StudyProgress(ProgressBar):
    """The bar of a study: runs done, rate, remaining time, runs by status."""

    def __init__(self, runs: int, done: int, progress: bool | None) -> None:
        super().__init__("runs", 0, runs, asked=bool(progress))
        self.at, self.already, self.counts = done, done, Counter()
        self.silent = progress is False

    def add(self, counts: Counter[str]) -> None:
        """Count the runs of a block."""
        self.counts += counts
        if not self.silent:
            self(self.at + sum(counts.values()))
        else:
            self.at += sum(counts.values())

    @property
    def place(self) -> str:
        """Where the study is, in words."""
        seconds = max(time.monotonic() - self.begun, 1e-9)
        rate = (self.at - self.already) / seconds
        words = f"{self.at:.0f} of {self.end:.0f}"
        if rate > 0.0:
            words += f", {rate:.3g} runs/s, {duration_words((self.end - self.at) / rate)} left"
        counts = ", ".join(f"{count} {word}" for word, count in self.counts.most_common())
        return f"{words}; {counts}" if counts else words


class EnsembleCall:
    """Runs of one system, from one to ten million: `da.ensemble(...)`, `.resume`, `.open`, `.plan`."""

    def __call__(
        self,
        system: Any,
        duration: float,
        q: Any = None,
        v: Any = None,
        *,
        runs: int | None = None,
        seed: int = 0,
        parameters: Mapping[str, Any] | None = None,
        design: str = "random",
        keep: Any = None,
        record_events: bool = False,
        to: str | Path | None = None,
        overwrite: bool = False,
        executor: Any = None,
        block: int | None = None,
        project: bool = False,
        batches: bool = True,
        backend: str = "cpu",
        progress: bool | None = None,
        **options: Any,
    ) -> Study:
        """Simulate a system many times, with other starts and parameters.

        Parameters
        ----------
        system
            What `da.simulate` takes, or a function that makes it of the parameters: `make(k=3.0)`.
        duration, options
            As of `da.simulate`. `method="auto"` is decided run by run.
        q, v
            The start: the same for all runs, a distribution (`da.normal`, `da.uniform`), one row per run (runs, n), a
            function of a generator, or a dict by coordinate of numbers and distributions (of `scipy.stats`, too).
        runs, seed
            How many; without `runs` all combinations of the lists. Run i depends on seed and i alone.
        parameters
            Values by name: numbers, distributions, lists (all combinations), `da.values` (one after the other). Those
            of a Lagrangian, of `Mechanism.with_parameters` ("mass:load"), or arguments of the function.
        design
            "random", "sobol", "halton", "latin", "saltelli" (for Sobol indices, runs = N (inputs + 2)).
        keep
            What is kept of a run, by name: `{"end": "q", "peak": ("hinge", "max"), "path": ("q", times), "mine":
            lambda run: ...}`; the last q and v by default.
        record_events
            Keep every event, not their number alone.
        to, overwrite
            A store, "study.zarr", written block by block; `da.ensemble.resume` goes on with it.
        executor
            None: threads. A number: processes. A `concurrent.futures.Executor` (MPI, Slurm), or a
            `dask.distributed.Client`.
        block
            Runs of a block; by default some ten seconds of work.
        project
            Put every start on the constraints (`system.project`) before the run.
        batches
            False: every run by itself. By default runs go through compiled loops together where they can; the bits are
            the same, and `study.route` says which way was taken, and why.
        backend
            "cpu", or "cuda": all runs of a block go in step on a GPU, to the same tolerance and not to the same bits.
            Smooth systems alone; others are refused with the reason.

        Returns
        -------
        Study
            With a status and a reason for every run: none of them raises.
        """
        job = self.job(
            system, duration, q, v, runs=runs, seed=seed, parameters=parameters, design=design, keep=keep,
            record_events=record_events, project=project, batches=batches,
            backend=backend, **options,
        )  # fmt: skip
        return self.of(job, to=to, overwrite=overwrite, executor=executor, block=block, progress=progress)

    def job(
        self, system: Any, duration: float, q: Any = None, v: Any = None, *, runs: Any = None, seed: int = 0,
        parameters: Mapping[str, Any] | None = None, design: str = "random", keep: Any = None,
        record_events: bool = False, project: bool = False, batches: bool = True, backend: str = "cpu",
        **options: Any,
    ) -> StudyJob:  # fmt: skip
        """Return the description of a study, checked; nothing is run."""
        for word in ("file", "on_step"):
            if options.get(word) is not None:
                raise ModelError(f"{word}= is for one run: study.rerun(i) gives one")
        device = options.pop("device", "cpu")
        if device != "cpu":
            raise ModelError(f'device={device!r}: studies say where they run by backend=: "cpu", or "cuda" for a GPU')
        checked_backend(backend, batches)
        fixed_q, of_q = split_start(q, "q", system)
        fixed_v, of_v = split_start(v, "v", system)
        fixed, varying = split_parameters(parameters)
        experiment = SystemExperiment(system, duration, fixed_q, fixed_v, fixed, project, options)
        job = study_job(experiment, of_q | of_v | varying, runs, seed, design, keep, record_events)
        return replace(job, batches=bool(batches), backend=backend)

    def of(
        self, job: StudyJob, *, to: Any = None, overwrite: bool = False, executor: Any = None, block: Any = None,
        progress: bool | None = None,
    ) -> Study:  # fmt: skip
        """Run a study that is described."""
        workers = workers_of(executor, job.backend)
        try:
            job = replace(job, versions=versions(), store=store_path(to))
            job = on_device(job, workers)
            if block is not None and whole_number(block, "block") < 1:
                raise ModelError(f"block={block!r}: a block has at least one run")
            job, size = piloted(job, workers, None if block is None else whole_number(block, "block"))
            job = replace(job, block=block_size(size) if job.store else size)
            if job.store:
                create(job, described(job), overwrite)
            else:
                refuse_too_large(job)
            return drive(job, workers, range(job.blocks), progress)
        finally:
            workers.close()

    @staticmethod
    def resume(
        path: str | Path,
        executor: Any = None,
        progress: bool | None = None,
        *,
        backend: str | None = None,
        **given: Any,
    ) -> Study:
        """Compute what is missing in a store, and return the study.

        Parameters
        ----------
        backend
            That of the store, which another one would mix with runs of other bits.
        given
            What a store cannot hold since it is code: `keep=` (functions), `system=` (matrices, a function that makes
            systems), `force=`, `events=`, ...; the error names it. A run that is done is made again with it, and must
            have the bits that it had.
        """
        study = opened(path, given, "missing", mend=True)
        if backend not in (None, study.job.backend):
            raise ModelError(
                f"{path} was begun with backend={study.job.backend!r}, and runs of backend={backend!r} would not have "
                "the same bits; leave it out, the store holds it"
            )
        if isinstance(study.job.experiment, StoredExperiment):
            raise ModelError(study.job.experiment.reason)
        here, then = versions(), study.job.versions
        other = [f"{name} {here[name]} instead of {then.get(name)}" for name in here if here[name] != then.get(name)]
        if other:
            raise ModelError(
                f"{path} was begun with other versions: {', '.join(other)}; runs of both would not have the same bits"
            )
        missing = [k for k, done in enumerate(_stored(study).done()) if not done]
        if not missing:
            return study
        if given:
            refuse_other(study)
        workers = workers_of(executor, study.job.backend)
        try:
            job = on_device(study.job, workers)
            refuse_other_device(study.job, job)
            return drive(job, workers, missing, progress)
        finally:
            workers.close()

    @staticmethod
    def open(path: str | Path, *, damaged: str = "refused", **given: Any) -> Study:
        """Return the study in a store, complete or not; `given` as for `resume`, where runs are wanted again.

        Parameters
        ----------
        damaged
            What is read is compared with its checksums. "refused": an array of which a block is damaged is an error
            when it is asked for. "missing": all blocks are read now, and runs of damaged ones are missing.
        """
        if damaged not in ("refused", "missing"):
            raise ModelError(f'damaged={damaged!r} is neither "refused" nor "missing"')
        return opened(path, given, damaged)

    def plan(
        self, system: Any, duration: float, q: Any = None, v: Any = None, *, runs: Any, cores: int | None = None,
        pilots: int = 20, price: float = 0.0, **options: Any,
    ) -> StudyPlan:  # fmt: skip
        """Return what a study will cost, from a few of its runs: seconds, bytes, blocks.

        Parameters
        ----------
        runs, cores, price
            Of the study that is planned: how many runs on how many cores, money per core and hour. With
            `backend="cuda"` they are devices, one by default.
        pilots
            Runs that are timed here.
        options
            All others of `da.ensemble`.
        """
        for word in ("to", "overwrite", "executor", "block", "progress"):  # what a plan is made for, and does not use
            options.pop(word, None)
        usual = available_cores() if options.get("backend", "cpu") == "cpu" else 1
        cores = usual if cores is None else whole_number(cores, "cores")
        if cores < 1:
            raise ModelError(f"cores={cores}: at least one is needed")
        job = self.job(system, duration, q, v, runs=runs, **options)
        device_versions(job.backend)  # without a device this is said, as of a study
        return pilot(job, whole_number(pilots, "pilots"), cores, one_number(price, "price"))


ensemble = EnsembleCall()


def opened(path: str | Path, given: Mapping[str, Any], damaged: str, mend: bool = False) -> Study:
    """Return the study in a store; `mend`: what it says of shapes is written again where that is damaged."""
    columns = StoredColumns(path)
    job: Any = None
    try:
        job = job_of_description(columns.description, str(Path(path).absolute()), given)
        columns.expect(job)
    except DamagedStoreError:
        if not mend or isinstance(job.experiment, StoredExperiment):
            raise
        columns = mended(job, columns)
    except DalembertError:
        raise
    except Exception as error:  # a description that no version wrote
        raise ModelError(f"{path} does not describe a study: {type(error).__name__}: {error}") from error
    if damaged == "missing":
        columns.leave_out_damaged()
    return Study(job, columns)


def mended(job: StudyJob, columns: StoredColumns) -> StoredColumns:
    """Return a store in which arrays have the shapes that its description asks for; blocks are looked at as always."""
    try:
        mend_layout(job, columns.description)
    except DalembertError:
        raise
    except Exception as error:
        raise ModelError(f"{job.store} does not describe a study: {type(error).__name__}: {error}") from error
    columns = StoredColumns(job.store)
    columns.expect(job)
    return columns


def study_job(
    experiment: Experiment, variables: Mapping[str, Any], runs: Any, seed: int, design: str, keep: Any,
    record_events: bool = False,
) -> StudyJob:  # fmt: skip
    """Return the description of a study of any experiment."""
    count = None if runs is None else whole_number(runs, "runs")
    points = Design.of(design, whole_number(seed, "seed"), count, variables)
    return StudyJob(experiment, points, keepers(keep), record_events=bool(record_events))


BACKENDS = ("cpu", "cuda")
"""Where studies run."""


def checked_backend(backend: Any, batches: bool = True) -> None:
    """Refuse a backend that there is not."""
    if backend not in BACKENDS:
        known = ", ".join(map(repr, BACKENDS))
        raise ModelError(f"backend={backend!r}: studies run on {known}", near=near_matches(str(backend), BACKENDS))
    if backend != "cpu" and not batches:
        raise ModelError(f"backend={backend!r} takes runs together: batches=False is for processors")


def on_device(job: StudyJob, workers: BlockWorkers) -> StudyJob:
    """Return the job with the versions of its backend; refuse one that the workers' devices do not take."""
    if job.backend == "cpu":
        return job
    if workers.remote:
        survived, found = workers.alone(device_of, packed(job))
        missing, reason, words = found if survived else ("", "a worker died that looked at it", {})
        if missing:
            raise ModelError(f"workers cannot take backend={job.backend!r}: {missing}")
    else:
        words = device_versions(job.backend)
        reason = refusal(job)
    refuse_backend(job, reason)
    return replace(job, versions=job.versions | words)


def device_versions(backend: str) -> dict[str, str]:
    """Return the versions of what compiles for a device; where there is none, this is said."""
    from dalembert.simulate.batch.lanes import compiler_versions

    return compiler_versions(backend)


def device_of(job: StudyJob | bytes) -> tuple[str, str, dict[str, str]]:
    """Return why a worker has no device, or why that does not take a study, and the versions that are there."""
    job = arrived(job)
    try:
        words = device_versions(job.backend)
    except DalembertError as error:
        return str(error), "", {}
    return "", refusal(job), words


def refuse_other_device(then: StudyJob, now: StudyJob) -> None:
    """Refuse to go on with another version of what compiles for the device."""
    other = [f"{name} {now.versions[name]} instead of {x}" for name, x in then.versions.items()
             if now.versions[name] != x]  # fmt: skip
    if other:
        raise ModelError(
            f"{then.store} was begun with other versions: {', '.join(other)}; runs of both would not have the same bits"
        )


def store_path(to: Any) -> str:
    """Return where a store is to be, "" where there is none."""
    if to is not None and "://" in str(to):
        raise ModelError(f"to={str(to)!r}: a store is a folder; one on a network is mounted first")
    return "" if to is None else os.path.abspath(to)


def piloted(job: StudyJob, workers: BlockWorkers, block: int | None) -> tuple[StudyJob, int]:
    """Return the job with the shapes of what is kept, and the size of its blocks, from pilot runs.

    Workers make them, who may die of a run: this process, which hands out blocks, must not.
    """
    if not workers.remote:
        job = with_shapes(job)
        return job, block or block_of(job, workers.size)

    def shapes_of(job: StudyJob, i: int) -> Any:
        survived, found = workers.alone(pilot_shapes, packed(job), i)
        return found if survived else f"run {i}: {LOST}"

    job = with_shapes(job, shapes_of)
    if block is not None:
        return job, block
    survived, size = workers.alone(block_of, packed(job), workers.size)
    return job, size if survived else safe_block(job, workers.size)


def drive(job: StudyJob, workers: BlockWorkers, blocks: Any, progress: bool | None) -> Study:
    """Have workers compute blocks; Ctrl-C ends the study with what is done."""
    memory = None if job.store else MemoryColumns(job)
    todo = list(blocks)
    bar = StudyProgress(job.runs, job.runs - sum(job.ends(k)[1] - job.ends(k)[0] for k in todo), progress)

    def finished(block: int, returned: Any) -> None:
        if isinstance(returned, RunColumns):
            assert memory is not None
            memory.put(returned)
            returned = returned.counts
        bar.add(returned)

    try:
        Driver(job, workers, finished).run(todo)
    except BaseException:
        workers.close(at_once=True)
        raise
    finally:
        bar.stop()
    if job.store:
        remove_partial(job.store)
    return Study(job, memory) if memory is not None else opened_again(job)


def opened_again(job: StudyJob) -> Study:
    """Return the study that was written."""
    columns = StoredColumns(job.store)
    columns.expect(job)
    return Study(job, columns)


def refuse_too_large(job: StudyJob) -> None:
    """Refuse a study without a store that would fill the memory."""
    from dalembert.ensemble.plan import bytes_per_run

    size = bytes_per_run(job) * job.runs
    if size > MOST_IN_MEMORY:
        raise ModelError(f'the study would take {size / 2**30:.3g} GiB of memory; give it a store: to="study.zarr"')


def described(job: StudyJob) -> dict[str, Any]:
    """Return a study as plain data, for its store."""
    return {
        "schema": SCHEMA, "versions": job.versions, "block": job.block, "record_events": job.record_events,
        "design": job.design.described(), "keep": [keeper.described() for keeper in job.keep],
        "shapes": {name: list(shape) for name, shape in job.shapes.items()},
        "experiment": job.experiment.described(), "kind": type(job.experiment).__name__, "backend": job.backend,
        "checksums": checked_names(job),
    }  # fmt: skip


def job_of_description(data: Mapping[str, Any], store: str, given: Mapping[str, Any]) -> StudyJob:
    """Return the job of a store; what is code and not given is missed when it is needed."""
    drawn = data["design"]["functions"]
    rest = {name: value for name, value in given.items() if name not in ("keep", "parameters", "experiment")}
    functions = {**(given.get("parameters") or {}), **{name: rest.pop(name) for name in drawn if name in rest}}
    refuse_unknown(functions, drawn, "inputs that functions draw")
    refuse_unknown(rest, [name.removeprefix("option:") for name in data["experiment"]], "")
    experiment: Any = given.get("experiment")
    if experiment is None:
        experiment = stored_experiment(data, rest)
    return StudyJob(
        experiment, design_of(data["design"], functions), keepers_of(data["keep"], given.get("keep")),
        {name: tuple(shape) for name, shape in data["shapes"].items()}, int(data["block"]), store,
        bool(data["record_events"]), dict(data["versions"]), backend=data.get("backend", "cpu"),
    )  # fmt: skip


def refuse_unknown(given: Mapping[str, Any], known: Sequence[str], what: str) -> None:
    """Refuse what is given to a store that has no place for it."""
    for name in given:
        if name not in known:
            words = f"{what}: {', '.join(known) or 'none'}" if what else ", ".join(known)
            raise ModelError(f"the store has no {name!r} that is given again; it has {words}")


def refuse_other(study: Study) -> None:
    """Refuse code that is not what a study was begun with: a run that is done must have the same bits."""
    whole = np.repeat(_stored(study).done(), study.job.block)[: study.runs]
    found = np.flatnonzero(whole & study.succeeded)
    if not found.size:
        return
    i = int(found[0])
    again = compute(study.job, i, i + 1).arrays
    other = [name for name, rows in again.items() if rows[0].tobytes() != _stored(study).row(name, i).tobytes()]
    if other:
        raise ModelError(
            f"{study.path}: run {i} has another {', '.join(map(repr, other))} than in the store: what is given again "
            "(system, functions, options) is not what the study was begun with"
        )


def _stored(study: Study) -> StoredColumns:
    columns = study._columns
    assert isinstance(columns, StoredColumns)
    return columns


__all__ = ["EnsembleCall", "ThreadWorkers", "ensemble"]
