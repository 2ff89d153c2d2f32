"""Certified solve of one block system: a fast route, a look at its certificate, then the rank-revealing one.

The verdicts are those of the table in the room's README: unique, redundant, inconsistent, massless, ill conditioned.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from dalembert.kkt.analysis import Analysis
from dalembert.kkt.conflict import agreement, relative_conflict
from dalembert.kkt.limits import CERTAIN, EPS, SHARE, acceptable
from dalembert.kkt.residual import (
    MOST_STEPS,
    Bounds,
    Residual,
    certain,
    error_bounds,
    refined,
)
from dalembert.kkt.routes import FACTORISATIONS, FAST_ROUTES, NullSpace, RouteDeclined, factored
from dalembert.kkt.routes.contract import Route
from dalembert.kkt.status import Status
from dalembert.types import Array

# ----------------------------------------------------------------------------------------------------------------------
# The user's metric on multipliers: which member of a redundant family is returned.
#
# Symbols: W symmetric definite (m, m), N a basis of null(A^T). Among lam + N z the least is
#
#     lam* = lam - N (N^T W N)^-1 N^T W lam            minimises lam^T W lam
#
# and, dually, the nearest consistent right side c* = c - W N (N^T W N)^-1 N^T c minimises (c - c*)^T W^-1 (c - c*).
# The default W = I depends on the units of the rows: that is why the choice is the user's (Wojtyra, Pekal and Fraczek,
# Mechanism and Machine Theory 153 (2020) 103999).


def least_multipliers(lam: Array, N: Array, W: Array | None) -> Array:
    """Return the member of lam + range(N) of least W-norm; `lam` may be a matrix of columns.

    With W = C^T C and C N = Q R it is lam - C^-1 Q Q^T C lam: only the orthonormal Q is used, however N is scaled.
    Done twice: the first time may leave rounding of a lam that was much larger than the least one.
    """
    if not N.shape[1]:
        return lam
    C = np.eye(N.shape[0]) if W is None else np.linalg.cholesky(W).T
    Q = np.linalg.qr(C @ (N / np.abs(N).max(axis=0)))[0]
    for _ in range(2):
        lam = lam - np.linalg.solve(C, Q @ (Q.T @ (C @ lam)))
    return lam


def nearest_consistent(c: Array, N: Array, W: Array | None) -> Array:
    """Return the right side in range(A) nearest to c in the dual metric W^-1: c - C^T Q Q^T C^-T c."""
    C = np.eye(N.shape[0]) if W is None else np.linalg.cholesky(W).T
    Q = np.linalg.qr(C @ N)[0]
    return c - C.T @ (Q @ (Q.T @ np.linalg.solve(C.T, c)))


@dataclass(frozen=True, eq=False)
class LeastMultipliers:
    """A factored route whose every answer has the least multipliers, corrections included.

    Refining this, rather than choosing at the end, keeps the digits that the choice would cost where the route's own
    multipliers are much larger than the least ones.
    """

    factor: Route
    n: int
    null: Array
    metric: Array | None

    def solve(self, b: Array) -> Array:
        """Return (a, lam), stacked, lam least in the metric."""
        x = self.factor.solve(b)
        x[self.n :] = least_multipliers(x[self.n :], self.null, self.metric)
        return x


def choice_error(lam: Array, N: Array, W: Array | None) -> float:
    """Return a bound for the error of each multiplier that comes from the choice of the least one.

    The choice is as well conditioned as the basis N, in the metric: badly, where rows have very different units.
    """
    C = np.eye(N.shape[0]) if W is None else np.linalg.cholesky(W).T
    spread = float(np.linalg.cond(C @ (N / np.abs(N).max(axis=0))) * np.linalg.cond(C))
    return 2.0 * spread * lam.size * EPS * float(np.abs(lam).sum())


# ----------------------------------------------------------------------------------------------------------------------
# Certified solve of one block system: a fast route, a look at its certificate, then the rank-revealing one.
#
# The verdicts are those of the table in the room's README: unique, redundant, inconsistent, massless, ill conditioned.


@dataclass(frozen=True, slots=True)
class SolveOptions:
    """What the user asked of a solve.

    `metric` is a definite (m, m) matrix, or None for the identity; `precision` the eps of the right sides.
    """

    route: str = "auto"
    massless: Literal["refuse", "hold"] = "refuse"
    inconsistent: Literal["refuse", "least_squares"] = "refuse"
    metric: Array | None = None
    precision: float = EPS


@dataclass(eq=False)
class Answer:
    """Numbers and verdict for one system; the numbers are NaN where the status is not `solved`.

    Attributes
    ----------
    status
        The verdict.
    analysis, b
        The system that was solved, K x = b: with rows for held motions below the user's, and after a least-squares
        change of the right side, where these were requested.
    x
        a (n,) and lam (m,), stacked; with held motions, their holding forces follow below.
    factor
        The factored route, None where there is no answer.
    held
        Free massless motions that were held, (n, k).
    conflict
        Relative conflict among the right sides of dependent rows.
    removed
        What was taken from the right sides to make them agree, and from the rows to give them their rank, times the
        answer: |b - b*| + |K - K*| |x|, stacked as x; None for nothing, or where it was asked for.
    reason
        Why a route declined, in words.
    regular
        Whether a fast route has proved the system regular; if not, its structure was decided first.
    """

    status: Status
    analysis: Analysis
    b: Array
    x: Array
    residual: Residual | None = None
    factor: Route | None = None
    metric: Array | None = None
    held: Array | None = None
    conflict: float = 0.0
    removed: Array | None = None
    reason: str = ""
    regular: bool = False

    @property
    def acceleration(self) -> Array:
        """The accelerations a, (n,)."""
        return self.x[: self.analysis.M.shape[0]]

    @property
    def multipliers(self) -> Array:
        """The multipliers lam, (m,), then the forces that hold massless motions."""
        return self.x[self.analysis.M.shape[0] :]

    @cached_property
    def inverse(self) -> Array:
        """The (generalised) inverse of the block matrix that belongs to this answer, (n + m, n + m)."""
        with np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore"):
            return self._inverse()

    def _inverse(self) -> Array:
        m, n = self.analysis.A.shape
        factor = self.factor
        if factor is None or not self.regular:
            factor = factored(NullSpace, self.analysis)
        if self.regular:
            return factor.solve(np.eye(n + m))
        return LeastMultipliers(factor, n, self.analysis.rows.null, self.metric).solve(np.eye(n + m))

    @cached_property
    def bounds(self) -> Bounds:
        """Error bars of the numbers; choosing the least multipliers of a family adds its own rounding."""
        analysis, n = self.analysis, self.analysis.M.shape[0]
        choice = 0.0
        if not self.regular and analysis.rows.rank < self.x.size - n:
            choice = choice_error(self.multipliers, analysis.rows.null, self.metric)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore"):
            return error_bounds(analysis.K, self.inverse, self.b, self.x, n, analysis.scales, choice, self.removed)


def answer(analysis: Analysis, b: Array, options: SolveOptions) -> Answer:
    """Solve K x = b, and say what kind of system it was; never raises for numbers."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore"):
        try:
            return fast_answer(analysis, b, options) or careful_answer(analysis, b, options)
        except (np.linalg.LinAlgError, ValueError):  # LAPACK and SciPy about infinities that products have made
            if not analysis.extreme:
                raise
            return Answer(Status.NONFINITE, analysis, b, np.full(b.size, np.nan))


