"""A slider: one length along a constant axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dalembert.model.joints.axes import as_columns, column, scaled
from dalembert.model.joints.kind import IDENTITY, Kind, Rows, Scalar

if TYPE_CHECKING:
    from dalembert.model.parts import Joint


class Prismatic(Kind):
    """p = axis q, S = [axis; 0]."""

    name = "prismatic"
    angular = (False,)

    def motion(self, joint: Joint, q: Sequence[Scalar]) -> tuple[Rows, list[Scalar]]:
        """Return no rotation and the displacement axis q."""
        return IDENTITY, scaled(joint.axis, q[0])

    def subspace(self, joint: Joint, q: Sequence[Scalar]) -> Rows:
        """Return [axis; 0]."""
        return as_columns(column(joint.axis, (0.0, 0.0, 0.0)))
