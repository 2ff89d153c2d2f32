"""Checks of what a user gives as numbers: read as such, or refused in words.

Every check takes the value and what it is called. Arrays that are no numbers and wrong shapes raise `ShapeError`, wrong
values `ModelError`; rooms that know more (a file and a line, a joint) put it before these words.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Real
from reprlib import Repr
from typing import Any

import numpy as np

from dalembert.errors import ModelError, ShapeError
from dalembert.types import Array

SHOWN = 80
"""Characters of a value that a message shows."""


def refuse_masked(values: Any, what: str) -> None:
    """Raise for an array with masked entries, or a list of such: nobody meant the numbers under a mask."""
    several = values if isinstance(values, list | tuple) else ()
    masks = [getattr(x, "mask", False) for x in (values, *several) if type(x).__module__.startswith("numpy.ma")]
    if any(mask is True or getattr(mask, "any", bool)() for mask in masks):
        raise ShapeError(f"{what} is a masked array; fill what is masked: {what}.filled(...)")


def floats(values: Any, what: str) -> Array:
    """Return an array of floats, of any shape; what is complex, masked or no number is refused."""
    if type(values) is np.ndarray and values.dtype == np.float64:
        return values
    refuse_masked(values, what)
    if getattr(getattr(values, "dtype", None), "kind", "") == "c":
        raise ShapeError(f"{what} must be real numbers; it is complex")
    try:
        if values is None:  # which NumPy takes for NaN
            raise TypeError
        return np.asarray(values, dtype=float)
    except (TypeError, ValueError, OverflowError) as error:
        raise ShapeError(f"{what} must be real numbers, not {shown(values)}") from error


def vectors(values: Any, size: int, what: str, letter: str = "") -> Array:
    """Return floats (..., size): one vector, or a batch with any leading axes; `letter` is what the size is called."""
    array = floats(values, what)
    if array.shape[-1:] != (size,):
        named = f" ({letter} = {size})" if letter else ""
        raise ShapeError(
            f"{what} must have shape ({size},), or (..., {size}) for a batch{named}; it has {np.shape(values)}"
        )
    return array


def finite_vector(values: Any, names: Sequence[str], what: str) -> Array:
    """Return a copy of one finite number per name."""
    array = np.array(floats(values, what))
    if array.shape != (len(names),):
        raise ShapeError(f"{what} must have shape ({len(names)},); it has {array.shape}")
    bad = np.flatnonzero(~np.isfinite(array))
    if bad.size:
        raise ModelError(f"{what}[{bad[0]}] ({names[bad[0]]!r}) is {array[bad[0]]}; a state must be finite")
    return array


def is_number(value: Any) -> bool:
    """Say whether a value is one real number (NaN and infinity are)."""
    return isinstance(value, Real) and not isinstance(value, bool | np.bool_)


def one_number(value: Any, what: str) -> float:
    """Return one number, also from an array that holds no other."""
    if type(value) is float:
        return value
    refuse_masked(value, what)
    try:
        return float(floats(value, what).reshape(()))
    except ValueError as error:
        raise ModelError(f"{what}={shown(value)}: one real number is needed") from error


def whole_number(value: Any, what: str) -> int:
    """Return one whole number; 3.0 is one."""
    number = one_number(value, what)
    if not number.is_integer():
        raise ModelError(f"{what}={shown(value)}: a whole number is needed")
    return int(number)


def called(name: str, function: Callable[..., Any], *arguments: Any) -> float:
    """Return the number that a user's function gives; what it raises is told in words."""
    try:
        value = function(*arguments)
    except Exception as error:
        raise ModelError(f"{name} raised {type(error).__name__} at t = {arguments[0]:g}: {error}") from error
    return one_number(value, f"{name} at t = {arguments[0]:g}")


def shown(value: Any) -> str:
    """Return a value as a message shows it, cut where it is long."""
    short = Repr()
    short.maxstring = short.maxother = short.maxlong = SHOWN
    return short.repr(value)
