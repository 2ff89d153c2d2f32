"""Python inside the implicit steppers: events, a function after every step, and errors kept with their time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from dalembert.simulate.smooth.callbacks import called_event
from dalembert.tableau.time import Event

if TYPE_CHECKING:
    from dalembert.simulate.smooth.implicit_system import ImplicitSystem
    from dalembert.simulate.smooth.session import Session

Array = np.ndarray

BESIDE = 1e-3
"""Part of the step over which the sign of an event's slope is seen."""


class StiffCalls:
    """What one session calls back. After the first error everything is NaN, which ends the run at its last step."""

    system: ImplicitSystem

    def __init__(self, session: Session) -> None:
        self.session = session
        self.error: BaseException | None = None
        self.error_time = np.nan
        self.last_step = session.settings.start
        self.reading = False
        self._pending: tuple[float, Array, Array] | None = None

    def guarded(self, t: float, function: Callable[[], Any]) -> Any:
        """Call a user's function; keep its first error, and stop the run by raising it."""
        if self.error is not None and not self.reading:
            raise self.error
        try:
            return function()
        except BaseException as error:
            if self.error is None:
                self.error, self.error_time = error, t
            raise

    def read(self, t: float, function: Callable[[], Any], otherwise: Any) -> Any:
        """Read something off a finished piece, also after an error; what cannot be had is `otherwise`."""
        self.reading = True
        try:
            return self.guarded(t, function)
        except Exception:
            return otherwise
        finally:
            self.reading = False

    def events(self) -> list[Any]:
        """Return the events as the tableau takes them; a function after every step is an event that never happens."""
        s, n = self.session, self.session.mechanism.nv
        if s.event_function is not None and s.on_step is None:
            symbols = self.system.symbols
            values = s.event_function(self.system.place, symbols.v, symbols.t)
            return [Event(ca.densify(values)[k], each.terminal, each.direction) for k, each in enumerate(s.watches)]
        found = [Event(self._function(k), each.terminal, each.direction) for k, each in enumerate(s.watches)]
        if s.on_step is not None:
            found.append(Event(lambda t, x: self._stepped(t, x[:n], x[n : 2 * n])))
        return found

    def _function(self, k: int) -> Callable[[float, Array], float]:
        function, n = self.session.watches[k].function, self.session.mechanism.nv

        def value(t: float, x: Array) -> float:
            q, v = self.system.configuration(x[:n]), x[n : 2 * n].copy()
            return self.guarded(t, lambda: called_event(function, k, t, q, v))

        return value

    def _stepped(self, t: float, x: Array, v: Array) -> float:
        """Tell the step before: whether the last one counts is known when the next one is there."""
        if t > self.last_step:
            self._tell()
            self._pending, self.last_step = (t, x.copy(), v.copy()), t
        return 1.0

    def _tell(self) -> None:
        if self._pending is not None and self.session.on_step is not None:
            t, x, v = self._pending
            self._pending = None
            on_step, q = self.session.on_step, self.system.configuration(x)
            self.guarded(t, lambda: on_step(t, q, v))

    def finish(self, end: float) -> None:
        """Tell the last step of a block, unless an event ended the run before it."""
        pending, self._pending = self._pending, None
        if pending is not None and self.error is None and pending[0] <= end:
            self._pending = pending
            try:
                self._tell()
            except BaseException:
                return

    def slope(self, k: int, t: float, sol: Any) -> float:
        """Return the change of an event's function from before its zero to behind it."""
        n, watch = self.session.mechanism.nv, self.session.watches[k]
        i = int(np.clip(np.searchsorted(sol.t, t), 1, sol.t.size - 1)) if sol.t.size > 1 else 0
        reach = BESIDE * (sol.t[i] - sol.t[i - 1]) if sol.t.size > 1 else 0.0
        ends = []
        for at in (t - reach, t + reach):
            x = sol(at)
            ends.append(float(watch.function(at, self.system.configuration(x[:n]), x[n : 2 * n])))
        return ends[1] - ends[0]
