"""Frames of an SDF model: where they stand, and to which link they are attached.

Every frame of a model is given relative to one other: a link to "__model__", a joint to its child, a <frame> to what it
is attached to, unless `relative_to` says otherwise (http://sdformat.org/tutorials?tut=pose_frame_semantics). Following
these to "__model__" gives X_MF; a frame that leads back to itself is refused. Names of nested models are scoped,
"arm::hand". Tools that flatten nested models give links and frames such names as their own ("arm::hand" and
"arm::__model__" in one model); a name that stands there in full goes before a scoped one.

Symbols: X_MF placement of frame F in the model's frame M.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from dalembert.model.mechanism.placement import IDENTITY, Placement
from dalembert.readers.xml_tree import XmlElement, number, numbers, quaternion_placement, shortened

MODEL = "__model__"
FRAMED = ("link", "joint", "frame", "model")
"""Elements that bring a frame of their name."""


@dataclass
class Scope:
    """One <model> with the names it defines.

    Attributes
    ----------
    element, prefix, version
        The <model>; what stands before its names, "outer::inner::" or ""; the version of the file it came from.
    named
        Name -> element of every link, joint, frame and nested model.
    nested
        Name -> scope of every nested model.
    placed, carried
        What was found so far: name of a frame -> its placement; -> scope and name of the link that carries it.
    """

    element: XmlElement
    prefix: str
    version: tuple[int, int]
    named: dict[str, XmlElement] = field(default_factory=dict)
    nested: dict[str, Scope] = field(default_factory=dict)
    placed: dict[str, Placement] = field(default_factory=lambda: {MODEL: IDENTITY})
    carried: dict[str, tuple[Scope, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for child in self.element.children:
            if child.tag not in FRAMED:
                continue
            name = child.attribute("name")
            if name in self.named:
                raise child.error(f"the name is taken by {self.named[name]} in line {self.named[name].line}")
            if (name.startswith("__") and name.endswith("__")) or name == "world":
                raise child.error(f"the name {shortened(name)!r} is reserved")
            self.named[name] = child
            if child.tag == "link":
                self.carried[name] = (self, name)

    def placement(self, name: str, asked: XmlElement) -> Placement:
        """Return X_MF; `asked` is the element that uses the name."""
        chain: list[tuple[str, Placement]] = []
        visited: set[str] = set()
        while name not in self.placed:
            if name in visited:
                circle = " -> ".join(shortened(step, 40) for step, _ in chain[-6:])
                raise asked.error(f"frames are given relative to each other in a circle: {circle} -> {name}")
            visited.add(name)
            place, base, element = self._given(name, asked)
            chain.append((name, place))
            name, asked = base, element
        placement = self.placed[name]
        for step, place in reversed(chain):
            placement = placement @ place
            self.placed[step] = placement
        return placement

    def _given(self, name: str, asked: XmlElement) -> tuple[Placement, str, XmlElement]:
        """Return a frame's pose as the file gives it, the frame it is relative to, and its element."""
        first, _, rest = name.partition("::")
        if rest and first in self.nested and name not in self.named:
            return self.nested[first].placement(rest, asked), first, asked
        element = self.named.get(name)
        if element is None:
            raise asked.error(f"there is no frame {shortened(name)!r}{self._known()}")
        pose = element.only("pose")
        place = IDENTITY if pose is None else pose_of(pose)
        if element.tag == "model":
            place = self._model_pose(name, element, place)
        return place, relative_to(pose) or self._default(element), element

    def _model_pose(self, name: str, element: XmlElement, pose: Placement) -> Placement:
        """Return the pose of a nested model: the one given may be that of a frame in it."""
        frame = element.attributes.get("placement_frame", "").strip()
        return pose @ self.nested[name].placement(frame, element).inverse() if frame else pose

    def _default(self, element: XmlElement) -> str:
        """Return what a frame is relative to where the file does not say."""
        if element.tag == "joint":
            return text_of(element, "child")
        if element.tag == "frame":
            return element.attributes.get("attached_to", "").strip() or MODEL
        return MODEL

    def link(self, name: str, asked: XmlElement) -> tuple[Scope, str]:
        """Return the link to which a frame is attached: its scope, and its name there."""
        scope: Scope = self
        visited: dict[tuple[int, str], Scope] = {}
        while name not in scope.carried:
            key = (id(scope), name)
            if key in visited:
                raise asked.error(f"frames are attached to each other in a circle, at {shortened(name)!r}")
            visited[key] = scope
            scope, name = scope._next(name, asked)
        link = scope.carried[name]
        for (_, step), where in visited.items():
            where.carried[step] = link
        return link

    def _next(self, name: str, asked: XmlElement) -> tuple[Scope, str]:
        """Return the scope and name of what a frame is attached to."""
        first, _, rest = name.partition("::")
        if rest and first in self.nested and name not in self.named:
            return self.nested[first], rest
        if name == MODEL:
            return self._canonical(asked)
        element = self.named.get(name)
        if element is None:
            raise asked.error(f"there is no link or frame {shortened(name)!r}{self._known()}")
        if element.tag == "model":
            return self.nested[name], MODEL
        return self, self._default(element) if element.tag == "frame" else text_of(element, "child")

    def _canonical(self, asked: XmlElement) -> tuple[Scope, str]:
        """Return the link that carries the model's frame: the one named, the first, or a nested model's."""
        named = self.element.attributes.get("canonical_link", "").strip()
        if named:
            return self, named
        for child in self.element.children:
            if child.tag == "link":
                return self, child.attribute("name")
        for scope in self.nested.values():
            return scope, MODEL
        raise asked.error(f"{self.element} has no link to which a frame could be attached")

    def _known(self) -> str:
        names = ", ".join(shortened(name, 40) for name in list(self.named)[:8])
        return f" in {self.element}; it has {names}" if names else f" in {self.element}"


def text_of(element: XmlElement, tag: str) -> str:
    """Return the text of a child that must be there and not be empty."""
    child = element.required(tag)
    text = child.text.strip()
    if not text:
        raise child.error("is empty")
    return text


def relative_to(pose: XmlElement | None) -> str:
    """Return the frame that a pose names: `relative_to`, or `frame` before SDF 1.7; "" where it names none."""
    if pose is None:
        return ""
    return pose.attributes.get("relative_to", pose.attributes.get("frame", "")).strip()


def pose_of(pose: XmlElement) -> Placement:
    """Return a <pose>: x y z roll pitch yaw, in degrees if it says so, or x y z and a quaternion (SDF 1.9)."""
    words = pose.text.split()
    form = pose.attributes.get("rotation_format", "euler_rpy").strip()
    if form not in ("euler_rpy", "quat_xyzw"):
        raise pose.error(f"unknown rotation_format {shortened(form)!r}")
    if not words:
        return IDENTITY
    if form == "quat_xyzw":
        values = numbers(pose, pose.text, 7, "a pose")
        return quaternion_placement(pose, values[3:], values[:3])
    values = numbers(pose, pose.text, 6, "a pose")
    scale = math.radians(1.0) if pose.attributes.get("degrees", "").strip() in ("1", "true") else 1.0
    return Placement.from_rpy([scale * angle for angle in values[3:]], values[:3])


def version_of(element: XmlElement) -> tuple[int, int]:
    """Return the version of an <sdf> element; "1.6" is (1, 6)."""
    version = element.attribute("version")
    major, _, minor = version.partition(".")
    if not (major.isascii() and major.isdigit() and minor.isascii() and minor.isdigit() and len(version) < 9):
        raise element.error(f"version {shortened(version)!r} is not like 1.9")
    number(element, version, "version")
    return int(major), int(minor)
