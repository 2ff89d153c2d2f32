"""A pair of frames with a free axis, and how rows about and along its other directions are called."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dalembert.model.constraints.algebra import column
from dalembert.model.constraints.constraint import Pair, checked_axis
from dalembert.model.drawing import axis_name
from dalembert.model.joints.axes import plane

Array = np.ndarray

WORLD = ("x", "y", "z")


@dataclass(frozen=True, repr=False)
class AxisPair(Pair):
    """A pair with an axis, given in both frames alike.

    Attributes
    ----------
    axis : (3,)
        Of the free motion, in the axes of both frames (which coincide up to that motion); made unit.
    """

    axis: Any = field(default=(1.0, 0.0, 0.0), kw_only=True)

    def normalize(self) -> None:
        """Check places and the axis."""
        super().normalize()
        self._set(axis=checked_axis(self.axis, self))

    @property
    def directions(self) -> tuple[Array, Array, Array]:
        """The axis and two directions e1, e2 across it, as columns (3, 1); e1, e2, axis are right-handed."""
        e1, e2 = plane(self.axis)
        return column(self.axis), column(e1), column(e2)

    def across(self) -> tuple[str, str]:
        """Return the names of e1 and e2."""
        e1, e2 = plane(self.axis)
        return axis_name(e1), axis_name(e2)


def positions(label: str) -> tuple[str, ...]:
    """Return names of three rows in world axes: "foot x"."""
    return tuple(f"{label} {letter}" for letter in WORLD)


def rotations(label: str, axes: Any = WORLD) -> tuple[str, ...]:
    """Return names of rows that stop rotations: "knee: rotation about y"."""
    return tuple(f"{label}: rotation about {axis}" for axis in axes)


def displacements(label: str, axes: Any) -> tuple[str, ...]:
    """Return names of rows that stop displacements: "slider: displacement along y"."""
    return tuple(f"{label}: displacement along {axis}" for axis in axes)
