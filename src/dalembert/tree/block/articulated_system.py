"""The block system through the articulated-body factor: neither M nor A is formed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from dalembert.errors import ModelError
from dalembert.kkt.expressions.scalars import add as plus
from dalembert.kkt.expressions.scalars import cancelled, is_zero, mul, sub, total
from dalembert.kkt.expressions.sparse_factor import Vector, dense, sparse
from dalembert.tree.algebra import vectors
from dalembert.tree.algebra.articulated import NONE, Articulated, along, articulated, carried, give_way
from dalembert.tree.algebra.inertia import momentum
from dalembert.tree.algebra.screws import Pair
from dalembert.tree.algebra.vectors import ZERO
from dalembert.tree.algorithms.inverse import joint_forces
from dalembert.tree.algorithms.sweep import inward, outward, pair_add
from dalembert.tree.block.rows import RowForce
from dalembert.tree.prepared.configuration import Posed
from dalembert.tree.prepared.link import Link, Tree
from dalembert.types import Scalar

# ----------------------------------------------------------------------------------------------------------------------
# M = L^T D L without M: the inward pass of the articulated-body algorithm, kept for many right sides.
#
# Symbols (Featherstone 2008, sec. 7.3): IA articulated inertia, S motion subspace, U = IA S, D = S^T U + armature,
# r = -1/D; pA force that a link and all that hangs on it resist with, u = tau - S^T pA.
#
#     inward:   Ia = IA - U U^T / D      pa = pA + U u / D      both added to the parent's, in its frame
#     outward:  qdd = (u - U^T a') / D   a = a' + S qdd
#
# A joint with several velocities gives way along one after the other. The numbers u are L^-T tau and D the pivots of M
# = L^T D L, the same as `sparse_factor` finds from M itself; so both serve the same solvers, and regrouped masses leave
# them as they are.


REST: Pair = (ZERO, ZERO)


class UnresistedError(ModelError):
    """A coordinate has no inertia at all, by structure."""

    def __init__(self, coordinate: str, message: str) -> None:
        super().__init__(message)
        self.coordinate = coordinate


@dataclass(frozen=True)
class Pivot:
    """What one velocity of a joint leaves behind: S, U, D, -1/D, -U/D; `axis`: S is a unit vector without armature."""

    column: list[tuple[int, float]]
    U: list[Scalar]
    D: Scalar
    r: Scalar
    scaled: list[Scalar]
    axis: int | None


@dataclass(frozen=True, eq=False)
class ArticulatedFactor:
    """The pivots of every link; see `SparseFactor` for the solver's side of it."""

    tree: Tree
    posed: list[Posed]
    links: list[list[Pivot]]

    @property
    def pivots(self) -> Vector:
        """D by velocity."""
        return {link.v + place: pivot.D for link, pivot, place in self._each()}

    @property
    def r(self) -> Vector:
        """-1/D by velocity."""
        return {link.v + place: pivot.r for link, pivot, place in self._each()}

    def _each(self) -> list[tuple[Link, Pivot, int]]:
        pairs = zip(self.tree.links, self.links, strict=True)
        return [(link, pivot, place) for link, pivots in pairs for place, pivot in enumerate(pivots)]

    def push(self, forces: Mapping[int, Pair], tau: Vector) -> Vector:
        """Return u for joint forces tau less forces (f, n) on links, each in its link's frame: L^-T (tau - J^T f)."""
        return self.propagate(forces, tau)[0]

    def propagate(self, forces: Mapping[int, Pair], tau: Vector) -> tuple[Vector, dict[int, Pair]]:
        """Return u, and pA of every link that a force arrives at, before its joint gives way."""
        u: Vector = {}

        def step(i: int, link: Posed, pA: Pair) -> Pair:
            heights, share = self.passed(i, pA, tau)
            u.update((k, height) for k, height in heights.items() if not is_zero(height))
            return share

        links = [forces.get(i, REST) for i in range(len(self.posed))]
        arrived, _ = inward(self.posed, links, REST, step, pair_add)
        return u, {i: pA for i, pA in enumerate(arrived) if not all(map(vectors.is_zero, pA))}

    def passed(self, i: int, pA: Pair, tau: Vector) -> tuple[Vector, Pair]:
        """Return u of the joint of link i under pA, and what the joint hands down, in the parent's frame."""
        heights: Vector = {}
        for place, pivot in enumerate(self.links[i]):
            k = self.posed[i].link.v + place
            force = tau.get(k, 0.0)
            heights[k] = sub(force, along_column(pivot.column, pA))
            pA = yielded(pA, pivot, mul(heights[k], pivot.r), force)
        return heights, REST if self.posed[i].link.parent < 0 else self.posed[i].force_out(pA)

    def half_solve(self, tau: Vector) -> Vector:
        """Return u = L^-T tau."""
        return self.push({}, tau)

    def scaled(self, y: Vector) -> Vector:
        """Return -D^-1 y."""
        r = self.r
        return {k: mul(value, r[k]) for k, value in y.items()}

    def finish(self, u: Vector) -> Vector:
        """Return L^-1 D^-1 u, the joint accelerations."""
        return self.accelerate(u)[0]

    def accelerate(self, u: Vector) -> tuple[Vector, list[Pair]]:
        """Return the joint accelerations and, in its own frame, that of every link: J qdd."""
        qdd: Vector = {}

        def step(i: int, link: Posed, parent: Pair) -> Pair:
            a = link.motion_into(parent)
            for place in reversed(range(len(self.links[i]))):
                pivot, k = self.links[i][place], link.link.v + place
                qdd[k], a = accelerated(a, pivot, mul(u.get(k, 0.0), pivot.r))
            return a

        return qdd, outward(self.posed, REST, step)


