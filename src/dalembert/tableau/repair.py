"""What happens to samples that the plan did not solve soundly: refine, plan again, SuperLU, singular.

First the residual is judged once more: straight-line code takes it row by row, which is too strict where a row of
|A| |x| is itself only rounding; the compiled loop knows such rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as sla
from jaxtyping import Float, Int
from scipy.sparse.csgraph import structural_rank

from dalembert.errors import SolvabilityError
from dalembert.tableau.checks import ACCEPTED_ERROR, Outcome, Statistics, sound, trusted
from dalembert.tableau.engines import errors_of, loop_engine
from dalembert.tableau.factor_loops import residuals
from dalembert.tableau.plan import Plan, make_plan

Array = np.ndarray
Run = Callable[[Array, Array], tuple[Array, Array]]

SPARE_PLANS = 4
"""Plans kept from earlier repairs: troubles tend to come back. At most this many new ones per call."""

SINGULAR_CONDITION = 0.1 / np.finfo(float).eps
"""Condition, in the 1-norm after equilibration, from which no digit of the solution is certain."""


class Repair:
    """Repairs samples in place; keeps the plans it made."""

    def __init__(self, plan: Plan, statistics: Statistics) -> None:
        self.plan = plan
        self.statistics = statistics
        self.spares: list[Run] = []

    def __call__(
        self,
        run: Run,
        data: Float[Array, "N entries"],
        b: Float[Array, "N n"],
        bad: Int[Array, " bad"],
        x: Float[Array, "N n"],
        checks: Float[Array, "N three"],
        status: Int[Array, " N"],
    ) -> None:
        """Work through the ways, cheapest first."""
        checks[bad, 0] = errors_of(self.plan, data[bad], b[bad], x[bad])
        bad = bad[~sound(x[bad], checks[bad])]
        bad = self._refine(run, data, b, bad, x, checks, status)
        for spare in list(self.spares):
            bad = self._try(spare, data, b, bad, x, checks, status)
        paired = self.plan.paired
        for _ in range(SPARE_PLANS):
            if not bad.size:
                return
            spare = self._replan(data[bad[0]], paired)
            if spare is None:
                break
            left = self._try(spare, data, b, bad, x, checks, status)
            failed = bool(left.size) and left[0] == bad[0]
            if failed and not paired:
                break
            bad, paired = left, paired and not failed
        for sample in bad:
            x[sample], checks[sample], status[sample] = self._superlu(data[sample], b[sample])

    def _refine(
        self, run: Run, data: Array, b: Array, bad: Array, x: Array, checks: Array, status: Array
    ) -> Int[Array, " left"]:
        """Take one step of iterative refinement where the pivots are sound."""
        worth = bad[trusted(x[bad], checks[bad])]
        if worth.size:
            residual = np.empty((len(worth), self.plan.n))
            residuals(self.plan.pattern.indptr, self.plan.pattern.indices, data[worth], b[worth], x[worth], residual)
            better = x[worth] + run(data[worth], residual)[0]
            error = errors_of(self.plan, data[worth], b[worth], better)
            done = error <= ACCEPTED_ERROR
            x[worth[done]], checks[worth[done], 0], status[worth[done]] = better[done], error[done], Outcome.REFINED
        return bad[status[bad] == Outcome.PLANNED]

    def _try(
        self, spare: Run, data: Array, b: Array, bad: Array, x: Array, checks: Array, status: Array
    ) -> Int[Array, " left"]:
        """Solve with another plan; keep what is sound."""
        if not bad.size:
            return bad
        other, found = spare(data[bad], b[bad])
        good = sound(other, found)
        x[bad[good]], checks[bad[good]], status[bad[good]] = other[good], found[good], Outcome.REPLANNED
        return bad[~good]

    def _replan(self, values: Array, paired: bool) -> Run | None:
        """Plan anew with the values of a sample that failed; exact zeros are no pivots."""
        try:
            plan = make_plan(self.plan.pattern, values=values, paired=paired)
        except SolvabilityError:
            return None
        self.statistics.plans += 1
        spare = loop_engine(plan)
        self.spares = [*self.spares[-(SPARE_PLANS - 1) :], spare]
        return spare

    def _superlu(self, values: Array, b: Array) -> tuple[Array, Array, int]:
        """Solve with partial pivoting at run time; singular if no digit is certain."""
        nothing = np.full(len(b), np.nan), np.array([np.nan, 0.0, np.nan]), int(Outcome.SINGULAR)
        A = sp.csc_array(self.plan.pattern.matrix(values))
        A.eliminate_zeros()
        if structural_rank(A) < len(b):  # SuperLU does not survive every empty or doubled column
            return nothing
        row, col = _scales(A)
        scaled = sp.csc_array(sp.diags_array(row) @ A @ sp.diags_array(col))
        try:
            factors = sla.splu(scaled)
        except RuntimeError:
            return nothing
        with np.errstate(all="ignore"):
            if not _condition(scaled, factors) < SINGULAR_CONDITION:
                return nothing
            x = col * factors.solve(row * b)
            x = x + col * factors.solve(row * (b - A @ x))
        error = errors_of(self.plan, values[None], b[None], x[None])[0]
        if not error <= 10 * ACCEPTED_ERROR:
            return nothing
        entry = np.abs(values).max(initial=0.0)
        return x, np.array([error, 1.0, np.abs(factors.U.data).max() / entry]), int(Outcome.SUPERLU)


def _scales(A: sp.csc_array) -> tuple[Array, Array]:
    """Return row and column scales that bring largest entries to one; rows first."""
    size = abs(A)
    row = 1.0 / np.maximum(size.max(axis=1).toarray().ravel(), np.finfo(float).tiny)
    col = 1.0 / np.maximum((sp.diags_array(row) @ size).max(axis=0).toarray().ravel(), np.finfo(float).tiny)
    return row, col


def _condition(A: Any, factors: sla.SuperLU) -> float:
    """Return an estimate of the condition in the 1-norm (N. J. Higham, F. Tisseur 2000, as SciPy has it)."""
    n = A.shape[0]
    if n <= 4:
        return float(np.linalg.cond(A.toarray(), 1))
    solve: dict[str, Any] = {"matvec": factors.solve, "rmatvec": lambda y: factors.solve(y, "T"), "dtype": float}
    estimate: Any = sla.onenormest(sla.LinearOperator(A.shape, **solve))
    return float(estimate * sla.norm(A, 1))
