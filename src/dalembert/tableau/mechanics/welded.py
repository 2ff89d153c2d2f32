"""The welded tree of a mechanism: bodies that fixed joints hold together are one body, behind one joint that moves.

Symbols: X_AB places frame B in frame A (`Placement`); P the parent's frame, J the joint's, C the child's.

The child's frame is X_PC = X_PJ motion(q) X_JC, and a body's frame here is the joint's, J, after the motion: mass and
what hangs on the body move from C to J by X_JC. A "continuous" joint is a revolute one whose coordinate is the angle,
not (cos, sin): `coordinates(mechanism, q)` has the tableau's q. Constraints, couplings and springs between frames stay
with the mechanism and find their bodies by `places`. In maximal coordinates revolute and prismatic loops are joints
between two bodies; their Baumgarte gains act off the constraints only, where a tableau has no solution, and are not
taken over. Dry friction is no part of the smooth dynamics, here as there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np

from dalembert.errors import ModelError, ShapeError, UnsupportedError
from dalembert.model.joints import KINDS, Kind
from dalembert.model.mechanism.mechanism import Mechanism
from dalembert.model.mechanism.parts import Body, Joint
from dalembert.model.mechanism.placement import IDENTITY, Placement
from dalembert.tableau.inputs import as_numbers
from dalembert.types import Array

BASE = -1
"""Number of the ground among the bodies."""

LOOPS = ("revolute", "prismatic")
"""Constraints that are joints in maximal coordinates."""

VALUES = ("armature", "damping", "stiffness", "rest")
"""What moving a joint takes beside what bodies need: armature qdd + damping qd + stiffness (q - rest)."""


@dataclass(frozen=True, eq=False)
class WeldedTree:
    """Bodies that move, parents first, in the parts of the model itself.

    Attributes
    ----------
    mechanism
        What was read: its gravity, constraints and springs belong to the equations.
    bodies
        Each with all that is welded to it; inertia in the frame of its joint after the motion.
    joints
        Joint i moves body i; `placement` is its frame on the body that carries it, `parent` that body's name.
    places
        Every body of the mechanism: the number of the body here that it belongs to, or BASE, and where it stands there.
    """

    mechanism: Mechanism
    bodies: tuple[Body, ...]
    joints: tuple[Joint, ...]
    places: Mapping[str, tuple[int, Placement]]

    @property
    def gravity(self) -> Array:
        """Acceleration of gravity, (3,)."""
        return np.asarray(self.mechanism.gravity, dtype=float)

    def number(self, name: str) -> int:
        """Return the number of a body by its name; BASE is the ground's."""
        return self.places[name][0]

    def frame(self, name: str, placement: Placement = IDENTITY) -> tuple[int, Placement]:
        """Return the body that a frame, or a place on it, belongs to, and where it stands there."""
        part = self.mechanism.frame(name)
        body, place = self.places[part.body]
        return body, place @ part.placement @ placement

    @property
    def size(self) -> tuple[int, int]:
        """Numbers of coordinates and velocities."""
        return sum(motion(joint).nq for joint in self.joints), sum(motion(joint).nv for joint in self.joints)


def motion(joint: Joint) -> Kind:
    """Return the formulas of a joint's kind."""
    return KINDS[joint.kind]


def resistance(joint: Joint, q: ca.SX, qd: ca.SX, qdd: ca.SX) -> ca.SX:
    """Return what a joint itself takes of tau: rotor, damper and spring."""
    armature, damping, stiffness, rest = (ca.DM(_value(getattr(joint, name))) for name in VALUES)
    taken = armature * qdd + damping * qd
    return taken + stiffness * (q - rest) if joint.stiffness else taken


def _value(numbers: tuple[float, ...]) -> Any:
    """Return what CasADi spreads over all velocities where there are no numbers."""
    return list(numbers) or 0.0


def welded(mechanism: Mechanism) -> WeldedTree:
    """Read bodies and joints of a mechanism; what its equations cannot express is refused by name.

    Gravity and armature (with rotors of motors) count and, where `mechanism.passive`, damping and springs in joints.
    """
    _require_mechanism(mechanism)
    if mechanism.passive and mechanism.tendons:
        names = ", ".join(repr(tendon.name) for tendon in mechanism.tendons)
        raise UnsupportedError(
            f"tendon {names}: the tableau has springs in joints and between frames. "
            "`mechanism.with_passive(False)` leaves all springs and dampers out"
        )
    bodies: list[Body] = []
    joints: list[Joint] = []
    places = {mechanism.ground: (BASE, IDENTITY)}
    for body, joint in zip(mechanism.bodies, mechanism.joints, strict=True):
        carrier, place = places[joint.parent]
        frame, child = place @ joint.placement, joint.child_placement.inverse()
        if joint.kind == "fixed":
            places[body.name] = (carrier, frame @ child)
            if carrier != BASE:
                inertia = bodies[carrier].inertia + body.inertia.moved(frame @ child)
                bodies[carrier] = replace(bodies[carrier], inertia=inertia)
            continue
        places[body.name] = (len(bodies), child)
        parent = mechanism.ground if carrier == BASE else bodies[carrier].name
        bodies.append(replace(body, inertia=body.inertia.moved(child)))
        joints.append(_moving(mechanism, joint, parent, frame))
    if not bodies:
        raise ModelError(f"{mechanism.name!r} has no body that moves, hence no equations")
    return WeldedTree(mechanism, tuple(bodies), tuple(joints), places)


