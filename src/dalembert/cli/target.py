"""Files that commands work on: scenes, robot files, matrices, stored runs; values given as words."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec.structs import replace

from dalembert.checks import shown
from dalembert.cli.options import MOST_DIGITS, blamed_on
from dalembert.errors import ModelError
from dalembert.names import near_matches

if TYPE_CHECKING:
    from dalembert.scenes import Scene

ROBOT_FILES = (".urdf", ".sdf", ".world", ".xml", ".mjcf", ".usd", ".usda", ".usdc")
RUN_FILES = (".nc", ".h5", ".hdf5")
MATRIX_FILES = (".json", ".npz")
"""Endings of files, by what is in them; .toml holds scenes, matrices or equations."""

LEFT_OUT = ("limits", "damping", "friction")
"""Data of joints that a run of a robot file may leave out."""

DEFAULT_DURATION = 1.0
"""Seconds of a robot file that is simulated without a scene."""


def file_kind(path: Path) -> str:
    """Return "scene", "robot", "run", "matrices" or "equations": what a file holds."""
    suffix = path.suffix.lower()
    for kind, endings in (("robot", ROBOT_FILES), ("run", RUN_FILES), ("matrices", MATRIX_FILES)):
        if suffix in endings:
            return kind
    if suffix == ".toml" and path.is_file():
        return _toml_kind(path)
    if suffix in ("", ".toml"):
        return "scene"
    types = ", ".join((".toml", *ROBOT_FILES, *MATRIX_FILES, *RUN_FILES))
    raise ModelError(f"{path}: files of type {suffix!r} are not known here; there are {types}")


def _toml_kind(path: Path) -> str:
    """Tell matrices and equations from scenes by their keys."""
    import tomllib

    from dalembert.readers.files import read_file

    try:
        keys = set(tomllib.loads(read_file(path).decode()))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError):
        return "scene"  # its reader says what is wrong with it
    if keys & {"mass", "M"} and not keys & {"body", "model"}:
        return "matrices"
    return "equations" if "equation" in keys else "scene"


def scene_of(
    path: Path, assignments: Sequence[str] = (), packages: Sequence[Path] = (), base: str = "auto",
    duration: float | None = None, robot: RobotOptions | None = None,
) -> Scene:  # fmt: skip
    """Return a scene: of a file, of the package by its name, or of a robot file alone, with the options for it."""
    from dalembert.scenes import Scene, scene
    from dalembert.scenes.keys import ModelTable, SceneFile, SimulateTable

    robot = RobotOptions() if robot is None else robot

    kind = file_kind(path)
    folders = [str(folder) for folder in packages] or None
    if kind in ("matrices", "run", "equations"):
        hints = {"matrices": "check or solve", "run": "view or export", "equations": "graph"}
        raise ModelError(
            f"{path} holds {'a stored run' if kind == 'run' else kind}, no scene: try dalembert {hints[kind]}"
        )
    if kind == "scene":
        chosen = scene(path, packages=folders)
        with blamed_on(typed("--set", assignments)):
            chosen = chosen.with_parameters(**numbers_by_name(assignments)) if assignments else chosen
        return robot.started(chosen)
    if assignments:
        raise ModelError(f"--set is for scenes; {path} is a robot file and has no parameters")
    if not path.is_file():
        raise ModelError(f"{path}: there is no such file")
    model = ModelTable(file=path.name, base=base)  # pyright: ignore[reportArgumentType]
    content = SceneFile(title=path.stem, model=model, simulate=SimulateTable(duration=duration or DEFAULT_DURATION))
    return robot.completed(Scene(path, content, "", folders))


@dataclass(frozen=True)
class RobotOptions:
    """What options add to a robot file: a start, feet on the ground, joints that are held, data that do not act.

    `acting`: limits are stops, and damping and springs act, but for what is named in `without`.
    """

    pose: str | None = None
    start: Sequence[str] = ()
    feet: Sequence[str] = ()
    friction: float = 0.0
    hold: str | None = None
    without: Sequence[str] = ()
    acting: bool = False

    def started(self, scene: Scene) -> Scene:
        """Return a scene that begins as asked for; feet and held joints are those of robot files."""
        if self.feet or self.hold is not None or self.without:
            raise ModelError(f"--foot, --hold and --without are for robot files; {scene.path} has tables for them")
        return self._with(scene, start=self._start(scene))

    def completed(self, scene: Scene) -> Scene:
        """Return the scene of a robot file with all that is asked for."""
        from dalembert.scenes.keys import ContactTable, SphereTable, StopTable

        content, unknown = scene.content, [quantity for quantity in self.without if quantity not in LEFT_OUT]
        assert content.model is not None
        assert content.simulate is not None
        if unknown:
            raise ModelError(
                f"--without {unknown[0]}: there are {', '.join(LEFT_OUT)}", near=near_matches(unknown[0], LEFT_OUT)
            )
        feet = []
        for foot in self.feet:
            name, _, radius = foot.partition(":")
            try:
                size = float(radius or 0)
            except ValueError:
                raise ModelError(f"--foot {foot}: {radius!r} is not a radius in metres, as in foot:0.02") from None
            feet.append(ContactTable(sphere=SphereTable(frame=name, radius=size), friction=self.friction, name=name))
        base = "floating" if feet and content.model.base == "auto" else content.model.base
        passive = "damping" not in self.without if self.acting else None
        stops = [StopTable()] if self.acting and "limits" not in self.without else []
        model = replace(content.model, base=base, passive=passive)
        simulate = replace(content.simulate, friction="friction" not in self.without)
        whole = self._with(scene, model=model, contact=feet, stop=stops, simulate=simulate)
        if stops and not any(
            np.isfinite(x) for j in whole.mechanism.joints for x in (*j.limits.lower, *j.limits.upper)
        ):
            whole = self._with(whole, stop=[])
        whole = self._with(whole, start=self._start(whole, bool(feet)))
        return whole if self.hold is None else self._with(whole, force=self._held(whole))

    def _start(self, scene: Scene, lifted: bool = False) -> Any:
        """Return [start]: the scene's own, with the pose and the values that are given; feet are put on the ground."""
        old, numbers = scene.content.start, numbers_by_name(self.start)
        q = {name: value for name, value in numbers.items() if not name.endswith(".v")}
        v = {name.removesuffix(".v"): value for name, value in numbers.items() if name.endswith(".v")}
        base = {joint.name for joint in scene.mechanism.joints if joint.kind == "free"}
        named = any(name.startswith(tuple(base)) for name in q) if base else False
        return replace(old, pose=self.pose or old.pose, q={**old.q, **q}, v={**old.v, **v},
                       on_ground=old.on_ground or (lifted and bool(base) and not named))  # fmt: skip

    def _held(self, scene: Scene) -> dict[str, Any]:
        """Return the forces of springs and dampers that hold every driven joint where it starts."""
        from dalembert.scenes.formulas import word_of

        try:
            stiffness, damping = (float(number) for number in str(self.hold).split(","))
        except ValueError:
            raise ModelError(f"--hold {self.hold} is not STIFFNESS,DAMPING, as in 80,2") from None
        m, (q, _) = scene.mechanism, scene.start
        forces = {}
        for joint in m.joints:
            if joint.kind in ("revolute", "prismatic"):
                symbol, place = word_of(joint.name), float(q[m.index_q(joint.name).start])
                forces[joint.name] = f"{stiffness!r}*({place!r} - {symbol}) - {damping!r}*{symbol}.v"
        return forces

    @staticmethod
    def _with(scene: Scene, **tables: Any) -> Scene:
        from dataclasses import replace as changed

        return changed(scene, content=replace(scene.content, **tables))


