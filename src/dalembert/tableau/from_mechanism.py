"""A `Mechanism` as the bodies and joints that `newton_euler` and `maximal` read.

Symbols: X_AB places frame B in frame A (`Placement`); P the parent's frame, J the joint's, C the child's.

The child's frame is X_PC = X_PJ motion(q) X_JC, and the body frame here is the joint's, J, after the motion: mass and
what hangs on the body move from C to J by X_JC. Bodies on fixed joints become part of what carries them. A "continuous"
joint is a revolute one whose coordinate is the angle, not (cos, sin): `mechanism.difference(mechanism.neutral(), q)`
has the tableau's q. A free joint becomes no joint at all: its body is free, as all are in maximal coordinates, and no
force acts in the joint. Revolute and prismatic loops become joints between two bodies; their Baumgarte gains act off
the constraints only, where a tableau has no solution, and are not taken over. Dry friction is no part of the smooth
dynamics, here as there.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dalembert.errors import ModelError, UnsupportedError
from dalembert.model import parts
from dalembert.model.inertia import Inertia
from dalembert.model.mechanism import Mechanism
from dalembert.model.placement import IDENTITY, Placement
from dalembert.tableau.bodies import BASE, KINDS, Body, Joint, Multibody

MOVING = {kind: kind for kind in KINDS} | {"continuous": "revolute"}
"""Kinds of a mechanism's joints that move, and what they are here; "fixed" and "free" make no joint."""

INSTEAD = "Build it of these (a universal joint is two revolute ones), or use the mechanism's own forward and inverse"


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
    raise ModelError(f"equations of bodies are made from a Mechanism or a Multibody, not from {type(model).__name__}")


def from_mechanism(mechanism: Mechanism) -> Multibody:
    """Return the bodies and joints of a mechanism; what they cannot express is refused by name.

    Kept are gravity, armature (with rotors of motors) and, where `mechanism.passive`, damping and springs in joints.
    """
    _refuse_forces(mechanism)
    draft = _Draft(places={mechanism.ground: (BASE, IDENTITY)})
    for body, joint in zip(mechanism.bodies, mechanism.joints, strict=True):
        _add(draft, mechanism, body, joint)
    if not draft.names:
        raise ModelError(f"{mechanism.name!r} has no body that moves, hence no equations")
    draft.joints.extend(_closed(draft, mechanism, each) for each in mechanism.all_constraints)
    bodies = [
        Body(name, inertia.mass, inertia.center, inertia.rotational)
        for name, inertia in zip(draft.names, draft.inertias, strict=True)
    ]
    return Multibody(bodies, draft.joints, np.array(mechanism.gravity, dtype=float))


def _refuse_forces(mechanism: Mechanism) -> None:
    """Refuse forces that neither kind of coordinates has."""
    lifted = [body.name for body in mechanism.bodies if body.compensation]
    if lifted:
        raise UnsupportedError(f"compensated weight of {', '.join(map(repr, lifted))}: the tableau has none")
    springs = [each.name for each in (*mechanism.springs, *mechanism.tendons)] if mechanism.passive else []
    if springs:
        raise UnsupportedError(
            f"spring {', '.join(map(repr, springs))}: the tableau has springs in joints only. "
            "`mechanism.with_passive(False)` leaves all springs and dampers out"
        )


def _add(draft: _Draft, mechanism: Mechanism, body: parts.Body, joint: parts.Joint) -> None:
    """Add one body: welded to its carrier, free, or on a joint."""
    carrier, place = draft.places[joint.parent]
    frame, own = place @ joint.placement, joint.child_placement.inverse()
    if joint.kind == "fixed":
        draft.places[body.name] = (carrier, frame @ own)
        if carrier != BASE:
            draft.inertias[carrier] = draft.inertias[carrier] + body.inertia.moved(frame @ own)
        return
    values = _values(mechanism, joint)
    if joint.kind in MOVING:
        axis = np.array(joint.axis, dtype=float)
        child, R, r = len(draft.names), frame.rotation, frame.position
        draft.joints.append(Joint(joint.name, MOVING[joint.kind], carrier, child, axis, R, r, **values))
    elif joint.kind != "free":
        known = ", ".join((*MOVING, "fixed", "free"))
        raise UnsupportedError(f"joint {joint.name!r} is {joint.kind}; joints of a tableau are {known}. {INSTEAD}")
    draft.places[body.name] = (len(draft.names), own)
    draft.names.append(body.name)
    draft.inertias.append(body.inertia.moved(own))


def _values(mechanism: Mechanism, joint: parts.Joint) -> dict[str, Any]:
    """Return armature and, where they act, damping and spring of a joint with one velocity."""
    at = mechanism.index_v(joint.name)
    words = ("armature", "damping", "stiffness", "rest") if mechanism.passive else ("armature",)
    values = {word: getattr(mechanism, word)[at] for word in words}
    given = [word for word, value in values.items() if value.any() and word != "rest"]
    if joint.kind not in MOVING and given:
        raise UnsupportedError(
            f"joint {joint.name!r} is {joint.kind} and has {' and '.join(given)}, which only joints with one "
            "coordinate have here: build it without"
        )
    if joint.kind == "continuous" and "stiffness" in given:
        raise UnsupportedError(
            f"joint {joint.name!r} is continuous with a spring, which forgets full turns; the tableau's angle does "
            "not. Make it revolute, or take `mechanism.with_passive(False)`"
        )
    return {word: float(value[0]) for word, value in values.items()} if joint.kind in MOVING else {}


def _closed(draft: _Draft, mechanism: Mechanism, constraint: Any) -> Joint:
    """Return a loop as a joint between two bodies; the ground is the parent if it is one of them."""
    if constraint.kind not in KINDS or constraint.held:
        held = ", held where it is" if getattr(constraint, "held", False) else ""
        raise UnsupportedError(
            f"{constraint.label!r} ({constraint.kind}{held}): loops of a tableau are {' and '.join(KINDS)} joints "
            "between two frames. `mechanism.open_tree()` leaves all couplings, loops and constraints out"
        )
    ends = []
    for name, at in ((constraint.frame, constraint.placement), (constraint.other or mechanism.ground, constraint.at)):
        place = mechanism.frame(name)
        carrier, own = draft.places[place.body]
        ends.append((carrier, own @ place.placement @ (at or IDENTITY)))
    (parent, one), (child, two) = ends if ends[1][0] != BASE else ends[::-1]
    if parent == child:
        raise ModelError(f"{constraint.label!r} joins two frames of one rigid body (fixed joints are rigid)")
    axis = np.array(constraint.axis, dtype=float)
    return Joint(
        constraint.label, constraint.kind, parent, child, axis, one.rotation, one.position, two.rotation, two.position
    )
