"""No motion at all: two bodies that are one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dalembert.model.joints.kind import IDENTITY, Kind, Rows, Scalar

if TYPE_CHECKING:
    from dalembert.model.parts import Joint


class Fixed(Kind):
    """R = 1, p = 0, no coordinates."""

    name = "fixed"
    q_names = ()
    v_names = ()
    angular = ()

    def motion(self, joint: Joint, q: Sequence[Scalar]) -> tuple[Rows, list[Scalar]]:
        """Return no motion."""
        return IDENTITY, [0.0, 0.0, 0.0]

    def subspace(self, joint: Joint, q: Sequence[Scalar]) -> Rows:
        """Return a matrix without columns."""
        return [[] for _ in range(6)]
