"""A `Mechanism` as the bodies and joints that `newton_euler` and `maximal` read.

Symbols: X_AB places frame B in frame A (`Placement`); P the parent's frame, J the joint's, C the child's.

The child's frame is X_PC = X_PJ motion(q) X_JC, and the body frame here is the joint's, J, after the motion: mass and
what hangs on the body move from C to J by X_JC. Bodies on fixed joints become part of what carries them. A "continuous"
joint is a revolute one whose coordinate is the angle, not (cos, sin): `coordinates(mechanism, q)` has the tableau's q.
Revolute and prismatic loops become joints between two bodies in maximal coordinates; their Baumgarte gains act off the
constraints only, where a tableau has no solution, and are not taken over. All other constraints, couplings and springs
between frames are read from the mechanism by `tree_rows` and `body_rows`. Dry friction is no part of the smooth
dynamics, here as there.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dalembert.errors import ModelError, ShapeError, UnsupportedError
from dalembert.model import parts
from dalembert.model.inertia import Inertia
from dalembert.model.mechanism import Mechanism
from dalembert.model.placement import IDENTITY, Placement
from dalembert.tableau.bodies import BASE, KINDS, LOOPS, Body, Joint, Multibody, Source
from dalembert.tableau.inputs import as_numbers

MOVING = {kind: kind for kind in KINDS} | {"continuous": "revolute"}
"""Kinds of a mechanism's joints that move, and what they are here; "fixed" makes no joint."""

Array = np.ndarray


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
    return Multibody(bodies, draft.joints, np.array(mechanism.gravity, dtype=float), Source(mechanism, draft.places))


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


def _closed(source: Source, constraint: Any) -> Joint:
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
