"""A cardan joint that closes a loop: four rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.errors import ModelError
from dalembert.model.constraints.algebra import column
from dalembert.model.constraints.axes import AxisPair, positions
from dalembert.model.constraints.constraint import checked_axis
from dalembert.model.constraints.primitives import coincident, perpendicular
from dalembert.model.constraints.rows import Rows, stacked

if TYPE_CHECKING:
    from dalembert.model.constraints.kinematics import Kinematics

PARALLEL = 1e-6
"""Sine of the angle below which the two axes count as one."""


@dataclass(frozen=True, repr=False)
class Universal(AxisPair):
    """Two frames share their origin; `axis` of the first and `axis2` of the other keep their angle.

    Attributes
    ----------
    axis2 : (3,)
        In the axes of `other`.
    """

    axis2: Any = field(default=(0.0, 1.0, 0.0), kw_only=True)

    kind = "universal"

    def normalize(self) -> None:
        """Check both axes."""
        super().normalize()
        self._set(axis2=checked_axis(self.axis2, self, "second axis"))
        if np.linalg.norm(np.cross(self.axis, self.axis2)) < PARALLEL:
            raise ModelError(f"the two axes of constraint {self.label!r} are parallel: {self.axis}")

    def row_names(self) -> tuple[str, ...]:
        """Return three positions and the angle between the axes."""
        return (*positions(self.label), f"{self.label}: angle between axes")

    def angular(self) -> tuple[bool, ...]:
        """Return that displacements come first, rotations last."""
        return (False, False, False, True)

    def rows(self, kinematics: Kinematics) -> Rows:
        """Return p1 - p2, and a1 . a2 less its value where the frames are aligned."""
        one, two = self.frames(kinematics)
        value = float(np.dot(self.axis, self.axis2))
        angle = perpendicular(one, column(self.axis), two, column(self.axis2), value)
        return self.finished(stacked([coincident(one, two), angle]))
