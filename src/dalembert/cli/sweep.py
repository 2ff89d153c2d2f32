"""`dalembert sweep FILE`: a scene for many values of its parameters."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from dalembert.cli.options import blamed_on
from dalembert.cli.target import print_json, scene_of, typed, values_by_name, writable


@dataclass(frozen=True)
class SweepCommand:
    """Run a scene for every combination of values of its parameters, or for draws, and print what it measures.

    Values and distributions are those of the scene's [sweep], or of --over. If the store (-o study.zarr)
    exists, the same command completes it. Exit code 1: a run did not reach its end.

    For example:

        dalembert sweep bouncing_ball

        dalembert sweep bouncing_ball --over restitution=0.1:0.9:9 --over height=0.5,1 -o table.csv

        dalembert sweep bouncing_ball --over "height=normal(1,0.1)" --runs 10000 --processes 4 -o study.zarr
    """

    file: Annotated[Path, tyro.conf.Positional]
    """A scene, or the name of one."""

    over: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """NAME=0.1,0.2,0.5 or NAME=FIRST:LAST:COUNT or NAME=normal(MEAN,DEVIATION) or NAME=uniform(LOW,HIGH), in place of
    the scene's own; several times for several parameters."""

    runs: int | None = None
    """Number of runs, where distributions are drawn from."""

    seed: int | None = None
    """Of the draws, 0 if none is given: run i depends on it and on i alone."""

    design: str | None = None
    """How draws are made: random (if none is given), sobol, halton, latin, saltelli."""

    processes: int | None = None
    """Number of processes; threads if none is given."""

    set: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """Another value of a parameter in all runs, NAME=NUMBER."""

    output: Annotated[Path | None, tyro.conf.arg(aliases=["-o"])] = None
    """Write the table as CSV, or all runs to a store, study.zarr."""

    packages: tuple[Path, ...] = ()
    """Folders besides the scene's own from which models and tables may be read."""

    json: bool = False
    """Print plain data instead of words."""

    def run(self) -> int:
        """Run all, print the table, and return the exit code."""
        from dalembert.scenes.sweep import resume_sweep, sweep

        store = self.output if self.output is not None and self.output.suffix == ".zarr" else None
        if store is None:
            writable(self.output, (".csv", ".zarr"), "-o")
        values = values_by_name(self.over)
        scene = scene_of(self.file, self.set, self.packages)
        if store is not None and store.exists():
            draws = {"runs": self.runs, "seed": self.seed, "design": self.design}
            with blamed_on(typed("--over", self.over)):
                table = resume_sweep(scene, store, self.processes, given=values or None, **draws)
        else:
            draws = {"runs": self.runs, "seed": self.seed or 0, "design": self.design or "random"}
            with blamed_on(typed("--over", self.over)):
                table = sweep(scene, values or None, **draws, to=store, executor=self.processes)
        if self.output is not None and store is None:
            table.to_csv(self.output)
        if self.json:
            print_json({"runs": [row.as_dict() for row in table.rows], "ok": table.ok})
        elif store is not None or self.runs is not None:
            print(table.study)
            print(*(table.study.statistics(name) for name in table.study.kept), sep="\n")
        else:
            print(table)
        if self.output is not None and not self.json:
            print(f"written: {self.output}")
        return 0 if table.ok else 1
