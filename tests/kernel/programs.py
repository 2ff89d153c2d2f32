"""CasADi functions for the tests: random straight-line programs, and one that mixes everything."""

from __future__ import annotations

import casadi as ca
import numpy as np

UNARY = ("sin", "cos", "tan", "atan", "exp", "tanh", "sqrt", "fabs", "floor", "sinh", "log1p", "erf")
BINARY = ("atan2", "fmin", "fmax", "hypot", "copysign")


def random_function(seed: int, operations: int = 60, inputs: int = 2) -> ca.Function:
    """Return a function of `inputs` vectors whose values stay of order one on inputs of order one."""
    rng = np.random.default_rng(seed)
    symbols = [ca.SX.sym(f"x{k}", int(rng.integers(1, 6))) for k in range(inputs)]
    values = [s[i] for s in symbols for i in range(s.numel())]
    for _ in range(operations):
        a, b, c = (values[i] for i in rng.integers(0, len(values), 3))
        kind = rng.random()
        if kind < 0.3:
            values.append(0.5 * a * b + 0.3 * c)
        elif kind < 0.5:
            values.append(0.4 * (a - b * c))
        elif kind < 0.6:
            values.append(a / (1.5 + b * b))
        elif kind < 0.8:
            name = UNARY[rng.integers(len(UNARY))]
            argument = ca.fabs(0.5 * a) if name in ("sqrt", "log1p") else ca.fmax(ca.fmin(a, 3.0), -1.4)
            values.append(0.3 * getattr(ca, name)(argument))
        elif kind < 0.9:
            values.append(getattr(ca, BINARY[rng.integers(len(BINARY))])(a, b))
        else:
            values.append(ca.if_else(a < b, c, 0.7 * a))
    matrix = ca.reshape(ca.vertcat(*values[-6:]), 2, 3)
    sparse = ca.diag(ca.vertcat(*values[-9:-6]))
    return ca.Function("random", symbols, [ca.vertcat(*values[-10:]), matrix, sparse])


def random_inputs(function: ca.Function, samples: int, seed: int = 1) -> list[np.ndarray]:
    """Return a batch of every input of a function."""
    rng = np.random.default_rng(seed)
    return [rng.uniform(-1, 1, (samples, function.size1_in(i))) for i in range(function.n_in())]


def casadi_values(function: ca.Function, inputs: list[np.ndarray]) -> list[np.ndarray]:
    """Return CasADi's own evaluation of a batch, shaped as kernels shape it."""
    rows = []
    for sample in zip(*inputs, strict=True):
        outputs = function.call([ca.DM(x) for x in sample])
        rows.append([np.array(ca.densify(y)) for y in outputs])
    columns = [np.stack(column) for column in zip(*rows, strict=True)]
    return [c[:, :, 0] if c.shape[2] == 1 else c for c in columns]
