"""Events of the explicit stepper: zeros located by shorter steps of full order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.kernel.loops import invoke
from dalembert.simulate.events.isolate_loops import GRID, SPLIT, begin, insert, verdict
from dalembert.simulate.events.record import EventRecord
from dalembert.simulate.limits import TIME_ROUNDING
from dalembert.simulate.steppers import advance_loops as loop
from dalembert.simulate.steppers import explicit_loops as at
from dalembert.simulate.steppers.advance_loops import sample_end, sample_inside
from dalembert.simulate.steppers.explicit_loops import EVENTS, FINE, settle, stages
from dalembert.simulate.steppers.inside_loops import HIGH
from dalembert.types import Array

if TYPE_CHECKING:
    from dalembert.simulate.session import Session
    from dalembert.simulate.steppers.explicit import Explicit

# ----------------------------------------------------------------------------------------------------------------------
# Zeros of event functions inside a step, on steps of full order: the plain face of `isolate_loops`.


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


# ----------------------------------------------------------------------------------------------------------------------
# Events of the explicit stepper: located inside a step by shorter steps of full order, then stepped to.


def _at_start(stepper: Explicit) -> Array:
    return event_values(stepper.work, stepper.now.q, stepper.now.v, stepper.clock[at.T])


def note_signs(stepper: Explicit) -> None:
    """Remember the signs of all events at the start of the next step."""
    if stepper.signs.size:
        values = _at_start(stepper)
        if not stopped_by_non_finite(stepper.session, values, float(stepper.clock[at.T])):
            stepper.signs[:] = np.sign(values)


def _inside(stepper: Explicit, h: float) -> Array:
    """Return the event values after a step by h; its end stays in `work`. `KKT` steps in where code declines."""
    code = _step(stepper, h, lambda function, *given: function(*given))
    if code != FINE and stepper.callbacks.error is None:
        code = _step(stepper, h, stepper.careful)
    invoke(*stepper.work.calls[EVENTS])
    return stepper.work.event_values.copy() if code == FINE else np.full(stepper.signs.size, np.nan)


def _step(stepper: Explicit, h: float, call: Callable[..., int]) -> int:
    t, clock = stepper.clock[at.T], stepper.clock
    closing = stepper.counts[at.CLOSING] > 0
    code = call(
        stages, stepper.work, stepper.tables, stepper.pair, stepper.now, t, h, clock[at.BEGIN], clock[at.STOP], False,
        closing,
    )  # fmt: skip
    return call(settle, stepper.work, stepper.now, t + h) if code == FINE else code


def pass_events(stepper: Explicit) -> None:
    """Go to the first zero of the step, in the piece that the search has found, and note it."""
    from dalembert.simulate.events.isolate import locate_zero

    t, signs, zeros = float(stepper.clock[at.T]), stepper.signs, stepper.nodes.found
    if stepper.callbacks.error is not None:
        return
    if zeros[HIGH] == 0.0:
        _fire_start(stepper)
        return
    low, high = (float(part * stepper.clock[at.TRIED]) for part in zeros)
    ends = _inside(stepper, high)
    if stopped_by_non_finite(stepper.session, ends, t):
        return
    crossed = [k for k in range(signs.size) if signs[k] != 0.0 and signs[k] * ends[k] <= 0.0]
    hits = [k for k in crossed if stepper.session.watches[k].direction in (0, -int(signs[k]))]
    start = _inside(stepper, low) if low > 0.0 and hits else _at_start(stepper)
    tolerance = max(stepper.session.settings.event_tolerance, TIME_ROUNDING * abs(t))
    roots = {}
    for k in hits:
        begin = low if start[k] * signs[k] > 0.0 else 0.0
        roots[k] = locate_zero(
            lambda h, k=k: float(_inside(stepper, h)[k]), signs[k], begin, high, start[k], ends[k], tolerance
        )
    first = min(roots.values(), default=high)  # none: a zero of the polynomial that the motion just misses
    values = _inside(stepper, first)
    if not _go(stepper, first, bool(roots)):
        return
    fired = [k for k in sorted(roots) if roots[k] <= first]
    for k in fired:
        _fire(stepper, k, -float(signs[k]))
    for k in range(signs.size):
        signs[k] = np.sign(values[k]) if k in fired or values[k] != 0.0 else signs[k]


def _go(stepper: Explicit, h: float, event: bool) -> bool:
    """Move to the end of a step that is in `work`, with the samples on the way; say whether that went well."""
    s, end = stepper, stepper.clock[at.T] + h
    arguments = (s.work, s.tables, s.pair, s.now, s.clock, s.counts, s.limits, s.samples, end)
    code = sample_inside(*arguments) if s.limits.every > 0.0 or s.limits.inside > 0 else FINE
    while code == at.FULL:
        s._flush()
        code = sample_inside(*arguments)
    if code not in (FINE, at.FULL):
        code = s.careful(sample_inside, *arguments)
    if code == FINE:
        code = s.careful(loop.accept, s.work, s.tables, s.now, s.clock, s.counts, end)
    if code != FINE:
        if s.callbacks.error is None:
            s._give_up(code)
        return False
    s.counts[at.STEPS] += 1
    s.clock[at.ORIGIN], s.counts[at.FIXED] = end, 0
    if s.counts[at.SAMPLES] >= s.samples.t.size:
        s._flush()
    sample_end(s.work, s.samples, s.now, s.clock, s.counts, s.limits, h, end, event)
    return True


def _fire_start(stepper: Explicit) -> None:
    """Note the zeros at the start of the run, in the direction in which their functions leave them."""
    for k in np.flatnonzero(stepper.nodes.opened):
        _fire(stepper, int(k), stepper.nodes.opened[k])
    stepper.nodes.opened[:] = 0.0


def _fire(stepper: Explicit, k: int, direction: float) -> None:
    watch = stepper.session.watches[k]
    sense = "rising" if direction > 0 else "falling"
    stepper.session.events.append(EventRecord(float(stepper.clock[at.T]), watch.name, k, "", sense))
    if stepper.session.ends_with(k):
        stepper.session.stop("event", f"ended by {watch.name!r} at t = {stepper.clock[at.T]:.12g} s")
