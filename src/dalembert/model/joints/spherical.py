"""A ball joint: a unit quaternion [x y z w]; v is the angular velocity in the child's joint frame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dalembert.model.joints import quaternion
from dalembert.model.joints.kind import IDENTITY, ZERO, Kind, Rows, Scalar

if TYPE_CHECKING:
    from dalembert.model.parts import Joint

Array = np.ndarray


class Spherical(Kind):
    """R = R(q), S = [0; 1]."""

    name = "spherical"
    q_names = ("qx", "qy", "qz", "qw")
    v_names = ("wx", "wy", "wz")
    angular = (True, True, True)
    unit = slice(0, 4)

    def motion(self, joint: Joint, q: Sequence[Scalar]) -> tuple[Rows, list[Scalar]]:
        """Return R(q) and no displacement."""
        return quaternion.rotation_rows(*q), [0.0, 0.0, 0.0]

    def subspace(self, joint: Joint, q: Sequence[Scalar]) -> Rows:
        """Return [0; 1]."""
        return [*ZERO, *IDENTITY]

    def rate(self, q: Sequence[Scalar], v: Sequence[Scalar]) -> list[Scalar]:
        """Return q [v, 0] / 2."""
        return quaternion.rate(list(q), list(v))

    def neutral(self) -> Array:
        """Return no rotation."""
        return np.array([0.0, 0.0, 0.0, 1.0])

    def integrate(self, q: Array, v: Array) -> Array:
        """Return q exp(v)."""
        return quaternion.unit(quaternion.product(q, quaternion.exponential(v)))

    def difference(self, q0: Array, q1: Array) -> Array:
        """Return log(q0^-1 q1), of length at most pi."""
        return quaternion.logarithm(quaternion.unit(quaternion.product(quaternion.conjugate(q0), q1)))

    def normalize(self, q: Array) -> Array:
        """Return q / |q|."""
        return quaternion.unit(q)

    def random(self, rng: np.random.Generator, lower: Array, upper: Array, size: tuple[int, ...]) -> Array:
        """Return rotations that are uniform on SO(3), whatever the limits say."""
        return quaternion.random_unit(rng, size)
