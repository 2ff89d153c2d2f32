"""The stepper's scalars, and how a run may end."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

DONE, STOPPED, TOO_MANY_STEPS, FAILED_ERROR_TEST, FAILED_CONVERGENCE, FAILED_NON_FINITE = range(6)
ROW_OPENED, INTERRUPTED, EVENT_NOT_FINITE = range(6, 9)
RUNNING = -1

_REAL = ("t", "t_low", "t_high", "t_stop", "h", "h_used", "h_first", "h_collapsed", "h_factored")
_REAL += ("shift", "shift_factored", "rate", "quality", "trusted", "t_avoided", "gain", "span")
_WHOLE = (
    "order",
    "order_used",
    "order_new",
    "same",
    "phase",
    "opening",
    "fresh",
    "solver",
    "force_dense",
    "iterations_last",
    "worst",
    "status",
    "steps",
    "evaluations",
    "factorizations",
    "iterations",
    "error_failures",
    "newton_failures",
    "repairs",
    "relaxations",
    "widened",
    "unresolved",
)
STATE = np.dtype([*((name, "f8") for name in _REAL), *((name, "i8") for name in _WHOLE), ("order_counts", "i8", 8)])
"""Names as in `bdf.py`; the last ten are counts. Inputs are evaluated between t_low and t_high, inside the jumps
that a segment ends at; `opening` is 1 until the first step of a run is done, 2 where signs of events are taken anew.
"""


class Option(NamedTuple):
    """What a user may set, and what the DAE says of its unknowns."""

    rtol: float
    atol: np.ndarray
    power: np.ndarray
    tested: np.ndarray
    lasting: np.ndarray  # places of tested unknowns weighed by h, see `manifold_loops.py`
    tested_count: float
    share: float
    shift_range: float
    relax: np.ndarray  # (2, rows): of the run, and for trouble
    least: float
    most_step: float
    first_step: float
    most_order: int
    most_steps: int
    directions: np.ndarray
    terminal: np.ndarray
    keyboard: np.ndarray  # numbers of signals that arrived, see `interruptible.py`


def new_state() -> np.recarray:
    """Return a state of zeros."""
    return np.zeros(1, STATE).view(np.recarray)
