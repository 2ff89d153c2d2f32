"""Dense output of multistep and one-step methods."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalembert.checks import floats
from dalembert.kernel.bisection import count_below, count_up_to
from dalembert.kernel.loops import compiled
from dalembert.simulate.events.event_loops import interpolate
from dalembert.types import Array

# ----------------------------------------------------------------------------------------------------------------------
# Hermite's polynomial through values and rates at the last mesh points, in Newton's form: for one-step methods.
#
# Divided differences with every node twice, f[t_i, t_i] = x'_i (J. Stoer, R. Bulirsch, "Introduction to Numerical
# Analysis", sec. 2.1.5). Three points give degree 5; the first step of a segment has two, degree 3. Pieces join with
# their slopes.


MOST_POINTS = 3


@compiled
def hermite(t, x, rates, first, last):
    """Return the history (see `event_loops.interpolate`) of rows first ... last, newest first."""
    points = min(last - first + 1, MOST_POINTS)
    count, n = 2 * points, x.shape[1]
    nodes, table = np.empty(count), np.empty((count, n))
    for i in range(points):
        nodes[2 * i] = nodes[2 * i + 1] = t[last - i]
        table[2 * i] = x[last - i]
        table[2 * i + 1] = x[last - i]
    for j in range(1, count):
        for i in range(count - 1, j - 1, -1):
            gap = nodes[i] - nodes[i - j]
            for k in range(n):
                if gap == 0.0:
                    table[i, k] = rates[last - i // 2, k]
                else:
                    table[i, k] = (table[i, k] - table[i - 1, k]) / gap
    return table, t[last] - nodes, np.ones(count), count - 1


# ----------------------------------------------------------------------------------------------------------------------
# Interpolation between mesh points: through the last k + 1 of them, or through values and rates of the last three.


@compiled
def step_of(t, begins, time):
    """Return the row at which the step that contains a time ends."""
    i = count_below(t, time) if t[-1] >= t[0] else t.size - count_up_to(t[::-1], time)
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
    """Evaluate Hermite's polynomial through values and rates, and its derivative where `out` has room for both."""
    n = rates.shape[1]
    value, slope = np.empty(n), np.empty(n)
    for j in range(at.size):
        i = step_of(t, begins, at[j])
        interpolate(hermite(t, x, rates, begins[i], i), at[j] - t[i], value, slope)
        out[j, :n] = value
        if out.shape[1] > n:
            out[j, n:] = slope


# ----------------------------------------------------------------------------------------------------------------------
# Dense output: between mesh points, the polynomial through the last k + 1 of them, or through values and rates.


class DenseOutput:
    """A trajectory as a function of time, `sol(t)`.

    Across a jump of an input two rows have the same time; at that time the value before the jump is returned.

    Parameters
    ----------
    t, x, order, begins
        Times (N,), values (N, n), orders, and for each row the first row of its segment.
    rates
        (N, n): interpolate values and rates by Hermite's polynomials instead.
    columns
        How many of the columns of (x, x') are wanted; default all that x has.
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
        at = np.atleast_1d(floats(t, "t")).ravel()
        out = np.empty((at.size, self.columns))
        if len(self.t) == 1:
            out[:] = self.x[0, : self.columns]
        elif self.rates is not None:
            through_rates(self.t, self.x[:, : self.rates.shape[1]], self.rates, self.begins, at, out)
        else:
            through_points(self.t, self.x, self.order, self.begins, at, out)
        return out[0] if np.ndim(t) == 0 else out.T
