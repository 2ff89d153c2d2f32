"""A sparse linear solver made for one pattern: planned once, compiled, watched, repaired.

values, right side ─► engine ─► checks ─► sound: done
                                   └► refine ─► plan again with these values ─► SuperLU ─► singular, by name
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.checks import floats
from dalembert.errors import ModelError, ShapeError, SolvabilityError
from dalembert.kkt.limits import ACCEPTED_ERROR, CLEARED, SINGULAR_CONDITION, STRANGE_ERROR
from dalembert.status import Status
from dalembert.tableau.elimination.accuracy import ScaledFactors
from dalembert.tableau.elimination.engines import (
    ENGINES,
    STRAIGHT_LIMIT,
    LinearSolution,
    LoopEngine,
    SolveCounts,
    errors_of,
    planned,
    sound,
    trusted,
)
from dalembert.tableau.elimination.equilibration import equilibrate
from dalembert.tableau.elimination.plan import Plan, make_plan
from dalembert.tableau.inputs import as_numbers, known_options
from dalembert.tableau.structure.rank import loose_rank_report
from dalembert.types import Array

if TYPE_CHECKING:
    from jaxtyping import Float, Int

# ----------------------------------------------------------------------------------------------------------------------
# Repair of samples that a plan did not solve soundly: refine, plan again, SuperLU.
#
# First the answer is judged once more: straight-line code takes the residual row by row, which is too strict where a
# row of |A| |x| is itself only rounding; the compiled loop then asks what the residual does to each unknown
# (`accuracy.py`).


Run = Callable[[Array, Array], tuple[Array, Array]]

SPARE_PLANS = 4
"""Plans kept from earlier repairs: troubles tend to come back. At most this many new ones per call."""

LAST_STEPS = 3
"""Steps of refinement with SuperLU's factors, at most."""


class Repair:
    """Repairs samples in place; keeps the plans it made."""

    def __init__(self, plan: Plan, statistics: SolveCounts) -> None:
        self.plan = plan
        self.statistics = statistics
        self.spares: list[LoopEngine] = []

    @cached_property
    def loop(self) -> LoopEngine:
        """The plan itself, looped."""
        return LoopEngine(self.plan)

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
        if not isinstance(run, LoopEngine):
            bad = self._try(self.loop, data, b, bad, x, checks, status, Status.PLANNED)
        bad = self._refine(run if isinstance(run, LoopEngine) else self.loop, data, b, bad, x, checks, status)
        for spare in list(self.spares):
            bad = self._try(spare, data, b, bad, x, checks, status)
        paired = self.plan.paired
        for _ in range(SPARE_PLANS):
            if not bad.size:
                return
            spare = self._replan(data[bad[0]], paired)
            if spare is None:
                break
            rest = self._try(spare, data, b, bad, x, checks, status)
            failed = bool(rest.size) and rest[0] == bad[0]
            if failed and not paired:
                break
            bad, paired = rest, paired and not failed
        for sample in bad:
            x[sample], checks[sample], status[sample] = self._superlu(data[sample], b[sample])

    def _refine(
        self, loop: LoopEngine, data: Array, b: Array, bad: Array, x: Array, checks: Array, status: Array
    ) -> Int[Array, " left"]:
        """Take two steps of iterative refinement where the pivots are sound; return the samples that are left."""
        worth = bad[trusted(x[bad], checks[bad])]
        if not worth.size:
            return bad
        better, checked = loop.refine(data[worth], b[worth], x[worth])
        good = sound(better, checked)
        done = worth[good]
        x[done], checks[done], status[done] = better[good], checked[good], Status.REFINED
        return np.setdiff1d(bad, done)

    def _try(
        self,
        loop: LoopEngine,
        data: Array,
        b: Array,
        bad: Array,
        x: Array,
        checks: Array,
        status: Array,
        outcome: Status = Status.REPLANNED,
    ) -> Int[Array, " left"]:
        """Solve with a looped plan; keep what is sound, of another plan also after refinement."""
        if not bad.size:
            return bad
        other, checked = loop(data[bad], b[bad])
        again = np.flatnonzero(trusted(other, checked) & ~sound(other, checked))
        if again.size and outcome != Status.PLANNED:
            other[again], checked[again] = loop.refine(data[bad[again]], b[bad[again]], other[again])
        good = sound(other, checked)
        done = bad[good]
        x[done], checks[done], status[done] = other[good], checked[good], outcome
        return bad[~good]

    def _replan(self, values: Array, paired: bool) -> LoopEngine | None:
        """Plan anew with the values of a sample that failed, scaled; exact zeros are no pivots."""
        pattern = self.plan.pattern
        row, col = equilibrate(pattern.matrix(values))
        scaled = values * row[pattern.rows] * col[pattern.indices]
        try:
            plan = make_plan(pattern, values=scaled, paired=paired)
        except SolvabilityError:
            return None
        plan = replace(plan, probe=plan.probe / row[plan.rows] / col[plan.cols])
        self.statistics.plans += 1
        spare = LoopEngine(plan)
        self.spares = [*self.spares[-(SPARE_PLANS - 1) :], spare]
        return spare

    def _superlu(self, values: Array, b: Array) -> tuple[Array, Array, int]:
        """Solve with partial pivoting at run time; singular if no digit is certain."""
        nothing = np.full(len(b), np.nan), np.array([np.nan, 0.0, np.nan]), int(Status.SINGULAR)
        factors = ScaledFactors.of(self.plan.pattern.matrix(values))
        if factors is None:
            return nothing
        with np.errstate(all="ignore"):
            if not factors.condition() < SINGULAR_CONDITION:
                return nothing
            x, error = np.zeros(len(b)), np.inf
            for _ in range(1 + LAST_STEPS):
                x, error = self._closer(factors, values, b, x)
                if error <= ACCEPTED_ERROR:
                    break
            else:
                error = min(error, factors.errors(b, x)[0])
        if not error <= 10 * ACCEPTED_ERROR:
            return nothing
        growth = max(1.0, np.abs(factors.factors.U.data).max())
        return x, np.array([error, 1.0, growth]), int(Status.SUPERLU)

    def _closer(self, factors: ScaledFactors, values: Array, b: Array, x: Array) -> tuple[Array, float]:
        """Return x after a step of refinement, zeros in place of rounding where sound and no worse, and its error."""
        plain = x + factors.solve(b - factors.A @ x)
        cleared = np.where((np.abs(plain) <= CLEARED * np.abs(x)) | (x == 0.0), 0.0, plain)
        both = np.stack([cleared, plain])
        errors = errors_of(self.plan, np.stack([values] * 2), np.stack([b] * 2), both)
        best = 0 if errors[0] <= min(errors[1], ACCEPTED_ERROR) else 1
        return both[best], float(errors[best])


