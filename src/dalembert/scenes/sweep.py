"""Sweeps: a scene run for every combination of parameters, and a table of what was measured."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.errors import DalembertError, ModelError, scene_words
from dalembert.names import lookup
from dalembert.progress import with_bar
from dalembert.scenes.keys import MeasureTable, RangeTable
from dalembert.scenes.scene import NO_PARAMETERS, Scene

if TYPE_CHECKING:
    from dalembert.simulate.trajectory import Trajectory

MOST_RUNS = 100_000
"""Combinations of parameters that one sweep may have."""

TAKEN = {
    "max": np.max,
    "min": np.min,
    "last": lambda x: x[-1],
    "first": lambda x: x[0],
    "mean": np.mean,
    "rms": lambda x: np.sqrt(np.mean(np.square(x))),
    "range": np.ptp,
}
"""How a column of a run becomes one number. Means are over samples: give the scene an `every`."""


@dataclass(frozen=True, eq=False)
class SweepRow:
    """One run of a sweep; `error` says why there is none."""

    parameters: Mapping[str, float]
    status: str
    measures: Mapping[str, float]
    events: int = 0
    error: str = ""
    trajectory: Trajectory | None = field(default=None, repr=False)

    def as_dict(self) -> dict[str, Any]:
        """Return the row as plain data."""
        plain = {"status": self.status, "events": self.events, **({"error": self.error} if self.error else {})}
        return {**self.parameters, **self.measures, **plain}


@dataclass(frozen=True, eq=False)
class Sweep:
    """All runs of a sweep; `print` it, or take `to_csv()`."""

    scene: Scene
    rows: tuple[SweepRow, ...]

    @property
    def ok(self) -> bool:
        """True when every run reached its end."""
        return all(row.status in ("completed", "event") for row in self.rows)

    def to_csv(self, path: str | Path | None = None) -> str | None:
        """Write the table as CSV, or return its text."""
        stream = io.StringIO()
        names = list(dict.fromkeys(name for row in self.rows for name in row.as_dict()))
        writer = csv.DictWriter(stream, names, lineterminator="\n", restval="")
        writer.writeheader()
        writer.writerows([row.as_dict() for row in self.rows])
        if path is None:
            return stream.getvalue()
        Path(path).write_text(stream.getvalue(), encoding="utf-8")
        return None

    def __str__(self) -> str:
        shown = [{k: f"{v:.6g}" if isinstance(v, float) else str(v) for k, v in r.as_dict().items()} for r in self.rows]
        names = list(dict.fromkeys(name for row in shown for name in row if name != "error"))
        widths = {name: max(len(name), *(len(row.get(name, "")) for row in shown)) for name in names}
        lines = ["  ".join(name.rjust(widths[name]) for name in names)]
        for row in shown:
            line = "  ".join(row.get(name, "").rjust(widths[name]) for name in names)
            lines.append(f"{line}  {row['error']}" if "error" in row else line)
        return "\n".join(lines)


def combinations(scene: Scene, ranges: Mapping[str, Sequence[float]] | None = None) -> Iterator[dict[str, float]]:
    """Return every combination of the values of a sweep, the last parameter first."""
    table = scene.content.sweep
    if ranges is None and (table is None or not table.parameters):
        words = "there is no [sweep.parameters] in this scene, and no parameter was given to sweep over"
        known = ", ".join(scene.content.parameters)
        advice = f"--over NAME=FIRST:LAST:COUNT with one of {known}" if known else NO_PARAMETERS
        raise ModelError(f"{words}; {advice}", scene.path)
    values: dict[str, Sequence[float]] = dict(ranges or {})
    if ranges is None and table is not None:
        for name, choices in table.parameters.items():
            values[name] = _spaced(choices) if isinstance(choices, RangeTable) else choices
    for name, choices in values.items():
        if ranges is None and scene.content.parameters:
            with scene.at("sweep", "parameters", name):
                lookup(name, scene.content.parameters, "parameter")
        scene.with_parameters(**{name: 0.0})
        if not len(choices):
            raise ModelError(f"the sweep over {name!r} has no values", scene.source("sweep"))
    if np.prod([float(len(choices)) for choices in values.values()]) > MOST_RUNS:
        raise ModelError(f"a sweep of more than {MOST_RUNS} runs", scene.source("sweep"))
    for combination in product(*values.values()):
        yield dict(zip(values, map(float, combination), strict=True))


def _spaced(table: RangeTable) -> Sequence[float]:
    if table.count < 1:
        raise ModelError(f"count = {table.count} of a sweep must be at least 1")
    return np.linspace(table.start, table.stop, table.count).tolist()


def sweep(scene: Scene, ranges: Mapping[str, Sequence[float]] | None = None, keep: bool = False) -> Sweep:
    """Run a scene for every combination of its sweep; a run that fails is a row with its reason.

    Parameters
    ----------
    ranges
        Values by parameter, in place of those in the file.
    keep
        Whether the trajectories stay with their rows.
    """
    every = list(combinations(scene, ranges))
    measures = {} if scene.content.sweep is None else scene.content.sweep.measure
    rows = [_row(scene.with_parameters(**values), values, measures, keep) for values in with_bar(every, "sweep")]
    return Sweep(scene, tuple(rows))


def _row(scene: Scene, values: dict[str, float], measures: Mapping[str, MeasureTable], keep: bool) -> SweepRow:
    try:
        run = scene.run(progress=False)
    except DalembertError as error:
        return SweepRow(values, "refused", {}, error=scene_words(error).splitlines()[0])
    measures_of_run = {name: measured(run, table, scene) for name, table in measures.items()}
    words = "" if run.ok else run.message.split("\n")[0]
    return SweepRow(values, run.status, measures_of_run, len(run.events), words, run if keep else None)


def measured(run: Trajectory, table: MeasureTable, scene: Scene) -> float:
    """Return one number of a run; "energy", "kinetic" and "potential" are quantities, too."""
    with scene.at("sweep", "measure"):
        parts = {"energy": "energy", "kinetic": "kinetic", "potential": "potential", "heat": "heat", "work": "work"}
        if table.of in parts:
            column = run.energy.total if table.of == "energy" else getattr(run, table.of)
        else:
            column = np.asarray(run[table.of])
    if column.ndim > 1:
        column = np.linalg.norm(column, axis=1)
    return float(TAKEN[table.take](column))
