"""One accepted step in one mode, and what can be asked of it: any state inside, to the stepper's full accuracy.

y = (q, v, work, heat): work done by friction on the system, and heat, its part lost in sliding (never negative). A
state inside a step is found by a shorter step from the same start, so the error of an event time is that of the
method, not that of an interpolant; the cubic Hermite polynomial is used only to look for changes of sign.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from dalembert.simulate.dynamics import Dynamics
from dalembert.simulate.steppers import Stepper

Array = np.ndarray


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
