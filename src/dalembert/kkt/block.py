"""The block matrix itself, and its inverse through the Schur complement (seed 000, section 1)."""

from __future__ import annotations

import numpy as np

Array = np.ndarray


def block_matrix(M: Array, A: Array) -> Array:
    """Return [[M, A^T], [A, 0]], shape (..., n + m, n + m)."""
    m, n = A.shape[-2:]
    batch = np.broadcast_shapes(M.shape[:-2], A.shape[:-2]) if M.ndim + A.ndim > 4 else ()
    K = np.zeros((*batch, n + m, n + m))
    K[..., :n, :n] = M
    K[..., n:, :n] = A
    K[..., :n, n:] = A.swapaxes(-1, -2)
    return K


def block_inverse(E: Array, F: Array, G: Array, H: Array) -> tuple[Array, Array, Array, Array]:
    """Invert [[E, F], [G, H]] through the Schur complement of E (seed 000, eqs. 1, 2); returns its four blocks.

    S_E = H - G E^-1 F; E and S_E must be invertible, symmetric or not. Leading axes are batches.  O((n + m)^3).
    """
    EiF = np.linalg.solve(E, F)
    GEi = np.swapaxes(np.linalg.solve(np.swapaxes(E, -1, -2), np.swapaxes(G, -1, -2)), -1, -2)
    Si = np.linalg.inv(H - G @ EiF)
    return np.linalg.inv(E) + EiF @ Si @ GEi, -EiF @ Si, -Si @ GEi, Si
