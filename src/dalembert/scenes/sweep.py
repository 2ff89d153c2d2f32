"""Sweeps: the study of a scene, for all combinations of parameters or for draws of them, and its table."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.ensemble.blocks import StudyJob
from dalembert.ensemble.designs import Design
from dalembert.ensemble.distributions import ListedVariable, StudyInput, normal, uniform
from dalembert.ensemble.entry import ensemble
from dalembert.ensemble.keep import Keeper, kept_of
from dalembert.errors import DalembertError, ModelError, scene_words
from dalembert.names import lookup
from dalembert.scenes.keys import RangeTable
from dalembert.scenes.scene import NO_PARAMETERS, Scene

if TYPE_CHECKING:
    from dalembert.ensemble.study import Study
    from dalembert.simulate.trajectory import Trajectory

MOST_VALUES = 1_000_000
"""Equally spaced values of one parameter."""

MOST_ROWS = 100_000
"""Combinations of parameters that one table may have; a store takes more."""


@dataclass(frozen=True, eq=False)
class SceneExperiment:
    """A scene whose parameters vary."""

    scene: Scene

    def run(self, values: Mapping[str, Any]) -> Trajectory:
        """Run the scene; a refusal is told in the words of scenes."""
        try:
            return self.scene.with_parameters(**values).run(progress=False)
        except DalembertError as error:
            raise ModelError(scene_words(error).splitlines()[0]) from error

    def described(self) -> dict[str, str]:
        """Return the text of the scene, and the parameters that differ from it."""
        return {"scene": self.scene.text, "changes": repr(sorted(self.scene.changes.items()))}


@dataclass(frozen=True, eq=False)
class SweepRow:
    """One run of a sweep; `error` says why there is none."""

    parameters: Mapping[str, float]
    status: str
    measures: Mapping[str, float]
    events: int = 0
    error: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return the row as plain data."""
        plain = {"status": self.status, "events": self.events, **({"error": self.error} if self.error else {})}
        return {**self.parameters, **self.measures, **plain}


@dataclass(frozen=True, eq=False)
class Sweep:
    """The study of a scene as a table; `print` it, or take `to_csv()`; `study.rerun(i)` is the run of row i."""

    scene: Scene
    study: Study

    @property
    def rows(self) -> tuple[SweepRow, ...]:
        """All runs."""
        s = self.study
        inputs, measures = ({name: s[name] for name in names} for names in (s.inputs, s.kept))
        status, events, failed = s.status, s["event_count"], set(s.failed.tolist())
        return tuple(
            SweepRow(
                {name: float(rows[i]) for name, rows in inputs.items()},
                str(status[i]),
                {name: float(rows[i]) for name, rows in measures.items() if status[i] != "refused"},
                int(events[i]),
                s.reason(i).split("\n")[0] if i in failed else "",
            )
            for i in range(s.runs)
        )

    @property
    def ok(self) -> bool:
        """True when every run reached its end."""
        return self.study.ok

    def to_csv(self, path: str | Path | None = None) -> str | None:
        """Write the table as CSV, or return its text."""
        stream = io.StringIO()
        rows = [row.as_dict() for row in self.rows]
        names = list(dict.fromkeys(name for row in rows for name in row))
        writer = csv.DictWriter(stream, names, lineterminator="\n", restval="")
        writer.writeheader()
        writer.writerows(rows)
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


def swept(scene: Scene, given: Mapping[str, Any] | None = None) -> dict[str, StudyInput]:
    """Return what varies in a sweep: values and distributions by parameter, those of the file if none are given."""
    table = scene.content.sweep
    if given is None and (table is None or not table.parameters):
        words = "there is no [sweep.parameters] in this scene, and no parameter was given to sweep over"
        parameters = ", ".join(scene.content.parameters)
        advice = f"--over NAME=FIRST:LAST:COUNT with one of {parameters}" if parameters else NO_PARAMETERS
        raise ModelError(f"{words}; {advice}", scene.path)
    values: Mapping[str, Any] = given if given is not None else table.parameters if table is not None else {}
    inputs: dict[str, StudyInput] = {}
    for name, value in values.items():
        if given is None and scene.content.parameters:
            with scene.at("sweep", "parameters", name):
                lookup(name, scene.content.parameters, "parameter")
        scene.with_parameters(**{name: 0.0})
        if isinstance(value, RangeTable):
            with scene.at("sweep", "parameters", name):
                value = _in_file(value)
        if isinstance(value, Sequence) and not len(value):
            raise ModelError(f"the sweep over {name!r} has no values", scene.source("sweep"))
        inputs[name] = value if isinstance(value, StudyInput) else ListedVariable(rows=np.array(value, float))
    return inputs


