"""Rows of a mechanism, freed from what its numbers cannot say: lengths and angles in files have about six digits.

Symbols: B = g A d, A with columns scaled by d = M_ii^-1/2 and the rows of each constraint by one factor g; B = U S V^T.

A loop in a plane has a row across it, whose entries are rounding of the file; scaled up, it would pass for a row of its
own and demand forces without limit. Singular values of B below `digits` of the largest are taken for zero, and a right
side that contradicts the rows by no more than that is taken to agree with them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

Array = np.ndarray

FILE_DIGITS = 1e-6
BUILT_DIGITS = 1e-9
"""Relative size of what counts as rounding of a model that was read from a file, or built from numbers in full."""

AGREEMENT = 1e-6
"""Right sides may contradict redundant rows by this fraction of their size, and are then made to agree."""

ROUNDING = 1e-14
"""Singular values below this fraction are rounding of the computer: nothing has to be freed of them. A row so small
beside the others is nothing but rounding, whatever its constraint: scaled up, it would pass for a row."""

NOTHING = 0.1
"""Entries of freed rows below this part of `digits` are zero: scaled up, they would look like entries."""


def model_rows(
    M: Float[Array, "*batch n n"],
    A: Float[Array, "*batch m n"],
    drift: Float[Array, "*batch m"],
    groups: Sequence[int],
    digits: float,
) -> tuple[Float[Array, "*batch m n"], Float[Array, "*batch m"], float | None]:
    """Return A and drift with only those rows that the model's digits can tell apart; unchanged where all can be.

    The third is the rank tolerance to solve them with: `digits` where rows were freed, otherwise None.
    """
    if not A.shape[-2] or not np.isfinite(A).all():
        return A, drift, None
    mass = np.abs(np.diagonal(M, axis1=-2, axis2=-1))
    d = np.where(mass > 0, mass, 1.0) ** -0.5
    size = np.linalg.norm(A * d[..., None, :], axis=-1)
    nothing = (size > 0) & (size <= ROUNDING * size.max(axis=-1, keepdims=True))
    A, size = np.where(nothing[..., None], 0.0, A), np.where(nothing, 0.0, size)
    g = _group_scales(size, groups)
    B = g[..., None] * A * d[..., None, :]
    U, S, Vt = np.linalg.svd(B, full_matrices=False)
    largest = S[..., :1]
    keep = largest * digits < S
    doubtful = (~keep & (largest * ROUNDING < S)).any(axis=-1) | nothing.any(axis=-1)
    freed = (U * np.where(keep, S, 0.0)[..., None, :]) @ Vt / (g[..., None] * d[..., None, :])
    freed = np.where(np.abs(freed * g[..., None] * d[..., None, :]) > NOTHING * digits * largest[..., None], freed, 0.0)
    where = np.asarray(doubtful)[..., None]
    A = np.where(where[..., None], np.where(A == 0.0, 0.0, freed), A)
    c = g * drift
    seen = np.einsum("...ij,...j->...i", U * keep[..., None, :], np.einsum("...ij,...i->...j", U, c))
    agrees = np.linalg.norm(c - seen, axis=-1) <= AGREEMENT * np.linalg.norm(c, axis=-1)
    agrees &= doubtful | (size == 0).any(axis=-1)  # a row of zeros must not ask for rounding
    drift = np.where(np.asarray(agrees)[..., None], seen / g, drift)
    return A, drift, digits if where.any() else None


def _group_scales(size: Float[Array, "*batch m"], groups: Sequence[int]) -> Float[Array, "*batch m"]:
    """Return one over the size of the largest row of each row's group; one where all are zero."""
    scales = np.ones_like(size)
    for group in set(groups):
        members = np.array([each == group for each in groups])
        largest = size[..., members].max(axis=-1, keepdims=True)
        scales[..., members] = np.where(largest > 0, 1.0 / np.where(largest > 0, largest, 1.0), 1.0)
    return scales
