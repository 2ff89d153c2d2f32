"""Inverse dynamics: the recursive Newton-Euler algorithm.

Symbols (Luh, Walker & Paul 1980; Khalil & Dombre 2002, sec. 9.5): w, wd angular velocity and acceleration of a link, a
acceleration of its origin less gravity, U = [wd x] + [w x][w x], all in the link's axes; v_J, w_J the joint's relative
velocity and v_J', w_J' its acceleration; r = reach + slide z from the parent's origin to the link's; f, n force and
moment that the joint passes on, about the link's origin.

    w  = w_p + w_J                    wd = wd_p + w_p x w_J + w_J'
    a  = a_p + U_p r + (w_p + w) x v_J + v_J'
    f  = m a + U h + sum of children  n  = h x a + ∫ r x U r dm + sum of children
    tau = S^T (f, n) + armature

The slide is along an axis that is fixed in both links, so U z is the same in either. Cost of a hinge in a chain: 81
products, 70 sums.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from dalembert.tree import vectors
from dalembert.tree.inertia import inertial_force, rate_matrix
from dalembert.tree.link import Tree
from dalembert.tree.posed import Posed
from dalembert.tree.scalars import Scalar, add, mul
from dalembert.tree.screws import Pair
from dalembert.tree.sweep import inward, outward, pair_add
from dalembert.tree.vectors import ZERO, Matrix, Vector, cross, scale

STILL: Matrix = (ZERO, ZERO, ZERO)


class Motion(NamedTuple):
    """How a link moves: angular velocity and acceleration, acceleration of the origin, U."""

    w: Vector = ZERO
    wd: Vector = ZERO
    a: Vector = ZERO
    U: Matrix = STILL


def accelerations(
    gravity: Vector, posed: list[Posed], v: list[Scalar], a: list[Scalar], only: Collection[int] | None = None
) -> list[Motion]:
    """Return every link's motion for joint velocities v and accelerations a; the ground accelerates with -gravity.

    Links that are not in `only`, where it is given, move as the ground does.
    """
    lift = scale(-1.0, gravity)

    def step(i: int, link: Posed, parent: Motion) -> Motion:
        vJ, wJ = link.link.relative(v)
        dvJ, dwJ = link.link.relative(a)
        carried = link.into(parent.w)
        w = vectors.add(carried, wJ)
        wd = vectors.add(link.into(parent.wd), cross(carried, wJ), dwJ)
        U = rate_matrix(w, wd)
        start = link.into(vectors.add(parent.a, vectors.columns_times(parent.U, link.reach)))
        moving = vectors.add(cross(vectors.add(carried, w), vJ), dvJ)
        return Motion(w, wd, vectors.add(start, moving, scale(link.slide, U[2])), U)

    return outward(posed, Motion(a=lift), step, only)


def body_forces(tree: Tree, motions: list[Motion]) -> list[Pair]:
    """Return the force (f, n) that every link's own mass needs, about its origin."""
    return [
        inertial_force(link.inertia, each.w, each.wd, each.a, each.U)
        for link, each in zip(tree.links, motions, strict=True)
    ]


def joint_forces(tree: Tree, posed: list[Posed], own: list[Pair]) -> tuple[list[Scalar], Pair]:
    """Return S^T (f, n) for all velocities, and the sum of all forces at the ground's origin."""
    totals, ground = inward(posed, own, (ZERO, ZERO), lambda i, link, force: link.force_out(force), pair_add)
    tau: list[Scalar] = [0.0] * tree.nv
    for link, force in zip(tree.links, totals, strict=True):
        for place, value in enumerate(link.project(force)):
            tau[link.v + place] = value
    return tau, ground


def rnea(tree: Tree, posed: list[Posed], v: list[Scalar], a: list[Scalar]) -> list[Scalar]:
    """Return tau = M a + C v + g of the open tree, without springs and dampers."""
    tau, _ = joint_forces(tree, posed, body_forces(tree, accelerations(tree.gravity, posed, v, a)))
    for link in tree.links:
        for place, armature in enumerate(link.armature):
            i = link.v + place
            tau[i] = add(tau[i], mul(armature, a[i]))
    return tau
