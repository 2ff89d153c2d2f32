"""The sparse tableau method as published: fixed order, fixed step, generated elimination (seed 003, Fig. 2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import comb
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from dalembert.errors import ModelError, ShapeError, SolvabilityError
from dalembert.status import Status
from dalembert.tableau.inputs import as_count, as_mapping, as_numbers, as_scalar, named_values
from dalembert.tableau.newton_batch import NewtonStep, iterate
from dalembert.tableau.structure.sample_points import sample_points
from dalembert.tableau.structure.solvability import listed
from dalembert.tableau.tableau import Tableau, require_tableau
from dalembert.types import Array

if TYPE_CHECKING:
    from jaxtyping import Complex, Float, Int

# ----------------------------------------------------------------------------------------------------------------------
# Backward differentiation formulas at a fixed step: coefficients, predictor, stability (seed 003, eq. 11).
#
#     x'_n = -(1/h) sum_{i=0..k} alpha_i x_{n-i}           exact for polynomials up to degree k
#     x_n^Pr = -sum_{i=1..k} gamma_i x_{n-i}               the polynomial through the last k points, extrapolated
#
# With the published sign alpha_0 < 0: k = 1 has alpha = (-1, 1). All coefficients are rationals, found exactly.


MOST_ORDER = 6
"""k = 7 is unstable even at h = 0 (C. W. Cryer, BIT 12 (1972) 17-25)."""

LEFT = 1e-12
"""Points of the boundary of stability this far left of the imaginary axis are left of it, whatever the rounding."""


@cache
def alpha(order: int) -> tuple[Fraction, ...]:
    """Return alpha_0 ... alpha_k of eq. (11).

    h x' = sum_{j=1..k} nabla^j x / j, and nabla^j x_n = sum_i (-1)^i C(j, i) x_{n-i}.
    """
    _check(order)
    sums = [Fraction(0)] * (order + 1)
    for j in range(1, order + 1):
        for i in range(j + 1):
            sums[i] -= Fraction((-1) ** i * comb(j, i), j)
    return tuple(sums)


@cache
def gamma(order: int) -> tuple[Fraction, ...]:
    """Return gamma_1 ... gamma_k of the predictor: nabla^k x_n = 0."""
    _check(order)
    return tuple(Fraction((-1) ** i * comb(order, i)) for i in range(1, order + 1))


def error_constant(order: int) -> Fraction:
    """Return C of the leading error C h^k x^(k+1) of x': 1 / (k + 1)."""
    _check(order)
    return Fraction(1, order + 1)


def stability_boundary(order: int, points: int = 721) -> Complex[Array, " points"]:
    """Return the root locus h lambda = sum_j (1 - e^(-i theta))^j / j: outside, the formula is stable."""
    _check(order)
    w = 1.0 - np.exp(-1j * np.linspace(0.0, 2.0 * np.pi, points))
    return np.sum([w**j / j for j in range(1, order + 1)], axis=0)


def spectral_radius(order: int, z: complex) -> float:
    """Return the largest root of sum_i -alpha_i w^(k-i) - z w^k: at most one where h lambda = z is stable."""
    polynomial = np.array([-float(a) for a in alpha(order)], dtype=complex)
    polynomial[0] -= z
    return float(np.abs(np.roots(polynomial)).max(initial=0.0))


def stability_sector(order: int) -> float:
    """Return the angle of A(alpha)-stability in degrees: 90 for orders 1 and 2, 17.8 for order 6."""
    z: Any = stability_boundary(order, 100_001)
    left = z[(z.real < -LEFT)]
    if not len(left):
        return 90.0
    return float(np.degrees(np.arctan2(np.abs(left.imag), -left.real).min()))


def _check(order: Any) -> None:
    if isinstance(order, bool) or not isinstance(order, int) or not 1 <= order <= MOST_ORDER:
        raise ModelError(f"order {order!r}: backward differentiation formulas have orders 1 to {MOST_ORDER}")


# ----------------------------------------------------------------------------------------------------------------------
# Known variables along the run, and their rates.


