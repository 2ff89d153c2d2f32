"""Constrained dynamics of a large mechanism: factor, solve, and judge the answer by residuals.

Symbols: M a + A^T lam = f, A a = c; G = A M^-1 A^T; delta shift of redundant rows, mu its part of G's diagonal.

Rows are first taken to be independent. Where a pivot says otherwise the block matrix is factored again with -delta on
the rows' diagonal, and proximal steps lead from lam = 0 to the multipliers of least norm, as `tree/proximal.py` does:

    A a - delta lam_k+1 = c - delta lam_k

The status is made of residuals that know nothing of the factors: Newton-Euler with the answer, and A a from it.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from functools import cached_property
from math import isfinite
from typing import Any, NamedTuple

import numpy as np

from dalembert.kkt import Status
from dalembert.model.model_digits import BUILT_DIGITS, FILE_DIGITS
from dalembert.tree.large import front_loops, front_solve, inward
from dalembert.tree.large.backward import backward_error
from dalembert.tree.large.balance import (
    all_finite,
    imbalance,
    imbalance_in_sum,
    joint_forces,
    largest_of_each,
    mobility,
    needs,
    relative,
)
from dalembert.tree.large.composite import row_jacobian
from dalembert.tree.large.fronts import FEW, closing_bodies, plan
from dalembert.tree.large.lanes import padded
from dalembert.tree.large.outward import positions, velocities
from dalembert.tree.large.rows import Rows, RowValues
from dalembert.tree.large.singular import massless_coordinate
from dalembert.tree.large.sparse import SparseBlock
from dalembert.tree.large.tree import LargeTree
from dalembert.tree.proximal import CLEANINGS, STEPS
from dalembert.tree.verdict import MASSIVE, Thresholds

Array = np.ndarray


MOST_PER_BODY = 2e5
"""Operations per body and row beyond which the tree's own order is given up for a sparse LU, which takes about that."""

DEPENDENT = 1e-5
"""Rows depend on each other where three proximal steps leave more than this of a vector that is a bit of all."""


FINE, REFINEMENTS = 1e-13, 3
"""A first residual above this is worth another solve with it as right side; so many at most."""


class Answer(NamedTuple):
    """One sample: a (nv,), lam (m,), status, residuals of both block rows."""

    acceleration: Array
    multipliers: Array
    status: Status
    residuals: tuple[float, float]


@dataclass(eq=False)
class _Factors:
    """What factoring leaves: Phi, closed rows, and the diagonal and pivots of the rows."""

    shift: Array
    g: Array
    pivots: Array
    phi: Array = field(default_factory=lambda: np.empty(0))
    closed: Array = field(default_factory=lambda: np.empty(0))
    worst: float = 1.0
    sparse: Any = None


class _Room(threading.local):
    """Arrays that a system works in, made once for each thread: fresh ones cost more than what is done in them."""

    def __init__(self, n: int, nv: int, sizes: dict[str, int]) -> None:
        self.P, self.V, self.need = padded(n, 3), padded(n, 3), padded(n, 6)
        self.forces, self.coupled, self.left = padded(n, 12).reshape(-1, 2, 6), np.zeros(nv), np.zeros(nv)
        self.phi, self.closed = np.zeros(sizes.get("phi", 0) + FEW), np.zeros(sizes.get("factor", 0) + 1)
        self.L, self.F = np.zeros(sizes.get("L", 0) + FEW), np.zeros(sizes.get("F", 0) + FEW)


