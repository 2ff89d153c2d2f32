"""Sparse combinations that a person can read, from a numerical null-space basis.

A basis of null(A^T) or of free motions comes out of an orthogonal decomposition as dense columns. Reduced to echelon
form, with the last entries as pivots, each column says one thing: "row 5 is row 1 + row 2".
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

Array = np.ndarray

PIVOT = 1e-3
"""A pivot must be at least this part of the largest entry left in the basis, so that elimination stays stable."""

NEGLIGIBLE = 1e-9
"""Coefficients below this are rounding and become zero."""


def echelon(basis: Float[Array, "m k"]) -> tuple[Float[Array, "m k"], list[int]]:
    """Return the column-reduced basis and the pivot rows, later rows preferred as pivots.

    Column j of the result is 1 at pivot j and 0 at all other pivots.
    """
    reduced = np.array(basis, dtype=float)
    k = reduced.shape[1]
    pivots: list[int] = []
    free = list(range(k))
    for row in _by_preference(reduced):
        if not free:
            break
        column = max(free, key=lambda j: abs(reduced[row, j]))
        if abs(reduced[row, column]) < PIVOT * np.abs(reduced[:, free]).max():
            continue
        reduced[:, column] /= reduced[row, column]
        others = [j for j in range(k) if j != column]
        reduced[:, others] -= np.outer(reduced[:, column], reduced[row, others])
        free.remove(column)
        pivots.append(row)
    order = [int(np.argmax(np.abs(reduced[row]))) for row in pivots]
    reduced = reduced[:, order]
    reduced[np.abs(reduced) < NEGLIGIBLE * np.abs(reduced).max(axis=0, initial=0.0)] = 0.0
    return reduced + 0.0, pivots


def combination(coefficients: Float[Array, " m"], names: tuple[str, ...]) -> str:
    """Write a linear combination, such as "left x - 2 right x", leaving out zeros."""
    terms: list[str] = []
    for value, name in zip(coefficients, names, strict=True):
        if value == 0.0:
            continue
        size = "" if abs(abs(value) - 1.0) < NEGLIGIBLE else f"{abs(value):.6g} "
        sign = ("-" if value < 0 else "") if not terms else ("- " if value < 0 else "+ ")
        terms.append(f"{sign}{size}{name}")
    return " ".join(terms) if terms else "0"


def _by_preference(basis: Float[Array, "m k"]) -> list[int]:
    """Return row indices from last to first; rows that no vector touches come last."""
    touched = np.abs(basis).max(axis=1, initial=0.0) > NEGLIGIBLE
    rows = range(basis.shape[0] - 1, -1, -1)
    return [i for i in rows if touched[i]] + [i for i in rows if not touched[i]]
