"""Engines: the straight-line and the looped executor of a plan behind one contract, for batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np
from jaxtyping import Float

from dalembert.tableau.elimination.accuracy import backward_errors, factor_solve_batch, refine_batch
from dalembert.tableau.elimination.looped import make_program, make_workspace
from dalembert.tableau.elimination.plan import Plan
from dalembert.tableau.elimination.straight import TwoWidths, check_expressions, straight_line_solve
from dalembert.types import Array

# ----------------------------------------------------------------------------------------------------------------------
# The engines that carry out a plan: one contract, `(values, right) -> x, checks`, leading axis N.
#
# | engine | what |
# |---|---|
# | `straight` | straight-line code, compiled, W samples side by side: systems of up to some thousand unknowns |
# | `loop` | the same index program in a compiled loop: any size |


Engine = Callable[[Array, Array], tuple[Array, Array]]

STRAIGHT_LIMIT = 60_000
"""Operations of a plan up to which straight-line code is the default: above, compiling takes tens of seconds."""


class StraightEngine:
    """The plan compiled to straight-line code."""

    def __init__(self, plan: Plan) -> None:
        a, b = ca.SX.sym("a", plan.pattern.entries), ca.SX.sym("b", plan.n)
        values, right = ca.vertsplit(a), ca.vertsplit(b)
        solved = straight_line_solve(plan, values, right)
        checks = check_expressions(plan, values, right, solved)
        self._both = TwoWidths(ca.Function("elimination", [a, b], [solved.x, checks], ["a", "b"], ["x", "checks"]))

    def __call__(self, values: Array, right: Array) -> tuple[Array, Array]:
        """Solve a batch."""
        x, checks = self._both.wide(values, right) if len(right) > 1 else self._both.narrow(values, right)
        return x, checks[:, :3]

    def one(self, values: Array, right: Array) -> tuple[Array, Array]:
        """Solve a single system: x, and the checks with their verdict last."""
        return self._both.narrow(values, right)


def bare_kernel(plan: Plan) -> TwoWidths:
    """Return the compiled elimination without its checks: entries (N, entries) and right sides (N, n) to x (N, n)."""
    a, b = ca.SX.sym("a", plan.pattern.entries), ca.SX.sym("b", plan.n)
    solved = straight_line_solve(plan, ca.vertsplit(a), ca.vertsplit(b))
    return TwoWidths(ca.Function("elimination_bare", [a, b], [solved.x], ["a", "b"], ["x"]))


class LoopEngine:
    """The looped plan; workspaces are kept and used again, one per call that runs at the same time."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.program, self._spare = make_program(plan), [make_workspace(plan)]

    def __call__(self, values: Array, right: Array) -> tuple[Array, Array]:
        """Solve a batch."""
        x = np.empty(right.shape)
        return x, self._with_workspace(factor_solve_batch, values, right, x)

    def refine(self, values: Array, right: Array, x: Array) -> tuple[Array, Array]:
        """Improve answers by two steps of refinement."""
        better = np.array(x)
        return better, self._with_workspace(refine_batch, values, right, better)

    def _with_workspace(self, loop: Any, values: Array, right: Array, x: Array) -> Array:
        try:
            work = self._spare.pop()
        except IndexError:
            work = make_workspace(self.plan)
        checks = np.empty((len(right), 3))
        loop(self.program, work, values, right, x, checks)
        self._spare.append(work)
        return checks


ENGINES: dict[str, Callable[[Plan], Engine]] = {
    "straight": StraightEngine,
    "loop": LoopEngine,
}
"""Every engine by its name."""


def errors_of(plan: Plan, values: Array, right: Array, x: Array) -> Float[Array, " N"]:
    """Return the backward error of each sample, row by row."""
    found = np.empty(len(right))
    data, b, y = (np.ascontiguousarray(v, dtype=float) for v in (values, right, x))
    backward_errors(plan.pattern.indptr, plan.pattern.indices, data, b, y, found)
    return found
