"""Newton's method on a batch: the compiled step, causal starts, the iteration."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from dalembert.errors import ModelError, ShapeError, UnsupportedError
from dalembert.kkt.limits import LEAST_TERMS
from dalembert.status import Status
from dalembert.tableau.elimination.accuracy import ScaledFactors
from dalembert.tableau.elimination.elimination import Elimination
from dalembert.tableau.elimination.engines import STRAIGHT_LIMIT, LinearSolution, planned, sound
from dalembert.tableau.elimination.plan import Plan, make_plan
from dalembert.tableau.elimination.straight import TwoWidths, check_expressions, straight_line_solve
from dalembert.tableau.inputs import as_flag, as_list, as_numbers
from dalembert.tableau.structure.pattern import Pattern
from dalembert.types import Array

if TYPE_CHECKING:
    from jaxtyping import Float, Int

    from dalembert.tableau.tableau import Tableau

# ----------------------------------------------------------------------------------------------------------------------
# Newton's step of a user's residual, one compiled call: residual, Jacobian, factorization, solve, checks.
#
# f(x, ...) = 0,  J = df/dx,  J step = -f  (seed 003, eqs. 13, 14).


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
        arrays = [as_numbers(value, "an input of the step") for value in (x, *others)]
        if len(arrays) != len(self.inputs):
            raise ShapeError(f"{len(arrays)} inputs for {len(self.inputs)}: {', '.join(self._names)}")
        single = all(value.ndim <= 1 for value in arrays)
        outputs = self._call(*arrays)
        if single and self._watched and outputs[2][3]:
            self.statistics.count_planned(1)
            return Step(outputs[0], outputs[1], planned(outputs[0], outputs[2], (self._error, arrays, outputs[1])))
        if self.engine == "loop":
            data, residual = outputs
            linear = self._repairs.solve(data, -residual)
            return Step(linear.x, residual, linear)
        if single:
            outputs = tuple(out[None] for out in outputs)
        linear = self._judged(arrays, outputs[0], outputs[1], outputs[2][:, :3] if self.checks else None, single)
        return Step(linear.x, outputs[1][0] if single else outputs[1], linear)

    def _judged(
        self, arguments: list[Array], step: Array, residual: Array, checks: Any, single: bool
    ) -> LinearSolution:
        """Return a sound step as it is; the entries of the Jacobian are computed for samples in trouble only."""
        count = len(step)
        x = step[0] if single else step
        if checks is None:
            status = np.where(np.isfinite(step).all(axis=1), Status.PLANNED, Status.NONFINITE).astype(np.int64)
            self.statistics.count(status)
            return LinearSolution(x, status, np.full((count, 3), np.nan))
        if sound(step, checks).all():
            self.statistics.count_planned(count)
            return LinearSolution(
                x, np.full(count, Status.PLANNED, np.int64), checks, (self._error, arguments, residual)
            )
        data = np.atleast_2d(np.asarray(self.entries(*arguments)[0]))
        data = np.ascontiguousarray(np.broadcast_to(data, (count, data.shape[-1])))
        return self._repairs.finish(data, np.ascontiguousarray(-residual), step, checks, single)

    def error(self, values: Any, right: Any, x: Any) -> Array:
        """Return the estimated error of every unknown, as `Elimination.error` does."""
        return self._repairs.error(values, right, x)

    def _error(self, arguments: list[Array], residual: Array, step: Array) -> Array:
        """Return the estimated error of steps: the Jacobian's entries are computed for it."""
        return self._repairs.error(self.entries(*arguments)[0], -np.asarray(residual), step)

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
            forms = ", ".join(f"(K, {size})" for size in sizes)
            raise ShapeError(f"points must be one array per input, {forms}; they have {', '.join(map(str, shapes))}")
        entries = [self._entries(*[p[k] for p in points])[0] for k in range(len(points[0]))]
        return np.stack([np.array(row, dtype=float).ravel() for row in entries])

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


# ----------------------------------------------------------------------------------------------------------------------
# Conditions: equations without unknowns, which known data fulfil or contradict.


def violations(tableau: Tableau, others: list[Array]) -> dict[str, Float[Array, " N"]]:
    """Return, per condition c(u, t) = 0, |c| over sum_j |dc/du_j u_j|, every sample; at most FULFILLED is fulfilled.

    Conditions with rates of variables that are known at one instant only say nothing about it and are left out. The sum
    is at least LEAST_TERMS times the largest of all conditions: one that cancels to rounding whatever the data (a
    direction across a planar loop) is fulfilled. Where all sums are zero, |c| itself is returned.
    """
    names = [name for name, row in tableau.conditions.items() if _readable(tableau, row)]
    if not names:
        return {}
    rows = ca.vertcat(*[tableau.conditions[name] for name in names])
    inputs = [s for s in (tableau.u, tableau.time, tableau.parameters.column) if s.numel()]
    column = ca.vertcat(*inputs)
    sizes = ca.mtimes(ca.fabs(ca.jacobian(rows, column)), ca.fabs(column))
    f = ca.Function("conditions", inputs, [rows, sizes])
    count = len(others[0]) if others else 1
    parts = []
    for k in range(count):
        value, size = (np.array(output, dtype=float).ravel() for output in f(*[other[k] for other in others]))
        size = np.maximum(size, LEAST_TERMS * size.max(initial=0.0))
        parts.append(np.abs(value) / np.where(size > 0.0, size, 1.0))
    return dict(zip(names, np.array(parts).T, strict=True))


