"""State vectors of other tools: how they write free, ball, continuous and planar joints.

Symbols: R rotation of the joint's child in its parent, p position; v, w linear and angular velocity.

dalembert and Pinocchio write a free joint as q = [p, x y z w], velocity = [v, w], both in the child's axes. Where
another tool takes the parent's (world's) axes, v' = R v, and because power is the same in both, forces turn alike.
The rate of v' = R v brings one more term: a' = R (a + w x v).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dalembert.types import Array


@dataclass(frozen=True)
class Convention:
    """How a tool writes states.

    Attributes
    ----------
    scalar_first
        Whether quaternions are [w x y z] instead of [x y z w].
    rotation_first
        Whether the quaternion of a free joint stands before its position.
    angular_first
        Whether the angular velocity of a free joint stands before the linear one.
    linear_in_world, angular_in_world
        Whether velocities of free joints are in the parent's axes instead of the child's.
    ball_in_world
        The same for ball joints.
    angles
        Whether continuous and planar joints have an angle instead of (cos, sin); a planar joint's linear velocity is
        then in the parent's axes.
    ball
        Whether ball joints have a quaternion at all.
    """

    scalar_first: bool = False
    rotation_first: bool = False
    angular_first: bool = False
    linear_in_world: bool = False
    angular_in_world: bool = False
    ball_in_world: bool = False
    angles: bool = False
    ball: bool = True


CONVENTIONS = {
    "pinocchio": Convention(),
    "mujoco": Convention(scalar_first=True, linear_in_world=True, angles=True),
    "drake": Convention(
        scalar_first=True,
        rotation_first=True,
        angular_first=True,
        linear_in_world=True,
        angular_in_world=True,
        angles=True,
        ball=False,
    ),
    "bullet": Convention(linear_in_world=True, angular_in_world=True, ball_in_world=True, angles=True),
    "isaac": Convention(
        scalar_first=True, linear_in_world=True, angular_in_world=True, ball_in_world=True, angles=True
    ),
}
"""By tool. Pinocchio's is dalembert's own; Drake's is that of its quaternion floating joint."""

SIZES = {"free": (7, 6), "spherical": (4, 3), "continuous": (1, 1), "planar": (3, 3)}
"""Coordinates and velocities of a joint in a convention with angles; the rest is as here."""


WOUND = "wound"
"""A joint that has an angle here and (cos, sin) there, as Pinocchio's continuous joints that others follow."""


def q_to(convention: Convention, kind: str, q: Array) -> Array:
    """Return a joint's coordinates as the tool writes them."""
    if kind == "free":
        turn = np.roll(q[..., 3:], 1, axis=-1) if convention.scalar_first else q[..., 3:]
        pieces = (turn, q[..., :3]) if convention.rotation_first else (q[..., :3], turn)
        return np.concatenate(pieces, axis=-1)
    if kind == WOUND:
        return np.concatenate((np.cos(q), np.sin(q)), axis=-1)
    if kind == "spherical" and convention.scalar_first:
        return np.roll(q, 1, axis=-1)
    if kind in ("continuous", "planar") and convention.angles:
        angle = np.arctan2(q[..., -1:], q[..., -2:-1])
        return np.concatenate((q[..., :-2], angle), axis=-1)
    return q


def q_from(convention: Convention, kind: str, q: Array) -> Array:
    """Return a joint's coordinates from the tool's."""
    if kind == "free":
        turn, place = (q[..., :4], q[..., 4:]) if convention.rotation_first else (q[..., 3:], q[..., :3])
        return np.concatenate((place, np.roll(turn, -1, axis=-1) if convention.scalar_first else turn), axis=-1)
    if kind == WOUND:
        return np.arctan2(q[..., 1:], q[..., :1])
    if kind == "spherical" and convention.scalar_first:
        return np.roll(q, -1, axis=-1)
    if kind in ("continuous", "planar") and convention.angles:
        return np.concatenate((q[..., :-1], np.cos(q[..., -1:]), np.sin(q[..., -1:])), axis=-1)
    return q


def v_turned(
    convention: Convention, kind: str, q: Array, x: Array, turn: Callable[[Array, Array], Array], forth: bool
) -> Array:
    """Return velocities or forces of one joint; `turn` goes between the axes of parent and child."""
    if kind == "free":
        swapped = convention.angular_first and not forth
        linear, angular = (x[..., 3:], x[..., :3]) if swapped else (x[..., :3], x[..., 3:])
        linear = turn(q[..., 3:], linear) if convention.linear_in_world else linear
        angular = turn(q[..., 3:], angular) if convention.angular_in_world else angular
        linear, angular = np.broadcast_arrays(linear, angular)
        pieces = (angular, linear) if convention.angular_first and forth else (linear, angular)
        return np.concatenate(pieces, axis=-1)
    if kind == "spherical" and convention.ball_in_world:
        return turn(q, x)
    if kind == "planar" and convention.angles:
        c, s = q[..., 2], q[..., 3] * (1.0 if forth else -1.0)
        parts = (c * x[..., 0] - s * x[..., 1], s * x[..., 0] + c * x[..., 1], x[..., 2] + 0.0 * c)
        return np.stack(parts, axis=-1)
    return x


def to_world(xyzw: Array, x: Array) -> Array:
    """Return R x for the rotation of a quaternion: x + 2 w (u x x) + 2 u x (u x x)."""
    u, w = xyzw[..., :3], xyzw[..., 3:]
    twice = 2 * np.cross(u, x)
    return x + w * twice + np.cross(u, twice)


def to_body(xyzw: Array, x: Array) -> Array:
    """Return R^T x."""
    return to_world(xyzw * np.array([-1.0, -1.0, -1.0, 1.0]), x)
