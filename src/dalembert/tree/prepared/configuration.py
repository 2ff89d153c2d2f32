"""A prepared tree in a configuration: every link with its elementary transforms filled in, and the passes over it.

Unit quaternions and pairs (cos, sin) are taken as given: q is on the manifold, as `Mechanism.normalize` makes it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TypeVar

from dalembert.kkt.expressions.scalars import add, cos, mul, sin, sub
from dalembert.tree.algebra import vectors
from dalembert.tree.algebra.rigid import Rigid
from dalembert.tree.algebra.screws import Element, Pair, Pose, Rotation, Screw
from dalembert.tree.algebra.vectors import Vector
from dalembert.tree.prepared.frames import is_quarter, turn
from dalembert.tree.prepared.link import Link, Tree
from dalembert.types import Scalar


@dataclass(frozen=True)
class Posed:
    """A link whose joint stands somewhere.

    Attributes
    ----------
    link
        The link.
    path
        Elementary transforms from the parent's frame to the link's.
    reach : vector
        From the parent's origin to where the path's last screw begins, in the parent's axes.
    slide
        The last screw's slide, along the link's own z; the link's origin is at reach + slide z.
    """

    link: Link
    path: tuple[Element, ...]
    reach: Vector
    slide: Scalar

    def into(self, u: Vector) -> Vector:
        """Return a vector of the parent's axes in the link's."""
        for element in self.path:
            u = element.into(u)
        return u

    def motion_into(self, motion: Pair) -> Pair:
        """Return a motion of the parent's frame in the link's."""
        for element in self.path:
            motion = element.motion_into(motion)
        return motion

    def force_out(self, force: Pair) -> Pair:
        """Return a force of the link's frame in the parent's."""
        for element in reversed(self.path):
            force = element.force_out(force)
        return force

    def rigid_out(self, inertia: Rigid) -> Rigid:
        """Return an inertia of the link's frame in the parent's."""
        for element in reversed(self.path):
            inertia = element.rigid_out(inertia)
        return inertia

    def pose(self, parent: Pose) -> Pose:
        """Return the pose of the link for that of its parent."""
        for element in self.path:
            parent = element.pose(parent)
        return parent

    def pose_back(self, link: Pose) -> Pose:
        """Return the pose of the parent for that of the link."""
        for element in reversed(self.path):
            link = element.inverse().pose(link)
        return link


def pose_tree(tree: Tree, q: list[Scalar]) -> list[Posed]:
    """Return all links in the configuration q, a list of nq scalars."""
    return [_posed(link, q) for link in tree.links]


def _posed(link: Link, q: list[Scalar]) -> Posed:
    motion = MOTIONS[link.kind](link, q[link.q :])
    last = motion[-1]
    slide = last.d if isinstance(last, Screw) else 0.0
    reach: Pose = Pose()
    for element in (*link.steps, *motion[:-1]):
        reach = element.pose(reach)
    return Posed(link, (*link.steps, *motion), reach.p, slide)


def _turned(link: Link, q: Scalar) -> tuple[Scalar, Scalar]:
    """Return cosine and sine of q + angle; the sum itself would cost digits where q is large, else it is shorter."""
    fixed = turn("z", link.angle)
    if link.bounded and not is_quarter(fixed):
        return cos(q + link.angle), sin(q + link.angle)
    return fixed.plane(fixed.s, cos(q), sin(q))


def _revolute(link: Link, q: list[Scalar]) -> list[Element]:
    return [Screw(2, *_turned(link, q[0]), link.slide)]


def _continuous(link: Link, q: list[Scalar]) -> list[Element]:
    fixed = turn("z", link.angle)
    return [Screw(2, *fixed.plane(fixed.s, q[0], q[1]), link.slide)]


def _prismatic(link: Link, q: list[Scalar]) -> list[Element]:
    fixed = turn("z", link.angle)
    return [Screw(2, fixed.c, fixed.s, add(q[0], link.slide))]


def _helical(link: Link, q: list[Scalar]) -> list[Element]:
    return [Screw(2, *_turned(link, q[0]), add(mul(link.pitch, q[0]), link.slide))]


def _spherical(link: Link, q: list[Scalar]) -> list[Element]:
    return [rotation(q[0], q[1], q[2], q[3])]


def _planar(link: Link, q: list[Scalar]) -> list[Element]:
    return [Screw(0, d=q[0]), Screw(1, d=q[1]), Screw(2, q[2], q[3])]


def _free(link: Link, q: list[Scalar]) -> list[Element]:
    return [Screw(0, d=q[0]), Screw(1, d=q[1]), Screw(2, d=q[2]), rotation(q[3], q[4], q[5], q[6])]


MOTIONS = {
    "revolute": _revolute,
    "continuous": _continuous,
    "prismatic": _prismatic,
    "helical": _helical,
    "spherical": _spherical,
    "planar": _planar,
    "free": _free,
    "held": lambda link, q: [Screw(2)],
}
"""Per kind of joint its motion as elementary transforms, from q[0], q[1], ... of the joint."""


def rotation(x: Scalar, y: Scalar, z: Scalar, w: Scalar) -> Rotation:
    """Return the rotation of a unit quaternion."""
    tx, ty, tz = x + x, y + y, z + z
    xx, yy, zz, xy, xz, yz = tx * x, ty * y, tz * z, tx * y, tx * z, ty * z
    xw, yw, zw = tx * w, ty * w, tz * w
    return Rotation(
        (
            (sub(1.0, yy + zz), xy + zw, xz - yw),
            (xy - zw, sub(1.0, xx + zz), yz + xw),
            (xz + yw, yz - xw, sub(1.0, xx + yy)),
        )
    )


# ----------------------------------------------------------------------------------------------------------------------
# The two passes over a tree, written once: outward from the ground, inward to it.
#
# An algorithm hands over a short step; it never loops over links itself.


State = TypeVar("State")


def outward(
    posed: Sequence[Posed],
    ground: State,
    step: Callable[[int, Posed, State], State],
    only: Collection[int] | None = None,
) -> list[State]:
    """Return the state of every link: step(i, link, state of its parent), parents first.

    Links that are not in `only`, where it is given, are left as the ground is.
    """
    states: list[State] = []
    for i, link in enumerate(posed):
        parent = link.link.parent
        before = ground if parent < 0 else states[parent]
        states.append(step(i, link, before) if only is None or i in only else ground)
    return states


def inward(
    posed: Sequence[Posed],
    own: Sequence[State],
    ground: State,
    step: Callable[[int, Posed, State], State],
    add: Callable[[State, State], State],
) -> tuple[list[State], State]:
    """Return what every link and the ground have when all that hangs on them is counted.

    A link starts with `own[i]`; when all of its children have handed down their share, step(i, link, total) is its own
    share, in the parent's frame, and `add` joins it to what the parent has.
    """
    totals = list(own)
    for i in reversed(range(len(posed))):
        share = step(i, posed[i], totals[i])
        parent = posed[i].link.parent
        if parent < 0:
            ground = add(ground, share)
        else:
            totals[parent] = add(totals[parent], share)
    return totals, ground


def pair_add(x: Pair, y: Pair) -> Pair:
    """Return the sum of two motions or two forces."""
    return vectors.add(x[0], y[0]), vectors.add(x[1], y[1])
