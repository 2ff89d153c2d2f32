"""The rank of a mechanism's rows: a property of the mechanism, decided once where its constraints hold.

Symbols: M = L L^T mass matrix, A rows, B = D A L^-T the rows in the metric of the mass, D constant scales of rows,
s_1 >= s_2 >= ... singular values of B, r the rank; phi residuals of holonomic rows.

At one state the rank is a guess: next to a singular configuration a row looks dependent, and off the constraints rows
that depend on each other look independent by as much as these are open. So r is the largest rank at a configuration and
others around it, reached along admissible motions and closed to rounding, where singular values below the model's
digits are zero. In a singular configuration, such as three coupled cranks that lie flat, most motions that the rows
allow lead nowhere: where all of them lead back, configurations from afar are looked at, too. Everything that goes
through time keeps r rows, whatever the numbers of a stage say; s_r / s_1 is the distance from a singular configuration.

Newton's steps end the root of rounding away from a singular configuration, where singular values are as small as those
of axes that are tilted by as much. A row that fades grows with the first power of a way along the motions that the
others leave; what dependent rows have beside each other grows with the gap, which is the square of that way, and a
tilt stays. So many singular values that fade are zeros, and put nothing in doubt.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dalembert.errors import ModelError, SolvabilityError
from dalembert.kkt.limits import (
    BUILT,
    CLEAR,
    CLEARLY_MORE,
    DRIFT_SHARE,
    EPS,
    IDLE_CONSTRAINT,
    NEARLY_MASSLESS,
    ROUNDING,
    TOUCHING,
)
from dalembert.memory import memory_of
from dalembert.model.mechanism.constraint_rows import generic_jacobian, rows_at
from dalembert.model.mechanism.precision import digits_of, in_doubt, slack
from dalembert.model.mechanism.project import closest, largest_residual, least_open
from dalembert.status import Status
from dalembert.types import Array

if TYPE_CHECKING:
    from dalembert.kkt.rows import RowStructure
    from dalembert.model.mechanism.constraint_rows import Idle
    from dalembert.model.mechanism.mechanism import Mechanism


def solve_triangular(*arguments: Any, **options: Any) -> Array:
    """Call SciPy's solve, which is imported where a mechanism has rows."""
    from scipy.linalg import solve_triangular as solve

    return solve(*arguments, **options)


PLACES = (0.05, 0.15, 0.3, -0.1, -0.25)
"""Lengths of the ways from the first configuration to others, radians, or parts of the mechanism's size."""

STARTS = 5
"""Random configurations from which a mechanism is closed where its neutral one cannot be, or all ways lead back."""

LED_BACK = 1e-3
"""Part of a way below which it has led back: Newton's steps end 1e-8 from a configuration where rows fade."""

MOST_RANKS = 64
"""Configurations of a mechanism whose rank stays in memory."""

NEAR, FAR = 3e-4, 3e-3
"""Lengths, radians or parts of the mechanism's size, of two ways that tell a fading row from a tilted axis: long beside
the root of rounding, at which Newton's steps end next to a singular configuration, and short beside the mechanism."""

LINEAR = (FAR / NEAR) ** 1.5
"""Growth from the first way to the second between that of a row that fades, linear, and that of a gap, quadratic."""

LIGHT = 1e-10
"""Part of the largest energy of a motion by one radian, or by the mechanism's size, that every coordinate has at least
where ranks are looked at: a foot of 1e-15 kg makes rows across its leg longer by the root of that, not dependent."""

WAYS = 3
"""Random motions along which rows may fade."""


