"""Interpolation between mesh points: through the last k + 1 of them, or through values and rates of the last three."""

from __future__ import annotations

import numpy as np

from dalembert.tableau.graph_loops import compiled
from dalembert.tableau.time.event_loops import interpolate
from dalembert.tableau.time.hermite_loops import hermite


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
    """Evaluate Hermite's polynomial through values and rates, and its derivative where `out` has room for both."""
    n = rates.shape[1]
    value, slope = np.empty(n), np.empty(n)
    for j in range(at.size):
        i = step_of(t, begins, at[j])
        interpolate(hermite(t, x, rates, begins[i], i), at[j] - t[i], value, slope)
        out[j, :n] = value
        if out.shape[1] > n:
            out[j, n:] = slope
