"""The block system through the articulated-body factor: neither M nor A is formed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from dalembert.kkt.expressions.scalars import mul, sub, total
from dalembert.kkt.expressions.sparse_factor import Vector, dense, sparse
from dalembert.tree.algebra import vectors
from dalembert.tree.algebra.rigid import momentum
from dalembert.tree.algebra.screws import Pair
from dalembert.tree.algorithms.dynamics import ArticulatedFactor, articulated_factor
from dalembert.tree.algorithms.inverse import joint_forces
from dalembert.tree.block.row_forces import RowForce
from dalembert.tree.prepared.configuration import Posed, pair_add
from dalembert.tree.prepared.link import Tree
from dalembert.types import Scalar

# Symbols: F_i forces of row i on links; u = L^-T (tau - J^T f) by the inward pass of the articulated-body algorithm.
#
#     Y_i = push(F_i)      z = push(forces that the motion at a = 0 needs, tau)      a, J a by the outward pass
#
# Residuals come from rigid inertias and link accelerations, which the factor does not know. Cost: O(n) for the factor,
# each right side O(n), each row O(depth). Source: Wensing, Featherstone & Orin, "A reduced-order recursive algorithm
# for the computation of the operational-space inertia matrix", ICRA 2012 (force propagators); seed 002.


@dataclass(frozen=True, eq=False)
class Load:
    """Forces that links need at a = 0, each in its link's frame, and joint forces tau (nv,), passive ones taken off."""

    links: list[Pair]
    joints: list[Scalar]


@dataclass(frozen=True, eq=False)
class TreeAcceleration:
    """a (nv,), and what it makes of every link beyond the motion at a = 0: J a, in the link's frame."""

    joints: list[Scalar]
    links: list[Pair]


@dataclass(frozen=True, eq=False)
class TreeSystem:
    """A factored tree and rows of forces on its links: what all routes through the tree share."""

    tree: Tree
    posed: list[Posed]
    forces: list[RowForce]
    mass: ArticulatedFactor

    @classmethod
    def of(cls, tree: Tree, posed: list[Posed], forces: list[RowForce]) -> Self:
        """Factor the tree."""
        return cls(tree, posed, forces, articulated_factor(tree, posed))

    def start(self, load: Load, c: Sequence[Scalar]) -> Vector:
        """Return z."""
        return self.mass.push(dict(enumerate(load.links)), sparse(load.joints))

    def loaded(self, load: Load, lam: Sequence[Scalar]) -> Load:
        """Return the load with the forces of multipliers beside it: f - A^T lam."""
        links, joints = list(load.links), list(load.joints)
        for row, force in zip(self.forces, lam, strict=True):
            for i, F in row.links.items():
                links[i] = pair_add(links[i], scaled(force, F))
            for k, value in row.joints.items():
                joints[k] = sub(joints[k], mul(value, force))
        return Load(links, joints)

    def finish(self, z: Vector) -> tuple[list[Scalar], TreeAcceleration]:
        """Return a, and the acceleration of all links."""
        qdd, links = self.mass.accelerate(z)
        a = dense(qdd, self.tree.nv)
        return a, TreeAcceleration(a, links)

    def imbalance(self, load: Load, motion: TreeAcceleration, lam: Sequence[Scalar]) -> list[Scalar]:
        """Return tau less the joint forces of everything that acts on the links."""
        remainder = self.loaded(load, lam)
        acting = [
            pair_add(force, momentum(link.inertia, *a))
            for link, force, a in zip(self.tree.links, remainder.links, motion.links, strict=True)
        ]
        needed, _ = joint_forces(self.tree, self.posed, acting)
        armature = [inertia for link in self.tree.links for inertia in link.armature]
        rotors = map(mul, armature, motion.joints)
        return [sub(sub(x, need), rotor) for x, need, rotor in zip(remainder.joints, needed, rotors, strict=True)]

    def reached(self, motion: TreeAcceleration) -> list[Scalar]:
        """Return A a = F . J a."""
        return [
            total(
                *(add for i, F in row.links.items() for add in map(vectors.dot, F, motion.links[i])),
                *(mul(value, motion.joints[k]) for k, value in row.joints.items()),
            )
            for row in self.forces
        ]


@dataclass(frozen=True, eq=False)
class ArticulatedSystem(TreeSystem):
    """A `BlockSystem`: every row pushed through the tree.

    Attributes
    ----------
    rows
        Y^T by rows: heights u of each row.
    arrived
        Per row the force that arrives at each link on its way to the ground, in the link's frame.
    """

    rows: list[Vector]
    arrived: list[dict[int, Pair]]

    @classmethod
    def of(cls, tree: Tree, posed: list[Posed], forces: list[RowForce]) -> Self:
        """Factor the tree and push every row through it."""
        mass = articulated_factor(tree, posed)
        pushed = [mass.propagate({i: scaled(-1.0, F) for i, F in row.links.items()}, row.joints) for row in forces]
        return cls(tree, posed, forces, mass, [row for row, _ in pushed], [arrived for _, arrived in pushed])


def scaled(factor: Scalar, F: Pair) -> Pair:
    """Return a force times a factor."""
    return vectors.scale(factor, F[0]), vectors.scale(factor, F[1])
