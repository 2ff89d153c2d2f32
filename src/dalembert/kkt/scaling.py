"""Equilibration of the block matrix, so that the units of rows and coordinates do not decide ranks.

Symbols: D = diag(d) scales coordinates, E = diag(e) scales constraint rows; the scaled matrix is

    [ D M D    D A^T E ]
    [ E A D       0    ]

All scales are powers of two, so that scaling is exact.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

Array = np.ndarray

SWEEPS = 6
"""Ruiz sweeps; each halves the logarithm of what is left, so six bring a spread of 1e16 below a factor of two."""

NOISE = 4 * np.finfo(float).eps
"""Entries of A below this part of their row's largest are rounding noise (cos(pi/2) = 6e-17) and set no scale."""


def block_scales(
    A: Float[Array, "m n"], M: Float[Array, "n n"] | None = None
) -> tuple[Float[Array, " n"], Float[Array, " m"]]:
    """Return scales (d, e) that bring the largest entry of every row of the block matrix to about one.

    Ruiz' simultaneous row and column scaling in the maximum norm, started from rows of size one. Without `M`
    the columns are scaled by A alone, which is what a rank of A must be decided on.

    Source: D. Ruiz, "A scaling algorithm to equilibrate both rows and columns norms in matrices", RAL-TR-2001-034.
    """
    absA = np.abs(A)
    absM = np.zeros((A.shape[1], A.shape[1])) if M is None else np.abs(M)
    largest = absA.max(axis=1, initial=0.0)
    absA[absA <= NOISE * largest[:, None]] = 0.0
    e = _reciprocal(largest)
    d = np.ones(A.shape[1])
    for _ in range(SWEEPS):
        block = e[:, None] * absA * d
        column = np.maximum(block.max(axis=0, initial=0.0), (d[:, None] * absM * d).max(axis=0, initial=0.0))
        e *= np.sqrt(_reciprocal(block.max(axis=1, initial=0.0)))
        d *= np.sqrt(_reciprocal(column))
    return power_of_two(d), power_of_two(e)


def power_of_two(x: Float[Array, " k"]) -> Float[Array, " k"]:
    """Return the power of two nearest to each positive entry (in the logarithm)."""
    return np.exp2(np.round(np.log2(x)))


def _reciprocal(x: Float[Array, " k"]) -> Float[Array, " k"]:
    """Return 1/x, and 1 where x is zero: an empty row or column keeps its scale."""
    return 1.0 / np.where(x > 0.0, x, 1.0)
