"""Bodies and joints as the equation generators read them, from a mechanism or by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
from jaxtyping import Float

from dalembert.checks import refuse_masked
from dalembert.errors import ModelError, ShapeError, UnsupportedError
from dalembert.model.joints import KINDS as MOTIONS
from dalembert.model.joints import Kind
from dalembert.model.mechanism import parts
from dalembert.model.mechanism.inertia import Inertia
from dalembert.model.mechanism.mechanism import Mechanism
from dalembert.model.mechanism.placement import IDENTITY, Placement
from dalembert.tableau.inputs import as_numbers

# ----------------------------------------------------------------------------------------------------------------------
# A small description of rigid bodies and joints: what the equation generators read.
#
# A joint frame is fixed to the parent by `rotation` and `origin`; the child's body frame is the joint frame after the
# joint's motion, which `dalembert.model.joints` describes: q of nq numbers, velocities of nv. A joint that closes a
# loop has its own frame on the child, too. Units are SI; frames are right handed.


Array = np.ndarray

KINDS = ("revolute", "prismatic", "helical", "universal", "spherical", "planar", "free")
"""Joints of a tree, as in `dalembert.model.joints.KINDS`; the angle of a revolute one counts turns."""

LOOPS = ("revolute", "prismatic")
"""Joints that may close a loop."""

BASE = -1
"""Parent of a joint that is fixed to the ground."""


@dataclass(frozen=True, eq=False)
class Body:
    """A rigid body: mass, centre of mass in its frame, inertia (3, 3) about the centre of mass, along its frame."""

    name: str
    mass: float
    centre: Float[Array, "3"]
    inertia: Float[Array, "3 3"]

    def __post_init__(self) -> None:
        _require_numbers(self, f"body {self.name!r}", {"mass": (), "centre": (3,), "inertia": (3, 3)})


@dataclass(frozen=True, eq=False)
class Joint:
    """A joint from body `parent` (or BASE) to body `child`, with its frame on the parent; `child_*` for loops.

    Moving it takes armature qdd + damping qd + stiffness (q - rest) beside what the bodies need: one number for all of
    its velocities, or one for each. `axis2` is the second axis of a universal joint, `pitch` that of a helical one.
    """

    name: str
    kind: str
    parent: int
    child: int
    axis: Float[Array, "3"]
    rotation: Float[Array, "3 3"] = field(default_factory=lambda: np.eye(3))
    origin: Float[Array, "3"] = field(default_factory=lambda: np.zeros(3))
    child_rotation: Float[Array, "3 3"] = field(default_factory=lambda: np.eye(3))
    child_origin: Float[Array, "3"] = field(default_factory=lambda: np.zeros(3))
    armature: Any = 0.0
    damping: Any = 0.0
    stiffness: Any = 0.0
    rest: Any = 0.0
    axis2: Float[Array, "3"] = field(default_factory=lambda: np.array([0.0, 1.0, 0.0]))
    pitch: float = 0.0

    def __post_init__(self) -> None:
        if not isinstance(self.kind, str) or self.kind not in KINDS:
            raise ModelError(f"joint {self.name!r} is {self.kind!r}; joints here are {', '.join(KINDS)}")
        for word in ("parent", "child"):
            if isinstance(getattr(self, word), bool) or not isinstance(getattr(self, word), (int, np.integer)):
                raise ModelError(f"joint {self.name!r}: {word} is the number of a body; got {getattr(self, word)!r}")
        vectors = dict.fromkeys(("axis", "origin", "child_origin", "axis2"), (3,))
        turns = dict.fromkeys(("rotation", "child_rotation"), (3, 3))
        _require_numbers(self, f"joint {self.name!r}", {**vectors, **turns, "pitch": ()})

    @property
    def motion(self) -> Kind:
        """What the model says of joints of this kind."""
        return MOTIONS[self.kind]

    def resistance(self, q: ca.SX, qd: ca.SX, qdd: ca.SX) -> ca.SX:
        """Return what the joint itself takes of tau: rotor, damper and spring."""
        taken = ca.DM(self.armature) * qdd + ca.DM(self.damping) * qd
        return taken + ca.DM(self.stiffness) * (q - ca.DM(self.rest)) if np.any(self.stiffness) else taken


@dataclass(frozen=True, eq=False)
class BodySource:
    """A mechanism, and where each of its bodies is: on which body here (or BASE), and where in its frame."""

    mechanism: Mechanism
    places: Mapping[str, tuple[int, Placement]]


@dataclass(frozen=True, eq=False)
class Multibody:
    """Bodies and joints; joint i of a tree moves body i, and parents come before children.

    `source` is the mechanism they were taken from, if any: its constraints and springs belong to the equations.
    """

    bodies: Sequence[Body]
    joints: Sequence[Joint]
    gravity: Float[Array, "3"] = field(default_factory=lambda: np.array([0.0, 0.0, -9.81]))
    source: BodySource | None = None

    def __post_init__(self) -> None:
        self._require_parts()
        refuse_masked(self.gravity, "gravity")
        for joint in self.joints:
            if not (BASE <= joint.parent < len(self.bodies) and 0 <= joint.child < len(self.bodies)):
                raise ModelError(
                    f"joint {joint.name!r} names body {joint.parent} or {joint.child}, which does not exist"
                )
            if joint.parent == joint.child:
                raise ModelError(f"joint {joint.name!r} joins body {joint.child} to itself")
            if not abs(np.linalg.norm(joint.axis) - 1.0) < 1e-9:
                raise ModelError(
                    f"joint {joint.name!r}: the axis must have length 1; it has {np.linalg.norm(joint.axis)}"
                )
            vector = joint.motion.nq == joint.motion.nv and joint.kind != "free"
            if np.any(joint.stiffness) and not vector:
                raise UnsupportedError(
                    f"joint {joint.name!r} is {joint.kind} with a spring; joints with springs are revolute, prismatic, "
                    "helical and universal here"
                )

    def _require_parts(self) -> None:
        """Refuse lists of anything but bodies and joints, names that are none or stand twice, and bad gravity."""
        for word, kind in (("bodies", Body), ("joints", Joint)):
            parts = getattr(self, word)
            if not isinstance(parts, Sequence) or not all(isinstance(part, kind) for part in parts):
                raise ModelError(f"{word} must be a list of {kind.__name__} objects and of nothing else")
            names = [part.name for part in parts]
            if not all(isinstance(name, str) and name for name in names):
                raise ModelError(f"names of {word} are strings that are not empty; got {names[:6]}")
            if len(set(names)) < len(names):
                raise ModelError(f"{word} share a name: {next(n for n in names if names.count(n) > 1)!r}")
        _require_numbers(self, "the multibody", {"gravity": (3,)})

    def require_tree(self) -> None:
        """Refuse free bodies, loops, frames on the child, and orders other than parents first."""
        carried = {joint.child for joint in self.joints}
        free = [body.name for i, body in enumerate(self.bodies) if i not in carried]
        loops = [joint.name for joint in self.joints[len(self.bodies) :]]
        placed = [
            j.name for j in self.joints if not np.array_equal(j.child_rotation, np.eye(3)) or j.child_origin.any()
        ]
        for what, names in (("free bodies", free), ("joints that close loops", loops), ("frames on the child", placed)):
            if names:
                raise ModelError(
                    f"these equations walk a tree of one joint per body; here are {what}: "
                    f"{', '.join(map(repr, names))}. Use `maximal`"
                )
        if any(joint.child != i or joint.parent >= i for i, joint in enumerate(self.joints)):
            raise ModelError("these equations walk a tree: joint i moves body i, parents first. Use `maximal`")


def _require_numbers(part: Any, what: str, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Refuse values that are not finite numbers of these shapes."""
    for word, shape in shapes.items():
        array = as_numbers(getattr(part, word), f"{what}: {word}", finite=True)
        if array.shape != shape:
            raise ShapeError(f"{what}: {word} must have shape {shape}; it has {array.shape}")


