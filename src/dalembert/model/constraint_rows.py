"""Constraints as a user writes them, taken apart into named scalar rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import casadi as ca

from dalembert.errors import ModelError
from dalembert.model.symbols import Symbols, as_column

ALLOWED = "q v t parameters"
"""Groups of symbols that a constraint may depend on."""


def constraint_rows(constraints: Any, symbols: Symbols) -> list[tuple[str, ca.SX]]:
    """Return (name, scalar expression) per row.

    `constraints` is an expression, a mapping name -> expression, or a list of expressions and (name, expression)
    pairs. A scalar keeps its name; the rows of a column are "name[0]", "name[1]", ...; a nameless one is "row i".
    """
    rows: list[tuple[str, ca.SX]] = []
    for name, expression in _pairs(constraints):
        what = f"constraint {name!r}" if name else f"constraint {len(rows)}"
        column = symbols.checked(as_column(expression, what), what, ALLOWED)
        scalars = ca.vertsplit(column) if column.numel() else []
        for i, row in enumerate(scalars):
            own = f"row {len(rows)}" if not name else name if len(scalars) == 1 else f"{name}[{i}]"
            _refuse_constant(row, own, symbols)
            rows.append((own, row))
    return rows


def _pairs(constraints: Any) -> list[tuple[str, Any]]:
    """Return (name, expression), the name empty where none was given."""
    if isinstance(constraints, Mapping):
        return [(str(name), expression) for name, expression in constraints.items()]
    if _is_pair(constraints):
        return [constraints]
    if not isinstance(constraints, list | tuple):
        return [("", constraints)]
    return [one if _is_pair(one) else ("", one) for one in constraints]


def _is_pair(one: Any) -> bool:
    return isinstance(one, tuple) and len(one) == 2 and isinstance(one[0], str)


def _refuse_constant(row: ca.SX, name: str, symbols: Symbols) -> None:
    """Refuse a row that no coordinate can satisfy or violate."""
    if not ca.depends_on(row, ca.vertcat(symbols.q, symbols.v)):
        raise ModelError(f"constraint {name!r}, {row} = 0, depends on no coordinate and no velocity")