@dataclass(frozen=True, eq=False)
class GenericRank:
    """The rank of a mechanism's rows around a configuration.

    Attributes
    ----------
    rank, positions
        Of all rows, and of the holonomic ones alone.
    rows
        How many rows there are.
    kept, dropped
        s_r / s_1 and s_(r+1) / s_1 at the place where the rank is clearest: between them lies the decision.
    scales : (m,)
        D: one over the size that rows of the same constraint and kind have in the metric of the mass.
    sizes : (m,)
        Metres, or one for angles: what residuals are measured against.
    places
        Configurations that were looked at; 0 where none could be closed, and the rank is that of the first guess.
    weights : (m,)
        W, with which M + A^T W A stands for a singular M; zero where M is definite.
    idle : (m,)
        Rows of constraints that move nothing within the model's digits (`constraint_rows.idle_rows`).
    doubt
        Why the rank is in doubt, in words; empty where it is not. Idle rows and doubt are the mechanism's, decided
        around its neutral configuration at t = 0; elsewhere more doubt may be added, and where the rank is another one
        that of the neutral configuration says nothing.
    gap
        Largest residual over its size where the rank was decided: how far redundant rows contradict each other.
    singular
        Whether rows fade at every configuration that was looked at: elsewhere, as on another branch of a mechanism
        whose neutral configuration is flat, the rank may be larger.
    levers : (nv,)
        One radian, or the mechanism's size, by velocity.
    """

    rank: int
    positions: int
    rows: int
    kept: float
    dropped: float
    scales: Array
    sizes: Array
    places: int
    gap: float
    weights: Array
    idle: Array
    doubt: str = ""
    singular: bool = False
    levers: Array = field(default_factory=lambda: np.ones(1))

    def moving(self, A: Array) -> Array:
        """Return the rows A (..., m, n), zero where they move nothing within the model's digits."""
        return np.where(self.idle[:, None], 0.0, A) if self.idle.any() else A

    def measured(self, M: Array) -> Array:
        """Return the mass matrices (N, n, n) in which distances from singular configurations are measured."""
        return M if self.weights.any() else even(M, self.levers)

    @property
    def redundant(self) -> bool:
        """Whether rows depend on each other everywhere."""
        return self.rank < self.rows

    def __str__(self) -> str:
        clear = f"s_r = {self.kept:.1e}, next {self.dropped:.1e} of the largest singular value"
        return f"rank {self.rank} of {self.rows} rows, decided at {self.places} configurations ({clear})"


def generic_rank(mechanism: Mechanism, q: Any, t: float) -> GenericRank:
    """Return the rank of the rows around q, or around the neutral configuration; see the head of this file."""
    key = (None if q is None else np.asarray(q, dtype=float).tobytes(), float(t))

    def decide() -> GenericRank:
        if q is None and t == 0.0:
            survey = RankSurvey(mechanism, 0.0)
            return survey.decide(survey.closed_start())
        first = np.array(mechanism.neutral() if q is None else q, dtype=float)
        return RankSurvey(mechanism, float(t), mechanism.generic_rank(None, 0.0)).decide(first)

    return memory_of(mechanism, "ranks", MOST_RANKS).get(key, decide)


def rank_on_the_way(system: Any, q: Array, v: Array, t: float) -> GenericRank:
    """Return the rank around a configuration; in a singular one that of the configurations to which a velocity leads.

    From there a mechanism may go on along branches of several ranks; a flat row of parallelograms has as many as there
    are windows.
    """
    rank = system.generic_rank(q, t)
    survey = RankSurvey(system, t)
    survey.scales = rank.scales
    size = float(np.abs(v / system.velocity_sizes).max(initial=0.0)) if rank.rows and np.isfinite(v).all() else 0.0
    if not size or (rank.rank and not rank.singular and survey.spectrum(q)[rank.rank - 1] > in_doubt(system)[1]):
        return rank
    for length in PLACES:
        place, gap = survey.closed(system.integrate(q, length / size * v))
        if gap <= slack(system) and (ahead := survey.judged(place, gap)).rank > rank.rank and not ahead.faded:
            rank = system.generic_rank(place, t)
    return rank