def _in_file(table: RangeTable) -> StudyInput | Sequence[float]:
    """Return what a table of [sweep.parameters] says: equally spaced values, or a distribution."""
    spaced = [table.start, table.stop, table.count]
    ways = [all(x is not None for x in spaced), table.normal is not None, table.uniform is not None]
    if sum(ways) != 1 or (not ways[0] and any(x is not None for x in spaced)):
        raise ModelError(
            "a parameter of a sweep has start, stop and count, or normal = [mean, deviation], or uniform = [low, high]"
        )
    if table.normal is not None:
        return normal(*table.normal)
    if table.uniform is not None:
        return uniform(*table.uniform)
    assert table.start is not None
    assert table.stop is not None
    assert table.count is not None
    if not 1 <= table.count <= MOST_VALUES:
        raise ModelError(f"count = {table.count} of a sweep must be at least 1 and at most {MOST_VALUES}")
    return np.linspace(table.start, table.stop, table.count).tolist()


def sweep_job(
    scene: Scene, given: Mapping[str, Any] | None = None, runs: int | None = None, seed: int = 0, design: str = "random"
) -> StudyJob:
    """Return the description of a sweep as a study; the names of what is measured are tried on its first run."""
    variables = swept(scene, given)
    points = Design.of(design, seed, runs, variables)
    table = scene.content.sweep
    measures = {} if table is None else table.measure
    keep = tuple(Keeper(name, measure.of, measure.take, norm=True) for name, measure in measures.items())
    job = StudyJob(SceneExperiment(scene), points, keep, {keeper.name: () for keeper in keep})
    first = job.outcome(0) if keep else None
    if first is not None and first.run is not None:
        with scene.at("sweep", "measure"):
            kept_of(first.run, keep, None)
    return job


def sweep(
    scene: Scene,
    given: Mapping[str, Any] | None = None,
    *,
    runs: int | None = None,
    seed: int = 0,
    design: str = "random",
    **options: Any,
) -> Sweep:
    """Run a scene for every combination of its sweep, or for draws; a run that fails is a row with its reason.

    Parameters
    ----------
    given
        Values or distributions by parameter, in place of those in the file.
    runs, seed, design, options
        Of `da.ensemble`: how many draws; `to=`, `executor=`, `block=`, `progress=`.
    """
    job = sweep_job(scene, given, runs, seed, design)
    if job.runs > MOST_ROWS and options.get("to") is None:
        raise ModelError(
            f"a sweep of more than {MOST_ROWS} runs needs a store: -o study.zarr (in Python to=)", scene.source("sweep")
        )
    return Sweep(scene, ensemble.of(job, **options))


def resume_sweep(
    scene: Scene,
    path: str | Path,
    executor: Any = None,
    progress: bool | None = None,
    *,
    given: Mapping[str, Any] | None = None,
    runs: int | None = None,
    seed: int | None = None,
    design: str | None = None,
) -> Sweep:
    """Go on with the store of a sweep of the same scene; what else is given must be what the sweep was begun with."""
    experiment = SceneExperiment(scene)
    study = ensemble.open(path, experiment=experiment)
    if study.description["experiment"] != experiment.described():
        raise ModelError(f"{path} is the store of another scene, or of one that was changed since: choose another -o")
    stored = study.job.design
    variables = stored.variables if given is None else swept(scene, given)
    description = Design.of(
        stored.kind if design is None else design, stored.seed if seed is None else seed,
        stored.runs if runs is None else runs, variables,
    ).described()  # fmt: skip
    other = [key for key, then in stored.described().items() if description[key] != then]
    if other:
        raise ModelError(f"{path} was begun with other {', '.join(other)}: choose another -o, or leave them out")
    return Sweep(scene, ensemble.resume(path, executor, progress, experiment=experiment))


__all__ = ["SceneExperiment", "Sweep", "SweepRow", "resume_sweep", "sweep", "sweep_job", "swept"]
