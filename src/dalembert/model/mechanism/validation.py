"""Validation of a mechanism's parts together: names that exist, inertias that bodies can have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dalembert.errors import ModelError, warn_user
from dalembert.model.joints import KINDS
from dalembert.model.limits import ONE_AXIS
from dalembert.model.mechanism.parts import Coupling, Joint, Tendon
from dalembert.names import lookup

if TYPE_CHECKING:
    from dalembert.model.mechanism.builder import Builder

STRAIGHT = ("revolute", "prismatic", "helical", "universal")
"""Kinds of joints whose coordinates are lengths and angles that count on."""

MOST_NAMED = 5
"""Bodies that a warning names; the notes name all."""


def check(parts: Builder, joints: Sequence[Joint], ground: str, strict: bool, allow_unphysical: bool) -> list[str]:
    """Refuse what makes no mechanism; return notes on what is allowed but should be known."""
    notes = _inertias(parts, strict, allow_unphysical)
    for joint in joints:
        _joint(joint)
    _frames(parts, joints, ground)
    _coordinates(parts, joints)
    _loops(parts)
    return [*notes, *_signs(parts, joints), *_circles(parts, joints)]


def _signs(parts: Builder, joints: Sequence[Joint]) -> list[str]:
    """Return notes on numbers that should not be negative."""
    notes = [
        f"{what} {part.name!r}: its {word} is negative ({getattr(part, word):g}); kept as it is"
        for what, table in (("spring", parts.springs), ("tendon", parts.tendons))
        for part in table.values()
        for word in ("stiffness", "damping")
        if getattr(part, word) < 0
    ]
    for joint in joints:
        values = {
            "damping": joint.damping,
            "friction": joint.friction,
            "stiffness": joint.stiffness,
            "velocity limit": joint.limits.velocity,
            "effort limit": joint.limits.effort,
        }
        notes += [
            f"joint {joint.name!r}: its {word} is negative ({min(each):g}); kept as it is"
            for word, each in values.items()
            if each and min(each) < 0
        ]
    return notes


def _circles(parts: Builder, joints: Sequence[Joint]) -> list[str]:
    """Return notes on couplings and springs of angles that are only known up to whole turns."""
    circles = {joint.name for joint in joints if joint.kind == "continuous"}
    springs = [
        f"joint {joint.name!r}: continuous, so the torque of its spring jumps half a turn from rest; make it "
        "'revolute', without limits, if it turns further"
        for joint in joints
        if joint.kind == "continuous" and any(joint.stiffness)
    ]
    return springs + [
        f"coupling {coupling.name!r}: the angle of the continuous joint {term!r} counts within (-pi, pi], where the "
        "relation jumps; make it 'revolute', without limits, if it turns further"
        for coupling in parts.couplings.values()
        for term, factor in coupling.terms
        if term in circles and factor
    ]


def _inertias(parts: Builder, strict: bool, allow_unphysical: bool) -> list[str]:
    """Return a note on every inertia that no body can have; warn of them, or refuse the first where `strict`."""
    if strict and allow_unphysical:
        raise ModelError("strict=True refuses what allow_unphysical=True allows: give one of them")
    notes: list[str] = []
    named: list[str] = []
    for body in parts.bodies.values():
        problem = body.inertia.problem()
        if problem is None:
            continue
        if strict:
            raise ModelError(
                f"body {body.name!r}: {problem}; correct it, or take it as it is with strict=False", body.source
            )
        notes.append(f"body {body.name!r}: {problem}; taken as it is: {body.inertia.consequence()}")
        named.append(repr(body.name))
    if named and not allow_unphysical:
        warn_user(_unphysical_words(parts, named))
    return notes


def _unphysical_words(parts: Builder, named: list[str]) -> str:
    """Return the warning about bodies, by name."""
    more = f" and {len(named) - MOST_NAMED} more" if len(named) > MOST_NAMED else ""
    where = "" if parts.source is None else f"{parts.source}: "
    return (
        f"{where}{parts.name!r} has {len(named)} inertias that no body can have, taken as they are: "
        f"{', '.join(named[:MOST_NAMED])}{more}. The mechanism's notes say what is wrong and what it means for the "
        "mass matrix; strict=True refuses them, allow_unphysical=True takes them without this warning"
    )


def _joint(joint: Joint) -> None:
    if joint.kind == "universal" and np.linalg.norm(np.cross(joint.axis, joint.axis2)) < ONE_AXIS:
        raise ModelError(f"the two axes of the universal joint {joint.name!r} are parallel: {joint.axis}", joint.source)
    if any(x < 0 for x in joint.armature):
        raise ModelError(f"joint {joint.name!r} has a negative armature {joint.armature}", joint.source)


def _frames(parts: Builder, joints: Sequence[Joint], ground: str) -> None:
    """Check that frames stand on bodies, and springs and loops between what exists."""
    bodies = {ground: None} | dict.fromkeys(parts.bodies)
    for frame in parts.frames.values():
        if frame.name in bodies:
            raise ModelError(f"frame {frame.name!r} has the name of a body, which is a frame already", frame.source)
        lookup(frame.body, bodies, f"body (of frame {frame.name!r})", frame.source)
    frames = bodies | dict.fromkeys(parts.frames) | {joint.name: None for joint in joints}
    for spring in parts.springs.values():
        for end in (spring.frame, spring.other):
            lookup(end, frames, f"frame (of spring {spring.name!r})", spring.source)
    for loop in parts.loops.values():
        for end in (loop.body, loop.other):
            lookup(end, bodies, f"body (of loop {loop.name!r})", loop.source)


def _coordinates(parts: Builder, joints: Sequence[Joint]) -> None:
    """Check that actuators and couplings act on coordinates that exist."""
    names: dict[str, None] = {}
    for joint in joints:
        for each in KINDS[joint.kind].v_names:
            name = f"{joint.name}.{each}" if each else joint.name
            if name in names:
                raise ModelError(
                    f"joint {joint.name!r}: the coordinate {name!r} is there already; coordinates of a joint are "
                    "called 'joint.wx' and so on, so rename one of the two joints",
                    joint.source,
                )
            names[name] = None
    for actuator in parts.actuators.values():
        lookup(actuator.coordinate, names, f"coordinate (of actuator {actuator.name!r})", actuator.source)
        if actuator.rotor_inertia < 0 or not actuator.effort >= 0:
            raise ModelError(
                f"actuator {actuator.name!r}: rotor inertia {actuator.rotor_inertia:g} and effort {actuator.effort:g} "
                "must not be negative",
                actuator.source,
            )
    kinds = {joint.name: joint.kind for joint in joints}
    for tendon in parts.tendons.values():
        _terms(tendon, f"tendon {tendon.name!r}", names, kinds, STRAIGHT)
    for coupling in parts.couplings.values():
        if not any(factor for _, factor in coupling.terms):
            raise ModelError(f"coupling {coupling.name!r} couples nothing: all its factors are zero", coupling.source)
        _terms(coupling, f"coupling {coupling.name!r}", names, kinds, (*STRAIGHT, "continuous"))


def _terms(
    part: Tendon | Coupling, what: str, names: dict[str, None], kinds: dict[str, str], allowed: tuple[str, ...]
) -> None:
    """Check that a sum of coordinates has terms that are lengths and angles."""
    for term, _ in part.terms:
        lookup(term, names, f"coordinate (of {what})", part.source)
        kind = kinds.get(term, kinds.get(term.rpartition(".")[0], ""))
        if kind not in allowed:
            raise ModelError(
                f"{what}: {term!r} belongs to a {kind} joint, whose coordinates are no single lengths and angles; it "
                f"may be {', '.join(allowed)}",
                part.source,
            )


def _loops(parts: Builder) -> None:
    """Check that loops are between two bodies, and that their options are those of their kind."""
    if not parts.loops:
        return
    from dalembert.model.constraints.all_rows import from_loop

    for loop in parts.loops.values():
        if loop.body == loop.other:
            raise ModelError(f"loop {loop.name!r} joins {loop.body!r} to itself", loop.source)
        from_loop(loop)
