"""`dalembert export FILE -o TARGET`: a model as URDF or C, a run as table, picture or film."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from dalembert.cli.target import file_kind, print_json, scene_of
from dalembert.errors import ModelError, warn_user

TABLES, FILMS, PLOTS = (".csv",), (".html", ".gif", ".webp", ".mp4", ".svg"), (".pdf", ".png")


@dataclass(frozen=True)
class ExportCommand:
    """Write a model or a run in another form; the ending of the target says which.

    A robot or a scene becomes a URDF file (.urdf), or C99 code in a folder (--function); what neither can say is
    named, and constraints that URDF cannot say are refused without --drop-loops. A run that was kept (.nc), or
    a scene, which is run first, becomes a table (.csv), a picture of its lines (.pdf, .png) or of its motion (.html,
    .svg, .gif, .webp, .mp4).

    For example:

        dalembert export arm.sdf -o arm.urdf

        dalembert export robot.urdf -o code --function forward

        dalembert export run.nc -o run.csv
    """

    file: Annotated[Path, tyro.conf.Positional]
    """A robot file, a scene or its name, or a run (.nc)."""

    output: Annotated[Path, tyro.conf.arg(aliases=["-o"])]
    """The target: a file, or a folder for C code."""

    function: str | None = None
    """Which function of the mechanism becomes C: forward, inverse, mass_matrix, bias, kinematics, ..."""

    set: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """Another value of a scene's parameter, NAME=NUMBER."""

    base: Literal["auto", "fixed", "floating"] = "auto"
    """What holds the root of a robot file."""

    packages: tuple[Path, ...] = ()
    """Folders besides the file's own from which models may be read."""

    drop_loops: bool = False
    """Write the open tree where URDF cannot say a constraint, a coupling or a loop; they are named."""

    json: bool = False
    """Print the names of the files as plain data."""

    def run(self) -> int:
        """Write the target, and return the exit code."""
        written = self._code() if self.function is not None else self._file()
        if self.json:
            print_json({"written": written})
        else:
            print("\n".join(f"written: {path}" for path in written))
        return 0

    def _code(self) -> list[Path]:
        if self.output.suffix:
            raise ModelError(f"-o {self.output}: C code goes into a folder, a name without an ending")
        scene = scene_of(self.file, self.set, self.packages, self.base)
        _warn_of_scene(scene, self.output)
        kernel = scene.mechanism.compile(str(self.function))
        exported: Any = kernel.export_c(self.output)
        return [Path(path) for path in getattr(exported, "files", [self.output])]

    def _urdf(self, scene: Any) -> str:
        """Return the model as URDF; constraints that it cannot say are refused or dropped, the rest is named."""
        from dalembert.model.mechanism.urdf_writer import UrdfText

        urdf = UrdfText(scene.mechanism)
        text = urdf.write()
        if urdf.opened and not self.drop_loops:
            raise ModelError(
                f"URDF has no words for {'; '.join(urdf.opened)}: without them it is another mechanism; --drop-loops "
                "writes the open tree"
            )
        if urdf.left_out:
            warn_user(f"not in {self.output}: {'; '.join(urdf.left_out)}")
        if urdf.added:
            warn_user(f"in {self.output} beyond plain URDF, and left out by many tools: {'; '.join(urdf.added)}")
        _warn_of_scene(scene, self.output)
        return text

    def _file(self) -> list[Path]:
        suffix = self.output.suffix.lower()
        if not self.output.resolve().parent.is_dir():
            raise ModelError(f"there is no folder {self.output.resolve().parent}")
        kind = file_kind(self.file)
        if suffix == ".urdf":
            if kind == "run":
                raise ModelError("a run becomes a table, a picture or a film; .urdf is for models")
            scene = scene_of(self.file, self.set, self.packages, self.base)
            self.output.write_text(self._urdf(scene), encoding="utf-8")
            return [self.output]
        if suffix not in (*TABLES, *FILMS, *PLOTS):
            endings = ", ".join((".urdf", *TABLES, *PLOTS, *FILMS))
            raise ModelError(f"-o {self.output}: its ending says what to write; there are {endings}")
        if kind == "run":
            from dalembert.simulate.trajectory import Trajectory

            run = Trajectory.load(self.file)
        else:
            run = scene_of(self.file, self.set, self.packages, self.base).run()
        if suffix in TABLES:
            run.to_csv(self.output)
        elif suffix in PLOTS:
            run.plot(file=self.output)
        else:
            run.animate(self.output)
        return [self.output]


def _warn_of_scene(scene: Any, target: Path) -> None:
    """Name the tables of a scene that are no part of a model."""
    words = ("contact", "stop", "friction", "force", "event")
    lost = [f"{len(part)} [{key}]" for key in words if (part := getattr(scene.content, key))]
    lost += ["[start]"] if scene.content.start.q or scene.content.start.v else []
    if lost:
        warn_user(f"not in {target}, which holds the model alone: {', '.join(lost)} of the scene")
