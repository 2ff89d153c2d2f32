"""Rank of the constraint rows, redundant rows in readable form, uniqueness of reactions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dalembert.first_use import LaterModule
from dalembert.kkt.limits import (
    CLEARLY_DEFINITE,
    EPS,
    EXPLAINED,
    NEGLIGIBLE,
    PROJECTION_FACTOR,
    READABLE_PIVOT,
    doubt_level,
    negligible_level,
    participation_level,
    rounding_level,
)
from dalembert.kkt.scaling import log_scales, of_groups, row_scales
from dalembert.types import Array

if TYPE_CHECKING:
    import scipy.linalg as sla
    from jaxtyping import Bool, Float, Int
else:
    sla = LaterModule("scipy.linalg")

# ----------------------------------------------------------------------------------------------------------------------
# Sparse combinations that a person can read, from a numerical null-space basis.
#
# A basis of null(A^T) or of free motions comes out of an orthogonal decomposition as dense columns. Reduced to echelon
# form, with the last entries as pivots, each column says one thing: "row 5 is row 1 + row 2".


def echelon(
    basis: Float[Array, "m k"], scales: Float[Array, " m"], negligible: float = NEGLIGIBLE
) -> tuple[Float[Array, "m k"], list[int]]:
    """Return the column-reduced basis diag(scales) @ basis and its pivot rows, later rows preferred as pivots.

    Column j of the result is 1 at pivot j and 0 at all other pivots. Pivots and zeros are decided on `basis` itself,
    whose entries are of one size; the scales put it into the user's units afterwards.
    """
    reduced = np.linalg.qr(basis)[0]
    k = reduced.shape[1]
    pivots: list[int] = []
    for column in range(k):
        row = _pivot_row(reduced[:, column:])
        best = column + int(np.argmax(np.abs(reduced[row, column:])))
        reduced[:, [column, best]] = reduced[:, [best, column]]
        reduced[:, column] /= reduced[row, column]
        others = [j for j in range(k) if j != column]
        reduced[:, others] -= np.outer(reduced[:, column], reduced[row, others])
        pivots.append(row)
    reduced[np.abs(reduced) < negligible * np.abs(reduced).max(axis=0, initial=0.0)] = 0.0
    return scales[:, None] * reduced / scales[pivots] + 0.0, pivots


def combination(coefficients: Float[Array, " m"], names: tuple[str, ...]) -> str:
    """Write a linear combination, such as "left x - 2 right x", leaving out zeros."""
    terms: list[str] = []
    for value, name in zip(coefficients, names, strict=True):
        if value == 0.0:
            continue
        size = "" if abs(abs(value) - 1.0) < NEGLIGIBLE else f"{abs(value):.6g} "
        sign = ("-" if value < 0 else "") if not terms else ("- " if value < 0 else "+ ")
        terms.append(f"{sign}{size}{name}")
    return " ".join(terms) if terms else "0"


def refined_null(A: Float[Array, "m n"], null: Float[Array, "m k"], pivots: list[int]) -> Float[Array, "m k"]:
    """Return the basis of null(A^T) with one correction a column: A_o^T d = -A^T y over its rows o but the pivot.

    Entries came from columns of length one in the metric of the mass: where rows have very different lengths there,
    rounding of the long ones is much of the short ones; where rows are nearly parallel, the share of one that was
    rounding, and became zero, is missing in the other. Zeros stay zero.
    """
    better = null.copy()
    for j, pivot in enumerate(pivots):
        others = np.flatnonzero(null[:, j])
        others = others[others != pivot]
        if not others.size:
            continue
        e = 1.0 / np.abs(A[others]).max(axis=1)
        missed = A.T @ null[:, j]
        y = null[:, j].copy()
        y[others] -= e * np.linalg.lstsq((e[:, None] * A[others]).T, missed, rcond=None)[0]
        if np.linalg.norm(A.T @ y) < np.linalg.norm(missed):
            better[:, j] = y
    return better


def _pivot_row(columns: Float[Array, "m j"]) -> int:
    """Return the last row with an entry large enough to be a pivot."""
    size = np.abs(columns).max(axis=1)
    return int(np.flatnonzero(size >= READABLE_PIVOT * size.max())[-1])


# ----------------------------------------------------------------------------------------------------------------------
# The constraint rows: rank of A, which rows are redundant, which reactions are unique. The one place for ranks.
#
# Symbols: M = L L^T, B = D A L^-T with D = diag(weights) so that every row of B has length one (or the longest of every
# group of rows that share a unit), B = U S V^T, r rank, N = D U2 a basis of null(A^T).
#
# B does not change with the units of coordinates (M -> T M T, A -> A T) nor of rows (A -> R A), so its singular values
# decide ranks. A column that carries mass is not scaled up: rounding in it stays rounding. Where M is singular, or so
# near to it that rounding decides, H = M + A^T W A stands in its place, definite exactly when seed 000's condition (33)
# holds; W gives rows the size of M's diagonal. Massless columns have no size of their own: theirs is the one that makes
# their entries, in logarithms, nearest to those of the other columns. Rows that are dependent in this metric and not in
# the coordinates' own units (a light motion lengthens all rows, and the rest looks like rounding) are in doubt.
#
# The solving half (`columns`, `rows`, `U1`, `s1`, `V1t`) belongs to r rows chosen by pivots in this metric: they are
# equilibrated by powers of two, which is exact, and keeps the digits of very light coordinates.


SIDE_BY_SIDE = 4096
"""Samples of a batch that are decomposed together: their matrices stay in some tens of megabytes."""


class MetricRows(NamedTuple):
    """Rows in the metric of the mass.

    Attributes
    ----------
    B
        (m, n), rows of length one, or in groups: the longest of each; a zero row stays zero.
    weights
        D, one per row: the reciprocal length of the row, or of the longest of its group, in this metric.
    growth
        Factor by which rounding of the entries of A may have grown in B, at least one.
    shortest
        Index of the shortest row that is not zero, and its length relative to the longest.
    own
        (m, n), the rows of length one before the metric: every column over the root of its mass.
    measures
        The size of every coordinate in this metric: M_jj^-1/2, or for a massless one what its rows say.
    """

    B: Float[Array, "m n"]
    weights: Float[Array, " m"]
    growth: float
    shortest: tuple[int, float]
    own: Float[Array, "m n"]
    measures: Float[Array, " n"]


@dataclass(frozen=True, eq=False)
class RowStructure:
    """Rank-revealing decomposition of the constraint rows.

    Attributes
    ----------
    A
        The rows of rank `rank`, in the user's units: A itself where what was dropped is rounding, otherwise A without
        the singular directions beyond the rank.
    B, weights, measures
        Rows in the metric of the mass, their weights D, and the sizes of coordinates; see `MetricRows`.
    U, s
        Left singular vectors (m, m) and singular values of B.
    rank, kept, dropped
        The rank, and the relative singular values on either side of the decision.
    threshold
        Singular values up to this were taken for zero.
    rounding
        The relative singular value up to which rows of this precision are dependent.
    carried
        Whether the rank was given, so that the decision is the caller's.
    truncated
        Whether a row has lost more than its rounding, so that `A` differs from the rows that were given.
    doubt
        A sentence where another rank would be as right, or where a given rank has become one less; else nothing.
    chosen
        Indices of r independent rows, ascending.
    columns, rows
        Scales G of coordinates and E of the chosen rows, powers of two.
    U1, s1, V1t
        Singular value decomposition of the chosen rows, E A G: (r, r), (r,), (r, n); rounding in place of zeros,
        which are in doubt.
    """

    A: Float[Array, "m n"]
    B: Float[Array, "m n"]
    weights: Float[Array, " m"]
    measures: Float[Array, " n"]
    U: Float[Array, "m m"]
    s: Float[Array, " k"]
    rank: int
    kept: float
    dropped: float
    threshold: float
    rounding: float
    carried: bool
    truncated: bool
    doubt: str
    chosen: Int[Array, " r"]
    columns: Float[Array, " n"]
    rows: Float[Array, " r"]
    U1: Float[Array, "r r"]
    s1: Float[Array, " r"]
    V1t: Float[Array, "r n"]

    @property
    def ambiguous(self) -> bool:
        """Whether the rank is in doubt."""
        return bool(self.doubt)

    @property
    def gap(self) -> float:
        """Ratio of the smallest singular value kept to the largest dropped (or to eps): large means a clear rank."""
        return self.kept / max(self.dropped, EPS)

    @property
    def scaled_null(self) -> Float[Array, "m k"]:
        """Orthonormal basis of null(B^T), or of what was taken for it."""
        return self.U[:, self.rank :]

    @property
    def participation(self) -> float:
        """What a unit null vector must have on a row that takes part in it."""
        return participation_level(max(self.rounding, self.dropped) / max(self.kept, EPS))

    @cached_property
    def redundancies(self) -> tuple[Float[Array, "m k"], list[int]]:
        """Basis of null(A^T) in echelon form, and its pivots: row pivots[j] is minus the rest of column j."""
        null, pivots = echelon(self.scaled_null, self.weights, negligible_level(self.participation))
        return refined_null(self.A * self.measures, null, pivots), pivots

    @property
    def null(self) -> Float[Array, "m k"]:
        """Basis of null(A^T), in echelon form: every multiplier family is lam + null @ anything."""
        return self.redundancies[0]

    @property
    def unique(self) -> Bool[Array, " m"]:
        """Whether each reaction is unique: no vector of null(A^T) has a component on it.

        Source: M. Wojtyra, "Joint reaction forces in multibody systems with redundant constraints", Multibody
        System Dynamics 14 (2005) 23-46.
        """
        return np.linalg.norm(self.scaled_null, axis=1) <= self.participation

    def in_range(self, c: Array) -> Array:
        """Return the right sides in range(A) nearest to c, (m,) or (m, k), rows of length one counting alike."""
        if self.rank == c.shape[0]:
            return c
        U2 = np.where(self.unique[:, None], 0.0, self.scaled_null)
        weights = self.weights.reshape((-1,) + (1,) * (c.ndim - 1))
        return c - (U2 @ (U2.T @ (weights * c))) / weights


def row_structure(
    A: Float[Array, "m n"],
    M: Float[Array, "n n"] | None = None,
    tolerance: float | None = None,
    precision: float = EPS,
    rank: int | None = None,
    groups: Sequence[int] | None = None,
    scales: Float[Array, " m"] | None = None,
    units: Int[Array, " m"] | None = None,
) -> RowStructure:
    """Decompose the rows of A in the metric of M (of the identity without M).  O(n^3 + m n min(m, n)).

    Parameters
    ----------
    tolerance
        Relative singular value up to which rows are dependent, in place of rounding.
    precision
        The eps of the numbers in A: that of float32 where they came in single precision.
    rank
        A rank that is known: the largest `rank` singular values are kept, the rest is projected away.
    groups
        One number per row; rows of one group share their unit and are scaled together, so that a row that is rounding
        beside its group is none. Without groups every row is scaled for itself.
    scales
        D, where it is known: positive numbers, the same at all states of a mechanism. A constraint that fades at one
        of them is not scaled up there.
    units
        Exponents of two by which the rows were multiplied before: a row that was rounding beside the others is named.
    """
    metric = metric_rows(A, M, groups, units) if scales is None else _known_metric(A, M, scales)
    B, weights = metric.B, metric.weights
    U, s, _ = np.linalg.svd(B)
    decision = _decided(s, A.shape, metric, tolerance, precision, rank, grouped=groups is not None)
    r = decision.rank
    U2 = U[:, r:]
    rest, size = U2 @ (U2.T @ B), np.linalg.norm(B, axis=1)
    truncated = bool(((np.linalg.norm(rest, axis=1) > rounding_level(*A.shape) * size) & (size > 0.0)).any())
    projected = _projected(A, weights, U2) if truncated else A
    chosen = pivoted_rows(B - rest if truncated else B, r)
    columns, rows = row_scales(projected[chosen])
    U1, s1, V1t = np.linalg.svd(rows[:, None] * projected[chosen] * columns, full_matrices=False)
    doubt = decision.doubt
    if r and s1[-1] < EPS * EPS * s1[0]:  # no number tells this direction from none: it is known up to rounding
        doubt = doubt or f"the rank is in doubt: {r} rows are counted as independent, and numbers tell fewer apart"
        s1 = np.maximum(s1, EPS * s1[0])
    return RowStructure(
        A=projected, B=B, weights=weights, measures=metric.measures, U=U, s=s,
        rank=r, kept=decision.kept, dropped=decision.dropped, threshold=decision.threshold, rounding=decision.rounding,
        carried=rank is not None, truncated=truncated, doubt=doubt,
        chosen=chosen, columns=columns, rows=rows, U1=U1, s1=s1, V1t=V1t,
    )  # fmt: skip


def independent_rows(
    A: Float[Array, "m n"],
    M: Float[Array, "n n"] | None = None,
    tolerance: float | None = None,
    precision: float = EPS,
    rank: int | None = None,
    groups: Sequence[int] | None = None,
) -> Int[Array, " r"]:
    """Return the indices, ascending, of r independent rows, chosen by pivots in the metric of M; r given or found.

    The arguments are those of `row_structure`.
    """
    metric = metric_rows(A, M, groups)
    if rank is None:
        s = np.linalg.svd(metric.B, compute_uv=False)
        rank = _decided(s, A.shape, metric, tolerance, precision, None, grouped=groups is not None).rank
    return pivoted_rows(metric.B, rank)


def metric_rows(
    A: Float[Array, "m n"],
    M: Float[Array, "n n"] | None = None,
    groups: Sequence[int] | None = None,
    units: Int[Array, " m"] | None = None,
) -> MetricRows:
    """Return the rows of A in the metric of M, each of length one, or the longest of each group."""
    if M is None:
        M = np.eye(A.shape[1])
    mass = np.abs(np.diag(M))
    massive = mass > 0.0
    exponents = np.where(massive, -0.5 * np.log2(np.where(massive, mass, 1.0)), np.nan)
    columns, scales = log_scales(A, exponents)
    scales = of_groups(scales, groups, np.min)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        scaled = np.where(A == 0.0, 0.0, A * np.exp2(scales[:, None] + columns))
        Mhat = np.where(M == 0.0, 0.0, M * np.exp2(columns[:, None] + columns))
    first = of_groups(_lengths(scaled), groups, np.max)
    scaled = scaled / first[:, None]
    Li = _metric_factor(Mhat, scaled)
    B = scaled @ Li.T
    lengths = _lengths(B)
    last = of_groups(lengths, groups, np.max)
    growth = np.linalg.norm(np.abs(scaled) @ np.abs(Li.T), axis=1) / last
    before = scales if units is None else scales + units
    logs = np.where(B.any(axis=1), np.log2(first) + np.log2(lengths) - before, np.nan)
    with np.errstate(over="ignore", under="ignore"):
        weights, measures = np.exp2(scales) / (first * last), np.exp2(columns)
    return MetricRows(
        B=B / last[:, None], weights=weights, growth=max(1.0, float(growth.max(initial=1.0))), shortest=_shortest(logs),
        own=scaled, measures=measures,
    )  # fmt: skip


def _known_metric(A: Array, M: Array | None, scales: Array) -> MetricRows:
    """Return D A L^-T with scales D that are given; coordinates are scaled as in `metric_rows`."""
    M = np.eye(A.shape[1]) if M is None else M
    mass = np.abs(np.diag(M))
    exponents = np.where(mass > 0.0, -0.5 * np.log2(np.where(mass > 0.0, mass, 1.0)), np.nan)
    weighted = scales[:, None] * A
    columns = np.exp2(log_scales(weighted, exponents)[0])
    Li = _metric_factor(M * np.outer(columns, columns), weighted * columns)
    B = weighted * columns @ Li.T
    lengths = np.linalg.norm(B, axis=1)
    grown = np.linalg.norm(np.abs(weighted * columns) @ np.abs(Li.T), axis=1) / _lengths(B)
    with np.errstate(divide="ignore"):
        logs = np.where(lengths > 0.0, np.log2(lengths), np.nan)
    growth = max(1.0, float(grown.max(initial=1.0)))
    return MetricRows(B, scales, growth, _shortest(logs), own=weighted * columns, measures=columns)


def metric_spectra(
    A: Float[Array, "N m n"], M: Float[Array, "N n n"], scales: Float[Array, " m"]
) -> Float[Array, "N k"]:
    """Return the singular values of D A L^-T, k = min(m, n), of a batch: those of `row_structure` with these scales.

    Samples whose M is clearly definite go through LAPACK together, `SIDE_BY_SIDE` at a time; the others one by one.
    """
    N, m, n = A.shape
    s = np.empty((N, min(m, n)))
    for first in range(0, N, SIDE_BY_SIDE):
        block = slice(first, first + SIDE_BY_SIDE)
        s[block] = np.linalg.svd(rows_in_metric(A[block], M[block], scales), compute_uv=False)
    return s


def metric_decompositions(
    A: Float[Array, "N m n"], M: Float[Array, "N n n"], scales: Float[Array, " m"]
) -> tuple[Float[Array, "N m m"], Float[Array, "N k"]]:
    """Return U and the singular values of D A L^-T of a batch: the last columns of U are null(B^T) under any rank."""
    N, m, n = A.shape
    U, s = np.empty((N, m, m)), np.empty((N, min(m, n)))
    for first in range(0, N, SIDE_BY_SIDE):
        block = slice(first, first + SIDE_BY_SIDE)
        U[block], s[block], _ = np.linalg.svd(rows_in_metric(A[block], M[block], scales))
    return U, s


def rows_in_metric(A: Float[Array, "N m n"], M: Float[Array, "N n n"], scales: Float[Array, " m"]) -> Array:
    """Return D A L^-T of samples."""
    mass = np.abs(np.diagonal(M, axis1=1, axis2=2))
    massive = np.asarray((mass > 0.0).all(axis=1))
    columns = np.exp2(-0.5 * np.log2(np.where(massive[:, None], mass, 1.0)))
    unit = M * (columns[:, :, None] * columns[:, None, :])
    values = np.linalg.eigvalsh(unit)
    regular = np.asarray(massive & (values > 0.0).all(axis=1))
    regular &= (1.0 / np.where(regular[:, None], values, 1.0)).sum(axis=1) < CLEARLY_DEFINITE
    B = np.empty(A.shape)
    Li = np.linalg.inv(np.linalg.cholesky(unit[regular]))
    weighted = scales[:, None] * A[regular] * columns[regular, None, :]
    B[regular] = weighted @ Li.transpose(0, 2, 1)
    for k in np.flatnonzero(~regular):
        B[k] = _known_metric(A[k], M[k], scales).B
    return B


def _shortest(logs: Array) -> tuple[int, float]:
    """Return the index of the shortest row and its relative length, from binary logarithms; NaN marks a zero row."""
    if not np.isfinite(logs).any():
        return 0, 1.0
    shortest = int(np.nanargmin(logs))
    return shortest, float(np.exp2(logs[shortest] - np.nanmax(logs)))


def _metric_factor(M: Float[Array, "n n"], A: Float[Array, "m n"]) -> Float[Array, "n n"]:
    """Return L^-1 of the metric, for M with a diagonal of ones and zeros, and rows A of length one."""
    try:
        Li = np.linalg.inv(np.linalg.cholesky(M))
        if float(np.sum(Li * Li)) < CLEARLY_DEFINITE:
            return Li
    except np.linalg.LinAlgError:
        pass
    values, vectors = np.linalg.eigh(0.5 * (M + M.T))
    H = (vectors * np.abs(values)) @ vectors.T + A.T @ A
    values, vectors = np.linalg.eigh(0.5 * (H + H.T))
    unseen = values <= rounding_level(*A.shape) * values[-1]  # neither mass nor rows: nothing is measured along these
    values[unseen] = 1.0
    return (vectors / np.sqrt(values)).T


class _Decision(NamedTuple):
    """The rank, with the numbers and the words that belong to it."""

    rank: int
    kept: float
    dropped: float
    threshold: float
    rounding: float
    doubt: str


def _decided(
    s: Array,
    shape: tuple[int, ...],
    metric: MetricRows,
    tolerance: float | None,
    precision: float,
    rank: int | None,
    *,
    grouped: bool,
) -> _Decision:
    """Decide the rank from singular values: as given, by the tolerance, or by rounding, with doubt above it."""
    largest = float(s[0]) if s.size and s[0] > 0.0 else 1.0
    rounding, doubtful = rounding_level(shape[0], shape[1], precision) / largest, doubt_level(precision)
    relative = s / largest
    limit = min(rounding * metric.growth, doubtful) if tolerance is None else tolerance
    r = int(np.count_nonzero(relative > limit)) if rank is None else min(rank, s.size)
    smallest = float(relative[r - 1]) if r else 1.0
    dropped = float(relative[r]) if r < s.size else 0.0
    doubt = ""
    if rank is not None:
        if smallest <= rounding:
            doubt = f"a singular configuration: the rank is known as {rank}, but its singular value is {smallest:.0e}"
    elif tolerance is None:
        row, length = metric.shortest
        lost = max(dropped, _lost(metric.own, r) / largest) if r < s.size else 0.0
        if lost > rounding * min(metric.growth, EXPLAINED):
            doubt = f"a singular value of {lost:.0e} was taken for zero; set rank_tolerance"
        elif smallest <= doubtful:
            doubt = f"a singular value of {smallest:.0e} lies between rounding, {rounding:.0e}, and {doubtful:.0e}"
            doubt += "; set rank_tolerance"
        elif not grouped and length <= rounding:
            doubt = f"row {row} is {length:.0e} of the longest: rounding, or another unit? Scale it, set it to zero, or"
            doubt += " say in groups= which rows share a unit"
        doubt = doubt and f"the rank is in doubt: {doubt}"
    threshold = largest * (limit if rank is None else dropped)
    return _Decision(r, smallest, dropped, threshold, rounding, doubt)


def _lost(rows: Float[Array, "m n"], rank: int) -> float:
    """Return how far rows of length one, before the metric, are from this rank.

    A direction of little mass lengthens all rows alike: beside it what makes them independent looks like rounding.
    What is dropped must be rounding of the numbers that were given, too.
    """
    return float(np.linalg.svd(rows, compute_uv=False)[rank])


def _projected(A: Array, weights: Array, U2: Array) -> Array:
    """Return A without the combinations U2 of its weighted rows; entries that change by rounding stay as they are."""
    weighted = weights[:, None] * A
    change = (U2 @ (U2.T @ weighted)) / weights[:, None]
    noise = PROJECTION_FACTOR * EPS * (np.abs(U2) @ (np.abs(U2).T @ np.abs(weighted))) / weights[:, None]
    return A - np.where(np.abs(change) <= noise, 0.0, change)


def pivoted_rows(B: Float[Array, "m n"], rank: int | None = None, tolerance: float = 0.0) -> Int[Array, " r"]:
    """Return the indices, ascending, of the rows of B that pivoted elimination takes first.

    `rank` of them; where it is not known those whose pivots are above `tolerance` of the first. Scales are the
    caller's: rows of one size, in the metric that decides.
    """
    if rank is not None and (rank == 0 or rank >= len(B)):
        return np.arange(min(rank, len(B)))
    factors: Any = sla.qr(B.T, mode="r", pivoting=True, check_finite=False)
    R, order = factors
    if rank is None:
        pivots = np.abs(R.diagonal())
        rank = int(np.count_nonzero(pivots > tolerance * max(pivots[0], np.finfo(float).tiny)))
    return np.sort(order[:rank])


def _lengths(rows: Array) -> Array:
    """Return the lengths of rows, one for a zero row."""
    length = np.linalg.norm(rows, axis=1)
    return np.where(length > 0.0, length, 1.0)
