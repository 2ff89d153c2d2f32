"""The first event in a step: gaps, reactions, sliding speeds, functions of the user."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dalembert.errors import ModelError, SolvabilityError
from dalembert.kernel import Kernel
from dalembert.simulate.events.isolate import TRIALS, locate_zero
from dalembert.simulate.events.isolate_loops import GRID
from dalembert.simulate.events.record import EventRecord
from dalembert.simulate.limits import LEAST_PIECE
from dalembert.simulate.session import Session
from dalembert.simulate.steppers.explicit_events import pieces
from tests.reference.contact.bounds import MotionBounds
from tests.reference.contact.isolate import GapPoint, first_zero
from tests.reference.contact.mode_dynamics import (
    ContactState,
    Inside,
    ModeDynamics,
    ModeIntegrator,
    ModeMotion,
    TrialStep,
)

# ----------------------------------------------------------------------------------------------------------------------
# Functions of the user whose zeros are wanted, in runs with contacts.


Array = np.ndarray


class Watching:
    """Evaluates them, remembers their signs, notes their zeros; a jump of an impact over zero is no zero."""

    def __init__(self, session: Session) -> None:
        self.session, self.watches = session, session.watches
        self.kernel: Any = None if session.event_function is None else Kernel(session.event_function, width=1)
        self.signs = np.zeros(len(self.watches))
        self.begins, self.unresolved = True, 0

    def values(self, t: float, q: Array, v: Array) -> Array:
        """Return the values at a state, (k,)."""
        if self.kernel is not None:
            return np.atleast_1d(self.kernel(q, v, np.array([t])))
        return np.array([self._value(k, t, q, v) for k in range(len(self.watches))])

    def _value(self, k: int, t: float, q: Array, v: Array) -> float:
        try:
            value = float(self.session.event_callables[k](t, q.copy(), v.copy()))
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
            raise ModelError(f"the event {self.watches[k].name!r} failed at t = {t:.9g} s: {said}") from error
        if not np.isfinite(value):
            raise ModelError(f"the event {self.watches[k].name!r} is {value} at t = {t:.9g} s; it must be finite")
        return value

    def opened(self, values: Callable[[float], Array]) -> list[int]:
        """Return which are zero at the start of the run and count there, in the direction in which they leave it.

        `values` gives all at a part of the first step.
        """
        on_a_zero, self.begins = self.begins and (self.signs == 0.0).any(), False
        if not on_a_zero:
            return []
        found = []
        soon = values(float(GRID[1]))
        for k in np.flatnonzero((self.signs == 0.0) & (soon != 0.0)):
            way = int(np.sign(soon[k]))
            wanted = self.watches[k].direction in (0, way)
            self.signs[k] = -way if wanted else way
            found += [int(k)] if wanted else []
        return found

    def crossed(self, start: Array, ends: Array) -> list[int]:
        """Return which change their sign as wanted, from the remembered signs to the values at the end of a step.

        One that is zero at both ends stays there, as the speed of what rests: its zero was noted when it came.
        """
        return [
            k for k, one in enumerate(self.watches)
            if self.signs[k] != 0.0 and self.signs[k] * ends[k] <= 0.0 and one.direction in (0, -int(self.signs[k]))
            and (start[k] != 0.0 or ends[k] != 0.0)
        ]  # fmt: skip

    def note(self, t: float, q: Array, v: Array, fired: list[int] | None = None) -> None:
        """Remember the signs at a state; those that fired have changed theirs."""
        if self.watches:
            values = self.values(t, q, v)
            values[fired or []] = -self.signs[fired or []]
            self.remember(values)

    def remember(self, values: Array) -> None:
        """Remember the signs of values; a zero keeps the sign before it."""
        self.signs = np.where(values == 0.0, self.signs, np.sign(values))

    def fire(self, t: float, fired: list[int]) -> None:
        """Note zeros; a terminal one ends the run."""
        for k in fired:
            watch = self.watches[k]
            self.session.events.append(EventRecord(t, watch.name, k, "", "rising" if self.signs[k] < 0 else "falling"))
            if self.session.ends_with(k):
                self.session.stop("event", f"ended by {watch.name!r} at t = {t:.12g} s")


# ----------------------------------------------------------------------------------------------------------------------
# The first thing that happens in a step: a gap closes, a contact opens or comes to rest, a user's function is zero.
#
# Every trial is a step of full order from the step's start, so what is found is as accurate as the steps.


OPENING = 1e-9
"""Contacts accelerate apart, or begin to slide, where they do by more than this part of the accelerations."""

WEAK = 1e-12
"""Forces below this part of the largest are none: whether such a contact pulls is for the laws to say."""

MOST_NODES = 200
"""Shorter steps in the search for the first zero of a user's function, at most."""

