"""Known signals in time: numbers, expressions, tables, polynomials, Python functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Number
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dalembert.checks import called, floats, one_number
from dalembert.errors import ModelError, ShapeError, advised
from dalembert.first_use import LaterModule
from dalembert.kernel.bisection import count_below, count_up_to
from dalembert.kernel.loops import compiled, invoke
from dalembert.simulate.limits import JUMP_OF_TABLE, NOT_ZERO, SAME_BREAK
from dalembert.types import Array

if TYPE_CHECKING:
    import casadi as ca
else:
    ca = LaterModule("casadi")

# ----------------------------------------------------------------------------------------------------------------------
# Inputs as functions of time, evaluated inside the loop: piecewise polynomials, or a callback for Python's.
#
# A table gives signal k on piece i as sum_j coefficients[place + i * length + j] (t - breaks[i])^(length - 1 - j),
# SciPy's order. At a declared jump inputs of every kind take their limit from within the segment: they are evaluated at
# the next number inside.


SIGNALS = 6
FIRST_SIGNAL = 2
"""Signals follow t and c in the environment."""


class Tables(NamedTuple):
    """All tables; row k of `layout`: signal, first break, pieces, first coefficient, coefficients a piece."""

    layout: np.ndarray
    breaks: np.ndarray
    coefficients: np.ndarray


@compiled
def set_signals(calls, environment, tables, t, low, high):
    """Write t, kept between `low` and `high`, and every signal there into the environment."""
    t = min(max(t, low), high)
    environment[0] = t
    if calls[SIGNALS, 0] != 0:
        invoke(calls[SIGNALS, 0], calls[SIGNALS, 1], calls[SIGNALS, 2])
    for k in range(tables.layout.shape[0]):
        signal, first, pieces, place, length = tables.layout[k]
        breaks = tables.breaks[first : first + pieces + 1]
        piece = count_below(breaks, t) - 1 if t >= high else count_up_to(breaks, t) - 1
        piece = min(max(piece, 0), pieces - 1)
        u = t - breaks[piece]
        value = 0.0
        for j in range(length):
            value = value * u + tables.coefficients[place + piece * length + j]
        environment[FIRST_SIGNAL + signal] = value


# ----------------------------------------------------------------------------------------------------------------------
# Known signals: inputs as numbers, expressions of time, tables, SciPy's piecewise polynomials, callables.
#
# A known control needs its value; a known coordinate its value, rate and acceleration (they enter A and M). Expressions
# are differentiated and compiled with the equations; tables become piecewise polynomials that the compiled loop
# evaluates; a Python callable is called back, once for every point that Newton's method starts from.


KINDS = ("cubic", "linear", "previous")


@dataclass(frozen=True)
class Table:
    """Values at times, interpolated: "cubic" (a C2 spline), "linear", or "previous" (held until the next time).

    The integration restarts where a held value jumps, and where the slope of a linear one does. A run that leaves the
    times of the table is refused, unless `extrapolate`: then the first and the last piece go on. The last value of
    "previous" is held for ever.
    """

    t: Any
    values: Any
    kind: str = "cubic"
    extrapolate: bool = False

    def polynomial(self) -> Any:
        """Return the table as SciPy's PPoly, checked."""
        from scipy.interpolate import CubicSpline, PPoly

        t, y = floats(self.t, "times of a table"), floats(self.values, "values of a table")
        if t.ndim != 1 or t.shape != y.shape or len(t) < 2:
            raise ShapeError(f"a table needs two equally long lists of at least 2 numbers; got {t.shape} and {y.shape}")
        if not (np.isfinite(t).all() and np.isfinite(y).all() and (np.diff(t) > 0).all()):
            raise ModelError("a table needs finite values at increasing times")
        if self.kind == "cubic":
            return CubicSpline(t, y)
        if self.kind == "linear":
            return PPoly(np.array([np.diff(y) / np.diff(t), y[:-1]]), t)
        if self.kind == "previous":
            return PPoly(y[None, :], np.append(t, t[-1] + (t[-1] - t[-2])))
        raise ModelError(f"kind={self.kind!r} is not one of {', '.join(map(repr, KINDS))}")

    @property
    def jumps(self) -> list[float]:
        """Times at which value or slope jumps."""
        return [] if self.kind == "cubic" else [float(x) for x in np.asarray(self.t)]


@dataclass(frozen=True, eq=False)
class StateInput:
    """One of several inputs that a Python function gives at a state.

    Attributes
    ----------
    function
        Of (t, x), x the unknowns, or None where it was called last; returns all its inputs. It is called where Newton's
        method starts, so inputs should be linear models of what they stand for.
    place
        Which of them.
    """

    function: Callable[[float, Array | None], Array]
    place: int


