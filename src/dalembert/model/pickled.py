"""A Lagrangian system as text and back, for other processes: its expressions as one CasADi function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import casadi as ca

from dalembert.errors import UnsupportedError
from dalembert.model.contact_expressions import derive_contacts
from dalembert.model.expressions import Expressions
from dalembert.model.parameters import Parameters
from dalembert.model.symbols import Symbols

if TYPE_CHECKING:
    from dalembert.model.lagrangian import Lagrangian

MATRICES = ("mass", "bias", "constraint", "rate", "jacobian", "drift", "energy")
"""Fields of `Expressions` that are SX."""


def as_state(system: Lagrangian) -> dict[str, Any]:
    """Return what a pickle holds; contacts, which may hold any function, are refused."""
    if system.contacts:
        raise UnsupportedError("a Lagrangian with friction cannot be pickled; make it anew in the other process")
    symbols, expressions = system.symbols, system.expressions
    inputs = [symbols.q, symbols.v, symbols.u, symbols.t, *symbols.parameters.symbols]
    function = ca.Function("lagrangian", inputs, [getattr(expressions, name) for name in MATRICES])
    return {
        "text": function.serialize(),
        "parameters": (symbols.parameters.names, dict(system.parameters.defaults)),
        "rows": (expressions.names, expressions.holonomic),
        "names": system.names,
        "coordinates": system.coordinates,
    }


def restore(system: Lagrangian, state: dict[str, Any]) -> None:
    """Fill in a system from what a pickle holds; symbols are new ones."""
    function = ca.Function.deserialize(state["text"])
    found = function.sx_in()
    q, v, u, t, *rest = found
    names, defaults = state["parameters"]
    system.parameters = Parameters(names, tuple(rest), defaults)
    system.symbols = Symbols(q, v, u, t, system.parameters)
    matrices = dict(zip(MATRICES, function.call(found), strict=True))
    rows, holonomic = state["rows"]
    system.expressions = Expressions(**matrices, names=rows, holonomic=holonomic)
    system.names, system.coordinates, system.contacts = state["names"], state["coordinates"], ()
    system._contact_expressions = derive_contacts(system.symbols, (), system.coordinates, system.names)
    system._kernels = {}
