"""A hinge without limits: its coordinates are the cosine and sine of the angle, so that they never grow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dalembert.model.joints import circle
from dalembert.model.joints.axes import about, as_columns, column
from dalembert.model.joints.kind import Kind, Rows, Scalar

if TYPE_CHECKING:
    from dalembert.model.parts import Joint

Array = np.ndarray


class Continuous(Kind):
    """q = (cos, sin) of the angle, v its rate; R = R(axis, angle), S = [0; axis]."""

    name = "continuous"
    q_names = ("cos", "sin")
    unit = slice(0, 2)

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
        return circle.turn(q, v[..., 0])

    def difference(self, q0: Array, q1: Array) -> Array:
        """Return the angle from q0 to q1, in (-pi, pi]."""
        return circle.between(q0, q1)[..., None]

    def normalize(self, q: Array) -> Array:
        """Return q / |q|."""
        return circle.unit(q)

    def random(self, rng: np.random.Generator, lower: Array, upper: Array, size: tuple[int, ...]) -> Array:
        """Return angles that are uniform on the circle, whatever the limits say."""
        return circle.at(2 * np.pi * rng.random(size))