ROUNDING = 1e-6
"""Part of its way in a step by which a contact may seem to sink."""

DIP = 0.2
"""A margin below this part of its largest in a step may have been below zero between two stages."""

ENDS = 1e-6
"""Stages nearer to the ends of a step than this part of it are its ends."""

GRAZING = 1e-11
"""A gap that closes by less than this and opens again within a step is none, metres: below the accuracy of steps."""

LEAST_PART = 0.02
"""A step of which less than this part is certain after all looks ends the run: it would take for ever."""

MOST_LOOKS = 2000
"""Looks into one step for the gap of one pair at most; a bar that turns needs some ten a turn."""

CLOSING = 1e-9
"""Contacts that touch and approach by more than this part of their speed strike at once."""

UNCERTAIN = (
    "at t = {t:.9g} s it is not certain after {looks} looks whether contact {name!r} closes: it moves along the "
    'surface at no distance, and no force closes it; method="moreau" steps over such contacts'
)

POLYNOMIAL = 4.0
"""A gap on the polynomial of a step that is below zero by less than this many tolerances is open."""

EARLY = 1e-3
"""Part of a step at which a contact that opens without velocity is looked at first."""


def step_to_zero(
    value: Callable[[float], tuple[float, TrialStep]],
    low: float,
    ends: tuple[float, float],
    end: TrialStep,
    tolerance: float,
) -> TrialStep:
    """Return the step to right behind a zero in [low, end.h]; `ends`: positive value at low, value <= 0 at the end."""
    shots = {end.h: end}

    def at(h: float) -> float:
        g, shots[h] = value(h)
        return g

    return shots[locate_zero(at, 1.0, low, end.h, *ends, tolerance)]


class _Looks:
    """Gaps and their rates within a step, for all pairs: on the step's polynomial, and by steps of full order."""

    def __init__(self, locator: Locator, here: ContactState, shot: TrialStep) -> None:
        self.here, self.shot, self.flow, self.guards = here, shot, locator.flow, locator.bounds.guards
        self.geometry = locator.phase.geometry
        self.inside: Inside | None = None
        self.seen: dict[float, tuple[Array, Array]] = {0.0: self.guards(here.motion.x, here.v)}
        self.shots: dict[float, TrialStep] = {0.0: TrialStep(0.0, here.q, here.v, 0.0, 0.0, 0.0), shot.h: shot}
        self.exact: dict[float, tuple[Array, Array]] = {}
        self.places: dict[float, Array] = {}

    def at(self, i: int, s: float) -> GapPoint:
        """Return the gap of pair i and its rate after s."""
        if s in self.shots:
            return self.exactly(i, s)
        if s not in self.seen:
            if self.inside is None:
                self.inside = Inside(self.flow, self.here, self.shot)
            q, v = self.inside.at(s)
            self.places[s] = q
            self.seen[s] = self.guards(self.geometry.state(q, v, self.here.t + s), v)
        gaps, rates = self.seen[s]
        return GapPoint(s, float(gaps[i]), float(rates[i]))

    def in_one_cell(self, i: int, a: float, b: float, speed: float) -> bool:
        """Return whether a point over a heightfield is certain to stay over one cell from a to b."""
        q = self.places[a] if a in self.places else self.shots[a].q
        field: Any = self.geometry.pairs[i].ground
        return speed * (b - a) < field.room(self.geometry.foot(q, i))

    def exactly(self, i: int, s: float) -> GapPoint:
        """Return the same after a step by s."""
        if s not in self.exact:
            shot = self.shots.get(s) or self.flow.shot(self.here, s)
            self.shots[s] = shot
            self.exact[s] = self.guards(self.geometry.state(shot.q, shot.v, self.here.t + s), shot.v)
        gaps, rates = self.exact[s]
        return GapPoint(s, float(gaps[i]), float(rates[i]))


