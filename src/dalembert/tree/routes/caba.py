"""Route "caba": rows eliminated inside the tree, and loops where they meet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING

import casadi as ca

from dalembert.kkt import Status
from dalembert.kkt.expressions.scalars import add, mul, neg, sub, total
from dalembert.kkt.expressions.solver import RedundantRows, factored, multipliers, row_pivots
from dalembert.kkt.expressions.sparse_factor import SparseFactor, Vector, dense, sparse
from dalembert.kkt.expressions.verdict import Asked, BlockAnswer, Solved, judged, relative
from dalembert.tree.algebra import vectors
from dalembert.tree.algebra.screws import Pair
from dalembert.tree.algorithms.sweep import pair_add
from dalembert.tree.block.articulated_system import (
    REST,
    Load,
    TreeAcceleration,
    TreeSystem,
    accelerated,
    along_column,
    scaled,
    yielded,
)
from dalembert.tree.block.rows import RowForce
from dalembert.tree.routes.elimination import JointStep, Place, RowStep, TreeElimination, eliminate, elimination_order
from dalembert.types import Scalar

if TYPE_CHECKING:
    from dalembert.tree.block.constrained import Tracing

# ----------------------------------------------------------------------------------------------------------------------
# Right sides through a tree whose joints and rows have been eliminated: inward with forces, outward with motions.
#
# Symbols: as in `elimination.py`.


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
# Symbols: as in `elimination.py`; T_f, T_l as in `kkt/expressions/verdict.py`.
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
        made = eliminate(setting.tree, setting.posed, forces, decide, needs.idle)
        left = sorted(made.L)
        L = [[made.L[r].get(s, 0.0) for s in left] for r in left]
        metric = None if setting.metric is None else [setting.metric[r] for r in left]
        return cls(setting, made, left, factored(L, needs.of_rows(left), metric))

    def solve(self, load: Load, c: Sequence[Scalar], inputs: Sequence[Scalar]) -> BlockAnswer:
        """Return a and lam with the verdict."""
        needs, limits = self.setting.needs, self.setting.limits
        right = inward(self.made, load, c)
        forces, held = multipliers(self.schur, sparse([right.b[r] for r in self.left]))
        known = dict(zip(self.left, dense(forces, len(self.left)), strict=True))
        free, borne = self._effort(right)
        motion = outward(self.made, right, known)
        lam = [known.get(r, 0.0) for r in range(len(c))]
        inside = relative(self.made.row_pivots, needs.row_scales)
        pivots = row_pivots(self.schur, needs.of_rows(self.left)) + inside
        found = Solved(motion.joints, motion, lam, free, add(borne, held), pivots)
        system = TreeSystem(self.made.tree, self.made.posed, self.made.forces, self.made)  # type: ignore[arg-type]
        answer = judged(system, needs, limits, Asked(load, c, inputs), found)
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
