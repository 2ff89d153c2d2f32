"""A point that stays on a line: two rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dalembert.model.constraints.axes import AxisPair, displacements
from dalembert.model.constraints.primitives import along
from dalembert.model.constraints.rows import Rows, stacked

if TYPE_CHECKING:
    from dalembert.model.constraints.kinematics import Kinematics


@dataclass(frozen=True, repr=False)
class PointOnLine(AxisPair):
    """The origin of `frame` stays on the line through the origin of `other` along its `axis`."""

    kind = "point on line"

    def row_names(self) -> tuple[str, ...]:
        """Return two displacements across the line."""
        return displacements(self.label, self.across())

    def rows(self, kinematics: Kinematics) -> Rows:
        """Return the displacements across the line."""
        one, two = self.frames(kinematics)
        _, e1, e2 = self.directions
        return self.finished(stacked([along(one, two, e1), along(one, two, e2)]))
