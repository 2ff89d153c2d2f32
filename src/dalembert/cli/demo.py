"""`dalembert demo [NAME]`: the demonstrations, each with an HTML report."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from dalembert.errors import ModelError


@dataclass(frozen=True)
class Demo:
    """Show what dalembert does, and write an HTML report.

    crank (the default): the crank-slider with a massless rod. belt: two blocks on a belt, stick and slip for 30 s.
    """

    name: Annotated[Literal["crank", "belt"], tyro.conf.Positional] = "crank"
    """Which demonstration."""

    report: Path | None = None
    """Where to write the report; by default dalembert-demo.html or dalembert-belt.html."""

    json: bool = False
    """Belt: print the events as JSON and nothing else."""

    def run(self) -> int:
        """Run the demonstration and return the exit code."""
        if self.json and self.name != "belt":
            raise ModelError("--json goes with `dalembert demo belt`")
        if self.json:
            from dalembert.cli.demo_belt import print_events

            return print_events()
        target = self.report or Path("dalembert-demo.html" if self.name == "crank" else "dalembert-belt.html")
        if target.is_dir():
            raise ModelError(f"{target} is a folder; name the file to write")
        if not target.resolve().parent.is_dir():
            raise ModelError(f"there is no folder {target.resolve().parent} to write the report to")
        if self.name == "belt":
            from dalembert.cli.demo_belt import show_belt

            return show_belt(target)
        from dalembert.cli.demo_crank import show_crank

        return show_crank(target)
