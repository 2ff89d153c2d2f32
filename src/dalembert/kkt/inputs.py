"""Checks of M, A, names and metric: shapes, symmetry, finiteness.

Each complaint says what, where, and what to do. In a batch, a bad sample is not a complaint: it becomes a status.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

import numpy as np

from dalembert.checks import refuse_masked
from dalembert.errors import ModelError, ShapeError, UnsupportedError
from dalembert.kkt.limits import EPS, SYMMETRIC
from dalembert.types import Array

DENSE_LIMIT = 2000
"""Sparse M and A are made dense up to n + m = 2000 (32 MB for the block matrix); above that the user must do it."""


def as_real(values: Any, what: str) -> tuple[Array, float]:
    """Return a float64 array and the precision (eps) of the data it came from."""
    if type(values) is np.ndarray and values.dtype == np.float64:
        return values, EPS
    refuse_masked(values, what)
    sparse = sys.modules.get("scipy.sparse")  # a matrix of it is there only if its room is
    if sparse is not None and sparse.issparse(values):
        values = _densified(values, what)
    try:
        array = np.asarray(values)
    except (ValueError, TypeError) as error:
        raise ShapeError(f"{what} is not an array of numbers: {error}") from error
    if array.dtype.kind not in "fiub":
        raise ModelError(f"{what} has dtype {array.dtype}; real numbers are needed")
    eps = float(np.finfo(array.dtype).eps) if array.dtype.kind == "f" else EPS
    return array.astype(np.float64), max(eps, EPS)


def checked_matrices(M: Any, A: Any) -> tuple[Array, Array, tuple[float, float]]:
    """Return M (..., n, n), A (..., m, n) as float64 and the precision of each; shapes are checked here."""
    M, eps = as_real(M, "M")
    n = M.shape[-1] if M.ndim else 0
    if M.ndim < 2 or M.shape[-2] != n:
        raise ShapeError(f"M must be square, (..., n, n); it has shape {M.shape}")
    if n == 0:
        raise ShapeError("M has shape (0, 0): a system without coordinates has no motion to solve for")
    if A is None:
        A = np.zeros((0, n))
    A, eps_A = as_real(A, "A")
    if A.ndim == 1 and A.size == n:
        raise ShapeError(f"A must be (..., m, n); for one constraint row pass A[None, :], shape (1, {n})")
    if A.ndim < 2 or A.shape[-1] != n:
        hint = " (transposed?)" if A.ndim == 2 and A.shape[0] == n else ""
        raise ShapeError(f"A must be (..., m, {n}), one column per coordinate of M; it has shape {A.shape}{hint}")
    return M, A, (eps, eps_A)


def batch_shape(M: Array, A: Array) -> tuple[int, ...]:
    """Return the common batch shape of M and A (a plain () in the usual case, without a call into NumPy)."""
    if M.ndim == A.ndim == 2:
        return ()
    try:
        return np.broadcast_shapes(M.shape[:-2], A.shape[:-2])
    except ValueError:
        raise ShapeError(f"batch axes of M {M.shape[:-2]} and A {A.shape[:-2]} do not broadcast") from None


def checked_names(names: Sequence[str], size: int, what: str, of: str) -> tuple[str, ...]:
    """Return `size` distinct names as a tuple."""
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise ShapeError(f"{what} must be a list of {size} names, not the single {type(names).__name__} {names!r}")
    names = tuple(str(name) for name in names)
    if len(names) != size:
        shown = ", ".join(names[:6]) + (" ..." if len(names) > 6 else "")
        raise ShapeError(f"{len(names)} {what} ({shown}) for {size} {of}")
    seen: dict[str, int] = {}
    for i, name in enumerate(names):
        if name in seen:
            raise ModelError(f"{what} must be distinct: {name!r} stands at {seen[name]} and at {i}")
        seen[name] = i
    return names


def checked_metric(metric: Any, m: int, names: Sequence[str]) -> Array | None:
    """Return the metric as a definite (m, m) matrix; a vector is a diagonal; None stays None."""
    if metric is None:
        return None
    W, _ = as_real(metric, "metric")
    if W.shape == (m,):
        if not np.all(W > 0.0) or not np.all(np.isfinite(W)):
            bad = int(np.argmin(np.where(np.isfinite(W), W, -np.inf)))
            raise ModelError(f"metric weights must be positive and finite; {names[bad]!r} has {W[bad]}")
        return np.diag(W)
    if W.shape != (m, m):
        raise ShapeError(f"metric must be {m} weights or a ({m}, {m}) matrix; it has shape {W.shape}")
    if not np.all(np.isfinite(W)) or not np.allclose(W, W.T, rtol=SYMMETRIC, atol=0.0):
        raise ModelError("metric must be a finite symmetric matrix")
    try:
        np.linalg.cholesky(W)
    except np.linalg.LinAlgError:
        raise ModelError(
            f"metric must be positive definite; its smallest eigenvalue is {np.linalg.eigvalsh(W)[0]:.3g}"
        ) from None
    return W


def precision_of(values: Any) -> float:
    """Return the eps of an array's numbers: that of double precision, unless they came in fewer digits."""
    dtype = getattr(values, "dtype", None)
    return max(EPS, float(np.finfo(dtype).eps)) if dtype is not None and dtype.kind == "f" else EPS