@dataclass(frozen=True, eq=False)
class GivenMotion:
    """Known variables as functions of time, as numbers, or as one value for every point of the run."""

    tableau: Tableau
    values: dict[Any, Any]

    @property
    def is_continuous(self) -> bool:
        """Whether values between the points of the run are known."""
        return all(callable(value) or np.ndim(value) < 2 for value in self.values.values())

    def at(self, times: Float[Array, " N"], order: int) -> Float[Array, "N k"]:
        """Return the inputs at all times; rates that are not given by the formula of this order (eq. 11)."""
        sampled = {name: self._sampled(name, value, times) for name, value in self.values.items()}
        names = list(self.tableau.inputs)
        numbers = named_values(self.tableau.variables, sampled, "known", names, finite=True)
        columns = {}
        for name in names:
            base = name.removesuffix("'")
            if name in numbers:
                columns[name] = np.broadcast_to(numbers[name], times.shape)
            elif name != base and base in columns:
                columns[name] = _rates(columns[base], times, order)
        if missing := [name for name in names if name not in columns]:
            raise ModelError(f"no value for the known {listed(missing)}")
        return np.stack([columns[name] for name in names], axis=-1) if names else np.empty((len(times), 0))

    def _sampled(self, name: Any, value: Any, times: Float[Array, " N"]) -> Array:
        """Return one value of a known variable, or (N, size)."""
        if callable(value):
            rows = [as_numbers(value(float(t)), f"known: the value of {name!r}").reshape(-1) for t in times]
            return np.stack(rows)
        array = as_numbers(value, f"known: the value of {name!r}")
        if array.ndim == 2 and len(array) != len(times):
            raise ShapeError(
                f"known: {name!r} has {len(array)} rows for a run of {len(times)} points: one row per point is needed"
            )
        return array


def _rates(values: Float[Array, " N"], times: Float[Array, " N"], order: int) -> Float[Array, " N"]:
    """Return the rates of samples by eq. (11); zero for the first points, which have no past."""
    rates = np.zeros(len(values))
    if len(values) > order:
        for i, a in enumerate(alpha(order)):
            rates[order:] -= float(a) * values[order - i : len(values) - i]
        rates[order:] /= times[1] - times[0]
    return rates


# ----------------------------------------------------------------------------------------------------------------------
# The method: at every t_n predict x_n, then iterate
#
#     J(x_n^(r)) dx = -G(x_n^(r)),   x_n^(r+1) = x_n^(r) + dx        (eqs. 12-14)
#
# with the elimination generated once for the pattern of J = dG/dx - (alpha_0 / h) dG/dx' (eq. 13, Fig. 3).


TOLERANCE = 1e-12
"""Newton's method ends where its step is below this part of 1 + |x|: rounding, so that the formula's error is alone."""

MOST_ITERATIONS = 25
"""The predictor is near: where Newton's method takes more steps, the formula has no solution there."""


@dataclass(frozen=True, eq=False)
class FixedOrderRun:
    """A motion in steps of one size.

    Attributes
    ----------
    t : (N,)
        Times.
    x : (N, n) or (B, N, n)
        Unknowns in the order of `tableau.unknowns`; NaN from where a sample of a batch has no answer.
    status : (B,)
        `Status` of each sample: CONVERGED, or how Newton's method ended.
    iterations : (N,)
        Newton iterations of the slowest sample; zero at points that were given.
    """

    tableau: Tableau
    t: Float[Array, " N"]
    x: Float[Array, "*batch N n"]
    status: Int[Array, " B"]
    iterations: Int[Array, " N"]

    def __getitem__(self, name: str) -> Float[Array, "..."]:
        """Return an unknown over time, (..., N), or several of one name, (..., N, size)."""
        place = {unknown: k for k, unknown in enumerate(self.tableau.unknowns)}
        scalars = [self.tableau.variables.names[s] for s in self.tableau.variables.find([name], "run")]
        if missing := [s for s in scalars if s not in place]:
            raise ModelError(f"{missing[0]!r} is known, not a result")
        columns = self.x[..., [place[s] for s in scalars]]
        return columns[..., 0] if len(scalars) == 1 else columns


