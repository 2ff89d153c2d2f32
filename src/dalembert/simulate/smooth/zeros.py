"""Zeros of event functions inside a step, on shorter steps of full order."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.simulate.smooth.step_loops import EVENTS
from dalembert.tableau.time.invoke_loops import invoke

if TYPE_CHECKING:
    from dalembert.simulate.smooth.session import Session

Array = np.ndarray

BISECTIONS = 200
"""Halvings of a step in which an event is located, at most."""


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


def first_zero(
    value: Callable[[float], float], sign: float, h: float, at_start: float, at_end: float, tolerance: float
) -> float:
    """Return the step behind the zero of `value` between 0 and h, by a bracketing method (Illinois).

    Parameters
    ----------
    value
        The event function after a step.
    sign
        Its sign at the start, where rounding may say otherwise.
    """
    low, high, side = 0.0, h, 0
    f_low = at_start if at_start * sign > 0.0 else sign * np.finfo(float).tiny
    f_high = at_end
    for _ in range(BISECTIONS):
        if high - low <= tolerance or f_high == 0.0:
            break
        middle = high - f_high * (high - low) / (f_high - f_low)
        if not low < middle < high:
            middle = 0.5 * (low + high)
        f = value(middle)
        if f * sign > 0.0:
            low, f_low = middle, f
            f_high = f_high / 2 if side == 1 else f_high
            side = 1
        else:
            high, f_high = middle, f
            f_low = f_low / 2 if side == -1 else f_low
            side = -1
    return high
