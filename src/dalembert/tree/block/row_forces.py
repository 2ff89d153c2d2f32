"""Constraint rows as forces on links: what a unit multiplier does, each in the frame of the link it acts on.

A row is linear in the velocities of the frames it speaks of: A = sum of C_k J_k. So instead of J_k a frame is given six
columns of its own, and what comes back is C_k: force and moment on that frame. No Jacobian is ever formed.

All this happens in the axes of one of the frames that the constraint names, the *observer*: of two bodies the second,
in whose axes most rows are (their forces on it are constant), else the first. Velocities and accelerations are those
against the *carrier*, the link next to both frames that carries them: rows do not feel how it moves. Rows made of
scalar products do not notice the axes; three rows that are a vector in world axes (`Pair.vectors`) come out in the
observer's, and their multipliers are turned back at the end. So a foot that is held needs neither its pose nor that of
the ground: C is constant.

Symbols: O the observer, X_Oi = (R, p) pose of link i in O; F = (f, n) force and moment about a link's origin.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from dalembert.kkt.expressions.scalars import mul, scalar, total
from dalembert.kkt.expressions.sparse_factor import Vector, sparse
from dalembert.model.constraints.all_rows import parts_of
from dalembert.model.constraints.constraint import Constraint
from dalembert.model.constraints.constraint import Pair as PairConstraint
from dalembert.model.constraints.primitives import FrameKinematics, Kinematics
from dalembert.model.joints import as_expression
from dalembert.model.mechanism.placement import IDENTITY, Placement
from dalembert.tree.algebra import vectors
from dalembert.tree.algebra.screws import Pair, Pose
from dalembert.tree.algebra.vectors import cross
from dalembert.tree.algorithms.frame_kinematics import TreeKinematics
from dalembert.tree.algorithms.inverse import LinkMotion, accelerations
from dalembert.tree.algorithms.kinematics import columns, vector, velocities
from dalembert.tree.prepared.configuration import Posed
from dalembert.tree.prepared.link import Tree
from dalembert.types import Scalar

if TYPE_CHECKING:
    from dalembert.model.mechanism.mechanism import Mechanism

FRAMES = 2
"""Most frames that a constraint between frames speaks of."""


@dataclass(frozen=True, eq=False)
class RowForce:
    """One row: forces on links for a unit multiplier, forces on joints, and what remains at a = 0.

    `ends` has the forces frame by frame, in the order in which the constraint names its frames: each in the frame of
    the link that the frame is on, those on the ground in world axes about its origin.
    """

    links: dict[int, Pair]
    joints: Vector
    drift: Scalar
    ends: tuple[tuple[str, Pair], ...] = ()


@dataclass(frozen=True, eq=False)
class Seen:
    """Of every link, in its own frame: velocity, and motion at joint accelerations zero; as seen from some link."""

    velocities: list[Pair]
    motions: Sequence[LinkMotion]


@dataclass(frozen=True, eq=False)
class TreeMotion:
    """A tree in a state, with what all constraints share.

    Attributes
    ----------
    motions
        Of every link, in its axes, at joint accelerations a, less gravity (as the Newton-Euler pass has them).
    a
        Joint accelerations (nv,) of `motions`; none where they are zero. With them the drift of a row is A a + drift.
    """

    mechanism: Mechanism
    tree: Tree
    posed: list[Posed]
    q: Any
    v: Any
    t: Any
    motions: Sequence[LinkMotion]
    a: Sequence[Scalar] = ()

    @cached_property
    def _views(self) -> dict[int, Seen]:
        return {-1: Seen(velocities(self.posed, ca.vertsplit(self.v)), self.motions)}

    def seen_from(self, carrier: int) -> Seen:
        """Return the motion of the links as seen from one that carries them, or from the ground, -1."""
        if carrier not in self._views:
            v, only = ca.vertsplit(self.v), self.tree.carried_by(carrier)
            motions = accelerations(vectors.ZERO, self.posed, v, list(self.a) or [0.0] * self.tree.nv, only)
            self._views[carrier] = Seen(velocities(self.posed, v, only), motions)
        return self._views[carrier]

    @cached_property
    def world(self) -> TreeKinematics:
        """The same in world axes, for rows that are not between frames."""
        return TreeKinematics(self.mechanism, self.tree, self.q, self.v, self.t, posed=self.posed)

    def gravity(self, i: int) -> vectors.Vector:
        """Return gravity in the axes of link i."""
        g = self.tree.gravity
        for link in reversed(self.tree.ancestors(i)):
            g = self.posed[link].into(g)
        return g

    def rows(self, constraint: Constraint) -> list[RowForce]:
        """Return the rows of a constraint."""
        if isinstance(constraint, PairConstraint):
            return Observed(self, constraint).rows()
        rows = []
        for part in parts_of(constraint, self.world):
            for i in range(part.jacobian.shape[0]):
                joints = sparse([scalar(x) for x in _entries(part.jacobian[i, :])])
                drift = scalar(ca.SX(part.drift)[i])
                if self.a:
                    drift = total(drift, *(mul(value, self.a[k]) for k, value in joints.items()))
                rows.append(RowForce({}, joints, drift))
        return rows

    def in_world(self, constraint: Constraint, lam: list[Scalar]) -> list[Scalar]:
        """Return multipliers of a constraint as the user's rows have them: vectors in world axes."""
        result = list(lam)
        if not isinstance(constraint, PairConstraint):
            return result
        for start in constraint.vectors:
            link, place = self.place(constraint.frame, constraint.placement)
            u = vectors.columns_times(columns(place.rotation), (lam[start], lam[start + 1], lam[start + 2]))
            for i in self.tree.ancestors(link):
                for element in reversed(self.posed[i].path):
                    u = element.out(u)
            result[start : start + 3] = u
        return result

    def from_world(self, constraint: Constraint, c: list[Scalar]) -> list[Scalar]:
        """Return right sides of the user's rows as the observer has them: the inverse of `in_world`."""
        result = list(c)
        if not isinstance(constraint, PairConstraint):
            return result
        for start in constraint.vectors:
            link, place = self.place(constraint.frame, constraint.placement)
            u: vectors.Vector = (c[start], c[start + 1], c[start + 2])
            for i in reversed(self.tree.ancestors(link)):
                u = self.posed[i].into(u)
            result[start : start + 3] = vectors.transposed_times(columns(place.rotation), u)
        return result

    def place(self, name: str, placement: Placement) -> tuple[int, Placement]:
        """Return the link that a frame is on, and where it stands in the link's frame."""
        self.mechanism.frame(name)
        link, place = self.tree.places[name]
        return link, place @ placement


