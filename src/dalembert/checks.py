"""Checks of what a user gives as numbers: read as such, or refused in words."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np

from dalembert.errors import ModelError, ShapeError

Array = np.ndarray


def refuse_masked(values: Any, what: str) -> None:
    """Raise for an array with masked entries, or a list of such: nobody meant the numbers under a mask."""
    several = values if isinstance(values, list | tuple) else ()
    masks = [getattr(one, "mask", False) for one in (values, *several) if type(one).__module__.startswith("numpy.ma")]
    if any(mask is True or getattr(mask, "any", bool)() for mask in masks):
        raise ShapeError(f"{what} is a masked array; fill what is masked: {what}.filled(...)")


def floats(values: Any, what: str) -> Array:
    """Return an array of floats, not under a mask; TypeError or ValueError where it holds no numbers."""
    refuse_masked(values, what)
    return np.asarray(values, dtype=float)


def is_number(value: Any) -> bool:
    """Say whether a value is one real number (NaN and infinity are)."""
    return isinstance(value, Real) and not isinstance(value, bool | np.bool_)


def finite_vector(values: Any, names: Sequence[str], what: str) -> Array:
    """Return a copy of one finite number per name."""
    refuse_masked(values, what)
    try:
        array = np.array(values, dtype=float)
    except (TypeError, ValueError) as error:
        raise ShapeError(f"{what} is not an array of real numbers: {error}") from error
    if array.shape != (len(names),):
        raise ShapeError(f"{what} must have shape ({len(names)},); it has {array.shape}")
    bad = np.flatnonzero(~np.isfinite(array))
    if bad.size:
        raise ModelError(f"{what}[{bad[0]}] ({names[bad[0]]!r}) is {array[bad[0]]}; a state must be finite")
    return array


def real(name: str, value: Any) -> float:
    """Return one number."""
    refuse_masked(value, name)
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
