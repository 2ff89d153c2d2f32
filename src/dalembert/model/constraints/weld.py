"""A frame that stays on another with its axes aligned, or where it is: six rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dalembert.model.constraints.axes import positions, rotations
from dalembert.model.constraints.constraint import Pair
from dalembert.model.constraints.primitives import coincident, twist
from dalembert.model.constraints.rows import Rows, stacked

if TYPE_CHECKING:
    from dalembert.model.constraints.kinematics import Kinematics


@dataclass(frozen=True, repr=False)
class Weld(Pair):
    """Two frames stay one: three rows of position and three of rotation, along and about the axes of `other`.

    Without `other` these are the world's axes. Reactions are force and moment on `frame`. The residual of rotation is
    the angle times its axis: it grows up to half a turn, and is zero only where the frames are aligned.
    """

    kind = "weld"

    @property
    def vectors(self) -> tuple[int, ...]:
        """Position and rotation of a frame that is held where it is."""
        return (0, 3) if self.held else ()

    def row_names(self) -> tuple[str, ...]:
        """Return "foot x", ..., "foot: rotation about z"."""
        return (*positions(self.label), *rotations(self.label))

    def angular(self) -> tuple[bool, ...]:
        """Return that displacements come first, rotations last."""
        return (False, False, False, True, True, True)

    def rows(self, kinematics: Kinematics) -> Rows:
        """Return position and rotation with their derivatives."""
        one, two = self.frames(kinematics)
        if self.held:
            return Rows(None, one.jacobian, one.velocity, one.drift)
        return stacked([coincident(one, two), twist(one, two)])
