"""`dalembert simulate FILE`: a scene or a robot file in time, with a summary, files and a report."""

from __future__ import annotations

import math
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from dalembert.cli.options import blamed_on
from dalembert.cli.target import RUN_FILES, RobotOptions, print_json, scene_of, typed, writable
from dalembert.errors import ModelError, scene_words
from dalembert.simulate.ignored import SIMPLIFIED

if TYPE_CHECKING:
    from dalembert.scenes import Scene
    from dalembert.simulate.trajectory import Trajectory

MOST_EVENTS = 12
"""Events that a summary lists."""

PICTURES = (".png", ".pdf", ".svg")
FILMS = (".html", ".svg", ".gif", ".webp", ".mp4")


@dataclass(frozen=True)
class Simulate:
    """Simulate a scene (.toml, or the name of one that comes with the package) or a robot file.

    Exit code 0: the run reached its end, or its terminal event, and its checks hold; 1: it did not; 2: misuse.

    For example:

        dalembert simulate bouncing_ball

        dalembert simulate bouncing_ball --set restitution=0.8 --report ball.html

        dalembert simulate my_scene.toml -o run.nc --csv run.csv --plot run.pdf

        dalembert simulate robot.urdf --duration 2 --view

        dalembert simulate biped.urdf --pose standing --foot left_foot:0.02 --foot right_foot:0.02 --hold 80,2

    Of a robot file all data of its joints act: limits are stops, damping, springs and dry friction act. It starts where
    the file draws it; a joint whose limits leave out zero starts at the nearer limit. Collision shapes of the file do
    not touch anything: --foot names what touches the ground.
    """

    file: Annotated[Path, tyro.conf.Positional]
    """A scene, the name of a scene (`dalembert scenes` lists them), or a URDF, SDF, MJCF or USD file."""

    set: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """Another value of a parameter, NAME=NUMBER; several times for several."""

    duration: float | None = None
    """Seconds, in place of the scene's."""

    method: str | None = None
    """Way through time, in place of the scene's: auto, dop853, bdf, radau, hybrid, moreau, ..."""

    every: float | None = None
    """Seconds between samples; without it every step of the method is a sample."""

    step: float | None = None
    """Seconds of a step, for methods with steps of one size: moreau, rk4, variational."""

    output: Annotated[Path | None, tyro.conf.arg(aliases=["-o"])] = None
    """Keep the run in a file, .nc: `dalembert view` and `da.Trajectory.load` read it (extra `files`)."""

    csv: Path | None = None
    """Write the samples as a table with names and units."""

    joint_forces: Path | None = None
    """Write force (N) and moment (N m) of every joint, loop, constraint, spring and contact as a table, .csv, and print
    their peaks."""

    plot: Path | None = None
    """Write the pictures: .png, .pdf or .svg (extra `view`)."""

    animation: Path | None = None
    """Write the motion: .html, .svg, .gif, .webp or .mp4."""

    report: Path | None = None
    """Write a report: one HTML page with everything."""

    view: bool = False
    """Open the motion in the browser."""

    pose: str | None = None
    """Start in a pose by name: a keyframe of MJCF, a <group_state> of the .srdf file beside a URDF."""

    start: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """Start with another value, JOINT=NUMBER, or JOINT.v=NUMBER for its velocity; several times for several."""

    foot: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """A frame of a robot file that touches the ground z = 0, FRAME or FRAME:RADIUS; several times for several. The base
    floats then, and starts where the lowest foot touches."""

    foot_friction: float = 0.8
    """Coulomb's coefficient of the feet."""

    hold: str | None = None
    """STIFFNESS,DAMPING of springs that hold the joints of a robot file where they start, N m/rad and N m s/rad."""

    without: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """Data of a robot file that do not act: limits, damping or friction of joints; several times for several."""

    base: Literal["auto", "fixed", "floating"] = "auto"
    """What holds the root of a robot file: fixed by default, floating with --foot."""

    packages: tuple[Path, ...] = ()
    """Folders besides the scene's own from which models and tables may be read."""

    quiet: bool = False
    """Print one line only, and no bar."""

    json: bool = False
    """Print plain data instead of words."""

    def run(self) -> int:
        """Run it, write what was asked for, and return the exit code."""
        from dalembert.view.run_report import run_checks

        outputs = {"-o": (self.output, RUN_FILES), "--csv": (self.csv, (".csv",)),
                  "--joint-forces": (self.joint_forces, (".csv",)), "--plot": (self.plot, PICTURES),
                  "--animation": (self.animation, FILMS), "--report": (self.report, (".html",))}  # fmt: skip
        for option, (path, endings) in outputs.items():
            writable(path, endings, option)
        for option in ("duration", "every", "step"):
            seconds = getattr(self, option)
            if seconds is not None and not 0.0 < seconds < math.inf:
                raise ModelError(f"--{option} {seconds:g}: seconds are a finite number > 0")
        robot = RobotOptions(self.pose, self.start, self.foot, self.foot_friction, self.hold, self.without, acting=True)
        scene = scene_of(self.file, self.set, self.packages, self.base, self.duration, robot)
        options = {"duration": self.duration, "method": self.method, "every": self.every, "step": self.step}
        quiet = self.quiet or self.json
        changes = {key: value for key, value in options.items() if value is not None}
        blame = {key: f"--{key} {value}" for key, value in changes.items()} | typed("--start", self.start)
        with blamed_on(blame | {name: f"--foot {foot}" for foot in self.foot for name in [foot.partition(":")[0]]}):
            run = scene.run(progress=False if quiet else None, **changes)
        checks = run_checks(run)
        ends = ("completed", "event", *([SIMPLIFIED] if self.without else []))
        good = run.status in ends and all(passed for name, _, passed in checks if name != "end reached")
        written = self._write(run, scene)
        if self.json:
            loads = peak_loads(run) if self.joint_forces is not None else {}
            print_json(summary(run, checks, written) | ({"joint forces": loads} if loads else {}))
        elif self.quiet:
            print(str(run).splitlines()[0])
        else:
            print(f"{scene.title}\n{words(run, checks)}")
            if self.joint_forces is not None:
                print(run.refined().joint_forces)
            for path in written:
                print(f"written: {path}")
        if self.view:
            open_in_browser(run)
        return 0 if good else 1

    def _write(self, run: Trajectory, scene: Scene) -> list[Path]:
        """Write the files of options and of the scene's [output]."""
        table, written = scene.content.output, []
        named = {"run": self.output, "csv": self.csv, "joint_forces": self.joint_forces, "picture": self.plot,
                 "report": self.report}  # fmt: skip
        endings = {"run": RUN_FILES, "csv": (".csv",), "joint_forces": (".csv",), "picture": PICTURES,
                   "report": (".html",)}  # fmt: skip
        panels = tuple(table.panels) or None
        with scene.at("output"):
            for key, path in named.items():
                inside = getattr(table, key)
                if inside is not None and (Path(inside).name != inside or inside in (".", "..")):
                    words = f"{key} = {inside!r}: names of files that a scene writes have no folders in them"
                    raise ModelError(words, subject=key)
                target = path or (Path(inside) if inside else None)
                if target is None:
                    continue
                writable(target, endings[key], key)
                self._write_one(key, target, run, scene, panels)
                written.append(target)
        if self.animation is not None:
            run.animate(self.animation)
            written.append(self.animation)
        return written

    def _write_one(self, word: str, target: Path, run: Trajectory, scene: Scene, panels: Any) -> None:
        if word == "run":
            run.save(target)
        elif word in ("csv", "joint_forces"):
            run.to_csv(target, None if word == "csv" else word)
        elif word == "picture":
            run.plot(panels, target)
        else:
            from dalembert.view.run_report import run_report

            source = (scene.path.name, scene.text) if scene.text else None
            page = run_report(run, scene.title, scene.content.about, panels or (), source, self._command())
            page.write(target)

    def _command(self) -> str:
        """Return what to type for the same run."""
        words = ["dalembert", "simulate", str(self.file)]
        for option in ("set", "start", "foot", "without"):
            words += [
                argument for word_of_option in getattr(self, option) for argument in (f"--{option}", word_of_option)
            ]
        for option in ("duration", "method", "every", "step", "pose", "hold"):
            value = getattr(self, option)
            words += [] if value is None else [f"--{option}", str(value)]
        words += ["--foot-friction", f"{self.foot_friction:g}"] if self.foot else []
        words += [] if self.base == "auto" else ["--base", self.base]
        return " ".join(map(shlex.quote, words))


