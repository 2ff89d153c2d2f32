"""Constraints as words on the command line: `foot`, `hand:box`, `tip:top:z`, `a:b:0.35`, `left=1,right=-2`.

Parts are joined by ':'. A name that has ':' in it, as those of nested models have, is one part. An empty part in the
place of the other frame stands for none: `tip::z` is held where it is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count

from dalembert.errors import DalembertError, ModelError
from dalembert.model.constraints import (
    Constraint,
    Coupler,
    Cylindrical,
    Distance,
    Planar,
    Point,
    PointInPlane,
    PointOnLine,
    Prismatic,
    Revolute,
    Rolling,
    Servo,
    Universal,
    Weld,
)
from dalembert.model.mechanism.mechanism import Mechanism

AXES = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}
Axis = tuple[float, ...]


def axis(text: str) -> Axis:
    """Return x, y, z, one of them with a minus, or three numbers `1,0,1`."""
    letter = text.casefold().removeprefix("-").removeprefix("+")
    if letter in AXES:
        return tuple(-x if text[0] == "-" and x else x for x in AXES[letter])
    values = tuple(number(x, "part of an axis") for x in text.split(","))
    if len(values) != 3:
        raise ModelError(f"{text!r} is no axis: x, y, z, -x, -y, -z, or three numbers as in 1,0,1")
    return values


def number(text: str, what: str = "number") -> float:
    """Return a number."""
    try:
        return float(text)
    except ValueError as error:
        raise ModelError(f"{text!r} is no {what}") from error


def metres(text: str) -> float:
    """Return a length."""
    return number(text, "length in metres")


def terms(text: str) -> dict[str, float]:
    """Return coordinates with their factors, `left=1,right=-2`."""
    found: dict[str, float] = {}
    for part in text.split(","):
        name, equals, factor = part.rpartition("=")
        if not equals or not name or name in found:
            raise ModelError(f"{part!r} is not coordinate=factor, or is there twice: write left=1,right=-2")
        found[name] = number(factor, "factor")
    return found


@dataclass(frozen=True)
class Word:
    """How an option is written, and how the constraint is made of its parts.

    Attributes
    ----------
    form
        As the help has it; parts in brackets may be left out.
    made
        Takes the first part, and what the others give by name.
    parts
        What comes after the first part: names of arguments, and what reads them; None for the other frame.
    least
        How many parts there must be.
    """

    form: str
    made: Callable[..., Constraint]
    parts: Sequence[tuple[str, Callable[[str], object] | None]] = ()
    least: int = 1

    def constraint(self, option: str, text: str, names: Collection[str]) -> Constraint:
        """Return the constraint that `text` stands for; `names` are those of the mechanism."""
        parts = split(text, names)
        try:
            if not self.least <= len(parts) <= 1 + len(self.parts) or not parts[0]:
                raise ModelError("a name is missing" if not parts[0] else f"{len(parts)} parts")
            given: dict[str, object] = {}
            for (name, read), part in zip(self.parts, parts[1:], strict=False):
                if part:
                    given[name] = part if read is None else read(part)
                elif read is not None or len(parts) == 2:
                    raise ModelError(f"nothing stands after ':' for the {name}")
            return self.made(parts[0], **given)
        except DalembertError as error:
            raise ModelError(f"--{option.replace('_', '-')} {text!r}: {error}; write {self.form}") from error


OTHER: tuple[str, None] = ("other", None)
AXIS = (OTHER, ("axis", axis))

WORDS: dict[str, Word] = {
    "point": Word("FRAME or FRAME:OTHER", Point, (OTHER,)),
    "weld": Word("FRAME or FRAME:OTHER", Weld, (OTHER,)),
    "revolute": Word("FRAME:OTHER:AXIS", Revolute, AXIS),
    "prismatic": Word("FRAME:OTHER:AXIS", Prismatic, AXIS),
    "cylindrical": Word("FRAME:OTHER:AXIS", Cylindrical, AXIS),
    "universal": Word("FRAME:OTHER:AXIS:AXIS2", Universal, (*AXIS, ("axis2", axis))),
    "planar": Word("FRAME:OTHER:AXIS", Planar, AXIS),
    "distance": Word("FRAME:OTHER:LENGTH, the length in metres", Distance, (OTHER, ("length", metres)), 3),
    "coupler": Word(
        "JOINT=FACTOR,JOINT=FACTOR or the same with :OFFSET",
        lambda text, **given: Coupler(terms(text), **given),
        (("offset", number),),
    ),
    "point_on_line": Word("FRAME:OTHER:AXIS", PointOnLine, AXIS),
    "point_in_plane": Word("FRAME:OTHER:NORMAL", PointInPlane, (OTHER, ("normal", axis))),
    "rolling": Word("FRAME:OTHER:RADIUS or FRAME:OTHER:RADIUS:AXIS", Rolling, (OTHER, ("radius", metres), AXIS[1]), 3),
    "servo": Word("JOINT:VALUE, radians or metres", Servo, (("motion", number),), 2),
}
"""Every option that makes a constraint; being here is being tested."""


def constraints(given: dict[str, Sequence[str]], mechanism: Mechanism) -> list[Constraint]:
    """Return the constraints of all words, by option."""
    parts = (*mechanism.bodies, *mechanism.joints, *mechanism.frames)
    names = {mechanism.ground, *mechanism.coordinates, *(part.name for part in parts)}
    made = [WORDS[option].constraint(option, text, names) for option, texts in given.items() for text in texts]
    return distinct(made, set(mechanism.names))


def distinct(made: Sequence[Constraint], taken: set[str]) -> list[Constraint]:
    """Return constraints of which no two have a row of the same name, nor one that is taken.

    On the command line nobody can give names: what comes second is called "foot (weld)", then "foot (2)", ...
    """
    named = []
    for each in made:
        others = (replace(each, name=f"{each.label} ({word})") for word in chain([each.kind], count(2)))
        one = next(one for one in chain([each], others) if taken.isdisjoint(one.row_names()))
        taken = taken | set(one.row_names())
        named.append(one)
    return named


def split(text: str, names: Collection[str]) -> list[str]:
    """Return the parts of a word; the longest name that stands at a part's beginning is the part."""
    parts, rest = [], text
    while True:
        known = [name for name in names if ":" in name and (rest == name or rest.startswith(f"{name}:"))]
        part = max(known, key=len, default=rest.partition(":")[0])
        parts.append(part)
        if rest == part:
            return parts
        rest = rest[len(part) + 1 :]
