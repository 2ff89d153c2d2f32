"""A plan carried out by a compiled loop, factors apart from their use: for systems too large for straight-line code.

Row k of a block, up-looking: w = row of A; for each earlier pivot j of L: l = w[j] / u_jj, w -= l u_j; what is left is
row k of U. Entries of earlier blocks move to the right side (see `factors.py`, the straight-line twin).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dalembert.tableau.graph_loops import compiled
from dalembert.tableau.plan import Plan


class PlanArrays(NamedTuple):
    """A plan as arrays, and room for its factors; places are places in the pivot order."""

    indptr: np.ndarray  # A by equations
    indices: np.ndarray
    rows: np.ndarray
    cols: np.ndarray
    begins: np.ndarray
    place: np.ndarray  # of the unknown of every entry of A
    lower_ptr: np.ndarray
    lower: np.ndarray
    upper_ptr: np.ndarray
    upper: np.ndarray
    low: np.ndarray
    up: np.ndarray
    diagonal: np.ndarray
    row: np.ndarray


def plan_arrays(plan: Plan) -> PlanArrays:
    """Return the arrays of a plan, with new room for factors."""
    p = plan.pattern
    return PlanArrays(
        p.indptr,
        p.indices,
        plan.rows,
        plan.cols,
        plan.begins,
        plan.places[1],
        plan.lower_indptr,
        plan.lower,
        plan.upper_indptr,
        plan.upper,
        np.zeros(len(plan.lower)),
        np.zeros(len(plan.upper)),
        np.ones(plan.n),
        np.zeros(plan.n),
    )


@compiled
def plan_factor(p, entries):
    """Factor A; return the least pivot quality, |pivot| over the sum of sizes of its terms."""
    quality = 1.0
    w = p.row
    for b in range(p.begins.size - 1):
        first = p.begins[b]
        for k in range(first, p.begins[b + 1]):
            w[k] = 0.0
            for e in range(p.lower_ptr[k], p.lower_ptr[k + 1]):
                w[p.lower[e]] = 0.0
            for e in range(p.upper_ptr[k], p.upper_ptr[k + 1]):
                w[p.upper[e]] = 0.0
            equation = p.rows[k]
            for e in range(p.indptr[equation], p.indptr[equation + 1]):
                if p.place[e] >= first:
                    w[p.place[e]] = entries[e]
            terms = abs(w[k])
            for e in range(p.lower_ptr[k], p.lower_ptr[k + 1]):
                j = p.lower[e]
                factor = w[j] / p.diagonal[j]
                p.low[e] = factor
                before = w[k]
                for f in range(p.upper_ptr[j], p.upper_ptr[j + 1]):
                    w[p.upper[f]] -= factor * p.up[f]
                terms += abs(w[k] - before)
            for e in range(p.upper_ptr[k], p.upper_ptr[k + 1]):
                p.up[e] = w[p.upper[e]]
            p.diagonal[k] = w[k]
            found = abs(w[k]) / terms
            if not found >= quality:
                quality = found
    return quality


@compiled
def plan_solve(p, entries, right, x):
    """Solve with the factors at hand."""
    y = p.row
    for b in range(p.begins.size - 1):
        first, last = p.begins[b], p.begins[b + 1]
        for k in range(first, last):
            equation = p.rows[k]
            value = right[equation]
            for e in range(p.indptr[equation], p.indptr[equation + 1]):
                if p.place[e] < first:
                    value -= entries[e] * y[p.place[e]]
            for e in range(p.lower_ptr[k], p.lower_ptr[k + 1]):
                value -= p.low[e] * y[p.lower[e]]
            y[k] = value
        for k in range(last - 1, first - 1, -1):
            value = y[k]
            for e in range(p.upper_ptr[k], p.upper_ptr[k + 1]):
                value -= p.up[e] * y[p.upper[e]]
            y[k] = value / p.diagonal[k]
    for k in range(x.size):
        x[p.cols[k]] = y[k]