def _jumps(polynomial: Any) -> list[float]:
    """Return the times at which a piecewise polynomial or its slope jumps."""
    times, x = [], polynomial.x
    for k in range(1, polynomial.c.shape[1]):
        h = x[k] - x[k - 1]
        left, right = (np.poly1d(polynomial.c[:, j]) for j in (k - 1, k))
        for a, b, size in ((left, right, 1.0), (left.deriv(), right.deriv(), h)):
            scale = sum(abs(c) * h**p for p, c in enumerate(left.coeffs[::-1])) + abs(right(0.0)) + NOT_ZERO
            if abs(a(h) - b(0.0)) * size > JUMP_OF_TABLE * scale:
                times.append(float(x[k]))
                break
    return times


@dataclass
class Signals:
    """All signals of a problem: symbols, their tables or callables, and the times of their jumps."""

    symbols: list[ca.SX] = field(default_factory=list)
    states: list[tuple[int, StateInput]] = field(default_factory=list)
    polynomials: dict[int, Any] = field(default_factory=dict)
    callables: list[tuple[int, Callable[[float], Any]]] = field(default_factory=list)
    jumps: list[float] = field(default_factory=list)
    ranges: dict[str, tuple[float, float]] = field(default_factory=dict)

    def require(self, t0: float, t1: float) -> None:
        """Refuse a span that a table does not cover."""
        low, high = sorted((t0, t1))
        for name, (first, last) in self.ranges.items():
            slack = SAME_BREAK * max(abs(first), abs(low), abs(high))
            if low < first - slack or high > last + slack:
                words = f"known {name!r} is a table from t = {first:g} to {last:g}; the run goes from {t0:g} to {t1:g}"
                advice = "give more values, or Table(..., extrapolate=True)", "give the table more lines"
                raise ModelError(advised(words, *advice))

    def expressions(self, name: str, given: Any, derivatives: int, time: ca.SX) -> list[ca.SX]:
        """Return value and derivatives of one known quantity as expressions of time and signals."""
        if isinstance(given, ca.SX) and ca.symvar(given):
            return _differentiated(name, given, derivatives, time)
        if isinstance(given, StateInput) and not derivatives:
            self.states.append((len(self.symbols), given))
            return [self._symbol(name)]
        if (number := _constant(name, given)) is not None:
            return [ca.SX(number), *[ca.SX(0)] * derivatives]
        if isinstance(given, Table) or (hasattr(given, "c") and hasattr(given, "x")):
            return self._table(name, given, derivatives)
        if isinstance(given, tuple) and len(given) in (2, 3) and not callable(given[0]) and not callable(given[-1]):
            return self._table(name, Table(*given), derivatives)
        functions: Any = given if isinstance(given, Sequence) else [given]
        if all(map(callable, functions)) and len(functions) >= derivatives + 1:
            return [self._add(name, functions[d], d) for d in range(derivatives + 1)]
        need = "" if derivatives == 0 else f", or {derivatives + 1} callables (value, rate, acceleration)"
        raise ModelError(
            f"known {name!r} is {type(given).__name__}; give a number, an expression of time, a Table, (t, values) "
            f"or (t, values, kind), a PPoly{need or ', or a callable of t'}"
        )

    def _table(self, name: str, given: Any, derivatives: int) -> list[ca.SX]:
        polynomial = given.polynomial() if isinstance(given, Table) else given
        if np.ndim(polynomial.c) != 2:
            raise ShapeError(
                f"known {name!r}: the piecewise polynomial must have one value, not {polynomial.c.shape[2:]}"
            )
        if isinstance(given, Table):
            if derivatives and given.kind != "cubic":
                raise ModelError(f"known coordinate {name!r} needs an acceleration; a {given.kind!r} table has none")
            self.jumps += given.jumps
            held = given.kind == "previous"
            beyond = given.extrapolate
        else:
            self.jumps += _jumps(polynomial)
            held, beyond = polynomial.c.shape[0] == 1, False  # pieces of degree 0: the last value stays
        if not beyond:
            self.ranges[name] = (float(polynomial.x[0]), np.inf if held else float(polynomial.x[-1]))
        symbols = []
        for d in range(derivatives + 1):
            symbols.append(self._symbol(f"{name}{chr(39) * d}"))
            self.polynomials[len(self.symbols) - 1] = polynomial.derivative(d) if d else polynomial
        return symbols

    def _add(self, name: str, function: Callable[[float], Any], d: int) -> ca.SX:
        self.callables.append((len(self.symbols), function))
        self.jumps += [one_number(t, "a break point") for t in getattr(function, "breaks", ())]
        return self._symbol(f"{name}{chr(39) * d}")

    def _symbol(self, name: str) -> ca.SX:
        self.symbols.append(ca.SX.sym(name))
        return self.symbols[-1]

    @property
    def column(self) -> ca.SX:
        """All symbols."""
        return ca.vertcat(*self.symbols, ca.SX(0, 1))

    def tables(self) -> Tables:
        """Return the tables as the loop reads them."""
        layout, breaks, coefficients = [], [np.zeros(0)], [np.zeros(0)]
        first = place = 0
        for signal, polynomial in self.polynomials.items():
            length, pieces = polynomial.c.shape
            layout.append([signal, first, pieces, place, length])
            breaks.append(np.asarray(polynomial.x, dtype=float))
            coefficients.append(np.ascontiguousarray(polynomial.c.T, dtype=float).ravel())
            first, place = first + pieces + 1, place + pieces * length
        rows = np.array(layout, np.int64).reshape(-1, 5)
        return Tables(rows, np.concatenate(breaks), np.concatenate(coefficients))

    def at_state(self, t: float, x: Array | None, found: Array) -> None:
        """Write the inputs that depend on the state into `found`; each function is called once."""
        answers: dict[int, Array] = {}
        for signal, source in self.states:
            if id(source.function) not in answers:
                answers[id(source.function)] = source.function(t, x)
            found[signal] = answers[id(source.function)][source.place]

    def values(self, t: float, order: int = 0, x: Array | None = None) -> Array:
        """Return every signal at t (and x), or a derivative of those that are tables (zero for callables)."""
        numbers = np.zeros(len(self.symbols))
        for signal, polynomial in self.polynomials.items():
            p = polynomial.derivative(order) if order else polynomial
            piece = int(np.clip(np.searchsorted(p.x, t, side="right") - 1, 0, p.c.shape[1] - 1))
            numbers[signal] = np.polyval(p.c[:, piece], t - p.x[piece])
        for signal, function in self.callables if not order else ():
            numbers[signal] = called(f"known {self.symbols[signal]}", function, t)
        if not order:
            self.at_state(t, x, numbers)
        return numbers


