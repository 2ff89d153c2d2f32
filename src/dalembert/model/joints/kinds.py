"""Every kind of joint: fixed, revolute, prismatic, helical, universal, continuous, spherical, planar, free."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dalembert.model.joints import rotations
from dalembert.model.joints.kind import IDENTITY, ZERO, Kind, Rows, cosine, sine, uniform
from dalembert.model.joints.rotations import about, as_columns, column, plane, scaled
from dalembert.model.limits import SMALL_ANGLE
from dalembert.types import Array, Scalar

if TYPE_CHECKING:
    from dalembert.model.mechanism.parts import Joint

# ----------------------------------------------------------------------------------------------------------------------
# No motion at all: two bodies that are one.


class FixedJoint(Kind):
    """R = 1, p = 0, no coordinates."""

    name = "fixed"
    q_names = ()
    v_names = ()
    angular = ()
    axes = 0
    urdf = "fixed"
    other_names = ("weld",)

    def motion(self, joint: Joint, q: Sequence[Scalar]) -> tuple[Rows, list[Scalar]]:
        """Return no motion."""
        return IDENTITY, [0.0, 0.0, 0.0]

    def subspace(self, joint: Joint, q: Sequence[Scalar]) -> Rows:
        """Return a matrix without columns."""
        return [[] for _ in range(6)]


# ----------------------------------------------------------------------------------------------------------------------
# A hinge: one angle about a constant axis.


class RevoluteJoint(Kind):
    """R = R(axis, q), S = [0; axis]."""

    name = "revolute"
    urdf = "revolute"
    other_names = ("hinge", "pin")

    def motion(self, joint: Joint, q: Sequence[Scalar]) -> tuple[Rows, list[Scalar]]:
        """Return R(axis, q) and no displacement."""
        return about(joint.axis, cosine(q[0]), sine(q[0])), [0.0, 0.0, 0.0]

    def subspace(self, joint: Joint, q: Sequence[Scalar]) -> Rows:
        """Return [0; axis], the same in both frames."""
        return as_columns(column((0.0, 0.0, 0.0), joint.axis))


# ----------------------------------------------------------------------------------------------------------------------
# A slider: one length along a constant axis.


class PrismaticJoint(Kind):
    """p = axis q, S = [axis; 0]."""

    name = "prismatic"
    angular = (False,)
    urdf = "prismatic"
    other_names = ("slide", "slider")

    def motion(self, joint: Joint, q: Sequence[Scalar]) -> tuple[Rows, list[Scalar]]:
        """Return no rotation and the displacement axis q."""
        return IDENTITY, scaled(joint.axis, q[0])

    def subspace(self, joint: Joint, q: Sequence[Scalar]) -> Rows:
        """Return [axis; 0]."""
        return as_columns(column(joint.axis, (0.0, 0.0, 0.0)))


# ----------------------------------------------------------------------------------------------------------------------
# A screw: an angle about an axis, and `pitch` metres per radian along it.


class HelicalJoint(Kind):
    """R = R(axis, q), p = pitch q axis, S = [pitch axis; axis]."""

    name = "helical"
    urdf = "screw"
    other_names = ("screw",)

    def motion(self, joint: Joint, q: Sequence[Scalar]) -> tuple[Rows, list[Scalar]]:
        """Return R(axis, q) and the displacement pitch q axis."""
        return about(joint.axis, cosine(q[0]), sine(q[0])), scaled(joint.axis, joint.pitch * q[0])

    def subspace(self, joint: Joint, q: Sequence[Scalar]) -> Rows:
        """Return [pitch axis; axis], the same in both frames."""
        return as_columns(column([joint.pitch * x for x in joint.axis], joint.axis))


# ----------------------------------------------------------------------------------------------------------------------
# A cardan joint: an angle about one axis, then an angle about another that moves along.
#
# Symbols: a1, a2 the axes; R2 = R(a2, q2); u = R2^T a1 the first axis seen from the child.


class UniversalJoint(Kind):
    """R = R(axis, q1) R(axis2, q2), S = [0 0; u a2], S_dot v = [0; u x a2 v1 v2]."""

    name = "universal"
    q_names = ("1", "2")
    v_names = ("1", "2")
    angular = (True, True)
    axes = 2
    other_names = ("cardan",)

    def motion(self, joint: Joint, q: Sequence[Scalar]) -> tuple[Rows, list[Scalar]]:
        """Return R(axis, q1) R(axis2, q2) and no displacement."""
        first = about(joint.axis, cosine(q[0]), sine(q[0]))
        second = about(joint.axis2, cosine(q[1]), sine(q[1]))
        R = [[sum(first[i][k] * second[k][j] for k in range(3)) for j in range(3)] for i in range(3)]
        return R, [0.0, 0.0, 0.0]

    def subspace(self, joint: Joint, q: Sequence[Scalar]) -> Rows:
        """Return [0 0; u a2]."""
        return as_columns(column([0.0] * 3, self._first_axis(joint, q)), column([0.0] * 3, joint.axis2))

    def bias(self, joint: Joint, q: Sequence[Scalar], v: Sequence[Scalar]) -> list[Scalar]:
        """Return [0; u x a2 v1 v2], since du/dt = -(a2 v2) x u."""
        u, a, speed = self._first_axis(joint, q), joint.axis2, v[0] * v[1]
        cross = [u[1] * a[2] - u[2] * a[1], u[2] * a[0] - u[0] * a[2], u[0] * a[1] - u[1] * a[0]]
        return [0.0, 0.0, 0.0, *(speed * x for x in cross)]

    def _first_axis(self, joint: Joint, q: Sequence[Scalar]) -> list[Scalar]:
        """Return u = R2^T a1."""
        second = about(joint.axis2, cosine(q[1]), sine(q[1]))
        return [sum(second[k][i] * joint.axis[k] for k in range(3)) for i in range(3)]


# ----------------------------------------------------------------------------------------------------------------------
# A hinge without limits: its coordinates are the cosine and sine of the angle, so that they never grow.


class ContinuousJoint(Kind):
    """q = (cos, sin) of the angle, v its rate; R = R(axis, angle), S = [0; axis]."""

    name = "continuous"
    q_names = ("cos", "sin")
    unit = slice(0, 2)
    straight = False
    urdf = "continuous"

    def motion(self, joint: Joint, q: Sequence[Scalar]) -> tuple[Rows, list[Scalar]]:
        """Return R(axis, angle) and no displacement."""
        return about(joint.axis, q[0], q[1]), [0.0, 0.0, 0.0]

    def subspace(self, joint: Joint, q: Sequence[Scalar]) -> Rows:
        """Return [0; axis], the same in both frames."""
        return as_columns(column((0.0, 0.0, 0.0), joint.axis))

    def rate(self, q: Sequence[Scalar], v: Sequence[Scalar]) -> list[Scalar]:
        """Return (-sin, cos) v."""
        return [-q[1] * v[0], q[0] * v[0]]

    def neutral(self) -> Array:
        """Return the angle zero."""
        return np.array([1.0, 0.0])

    def integrate(self, q: Array, v: Array) -> Array:
        """Turn by v."""
        return rotations.turn(q, v[..., 0])

    def difference(self, q0: Array, q1: Array) -> Array:
        """Return the angle from q0 to q1, in (-pi, pi]."""
        return rotations.between(q0, q1)[..., None]

    def normalize(self, q: Array) -> Array:
        """Return q / |q|."""
        return rotations.unit_circle(q)

    def random(self, rng: np.random.Generator, lower: Array, upper: Array, size: tuple[int, ...]) -> Array:
        """Return angles that are uniform on the circle, whatever the limits say."""
        return rotations.at(2 * np.pi * rng.random(size))


# ----------------------------------------------------------------------------------------------------------------------
# A ball joint: a unit quaternion [x y z w]; v is the angular velocity in the child's joint frame.


class SphericalJoint(Kind):
    """R = R(q), S = [0; 1]."""

    name = "spherical"
    q_names = ("qx", "qy", "qz", "qw")
    v_names = ("wx", "wy", "wz")
    angular = (True, True, True)
    unit = slice(0, 4)
    straight = False
    axes = 0
    urdf = "spherical"
    other_names = ("ball",)

    def motion(self, joint: Joint, q: Sequence[Scalar]) -> tuple[Rows, list[Scalar]]:
        """Return R(q) and no displacement."""
        return rotations.rotation_rows(*q), [0.0, 0.0, 0.0]

    def subspace(self, joint: Joint, q: Sequence[Scalar]) -> Rows:
        """Return [0; 1]."""
        return [*ZERO, *IDENTITY]

    def rate(self, q: Sequence[Scalar], v: Sequence[Scalar]) -> list[Scalar]:
        """Return q [v, 0] / 2."""
        return rotations.rate(list(q), list(v))

    def neutral(self) -> Array:
        """Return no rotation."""
        return np.array([0.0, 0.0, 0.0, 1.0])

    def integrate(self, q: Array, v: Array) -> Array:
        """Return q exp(v)."""
        return rotations.unit_quaternion(rotations.product(q, rotations.exponential(v)))

    def difference(self, q0: Array, q1: Array) -> Array:
        """Return log(q0^-1 q1), of length at most pi."""
        return rotations.logarithm(rotations.unit_quaternion(rotations.product(rotations.conjugate(q0), q1)))

    def normalize(self, q: Array) -> Array:
        """Return q / |q|."""
        return rotations.unit_quaternion(q)

    def random(self, rng: np.random.Generator, lower: Array, upper: Array, size: tuple[int, ...]) -> Array:
        """Return rotations that are uniform on SO(3), whatever the limits say."""
        return rotations.random_unit(rng, size)


# ----------------------------------------------------------------------------------------------------------------------
# A plate that slides and turns on a plane: q = (x, y, cos, sin), v = (vx, vy, wz) in the child's joint frame.
#
# Symbols: n the plane's normal, e1, e2 its directions (`rotations.plane`); for n = z they are x, y.


class PlanarJoint(Kind):
    """R = R(n, angle), p = x e1 + y e2, S = [e1 e2 0; 0 0 n]."""

    name = "planar"
    q_names = ("x", "y", "cos", "sin")
    v_names = ("x", "y", "wz")
    angular = (False, False, True)
    unit = slice(2, 4)
    straight = False
    position = 2
    urdf = "planar"

    def motion(self, joint: Joint, q: Sequence[Scalar]) -> tuple[Rows, list[Scalar]]:
        """Return R(n, angle) and x e1 + y e2."""
        e1, e2 = plane(joint.axis)
        return about(joint.axis, q[2], q[3]), [a * q[0] + b * q[1] for a, b in zip(e1, e2, strict=True)]

    def subspace(self, joint: Joint, q: Sequence[Scalar]) -> Rows:
        """Return [e1 e2 0; 0 0 n], the plane's directions in the child's axes."""
        e1, e2 = plane(joint.axis)
        zero = [0.0, 0.0, 0.0]
        return as_columns(column(e1, zero), column(e2, zero), column(zero, joint.axis))

    def rate(self, q: Sequence[Scalar], v: Sequence[Scalar]) -> list[Scalar]:
        """Return the velocity turned into the plane's directions, and (-sin, cos) wz."""
        c, s = q[2], q[3]
        return [c * v[0] - s * v[1], s * v[0] + c * v[1], -s * v[2], c * v[2]]

    def neutral(self) -> Array:
        """Return no displacement, no rotation."""
        return np.array([0.0, 0.0, 1.0, 0.0])

    def integrate(self, q: Array, v: Array) -> Array:
        """Return q exp(v) on SE(2): the body moves on an arc."""
        angle = v[..., 2]
        a, b = np.sinc(angle / np.pi), np.sin(angle / 2) * np.sinc(angle / (2 * np.pi))
        moved = np.stack([a * v[..., 0] - b * v[..., 1], b * v[..., 0] + a * v[..., 1]], axis=-1)
        c, s = q[..., 2], q[..., 3]
        x = q[..., 0] + c * moved[..., 0] - s * moved[..., 1]
        y = q[..., 1] + s * moved[..., 0] + c * moved[..., 1]
        return np.concatenate([np.stack([x, y], axis=-1), rotations.turn(q[..., 2:], angle)], axis=-1)

    def difference(self, q0: Array, q1: Array) -> Array:
        """Return log(q0^-1 q1) on SE(2), with an angle in (-pi, pi]."""
        angle = rotations.between(q0[..., 2:], q1[..., 2:])
        dx, dy = q1[..., 0] - q0[..., 0], q1[..., 1] - q0[..., 1]
        c, s = q0[..., 2], q0[..., 3]
        x, y = c * dx + s * dy, c * dy - s * dx
        half = angle / 2
        safe = np.where(np.abs(half) > SMALL_ANGLE, half, 1.0)
        cot = np.where(np.abs(half) > SMALL_ANGLE, safe * np.cos(safe) / np.sin(safe), 1 - half**2 / 3 - half**4 / 45)
        return np.stack([cot * x + half * y, cot * y - half * x, angle], axis=-1)

    def normalize(self, q: Array) -> Array:
        """Return q with (cos, sin) made unit."""
        return np.concatenate([q[..., :2], rotations.unit_circle(q[..., 2:])], axis=-1)

    def random(self, rng: np.random.Generator, lower: Array, upper: Array, size: tuple[int, ...]) -> Array:
        """Return uniform positions within limits and uniform directions."""
        place = uniform(rng, lower[:2], upper[:2], np.zeros(2, bool), size)
        return np.concatenate([place, rotations.at(2 * np.pi * rng.random(size))], axis=-1)


