"""Files that commands work on: scenes, robot files, matrices, stored runs; values given as words."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.errors import ModelError
from dalembert.names import near_matches

if TYPE_CHECKING:
    from dalembert.scenes import Scene

ROBOT_FILES = (".urdf", ".sdf", ".world", ".xml", ".mjcf")
RUN_FILES = (".nc", ".h5", ".hdf5")
MATRIX_FILES = (".json", ".npz")
"""Endings of files, by what is in them; .toml holds scenes, matrices or equations."""

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
    known = ", ".join((".toml", *ROBOT_FILES, *MATRIX_FILES, *RUN_FILES))
    raise ModelError(f"{path}: files of type {suffix!r} are not known here; there are {known}")


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
    duration: float | None = None,
) -> Scene:  # fmt: skip
    """Return a scene: of a file, of the package by its name, or of a robot file alone."""
    from dalembert.scenes import Scene, scene
    from dalembert.scenes.layout import ModelTable, SceneFile, SimulateTable

    kind = file_kind(path)
    folders = [str(folder) for folder in packages] or None
    if kind in ("matrices", "run", "equations"):
        hints = {"matrices": "check or solve", "run": "view or export", "equations": "graph"}
        raise ModelError(
            f"{path} holds {'a stored run' if kind == 'run' else kind}, no scene: try dalembert {hints[kind]}"
        )
    if kind == "scene":
        found = scene(path, packages=folders)
        return found.with_parameters(**numbers_by_name(assignments)) if assignments else found
    if assignments:
        raise ModelError(f"--set is for scenes; {path} is a robot file and has no parameters")
    if not path.is_file():
        raise ModelError(f"{path}: there is no such file")
    model = ModelTable(file=path.name, base=base)  # pyright: ignore[reportArgumentType]
    content = SceneFile(title=path.stem, model=model, simulate=SimulateTable(duration=duration or DEFAULT_DURATION))
    return Scene(path, content, "", folders)


def numbers_by_name(words: Sequence[str]) -> dict[str, float]:
    """Return the values of words such as `length=0.3`."""
    found = {}
    for word in words:
        name, equals, value = word.partition("=")
        try:
            found[name.strip()] = float(value)
        except ValueError:
            raise ModelError(f"{word!r} is not name=number, as in length=0.3") from None
        if not equals or not name.strip():
            raise ModelError(f"{word!r} is not name=number, as in length=0.3")
    return found


def values_by_name(words: Sequence[str]) -> dict[str, list[float]]:
    """Return the values of words such as `length=0.3,0.4` or `length=0.3:0.6:4`, four from 0.3 to 0.6."""
    found: dict[str, list[float]] = {}
    for word in words:
        name, _, values = word.partition("=")
        try:
            if values.count(":") == 2:
                start, stop, count = values.split(":")
                found[name.strip()] = np.linspace(float(start), float(stop), int(count)).tolist()
            else:
                found[name.strip()] = [float(value) for value in values.split(",")]
        except ValueError:
            raise ModelError(f"{word!r} is not name=values, as in length=0.3,0.4 or length=0.3:0.6:4") from None
    return found


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
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    return str(value) if isinstance(value, Path) else value
