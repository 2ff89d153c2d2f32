"""Applied forces in time: constants, tables, expressions and Python functions behind one description.

Expressions and tables are compiled with the equations; a Python function is called back, once for every stage.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.checks import floats, refuse_masked
from dalembert.errors import ModelError, ShapeError
from dalembert.first_use import LaterModule
from dalembert.simulate.equations.signals import Signals, Table
from dalembert.simulate.samples import breaks_of
from dalembert.types import Array

if TYPE_CHECKING:
    import casadi as ca
else:
    ca = LaterModule("casadi")


@dataclass(eq=False)
class Controller:
    """tau = expression(t, q, v, signals).

    Attributes
    ----------
    tau
        Joint forces (nv,), an expression of `t`, `q`, `v` and the signals.
    signals
        Tables and their symbols; with `function` one signal per joint force.
    function
        The Python function of (t, q, v), or None.
    kind
        "none", "constant", "table", "expression" or "callable", for reports and files.
    breaks
        Break points that Python functions declare.
    content
        A key of everything that is compiled in.
    """

    tau: ca.SX
    t: ca.SX
    q: ca.SX
    v: ca.SX
    signals: Signals
    function: Callable[..., Any] | None
    kind: str
    given: Any = field(default=None, repr=False)
    breaks: tuple[float, ...] = ()

    @cached_property
    def symbols(self) -> ca.SX:
        """The signals as one column."""
        return self.signals.column

    @cached_property
    def content(self) -> str:
        """A key of the compiled expression."""
        if self.kind == "none":
            return self.kind
        f = ca.Function("tau", [self.t, self.q, self.v, self.symbols], [self.tau])
        return hashlib.sha256(f.serialize().encode()).hexdigest()

    def refuse_short_tables(self, start: float, end: float) -> None:
        """Refuse tables that do not reach over the run; a value held from the last time on may stay."""
        for place, p in self.signals.polynomials.items():
            first, last = float(p.x[0]), float(p.x[-1])
            if first > start or (last < end and p.c.shape[0] > 1):
                raise ModelError(
                    f"the table of force {self.signals.symbols[place]} goes from {first:g} to {last:g} s and the run "
                    f'from {start:g} to {end:g} s; extend it, or give it as (times, values, "previous") to hold its '
                    "last value"
                )

    def non_finite(self, times: Sequence[float], q: Array, v: Array) -> str:
        """Return which joint force is no number beside a state, in words; empty where all are, and of Python."""
        if self.function is not None:
            return ""
        law = ca.Function("tau", [self.t, self.q, self.v, self.symbols], [self.tau])
        for t in times:
            tau = np.asarray(law(t, q, v, self.signals.values(t))).ravel()
            bad = np.flatnonzero(~np.isfinite(tau))
            if bad.size:
                return f": force[{bad[0]}] is {tau[bad[0]]} at t = {t:.9g} s"
        return ""

    def stops(self, start: float, end: float) -> list[float]:
        """Return times inside the run at which a table has a corner or a jump."""
        return sorted({t for t in self.signals.jumps if start < t < end})


@cache
def _no_force(nq: int, nv: int) -> Controller:
    """Return the description of no forces; symbols of CasADi take as long as some steps."""
    t, q, v = ca.SX.sym("t"), ca.SX.sym("q", nq), ca.SX.sym("v", nv)
    return Controller(ca.densify(ca.SX.zeros(nv)), t, q, v, Signals(), None, "none")


def controller(system: Any, force: Any) -> Controller:
    """Return the description of `force`: see `simulate` for its forms."""
    if force is None:
        return _no_force(system.nq, system.nv)
    t, q, v = ca.SX.sym("t"), ca.SX.sym("q", system.nq), ca.SX.sym("v", system.nv)
    signals = Signals()

    def made(tau: Any, kind: str, function: Any = None) -> Controller:
        several = force.values() if isinstance(force, Mapping) else [force]
        breaks = {instant for x in several if callable(x) for instant in breaks_of(x)}
        return Controller(
            ca.densify(ca.SX(tau)), t, q, v, signals, function, kind, force, tuple(sorted(breaks))
        )  # fmt: skip

    n = system.nv
    if isinstance(force, ca.Function):
        return made(_called(force, t, q, v, n, "force"), "expression")
    if isinstance(force, ca.SX | ca.MX):
        raise ModelError("force is an expression: give casadi.Function('force', [t, q, v], [expression])")
    if isinstance(force, Mapping) and any(callable(x) and not isinstance(x, ca.Function) for x in force.values()):
        function = _called_by_name(system, force, signals)
        signals.symbols += [ca.SX.sym(f"tau[{name}]") for name in system.coordinates]
        return made(ca.vertcat(*signals.symbols, ca.SX(0, 1)), "callable", function)
    if isinstance(force, Mapping):
        return made(_by_name(system, force, signals, t, q, v), _kind_of(force))
    if isinstance(force, Table | tuple):
        tables = tables_of(system, force)
        columns = [signals.expressions(name, tables[name], 0, t)[0] for name in system.coordinates]
        return made(ca.vertcat(*columns), "table")
    if callable(force):
        signals.symbols += [ca.SX.sym(f"tau[{name}]") for name in system.coordinates]
        return made(ca.vertcat(*signals.symbols, ca.SX(0, 1)), "callable", force)
    return made(_constant(force, n), "constant")


def _constant(force: Any, n: int) -> ca.SX:
    refuse_masked(force, "force")
    try:
        values = floats(force, "force")
    except (TypeError, ValueError) as error:
        raise ModelError(
            f"force is {type(force).__name__}; give numbers (nv,), a dict by joint, (times, values), a "
            "casadi.Function of (t, q, v), or a Python function of (t, q, v)"
        ) from error
    if values.ndim == 0 and n == 1:
        values = values.reshape(1)
    if values.shape != (n,):
        hint = "; values in time are (times, values)" if values.ndim == 2 else ""
        raise ShapeError(f"force must have shape ({n},), one number per velocity; it has {values.shape}{hint}")
    if not np.isfinite(values).all():
        raise ModelError(f"force[{int(np.flatnonzero(~np.isfinite(values))[0])}] is not finite")
    return ca.SX(ca.DM(values))


def _by_name(system: Any, force: Mapping[str, Any], signals: Signals, t: ca.SX, q: ca.SX, v: ca.SX) -> ca.SX:
    """Return the forces of a dict joint -> number, (times, values), Table or casadi.Function; others are zero."""
    tau = [ca.SX(0) for _ in range(system.nv)]
    for name, value in force.items():
        place = system.index_v(name)
        if place.stop - place.start != 1:
            raise ModelError(f"force of {name!r}: the joint has {place.stop - place.start} velocities; name each, as "
                             f"{system.coordinates[place.start]!r}")  # fmt: skip
        if isinstance(value, ca.Function):
            tau[place.start] = _called(value, t, q, v, 1, f"force[{name!r}]")
        elif isinstance(value, Table | tuple):
            times, values, how = table_parts(value)
            tau[place.start] = signals.expressions(name, Table(times, values, how), 0, t)[0]
        else:
            tau[place.start] = _constant(value, 1)
    return ca.vertcat(*tau)


def _called_by_name(system: Any, force: Mapping[str, Any], signals: Signals) -> Callable[..., Any]:
    """Return one Python function for a dict in which some joints have one, whatever the others have."""
    rest = controller(system, {name: x for name, x in force.items() if not callable(x) or isinstance(x, ca.Function)})
    signals.jumps += rest.signals.jumps
    law = ca.Function("rest", [rest.t, rest.q, rest.v, rest.symbols], [rest.tau])
    called = {name: x for name, x in force.items() if callable(x) and not isinstance(x, ca.Function)}
    places = {name: system.index_v(name) for name in called}

    def together(t: float, q: Array, v: Array) -> Array:
        tau = np.asarray(law(t, q, v, rest.signals.values(t))).ravel()
        for name, function in called.items():
            forces = np.atleast_1d(np.asarray(function(t, q, v), dtype=float))
            if forces.shape != (places[name].stop - places[name].start,):
                raise ShapeError(f"force of {name!r} has shape {forces.shape} at t = {t:.9g} s; the joint has "
                                 f"{places[name].stop - places[name].start} velocities")  # fmt: skip
            tau[places[name]] = forces
        return tau

    return together


def _kind_of(force: Mapping[str, Any]) -> str:
    kinds = ["expression" if isinstance(x, ca.Function) else "table" if isinstance(x, Table | tuple) else "constant"
             for x in force.values()]  # fmt: skip
    return next((kind for kind in ("expression", "table") if kind in kinds), "constant")


def tables_of(system: Any, force: Any) -> dict[str, Table]:
    """Return the table of every coordinate from one with a column for each."""
    times, values, how = table_parts(force)
    if values.shape == times.shape and system.nv == 1:
        values = values[:, None]
    if values.shape != (times.size, system.nv):
        raise ShapeError(
            f"a table of joint forces is (times, values) with values ({times.size}, {system.nv}); they have "
            f"{values.shape}"
        )
    return {name: Table(times, values[:, j], how) for j, name in enumerate(system.coordinates)}


def forces_known_in_time(system: Any, force: Any) -> dict[str, Any] | None:
    """Return numbers and tables by coordinate, of the coordinates that have one; None where forces need the state."""
    if isinstance(force, Table | tuple):
        return dict(tables_of(system, force))
    if isinstance(force, Mapping):
        if any(callable(x) for x in force.values()):
            return None
        controller(system, force)  # refuses what is wrong with a name or a value
        places = {name: system.coordinates[system.index_v(name).start] for name in force}
        return {places[x]: Table(*table_parts(y)) if isinstance(y, Table | tuple) else y for x, y in force.items()}
    if callable(force):
        return None
    values = np.asarray(ca.DM(_constant(force, system.nv))).ravel()
    return dict(zip(system.coordinates, values.tolist(), strict=True))


def table_parts(given: Any) -> tuple[Array, Array, str]:
    """Return times, values and kind of a table."""
    if isinstance(given, Table):
        return floats(given.t, "times"), floats(given.values, "values"), given.kind
    if len(given) not in (2, 3):
        raise ModelError(f"a table is (times, values) or (times, values, kind), not {len(given)} things")
    kind = given[2] if len(given) == 3 else "linear"
    return floats(given[0], "times"), floats(given[1], "values"), kind


def _called(function: ca.Function, t: ca.SX, q: ca.SX, v: ca.SX, n: int, what: str) -> ca.SX:
    """Return a casadi.Function of (t, q, v) as an expression, its sizes checked."""
    sizes = [function.numel_in(i) for i in range(function.n_in())]
    if sizes != [1, q.numel(), v.numel()] or function.n_out() != 1 or function.numel_out(0) != n:
        raise ShapeError(
            f"{what} must be a casadi.Function of t (1), q ({q.numel()}), v ({v.numel()}) with one output of {n}; "
            f"it has inputs of {sizes} and outputs of {[function.numel_out(i) for i in range(function.n_out())]}"
        )
    scalar = function if function.is_a("SXFunction") else function.expand()
    return ca.reshape(scalar(t, q, v), n, 1)
