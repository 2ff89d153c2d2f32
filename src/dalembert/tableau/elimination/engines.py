"""Engines that carry an elimination plan out, and the checks of the solutions that they give."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from dalembert.errors import ModelError
from dalembert.kkt.limits import ACCEPTED_ERROR, SUSPECT_GROWTH, SUSPECT_PIVOT
from dalembert.status import Status
from dalembert.tableau.elimination.accuracy import backward_errors, factor_solve_batch, refine_batch
from dalembert.tableau.elimination.looped import make_program, make_workspace
from dalembert.tableau.elimination.plan import Plan
from dalembert.tableau.elimination.straight import TwoWidths, check_expressions, straight_line_solve
from dalembert.types import Array

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

# ----------------------------------------------------------------------------------------------------------------------
# Checks of a sparse solve: backward error, pivot quality, growth.
#
# - backward error: max_i |b - A x|_i / (|A| |x| + |b|)_i, the size of the change of data for which x is exact
#   (W. Oettli, W. Prager, Numer. Math. 6 (1964) 405-409); where that is too strict, the size of a change of data that
#   moves every unknown as far as the residual does (`accuracy.py`);
# - pivot quality: the least |pivot| / (sum of the sizes of the terms it was made of); a pivot that is all cancellation
#   is the sign of a singular matrix;
# - growth: largest entry of U over largest entry of A, both in rows that elimination changes, at least 1.


OUTCOMES = (
    Status.PLANNED, Status.REFINED, Status.REPLANNED, Status.SUPERLU, Status.SINGULAR, Status.NONFINITE,
)  # fmt: skip
"""How a sample was solved, or that it was not; all but the last two are answers that passed the checks."""


@dataclass
class SolveCounts:
    """How often each way was taken, since the elimination was made."""

    samples: int = 0
    planned: int = 0
    refined: int = 0
    replanned: int = 0
    superlu: int = 0
    singular: int = 0
    nonfinite: int = 0
    plans: int = 1

    def count_planned(self, samples: int) -> None:
        """Add samples that were all solved as planned."""
        self.samples += samples
        self.planned += samples

    def count(self, status: Int[Array, " N"]) -> None:
        """Add the outcomes of one call."""
        self.samples += len(status)
        planned, refined, replanned, superlu, singular, nonfinite = (
            int(np.count_nonzero(status == x)) for x in OUTCOMES
        )
        self.planned += planned
        self.refined += refined
        self.replanned += replanned
        self.superlu += superlu
        self.singular += singular
        self.nonfinite += nonfinite

    def __str__(self) -> str:
        counts = ", ".join(f"{k} {v}" for k, v in vars(self).items() if v and k not in ("samples", "plans"))
        return f"{self.samples} solves: {counts or 'none'}; {self.plans} plan(s)"


@dataclass(frozen=True, eq=False)
class LinearSolution:
    """Solutions with their checks; N = 1 keeps its axis in `status` and the checks.

    Attributes
    ----------
    x : (n,) or (N, n)
        NaN where the status is SINGULAR or NONFINITE.
    status : (N,)
        `Status` of each sample.
    checks : (N, 3)
        Backward error, pivot quality and growth, also by name; see the head of this file. They are those of the
        plan that gave the answer.
    origin
        What `error` is found with: a function of (values, right, x), and values and right.
    """

    x: Float[Array, "*batch n"]
    status: Int[Array, " N"]
    checks: Float[Array, "N three"]
    origin: tuple[Any, ...] | None = field(default=None, repr=False)

    @property
    def error(self) -> Float[Array, "*batch n"]:
        """Estimated |x - exact x| of every unknown, the given numbers taken as exact; found when asked for.

        A small backward error is a small error only where the matrix is well conditioned: this says how small. It
        takes a factorization with partial pivoting per sample. NaN where there is no answer.
        """
        if self.origin is None:
            raise ModelError("nothing is known of the error of this solution: its matrix was not kept")
        estimate, values, right = self.origin
        return estimate(values, right, self.x)

    @property
    def backward_error(self) -> Float[Array, " N"]:
        """Size of the change of data for which x is exact."""
        return self.checks[:, 0]

    @property
    def pivot_quality(self) -> Float[Array, " N"]:
        """What is left of the pivot that lost most."""
        return self.checks[:, 1]

    @property
    def growth(self) -> Float[Array, " N"]:
        """Growth of entries in the elimination."""
        return self.checks[:, 2]

    @property
    def ok(self) -> Bool[Array, " N"]:
        """Where there is an answer that passed."""
        return (self.status >= Status.PLANNED) & (self.status <= Status.SUPERLU)


ALL_PLANNED = np.full(1, Status.PLANNED, np.int64)
ALL_PLANNED.setflags(write=False)


def planned(x: Float[Array, " n"], checks: Float[Array, " four"], origin: tuple[Any, ...]) -> LinearSolution:
    """Return the solution of a single system that was sound at once."""
    return LinearSolution(x, ALL_PLANNED, checks[None, :3], origin)


def sound(x: Float[Array, "N n"], checks: Float[Array, "N three"]) -> Bool[Array, " N"]:
    """Return which samples passed every check."""
    return trusted(x, checks) & (checks[:, 0] <= ACCEPTED_ERROR)


def trusted(x: Float[Array, "N n"], checks: Float[Array, "N three"]) -> Bool[Array, " N"]:
    """Return which samples have finite numbers and sound pivots; refinement can help these only."""
    finite = np.isfinite(x).all(axis=1) & np.isfinite(checks).all(axis=1)
    return finite & (checks[:, 1] >= SUSPECT_PIVOT) & (checks[:, 2] <= SUSPECT_GROWTH)


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
    errors = np.empty(len(right))
    data, b, y = (np.ascontiguousarray(v, dtype=float) for v in (values, right, x))
    backward_errors(plan.pattern.indptr, plan.pattern.indices, data, b, y, errors)
    return errors