def sparse_tableau_method(
    tableau: Tableau,
    first: Any,
    step: float,
    steps: int,
    order: int = 2,
    known: Mapping[str, Any] | None = None,
    parameters: Any = None,
    start: float = 0.0,
    engine: str = "auto",
) -> FixedOrderRun:
    """Integrate G(x, x', u, t) = 0 by backward differentiation of one order in steps of one size.

    At every t_n the polynomial through the last k points predicts x_n, then Newton's method solves
    G(x_n, x'(x_n), u(t_n)) = 0, with x' by eq. (11) and the generated elimination. Forward and inverse dynamics differ
    in what is known alone.

    Parameters
    ----------
    first
        The first k points, (k, n), as a formula of order k needs; for a batch (B, k, n). One consistent point, (n,),
        will do where known variables are functions or constants: the others are found from it by formulas of order 1
        with smaller steps, extrapolated to step zero. That is meant for equations of index 1.
    step, steps
        h in s; steps beyond the first k points.
    order
        k = 1 ... 6. Stable for h lambda within 90, 90, 86.0, 73.4, 51.8, 17.8 degrees of the negative axis.
    known
        Name -> function of t, constant, or values (N, size) at every point of the run; a rate "q'" that is not given is
        found from "q" by eq. (11).
    parameters
        Values by name, or (k,) or (B, k); defaults where none are given.
    start
        Time of the first point.
    engine
        Of the elimination: "straight", "loop" or "auto".

    Use `dalembert.simulate` where accuracy is to be controlled. A single run without an answer raises; a batch has a
    status per sample. Source: Yoshimura, Mech. Sci. 4 (2013) 243-250, eqs. (11)-(14), Fig. 2.
    """
    require_tableau(tableau)
    _check(order)
    h, steps = as_scalar(step, "step", np.finfo(float).tiny), as_count(steps, "steps")
    given = GivenMotion(tableau, as_mapping(known, "known"))
    points = as_numbers(first, "first", finite=True)
    n = len(tableau.unknowns)
    newton = _newton_of_formula(tableau, -float(alpha(order)[0]) / h, engine)
    constants = np.atleast_2d(tableau.parameters.pack(parameters))
    begin = as_scalar(start, "start")
    if points.shape == (n,):
        points = _first_points(tableau, newton, points, h, order, given, constants, begin)
    if points.ndim not in (2, 3) or points.shape[-2:] != (order, n):
        raise ShapeError(f"order {order} needs the first {order} points, ({order}, {n}); got {points.shape}")
    batch = points if points.ndim == 3 else points[None]
    if len(constants) > 1 and len(batch) == 1:
        batch = np.repeat(batch, len(constants), axis=0)
    t = begin + h * np.arange(order + steps)
    run = _march(tableau, newton, batch, t, order, given.at(t, order), constants)
    single = points.ndim == 2 and len(constants) == 1
    if single and run.status[0] != Status.CONVERGED:
        raise _refusal(run)
    return FixedOrderRun(tableau, t, run.x[0], run.status, run.iterations) if single else run


def _newton_of_formula(tableau: Tableau, shift: float, engine: str) -> NewtonStep:
    """Return Newton's step of G(x, shift x + past, u, t); inputs x, shift, past, u, t, parameters, no empty ones."""
    tableau.structure().require()
    s, past = ca.SX.sym("shift"), ca.SX.sym("past", len(tableau.differential))
    own = ca.vertcat(*[tableau.x[k] for k in tableau.differential], ca.SX(0, 1))
    residual = tableau.residual
    if tableau.differential:
        residual = ca.substitute(residual, tableau.x_dot, s * own + past)
    x, x_dot, u, t, p = sample_points(tableau, 3, None)
    before = x_dot - shift * x[:, list(tableau.differential)]
    inputs = [tableau.x, s, past, tableau.u, tableau.time, tableau.parameters.column]
    points = [x, np.full((len(x), 1), shift), before, u, t, p]
    kept = [k for k, symbol in enumerate(inputs) if symbol.numel()]
    f = ca.Function("formula", [inputs[k] for k in kept], [residual])
    return NewtonStep(
        f,
        points=[points[k] for k in kept],
        preferred=tableau.preferred,
        equations=tableau.equations,
        unknowns=tableau.unknowns,
        engine=engine,
    )


