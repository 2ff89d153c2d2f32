"""`method="events"`: each mode integrated, every transition located and resolved."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dalembert.checks import is_number
from dalembert.errors import ModelError, SolvabilityError
from dalembert.names import near_matches
from dalembert.simulate.events.record import MODES, EventRecord
from dalembert.simulate.limits import (
    CHATTER,
    CHATTER_TIME,
    COLLAPSE,
    GROW,
    LEAST_STEP,
    LONGEST_TURN,
    NOT_ZERO,
    SAFETY,
    SHORTEST_TURN,
    SHRINK,
)
from dalembert.simulate.samples import asked_time, bounds_between, refuse_too_many
from dalembert.types import Array
from tests.reference.dry.dynamics import HALF, Dynamics
from tests.reference.dry.explicit import STEPPERS, StepFailed, Stepper
from tests.reference.dry.locate import FoundTransition, ModeRate, Segment, first_transition, time_to_rest
from tests.reference.dry.transition import after_loss, arrived_together, modes_at_rest, on_manifold

# ----------------------------------------------------------------------------------------------------------------------
# The record of a run: states and modes at steps or asked times, and at events (both sides).


@dataclass
class Record:
    """Rows of (t, y, mode): of every step; or with `every` at start + k every, at the end and at events."""

    start: float
    end: float
    every: float | None
    t: list[float] = field(default_factory=list)
    y: list[Array] = field(default_factory=list)
    mode: list[Array] = field(default_factory=list)
    steps: int = 0
    transitions: int = 0
    transition_times: list[float] = field(default_factory=list)
    _next: int = 1
    _skipped: tuple[float, Array, Array] | None = None

    def add(self, t: float, y: Array, mode: Array) -> None:
        """Append a state."""
        self.t.append(t)
        self.y.append(y.copy())
        self.mode.append(mode.copy())
        self._skipped = None

    def step(self, t: float, y: Array, mode: Array) -> None:
        """Append the end of a step where it is wanted."""
        if self.every is None or t >= self.end or t == asked_time(self.start, self.end, self.every, self._next):
            self._next += self.every is not None
            self.add(t, y, mode)
        else:
            self._skipped = t, y.copy(), mode.copy()

    def before_event(self) -> None:
        """Append the end of the last step: an event happened there."""
        if self._skipped is not None:
            self.add(*self._skipped)

    def asked(self, before: float) -> Iterator[float]:
        """Yield the asked times up to a time (exclusive) that are not there yet."""
        while self.every is not None and (t := asked_time(self.start, self.end, self.every, self._next)) < before:
            self._next += 1
            if t > self.t[-1]:
                yield t

    def between(self, segment: Segment, end: float) -> None:
        """Append the asked times inside a step, up to its end (exclusive)."""
        for t in self.asked(end):
            y = segment.at(t - segment.t).copy()
            dynamics, n = segment.rate.dynamics, segment.rate.n
            y[:n], y[n : 2 * n] = on_manifold(dynamics, y[:n], y[n : 2 * n], t, segment.rate.mode)
            self.add(t, y, segment.rate.mode)


# ----------------------------------------------------------------------------------------------------------------------
# Options of a simulation, checked once.


@dataclass(frozen=True, eq=False)
class DryOptions:
    """Checked options; `step` is None where the step adapts."""

    duration: float
    stepper: Stepper
    rtol: float
    atol: float
    step: float | None
    largest_step: float
    event_tolerance: float
    every: float | None
    breaks: tuple[float, ...] = ()

    @property
    def time_scale(self) -> float:
        """A time in which forces may have turned, where nothing better is known; for the onset of slip in a plane."""
        return 0.1 * self.duration * float(np.clip(np.sqrt(self.rtol), SHORTEST_TURN, LONGEST_TURN))


def checked_options(
    duration: Any, stepper: Any, rtol: Any, atol: Any, step: Any, event_tolerance: Any, every: Any,
    max_step: Any = None, breaks: tuple[float, ...] = (),
) -> DryOptions:  # fmt: skip
    """Refuse what cannot be meant."""
    if not isinstance(stepper, str) or stepper not in STEPPERS:
        near = near_matches(stepper, STEPPERS)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ModelError(f"stepper={stepper!r} is not one of {', '.join(map(repr, STEPPERS))}{hint}")
    for value, what in ((duration, "duration"), (rtol, "rtol"), (atol, "atol"), (event_tolerance, "event_tolerance")):
        if not (is_number(value) and np.isfinite(value) and value > 0):
            raise ModelError(f"{what}={value!r} must be a finite number > 0")
    for value, what in ((step, "step"), (every, "every"), (max_step, "max_step")):
        if value is not None and not (is_number(value) and np.isfinite(value) and value > 0):
            raise ModelError(f"{what}={value!r} must be a finite number > 0, or None")
    if not STEPPERS[stepper].adaptive and step is None:
        raise ModelError(f"stepper={stepper!r} does not adapt its step: give step=")
    if step is not None and max_step is not None and step > max_step:
        raise ModelError(f"step={step!r} is longer than max_step={max_step!r}")
    refuse_too_many(float(duration), None if every is None else float(every))
    fixed = None if step is None else float(step)
    largest = min(float(duration) / 4.0, float(duration) if max_step is None else float(max_step))
    return DryOptions(
        float(duration), STEPPERS[stepper], float(rtol), float(atol), fixed, largest,
        float(event_tolerance), None if every is None else float(every), breaks,
    )  # fmt: skip


# ----------------------------------------------------------------------------------------------------------------------
# `method="events"`: integrate each mode, locate every transition, resolve it, go on.


@dataclass
class Run:
    """The state of a simulation on its way."""

    dynamics: Dynamics
    options: DryOptions
    record: Record
    t: float
    y: Array
    mode: Array
    h: float
    events: list[EventRecord] = field(default_factory=list)
    status: str = "completed"
    message: str = ""


def run_events(run: Run) -> None:
    """Integrate from run.t to the end; fill the record and the events."""
    start, end = run.t, run.t + run.options.duration
    stops = [t for t in run.options.breaks if start < t < end]
    kept = run.dynamics.independent(*_qv(run), run.t, run.mode)
    while run.t < end and run.status == "completed":
        rate = ModeRate(run.dynamics, run.mode, kept)
        begin, stop = max([start, *(t for t in stops if t <= run.t)]), min(t for t in [*stops, end] if t > run.t)
        run.dynamics.bounds = bounds_between(begin, stop, stops)
        try:
            segment = _step(run, rate, min(run.h, stop - run.t), stop)
            found = first_transition(run.dynamics, segment, run.options.event_tolerance)
            if found is None:
                _advance(run, segment, segment.h)
                continue
            _advance(run, segment, found.h)
            before = run.mode
            _transit(run, segment, found)
            _note(run, before)
            kept = run.dynamics.independent(*_qv(run), run.t, run.mode)
        except SolvabilityError as refused:
            run.status, run.message = "no solution", str(refused)
        if _chatters(run):
            who = sorted({event.contact for event in run.events[-CHATTER:]})
            run.status = "chattering"
            span = f"{CHATTER} events within {CHATTER_TIME:g} of the duration"
            run.message = f"{span} before t = {run.t:.9g} (Zeno): {', '.join(who)}"


def _qv(run: Run) -> tuple[Array, Array]:
    n = run.dynamics.n
    return run.y[:n], run.y[n : 2 * n]


def _step(run: Run, rate: ModeRate, h: float, stop: float) -> Segment:
    """Take one step within the tolerance, not beyond `stop`."""
    o, stepper = run.options, run.options.stepper
    k = rate(run.t, run.y)
    h = min(h, _half_way(run, k))
    while True:
        scale = o.atol + o.rtol * np.abs(run.y)
        try:
            new, ratio = stepper.step(rate, run.t, run.y, h, k, scale)
        except StepFailed:
            new, ratio = run.y, np.inf
        sound = np.isfinite(ratio) and np.isfinite(new).all() and not _turned_back(run, h, new)
        if o.step is not None and sound:
            run.h = o.step
            break
        if sound:
            factor = GROW if ratio == 0.0 else min(GROW, max(SHRINK, SAFETY * ratio ** (-1.0 / stepper.order)))
        else:
            factor, ratio = SHRINK, np.inf
        if ratio <= 1.0:
            run.h = min(h * factor, o.largest_step)
            break
        h *= factor
        if h <= COLLAPSE * max(abs(run.t), NOT_ZERO) or h < LEAST_STEP:
            raise SolvabilityError(f"the step at t = {run.t:.9g} became {h:.1e}: the motion has a singularity there")
    run.record.steps += 1
    last = stop if abs(run.t + h - stop) <= 4.0 * np.finfo(float).eps * abs(stop) else run.t + h
    return Segment(rate, stepper, run.t, run.y, k, h, new, scale, last)


def _half_way(run: Run, k: Array) -> float:
    """Return the longest step that the planes allow: half of the way to rest."""
    left = time_to_rest(run.dynamics, run.t, run.y, k, run.mode)
    left = left[left > run.options.event_tolerance]
    return HALF * float(left.min(initial=np.inf))


def _turned_back(run: Run, h: float, new: Array) -> bool:
    """Say whether a plane slides the other way at the end of a step: it has come to rest in between."""
    planes = run.dynamics.columns.plane & (run.mode != 0)
    if not planes.any():
        return False
    n, columns = run.dynamics.n, run.dynamics.columns
    before = run.dynamics.system.contact_terms(*_qv(run), run.t)[0]
    after = run.dynamics.system.contact_terms(new[:n], new[n : 2 * n], run.t + h)[0]
    return any(before[columns.of(i)] @ after[columns.of(i)] < 0.0 for i in np.flatnonzero(planes))


def _advance(run: Run, segment: Segment, h: float) -> None:
    """Record what lies within [0, h] and move there, on the manifold of the mode."""
    n = run.dynamics.n
    t = segment.last if h == segment.h else segment.t + h
    run.record.between(segment, t)
    y = segment.at(h).copy()
    y[:n], y[n : 2 * n] = on_manifold(run.dynamics, y[:n], y[n : 2 * n], t, run.mode)
    run.t, run.y = t, y
    if run.dynamics.columns.plane.any():
        run.dynamics.columns.get_going(run.dynamics.system.contact_terms(*_qv(run), t)[0])
    if h > 0.0:
        run.record.step(t, y, run.mode)


def _transit(run: Run, segment: Segment, found: FoundTransition) -> None:
    """Change the modes at a transition."""
    n, dynamics = run.dynamics.n, run.dynamics
    if found.detached:
        who = ", ".join(dynamics.names[i] for i in found.detached)
        run.status = "detached"
        run.message = f"at t = {run.t:.9g} the normal row of {who} would have to pull: the contact opens"
        return
    if found.lost and not found.arrived:
        q, v, mode = after_loss(dynamics, segment, found.h, run.options.time_scale)
    else:
        q, v = _qv(run)
        mode = arrived_together(dynamics, q, v, run.t, run.mode, found.arrived)
        q, v, mode = modes_at_rest(dynamics, q, v, run.t, mode, run.options.time_scale)
    run.y = run.y.copy()
    run.y[:n], run.y[n : 2 * n] = q, v
    run.mode = mode


def _note(run: Run, before: Array) -> None:
    """Write down whose mode changed, and the state on the other side."""
    run.record.before_event()
    for i in np.flatnonzero(before != run.mode):
        name = run.dynamics.names[i]
        run.events.append(EventRecord(float(run.t), name, int(i), MODES[int(before[i])], MODES[int(run.mode[i])]))
    run.record.add(run.t, run.y, run.mode)
    run.record.transitions += 1
    run.record.transition_times.append(run.t)


def _chatters(run: Run) -> bool:
    times = run.record.transition_times
    return len(times) >= CHATTER and times[-1] - times[-CHATTER] <= CHATTER_TIME * run.options.duration
