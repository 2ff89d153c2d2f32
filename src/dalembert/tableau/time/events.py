"""Events as a user writes them: expressions or callables, with SciPy's attributes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from dalembert.errors import ModelError
from dalembert.tableau.time.dae import DAE
from dalembert.tableau.time.numbers import real, whole

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Event:
    """A function whose zeros are wanted.

    Attributes
    ----------
    g
        An SX expression of the system's symbols, or a callable g(t, x) -> number.
    terminal
        Whether (True) or after how many zeros (a number) the integration stops; False: never.
    direction
        +1: only where g increases, -1: decreases, 0: both.
    """

    g: Any
    terminal: bool | int = False
    direction: float = 0.0


@dataclass(frozen=True, eq=False)
class Events:
    """All events of a problem: compiled expressions, or callables called back; one kind per problem."""

    events: tuple[Event, ...]
    expressions: ca.SX | None
    callables: tuple[Callable[[float, Array], float], ...]

    @classmethod
    def of(cls, given: Any, dae: DAE, replaced: tuple[ca.SX, ca.SX]) -> Events:
        """Read what a user passes; known symbols of the system are replaced by their functions of time."""
        items = list(given) if isinstance(given, list | tuple) else [] if given is None else [given]
        events = tuple(_event(item) for item in items)
        symbolic = [isinstance(e.g, ca.SX) for e in events]
        if not any(symbolic):
            return cls(events, None, tuple(e.g for e in events))
        if not all(symbolic):
            raise ModelError("events are all expressions or all callables, not a mixture")
        known = {s.element_hash() for s in ca.symvar(ca.vertcat(dae.x, dae.rates, dae.environment))}
        written = []
        for k, e in enumerate(events):
            g = ca.substitute(e.g, *replaced) if replaced[0].numel() else e.g
            strangers = [str(s) for s in ca.symvar(g) if s.element_hash() not in known]
            if strangers or g.numel() != 1:
                raise ModelError(
                    f"event {k} must be one expression of unknowns, their rates, what is known and time; it has "
                    f"{', '.join(strangers) or f'shape {g.shape}'}"
                )
            written.append(g)
        return cls(events, ca.vertcat(*written), ())

    def __len__(self) -> int:
        return len(self.events)

    @property
    def directions(self) -> Array:
        """Directions, (events,)."""
        return np.array([float(e.direction) for e in self.events])

    @property
    def counts(self) -> Array:
        """How many zeros of each event end the integration; -1: none does."""
        return np.array([int(e.terminal) if e.terminal else -1 for e in self.events], np.int64)


def _event(item: Any) -> Event:
    if isinstance(item, Event):
        if not (isinstance(item.g, ca.SX) or callable(item.g)):
            raise ModelError(f"an event is an SX expression or a callable g(t, x), not {type(item.g).__name__}")
        count, direction = whole("terminal", item.terminal), real("direction", item.direction)
        if count < 0 or not np.isfinite(direction):
            raise ModelError(f"{item!r}: terminal is True, False or a number of zeros; direction -1, 0 or 1")
        return item
    if isinstance(item, ca.SX) or callable(item):
        return _event_of(item)
    raise ModelError(f"an event is an SX expression, a callable g(t, x) or an Event, not {type(item).__name__}")


def _event_of(item: Any) -> Event:
    """Read SciPy's attributes."""
    return _event(Event(item, getattr(item, "terminal", False), getattr(item, "direction", 0.0)))