def skew(a: ca.SX) -> ca.SX:
    """Return the matrix of the cross product, a x b = skew(a) b."""
    return ca.vertcat(
        ca.horzcat(0, -a[2], a[1]),
        ca.horzcat(a[2], 0, -a[0]),
        ca.horzcat(-a[1], a[0], 0),
    )


# ----------------------------------------------------------------------------------------------------------------------
# A `Mechanism` as the bodies and joints that `newton_euler` and `maximal` read.
#
# Symbols: X_AB places frame B in frame A (`Placement`); P the parent's frame, J the joint's, C the child's.
#
# The child's frame is X_PC = X_PJ motion(q) X_JC, and the body frame here is the joint's, J, after the motion: mass and
# what hangs on the body move from C to J by X_JC. Bodies on fixed joints become part of what carries them. A
# "continuous" joint is a revolute one whose coordinate is the angle, not (cos, sin): `coordinates(mechanism, q)` has
# the tableau's q. Revolute and prismatic loops become joints between two bodies in maximal coordinates; their Baumgarte
# gains act off the constraints only, where a tableau has no solution, and are not taken over. All other constraints,
# couplings and springs between frames are read from the mechanism by `tree_rows` and `body_rows`. Dry friction is no
# part of the smooth dynamics, here as there.


MOVING = {kind: kind for kind in KINDS} | {"continuous": "revolute"}
"""Kinds of a mechanism's joints that move, and what they are here; "fixed" makes no joint."""


