"""Route "caba": rows eliminated inside the tree, and loops where they meet; what is left is solved at the ground.

Symbols: as in `elimination.py`; T_f, T_l as in `verdict.py`.

No Delassus matrix is made. The sizes that residuals are measured against come from the elimination: with joints
first and rows last the sum of u^2 / D over joints would be T_f^2, that of b^2 / p over rows T_l^2. In any other order
they are the same for a tree that the rows eliminated so far have stiffened. Multipliers would not do: near a
configuration where rank is lost they grow without limit, and any residual is small beside them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING

import casadi as ca

from dalembert.kkt import Status
from dalembert.tree.articulated_system import Load, TreeSystem
from dalembert.tree.block_solve import factored, multipliers, row_pivots
from dalembert.tree.judged import Asked, BlockAnswer, Solved, judged, relative
from dalembert.tree.redundant_rows import RedundantRows
from dalembert.tree.routes.elimination import Elimination, JointStep, Place, RowStep, eliminate
from dalembert.tree.routes.order import elimination_order
from dalembert.tree.routes.substitution import Right, inward, outward
from dalembert.tree.row_forces import RowForce
from dalembert.tree.scalars import Scalar, add, mul, neg, total
from dalembert.tree.screws import Pair
from dalembert.tree.sparse_factor import SparseFactor, dense, sparse

if TYPE_CHECKING:
    from dalembert.tree.constrained import Setting


@dataclass(frozen=True, eq=False)
class InsideTheTree:
    """The eliminated tree, and what solves the rows that are left."""

    setting: Setting
    made: Elimination
    left: list[int]
    schur: SparseFactor | RedundantRows

    @classmethod
    def of(cls, setting: Setting, forces: list[RowForce]) -> InsideTheTree:
        """Eliminate in the order that suits the probes."""
        order = elimination_order(setting, forces)

        def decide(place: Place, made: Elimination, together: dict[int, Pair]) -> Sequence[int]:
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
