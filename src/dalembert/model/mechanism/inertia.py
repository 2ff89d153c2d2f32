"""Mass, centre of mass and rotational inertia of a rigid body.

Symbols (Featherstone 2008, sec. 2.13): m mass, c centre of mass, I_C rotational inertia about c, I_O about the origin,

    I_O = I_C + m (c.c 1 - c c^T).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.checks import floats, one_number
from dalembert.errors import ModelError, ShapeError
from dalembert.model.limits import NO_LEVER, SKEWED_INERTIA, TRIANGLE
from dalembert.model.mechanism.placement import EYE, Placement
from dalembert.types import Array

if TYPE_CHECKING:
    from jaxtyping import Float


INERTIAL_NUMBERS = ("m", "mcx", "mcy", "mcz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")
"""The ten numbers of a body that forces are linear in: mass, first moment, moments I_O about its frame's origin."""

MOMENTS = ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2))
"""Where the last six stand in I_O: the order of Pinocchio's `toDynamicParameters`."""


@dataclass(frozen=True, eq=False)
class Inertia:
    """Inertia of one body in its own frame; zero mass and zero moments are legal.

    Attributes
    ----------
    mass
        m in kg.
    center : (3,)
        c, centre of mass, metres.
    rotational : (3, 3)
        I_C about the centre of mass, axes of the body's frame, kg m^2; symmetric.
    """

    mass: float = 0.0
    center: Array = field(default_factory=lambda: np.zeros(3))
    rotational: Array = field(default_factory=lambda: np.zeros((3, 3)))

    def __post_init__(self) -> None:
        mass = one_number(self.mass, "mass")
        center = np.array(floats(self.center, "center"))
        rotational = np.array(floats(self.rotational, "rotational"))
        if rotational.shape == (3,):
            rotational = np.diag(rotational)
        if center.shape != (3,) or rotational.shape != (3, 3):
            raise ShapeError(
                f"an inertia has a (3,) center and a (3, 3) rotational part, not {center.shape}, {rotational.shape}"
            )
        if not math.isfinite(mass + center.sum() + rotational.sum()):
            raise ModelError(
                f"an inertia has numbers that are not finite: mass {mass}, {center}, {rotational.tolist()}"
            )
        if (rotational != rotational.T).any():
            if np.abs(rotational - rotational.T).max() > SKEWED_INERTIA * np.abs(rotational).max():
                raise ModelError(f"a rotational inertia must be symmetric: {rotational.tolist()}")
            rotational = (rotational + rotational.T) / 2
        for array in (center, rotational):
            array.setflags(write=False)
        object.__setattr__(self, "mass", mass)
        object.__setattr__(self, "center", center)
        object.__setattr__(self, "rotational", rotational)

    def about_origin(self) -> Float[Array, "3 3"]:
        """Return I_O, the rotational inertia about the origin of the frame."""
        c = self.center
        return self.rotational + self.mass * (c @ c * np.eye(3) - np.outer(c, c))

    def numbers(self) -> Float[Array, " 10"]:
        """Return the ten numbers that forces are linear in, in the order of `INERTIAL_NUMBERS`: m, m c, I_O."""
        rotational = self.about_origin()
        return np.array([self.mass, *(self.mass * self.center), *(rotational[i, j] for i, j in MOMENTS)])

    @classmethod
    def of_numbers(cls, numbers: Any) -> Inertia:
        """Return the inertia of ten numbers: the inverse of `numbers`. A body without mass has its centre at zero."""
        m, *rest = (float(x) for x in numbers)
        center = np.array(rest[:3]) / m if m else np.zeros(3)
        rotational = np.zeros((3, 3))
        for (i, j), value in zip(MOMENTS, rest[3:], strict=True):
            rotational[i, j] = rotational[j, i] = value
        return cls(m, center, rotational - m * (center @ center * np.eye(3) - np.outer(center, center)))

    def matrix(self) -> Float[Array, "6 6"]:
        """Return the spatial inertia at the origin, order [linear, angular]."""
        cx = _skew(self.center)
        m = self.mass
        return np.block([[m * np.eye(3), -m * cx], [m * cx, self.about_origin()]])

    def moved(self, placement: Placement) -> Inertia:
        """Return the same body's inertia in frame A, for `placement` = X_AB and this one given in B."""
        R = placement.rotation
        if R is EYE:
            return Inertia(self.mass, self.center + placement.position, self.rotational)
        return Inertia(self.mass, R @ self.center + placement.position, R @ self.rotational @ R.T)

    def __add__(self, other: Inertia) -> Inertia:
        """Return the inertia of two bodies welded together, both given in one frame."""
        mass = self.mass + other.mass
        if mass == 0:
            return Inertia(0.0, np.zeros(3), self.rotational + other.rotational)
        center = (self.mass * self.center + other.mass * other.center) / mass
        return Inertia(mass, center, self._about(center) + other._about(center))

    def _about(self, point: Array) -> Array:
        """Return the rotational inertia about a point, by Steiner's rule."""
        d = self.center - point
        return self.rotational + self.mass * (d @ d * np.eye(3) - np.outer(d, d))

    def is_zero(self) -> bool:
        """Say whether the body has neither mass nor moments."""
        return self.mass == 0 and not self.rotational.any()

    def problem(self) -> str | None:
        """Return in words why no body can have this inertia; None where one can."""
        if self.mass < 0:
            return f"the mass is negative ({self.mass:g} kg)"
        (a, ab, ac), (_, b, bc), (_, _, c) = self.rotational.tolist()
        low, middle, high = np.linalg.eigvalsh(self.rotational) if ab or ac or bc else sorted((a, b, c))
        scale = max(abs(low), abs(high))
        if scale <= self.mass * NO_LEVER**2:
            return None
        if low < -TRIANGLE * scale:
            return f"the rotational inertia has a negative principal moment ({low:g} kg m^2)"
        if low + middle < high - TRIANGLE * scale:
            words = (
                f"the principal moments {low:g}, {middle:g}, {high:g} kg m^2 break the triangle inequality: "
                f"the two smaller must sum to at least the largest"
            )
            flat = low == middle == 0.0  # what one writes down who thinks of a plane
            return words + (f"; a motion in the plane is the same with {high / 2:g} for each of them" if flat else "")
        return None

    def is_negative(self) -> bool:
        """Say whether the mass or a principal moment is negative: a motion of this body may have negative energy."""
        moments = np.linalg.eigvalsh(self.rotational)
        return self.mass < 0 or bool(moments[0] < -TRIANGLE * np.abs(moments).max())

    def consequence(self) -> str:
        """Return in words what an inertia that no body can have means for the mass matrix."""
        if self.is_negative():
            return "the mass matrix is not positive definite where this inertia outweighs the others"
        return "it adds no negative eigenvalue to the mass matrix, but its moments are those of no distribution of mass"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Inertia):
            return NotImplemented
        same = np.array_equal(self.center, other.center) and np.array_equal(self.rotational, other.rotational)
        return same and self.mass == other.mass

    def __hash__(self) -> int:
        return hash((self.mass, self.center.tobytes(), self.rotational.tobytes()))


def _skew(x: Any) -> Array:
    return np.array([[0, -x[2], x[1]], [x[2], 0, -x[0]], [-x[1], x[0], 0]])