class Locator:
    """Looks into a step; steps that it returns are never longer than the one it was given."""

    def __init__(self, flow: ModeIntegrator, watching: Watching) -> None:
        self.flow, self.phase, self.watching = flow, flow.phase, watching
        self.bounds = MotionBounds(self.phase.geometry.mechanism, self.phase.geometry.pairs)

    def tolerance(self, here: ContactState) -> float:
        """Return the width of a bracket in which an event is known, seconds."""
        return max(self.flow.settings.event_tolerance, 2e-16 * abs(here.t))

    # --- gaps ---------------------------------------------------------------------------------------------------

    def first_gap(self, here: ContactState, shot: TrialStep) -> tuple[TrialStep, bool]:
        """Return the step to the first gap that closes and True; else the step, as far as it is certain, and False."""
        open_ = np.flatnonzero(~self.phase.closed)
        if not open_.size or not shot.stages:
            return shot, False
        looks, strikes = _Looks(self, here, shot), False
        L, K = self.bounds.of(here, shot)
        for i in open_:
            shot, struck = self._gap_in(looks, int(i), shot, (float(L[i]), float(K[i])), strikes)
            strikes = strikes or struck
        return shot, strikes

    def _gap_in(
        self, looks: _Looks, i: int, shot: TrialStep, bounds: tuple[float, float], strikes: bool
    ) -> tuple[TrialStep, bool]:
        """Return the part of a step in which gap i stays open, and whether it closes, or another one, at its end."""
        here, start, end = looks.here, looks.at(i, 0.0), looks.at(i, shot.h)
        if start.g <= 0.0:
            K = np.inf if i in self.bounds.points else bounds[1]
            opened = None if start.r < -CLOSING * (1.0 + bounds[0]) else self._opened(looks, i, start, end, K)
            if opened is None and start.r < 0.0:
                return TrialStep(0.0, here.q, here.v, 0.0, 0.0, 0.0), True
            if opened is None:
                self._refuse_passage(here, i, end.g, abs(end.r) * end.s)
                return shot, strikes
            start = opened
        width, settings = self.tolerance(here), self.flow.settings
        slack = POLYNOMIAL * (settings.atol + settings.rtol)

        def look(s: float) -> GapPoint:
            point = looks.at(i, s)
            return point if s in looks.shots else point._replace(g=point.g + slack)

        L, K = bounds
        speed = L / self.bounds.steep.get(i, 1.0)  # of the point: its height changes faster where the ground is steep

        def bend(a: GapPoint, b: GapPoint) -> float:
            return K if looks.in_one_cell(i, a.s, b.s, speed) else np.inf

        curvature = bend if i in self.bounds.points else K
        for _ in range(TRIALS):
            found = first_zero(look, start, end, L, curvature, width, GRAZING * self.flow.phase.levers[i], MOST_LOOKS)
            if not found.found:
                return self._as_far_as(looks, i, found.high.s, shot, strikes)
            high = looks.exactly(i, found.high.s)
            if high.g <= 0.0:
                return self._located(looks, i, start, found.low, high, width), True
            start = high  # the polynomial was below zero, the step is not
        return self._as_far_as(looks, i, start.s, shot, strikes)

    @staticmethod
    def _located(looks: _Looks, i: int, start: GapPoint, low: GapPoint, high: GapPoint, width: float) -> TrialStep:
        """Return the step to the zero in a bracket; its lower end may be below zero by the error of the polynomial."""
        low = low if low.s in looks.shots else looks.exactly(i, low.s)
        low = low if low.g > 0.0 else start

        def value(s: float) -> tuple[float, TrialStep]:
            return looks.exactly(i, s).g, looks.shots[s]

        return step_to_zero(value, low.s, (low.g, high.g), looks.shots[high.s], width)

    def _as_far_as(self, looks: _Looks, i: int, h: float, shot: TrialStep, strikes: bool) -> tuple[TrialStep, bool]:
        """Return the part of a step up to h, within which it is certain that gap i stays open."""
        if h >= shot.h:
            return shot, strikes
        if h <= LEAST_PART * shot.h:
            name = self.phase.geometry.pairs[i].name
            raise SolvabilityError(UNCERTAIN.format(t=looks.here.t, name=name, looks=MOST_LOOKS))
        looks.exactly(i, h)
        return looks.shots[h], False

    def _opened(self, looks: _Looks, i: int, start: GapPoint, end: GapPoint, K: float) -> GapPoint | None:
        """Return the first place at which a contact that has just opened is seen to be open; None: it never is.

        With a rate r it stays open up to 2 r / K; one that opens by its acceleration alone is looked at early in the
        step, then later.
        """
        sure = start.r > 0.0 and np.isfinite(K)
        if sure and K * end.s < 2.0 * start.r:
            return GapPoint(0.0, np.finfo(float).tiny, start.r)
        s = 1.9 * start.r / K if sure else EARLY * end.s
        while s < end.s:
            point = looks.at(i, s)
            if point.g > 0.0:
                return point
            s *= 2.0
        return end if end.g > 0.0 else None

    def _refuse_passage(self, here: ContactState, i: int, gap: float, way: float) -> None:
        """Refuse a step through the ground by a contact that opens too slowly for the opening to be seen."""
        if gap < -ROUNDING * way:
            name = self.phase.geometry.pairs[i].name
            raise SolvabilityError(
                f"at t = {here.t:.9g} s contact {name!r} opens by less than rounding and would go {-gap:.2g} m deep: "
                f'whether it strikes again cannot be told; method="moreau" steps over such contacts'
            )

    # --- modes --------------------------------------------------------------------------------------------------

    def changed_mode(self, here: ContactState, shot: TrialStep) -> TrialStep | None:
        """Return the step at which a closed contact opens, begins to slide or comes to rest; None where all go on."""
        if not self.phase.closed.any():
            return None

        def value(h: float) -> tuple[float, TrialStep]:
            at = self.flow.shot(here, h)
            return self._margin(here, at), at

        start, low = float(margins(self.phase, here.motion, here.v).min()), 0.0
        for h in self._doubtful(shot):
            inside, at = value(h)
            if inside <= 0.0:
                return step_to_zero(value, low, (start, inside), at, max(1e-13, self.tolerance(here)))
            start, low = inside, h
        end = self._margin(here, shot)
        if end > 0.0:
            return None
        return step_to_zero(value, low, (start, end), shot, max(1e-13, self.tolerance(here)))

    def _doubtful(self, shot: TrialStep) -> list[float]:
        """Return times inside of a step at which a margin may dip below zero and come back: its stages say where.

        Stages are states of low order: a margin that falls there below `DIP` of its largest and rises again is looked
        at, by steps of full order, where it is least and where the parabola through the stages around is.
        """
        if len(shot.stages) < 3:
            return []
        stages = sorted(shot.stages, key=lambda stage: stage.h)
        h = np.array([stage.h for stage in stages])
        values = np.array([margins(self.phase, stage.motion, stage.v) for stage in stages])
        middle = (h > ENDS * shot.h) & (h < (1.0 - ENDS) * shot.h)
        found: set[float] = set()
        for guard in values.T[np.isfinite(values).any(axis=0)]:
            k = int(np.argmin(guard))
            low = DIP * guard[np.isfinite(guard)].max()
            if guard[k] >= low or not middle[k]:
                continue
            found |= {float(h[j]) for j in np.flatnonzero((guard < low) & middle)}
            around = [int(np.flatnonzero(h < h[k])[-1]), k, int(np.flatnonzero(h > h[k])[0])]
            if np.isfinite(guard[around]).all():
                c2, c1, _ = np.polyfit(h[around] - h[k], guard[around], 2)
                found |= {float(np.clip(h[k] - 0.5 * c1 / c2, h[around[0]], h[around[2]]))} if c2 > 0.0 else set()
        return sorted(each for each in found if 0.0 < each < shot.h)

    def _margin(self, here: ContactState, shot: TrialStep) -> float:
        found = self.phase.motion(shot.q, shot.v, here.t + shot.h)
        return float(margins(self.phase, found, shot.v).min())

    # --- functions of the user ----------------------------------------------------------------------------------

    def first_watch(self, here: ContactState, shot: TrialStep) -> tuple[TrialStep, list[int]] | None:
        """Return the step to the first zero of a user's function, and which are zero there."""
        w, nothing = self.watching, TrialStep(0.0, here.q, here.v, 0.0, 0.0, 0.0)
        if not shot.h > 0.0:
            return None
        shots = {0.0: nothing, 1.0: shot}

        def values(part: float) -> Array:
            shots[part] = shots.get(part) or self.flow.shot(here, part * shot.h)
            return w.values(here.t + shots[part].h, shots[part].q, shots[part].v)

        opened = w.opened(values)
        if opened:
            return nothing, opened
        least = max(LEAST_PIECE, self.tolerance(here) / shot.h)
        for low, high, start, ends, certain in pieces(values, least, MOST_NODES):
            w.unresolved += not certain
            crossed = w.crossed(start, ends)
            if crossed:
                return self._first_of(here, crossed, shots[low].h, start, shots[high], ends)
            w.remember(ends)
        return None

    def _first_of(
        self, here: ContactState, crossed: list[int], low: float, start: Array, end: TrialStep, ends: Array
    ) -> tuple[TrialStep, list[int]]:
        w, found = self.watching, {}
        for k in crossed:
            sign = w.signs[k]

            def value(h: float, k: int = k, sign: float = sign) -> tuple[float, TrialStep]:
                at = self.flow.shot(here, h)
                return float(sign * w.values(here.t + h, at.q, at.v)[k]), at

            found[k] = step_to_zero(value, low, (sign * start[k], sign * ends[k]), end, self.tolerance(here))
        first = min(found.values(), key=lambda each: each.h)
        return first, [k for k in crossed if found[k].h <= first.h]


