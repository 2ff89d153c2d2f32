"""A point that stays on another, or where it is: three rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dalembert.model.constraints.axes import positions
from dalembert.model.constraints.constraint import Pair
from dalembert.model.constraints.primitives import coincident
from dalembert.model.constraints.rows import Rows

if TYPE_CHECKING:
    from dalembert.model.constraints.kinematics import Kinematics


@dataclass(frozen=True, repr=False)
class Point(Pair):
    """The origin of a frame stays on that of another, or on the ground: three rows in the axes of `other`.

    Without `other` these are the world's axes.

    `da.Point("FL_foot")` holds a foot where it is, a contact that sticks; `da.Point("hand", "handle")` is a ball
    joint that closes a loop. Its reactions are the components of the force on `frame`, in N.
    """

    kind = "point"

    @property
    def vectors(self) -> tuple[int, ...]:
        """The rows of a frame that is held where it is."""
        return (0,) if self.held else ()

    def row_names(self) -> tuple[str, ...]:
        """Return "foot x", "foot y", "foot z"."""
        return positions(self.label)

    def rows(self, kinematics: Kinematics) -> Rows:
        """Return R2^T (p1 - p2) with its derivatives; of a frame that is held, the velocity in world axes."""
        one, two = self.frames(kinematics)
        return Rows(None, one.Jv, one.v, one.a) if self.held else coincident(one, two)
