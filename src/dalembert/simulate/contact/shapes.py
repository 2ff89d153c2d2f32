"""Shapes that touch, and the single pairs they make."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.checks import floats, is_number
from dalembert.errors import ModelError, ShapeError
from dalembert.names import checked_name
from dalembert.simulate.contact.surface_loops import REACH, SLOTS, nearest_places
from dalembert.types import Array

if TYPE_CHECKING:
    from dalembert.model.mechanism.mechanism import Mechanism

# ----------------------------------------------------------------------------------------------------------------------
# Shapes that touch: spheres (points are spheres without radius), boxes, planes, heightfields, joint limits.


IMPACTS = ("newton", "poisson")
"""Laws of restitution: of velocities, or of impulses."""


def _triple(values: Any, what: str) -> tuple[float, float, float]:
    array = floats(values, what)
    if array.shape != (3,) or not np.isfinite(array).all():
        raise ShapeError(f"{what} must be three finite numbers; got {values!r}")
    return (float(array[0]), float(array[1]), float(array[2]))


@dataclass(frozen=True)
class Sphere:
    """A sphere fixed to a frame; a point with radius 0.

    Attributes
    ----------
    frame
        A frame, body or joint of the mechanism.
    radius
        Metres.
    at
        Centre in the frame's axes, metres.
    """

    frame: str
    radius: float = 0.0
    at: tuple[float, float, float] = (0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "at", _triple(self.at, f"the centre of a sphere on {self.frame!r}"))
        if not (is_number(self.radius) and np.isfinite(self.radius) and self.radius >= 0.0):
            raise ModelError(f"radius={self.radius!r} of a sphere on {self.frame!r} must be a finite number >= 0")


@dataclass(frozen=True)
class Box:
    """A box fixed to a frame; its eight corners touch.

    Attributes
    ----------
    frame, at
        As of a sphere; `at` is the centre.
    size
        Lengths of the edges along the frame's axes, metres; a length of zero makes a plate or a rod of it.
    """

    frame: str
    size: tuple[float, float, float]
    at: tuple[float, float, float] = (0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "at", _triple(self.at, f"the centre of a box on {self.frame!r}"))
        object.__setattr__(self, "size", _triple(self.size, f"the size of a box on {self.frame!r}"))
        if min(self.size) < 0.0:
            raise ModelError(f"size={self.size} of a box on {self.frame!r} must not be negative")

    def corners(self) -> list[tuple[float, float, float]]:
        """Return the corners that differ, in the frame's axes."""
        signs = [(-0.5, 0.5) if length > 0.0 else (0.0,) for length in self.size]
        return [
            _triple(np.array(self.at) + np.array([x, y, z]) * self.size, "corner")
            for x in signs[0] for y in signs[1] for z in signs[2]
        ]  # fmt: skip


@dataclass(frozen=True)
class Plane:
    """The ground: points x with normal . x = offset; free space is on the side of the normal."""

    normal: tuple[float, float, float] = (0.0, 0.0, 1.0)
    offset: float = 0.0

    def __post_init__(self) -> None:
        n = np.array(_triple(self.normal, "the normal of a plane"))
        if not np.linalg.norm(n) > 0.0:
            raise ModelError("the normal of a plane must not be zero")
        if not (is_number(self.offset) and np.isfinite(self.offset)):
            raise ModelError(f"offset={self.offset!r} of a plane must be a finite number")
        object.__setattr__(self, "normal", _triple(n / np.linalg.norm(n), "normal"))