def opening(phase: ModeDynamics, acceleration: Array) -> Array:
    """Return the accelerations of gaps (k,) up to which they are none."""
    lengths = np.where(phase.turns, phase.units.length, 1.0)
    largest = float(np.abs(acceleration * lengths).max(initial=0.0)) / phase.units.length
    return OPENING * (phase.units.rate**2 + largest) * phase.levers


def margins(phase: ModeDynamics, motion: ModeMotion, v: Array) -> Array:
    """Return how far contacts are from a change, (3 k,): positive while closed ones push, stick, slide along as now."""
    u = (motion.x.W @ v).reshape(-1, 3)[:, 1:]
    pull = WEAK * (phase.units.force + float(np.abs(motion.r).max(initial=0.0)))
    noise = opening(phase, motion.a)
    force, apart = motion.r.reshape(-1, 3), motion.contact.reshape(-1, 3)
    pushes = np.where(np.abs(force[:, 0]) <= pull, np.where(apart[:, 0] > noise, -apart[:, 0], np.inf), force[:, 0])
    along = np.where(phase.sliding, (u * phase.direction).sum(axis=1), np.inf)
    reserve = phase.mu * force[:, 0] - np.linalg.norm(force[:, 1:], axis=1)
    begins = np.linalg.norm(apart[:, 1:], axis=1)
    reserve = np.where(begins > noise, -begins, np.where(np.abs(reserve) <= pull, np.inf, reserve))
    sticks = ~phase.sliding & (phase.mu > 0.0) & (force[:, 0] > pull)
    holds = np.where(sticks, reserve, np.inf)
    return np.where(phase.closed, np.stack([pushes, along, holds]), np.inf).ravel()
