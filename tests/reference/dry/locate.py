"""The first transition inside a step."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from dalembert.errors import SolvabilityError
from dalembert.simulate.events.isolate import locate_zero
from dalembert.simulate.limits import NEAR
from dalembert.types import Array
from tests.reference.dry.dynamics import Dynamics
from tests.reference.dry.explicit import Stepper
from tests.reference.dry.limits import CLEARLY_SLIDES

# ----------------------------------------------------------------------------------------------------------------------
# One accepted step in one mode, and what can be asked of it: any state inside, to the stepper's full accuracy.
#
# y = (q, v, work, heat): work done by friction on the system, and heat, its part lost in sliding (never negative). A
# state inside a step is found by a shorter step from the same start, so the error of an event time is that of the
# method, not that of an interpolant; the cubic Hermite polynomial is used only to look for changes of sign.


class ModeRate:
    """y' in one mode."""

    def __init__(self, dynamics: Dynamics, mode: Array, kept: Array) -> None:
        self.dynamics, self.mode, self.kept, self.n = dynamics, mode, kept, dynamics.n

    def __call__(self, t: float, y: Array) -> Array:
        """Return y'."""
        n = self.n
        q, v = y[:n], y[n : 2 * n]
        x = self.dynamics.terms(q, v, t)
        motion = self.dynamics.motion(x, self.mode, self.kept, (q, v, t))
        slip = (self.mode != 0)[self.dynamics.columns.owner]
        heat = -motion.T[slip] @ x.velocity[slip]
        return np.concatenate([v, motion.a, [v @ motion.friction, heat]])


@dataclass(eq=False)
class Segment:
    """A step from (t, y) by h in the mode of `rate`, to the time `last`: t + h but for rounding at a break point."""

    rate: ModeRate
    stepper: Stepper
    t: float
    y: Array
    k: Array
    h: float
    end: Array
    scale: Array
    last: float
    cache: dict[float, Array] = field(default_factory=dict)

    def at(self, h: float) -> Array:
        """Return y(t + h), 0 <= h, by a step of its own."""
        if h == 0.0:
            return self.y
        if h == self.h:
            return self.end
        if h not in self.cache:
            self.cache[h] = self.stepper.step(self.rate, self.t, self.y, h, self.k, self.scale)[0]
        return self.cache[h]

    def sketch(self, h: float) -> Array:
        """Return y(t + h) on the cubic through both ends, with their slopes."""
        s = h / self.h
        slope = self.rate(self.t + self.h, self.end) if not hasattr(self, "_slope") else self._slope
        self._slope = slope
        return (
            (1 + 2 * s) * (1 - s) ** 2 * self.y
            + s * (1 - s) ** 2 * self.h * self.k
            + s * s * (3 - 2 * s) * self.end
            + s * s * (s - 1) * self.h * slope
        )


# ----------------------------------------------------------------------------------------------------------------------
# Find the first transition inside a step.
#
# Slip ends where the relative velocity in the direction of sliding, s xi', comes down to zero: a root; in a plane where
# what is left to rest takes less than the tolerance (`dynamics.py`). Stick ends where the forces can hold no longer:
# the largest relative acceleration psi that the exact friction problem gives the sticking contacts, zero before, grows
# from zero after. Bisection comes near; a parabola through psi on the right gives the digits.


PROBES = 8
"""Points inside a step where signs are looked at."""


@dataclass(frozen=True)
class FoundTransition:
    """A transition h after the start of the step: `arrived` contacts came to rest; `lost` says that stick ended."""

    h: float
    arrived: tuple[int, ...] = ()
    lost: bool = False
    detached: tuple[int, ...] = ()


def first_transition(dynamics: Dynamics, segment: Segment, tolerance: float) -> FoundTransition | None:
    """Return the earliest transition of a step, or None."""
    candidates = [
        found
        for found in (
            _arrival(dynamics, segment, tolerance),
            _rest_in_a_plane(dynamics, segment, tolerance),
            _loss(dynamics, segment, tolerance),
            _detachment(dynamics, segment, tolerance),
        )
        if found is not None
    ]
    return min(candidates, key=lambda found: found.h) if candidates else None


