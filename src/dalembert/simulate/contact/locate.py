"""The first thing that happens in a step: a gap closes, a contact opens or comes to rest, a user's function is zero.

Every trial is a step of full order from the step's start, so what is found is as accurate as the steps.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dalembert.errors import SolvabilityError
from dalembert.simulate.contact.flow import Flow, Here, Shot
from dalembert.simulate.contact.phase import Motion, Phase
from dalembert.simulate.contact.watching import Watching
from dalembert.simulate.smooth.zeros import pieces
from dalembert.tableau.time.isolate_loops import LEAST

Array = np.ndarray

TRIALS = 200
"""Trials of a root at most; 6 to 12 are usual."""

OPENING = 1e-9
"""Contacts accelerate apart, or begin to slide, where they do by more than this part of the accelerations."""

WEAK = 1e-12
"""Forces below this part of the largest are none: whether such a contact pulls is for the laws to say."""

MOST_NODES = 200
"""Shorter steps in the search for the first zero of a user's function, at most."""

ROUNDING = 1e-6
"""Part of its way in a step by which a contact may seem to sink."""

INSIDE = 17
"""Points of a step at which the cubic of a gap is looked at."""


def root(value: Callable[[float], tuple[float, Shot]], low: float, ends: tuple[float, float], end: Shot,
         tolerance: float) -> Shot:  # fmt: skip
    """Return the first step after a zero in [low, end.h]; `ends`: a positive value at low, the value <= 0 at the end.

    Regula falsi (Illinois), every third trial a bisection.
    """
    high, shot = end.h, end
    g_low, g_high = max(ends[0], np.finfo(float).tiny), ends[1]
    side = 0
    for trial in range(TRIALS):
        if high - low <= tolerance or g_high == 0.0:
            break
        middle = high - g_high * (high - low) / (g_high - g_low)
        if trial % 3 == 2 or not low < middle < high:
            middle = 0.5 * (low + high)
        g, at = value(middle)
        if g > 0.0:
            low, g_low = middle, g
            g_high = g_high / 2 if side == 1 else g_high
            side = 1
        else:
            high, g_high, shot = middle, g, at
            g_low = g_low / 2 if side == -1 else g_low
            side = -1
    return shot


