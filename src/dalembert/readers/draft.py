"""What a reader has found so far: parts, and notes on what it left out; handed to the Builder in one go."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from dalembert.model.parts import Actuator, Body, Coupling, Frame, Joint, Loop, Spring
from dalembert.readers.xml_tree import Element, shortened

NAMED = 5
"""Places named in a note; the rest is counted."""


@dataclass
class Draft:
    """Parts of a mechanism in the order of the file, and notes.

    Attributes
    ----------
    rooted
        Whether every root body has its joint to the ground already; where not, the Builder adds "root_joint".
    """

    name: str
    file: str
    bodies: list[Body] = field(default_factory=list)
    joints: list[Joint] = field(default_factory=list)
    frames: list[Frame] = field(default_factory=list)
    springs: list[Spring] = field(default_factory=list)
    actuators: list[Actuator] = field(default_factory=list)
    couplings: list[Coupling] = field(default_factory=list)
    loops: list[Loop] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    gravity: tuple[float, float, float] = (0.0, 0.0, -9.81)
    left_out: dict[str, list[Element]] = field(default_factory=dict)
    rooted: bool = False
    taken: dict[str, dict[str, int]] = field(default_factory=dict)

    def leave_out(self, element: Element, why: str = "") -> None:
        """Remember an element that says something this library does not use."""
        what = f"<{element.tag}>{f' ({why})' if why else ''}"
        self.left_out.setdefault(shortened(what, 300), []).append(element)

    def leave_out_unknown(self, element: Element, known: Iterable[str]) -> None:
        """Leave out every child with a tag that is not known."""
        for child in element.children:
            if child.tag not in known:
                self.leave_out(child, f"in <{element.tag}>")

    def all_notes(self) -> tuple[str, ...]:
        """Return the notes, with one line for each kind of element left out."""
        lines = []
        for what, elements in sorted(self.left_out.items()):
            places = ", ".join(_place(element) for element in elements[:NAMED])
            more = f", and {len(elements) - NAMED} more" if len(elements) > NAMED else ""
            lines.append(f"left out: {len(elements)} {what}: {places}{more}")
        return (*self.notes, *lines)

    def new_name(self, family: str, wanted: str) -> str:
        """Return a name that no part of a family was given here before: the wanted one, or with a number behind it."""
        taken = self.taken.setdefault(family, {})
        name = wanted
        while name in taken:
            taken[wanted] += 1
            name = f"{wanted}_{taken[wanted]}"
        taken[name] = 1
        return name

    def replace_joint(self, index: int, **changes: object) -> None:
        """Change one joint."""
        self.joints[index] = replace(self.joints[index], **changes)  # pyright: ignore[reportArgumentType]


def _place(element: Element) -> str:
    name = element.attributes.get("name") or element.attributes.get("reference")
    return f"line {element.line}" + (f" ({shortened(name, 40)})" if name else "")