@dataclass(frozen=True, eq=False)
class Heightfield:
    """A ground of heights z[i, j] at x[i], y[j], bilinear between them, level beyond its edge.

    Gaps are distances to its surface (`hybrid`: of points, heights above it). Only the corners of a box touch; a run
    says where a ridge enters its faces.
    """

    x: Any
    y: Any
    z: Any

    def __post_init__(self) -> None:
        x, y, z = (floats(values, name) for values, name in ((self.x, "x"), (self.y, "y"), (self.z, "z")))
        if x.ndim != 1 or y.ndim != 1 or z.shape != (x.size, y.size) or min(x.size, y.size) < 2:
            raise ShapeError(f"heights must be (len(x), len(y)) with at least two each; they are {z.shape}")
        if not (np.isfinite(z).all() and (np.diff(x) > 0).all() and (np.diff(y) > 0).all()):
            raise ModelError("a heightfield needs finite heights at increasing x and y")
        for name, value in (("x", x), ("y", y), ("z", z)):
            object.__setattr__(self, name, value)

    def at(self, place: Array) -> tuple[float, Array]:
        """Return height and unit normal below a place (3,)."""
        i, u, dx = _cell(self.x, place[0])
        j, w, dy = _cell(self.y, place[1])
        z = self.z[i : i + 2, j : j + 2]
        height = (1 - u) * ((1 - w) * z[0, 0] + w * z[0, 1]) + u * ((1 - w) * z[1, 0] + w * z[1, 1])
        slope_x = ((1 - w) * (z[1, 0] - z[0, 0]) + w * (z[1, 1] - z[0, 1])) * dx
        slope_y = ((1 - u) * (z[0, 1] - z[0, 0]) + u * (z[1, 1] - z[1, 0])) * dy
        n = np.array([-slope_x, -slope_y, 1.0])
        return float(height), n / np.linalg.norm(n)

    def below(self, centre: Array, radius: float) -> tuple[float, Array, Array]:
        """Return gap and unit normal of a sphere, and the place (3,) on the surface where it touches, or would.

        Of a point that is the place straight below; of a sphere the nearest place of all cells around
        (`surface_loops`): the gap is at most its radius.
        """
        height, n = self.at(centre)
        if radius > 0.0:
            distance, normals, places = self.nearest(centre, radius)
            return float(distance[0]) - radius, normals[0], places[0]
        foot = np.array([centre[0], centre[1], height])
        return float(n @ (centre - foot)), n, foot

    def nearest(self, centre: Array, radius: float) -> tuple[Array, Array, Array]:
        """Return distances (SLOTS,), normals, places (SLOTS, 3) at which a sphere touches, or would, nearest first."""
        distance, normals, places = np.zeros(SLOTS), np.zeros((SLOTS, 3)), np.zeros((SLOTS, 3))
        under = bool(centre[2] < self.at(centre)[0])
        nearest_places(self.x, self.y, self.z, centre, self.reach(radius), under, distance, normals, places)
        return distance, normals, places

    def reach(self, radius: float) -> float:
        """Return within which distance of a sphere's centre, or a point, the surface is looked at, metres."""
        return REACH * (radius or float(min(np.median(np.diff(self.x)), np.median(np.diff(self.y)))))

    def stored(self, heights: list[Array]) -> tuple[int, ...]:
        """Append coordinates and heights to a list of arrays; return where they begin in it and their sizes."""
        first = sum(values.size for values in heights)
        heights += [np.asarray(values, float).ravel() for values in (self.x, self.y, self.z)]
        return first, first + self.x.size, first + self.x.size + self.y.size, self.x.size, self.y.size

    def steepness(self, radius: float) -> float:
        """Return how fast a gap may change, over the speed: the distance of a sphere by 1, heights by the slopes."""
        if radius > 0.0:
            return 1.0
        slopes = [np.abs(np.diff(self.z, axis=k) / np.diff(grid).reshape((-1, 1) if k == 0 else (1, -1))).max()
                  for k, grid in enumerate((self.x, self.y))]  # fmt: skip
        return float(np.sqrt(1.0 + slopes[0] ** 2 + slopes[1] ** 2))

    def most_twist(self) -> float:
        """Return the largest mixed second derivative of the height of all cells, 1/m."""
        corners = np.diff(np.diff(self.z, axis=0), axis=1)
        return float(np.abs(corners / np.outer(np.diff(self.x), np.diff(self.y))).max())

    def room(self, place: Array) -> float:
        """Return how far a place is from the borders of its cell, seen from above; beyond the edge, from the edge."""
        return min(float(np.abs(grid - x).min()) for grid, x in ((self.x, place[0]), (self.y, place[1])))

    def twist(self, place: Array) -> float:
        """Return the mixed second derivative of the height below a place, 1/m: that of its cell."""
        (i, _, dx), (j, _, dy) = _cell(self.x, place[0]), _cell(self.y, place[1])
        z = self.z[i : i + 2, j : j + 2]
        return float((z[1, 1] - z[1, 0] - z[0, 1] + z[0, 0]) * dx * dy)


def _cell(grid: Array, x: float) -> tuple[int, float, float]:
    """Return cell, place in it, and 1 / its width (0 beyond the edge)."""
    i = int(np.clip(np.searchsorted(grid, x, side="right") - 1, 0, grid.size - 2))
    width = grid[i + 1] - grid[i]
    u = (x - grid[i]) / width
    return i, float(np.clip(u, 0.0, 1.0)), float(1.0 / width if 0.0 <= u <= 1.0 else 0.0)


@dataclass(frozen=True)
class Contact:
    """Two things that may touch.

    Attributes
    ----------
    shape
        A `Sphere` or `Box`.
    other
        A `Plane`, a `Heightfield`, or another `Sphere` (then both are spheres).
    friction
        Coulomb's coefficient.
    restitution
        Between 0 (plastic) and 1 (elastic).
    impact
        "newton": normal velocities are reversed by `restitution`; "poisson": impulses of expansion are that part of
        those of compression.
    name
        By default made of the frames.
    """

    shape: Any
    other: Any = field(default_factory=Plane)
    friction: float = 0.0
    restitution: float = 0.0
    impact: str = "newton"
    name: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.shape, Sphere | Box):
            raise ModelError(
                f"a contact is of a shape on a frame, da.Sphere(frame, radius) or da.Box(frame, size), not of "
                f"{type(self.shape).__name__}"
            )
        if not isinstance(self.other, Plane | Heightfield | Sphere):
            raise ModelError(f"a contact is with a Plane, a Heightfield or a Sphere, not {type(self.other).__name__}")
        if isinstance(self.other, Sphere) and not isinstance(self.shape, Sphere):
            raise ModelError("a box touches planes and heightfields; put spheres on its corners for other bodies")
        if not (is_number(self.friction) and np.isfinite(self.friction) and self.friction >= 0.0):
            raise ModelError(f"friction={self.friction!r} must be a finite number >= 0", subject="friction")
        if not (is_number(self.restitution) and 0.0 <= self.restitution <= 1.0):
            raise ModelError(f"restitution={self.restitution!r} must be between 0 and 1", subject="restitution")
        if self.impact not in IMPACTS:
            raise ModelError(f"impact={self.impact!r} is not one of {', '.join(map(repr, IMPACTS))}")
        if not self.name:
            other = self.other.frame if isinstance(self.other, Sphere) else "ground"
            object.__setattr__(self, "name", f"{self.shape.frame}-{other}")


