"""Python functions that the compiled loop calls back: inputs and events given as callables.

An exception cannot pass through compiled code: it is kept, NaN is written, the step fails, and the exception is told
with the partial result.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from dalembert.checks import called
from dalembert.errors import ModelError
from dalembert.kernel.loops import SIGNATURE
from dalembert.simulate.equations.dae import DAE
from dalembert.simulate.equations.signals import FIRST_SIGNAL, Signals
from dalembert.simulate.events.asked import Events

Array = np.ndarray


class InputCallbacks:
    """C functions around Python callables; they read and write the arrays they are attached to."""

    def __init__(self, signals: Signals, events: Events, dae: DAE) -> None:
        self.signals, self.events, self.dae = signals, events, dae
        self.error: BaseException | None = None
        self.addresses: dict[str, int] = {}
        self._kept: list[Any] = []
        self.work: Any = None
        if signals.callables or signals.states:
            self._make("signals", self._set_signals)
        if events.callables:
            self._make("events", self._set_events)

    def __enter__(self) -> InputCallbacks:
        return self

    def __exit__(self, *_: object) -> None:
        self._kept.clear()
        self.work = None

    def _make(self, code: str, function: Callable[[], None]) -> None:
        def guarded(table: Any, first: int, stop: int, scratch: Any) -> None:
            try:
                function()
            except BaseException as error:
                self.error = self.error or error

        self._kept.append(SIGNATURE(guarded))
        self.addresses[code] = ctypes.cast(self._kept[-1], ctypes.c_void_p).value or 0

    def _set_signals(self) -> None:
        environment = self.work.environment
        t = float(environment[0])
        for signal, function in self.signals.callables:
            environment[FIRST_SIGNAL + signal] = np.nan
            value = called(f"known {self.signals.symbols[signal]}", function, t)
            if not np.isfinite(value):
                raise ModelError(f"known {self.signals.symbols[signal]} is {value} at t = {t:g}")
            environment[FIRST_SIGNAL + signal] = value
        for signal, _ in self.signals.states:
            environment[FIRST_SIGNAL + signal] = np.nan
        self.signals.at_state(t, self.work.x.copy(), environment[FIRST_SIGNAL:])

    def _set_events(self) -> None:
        values, t, x = self.work.event_values, float(self.work.environment[0]), self.work.x.copy()
        for k, function in enumerate(self.events.callables):
            values[k] = np.nan
            values[k] = called(f"event {k}", function, t, x)