class ObservedFrame(FrameKinematics):
    """A frame whose Jacobian has six columns of its own: there are none of joints to be left out."""

    def unmoved_by(self, velocities: list[int]) -> FrameKinematics:
        """Return the frame: forces that are in balance where both ends are carried cancel of themselves."""
        return self


class Observed(Kinematics):
    """What a constraint between frames sees from one of them."""

    def __init__(self, motion: TreeMotion, constraint: PairConstraint) -> None:
        self.motion, self.constraint = motion, constraint
        self.mechanism, self.q, self.v, self.t = motion.mechanism, motion.q, motion.v, motion.t
        first = motion.place(constraint.frame, constraint.placement)
        second = motion.place(constraint.other or motion.mechanism.ground, constraint.at or IDENTITY)
        self.link, self.origin = first if second[0] < 0 else second
        self.carrier = -1 if constraint.held else motion.tree.common_ancestor(first[0], second[0])
        self.slots: list[tuple[str, int, Pose, Placement]] = []

    def rows(self) -> list[RowForce]:
        """Return the constraint's rows as forces."""
        rows = []
        for part in parts_of(self.constraint, self):
            C = ca.SX(part.jacobian)
            drift = ca.SX(part.drift)
            rows += [self._row(C[i, :], scalar(drift[i])) for i in range(C.shape[0])]
        return rows

    def _row(self, C: ca.SX, drift: Scalar) -> RowForce:
        """Return one row: its force on every link, and frame by frame."""
        forces: dict[int, Pair] = {}
        ends = []
        for k, (name, link, pose, place) in enumerate(self.slots):
            c = [scalar(C[6 * k + j]) for j in range(6)]
            f = vectors.transposed_times(pose.R, (c[0], c[1], c[2]))
            n = vectors.transposed_times(pose.R, (c[3], c[4], c[5]))
            n = vectors.add(n, cross(vector(place.position), f))
            ends.append((name, (f, n)))
            if link >= 0:
                wrench = forces.get(link, (vectors.ZERO, vectors.ZERO))
                forces[link] = vectors.add(wrench[0], f), vectors.add(wrench[1], n)
        return RowForce(forces, {}, drift, tuple(ends))

    def frame(self, name: str, placement: Placement = IDENTITY) -> FrameKinematics:
        """Return a frame in the observer's axes, with six columns of its own for a Jacobian."""
        link, place = self.motion.place(name, placement)
        pose = self._pose(link)
        self.slots.append((name, link, pose, place))
        if len(self.slots) > FRAMES:
            raise NotImplementedError(f"a constraint between more than {FRAMES} frames")
        columns_of_its_own = np.zeros((6, 6 * FRAMES))
        columns_of_its_own[:, 6 * len(self.slots) - 6 : 6 * len(self.slots)] = np.eye(6)
        R = [vectors.columns_times(pose.R, column) for column in columns(place.rotation)]
        p = vectors.add(pose.p, vectors.columns_times(pose.R, vector(place.position)))
        velocity, drift = self._moving(link, pose, place)
        return ObservedFrame(
            as_expression([[column[row] for column in R] for row in range(3)]),
            as_expression(list(p)),
            ca.SX(columns_of_its_own),
            as_expression(velocity),
            as_expression(drift),
        )

    def _moving(self, link: int, pose: Pose, place: Placement) -> tuple[list[Scalar], list[Scalar]]:
        """Return velocity and acceleration at a = 0 of a link's place against the carrier, in the observer's axes."""
        if link < 0:
            return [0.0] * 6, [0.0] * 6
        arm = vector(place.position)
        seen = self.motion.seen_from(self.carrier)
        v, w = seen.velocities[link]
        motion = seen.motions[link]
        speed = vectors.add(v, cross(w, arm))
        a = vectors.add(motion.a, vectors.columns_times(motion.U, arm))
        if self.carrier < 0:
            a = vectors.add(a, self.motion.gravity(link))
        linear, angular, a, wd = (vectors.columns_times(pose.R, u) for u in (speed, w, a, motion.wd))
        return [*linear, *angular], [*a, *wd]

    def _pose(self, link: int) -> Pose:
        """Return the pose of a link, or of the ground (-1), in the observer: up to the common ancestor, then down."""
        inverse = self.origin.inverse()
        pose = Pose(columns(inverse.rotation), vector(inverse.position))
        down = self.motion.tree.ancestors(link)
        for i in self.motion.tree.ancestors(self.link):
            if i in down:
                down = down[: down.index(i)]
                break
            pose = self.motion.posed[i].pose_back(pose)
        for i in reversed(down):
            pose = self.motion.posed[i].pose(pose)
        return pose


def _entries(row: Any) -> list[ca.SX]:
    row = ca.densify(ca.SX(row))
    return [row[j] for j in range(row.numel())]
