"""A plate that slides and turns on a plane: q = (x, y, cos, sin), v = (vx, vy, wz) in the child's joint frame.

Symbols: n the plane's normal, e1, e2 its directions (`axes.plane`); for n = z they are x, y.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dalembert.model.joints import circle
from dalembert.model.joints.axes import about, as_columns, column, plane
from dalembert.model.joints.kind import Kind, Rows, Scalar, uniform

if TYPE_CHECKING:
    from dalembert.model.parts import Joint

Array = np.ndarray

SMALL = 1e-2
"""Angles below this go through series: their first omitted term is then below rounding."""


class Planar(Kind):
    """R = R(n, angle), p = x e1 + y e2, S = [e1 e2 0; 0 0 n]."""

    name = "planar"
    q_names = ("x", "y", "cos", "sin")
    v_names = ("x", "y", "wz")
    angular = (False, False, True)
    unit = slice(2, 4)

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
        return np.concatenate([np.stack([x, y], axis=-1), circle.turn(q[..., 2:], angle)], axis=-1)

    def difference(self, q0: Array, q1: Array) -> Array:
        """Return log(q0^-1 q1) on SE(2), with an angle in (-pi, pi]."""
        angle = circle.between(q0[..., 2:], q1[..., 2:])
        dx, dy = q1[..., 0] - q0[..., 0], q1[..., 1] - q0[..., 1]
        c, s = q0[..., 2], q0[..., 3]
        x, y = c * dx + s * dy, c * dy - s * dx
        half = angle / 2
        safe = np.where(np.abs(half) > SMALL, half, 1.0)
        cot = np.where(np.abs(half) > SMALL, safe * np.cos(safe) / np.sin(safe), 1 - half**2 / 3 - half**4 / 45)
        return np.stack([cot * x + half * y, cot * y - half * x, angle], axis=-1)

    def normalize(self, q: Array) -> Array:
        """Return q with (cos, sin) made unit."""
        return np.concatenate([q[..., :2], circle.unit(q[..., 2:])], axis=-1)

    def random(self, rng: np.random.Generator, lower: Array, upper: Array, size: tuple[int, ...]) -> Array:
        """Return uniform positions within limits and uniform directions."""
        place = uniform(rng, lower[:2], upper[:2], np.zeros(2, bool), size)
        return np.concatenate([place, circle.at(2 * np.pi * rng.random(size))], axis=-1)
