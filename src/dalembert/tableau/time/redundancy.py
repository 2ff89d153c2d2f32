"""Redundant constraints: rank and independent rows decided on the manifold, least-norm multipliers.

Off the manifold, redundant rows are independent and contradict each other: the last singular value of A is as large as
the constraint violation, and a rank chosen by tolerance there makes the motion blow up (seen with Bricard's mechanism).
So the rows are chosen once, at the consistent start, where the rank is clear; the others then hold along the motion by
themselves, for as long as the chosen rows stay independent. Forces are unique as a whole, A^T lam = A_c^T lam_c; of the
multipliers that give them, those of least norm are reported.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import qr

Array = np.ndarray


def independent_rows(A: Array, M: Array, rank: int) -> list[int]:
    """Return `rank` well-conditioned rows of A, by QR with exchanges of the rows in the mass metric."""
    values, vectors = np.linalg.eigh((M + M.T) / 2)
    floor = 1e-6 * values.max(initial=0.0)
    scaled = A @ vectors / np.sqrt(np.maximum(values, floor or 1.0))
    size = np.linalg.norm(scaled, axis=1)
    scaled = scaled / np.where(size > 0, size, 1.0)[:, None]
    order = qr(scaled.T, mode="r", pivoting=True)[1]  # type: ignore[misc]
    return sorted(int(i) for i in order[:rank])


def least_norm(A: Array, rows: list[int], chosen: Array) -> Array:
    """Return all multipliers, of least norm, that exert the same forces as those of the chosen rows."""
    return np.linalg.lstsq(A.T, A[rows].T @ chosen, rcond=1e-9)[0]


def chosen_multipliers(A: Array, rows: list[int], full: Array) -> Array:
    """Return multipliers of the chosen rows that exert the same forces as all."""
    return np.linalg.lstsq(A[rows].T, A.T @ full, rcond=1e-12)[0]
