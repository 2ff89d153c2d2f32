"""Rows of a mechanism, freed from what its numbers cannot say: lengths and angles in files have about six digits.

Symbols: B = g A d, A with columns scaled by d = M_ii^-1/2 and the rows of each constraint by one factor g; B = U S V^T.

A loop in a plane has a row across it, whose entries are rounding of the file; scaled up, it would pass for a row of its
own and demand forces without limit. Singular values of B below `digits` of the largest are taken for zero, and a right
side that contradicts the rows by no more than that is taken to agree with them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Float

Array = np.ndarray

FILE_DIGITS = 1e-6
BUILT_DIGITS = 1e-9
"""Relative size of what counts as rounding of a model that was read from a file, or built from numbers in full."""

ROUNDING = 1e-14
"""Singular values below this fraction are rounding of the computer: nothing has to be freed of them. A row so small
beside the others is nothing but rounding, whatever its constraint: scaled up, it would pass for a row."""

NOTHING = 0.1
"""Entries of freed rows below this part of `digits` are zero: scaled up, they would look like entries."""


class ModelRows(NamedTuple):
    """A and drift as the model's digits allow them.

    Attributes
    ----------
    A, drift
        (m, n), (m,); unchanged where all rows can be told apart.
    tolerance
        Rank tolerance to solve them with: `digits` where rows were freed, otherwise None.
    agree
        Whether redundant rows contradict each other by no more than the model's digits, and count as consistent.
    """

    A: Array
    drift: Array
    tolerance: float | None
    agree: bool


def model_rows(
    M: Float[Array, "*batch n n"],
    A: Float[Array, "*batch m n"],
    drift: Float[Array, "*batch m"],
    size: Any,
    groups: Sequence[int],
    digits: float,
) -> ModelRows:
    """Return the rows that the model's digits can tell apart.

    A drift that contradicts redundant rows by no more than `digits` of itself, or of a hundredth of the `size` that
    drifts have in this state, is made to agree.
    """
    if not A.shape[-2] or not np.isfinite(A).all():
        return ModelRows(A, drift, None, False)
    mass = np.abs(np.diagonal(M, axis1=-2, axis2=-1))
    d = np.where(mass > 0, mass, 1.0) ** -0.5
    norms = np.linalg.norm(A * d[..., None, :], axis=-1)
    nothing = (norms > 0) & (norms <= ROUNDING * norms.max(axis=-1, keepdims=True))
    A, norms = np.where(nothing[..., None], 0.0, A), np.where(nothing, 0.0, norms)
    g = _group_scales(norms, groups)
    B = g[..., None] * A * d[..., None, :]
    U, S, Vt = np.linalg.svd(B, full_matrices=False)
    largest = S[..., :1]
    keep = largest * digits < S
    doubtful = np.asarray((~keep & (largest * ROUNDING < S)).any(axis=-1) | nothing.any(axis=-1))
    freed = np.where(keep, S, 0.0)[..., None, :] * U @ Vt
    freed = np.where((A == 0.0) | (np.abs(freed) <= NOTHING * digits * largest[..., None]), 0.0, freed)
    A = np.where(doubtful[..., None, None], freed / (g[..., None] * d[..., None, :]), A)
    c = g * drift
    seen = np.einsum("...ij,...j->...i", U * keep[..., None, :], np.einsum("...ij,...i->...j", U, c))
    apart = np.linalg.norm(c - seen, axis=-1)
    agrees = np.asarray(apart <= digits * np.maximum(np.linalg.norm(c, axis=-1), 0.01 * size * g.max(axis=-1)))
    seen = np.where((A == 0.0).all(axis=-1), 0.0, seen / g)
    drift = np.where((agrees & ~keep.all(axis=-1))[..., None], seen, drift)
    return ModelRows(A, drift, digits if doubtful.any() else None, bool(doubtful.any() and agrees.all()))


def _group_scales(size: Float[Array, "*batch m"], groups: Sequence[int]) -> Float[Array, "*batch m"]:
    """Return one over the size of the largest row of each row's group; one where all are zero."""
    scales = np.ones_like(size)
    for group in set(groups):
        members = np.array([each == group for each in groups])
        largest = size[..., members].max(axis=-1, keepdims=True)
        scales[..., members] = np.where(largest > 0, 1.0 / np.where(largest > 0, largest, 1.0), 1.0)
    return scales
