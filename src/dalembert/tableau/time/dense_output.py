"""Dense output: between mesh points, the polynomial through the last k + 1 of them, or through values and rates."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalembert.tableau.graph_loops import compiled

Array = np.ndarray


@compiled
def step_of(t, begins, time):
    """Return the row at which the step that contains a time ends."""
    if t[-1] >= t[0]:
        i = np.searchsorted(t, time, side="left")
    else:
        i = t.size - np.searchsorted(t[::-1], time, side="right")
    i = min(max(i, 1), t.size - 1)
    while i < t.size - 1 and begins[i] == i:  # the first row of a segment ends no step
        i += 1
    return i


@compiled
def through_points(t, x, order, begins, at, out):
    """Evaluate at times `at`; the step that ends at row i used order[i], its segment began at row begins[i]."""
    for j in range(at.size):
        i = step_of(t, begins, at[j])
        first = max(i - max(order[i], 1), begins[i])
        for c in range(out.shape[1]):
            out[j, c] = 0.0
        for a in range(first, i + 1):
            weight = 1.0
            for b in range(first, i + 1):
                if b != a:
                    weight *= (at[j] - t[b]) / (t[a] - t[b])
            for c in range(out.shape[1]):
                out[j, c] += weight * x[a, c]


@compiled
def through_rates(t, x, rates, begins, at, out):
    """Evaluate the cubic through values and rates at both ends of a step (for one-step methods)."""
    for j in range(at.size):
        i = step_of(t, begins, at[j])
        h = t[i] - t[i - 1]
        u = (at[j] - t[i - 1]) / h
        a, b = (1.0 + 2.0 * u) * (1.0 - u) ** 2, u * (1.0 - u) ** 2 * h
        c, d = u * u * (3.0 - 2.0 * u), u * u * (u - 1.0) * h
        for k in range(out.shape[1]):
            out[j, k] = a * x[i - 1, k] + b * rates[i - 1, k] + c * x[i, k] + d * rates[i, k]


class Dense:
    """A trajectory as a function of time, `sol(t)`.

    Across a jump of an input two rows have the same time; at that time the value before the jump is returned.

    Parameters
    ----------
    t, x, order, begins
        Times (N,), values (N, n), orders, and for each row the first row of its segment.
    rates
        (N, n): interpolate values and rates by cubics instead.
    columns
        How many of the columns of x are wanted; default all.
    """

    def __init__(
        self, t: Array, x: Array, order: Array, begins: Array, rates: Array | None = None, columns: int | None = None
    ) -> None:
        self.t, self.x, self.order, self.begins = t, x, order, begins
        self.rates = None if rates is None else np.ascontiguousarray(rates)
        self.columns = x.shape[1] if columns is None else columns

    @property
    def t_min(self) -> float:
        """First time."""
        return float(min(self.t[0], self.t[-1]))

    @property
    def t_max(self) -> float:
        """Last time."""
        return float(max(self.t[0], self.t[-1]))

    def __call__(self, t: Any) -> Array:
        """Return x(t), (n,) or (n, len(t)); beyond the ends the nearest polynomial is continued."""
        at = np.atleast_1d(np.asarray(t, dtype=float)).ravel()
        out = np.empty((at.size, self.columns))
        if len(self.t) == 1:
            out[:] = self.x[0, : self.columns]
        elif self.rates is not None:
            through_rates(self.t, self.x, self.rates, self.begins, at, out)
        else:
            through_points(self.t, self.x, self.order, self.begins, at, out)
        return out[0] if np.ndim(t) == 0 else out.T
