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


def echelon(
    basis: Float[Array, "m k"], scales: Float[Array, " m"], negligible: float = NEGLIGIBLE
) -> tuple[Float[Array, "m k"], list[int]]:
    """Return the column-reduced basis diag(scales) @ basis and its pivot rows, later rows preferred as pivots.

    Column j of the result is 1 at pivot j and 0 at all other pivots. Pivots and zeros are decided on `basis` itself,
    whose entries are of one size; the scales put it into the user's units afterwards.
    """
    reduced = np.linalg.qr(basis)[0]
    k = reduced.shape[1]
    pivots: list[int] = []
    for column in range(k):
        row = _pivot_row(reduced[:, column:])
        best = column + int(np.argmax(np.abs(reduced[row, column:])))
        reduced[:, [column, best]] = reduced[:, [best, column]]
        reduced[:, column] /= reduced[row, column]
        others = [j for j in range(k) if j != column]
        reduced[:, others] -= np.outer(reduced[:, column], reduced[row, others])
        pivots.append(row)
    reduced[np.abs(reduced) < negligible * np.abs(reduced).max(axis=0, initial=0.0)] = 0.0
    return scales[:, None] * reduced / scales[pivots] + 0.0, pivots


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


def _pivot_row(columns: Float[Array, "m j"]) -> int:
    """Return the last row with an entry large enough to be a pivot."""
    size = np.abs(columns).max(axis=1)
    return int(np.flatnonzero(size >= PIVOT * size.max())[-1])
