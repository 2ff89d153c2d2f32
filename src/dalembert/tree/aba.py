"""Forward dynamics in O(n): the articulated-body algorithm.

Symbols: as in `articulated_factor.py`. Velocity and gravity enter once, through the forces that a motion without joint
accelerations would need (the outward pass of the Newton-Euler algorithm); so a is the acceleration beyond that motion,
starts at zero on the ground, and no product of Ia with velocity terms is left. Cost of a hinge in a chain: 193
products, 181 sums, 1 quotient.
"""

from __future__ import annotations

from dalembert.tree.articulated_factor import articulated_factor
from dalembert.tree.link import Tree
from dalembert.tree.posed import Posed
from dalembert.tree.rnea import accelerations, body_forces
from dalembert.tree.scalars import Scalar
from dalembert.tree.screws import Pair
from dalembert.tree.sparse_factor import dense, sparse


def aba(tree: Tree, posed: list[Posed], v: list[Scalar], tau: list[Scalar]) -> list[Scalar]:
    """Return the joint accelerations of the open tree, without springs and dampers."""
    bias = body_forces(tree, accelerations(tree.gravity, posed, v, [0.0] * tree.nv))
    return solve_tree(tree, posed, bias, tau)


def solve_tree(tree: Tree, posed: list[Posed], bias: list[Pair], tau: list[Scalar]) -> list[Scalar]:
    """Return M^-1 (tau - S^T bias) for forces `bias` (f, n) on the links, each in its link's frame."""
    factor = articulated_factor(tree, posed)
    return dense(factor.finish(factor.push(dict(enumerate(bias)), sparse(tau))), tree.nv)
