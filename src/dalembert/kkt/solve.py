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
from dalembert.kkt.limits import AT_REST, CERTAIN, EPS, SHARE, acceptable, rounding
from dalembert.kkt.residual import (
    MOST_STEPS,
    Bounds,
    Residual,
    certain,
    error_bounds,
    refined,
)
from dalembert.kkt.routes import (
    FACTORISATIONS,
    FAST_ROUTES,
    Augmented,
    Gauss,
    NullSpace,
    RouteDeclined,
    Schur,
    factored,
)
from dalembert.kkt.routes.contract import FastRoute, Route
from dalembert.status import Status
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


HIGH = 300
"""Binary exponent of the largest right side: others may be smaller by 400 digits, and squares stay in the range."""

WIDE = 26
"""Units of coordinates and rows that differ by more powers of two than half the digits may hide numbers of others."""


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
    exponents
        Of the units in which it was solved, s: K, b and x are 2^s K 2^s, 2^s b and 2^-s x of the user's, those of b
        and x times one power of two more; None for the user's own. `acceleration`, `multipliers`, `multiplier_basis`
        and `bounds` are in the user's units.
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
    exponents: Array | None = None

    @cached_property
    def _numbers(self) -> Array:
        """X in the user's units."""
        return self.x if self.exponents is None else np.ldexp(self.x, self.exponents)

    @property
    def acceleration(self) -> Array:
        """The accelerations a, (n,)."""
        return self._numbers[: self.analysis.M.shape[0]]

    @property
    def multipliers(self) -> Array:
        """The multipliers lam, (m,), then the forces that hold massless motions."""
        return self._numbers[self.analysis.M.shape[0] :]

    @property
    def multiplier_basis(self) -> Array:
        """Basis of null(A^T), (m, k), in echelon form."""
        null, pivots = self.analysis.rows.redundancies
        if self.exponents is None:
            return null
        e = self.exponents[self.analysis.M.shape[0] :]
        return np.ldexp(null, e[:, None] - e[pivots])

    @cached_property
    def inverse(self) -> Array:
        """The (generalised) inverse of the block matrix that belongs to this answer, (n + m, n + m)."""
        with np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore"):
            return self._inverse()

    def _inverse(self) -> Array:
        m, n = self.analysis.A.shape
        factor = self.factor
        if factor is None or not (self.regular or factor.refines):
            factor = _rank_revealing(self.analysis)
        if self.regular:
            return factor.solve(np.eye(n + m))
        return LeastMultipliers(factor, n, self.analysis.rows.null, self.metric).solve(np.eye(n + m))

    @cached_property
    def bounds(self) -> Bounds:
        """Error bars of the numbers; choosing the least multipliers of a family adds its own rounding."""
        analysis, n = self.analysis, self.analysis.M.shape[0]
        choice = 0.0
        if not self.regular and analysis.rows.rank < self.x.size - n:
            choice = choice_error(self.x[n:], analysis.rows.null, self.metric)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore"):
            return error_bounds(
                analysis.K, self.inverse, self.b, self.x, n, analysis.scales, choice, self.removed, self.exponents
            )


