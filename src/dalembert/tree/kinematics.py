"""Where frames are and how they move.

Symbols: X = (R, p) the pose of a frame in the world; V = (v, w) the velocity of its origin and its angular velocity in
its own axes; a acceleration of its origin.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import numpy as np

from dalembert.model.placement import Placement
from dalembert.tree import vectors
from dalembert.tree.link import Tree
from dalembert.tree.posed import Posed
from dalembert.tree.rnea import accelerations
from dalembert.tree.scalars import Scalar
from dalembert.tree.screws import Pair, Pose
from dalembert.tree.sweep import outward, pair_add
from dalembert.tree.vectors import ZERO, Matrix, Vector, cross


def poses(posed: list[Posed]) -> list[Pose]:
    """Return the pose of every link in the world."""
    return outward(posed, Pose(), lambda i, link, parent: link.pose(parent))


def velocities(posed: list[Posed], v: list[Scalar], only: Collection[int] | None = None) -> list[Pair]:
    """Return the velocity of every link in its own frame: V = X V_parent + S v; links not in `only` stand still."""
    return outward(
        posed, (ZERO, ZERO), lambda i, link, parent: pair_add(link.motion_into(parent), link.link.relative(v)), only
    )


def columns(rotation: np.ndarray) -> Matrix:
    """Return a rotation of numbers by its columns."""
    x, y, z = ((float(column[0]), float(column[1]), float(column[2])) for column in rotation.T)
    return x, y, z


def vector(position: np.ndarray) -> Vector:
    """Return a position of numbers."""
    return float(position[0]), float(position[1]), float(position[2])


def frame_pose(tree: Tree, links: list[Pose], name: str) -> Pose:
    """Return the pose of a named frame, from those of the links."""
    i, place = tree.places[name]
    link = Pose() if i < 0 else links[i]
    R = columns(place.rotation)
    x, y, z = (vectors.columns_times(link.R, column) for column in R)
    return Pose((x, y, z), vectors.add(link.p, vectors.columns_times(link.R, vector(place.position))))


class FrameMotion(NamedTuple):
    """Pose of a frame in the world; its velocity and acceleration in its own axes, at joint accelerations zero."""

    pose: Pose
    v: Vector
    w: Vector
    a: Vector
    wd: Vector


def frame_motion(tree: Tree, posed: list[Posed], v: list[Scalar], name: str) -> FrameMotion:
    """Return how a named frame moves; gravity has no part in it."""
    i, place = tree.places[name]
    pose = frame_pose(tree, poses(posed), name)
    if i < 0:
        return FrameMotion(pose, ZERO, ZERO, ZERO, ZERO)
    linear, w = velocities(posed, v)[i]
    motion = accelerations((0.0, 0.0, 0.0), posed, v, [0.0] * tree.nv)[i]
    p = vector(place.position)
    return FrameMotion(
        pose,
        _into(place, vectors.add(linear, cross(w, p))),
        _into(place, w),
        _into(place, vectors.add(motion.a, vectors.columns_times(motion.U, p))),
        _into(place, motion.wd),
    )


def _into(place: Placement, u: Vector) -> Vector:
    """Return a vector of the link's axes in the frame's."""
    return vectors.transposed_times(columns(place.rotation), u)


def velocity(motion: FrameMotion, reference: str) -> list[Scalar]:
    """Return [v; w] of a frame: in its own axes; of the world's origin moving along; in world axes at the frame.

    The second is v + p x w: the velocity of the point of the body that passes through the world's origin.
    """
    if reference == "local":
        return [*motion.v, *motion.w]
    v, w = _world(motion, motion.v), _world(motion, motion.w)
    if reference == "local_world_aligned":
        return [*v, *w]
    return [*vectors.add(v, cross(motion.pose.p, w)), *w]


def drift(motion: FrameMotion, reference: str) -> list[Scalar]:
    """Return J_dot v, the rate of `velocity` at joint accelerations zero.

    Local: [a - w x v; wd]. World axes at the frame: [a; wd]. World: [a + v x w + p x wd; wd].
    """
    if reference == "local":
        return [*vectors.difference(motion.a, cross(motion.w, motion.v)), *motion.wd]
    a, wd = _world(motion, motion.a), _world(motion, motion.wd)
    if reference == "local_world_aligned":
        return [*a, *wd]
    v, w = _world(motion, motion.v), _world(motion, motion.w)
    return [*vectors.add(a, cross(v, w), cross(motion.pose.p, wd)), *wd]


def _world(motion: FrameMotion, u: Vector) -> Vector:
    return vectors.columns_times(motion.pose.R, u)
