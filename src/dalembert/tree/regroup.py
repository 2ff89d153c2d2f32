"""Base parameters: mass that lies on a joint's axis is counted with the link before the joint.

A point on a hinge's axis belongs to both links: it moves with either. So any distribution of mass along the axis,
with its three moments m, h_z and E_zz, may be handed from a link to its parent, negative mass included; the link then
has seven parameters instead of ten. No force, energy, momentum or pivot of the mass matrix changes. This is the
regrouping of Gautier & Khalil 1990 ("Direct calculation of minimum set of inertial parameters of serial robots", IEEE
Trans. Robotics and Automation 6(3)), whose YY, MZ and M these moments are. For other joints:

- slider: both links turn alike, so the second moments about the centre of mass go to the parent;
- ball: the mass goes to the parent, as a point in the ball's centre;
- helical, planar, free: nothing.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dalembert.model.placement import IDENTITY, Placement
from dalembert.tree.inertia import Rigid
from dalembert.tree.link import Link, Tree, screw_placement
from dalembert.tree.moments import matrix, moved, rigid

Array = np.ndarray


def regroup(tree: Tree) -> Tree:
    """Return the tree with its masses handed toward the ground."""
    inertias = [link.inertia for link in tree.links]
    still = tree.still
    for i in reversed(range(len(tree.links))):
        link = tree.links[i]
        kept, handed = _shares(link.kind, inertias[i])
        inertias[i] = kept
        given = moved(handed, at_zero(link))
        if link.parent < 0:
            still = still.add(given)
        else:
            inertias[link.parent] = _sum(inertias[link.parent], given)
    links = tuple(replace(link, inertia=inertia) for link, inertia in zip(tree.links, inertias, strict=True))
    return replace(tree, links=links, still=still)


def _shares(kind: str, inertia: Rigid) -> tuple[Rigid, Rigid]:
    """Return what stays and what the parent gets, both in the link's frame."""
    m, h, E = inertia
    if kind in ("revolute", "continuous"):
        return (
            Rigid(0.0, (h[0], h[1], 0.0), (*E[:5], 0.0)),
            Rigid(m, (0.0, 0.0, h[2]), (0.0, 0.0, 0.0, 0.0, 0.0, E[5])),
        )
    if kind == "prismatic" and m != 0.0:
        _, first, second = matrix(inertia)
        point = rigid(m, first, np.outer(first, first) / m)
        return point, rigid(0.0, np.zeros(3), second - np.outer(first, first) / m)
    if kind == "prismatic" and not any(h):
        return Rigid(), inertia
    if kind == "spherical":
        return Rigid(0.0, h, E), Rigid(m)
    return inertia, Rigid()


def _sum(one: Rigid, other: Rigid) -> Rigid:
    m, h, E = matrix(one.add(other))
    return rigid(m, h, E)


def at_zero(link: Link) -> Placement:
    """Return where the link's frame stands in its parent's when the joint is at zero."""
    place = IDENTITY
    for screw in link.steps:
        place = place @ screw_placement(screw)
    angle = Placement.from_rpy((0.0, 0.0, link.angle), (0.0, 0.0, link.slide))
    return place @ angle
