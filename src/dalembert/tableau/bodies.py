"""A small description of rigid bodies and joints: what the equation generators read.

A joint frame is fixed to the parent by `rotation` and `origin`; the child's body frame is the joint frame after the
joint's motion, which `dalembert.model.joints` describes: q of nq numbers, velocities of nv. A joint that closes a loop
has its own frame on the child, too. Units are SI; frames are right handed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import casadi as ca
import numpy as np
from jaxtyping import Float

from dalembert.errors import ModelError, ShapeError, UnsupportedError
from dalembert.model.joints import KINDS as MOTIONS
from dalembert.model.joints import Kind
from dalembert.model.mechanism import Mechanism
from dalembert.model.placement import Placement
from dalembert.tableau.inputs import as_numbers

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
class Source:
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
    source: Source | None = None

    def __post_init__(self) -> None:
        self._require_parts()
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
