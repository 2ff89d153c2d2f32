"""Arguments and exact values for elementary functions: what a correct result is, bit by bit."""

from __future__ import annotations

import casadi as ca
import mpmath
import numpy as np

from dalembert.kernel.program.program import ARITY, Op

EXACT = {
    Op.SIN: mpmath.sin,
    Op.COS: mpmath.cos,
    Op.TAN: mpmath.tan,
    Op.ASIN: mpmath.asin,
    Op.ACOS: mpmath.acos,
    Op.ATAN: mpmath.atan,
    Op.ATAN2: mpmath.atan2,
    Op.EXP: mpmath.exp,
    Op.EXPM1: mpmath.expm1,
    Op.LOG: mpmath.log,
    Op.LOG1P: mpmath.log1p,
    Op.SINH: mpmath.sinh,
    Op.COSH: mpmath.cosh,
    Op.TANH: mpmath.tanh,
    Op.ASINH: mpmath.asinh,
    Op.ACOSH: mpmath.acosh,
    Op.ATANH: mpmath.atanh,
    Op.POW: mpmath.power,
    Op.HYPOT: mpmath.hypot,
    Op.ERF: mpmath.erf,
    Op.ERFINV: mpmath.erfinv,
}
# Lowest and highest argument, and the smallest magnitude that is drawn.
RANGES = {
    Op.SIN: (-1e300, 1e300, 1e-300),
    Op.COS: (-1e300, 1e300, 1e-300),
    Op.TAN: (-1e300, 1e300, 1e-300),
    Op.ASIN: (-1.0, 1.0, 1e-300),
    Op.ACOS: (-1.0, 1.0, 1e-300),
    Op.ATAN: (-1e300, 1e300, 1e-300),
    Op.ATAN2: (-1e150, 1e150, 1e-150),
    Op.EXP: (-700.0, 709.0, 1e-20),
    Op.EXPM1: (-60.0, 709.0, 1e-300),
    Op.LOG: (5e-324, 1e300, 5e-324),
    Op.LOG1P: (-0.999999, 1e300, 1e-300),
    Op.SINH: (-709.0, 709.0, 1e-300),
    Op.COSH: (-709.0, 709.0, 1e-300),
    Op.TANH: (-30.0, 30.0, 1e-300),
    Op.ASINH: (-1e300, 1e300, 1e-300),
    Op.ACOSH: (1.0, 1e300, 1e-15),
    Op.ATANH: (-1.0, 1.0, 1e-300),
    Op.POW: (1e-3, 100.0, 1e-3),
    Op.HYPOT: (-1e150, 1e150, 1e-150),
    Op.ERF: (-6.0, 6.0, 1e-300),
    Op.ERFINV: (-1.0 + 1e-15, 1.0 - 1e-15, 1e-12),
}


def arguments(op: Op, count: int, seed: int = 0) -> np.ndarray:
    """Return (count, arity) arguments: half spread evenly over magnitudes, half evenly over the middle of the range."""
    low, high, smallest = RANGES[op]
    rng = np.random.default_rng(seed)
    shape = (count // 2, ARITY[op])
    largest = max(abs(low), abs(high))
    wide = np.exp(rng.uniform(np.log(smallest), np.log(largest), shape)) * rng.choice([-1.0, 1.0], shape)
    narrow = rng.uniform(max(low, -8.0), min(high, 8.0), (count - count // 2, ARITY[op]))
    if op == Op.ACOSH:
        wide = 1.0 + np.abs(wide)
    return np.clip(np.concatenate([wide, narrow]), low, high)


def function(op: Op) -> ca.Function:
    """Return a CasADi function that is just this operation."""
    symbols = [ca.SX.sym(name) for name in "xy"[: ARITY[op]]]
    names = {Op.POW: "power"}
    expression = getattr(ca, names.get(op, op.name.lower()))(*symbols)
    return ca.Function(op.name.lower(), symbols, [expression])


def ulp_errors(op: Op, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return |y - exact| in units in the last place of the exact value."""
    errors = np.zeros(len(x))
    with mpmath.workprec(1300 if op in (Op.SIN, Op.COS, Op.TAN) else 300):
        for k, (arguments_k, value) in enumerate(zip(x, y, strict=True)):
            exact = EXACT[op](*[mpmath.mpf(float(a)) for a in arguments_k])
            unit = np.spacing(abs(float(exact)))
            errors[k] = float(abs(mpmath.mpf(float(value)) - exact) / mpmath.mpf(float(unit)))
    return errors
