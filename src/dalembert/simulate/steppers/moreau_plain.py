"""One step of Moreau and Jean in plain NumPy: twin of `moreau_loops.advance`; rows that move by themselves go this way.

Written with the block matrix and the laws as the event-driven method has them, so the two have little in common but the
equations in `moreau.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dalembert.errors import SolvabilityError
from dalembert.simulate.contact.complementarity import Inverse, complementarity, stiffened
from dalembert.simulate.contact.geometry import State
from dalembert.simulate.contact.impulse_loops import approaching, expansion
from dalembert.simulate.limits import ACCEPTED, BEHIND, CONTRADICTING_IMPULSES, PENETRATION, STEP_GAIN, STILL
from dalembert.simulate.steppers import moreau_loops as loop
from dalembert.types import Array


class PlainSteps:
    """Takes the steps of a `Moreau` run one by one."""

    def __init__(self, run: Any) -> None:
        self.run, self.m = run, run.session.mechanism
        self.offsets = bool(self.m.names)

    def advance(self, most: int) -> int:
        """Take up to `most` steps, or until the block is full; return what became of the last."""
        counts, sums, samples = self.run.counts, self.run.sums, self.run.samples
        for _ in range(most):
            if counts[loop.COUNT] >= counts[loop.TOTAL] or counts[loop.SAMPLES] >= samples.t.size:
                break
            after = counts[loop.COUNT] + 1
            sampled = after % counts[loop.STRIDE] == 0 or after == counts[loop.TOTAL]
            t = sums[loop.START] + counts[loop.COUNT] * sums[loop.STEP]
            code = self._step(t, sums[loop.STEP], counts[loop.SAMPLES] if sampled else -1)
            if code != loop.FINE:
                return code
            counts[loop.COUNT] = after
            counts[loop.SAMPLES] += 1 if sampled else 0
            counts[loop.UNSOLVED] += 1 if sums[loop.RESIDUAL] > ACCEPTED else 0
        return loop.FINE

    def _step(self, t: float, h: float, row: int) -> int:
        run, w, sums = self.run, self.run.memory.work, self.run.sums
        q, v = w.q.copy(), w.v.copy()
        middle = run.chart.along(q, 0.5 * h * v)
        x = run.geometry.state(middle, v, t + 0.5 * h)
        tau = run.forces(t + BEHIND * h, q, v)
        push = h * (tau - x.bias) + w.warm @ x.W
        try:
            half = v + 0.5 * np.linalg.solve(x.M, push)
        except np.linalg.LinAlgError:  # rows carry what has no mass
            half = v + 0.5 * np.linalg.solve(stiffened(x.M, x.A)[0], push)
        bias = run.geometry.state(middle, half, t + 0.5 * h).bias
        right = np.column_stack([x.M @ v + h * (tau - bias), x.W.T])
        rows = np.zeros((x.A.shape[0], right.shape[1]))
        if self.offsets:
            rows[:, 0] = -self.m.constraint_velocity(middle, np.zeros(v.size), t + 0.5 * h)
        inverse = Inverse.of(x.M, np.where(self._independent(x)[:, None], x.A, 0.0))
        if not np.isfinite(right).all():
            return loop.NON_FINITE
        try:
            motions, multipliers = inverse.solve(right, rows)
            inverse.refuse_uncertain()
        except SolvabilityError as refused:
            raise SolvabilityError(f"at t = {t:.9g} s: {refused}", refused.diagnosis) from refused
        free, B = motions[:, 0].copy(), motions[:, 1:]
        offset, limits = getattr(x, "offset", np.zeros(x.W.shape[0])), getattr(x, "limits", np.zeros(x.gaps.size))
        before = self._meeting(x, v, offset)
        # gaps that move by themselves were larger half a step ago by half of their way
        w.W[:], w.axes[:], w.gaps[:] = x.W, x.axes, x.gaps - 0.5 * h * offset[::3]
        near = loop.look_back(w, free, t, h, run.counts, sums)
        if near.size and self._trapped(near, B, h):
            return loop.TRAPPED
        w.gaps[:] = x.gaps
        P, active, sums[loop.RESIDUAL], approach = self._impulses(x, before, free, B, t, h, offset, limits)
        if approach > CONTRADICTING_IMPULSES:
            return loop.CONTRADICTORY
        new = free + B @ P
        if not np.isfinite(new).all():
            return loop.NON_FINITE
        end = run.chart.along(q, 0.5 * h * (v + new))
        end = self._without_penetration(end, x, new, B, active[limits[active] == 0.0], offset, h)
        if not np.isfinite(end).all():
            return loop.NON_FINITE
        w.moved[:] = self.m.project(end, t=t + h) if any(self.m.holonomic) else end
        w.M[:] = x.M
        self._count_gain(x, t, free, new, P, offset)
        after = x.W @ new + offset
        sums[loop.HEAT] -= float(P @ (before + after)) / 2.0
        sums[loop.WORK] += h * float(tau @ (new + v)) / 2.0
        if row >= 0:
            lam = (multipliers[:, 0] + multipliers[:, 1:] @ P) / h
            status = int(inverse.status)
            loop.record(w, run.samples, row, t + h, (new - v) / h, lam, P / h, new, h, sums, status)
            moving = np.hypot(after[1::3], after[2::3]) > STILL
            run.samples.modes[row] = np.where(
                limits > 0.0, np.where(moving, loop.SLIP, loop.STICK),
                np.where((run.samples.modes[row] != loop.OPEN) & moving, loop.SLIP, run.samples.modes[row]),
            )  # fmt: skip
        w.left[:, :3] = np.einsum("kij,ki->kj", x.axes, after.reshape(-1, 3))
        w.left[:, 3:6], w.left[:, 6:] = run.geometry.spins(middle, new), x.axes[:, 0]
        w.v[:], w.q[:], w.warm[:], w.closed[:] = new, w.moved, P, P[::3] > 0.0
        return loop.FINE

    def _independent(self, x: State) -> Array:
        """Return which rows make up the system's rank here, (m,); all of them where it is not known."""
        w, independent = self.run.memory.work, np.ones(len(x.A), dtype=bool)
        rank = int(w.known_rank[0])
        if 0 < rank < len(x.A):
            loop.choose(x.A @ np.linalg.solve(stiffened(x.M, x.A)[0], x.A.T), w.row_sizes, rank, independent)
        return independent

    def _count_gain(self, x: State, t: float, free: Array, new: Array, P: Array, offset: Array) -> None:
        """Count a step whose impulses gain energy from surfaces at rest, and keep the first; see `loop.count_gain`."""
        counts, sums = self.run.counts, self.run.sums
        work = 0.5 * float(P @ (x.W @ (free + new) + 2.0 * offset))
        if work > 0.5 * STEP_GAIN * max(float(free @ x.M @ free), float(new @ x.M @ new)):
            if counts[loop.GAINS] == 0:
                sums[loop.GAIN], sums[loop.GAIN_TIME] = work, t
            counts[loop.GAINS] += 1

    def _trapped(self, near: Array, B: Array, h: float) -> bool:
        """Return whether no motion frees the contacts `near` of a penetration; their laws are then noted as missed."""
        w = self.run.memory.work
        G, target = loop.gaps_back(w, near, np.ascontiguousarray(B[:, 3 * near]), h)
        answer = complementarity(G, target, np.zeros(near.size))
        w.missed[:] = 0.0
        w.missed[near] = answer.missed
        return approaching(G, target, answer.r) > CONTRADICTING_IMPULSES

    def _meeting(self, x: State, v: Array, offset: Array) -> Array:
        """Return contact velocities before the impulses, (3 k,)."""
        w, before = self.run.memory.work, (x.W @ v + offset).reshape(-1, 3)
        turned = w.left[:, :3] - np.cross(w.left[:, 3:6], x.axes[:, 0] - w.left[:, 6:])
        closed = w.closed & x.axes.any(axis=(1, 2))
        return np.where(closed[:, None], np.einsum("kij,kj->ki", x.axes, turned), before).ravel()

    def _impulses(
        self, x: State, before: Array, free: Array, B: Array, t: float, h: float, offset: Array, limits: Array
    ) -> tuple[Array, Array, float, float]:
        """Return impulses of all contacts, which would close in this step, residual of their laws, how they approach.

        The last, relative to the data, is zero but where contacts contradict each other.
        """
        run, w = self.run, self.run.memory.work
        pairs, warm, normal = run.laws, w.warm, np.arange(0, x.W.shape[0], 3)
        closes = x.gaps + 0.5 * h * (x.W[normal] @ free + offset[normal]) <= 0.0
        active, touching = np.flatnonzero(closes | (limits > 0.0)), np.flatnonzero(closes | loop.leaving(w, before))
        few = np.ascontiguousarray(B[:, loop.rows_of(touching)])
        loop.look_for_paradox(w, few, before, pairs.mu, touching, t, run.counts, run.sums)
        P = np.zeros(x.W.shape[0])
        w.missed[:] = 0.0
        if not active.size:
            return P, active, 0.0, 0.0
        rows = (3 * active[:, None] + np.arange(3)).ravel()
        G, g, e = x.W[rows] @ B[:, rows], x.W[rows] @ free + offset[rows], pairs.e[active]
        poisson, fresh = pairs.poisson[active], warm[3 * active] == 0.0
        g[::3] += np.where(poisson, 0.0, e * np.minimum(before[3 * active], 0.0))
        g[::3] += np.where((e > 0.0) | (limits[active] > 0.0), 0.0, 2.0 / h * np.maximum(x.gaps[active], 0.0))
        answer = complementarity(G, g, pairs.mu[active], warm=warm[rows], limits=h * limits[active])
        if not answer.ok:
            answer = complementarity(G, g, pairs.mu[active], limits=h * limits[active])
        P[rows], residual, w.missed[active] = answer.r, answer.residual, answer.missed
        G = np.ascontiguousarray(G)
        approach = float(approaching(G, g, answer.r))
        if np.any(poisson & fresh & (e > 0.0)):
            floor, more = np.where(poisson & fresh, e * answer.r[::3], 0.0), np.zeros(rows.size)
            residual = max(residual, expansion(G, g + G @ answer.r, pairs.mu[active], floor, more))
            P[rows] += more
        return P, active, residual, approach

    def _without_penetration(
        self, q: Array, x: State, v: Array, B: Array, active: Array, offset: Array, h: float
    ) -> Array:
        """Move positions back where a closed contact has gone below the surface, least in kinetic energy."""
        normal = 3 * active
        gaps = x.gaps[active] + 0.5 * h * (x.W[normal] @ v + offset[normal])
        if not active.size or gaps.min() >= -PENETRATION:
            return q
        spread, target = np.zeros((3 * active.size, 3 * active.size)), np.zeros(3 * active.size)
        spread[::3, ::3] = x.W[normal] @ B[:, normal]
        target[::3] = gaps
        p = complementarity(spread, target, np.zeros(active.size)).r[::3]
        return self.run.chart.along(q, B[:, normal] @ p)
