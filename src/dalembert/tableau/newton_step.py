"""Newton's step of a user's residual, one compiled call: residual, Jacobian, factorization, solve, checks.

f(x, ...) = 0,  J = df/dx,  J step = -f  (seed 003, eqs. 13, 14).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np
from jaxtyping import Float, Int

from dalembert.errors import ModelError, ShapeError, UnsupportedError
from dalembert.tableau.checks import LinearSolution, Outcome, planned, sound
from dalembert.tableau.elimination import Elimination
from dalembert.tableau.engines import STRAIGHT_LIMIT
from dalembert.tableau.inputs import as_flag, as_list, as_numbers
from dalembert.tableau.pattern import Pattern
from dalembert.tableau.plan import make_plan
from dalembert.tableau.straight_line import check_expressions, straight_line_solve
from dalembert.tableau.two_widths import TwoWidths

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
        self.inputs, residual = _written(function)
        self._names = [function.name_in(i) for i in range(function.n_in())]
        x = self.inputs[0]
        if not x.is_column() or residual.shape != x.shape:
            raise ShapeError(f"f must map x (n,) to n residuals; x is {x.shape}, the residual {residual.shape}")
        J = ca.jacobian(residual, x) if jacobian is None else _called(jacobian, self.inputs, "jacobian")
        if J.shape != (x.numel(), x.numel()):
            raise ShapeError(f"jacobian must be {x.numel()} x {x.numel()}; it is {J.shape[0]} x {J.shape[1]}")
        pattern = Pattern.of(J.sparsity(), equations, unknowns)
        entries = _by_rows(J)
        self._entries = ca.Function("entries", self.inputs, [ca.vertcat(*entries), residual])
        constant = np.array([e.is_constant() for e in entries], dtype=bool)
        probed = self._probe(points)
        self.usual = np.abs(probed).max(axis=0, initial=0.0)
        self.plan = make_plan(pattern, values=probed, preferred=preferred, constant=constant)
        if not isinstance(engine, str) or engine not in ("auto", "straight", "loop"):
            raise ModelError(f"engine {engine!r} is not one of 'auto', 'straight', 'loop'")
        if engine == "auto":
            engine = "straight" if self.plan.operations <= STRAIGHT_LIMIT else "loop"
        self.engine, self.checks = engine, as_flag(checks, "checks")
        self._watched = self.checks and engine == "straight"
        self._repairs = Elimination(self.plan, "loop")
        self._call = self._compile(entries, ca.vertsplit(residual)) if engine == "straight" else self.entries

    @property
    def statistics(self) -> Any:
        """Counts of solves and repairs."""
        return self._repairs.statistics

    @cached_property
    def entries(self) -> TwoWidths:
        """The compiled Jacobian entries (CSR order) and residual."""
        return TwoWidths(self._entries)

    def step(self, x: Any, *others: Any) -> Step:
        """Return the step and its checks, for one point or a batch (N, n)."""
        given = [as_numbers(value, "an input of the step") for value in (x, *others)]
        if len(given) != len(self.inputs):
            raise ShapeError(f"{len(given)} inputs for {len(self.inputs)}: {', '.join(self._names)}")
        single = all(value.ndim <= 1 for value in given)
        found = self._call(*given)
        if single and self._watched and found[2][3]:
            self.statistics.count_planned(1)
            return Step(found[0], found[1], planned(found[0], found[2], (self._error, given, found[1])))
        if self.engine == "loop":
            data, residual = found
            linear = self._repairs.solve(data, -residual)
            return Step(linear.x, residual, linear)
        if single:
            found = tuple(out[None] for out in found)
        linear = self._judged(given, found[0], found[1], found[2][:, :3] if self.checks else None, single)
        return Step(linear.x, found[1][0] if single else found[1], linear)

    def _judged(self, given: list[Array], step: Array, residual: Array, checks: Any, single: bool) -> LinearSolution:
        """Return a sound step as it is; the entries of the Jacobian are computed for samples in trouble only."""
        count = len(step)
        x = step[0] if single else step
        if checks is None:
            status = np.where(np.isfinite(step).all(axis=1), Outcome.PLANNED, Outcome.NON_FINITE).astype(np.int64)
            self.statistics.count(status)
            return LinearSolution(x, status, np.full((count, 3), np.nan))
        if sound(step, checks).all():
            self.statistics.count_planned(count)
            return LinearSolution(x, np.zeros(count, np.int64), checks, (self._error, given, residual))
        data = np.atleast_2d(np.asarray(self.entries(*given)[0]))
        data = np.ascontiguousarray(np.broadcast_to(data, (count, data.shape[-1])))
        return self._repairs.finish(data, np.ascontiguousarray(-residual), step, checks, single)

    def error(self, values: Any, right: Any, x: Any) -> Array:
        """Return the estimated error of every unknown, as `Elimination.error` does."""
        return self._repairs.error(values, right, x)

    def _error(self, given: list[Array], residual: Array, step: Array) -> Array:
        """Return the estimated error of steps: the Jacobian's entries are computed for it."""
        return self._repairs.error(self.entries(*given)[0], -np.asarray(residual), step)

    def _compile(self, entries: list[ca.SX], residual: list[ca.SX]) -> TwoWidths:
        """Compile everything into one call."""
        right = [-r for r in residual]
        solved = straight_line_solve(self.plan, entries, right)
        outputs = [solved.x, ca.vertcat(*residual)]
        if self.checks:
            outputs.append(check_expressions(self.plan, entries, right, solved))
        names = ["step", "residual", "checks"][: len(outputs)]
        inputs = [f"i{k}" for k in range(len(self.inputs))]
        return TwoWidths(ca.Function("newton_step", self.inputs, outputs, inputs, names))

    def _probe(self, points: Any) -> Float[Array, "K entries"]:
        """Return the Jacobian's entries at the probed points."""
        if points is None:
            rng = np.random.default_rng(0)
            points = [rng.standard_normal((PROBES, x.numel())) for x in self.inputs]
        points = [np.atleast_2d(as_numbers(p, "points")) for p in as_list(points, "points", "arrays, one per input")]
        sizes = [x.numel() for x in self.inputs]
        shapes = [p.shape for p in points]
        if [shape[-1] for shape in shapes] != sizes or len({shape[:-1] for shape in shapes}) != 1:
            wanted = ", ".join(f"(K, {size})" for size in sizes)
            raise ShapeError(f"points must be one array per input, {wanted}; they have {', '.join(map(str, shapes))}")
        found = [self._entries(*[p[k] for p in points])[0] for k in range(len(points[0]))]
        return np.stack([np.array(row, dtype=float).ravel() for row in found])

    def explain(self) -> str:
        """Return plan, engine and statistics in words."""
        return f"{self.plan.explain()}\nengine {self.engine}; {self.statistics}"


