"""Frames in motion as constraints ask for them, in numbers: the plain twin of `tree/algorithms/frame_kinematics.py`."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalembert.model.constraints import Assembled, assemble
from dalembert.model.constraints.primitives import FrameKinematics, Kinematics
from dalembert.model.mechanism.mechanism import Mechanism
from dalembert.model.mechanism.placement import IDENTITY, Placement
from tests.reference.kinematics import frame_drift, frame_jacobian, frame_pose
from tests.reference.spatial import skew
from tests.reference.state import State

Array = np.ndarray


class PlainKinematics(Kinematics):
    """A mechanism at one state (nq,), (nv,) and time."""

    def __init__(self, mechanism: Mechanism, q: Any, v: Any, t: float = 0.0) -> None:
        self.mechanism = mechanism
        self.state = State.at(mechanism, np.asarray(q, dtype=float), np.asarray(v, dtype=float))
        self.q, self.v = (np.asarray(x, dtype=float)[:, None] for x in (q, v))
        self.t = np.full((1, 1), float(t))
        self.rate = mechanism.rate(q, v)[:, None]

    def frame(self, name: str, placement: Placement = IDENTITY) -> FrameKinematics:
        """Return a frame by name, or a place on it: carried along at the end of the arm x = R p0."""
        v, reference = self.v[:, 0], "local_world_aligned"
        R, p = frame_pose(self.state, name)
        J = frame_jacobian(self.state, name, reference)
        drift = frame_drift(self.state, v, name, reference)
        x = R @ placement.position
        move = np.block([[np.eye(3), -skew(x)], [np.zeros((3, 3)), np.eye(3)]])
        w = J[3:] @ v
        turning = np.concatenate([np.cross(w, np.cross(w, x)), np.zeros(3)])
        return FrameKinematics(
            R @ placement.rotation,
            (p + x)[:, None],
            move @ J,
            (move @ J @ v)[:, None],
            (move @ drift + turning)[:, None],
        )


def constraint_rows(mechanism: Mechanism, q: Any, v: Any, t: float = 0.0) -> Assembled:
    """Return residual, rate, Jacobian and drift of all constraints at one state (nq,), (nv,) and time."""
    return assemble(PlainKinematics(mechanism, q, v, t))
