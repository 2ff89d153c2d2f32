"""Inputs as functions of time, evaluated inside the loop: piecewise polynomials, or a callback for Python's.

A table gives signal k on piece i as sum_j coefficients[place + i * length + j] (t - breaks[i])^(length - 1 - j), SciPy's
order. At the end of a segment (a declared jump) the piece to its left counts, at its start the one to its right.
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
    """All tabulated signals; row k of `layout`: signal, first break, pieces, first coefficient, coefficients a piece."""

    layout: np.ndarray
    breaks: np.ndarray
    coefficients: np.ndarray


@compiled
def set_signals(work, tables, t, begin, stop):
    """Write every signal at t into the environment; [begin, stop] is the segment without jumps that t lies in."""
    if work.calls[SIGNALS, 0] != 0:
        work.environment[0] = t
        invoke(work.calls[SIGNALS, 0], work.calls[SIGNALS, 1], work.calls[SIGNALS, 2])
    for k in range(tables.layout.shape[0]):
        signal, first, pieces, place, length = tables.layout[k]
        breaks = tables.breaks[first : first + pieces + 1]
        upper = max(begin, stop)
        side = "left" if t >= upper else "right"
        if side == "left":
            piece = np.searchsorted(breaks, t, side="left") - 1
        else:
            piece = np.searchsorted(breaks, t, side="right") - 1
        piece = min(max(piece, 0), pieces - 1)
        u = t - breaks[piece]
        value = 0.0
        for j in range(length):
            value = value * u + tables.coefficients[place + piece * length + j]
        work.environment[FIRST_SIGNAL + signal] = value
