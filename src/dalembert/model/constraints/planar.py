"""A plate on a plane that closes a loop: three rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dalembert.model.constraints.axes import AxisPair, displacements, rotations
from dalembert.model.constraints.primitives import aligned, along
from dalembert.model.constraints.rows import Rows, stacked
from dalembert.model.drawing import axis_name

if TYPE_CHECKING:
    from dalembert.model.constraints.kinematics import Kinematics


@dataclass(frozen=True, repr=False)
class Planar(AxisPair):
    """Two frames share the plane with normal `axis`: sliding in it and rotation about the normal are free."""

    kind = "planar"

    def row_names(self) -> tuple[str, ...]:
        """Return the displacement along the normal and two rotations."""
        return (*displacements(self.label, (axis_name(self.axis),)), *rotations(self.label, self.across()))

    def angular(self) -> tuple[bool, ...]:
        """Return that displacements come first, rotations last."""
        return (False, True, True)

    def rows(self, kinematics: Kinematics) -> Rows:
        """Return the displacement along the normal, and the rotations across it."""
        one, two = self.frames(kinematics)
        axis, e1, e2 = self.directions
        return self.finished(stacked([along(one, two, axis), aligned(one, two, axis, e1, e2)]))
