"""Constrained dynamics of a large mechanism: factor, solve, verdict; least joint forces."""

from __future__ import annotations

from functools import cached_property
from math import isfinite
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse.linalg import LinearOperator, lsmr

from dalembert.kkt import Status
from dalembert.kkt.limits import CLEAR, CLEARLY_MORE, FINE, MASSIVE, ROUNDING, Thresholds
from dalembert.large.fronts.front_block import CLEANINGS, STEPS, FrontBlock, FrontFactors, Out, Trial
from dalembert.large.fronts.front_plan import Fronts, plan
from dalembert.large.implied import LEFT_OUT, implied_rows
from dalembert.large.large_tree import LargeTree, massless_coordinate
from dalembert.large.residuals import all_finite, largest_of_each, needs, relative, residuals
from dalembert.large.row_kernels import RowValues
from dalembert.large.row_state import RowState
from dalembert.large.sparse import SparseBlock
from dalembert.model.mechanism.precision import digits_of
from dalembert.model.mechanism.solve import LARGEST_SURVEYED
from dalembert.types import Array

# ----------------------------------------------------------------------------------------------------------------------
# Inverse dynamics of a large constrained mechanism, every joint driven: the least joint forces that cause a motion.
#
# tau = b + A^T lam, b = M a + bias what the open tree would need; lam minimises |b + A^T lam|, itself least where rows
# are redundant. A is used as an operator only (one sweep each way), in LSMR (Fong & Saunders 2011), which begins at
# zero and so ends at the least lam. Whether that is the least of a family is read off the pivots of the Delassus
# matrix.


MOST = 20
"""Steps per row before LSMR gives up; exact arithmetic would need one."""


class _Rows(LinearOperator):
    """A^T as an operator."""

    def __init__(self, system: LargeSystem, values: RowValues) -> None:
        super().__init__(np.dtype(float), (system.layout.mechanism.nv, system.rows.m))
        self.system, self.values = system, values

    def _matvec(self, x: Array) -> Array:
        return self.system.pull(self.values, np.ravel(x))

    def _rmatvec(self, x: Array) -> Array:
        return self.system.move_rows(self.values, np.ravel(x))


def least_forces(system: LargeSystem, q: Array, v: Array, a: Array, t: float) -> tuple[Array, Array, Status]:
    """Return tau (nv,), lam (m,), status."""
    nv, m = len(v), system.rows.m
    nothing = np.full(nv, np.nan), np.full(m, np.nan), Status.NONFINITE
    if not all(np.isfinite(x).all() for x in (q, v, a)) or not np.isfinite(t):
        return nothing
    b = np.empty(nv)
    system.tree.inverse(q, v, a, b)
    values = system.moved(q, v, t)
    size = np.abs(b).max() or 1.0
    if not (np.isfinite(size) and np.isfinite(values.wrenches).all()):  # too large for what is made of them
        return nothing
    operator = _Rows(system, values)
    lam, stopped, *_ = lsmr(operator, -b / size, atol=ROUNDING, btol=ROUNDING, conlim=0, maxiter=MOST * m)
    lam = size * lam
    # every joint is driven, so that motors can strain all rows against each other: tau, lam are the least of a family
    status = Status.ILL_CONDITIONED if stopped >= 7 else Status.REDUNDANT if m else Status.UNIQUE
    tau = b + system.pull(values, lam)
    return (tau, lam, status) if np.isfinite(tau).all() and np.isfinite(lam).all() else nothing


# ----------------------------------------------------------------------------------------------------------------------
# Constrained dynamics of a large mechanism: factor, solve, and judge the answer by residuals.
#
# Symbols: M a + A^T lam = f, A a = c; G = A M^-1 A^T; delta shift of redundant rows, mu its part of G's diagonal.
#
# Rows are first taken to be independent. Where a pivot says otherwise, the mechanism is asked which of its rows others
# imply, at this configuration and others around it (`implied.py`). What these bear is found by proximal steps from
# lam = 0 towards the multipliers of least norm, with -delta on the rows' diagonal,
#
#     A a - delta lam_k+1 = c - delta lam_k
#
# and the others, which have the mechanism's rank, are then solved without a shift: next to a singular configuration
# none is dropped. The status is made of residuals that know nothing of the factors: Newton-Euler with the answer, and A
# a from it; errors follow from these as in `kkt/expressions/verdict.py`.


