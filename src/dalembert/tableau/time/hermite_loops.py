"""Hermite's polynomial through values and rates at the last mesh points, in Newton's form: for one-step methods.

Divided differences with every node twice, f[t_i, t_i] = x'_i (J. Stoer, R. Bulirsch, "Introduction to Numerical
Analysis", sec. 2.1.5). Three points give degree 5; the first step of a segment has two, degree 3. Pieces join with
their slopes.
"""

from __future__ import annotations

import numpy as np

from dalembert.tableau.graph_loops import compiled

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