def articulated_factor(tree: Tree, posed: list[Posed]) -> ArticulatedFactor:
    """Let every joint of the tree give way, leaves first."""
    pivots: list[list[Pivot]] = [[] for _ in tree.links]

    def step(i: int, link: Posed, IA: Articulated) -> Articulated:
        for place, column in enumerate(columns(link.link)):
            IA, pivot = joint_pivot(tree, link.link, place, column, IA)
            pivots[i].append(pivot)
        return NONE if link.link.parent < 0 else carried(link, IA)

    inward(posed, [articulated(link.inertia) for link in tree.links], NONE, step, Articulated.add)
    return ArticulatedFactor(tree, posed, pivots)


def columns(link: Link) -> list[list[tuple[int, float]]]:
    """Return the columns of S in the link's frame, each as its entries (axis, value)."""
    if link.kind == "helical":
        return [[(5, 1.0), (2, link.pitch)]]
    return [[(axis, 1.0)] for axis in link.axes]


def joint_pivot(
    tree: Tree, link: Link, place: int, column: list[tuple[int, float]], IA: Articulated
) -> tuple[Articulated, Pivot]:
    """Let a joint give way along one of its velocities."""
    U = along(IA, column)
    D = plus(total(*(mul(value, U[axis]) for axis, value in column)), link.armature[place])
    if type(D) is float and D <= 0.0:
        raise UnresistedError(
            tree.coordinates[link.v + place],
            f"nothing resists the coordinate {tree.coordinates[link.v + place]!r}: link {link.name!r} is massless (or "
            "its mass lies on the joint's axis) and terminal, so the open tree has no acceleration there; give it mass "
            "or armature, or constrain it and use the block form (KKT)",
        )
    axis = column[0][0] if len(column) == 1 and is_zero(link.armature[place]) else None
    IA, r, scaled = give_way(IA, U, D, axis)
    return IA, Pivot(column, U, D, r, scaled, axis)


def yielded(pA: Pair, pivot: Pivot, height: Scalar, tau: Scalar) -> Pair:
    """Return pA + U u / D; along a unit axis without armature this is tau. Constants that cancel leave no rounding."""
    entries = [cancelled(p, mul(U, height)) for p, U in zip([*pA[0], *pA[1]], pivot.U, strict=True)]
    if pivot.axis is not None:
        entries[pivot.axis] = tau
    return (entries[0], entries[1], entries[2]), (entries[3], entries[4], entries[5])


def accelerated(a: Pair, pivot: Pivot, height: Scalar) -> tuple[Scalar, Pair]:
    """Return qdd = (u - U^T a) / D and a + S qdd; along a unit axis without armature U/D is one."""
    entries = [*a[0], *a[1]]
    others = [(k, x) for k, x in enumerate(pivot.scaled) if k != pivot.axis]
    value = sub(along_column(others, a), height)
    if pivot.axis is not None:
        qdd = sub(value, entries[pivot.axis])
        entries[pivot.axis] = value
    else:
        qdd = value
        for axis, weight in pivot.column:
            entries[axis] = plus(entries[axis], mul(weight, qdd))
    return qdd, ((entries[0], entries[1], entries[2]), (entries[3], entries[4], entries[5]))


def along_column(column: list[tuple[int, Scalar]], pair: Pair) -> Scalar:
    """Return S^T (f, n)."""
    entries = [*pair[0], *pair[1]]
    return total(*(mul(value, entries[axis]) for axis, value in column))


# ----------------------------------------------------------------------------------------------------------------------
# The block system through the tree: neither M nor A is formed.
#
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
