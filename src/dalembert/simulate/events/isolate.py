"""The digits of a zero between two signs, for plain searches: functions of the user in explicit and variational steps.

Compiled searches take the same trials (`isolate_loops.next_trial`, `narrow`).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dalembert.simulate.events.isolate_loops import narrow, next_trial

TRIALS = 200
"""Trials in a bracket at most; 6 to 12 are usual, and bisections alone need 60."""

PATIENCE = 3
"""A bracket that is not halved in so many trials is bisected: jumps and flat ends hold up the Illinois method."""


def locate_zero(
    value: Callable[[float], float], sign: float, low: float, high: float, at_low: float, at_high: float,
    tolerance: float,
) -> float:  # fmt: skip
    """Return the place right behind a zero between `low` and `high`: `high`, or where `value` was asked for last there.

    Parameters
    ----------
    value
        The function.
    sign
        Its sign before the zero, which rounding may hide at `low`.
    at_low, at_high
        Its values at the ends; the second has the other sign, or is zero.
    tolerance
        Width of the bracket in which the zero is known at the end; not below rounding.
    """
    tiny = sign * np.finfo(float).tiny
    bracket = np.array([low, at_low if at_low * sign > 0.0 else tiny, high, at_high, 0.0])
    widths = [np.inf] * PATIENCE
    for _ in range(TRIALS):
        low, high = float(bracket[0]), float(bracket[2])
        if high - low <= tolerance or bracket[3] == 0.0:
            break
        slow = high - low > 0.5 * widths[-PATIENCE]
        widths.append(high - low)
        middle = 0.5 * (low + high) if slow else float(next_trial(bracket))
        middle = min(max(middle, low + 0.5 * tolerance), high - 0.5 * tolerance)  # both ends come near, not one
        if not low < middle < high:
            break
        narrow(bracket, middle, value(middle))
    return float(bracket[2])
