"""Rigid placements: a rotation and a position.

Symbols: X_AB = (R, p) gives points of frame B in frame A, x_A = R x_B + p.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.checks import floats
from dalembert.errors import ModelError, ShapeError
from dalembert.model.limits import EXACT, ORTHOGONALITY
from dalembert.types import Array

if TYPE_CHECKING:
    from jaxtyping import Float


def _frozen(values: Any) -> Array:
    array = np.array(floats(values, "a rotation or position"))
    array.setflags(write=False)
    return array


EYE = _frozen(np.eye(3))
"""No rotation; most placements in files have none, and need no check."""


@dataclass(frozen=True, eq=False)
class Placement:
    """A frame B seen from a frame A.

    Attributes
    ----------
    rotation : (3, 3)
        R, columns are B's axes in A.
    position : (3,)
        p, B's origin in A, metres.
    """

    rotation: Array = field(default_factory=lambda: EYE)
    position: Array = field(default_factory=lambda: np.zeros(3))

    def __post_init__(self) -> None:
        rotation, position = floats(self.rotation, "rotation"), floats(self.position, "position")
        if rotation is EYE and position.shape == (3,) and math.isfinite(position.sum()):
            object.__setattr__(self, "rotation", EYE)
            object.__setattr__(self, "position", _frozen(position))
            return
        if rotation.shape != (3, 3) or position.shape != (3,):
            raise ShapeError(
                f"a placement has a (3, 3) rotation and a (3,) position, not {rotation.shape}, {position.shape}"
            )
        if not (np.isfinite(rotation).all() and np.isfinite(position).all()):
            raise ModelError(f"a placement has numbers that are not finite: {rotation.tolist()}, {position.tolist()}")
        object.__setattr__(self, "rotation", _frozen(_orthogonal(rotation)))
        object.__setattr__(self, "position", _frozen(position))

    @classmethod
    def from_rpy(cls, rpy: Any, position: Any = (0.0, 0.0, 0.0)) -> Placement:
        """Return the placement with R = Rz(yaw) Ry(pitch) Rx(roll), radians, as URDF and SDF write it."""
        angles = floats(rpy, "rpy")
        if angles.shape != (3,):
            raise ShapeError(f"rpy is three angles, roll, pitch and yaw in radians; it has shape {angles.shape}")
        roll, pitch, yaw = angles.tolist()
        if roll == pitch == yaw == 0.0:
            return cls(EYE, floats(position, "position"))
        (a, b), (c, d), (e, f) = _cosine_sine(yaw), _cosine_sine(pitch), _cosine_sine(roll)
        rotation = [
            [a * c, a * d * f - b * e, a * d * e + b * f],
            [b * c, b * d * f + a * e, b * d * e - a * f],
            [-d, c * f, c * e],
        ]
        return cls(np.array(rotation), floats(position, "position"))

    @classmethod
    def from_quaternion(cls, xyzw: Any, position: Any = (0.0, 0.0, 0.0)) -> Placement:
        """Return the placement with the rotation of a quaternion [x y z w], which is normalised."""
        quaternion = floats(xyzw, "quaternion")
        norm = np.linalg.norm(quaternion)
        if quaternion.shape != (4,) or not np.isfinite(norm) or norm == 0:
            raise ModelError(f"a quaternion [x y z w] must be four finite numbers, not all zero; got {xyzw}")
        x, y, z, w = quaternion / norm
        skew = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
        return cls(np.eye(3) + 2 * w * skew + 2 * skew @ skew, floats(position, "position"))

    def __matmul__(self, other: Placement) -> Placement:
        """Return X_AC = X_AB X_BC."""
        return Placement(self.rotation @ other.rotation, self.rotation @ other.position + self.position)

    def inverse(self) -> Placement:
        """Return X_BA."""
        return Placement(self.rotation.T, -self.rotation.T @ self.position)

    def is_identity(self) -> bool:
        """Say whether A and B coincide exactly."""
        return bool(np.array_equal(self.rotation, np.eye(3)) and not self.position.any())

    def quaternion(self) -> Float[Array, " 4"]:
        """Return the rotation as [x y z w], w >= 0."""
        from scipy.spatial.transform import Rotation

        return Rotation.from_matrix(self.rotation).as_quat(canonical=True)

    def rpy(self) -> Float[Array, " 3"]:
        """Return roll, pitch, yaw in radians; at pitch = +-pi/2, where they are not unique, yaw is zero.

        Roll is that of Rz(-yaw) R, so that the three together are exact although near +-pi/2 each of two is not.
        """
        R = self.rotation
        flat = np.hypot(R[0, 0], R[1, 0])
        yaw = np.arctan2(R[1, 0], R[0, 0]) if flat > EXACT else 0.0
        c, s = np.cos(yaw), np.sin(yaw)
        roll = np.arctan2(s * R[0, 2] - c * R[1, 2], c * R[1, 1] - s * R[0, 1])
        return np.array([roll, np.arctan2(-R[2, 0], flat), yaw])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Placement):
            return NotImplemented
        return np.array_equal(self.rotation, other.rotation) and np.array_equal(self.position, other.position)

    def __hash__(self) -> int:
        return hash((self.rotation.tobytes(), self.position.tobytes()))


def _cosine_sine(angle: float) -> tuple[float, float]:
    """Return cosine and sine, exact at multiples of a quarter turn."""
    c, s = math.cos(angle), math.sin(angle)
    return (float(round(c)), float(round(s))) if min(abs(c), abs(s)) <= EXACT else (c, s)


def exact(R: Array) -> Array:
    """Return R with entries that are 0, 1 or -1 up to rounding made exactly so."""
    nearest = np.round(R)
    return np.where(np.abs(R - nearest) <= EXACT, nearest, R) + 0.0


def _determinant(R: Array) -> float:
    (a, b, c), (d, e, f), (g, h, i) = R.tolist()
    return a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g)


def _orthogonal(R: Array) -> Array:
    """Return the rotation nearest to R; a matrix that is no rotation is refused."""
    error = np.abs(R.T @ R - EYE).max()
    if error > ORTHOGONALITY or _determinant(R) < 0:
        raise ModelError(
            f"not a rotation matrix (R^T R differs from 1 by {error:.1e}, det {np.linalg.det(R):.3f}): {R.tolist()}"
        )
    if error > EXACT:
        U, _, Vt = np.linalg.svd(R)
        R = U @ Vt
    return exact(R)


IDENTITY = Placement()
"""Two frames that coincide."""