def fitting_rank(mechanism: Mechanism, q: Any, t: float = 0.0) -> GenericRank:
    """Return the mechanism's rank where it fits a configuration; that around it on another part of the manifold.

    A loop may have configurations that no motion leads to from the others, rigid ones among them, with a rank of their
    own. Rows that move with time keep the rank that they have at t = 0 as long as it fits: no survey for each t.
    """
    rank = mechanism.generic_rank(None, 0.0)
    q = np.asarray(q, dtype=float)
    if not (rank.rows and np.isfinite(q).all()):
        return rank
    survey = RankSurvey(mechanism, t)
    survey.scales = rank.scales
    s = survey.spectrum(q)
    gap = float(np.abs(survey.residual(q)).max(initial=0.0))
    more = s[rank.rank] > max(survey.tolerance(gap), CLEARLY_MORE * rank.dropped) if rank.rank < rank.rows else False
    less = s[rank.rank - 1] <= survey.digits if rank.rank else False
    return mechanism.generic_rank(q, t) if more or less or not rank.places else rank


class AdmissibleVelocity(NamedTuple):
    """The velocity of least kinetic energy that the rows allow, and whether they do.

    Attributes
    ----------
    velocity
        (nv,).
    status
        `UNIQUE` (`REDUNDANT` rows); `ILL_CONDITIONED` where a direction that the rank counts is lost: in a singular
        configuration rows allow more velocities than the mechanism has motions, and cannot ask for a rate along it;
        `INCONSISTENT` where the rows, or what is held, contradict each other.
    open
        Rows that the velocity breaks, with their rates.
    """

    velocity: Array
    status: Status
    open: dict[str, float]


def admissible_velocity(
    mechanism: Mechanism, q: Array, v: Array, t: float = 0.0, free: Any = None
) -> AdmissibleVelocity:
    """Return the velocity of least kinetic energy from v that the rows allow, under the rank that fits.

    Where only the `free` velocities (nv,) may change, as many directions count as the model's digits can tell apart.
    """
    rank = fitting_rank(mechanism, q, t)
    M, A = np.atleast_2d(mechanism.mass_matrix(q, t)), np.asarray(rows_at(mechanism, q, t, v))
    moving = np.ones(mechanism.nv, dtype=bool) if free is None else np.asarray(free, dtype=bool)
    if not moving.any():
        return _judged_velocity(mechanism, rank, q, v, v, t, Status.UNIQUE)
    L = np.linalg.cholesky(definite(magnitude(M), A)[np.ix_(moving, moving)])
    B = rank.scales[:, None] * solve_triangular(L, A[:, moving].T, lower=True).T
    U, s, Vt = np.linalg.svd(B, full_matrices=False)
    digits = ROUNDING if free is None else digits_of(mechanism)
    keep = (np.arange(s.size) < rank.rank) & (s > digits * s.max(initial=0.0))
    y = U.T @ (rank.scales * np.asarray(mechanism.constraint_velocity(q, v, t)))
    velocity = v.copy()
    velocity[moving] -= solve_triangular(L.T, Vt.T @ np.where(keep, y / np.where(keep, s, 1.0), 0.0), lower=False)
    directions = int(np.count_nonzero(keep))
    status = Status.UNIQUE if directions == len(A) else Status.REDUNDANT
    if free is None and directions < rank.rank:
        status = Status.ILL_CONDITIONED
    return _judged_velocity(mechanism, rank, q, v, velocity, t, status)


def _judged_velocity(
    mechanism: Mechanism, rank: GenericRank, q: Array, v: Array, velocity: Array, t: float, status: Status
) -> AdmissibleVelocity:
    """Measure the rates that a velocity leaves open, relative to the speeds that rows of their size sum them from.

    A row that fades in this configuration is measured as it is elsewhere. Off the constraints dependent rows
    contradict each other by the distance from them, and may do so.
    """
    rates = np.abs(np.asarray(mechanism.constraint_velocity(q, velocity, t)))
    prescribed = np.abs(np.asarray(mechanism.constraint_velocity(q, np.zeros(mechanism.nv), t)))
    speed = np.maximum(np.abs(velocity), np.abs(v))
    M, A = np.atleast_2d(mechanism.mass_matrix(q)), np.asarray(rows_at(mechanism, q, t, v))
    sizes = np.abs(A) @ speed + prescribed + np.sqrt(speed @ np.abs(M) @ speed) / rank.scales
    limit = max(BUILT, mechanism.slack, 10.0 * float(largest_residual(mechanism, q, t)))
    broken = rates > limit * np.maximum(sizes, np.finfo(float).tiny)
    opened = {mechanism.names[i]: float(rates[i]) for i in np.flatnonzero(broken)}
    if opened and status is not Status.ILL_CONDITIONED:
        status = Status.INCONSISTENT
    return AdmissibleVelocity(velocity, status if np.isfinite(velocity).all() else Status.NONFINITE, opened)


