"""What a Lagrangian system can be compiled to: the table, and one CasADi function per entry."""

from __future__ import annotations

from difflib import get_close_matches

import casadi as ca

from dalembert.errors import ModelError, UnsupportedError
from dalembert.kkt import Status
from dalembert.model.contact_expressions import ContactExpressions, as_outputs
from dalembert.model.expressions import Expressions
from dalembert.model.straight_line import straight_line
from dalembert.model.symbols import Symbols

LARGEST = 25
"""Straight-line code grows with (n + m)^3: above this size compiled loops (`KKT` on batches) are the better way."""

QUANTITIES = {
    "forward": "q v u t parameters",
    "terms": "q v u t parameters",
    "mass_matrix": "q t parameters",
    "bias": "q v u t parameters",
    "jacobian": "q t parameters",
    "drift": "q v t parameters",
    "constraint": "q t parameters",
    "constraint_velocity": "q v t parameters",
    "energy": "q v t parameters",
    "contacts": "q v u t parameters",
}
"""Every quantity, with the inputs it may have."""


def quantity(expressions: Expressions, symbols: Symbols, what: str, contacts: ContactExpressions) -> ca.Function:
    """Return the CasADi function of one quantity."""
    if what not in QUANTITIES:
        near = get_close_matches(str(what), QUANTITIES, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ModelError(f"what={what!r} is not one of {', '.join(map(repr, QUANTITIES))}{hint}")
    outputs = as_outputs(contacts) if what == "contacts" else _outputs(expressions, what)
    inputs = {name: symbols.groups[name] for name in input_names(symbols, what)}
    return ca.Function(what, list(inputs.values()), list(outputs.values()), list(inputs), list(outputs))


def input_names(symbols: Symbols, what: str) -> list[str]:
    """Return the names of a quantity's inputs, in order."""
    return [name for name in QUANTITIES[what].split() if name in symbols.sizes]


def _outputs(e: Expressions, what: str) -> dict[str, ca.SX]:
    match what:
        case "forward":
            return _forward(e)
        case "terms":
            return {"mass_matrix": e.mass, "bias": e.bias, "jacobian": e.jacobian, "drift": e.drift}
        case "mass_matrix":
            return {what: e.mass}
        case "constraint_velocity":
            return {what: e.rate}
        case _:
            return {what: getattr(e, what)}


def _forward(e: Expressions) -> dict[str, ca.SX]:
    """Return the constrained forward dynamics, with its status."""
    size = e.mass.shape[0] + e.jacobian.shape[0]
    if size > LARGEST:
        raise UnsupportedError(
            f"n + m = {size} is too large for straight-line code (at most {LARGEST}); system.forward(q, v) solves such "
            'batches through KKT, and compile("terms") gives M, bias, A and drift'
        )
    solved = straight_line(e.mass, e.jacobian, -e.bias, -e.drift)
    status = ca.if_else(solved.certified, int(Status.UNIQUE), int(Status.DECLINED))
    return {
        "acceleration": solved.acceleration,
        "multipliers": solved.multipliers,
        "status": status,
        "residuals": solved.residuals,
    }
