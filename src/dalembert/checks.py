"""Checks of what a user gives as numbers: read as such, or refused in words."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalembert.errors import ModelError, ShapeError, refuse_masked

Array = np.ndarray


def real(name: str, value: Any) -> float:
    """Return one number."""
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise ModelError(f"{name}={value!r}: one real number is needed") from error


def called(name: str, function: Any, *arguments: Any) -> float:
    """Return the number that a user's function gives; what it raises is told in words."""
    try:
        value = function(*arguments)
    except Exception as error:
        raise ModelError(f"{name} raised {type(error).__name__} at t = {arguments[0]:g}: {error}") from error
    return real(f"{name} at t = {arguments[0]:g}", value)


def whole(name: str, value: Any) -> int:
    """Return one whole number."""
    found = real(name, value)
    if not found.is_integer():
        raise ModelError(f"{name}={value!r}: a whole number is needed")
    return int(found)


def reals(name: str, value: Any) -> Array:
    """Return an array of numbers, of any shape."""
    refuse_masked(value, name)
    try:
        return np.asarray(value, dtype=float)
    except (TypeError, ValueError) as error:
        raise ShapeError(f"{name} must be real numbers, not {value!r}") from error
