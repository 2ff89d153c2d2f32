"""Route "caba": joints and rows eliminated inside the tree in one inward pass, and loops where they meet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import groupby
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from dalembert.kkt import Status
from dalembert.kkt.expressions.block_solver import RedundantRows, factored, multipliers, row_pivots
from dalembert.kkt.expressions.scalars import add, is_zero, minus_inverse, mul, neg, sub, total
from dalembert.kkt.expressions.sparse_factor import SparseFactor, Vector, dense, sparse
from dalembert.kkt.expressions.verdict import Asked, BlockAnswer, Conditioning, Solved, judged, relative
from dalembert.kkt.limits import SAFE
from dalembert.tree.algebra import vectors
from dalembert.tree.algebra.articulated import Articulated, articulated, carried
from dalembert.tree.algebra.screws import Pair
from dalembert.tree.algorithms.dynamics import REST, Pivot, accelerated, along_column, columns, joint_pivot, yielded
from dalembert.tree.block.articulated_system import Load, TreeAcceleration, TreeSystem, scaled
from dalembert.tree.block.conditioning import closed_configurations, neutral_if_met
from dalembert.tree.block.row_forces import RowForce
from dalembert.tree.prepared.configuration import Posed, pair_add, pose_tree
from dalembert.tree.prepared.link import Tree
from dalembert.types import Array, Scalar

if TYPE_CHECKING:
    from dalembert.tree.block.constrained import Tracing

# ----------------------------------------------------------------------------------------------------------------------
# The block matrix eliminated inside the tree: joints and rows in one inward pass.
#
# Symbols: IA, S, U, D, pA, u as in `dynamics.py`; F_r force of a row r that is still open, as it arrives at a
# link; L the part of the Delassus matrix that the joints eliminated so far make, b_r what they give the row at lam = 0,
# c_r its right side. At every link on the way
#
#     force = IA a + pA + sum F_r lam_r            F_r . a + b_r - sum_s L_rs lam_s = 0
#
# A joint gives way along S (kappa_r = S^T F_r, plus the row's force on the joint itself):
#
#     F_r -= U kappa_r / D      L_rs += kappa_r kappa_s / D      b_r += kappa_r u / D
#
# A row whose forces have all come together and whose pivot p = L_rr is safe is eliminated like one more joint,
#
#     lam_r = (F_r . a + b_r - sum_s L_rs lam_s) / p
#     IA += F_r F_r^T / p    pA += F_r b_r / p    F_s -= F_r L_rs / p    L_st -= L_rs L_rt / p    b_s -= L_rs b_r / p
#
# so that from there on the constraint is inertia. Rows that are still open at the ground are solved there. A contact at
# the end of a limb is gone after as many joints as it has rows: no row travels further, and the cost is linear in n and
# m. A loop travels from both of its ends to the link where they meet, and is gone there. A loop through the ground is
# gone where its second end begins, if the branch of the first has been dealt with (a platform feels each leg as
# inertia); so branches with fewer such loops come first: the loop-aware order. Sources: A. Sathya, J. Carpentier,
# "Constrained articulated body dynamics algorithms", IEEE T-RO 2025 (PV with early elimination); the loop-aware order
# after LCABA (ibid., proximal there, exact here).


Place = tuple[int, int]
"""(link, 0) before the link's joint gives way, (link, 1) after."""

Decide = Callable[[Place, "TreeElimination", dict[int, Pair]], Sequence[int]]
"""decide(place, elimination so far, forces of open rows that have come together) -> rows to eliminate, in order."""


@dataclass(frozen=True, eq=False)
class JointStep:
    """A velocity that gave way: its pivot and kappa of the open rows."""

    velocity: int
    pivot: Pivot
    kappa: Vector


@dataclass(frozen=True, eq=False)
class RowStep:
    """A row that was eliminated: F_r, p, r = -1/p and L_rs of the rows that were open."""

    row: int
    F: Pair
    pivot: Scalar
    r: Scalar
    L: Vector


