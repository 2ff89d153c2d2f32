"""`Study`: the runs of an ensemble as named arrays, with their statuses; any of them again, exactly."""

from __future__ import annotations

import csv
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.checks import whole_number
from dalembert.ensemble.blocks import EVENT_FIELDS, RunColumns, StudyJob, empty_arrays, reason_text
from dalembert.ensemble.distributions import ListedVariable
from dalembert.ensemble.experiment import OK, STATUSES, single
from dalembert.ensemble.statistics import (
    INDEPENDENT,
    Probability,
    SampleStatistics,
    SobolIndices,
    probability,
    sample_statistics,
    sobol_indices,
)
from dalembert.ensemble.store import StoredColumns
from dalembert.errors import MissingExtraError, ModelError
from dalembert.names import near_matches
from dalembert.types import Array

if TYPE_CHECKING:
    from dalembert.simulate.trajectory import Trajectory

SHOWN = 5
"""Reasons that a study prints."""


class MemoryColumns:
    """The arrays of a study in memory, filled block by block."""

    def __init__(self, job: StudyJob) -> None:
        self.arrays = empty_arrays(job, job.runs)
        self.records: list[tuple[int, float, str, str, str]] = []

    def put(self, columns: RunColumns) -> None:
        """Take over a block."""
        stop = columns.first + len(columns.arrays["status"])
        for name, rows in columns.arrays.items():
            self.arrays[name][columns.first : stop] = rows
        self.records += columns.events

    def __getitem__(self, name: str) -> Array:
        return self.arrays[name]

    def row(self, name: str, i: int) -> Array:
        """Return what a run has of an array."""
        return self.arrays[name][i]

    def events(self) -> dict[str, list[Any]]:
        """Return all events by column, run after run."""
        rows = sorted(self.records, key=lambda record: record[0])
        return {name: [row[k] for row in rows] for k, name in enumerate(EVENT_FIELDS)}