def fast_answer(analysis: Analysis, b: Array, options: SolveOptions) -> Answer | None:
    """Solve by a fast route that proves its own answer; None where nothing is proved."""
    for route in FAST_ROUTES:
        if options.route not in ("auto", route.name):
            continue
        try:
            factor = factored(route, analysis)
        except RouteDeclined:
            continue
        if factor.regular:
            x, remainder = refined(analysis, factor, b)
            if remainder.omega <= acceptable(x.size) and certain(remainder, factor, x, analysis.M.shape[0]):
                return Answer(Status.UNIQUE, analysis, b, x, remainder, factor, regular=True)
    return None


def careful_answer(analysis: Analysis, b: Array, options: SolveOptions) -> Answer:
    """Decide rank, consistency and definiteness first, then solve by the route that the system allows."""
    if not np.isfinite(b).all():
        return Answer(Status.NONFINITE, analysis, b, np.full(b.size, np.nan))
    original, analysis = analysis, analysis.of_rank()
    rows, motion, n, asked = analysis.rows, analysis.motion, analysis.M.shape[0], b
    nowhere = Answer(Status.UNIQUE, analysis, b, np.full(b.size, np.nan), metric=options.metric)
    b, conflict = _consistent(analysis, b, options)
    limit = agreement(rows, max(analysis.precision[1], options.precision))
    if conflict > limit and options.inconsistent == "refuse":
        return replace(nowhere, status=Status.INCONSISTENT, conflict=conflict)
    if motion.negative:
        return replace(nowhere, status=Status.INDEFINITE, conflict=conflict)
    if motion.massless and options.massless == "refuse":
        return replace(nowhere, status=Status.MASSLESS, conflict=conflict)
    status = Status.REDUNDANT if rows.rank < b.size - n else Status.UNIQUE
    held = None
    if motion.massless:
        status = Status.HELD
        held = np.linalg.qr(rows.columns[:, None] * motion.free)[0]
        analysis, b = analysis.with_rows(held.T), np.append(b, np.zeros(held.shape[1]))
    if conflict > limit:
        status = Status.LEAST_SQUARES
    try:
        factor = _suitable(analysis, options)
        metric = _extended(options.metric, 0 if held is None else held.shape[1])
        least = LeastMultipliers(factor, n, analysis.rows.null, metric)
        x, remainder = refined(analysis, least, b, MOST_STEPS if factor.refines else 0)
    except RouteDeclined as declined:
        return replace(nowhere, status=Status.DECLINED, conflict=conflict, reason=str(declined))
    removed = None if conflict > limit else _removed(original, analysis, asked, b, x)
    return _judged(Answer(status, analysis, b, x, remainder, factor, metric, held, conflict, removed))