def _constant(name: str, given: Any) -> float | None:
    """Return a finite number where one is given, of whatever kind: Python's, NumPy's, CasADi's without symbols."""
    if isinstance(given, ca.SX | ca.DM):
        number = given.numel() == 1
        given = float(ca.DM(given)) if number else given
    else:
        number = isinstance(given, Number | np.number) or (isinstance(given, np.ndarray) and given.size == 1)
        given = given.item() if isinstance(given, np.ndarray) and number else given
    if not number:
        return None
    value = one_number(given, f"known {name}")
    if not np.isfinite(value):
        raise ModelError(f"known {name!r} is {value}: a finite number is needed")
    return value


def _differentiated(name: str, given: ca.SX, derivatives: int, time: ca.SX) -> list[ca.SX]:
    """Return an expression of time and its derivatives."""
    strangers = [str(s) for s in ca.symvar(given) if not time.numel() or s.element_hash() != time.element_hash()]
    if given.numel() != 1 or strangers:
        raise ModelError(
            f"known {name!r} must be one expression of the time symbol alone; it contains {strangers or given}. "
            "Pass the symbol as time="
        )
    rates = [given]
    for _ in range(derivatives):
        rates.append(ca.jacobian(rates[-1], time))
    return rates


def split_known(
    known: Mapping[str, Any] | None, coordinates: Sequence[str], controls: Sequence[str]
) -> tuple[dict[int, Any], dict[int, Any], list[int]]:
    """Return known coordinates and controls by place, and controls left open by None; refuse other names."""
    prescribed: dict[int, Any] = {}
    driven: dict[int, Any] = {}
    left_open: list[int] = []
    if known is not None and not isinstance(known, Mapping):
        raise ModelError(f"known is a {type(known).__name__}; give a mapping from names to what is known of them")
    for name, value in (known or {}).items():
        if name in coordinates:
            prescribed[list(coordinates).index(name)] = value
        elif name in controls and value is None:
            left_open.append(list(controls).index(name))
        elif name in controls:
            driven[list(controls).index(name)] = value
        else:
            raise ModelError(
                f"known: no coordinate or control is called {name!r}; coordinates are {', '.join(coordinates)}, "
                f"controls {', '.join(controls) or 'none'}"
            )
    return prescribed, driven, left_open
