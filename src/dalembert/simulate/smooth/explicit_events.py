"""Events of the explicit stepper: located inside a step by shorter steps of full order, then stepped to."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from dalembert.simulate.event import Event
from dalembert.simulate.smooth import advance_loops as loop
from dalembert.simulate.smooth import loop_state as at
from dalembert.simulate.smooth.step_loops import EVENTS, FINE, settle, stages
from dalembert.simulate.smooth.zeros import event_values, first_zero, stopped_by_non_finite
from dalembert.tableau.time.invoke_loops import invoke

if TYPE_CHECKING:
    from dalembert.simulate.smooth.explicit import Explicit

Array = np.ndarray


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
    """Locate the first zero inside the step, go there, note it."""
    h, signs = float(stepper.clock[at.TRIED]), stepper.signs.copy()
    end_values = _inside(stepper, h)
    if stopped_by_non_finite(stepper.session, end_values, float(stepper.clock[at.T])):
        return
    crossed = [k for k in range(signs.size) if signs[k] != 0.0 and signs[k] * end_values[k] <= 0.0]
    wanted = [k for k in crossed if stepper.session.watches[k].direction in (0, -int(signs[k]))]
    if not wanted:
        for k in crossed:
            stepper.signs[k] = np.sign(end_values[k])
        return
    start = _at_start(stepper)
    tolerance = max(stepper.session.settings.event_tolerance, 2e-16 * abs(stepper.clock[at.T]))
    roots = {
        k: first_zero(lambda h, k=k: float(_inside(stepper, h)[k]), signs[k], h, start[k], end_values[k], tolerance)
        for k in wanted
    }
    first = min(roots.values())
    values = _inside(stepper, first)
    loop.accept(stepper.work, stepper.tables, stepper.now, stepper.clock, stepper.counts, stepper.clock[at.T] + first)
    stepper.counts[at.STEPS] += 1
    stepper.clock[at.ORIGIN], stepper.counts[at.FIXED] = stepper.clock[at.T], 0
    stepper.work.q[:] = stepper.now.q
    stepper.write(first)
    for k in sorted(roots):
        if roots[k] <= first:
            _fire(stepper, k, signs[k])
    stepper.signs[:] = [np.sign(end_values[k]) if k in roots and roots[k] <= first else np.sign(values[k]) or signs[k]
                     for k in range(signs.size)]  # fmt: skip


def _fire(stepper: Explicit, k: int, sign: float) -> None:
    watch = stepper.session.watches[k]
    words = ("rising", "falling") if sign < 0 else ("falling", "rising")
    stepper.session.events.append(Event(float(stepper.clock[at.T]), watch.name, k, "", words[0]))
    if watch.terminal:
        stepper.session.stop("event", f"ended by {watch.name!r} at t = {stepper.clock[at.T]:.12g} s")
