"""Options of a simulation, checked once."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np

from dalembert.errors import ModelError
from dalembert.friction.law import is_number
from dalembert.simulate.samples import refuse_too_many
from dalembert.simulate.steppers import STEPPERS, Stepper

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Options:
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
        return 0.1 * self.duration * float(np.clip(np.sqrt(self.rtol), 1e-6, 1e-3))


def checked_options(
    duration: Any, stepper: Any, rtol: Any, atol: Any, step: Any, event_tolerance: Any, every: Any,
    max_step: Any = None, breaks: tuple[float, ...] = (),
) -> Options:  # fmt: skip
    """Refuse what cannot be meant."""
    if not isinstance(stepper, str) or stepper not in STEPPERS:
        near = get_close_matches(str(stepper), STEPPERS, n=1)
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
    return Options(
        float(duration), STEPPERS[stepper], float(rtol), float(atol), fixed, largest,
        float(event_tolerance), None if every is None else float(every), breaks,
    )  # fmt: skip
