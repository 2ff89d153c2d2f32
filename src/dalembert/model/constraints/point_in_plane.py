"""A point that stays in a plane: one row."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dalembert.model.constraints.algebra import column
from dalembert.model.constraints.constraint import Pair, checked_axis
from dalembert.model.constraints.primitives import along
from dalembert.model.drawing import axis_name

if TYPE_CHECKING:
    from dalembert.model.constraints.kinematics import Kinematics
    from dalembert.model.constraints.rows import Rows


@dataclass(frozen=True, repr=False)
class PointInPlane(Pair):
    """The origin of `frame` stays in the plane through the origin of `other` with the `normal` of its axes.

    Attributes
    ----------
    normal : (3,)
        In the axes of `other`; of a frame that is held where it is, in its own.
    """

    normal: Any = field(default=(0.0, 0.0, 1.0), kw_only=True)

    kind = "point in plane"

    def normalize(self) -> None:
        """Check places and the normal."""
        super().normalize()
        self._set(normal=checked_axis(self.normal, self, "normal"))

    def row_names(self) -> tuple[str, ...]:
        """Return the displacement along the normal."""
        return (f"{self.label}: displacement along {axis_name(self.normal)}",)

    def rows(self, kinematics: Kinematics) -> Rows:
        """Return n . d."""
        one, two = self.frames(kinematics)
        return self.finished(along(one, two, column(self.normal)))
