"""The Jacobian of a frame: [v; w] = J qd.

Symbols: X_i = (R, p) the pose of link i as the reference sees it; S_i = (s, z) a column of the joint's subspace in
the link's frame. With all poses seen from the point to which the velocity refers, the column is

    [ R s + p x R z ]
    [ R z           ]

so the three references differ only in where the poses start: the frame itself, going down the chain; the world; or the
world's axes with the frame's origin.
"""

from __future__ import annotations

from dalembert.tree import vectors
from dalembert.tree.kinematics import columns, frame_pose, poses, vector
from dalembert.tree.link import Tree
from dalembert.tree.posed import Posed
from dalembert.tree.scalars import Scalar
from dalembert.tree.screws import Pose
from dalembert.tree.vectors import cross


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
