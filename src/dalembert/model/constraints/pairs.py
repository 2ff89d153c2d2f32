"""Constraints between two frames: point, weld, revolute, prismatic, cylindrical, universal and others."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.errors import ModelError
from dalembert.model.constraints.constraint import Pair, checked_axis, checked_number
from dalembert.model.constraints.primitives import aligned, along, coincident, perpendicular, twist
from dalembert.model.constraints.row_algebra import Rows, column, dot, stacked
from dalembert.model.joints.rotations import plane
from dalembert.model.limits import ONE_AXIS
from dalembert.model.mechanism.placement import IDENTITY
from dalembert.model.mechanism.tree_text import axis_name
from dalembert.types import Array

if TYPE_CHECKING:
    from dalembert.model.constraints.primitives import Kinematics

# ----------------------------------------------------------------------------------------------------------------------
# A pair of frames with a free axis, and how rows about and along its other directions are called.


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


# ----------------------------------------------------------------------------------------------------------------------
# A point that stays on another, or where it is: three rows.


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
        first, second = self.frames(kinematics)
        return Rows(None, first.Jv, first.v, first.a) if self.held else coincident(first, second)


# ----------------------------------------------------------------------------------------------------------------------
# A frame that stays on another with its axes aligned, or where it is: six rows.


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
        first, second = self.frames(kinematics)
        if self.held:
            return Rows(None, first.jacobian, first.velocity, first.drift)
        return stacked([coincident(first, second), twist(first, second)])


# ----------------------------------------------------------------------------------------------------------------------
# A hinge that closes a loop: five rows.


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
        first, second = self.frames(kinematics)
        return self.finished(stacked([coincident(first, second), aligned(first, second, *self.directions)]))


# ----------------------------------------------------------------------------------------------------------------------
# A slider that closes a loop: five rows.


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
        first, second = self.frames(kinematics)
        _, e1, e2 = self.directions
        return self.finished(stacked([along(first, second, e1), along(first, second, e2), twist(first, second)]))


# ----------------------------------------------------------------------------------------------------------------------
# A shaft in a sleeve that closes a loop: four rows.


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
        first, second = self.frames(kinematics)
        axis, e1, e2 = self.directions
        return self.finished(
            stacked([along(first, second, e1), along(first, second, e2), aligned(first, second, axis, e1, e2)])
        )


# ----------------------------------------------------------------------------------------------------------------------
# A cardan joint that closes a loop: four rows.


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
        if np.linalg.norm(np.cross(self.axis, self.axis2)) < ONE_AXIS:
            raise ModelError(f"the two axes of constraint {self.label!r} are parallel: {self.axis}")

    def row_names(self) -> tuple[str, ...]:
        """Return three positions and the angle between the axes."""
        return (*positions(self.label), f"{self.label}: angle between axes")

    def angular(self) -> tuple[bool, ...]:
        """Return that displacements come first, rotations last."""
        return (False, False, False, True)

    def rows(self, kinematics: Kinematics) -> Rows:
        """Return p1 - p2, and a1 . a2 less its value where the frames are aligned."""
        first, second = self.frames(kinematics)
        value = float(np.dot(self.axis, self.axis2))
        angle = perpendicular(first, column(self.axis), second, column(self.axis2), value)
        return self.finished(stacked([coincident(first, second), angle]))


# ----------------------------------------------------------------------------------------------------------------------
# A plate on a plane that closes a loop: three rows.


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
        first, second = self.frames(kinematics)
        axis, e1, e2 = self.directions
        return self.finished(stacked([along(first, second, axis), aligned(first, second, axis, e1, e2)]))


# ----------------------------------------------------------------------------------------------------------------------
# A point that stays on a line: two rows.


@dataclass(frozen=True, repr=False)
class PointOnLine(AxisPair):
    """The origin of `frame` stays on the line through the origin of `other` along its `axis`."""

    kind = "point on line"

    def row_names(self) -> tuple[str, ...]:
        """Return two displacements across the line."""
        return displacements(self.label, self.across())

    def rows(self, kinematics: Kinematics) -> Rows:
        """Return the displacements across the line."""
        first, second = self.frames(kinematics)
        _, e1, e2 = self.directions
        return self.finished(stacked([along(first, second, e1), along(first, second, e2)]))


# ----------------------------------------------------------------------------------------------------------------------
# A point that stays in a plane: one row.


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
        first, second = self.frames(kinematics)
        return self.finished(along(first, second, column(self.normal)))


# ----------------------------------------------------------------------------------------------------------------------
# Two points that keep their distance, as by a rod without mass: one row.


@dataclass(frozen=True, repr=False)
class Distance(Pair):
    """The origins of two frames are `length` apart: phi = (d . d - length^2) / (2 length), in metres.

    The reaction is the force in the rod in N where the length is right, positive where it pushes.

    Attributes
    ----------
    length
        Metres, more than zero; for zero use `Point`.
    """

    length: Any = field(kw_only=True)

    kind = "distance"

    def normalize(self) -> None:
        """Check places and the length; without `other` and `at` the other end is the ground's origin."""
        super().normalize()
        self._set(length=checked_number(self.length, self, "length"), at=self.at or IDENTITY)
        if self.length <= 0:
            raise ModelError(
                f"the length of constraint {self.label!r} must be more than zero, not {self.length:g}: "
                "two points that coincide are a Point, three rows",
                subject="length",
            )

    def row_names(self) -> tuple[str, ...]:
        """Return one name."""
        return (f"{self.label}: distance",)

    def rows(self, kinematics: Kinematics) -> Rows:
        """Return the row; phi_dot = d . (v1 - v2) / length."""
        first, second = self.frames(kinematics)
        d, v, L = first.position - second.position, first.v - second.v, self.length
        return Rows(
            (dot(d, d) - L * L) / (2 * L),
            d.T @ (first.Jv - second.Jv) / L,
            dot(d, v) / L,
            (dot(d, first.a - second.a) + dot(v, v)) / L,
        )
