"""A prepared tree: only bodies that move, each behind one joint about or along its frame's z axis."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from dalembert.model.limits import EXACT
from dalembert.model.mechanism.inertia import Inertia
from dalembert.model.mechanism.placement import Placement
from dalembert.tree.algebra.rigid import Rigid
from dalembert.tree.algebra.screws import Screw
from dalembert.tree.algebra.vectors import ZERO, Symmetric, Vector
from dalembert.types import Array, Scalar

# ----------------------------------------------------------------------------------------------------------------------
# Mass, first and second moments of bodies as numbers: from an inertia, and seen from another frame.


def moments(inertia: Inertia) -> Rigid:
    """Return m, h = m c and E = tr(I_O)/2 1 - I_O."""
    rotational = inertia.about_origin()
    E = 0.5 * np.trace(rotational) * np.eye(3) - rotational
    return rigid(inertia.mass, inertia.mass * inertia.center, E)


def rigid(m: float, h: Array, E: Array) -> Rigid:
    """Return the inertia with these numbers as floats; entries that are rounding are zero."""
    E = np.where(np.abs(E) <= EXACT * np.abs(E).max(), 0.0, E)
    h = np.where(np.abs(h) <= EXACT * np.abs(h).max(), 0.0, h)
    a, b, c, d, e, f = (float(E[i, j]) for i in range(3) for j in range(i, 3))
    return Rigid(float(m), (float(h[0]), float(h[1]), float(h[2])), (a, b, c, d, e, f))


def matrix(inertia: Rigid) -> tuple[float, Array, Array]:
    """Return m, h (3,) and E (3, 3) as arrays."""
    a, b, c, d, e, f = inertia.E
    return inertia.m, np.array(inertia.h), np.array([[a, b, c], [b, d, e], [c, e, f]])


def moved(inertia: Rigid, placement: Placement) -> Rigid:
    """Return the inertia in frame A, for `placement` = X_AB and this one given in B: r_A = R r_B + p."""
    if placement.is_identity():
        return inertia
    m, h, E = matrix(inertia)
    R, p = placement.rotation, placement.position
    turned = R @ h
    cross = np.outer(turned, p)
    return rigid(m, turned + m * p, R @ E @ R.T + cross + cross.T + m * np.outer(p, p))


# ----------------------------------------------------------------------------------------------------------------------
# A prepared tree: only bodies that move, each behind one joint about or along its frame's z axis.
#
# Symbols: F_i the frame of link i; K its constant screws from the parent's frame to where the joint's motion begins.
# A link's frame is chosen for short arithmetic (`frames.py`), so it is in general none of the file's frames;
# `Tree.places` says where those are.


AXES = {
    "revolute": (5,),
    "continuous": (5,),
    "prismatic": (2,),
    "helical": (5,),
    "spherical": (3, 4, 5),
    "planar": (0, 1, 5),
    "free": (0, 1, 2, 3, 4, 5),
    "held": (),
}
"""Per kind of joint, which components of the relative motion [vx vy vz wx wy wz] its velocities are."""

FAR = 100.0
"""Radians or metres: adding a constant angle to a coordinate below this costs less than 2e-14 of absolute accuracy."""

TURNING = ("revolute", "continuous", "prismatic", "helical")
"""Kinds whose frame may be turned about its axis and slid along it."""


@dataclass(frozen=True)
class Link:
    """A body that moves, with all that is welded to it.

    Attributes
    ----------
    name, joint
        Of the body and of the joint that carries it.
    kind
        One of `AXES`; a universal joint is two revolute ones with a link between that weighs nothing. A "held" one has
        no velocity: it stands where symbols say (`symbolic.py`).
    parent
        Number of the link before it, -1 for the ground.
    q, v
        First places in configuration and velocity.
    steps
        Constant screws from the parent's frame to where the joint's motion begins.
    angle, slide
        Constant part of the joint's own screw about z.
    pitch
        Of a helical joint, metres per radian.
    inertia
        In the link's frame; after regrouping not that of a real body.
    armature, damping, stiffness, rest
        One number for each velocity.
    bounded
        Whether limits keep the joint's coordinates below `FAR`.
    """

    name: str
    joint: str
    kind: str
    parent: int
    q: int
    v: int
    steps: tuple[Screw, ...]
    angle: float
    slide: float
    pitch: float
    inertia: Rigid
    armature: tuple[float, ...]
    damping: tuple[float, ...]
    stiffness: tuple[float, ...]
    rest: tuple[float, ...]
    bounded: bool = False

    @property
    def axes(self) -> tuple[int, ...]:
        """Components of the relative motion that the velocities are."""
        return AXES[self.kind]

    def relative(self, values: list[Scalar]) -> tuple[Vector, Vector]:
        """Return the joint's part (v_J, w_J) = S x for x = `values[v:v+k]`, in the link's frame."""
        motion: list[Scalar] = [0.0] * 6
        for place, axis in enumerate(self.axes):
            motion[axis] = values[self.v + place]
        if self.kind == "helical":
            motion[2] = self.pitch * motion[5] if self.pitch else 0.0
        return (motion[0], motion[1], motion[2]), (motion[3], motion[4], motion[5])

    def project(self, force: tuple[Vector, Vector]) -> list[Scalar]:
        """Return S^T (f, n): what a force on the link does along the joint's velocities."""
        entries = [*force[0], *force[1]]
        result = [entries[axis] for axis in self.axes]
        if self.kind == "helical" and self.pitch:
            result[0] = result[0] + self.pitch * entries[2]
        return result


