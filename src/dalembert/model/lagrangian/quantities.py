"""Quantities of a Lagrangian system as functions, forward dynamics with its status among them."""

from __future__ import annotations

import casadi as ca

from dalembert.errors import ModelError, UnsupportedError
from dalembert.kkt.expressions.block_solver import solve_by_sample
from dalembert.kkt.expressions.matrix_system import MatrixSystem, unit_free_weights
from dalembert.kkt.expressions.scalars import scalar
from dalembert.kkt.expressions.verdict import BlockAnswer, Conditioning
from dalembert.model.lagrangian.contact_terms import ContactExpressions, as_outputs
from dalembert.model.lagrangian.derivation import Expressions, coriolis_matrix
from dalembert.model.lagrangian.symbols import Symbols
from dalembert.names import near_matches
from dalembert.types import Scalar

LARGEST = 25
"""Straight-line code grows with (n + m)^3: above this size compiled loops (`KKT` on batches) are the better way."""

QUANTITIES = {
    "forward": "q v force t u parameters",
    "terms": "q v t u parameters",
    "mass_matrix": "q t parameters",
    "coriolis_matrix": "q v t parameters",
    "bias": "q v t u parameters",
    "jacobian": "q t parameters",
    "drift": "q v t parameters",
    "constraint": "q t parameters",
    "constraint_velocity": "q v t parameters",
    "energy": "q v t parameters",
    "contacts": "q v t u parameters",
}
"""Every quantity, with the inputs it may have."""


def quantity(expressions: Expressions, symbols: Symbols, what: str, contacts: ContactExpressions) -> ca.Function:
    """Return the CasADi function of one quantity; forward dynamics is `forward_function`."""
    outputs = as_outputs(contacts) if what == "contacts" else _outputs(expressions, symbols, what)
    return _function(symbols, what, outputs)


def refuse_unknown(what: str) -> None:
    """Refuse what is no quantity, with the nearest name."""
    if what not in QUANTITIES:
        near = near_matches(what, QUANTITIES)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ModelError(f"what={what!r} is not one of {', '.join(map(repr, QUANTITIES))}{hint}")


def _function(symbols: Symbols, what: str, outputs: dict[str, ca.SX], force: ca.SX | None = None) -> ca.Function:
    """Return outputs as a function of the inputs that a quantity may have."""
    columns = symbols.groups if force is None else {**symbols.groups, "force": force}
    inputs = {name: columns[name] for name in input_names(symbols, what)}
    return ca.Function(what, list(inputs.values()), list(outputs.values()), list(inputs), list(outputs))


def input_names(symbols: Symbols, what: str) -> list[str]:
    """Return the names of a quantity's inputs, in order."""
    names = QUANTITIES[what]
    if what == "jacobian" and symbols.turning:
        names = names.replace("q ", "q v ")
    return [name for name in names.split() if name in symbols.sizes or name == "force"]


def _outputs(e: Expressions, symbols: Symbols, what: str) -> dict[str, ca.SX]:
    match what:
        case "terms":
            return {"mass_matrix": e.mass, "bias": e.bias, "jacobian": e.jacobian, "drift": e.drift}
        case "mass_matrix":
            return {what: e.mass}
        case "coriolis_matrix":
            return {what: coriolis_matrix(symbols, e.mass)}
        case "constraint_velocity":
            return {what: e.rate}
        case "energy":
            return {"kinetic": e.kinetic, "potential": e.potential}
        case _:
            return {what: getattr(e, what)}


def forward_function(e: Expressions, symbols: Symbols, needs: Conditioning, eps: float) -> ca.Function:
    """Return the constrained forward dynamics: acceleration (n,), multipliers (m,), status (1,).

    `needs` says which rows are kept and whether M may be singular; `eps` is the rounding unit of the numbers to come.
    """
    n, m = e.mass.shape[0], e.jacobian.shape[0]
    if n + m > LARGEST:
        raise UnsupportedError(
            f"n + m = {n + m} is too large for straight-line code (at most {LARGEST}); system.forward(q, v) solves "
            'such batches through KKT, and compile("terms") gives M, bias, A and drift'
        )
    force = ca.SX.sym("force", n)
    inputs = [*symbols.scalars, *ca.vertsplit(force)]
    answer = block_answer(e.mass, e.jacobian, needs, force - e.bias, -e.drift, inputs, eps)
    outputs = {"acceleration": answer.acceleration, "multipliers": answer.multipliers, "status": [answer.status]}
    return _function(symbols, "forward", {name: ca.SX(ca.vertcat(*x)) for name, x in outputs.items()}, force)


def block_answer(
    mass: ca.SX, jacobian: ca.SX, needs: Conditioning, f: ca.SX, c: ca.SX, inputs: list[Scalar], eps: float
) -> BlockAnswer:
    """Return a and lam of M a + A^T lam = f, A a = c with the verdict of each sample."""
    M, A = _rows(mass), _rows(jacobian)
    for k in range(mass.shape[0]):
        M[k][k] = mass[k, k]  # an expression, be it zero: a coordinate without mass is a status, not an error
    system = MatrixSystem.weighed(M, A, unit_free_weights(M, A, needs.implied) if needs.massless else [])
    return solve_by_sample(system, needs, _column(f), _column(c), inputs, eps)


def _rows(matrix: ca.SX) -> list[list[Scalar]]:
    """Return rows of scalars; constants are floats."""
    return [[scalar(matrix[i, j]) for j in range(matrix.shape[1])] for i in range(matrix.shape[0])]


def _column(x: ca.SX) -> list[Scalar]:
    return [scalar(x[i]) for i in range(x.numel())]