def _moving(mechanism: Mechanism, joint: Joint, parent: str, placement: Placement) -> Joint:
    """Return a joint on the body that carries it, with what of its values acts."""
    at = mechanism.index_v(joint.name)
    acting = VALUES if mechanism.passive else ("armature",)
    values = {name: getattr(mechanism, name)[at] if name in acting else np.zeros(0) for name in VALUES}
    if joint.kind == "continuous" and values["stiffness"].any():
        raise UnsupportedError(
            f"joint {joint.name!r} is continuous with a spring, which forgets full turns; the tableau's angle does "
            "not. Make it revolute, or take `mechanism.with_passive(False)`"
        )
    kind = "revolute" if joint.kind == "continuous" else joint.kind
    if values["stiffness"].any() and (kind == "free" or KINDS[kind].nq != KINDS[kind].nv):
        raise UnsupportedError(
            f"joint {joint.name!r} is {kind} with a spring; joints with springs are revolute, prismatic, "
            "helical and universal here"
        )
    numbers: dict[str, Any] = {name: tuple(map(float, x)) if x.any() else () for name, x in values.items()}
    return replace(joint, kind=kind, parent=parent, placement=placement, child_placement=IDENTITY, **numbers)


def closing_joints(tree: WeldedTree) -> list[Joint]:
    """Return the revolute and prismatic loops of a mechanism as joints between two bodies, frames on both."""
    return [_closed(tree, constraint) for constraint in tree.mechanism.all_constraints if closes(constraint)]


def closes(constraint: Any) -> bool:
    """Whether a constraint is a joint that closes a loop."""
    return constraint.kind in LOOPS and not constraint.held


def _closed(tree: WeldedTree, constraint: Any) -> Joint:
    """Return a loop as a joint between two bodies; the ground is the parent if it is one of them."""
    ground = tree.mechanism.ground
    pairs = ((constraint.frame, constraint.placement), (constraint.other or ground, constraint.at))
    ends = [tree.frame(name, at or IDENTITY) for name, at in pairs]
    (parent, before), (child, after) = ends if ends[1][0] != BASE else ends[::-1]
    if parent == child:
        raise ModelError(f"{constraint.label!r} joins two frames of one rigid body (fixed joints are rigid)")
    carrier = ground if parent == BASE else tree.bodies[parent].name
    axis = tuple(map(float, constraint.axis))
    return Joint(constraint.label, constraint.kind, carrier, tree.bodies[child].name, before, after, axis)  # type: ignore[arg-type]


def coordinates(mechanism: Mechanism, q: Any) -> Array:
    """Return the tableau's q of a configuration (..., nq): that of the mechanism, continuous joints by their angles."""
    _require_mechanism(mechanism)
    q = as_numbers(q, "q", finite=True)
    if q.ndim == 0 or q.shape[-1] != mechanism.nq:
        raise ShapeError(f"q must have shape ({mechanism.nq},) or (..., {mechanism.nq}); it has {q.shape}")
    parts = []
    for joint in mechanism.joints:
        part = q[..., mechanism.index_q(joint.name)]
        parts.append(np.arctan2(part[..., 1:], part[..., :1]) if joint.kind == "continuous" else part)
    return np.concatenate(parts, axis=-1)


def body_positions(mechanism: Mechanism, q: Any) -> dict[str, Array]:
    """Return "p link1" (3), "e link1" (4) of the tableau's bodies and "q joint1" of hinges and screws, at q (nq,)."""
    tree, values, poses = welded(mechanism), {}, []
    joint_values = coordinates(mechanism, q)
    if joint_values.ndim != 1:
        raise ShapeError(f"q must be one configuration, ({mechanism.nq},); it has shape {np.shape(q)}")
    at = 0
    for joint, body in zip(tree.joints, tree.bodies, strict=True):
        size, carrier = motion(joint).nq, tree.number(joint.parent)
        R, p = motion(joint).motion(joint, list(joint_values[at : at + size]))
        place = joint.placement @ Placement(np.array(R, dtype=float), np.array(p, dtype=float))
        place = place if carrier == BASE else poses[carrier] @ place
        poses.append(place)
        centre = place @ Placement(np.eye(3), body.inertia.center)
        values |= {f"p {body.name}": centre.position, f"e {body.name}": centre.quaternion()}
        if joint.kind in ("revolute", "helical"):
            values[f"q {joint.name}"] = joint_values[at : at + 1]
        at += size
    return values


def _require_mechanism(mechanism: Any) -> None:
    """Refuse what is no mechanism."""
    if not isinstance(mechanism, Mechanism):
        hint = "; da.load reads a robot file" if isinstance(mechanism, (str, Path)) else ""
        raise ModelError(
            f"equations of bodies are made from a Mechanism, of da.Builder or da.load, not from "
            f"{type(mechanism).__name__}{hint}"
        )


def skew(a: ca.SX) -> ca.SX:
    """Return the matrix of the cross product, a x b = skew(a) b."""
    return ca.vertcat(
        ca.horzcat(0, -a[2], a[1]),
        ca.horzcat(a[2], 0, -a[0]),
        ca.horzcat(-a[1], a[0], 0),
    )