@dataclass(frozen=True)
class JointLimits:
    """Every joint with limits, or those that are named, stops at them; without friction."""

    joints: tuple[str, ...] = ()
    restitution: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "joints", tuple(self.joints))
        if not (is_number(self.restitution) and 0.0 <= self.restitution <= 1.0):
            raise ModelError(f"restitution={self.restitution!r} must be between 0 and 1", subject="restitution")


CONTACT_CLASSES = (Sphere, Box, Plane, Heightfield, Contact, JointLimits)
"""What a file may hold."""


# ----------------------------------------------------------------------------------------------------------------------
# Contacts of a mechanism as single pairs: a sphere with the ground, two spheres, or a joint with its limit.


@dataclass(frozen=True, eq=False)
class ContactPair:
    """One thing that may touch one other: what a row of gaps belongs to.

    For a joint's limit `ball` is None, `coordinate` its places in q and v, and the gap sign (q - bound). `slot` counts
    the places at which one sphere touches one heightfield, -1 where there is one alone.
    """

    name: str
    ball: Sphere | None
    ground: Plane | Heightfield | None
    other: Sphere | None
    friction: float
    restitution: float
    impact: str
    coordinate: tuple[int, int] = (0, 0)
    sign: float = 0.0
    bound: float = 0.0
    slot: int = -1


def pairs_of(mechanism: Mechanism, contacts: Any, slots: int = 0) -> tuple[ContactPair, ...]:
    """Return the pairs of a list of contacts; names are checked and made unique.

    With `slots` a sphere has that many pairs with a heightfield, for places that it touches at once: a floor, a wall.
    """
    several = contacts if isinstance(contacts, Sequence) else [contacts]
    pairs: list[ContactPair] = []
    for contact in several:
        if isinstance(contact, Contact):
            pairs += _of_contact(mechanism, contact, slots)
        elif isinstance(contact, JointLimits):
            pairs += _of_limits(mechanism, contact)
        else:
            raise ModelError(f"{contact!r} is no contact; Contact(Sphere(frame), Plane()), JointLimits(), ... are")
    names = [checked_name(pair.name, "contact") for pair in pairs]
    for name in names:
        if names.count(name) > 1:
            raise ModelError(f"two contacts are called {name!r}: give one of them another name", subject=name)
    if not pairs:
        raise ModelError("contacts= holds nothing that could touch")
    return tuple(pairs)


def _of_contact(mechanism: Mechanism, c: Contact, slots: int) -> list[ContactPair]:
    mechanism.frame(c.shape.frame)
    other = c.other if isinstance(c.other, Sphere) else None
    if other is not None:
        mechanism.frame(other.frame)
    ground: Any = None if other is not None else c.other
    common = (ground, other, c.friction, c.restitution, c.impact)
    if isinstance(c.shape, Box):
        corners = c.shape.corners()
        balls = [(f"{c.name} {k}", Sphere(c.shape.frame, 0.0, at)) for k, at in enumerate(corners)]
    else:
        balls = [(c.name, c.shape)]
    if not (slots and isinstance(ground, Heightfield)):
        return [ContactPair(name, ball, *common) for name, ball in balls]
    return [
        ContactPair(f"{name} ({k + 1})" if k else name, ball, *common, slot=k)
        for name, ball in balls
        for k in range(slots)
    ]


def _of_limits(mechanism: Mechanism, limits: JointLimits) -> list[ContactPair]:
    m = mechanism.manifold
    chosen = limits.joints or [joint.name for joint in mechanism.joints]
    pairs: list[ContactPair] = []
    for name in chosen:
        i = mechanism.joint_index(name)
        iq, iv = int(m.q_start[i]), int(m.v_start[i])
        single = m.q_start[i + 1] - m.q_start[i] == 1 and m.v_start[i + 1] - m.v_start[i] == 1
        bounds = mechanism.joints[i].limits
        sides = [(1.0, bounds.lower, "lower"), (-1.0, bounds.upper, "upper")]
        some = [(s, b[0], w) for s, b, w in sides if len(b) == 1 and abs(b[0]) < float("inf")]
        if limits.joints and not (single and some):
            raise ModelError(f"joint {name!r} has no limit that could be a stop")
        if single:
            pairs += [
                ContactPair(
                    f"{name} {side}", None, None, None, 0.0, limits.restitution, "newton", (iq, iv), sign, bound
                )
                for sign, bound, side in some
            ]
    return pairs
