"""The way to an answer for one system: a fast route, a look at its certificate, then the rank-revealing one.

The verdicts are those of the table in the room's README: unique, redundant, inconsistent, massless, ill conditioned.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from dalembert.kkt.analysis import Analysis
from dalembert.kkt.bounds import Bounds, error_bounds
from dalembert.kkt.metric import least_multipliers, nearest_consistent
from dalembert.kkt.residual import Residual, acceptable, refined
from dalembert.kkt.routes import FAST_ROUTES, ROUTES, NullSpace, Route, RouteDeclined, factored
from dalembert.kkt.status import Status

Array = np.ndarray

CONSISTENCY = 1e-10
"""Relative conflict among the right sides of dependent rows up to which they count as consistent: drift terms are
differences of larger numbers and rarely better than this."""

CERTAIN_DIGITS = 1e-3
"""Relative error bound above which an answer is called ill conditioned."""


@dataclass(frozen=True, slots=True)
class Options:
    """What the user asked of a solve; `metric` is a definite (m, m) matrix, or None for the identity."""

    route: str = "auto"
    massless: Literal["refuse", "hold"] = "refuse"
    inconsistent: Literal["refuse", "least_squares"] = "refuse"
    metric: Array | None = None


@dataclass(frozen=True, eq=False)
class Answer:
    """Numbers and verdict for one system; the numbers are NaN where the status is not `solved`.

    Attributes
    ----------
    status
        The verdict.
    analysis, force, rhs
        The system that was solved: with rows for held motions below the user's, and after a least-squares change of
        the right side, where these were requested.
    acceleration, multipliers
        a (n,) and lam (m,); with held motions, their holding forces follow below.
    factor
        The factored route, None where there is no answer.
    held
        Free massless motions that were held, (n, k).
    conflict
        Relative conflict among the right sides of dependent rows.
    reason
        Why a route declined, in words.
    regular
        Whether a fast route has proved the system regular; if not, its structure was decided first.
    """

    status: Status
    analysis: Analysis
    force: Array
    rhs: Array
    acceleration: Array
    multipliers: Array
    residual: Residual | None = None
    factor: Route | None = None
    metric: Array | None = None
    held: Array | None = None
    conflict: float = 0.0
    reason: str = ""
    regular: bool = False

    @cached_property
    def inverse(self) -> Array:
        """The (generalised) inverse of the block matrix that belongs to this answer, (n + m, n + m)."""
        m, n = self.analysis.A.shape
        factor = self.factor
        if factor is None or not self.regular:
            factor = factored(NullSpace, self.analysis)
        a, lam = factor.solve(np.eye(n, n + m), np.eye(m, n + m, k=n))
        if not self.regular:
            lam = least_multipliers(lam, self.analysis.rows.null, self.metric)
        return np.vstack([a, lam])

    @cached_property
    def bounds(self) -> Bounds:
        """Error bars of the numbers."""
        M, A = self.analysis.M, self.analysis.A
        return error_bounds(M, A, self.inverse, self.force, self.rhs, self.acceleration, self.multipliers)


def answer(analysis: Analysis, force: Array, rhs: Array, options: Options) -> Answer:
    """Solve M a + A^T lam = force, A a = rhs, and say what kind of system it was; never raises for numbers."""
    for route in FAST_ROUTES:
        if options.route not in ("auto", route.name):
            continue
        try:
            factor = factored(route, analysis)
        except RouteDeclined:
            continue
        if factor.regular:
            a, lam, found = refined(analysis, factor, force, rhs)
            if found.worst <= acceptable(a.size, lam.size):
                return Answer(Status.UNIQUE, analysis, force, rhs, a, lam, found, factor, regular=True)
    return careful_answer(analysis, force, rhs, options)


def careful_answer(analysis: Analysis, force: Array, rhs: Array, options: Options) -> Answer:
    """Decide rank, consistency and definiteness first, then solve by the route that the system allows."""
    rows, motion = analysis.rows, analysis.motion
    nowhere = Answer(
        Status.UNIQUE,
        analysis,
        force,
        rhs,
        np.full(force.size, np.nan),
        np.full(rhs.size, np.nan),
        metric=options.metric,
    )
    rhs, conflict = _consistent(analysis, rhs, options)
    if conflict > CONSISTENCY and options.inconsistent == "refuse":
        return replace(nowhere, status=Status.INCONSISTENT, conflict=conflict)
    if motion.negative:
        return replace(nowhere, status=Status.INDEFINITE, conflict=conflict)
    if motion.massless and options.massless == "refuse":
        return replace(nowhere, status=Status.MASSLESS, conflict=conflict)
    status = Status.REDUNDANT if rows.rank < rhs.size else Status.UNIQUE
    held = None
    if motion.massless:
        status = Status.HELD
        held = np.linalg.qr(motion.directions("massless", rows.columns))[0]
        analysis, rhs = analysis.with_rows(held.T), np.append(rhs, np.zeros(held.shape[1]))
    if conflict > CONSISTENCY:
        status = Status.LEAST_SQUARES
    try:
        factor = _suitable(analysis, options)
        a, lam, found = refined(analysis, factor, force, rhs)
    except RouteDeclined as declined:
        return replace(nowhere, status=Status.DECLINED, conflict=conflict, reason=str(declined))
    metric = _extended(options.metric, 0 if held is None else held.shape[1])
    lam = least_multipliers(lam, analysis.rows.null, metric)
    solved = Answer(status, analysis, force, rhs, a, lam, found, factor, metric, held, conflict)
    return _judged(solved)


def _consistent(analysis: Analysis, rhs: Array, options: Options) -> tuple[Array, float]:
    """Return the consistent right side nearest to rhs, and the relative conflict that this removed."""
    rows = analysis.rows
    if rows.rank == rhs.size:
        return rhs, 0.0
    scaled = rows.rows * rhs
    size = np.abs(scaled).max(initial=0.0)
    conflict = np.abs(rows.scaled_null.T @ scaled).max(initial=0.0)
    if conflict == 0.0:
        return rhs, 0.0
    return nearest_consistent(rhs, rows.null, options.metric), float(conflict / size)


def _suitable(analysis: Analysis, options: Options) -> Route:
    """Factor by the requested route, or by the rank-revealing one; say why a requested one cannot do."""
    route = NullSpace if options.route == "auto" else ROUTES[options.route]
    redundant = analysis.A.shape[0] - analysis.rows.rank
    if redundant and not route.handles_redundant_rows:
        raise RouteDeclined(f"{redundant} of the constraint rows are redundant; use route 'auto' or 'nullspace'")
    return factored(route, analysis)


def _judged(solved: Answer) -> Answer:
    """Return the answer, marked ill conditioned where its error bars leave too few digits."""
    if solved.bounds.relative_error <= CERTAIN_DIGITS:
        return solved
    if not np.all(np.isfinite(solved.acceleration)) or not np.all(np.isfinite(solved.multipliers)):
        return replace(solved, status=Status.NONFINITE)
    return replace(solved, status=Status.ILL_CONDITIONED)


def _extended(metric: Array | None, extra: int) -> Array | None:
    """Return the metric with unit weights for `extra` further rows."""
    if metric is None or not extra:
        return metric
    m = metric.shape[0]
    wide = np.eye(m + extra)
    wide[:m, :m] = metric
    return wide
