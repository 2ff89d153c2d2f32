"""Constraints as words on the command line: `foot`, `hand:box`, `tip:top:z`, `a:b:0.35`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dalembert.errors import ModelError
from dalembert.model.constraints import Constraint, Cylindrical, Distance, Planar, Point, Prismatic, Revolute, Weld

AXES = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}


def point(word: str) -> Constraint:
    """Return `frame` held where it is, or `frame:other` joined by a ball joint."""
    return Point(*_names(word, 2))


def weld(word: str) -> Constraint:
    """Return `frame` held where it is, or `frame:other` welded."""
    return Weld(*_names(word, 2))


def distance(word: str) -> Constraint:
    """Return `frame:other:length`, metres."""
    names = _names(word, 3)
    if len(names) != 3:
        raise ModelError(f"--distance {word!r}: write frame:other:length, the length in metres")
    try:
        length = float(names[2])
    except ValueError as error:
        raise ModelError(f"--distance {word!r}: {names[2]!r} is no length in metres") from error
    return Distance(names[0], names[1], length=length)


def _axial(kind: type) -> Callable[[str], Constraint]:
    def made(word: str) -> Constraint:
        names = _names(word, 3)
        if len(names) < 2 or (len(names) == 3 and names[2] not in AXES):
            raise ModelError(f"{word!r}: write frame:other or frame:other:axis, the axis one of x, y, z (of frame)")
        return kind(names[0], names[1], axis=AXES[names[2] if len(names) == 3 else "z"])

    made.__doc__ = f"""Return `frame:other:axis`, a {kind.__name__.lower()} joint that closes a loop."""
    return made


WORDS: dict[str, Callable[[str], Constraint]] = {
    "point": point,
    "weld": weld,
    "distance": distance,
    "revolute": _axial(Revolute),
    "prismatic": _axial(Prismatic),
    "cylindrical": _axial(Cylindrical),
    "planar": _axial(Planar),
}
"""Every option that makes a constraint; being here is being tested."""


def constraints(given: dict[str, Sequence[str]]) -> list[Constraint]:
    """Return the constraints of all words, by option."""
    return [WORDS[option](word) for option, words in given.items() for word in words]


def _names(word: str, most: int) -> list[str]:
    names = word.split(":")
    if not all(names) or len(names) > most:
        raise ModelError(f"{word!r} is not a name, or up to {most} of them joined by ':'")
    return names
