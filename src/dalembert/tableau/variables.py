"""Named variables, equations and declared outputs of a tableau, validated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from dalembert.errors import ModelError, ShapeError
from dalembert.model.lagrangian.symbols import as_column, symbol_column
from dalembert.model.parameters import Parameters
from dalembert.names import near_matches
from dalembert.tableau.inputs import as_list, as_mapping, as_names

# ----------------------------------------------------------------------------------------------------------------------
# Declared causality: which variable an equation is said to determine, by name.


def declared_outputs(
    outputs: Mapping[str, str], groups: Mapping[str, Sequence[str]], variables: Variables
) -> list[tuple[str, int]]:
    """Return declared outputs as scalar equations with the places of their variables.

    `outputs` maps equations, or rows of them, to variables, or elements of them; `groups` has the rows of equations.
    """
    rows = {name: [name] for group in groups.values() for name in group} | dict(groups)
    pairs: list[tuple[str, int]] = []
    for equation, variable in outputs.items():
        if equation not in rows:
            near = near_matches(equation, rows)
            raise ModelError(f"outputs: no equation is called {equation!r}", near=near)
        scalars = variables.find([variable], "outputs")
        if len(scalars) != len(rows[equation]):
            raise ModelError(
                f"outputs: {equation!r} has {len(rows[equation])} rows, {variable!r} {len(scalars)} elements"
            )
        pairs += zip(rows[equation], scalars, strict=True)
    return pairs


# ----------------------------------------------------------------------------------------------------------------------
# Named variables and equations of a tableau, taken apart into scalars.


SHOWN = 12
"""Names shown to someone who used another one."""


@dataclass(frozen=True, eq=False)
class Variables:
    """Scalar signals with their symbols, and symbols of their rates where the equations contain them.

    Attributes
    ----------
    names
        "x" of a scalar, "q[0]", "q[1]" ... of a column.
    groups
        Name of each variable as given -> indices of its scalars.
    symbols, rates
        One SX per scalar; None where there is no rate.
    """

    names: tuple[str, ...]
    groups: dict[str, list[int]]
    symbols: list[ca.SX]
    rates: list[ca.SX | None]

    @classmethod
    def of(cls, variables: Any, rates: Mapping[str, Any] | None) -> Variables:
        """Read a mapping name -> symbol(s) or a list of symbols, and a mapping name -> symbol(s) of rates."""
        names, groups, symbols, rate_symbols = [], {}, [], []
        rates = as_mapping(rates, "rates")
        for name, shape in _pairs(variables):
            column = symbol_column(shape, f"variable {name!r}")
            if name in groups:
                raise ModelError(f"two variables are called {name!r}")
            size = column.numel()
            derivative: list[ca.SX | None] = [None] * size
            if name in rates:
                rate = symbol_column(rates.pop(name), f"rate of {name!r}")
                if rate.numel() != size:
                    raise ShapeError(f"rate of {name!r} has {rate.numel()} symbols, the variable {size}")
                derivative = list(ca.vertsplit(rate))
            groups[name] = list(range(len(names), len(names) + size))
            names += element_names(name, size)
            symbols += ca.vertsplit(column) if size else []
            rate_symbols += derivative
        if rates:
            raise ModelError(f"rates of unknown variables: {', '.join(map(repr, rates))}")
        _refuse_twins(names, [*symbols, *(r for r in rate_symbols if r is not None)])
        return cls(tuple(names), groups, symbols, rate_symbols)

    def find(self, wanted: Iterable[str], what: str) -> list[int]:
        """Return indices of scalars, from names of variables or of their elements."""
        places: list[int] = []
        place = self._places
        for name in as_names(wanted, what):
            if name in self.groups:
                places += self.groups[name]
            elif name in place:
                places.append(place[name])
            else:
                near = near_matches(name, [*self.groups, *self.names])
                others = "" if near else f"; there are {', '.join(map(repr, list(self.groups)[:SHOWN]))}"
                raise ModelError(f"{what}: no variable is called {name!r}{others}", near=near)
        return places

    @property
    def columns(self) -> dict[str, ca.SX]:
        """Name of each variable -> its symbols as a column."""
        return {
            name: ca.vertcat(*[self.symbols[i] for i in places], ca.SX(0, 1)) for name, places in self.groups.items()
        }

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.names)}


def scalar_equations(equations: Any) -> tuple[dict[str, list[str]], list[ca.SX]]:
    """Return the names of the scalars of every equation, and their expressions, of a mapping name -> expression."""
    if not isinstance(equations, Mapping):
        raise ModelError(
            f"equations must be a mapping from names to expressions, {{'sum': x + y}}, not {type(equations).__name__}"
        )
    groups: dict[str, list[str]] = {}
    rows: list[ca.SX] = []
    for name, expression in equations.items():
        column = as_column(expression, f"equation {name!r}")
        if not column.numel():
            raise ModelError(f"equation {name!r} is empty; leave it out")
        groups[_checked_name(name, "an equation")] = element_names(name, column.numel())
        rows += ca.vertsplit(column)
    if not rows:
        raise ModelError("there are no equations: give at least one, {name: expression that is zero}")
    names = [name for group in groups.values() for name in group]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ModelError(f"two equations are called {twice!r}")
    return groups, rows


def element_names(name: str, size: int) -> list[str]:
    """Return "x", or "x[0]", "x[1]", ..."""
    return [name] if size == 1 else [f"{name}[{i}]" for i in range(size)]


def _pairs(variables: Any) -> list[tuple[str, Any]]:
    """Return names and symbols of a mapping or a list, names checked."""
    if isinstance(variables, Mapping):
        return [(_checked_name(name, "a variable"), size) for name, size in variables.items()]
    listed = as_list(variables, "variables", "SX symbols, or a mapping from names to them")
    return [(_own(symbol), symbol) for symbol in listed]


def _checked_name(name: Any, what: str) -> str:
    """Return a name that can be spoken of."""
    if not isinstance(name, str) or not name.strip():
        raise ModelError(f"the name of {what} is a string that is not empty; got {name!r}")
    return name


def _own(symbol: Any) -> str:
    if not isinstance(symbol, ca.SX) or not symbol.is_valid_input() or not symbol.numel():
        raise ModelError(f"variables must be SX symbols, casadi.SX.sym; got {symbol!r}")
    first = str(symbol[0])
    return first if symbol.numel() == 1 else first.removesuffix("_0")


def _refuse_twins(names: list[str], symbols: list[ca.SX]) -> None:
    """Refuse equal names and symbols used twice."""
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ModelError(f"two variables are called {twice!r}")
    seen: set[int] = set()
    for symbol in symbols:
        if symbol.element_hash() in seen:
            raise ModelError(f"the symbol {str(symbol)!r} stands for two variables or rates")
        seen.add(symbol.element_hash())


# ----------------------------------------------------------------------------------------------------------------------
# Refusals of a tableau: symbols that are nothing or two things, equations without variables, NaN.


def refuse_strangers(
    names: Sequence[str],
    rows: Sequence[ca.SX],
    symbols: Sequence[Mapping[int, ca.SX]],
    variables: Variables,
    time: ca.SX,
    parameters: Parameters,
) -> None:
    """Check every equation, with its symbols by their hashes; what is wrong is named."""
    by_hash = {s.element_hash(): s for s in [*variables.symbols, *(r for r in variables.rates if r is not None)]}
    for name, value in parameters.defaults.items():
        if not np.isfinite(value).all():
            raise ModelError(f"the default of parameter {name!r} is not finite: {value}")
    others = _others(time, parameters.column)
    for key, (symbol, role) in others.items():
        if key in by_hash:
            raise ModelError(f"the symbol {str(symbol)!r} is a variable (or a rate) and belongs to {role}; choose one")
    if not np.isfinite(_constants(ca.vertcat(*rows))).all():
        broken = (name for name, row in zip(names, rows, strict=True) if not np.isfinite(_constants(row)).all())
        raise ModelError(f"equation {next(broken)!r} contains NaN or infinity")
    for name, row, present in zip(names, rows, symbols, strict=True):
        _refuse_strange_symbols(name, present, by_hash, others)
        if by_hash.keys().isdisjoint(present):
            raise ModelError(f"equation {name!r}, {row} = 0, contains no variable")


def time_column(time: Any) -> ca.SX:
    """Return the symbol of time as a column of one, or of none."""
    if time is None:
        return ca.SX(0, 1)
    column = symbol_column(time, "time")
    if column.numel() != 1:
        raise ShapeError(f"time must be one symbol; it has {column.numel()}")
    return column


def _others(time: ca.SX, parameters: ca.SX) -> dict[int, tuple[ca.SX, str]]:
    """Return the symbols of time and parameters by their hashes, with what they belong to."""
    others: dict[int, tuple[ca.SX, str]] = {}
    for role, column in (("time", time), ("parameters", parameters)):
        for symbol in ca.vertsplit(column) if column.numel() else []:
            if symbol.element_hash() in others:
                raise ModelError(f"the symbol {str(symbol)!r} stands twice in time and parameters")
            others[symbol.element_hash()] = (symbol, role)
    return others


def _refuse_strange_symbols(
    name: str, symbols: Mapping[int, ca.SX], own: Mapping[int, ca.SX], others: Mapping[int, object]
) -> None:
    """Refuse a symbol that was not declared; one of the same name was perhaps made twice."""
    for key, symbol in symbols.items():
        if key in own or key in others:
            continue
        twin = any(str(other) == str(symbol) for other in own.values())
        hint = f"; the variable {str(symbol)!r} is another symbol of that name: make it once" if twin else ""
        raise ModelError(
            f"equation {name!r} contains {str(symbol)!r}, which is no variable, rate, time or parameter{hint}"
        )


def _constants(rows: ca.SX) -> list[float]:
    """Return the numbers in expressions."""
    f = ca.Function("rows", [ca.vertcat(*ca.symvar(rows))], [rows])
    return [f.instruction_constant(k) for k in range(f.n_instructions()) if f.instruction_id(k) == ca.OP_CONST]