# ----------------------------------------------------------------------------------------------------------------------
# The solver of one pattern.


class Elimination:
    """Solves A x = b for many A of one pattern.

    Parameters
    ----------
    plan
        From `make_plan`.
    engine
        One of `dalembert.tableau.ENGINES`; "auto" takes straight-line code up to 60,000 operations, else the loop.

    Examples
    --------
    >>> import numpy as np
    >>> A = np.array([[2.0, 1.0], [1.0, 0.0]])
    >>> solver = eliminate(A, values=[2.0, 1.0, 1.0], engine="loop")
    >>> solver.solve([2.0, 1.0, 1.0], [3.0, 1.0]).x
    array([1., 1.])
    """

    def __init__(self, plan: Plan, engine: str = "auto") -> None:
        if not isinstance(plan, Plan):
            raise ModelError(f"Elimination takes a Plan from `make_plan`, not {type(plan).__name__}; see `eliminate`")
        if isinstance(engine, str) and engine == "auto":
            engine = "straight" if plan.operations <= STRAIGHT_LIMIT else "loop"
        if not isinstance(engine, str) or engine not in ENGINES:
            raise ModelError(f"engine {engine!r} is not one of 'auto', {', '.join(map(repr, ENGINES))}")
        self.plan = plan
        self.engine = engine
        self.statistics = SolveCounts()
        self._run = ENGINES[engine](plan)
        self._one = getattr(self._run, "one", None)
        self._entries, self._n = (plan.pattern.entries,), (plan.n,)
        self._repair = Repair(plan, self.statistics)

    def solve(self, values: Any, right: Any) -> LinearSolution:
        """Solve one system or a batch.

        Parameters
        ----------
        values
            Entries of A in CSR order, (entries,) or (N, entries); or A as a SciPy sparse matrix of this pattern.
        right
            (n,) or (N, n).

        A single system without an answer raises `SolvabilityError`, which names the dependent equations; in a batch
        such samples are NaN with their status.
        """
        if self._one is not None and _is_one(values, self._entries) and _is_one(right, self._n):
            x, checks = self._one(values, right)
            if checks[3]:
                self.statistics.count_planned(1)
                return planned(x, checks, (self.error, values, right))
        data, b, single = self._checked(values, right)
        return self.finish(data, b, *self._run(data, b), single)

    def finish(self, data: Array, b: Array, x: Array, checks: Array, single: bool) -> LinearSolution:
        """Judge what an engine found, repair what is not sound, and count."""
        x, checks = np.array(x), np.array(checks)
        status = np.full(len(b), Status.PLANNED, np.int64)
        finite = np.isfinite(data).all(axis=1) & np.isfinite(b).all(axis=1)
        status[~finite] = Status.NONFINITE
        bad = np.flatnonzero(finite & ~sound(x, checks))
        if bad.size:
            self._repair(self._run, data, b, bad, x, checks, status)
        solution = LinearSolution(x, status, checks, (self.error, data, b))
        x[~solution.ok] = np.nan
        self.statistics.count(status)
        if single and not solution.ok[0]:
            self._refuse(int(status[0]), data[0], b[0])
        return replace(solution, x=x[0]) if single else solution

    def error(self, values: Any, right: Any, x: Any) -> Array:
        """Return the estimated |x - exact x| of every unknown, of one answer or a batch; NaN where x is.

        For `values` and `right` that x answers: other ones are refused.
        """
        data, b, _ = self._checked(values, right)
        solutions = np.atleast_2d(floats(x, "x"))
        if solutions.shape != b.shape:
            raise ShapeError(f"x has shape {np.shape(x)} for {len(b)} system(s) of {self.plan.n} unknowns")
        errors = np.array([self._error(*sample) for sample in zip(data, b, solutions, strict=True)]).reshape(b.shape)
        return errors if np.ndim(x) == 2 else errors[0]

    def _error(self, data: Array, b: Array, x: Array) -> Array:
        """Return the estimate for one system."""
        nothing = np.full(len(b), np.nan)
        if not all(np.isfinite(array).all() for array in (data, b, x)):
            return nothing
        factors = ScaledFactors.of(self.plan.pattern.matrix(data))
        if factors is None:
            return nothing
        with np.errstate(all="ignore"):
            size, errors = factors.errors(b, x)
        if not min(size, errors_of(self.plan, data[None], b[None], x[None])[0]) <= STRANGE_ERROR:
            raise ModelError(
                "x is no solution of these values and right side; were the arrays changed after the solve?"
            )
        return errors

    def _checked(self, values: Any, right: Any) -> tuple[Array, Array, bool]:
        """Return values and right sides with a leading axis, and whether neither had one."""
        data, b = self.plan.pattern.values_of(values, "values"), as_numbers(right, "right")
        single = data.ndim == 1 and b.ndim == 1
        entries, n = self.plan.pattern.entries, self.plan.n
        for array, size, what in ((data, entries, "values"), (b, n, "right")):
            if array.ndim not in (1, 2) or array.shape[-1] != size:
                raise ShapeError(f"{what} must have shape ({size},) or (N, {size}); it has {array.shape}")
        lengths = {len(array) for array in (data, b) if array.ndim == 2}
        if len(lengths) > 1:
            raise ShapeError(f"values and right are batches of different lengths: {sorted(lengths)}")
        count = lengths.pop() if lengths else 1
        data, b = np.broadcast_to(data, (count, entries)), np.broadcast_to(b, (count, n))
        return np.ascontiguousarray(data), np.ascontiguousarray(b), single

    def _refuse(self, outcome: int, data: Array, b: Array) -> None:
        """Raise for a single system without an answer."""
        pattern = self.plan.pattern
        if outcome == Status.NONFINITE:
            where = np.flatnonzero(~np.isfinite(data))
            rows = pattern.rows[where] if where.size else np.flatnonzero(~np.isfinite(b))
            names = sorted({pattern.equations[i] for i in rows})
            raise SolvabilityError(
                f"NaN or infinity in equation(s) {', '.join(map(repr, names[:6]))}; look at the values that go in"
            )
        report = loose_rank_report(pattern, data)
        if report.full:
            raise SolvabilityError(
                "no answer passed the checks: neither refined, nor planned anew, nor of SuperLU. Its equations are not "
                "dependent; look for entries that overflow, underflow or differ by very many orders",
                report,
            )
        raise SolvabilityError(f"the matrix is singular to working precision. {report}", report)

    def explain(self) -> str:
        """Return plan, engine and statistics in words."""
        return f"{self.plan.explain()}\nengine {self.engine}; {self.statistics}"


def _is_one(array: Any, shape: tuple[int]) -> bool:
    """Whether this is an array of one system as the compiled code takes it, without a look at anything else."""
    return type(array) is np.ndarray and array.shape == shape and array.dtype == float


def eliminate(matrix: Any, **options: Any) -> Any:
    """Plan and compile the elimination of a sparse pattern, or Newton's step of an SX function.

    Parameters
    ----------
    matrix
        A sparse pattern (SciPy matrix, `casadi.Sparsity`, dense array, `Pattern`): returns an `Elimination` with
        `solve(values, right)`. Or a `casadi.Function` f(x, ...) -> residual: returns a `NewtonStep` with
        `step(x, ...)`, residual, Jacobian, factorization and solve in one compiled call.
    options
        Of `make_plan` and `Elimination`, or of `NewtonStep`.
    """
    if hasattr(matrix, "n_in") and hasattr(matrix, "sparsity_in"):
        from dalembert.tableau.newton_batch import NewtonStep

        return NewtonStep(matrix, **known_options(NewtonStep, options))
    from dalembert.tableau.elimination.plan import make_plan

    engine = options.pop("engine", "auto")
    return Elimination(make_plan(matrix, **known_options(make_plan, options, "engine")), engine)