def checked_rank(rank: Any, m: int, n: int) -> int | None:
    """Return a rank that rows (m, n) can have; None stays None."""
    if rank is None:
        return None
    if isinstance(rank, bool) or not isinstance(rank, int | np.integer) or not 0 <= rank <= min(m, n):
        raise ModelError(f"rank={rank!r} must be a whole number from 0 to {min(m, n)}: the rows are {m} x {n}")
    return int(rank)


def checked_groups(groups: Any, m: int) -> tuple[int, ...] | None:
    """Return one whole number per row; None stays None."""
    if groups is None:
        return None
    refuse_masked(groups, "groups")
    numbers = np.asarray(groups)
    if numbers.shape != (m,) or (m and numbers.dtype.kind not in "iu"):
        raise ModelError(f"groups must be {m} whole numbers, one per constraint row; it is {groups!r}")
    return tuple(int(g) for g in numbers)


def checked_vector(values: Any, size: int, what: str, *, scalar: bool = False) -> Array:
    """Return a vector (..., size); None is zero, and one number stands for all entries where `scalar` allows it."""
    if values is None:
        return np.zeros(size)
    array, _ = as_real(values, what)
    if scalar and array.ndim == 0:
        return np.full(size, float(array))
    if array.ndim == 0 or array.shape[-1] != size:
        raise ShapeError(f"{what} must be (..., {size}); it has shape {array.shape}")
    return array


def symmetric_part(M: Array, skewness: float) -> Array | None:
    """Return (M + M^T) / 2 of a single M; None where M is not symmetric beyond rounding.

    Entries i, j may differ by `skewness` times their own size or that of M_ii and M_jj (geometric mean).
    """
    if M.tobytes() == M.T.tobytes():
        return M
    diagonal = np.sqrt(np.abs(M.diagonal()))
    with np.errstate(invalid="ignore"):
        if not (np.abs(M - M.T) <= skewness * (np.abs(M) + np.abs(M.T) + diagonal[:, None] * diagonal)).all():
            return None
    return 0.5 * M + 0.5 * M.T


def refuse_asymmetric(M: Array, coordinates: Sequence[str]) -> NoReturn:
    """Raise for a single M that is not symmetric, naming its worst entry."""
    i, j = divmod(int(np.argmax(np.abs(M - M.T))), M.shape[0])
    hint = "; its lower triangle is zero: did a routine fill only the upper one?" if not np.tril(M, -1).any() else ""
    raise ModelError(
        f"M is not symmetric: M[{i}, {j}] = {M[i, j]:.6g} but M[{j}, {i}] = {M[j, i]:.6g} "
        f"({coordinates[i]!r}, {coordinates[j]!r}){hint}"
    )


def refuse_nonfinite(array: Array, what: str, *labels: Sequence[str]) -> None:
    """Raise if a single matrix or vector holds NaN or infinity, naming the first such entry by its label per axis."""
    if np.isfinite(array).all():
        return
    index = tuple(int(k) for k in np.argwhere(~np.isfinite(array))[0])
    where = ", ".join(repr(axis[k]) for axis, k in zip(labels, index, strict=True))
    raise ModelError(f"{what}[{', '.join(map(str, index))}] is {array[index]} ({where}); every entry must be finite")


def refuse_restitution(e: Array, names: Sequence[str]) -> None:
    """Raise for a coefficient of restitution outside [0, 1]."""
    bad = np.argwhere(~((e >= 0.0) & (e <= 1.0)))
    if bad.size:
        index = tuple(bad[0])
        raise ModelError(f"restitution must lie in [0, 1]; row {names[index[-1]]!r} has {e[index]}")


def _densified(values: Any, what: str) -> Array:
    """Return a sparse array as dense, up to the stated size."""
    total = values.shape[0] if what == "M" else sum(values.shape)
    if total > DENSE_LIMIT:
        size = 8 * values.shape[0] * values.shape[1] / 10**6
        raise UnsupportedError(
            f"sparse {what} of shape {values.shape} is not made dense silently above n + m = {DENSE_LIMIT}; "
            f"pass {what}.toarray() ({size:.0f} MB) to solve it densely"
        )
    return values.toarray()
