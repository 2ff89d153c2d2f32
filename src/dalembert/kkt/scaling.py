"""Equilibration of the block matrix, so that the units of rows and coordinates do not decide ranks.

Symbols: D = diag(d) scales coordinates, E = diag(e) scales constraint rows; the scaled matrix is

    [ D M D    D A^T E ]
    [ E A D       0    ]

All scales are powers of two, so that scaling is exact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Float, Int

from dalembert.kkt.limits import NOISE
from dalembert.types import Array

SWEEPS = 6
"""Ruiz sweeps; each halves the logarithm of what is left, so six bring a spread of 1e16 below a factor of two."""

RIDGE = 1e-9
"""Makes the normal equations definite: a component of A may be scaled by t, its rows by 1/t; this takes the least t."""


def row_scales(A: Float[Array, "m n"]) -> tuple[Float[Array, " n"], Float[Array, " m"]]:
    """Return scales (d, e) for which the logarithms of |E A D| are nearest to zero, in least squares.

    Whatever units rows and coordinates came in, the scaled matrix is the same, so a rank decided on it, and which rows
    take part in a redundancy, do not depend on units. Solves normal equations of size m + n.

    Source: A. R. Curtis, J. K. Reid, "On the automatic scaling of matrices for Gaussian elimination", IMA Journal of
    Applied Mathematics 10 (1972) 118-124.
    """
    n = A.shape[1]
    size = np.abs(A)
    used = size > NOISE * size.max(axis=1, initial=0.0)[:, None]
    logs = np.log2(np.where(used, size, 1.0))
    mask = used.astype(float)
    normal = np.block([[np.diag(mask.sum(axis=0)), mask.T], [mask, np.diag(mask.sum(axis=1))]])
    right = -np.concatenate([logs.sum(axis=0), logs.sum(axis=1)])
    exponents = np.linalg.solve(normal + RIDGE * np.eye(right.size), right)
    scales = np.exp2(np.round(exponents))
    return scales[:n], scales[n:]


def log_scales(A: Float[Array, "m n"], known: Float[Array, " n"]) -> tuple[Float[Array, " n"], Float[Array, " m"]]:
    """Return binary logarithms of scales (d, e): d as known, or, where NaN, such that entries are nearest to one.

    Columns without a size of their own (massless coordinates) get it from the rows that they share with others, as in
    `row_scales`; then every row is scaled to a largest entry of one. Logarithms, so that nothing overflows.
    """
    size = np.abs(A)
    logs = np.where(size > 0.0, np.log2(np.where(size > 0.0, size, 1.0)), -np.inf)
    columns, unknown = np.where(np.isnan(known), 0.0, known), np.isnan(known)
    used = size > 0.0
    for _ in range(2 if unknown.any() else 0):  # the second time without entries that are rounding beside their row's
        columns[unknown] = _column_logs(np.where(used, logs, 0.0), used, columns, unknown)
        scaled = logs + columns
        used = scaled > np.log2(NOISE) + scaled.max(axis=1, initial=-np.inf, keepdims=True)
    largest = (logs + columns).max(axis=1, initial=-np.inf)
    return columns, np.where(np.isfinite(largest), -largest, 0.0)


def common_units(A: Float[Array, "m n"], M: Float[Array, "n n"]) -> tuple[Int[Array, " n"], Int[Array, " m"]]:
    """Return exponents (d, e), one for all coordinates and one for all rows, that bring M and A to a size of one.

    What the user's units say of coordinates and rows beside each other stays; that of M and of A leaves no trace, bit
    for bit.
    """
    (m, n), largest = A.shape, float(np.abs(M).max(initial=0.0))
    d = -round(0.5 * np.log2(largest)) if largest > 0.0 else 0
    largest = float(np.abs(A).max(initial=0.0))
    e = -d - round(np.log2(largest)) if largest > 0.0 else 0
    return np.full(n, d, dtype=np.int32), np.full(m, e, dtype=np.int32)


def own_units(
    A: Float[Array, "m n"], M: Float[Array, "n n"], groups: Sequence[int] | None = None
) -> tuple[Int[Array, " n"], Int[Array, " m"]]:
    """Return exponents (d, e), one for each coordinate and row (rows of a group share theirs), from M and A alone.

    M has a diagonal of about one, rows a largest entry of about one. Whatever units the data came in, the numbers are
    the same. A light coordinate beside heavy ones costs digits here that sensible units of the user's keep.
    """
    mass = np.abs(M.diagonal())
    massive = mass > 0.0
    exponents = np.where(massive, -0.5 * np.log2(np.where(massive, mass, 1.0)), np.nan)
    d = np.rint(log_scales(A, exponents)[0])
    e = np.rint(of_groups(log_scales(A, d)[1], groups, np.min))
    return d.astype(np.int32), e.astype(np.int32)


def of_groups(values: Array, groups: Sequence[int] | None, which: Callable[[Array], Any]) -> Array:
    """Return one value for all rows of a group: the largest, or the smallest."""
    if groups is None:
        return values
    names, common = np.asarray(groups), values.copy()
    for name in np.unique(names):
        common[names == name] = which(values[names == name])
    return common


def _column_logs(logs: Array, used: Array, columns: Array, unknown: Array) -> Array:
    """Solve the normal equations of `row_scales` for the unknown columns only; the others are given."""
    mask, k = used.astype(float), int(np.count_nonzero(unknown))
    free = mask[:, unknown]
    normal = np.block([[np.diag(free.sum(axis=0)), free.T], [free, np.diag(mask.sum(axis=1))]])
    by_row = logs.sum(axis=1) + mask[:, ~unknown] @ columns[~unknown]
    right = -np.concatenate([logs[:, unknown].sum(axis=0), by_row])
    return np.linalg.solve(normal + RIDGE * np.eye(right.size), right)[:k]


def block_scales(A: Float[Array, "m n"], M: Float[Array, "n n"]) -> tuple[Float[Array, " n"], Float[Array, " m"]]:
    """Return scales (d, e) that bring the largest entry of every row of the block matrix to about one.

    Ruiz' simultaneous row and column scaling in the maximum norm, started from rows of size one. Small masses beside
    constraints stay small: the constraints carry such coordinates.

    Source: D. Ruiz, "A scaling algorithm to equilibrate both rows and columns norms in matrices", RAL-TR-2001-034.
    """
    absA, absM = np.abs(A), np.abs(M)
    largest = absA.max(axis=1, initial=0.0)
    absA[absA <= NOISE * largest[:, None]] = 0.0
    e = _reciprocal(largest)
    d = np.ones(A.shape[1])
    for _ in range(SWEEPS):
        block = e[:, None] * absA * d
        column = np.maximum(block.max(axis=0, initial=0.0), (d[:, None] * absM * d).max(axis=0, initial=0.0))
        e *= np.sqrt(_reciprocal(block.max(axis=1, initial=0.0)))
        d *= np.sqrt(_reciprocal(column))
    return np.exp2(np.round(np.log2(d))), np.exp2(np.round(np.log2(e)))


def _reciprocal(x: Float[Array, " k"]) -> Float[Array, " k"]:
    """Return 1/x, and 1 where x is zero: an empty row or column keeps its scale."""
    return 1.0 / np.where(x > 0.0, x, 1.0)