def answer(analysis: Analysis, b: Array, options: SolveOptions) -> Answer:
    """Solve K x = b, and say what kind of system it was; never raises for numbers."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore"):
        try:
            return fast_answer(analysis, b, options, (Schur,)) or answer_in_units(analysis, b, options)
        except (np.linalg.LinAlgError, ValueError):  # LAPACK and SciPy about infinities that products have made
            if not analysis.extreme:
                raise
            return Answer(Status.NONFINITE, analysis, b, np.full(b.size, np.nan))


def answer_in_units(analysis: Analysis, b: Array, options: SolveOptions) -> Answer:
    """Solve with M and A of size one; where that fails and units differ widely, with every row and coordinate so.

    No product overflows or vanishes for the sake of units, and the bits of an answer do not depend on those of M, A
    and b. What vanishes in the change of units itself is data lost, and the answer is not called ok.
    """
    if not np.isfinite(b).all():
        return Answer(Status.NONFINITE, analysis, b, np.full(b.size, np.nan))
    first = None
    (common, s), (balanced, t) = analysis.in_common_units, analysis.in_own_units
    if analysis.same_as(common, s) or np.ptp(t - s) <= WIDE:
        try:
            first = _solved_in_units(common, s, b, options)
        except (np.linalg.LinAlgError, ValueError):
            if np.ptp(t - s) <= WIDE:
                raise
        if first is not None and (first.status <= Status.LEAST_SQUARES or np.ptp(t - s) <= WIDE):
            return first
    second = _solved_in_units(balanced, t, b, options)
    if second.status <= Status.LEAST_SQUARES and not analysis.same_as(balanced, t):
        second = replace(second, status=Status.ILL_CONDITIONED)
    if first is not None and first.status is Status.ILL_CONDITIONED and second.status > Status.LEAST_SQUARES:
        return first
    return second


def _solved_in_units(analysis: Analysis, s: Array, b: Array, options: SolveOptions) -> Answer:
    """Solve a system in units of exponents s, right sides multiplied by one power of two more: the largest is HIGH."""
    shift = HIGH - int(np.max(np.frexp(b)[1] + s, where=b != 0.0, initial=-(2**20))) if b.any() else 0
    scaled = np.ldexp(b, s + np.int32(shift))
    answer = fast_answer(analysis, scaled, options, FAST_ROUTES) or careful_answer(analysis, scaled, options, s)
    units, extra = s, answer.x.size - s.size
    if extra and answer.analysis.units is not None:  # rows of held motions have units of their own
        units = np.append(s, answer.analysis.units[-extra:])
    answer = replace(answer, exponents=units - np.int32(shift))
    if not answer.status.answered:
        return answer
    if not (np.isfinite(answer.acceleration).all() and np.isfinite(answer.multipliers).all()):
        return replace(answer, status=Status.NONFINITE, x=np.full(answer.x.size, np.nan))
    exact = np.array_equal(np.ldexp(scaled, -s - np.int32(shift)), b)
    return answer if exact else replace(answer, status=Status.ILL_CONDITIONED)


def fast_answer(
    analysis: Analysis, b: Array, options: SolveOptions, routes: tuple[type[FastRoute], ...]
) -> Answer | None:
    """Solve by a fast route that proves its own answer; None where nothing is proved."""
    for route in routes:
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


def careful_answer(analysis: Analysis, b: Array, options: SolveOptions, s: Array) -> Answer:
    """Decide rank, consistency and definiteness first, then solve by the route that the system allows.

    `s` are the exponents of the units that K and b are in: least multipliers are least in the user's.
    """
    original, analysis = analysis, analysis.of_rank()
    rows, motion, n, right = analysis.rows, analysis.motion, analysis.M.shape[0], b
    options = replace(options, metric=_in_units(options.metric, s[n:], redundant=rows.rank < b.size - n))
    nowhere = Answer(Status.UNIQUE, analysis, b, np.full(b.size, np.nan), metric=options.metric)
    b, conflict, doubt = _consistent(analysis, b, options)
    limit = agreement(rows, max(analysis.precision[1], options.precision))
    if conflict > limit and not doubt and options.inconsistent == "refuse":
        return replace(nowhere, status=Status.INCONSISTENT, conflict=conflict)
    if motion.negative:
        return replace(nowhere, status=Status.INDEFINITE, conflict=conflict)
    if motion.massless and options.massless == "refuse":
        return replace(nowhere, status=Status.MASSLESS, conflict=conflict)
    status = Status.REDUNDANT if rows.rank < b.size - n else Status.UNIQUE
    held = None
    if motion.massless:
        status = Status.HELD
        held = np.linalg.qr(np.ldexp(rows.columns[:, None] * motion.free, s[:n, None]))[0]
        extra = np.ldexp(held.T, s[:n])
        units = -np.frexp(np.abs(extra).max(axis=1))[1]
        analysis = analysis.with_rows(np.ldexp(extra, units[:, None]), units)
        b = np.append(b, np.zeros(held.shape[1]))
    if conflict > limit and not doubt:
        status = Status.LEAST_SQUARES
    try:
        factor = _suitable(analysis, options)
        metric = _extended(options.metric, 0 if held is None else held.shape[1])
        least = LeastMultipliers(factor, n, analysis.rows.null, metric)
        x, remainder = refined(analysis, least, b, MOST_STEPS if factor.refines else 0)
        removed = None if conflict > limit and not doubt else _removed(original, analysis, right, b, x)
        solved = _judged(Answer(status, analysis, b, x, remainder, factor, metric, held, conflict, removed))
    except RouteDeclined as declined:
        return replace(nowhere, status=Status.DECLINED, conflict=conflict, reason=str(declined))
    return replace(solved, status=Status.ILL_CONDITIONED) if doubt and solved.status.ok else solved


def _consistent(analysis: Analysis, b: Array, options: SolveOptions) -> tuple[Array, float, bool]:
    """Return b with the nearest consistent right side, the relative conflict removed, and whether it is in doubt.

    A conflict that is rounding of the accelerations in its rows counts as none; one that is rounding of the whole
    motion may be one (`_noise`).
    """
    rows, n = analysis.rows, analysis.M.shape[0]
    if rows.rank == b.size - n:
        return b, 0.0, False
    limit = acceptable(b.size)
    own, around = _noise(analysis, b, limit)
    conflict, doubt = relative_conflict(rows, b[n:], own), False
    refused = options.inconsistent == "refuse"
    if refused and conflict > agreement(rows, max(analysis.precision[1], options.precision)):
        beyond = relative_conflict(rows, b[n:], own + around)
        conflict, doubt = (beyond, False) if beyond > limit else (conflict, True)
    if conflict <= limit and not rows.truncated:
        return b, conflict, doubt
    nearest = np.append(b[:n], nearest_consistent(b[n:], rows.null, options.metric))
    change = np.abs(analysis.scales * (b - nearest))
    nearest = np.where(change <= limit * change.max(), b, nearest)
    nearest[np.abs(nearest) <= limit * np.abs(b)] = 0.0
    return nearest, conflict, doubt


def _noise(analysis: Analysis, b: Array, limit: float) -> tuple[Array, Array]:
    """Return the rounding (m,) of right sides of dependent rows: what is none for sure, and what more may be.

    Rounding of |A_i| |a|, a the acceleration of the motion that there is, asks for nothing:

        a = Z (Z^T M Z)^-1 Z^T f + A^+ c

    not M^-1 f, which without the rows a light limb would have; nor do right sides that are nothing beside that
    (`AT_REST`). Where other parts move, |A_i L^-T| |L^T a| in the metric of the mass, it may be rounding of theirs;
    where nothing moves, of what the forces could cause. A rank that drops more than rounding adds its part.
    """
    rows, motion, n = analysis.rows, analysis.motion, analysis.M.shape[0]
    d, r = analysis.scales[:n], rows.rank
    massive = motion.values > motion.noise
    modes, values = motion.vectors[:, massive], motion.values[massive]
    driven = modes.T @ (motion.scale * (motion.Z.T @ (rows.columns * b[:n])))
    asked = (rows.U[:, :r].T @ (rows.weights * b[n:])) / rows.s[:r]
    a = np.abs(rows.columns * (motion.Z @ (motion.scale * (modes @ (driven / values)))))
    a += rows.measures * np.abs(rows.B.T @ (rows.U[:, :r] @ (asked / rows.s[:r])))
    whole, pushed = np.linalg.norm(driven / np.sqrt(values)), np.linalg.norm(d * b[:n])
    whole = np.hypot(whole, np.linalg.norm(asked)) if whole > limit * pushed else np.inf
    lengths, A = np.linalg.norm(rows.B, axis=1) / rows.weights, np.abs(analysis.A)
    free = A @ (d * np.abs(d * b[:n]))
    around = (limit + (SHARE * rows.dropped if rows.truncated else 0.0)) * np.minimum(lengths * whole, free)
    certain = rounding(b.size) * (A @ a) + AT_REST * free
    return (certain + around, np.zeros(len(A))) if rows.truncated else (certain, around)


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
    """Factor by the requested route, or by a rank-revealing one; say why a requested one cannot do."""
    if options.route == "auto":
        return _rank_revealing(analysis)
    route = FACTORISATIONS[options.route]
    redundant = analysis.A.shape[0] - analysis.rows.rank
    if redundant and not route.handles_redundant_rows:
        raise RouteDeclined(f"{redundant} of the constraint rows are redundant; use route 'auto' or 'nullspace'")
    return factored(route, analysis)


def _rank_revealing(analysis: Analysis) -> Route:
    """Factor by the first route for any rank that does not decline; raises what the first of them says.

    Where coordinates that rows know by rounding alone (1e-17) are made dependent, the reduced mass loses its digits
    though M is definite: the mass-weighted inverse keeps them.
    """
    reason = None
    for route in (NullSpace, Gauss, Augmented):
        try:
            return factored(route, analysis)
        except RouteDeclined as declined:
            reason = reason or declined
    raise reason or RouteDeclined("there is no route")


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
        consistent = replace(solved, removed=None)
        consistent.__dict__["inverse"] = solved.inverse
        relative = consistent.bounds.relative_error
    if solid and relative <= CERTAIN and not analysis.extreme:  # equilibration ends before such numbers
        return solved
    if not np.all(np.isfinite(solved.x)):
        return replace(solved, status=Status.NONFINITE)
    return replace(solved, status=Status.ILL_CONDITIONED)


def _in_units(metric: Array | None, e: Array, *, redundant: bool) -> Array | None:
    """Return the metric for multipliers in units 2^e, up to a common factor; None for the identity.

    It is asked for where rows are redundant only.
    """
    if not redundant or (metric is None and (e == e[0]).all()):
        return None
    W, e = np.eye(e.size) if metric is None else metric, e - e.max()
    return np.ldexp(W, e[:, None] + e)


def _extended(metric: Array | None, extra: int) -> Array | None:
    """Return the metric with unit weights for `extra` further rows."""
    if metric is None or not extra:
        return metric
    m = metric.shape[0]
    wide = np.eye(m + extra)
    wide[:m, :m] = metric
    return wide