@dataclass(eq=False)
class TreeElimination:
    """Steps by link, in the order in which they were made; what is left of L at the ground.

    Attributes
    ----------
    order
        The links, each after all that hang on it.
    L
        L[r][s] of open rows, both ways.
    """

    tree: Tree
    posed: list[Posed]
    forces: list[RowForce]
    order: list[int]
    steps: list[list[JointStep | RowStep]]
    L: dict[int, Vector] = field(default_factory=dict)

    @property
    def pivots(self) -> Vector:
        """D by velocity."""
        joints = (step for steps in self.steps for step in steps if isinstance(step, JointStep))
        return {step.velocity: step.pivot.D for step in joints}

    def scaled(self, y: Vector) -> Vector:
        """Return -D^-1 y."""
        joints = (step for steps in self.steps for step in steps if isinstance(step, JointStep))
        r = {step.velocity: step.pivot.r for step in joints}
        return {k: mul(value, r[k]) for k, value in y.items()}

    @property
    def row_pivots(self) -> Vector:
        """Pivots p by row, of rows eliminated inside the tree."""
        return {step.row: step.pivot for steps in self.steps for step in steps if isinstance(step, RowStep)}


def eliminate(
    tree: Tree, posed: list[Posed], forces: list[RowForce], decide: Decide, idle: Sequence[bool] = ()
) -> TreeElimination:
    """Eliminate all joints, and the rows that `decide` names, leaves first; rows that are `idle` bear nothing."""
    begins = [set[int]() if r in idle_rows(idle) else _begins(tree, row) for r, row in enumerate(forces)]
    elimination = TreeElimination(tree, posed, forces, _loop_aware(tree, begins), [[] for _ in tree.links])
    elimination.L = {r: {} for r in range(len(forces)) if r not in idle_rows(idle)}
    inertias = [articulated(link.inertia) for link in tree.links]
    arriving: list[dict[int, Pair]] = [{} for _ in tree.links]
    for r in elimination.L:
        for i, F in forces[r].links.items():
            arriving[i][r] = F
    for i in elimination.order:
        state = _AtLink(elimination, i, inertias[i], arriving[i])
        state.rows(decide, (i, 0), begins)
        state.joint()
        state.rows(decide, (i, 1), begins)
        parent = tree.links[i].parent
        for held in begins:
            if i in held:
                held.remove(i)
                held.update({parent} if parent >= 0 else ())
        if parent < 0:
            continue
        inertias[parent] = inertias[parent].add(carried(posed[i], state.IA))
        for r, F in state.open.items():
            F = posed[i].force_out(F)
            arriving[parent][r] = pair_add(arriving[parent][r], F) if r in arriving[parent] else F
    return elimination


def idle_rows(idle: Sequence[bool]) -> set[int]:
    """Return which rows are marked."""
    return {r for r, rests in enumerate(idle) if rests}


def _begins(tree: Tree, row: RowForce) -> set[int]:
    """Return the links at which a row's forces begin; one that acts on a joint begins at that joint's link."""
    carriers = {link.v + k: i for i, link in enumerate(tree.links) for k in range(len(link.axes))}
    return {*row.links, *(carriers[k] for k in row.joints)}


def _loop_aware(tree: Tree, begins: list[set[int]]) -> list[int]:
    """Return the links leaves first, branches on the ground with fewest rows to other branches before the others."""
    root = [tree.ancestors(i)[-1] for i in range(len(tree.links))]
    loops = Counter(
        branch for begin in begins for branch in {root[i] for i in begin} if len({root[i] for i in begin}) > 1
    )
    return sorted(range(len(tree.links)), key=lambda i: (loops[root[i]], -root[i], -i))