def agreeing(mechanism: Mechanism, rank: GenericRank, q: Array, t: float, drift: Array, size: float) -> Array | None:
    """Return the drift freed of what contradicts the rank, or None where that is more than the model's digits.

    Off the constraints dependent rows contradict each other by the distance from them, and may do so.
    """
    survey = RankSurvey(mechanism, t)
    survey.scales = rank.scales
    U = survey.structure(q, rank=rank.rank).scaled_null
    c = rank.scales * drift
    beyond = U.T @ c
    tolerance = max(survey.digits, CLEARLY_MORE * float(np.abs(survey.residual(q)).max(initial=0.0)))
    limit = tolerance * max(float(np.linalg.norm(c)), DRIFT_SHARE * size * float(rank.scales.max()))
    return (c - U @ beyond) / rank.scales if np.linalg.norm(beyond) <= limit else None


def distance(mechanism: Mechanism, rank: GenericRank, q: Array, t: float = 0.0) -> float:
    """Return s_r / s_1 at a configuration: zero where it is singular."""
    if not rank.rank:
        return 1.0
    survey = RankSurvey(mechanism, t)
    survey.scales = rank.scales
    return float(survey.spectrum(np.asarray(q))[rank.rank - 1])


def distances(rank: GenericRank, M: Array, A: Array) -> Array:
    """Return s_r / s_1 of the configurations with mass matrices M (N, n, n) and rows A (N, m, n): a batch of them."""
    from dalembert.kkt.rows import metric_spectra

    if not rank.rank:
        return np.ones(len(A))
    s = metric_spectra(A, rank.measured(M), rank.scales)
    return np.divide(s[:, rank.rank - 1], s[:, 0], out=np.zeros(len(A)), where=s[:, 0] > 0.0)


def fits(mechanism: Mechanism, rank: GenericRank, q: Array, t: Array, M: Array, A: Array) -> Array:
    """Return per sample q (N, nq), t (N,), M, A whether no more of its rows are independent than the rank says.

    Rows of a configuration that is open look independent by its gap, as in `RankSurvey.tolerance`.
    """
    from dalembert.kkt.rows import metric_spectra

    s = metric_spectra(A, rank.measured(M), rank.scales)
    if not rank.rank < s.shape[1]:
        return np.ones(len(A), dtype=bool)
    gap = largest_residual(mechanism, q, t)
    gap = np.where(gap <= slack(mechanism), gap, 0.0)
    least = max(CLEAR * digits_of(mechanism), CLEARLY_MORE * rank.dropped)
    return np.asarray(s[:, rank.rank] <= np.maximum(least, TOUCHING * gap**0.5) * s[:, 0])


class RankSolution(NamedTuple):
    """What the r largest singular values of D A L^-T give.

    Attributes
    ----------
    acceleration, multipliers
        (n,), and (m,) of least norm.
    distance
        s_r / s_1: zero where the configuration is singular.
    """

    acceleration: Array
    multipliers: Array
    distance: float

    def clear(self, M: Array, A: Array, force: Array, drift: Array) -> bool:
        """Whether both block rows are met to the digits of what is built, away from a singular configuration."""
        a, lam = self.acceleration, self.multipliers
        if not (np.isfinite(a).all() and np.isfinite(lam).all() and self.distance > CLEAR * BUILT):
            return False
        imbalance, gap = np.abs(M @ a + A.T @ lam - force), np.abs(A @ a + drift)
        forces, rates = np.abs(M) @ np.abs(a) + np.abs(force), np.abs(A) @ np.abs(a) + np.abs(drift)
        return bool(
            (imbalance <= BUILT * forces.max(initial=0.0)).all() and (gap <= BUILT * rates.max(initial=0.0)).all()
        )


