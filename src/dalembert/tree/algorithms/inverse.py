"""Inverse dynamics (recursive Newton-Euler) and the mass matrix (composite rigid bodies)."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from dalembert.kkt.expressions.scalars import add, mul
from dalembert.tree.algebra import vectors
from dalembert.tree.algebra.rigid import Rigid, inertial_force, momentum, rate_matrix
from dalembert.tree.algebra.screws import Pair
from dalembert.tree.algebra.vectors import ZERO, Matrix, Vector, cross, scale
from dalembert.tree.prepared.configuration import Posed, inward, outward, pair_add
from dalembert.tree.prepared.link import Tree
from dalembert.types import Scalar

# ----------------------------------------------------------------------------------------------------------------------
# Inverse dynamics: the recursive Newton-Euler algorithm.
#
# Symbols (Luh, Walker & Paul 1980; Khalil & Dombre 2002, sec. 9.5): w, wd angular velocity and acceleration of a link,
# a acceleration of its origin less gravity, U = [wd x] + [w x][w x], all in the link's axes; v_J, w_J the joint's
# relative velocity and v_J', w_J' its acceleration; r = reach + slide z from the parent's origin to the link's; f, n
# force and moment that the joint passes on, about the link's origin.
#
#     w  = w_p + w_J                    wd = wd_p + w_p x w_J + w_J'
#     a  = a_p + U_p r + (w_p + w) x v_J + v_J'
#     f  = m a + U h + sum of children  n  = h x a + ∫ r x U r dm + sum of children
#     tau = S^T (f, n) + armature
#
# The slide is along an axis that is fixed in both links, so U z is the same in either. Cost of a hinge in a chain: 81
# products, 70 sums.


STILL: Matrix = (ZERO, ZERO, ZERO)


class LinkMotion(NamedTuple):
    """How a link moves: angular velocity and acceleration, acceleration of the origin, U."""

    w: Vector = ZERO
    wd: Vector = ZERO
    a: Vector = ZERO
    U: Matrix = STILL


def accelerations(
    gravity: Vector, posed: list[Posed], v: list[Scalar], a: list[Scalar], only: Collection[int] | None = None
) -> list[LinkMotion]:
    """Return every link's motion for joint velocities v and accelerations a; the ground accelerates with -gravity.

    Links that are not in `only`, where it is given, move as the ground does.
    """
    lift = scale(-1.0, gravity)

    def step(i: int, link: Posed, parent: LinkMotion) -> LinkMotion:
        vJ, wJ = link.link.relative(v)
        dvJ, dwJ = link.link.relative(a)
        carried = link.into(parent.w)
        w = vectors.add(carried, wJ)
        wd = vectors.add(link.into(parent.wd), cross(carried, wJ), dwJ)
        U = rate_matrix(w, wd)
        start = link.into(vectors.add(parent.a, vectors.columns_times(parent.U, link.reach)))
        moving = vectors.add(cross(vectors.add(carried, w), vJ), dvJ)
        return LinkMotion(w, wd, vectors.add(start, moving, scale(link.slide, U[2])), U)

    return outward(posed, LinkMotion(a=lift), step, only)


def body_forces(tree: Tree, motions: list[LinkMotion]) -> list[Pair]:
    """Return the force (f, n) that every link's own mass needs, about its origin."""
    return [
        inertial_force(link.inertia, motion.w, motion.wd, motion.a, motion.U)
        for link, motion in zip(tree.links, motions, strict=True)
    ]


def joint_forces(tree: Tree, posed: list[Posed], forces: list[Pair]) -> tuple[list[Scalar], Pair]:
    """Return S^T (f, n) for all velocities, and the sum of all forces at the ground's origin."""
    totals, ground = inward(posed, forces, (ZERO, ZERO), lambda i, link, force: link.force_out(force), pair_add)
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


# ----------------------------------------------------------------------------------------------------------------------
# The mass matrix: the composite-rigid-body algorithm.
#
# Symbols (Featherstone 2008, sec. 6.2): Ic_i inertia of link i and all that hangs on it, as one body in the frame of
# link i; F = Ic_i S_i the force that gives it unit acceleration along a joint's velocity; M_ij = S_j^T F for every j on
# the way to the ground.
#
# Composites keep the ten moments (m, h, E), so they add as the links do; regrouped masses make m and much of E vanish.
# Cost in a chain of n hinges: 10 n^2 - 3 n - 24 products, 6 n^2 + 20 n - 53 sums.


def composites(tree: Tree, posed: list[Posed]) -> list[Rigid]:
    """Return Ic of every link in its frame."""
    inertias = [link.inertia for link in tree.links]
    return inward(posed, inertias, Rigid(), lambda i, link, total: link.rigid_out(total), Rigid.add)[0]


def crba(tree: Tree, posed: list[Posed]) -> list[list[Scalar]]:
    """Return M, nv rows of nv scalars, both triangles with the same values; zeros between branches are floats."""
    M: list[list[Scalar]] = [[0.0] * tree.nv for _ in range(tree.nv)]
    for i, Ic in enumerate(composites(tree, posed)):
        link = tree.links[i]
        for place in range(len(link.axes)):
            column = link.v + place
            unit: list[Scalar] = [0.0] * tree.nv
            unit[column] = 1.0
            _fill(tree, posed, M, i, column, momentum(Ic, *link.relative(unit)))
            M[column][column] = add(M[column][column], link.armature[place])
    return M


def _fill(tree: Tree, posed: list[Posed], M: list[list[Scalar]], i: int, column: int, force: tuple) -> None:
    """Write the column of M that belongs to a force F on link i."""
    for j in tree.ancestors(i):
        for place, value in enumerate(tree.links[j].project(force)):
            row = tree.links[j].v + place
            if row <= column:
                M[row][column] = M[column][row] = value
        if tree.links[j].parent >= 0:
            force = posed[j].force_out(force)