@dataclass
class _Draft:
    """Bodies so far, their joints, and where each of the mechanism's bodies is: on which of them, and where in it."""

    names: list[str] = field(default_factory=list)
    inertias: list[Inertia] = field(default_factory=list)
    joints: list[Joint] = field(default_factory=list)
    places: dict[str, tuple[int, Placement]] = field(default_factory=dict)


def as_multibody(model: Multibody | Mechanism) -> Multibody:
    """Return the description itself, or that of a mechanism."""
    if isinstance(model, Multibody):
        return model
    if isinstance(model, Mechanism):
        return from_mechanism(model)
    hint = "; da.load reads a robot file" if isinstance(model, (str, Path)) else ""
    raise ModelError(
        f"equations of bodies are made from a Mechanism or a Multibody, not from {type(model).__name__}{hint}"
    )


def from_mechanism(mechanism: Mechanism) -> Multibody:
    """Return the bodies and joints of a mechanism; what they cannot express is refused by name.

    Kept are gravity, armature (with rotors of motors) and, where `mechanism.passive`, damping and springs in joints.
    """
    _require_mechanism(mechanism)
    if mechanism.passive and mechanism.tendons:
        names = ", ".join(repr(tendon.name) for tendon in mechanism.tendons)
        raise UnsupportedError(
            f"tendon {names}: the tableau has springs in joints and between frames. "
            "`mechanism.with_passive(False)` leaves all springs and dampers out"
        )
    draft = _Draft(places={mechanism.ground: (BASE, IDENTITY)})
    for body, joint in zip(mechanism.bodies, mechanism.joints, strict=True):
        _add(draft, mechanism, body, joint)
    if not draft.names:
        raise ModelError(f"{mechanism.name!r} has no body that moves, hence no equations")
    bodies = [
        Body(name, inertia.mass, inertia.center, inertia.rotational)
        for name, inertia in zip(draft.names, draft.inertias, strict=True)
    ]
    return Multibody(
        bodies, draft.joints, np.array(mechanism.gravity, dtype=float), BodySource(mechanism, draft.places)
    )


def coordinates(mechanism: Mechanism, q: Any) -> Array:
    """Return the tableau's q of a configuration (..., nq): that of the mechanism, continuous joints by their angles."""
    _require_mechanism(mechanism)
    q = as_numbers(q, "q", finite=True)
    if q.ndim == 0 or q.shape[-1] != mechanism.nq:
        raise ShapeError(f"q must have shape ({mechanism.nq},) or (..., {mechanism.nq}); it has {q.shape}")
    parts = []
    for joint in mechanism.joints:
        own = q[..., mechanism.index_q(joint.name)]
        parts.append(np.arctan2(own[..., 1:], own[..., :1]) if joint.kind == "continuous" else own)
    return np.concatenate(parts, axis=-1)


