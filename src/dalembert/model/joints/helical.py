"""A screw: an angle about an axis, and `pitch` metres per radian along it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dalembert.model.joints.axes import about, as_columns, column, scaled
from dalembert.model.joints.kind import Kind, Rows, Scalar, cosine, sine

if TYPE_CHECKING:
    from dalembert.model.parts import Joint


class Helical(Kind):
    """R = R(axis, q), p = pitch q axis, S = [pitch axis; axis]."""

    name = "helical"

    def motion(self, joint: Joint, q: Sequence[Scalar]) -> tuple[Rows, list[Scalar]]:
        """Return R(axis, q) and the displacement pitch q axis."""
        return about(joint.axis, cosine(q[0]), sine(q[0])), scaled(joint.axis, joint.pitch * q[0])

    def subspace(self, joint: Joint, q: Sequence[Scalar]) -> Rows:
        """Return [pitch axis; axis], the same in both frames."""
        return as_columns(column([joint.pitch * x for x in joint.axis], joint.axis))
