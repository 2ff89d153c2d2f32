"""`method="events"`: integrate each mode, locate every transition, resolve it, go on."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from dalembert.errors import SolvabilityError
from dalembert.simulate.dynamics import Dynamics
from dalembert.simulate.event import MODES, Event
from dalembert.simulate.locate import Found, first_transition, time_to_rest
from dalembert.simulate.manifold import on_manifold
from dalembert.simulate.options import Options
from dalembert.simulate.planes import HALF
from dalembert.simulate.record import Record
from dalembert.simulate.samples import bounds_between
from dalembert.simulate.segment import ModeRate, Segment
from dalembert.simulate.steppers import StepFailed
from dalembert.simulate.transition import after_loss, arrived_together, modes_at_rest

Array = np.ndarray

SAFETY, LEAST, MOST = 0.9, 0.2, 6.0
"""Step control: part of the optimal step, and how much a step may shrink or grow at once."""

CHATTER = 30
"""This many events within `CHATTER_TIME` of the duration are an accumulation (Zeno): the run ends there and says so."""

CHATTER_TIME = 1e-7


@dataclass
class Run:
    """The state of a simulation on its way."""

    dynamics: Dynamics
    options: Options
    record: Record
    t: float
    y: Array
    mode: Array
    h: float
    events: list[Event] = field(default_factory=list)
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
            factor = MOST if ratio == 0.0 else min(MOST, max(LEAST, SAFETY * ratio ** (-1.0 / stepper.order)))
        else:
            factor, ratio = LEAST, np.inf
        if ratio <= 1.0:
            run.h = min(h * factor, o.largest_step)
            break
        h *= factor
        if h <= 16.0 * np.finfo(float).eps * max(abs(run.t), 1e-300) or h < 1e-280:
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


def _transit(run: Run, segment: Segment, found: Found) -> None:
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
        run.events.append(Event(float(run.t), name, int(i), MODES[int(before[i])], MODES[int(run.mode[i])]))
    run.record.add(run.t, run.y, run.mode)
    run.record.transitions += 1
    run.record.transition_times.append(run.t)


def _chatters(run: Run) -> bool:
    times = run.record.transition_times
    return len(times) >= CHATTER and times[-1] - times[-CHATTER] <= CHATTER_TIME * run.options.duration