class LargeSystem:
    """The block system of a large mechanism, one state at a time."""

    def __init__(self, tree: LargeTree, metric: Array | None = None, route: str = "auto") -> None:
        self.tree, self.layout = tree, tree.layout
        self.rows = Rows(tree.layout)
        mechanism = tree.layout.mechanism
        most = MOST_PER_BODY * (tree.layout.n + self.rows.m)
        self.fronts = plan(tree.layout, self.rows.touches, most) if route != "sparse" else None
        self.block = SparseBlock(tree.layout, self.rows, self._end_bodies) if self.fronts is None else None
        self.refuse_massless()
        self.room = _Room(tree.layout.n, mechanism.nv, {} if self.fronts is None else self.fronts.sizes)
        self.limits = Thresholds(2.0**-52, BUILT_DIGITS if mechanism.source is None else FILE_DIGITS)
        self.implied, self.accept = self.limits.implied, self.limits.accept
        self.metric = np.ones(self.rows.m) if metric is None else np.asarray(metric, dtype=float)

    def refuse_massless(self) -> None:
        """Turn to the sparse route where the tree has motions without mass, which its own order divides by."""
        self.massless = massless_coordinate(self.tree)
        if self.block is None and self.massless is not None:
            self.fronts, self.block = None, SparseBlock(self.layout, self.rows, self._end_bodies)

    @property
    def width(self) -> int:
        """The most rows that are eliminated together; 0 where a sparse LU sees to that."""
        return 0 if self.fronts is None else self.fronts.sizes["width"]

    @property
    def bytes(self) -> int:
        """Size of what the plan needs for its numbers; a sparse LU is not counted."""
        return 0 if self.fronts is None else 8 * sum(k for word, k in self.fronts.sizes.items() if word != "width")

    def values(self, q: Array, v: Array, t: float) -> RowValues:
        """Return the rows at a state that is in memory."""
        layout, K = self.layout, self.tree.memory.K
        P, V = self.room.P, self.room.V
        positions(layout.parent, K, P)
        velocities(layout.topology, layout.pitch, v, K, V)
        return self.rows.at(K, P, V, q, v, t)

    def factor(self, values: RowValues, shift: Array) -> _Factors:
        """Factor [M A^T; A -shift] at the state in memory; the factors before are overwritten."""
        layout, memory, f, m = self.layout, self.tree.memory, self.fronts, self.rows.m
        if f is None:
            return self._factor_sparse(values, shift)
        size = f.sizes
        room = self.room
        found = _Factors(shift, np.zeros(m), np.zeros(m), room.phi, room.closed)
        front_loops.factor(
            layout.topology, layout.gathering, layout.pitch, layout.inertia, self.tree.armature, memory.K,
            f.counts, f.ids, f.at, f.touches, f.couplings, f.merges, values.wrenches, shift,
            memory.T, memory.Y, room.L, room.F, found.phi, found.closed,
            found.g, found.pivots, memory.worst, max(size["width"], 1), f.narrow, f.run,
        )  # fmt: skip
        found.worst = float(memory.worst[0])
        return found

    def _factor_sparse(self, values: RowValues, shift: Array) -> _Factors:
        """Factor by a sparse LU; whether rows depend on each other is seen by what proximal steps leave of a vector."""
        assert self.block is not None
        memory, m = self.tree.memory, self.rows.m
        mobility(self._end_bodies, self.layout.inertia, values.wrenches, g := np.zeros(m))
        g[self.rows.row] += 1.0
        found = _Factors(shift, g, np.zeros(m))
        if not shift.any():
            return found  # pivots of zero: proximal steps suit any rank
        found.sparse = self.block.factor(memory.K, values, self.tree.armature, shift)
        if found.sparse is None:
            found.worst = 0.0
            return found
        still = np.zeros(len(self.tree.armature))
        kept = trial = np.cos(np.arange(m))
        for _ in range(STEPS):
            kept = self.solve(found, np.zeros((0, 6)), still, -shift * kept)[1]
        if np.linalg.norm(kept) < DEPENDENT * np.linalg.norm(trial):
            found.pivots = np.full(m, np.inf)
        return found

    def solve(self, factors: _Factors, need: Array, tau: Array, c: Array) -> tuple[Array, Array]:
        """Return a and lam for forces `need` (n, 6) that bodies need, joint forces tau and right sides c."""
        layout, memory, f = self.layout, self.tree.memory, self.fronts
        if f is None:
            assert self.block is not None
            return self.block.solve(factors.sparse, need, tau, c)
        a, lam = np.empty(len(tau)), np.zeros(self.rows.m)
        front_solve.solve(
            layout.topology, layout.gathering, layout.pitch, memory.K, f.counts, f.ids, f.at, f.run, memory.Y,
            factors.phi, factors.closed, need, tau, np.array(c), memory.T, a, lam, memory.A,
        )  # fmt: skip
        return a, lam

    def forward(self, q: Array, v: Array, tau: Array, t: float) -> Answer:
        """Return the constrained acceleration of one state."""
        if not _finite(t, q, v, tau):
            return self._nothing(Status.NONFINITE)
        given = tau
        tau, ext = self.tree.load(q, v, tau, self.tree.move(q, v))
        values = self.values(q, v, t)
        need = self.room.need
        needs(self.layout.inertia, self.tree.memory.K, ext, need)

        def free() -> Array:
            a = np.empty_like(tau)
            self.tree.forward(q, v, given, a)
            return a

        return self._answer(values, need, tau, -values.drift, free=free)

    def jump(self, q: Array, v: Array, t: float, taken: Array) -> Answer:
        """Return v', impulses: M (v' - v) + A^T P = 0, of the rows' rate the part `taken` is gone."""
        if not _finite(t, q, v, taken):
            return self._nothing(Status.NONFINITE)
        self.tree.move(q, v)
        values = self.values(q, v, t)
        found = self._answer(values, np.zeros((0, 6)), np.zeros_like(v), -taken * values.rate)
        return Answer(v + found.acceleration, *found[1:])

    def right_sides(self, q: Array, y1: Array, y2: Array, t: float) -> Answer:
        """Return a, lam of M a + A^T lam = y1, A a = y2 for any right sides."""
        if not _finite(t, q, y1, y2):
            return self._nothing(Status.NONFINITE)
        values = self.still(q, t)
        return self._answer(values, np.zeros((0, 6)), y1, y2, free=lambda: self.tree.yielding(y1))

    def still(self, q: Array, t: float) -> RowValues:
        """Return the rows at a configuration at rest, without gravity, which is in memory from then on."""
        still = self.tree.memory.still
        self.tree.move(q, still, gravity=False)
        return self.values(q, still, t)

    def step(self, q: Array, t: float) -> tuple[Array, Array, Status]:
        """Return Newton's step onto the rows that have a residual, the residual, and the status."""
        still = np.zeros(self.layout.mechanism.nv)
        if not _finite(t, q):
            return still * np.nan, np.full(self.rows.h, np.nan), Status.NONFINITE
        self.tree.move(q, still)
        values = self.values(q, still, t)
        c = np.zeros(self.rows.m)
        held = self.rows.residual_place
        c[held >= 0] = -values.residual[held[held >= 0]]
        free = values
        if (held < 0).any():  # rows without residual do not hold a configuration
            wrenches = values.wrenches.copy()
            wrenches[held < 0] = 0.0
            free = RowValues(wrenches, values.rate, values.drift, values.residual)
        found = self._answer(free, np.zeros((0, 6)), still, c, held >= 0)
        return found.acceleration, values.residual, found.status

    def pull(self, values: RowValues, lam: Array) -> Array:
        """Return A^T lam, (nv,)."""
        layout, memory, rows = self.layout, self.tree.memory, self.rows
        forces, pulled = padded(layout.n, 12).reshape(-1, 2, 6), np.zeros(layout.mechanism.nv)
        joint_forces(self._end_bodies, values.wrenches, lam, lam, memory.A, forces)
        inward.transmitted(
            layout.topology, layout.gathering, layout.pitch, forces[:, 0].copy(), memory.K, memory.T, pulled
        )
        np.add.at(pulled, rows.place, rows.factor * lam[rows.row])
        return pulled

    def move_rows(self, values: RowValues, a: Array) -> Array:
        """Return A a, (m,)."""
        layout, memory, rows = self.layout, self.tree.memory, self.rows
        inward.spread(layout.topology, layout.pitch, memory.K, a, memory.A)
        still, forces = np.zeros(rows.m), padded(layout.n, 12).reshape(-1, 2, 6)
        moved = -joint_forces(self._end_bodies, values.wrenches, still, still, memory.A, forces)[0]
        np.add.at(moved, rows.row, rows.factor * a[rows.place])
        return moved

    def furthest(self, q: Array, v: Array, t: float, a: Array) -> str:
        """Return in words which rows accelerations a miss by most."""
        self.tree.move(q, v)
        values = self.values(q, v, t)
        missed = np.abs(self.move_rows(values, a) + values.drift)
        names = self.layout.mechanism.names
        worst = [f"{names[i]!r} ({missed[i]:.2g})" for i in np.argsort(-missed)[:3]]
        return f"the rows furthest from being met are {', '.join(worst)}"

    def jacobian(self, q: Array, t: float) -> Array:
        """Return A (m, nv), dense."""
        layout, memory, rows = self.layout, self.tree.memory, self.rows
        still, A = np.zeros(layout.mechanism.nv), np.zeros((rows.m, layout.mechanism.nv))
        self.tree.move(q, still)
        wrenches = self.values(q, still, t).wrenches
        closing = closing_bodies(layout.parent, rows.touches)
        row_jacobian(layout.topology, layout.pitch, memory.K, self._end_bodies, closing, wrenches, A)
        np.add.at(A, (rows.row, rows.place), rows.factor)
        return A

    def _nothing(self, status: Status) -> Answer:
        nan = np.nan
        return Answer(np.full(self.layout.mechanism.nv, nan), np.full(self.rows.m, nan), status, (nan, nan))

    def _answer(
        self, values: RowValues, need: Array, tau: Array, c: Array, present: Any = slice(None), free: Any = None
    ) -> Answer:
        """Solve plainly, or by proximal steps where rows that are `present` depend on each other, and judge."""
        limits, load = self.limits, (need, tau, c)
        factors = self.factor(values, np.zeros(self.rows.m))
        if not factors.worst > MASSIVE * limits.eps:
            return self._nothing(Status.MASSLESS)
        scale = self.scales(factors.g)
        if (factors.pivots > self.implied * scale)[present].all():
            found = self._refined(values, factors, load, *self.solve(factors, *load))
            if max(found.residuals) <= self.accept:
                return found._replace(status=Status.UNIQUE)
        factors = self.factor(values, self.shift(factors.g, scale))
        if not factors.worst > MASSIVE * limits.eps:
            return self._nothing(Status.MASSLESS)
        found = self._refined(values, factors, load, *self._proximal(factors, *load))
        unique = bool((factors.pivots > self.implied * scale)[present].all())
        one, two = found.residuals
        if not np.isfinite(one + two):
            return self._nothing(Status.NONFINITE)
        if two > limits.accept and free is not None:
            two = self._beside(values, factors, c, found.acceleration, free())
            found = found._replace(residuals=(one, two))
        met = two <= (limits.accept if unique else limits.agree)
        if met and one <= limits.accept:
            return found._replace(status=Status.UNIQUE if unique else Status.REDUNDANT)
        return found._replace(status=Status.ILL_CONDITIONED if unique or met else Status.INCONSISTENT)

    def independent(self, values: RowValues) -> bool:
        """Return whether no row follows from the others; True too where a motion without mass hides it."""
        factors = self.factor(values, np.zeros(self.rows.m))
        massless = not factors.worst > MASSIVE * self.limits.eps
        return massless or bool((factors.pivots > self.implied * self.scales(factors.g)).all())

    def shift(self, g: Array, scale: Array) -> Array:
        """Return delta for rows with diagonal g and their constraints' scales: mu w over the largest w / scale."""
        largest = (self.metric / scale)[g > 0].max(initial=0.0) or self.metric.max()
        return self.limits.shift * self.metric / largest

    def _beside(self, values: RowValues, factors: _Factors, c: Array, a: Array, free: Array) -> float:
        """Return the second residual beside what rows would do without their forces: a structure at rest moves nothing.

        The matrix is not used any more: the free accelerations have overwritten its factors.
        """
        gap, size = self.move_rows(values, a) - c, np.abs(self.move_rows(values, free)) + np.abs(c)
        return relative(gap, size, factors.g)

    def _refined(self, values: RowValues, factors: _Factors, load: tuple, a: Array, lam: Array) -> Answer:
        """Return the answer with its residuals, improved by them where they are above `FINE`, as long as that helps."""
        one, two, left, gap = self._residuals(values, factors, load, a, lam)
        for _ in range(REFINEMENTS):
            if not one > FINE:
                break
            more_a, more_lam = self.solve(factors, np.zeros((0, 6)), left, gap)
            trial = a + more_a, lam + more_lam
            found = self._residuals(values, factors, load, *trial)
            if not max(found[:2]) < max(one, two):
                break
            (a, lam), (one, two, left, gap) = trial, found
        return Answer(a, lam, Status.DECLINED, (one, two))

    def _proximal(self, factors: _Factors, need: Array, tau: Array, c: Array) -> tuple[Array, Array]:
        """Return a and the least lam by `STEPS` proximal steps; rounding along null(A^T) is taken out again."""
        lam, nothing = np.zeros(self.rows.m), np.zeros((0, 6))
        a = np.zeros_like(tau)
        for _ in range(STEPS):
            a, lam = self.solve(factors, need, tau, c - factors.shift * lam)
        for _ in range(CLEANINGS):
            astray = lam
            for _ in range(STEPS):
                _, astray = self.solve(factors, nothing, np.zeros_like(tau), -factors.shift * astray)
            lam = lam - astray
        return a, lam

    def scales(self, g: Array) -> Array:
        """Return for each row the largest diagonal of its constraint."""
        return largest_of_each(self.rows.owner, self._owners, g)

    @cached_property
    def _owners(self) -> int:
        """Number of constraints."""
        return int(self.rows.owner.max(initial=-1)) + 1

    def _residuals(
        self, values: RowValues, factors: _Factors, load: tuple, a: Array, lam: Array
    ) -> tuple[float, float, Array, Array]:
        """Return the residuals of both block rows, relative to the sums of what they are made of, and as they are."""
        layout, memory, rows = self.layout, self.tree.memory, self.rows
        need, tau, c = load
        inward.spread(layout.topology, layout.pitch, memory.K, a, memory.A)
        forces, coupled, left = self.room.forces, self.room.coupled, self.room.left
        gap, size = joint_forces(self._end_bodies, values.wrenches, c, lam, memory.A, forces)
        if len(rows.row):
            coupled[:] = 0.0
            np.add.at(coupled, rows.place, rows.factor * lam[rows.row])
            moved = rows.factor * a[rows.place]
            np.subtract.at(gap, rows.row, moved)
            np.add.at(size, rows.row, np.abs(moved))
        one = imbalance(
            layout.topology, layout.gathering, layout.pitch, layout.inertia, self.tree.armature, memory.K, memory.A,
            need, forces, tau, a, coupled, memory.T, left,
        )  # fmt: skip
        if not one <= FINE:
            error = imbalance_in_sum(
                layout.topology, layout.kept, layout.pitch, layout.inertia, self.tree.armature, memory.K, memory.Y,
                self.fronts is not None, memory.A, need, forces, tau, a, coupled, left,
            )  # fmt: skip
            one = min(one, error) if isfinite(error) else error
        if one > self.accept:
            error = backward_error(
                layout.topology, layout.gathering, layout.pitch, layout.inertia, self.tree.armature, memory.K,
                need, forces, tau, a, coupled, memory.T, memory.A, left,
            )  # fmt: skip
            one = min(one, error)
        return one, relative(gap, size, factors.g), left, gap

    @cached_property
    def _end_bodies(self) -> Array:
        """Bodies of both ends of every row, (m, 2); -1 where there is none."""
        found = np.full((self.rows.m, 2), -1, dtype=np.int64)
        ends = self.rows.touches.ends
        found[ends[:, 0], ends[:, 2]] = ends[:, 1]
        return found


def _finite(t: float, *arrays: Array) -> bool:
    return isfinite(t) and all(all_finite(x) for x in arrays)