class _AtLink:
    """One link while its rows and its joint are eliminated."""

    def __init__(self, made: TreeElimination, i: int, IA: Articulated, arrived: dict[int, Pair]) -> None:
        self.made, self.i, self.IA, self.open = made, i, IA, dict(arrived)
        self.link = made.tree.links[i]

    def rows(self, decide: Decide, place: Place, held: list[set[int]]) -> None:
        """Eliminate the rows that `decide` names, of those that no other link holds: `held` says which links do."""
        together = {
            r: self.open.get(r, REST)
            for r in self.made.L
            if held[r] == {self.i} and (place[1] or not self._acts_here(r))
        }
        for r in decide(place, self.made, together) if together else ():
            for s in self._row(r):
                held[s].add(self.i)  # from now on those act here, too, and must not go before they meet again

    def _acts_here(self, r: int) -> bool:
        return any(self.link.v <= k < self.link.v + len(self.link.axes) for k in self.made.forces[r].joints)

    def _row(self, r: int) -> Vector:
        """Eliminate one row; return the L_rs of rows that pull at this link in its place."""
        F, L = self.open.pop(r, REST), self.made.L.pop(r)
        p = L.pop(r)
        minus = minus_inverse(p)
        for s, entry in L.items():
            weight = mul(entry, minus)
            del self.made.L[s][r]
            self.open[s] = pair_add(self.open.get(s, REST), scaled(weight, F))
            for t, other in L.items():
                if t <= s:
                    value = add(self.made.L[s].get(t, 0.0), mul(weight, other))
                    self.made.L[s][t] = self.made.L[t][s] = value
        self.IA = _stiffened(self.IA, F, minus)
        self.made.steps[self.i].append(RowStep(r, F, p, minus, L))
        return L

    def joint(self) -> None:
        """Let the joint give way along each of its velocities."""
        for place, column in enumerate(columns(self.link)):
            k = self.link.v + place
            self.IA, pivot = joint_pivot(self.made.tree, self.link, place, column, self.IA)
            kappa = {r: along_column(column, F) for r, F in self.open.items()}
            for r in self.made.L:
                if k in self.made.forces[r].joints:
                    kappa[r] = add(kappa.get(r, 0.0), self.made.forces[r].joints[k])
            kappa = {r: x for r, x in kappa.items() if not is_zero(x)}
            for r, x in kappa.items():
                height = mul(x, pivot.r)
                force = self.made.forces[r].joints.get(k, 0.0)
                # the force along a unit axis without armature passes whole: what is left there is what the joint bears
                self.open[r] = yielded(self.open.get(r, REST), pivot, neg(height), neg(force))
                for s, y in kappa.items():
                    if s <= r:
                        value = sub(self.made.L[r].get(s, 0.0), mul(height, y))
                        self.made.L[r][s] = self.made.L[s][r] = value
            self.made.steps[self.i].append(JointStep(k, pivot, kappa))


def _stiffened(IA: Articulated, F: Pair, minus: Scalar) -> Articulated:
    """Return IA + F F^T / p for -1/p."""
    f = [*F[0], *F[1]]
    weighed = [neg(mul(minus, x)) for x in f]
    upper = [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)]
    A = tuple(mul(weighed[i], f[j]) for i, j in upper)
    C = tuple(mul(weighed[i + 3], f[j + 3]) for i, j in upper)
    B = tuple(tuple(mul(weighed[i], f[j]) for i in range(3)) for j in range(3, 6))
    return IA.add(Articulated(A, B, C))  # type: ignore[arg-type]


# ----------------------------------------------------------------------------------------------------------------------
# The link at which each constraint is eliminated: decided once, before code is made, on numbers.
#
# Symbols: L, F as above; s row scales, G_ii^-1/2 (`conditioning.py`).
#
# A constraint may go where its forces have come together and the joints so far can hold it alone: the smallest
# eigenvalue of s L s over its rows is above `SAFE` at every probe. Probes are random configurations that meet the
# constraints, and the neutral one if it is within the limits: a robot that may stand with straight knees carries its
# contacts further, past the joint that saves them. Where rows are redundant, those with a part in a dependence stay
# open to the ground, where the least multipliers are found as on every other route; the other rows of their constraints
# do not, and the row across the plane of a planar loop, which says nothing, is left out. A configuration that is worse
# than all probes shows in the pivots.


Order = dict[Place, list[int]]
"""Rows by the place at which they are eliminated."""


def elimination_order(setting: Tracing, forces: list[RowForce]) -> Order:
    """Return the order, by eliminating numbers at the probes and looking at pivots."""
    needs = setting.needs
    q = np.array([*closed_configurations(setting.mechanism), *neutral_if_met(setting.mechanism)])
    numbers = _numbers(setting, forces, q)
    open_rows, groups = {r for r, depends in enumerate(needs.dependent) if depends}, setting.mechanism.row_groups
    sizes = Counter(group for r, group in enumerate(groups) if r not in open_rows)
    order: Order = {}

    def decide(place: Place, made: TreeElimination, together: dict[int, Pair]) -> Sequence[int]:
        taken: list[int] = []
        for _, rows in groupby(sorted(together), key=lambda r: groups[r]):
            group = [r for r in rows if r not in open_rows]
            if group and len(group) == sizes[groups[group[0]]] and _safe(made.L, group, taken, needs, len(q)):
                taken += group
        order[place] = taken
        return taken

    with np.errstate(divide="ignore", invalid="ignore"):
        eliminate(setting.tree, pose_tree(setting.tree, list(q.T)), numbers, decide, needs.idle)
    return {place: rows for place, rows in order.items() if rows}


