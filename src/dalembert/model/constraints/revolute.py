"""A hinge that closes a loop: five rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dalembert.model.constraints.axes import AxisPair, positions, rotations
from dalembert.model.constraints.primitives import aligned, coincident
from dalembert.model.constraints.rows import Rows, stacked

if TYPE_CHECKING:
    from dalembert.model.constraints.kinematics import Kinematics


@dataclass(frozen=True, repr=False)
class Revolute(AxisPair):
    """Two frames share their origin and `axis`; only rotation about it is free.

    The residual of rotation is the angle between the two axes, pi where they are opposite.
    """

    kind = "revolute"

    def row_names(self) -> tuple[str, ...]:
        """Return three positions and two rotations."""
        return (*positions(self.label), *rotations(self.label, self.across()))

    def angular(self) -> tuple[bool, ...]:
        """Return that displacements come first, rotations last."""
        return (False, False, False, True, True)

    def rows(self, kinematics: Kinematics) -> Rows:
        """Return p1 - p2, and the rotations across the axis."""
        one, two = self.frames(kinematics)
        return self.finished(stacked([coincident(one, two), aligned(one, two, *self.directions)]))
