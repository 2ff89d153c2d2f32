"""Forward dynamics of the open tree: the articulated-body algorithm, springs and dampers included."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dalembert.errors import ModelError
from dalembert.kkt.expressions.scalars import add, cancelled, is_zero, mul, sub, total
from dalembert.kkt.expressions.sparse_factor import Vector, dense, sparse, sparse_factor, tree_order
from dalembert.kkt.limits import VANISHING
from dalembert.status import Status
from dalembert.tree.algebra import vectors
from dalembert.tree.algebra.articulated import NONE, Articulated, along, articulated, carried, give_way
from dalembert.tree.algebra.screws import Pair
from dalembert.tree.algebra.vectors import ZERO
from dalembert.tree.algorithms.inverse import accelerations, body_forces, crba, joint_forces
from dalembert.tree.algorithms.passive import joint_resistance, lift_forces, spring_forces
from dalembert.tree.prepared.configuration import Posed, inward, outward, pair_add, pose_tree
from dalembert.tree.prepared.link import Link, Tree
from dalembert.types import Scalar

if TYPE_CHECKING:
    import casadi as ca

    from dalembert.model.mechanism.mechanism import Mechanism

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
    D = add(total(*(mul(value, U[axis]) for axis, value in column)), link.armature[place])
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
            entries[axis] = add(entries[axis], mul(weight, qdd))
    return qdd, ((entries[0], entries[1], entries[2]), (entries[3], entries[4], entries[5]))


def along_column(column: list[tuple[int, Scalar]], pair: Pair) -> Scalar:
    """Return S^T (f, n)."""
    entries = [*pair[0], *pair[1]]
    return total(*(mul(value, entries[axis]) for axis, value in column))


# ----------------------------------------------------------------------------------------------------------------------
# Forward dynamics in O(n): the articulated-body algorithm.
#
# Velocity and gravity enter once, through the forces that a motion without
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


# ----------------------------------------------------------------------------------------------------------------------
# Existence of accelerations of the open tree: pivots of its mass matrix at random configurations.
#
# A link that weighs nothing may be harmless (another hangs on it) or leave a motion that nothing resists. Where that
# shows in the structure, the algorithms refuse; where it is a cancellation, as of two hinges on one axis with nothing
# between them, the pivot is rounding instead of zero, and a quotient by it would be noise that looks like a number.


SAMPLES = 4
"""Configurations at which pivots of the open tree are looked at."""


def status_of_numbers(a: ca.SX) -> ca.SX:
    """Return the status of an answer that exists wherever it is finite."""
    import casadi as ca

    return ca.if_else(ca.fabs(ca.sum1(a)) < ca.inf, int(Status.UNIQUE), int(Status.NONFINITE))


def refuse_singular(mechanism: Mechanism, tree: Tree) -> None:
    """Raise where the mass matrix of the open tree is singular wherever one looks."""
    if tree.nv == 0:
        return
    q = mechanism.random(0, SAMPLES)
    M = crba(tree, pose_tree(tree, list(q.T)))
    diagonal = np.array([np.broadcast_to(M[k][k], SAMPLES) for k in range(tree.nv)])
    with np.errstate(divide="ignore", invalid="ignore"):
        pivots = sparse_factor(M, tree_order(tree.nv), tree.coordinates).pivots
        ratio = np.abs([np.broadcast_to(pivots[k], SAMPLES) for k in range(tree.nv)]) / np.abs(diagonal)
    for k in np.flatnonzero((ratio < VANISHING).all(axis=1)):
        raise ModelError(
            f"nothing resists the coordinate {tree.coordinates[k]!r} of {tree.name!r}: its pivot in the mass matrix is "
            f"{ratio[k].max():.0e} of the diagonal; a massless link between two joints that move alike, most likely. "
            "Give it mass or armature, or constrain it and use the block form (KKT)"
        )
