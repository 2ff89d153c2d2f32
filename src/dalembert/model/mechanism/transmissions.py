"""Transmissions of a mechanism: every place where one body acts on another, of which a wrench can be told.

Joints of the tree, joints that close loops, constraints between frames, springs between frames. What acts along
coordinates alone (couplers, servos, tendons) has no place on a body, and an `Expression` may have several: both are
part of the wrenches of the joints, and have none of their own.
"""

from __future__ import annotations

from collections import Counter
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


@dataclass(frozen=True, eq=False)
class LoopHinge:
    """A hinge that closes a loop: its turn is no coordinate, but a row of velocities, u = axis . (w_child - w_parent).

    Attributes
    ----------
    at
        Its place among the transmissions.
    axis
        In the axes of the joint's frame on the child, (3,); `on_child` in those of the child.
    """

    at: Transmission
    axis: Array

    @property
    def on_child(self) -> Array:
        """The axis in the axes of the child."""
        return np.array(self.at.place.rotation).reshape(3, 3) @ self.axis

    def in_world(self, mechanism: Mechanism, q: Array) -> Array:
        """Return the axis in the world, (N, 3), at configurations (N, nq)."""
        if self.at.child == mechanism.ground:
            return np.tile(self.on_child, (len(q), 1))
        return np.asarray(mechanism.kinematics(q, self.at.child)[0]).reshape(-1, 3, 3) @ self.on_child

    def rows(self, mechanism: Mechanism, q: Array) -> Array:
        """Return the rows of u, (N, nv): a torque about the hinge acts along them."""
        axis, turns = self.in_world(mechanism, q), np.zeros((len(q), 3, mechanism.nv))
        for body, sign in ((self.at.child, 1.0), (self.at.parent, -1.0)):
            if body != mechanism.ground:
                J = mechanism.frame_jacobian(q, body, "local_world_aligned")
                turns += sign * np.asarray(J).reshape(len(q), 6, -1)[:, 3:]
        return np.einsum("nc,ncj->nj", axis, turns)

    def drift(self, mechanism: Mechanism, q: Array, v: Array) -> Array:
        """Return what is left of du/dt where accelerations are zero, (N,).

        The axis turns with the child, so that its own rate adds (w_child x axis) . (w_child - w_parent), which is zero
        where the loop is closed: both bodies then turn relative to each other about the axis alone.
        """
        rest = np.zeros((len(q), 3))
        for body, sign in ((self.at.child, 1.0), (self.at.parent, -1.0)):
            if body != mechanism.ground:
                kernel = mechanism.compile("jacobian_drift", frame=body, reference="local_world_aligned")
                rest += sign * np.asarray(kernel(q, v)).reshape(len(q), 6)[:, 3:]
        return np.einsum("nc,nc->n", self.in_world(mechanism, q), rest)

    def torques(self, mechanism: Mechanism, q: Array, torque: Array) -> dict[str, Array]:
        """Return the wrenches on bodies, (N, 6) in world axes, of torques (N,) of the parent on the child."""
        moment = torque[:, None] * self.in_world(mechanism, q)
        wrench = np.concatenate([np.zeros_like(moment), moment], axis=1)
        ends = ((self.at.child, wrench), (self.at.parent, -wrench))
        return {body: each for body, each in ends if body != mechanism.ground}


@remembered(1)
def loop_hinges(mechanism: Mechanism) -> dict[str, LoopHinge]:
    """Return the hinges that close loops, of files, of the builder and among constraints, by name."""
    hinges = {}
    for at in transmissions(mechanism):
        if at.kind == "revolute" and at.group in ("loop", "constraint"):
            constraint: Any = mechanism.all_constraints[at.number]
            hinges[at.name] = LoopHinge(at, np.array(constraint.axis, float).reshape(3))
    return hinges


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