@dataclass(frozen=True)
class TreeBody:
    """A body of the mechanism, in the frame of the link that it is part of; its mass is never regrouped.

    Attributes
    ----------
    link, parent
        Number of the link, -1 for the ground; number of the body that carries it, -1 for the ground.
    place
        Where the body's own frame stands in the link's.
    joint
        Where the frame of the joint that carries it stands, on the body's side.
    mass, center, E
        Mass, centre of mass, and second moments about it, in the link's axes.
    """

    link: int
    parent: int
    place: Placement
    joint: Placement
    mass: float
    center: Vector
    E: Symmetric


TendonData = tuple[tuple[tuple[int, int, float], ...], float, tuple[float, float], float]


@dataclass(frozen=True)
class Tree:
    """Links in order, parents first.

    Attributes
    ----------
    links
        What moves.
    gravity
        In the ground's axes, m/s^2.
    still
        Mass that regrouping has moved to the ground: it belongs to bodies that move, but lies where nothing moves.
    places
        Per frame name the link it is on and where it stands in the link's frame.
    nq, nv
        Sizes of configuration and velocity.
    springs, lifts
        Springs between frames; bodies whose weight is held up: name, mass that is held, centre in the body's frame.
    tendons
        Springs along sums of coordinates: (place in q, place in v, factor) of each, stiffness, rest and damping.
    bodies
        The mechanism's bodies in their order: which link each is part of, and its own mass.
    handed
        Per link the inertia that regrouping has handed to the parent, in the link's frame.
    """

    name: str
    links: tuple[Link, ...]
    gravity: tuple[float, float, float]
    still: Rigid
    places: dict[str, tuple[int, Placement]]
    nq: int
    nv: int
    springs: tuple[tuple[str, str, float, float, float], ...] = ()
    lifts: tuple[tuple[str, float, tuple[float, ...]], ...] = ()
    coordinates: tuple[str, ...] = field(default=())
    tendons: tuple[TendonData, ...] = ()
    bodies: tuple[TreeBody, ...] = ()
    handed: tuple[Rigid, ...] = ()

    def ancestors(self, i: int) -> list[int]:
        """Return i, its parent, and so on to the first link that hangs on the ground."""
        chain = []
        while i >= 0:
            chain.append(i)
            i = self.links[i].parent
        return chain

    def carried_by(self, i: int) -> set[int]:
        """Return all links that hang on link i, itself left out; on the ground, -1, all."""
        links: set[int] = set()
        for k, link in enumerate(self.links):
            if link.parent == i or link.parent in links:
                links.add(k)
        return links

    def common_ancestor(self, i: int, j: int) -> int:
        """Return the last link that carries both, which may be one of them; -1, the ground, where none does."""
        others = set(self.ancestors(j))
        return next((k for k in self.ancestors(i) if k in others), -1)


def screw_placement(screw: Screw) -> Placement:
    """Return a screw of numbers as a placement."""
    columns = [screw.out(tuple(float(x) for x in row)) for row in np.eye(3)]  # type: ignore[arg-type]
    position = list(ZERO)
    position[screw.k] = screw.d
    return Placement(np.array(columns).T, np.array(position))
