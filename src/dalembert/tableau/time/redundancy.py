"""Redundant constraints: rank and independent rows decided on the manifold, least-norm multipliers.

Off the manifold, redundant rows are independent and contradict each other: the last singular value of A is as large as
the constraint violation, and a rank chosen by tolerance there makes the motion blow up (seen with Bricard's mechanism).
So the rows are chosen at consistent points, where the rank is clear; the others then hold along the motion by
themselves, for as long as the chosen rows stay independent. `watch.py` looks after that, and rows are chosen anew where
it ends. Forces are unique as a whole, A^T lam = A_c^T lam_c; of the multipliers that give them, those of least norm are
reported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import qr

if TYPE_CHECKING:
    from dalembert.tableau.time.motion import Motion

Array = np.ndarray

RELAXED_SHARE = 1e-9
"""Relaxation of constraints near a singular configuration, as a part of the diagonal of A M^-1 A^T."""


def independent_rows(A: Array, M: Array, rank: int, sizes: Array | None = None) -> list[int]:
    """Return `rank` well-conditioned rows of A, by QR with exchanges of the rows in the mass metric."""
    scaled = _scaled(A, M, sizes)
    order = qr(scaled.T, mode="r", pivoting=True)[1]  # type: ignore[misc]
    return sorted(int(i) for i in order[:rank])


def conditioning(A: Array, M: Array, rows: list[int], sizes: Array | None = None) -> float:
    """Return the least singular value of some rows of A, scaled to one in the mass metric."""
    return float(np.linalg.svd(_scaled(A, M, sizes)[rows], compute_uv=False)[-1]) if rows else 1.0


def chosen_multipliers(A: Array, rows: list[int], full: Array) -> Array:
    """Return multipliers that exert the same forces as all by the chosen rows alone; the others are zero."""
    found = np.zeros(len(full))
    found[rows] = np.linalg.lstsq(A[rows].T, A.T @ full, rcond=1e-12)[0]
    return found


def relaxation(m: Motion, M: Array, A: Array, rows: list[int], stabilised: bool) -> Array:
    """Return what relaxes the chosen rows A of J: a part of the diagonal of A M^-1 A^T, and of A A^T for positions."""
    masses = np.diag(M[list(m.free), :])
    masses = np.where(masses > 0, masses, masses.max(initial=1.0))
    places = [k for k, i in enumerate(rows) if m.holonomic[i]] if stabilised else []
    return RELAXED_SHARE * np.concatenate([(A**2 / masses).sum(axis=1), (A[places] ** 2).sum(axis=1)])


def _scaled(A: Array, M: Array, sizes: Array | None) -> Array:
    """Return A in the mass metric, rows scaled by `sizes`, or to length one: rounding must not pass for a row."""
    values, vectors = np.linalg.eigh((M + M.T) / 2)
    floor = 1e-6 * values.max(initial=0.0)
    scaled = A @ vectors / np.sqrt(np.maximum(values, floor or 1.0))
    if sizes is not None:
        return sizes[:, None] * scaled
    size = np.linalg.norm(scaled, axis=1)
    return scaled / np.where(size > 0, size, 1.0)[:, None]
