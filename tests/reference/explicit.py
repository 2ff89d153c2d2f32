"""The explicit stepper once more, in plain NumPy: no kernels of its own, no compiled loop; for checking the fast one.

The same pair, chart, error test and projections, on `Mechanism`'s calls: forward dynamics, residuals, Jacobians.
Symbols as in `step_loops.py`. Without events, singular configurations and samples between steps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from dalembert.simulate.equations.codes import Chart
from dalembert.simulate.limits import CLOSED, GROW, MOST_CLOSING, SAFETY, SHRINK
from dalembert.simulate.steppers.explicit import pair_of, scale_places
from dalembert.simulate.steppers.explicit_loops import RungeKuttaPair

if TYPE_CHECKING:
    from dalembert.model.mechanism.mechanism import Mechanism

Array = np.ndarray
Force = Callable[[float, Array, Array], Array]


class Plain:
    """A mechanism under a force tau(t, q, v), stepped by an explicit pair."""

    def __init__(self, mechanism: Mechanism, force: Force, method: str, rtol: float, atol: float) -> None:
        self.m, self.force, self.rtol, self.atol = mechanism, force, rtol, atol
        self.pair: RungeKuttaPair = pair_of(method)
        self.chart = Chart(mechanism)
        self.scales = scale_places(mechanism)

    def rate(self, t: float, base: Array, y: Array) -> Array:
        """Return (x', v') at coordinates around `base`."""
        n = self.m.nv
        q, x_rate = self.chart.at(base, y[:n], y[n:])
        tau = self.force(t, q, y[n:])
        return np.concatenate([x_rate, self.m.forward(q, y[n:], tau, t).acceleration])

    def stages(self, t: float, q: Array, v: Array, h: float) -> tuple[Array, Array]:
        """Return the stages K and the end y of a step."""
        a, b, c = self.pair.a, self.pair.b, self.pair.c
        start = np.concatenate([np.zeros(self.m.nv), v])
        K = np.zeros((b.size, start.size))
        for i in range(b.size):
            K[i] = self.rate(t + c[i] * h, q, start + h * a[i, :i] @ K[:i])
        return K, start + h * b @ K

    def error_ratio(self, q: Array, v: Array, K: Array, y: Array, h: float) -> float:
        """Return the error of a step over the tolerance (Hairer's combination for 8(5,3))."""
        n = self.m.nv
        held = self.scales >= 0
        places = np.ones(n)
        there = q[self.scales[held]]
        places[held] = np.maximum(np.abs(there), np.abs(there + y[:n][held]))
        scale = self.atol + self.rtol * np.concatenate([places, np.maximum(np.abs(v), np.abs(y[n:]))])
        five = float((((self.pair.error @ K) / scale) ** 2).sum())
        if not self.pair.third.size:
            return h * np.sqrt(five / (2 * n))
        three = float((((self.pair.third @ K) / scale) ** 2).sum())
        return h * five / np.sqrt((five + 0.01 * three) * 2 * n) if five or three else 0.0

    def settle(self, t: float, q: Array, y: Array) -> tuple[Array, Array]:
        """Return position and velocity at the end of a step, put back onto the constraints (RATTLE's projections)."""
        n, m = self.m.nv, self.m
        q, v = self.chart.at(q, y[:n], y[n:])[0], y[n:].copy()
        if not m.names:
            return q, v
        M, rows, last = np.asarray(m.mass_matrix(q)), np.array(m.holonomic), np.inf
        for _ in range(MOST_CLOSING):
            phi = np.asarray(m.constraint(q, t))
            worst = np.abs(phi / m.row_sizes[rows]).max(initial=0.0)
            if worst <= CLOSED or worst > 0.5 * last:
                break
            last = worst
            M, A = np.asarray(m.mass_matrix(q)), np.asarray(m.jacobian(q, t))[rows]
            q = self.chart.along(q, _least_change(M, A, -phi))
        M, A = np.asarray(m.mass_matrix(q)), np.asarray(m.jacobian(q, t))
        return q, v + _least_change(M, A, -np.asarray(m.constraint_velocity(q, v, t)))

    def run(self, t: float, end: float, q: Array, v: Array, first: float) -> tuple[Array, Array, Array]:
        """Return times, configurations and velocities of all steps, from a first step on."""
        found, h, rejected = [(t, q, v)], first, False
        while t < end:
            last = h * (1.0 + 1e-9) >= end - t
            taken = end - t if last else h
            K, y = self.stages(t, q, v, taken)
            ratio = self.error_ratio(q, v, K, y, taken)
            power = np.inf if ratio == 0.0 else SAFETY * ratio ** (-1.0 / self.pair.order)
            if not ratio < 1.0:
                h, rejected = taken * max(SHRINK, power), True
                continue
            if not (last and taken < 0.99 * h):
                h = taken * (min(1.0, power) if rejected else min(GROW, max(SHRINK, power)))
            t, rejected = (end if last else t + taken), False
            q, v = self.settle(t, q, y)
            found.append((t, q, v))
        return np.array([x[0] for x in found]), np.array([x[1] for x in found]), np.array([x[2] for x in found])


def _least_change(M: Array, A: Array, wanted: Array) -> Array:
    """Return the x of least x^T M x with A x = wanted, in the least-squares sense where rows are redundant."""
    inverse_root = np.linalg.inv(np.linalg.cholesky(M)).T
    return inverse_root @ np.linalg.lstsq(A @ inverse_root, wanted, rcond=1e-10)[0]