class Locator:
    """Looks into a step; steps that it returns are never longer than the one it was given."""

    def __init__(self, flow: Flow, watching: Watching) -> None:
        self.flow, self.phase, self.watching = flow, flow.phase, watching

    def tolerance(self, here: Here) -> float:
        """Return the width of a bracket in which an event is known, seconds."""
        return max(self.flow.settings.event_tolerance, 2e-16 * abs(here.t))

    # --- gaps ---------------------------------------------------------------------------------------------------

    def first_gap(self, here: Here, shot: Shot) -> Shot | None:
        """Return the step to the first gap that closes, or None."""
        open_ = np.flatnonzero(~self.phase.closed)
        if not open_.size:
            return None
        x0, x1 = here.motion.x, self.phase.geometry.state(shot.q, shot.v, here.t + shot.h)
        first: Shot | None = None
        for i in open_:
            rates = float(x0.W[3 * i] @ here.v), float(x1.W[3 * i] @ shot.v)
            found = self._gap_in(here, int(i), shot, (float(x0.gaps[i]), float(x1.gaps[i])), rates)
            if found is not None and (first is None or found.h < first.h):
                first = found
        return first

    def _gap(self, here: Here, i: int, h: float) -> tuple[float, Shot]:
        shot = self.flow.shot(here, h)
        return float(self.phase.geometry.gaps(shot.q)[i]), shot

    def _gap_in(
        self, here: Here, i: int, shot: Shot, gaps: tuple[float, float], rates: tuple[float, float]
    ) -> Shot | None:
        """Return the step at which gap i closes, or None where it stays open."""
        (g0, g1), end = gaps, shot
        if g1 >= 0.0:
            dip = _lowest(shot.h, gaps, rates)
            if dip is None:
                return None
            g1, end = self._gap(here, i, dip)
            if g1 >= 0.0:
                return None
        low, g_low = 0.0, g0
        if g0 <= 0.0:
            low, g_low, end, g1 = self._after_opening(here, i, end, g1)
            if low < 0.0 and rates[0] < 0.0:
                return Shot(0.0, here.q, here.v, 0.0, 0.0, 0.0)
            if low < 0.0:
                self._refuse_passage(here, i, gaps[1], abs(rates[1]) * shot.h)
                return None
        return root(lambda h: self._gap(here, i, h), low, (g_low, g1), end, self.tolerance(here))

    def _refuse_passage(self, here: Here, i: int, gap: float, way: float) -> None:
        """Refuse a step through the ground by a contact that opens too slowly for the opening to be seen."""
        if gap < -ROUNDING * way:
            name = self.phase.geometry.pairs[i].name
            raise SolvabilityError(
                f"at t = {here.t:.9g} s contact {name!r} opens by less than rounding and would go {-gap:.2g} m deep: "
                f'whether it strikes again cannot be told; method="moreau" steps over such contacts'
            )

    def _after_opening(self, here: Here, i: int, end: Shot, g1: float) -> tuple[float, float, Shot, float]:
        """Return (low, gap there, high, gap there) of a contact that has just opened: low < 0 where it never does."""
        low, least = end.h, 1e-9 * end.h
        while low > least:
            low *= 0.5
            g, shot = self._gap(here, i, low)
            if g > 0.0:
                return low, g, end, g1
            end, g1 = shot, g
        return -1.0, 0.0, end, g1

    # --- modes --------------------------------------------------------------------------------------------------

    def changed_mode(self, here: Here, shot: Shot) -> Shot | None:
        """Return the step at which a closed contact opens, begins to slide or comes to rest; None where all go on."""
        if not self.phase.closed.any():
            return None
        end = self._margin(here, shot)
        if end > 0.0:
            return None
        motion = here.motion
        start = margin(self.phase, motion, (motion.x.W @ here.v).reshape(-1, 3)[:, 1:])

        def value(h: float) -> tuple[float, Shot]:
            at = self.flow.shot(here, h)
            return self._margin(here, at), at

        return root(value, 0.0, (start, end), shot, max(1e-13, self.tolerance(here)))

    def _margin(self, here: Here, shot: Shot) -> float:
        found = self.phase.motion(shot.q, shot.v, here.t + shot.h)
        return margin(self.phase, found, (found.x.W @ shot.v).reshape(-1, 3)[:, 1:])

    # --- functions of the user ----------------------------------------------------------------------------------

    def first_watch(self, here: Here, shot: Shot) -> tuple[Shot, list[int]] | None:
        """Return the step to the first zero of a user's function, and which are zero there."""
        w, nothing = self.watching, Shot(0.0, here.q, here.v, 0.0, 0.0, 0.0)
        if not shot.h > 0.0:
            return None
        shots = {0.0: nothing, 1.0: shot}

        def values(part: float) -> Array:
            shots[part] = shots.get(part) or self.flow.shot(here, part * shot.h)
            return w.values(here.t + shots[part].h, shots[part].q, shots[part].v)

        opened = w.opened(values)
        if opened:
            return nothing, opened
        least = max(LEAST, self.tolerance(here) / shot.h)
        for low, high, start, ends, certain in pieces(values, least, MOST_NODES):
            w.unresolved += not certain
            crossed = w.crossed(ends)
            if crossed:
                return self._first_of(here, crossed, shots[low].h, start, shots[high], ends)
            w.remember(ends)
        return None

    def _first_of(
        self, here: Here, crossed: list[int], low: float, start: Array, end: Shot, ends: Array
    ) -> tuple[Shot, list[int]]:
        w, found = self.watching, {}
        for k in crossed:
            sign = w.signs[k]

            def value(h: float, k: int = k, sign: float = sign) -> tuple[float, Shot]:
                at = self.flow.shot(here, h)
                return float(sign * w.values(here.t + h, at.q, at.v)[k]), at

            found[k] = root(value, low, (sign * start[k], sign * ends[k]), end, self.tolerance(here))
        first = min(found.values(), key=lambda each: each.h)
        return first, [k for k in crossed if found[k].h <= first.h]


def margin(phase: Phase, motion: Motion, u: Array) -> float:
    """Return how far closed contacts are from a change: positive while they push, stick, and slide along as they do."""
    pull = WEAK * (1.0 + float(np.abs(motion.r).max(initial=0.0)))
    noise = OPENING * (1.0 + float(np.abs(motion.a).max(initial=0.0)))
    force, apart = motion.r.reshape(-1, 3), motion.contact.reshape(-1, 3)
    pushes = np.where(np.abs(force[:, 0]) <= pull, np.where(apart[:, 0] > noise, -apart[:, 0], np.inf), force[:, 0])
    along = np.where(phase.sliding, (u * phase.direction).sum(axis=1), np.inf)
    reserve = phase.mu * force[:, 0] - np.linalg.norm(force[:, 1:], axis=1)
    begins = np.linalg.norm(apart[:, 1:], axis=1)
    reserve = np.where(begins > noise, -begins, np.where(np.abs(reserve) <= pull, np.inf, reserve))
    sticks = ~phase.sliding & (phase.mu > 0.0) & (force[:, 0] > pull)
    holds = np.where(sticks, reserve, np.inf)
    return float(np.minimum(np.minimum(pushes, along), holds)[phase.closed].min(initial=np.inf))


def _lowest(h: float, gaps: tuple[float, float], rates: tuple[float, float]) -> float | None:
    """Return where the cubic through both ends is negative inside a step, or None."""
    u = np.linspace(0.0, 1.0, INSIDE)[1:-1]
    cubic = (1 + 2 * u) * (1 - u) ** 2 * gaps[0] + u * (1 - u) ** 2 * h * rates[0]
    cubic += u * u * (3 - 2 * u) * gaps[1] + u * u * (u - 1) * h * rates[1]
    k = int(np.argmin(cubic))
    return float(u[k] * h) if cubic[k] < 0.0 else None