def _safe(L: dict[int, Vector], group: list[int], taken: list[int], needs: Conditioning, count: int) -> bool:
    """Say whether s L s of a group, once `taken` are eliminated, is far from singular at all probes."""
    rows = [*taken, *group]
    whole = np.array([[np.broadcast_to(L[r].get(s, 0.0), count) for s in rows] for r in rows], dtype=float)
    scales = np.array([needs.row_scales[r] for r in rows])
    blocks = np.moveaxis(whole * scales[:, None, None] * scales[:, None], 2, 0)
    k = len(taken)
    block = blocks[:, k:, k:]
    if k:
        block = block - blocks[:, k:, :k] @ np.linalg.solve(blocks[:, :k, :k], blocks[:, :k, k:])
    return bool(np.isfinite(block).all() and np.linalg.eigvalsh(block).min() > SAFE)


def _numbers(setting: Tracing, forces: list[RowForce], q: Array) -> list[RowForce]:
    """Return the rows with arrays, one entry per probe, for expressions; at t = 0."""
    unknown = [x for row in forces for x in _entries(row) if isinstance(x, ca.SX)]
    inputs = [setting.column(name) for name in ("q", "v", "t")]
    function = ca.Function("forces", inputs, [ca.vertcat(*unknown) if unknown else ca.SX(0, 1)])
    values = np.array([np.array(function(place, np.zeros(setting.tree.nv), 0.0)).ravel() for place in q])
    columns = iter(values.T)

    def number(x: Any) -> Any:
        return next(columns) if isinstance(x, ca.SX) else x

    result = []
    for row in forces:
        links = {i: tuple(tuple(number(x) for x in part) for part in F) for i, F in row.links.items()}
        result.append(RowForce(links, {k: number(x) for k, x in row.joints.items()}, 0.0))  # type: ignore[arg-type]
    return result


def _entries(row: RowForce) -> list[Any]:
    return [*(x for F in row.links.values() for part in F for x in part), *row.joints.values()]


# ----------------------------------------------------------------------------------------------------------------------
# Right sides through a tree whose joints and rows have been eliminated: inward with forces, outward with motions.
#
# Symbols: as above.


@dataclass(eq=False)
class Right:
    """u by velocity, b by row."""

    u: Vector
    b: Vector

    def joint(self, pA: Pair, step: JointStep, load: Load) -> Pair:
        """Pass a joint."""
        k, pivot = step.velocity, step.pivot
        tau = load.joints[k]
        self.u[k] = sub(tau, along_column(pivot.column, pA))
        height = mul(self.u[k], pivot.r)
        for s, kappa in step.kappa.items():
            self.b[s] = sub(self.b[s], mul(kappa, height))
        return yielded(pA, pivot, height, tau)

    def row(self, pA: Pair, step: RowStep) -> Pair:
        """Pass a row."""
        height = mul(self.b[step.row], step.r)
        for s, entry in step.L.items():
            self.b[s] = add(self.b[s], mul(entry, height))
        return pair_add(pA, scaled(neg(height), step.F))


def inward(made: TreeElimination, load: Load, c: Sequence[Scalar]) -> Right:
    """Return what a right side leaves at joints, at rows and at the ground."""
    right = Right({}, {r: neg(value) for r, value in enumerate(c)})
    arriving = list(load.links)
    for i in made.order:
        pA = arriving[i]
        for step in made.steps[i]:
            pA = right.joint(pA, step, load) if isinstance(step, JointStep) else right.row(pA, step)
        parent = made.posed[i].link.parent
        if parent >= 0:
            arriving[parent] = pair_add(arriving[parent], made.posed[i].force_out(pA))
    return right