def _consistent(analysis: Analysis, b: Array, options: SolveOptions) -> tuple[Array, float]:
    """Return b with the consistent right side nearest to its own, and the relative conflict that this removed.

    A conflict that is rounding beside the accelerations that the forces alone could cause in its rows counts as none.
    """
    rows, n = analysis.rows, analysis.M.shape[0]
    if rows.rank == b.size - n:
        return b, 0.0
    limit, d = acceptable(b.size), analysis.scales[:n]
    reach = np.abs(analysis.A) @ (d * np.abs(d * b[:n]))
    share = SHARE * rows.dropped if rows.truncated else 0.0
    conflict = relative_conflict(rows, b[n:], (limit + share) * reach)
    if conflict <= limit and not rows.truncated:
        return b, conflict
    nearest = np.append(b[:n], nearest_consistent(b[n:], rows.null, options.metric))
    change = np.abs(analysis.scales * (b - nearest))
    nearest = np.where(change <= limit * change.max(), b, nearest)
    nearest[np.abs(nearest) <= limit * np.abs(b)] = 0.0
    return nearest, conflict


def _removed(given: Analysis, kept: Analysis, asked: Array, b: Array, x: Array) -> Array | None:
    """Return what was taken from right sides and rows, times the answer x; rows of held motions lose nothing."""
    n, m = given.M.shape[0], given.A.shape[0]
    change = np.abs(b[: n + m] - asked)
    if given.rows.truncated:
        dropped = np.abs(given.A - kept.A[:m])
        change[:n] += dropped.T @ np.abs(x[n : n + m])
        change[n:] += dropped @ np.abs(x[:n])
    return np.append(change, np.zeros(b.size - n - m)) if change.any() else None


def _suitable(analysis: Analysis, options: SolveOptions) -> Route:
    """Factor by the requested route, or by the rank-revealing one; say why a requested one cannot do."""
    route = NullSpace if options.route == "auto" else FACTORISATIONS[options.route]
    redundant = analysis.A.shape[0] - analysis.rows.rank
    if redundant and not route.handles_redundant_rows:
        raise RouteDeclined(f"{redundant} of the constraint rows are redundant; use route 'auto' or 'nullspace'")
    return factored(route, analysis)


def _judged(solved: Answer) -> Answer:
    """Return the answer, marked where rank or residual are in doubt or the error bars leave too few digits."""
    analysis, remainder = solved.analysis, solved.residual
    solid = (
        remainder is not None
        and remainder.overall(analysis, solved.x) <= acceptable(solved.x.size)
        and not analysis.rows.ambiguous
    )
    relative = solved.bounds.relative_error
    if analysis.rows.carried and solved.removed is not None:  # the rank is known: what does not fit it is `conflict`
        known = replace(solved, removed=None)
        known.__dict__["inverse"] = solved.inverse
        relative = known.bounds.relative_error
    if solid and relative <= CERTAIN and not analysis.extreme:  # equilibration ends before such numbers
        return solved
    if not np.all(np.isfinite(solved.x)):
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
