"""Transmissions of a mechanism: every place where one body acts on another, of which a wrench can be told.

Joints of the tree, joints that close loops, constraints between frames, springs between frames. What acts along
coordinates alone (couplers, servos, tendons) has no place on a body, and an `Expression` may have several: both are
part of the wrenches of the joints, and have none of their own.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from dalembert.memory import remembered
from dalembert.model.mechanism.placement import IDENTITY, Placement

if TYPE_CHECKING:
    from dalembert.model.mechanism.mechanism import Mechanism

AXES = ("child", "parent", "world")
"""Axes in which wrenches can be told: of the joint's frame on either body, or the ground's."""


@dataclass(frozen=True, eq=False)
class Transmission:
    """A place where a parent acts on a child.

    Attributes
    ----------
    name
        Of the joint, the loop, the constraint or the spring.
    group
        "joint", "loop", "constraint" or "spring".
    kind
        The kind of the joint or constraint: "revolute", "point", ...
    number
        Its place in `joints`, `all_constraints` or `springs`.
    child, parent
        Names of the body that the wrench acts on, and of the one that exerts it.
    place, parent_place
        The joint's frame on the child, whose origin the moment is about, and on the parent.
    """

    name: str
    group: str
    kind: str
    number: int
    child: str
    parent: str
    place: Placement
    parent_place: Placement


@remembered(1)
def transmissions(mechanism: Mechanism) -> tuple[Transmission, ...]:
    """Return joints, loops, constraints between frames and springs, in this order."""
    from dalembert.model.constraints.constraint import Pair

    table = [
        Transmission(j.name, "joint", j.kind, i, j.child, j.parent, j.child_placement, j.placement)
        for i, j in enumerate(mechanism.joints)
    ]
    loops = {f"loop {loop.name}": loop.name for loop in mechanism.loops}
    for i, constraint in enumerate(mechanism.all_constraints):
        if isinstance(constraint, Pair):
            one, two = (mechanism.frame(name) for name in (constraint.frame, constraint.other or mechanism.ground))
            places = one.placement @ constraint.placement, two.placement @ (constraint.at or IDENTITY)
            name, group = loops.get(constraint.label, constraint.label), "loop" if constraint.label in loops else ""
            table.append(Transmission(name, group or "constraint", constraint.kind, i, one.body, two.body, *places))
    for i, spring in enumerate(mechanism.springs if mechanism.passive else ()):
        one, two = mechanism.frame(spring.frame), mechanism.frame(spring.other)
        table.append(Transmission(spring.name, "spring", "spring", i, one.body, two.body, one.placement, two.placement))
    return _told_apart(table)


def _told_apart(table: list[Transmission]) -> tuple[Transmission, ...]:
    """Return the transmissions with names that are used once: a loop called as a joint is "loop ..."."""
    counts = Counter(place.name for place in table)
    seen: Counter[str] = Counter()
    result = []
    for place in table:
        name = place.name
        if counts[name] > 1 and place.group != "joint":
            name = f"{place.group} {name}"
        seen[name] += 1
        result.append(replace(place, name=name if seen[name] == 1 else f"{name} {seen[name]}"))
    return tuple(result)


def places_of(mechanism: Mechanism) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return per transmission child and parent body, -1 for the ground, and the rotations of both frames, (k, 3, 3)."""
    table = transmissions(mechanism)
    bodies = [
        [mechanism.body_index(name) for name in (transmission.child, transmission.parent)] for transmission in table
    ]
    child, parent = np.array(bodies, dtype=int).reshape(-1, 2).T
    turns = [np.array([place.rotation for place in places]).reshape(-1, 3, 3) for places in (
        [transmission.place for transmission in table], [transmission.parent_place for transmission in table]
    )]  # fmt: skip
    return child, parent, turns[0], turns[1]