def sliding_speeds(dynamics: Dynamics, segment: Segment, y: Array, h: float) -> Array:
    """Return s xi' of all contacts (0 for sticking ones); of a plane its speed."""
    n = dynamics.n
    velocity = dynamics.system.contact_terms(y[:n], y[n : 2 * n], segment.t + h)[0]
    return dynamics.columns.speeds(velocity, segment.rate.mode)


def _arrival(dynamics: Dynamics, segment: Segment, tolerance: float) -> FoundTransition | None:
    """Return the first contact that comes to rest."""
    mode = segment.rate.mode
    straight = np.flatnonzero((mode != 0) & ~dynamics.columns.plane)
    if not straight.size:
        return None
    hs = np.linspace(0.0, segment.h, PROBES + 2)
    speeds = np.array([sliding_speeds(dynamics, segment, segment.sketch(h), h) for h in hs])
    speeds[0] = sliding_speeds(dynamics, segment, segment.y, 0.0)
    speeds[-1] = sliding_speeds(dynamics, segment, segment.end, segment.h)
    best, who = np.inf, -1
    for i in straight:
        h = _root(dynamics, segment, hs, speeds[:, i], int(i), tolerance)
        if h is not None and h < best:
            best, who = h, int(i)
    return None if who < 0 else FoundTransition(best, (who,))


def _rest_in_a_plane(dynamics: Dynamics, segment: Segment, tolerance: float) -> FoundTransition | None:
    """Return the planes that are at rest at the start of the step, but for less than the tolerance."""
    left = time_to_rest(dynamics, segment.t, segment.y, segment.k, segment.rate.mode)
    resolution = 8.0 * np.finfo(float).eps * abs(segment.t)
    who = tuple(np.flatnonzero(left <= max(tolerance, resolution)).tolist())
    return FoundTransition(0.0, who) if who else None


def time_to_rest(dynamics: Dynamics, t: float, y: Array, k: Array, mode: Array) -> Array:
    """Return how long each plane that slides needs until it rests, at the rate k = y'; infinite for others."""
    if not np.any(dynamics.columns.plane & (mode != 0)):
        return np.full(dynamics.m, np.inf)
    n = dynamics.n
    velocity, rows, drift, _ = dynamics.system.contact_terms(y[:n], y[n : 2 * n], t)
    return dynamics.columns.time_to_rest(velocity, rows @ k[n : 2 * n] + drift, mode)


def _root(dynamics: Dynamics, segment: Segment, hs: Array, speeds: Array, i: int, tolerance: float) -> float | None:
    """Return where one contact comes to rest: after it was clearly sliding, or at once if it never gets going."""
    clear = CLEARLY_SLIDES * np.abs(speeds).max(initial=0.0)
    below = np.flatnonzero(speeds < -clear)
    if not below.size or (below[0] == 0 and speeds.size == 1):
        return None
    last = int(below[0])
    above = np.flatnonzero(speeds[:last] > clear)
    if not above.size:
        return 0.0
    low, high = float(hs[above[-1]]), float(hs[last])

    def value(h: float) -> float:
        return float(sliding_speeds(dynamics, segment, segment.at(h), h)[i])

    while value(low) <= 0.0 and low > tolerance:
        low *= 0.5
    ends = value(low), value(high)
    if ends[1] >= 0.0 or ends[0] <= 0.0:
        return None if ends[1] >= 0.0 else low
    return locate_zero(value, 1.0, low, high, *ends, tolerance)


