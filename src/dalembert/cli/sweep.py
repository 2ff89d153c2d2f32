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
    """Run a scene for every combination of values of its parameters, and print a table of what it measures.

    Values are those of the scene's [sweep], or of --over. Exit code 1 where a run did not reach its end.

    For example:

        dalembert sweep bouncing_ball

        dalembert sweep bouncing_ball --over restitution=0.1:0.9:9 --over height=0.5,1 -o table.csv
    """

    file: Annotated[Path, tyro.conf.Positional]
    """A scene, or the name of one."""

    over: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """NAME=0.1,0.2,0.5 or NAME=FIRST:LAST:COUNT, in place of the scene's own; several times for several parameters."""

    set: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """Another value of a parameter in all runs, NAME=NUMBER."""

    output: Annotated[Path | None, tyro.conf.arg(aliases=["-o"])] = None
    """Write the table as CSV."""

    packages: tuple[Path, ...] = ()
    """Folders besides the scene's own from which models and tables may be read."""

    json: bool = False
    """Print plain data instead of words."""

    def run(self) -> int:
        """Run all, print the table, and return the exit code."""
        from dalembert.scenes.sweep import sweep

        writable(self.output, (".csv",), "-o")
        ranges = values_by_name(self.over)
        with blamed_on(typed("--over", self.over)):
            table = sweep(scene_of(self.file, self.set, self.packages), ranges or None)
        if self.output is not None:
            table.to_csv(self.output)
        if self.json:
            print_json({"runs": [row.as_dict() for row in table.rows], "ok": table.ok})
        else:
            print(table)
            if self.output is not None:
                print(f"written: {self.output}")
        return 0 if table.ok else 1
