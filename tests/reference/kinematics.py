"""Poses, Jacobians and their drift, from the bodies' transforms.

Symbols: X_f motion transform from the world to a frame; J_f its Jacobian in its own axes, whose columns are X_f,i
S_i. The other references are J = Y J_f with Y = X_f^-1 (world) or Y = diag(R, R) (world axes at the frame).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.reference.spatial import crm, skew, transform
from tests.reference.state import State

Array = np.ndarray


def frame_pose(state: State, name: str) -> tuple[Array, Array]:
    """Return R (3, 3) and p (3,) of a frame in the world."""
    frame = state.mechanism.frame(name)
    body = state.mechanism.body_index(frame.body)
    R, p = (np.eye(3), np.zeros(3)) if body < 0 else state.poses[body]
    return R @ frame.placement.rotation, R @ frame.placement.position + p


def frame_jacobian(state: State, name: str, reference: str = "local") -> Array:
    """Return J (6, nv)."""
    frame = state.mechanism.frame(name)
    i = state.mechanism.body_index(frame.body)
    X = transform(frame.placement.rotation, frame.placement.position)
    J = np.zeros((6, state.nv))
    while i >= 0:
        J[:, state.v[i]] = X @ state.S[i]
        X = X @ state.X[i]
        i = state.parents[i]
    return _outer(state, name, reference)[0] @ J


def frame_drift(state: State, v: Array, name: str, reference: str = "local") -> Array:
    """Return J_dot v (6,): the spatial acceleration at zero joint accelerations, and Y_dot times the velocity."""
    frame = state.mechanism.frame(name)
    vs: list[Array] = []
    accelerations: list[Array] = []
    for i, parent in enumerate(state.parents):
        vJ = state.S[i] @ v[state.v[i]]
        vs.append((state.X[i] @ vs[parent] if parent >= 0 else 0) + vJ)
        before = state.X[i] @ accelerations[parent] if parent >= 0 else 0
        accelerations.append(before + state.cJ[i] + crm(vs[i]) @ vJ)
    body = state.mechanism.body_index(frame.body)
    if body < 0:
        return np.zeros(6)
    X = transform(frame.placement.rotation, frame.placement.position)
    velocity, acceleration = X @ vs[body], X @ accelerations[body]
    Y, turning = _outer(state, name, reference)
    return Y @ acceleration + turning(velocity)


def _outer(state: State, name: str, reference: str) -> tuple[Array, Callable[[Array], Array]]:
    """Return Y and the function velocity -> Y_dot velocity."""
    R, p = frame_pose(state, name)
    zero = np.zeros((3, 3))
    if reference == "local":
        return np.eye(6), lambda velocity: np.zeros(6)
    if reference == "local_world_aligned":
        Y = np.block([[R, zero], [zero, R]])
        return Y, lambda velocity: np.concatenate([R @ skew(velocity[3:]) @ velocity[:3], np.zeros(3)])
    return np.block([[R, skew(p) @ R], [zero, R]]), lambda velocity: np.zeros(6)  # Y V x V = 0