def _readable(tableau: Tableau, row: ca.SX) -> bool:
    """Whether a condition contains inputs, time and parameters only."""
    symbols = ca.vertcat(tableau.u, tableau.time, tableau.parameters.column)
    hashes = {s.element_hash() for s in ca.vertsplit(symbols)} if symbols.numel() else set()
    return all(s.element_hash() in hashes for s in ca.symvar(row))


# ----------------------------------------------------------------------------------------------------------------------
# A start for Newton's method by causality: equations that give their output explicitly are evaluated in solving order.
#
# In solving order, a block of one equation that is affine in its output y gives it at once,
#
#     y = y0 - G(y0) / (dG/dy)
#
# with everything before it already found. Blocks of several equations keep their guess. Where all blocks are of this
# kind, the start is the solution, and the code is what one would have written by hand (the recursion of Newton and
# Euler, for inverse dynamics of a tree).


def causal_start(tableau: Tableau, plan: Plan) -> ca.Function:
    """Return the start, a function of (guess, x_dot, u, t, parameters), empty ones left out."""
    x = ca.vertsplit(tableau.x)
    rows = ca.vertsplit(tableau.residual)
    place = {s.element_hash(): j for j, s in enumerate(x)}
    value: list[ca.SX] = list(x)
    for first, last in zip(plan.begins[:-1], plan.begins[1:], strict=True):
        if last - first == 1:
            i, j = int(plan.rows[first]), int(plan.cols[first])
            slope = ca.jacobian(rows[i], x[j])
            if slope.nnz() and not ca.depends_on(slope, x[j]):
                step = x[j] - rows[i] / slope
                used = [s for s in ca.symvar(step) if s.element_hash() in place]
                value[j] = _with_values(step, used, [value[place[s.element_hash()]] for s in used])
    inputs = {
        "guess": tableau.x,
        "x_dot": tableau.x_dot,
        "u": tableau.u,
        "t": tableau.time,
        "parameters": tableau.parameters.column,
    }
    present = {name: symbol for name, symbol in inputs.items() if symbol.numel()}
    return ca.Function("causal_start", list(present.values()), [ca.vertcat(*value)], list(present), ["x"])


def _with_values(expression: ca.SX, symbols: list[ca.SX], values: list[ca.SX]) -> ca.SX:
    """Return the expression with values in place of symbols."""
    if not symbols:
        return expression
    return ca.substitute([expression], [ca.vertcat(*symbols)], [ca.vertcat(*values)])[0]


# ----------------------------------------------------------------------------------------------------------------------
# Newton's iteration for a batch: which samples are done, which are lost and why.


STALLED = 0.9
"""A step that is more than this part of the last one, and small, is rounding: it gets no smaller."""


NEWTON_ENDS = (Status.CONVERGED, Status.LIMIT, Status.SINGULAR, Status.NONFINITE, Status.INCONSISTENT)
"""How Newton's method ends for a sample; only the first is an answer."""


@dataclass(frozen=True, eq=False)
class Iterated:
    """Where each sample ended; last point of those without an answer, and their last step."""

    x: Float[Array, "N n"]
    status: Int[Array, " N"]
    step: Float[Array, "N n"]
    iterations: int


def _is_rounding(newton: NewtonStep, x: Float[Array, " n"], others: list[Array], tolerance: float) -> bool:
    """Whether the step from x is within reach of changes of the data by `tolerance` (`accuracy.py`)."""
    data, rows = (np.asarray(output).reshape(-1) for output in newton.entries(x, *others))
    A = newton.plan.pattern.matrix(data)
    factors = ScaledFactors.of(A)
    if factors is None:
        return False
    with np.errstate(all="ignore"):
        return bool(factors.errors(A @ x - rows, x)[0] <= tolerance)


def iterate(newton: NewtonStep, x: Float[Array, "N n"], others: list[Array], tolerance: float, limit: int) -> Iterated:
    """Take steps of each sample until it is done or lost, or the limit is reached.

    Done is a sample whose step is below tolerance (1 + |x|), element by element, and below tolerance times its largest
    unknown, or no longer shrinks. Done is also one whose step no longer shrinks and is no more than data changed by
    `tolerance` would move each unknown: a badly conditioned Jacobian allows no smaller step.
    """
    x, step = np.array(x), np.zeros(x.shape)
    status = np.full(len(x), Status.LIMIT, np.int64)
    last = np.full(len(x), np.inf)
    iterations, active = 0, np.arange(len(x))
    while iterations < limit and active.size:
        trial = newton.step(x[active], *[other[active] for other in others])
        iterations += 1
        lost = ~trial.linear.ok
        non_finite = trial.linear.status == Status.NONFINITE
        status[active[lost]] = np.where(non_finite[lost], Status.NONFINITE, Status.SINGULAR)
        size, largest = np.abs(trial.step), np.abs(x[active]).max(axis=1, initial=0.0, keepdims=True)
        longest = size.max(axis=1, initial=0.0)
        near = np.all(size <= tolerance * (1.0 + np.abs(x[active])), axis=1)
        settled = np.all(size <= tolerance * largest, axis=1) | (longest >= STALLED * last[active])
        done = ~lost & near & settled
        for k in np.flatnonzero(~lost & ~near & (longest >= STALLED * last[active])):
            done[k] = _is_rounding(newton, x[active[k]], [other[active[k]] for other in others], tolerance)
        x[active[~lost]] += trial.step[~lost]
        step[active], last[active] = trial.step, longest
        status[active[done]] = Status.CONVERGED
        active = active[~lost & ~done]
    return Iterated(x, status, step, iterations)
