"""Route "caba": rows eliminated inside the tree, and loops where they meet; what is left is solved at the ground.

Symbols: as in `elimination.py`; d, s scales, T_a^2 = a^T M a, T_f, T_l as in `verdict.py`.

No Delassus matrix is made, so the sizes that residuals are measured against come from the answer: a^T M a = f . a - c .
lam, T_l no larger than the sum of |lam_r| / s_r, and T_f no larger than both together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING

import casadi as ca

from dalembert.kkt import Status
from dalembert.tree import vectors
from dalembert.tree.articulated_system import Load, TreeAcceleration, TreeSystem
from dalembert.tree.block_solve import factored, multipliers, row_pivots
from dalembert.tree.judged import Asked, BlockAnswer, Solved, judged, relative
from dalembert.tree.proximal import Proximal
from dalembert.tree.routes.elimination import Elimination, Place, eliminate
from dalembert.tree.routes.order import elimination_order
from dalembert.tree.row_forces import RowForce
from dalembert.tree.scalars import Scalar, add, is_zero, mul, neg, sub, total
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
    schur: SparseFactor | Proximal

    @classmethod
    def of(cls, setting: Setting, forces: list[RowForce]) -> InsideTheTree:
        """Eliminate in the order that suits the probes."""
        order = elimination_order(setting, forces)

        def decide(place: Place, made: Elimination, together: dict[int, Pair]) -> Sequence[int]:
            return order.get(place, ())

        made = eliminate(setting.tree, setting.posed, forces, decide)
        left = sorted(made.L)
        L = [[made.L[r].get(s, 0.0) for s in left] for r in left]
        return cls(setting, made, left, factored(L, setting.needs, setting.metric, setting.limits, left))

    def solve(self, load: Load, c: Sequence[Scalar], inputs: Sequence[Scalar]) -> BlockAnswer:
        """Return a and lam with the verdict."""
        needs, limits = self.setting.needs, self.setting.limits
        right = self.made.inward(load, c)
        forces, unrest = multipliers(self.schur, sparse([right.b[r] for r in self.left]))
        known = dict(zip(self.left, dense(forces, len(self.left)), strict=True))
        motion = self.made.outward(right, known)
        lam = [known[r] for r in range(len(c))]
        free, held = self._effort(load, c, motion, lam)
        own = replace(needs, row_scales=tuple(needs.row_scales[r] for r in self.left))
        found = Solved(motion.joints, motion, lam, free, held, unrest, row_pivots(self.schur, own))
        system = TreeSystem(self.made.tree, self.made.posed, self.made.forces, self.made)  # type: ignore[arg-type]
        answer = judged(system, needs, limits, Asked(load, c, inputs), found)
        inside = reduce(ca.fmin, relative(self.made.row_pivots, needs.row_scales), ca.SX(1))
        unsafe = ca.logic_and(answer.status != int(Status.NONFINITE), ca.logic_not(inside > limits.implied))
        return replace(answer, status=ca.if_else(unsafe, int(Status.DECLINED), answer.status))

    def _effort(
        self, load: Load, c: Sequence[Scalar], motion: TreeAcceleration, lam: Sequence[Scalar]
    ) -> tuple[Scalar, Scalar]:
        """Return T_f^2 and T_l^2."""
        pairs = zip(load.links, motion.links, strict=True)
        needed = total(*(x for force, a in pairs for x in map(vectors.dot, force, a)))
        work = sub(total(*map(mul, load.joints, motion.joints)), needed)
        moving = _root(add(work, neg(total(*map(mul, c, lam)))))
        sizes = [mul(1.0 / s, _size(x)) for s, x in zip(self.setting.needs.row_scales, lam, strict=True)]
        holding = total(*sizes)
        free = add(moving, holding)
        return mul(free, free), mul(holding, holding)


def _root(x: Scalar) -> Scalar:
    return 0.0 if is_zero(x) else ca.sqrt(ca.fabs(x))


def _size(x: Scalar) -> Scalar:
    return abs(x) if type(x) is float else ca.fabs(x)
