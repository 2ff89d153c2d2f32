"""Events that a user asks for: expressions or callables, with direction and terminal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.checks import one_number, whole_number
from dalembert.errors import ModelError, ShapeError
from dalembert.first_use import LaterModule
from dalembert.names import checked_name
from dalembert.types import Array

if TYPE_CHECKING:
    import casadi as ca

    from dalembert.simulate.equations.dae import DAE
else:
    ca = LaterModule("casadi")

# ----------------------------------------------------------------------------------------------------------------------
# Events as a user writes them: expressions or callables, with SciPy's attributes.


@dataclass(frozen=True, eq=False)
class Event:
    """A function whose zeros are wanted.

    Attributes
    ----------
    g
        An SX expression of the system's symbols, a `casadi.Function` of (t, q, v) with one number, which is compiled
        in, or a Python function of (t, q, v); of a `DAE` or a `Tableau`, and in `Problem`, of (t, x).
    terminal
        Whether (True) or after how many zeros (a number) the run stops; False: never.
    direction
        +1: only where g increases, -1: decreases, 0: both.
    name
        Appears in `run.events`; of a dict of events its key does.
    """

    g: Any
    terminal: bool | int = False
    direction: float = 0.0
    name: str = ""


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
        hashes = {s.element_hash() for s in ca.symvar(ca.vertcat(dae.x, dae.rates, dae.environment))}
        written = []
        for k, e in enumerate(events):
            g = ca.substitute(e.g, *replaced) if replaced[0].numel() else e.g
            strangers = [str(s) for s in ca.symvar(g) if s.element_hash() not in hashes]
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
        count, direction = whole_number(item.terminal, "terminal"), one_number(item.direction, "direction")
        if count < 0 or not np.isfinite(direction):
            raise ModelError(f"{item!r}: terminal is True, False or a number of zeros; direction -1, 0 or 1")
        return item
    if isinstance(item, ca.SX) or callable(item):
        return _event_of(item)
    raise ModelError(f"an event is an SX expression, a callable g(t, x) or an Event, not {type(item).__name__}")


def _event_of(item: Any) -> Event:
    """Read SciPy's attributes."""
    return _event(Event(item, getattr(item, "terminal", False), getattr(item, "direction", 0.0)))


# ----------------------------------------------------------------------------------------------------------------------
# Events of runs that know q and v: names, and how all of them are evaluated.


def watches(system: Any, events: Any) -> tuple[list[Event], ca.Function | None, list[Callable[..., Any]]]:
    """Return the events, and how to evaluate them: one compiled function, or a list of Python ones."""
    items = [_watch(system, name, watch) for name, watch in named_events(events)]
    for watch in items:
        checked_name(watch.name, "event")
    if all(isinstance(watch.g, ca.Function) for watch in items):
        return items, _together(system, items) if items else None, []
    return items, None, [_python(watch.g) for watch in items]


def named_events(events: Any) -> list[tuple[Any, Any]]:
    """Return what a user gives for `events=` as names and events."""
    if isinstance(events, Mapping):
        return list(events.items())
    several = (
        events if isinstance(events, Sequence) and not isinstance(events, ca.SX) else [] if events is None else [events]
    )
    return [(_name_of(e, k), e) for k, e in enumerate(several)]


def _name_of(event: Any, k: int) -> Any:
    if isinstance(event, ca.SX):
        return f"event {k}"
    name = getattr(event, "name", None)
    return (name() if callable(name) else name) or getattr(event, "__name__", f"event {k}")


def _watch(system: Any, name: Any, given: Any) -> Event:
    """Return an event with its name and a function of (t, q, v)."""
    if isinstance(given, Event):
        return Event(_watch(system, name, given.g).g, *_ways(name, given), str(name))
    if isinstance(given, ca.SX):
        return Event(_of_symbols(system, name, given), name=str(name))
    if isinstance(given, ca.Function):
        sizes = [given.numel_in(i) for i in range(given.n_in())]
        if sizes != [1, system.nq, system.nv] or given.n_out() != 1 or given.numel_out(0) != 1:
            raise ShapeError(
                f"event {name!r} must be a casadi.Function of t (1), q ({system.nq}), v ({system.nv}) with one "
                f"number; its inputs have {sizes}"
            )
        return Event(given, name=str(name))
    if not callable(given):
        raise ModelError(f"event {name!r} is {type(given).__name__}; give a function of (t, q, v)")
    return Event(given, *_ways(name, given), str(name))


def _of_symbols(system: Any, name: Any, g: ca.SX) -> ca.Function:
    """Return an expression of a Lagrangian's symbols as a function of (t, q, v), values of parameters put in."""
    lagrangian = getattr(system, "lagrangian", None)
    if lagrangian is None:
        raise ModelError(f"event {name!r} is an expression: give casadi.Function('event', [t, q, v], [expression])")
    s = lagrangian.symbols
    g = s.scalar(g, f"event {name!r}", "q v t parameters")
    t = s.t if s.t.numel() else ca.SX.sym("t")
    column = s.parameters.column
    g = ca.substitute(g, column, ca.SX(ca.DM(system.values))) if column.numel() else g
    return ca.Function("event", [t, s.q, s.v], [g])


def _ways(name: Any, given: Any) -> tuple[bool | int, int]:
    """Return SciPy's attributes `terminal` and `direction`, checked."""
    terminal, direction = getattr(given, "terminal", False), getattr(given, "direction", 0)
    numbers = int | float | np.integer | np.floating | np.bool_
    if not isinstance(terminal, numbers) or terminal != int(terminal) or terminal < 0:
        raise ModelError(f"event {name!r}: terminal={terminal!r} must be True, False or a number of zeros")
    if not isinstance(direction, numbers) or not np.isfinite(direction):
        raise ModelError(f"event {name!r}: direction={direction!r} must be 1 (rising), -1 (falling) or 0 (both)")
    return int(terminal), int(direction > 0) - int(direction < 0)


def _together(system: Any, found: list[Event]) -> ca.Function:
    t, q, v = ca.SX.sym("t"), ca.SX.sym("q", system.nq), ca.SX.sym("v", system.nv)
    values = ca.vertcat(*(watch.g(t, q, v) for watch in found))
    return ca.Function("events", [q, v, t], [ca.densify(values)], ["q", "v", "t"], ["event_values"])


def _python(function: Any) -> Callable[..., Any]:
    return function if not isinstance(function, ca.Function) else lambda t, q, v: float(function(t, q, v))
