"""A slider that closes a loop: five rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dalembert.model.constraints.axes import AxisPair, displacements, rotations
from dalembert.model.constraints.primitives import along, twist
from dalembert.model.constraints.rows import Rows, stacked

if TYPE_CHECKING:
    from dalembert.model.constraints.kinematics import Kinematics


@dataclass(frozen=True, repr=False)
class Prismatic(AxisPair):
    """Two frames keep their axes aligned and move relative to each other along `axis` only."""

    kind = "prismatic"

    def row_names(self) -> tuple[str, ...]:
        """Return two displacements and three rotations."""
        return (*displacements(self.label, self.across()), *rotations(self.label))

    def angular(self) -> tuple[bool, ...]:
        """Return that displacements come first, rotations last."""
        return (False, False, True, True, True)

    def rows(self, kinematics: Kinematics) -> Rows:
        """Return the displacements across the axis, and all rotations."""
        one, two = self.frames(kinematics)
        _, e1, e2 = self.directions
        return self.finished(stacked([along(one, two, e1), along(one, two, e2), twist(one, two)]))
