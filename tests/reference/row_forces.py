"""Constraint rows as forces on bodies, in numbers: the plain twin of `tree/block/row_forces.py`.

Symbols: K_i (m, 6) what the rows make of the acceleration of body i, so that K_i^T lam is a force on it, in its
frame; j (m, nv) what they make of joint accelerations directly: A a = sum of K_i a_i + j qdd.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dalembert.model.constraints.all_rows import parts_of
from dalembert.model.constraints.constraint import Pair
from dalembert.model.constraints.primitives import FrameKinematics
from dalembert.model.mechanism.mechanism import Mechanism
from dalembert.model.mechanism.placement import IDENTITY, Placement
from tests.reference.frame_kinematics import PlainKinematics
from tests.reference.spatial import skew, transform
from tests.reference.state import State

Array = np.ndarray


@dataclass(frozen=True)
class RowForces:
    """K by body, j, and the constraint that each row belongs to."""

    K: list[Array]
    j: Array
    groups: tuple[int, ...]

    @classmethod
    def at(cls, mechanism: Mechanism, q: Any, t: float = 0.0) -> RowForces:
        """Return the rows of a mechanism at a configuration."""
        kinematics = _OwnColumns(mechanism, q, np.zeros(mechanism.nv), t)
        plain = PlainKinematics(mechanism, q, np.zeros(mechanism.nv), t)
        count = 6 * len(mechanism.bodies)
        forces, joints = [np.zeros((0, count))], [np.zeros((0, mechanism.nv))]
        for constraint in mechanism.all_constraints:
            on_bodies = isinstance(constraint, Pair)
            for part in parts_of(constraint, kinematics if on_bodies else plain):
                rows = np.asarray(part.jacobian, dtype=float)
                forces.append(rows if on_bodies else np.zeros((len(rows), count)))
                joints.append(np.zeros((len(rows), mechanism.nv)) if on_bodies else rows)
        whole = np.vstack(forces)
        K = [whole[:, 6 * i : 6 * i + 6] for i in range(len(mechanism.bodies))]
        return cls(K, np.vstack(joints), mechanism.row_groups)

    def accelerate(self, accelerations: list[Array], qdd: Array) -> Array:
        """Return A a (m,)."""
        return sum((K @ a for K, a in zip(self.K, accelerations, strict=True)), start=self.j @ qdd)

    def matrix(self, state: State) -> Array:
        """Return A (m, nv)."""
        A = self.j.copy()
        for i, K in enumerate(self.K):
            body, carried = i, K
            while body >= 0:
                A[:, state.v[body]] += carried @ state.S[body]
                carried, body = carried @ state.X[body], state.parents[body]
        return A


class _OwnFrame(FrameKinematics):
    """A frame whose Jacobian has six columns for each body."""

    def unmoved_by(self, velocities: list[int]) -> FrameKinematics:
        """Return the frame: there are no columns of joints."""
        return self


class _OwnColumns(PlainKinematics):
    """Frames as functions of the velocities of their bodies."""

    def frame(self, name: str, placement: Placement = IDENTITY) -> FrameKinematics:
        """Return a frame; its Jacobian has the columns of its body only."""
        found = super().frame(name, placement)
        frame = self.mechanism.frame(name)
        i = self.mechanism.body_index(frame.body)
        J = np.zeros((6, 6 * len(self.mechanism.bodies)))
        if i >= 0:
            R = self.state.poses[i][0] @ frame.placement.rotation
            zero, arm = np.zeros((3, 3)), R @ placement.position
            turn = np.block([[R, zero], [zero, R]]) @ transform(frame.placement.rotation, frame.placement.position)
            J[:, 6 * i : 6 * i + 6] = np.block([[np.eye(3), -skew(arm)], [zero, np.eye(3)]]) @ turn
        return _OwnFrame(found.rotation, found.position, J, found.velocity, found.drift)
