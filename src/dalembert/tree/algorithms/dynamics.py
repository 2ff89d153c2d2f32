"""Forward dynamics of the open tree: the articulated-body algorithm, springs and dampers included."""

from __future__ import annotations

from dalembert.kkt.expressions.scalars import add, mul, sub
from dalembert.kkt.expressions.sparse_factor import dense, sparse, sparse_factor, tree_order
from dalembert.tree.algebra.screws import Pair
from dalembert.tree.algorithms.inverse import accelerations, body_forces, crba, joint_forces
from dalembert.tree.algorithms.passive import joint_resistance, lift_forces, spring_forces
from dalembert.tree.algorithms.sweep import pair_add
from dalembert.tree.block.articulated_system import articulated_factor
from dalembert.tree.prepared.configuration import Posed
from dalembert.tree.prepared.link import Tree
from dalembert.types import Scalar

# ----------------------------------------------------------------------------------------------------------------------
# Forward dynamics in O(n): the articulated-body algorithm.
#
# Symbols: as in `articulated_system.py`. Velocity and gravity enter once, through the forces that a motion without
# joint accelerations would need (the outward pass of the Newton-Euler algorithm); so a is the acceleration beyond that
# motion, starts at zero on the ground, and no product of Ia with velocity terms is left. Cost of a hinge in a chain:
# 193 products, 181 sums, 1 quotient.


def aba(tree: Tree, posed: list[Posed], v: list[Scalar], tau: list[Scalar]) -> list[Scalar]:
    """Return the joint accelerations of the open tree, without springs and dampers."""
    bias = body_forces(tree, accelerations(tree.gravity, posed, v, [0.0] * tree.nv))
    return solve_tree(tree, posed, bias, tau)


def solve_tree(tree: Tree, posed: list[Posed], bias: list[Pair], tau: list[Scalar]) -> list[Scalar]:
    """Return M^-1 (tau - S^T bias) for forces `bias` (f, n) on the links, each in its link's frame."""
    factor = articulated_factor(tree, posed)
    return dense(factor.finish(factor.push(dict(enumerate(bias)), sparse(tau))), tree.nv)


# ----------------------------------------------------------------------------------------------------------------------
# Forward and inverse dynamics of the open tree, springs and dampers included where the mechanism has them act.
#
# M a + bias = tau        bias = C v + g + damping v + springs


def inverse(tree: Tree, posed: list[Posed], q: list[Scalar], v: list[Scalar], a: list[Scalar]) -> list[Scalar]:
    """Return tau = M a + bias by the recursive Newton-Euler algorithm."""
    tau, _ = joint_forces(tree, posed, link_forces(tree, posed, v, a))
    resist = joint_resistance(tree, posed, q, v)
    armature = [inertia for link in tree.links for inertia in link.armature]
    return [add(add(t, mul(J, x)), r) for t, J, x, r in zip(tau, armature, a, resist, strict=True)]


def bias(tree: Tree, posed: list[Posed], q: list[Scalar], v: list[Scalar]) -> list[Scalar]:
    """Return the bias: inverse dynamics at zero acceleration."""
    return inverse(tree, posed, q, v, [0.0] * tree.nv)


def weight(tree: Tree, posed: list[Posed]) -> list[Scalar]:
    """Return the joint forces that hold the tree still against gravity, less the weight that is held up anyway."""
    still: list[Scalar] = [0.0] * tree.nv
    forces = body_forces(tree, accelerations(tree.gravity, posed, still, still))
    return joint_forces(tree, posed, [pair_add(*pair) for pair in zip(forces, lift_forces(tree, posed), strict=True)])[
        0
    ]


def link_forces(tree: Tree, posed: list[Posed], v: list[Scalar], a: list[Scalar]) -> list[Pair]:
    """Return the force that each link needs for its motion, less what springs between frames supply."""
    forces = body_forces(tree, accelerations(tree.gravity, posed, v, a))
    return [pair_add(*pair) for pair in zip(forces, spring_forces(tree, posed, v), strict=True)]


def forward_by_aba(tree: Tree, posed: list[Posed], q: list[Scalar], v: list[Scalar], tau: list[Scalar]) -> list[Scalar]:
    """Return a by the articulated-body algorithm, O(n)."""
    rest = [sub(t, r) for t, r in zip(tau, joint_resistance(tree, posed, q, v), strict=True)]
    return solve_tree(tree, posed, link_forces(tree, posed, v, [0.0] * tree.nv), rest)


def forward_by_factor(
    tree: Tree, posed: list[Posed], q: list[Scalar], v: list[Scalar], tau: list[Scalar]
) -> list[Scalar]:
    """Return a by the mass matrix and its sparse factors: fewer operations where branches are short."""
    factor = sparse_factor(crba(tree, posed), tree_order(tree.nv), tree.coordinates)
    load = [sub(t, b) for t, b in zip(tau, bias(tree, posed, q, v), strict=True)]
    return dense(factor.solve(sparse(load)), tree.nv)


FORWARD = {
    "aba": (forward_by_aba, "O(n): articulated-body algorithm"),
    "matrix": (forward_by_factor, "O(n d^2): mass matrix and its sparse factor"),
}
"""Routes to forward dynamics of a tree without constraints, with their cost."""
