"""The builder of mechanisms: parts collected, checked, and ordered to a tree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any

import numpy as np

from dalembert.checks import floats
from dalembert.errors import ModelError, advised
from dalembert.model.joints import KINDS
from dalembert.model.mechanism.mechanism import Mechanism
from dalembert.model.mechanism.parts import (
    COLLISION_KINDS,
    VISUALS,
    Actuator,
    Body,
    CollisionShape,
    ContactRule,
    Coupling,
    Frame,
    Joint,
    Loop,
    NamedPose,
    Source,
    Spring,
    Tendon,
    Visual,
)
from dalembert.model.mechanism.validation import (
    check,
    checked_gravity,
    checked_options,
    finite,
    make_collision_shape,
    make_color,
    make_inertia,
    make_limits,
    make_placement,
    make_slack,
    make_terms,
    make_visual_size,
    per_velocity,
    unit_axis,
    unsigned,
    with_names,
)
from dalembert.names import checked_name, lookup

# ----------------------------------------------------------------------------------------------------------------------
# From a heap of joints to a tree: what holds each body, and the order in which states are numbered.


ROOT = "root_joint"
"""Name of the joint that holds a body which no other joint carries."""

BASES = ("fixed", "floating", "auto")

CLOSE_LOOP = (
    "give it as a loop (Builder.loop)",
    'give it as a [[constraint]] of two frames in place of the [[joint]]: "revolute" for a hinge, "point" for a ball',
)
"""What to do with a joint that closes a loop, in Python and in a scene."""

ORDERS = ("added", "name")


def rooted(joints: list[Joint], bodies: Mapping[str, Body], ground: str, base: str) -> tuple[list[Joint], bool]:
    """Return the joints with one more for each body that none carries, and whether any body floats."""
    lookup(base, dict.fromkeys(BASES), "base")
    _check_ends(joints, bodies, ground)
    carried = {joint.child for joint in joints}
    roots = [body for name, body in bodies.items() if name not in carried]
    grounded = any(joint.parent == ground for joint in joints)
    if base == "floating" and not roots:
        raise ModelError(
            f"base = 'floating', but no body is free to float: every body is carried by a joint, and {ground!r} holds "
            f"{next((j.child for j in joints if j.parent == ground), 'none')!r}",
            subject="base",
        )
    if base == "fixed" and roots and (len(roots) > 1 or grounded):
        names = ", ".join(repr(body.name) for body in roots[:4]) + (" ..." if len(roots) > 4 else "")
        raise ModelError(
            f"{len(roots)} bodies are carried by no joint: {names}; give each a joint (a 'fixed' or 'free' one to "
            f"{ground!r}, or to the body it belongs to), or let them float with base = 'floating'",
            roots[-1].source,
        )
    added = [_root(body, ground, base, len(roots) > 1) for body in roots]
    free = any(joint.kind == "free" and joint.parent == ground for joint in [*added, *joints])
    return added + joints, free


def _root(body: Body, ground: str, base: str, several: bool) -> Joint:
    floats = base == "floating" or (base == "auto" and body.inertia.mass != 0)
    name = f"{body.name}_{ROOT}" if several else ROOT
    return Joint(name, "free" if floats else "fixed", ground, body.name, source=body.source)


def _check_ends(joints: Sequence[Joint], bodies: Mapping[str, Body], ground: str) -> None:
    """Refuse joints whose bodies do not exist, and two joints that carry one body."""
    ends = {ground: None} | dict.fromkeys(bodies)
    carrier: dict[str, Joint] = {}
    for joint in joints:
        lookup(joint.parent, ends, f"body (parent of joint {joint.name!r})", joint.source)
        if joint.child == ground:
            raise ModelError(
                f"joint {joint.name!r} carries the ground {ground!r}: swap its parent and child", joint.source
            )
        lookup(joint.child, ends, f"body (child of joint {joint.name!r})", joint.source)
        other = carrier.setdefault(joint.child, joint)
        if other is not joint:
            words = f"two joints carry the body {joint.child!r}: {other.name!r} and {joint.name!r}"
            raise ModelError(
                advised(f"{words}; a tree has one, the other closes a loop", *CLOSE_LOOP), joint.source, subject="child"
            )


def in_order(joints: Sequence[Joint], bodies: Mapping[str, Body], ground: str, order: str) -> list[Joint]:
    """Return the joints depth first, children as added or sorted by joint name; a cycle is refused by its names."""
    lookup(order, dict.fromkeys(ORDERS), "order")
    children: dict[str, list[Joint]] = {}
    for joint in joints:
        children.setdefault(joint.parent, []).append(joint)
    if order == "name":
        for siblings in children.values():
            siblings.sort(key=lambda joint: joint.name)
    ordered: list[Joint] = []
    stack = children.get(ground, [])[::-1]
    while stack:
        joint = stack.pop()
        ordered.append(joint)
        stack += children.get(joint.child, [])[::-1]
    if len(ordered) < len(joints):
        _refuse_cycle(joints, {joint.child for joint in ordered})
    return ordered


def _refuse_cycle(joints: Sequence[Joint], reached: set[str]) -> None:
    """Name the bodies of a cycle: each carries the next, and none is held by the ground."""
    carrier = {joint.child: joint for joint in joints if joint.child not in reached}
    name = next(iter(carrier))
    visited: dict[str, int] = {}
    while name not in visited:
        visited[name] = len(visited)
        name = carrier[name].parent
    cycle = list(visited)[visited[name] :]
    shown = " <- ".join(repr(body) for body in (*cycle[:6], *(["..."] if len(cycle) > 6 else []), cycle[0]))
    words = f"joints form a cycle that nothing holds: {shown}; one of them closes a loop"
    raise ModelError(advised(words, *CLOSE_LOOP), carrier[name].source, subject="parent")


# ----------------------------------------------------------------------------------------------------------------------
# Put a mechanism together, part by part; every complaint names the part and where it was read.


OTHER_JOINTS = {other: name for name, kind in KINDS.items() for other in kind.other_names}
"""What other tools call kinds of joints."""


class Builder:
    """Collects the parts of a mechanism; `build` checks them and puts them in order.

    Parameters
    ----------
    name
        What the mechanism is called.
    gravity : (3,)
        In m/s^2.
    source
        The file that is read, or None.

    Examples
    --------
    >>> import dalembert as da
    >>> b = da.Builder("pendulum")
    >>> b.body("rod", mass=1.0, center=(0, 0, -0.5), inertia=(1 / 12, 1 / 12, 0))
    >>> b.joint("hinge", "revolute", parent="world", child="rod", axis=(0, 1, 0))
    >>> print(b.build())
    pendulum: 1 body, nq 1, nv 1, 1 kg, fixed base, gravity (0, 0, -9.81)
    world
    └─ hinge: revolute y ── rod (1 kg)
    """

    def __init__(self, name: str = "mechanism", gravity: Any = (0.0, 0.0, -9.81), source: str | None = None) -> None:
        self.name = checked_name(name, "mechanism", None)
        self.gravity = checked_gravity(gravity)
        self.source = source
        self.bodies: dict[str, Body] = {}
        self.joints: dict[str, Joint] = {}
        self.frames: dict[str, Frame] = {}
        self.springs: dict[str, Spring] = {}
        self.tendons: dict[str, Tendon] = {}
        self.actuators: dict[str, Actuator] = {}
        self.couplings: dict[str, Coupling] = {}
        self.loops: dict[str, Loop] = {}
        self.visuals: list[Visual] = []
        self.collision_shapes: list[CollisionShape] = []
        self.contact_rules: list[ContactRule] = []
        self.poses: dict[str, NamedPose] = {}
        self.notes: list[str] = []

    def body(
        self,
        name: str,
        mass: float = 0.0,
        center: Any = (0.0, 0.0, 0.0),
        inertia: Any = None,
        source: Source | None = None,
        compensation: float = 0.0,
    ) -> None:
        """Add a body; `inertia` about the centre of mass: three moments, six numbers ixx ixy ixz iyy iyz izz, or 3x3.

        An `Inertia` stands for all three. Zero mass and zero moments are legal. `compensation` is the share of its
        weight that is held up.
        """
        whole = make_inertia(inertia, mass, center, f"body {name!r}", source)
        held = finite(compensation, f"the compensation of body {name!r}", source)
        _add(self.bodies, name, "body", source, lambda: Body(name, whole, source, held))

    def joint(
        self,
        name: str,
        kind: str,
        parent: str,
        child: str,
        axis: Any = (1.0, 0.0, 0.0),
        position: Any = None,
        rotation: Any = None,
        rpy: Any = None,
        placement: Any = None,
        child_placement: Any = None,
        axis2: Any = (0.0, 1.0, 0.0),
        pitch: float = 0.0,
        limits: Any = None,
        damping: Any = (),
        friction: Any = (),
        armature: Any = (),
        stiffness: Any = (),
        rest: Any = (),
        source: Source | None = None,
    ) -> None:
        """Add a joint that carries `child`; fields as in `Joint`.

        `rotation` is 3x3 or a quaternion [x y z w], `rpy` roll, pitch, yaw; `limits` a pair (lower, upper), a mapping
        with lower, upper, velocity, effort, or `Limits`. A single number serves all velocities of the joint.
        """
        what = f"joint {name!r}"
        if isinstance(kind, str) and kind in OTHER_JOINTS:
            raise ModelError(f"there is no kind of joint {kind!r}", source, (OTHER_JOINTS[kind],), subject=kind)
        formulas = lookup(kind, KINDS, "kind of joint", source)
        values = {"damping": damping, "friction": friction, "armature": armature, "stiffness": stiffness, "rest": rest}
        vectors = {key: per_velocity(value, formulas.nv, f"{key} of {what}", source) for key, value in values.items()}
        joint = Joint(
            name=name,
            kind=kind,
            parent=str(parent),
            child=str(child),
            placement=make_placement(placement, position, rotation, rpy, what, source),
            child_placement=make_placement(child_placement, None, None, None, what, source),
            axis=unit_axis(axis, f"the axis of {what}", source),
            axis2=unit_axis(axis2, f"the second axis of {what}", source),
            pitch=finite(pitch, f"the pitch of {what}", source),
            limits=make_limits(limits, formulas.nv, what, source),
            source=source,
            **vectors,
        )
        _add(self.joints, name, "joint", source, lambda: joint)

    def frame(
        self,
        name: str,
        body: str,
        position: Any = None,
        rotation: Any = None,
        rpy: Any = None,
        placement: Any = None,
        source: Source | None = None,
    ) -> None:
        """Add a named place on a body (or on the ground)."""
        where = make_placement(placement, position, rotation, rpy, f"frame {name!r}", source)
        _add(self.frames, name, "frame", source, lambda: Frame(name, str(body), where, source))

    def spring(
        self,
        name: str,
        frame: str,
        other: str,
        stiffness: float,
        rest: float = 0.0,
        damping: float = 0.0,
        source: Source | None = None,
    ) -> None:
        """Add a spring with damper along the line between two frames."""
        numbers = [finite(x, f"a value of spring {name!r}", source) for x in (stiffness, rest, damping)]
        _add(
            self.springs, name, "spring", source, lambda: Spring(name, str(frame), str(other), *numbers, source=source)
        )

    def tendon(
        self,
        name: str,
        terms: Mapping[str, float],
        stiffness: float = 0.0,
        rest: Any = 0.0,
        damping: float = 0.0,
        source: Source | None = None,
    ) -> None:
        """Add a spring with damper whose length is a sum of factor * coordinate.

        `rest` is a length, or a pair between which the spring is slack.
        """
        what = f"tendon {name!r}"
        slack = make_slack(rest, what, source)
        numbers = [finite(x, f"a value of {what}", source) for x in (stiffness, damping)]
        pairs = make_terms(terms, what, source)
        _add(self.tendons, name, "tendon", source, lambda: Tendon(name, pairs, numbers[0], slack, numbers[1], source))

    def actuator(
        self,
        name: str,
        coordinate: str,
        gear: float = 1.0,
        rotor_inertia: float = 0.0,
        effort: float = float("inf"),
        source: Source | None = None,
    ) -> None:
        """Add a motor on a coordinate: its torque is gear * control, its rotor adds gear^2 * rotor_inertia."""
        numbers = [finite(x, f"a value of actuator {name!r}", source) for x in (gear, rotor_inertia)]
        effort = unsigned(effort, f"the effort of actuator {name!r}", source)
        _add(
            self.actuators,
            name,
            "actuator",
            source,
            lambda: Actuator(name, str(coordinate), *numbers, effort=effort, source=source),
        )

    def couple(self, name: str, terms: Mapping[str, float], offset: float = 0.0, source: Source | None = None) -> None:
        """Add a relation: the sum of factor * coordinate over `terms` equals `offset` (a gear, a mimic joint)."""
        pairs = make_terms(terms, f"coupling {name!r}", source)
        offset = finite(offset, f"the offset of coupling {name!r}", source)
        _add(self.couplings, name, "coupling", source, lambda: Coupling(name, pairs, offset, source))

    def loop(
        self,
        name: str,
        kind: str,
        body: str,
        other: str,
        placement: Any = None,
        other_placement: Any = None,
        axis: Any = (1.0, 0.0, 0.0),
        options: Mapping[str, Any] | None = None,
        source: Source | None = None,
    ) -> None:
        """Add a joint that closes a loop; fields as in `Loop`.

        A placement, here as in joints and frames, is a position (3,), a pair (rotation, position), a 4x4 matrix or a
        `dalembert.model.Placement`. `options` are further fields of the constraint: {"length": 0.3} of a "distance".
        """
        from dalembert.model.constraints.all_rows import LOOP_OF_NAME, LOOPS

        if isinstance(kind, str) and kind not in LOOPS and kind in LOOP_OF_NAME:
            raise ModelError(f"there is no kind of loop {kind!r}", source, (LOOP_OF_NAME[kind],))
        lookup(kind, LOOPS, "kind of loop", source)
        loop = Loop(
            name=name,
            kind=kind,
            body=str(body),
            other=str(other),
            placement=make_placement(placement, None, None, None, f"loop {name!r}", source),
            other_placement=make_placement(other_placement, None, None, None, f"loop {name!r}", source),
            axis=unit_axis(axis, f"the axis of loop {name!r}", source),
            options=checked_options(options, f"loop {name!r}", source),
            source=source,
        )
        _add(self.loops, name, "loop", source, lambda: loop)

    def visual(
        self,
        body: str,
        kind: str,
        size: Any,
        position: Any = None,
        rotation: Any = None,
        rpy: Any = None,
        placement: Any = None,
        color: Any = None,
        file: str = "",
        source: Source | None = None,
    ) -> None:
        """Add a shape that a body (or the ground) is drawn with; it has no effect on the motion.

        `size` of a "box" are its edges; of a "sphere" its radius; of a "cylinder" or "capsule" radius and length along
        z; of an "ellipsoid" its radii; of a "mesh" its scale along x, y, z. `color` is red, green, blue and opacity.
        """
        what = f"a visual of body {body!r}"
        lookup(kind, VISUALS, "kind of visual", source)
        where = make_placement(placement, position, rotation, rpy, what, source)
        numbers = make_visual_size(kind, size, what, source)
        shade = make_color(color, what, source)
        self.visuals.append(Visual(str(body), kind, numbers, where, shade, str(file), source))

    def collision_shape(
        self,
        body: str,
        kind: str,
        size: Any = (),
        position: Any = None,
        rotation: Any = None,
        rpy: Any = None,
        placement: Any = None,
        name: str = "",
        source: Source | None = None,
        **properties: Any,
    ) -> None:
        """Add a shape by which a body (or the ground) touches others, see `CollisionShape`.

        `size` as of a visual, above zero; `properties` are `file`, `points`, `friction`, `restitution`, `group`, `mask`
        and `priority`.
        """
        what = f"a collision shape of body {body!r}"
        lookup(kind, COLLISION_KINDS, "kind of collision shape", source)
        where = make_placement(placement, position, rotation, rpy, what, source)
        shape = make_collision_shape(name, str(body), kind, size, where, properties, what, source)
        self.collision_shapes.append(shape)

    def contact_rule(self, one: str, other: str, touch: bool = False, **properties: Any) -> None:
        """Say that two bodies never touch, or that two shapes do, see `ContactRule`."""
        self.contact_rules.append(ContactRule(str(one), str(other), bool(touch), **properties))

    def pose(self, name: str, values: Mapping[str, Any], source: Source | None = None) -> None:
        """Give a configuration a name: coordinates by joint, the others at zero.

        `mechanism.pose(name)` returns it, `da.simulate(mechanism, duration, name)` starts there.
        """
        numbers = tuple((str(joint), _pose_values(name, joint, value, source)) for joint, value in values.items())
        _add(self.poses, name, "pose", source, lambda: NamedPose(name, numbers, source))

    def note(self, text: str) -> None:
        """Add a remark that `print(mechanism)` shows."""
        self.notes.append(text if isinstance(text, str) else str(text))

    def build(
        self,
        base: str = "fixed",
        order: str = "added",
        allow_unphysical: bool = False,
        passive: bool = True,
        *,
        strict: bool = False,
    ) -> Mechanism:
        """Return the mechanism.

        Parameters
        ----------
        base
            What holds a body that no joint carries: "fixed" to the ground, "floating" by a free joint, "auto" floating
            where it has mass.
        order
            Children of a body as "added", or sorted by joint "name", as Pinocchio has them.
        allow_unphysical
            Whether inertias that no body can have are a note alone, without a `ModelWarning`.
        passive
            Whether springs and dampers act inside forward and inverse dynamics.
        strict
            Whether inertias that no body can have are refused.
        """
        ground = next(name for name in _grounds() if name not in self.bodies)
        joints, floats = rooted(list(self.joints.values()), self.bodies, ground, base)
        ordered = in_order(joints, self.bodies, ground, order)
        notes = check(self, ordered, ground, strict, allow_unphysical)
        for visual in self.visuals:
            lookup(visual.body, {ground: None} | dict.fromkeys(self.bodies), "body (of a visual)", visual.source)
        for shape in self.collision_shapes:
            lookup(shape.body, {ground: None} | dict.fromkeys(self.bodies), "body (of a collision shape)", shape.source)
        for pose in self.poses.values():
            for joint, _ in pose.values:
                lookup(joint, {part.name: None for part in ordered}, f"joint (of pose {pose.name!r})", pose.source)
        return Mechanism(
            name=self.name,
            bodies=tuple(self.bodies[joint.child] for joint in ordered),
            joints=tuple(ordered),
            frames=tuple(self.frames.values()),
            springs=tuple(self.springs.values()),
            actuators=tuple(self.actuators.values()),
            couplings=tuple(self.couplings.values()),
            loops=tuple(self.loops.values()),
            gravity=self.gravity,
            ground=ground,
            base="floating" if floats else "fixed",
            passive=bool(passive),
            notes=(*self.notes, *notes),
            source=self.source,
            tendons=tuple(self.tendons.values()),
            visuals=tuple(self.visuals),
            poses=tuple(self.poses.values()),
            collision_shapes=with_names(self.collision_shapes),
            contact_rules=tuple(self.contact_rules),
        )


def _pose_values(pose: Any, joint: Any, value: Any, source: Source | None) -> tuple[float, ...]:
    """Return a joint's coordinates in a pose, from a number or some."""
    numbers = np.atleast_1d(floats(value, f"joint {joint!r} of pose {pose!r}"))
    if numbers.ndim > 1 or not np.isfinite(numbers).all():
        raise ModelError(
            f"pose {pose!r}: joint {joint!r} has a number, or some, that are finite; not {value!r}", source
        )
    return tuple(map(float, numbers))


def _grounds() -> Iterator[str]:
    """Yield what the ground may be called; the first that no body is called."""
    yield from ("world", "universe", "ground")
    yield from (f"ground_{i}" for i in count(2))


def _add(table: dict[str, Any], name: str, what: str, source: Source | None, make: Any) -> None:
    """Add a part under its name, which must be new."""
    checked_name(name, what, source)
    if name in table:
        first = table[name].source
        where = f", first in {first}" if first is not None else ""
        raise ModelError(f"two of this name: {what} {name!r} is there already{where}", source)
    table[name] = make()
