"""Forward and inverse dynamics of the open tree, springs and dampers included where the mechanism has them act.

M a + bias = tau        bias = C v + g + damping v + springs
"""

from __future__ import annotations

from dalembert.tree.aba import solve_tree
from dalembert.tree.crba import crba
from dalembert.tree.link import Tree
from dalembert.tree.passive import joint_resistance, lift_forces, spring_forces
from dalembert.tree.posed import Posed
from dalembert.tree.rnea import accelerations, body_forces, joint_forces
from dalembert.tree.scalars import Scalar, add, mul, sub
from dalembert.tree.screws import Pair
from dalembert.tree.sparse_factor import dense, sparse, sparse_factor, tree_order
from dalembert.tree.sweep import pair_add


def inverse(tree: Tree, posed: list[Posed], q: list[Scalar], v: list[Scalar], a: list[Scalar]) -> list[Scalar]:
    """Return tau = M a + bias by the recursive Newton-Euler algorithm."""
    tau, _ = joint_forces(tree, posed, link_forces(tree, posed, v, a))
    resist = joint_resistance(tree, posed, q, v)
    armature = [each for link in tree.links for each in link.armature]
    return [add(add(t, mul(J, x)), r) for t, J, x, r in zip(tau, armature, a, resist, strict=True)]


def bias(tree: Tree, posed: list[Posed], q: list[Scalar], v: list[Scalar]) -> list[Scalar]:
    """Return the bias: inverse dynamics at zero acceleration."""
    return inverse(tree, posed, q, v, [0.0] * tree.nv)


def weight(tree: Tree, posed: list[Posed]) -> list[Scalar]:
    """Return the joint forces that hold the tree still against gravity, less the weight that is held up anyway."""
    still: list[Scalar] = [0.0] * tree.nv
    own = body_forces(tree, accelerations(tree.gravity, posed, still, still))
    return joint_forces(tree, posed, [pair_add(*pair) for pair in zip(own, lift_forces(tree, posed), strict=True)])[0]


def link_forces(tree: Tree, posed: list[Posed], v: list[Scalar], a: list[Scalar]) -> list[Pair]:
    """Return the force that each link needs for its motion, less what springs between frames supply."""
    own = body_forces(tree, accelerations(tree.gravity, posed, v, a))
    return [pair_add(*pair) for pair in zip(own, spring_forces(tree, posed, v), strict=True)]


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
