"""A body that flies: q = [x y z, qx qy qz qw], v = [linear, angular] in the body's axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dalembert.model.joints import quaternion
from dalembert.model.joints.kind import IDENTITY, ZERO, Kind, Rows, Scalar, uniform

if TYPE_CHECKING:
    from dalembert.model.parts import Joint

Array = np.ndarray


class Free(Kind):
    """R = R(quaternion), p = (x, y, z), S = 1."""

    name = "free"
    q_names = ("x", "y", "z", "qx", "qy", "qz", "qw")
    v_names = ("x", "y", "z", "wx", "wy", "wz")
    angular = (False, False, False, True, True, True)
    unit = slice(3, 7)

    def motion(self, joint: Joint, q: Sequence[Scalar]) -> tuple[Rows, list[Scalar]]:
        """Return R(quaternion) and (x, y, z)."""
        return quaternion.rotation_rows(*q[3:7]), list(q[:3])

    def subspace(self, joint: Joint, q: Sequence[Scalar]) -> Rows:
        """Return the identity."""
        top = [[*unit, *zero] for unit, zero in zip(IDENTITY, ZERO, strict=True)]
        return top + [[*zero, *unit] for unit, zero in zip(IDENTITY, ZERO, strict=True)]

    def rate(self, q: Sequence[Scalar], v: Sequence[Scalar]) -> list[Scalar]:
        """Return R v_linear and q [v_angular, 0] / 2."""
        R = quaternion.rotation_rows(*q[3:7])
        linear = [R[i][0] * v[0] + R[i][1] * v[1] + R[i][2] * v[2] for i in range(3)]
        return linear + quaternion.rate(list(q[3:7]), list(v[3:6]))

    def neutral(self) -> Array:
        """Return no displacement, no rotation."""
        return np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])

    def integrate(self, q: Array, v: Array) -> Array:
        """Return q exp(v) on SE(3): the body moves on a screw."""
        linear, angular = v[..., :3], v[..., 3:]
        position = q[..., :3] + quaternion.rotate(q[..., 3:], quaternion.left_jacobian(angular, linear))
        turned = quaternion.unit(quaternion.product(q[..., 3:], quaternion.exponential(angular)))
        return np.concatenate([position, turned], axis=-1)

    def difference(self, q0: Array, q1: Array) -> Array:
        """Return log(q0^-1 q1) on SE(3), with a rotation vector of length at most pi."""
        back = quaternion.conjugate(q0[..., 3:])
        angular = quaternion.logarithm(quaternion.unit(quaternion.product(back, q1[..., 3:])))
        moved = quaternion.rotate(back, q1[..., :3] - q0[..., :3])
        return np.concatenate([quaternion.left_jacobian_inverse(angular, moved), angular], axis=-1)

    def normalize(self, q: Array) -> Array:
        """Return q with its quaternion made unit."""
        return np.concatenate([q[..., :3], quaternion.unit(q[..., 3:])], axis=-1)

    def random(self, rng: np.random.Generator, lower: Array, upper: Array, size: tuple[int, ...]) -> Array:
        """Return uniform positions within limits and rotations uniform on SO(3)."""
        place = uniform(rng, lower[:3], upper[:3], np.zeros(3, bool), size)
        return np.concatenate([place, quaternion.random_unit(rng, size)], axis=-1)
