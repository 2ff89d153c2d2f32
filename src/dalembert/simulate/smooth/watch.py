"""Events that a user asks for: zeros of functions of the state, with direction and whether they end the run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from dalembert.errors import ModelError, ShapeError

if TYPE_CHECKING:
    from dalembert.model.mechanism import Mechanism


@dataclass(frozen=True)
class Watch:
    """One function whose zeros are wanted.

    Attributes
    ----------
    function
        g(t, q, v): a Python function, or a casadi.Function with one number (compiled in).
    name
        Appears in `run.events`.
    terminal
        Whether the run ends there (True), or after how many zeros (a number).
    direction
        +1: only where g rises through zero; -1: only where it falls; 0: both.
    """

    function: Any
    name: str
    terminal: bool | int = False
    direction: int = 0


def watches(mechanism: Mechanism, events: Any) -> tuple[list[Watch], ca.Function | None, list[Callable[..., Any]]]:
    """Return the events, and how to evaluate them: one compiled function, or a list of Python ones."""
    found = [_watch(mechanism, name, each) for name, each in _named(events)]
    if all(isinstance(each.function, ca.Function) for each in found):
        return found, _together(mechanism, found) if found else None, []
    return found, None, [_python(each.function) for each in found]


def _named(events: Any) -> list[tuple[str, Any]]:
    if isinstance(events, Mapping):
        return list(events.items())
    several = events if isinstance(events, Sequence) else [] if events is None else [events]
    return [(getattr(e, "name", None) or getattr(e, "__name__", f"event {k}"), e) for k, e in enumerate(several)]


def _watch(mechanism: Mechanism, name: Any, given: Any) -> Watch:
    if isinstance(given, Watch):
        if not (isinstance(given.function, ca.Function) or callable(given.function)):
            raise ModelError(f"event {given.name!r} is {type(given.function).__name__}; give a function of (t, q, v)")
        if isinstance(given.function, ca.Function):
            _watch(mechanism, given.name, given.function)
        return Watch(given.function, given.name, *_ways(given.name, given))
    if isinstance(given, ca.Function):
        sizes = [given.numel_in(i) for i in range(given.n_in())]
        if sizes != [1, mechanism.nq, mechanism.nv] or given.n_out() != 1 or given.numel_out(0) != 1:
            raise ShapeError(
                f"event {name!r} must be a casadi.Function of t (1), q ({mechanism.nq}), v ({mechanism.nv}) with one "
                f"number; its inputs have {sizes}"
            )
        return Watch(given, str(name() if callable(name) else name))
    if not callable(given):
        raise ModelError(f"event {name!r} is {type(given).__name__}; give a function of (t, q, v)")
    return Watch(given, str(name), *_ways(name, given))


def _ways(name: Any, given: Any) -> tuple[bool | int, int]:
    """Return SciPy's attributes `terminal` and `direction`, checked."""
    terminal, direction = getattr(given, "terminal", False), getattr(given, "direction", 0)
    numbers = int | float | np.integer | np.floating | np.bool_
    if not isinstance(terminal, numbers) or terminal != int(terminal) or terminal < 0:
        raise ModelError(f"event {name!r}: terminal={terminal!r} must be True, False or a number of zeros")
    if not isinstance(direction, numbers) or not np.isfinite(direction):
        raise ModelError(f"event {name!r}: direction={direction!r} must be 1 (rising), -1 (falling) or 0 (both)")
    return int(terminal), int(direction > 0) - int(direction < 0)


def _together(mechanism: Mechanism, found: list[Watch]) -> ca.Function:
    t, q, v = ca.SX.sym("t"), ca.SX.sym("q", mechanism.nq), ca.SX.sym("v", mechanism.nv)
    values = ca.vertcat(*(each.function(t, q, v) for each in found))
    return ca.Function("events", [q, v, t], [ca.densify(values)], ["q", "v", "t"], ["event_values"])


def _python(function: Any) -> Callable[..., Any]:
    return function if not isinstance(function, ca.Function) else lambda t, q, v: float(function(t, q, v))