def body_positions(mechanism: Mechanism, q: Any) -> dict[str, Array]:
    """Return "p link1" (3), "e link1" (4) of the tableau's bodies and "q joint1" of hinges and screws, at q (nq,)."""
    model, found, poses = from_mechanism(mechanism), {}, []
    own = coordinates(mechanism, q)
    if own.ndim != 1:
        raise ShapeError(f"q must be one configuration, ({mechanism.nq},); it has shape {np.shape(q)}")
    at = 0
    for joint, body in zip(model.joints, model.bodies, strict=True):
        size = joint.motion.nq
        part: Any = joint
        R, p = joint.motion.motion(part, list(own[at : at + size]))
        place = Placement(joint.rotation, joint.origin) @ Placement(np.array(R, dtype=float), np.array(p, dtype=float))
        place = place if joint.parent == BASE else poses[joint.parent] @ place
        poses.append(place)
        centre = place @ Placement(np.eye(3), body.centre)
        found |= {f"p {body.name}": centre.position, f"e {body.name}": centre.quaternion()}
        if joint.kind in ("revolute", "helical"):
            found[f"q {joint.name}"] = own[at : at + 1]
        at += size
    return found


def _require_mechanism(given: Any) -> None:
    """Refuse what is no mechanism."""
    if not isinstance(given, Mechanism):
        raise ModelError(f"a Mechanism is needed, from da.Builder or da.load, not {type(given).__name__}")


def _add(draft: _Draft, mechanism: Mechanism, body: parts.Body, joint: parts.Joint) -> None:
    """Add one body: welded to its carrier, free, or on a joint."""
    carrier, place = draft.places[joint.parent]
    frame, own = place @ joint.placement, joint.child_placement.inverse()
    if joint.kind == "fixed":
        draft.places[body.name] = (carrier, frame @ own)
        if carrier != BASE:
            draft.inertias[carrier] = draft.inertias[carrier] + body.inertia.moved(frame @ own)
        return
    child, R, r = len(draft.names), frame.rotation, frame.position
    axes = {word: np.array(getattr(joint, word), dtype=float) for word in ("axis", "axis2")}
    values = _values(mechanism, joint)
    draft.joints.append(
        Joint(joint.name, MOVING[joint.kind], carrier, child, rotation=R, origin=r, pitch=joint.pitch, **axes, **values)
    )
    draft.places[body.name] = (len(draft.names), own)
    draft.names.append(body.name)
    draft.inertias.append(body.inertia.moved(own))


def _values(mechanism: Mechanism, joint: parts.Joint) -> dict[str, Any]:
    """Return armature and, where they act, damping and spring of a joint."""
    at = mechanism.index_v(joint.name)
    words = ("armature", "damping", "stiffness", "rest") if mechanism.passive else ("armature",)
    values = {word: getattr(mechanism, word)[at] for word in words}
    if joint.kind == "continuous" and mechanism.passive and values["stiffness"].any():
        raise UnsupportedError(
            f"joint {joint.name!r} is continuous with a spring, which forgets full turns; the tableau's angle does "
            "not. Make it revolute, or take `mechanism.with_passive(False)`"
        )
    return {word: value if value.any() else 0.0 for word, value in values.items()}


def closing_joints(model: Multibody) -> list[Joint]:
    """Return the revolute and prismatic loops of a mechanism as joints between two bodies."""
    if model.source is None:
        return []
    return [_closed(model.source, each) for each in model.source.mechanism.all_constraints if closes(each)]


def closes(constraint: Any) -> bool:
    """Whether a constraint is a joint that closes a loop."""
    return constraint.kind in LOOPS and not constraint.held


def _closed(source: BodySource, constraint: Any) -> Joint:
    """Return a loop as a joint between two bodies; the ground is the parent if it is one of them."""
    ends = []
    mechanism = source.mechanism
    for name, at in ((constraint.frame, constraint.placement), (constraint.other or mechanism.ground, constraint.at)):
        place = mechanism.frame(name)
        carrier, own = source.places[place.body]
        ends.append((carrier, own @ place.placement @ (at or IDENTITY)))
    (parent, one), (child, two) = ends if ends[1][0] != BASE else ends[::-1]
    if parent == child:
        raise ModelError(f"{constraint.label!r} joins two frames of one rigid body (fixed joints are rigid)")
    axis = np.array(constraint.axis, dtype=float)
    return Joint(
        constraint.label, constraint.kind, parent, child, axis, one.rotation, one.position, two.rotation, two.position
    )
