"""`dalembert view FILE`: a robot, a scene or a stored run in the browser."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from dalembert.cli.simulate import FILMS, open_in_browser
from dalembert.cli.target import file_kind, print_json, scene_of, writable


@dataclass(frozen=True)
class View:
    """Look at a robot file, at a scene in motion, or at a run that was kept; one self-contained page.

    For example:

        dalembert view robot.urdf

        dalembert view bouncing_ball -o ball.html

        dalembert view run.nc --live
    """

    file: Annotated[Path, tyro.conf.Positional]
    """A robot file, a scene or its name, or a run (.nc)."""

    output: Annotated[Path | None, tyro.conf.arg(aliases=["-o"])] = None
    """Write it here instead of opening the browser: .html, .svg, .gif, .webp, .mp4."""

    live: bool = False
    """A live viewer with sliders that keep loops closed (extra `view3d`)."""

    still: bool = False
    """The mechanism of a scene at its start, without a run."""

    set: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """Another value of a scene's parameter, NAME=NUMBER."""

    base: Literal["auto", "fixed", "floating"] = "auto"
    """What holds the root of a robot file."""

    packages: tuple[Path, ...] = ()
    """Folders besides the file's own from which models may be read."""

    json: bool = False
    """Print the name of the file as plain data."""

    def run(self) -> int:
        """Show it, and return the exit code."""
        writable(self.output, FILMS, "-o")
        what, still = self._what()
        if self.live:
            what.view(block=True)
            return 0
        if self.output is None:
            if still is None:
                open_in_browser(what)
            else:
                what.show(q=still)
            return 0
        if still is None:
            what.animate(self.output)
        else:
            what.show(self.output, still)
        if self.json:
            print_json({"written": [self.output]})
        else:
            print(f"written: {self.output}")
        return 0

    def _what(self) -> tuple[Any, Any]:
        """Return a run and None, or a mechanism and its configuration."""
        kind = file_kind(self.file)
        if kind == "run":
            from dalembert.simulate.trajectory import Trajectory

            return Trajectory.load(self.file), None
        scene = scene_of(self.file, self.set, self.packages, self.base)
        if kind == "robot" or self.still or scene.content.simulate is None:
            return scene.mechanism, scene.start[0]
        return scene.run(), None