def _written(function: Any) -> tuple[list[ca.SX], ca.SX]:
    """Return symbols of a function's inputs, and its first output in them."""
    if not isinstance(function, ca.Function) or not function.n_in() or not function.n_out():
        raise ModelError(
            f"f must be a casadi.Function f(x, ...) -> residual with an input and an output; got {function}"
        )
    inputs = [ca.SX.sym(function.name_in(i), function.sparsity_in(i)) for i in range(function.n_in())]
    return inputs, ca.densify(_called(function, inputs, "f"))


def _called(function: Any, inputs: list[ca.SX], what: str) -> ca.SX:
    """Return the first output of a function of these inputs, as an expression."""
    if not isinstance(function, ca.Function) or function.n_in() != len(inputs) or not function.n_out():
        raise ModelError(f"{what} must be a casadi.Function of the {len(inputs)} input(s) of f; got {function}")
    try:
        return function.call(inputs)[0]
    except RuntimeError as error:
        raise UnsupportedError(
            f"{what} cannot be written with SX symbols, as compiled elimination needs it: it calls something without a "
            f"formula (a linear solver, an interpolant, an external function). {str(error).splitlines()[-1][:200]}"
        ) from error


def _by_rows(J: ca.SX) -> list[ca.SX]:
    """Return the nonzeros of a matrix row by row (CasADi keeps them column by column)."""
    rows, cols = (np.array(x, dtype=np.int64) for x in J.sparsity().get_triplet())
    nonzeros = J.nonzeros()
    return [ca.SX(nonzeros[k]) for k in np.lexsort((cols, rows))]


def order_by_rows(sparsity: Any) -> Int[Array, " entries"]:
    """Return, for every entry in CSR order, its place among CasADi's nonzeros."""
    rows, cols = (np.array(x, dtype=np.int64) for x in sparsity.get_triplet())
    return np.lexsort((cols, rows))