class Study:
    """The runs of an ensemble: `study["peak"]` is (runs, ...), NaN where there is no run.

    Statistics are those of runs that reached their end ("completed", "event"); `accepting` takes others in.
    Made by `da.ensemble`, `da.ensemble.resume` and `da.ensemble.open`.
    """

    def __init__(self, job: StudyJob, columns: MemoryColumns | StoredColumns, accepted: tuple[str, ...] = OK) -> None:
        self.job, self._columns, self.accepted = job, columns, accepted

    def accepting(self, *statuses: str) -> Study:
        """Return the same study whose statistics also take runs of other statuses, such as "simplified"."""
        for word in statuses:
            if word not in STATUSES:
                raise ModelError(f"{word!r} is no status of a run", near=near_matches(word, STATUSES))
        return Study(self.job, self._columns, (*self.accepted, *statuses))

    # --- arrays -------------------------------------------------------------------------------------------------

    @property
    def runs(self) -> int:
        """Number of runs."""
        return self.job.runs

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of what varies: "q", "v", "q:hinge", parameters."""
        return tuple(self.job.design.variables)

    @property
    def kept(self) -> tuple[str, ...]:
        """Names of what was kept of the runs."""
        return tuple(keeper.name for keeper in self.job.keep)

    @property
    def path(self) -> Path | None:
        """The store, if there is one."""
        return Path(self.job.store) if self.job.store else None

    @property
    def route(self) -> str:
        """How the runs are made: "compiled: ...", or "run by run: ..." with the reason.

        Of another backend than "cpu" also how many of them were left to `da.simulate`.
        """
        from dalembert.ensemble.batches import refusal, route_of

        if self.job.backend == "cpu":
            return route_of(self.job)
        reason = refusal(self.job)
        missing = f"compiled for backend {self.job.backend!r}, which is not here: {reason}"
        words = missing if reason else route_of(self.job)
        alone = int(np.sum(self._columns["alone"]))
        return f"{words}; {alone} of {self.runs} runs were made alone, by da.simulate on a processor"

    @property
    def description(self) -> dict[str, Any]:
        """What a store says of itself: versions, design, experiment as text."""
        return self._columns.description if isinstance(self._columns, StoredColumns) else {}

    @property
    def note(self) -> str:
        """What is to be said of a store: that it has no checksums."""
        return self._columns.note if isinstance(self._columns, StoredColumns) else ""

    def __getitem__(self, name: str) -> Array:
        """Return what was kept under a name, or an input, (runs, ...); or "end_time", "steps", "event_count".

        Of a study on a GPU also "alone": which runs a processor made.
        """
        if name in self.kept:
            return self._columns[f"kept/{name}"]
        if name in self.inputs:
            return self.input(name)
        if name in self._own:
            return self._columns[name]
        known = (*self.kept, *self.inputs, *self._own)
        raise ModelError(f"the study has no {name!r}; it has {', '.join(known)}", near=near_matches(name, known))

    @property
    def _own(self) -> tuple[str, ...]:
        """Numbers that every study has of its runs, whatever is kept."""
        return ("end_time", "steps", "event_count", *(("alone",) if self.job.backend != "cpu" else ()))

    def input(self, name: str) -> Array:
        """Return an input, (runs, ...), also where something of its name was kept."""
        if name not in self.inputs:
            raise ModelError(f"{name!r} does not vary in this study", near=near_matches(name, self.inputs))
        return self._columns[f"inputs/{name}"]

    def times(self, name: str) -> Array | None:
        """Return the times of what was kept at times, (T,), else None."""
        return next((keeper.times for keeper in self.job.keep if keeper.name == name), None)

    def arrays(self) -> dict[str, Array]:
        """Return all arrays by the names that they have in a store."""
        return {name: self._columns[name] for name in empty_arrays(self.job, 0)}

    # --- statuses -----------------------------------------------------------------------------------------------

    @cached_property
    def codes(self) -> Array:
        """What became of the runs, (runs,), as places in `dalembert.ensemble.STATUSES`."""
        codes = self._columns["status"]
        if codes.max(initial=0) >= len(STATUSES):  # of a store without checksums
            raise ModelError(f"a status is number {codes.max()}, there are {len(STATUSES)}: the store is damaged")
        return codes

    @property
    def status(self) -> Array:
        """What became of the runs, (runs,), in words: those of `Trajectory.status`, "refused", "failed", "lost"."""
        return np.array(STATUSES)[self.codes]

    @property
    def status_counts(self) -> dict[str, int]:
        """Runs by status."""
        counts = np.bincount(self.codes, minlength=len(STATUSES))
        return {word: int(count) for word, count in zip(STATUSES, counts, strict=True) if count}

    @property
    def succeeded(self) -> Array:
        """Whether each run has an answer, (runs,): it reached its end, or a status that is accepted."""
        return np.isin(self.codes, [STATUSES.index(word) for word in self.accepted])

    @property
    def ok(self) -> bool:
        """True when every run reached its end."""
        return bool(self.succeeded.all())

    @property
    def complete(self) -> bool:
        """True when every run was tried."""
        return not (self.codes == STATUSES.index("missing")).any()

    @property
    def failed(self) -> Array:
        """Runs that were tried and did not reach their end, by index."""
        return np.flatnonzero(~self.succeeded & (self.codes != STATUSES.index("missing")))

    def reason(self, i: int) -> str:
        """Return why run i did not reach its end."""
        return reason_text(self._columns.row("reason", self._index(i)))

    def events(self) -> dict[str, list[Any]]:
        """Return all events by column (run, time, contact, old, new), where `record_events=True` was asked for."""
        if not self.job.record_events:
            raise ModelError("this study counts events (study['event_count']); record_events=True keeps each of them")
        return self._columns.events()

    # --- a run again --------------------------------------------------------------------------------------------

    def values(self, i: int) -> dict[str, Any]:
        """Return the inputs of run i by name."""
        return single(self.job.design.draw(self._index(i), self._index(i) + 1), 0)

    def rerun(self, i: int) -> Trajectory:
        """Return run i as a full trajectory, bit for bit the one that was kept from.

        Of a study on a GPU it is the run of a processor: the same to the tolerance.
        """
        return self.job.run(self._index(i))

    def _index(self, i: int) -> int:
        i = whole_number(i, "a run")
        if not -self.runs <= i < self.runs:
            raise ModelError(f"there is no run {i}: the study has {self.runs}")
        return i % self.runs

    # --- statistics, pictures, tables ---------------------------------------------------------------------------

    def statistics(self, name: str, confidence: float = 0.95) -> SampleStatistics:
        """Return mean, deviation and quantiles of a quantity over the runs that reached their end, with intervals."""
        return sample_statistics(name, self[name], self.succeeded, self._independent, confidence)

    def probability(self, condition: Any, confidence: float = 0.95) -> Probability:
        """Return how often a condition (runs,) holds among the runs that reached their end."""
        holds = np.asarray(condition)
        if holds.shape != (self.runs,) or holds.dtype != bool:
            raise ModelError(f"a condition is one truth value per run, ({self.runs},): study['peak'] > 3")
        good = self.succeeded
        return probability(int(holds[good].sum()), int(good.sum()), self._independent, confidence)

    @property
    def _independent(self) -> bool:
        """Whether the spread of runs tells the error of a mean: points at random, not a sequence or a grid."""
        listed = all(isinstance(each, ListedVariable) for each in self.job.design.variables.values())
        return self.job.design.kind in INDEPENDENT and not listed

    def sobol_indices(self, name: str, confidence: float = 0.95) -> SobolIndices:
        """Return which inputs make the spread of a number; the study needs design="saltelli"."""
        y, design = self[name], self.job.design
        if design.kind != "saltelli":
            raise ModelError(f'Sobol indices need design="saltelli", runs = N (d + 2); this one is {design.kind!r}')
        if y.ndim != 1:
            raise ModelError(f"Sobol indices are those of one number; {name!r} has shape {y.shape[1:]}")
        labels = []
        for word, variable in design.variables.items():
            labels += [word] if variable.dimensions == 1 else [f"{word}[{k}]" for k in range(variable.dimensions)]
        return sobol_indices(y, self.succeeded, labels, design.seed, confidence)

    def plot(self, what: Any = None, file: str | Path | None = None) -> Any:
        """Return a matplotlib figure: fans over time, histograms, scatter over inputs, failures marked.

        Parameters
        ----------
        what
            Names of what was kept; all by default.
        file
            Where to write the picture; its ending is the format.
        """
        from dalembert.ensemble.pictures import figure_of

        figure = figure_of(self, what)
        if file is not None:
            figure.savefig(file, dpi=150)
        return figure

    def table(self) -> dict[str, Array]:
        """Return a column per number, (runs,) each: inputs, what was kept ("path[3]" of a vector), events, status.

        Of a study on a GPU also which runs a processor made, "alone".
        """
        columns: dict[str, Array] = {}
        for name in self.inputs:
            columns |= _columns(f"input {name}" if name in self.kept else name, self.input(name))
        for name in self.kept:
            columns |= _columns(name, self[name])
        reasons = np.full(self.runs, "", dtype=object)
        for i in self.failed:
            reasons[i] = self.reason(int(i)).split("\n")[0]
        alone = {"alone": self["alone"].astype(bool)} if "alone" in self._own else {}
        return columns | alone | {"events": self["event_count"], "status": self.status, "reason": reasons}

    def to_csv(self, path: str | Path) -> None:
        """Write a line per run: the columns of `table`."""
        columns = self.table()
        with Path(path).open("w", encoding="utf-8", newline="") as stream:
            writer = csv.writer(stream, lineterminator="\n")
            writer.writerow(columns)
            writer.writerows(zip(*(column.tolist() for column in columns.values()), strict=True))

    def to_dataframe(self) -> Any:
        """Return a pandas.DataFrame: a row per run, the columns of `table`."""
        try:
            import pandas as pd
        except ImportError as error:
            raise MissingExtraError("pandas", "files", "a study as a data frame") from error
        return pd.DataFrame(self.table(), index=pd.RangeIndex(self.runs, name="run"))

    def to_xarray(self) -> Any:
        """Return an xarray.Dataset over the dimension `run`: inputs, what was kept, statuses."""
        try:
            import xarray as xr
        except ImportError as error:
            raise MissingExtraError("xarray", "files", "a study as xarray") from error
        found: dict[str, Any] = {"status": ("run", self.status)}
        coordinates: dict[str, Any] = {"run": np.arange(self.runs)}
        own = self._own
        for name in self.inputs:
            rows = self.input(name)
            label = f"input {name}" if name in (*self.kept, *own) else name
            found[label] = (["run", *(f"{label}_{k}" for k in range(1, rows.ndim))], rows)
        for name in (*self.kept, *own):
            rows, times = self[name], self.times(name)
            axes = ["run", *(f"{name}_{k}" for k in range(1, rows.ndim))]
            if times is not None:
                axes[1] = f"{name}_time"
                coordinates[axes[1]] = times
            found[name] = (axes, rows)
        return xr.Dataset(found, coordinates, {"title": str(self).splitlines()[0]})

    def __len__(self) -> int:
        return self.runs

    def __str__(self) -> str:
        counts = ", ".join(f"{count} {word}" for word, count in self.status_counts.items())
        words = f"inputs {', '.join(self.inputs) or 'none'}; kept {', '.join(self.kept)}"
        lines = [f"study of {self.runs} runs ({counts}); {words}"]
        lines += [f"  note: {self.note}"] if self.note else []
        lines += [f"  run {i}: {self.status[i]}, {self.reason(i)}" for i in self.failed[:SHOWN]]
        if len(self.failed) > SHOWN:
            lines.append(f"  ... and {len(self.failed) - SHOWN} more: study.failed, study.reason(i)")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<{str(self).splitlines()[0]}>"


def _columns(name: str, rows: Array) -> dict[str, Array]:
    """Return one column per number of a quantity (runs, ...), named by its place."""
    if rows.ndim == 1:
        return {name: rows}
    return {f"{name}[{', '.join(map(str, place))}]": rows[:, *place] for place in np.ndindex(rows.shape[1:])}
