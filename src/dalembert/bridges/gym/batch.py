"""Many copies of a mechanism in motion, side by side: one call of a kernel for all.

    a = forward(q, v, tau),   v <- v + h a,   q <- integrate(q, h v)        "euler": semi-implicit, of first order
    Runge and Kutta's classical method in the coordinates of q              "rk4"

Loops are closed after every step by projection. A copy whose equations have no answer is marked, and its numbers stay
where they were: it never spreads NaN.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dalembert.errors import ModelError
from dalembert.model.constraints import Servo
from dalembert.model.mechanism.constraint_rows import residual_sizes
from dalembert.status import Status
from dalembert.types import Array

if TYPE_CHECKING:
    from dalembert.model.mechanism.mechanism import Mechanism

METHODS = ("rk4", "euler")
SOLVED = (Status.UNIQUE, Status.REDUNDANT)
CLOSED = 1e-9
"""A loop is closed where its residual is below this part of its size: ten digits of a length."""

NEWTON_STEPS = 6
"""Projections after one step: the first is nearly always enough, since a step leaves a loop by its error alone."""


class Batch:
    """The states of n copies, (n, nq) and (n, nv), with the time of each."""

    def __init__(self, mechanism: Mechanism, size: int, method: str) -> None:
        if method not in METHODS:
            raise ModelError(f"method={method!r} is none of {', '.join(map(repr, METHODS))}")
        self.mechanism, self.method = mechanism, method
        self.forward, self.integrate, self.rate = (mechanism.compile(name) for name in ("forward", "integrate", "rate"))
        self.project = mechanism.compile("project") if mechanism.names else None
        self.sizes = residual_sizes(mechanism)
        self.timed = any(isinstance(constraint, Servo) for constraint in mechanism.constraints)
        self.q = np.tile(mechanism.neutral(), (size, 1))
        self.v = np.zeros((size, mechanism.nv))
        self.t = np.zeros((size, 1))

    def place(self, chosen: Array, q: Array, v: Array) -> None:
        """Put the chosen copies into states, at time zero."""
        self.q[chosen], self.v[chosen], self.t[chosen] = q, v, 0.0

    def advance(self, tau: Array, h: float, steps: int) -> Array:
        """Advance all copies by steps of h under constant joint forces; return which of them have an answer, (n,)."""
        good = np.ones(len(self.q), dtype=bool)
        for _ in range(steps):
            q, v, fine = self._step(tau, h)
            good &= fine
            self.q, self.v = np.where(good[:, None], q, self.q), np.where(good[:, None], v, self.v)
            self.t = np.where(good[:, None], self.t + h, self.t)
        return good

    def _step(self, tau: Array, h: float) -> tuple[Array, Array, Array]:
        good = np.ones(len(self.q), dtype=bool)

        def slope(q: Array, v: Array, t: Array) -> tuple[Array, Array]:
            a, _, status = self.forward(q, v, tau, t)
            good[~np.isin(status[:, 0], SOLVED)] = False
            return self.rate(q, v), np.where(np.isfinite(a), a, 0.0)

        if self.method == "euler":
            v = self.v + h * slope(self.q, self.v, self.t)[1]
            q = self.integrate(self.q, h * v)
        else:
            q, v = self._classical(slope, h)
        if self.project is not None:
            q, v, closed = self._closed(q, v, self.t + h)
            good &= closed
        return q, v, good & np.isfinite(q).all(axis=1) & np.isfinite(v).all(axis=1)

    def _classical(self, slope: object, h: float) -> tuple[Array, Array]:
        """Return the states after one step of Runge and Kutta's classical method, quaternions made unit."""
        q, v = self.q, self.v
        dq, dv = np.zeros_like(q), np.zeros_like(v)
        kq, kv = np.zeros_like(q), np.zeros_like(v)
        for place, weight in ((0.0, 1 / 6), (0.5, 1 / 3), (0.5, 1 / 3), (1.0, 1 / 6)):
            kq, kv = slope(q + place * h * kq, v + place * h * kv, self.t + place * h)  # type: ignore[operator]
            dq, dv = dq + weight * kq, dv + weight * kv
        return self.integrate(q + h * dq, np.zeros_like(v)), v + h * dv

    def _closed(self, q: Array, v: Array, t: Array) -> tuple[Array, Array, Array]:
        """Return states on the loops, and which copies reached them."""
        assert self.project is not None
        active, status = np.ones(len(q), dtype=bool), np.zeros(len(q))
        size = np.full(len(q), np.inf)
        for _ in range(NEWTON_STEPS):
            step, velocity, residual, _, verdict = self.project(q, v, t)
            now, last = active[:, None], size.copy()  # a copy that is closed stays as it is, whatever the others need
            q, v = np.where(now, self.integrate(q, step), q), np.where(now, velocity, v)
            size[active] = np.abs(residual / self.sizes).max(axis=1, initial=0.0)[active]
            status[active] = verdict[active, 0]
            active &= (size > CLOSED) & ~((size <= self.mechanism.slack) & (size > last / 2))
            if not active.any():
                break
        closed = size <= max(CLOSED, self.mechanism.slack)
        doubtful = closed & ~np.isin(status, SOLVED)
        if doubtful.any():
            closed[doubtful] = self._moves_along(q[doubtful], v[doubtful])
        return q, v, closed

    def _moves_along(self, q: Array, v: Array) -> Array:
        """Return whether velocities obey the rows as well as the model's digits say, max |A v| <= slack max |v|.

        Redundant rows of a model with few digits contradict each other by these digits, which is no fault of a state.
        Rows of servos ask for rates of their own; their verdict stands.
        """
        if self.timed:
            return np.zeros(len(q), dtype=bool)
        rates = np.einsum("nij,nj->ni", self.mechanism.jacobian(q), v) / self.mechanism.row_sizes
        return np.abs(rates).max(axis=1) <= self.mechanism.slack * np.abs(v).max(axis=1)
