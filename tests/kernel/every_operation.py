"""One function that holds every operation, and arguments that suit each of them."""

from __future__ import annotations

import casadi as ca
import numpy as np

from dalembert.kernel.program.program import ARITY, SAME_IN_CASADI, Op

NAMES = {Op.POW: "power", Op.NEG: "__neg__", Op.NOT: "logic_not", Op.AND: "logic_and", Op.OR: "logic_or"}
OPERATORS = {
    Op.ADD: lambda x, y: x + y,
    Op.SUB: lambda x, y: x - y,
    Op.MUL: lambda x, y: x * y,
    Op.DIV: lambda x, y: x / y,
    Op.NEG: lambda x: -x,
    Op.LT: lambda x, y: x < y,
    Op.LE: lambda x, y: x <= y,
    Op.EQ: lambda x, y: x == y,
    Op.NE: lambda x, y: x != y,
    Op.IF_ELSE_ZERO: lambda x, y: ca.if_else(x > 0.25, y, 0),
}
SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, np.inf, -np.inf, np.nan, 3.0)


def every_operation() -> ca.Function:
    """Return x, y -> each operation of x and y, one output each, in the order of `SAME_IN_CASADI`."""
    x, y = ca.SX.sym("x"), ca.SX.sym("y")
    results = []
    for op in SAME_IN_CASADI:
        make = OPERATORS.get(op) or getattr(ca, NAMES.get(op, op.name.lower()))
        results.append(make(*(x, y)[: ARITY[op]]))
    results += [x * y + 2.5, x * y - 0.1, y - 0.3 * x, ca.sin(y) + ca.cos(y), x / y + 1 / y]
    return ca.Function("every", [x, y], [ca.vertcat(*results)], ["x", "y"], ["z"])


def arguments() -> list[np.ndarray]:
    """Return a batch of x and y: values inside and outside of every domain, special ones included."""
    rng = np.random.default_rng(0)
    ordinary = rng.uniform(-3, 3, (60, 2))
    inside = rng.uniform(-1, 1, (60, 2))
    special = np.array(np.meshgrid(SPECIAL, SPECIAL)).reshape(2, -1).T
    table = np.concatenate([ordinary, inside, special])
    return [table[:, :1].copy(), table[:, 1:].copy()]
