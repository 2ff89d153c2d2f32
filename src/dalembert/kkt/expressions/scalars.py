"""Arithmetic on what straight-line code is written over: numbers that are known, and values that are not yet.

A scalar is a Python float (known when the model is: a length, a mass, a structural zero) or anything with + - * /: a
CasADi expression, an array with one entry per sample, a symbol that is only counted. Known zeros and ones vanish
here, so that no algorithm has to speak of sparsity.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dalembert.kkt.limits import CLOSED
from dalembert.types import Scalar


def scalar(x: Any) -> Scalar:
    """Return a CasADi expression as a scalar: constants are floats."""
    return float(x) if x.is_constant() else x


def is_zero(x: Scalar) -> bool:
    """Say whether x is known to be zero."""
    return type(x) is float and x == 0.0


def add(x: Scalar, y: Scalar) -> Scalar:
    """Return x + y."""
    if is_zero(x):
        return y
    return x if is_zero(y) else x + y


def sub(x: Scalar, y: Scalar) -> Scalar:
    """Return x - y."""
    if is_zero(y):
        return x
    return -y if is_zero(x) else x - y


def cancelled(x: Scalar, y: Scalar) -> Scalar:
    """Return x - y; known numbers that differ by rounding alone are equal."""
    if type(x) is float and type(y) is float and math.isclose(x, y, rel_tol=CLOSED):
        return 0.0
    return sub(x, y)


def neg(x: Scalar) -> Scalar:
    """Return -x."""
    return 0.0 if is_zero(x) else -x


def mul(x: Scalar, y: Scalar) -> Scalar:
    """Return x y."""
    if type(y) is float:
        x, y = y, x
    if type(x) is float and type(y) is not float:
        if x == 0.0:
            return 0.0
        if abs(x) == 1.0:
            return y if x > 0 else -y
    return x * y


def total(*terms: Scalar) -> Scalar:
    """Return the sum of the terms, from left to right."""
    result: Scalar = 0.0
    for term in terms:
        result = add(result, term)
    return result


def minus_inverse(x: Scalar) -> Scalar:
    """Return -1/x: with this sign CasADi keeps the reciprocal, so that one division serves many products."""
    return -1.0 / x


def cos(x: Scalar) -> Scalar:
    """Return the cosine."""
    if type(x) is float:
        return math.cos(x)
    return x.cos() if hasattr(x, "cos") else np.cos(x)


def sin(x: Scalar) -> Scalar:
    """Return the sine."""
    if type(x) is float:
        return math.sin(x)
    return x.sin() if hasattr(x, "sin") else np.sin(x)


def sqrt(x: Scalar) -> Scalar:
    """Return the square root."""
    if type(x) is float:
        return math.sqrt(x)
    return x.sqrt() if hasattr(x, "sqrt") else np.sqrt(x)


def atan2(y: Scalar, x: Scalar) -> Scalar:
    """Return the angle of (x, y)."""
    if isinstance(y, float | np.ndarray) and isinstance(x, float | np.ndarray):
        return np.arctan2(y, x)
    return _other("atan2", y, x)


def copysign(x: Scalar, y: Scalar) -> Scalar:
    """Return |x| with the sign of y."""
    if isinstance(x, float | np.ndarray) and isinstance(y, float | np.ndarray):
        return np.copysign(x, y)
    return _other("copysign", y, x)


def fmax(x: Scalar, y: Scalar) -> Scalar:
    """Return the larger one."""
    if isinstance(x, float | np.ndarray) and isinstance(y, float | np.ndarray):
        return np.fmax(x, y)
    return _other("fmax", x, y)


def fmin(x: Scalar, y: Scalar) -> Scalar:
    """Return the smaller one."""
    if isinstance(x, float | np.ndarray) and isinstance(y, float | np.ndarray):
        return np.fmin(x, y)
    return _other("fmin", x, y)


def _other(name: str, y: Scalar, x: Scalar) -> Scalar:
    """Return a function of two scalars that are counted, or CasADi's."""
    counted = getattr(y, "with_other", None)
    if counted is not None:
        return counted(name, x)
    import casadi

    return casadi.copysign(x, y) if name == "copysign" else getattr(casadi, name)(y, x)
