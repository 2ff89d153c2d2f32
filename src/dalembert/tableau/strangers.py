"""What has no place in a tableau: symbols that are nothing or two things, equations without variables, NaN."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import casadi as ca
import numpy as np

from dalembert.errors import ModelError, ShapeError
from dalembert.model.parameters import Parameters
from dalembert.model.symbols import symbol_column
from dalembert.tableau.variables import Variables


def refuse_strangers(
    names: Sequence[str],
    rows: Sequence[ca.SX],
    symbols: Sequence[Mapping[int, ca.SX]],
    variables: Variables,
    time: ca.SX,
    parameters: Parameters,
) -> None:
    """Check every equation, with its symbols by their hashes; what is wrong is named."""
    own = {s.element_hash(): s for s in [*variables.symbols, *(r for r in variables.rates if r is not None)]}
    for name, value in parameters.defaults.items():
        if not np.isfinite(value).all():
            raise ModelError(f"the default of parameter {name!r} is not finite: {value}")
    others = _others(time, parameters.column)
    for found, (symbol, role) in others.items():
        if found in own:
            raise ModelError(f"the symbol {str(symbol)!r} is a variable (or a rate) and belongs to {role}; choose one")
    if not np.isfinite(_constants(ca.vertcat(*rows))).all():
        broken = (name for name, row in zip(names, rows, strict=True) if not np.isfinite(_constants(row)).all())
        raise ModelError(f"equation {next(broken)!r} contains NaN or infinity")
    for name, row, present in zip(names, rows, symbols, strict=True):
        _refuse_strange_symbols(name, present, own, others)
        if own.keys().isdisjoint(present):
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
    found: dict[int, tuple[ca.SX, str]] = {}
    for role, column in (("time", time), ("parameters", parameters)):
        for symbol in ca.vertsplit(column) if column.numel() else []:
            if symbol.element_hash() in found:
                raise ModelError(f"the symbol {str(symbol)!r} stands twice in time and parameters")
            found[symbol.element_hash()] = (symbol, role)
    return found


def _refuse_strange_symbols(
    name: str, symbols: Mapping[int, ca.SX], own: Mapping[int, ca.SX], others: Mapping[int, object]
) -> None:
    """Refuse a symbol that was not declared; one of the same name was perhaps made twice."""
    for found, symbol in symbols.items():
        if found in own or found in others:
            continue
        twin = any(str(each) == str(symbol) for each in own.values())
        hint = f"; the variable {str(symbol)!r} is another symbol of that name: make it once" if twin else ""
        raise ModelError(
            f"equation {name!r} contains {str(symbol)!r}, which is no variable, rate, time or parameter{hint}"
        )


def _constants(rows: ca.SX) -> list[float]:
    """Return the numbers in expressions."""
    f = ca.Function("rows", [ca.vertcat(*ca.symvar(rows))], [rows])
    return [f.instruction_constant(k) for k in range(f.n_instructions()) if f.instruction_id(k) == ca.OP_CONST]
