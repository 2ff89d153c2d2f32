"""Inputs as functions of time, evaluated inside the loop: piecewise polynomials, or a callback for Python's.

A table gives signal k on piece i as sum_j coefficients[place + i * length + j] (t - breaks[i])^(length - 1 - j),
SciPy's order. At a declared jump inputs of every kind take their limit from within the segment: they are evaluated at
the next number inside.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dalembert.tableau.graph_loops import compiled
from dalembert.tableau.time.invoke_loops import invoke

SIGNALS = 6
FIRST_SIGNAL = 2
"""Signals follow t and c in the environment."""


class Tables(NamedTuple):
    """All tables; row k of `layout`: signal, first break, pieces, first coefficient, coefficients a piece."""

    layout: np.ndarray
    breaks: np.ndarray
    coefficients: np.ndarray


@compiled
def set_signals(calls, environment, tables, t, low, high):
    """Write t, kept between `low` and `high`, and every signal there into the environment."""
    t = min(max(t, low), high)
    environment[0] = t
    if calls[SIGNALS, 0] != 0:
        invoke(calls[SIGNALS, 0], calls[SIGNALS, 1], calls[SIGNALS, 2])
    for k in range(tables.layout.shape[0]):
        signal, first, pieces, place, length = tables.layout[k]
        breaks = tables.breaks[first : first + pieces + 1]
        if t >= high:
            piece = np.searchsorted(breaks, t, side="left") - 1
        else:
            piece = np.searchsorted(breaks, t, side="right") - 1
        piece = min(max(piece, 0), pieces - 1)
        u = t - breaks[piece]
        value = 0.0
        for j in range(length):
            value = value * u + tables.coefficients[place + piece * length + j]
        environment[FIRST_SIGNAL + signal] = value
