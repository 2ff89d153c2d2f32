"""The user's metric on multipliers: which member of a redundant family is returned.

Symbols: W symmetric definite (m, m), N a basis of null(A^T). Among lam + N z the least is

    lam* = lam - N (N^T W N)^-1 N^T W lam            minimises lam^T W lam

and, dually, the nearest consistent right side c* = c - W N (N^T W N)^-1 N^T c minimises (c - c*)^T W^-1 (c - c*).
The default W = I depends on the units of the rows: that is why the choice is the user's (Wojtyra, Pekal and Fraczek,
Mechanism and Machine Theory 153 (2020) 103999).
"""

from __future__ import annotations

import numpy as np

Array = np.ndarray
EPS = float(np.finfo(float).eps)


def least_multipliers(lam: Array, N: Array, W: Array | None) -> Array:
    """Return the member of lam + range(N) of least W-norm; `lam` may be a matrix of columns."""
    if not N.shape[1]:
        return lam
    return lam - N @ _projector(N, W) @ lam


def nearest_consistent(c: Array, N: Array, W: Array | None) -> Array:
    """Return the right side in range(A) nearest to c in the dual metric W^-1."""
    return c - _projector(N, W).T @ (N.T @ c)


def projection_error(lam: Array, W: Array | None) -> float:
    """Return a bound for what rounding in `least_multipliers` adds to each multiplier."""
    skew = 1.0 if W is None else float(np.sqrt(np.linalg.cond(W)))
    return 2.0 * skew * lam.size * EPS * float(np.abs(lam).sum())


def _projector(N: Array, W: Array | None) -> Array:
    """Return (N^T W N)^-1 N^T W, shape (k, m), through QR of the weighted basis."""
    C = np.eye(N.shape[0]) if W is None else np.linalg.cholesky(W).T
    Q, R = np.linalg.qr(C @ N)
    return np.linalg.solve(R, Q.T @ C)