def solve_under_rank(rank: GenericRank, M: Array, A: Array, force: Array, drift: Array) -> tuple[Array, Array]:
    """Return a, lam of M a + A^T lam = force, A a = -drift under the mechanism's rank, lam of least norm.

    The plain twin of `simulate/steppers/carried_loops.py`.
    """
    return solved_under_rank(rank, M, A, force, drift)[:2]


def solved_under_rank(rank: GenericRank, M: Array, A: Array, force: Array, drift: Array) -> RankSolution:
    """Return the same with its distance from a singular configuration."""
    H = definite(M, A)
    load = force if H is M else force - A.T @ (row_weights(M, A) * drift)
    try:
        L = np.linalg.cholesky(H)
    except np.linalg.LinAlgError:
        raise SolvabilityError(Status.INDEFINITE.message) from None
    w = solve_triangular(L, load, lower=True)
    B = rank.scales[:, None] * solve_triangular(L, A.T, lower=True).T
    U, s, Vt = np.linalg.svd(B, full_matrices=False)
    U, s, Vt = U[:, : rank.rank], s[: rank.rank], Vt[: rank.rank]
    lost = s <= EPS * s.max(initial=0.0)  # in a singular configuration a row asks for nothing that can be had
    y = np.where(lost, 0.0, (U.T @ (-rank.scales * drift - B @ w)) / np.where(lost, 1.0, s))
    a = solve_triangular(L.T, w + Vt.T @ y, lower=False)
    across = U * s / rank.scales[:, None]  # across^T lam = -y
    lam = np.linalg.lstsq(across.T, -y, rcond=None)[0] if rank.rank else np.zeros(len(A))
    return RankSolution(a, lam, float(s[-1] / s[0]) if rank.rank and s[0] > 0.0 else 1.0)


class Independent(NamedTuple):
    """How many rows are independent at a configuration.

    Attributes
    ----------
    rank, kept, dropped
        r, s_r / s_1 and s_(r+1) / s_1.
    faded
        How many rows more there are at configurations next to it.
    """

    rank: int
    kept: float
    dropped: float
    faded: int

    @property
    def clarity(self) -> tuple[int, float]:
        """The rank, and the gap between what is kept and what is dropped: rounding is as good as zero."""
        return self.rank, self.kept / max(self.dropped, ROUNDING)


