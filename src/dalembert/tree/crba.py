"""The mass matrix: the composite-rigid-body algorithm.

Symbols (Featherstone 2008, sec. 6.2): Ic_i inertia of link i and all that hangs on it, as one body in the frame of
link i; F = Ic_i S_i the force that gives it unit acceleration along a joint's velocity; M_ij = S_j^T F for every j on
the way to the ground.

Composites keep the ten moments (m, h, E), so they add as the links do; regrouped masses make m and much of E vanish.
Cost in a chain of n hinges: 10 n^2 - 3 n - 24 products, 6 n^2 + 20 n - 53 sums.
"""

from __future__ import annotations

from dalembert.tree.inertia import Rigid, momentum
from dalembert.tree.link import Tree
from dalembert.tree.posed import Posed
from dalembert.tree.scalars import Scalar, add
from dalembert.tree.sweep import inward


def composites(tree: Tree, posed: list[Posed]) -> list[Rigid]:
    """Return Ic of every link in its frame."""
    own = [link.inertia for link in tree.links]
    return inward(posed, own, Rigid(), lambda i, link, total: link.rigid_out(total), Rigid.add)[0]


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