def _march(
    tableau: Tableau, newton: NewtonStep, first: Array, t: Array, order: int, inputs: Array, constants: Array
) -> FixedOrderRun:
    """Step to the last time: predict, correct (Fig. 2)."""
    h, places = t[1] - t[0], list(tableau.differential)
    a, g = [float(c) for c in alpha(order)], [float(c) for c in gamma(order)]
    count = len(first)
    x = np.full((count, len(t), first.shape[2]), np.nan)
    x[:, :order] = first
    status, iterations = np.full(count, Status.CONVERGED, np.int64), np.zeros(len(t), np.int64)
    others_of_all = np.broadcast_to(constants, (count, constants.shape[1]))
    for n in range(order, len(t)):
        live = np.flatnonzero(status == Status.CONVERGED)
        if not live.size:
            break
        points = x[live, n - order : n][:, ::-1]
        predicted = -np.einsum("i,bij->bj", g, points)
        past = -np.einsum("i,bij->bj", a[1:], points[:, :, places]) / h
        rows = (np.full((1, 1), -a[0] / h), past, inputs[n : n + 1], t[n : n + 1, None], others_of_all[live])
        sizes = (1, len(places), inputs.shape[1], tableau.time.numel(), constants.shape[1])
        others = [np.broadcast_to(row, (len(live), k)) for row, k in zip(rows, sizes, strict=True) if k]
        found = iterate(newton, predicted, others, TOLERANCE, MOST_ITERATIONS)
        status[live], iterations[n] = found.status, found.iterations
        x[live, n] = np.where((found.status == Status.CONVERGED)[:, None], found.x, np.nan)
    return FixedOrderRun(tableau, t, x, status, iterations)


def _first_points(
    tableau: Tableau,
    newton: NewtonStep,
    x: Array,
    h: float,
    order: int,
    given: GivenMotion,
    constants: Array,
    t0: float,
) -> Float[Array, "k n"]:
    """Return k points from one: steps of order 1 in 1, 2, ..., k parts, extrapolated to parts of size zero.

    Source: Hairer, Wanner 1996, sec. VI.4 (the extrapolated implicit Euler method).
    """
    points = [x]
    if order > 1 and not given.is_continuous:
        raise ModelError(
            f"order {order} with known values at the points of the run alone needs the first {order} points: give "
            f"first=({order}, {len(x)}), or the known variables as functions of time"
        )
    if len(constants) > 1 and order > 1:
        raise ShapeError(
            f"a batch of parameters needs the first {order} points of every sample, (B, {order}, {len(x)})"
        )
    for k in range(1, order):
        row: list[Array] = []
        for j in range(1, order + 1):
            t = np.linspace(t0 + (k - 1) * h, t0 + k * h, j + 1)
            run = _march(tableau, newton, points[-1][None, None], t, 1, given.at(t, 1), constants)
            if run.status[0] != Status.CONVERGED:
                raise _refusal(run)
            new = [run.x[0, -1]]
            for i in range(1, j):
                new.append(new[-1] + (new[-1] - row[i - 1]) / (j / (j - i) - 1.0))
            row = new
        points.append(row[-1])
    return np.stack(points)


def _refusal(run: FixedOrderRun) -> SolvabilityError:
    """Return where and how a single run ended."""
    n = int(np.flatnonzero(run.iterations)[-1])
    return SolvabilityError(
        f"Newton's method ended {Status(int(run.status[0])).name} at t = {run.t[n]:g} s, after {run.iterations[n]} "
        "iteration(s): take a smaller step or a lower order, start from points that fulfil the equations, or ask "
        "`tableau.rank()` which equations depend on each other"
    )
