"""A hinge: one angle about a constant axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dalembert.model.joints.axes import about, as_columns, column
from dalembert.model.joints.kind import Kind, Rows, Scalar, cosine, sine

if TYPE_CHECKING:
    from dalembert.model.parts import Joint


class Revolute(Kind):
    """R = R(axis, q), S = [0; axis]."""

    name = "revolute"

    def motion(self, joint: Joint, q: Sequence[Scalar]) -> tuple[Rows, list[Scalar]]:
        """Return R(axis, q) and no displacement."""
        return about(joint.axis, cosine(q[0]), sine(q[0])), [0.0, 0.0, 0.0]

    def subspace(self, joint: Joint, q: Sequence[Scalar]) -> Rows:
        """Return [0; axis], the same in both frames."""
        return as_columns(column((0.0, 0.0, 0.0), joint.axis))
