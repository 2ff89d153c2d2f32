"""Functions of the user whose zeros are wanted, in runs with contacts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dalembert.errors import ModelError
from dalembert.kernel import Kernel
from dalembert.simulate.event import Event
from dalembert.simulate.smooth.session import Session
from dalembert.tableau.time.isolate_loops import GRID

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

    def crossed(self, ends: Array) -> list[int]:
        """Return which change their sign as wanted, from the remembered signs to the values at the end of a step."""
        return [
            k for k, one in enumerate(self.watches)
            if self.signs[k] != 0.0 and self.signs[k] * ends[k] <= 0.0 and one.direction in (0, -int(self.signs[k]))
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
            self.session.events.append(Event(t, watch.name, k, "", "rising" if self.signs[k] < 0 else "falling"))
            if self.session.ends_with(k):
                self.session.stop("event", f"ended by {watch.name!r} at t = {t:.12g} s")
