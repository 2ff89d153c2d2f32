"""A start for Newton's method by causality: equations that give their output explicitly are evaluated in solving order.

In solving order, a block of one equation that is affine in its output y gives it at once,

    y = y0 - G(y0) / (dG/dy)

with everything before it already found. Blocks of several equations keep their guess. Where all blocks are of this
kind, the start is the solution, and the code is what one would have written by hand (the recursion of Newton and
Euler, for inverse dynamics of a tree).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import casadi as ca

from dalembert.tableau.plan import Plan

if TYPE_CHECKING:
    from dalembert.tableau.tableau import Tableau


def causal_start(tableau: Tableau, plan: Plan) -> ca.Function:
    """Return the start, a function of (guess, x_dot, u, t, parameters), empty ones left out."""
    x = ca.vertsplit(tableau.x)
    rows = ca.vertsplit(tableau.residual)
    place = {s.element_hash(): j for j, s in enumerate(x)}
    value: list[ca.SX] = list(x)
    for first, last in zip(plan.begins[:-1], plan.begins[1:], strict=True):
        if last - first == 1:
            i, j = int(plan.rows[first]), int(plan.cols[first])
            slope = ca.jacobian(rows[i], x[j])
            if slope.nnz() and not ca.depends_on(slope, x[j]):
                step = x[j] - rows[i] / slope
                used = [s for s in ca.symvar(step) if s.element_hash() in place]
                value[j] = _with_values(step, used, [value[place[s.element_hash()]] for s in used])
    inputs = {
        "guess": tableau.x,
        "x_dot": tableau.x_dot,
        "u": tableau.u,
        "t": tableau.time,
        "parameters": tableau.parameters.column,
    }
    kept = {name: symbol for name, symbol in inputs.items() if symbol.numel()}
    return ca.Function("causal_start", list(kept.values()), [ca.vertcat(*value)], list(kept), ["x"])


def _with_values(expression: ca.SX, symbols: list[ca.SX], values: list[ca.SX]) -> ca.SX:
    """Return the expression with values in place of symbols."""
    if not symbols:
        return expression
    return ca.substitute([expression], [ca.vertcat(*symbols)], [ca.vertcat(*values)])[0]
