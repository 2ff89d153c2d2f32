"""Rows of a mechanism, freed from what its numbers cannot say: lengths and angles in files have about six digits.

Symbols: B = g A d, A with columns scaled by d = M_ii^-1/2 and the rows of each constraint by one factor g, with
singular values S.

A loop in a plane has a row across it, whose entries are rounding of the file; scaled up, it would pass for a row of its
own and demand forces without limit. Rows of B below `digits` are zero, and singular values of B below `digits` of the
largest are taken for zero: so many rows are made sums of the others, and a right side that contradicts this by no more
than `digits` is taken to agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dalembert.kkt.limits import BUILT, CLEAR, DRIFT_SHARE, FILE, ROUNDING, SLACK, TILTED
from dalembert.types import Array

if TYPE_CHECKING:
    from jaxtyping import Float

    from dalembert.model.mechanism.mechanism import Mechanism


def digits_of(mechanism: Mechanism) -> float:
    """Return the relative size of what counts as rounding of a model."""
    return BUILT if mechanism.source is None else FILE


def slack(mechanism: Mechanism) -> float:
    """Return the part of their sizes by which redundant rows may contradict each other."""
    return max(SLACK, digits_of(mechanism))


def in_doubt(mechanism: Mechanism) -> tuple[float, float]:
    """Return between which sizes a row, or a singular value, is neither rounding of the model nor clearly a row.

    Numbers in full have their nine digits, each of a row's entries for itself; files write right angles in five digits,
    1.5708, and CLEAR times their usual ones are taken for rounding.
    """
    digits = digits_of(mechanism)
    least = digits * max(mechanism.nv, len(mechanism.names), 1) ** 0.5 if mechanism.source is None else CLEAR * digits
    return least, TILTED * CLEAR * digits


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
    if not A.shape[-2]:
        return ModelRows(A, drift, None, False)
    valid = np.isfinite(A).all(axis=(-2, -1)) & np.isfinite(M).all(axis=(-2, -1)) & np.isfinite(drift).all(axis=-1)
    finite = np.asarray(valid)
    if not finite.all():
        return _beside(finite, M, A, drift, size, groups, digits)
    A, B, g, nothing = _measured(M, A, groups, digits)
    S = np.linalg.svd(B, compute_uv=False)
    largest = S[..., :1]
    keep = largest * digits < S
    doubtful = np.asarray((~keep & (largest * ROUNDING < S)).any(axis=-1) | nothing.any(axis=-1))
    agree = np.ones(doubtful.shape, dtype=bool)
    A, drift = A.copy(), np.array(np.broadcast_to(drift, A.shape[:-1]))
    speeds = np.broadcast_to(size, doubtful.shape)
    for k in np.ndindex(doubtful.shape):
        if not keep[k].all():
            A_k, drift_k, agree[k] = _dependent(B[k], A[k], drift[k], g[k], keep[k].sum(), digits, float(speeds[k]))
            A[k], drift[k] = (A_k if doubtful[k] else A[k]), (drift_k if agree[k] else drift[k])
    return ModelRows(A, drift, digits if doubtful.any() else None, bool(doubtful.any() and agree.all()))


def rows_of_rank(
    M: Float[Array, "n n"],
    A: Float[Array, "m n"],
    drift: Float[Array, " m"],
    groups: Sequence[int],
    digits: float,
    rank: int,
) -> tuple[Array, Array]:
    """Return rows and drift of one state: as many rows as the rank are kept, the others are exact sums of these.

    As `model_rows`, with the rank of the mechanism in place of one that is read off this state. Next to a singular
    configuration a row of that rank is as small as the model's digits; only what the rank can spare is rounding.
    """
    measured = _measured(M, A, groups, digits)
    for finer in (ROUNDING, 0.0):
        if measured[3].any() and np.linalg.matrix_rank(measured[1], tol=ROUNDING) < rank:
            measured = _measured(M, A, groups, finer)
    A, B, g, _ = measured
    rows, sums, _ = _dependent(B, A, drift, g, rank, digits, 0.0)
    return rows, sums


def _measured(M: Array, A: Array, groups: Sequence[int], digits: float) -> tuple[Array, Array, Array, Array]:
    """Return A without rows that are nothing but rounding, B, the factors g, and which rows these were.

    With digits of zero every row stays.
    """
    mass = np.abs(np.diagonal(M, axis1=-2, axis2=-1))
    d = np.where(mass > 0, mass, 1.0) ** -0.5
    norms = np.linalg.norm(A * d[..., None, :], axis=-1)
    g = _group_scales(norms, groups)
    nothing = (norms > 0) & (
        (norms <= min(ROUNDING, digits) * norms.max(axis=-1, keepdims=True)) | (g * norms <= digits)
    )
    A, norms = np.where(nothing[..., None], 0.0, A), np.where(nothing, 0.0, norms)
    g = _group_scales(norms, groups)
    B = g[..., None] * A * d[..., None, :]
    return A, B, g, nothing


def _beside(
    finite: Array, M: Array, A: Array, drift: Array, size: Any, groups: Sequence[int], digits: float
) -> ModelRows:
    """Return the rows of a batch with samples that are not finite: these stay as they are, the others never know."""
    square, row = finite[..., None, None], finite[..., None]
    M, plain, rest = np.where(square, M, 1.0), np.where(square, A, 0.0), np.where(row, drift, 0.0)
    freed = model_rows(M, plain, rest, np.where(finite, size, 0.0), groups, digits)
    return freed._replace(A=np.where(square, freed.A, A), drift=np.where(row, freed.drift, drift))


def _dependent(
    B: Array, A: Array, drift: Array, g: Array, rank: int, digits: float, size: float
) -> tuple[Array, Array, bool]:
    """Return rows and drift, rows beyond the rank as exact sums of the others, and whether the drift allows it.

    The others, chosen by elimination with pivots, stay as they are: changing all rows a little, as by leaving out
    singular values, would put rounding where there are zeros.
    """
    from scipy.linalg import qr

    _, order = qr(B.T, mode="r", pivoting=True)  # type: ignore[misc]
    chosen, rest = order[:rank], order[rank:]
    C = np.linalg.lstsq(B[chosen].T, B[rest].T, rcond=None)[0].T
    sizes = np.linalg.norm(B[chosen], axis=1)
    C = np.where(np.abs(C) * sizes <= digits * sizes.max(initial=0.0), 0.0, C)
    A, sums = A.copy(), drift.copy()
    weights = C * g[chosen] / g[rest][:, None]
    A[rest], sums[rest] = weights @ A[chosen], weights @ drift[chosen]
    apart = np.linalg.norm(g * (drift - sums))
    return A, sums, bool(apart <= digits * max(np.linalg.norm(g * drift), DRIFT_SHARE * size * g.max()))


def _group_scales(size: Float[Array, "*batch m"], groups: Sequence[int]) -> Float[Array, "*batch m"]:
    """Return one over the size of the largest row of each row's group; one where all are zero."""
    scales = np.ones_like(size)
    for group in set(groups):
        members = np.array([number == group for number in groups])
        largest = size[..., members].max(axis=-1, keepdims=True)
        scales[..., members] = np.where(largest > 0, 1.0 / np.where(largest > 0, largest, 1.0), 1.0)
    return scales