def outward(made: TreeElimination, right: Right, lam: dict[int, Scalar]) -> TreeAcceleration:
    """Return accelerations, with lam of the rows left at the ground given; fill in lam of all others."""
    qdd: Vector = {}
    links: list[Pair] = [REST] * len(made.posed)
    for i in reversed(made.order):
        link, parent = made.posed[i], made.posed[i].link.parent
        a = REST if parent < 0 else link.motion_into(links[parent])
        for step in reversed(made.steps[i]):
            if isinstance(step, RowStep):
                others = total(*(mul(entry, lam[s]) for s, entry in step.L.items()))
                reach = total(*map(vectors.dot, step.F, a), sub(right.b[step.row], others))
                lam[step.row] = neg(mul(reach, step.r))
            else:
                k = step.velocity
                height = sub(right.u[k], total(*(mul(x, lam[s]) for s, x in step.kappa.items())))
                qdd[k], a = accelerated(a, step.pivot, mul(height, step.pivot.r))
        links[i] = a
    return TreeAcceleration(dense(qdd, made.tree.nv), links)


# ----------------------------------------------------------------------------------------------------------------------
# Route "caba": rows eliminated inside the tree, and loops where they meet; what is left is solved at the ground.
#
# Symbols: as above; T_f, T_l as in `kkt/expressions/verdict.py`.
#
# No Delassus matrix is made. The sizes that residuals are measured against come from the elimination: with joints
# first and rows last the sum of u^2 / D over joints would be T_f^2, that of b^2 / p over rows T_l^2. In any other order
# they are the same for a tree that the rows eliminated so far have stiffened. Multipliers would not do: near a
# configuration where rank is lost they grow without limit, and any residual is small beside them.


@dataclass(frozen=True, eq=False)
class InsideTheTree:
    """The eliminated tree, and what solves the rows that are left."""

    setting: Tracing
    made: TreeElimination
    left: list[int]
    schur: SparseFactor | RedundantRows

    @classmethod
    def of(cls, setting: Tracing, forces: list[RowForce]) -> InsideTheTree:
        """Eliminate in the order that suits the probes."""
        order = elimination_order(setting, forces)

        def decide(place: Place, made: TreeElimination, together: dict[int, Pair]) -> Sequence[int]:
            return order.get(place, ())

        needs = setting.needs
        elimination = eliminate(setting.tree, setting.posed, forces, decide, needs.idle)
        rows = sorted(elimination.L)
        L = [[elimination.L[r].get(s, 0.0) for s in rows] for r in rows]
        metric = None if setting.metric is None else [setting.metric[r] for r in rows]
        return cls(setting, elimination, rows, factored(L, needs.of_rows(rows), metric))

    def solve(self, load: Load, c: Sequence[Scalar], inputs: Sequence[Scalar]) -> BlockAnswer:
        """Return a and lam with the verdict."""
        needs, limits = self.setting.needs, self.setting.limits
        right = inward(self.made, load, c)
        forces, held = multipliers(self.schur, sparse([right.b[r] for r in self.left]))
        by_row = dict(zip(self.left, dense(forces, len(self.left)), strict=True))
        free, borne = self._effort(right)
        motion = outward(self.made, right, by_row)
        lam = [by_row.get(r, 0.0) for r in range(len(c))]
        inside = relative(self.made.row_pivots, needs.row_scales)
        pivots = row_pivots(self.schur, needs.of_rows(self.left)) + inside
        solved = Solved(motion.joints, motion, lam, free, add(borne, held), pivots)
        system = TreeSystem(self.made.tree, self.made.posed, self.made.forces, self.made)  # type: ignore[arg-type]
        answer = judged(system, needs, limits, Asked(load, c, inputs), solved)
        # a row that joints so far cannot hold spoils the pivots of joints after it: no motion lacks mass for that
        spoilt = ca.logic_not(reduce(ca.fmin, inside, ca.SX(1)) > limits.regular)
        spoilt = ca.logic_and(answer.status == int(Status.MASSLESS), spoilt)
        return replace(answer, status=ca.if_else(spoilt, int(Status.DECLINED), answer.status))

    def _effort(self, right: Right) -> tuple[Scalar, Scalar]:
        """Return T_f^2, and what rows inside the tree have of T_l^2."""
        steps = [step for steps in self.made.steps for step in steps]
        joints = [(right.u[step.velocity], step.pivot.r) for step in steps if isinstance(step, JointStep)]
        rows = [(right.b[step.row], step.r) for step in steps if isinstance(step, RowStep)]
        free, inside = (neg(total(*(mul(x, mul(x, r)) for x, r in pairs))) for pairs in (joints, rows))
        return free, inside
