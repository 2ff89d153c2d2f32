"""The least change that satisfies linear rows, in a metric; sizes at which residuals count; ranks."""

from __future__ import annotations

import numpy as np

from dalembert.kkt.limits import DOUBT
from dalembert.kkt.rows import independent_rows

Array = np.ndarray

SAFE = 1e8
"""Scaled systems whose inverse is larger than this are left to `KKT`, which says what is wrong with them."""


def fits(residual: Array, A: Array, x: Array, share: float) -> Array:
    """Return which residuals are below a share of the sizes that enter them, |A| max(1, |x|)."""
    return np.abs(residual) <= share * np.abs(A).sum(axis=1) * max(1.0, np.abs(x).max(initial=0.0))


def negligible(residual: Array, A: Array, x: Array, share: float) -> bool:
    """Say whether all residuals are that small."""
    return bool(fits(residual, A, x, share).all())


def metric(M: Array) -> Array:
    """Return a definite matrix: M, with massless coordinates given the least of the other masses."""
    if not M.size:
        return M
    lightest = np.diag(M)[np.diag(M) > 0].min(initial=np.inf)
    floor = 1e-6 * (lightest if np.isfinite(lightest) else 1.0)
    values, vectors = np.linalg.eigh((M + M.T) / 2)
    return vectors @ np.diag(np.maximum(values, floor)) @ vectors.T


def least_change(
    W: Array, A: Array, toward: Array, b: Array, held: Array, rank: int | None = None, sizes: Array | None = None
) -> Array:
    """Return d with A d = b (least squares where rows are redundant) and least (d - toward)^T W (d - toward).

    With `rank` so many directions count, of rows scaled by `sizes`, whatever the numbers say: next to the constraints
    rows that depend on each other on them look independent. Coordinates that are held may cost some of it.
    """
    move = ~held
    L = np.linalg.cholesky(W[np.ix_(move, move)]) if move.any() else np.zeros((0, 0))
    scaled = np.linalg.solve(L, A[:, move].T).T
    if sizes is None:
        size = np.linalg.norm(scaled, axis=1)
        sizes = 1.0 / np.where(size > 0, size, 1.0)
    U, s, Vt = np.linalg.svd(sizes[:, None] * scaled, full_matrices=False)
    keep = s > DOUBT * s.max(initial=0.0)
    if rank is not None:
        keep &= np.arange(s.size) < rank
    right = U.T @ (sizes * (b - A[:, move] @ toward[move]))
    y = Vt.T @ np.where(keep, right / np.where(keep, s, 1.0), 0.0)
    d = np.zeros(len(held))
    d[move] = toward[move] + np.linalg.solve(L.T, y)
    return d


def row_rank(A: Array) -> int:
    """Return the rank of A at a consistent point, where singular values that are zero are at rounding level."""
    return len(independent_rows(A, tolerance=DOUBT)) if A.size else 0


def scales(K: Array) -> tuple[Array, Array]:
    """Return row and column scales that make the largest entries of K, (..., m, n), about one."""
    rows, cols = np.ones(K.shape[:-1]), np.ones((*K.shape[:-2], K.shape[-1]))
    for _ in range(3):
        size = np.abs(rows[..., :, None] * K * cols[..., None, :]).max(axis=-1, initial=0.0)
        rows /= np.where(size > 0, size, 1.0)
        size = np.abs(rows[..., :, None] * K * cols[..., None, :]).max(axis=-2, initial=0.0)
        cols /= np.where(size > 0, size, 1.0)
    return rows, cols


def well_posed(M: Array, A: Array, f: Array, c: Array) -> tuple[Array, Array] | None:
    """Return a, lam of M a + A^T lam = f, A a = c where the matrix is far from singular; None where it may be."""
    n, count = M.shape[0], A.shape[0]
    K = np.zeros((n + count, n + count))
    K[:n, :n], K[:n, n:], K[n:, :n] = M, A.T, A
    if not K.size or not np.isfinite(K).all():
        return None
    rows, cols = scales(K)
    scaled = rows[:, None] * K * cols
    try:
        inverse = np.linalg.inv(scaled)
    except np.linalg.LinAlgError:
        return None
    if not np.abs(inverse).sum(axis=1).max() < SAFE:
        return None
    b = np.concatenate([f, c])
    z = cols * (inverse @ (rows * b))
    z += cols * (inverse @ (rows * (b - K @ z)))
    return z[:n], z[n:]