def _loss(dynamics: Dynamics, segment: Segment, tolerance: float) -> FoundTransition | None:
    """Return where the sticking contacts can no longer hold."""
    if not (segment.rate.mode == 0).any():
        return None
    hs = np.linspace(0.0, segment.h, PROBES // 2 + 2)[1:]
    for low, high in zip([0.0, *hs[:-1]], hs, strict=True):
        y = segment.end if high == segment.h else segment.sketch(high)
        if let_go(dynamics, segment, y, high) > 0.0:
            return FoundTransition(_edge(dynamics, segment, low, high, tolerance), lost=True)
    return None


def let_go(dynamics: Dynamics, segment: Segment, y: Array, h: float) -> float:
    """Return psi, the largest relative acceleration of the sticking contacts under the exact law: 0 if they hold."""
    return float(np.abs(onset(dynamics, segment, y, h)).max(initial=0.0))


def onset(dynamics: Dynamics, segment: Segment, y: Array, h: float) -> Array:
    """Return the relative accelerations of all contacts under the exact law, zero where they stick or slide."""
    n, mode, t = dynamics.n, segment.rate.mode, segment.t + h
    q, v = y[:n], y[n : 2 * n]
    x = dynamics.terms(q, v, t)
    state, found = (q, v, t), np.zeros(dynamics.m)
    try:
        motion = dynamics.motion(x, mode, segment.rate.kept, state)
        if np.all(dynamics.reserve(x, motion, mode, state) > 0.0):
            return found
    except SolvabilityError:
        pass
    answer = dynamics.resolved(x, mode, state)
    if not answer.ok:
        raise SolvabilityError(f"at t = {t:.9g}: {answer.status.message}\n{answer.report}", answer.report)
    for name in answer.sets.about_to_slip:
        i = dynamics.names.index(name)
        along = answer.contact_acceleration[dynamics.columns.of(i)]
        found[i] = along[0] if along.size == 1 else np.sqrt(along @ along)
    return found


def _edge(dynamics: Dynamics, segment: Segment, low: float, high: float, tolerance: float) -> float:
    """Return the last h at which the contacts hold, psi(low) = 0 < psi(high).

    The bracket is halved until it is `NEAR` of the step; there psi is so smooth that the parabola through three
    points on its right side gives the edge to rounding, where psi itself is too small to be told from zero.
    """
    if let_go(dynamics, segment, segment.at(high), high) == 0.0:
        return high
    if low == 0.0 and let_go(dynamics, segment, segment.y, 0.0) > 0.0:
        return 0.0
    near = max(NEAR * segment.h, tolerance)
    while high - low > near:
        middle = 0.5 * (low + high)
        if let_go(dynamics, segment, segment.at(middle), middle) > 0.0:
            high = middle
        else:
            low = middle
    points = high + near * np.array([0.0, 1.0, 2.0])
    values = np.array([onset(dynamics, segment, segment.at(h), h) for h in points])
    i = int(np.argmax(np.abs(values[0])))
    left = _extrapolated(values[:, i]) * near
    return float(min(max(high - left, low), high)) if np.isfinite(left) else low


def _extrapolated(psi: Array) -> float:
    """Return how far left of 0 the parabola through (0, psi0), (1, psi1), (2, psi2) has its zero."""
    curve = 0.5 * (psi[2] - 2.0 * psi[1] + psi[0])
    slope = psi[1] - psi[0] - curve
    inside = slope * slope - 4.0 * curve * psi[0]
    if slope == 0.0 or inside < 0.0:
        return np.nan
    return 2.0 * psi[0] / (slope + np.sign(slope) * np.sqrt(inside))


def _detachment(dynamics: Dynamics, segment: Segment, tolerance: float) -> FoundTransition | None:
    """Return where a unilateral normal row would have to pull."""
    rows = [i for i, one in enumerate(dynamics.contacts) if getattr(one, "unilateral", False)]
    if not rows:
        return None

    def push(h: float, y: Array) -> Array:
        n = dynamics.n
        q, v, t = y[:n], y[n : 2 * n], segment.t + h
        x = dynamics.terms(q, v, t)
        lam = dynamics.motion(x, segment.rate.mode, segment.rate.kept, (q, v, t)).lam
        return np.array([-lam[dynamics.normals[i]] for i in rows])

    end = push(segment.h, segment.end)
    if np.all(end >= 0.0):
        return None
    i = int(np.argmin(end))
    start = push(0.0, segment.y)
    if start[i] <= 0.0:
        return FoundTransition(0.0, detached=(rows[i],))
    ends = float(start[i]), float(end[i])
    h = locate_zero(lambda h: float(push(h, segment.at(h))[i]), 1.0, 0.0, segment.h, *ends, tolerance)
    return FoundTransition(h, detached=(rows[i],))
