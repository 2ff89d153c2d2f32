"""Poses, velocities and Jacobians of frames."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import numpy as np

from dalembert.model.mechanism.placement import Placement
from dalembert.tree.algebra import vectors
from dalembert.tree.algebra.screws import Pair, Pose
from dalembert.tree.algebra.vectors import ZERO, Matrix, Vector, cross
from dalembert.tree.algorithms.inverse import accelerations
from dalembert.tree.prepared.configuration import Posed, outward, pair_add
from dalembert.tree.prepared.link import Tree
from dalembert.types import Scalar

# ----------------------------------------------------------------------------------------------------------------------
# Poses and velocities of frames.
#
# Symbols: X = (R, p) the pose of a frame in the world; V = (v, w) the velocity of its origin and its angular velocity
# in its own axes; a acceleration of its origin.


def poses(posed: list[Posed], only: Collection[int] | None = None) -> list[Pose]:
    """Return the pose of every link in the world; links not in `only`, where it is given, are left at its origin."""
    return outward(posed, Pose(), lambda i, link, parent: link.pose(parent), only)


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
    chain = frozenset(tree.ancestors(i))
    pose = frame_pose(tree, poses(posed, chain), name)
    if i < 0:
        return FrameMotion(pose, ZERO, ZERO, ZERO, ZERO)
    linear, w = velocities(posed, v, chain)[i]
    motion = accelerations((0.0, 0.0, 0.0), posed, v, [0.0] * tree.nv, chain)[i]
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


# ----------------------------------------------------------------------------------------------------------------------
# The Jacobian of a frame: [v; w] = J qd.
#
# Symbols: X_i = (R, p) the pose of link i as the reference sees it; S_i = (s, z) a column of the joint's subspace in
# the link's frame. With all poses seen from the point to which the velocity refers, the column is
#
#     [ R s + p x R z ]
#     [ R z           ]
#
# so the three references differ only in where the poses start: the frame itself, going down the chain; the world; or
# the world's axes with the frame's origin.


def jacobian(tree: Tree, posed: list[Posed], name: str, reference: str) -> list[list[Scalar]]:
    """Return J, 6 rows of nv scalars; columns of joints that do not move the frame are zero."""
    J: list[list[Scalar]] = [[0.0] * tree.nv for _ in range(6)]
    for i, pose in seen_poses(tree, posed, name, reference).items():
        link = tree.links[i]
        for place in range(len(link.axes)):
            unit: list[Scalar] = [0.0] * tree.nv
            unit[link.v + place] = 1.0
            s, z = (vectors.columns_times(pose.R, part) for part in link.relative(unit))
            for row, value in enumerate([*vectors.add(s, cross(pose.p, z)), *z]):
                J[row][link.v + place] = value
    return J


def seen_poses(tree: Tree, posed: list[Posed], name: str, reference: str) -> dict[int, Pose]:
    """Return the poses of the links that move a frame, as the reference sees them."""
    i, place = tree.places[name]
    chain = tree.ancestors(i)
    if reference == "local":
        inverse = place.inverse()
        pose = Pose(columns(inverse.rotation), vector(inverse.position))
        seen = {}
        for link in chain:
            seen[link] = pose
            pose = posed[link].pose_back(pose)
        return seen
    world = poses(posed)
    if reference == "world":
        return {link: world[link] for link in chain}
    origin = frame_pose(tree, world, name).p
    return {link: Pose(world[link].R, vectors.difference(world[link].p, origin)) for link in chain}
