"""The draft of a model: parts and notes that a reader collects for the builder."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Any

from dalembert.errors import ModelError, advised
from dalembert.model.mechanism.builder import Builder
from dalembert.model.mechanism.mechanism import Mechanism
from dalembert.model.mechanism.parts import (
    Actuator,
    Body,
    CollisionShape,
    ContactRule,
    Coupling,
    Frame,
    Joint,
    Limits,
    Loop,
    NamedPose,
    Spring,
    Tendon,
    Visual,
)
from dalembert.model.mechanism.placement import IDENTITY, Placement
from dalembert.readers.xml_tree import XmlElement, shortened

# ----------------------------------------------------------------------------------------------------------------------
# The draft of a model: parts, and notes on what was left out; handed to the Builder in one go.


GROUND = "world"
"""What readers call the ground; no body of an SDF or MJCF file can be called so."""

NAMED = 5
"""Places named in a note; the rest is counted."""

MOST_KINDS = 200
"""Kinds of elements left out that have a note of their own; the rest is counted."""


@dataclass
class Draft:
    """Parts of a mechanism in the order of the file, and notes.

    Attributes
    ----------
    shapes
        Bodies with shapes that collide, as often as they have one.
    rooted
        Whether every root body has its joint to the ground already; where not, the Builder adds "root_joint".
    initial
        Where the file puts bodies that float, by the name of their free joint.
    poses
        Configurations by name: coordinates by joint.
    """

    name: str
    file: str
    bodies: list[Body] = field(default_factory=list)
    joints: list[Joint] = field(default_factory=list)
    frames: list[Frame] = field(default_factory=list)
    springs: list[Spring] = field(default_factory=list)
    tendons: list[Tendon] = field(default_factory=list)
    actuators: list[Actuator] = field(default_factory=list)
    couplings: list[Coupling] = field(default_factory=list)
    loops: list[Loop] = field(default_factory=list)
    visuals: list[Visual] = field(default_factory=list)
    collision_shapes: list[CollisionShape] = field(default_factory=list)
    contact_rules: list[ContactRule] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    shapes: list[str] = field(default_factory=list)
    gravity: tuple[float, float, float] = (0.0, 0.0, -9.81)
    left_out: dict[str, list[str]] = field(default_factory=dict)
    rooted: bool = False
    initial: dict[str, Placement] = field(default_factory=dict)
    poses: dict[str, dict[str, tuple[float, ...]]] = field(default_factory=dict)
    taken: dict[str, dict[str, int]] = field(default_factory=dict)

    def leave_out(self, element: XmlElement, why: str = "") -> None:
        """Remember an element that says something this library does not use."""
        what = f"<{element.tag}>{f' ({why})' if why else ''}"
        self.leave_out_at(what, _place(element))

    def leave_out_at(self, what: str, place: str) -> None:
        """Remember something that this library does not use, and where it stands."""
        self.left_out.setdefault(shortened(what, 300), []).append(place)

    def leave_out_unknown(self, element: XmlElement, known: Iterable[str]) -> None:
        """Leave out every child with a tag that is not known."""
        for child in element.children:
            if child.tag not in known:
                self.leave_out(child, f"in <{element.tag}>")

    def leave_out_attributes(self, element: XmlElement, known: frozenset[str]) -> None:
        """Leave out attributes that are not known; those of other namespaces (xmlns:drake) are no concern of ours."""
        if not element.attributes.keys() <= known:
            unknown = [name for name in element.attributes if name not in known and ":" not in name and name != "xmlns"]
            for name in unknown:
                self.leave_out(element, f"its attribute {shortened(name, 40)!r}, which means nothing here")

    def all_notes(self) -> tuple[str, ...]:
        """Return the notes, with one line for each kind of element left out."""
        lines = []
        for what, places in sorted(self.left_out.items())[:MOST_KINDS]:
            more = f", and {len(places) - NAMED} more" if len(places) > NAMED else ""
            lines.append(f"left out: {len(places)} {what}: {', '.join(places[:NAMED])}{more}")
        if len(self.left_out) > MOST_KINDS:
            lines.append(f"left out: {len(self.left_out) - MOST_KINDS} more kinds of elements and attributes")
        return (*self.notes, *lines, *self._shape_note())

    def _shape_note(self) -> list[str]:
        """Return a note on shapes that collide in other tools: here a run has the contacts that it is given."""
        bodies = list(dict.fromkeys(name or "unnamed" for name in self.shapes))
        if not bodies:
            return []
        named = ", ".join(shortened(name, 40) for name in bodies[:NAMED])
        more = f", and {len(bodies) - NAMED} more" if len(bodies) > NAMED else ""
        words = f"collision shapes are not used: {len(self.shapes)} on {len(bodies)} bodies ({named}{more})"
        fall = "they pass through each other and the ground"
        return [
            advised(words, f"without contacts= of simulate {fall}; mechanism.contacts() makes a scene of them",
                    f"without [[contact]] in a scene, or --foot of dalembert simulate, {fall}")
        ]  # fmt: skip

    def new_name(self, family: str, wanted: str) -> str:
        """Return a name that no part of a family was given here before: the wanted one, or with a number behind it."""
        taken = self.taken.setdefault(family, {})
        name = wanted
        while name in taken:
            taken[wanted] += 1
            name = f"{wanted}_{taken[wanted]}"
        taken[name] = 1
        return name

    def rebase(self, base: str) -> None:
        """Hold the root as asked for where the file itself says how: "fixed" stops what floats, "floating" frees it."""
        held = [i for i, joint in enumerate(self.joints) if joint.parent == GROUND]
        free = [i for i in held if self.joints[i].kind == "free"]
        if base == "fixed":
            for i in free:
                joint = self.joints[i]
                placement = self.initial.get(joint.name, joint.placement)
                self.notes.append(f"base = 'fixed': the free joint {joint.name!r} is held where the file puts it")
                self.joints[i] = replace(joint, kind="fixed", placement=placement, damping=(), friction=(), armature=())
        elif base == "floating" and not free:
            if len(held) != 1 or self.joints[held[0]].kind != "fixed":
                raise ModelError(
                    f"{self.file}: base = 'floating', but the file holds {len(held)} bodies to the ground, by "
                    f"{', '.join(repr(self.joints[i].name) for i in held[:4])}; only a single fixed one can be freed"
                )
            self.joints[held[0]] = replace(self.joints[held[0]], kind="free", placement=IDENTITY, limits=Limits())

    def _unwind(self) -> None:
        """Make continuous joints revolute where a coupling needs to know how often they have turned."""
        coupled = {term for coupling in self.couplings for term, factor in coupling.terms if factor}
        for i, joint in enumerate(self.joints):
            if joint.kind == "continuous" and joint.name in coupled:
                self.joints[i] = replace(joint, kind="revolute")
                self.notes.append(
                    f"{joint.source}: continuous, but coupled to another joint, which depends on how often it has "
                    "turned; its coordinate is an angle without limits instead of (cos, sin)"
                )

    def build(self, base: str, order: str, allow_unphysical: bool, passive: bool, strict: bool = False) -> Mechanism:
        """Return the mechanism."""
        self._unwind()
        builder = Builder(self.name, self.gravity, self.file)
        for body in self.bodies:
            builder.body(**_fields(body))
        for joint in self.joints:
            builder.joint(**_fields(joint))
        for frame in self.frames:
            builder.frame(**_fields(frame))
        for spring in self.springs:
            builder.spring(**_fields(spring))
        for tendon in self.tendons:
            builder.tendon(**_fields(tendon))
        for actuator in self.actuators:
            builder.actuator(**_fields(actuator))
        for coupling in self.couplings:
            builder.couple(**_fields(coupling))
        for loop in self.loops:
            values: dict[str, Any] = {**_fields(loop), "options": dict(loop.options)}
            builder.loop(**values)
        for visual in self.visuals:
            builder.visual(**_fields(visual))
        builder.collision_shapes += self.collision_shapes
        builder.contact_rules += self.contact_rules
        for note in self.all_notes():
            builder.note(note)
        mechanism = builder.build(base, order, allow_unphysical, passive, strict=strict)
        return replace(mechanism, poses=tuple(self._poses_of(mechanism)))

    def _poses_of(self, mechanism: Mechanism) -> Iterator[NamedPose]:
        """Yield the poses, each with the joints that this mechanism has: a held root has none."""
        sizes = {joint.name: mechanism.index_q(joint.name) for joint in mechanism.joints}
        for name, values in self.poses.items():
            by_joint = {
                joint: x for joint, x in values.items() if joint in sizes and sizes[joint].stop > sizes[joint].start
            }
            yield NamedPose(name, tuple(by_joint.items()))


def _fields(part: Any) -> dict[str, Any]:
    return {field.name: getattr(part, field.name) for field in fields(part)}


def _place(element: XmlElement) -> str:
    name = element.attributes.get("name") or element.attributes.get("reference")
    return f"line {element.line}" + (f" ({shortened(name, 40)})" if name else "")
