"""Checks of what users hand over: numbers, counts, index pairs, values by name."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from dalembert.errors import ModelError, ShapeError
from dalembert.kkt.inputs import as_real
from dalembert.names import near_matches
from dalembert.types import Array

if TYPE_CHECKING:
    from jaxtyping import Float, Int

    from dalembert.tableau.variables import Variables


def as_numbers(value: Any, what: str, finite: bool = False) -> Float[Array, "..."]:
    """Return an array of floats; a column of CasADi numbers is a vector."""
    if isinstance(value, (ca.SX, ca.MX)):
        raise ModelError(f"{what} is a CasADi expression, {value}; numbers are needed")
    if isinstance(value, ca.DM):
        value = value.full().ravel() if value.is_vector() else value.full()
    array, _ = as_real(value, what)
    if finite and not np.isfinite(array).all():
        raise ModelError(f"{what} holds NaN or infinity")
    return array


def as_scalar(value: Any, what: str, low: float = -np.inf, high: float = np.inf) -> float:
    """Return one finite number between two bounds."""
    array = as_numbers(value, what, finite=True)
    if array.size != 1:
        raise ShapeError(f"{what} is one number; it has shape {array.shape}")
    number = float(array.reshape(()))
    if not low <= number <= high:
        raise ModelError(f"{what} must lie between {low:g} and {high:g}; it is {number:g}")
    return number


def as_count(value: Any, what: str) -> int:
    """Return a whole number of at least one."""
    try:
        count = operator.index(value)
    except TypeError:
        raise ModelError(f"{what} must be a whole number; got {value!r}") from None
    if count < 1:
        raise ModelError(f"{what} must be at least 1; it is {count}")
    return count


def as_flag(value: Any, what: str) -> bool:
    """Return a truth value."""
    if not isinstance(value, (bool, np.bool_)):
        raise ModelError(f"{what} must be True or False; got {value!r}")
    return bool(value)


def as_mapping(value: Any, what: str) -> dict[Any, Any]:
    """Return a mapping as a dict; None is an empty one."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ModelError(f"{what} must be a mapping from names, {{name: ...}}, not {type(value).__name__}")
    return dict(value)


def as_list(value: Any, what: str, things: str) -> list[Any]:
    """Return what can be looped over as a list; text is one thing."""
    try:
        if isinstance(value, (str, bytes)):
            raise TypeError
        return list(value)
    except (TypeError, NotImplementedError):
        raise ModelError(f"{what} must be a list of {things}, not {type(value).__name__}") from None


def as_names(value: Any, what: str) -> list[str]:
    """Return names from an iterable of strings; one string is one name."""
    if isinstance(value, str):
        return [value]
    names = as_list(value, what, "names")
    for name in names:
        if not isinstance(name, str):
            raise ModelError(f"{what}: a name is a string; got {name!r} ({type(name).__name__})")
    return names


def as_pairs(value: Any, rows: int, cols: int, what: str) -> list[tuple[int, int]]:
    """Return (row, column) pairs of indices, each inside a matrix of rows x cols."""
    try:
        pairs = [(operator.index(i), operator.index(j)) for i, j in as_list(value, what, "pairs")]
    except (TypeError, ValueError):
        raise ModelError(
            f"{what} must be (equation, unknown) pairs of indices, such as [(0, 2)]; got {value!r}"
        ) from None
    for i, j in pairs:
        if not (0 <= i < rows and 0 <= j < cols):
            raise ModelError(f"{what}: ({i}, {j}) lies outside {rows} equations and {cols} unknowns, counted from 0")
    return pairs


def as_indices(value: Any, n: int, what: str) -> Int[Array, " k"]:
    """Return distinct indices from 0 to n - 1."""
    listed = as_list(value, what, "indices")
    if not all(isinstance(i, (int, np.integer)) and not isinstance(i, bool) for i in listed):
        raise ModelError(f"{what} must be a list of indices, whole numbers; got {listed}")
    chosen = [int(i) for i in listed]
    if len(set(chosen)) != len(chosen) or not all(0 <= i < n for i in chosen):
        raise ModelError(f"{what} must be distinct indices from 0 to {n - 1}; got {chosen}")
    return np.array(chosen, dtype=np.int64)


def known_options(maker: Any, options: dict[str, Any], *others: str) -> dict[str, Any]:
    """Return options that a maker takes; others are refused by name."""
    names = [*list(inspect.signature(maker).parameters)[1:], *others]
    for option in options:
        if option not in names:
            near = near_matches(option, names)
            raise ModelError(f"{option!r} is no option here; there are {', '.join(names)}", near=near)
    return options


def named_values(
    variables: Variables, values: Any, what: str, allowed: Iterable[str], finite: bool = False
) -> dict[str, Float[Array, "*K"]]:
    """Return values per scalar, () or (K,), from values by name; rates carry primes.

    Parameters
    ----------
    values
        Name of a variable or of an element -> (size,) or (K, size); () or (K,) of a single number.
    allowed
        Scalars, with primes where rates are meant, that may be given.

    A name that is none, a scalar that is given twice, a wrong shape and batches of different lengths are refused.
    """
    numbers: dict[str, Array] = {}
    source: dict[str, str] = {}
    permitted = dict.fromkeys(allowed)
    for name, value in as_mapping(values, what).items():
        base, suffix = _parted(variables, name, what)
        scalars = [variables.names[s] + suffix for s in variables.find([base], what)]
        array = as_numbers(value, f"{what}: the value of {name!r}", finite)
        if len(scalars) == 1 and (array.ndim == 0 or array.shape[-1] != 1):
            array = array[..., None]
        if array.ndim not in (1, 2) or array.shape[-1] != len(scalars):
            raise ShapeError(
                f"{what}: {name!r} has {len(scalars)} element(s), hence shape ({len(scalars)},) or "
                f"(N, {len(scalars)}); the value has shape {array.shape}"
            )
        for k, scalar in enumerate(scalars):
            if scalar in source:
                raise ModelError(f"{what}: {scalar!r} is given twice, as {source[scalar]!r} and as {name!r}")
            if scalar not in permitted:
                raise ModelError(f"{what}: {_stranger(scalar, suffix, permitted, what)}")
            source[scalar], numbers[scalar] = name, array[..., k]
    lengths = {len(v) for v in numbers.values() if v.ndim}
    if len(lengths) > 1:
        raise ShapeError(f"{what}: batches of different lengths: {sorted(lengths)}")
    return numbers


def _parted(variables: Variables, name: Any, what: str) -> tuple[str, str]:
    """Return the name of a variable and the primes behind it."""
    if not isinstance(name, str):
        raise ModelError(f"{what}: a name is a string; got {name!r} ({type(name).__name__})")
    if name in variables.groups or name in variables.names:
        return name, ""
    base = name.rstrip("'")
    return base, name[len(base) :]


def _stranger(scalar: str, suffix: str, permitted: Mapping[str, Any], what: str) -> str:
    """Say why a variable of the tableau takes no value here."""
    near = near_matches(scalar, permitted)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    if suffix:
        return f"the equations do not contain {scalar!r}{hint}"
    return f"{scalar!r} is not {'known' if what == 'known' else 'unknown'} in this tableau; with_known() chooses{hint}"
