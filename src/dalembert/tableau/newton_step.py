"""Newton's step of a user's residual, one compiled call: residual, Jacobian, factorization, solve, checks.

f(x, ...) = 0,  J = df/dx,  J step = -f  (seed 003, eqs. 13, 14).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np
from jaxtyping import Float, Int

from dalembert.errors import ModelError, ShapeError
from dalembert.kernel import Kernel
from dalembert.tableau.checks import LinearSolution
from dalembert.tableau.elimination import Elimination
from dalembert.tableau.engines import STRAIGHT_LIMIT
from dalembert.tableau.pattern import Pattern
from dalembert.tableau.plan import make_plan
from dalembert.tableau.straight_line import check_expressions, straight_line_solve

Array = np.ndarray

PROBES = 3
"""Random points at which entries are probed if the user gives none."""


@dataclass(frozen=True, eq=False)
class Step:
    """One Newton step per sample, and the residual it started from."""

    step: Float[Array, "*batch n"]
    residual: Float[Array, "*batch n"]
    linear: LinearSolution


class NewtonStep:
    """Newton steps for f(x, ...) = 0 with generated elimination.

    Parameters
    ----------
    function
        f(x, ...) -> residual, SX; x is the first input, the residual the first output, both of n.
    points
        Values of all inputs at probed points, one array (K, size) per input; default: standard normal numbers.
    preferred
        (equation, unknown) index pairs, declared causality.
    equations, unknowns
        Names.
    engine
        "straight", "loop" or "auto" (by the number of operations).
    checks
        Whether the compiled call watches backward error, pivots and growth; without, nothing is repaired.
    jacobian
        The SX matrix to use in place of df/dx, a function of the same inputs: for Jacobians with a shift.
    """

    def __init__(
        self,
        function: Any,
        points: Any = None,
        preferred: Iterable[tuple[int, int]] = (),
        equations: Any = None,
        unknowns: Any = None,
        engine: str = "auto",
        checks: bool = True,
        jacobian: Any = None,
    ) -> None:
        self.inputs = [ca.SX.sym(function.name_in(i), function.sparsity_in(i)) for i in range(function.n_in())]
        x, residual = self.inputs[0], ca.densify(function.call(self.inputs)[0])
        if not x.is_column() or residual.shape != x.shape:
            raise ShapeError(f"f must map x (n,) to n residuals; x is {x.shape}, the residual {residual.shape}")
        J = ca.jacobian(residual, x) if jacobian is None else jacobian.call(self.inputs)[0]
        pattern = Pattern.of(J.sparsity(), equations, unknowns)
        entries = _by_rows(J)
        self._kernel_of_entries: Kernel | None = None
        self._entries = ca.Function("entries", self.inputs, [ca.vertcat(*entries), residual])
        constant = np.array([e.is_constant() for e in entries], dtype=bool)
        probed = self._probe(points)
        self.plan = make_plan(pattern, values=probed, preferred=list(preferred), constant=constant)
        if engine not in ("auto", "straight", "loop"):
            raise ModelError(f"engine {engine!r} is not one of 'auto', 'straight', 'loop'")
        if engine == "auto":
            engine = "straight" if self.plan.operations <= STRAIGHT_LIMIT else "loop"
        self.engine, self.checks = engine, checks
        self._repairs = Elimination(self.plan, "loop")
        self.kernel = self._compile(entries, ca.vertsplit(residual)) if engine == "straight" else self.entries

    @property
    def statistics(self) -> Any:
        """Counts of solves and repairs."""
        return self._repairs.statistics

    @property
    def entries(self) -> Kernel:
        """The compiled Jacobian entries (CSR order) and residual, made when first needed."""
        if self._kernel_of_entries is None:
            self._kernel_of_entries = Kernel(self._entries)
        return self._kernel_of_entries

    def step(self, x: Any, *others: Any) -> Step:
        """Return the step and its checks, for one point or a batch (N, n)."""
        given = [np.asarray(value, dtype=float) for value in (x, *others)]
        if len(given) != len(self.inputs):
            raise ShapeError(f"{len(given)} inputs for {len(self.inputs)}: {', '.join(map(str, self.inputs))}")
        single = all(value.ndim <= 1 for value in given)
        found = [np.atleast_2d(np.asarray(out)) if single else np.asarray(out) for out in _tuple(self.kernel(*given))]
        if self.engine == "loop":
            data, residual = found
            linear = self._repairs.solve(data[0] if single else data, -residual[0] if single else -residual)
            return Step(linear.x, residual[0] if single else residual, linear)
        step, residual = found[0], found[1]
        linear = self._judged(given, step, residual, found[2] if self.checks else None, single)
        return Step(linear.x, residual[0] if single else residual, linear)

    def _judged(self, given: list[Array], step: Array, residual: Array, checks: Any, single: bool) -> LinearSolution:
        """Return a sound step as it is; the entries of the Jacobian are computed for samples in trouble only."""
        from dalembert.tableau.checks import Outcome, sound

        count = len(step)
        if checks is None:
            status = np.where(np.isfinite(step).all(axis=1), Outcome.PLANNED, Outcome.NON_FINITE).astype(np.int64)
            self.statistics.count(status)
            nothing = np.full(count, np.nan)
            return LinearSolution(step[0] if single else step, status, nothing, nothing, nothing)
        good = sound(step, checks)
        if good.all():
            status = np.zeros(count, np.int64)
            self.statistics.count(status)
            return LinearSolution(step[0] if single else step, status, *np.ascontiguousarray(checks.T))
        data = np.atleast_2d(np.asarray(self.entries(*given)[0]))
        right = np.ascontiguousarray(-residual)
        data = np.ascontiguousarray(np.broadcast_to(data, (count, data.shape[-1])))
        return self._repairs.finish(data, right, step, checks, single)

    def _compile(self, entries: list[ca.SX], residual: list[ca.SX]) -> Kernel:
        """Compile everything into one call."""
        right = [-r for r in residual]
        solved = straight_line_solve(self.plan, entries, right)
        outputs = [solved.x, ca.vertcat(*residual)]
        if self.checks:
            outputs.append(check_expressions(self.plan, entries, right, solved))
        names = ["step", "residual", "checks"][: len(outputs)]
        return Kernel(ca.Function("newton_step", self.inputs, outputs, self._names(), names))

    def _names(self) -> list[str]:
        return [f"i{k}" for k in range(len(self.inputs))]

    def _probe(self, points: Any) -> Float[Array, "K entries"]:
        """Return the Jacobian's entries at the probed points."""
        if points is None:
            rng = np.random.default_rng(0)
            points = [rng.standard_normal((PROBES, x.numel())) for x in self.inputs]
        points = [np.atleast_2d(np.asarray(p, dtype=float)) for p in points]
        rows = []
        for k in range(len(points[0])):
            rows.append(np.array(self._entries(*[p[k] for p in points])[0], dtype=float).ravel())
        return np.stack(rows)

    def explain(self) -> str:
        """Return plan, engine and statistics in words."""
        return f"{self.plan.explain()}\nengine {self.engine}; {self.statistics}"


def _tuple(found: Any) -> tuple[Any, ...]:
    return found if isinstance(found, tuple) else (found,)


def _by_rows(J: ca.SX) -> list[ca.SX]:
    """Return the nonzeros of a matrix row by row (CasADi keeps them column by column)."""
    rows, cols = (np.array(x, dtype=np.int64) for x in J.sparsity().get_triplet())
    nonzeros = J.nonzeros()
    return [ca.SX(nonzeros[k]) for k in np.lexsort((cols, rows))]


def order_by_rows(sparsity: Any) -> Int[Array, " entries"]:
    """Return, for every entry in CSR order, its place among CasADi's nonzeros."""
    rows, cols = (np.array(x, dtype=np.int64) for x in sparsity.get_triplet())
    return np.lexsort((cols, rows))