class RankSurvey:
    """Rows of a mechanism in the metric of its mass, and the way onto its constraints."""

    def __init__(self, mechanism: Mechanism, t: float, known: GenericRank | None = None) -> None:
        self.m, self.t, self.known = mechanism, t, known
        self.digits = digits_of(mechanism)
        self.holonomic = np.array(mechanism.holonomic, dtype=bool)
        self.sizes, self.scales = mechanism.row_sizes, np.ones(len(mechanism.names))
        self.definite = True

    def matrices(self, q: Array) -> tuple[Array, Array]:
        """Return M and A; `ModelError` where rows are not defined."""
        A = np.asarray(generic_jacobian(self.m, q, self.t))
        undefined = [name for name, row in zip(self.m.names, A, strict=True) if not np.isfinite(row).all()]
        if undefined:
            names = ", ".join(map(repr, undefined[:3]))
            raise ModelError(
                f"the rows {names} are not defined in this configuration (a disc that lies flat has no point to roll "
                "on, say): give another q"
            )
        return np.atleast_2d(self.m.mass_matrix(q, self.t)), A

    def metric(self, M: Array, A: Array) -> Array:
        """Return the definite matrix that measures motions."""
        massive = definite(M, A) is M
        self.definite &= massive
        return even(M, self.m.velocity_sizes) if massive else definite(magnitude(M), A)

    def rows(self, q: Array) -> tuple[Array, Array]:
        """Return L and A L^-T."""
        M, A = self.matrices(q)
        L = np.linalg.cholesky(self.metric(M, A))
        return L, solve_triangular(L, A.T, lower=True).T

    def residual(self, q: Array) -> Array:
        """Return residuals over their sizes, (h,)."""
        return np.asarray(self.m.constraint(q, self.t)) / self.sizes[self.holonomic]

    def closed(self, q: Array) -> tuple[Array, float]:
        """Return the configuration near q where the rows are open the least, and their largest residual."""
        return least_open(self, q)

    def tolerance(self, gap: float) -> float:
        """Return the s_i / s_1 up to which rows are dependent at a configuration that is open by a part of its size.

        Where constraints touch each other, as at a dead centre, a gap is the square of a distance, and rows look
        independent by that distance. A configuration that is open by more than rows may contradict each other is none
        of the mechanism's: its rows say what they say.
        """
        return max(CLEAR * self.digits, TOUCHING * self.closing(gap) ** 0.5)

    def closing(self, gap: float) -> float:
        """Return the gap of a configuration that counts as closed; none of one that does not."""
        return gap if gap <= slack(self.m) else 0.0

    def scaled(self, B: Array) -> Array:
        """Return D A L^-T."""
        return self.scales[:, None] * B

    def measure(self, q: Array, gap: float = 0.0) -> None:
        """Set D from the sizes of rows at a configuration, the largest of each constraint and kind; none of idle ones.

        These take what rows of their kind have elsewhere, or those of the other kind by the mechanism's reach.
        """
        norms = np.linalg.norm(self.rows(q)[1], axis=1)
        kinds = list(zip(self.m.row_groups, self.m.angular_rows, strict=True))
        largest = np.array([max(n for n, other in zip(norms, kinds, strict=True) if other == kind) for kind in kinds])
        idle = self.m.idle_rows(self.matrices(q)[1][None], gap).rows if self.known is None else self.known.idle
        units, active = self.m.row_units, np.where(idle, 0.0, largest)
        top = (active / units).max(initial=0.0) or self.usual_size(q)
        for turns in (False, True):
            same = np.array([kind[1] == turns for kind in kinds])
            peak = active[same].max(initial=0.0)
            largest[same] = np.where(active[same] > IDLE_CONSTRAINT * peak, largest[same], peak or top * units[same])
        self.scales = 1.0 / np.where(largest > 0.0, largest, 1.0)

    def usual_size(self, q: Array) -> float:
        """Return the length, in the metric of the mass, of a row of angles that turns with every velocity."""
        L = self.rows(q)[0]
        return float(np.linalg.norm(solve_triangular(L, 1.0 / self.m.velocity_sizes, lower=True)))

    def structure(
        self, q: Array, tolerance: float | None = None, rank: int | None = None, rows: Array | None = None
    ) -> RowStructure:
        """Return the decomposition of all rows, or of some; it decides which singular values are zero."""
        from dalembert.kkt.rows import row_structure

        M, A = self.matrices(q)
        massive = definite(M, A) is M
        self.definite &= massive
        chosen, M = slice(None) if rows is None else rows, even(M, self.m.velocity_sizes) if massive else M
        return row_structure(A[chosen], M, tolerance, rank=rank, scales=self.scales[chosen])

    def spectrum(self, q: Array, rows: Array | None = None) -> Array:
        """Return s_i / s_1, as many numbers as there are rows, or of some of them."""
        s = np.zeros(len(self.m.names) if rows is None else int(np.count_nonzero(rows)))
        sizes = self.structure(q, rows=rows).s
        if sizes.size and sizes[0] > 0.0:
            s[: sizes.size] = sizes / sizes[0]
        return s

    def around(self, q: Array) -> list[tuple[Array, float]]:
        """Return closed configurations around a closed one, with their residuals, along random admissible motions.

        Where all of them lead back to it, as they may from a singular configuration, those closed from random ones.
        """
        rng = np.random.default_rng(0)
        L, B = self.rows(q)
        Vt = np.linalg.svd(self.scaled(B)[self.holonomic])[2]
        rank = self.structure(q, self.digits, rows=self.holonomic).rank
        motions = solve_triangular(L.T, Vt[rank:].T, lower=False)
        levers = self.m.velocity_sizes
        places, away = [], False
        for length in PLACES if motions.shape[1] else ():
            x = motions @ rng.standard_normal(motions.shape[1])
            size = np.abs(x / levers).max(initial=0.0)
            if size > 0.0:
                places.append(self.closed(self.m.integrate(q, length / size * x)))
                way = np.abs(self.m.difference(q, places[-1][0]) / levers).max(initial=0.0)
                away |= bool(way > LED_BACK * abs(length))
        if places and not away:
            places += [self.closed(start) for start in self.m.random(rng, STARTS)]
        return places

    def decide(self, q: Array) -> GenericRank:
        """Return the largest rank at q, closed, and around it."""
        m = len(self.m.names)
        if not m:
            return GenericRank(0, 0, 0, 1.0, 0.0, self.scales, self.sizes, 0, 0.0, np.zeros(0), np.zeros(0, bool))
        self.measure(q)
        first = self.closed(q)
        limit = slack(self.m)
        self.measure(first[0], self.closing(first[1]))
        places = [first, *self.around(first[0])] if first[1] <= limit else [first]
        found = [(self.judged(*place), *place) for place in places if place[1] <= limit]
        count = len(found) if first[1] <= limit else 0
        best = max(found or [(self.judged(*first), *first)], key=lambda here: here[0].clarity)
        if best[0].faded and self.known is None:
            found += [(self.judged(*place), *place) for place in self.from_afar() if place[1] <= limit]
            best = max(found or [best], key=lambda here: here[0].clarity)
        closed = [(place, gap) for _, place, gap in found] or [first]
        positions = max(self.judged(place, gap, self.holonomic).rank for place, gap in closed)
        weights = np.zeros(m) if self.definite else row_weights(*self.matrices(first[0]))
        idle = self.m.idle_rows(np.array([self.matrices(place)[1] for place, _ in closed]), self.closing(best[2]))
        here, _, gap = best
        dropped = max([other.dropped for other, *_ in found if other.rank == here.rank], default=here.dropped)
        rows, doubt = idle.rows, self.doubt(idle, here.kept, dropped)
        if self.known is not None:
            rows = self.known.idle & (idle.rows | idle.doubtful)
            doubt = doubt or (self.known.doubt if self.known.rank == here.rank else "")
        decided = (here.rank, positions, m, here.kept, here.dropped, self.scales, self.sizes, count, gap, weights)
        return GenericRank(*decided, rows, doubt, bool(here.faded), self.m.velocity_sizes)

    def from_afar(self) -> list[tuple[Array, float]]:
        """Return configurations closed from random ones by damped steps, with their residuals."""
        everything, rng = np.ones(self.m.nv), np.random.default_rng(1)
        return [self.closed(closest(self.m, start, everything, self.t)) for start in self.m.random(rng, STARTS)]

    def judged(self, q: Array, gap: float, rows: Array | None = None) -> Independent:
        """Return how many rows are independent at a closed configuration; singular values that fade there are zero."""
        tolerance, (least, most) = self.tolerance(gap), in_doubt(self.m)
        structure = self.structure(q, tolerance, rows=rows)
        decided = Independent(structure.rank, structure.kept, structure.dropped, 0)
        s = self.spectrum(q, rows)
        clear = int(np.count_nonzero(s > max(most, tolerance)))
        faded = self.fading(q, s, clear, rows) if (s[clear:] > least).any() else 0
        if not faded:
            return decided
        rest = s[clear + faded :]
        rank = clear + int(np.count_nonzero(rest > tolerance))
        lower = np.r_[rest, 0.0][rank - clear :]
        kept = s[clear - 1] if rank == clear else rest[rank - clear - 1]
        return Independent(rank, float(kept), float(lower[0]), faded)

    def fading(self, q: Array, s: Array, clear: int, rows: Array | None) -> int:
        """Return how many singular values after the clear ones belong to rows that fade in a configuration next to q.

        They grow linearly along the motions that the clear rows leave.
        """
        rng, most = np.random.default_rng(0), 0
        chosen = slice(None) if rows is None else rows
        L, B = self.rows(q)
        Vt = np.linalg.svd(self.scaled(B)[chosen])[2]
        motions, levers = solve_triangular(L.T, Vt[clear:].T, lower=False), self.m.velocity_sizes
        for _ in range(WAYS if motions.shape[1] else 0):
            x = motions @ rng.standard_normal(motions.shape[1])
            x = x / np.abs(x / levers).max()
            near, far = (self.spectrum(self.m.integrate(q, length * x), rows)[clear:] for length in (NEAR, FAR))
            fade = (near > CLEARLY_MORE * s[clear:]) & (far < LINEAR * near)
            most = max(most, int(np.argmin(np.r_[fade, False])))
        return most

    def doubt(self, idle: Idle, kept: float, dropped: float) -> str:
        """Return why the rank is in doubt: what tells a row from rounding lies between the two; else nothing."""
        least, most = in_doubt(self.m)
        between = f"more than rounding of the model's numbers, {least:.0e}, and less than what is clear, {most:.0e}"
        if idle.doubtful.any():
            names = ", ".join(repr(self.m.names[i]) for i in np.flatnonzero(idle.doubtful)[:3])
            what = f"the rows {names} turn with parts of {idle.sizes[idle.doubtful].max():.0e}"
        elif dropped > least:
            what = f"a singular value of the rows, {dropped:.0e}, was taken for zero"
        elif 0.0 < kept <= most:
            what = f"a singular value of the rows, {kept:.0e}, was taken for a row"
        else:
            return ""
        return (
            f"the rank is in doubt: {what}, {between}. Axes that are parallel let a loop move, tilted ones hold it: "
            "give axes and places in full, or tilt them by more"
        )

    def closed_start(self) -> Array:
        """Return the neutral configuration, or a random one where that cannot be closed and the other can.

        Rows need not exist at the neutral configuration: a disc that lies flat touches the ground everywhere.
        """
        neutral, first = np.array(self.m.neutral(), dtype=float), None
        for q in (neutral, *self.m.random(np.random.default_rng(0), STARTS)):
            if not np.isfinite(generic_jacobian(self.m, q, self.t)).all():
                continue
            if not any(self.m.holonomic):
                return q
            first = q if first is None else first
            self.measure(q)
            place, gap = self.closed(q)
            if gap <= slack(self.m):
                return place if q is not neutral else neutral
        return neutral if first is None else first


