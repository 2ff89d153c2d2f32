"""A mechanism in one configuration, in the book's letters.

Symbols (Featherstone 2008, ch. 4): lambda(i) parent of body i; X_i motion transform from lambda(i) to i; S_i motion
subspace and cJ_i = S_i' v_i, both in body i; I_i spatial inertia. Every body of the mechanism is here, those on fixed
joints too (S is then empty), in the frames of the file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dalembert.model.joints import KINDS
from tests.reference.spatial import transform

if TYPE_CHECKING:
    from dalembert.model.mechanism.mechanism import Mechanism

Array = np.ndarray


@dataclass(frozen=True)
class State:
    """X, S, cJ, I, armature of every body; `v` holds each body's place in the velocity, `poses` (R, p) in the world."""

    mechanism: Mechanism
    parents: tuple[int, ...]
    X: list[Array]
    S: list[Array]
    cJ: list[Array]
    I: list[Array]  # noqa: E741 - the book's letter
    armature: Array
    v: list[slice]
    poses: list[tuple[Array, Array]]

    @classmethod
    def at(cls, mechanism: Mechanism, q: Array, v: Array | None = None) -> State:
        """Return the mechanism at q (nq,), moving with v (nv,)."""
        q = np.asarray(q, dtype=float)
        v = np.zeros(mechanism.nv) if v is None else np.asarray(v, dtype=float)
        X, S, cJ, poses, places = [], [], [], [], []
        for i, joint in enumerate(mechanism.joints):
            kind = KINDS[joint.kind]
            iv = mechanism.index_v(joint.name)
            qi, vi = (list(map(float, values)) for values in (q[mechanism.index_q(joint.name)], v[iv]))
            R, p = (np.array(each, dtype=float) for each in kind.motion(joint, qi))
            place, side = joint.placement, joint.child_placement.inverse()
            outer = transform(side.rotation, side.position)  # from the joint's frame to the body's
            X.append(outer @ transform(R, p) @ transform(place.rotation, place.position))
            S.append(outer @ np.array(kind.subspace(joint, qi), dtype=float).reshape(6, kind.nv))
            cJ.append(outer @ np.array(kind.bias(joint, qi, vi), dtype=float))
            places.append(iv)
            parent = mechanism.parents[i]
            poses.append(_step((np.eye(3), np.zeros(3)) if parent < 0 else poses[parent], X[i]))
        inertias = [body.inertia.matrix() for body in mechanism.bodies]
        return cls(mechanism, mechanism.parents, X, S, cJ, inertias, mechanism.armature, places, poses)

    @property
    def nv(self) -> int:
        """Number of velocities."""
        return self.mechanism.nv

    def base_acceleration(self) -> Array:
        """Return -gravity as a spatial acceleration: the ground accelerates upward."""
        return np.concatenate([-np.asarray(self.mechanism.gravity, dtype=float), np.zeros(3)])


def _step(parent: tuple[Array, Array], X: Array) -> tuple[Array, Array]:
    """Return the pose of a body from its parent's and X: R = X_11^T, [p] = -R X_12."""
    R, skew_p = X[:3, :3].T, -X[:3, :3].T @ X[:3, 3:]
    p = np.array([skew_p[2, 1], skew_p[0, 2], skew_p[1, 0]])
    return parent[0] @ R, parent[0] @ p + parent[1]
