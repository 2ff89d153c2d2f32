"""Zeros of event functions inside a step, on steps of full order: the plain face of `isolate_loops`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.simulate.smooth.step_loops import EVENTS
from dalembert.tableau.time.invoke_loops import invoke
from dalembert.tableau.time.isolate_loops import GRID, SPLIT, begin, insert, narrow, next_trial, verdict

if TYPE_CHECKING:
    from dalembert.simulate.smooth.session import Session

Array = np.ndarray

TRIALS = 200
"""Steps of the search for a zero in its bracket, at most."""

UNRESOLVED = (
    "in {count} steps an event function changes too often to be followed, zeros may be missing: a function of rounding "
    "alone, or set max_step below half its period"
)
"""What a run says of events that it could not isolate."""


def event_values(work: Any, q: Array, v: Array, t: float) -> Array:
    """Return the values of all event functions at a state."""
    work.q[:], work.v[:], work.environment[0] = q, v, t
    invoke(*work.calls[EVENTS])
    return work.event_values.copy()


def stopped_by_non_finite(session: Session, values: Array, t: float) -> bool:
    """End a run whose event functions are no longer numbers."""
    bad = np.flatnonzero(~np.isfinite(values))
    if bad.size:
        name = session.watches[int(bad[0])].name
        session.stop("no solution", f"event {name!r} is {values[bad[0]]} between t = {t:.9g} s and the next step")
    return bool(bad.size)


def say_unresolved(session: Session, count: int) -> None:
    """Say that events may be missing."""
    if count:
        session.message = f"{session.message}; {UNRESOLVED.format(count=count)}".removeprefix("; ")


def pieces(
    values: Callable[[float], Array], least: float, most: int
) -> Iterator[tuple[float, float, Array, Array, bool]]:
    """Yield pieces (low, high, g at low, g at high, certain) of [0, 1], from left to right, that have at most one zero.

    Parameters
    ----------
    values
        All event functions at a place, (k,).
    least
        Pieces that short are not split.
    most
        Nodes at most; pieces that would need more are not certain.
    """
    s, g = np.empty(most + 1), np.empty((most + 1, np.size(first := values(0.0))))
    count = GRID.size
    s[:count], g[0] = GRID, first
    for j in range(1, count):
        g[j] = values(float(s[j]))
    i, scale = 0, np.empty(g.shape[1])
    begin(g, count, scale)
    while i < count - 1:
        piece = verdict(s, g, count, i, least)
        if piece >= 0 and count < most:
            at = float(s[piece] + SPLIT * (s[piece + 1] - s[piece]))
            insert(s, g, count, piece, at, values(at), scale)
            count += 1
            continue
        yield float(s[i]), float(s[i + 1]), g[i].copy(), g[i + 1].copy(), piece < 0
        i += 1


def first_zero(
    value: Callable[[float], float], sign: float, low: float, high: float, at_low: float, at_high: float,
    tolerance: float,
) -> float:  # fmt: skip
    """Return the place behind the zero of `value` between `low` and `high`, within the tolerance.

    Parameters
    ----------
    value
        The event function after a step.
    sign
        Its sign at `low`, where rounding may say otherwise.
    """
    tiny = sign * np.finfo(float).tiny
    bracket = np.array([low, at_low if at_low * sign > 0.0 else tiny, high, at_high, 0.0])
    for _ in range(TRIALS):
        if bracket[2] - bracket[0] <= tolerance or bracket[3] == 0.0:
            break
        middle = float(next_trial(bracket))
        narrow(bracket, middle, value(middle))
    return float(bracket[2])