def definite(M: Array, A: Array) -> Array:
    """Return M, or where it is singular M + A^T W A, W scaled to the size of M."""
    d = np.sqrt(np.where(np.diag(M) > 0.0, np.diag(M), 1.0))
    if M.size and np.linalg.eigvalsh(M / np.outer(d, d))[0] > NEARLY_MASSLESS:
        return M
    weights = row_weights(M, A)
    return M + A.T @ (weights[:, None] * A) + (NEARLY_MASSLESS * np.diag(M).max(initial=0.0) or 1.0) * np.eye(len(M))


def even(M: Array, levers: Array) -> Array:
    """Return M, or a batch (N, n, n), with a part `LIGHT` of its largest energy on all velocities of the sizes (n,)."""
    energies = np.abs(np.diagonal(M, axis1=-2, axis2=-1)) * levers**2
    heavy = energies.max(axis=-1, initial=0.0)
    return M + LIGHT * heavy[..., None, None] * np.diag(levers**-2.0)


def magnitude(M: Array) -> Array:
    """Return |M|, by its eigenvalues, as a metric where masses are negative; M itself where it has no such motion."""
    size = np.abs(np.diag(M))
    d = np.sqrt(np.where(size > 0.0, size, 1.0))
    values, motions = np.linalg.eigh(M / np.outer(d, d))
    if values.size == 0 or values[0] >= -NEARLY_MASSLESS:
        return M
    return np.outer(d, d) * ((motions * np.abs(values)) @ motions.T)


def row_weights(M: Array, A: Array) -> Array:
    """Return W: the mass that each row moves over its square."""
    size = (A * A).sum(axis=1)
    heavy = float(np.diag(M).max(initial=0.0)) or 1.0
    return np.divide(heavy, size, out=np.zeros_like(size), where=size > 0.0)