def numbers_by_name(words: Sequence[str]) -> dict[str, float]:
    """Return the values of words such as `length=0.3`."""
    numbers = {}
    for text in words:
        name, equals, value = text.partition("=")
        try:
            numbers[name.strip()] = float(value)
        except ValueError:
            raise ModelError(f"{text!r} is not name=number, as in length=0.3") from None
        if not equals or not name.strip():
            raise ModelError(f"{text!r} is not name=number, as in length=0.3")
    return numbers


DISTRIBUTION = re.compile(r"(normal|uniform)\(([^,]+),([^,]+)\)")


def typed(option: str, words: Sequence[str]) -> dict[str, str]:
    """Return what was typed by the name that it is about: {"motor": "--start motor.v=1"}."""
    return {text.partition("=")[0].strip().removesuffix(".v"): f"{option} {text}" for text in words}


def values_by_name(words: Sequence[str]) -> dict[str, Any]:
    """Return the values of words: `length=0.3,0.4`, `length=0.3:0.6:4` (four of them), `length=normal(0.3,0.01)`."""
    ranges: dict[str, Any] = {}
    for text in words:
        name, _, values = text.partition("=")
        drawn = DISTRIBUTION.fullmatch(values.replace(" ", ""))
        try:
            if drawn is not None:
                from dalembert.ensemble import distributions

                ranges[name.strip()] = getattr(distributions, drawn[1])(float(drawn[2]), float(drawn[3]))
            elif values.count(":") == 2:
                start, stop, count = values.split(":")
                refuse_too_many_values(text, count)
                ranges[name.strip()] = np.linspace(float(start), float(stop), int(count)).tolist()
            else:
                ranges[name.strip()] = [float(value) for value in values.split(",")]
        except ModelError:
            raise
        except ValueError:
            raise ModelError(
                f"{shown(text)} is not name=values, as in length=0.3,0.4 or length=0.3:0.6:4 or length=normal(0.3,0.01)"
            ) from None
    return ranges


def refuse_too_many_values(text: str, count: str) -> None:
    """Refuse more equally spaced values than a sweep takes."""
    from dalembert.scenes.sweep import MOST_VALUES

    if len(count.strip()) > MOST_DIGITS or int(count) > MOST_VALUES:
        raise ModelError(
            f"--over {shown(text)}: {shown(count)} values are above the limit of {MOST_VALUES}; a distribution and "
            "--runs take more"
        )


def writable(path: Path | None, endings: Sequence[str], what: str) -> None:
    """Refuse a file that cannot be written, before any work."""
    if path is None:
        return
    if path.is_dir() or not path.resolve().parent.is_dir():
        raise ModelError(f"{what} {path} cannot be written: it is a folder, or its folder does not exist")
    if endings and path.suffix.lower() not in endings:
        near = near_matches(path.suffix.lower(), endings)
        raise ModelError(f"{what} {path}: its name must end in {' or '.join(endings)}", near=near)


def print_json(data: Mapping[str, Any]) -> None:
    """Print plain data; numbers that are none become null."""
    print(json.dumps(plain(data), indent=2, allow_nan=False))


def plain(value: Any) -> Any:
    """Return arrays and NumPy's numbers as lists and numbers that JSON has."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    return str(value) if isinstance(value, Path) else value
