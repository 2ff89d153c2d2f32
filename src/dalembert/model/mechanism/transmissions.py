"""Transmissions of a mechanism: every place where one body acts on another, of which a wrench can be told.

Joints of the tree, joints that close loops, constraints between frames, springs between frames. What acts along
coordinates alone (couplers, servos, tendons) has no place on a body, and an `Expression` may have several: both are
part of the wrenches of the joints, and have none of their own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.memory import remembered
from dalembert.model.mechanism.placement import IDENTITY, Placement

if TYPE_CHECKING:
    from dalembert.model.mechanism.mechanism import Mechanism
    from dalembert.types import Array

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
            first, two = (mechanism.frame(name) for name in (constraint.frame, constraint.other or mechanism.ground))
            places = first.placement @ constraint.placement, two.placement @ (constraint.at or IDENTITY)
            name, group = loops.get(constraint.label, constraint.label), "loop" if constraint.label in loops else ""
            table.append(Transmission(name, group or "constraint", constraint.kind, i, first.body, two.body, *places))
    for i, spring in enumerate(mechanism.springs if mechanism.passive else ()):
        first, two = mechanism.frame(spring.frame), mechanism.frame(spring.other)
        table.append(
            Transmission(spring.name, "spring", "spring", i, first.body, two.body, first.placement, two.placement)
        )
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


def name_beside(names: Collection[str], group: str, name: str) -> str:
    """Return the name of an actuator or a contact beside transmissions: one that is called as these is "group ..."."""
    return f"{group} {name}" if name in names else name


@dataclass(frozen=True, eq=False)
class LoopMotion:
    """The free motion of a hinge or slider that closes a loop: no coordinate, but a row of velocities.

    A hinge turns with u = axis . (w_child - w_parent), a slider goes with u = axis . (v_child - v_parent), both of the
    points that lie at its frame on the child.

    Attributes
    ----------
    at
        Its place among the transmissions.
    axis
        In the axes of the joint's frame on the child, (3,); `on_child` in those of the child.
    turns
        Whether it is a hinge.
    """

    at: Transmission
    axis: Array
    turns: bool = True

    @property
    def on_child(self) -> Array:
        """The axis in the axes of the child."""
        return np.array(self.at.place.rotation).reshape(3, 3) @ self.axis

    @property
    def components(self) -> slice:
        """Which components of a wrench act along it: moments of a hinge, forces of a slider."""
        return slice(3, 6) if self.turns else slice(0, 3)

    @property
    def ends(self) -> tuple[tuple[str, float], tuple[str, float]]:
        """The two bodies with their signs."""
        return (self.at.child, 1.0), (self.at.parent, -1.0)

    def in_world(self, mechanism: Mechanism, q: Array) -> tuple[Array, Array]:
        """Return the axis and the place of the joint's frame on the child in the world, (N, 3), at q (N, nq)."""
        place = np.array(self.at.place.position, dtype=float)
        if self.at.child == mechanism.ground:
            return np.tile(self.on_child, (len(q), 1)), np.tile(place, (len(q), 1))
        R, p = mechanism.kinematics(q, self.at.child)
        R = np.asarray(R).reshape(-1, 3, 3)
        return R @ self.on_child, np.asarray(p).reshape(-1, 3) + R @ place

    def rows(self, mechanism: Mechanism, q: Array) -> Array:
        """Return the rows of u, (N, nv): a torque about the hinge, a force along the slider, acts along them."""
        unit = self.wrenches(mechanism, q, np.ones(len(q)))
        jacobians = {name: mechanism.frame_jacobian(q, name, "local_world_aligned") for name in unit}
        parts = (np.einsum("nc,ncj->nj", unit[x], np.asarray(J).reshape(len(q), 6, -1)) for x, J in jacobians.items())
        return np.asarray(sum(parts, np.zeros((len(q), mechanism.nv))))

    def wrenches(self, mechanism: Mechanism, q: Array, size: Array) -> dict[str, Array]:
        """Return the wrenches on bodies, (N, 6), of torques or forces (N,) of the parent on the child.

        World axes, about the bodies' origins.
        """
        axis, place = self.in_world(mechanism, q)
        wrenches, load = {}, size[:, None] * axis
        for body, sign in self.ends:
            if body == mechanism.ground:
                continue
            wrench = np.zeros((len(q), 6))
            wrench[:, self.components] = sign * load
            if not self.turns:
                arm = place - np.asarray(mechanism.kinematics(q, body)[1]).reshape(-1, 3)
                wrench[:, 3:] = np.cross(arm, sign * load)
            wrenches[body] = wrench
        return wrenches


@remembered(1)
def loop_motions(mechanism: Mechanism) -> dict[str, LoopMotion]:
    """Return the hinges and sliders that close loops, of files, of the builder and among constraints, by name."""
    motions = {}
    for at in transmissions(mechanism):
        if at.kind in ("revolute", "prismatic") and at.group in ("loop", "constraint"):
            constraint: Any = mechanism.all_constraints[at.number]
            motions[at.name] = LoopMotion(at, np.array(constraint.axis, float).reshape(3), at.kind == "revolute")
    return motions


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