def peak_loads(run: Trajectory) -> dict[str, dict[str, float]]:
    """Return the largest force (N) and moment (N m) of every joint, with their times (s)."""
    return {name: peak._asdict() for name, peak in run.refined().joint_forces.peaks.items()}


def open_in_browser(run: Trajectory) -> None:
    """Open the moving picture in the browser."""
    import tempfile
    import webbrowser

    with tempfile.NamedTemporaryFile("w", suffix=".html", prefix="dalembert-", delete=False, encoding="utf-8") as page:
        page.write(run.animate().page)
    print(f"page: {page.name}", file=sys.stderr)
    webbrowser.open(Path(page.name).as_uri())


def words(run: Trajectory, checks: list[tuple[str, str, bool]]) -> str:
    """Return the summary of a run for a person."""
    head = str(run).splitlines()[0]
    notes = [f"note: {scene_words(note)}" for note in run.notes]
    events = [f"  {event}" for event in run.events[:MOST_EVENTS]]
    more = len(run.events) - len(events)
    lines = [head, *notes, *events, *([f"  ... and {more} more events"] if more > 0 else [])]
    width = max(len(name) for name, _, _ in checks)
    return "\n".join(
        [*lines, *(f"{'ok  ' if good else 'FAIL'} {name.ljust(width)}  {text}" for name, text, good in checks)]
    )


def summary(run: Trajectory, checks: list[tuple[str, str, bool]], written: list[Path]) -> dict[str, Any]:
    """Return the summary of a run as plain data."""
    return {
        "status": run.status,
        "message": run.message,
        "method": run.method,
        "reason": run.reason,
        "start": float(run.t[0]),
        "end": float(run.t[-1]),
        "samples": int(run.t.size),
        "steps": int(run.steps),
        "events": [event.as_dict() for event in run.events],
        "final": {name: float(x) for name, x in zip(run.configuration_names, run.q[-1], strict=True)},
        "checks": {name: {"found": text, "holds": bool(good)} for name, text, good in checks},
        "notes": [scene_words(note) for note in run.notes],
        "written": written,
    }
