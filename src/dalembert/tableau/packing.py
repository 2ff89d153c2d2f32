"""Known values, guess, time and parameters of a solve, packed as batches of equal length."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from dalembert.errors import ModelError, ShapeError
from dalembert.tableau.inputs import as_numbers, named_values
from dalembert.tableau.solvability import listed

if TYPE_CHECKING:
    from dalembert.tableau.tableau import Tableau

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Packed:
    """Guess (N, n), the other inputs of Newton's step (N, size), empty ones left out, and whether it is one state."""

    guess: Float[Array, "N n"]
    others: list[Array]
    single: bool


def pack(tableau: Tableau, known: Any, guess: Any, t: Any, parameters: Any) -> Packed:
    """Read what a user gives; each part is one state, or a batch of the common length N."""
    parts = {
        "known": _inputs(tableau, known),
        "guess": _guess(tableau, guess),
        "t": _time(t),
        "parameters": tableau.parameters.pack(parameters),
    }
    lengths = {what: len(part) for what, part in parts.items() if part.ndim == 2}
    if len(set(lengths.values())) > 1:
        raise ShapeError(f"batches of different lengths: {', '.join(f'{k} {n}' for k, n in lengths.items())}")
    for what, part in parts.items():
        if part.ndim > 2:
            raise ShapeError(f"{what} has more than one axis of samples: shape {part.shape}")
    count = next(iter(lengths.values()), 1)
    batches = {what: np.broadcast_to(part, (count, part.shape[-1])) for what, part in parts.items()}
    if not tableau.time.numel():
        del batches["t"]
    x = batches.pop("guess")
    return Packed(x, [part for part in batches.values() if part.shape[1]], not lengths)


def _inputs(tableau: Tableau, known: Any) -> Float[Array, "*N k"]:
    """Return the inputs of a tableau from values by name."""
    values = named_values(tableau.variables, known, "known", tableau.inputs)
    missing = [name for name in tableau.inputs if name not in values]
    if missing:
        raise ModelError(f"no value for the known {listed(missing)}")
    return _stacked([values[name] for name in tableau.inputs])


def _guess(tableau: Tableau, guess: Any) -> Float[Array, "*N n"]:
    """Return a start by place or by name; zero where nothing is given."""
    n = len(tableau.unknowns)
    if guess is None:
        return np.zeros(n)
    if isinstance(guess, Mapping):
        values = named_values(tableau.variables, guess, "guess", tableau.unknowns, finite=True)
        return _stacked([values.get(name, np.zeros(())) for name in tableau.unknowns])
    array = as_numbers(guess, "guess", finite=True)
    if array.ndim == 0:
        return np.full(n, float(array))
    if array.shape[-1] != n:
        raise ShapeError(
            f"guess must be one number, ({n},), (N, {n}), or a mapping from names of unknowns; it has {array.shape}"
        )
    return array


def _time(t: Any) -> Float[Array, "*N one"]:
    """Return one time, or one per sample."""
    array = as_numbers(t, "t", finite=True)
    if array.ndim > 1:
        raise ShapeError(f"t must be one number or (N,); it has shape {array.shape}")
    return array[..., None]


def _stacked(columns: list[Array]) -> Float[Array, "*N k"]:
    """Put numbers () and batches (N,) side by side."""
    if not columns:
        return np.empty(0)
    return np.stack(np.broadcast_arrays(*columns), axis=-1)
