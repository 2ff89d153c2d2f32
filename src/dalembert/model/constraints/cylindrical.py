"""A shaft in a sleeve that closes a loop: four rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dalembert.model.constraints.axes import AxisPair, displacements, rotations
from dalembert.model.constraints.primitives import aligned, along
from dalembert.model.constraints.rows import Rows, stacked

if TYPE_CHECKING:
    from dalembert.model.constraints.kinematics import Kinematics


@dataclass(frozen=True, repr=False)
class Cylindrical(AxisPair):
    """Two frames share the line along `axis`: sliding along it and rotation about it are free."""

    kind = "cylindrical"

    def row_names(self) -> tuple[str, ...]:
        """Return two displacements and two rotations."""
        return (*displacements(self.label, self.across()), *rotations(self.label, self.across()))

    def angular(self) -> tuple[bool, ...]:
        """Return that displacements come first, rotations last."""
        return (False, False, True, True)

    def rows(self, kinematics: Kinematics) -> Rows:
        """Return displacements and rotations across the axis."""
        one, two = self.frames(kinematics)
        axis, e1, e2 = self.directions
        return self.finished(stacked([along(one, two, e1), along(one, two, e2), aligned(one, two, axis, e1, e2)]))