# ----------------------------------------------------------------------------------------------------------------------
# A body that flies: q = [x y z, qx qy qz qw], v = [linear, angular] in the body's axes.


class FreeJoint(Kind):
    """R = R(quaternion), p = (x, y, z), S = 1."""

    name = "free"
    q_names = ("x", "y", "z", "qx", "qy", "qz", "qw")
    v_names = ("x", "y", "z", "wx", "wy", "wz")
    angular = (False, False, False, True, True, True)
    unit = slice(3, 7)
    straight = False
    axes = 0
    position = 3
    urdf = "floating"
    other_names = ("floating", "freeflyer")

    def motion(self, joint: Joint, q: Sequence[Scalar]) -> tuple[Rows, list[Scalar]]:
        """Return R(quaternion) and (x, y, z)."""
        return rotations.rotation_rows(*q[3:7]), list(q[:3])

    def subspace(self, joint: Joint, q: Sequence[Scalar]) -> Rows:
        """Return the identity."""
        top = [[*unit, *zero] for unit, zero in zip(IDENTITY, ZERO, strict=True)]
        return top + [[*zero, *unit] for unit, zero in zip(IDENTITY, ZERO, strict=True)]

    def rate(self, q: Sequence[Scalar], v: Sequence[Scalar]) -> list[Scalar]:
        """Return R v_linear and q [v_angular, 0] / 2."""
        R = rotations.rotation_rows(*q[3:7])
        linear = [R[i][0] * v[0] + R[i][1] * v[1] + R[i][2] * v[2] for i in range(3)]
        return linear + rotations.rate(list(q[3:7]), list(v[3:6]))

    def neutral(self) -> Array:
        """Return no displacement, no rotation."""
        return np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])

    def integrate(self, q: Array, v: Array) -> Array:
        """Return q exp(v) on SE(3): the body moves on a screw."""
        linear, angular = v[..., :3], v[..., 3:]
        position = q[..., :3] + rotations.rotate(q[..., 3:], rotations.left_jacobian(angular, linear))
        turned = rotations.unit_quaternion(rotations.product(q[..., 3:], rotations.exponential(angular)))
        return np.concatenate([position, turned], axis=-1)

    def difference(self, q0: Array, q1: Array) -> Array:
        """Return log(q0^-1 q1) on SE(3), with a rotation vector of length at most pi."""
        back = rotations.conjugate(q0[..., 3:])
        angular = rotations.logarithm(rotations.unit_quaternion(rotations.product(back, q1[..., 3:])))
        moved = rotations.rotate(back, q1[..., :3] - q0[..., :3])
        return np.concatenate([rotations.left_jacobian_inverse(angular, moved), angular], axis=-1)

    def normalize(self, q: Array) -> Array:
        """Return q with its quaternion made unit."""
        return np.concatenate([q[..., :3], rotations.unit_quaternion(q[..., 3:])], axis=-1)

    def random(self, rng: np.random.Generator, lower: Array, upper: Array, size: tuple[int, ...]) -> Array:
        """Return uniform positions within limits and rotations uniform on SO(3)."""
        place = uniform(rng, lower[:3], upper[:3], np.zeros(3, bool), size)
        return np.concatenate([place, rotations.random_unit(rng, size)], axis=-1)