MOST_PER_BODY = 2e5
"""Operations per body and row beyond which the tree's own order is given up for a sparse LU, which takes about that."""

REFINEMENTS = 3
"""Solves with what is left as right side, at most."""

SEEN_AT = 3
"""Configurations at random, with velocities at random, that show which rows move nothing."""

NEAR_SHIFT = 16.0
"""The shift of proximal steps may be so many times larger or smaller than that of the state itself: a few more or fewer
digits of a step, of which there are more than needed."""

NOTHING = np.zeros((0, 6))
"""Forces that bodies need where they do not move."""


class LargeAnswer(NamedTuple):
    """One sample: a (nv,), lam (m,), status, residuals of both block rows."""

    acceleration: Array
    multipliers: Array
    status: Status
    residuals: tuple[float, float]


class LargeSystem(RowState):
    """The block system of a large mechanism, one state at a time."""

    def __init__(self, tree: LargeTree, metric: Array | None = None, route: str = "auto") -> None:
        super().__init__(tree)
        mechanism = tree.layout.mechanism
        self.limits = Thresholds(2.0**-52, digits_of(mechanism))
        self.massless = massless_coordinate(tree)
        self.block = self._block(route)
        self.all_rows = np.ones(self.rows.m, dtype=bool)
        self.metric = np.ones(self.rows.m) if metric is None else np.asarray(metric, dtype=float)
        self._implied: dict[bytes, Array | None] = {}
        self._usual_shift = np.zeros(0)
        self._tilted = False

    def moved(self, q: Array, v: Array, t: float, gravity: bool = True) -> RowValues:
        """Move to a state, which is remembered, and return the rows there; those that move nothing are zero."""
        idle = self.idle
        self.room.at = (q, v, t, gravity)
        values = super().moved(q, v, t, gravity)
        if idle.any():
            values.wrenches[idle] = 0.0
        return values

    @cached_property
    def idle(self) -> Array:
        """Rows that move nothing within the model's digits, (m,), whatever the configuration; see `constraint_rows.py`.

        Velocities at random show it at random configurations. A row counts beside its constraint, and the angles of a
        constraint beside a radian. What is near the limit is asked of the mechanism, where that is not too large.
        """
        mechanism, rng = self.layout.mechanism, np.random.default_rng(0)
        speeds = np.zeros(self.rows.m)
        for q in mechanism.random(rng, SEEN_AT):
            v = rng.standard_normal(mechanism.nv) * mechanism.velocity_sizes
            values = super().moved(q, v, 0.0, gravity=False)
            speeds = np.maximum(speeds, np.abs(self.move_rows(values, v)) / mechanism.row_units)
        digits, between = digits_of(mechanism), np.zeros(self.rows.m, dtype=bool)
        for rows, _ in mechanism.rows_between_frames:
            between[rows] = True
        groups = np.zeros(self.rows.owners)
        np.maximum.at(groups, self.rows.owner, speeds)
        largest = groups[self.rows.owner]
        least = np.where(mechanism.angular_rows, np.maximum(largest, 1.0), largest)
        part = speeds / np.where(least > 0.0, least, 1.0) / (CLEAR * digits)
        near = between & (part > 1.0 / CLEARLY_MORE) & (part < CLEARLY_MORE)
        if near.any() and mechanism.nv <= LARGEST_SURVEYED:
            return between & ((part <= 1.0) & ~near | mechanism.generic_rank(None, 0.0).idle)
        self._tilted = bool((between & near).any())
        return between & (part <= 1.0)

    @cached_property
    def doubtful(self) -> bool:
        """Whether the mechanism's rank is in doubt; of one that is too large, whether rows are near the limit."""
        if self.layout.mechanism.nv <= LARGEST_SURVEYED:
            return bool(self.layout.mechanism.rank_doubt)
        return self.idle is not None and self._tilted

    def implied(self, present: Array) -> Array | None:
        """Return which of the rows that are `present` others imply, (m,), found once; None where that is not known."""
        key = present.tobytes()
        if key not in self._implied:
            at, need = self.room.at, self.room.need.copy()
            self._implied[key] = implied_rows(self, present)
            if self.fronts is not None:
                neutral = self.still(self.layout.mechanism.neutral(), 0.0)
                g = self.block.factor(neutral, np.zeros(self.rows.m)).g
                self._usual_shift = self.shift(g, self.scales(g))
            self.moved(*at)
            self.room.need[:] = need
        return self._implied[key]

    def _block(self, route: str) -> FrontBlock | SparseBlock:
        """Return fronts; a sparse LU where they would be wide, or motions without mass would be divided by."""
        if route == "sparse" or self.massless is not None:
            return SparseBlock(self, self.massless is not None)
        fronts = plan(self.layout, self.rows.touches, MOST_PER_BODY * (self.layout.n + self.rows.m))
        return SparseBlock(self) if fronts is None else FrontBlock(self, fronts, self.limits)

    @property
    def fronts(self) -> Fronts | None:
        """The elimination plan; None where a sparse LU is used."""
        return self.block.fronts

    @property
    def width(self) -> int:
        """The most rows that are eliminated together; 0 where a sparse LU sees to that."""
        return 0 if self.fronts is None else self.fronts.sizes["width"]

    @property
    def bytes(self) -> int:
        """Size of what the plan needs for its numbers; a sparse LU is not counted."""
        return 0 if self.fronts is None else 8 * sum(k for name, k in self.fronts.sizes.items() if name != "width")

    def forward(self, q: Array, v: Array, tau: Array, t: float, out: Out | None = None) -> LargeAnswer:
        """Return the constrained acceleration of one state, in the arrays `out` where it can be."""
        if not (isfinite(t) and all_finite((q, v, tau))):
            return self._nothing(Status.NONFINITE)
        values, tree, need = self.moved(q, v, t), self.tree, self.room.need
        load = tau
        if tree.passive.acts:
            load, ext = tree.load(q, v, tau, tree.frames(v))
            needs(self.layout.inertia, tree.memory.K, ext, need)

        def free() -> Array:
            a = np.empty_like(tau)
            tree.forward(q, v, tau, a)
            return a

        return self._answer(values, need, load, -values.drift, free=free, out=out)

    def jump(self, q: Array, v: Array, t: float, taken: Array) -> LargeAnswer:
        """Return v', impulses: M (v' - v) + A^T P = 0, of the rows' rate the part `taken` is gone."""
        if not (isfinite(t) and all_finite((q, v, taken))):
            return self._nothing(Status.NONFINITE)
        values = self.moved(q, v, t)
        solution = self._answer(values, NOTHING, np.zeros_like(v), -taken * values.rate)
        return LargeAnswer(v + solution.acceleration, *solution[1:])

    def right_sides(self, q: Array, y1: Array, y2: Array, t: float) -> LargeAnswer:
        """Return a, lam of M a + A^T lam = y1, A a = y2 for any right sides."""
        if not (isfinite(t) and all_finite((q, y1, y2))):
            return self._nothing(Status.NONFINITE)
        values = self.still(q, t)
        return self._answer(values, NOTHING, y1, y2, free=lambda: self.tree.yielding(y1))

    def step(self, q: Array, t: float) -> tuple[Array, Array, Status]:
        """Return Newton's step onto the rows that have a residual, the residual, and the status."""
        still = np.zeros(self.layout.mechanism.nv)
        if not (isfinite(t) and all_finite((q,))):
            return still * np.nan, np.full(self.rows.h, np.nan), Status.NONFINITE
        values = self.moved(q, still, t)
        c = np.zeros(self.rows.m)
        held = self.rows.residual_place
        c[held >= 0] = -values.residual[held[held >= 0]]
        free = values
        if (held < 0).any():  # rows without residual do not hold a configuration
            wrenches = values.wrenches.copy()
            wrenches[held < 0] = 0.0
            free = RowValues(wrenches, values.rate, values.drift, values.residual)
        solution = self._answer(free, NOTHING, still, c, held >= 0)
        return solution.acceleration, values.residual, solution.status

    def _nothing(self, status: Status) -> LargeAnswer:
        nan = np.nan
        return LargeAnswer(np.full(self.layout.mechanism.nv, nan), np.full(self.rows.m, nan), status, (nan, nan))

    def _answer(
        self,
        values: RowValues,
        need: Array,
        tau: Array,
        c: Array,
        present: Array | None = None,
        free: Any = None,
        out: Out | None = None,
    ) -> LargeAnswer:
        """Solve plainly, or by proximal steps where rows that are `present` depend on each other, and judge."""
        load, present = (need, tau, c), self.all_rows if present is None else present
        out = (np.empty(len(tau)), np.empty(len(c))) if out is None else out
        answer = self._certain(values, load, present, free, out)
        # rows that may be the tilt of axes neither hold for certain nor contradict each other
        if self.doubtful and answer.status in (Status.REDUNDANT, Status.INCONSISTENT):
            return answer._replace(status=Status.ILL_CONDITIONED)
        return answer

    def _certain(self, values: RowValues, load: tuple, present: Array, free: Any, out: Out) -> LargeAnswer:
        """Return the answer of the mechanism's rank, as if there were no doubt about that."""
        c = load[2]
        seen = present.tobytes() in self._implied
        if seen and (answer := self._redundant(values, load, present, free)) is not None:
            return answer
        factors, trial = self.block.first(values, load, present, out)
        if self._is_massless(factors):
            return self._nothing(Status.MASSLESS)
        independent = trial is not None
        if trial is not None:
            trial = self._refined(values, factors, load, trial)
            if trial.one <= self.limits.accept and trial.two <= self.limits.accept:
                return LargeAnswer(trial.a, trial.lam, Status.UNIQUE, (trial.one, trial.two))
        scale, implied = self.scales(factors.g), self.implied(present)
        if implied is not None:
            answer = None if seen else self._redundant(values, load, present, free)
            answer = answer or self._kept(values, load, self.shift(factors.g, scale), scale, present, implied, free)
            if answer.status is not Status.INCONSISTENT:
                return answer  # what contradicts itself is met as far as can be, below
        factors = self.block.factor(values, self.shift(factors.g, scale))
        if self._is_massless(factors):
            return self._nothing(Status.MASSLESS)
        trial = self._trial(values, factors, load, *self.proximal(factors, *load))
        trial = self._refined(values, factors, load, trial)
        if not np.isfinite(trial.one + trial.two):
            return self._nothing(Status.NONFINITE)
        if self.fronts is None:  # a shift adds most to pivots of rows with a small part in a dependence
            independent = self._have_pivots(factors, scale, present)
        two = trial.two
        if two > self.limits.accept and free is not None:
            two = self._beside(values, factors, c, trial.a, free())
        status = self._verdict(trial.one, two, independent, known=implied is not None)
        return LargeAnswer(trial.a, trial.lam, status, (trial.one, two))

    def _redundant(self, values: RowValues, load: tuple, present: Array, free: Any) -> LargeAnswer | None:
        """Return the answer of rows that are known to be redundant, None where it is in doubt.

        The factor without a shift would only find again that they are. The shift is that of the neutral configuration:
        answers do not depend on the states before.
        """
        implied = self._implied[present.tobytes()]
        if self.fronts is None or implied is None or not implied.any():
            return None
        answer = self._kept(values, load, self._usual_shift, None, present, implied, free)
        return answer if answer.status is Status.REDUNDANT else None

    def _kept(
        self,
        values: RowValues,
        load: tuple,
        shift: Array,
        scale: Array | None,
        present: Array,
        implied: Array,
        free: Any,
    ) -> LargeAnswer:
        """Solve by the rows that make up the mechanism's rank; implied ones bear what least norm gives them.

        Where the `scale` of the rows is not known, the shift must be near the one that the rows ask for.
        """
        need, tau, c = load
        borne = np.zeros(self.rows.m)
        if implied.any() or scale is None:
            factors = self.block.factor(values, shift)
            if self._is_massless(factors):
                return self._nothing(Status.MASSLESS)
            if scale is None:
                scale = self.scales(factors.g)
                due = self.shift(factors.g, scale)
                if not ((due <= NEAR_SHIFT * shift) & (shift <= NEAR_SHIFT * due)).all():
                    return self._nothing(Status.ILL_CONDITIONED)
            borne[implied] = self.proximal(factors, *load)[1][implied]
        independent = present & ~implied
        factors = self.block.factor(values, np.where(independent, 0.0, LEFT_OUT * scale))
        if self._is_massless(factors):
            return self._nothing(Status.MASSLESS)
        a, lam = self.block.solve(factors, need, tau - self.pull(values, borne), c)
        trial = self._trial(values, factors, load, a, np.where(independent, lam, borne))
        trial = self._refined(values, factors, load, trial)
        if not np.isfinite(trial.one + trial.two):
            return self._nothing(Status.NONFINITE)
        least = self._least_pivot(factors, scale, independent)
        gap, size = trial.gap.copy(), trial.size.copy()
        if trial.two > self.limits.accept and free is not None:
            size = np.abs(self.move_rows(values, free())) + np.abs(c)
        diagonals = np.where(implied, scale, factors.g)  # an implied row may be what tilted axes leave of one
        parts = [relative(np.where(rows, gap, 0.0), size, diagonals) for rows in (independent, implied)]
        weights = np.where(factors.g > 0.0, factors.g, 1.0) ** -0.5
        error = float(np.linalg.norm((weights * gap)[independent]) / (np.linalg.norm(weights * size) or 1.0))
        certain = least > self.limits.regular and error <= self.limits.certain * min(least, 1.0) ** 0.5
        status = Status.ILL_CONDITIONED
        if certain and max(trial.one, parts[0]) <= self.limits.accept:
            status = Status.REDUNDANT if implied.any() else Status.UNIQUE
            if parts[1] > self.limits.agree:
                clear = least > self.limits.implied and not self.doubtful  # whose rows may be the tilt of axes
                status = Status.INCONSISTENT if clear else Status.ILL_CONDITIONED
        return LargeAnswer(trial.a, trial.lam, status, (trial.one, max(parts)))

    def _least_pivot(self, factors: FrontFactors, scale: Array, kept: Array) -> float:
        """Return the least pivot of kept rows beside their diagonals; without pivots, what a right side finds of it."""
        if not kept.any():
            return 1.0
        if self.fronts is not None:
            return float((factors.pivots / scale)[kept].min())
        y = np.cos(np.arange(self.rows.m)) * kept
        _, x = self.block.solve(factors, NOTHING, np.zeros(self.layout.mechanism.nv), -y * scale**0.5)
        return float(np.linalg.norm(y) / np.linalg.norm((x * scale**0.5)[kept]))

    def _is_massless(self, factors: FrontFactors) -> bool:
        """Say whether a joint had next to nothing to divide by."""
        return not factors.worst > MASSIVE * self.limits.eps

    def _verdict(self, forces_off: float, rows_off: float, unique: bool, known: bool) -> Status:
        """Return the status of an answer by proximal steps with these residuals.

        Where the mechanism's rank is not `known`, a shift may have left out a row that is only nearly dependent.
        """
        met = rows_off <= (self.limits.accept if unique else self.limits.agree)
        if met and forces_off <= self.limits.accept:
            if not (known or rows_off <= self.limits.accept):
                return Status.ILL_CONDITIONED
            return Status.UNIQUE if unique else Status.REDUNDANT
        return Status.ILL_CONDITIONED if unique or met else Status.INCONSISTENT

    def independent(self, values: RowValues) -> bool:
        """Return whether no row follows from the others; True too where a motion without mass hides it."""
        shift = np.zeros(self.rows.m)
        if isinstance(self.block, SparseBlock):
            g = self.block.first(values)[0].g
            shift = self.shift(g, self.scales(g))
        factors = self.block.factor(values, shift)
        return self._is_massless(factors) or self._have_pivots(factors, self.scales(factors.g), self.all_rows)

    def _have_pivots(self, factors: FrontFactors, scale: Array, present: Array) -> bool:
        """Say whether the rows that are `present` are independent, as far as pivots tell."""
        return bool((factors.pivots > self.limits.implied * scale)[present].all())

    def scales(self, g: Array) -> Array:
        """Return for each row the largest diagonal of its constraint."""
        return largest_of_each(self.rows.owner, self.rows.owners, g, self.rows.units)

    def shift(self, g: Array, scale: Array) -> Array:
        """Return delta for rows with diagonal g and their constraints' scales: mu w over the largest w / scale."""
        largest = (self.metric / scale)[g > 0].max(initial=0.0) or self.metric.max()
        return self.limits.shift * self.metric / largest

    def proximal(self, factors: FrontFactors, need: Array, tau: Array, c: Array) -> tuple[Array, Array]:
        """Return a and the least lam by `STEPS` proximal steps; rounding along null(A^T) is taken out again."""
        lam, solve = np.zeros(self.rows.m), self.block.solve
        a = np.zeros_like(tau)
        for _ in range(STEPS):
            a, lam = solve(factors, need, tau, c - factors.shift * lam)
        for _ in range(CLEANINGS):
            astray = lam
            for _ in range(STEPS):
                _, astray = solve(factors, NOTHING, np.zeros_like(tau), -factors.shift * astray)
            lam = lam - astray
        return a, lam

    def _trial(self, values: RowValues, factors: FrontFactors, load: tuple, a: Array, lam: Array) -> Trial:
        """Return an answer with its residuals."""
        layout, memory, rows, room = self.layout, self.tree.memory, self.rows, self.room
        (need, tau, c), gap = load, np.empty((2, rows.m))
        one, two = residuals(
            layout.topology, layout.gathering, layout.pitch, layout.inertia, self.tree.armature, memory.K, memory.Y,
            self.block.weighed, self.ends, rows.linear_terms, values.wrenches, need, tau, c, a, lam, factors.g,
            memory.A, room.forces, room.coupled, memory.T, room.left, gap, self.limits.accept,
        )  # fmt: skip
        return Trial(a, lam, one, two, room.left, gap[0], gap[1])

    def _refined(self, values: RowValues, factors: FrontFactors, load: tuple, best: Trial) -> Trial:
        """Return the answer improved by what is left where that is above `FINE`, as long as it helps."""
        for _ in range(REFINEMENTS):
            if not best.one > FINE:
                break
            a, lam = self.block.solve(factors, NOTHING, best.left, best.gap)
            trial = self._trial(values, factors, load, best.a + a, best.lam + lam)
            if not max(trial.one, trial.two) < max(best.one, best.two):
                break
            best = trial
        return best

    def _beside(self, values: RowValues, factors: FrontFactors, c: Array, a: Array, free: Array) -> float:
        """Return the second residual beside what rows would do without their forces: a structure at rest moves nothing.

        The matrix is not used any more: the free accelerations have overwritten its factors.
        """
        gap, size = self.move_rows(values, a) - c, np.abs(self.move_rows(values, free)) + np.abs(c)
        return relative(gap, size, factors.g)
