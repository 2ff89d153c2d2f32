"""Impacts that pile up: infinitely many in finite time, recognised by their intervals and completed.

Intervals d_k between impacts of a contact that shrink by a constant factor p end at t + d p / (1 - p). Under constant
forces and
Newton's restitution the factor is exactly e (a bouncing ball); elsewhere it becomes constant as they shrink.
"""

from __future__ import annotations

import numpy as np

Array = np.ndarray

KNOWN = 5
"""Impacts that are looked at."""

STEADY = 1e-3
"""Factors of successive intervals may differ by this much."""

SHORT = 1e-4
"""What is left until the limit, seconds: up to there the contact is taken as closed from now on."""


class Zeno:
    """Remembers the impacts of every contact; `rests` are limits that were completed and are still ahead, or inf."""

    def __init__(self, contacts: int) -> None:
        self.times: list[list[float]] = [[] for _ in range(contacts)]
        self.rests = np.full(contacts, np.inf)

    def as_array(self) -> Array:
        """Return all that is remembered, (contacts, KNOWN + 1), NaN where there is nothing; last the times of rest."""
        found = np.full((len(self.times), KNOWN + 1), np.nan)
        for i, times in enumerate(self.times):
            found[i, : len(times)] = times
        found[:, KNOWN] = self.rests
        return found

    @classmethod
    def from_array(cls, array: Array) -> Zeno:
        """Return what `as_array` was made of."""
        zeno = cls(len(array))
        zeno.times = [[float(t) for t in row[:KNOWN] if np.isfinite(t)] for row in array]
        zeno.rests = array[:, KNOWN].copy() if array.shape[1] > KNOWN else zeno.rests  # not in files of older versions
        return zeno

    def struck(self, i: int, t: float, completed: bool) -> None:
        """Note an impact; a completed sequence is forgotten."""
        self.times[i] = [] if completed else [*self.times[i][1 - KNOWN :], t]

    def limits(self, t: float) -> Array:
        """Return per contact the time at which its impacts would end if it were struck now, or 0."""
        return np.array([limit([*times[1 - KNOWN :], t]) for times in self.times])


def limit(times: list[float]) -> float:
    """Return the limit of a sequence of impacts if it is a steady one that ends soon, or 0."""
    if len(times) < KNOWN:
        return 0.0
    intervals = np.diff(times)
    if not (intervals > 0.0).all():
        return 0.0
    factors = intervals[1:] / intervals[:-1]
    p = float(factors[-1])
    left = float(intervals[-1]) * p / (1.0 - p) if p < 1.0 else np.inf
    if p >= 1.0 or np.ptp(factors) > STEADY or left > SHORT:
        return 0.0
    return times[-1] + left
