"""The connection split of velocities into dependent and independent ones (seed 003, eqs. 4, 5).

Symbols: N (m, n) constraint rows, N v = 0; v° dependent, v* independent velocities; J with v° = J v*; B a basis of
the admissible velocities, B^T N^T = 0; Q forces dual to v.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np
import scipy.linalg
from jaxtyping import Float, Int

from dalembert.errors import ModelError, ShapeError, SolvabilityError
from dalembert.kkt.scaling import row_scales
from dalembert.tableau.inputs import as_indices, as_numbers

Array = np.ndarray

RANK_TOLERANCE = 64 * np.finfo(float).eps
"""Times the larger dimension: diagonal entries of R below it, on equilibrated rows, are zero."""


@dataclass(frozen=True, eq=False)
class Split:
    """Which velocities depend on which.

    Attributes
    ----------
    dependent, independent
        Indices of v° (as many as independent rows) and v*.
    J
        v° = J v*.
    condition
        Of the square part of N that was inverted, in the 2-norm of equilibrated rows.
    """

    dependent: Int[Array, " r"]
    independent: Int[Array, " f"]
    J: Float[Array, "r f"]
    condition: float

    @property
    def B(self) -> Float[Array, "n f"]:
        """Basis of admissible velocities: v = B v*, identity on the independent ones."""
        n = len(self.dependent) + len(self.independent)
        basis = np.zeros((n, len(self.independent)))
        basis[self.dependent] = self.J
        basis[self.independent] = np.eye(len(self.independent))
        return basis

    def dual(self, forces: Any) -> Float[Array, "*batch f"]:
        """Return J^T Q° + Q*, zero for constraint forces (eq. 5)."""
        Q, n = as_numbers(forces, "forces"), len(self.dependent) + len(self.independent)
        if Q.ndim == 0 or Q.shape[-1] != n:
            raise ShapeError(f"forces must have shape ({n},) or (..., {n}), one per velocity; they have {Q.shape}")
        return Q[..., self.dependent] @ self.J + Q[..., self.independent]


def connection_split(N: Any, independent: Sequence[int] | None = None) -> Split:
    """Split the velocities; the dependent ones by QR with column pivoting, so that J is well conditioned.

    Parameters
    ----------
    N
        Constraint rows (m, n); redundant rows are found and used once.
    independent
        Indices that the user wants as v*; refused if the others do not follow from them.
    """
    N = as_rows(N)
    if N.shape[0] == 0:
        if independent is not None:
            _others(independent, N.shape[1], 0)
        return Split(np.empty(0, np.int64), np.arange(N.shape[1]), np.empty((0, N.shape[1])), 1.0)
    d, e = row_scales(N)
    scaled = e[:, None] * N * d
    rank, order = pivot_columns(scaled)
    dependent = np.sort(order[:rank]) if independent is None else _others(independent, N.shape[1], rank)
    free = np.setdiff1d(np.arange(N.shape[1]), dependent)
    square = scaled[:, dependent]
    sizes = np.linalg.svd(square, compute_uv=False) if rank else np.ones(1)
    if sizes[-1] <= RANK_TOLERANCE * max(N.shape) * sizes[0]:
        raise SolvabilityError(
            f"the velocities {dependent.tolist()} do not follow from {free.tolist()}: their part of N is singular "
            f"(smallest singular value {sizes[-1]:.1e} of {sizes[0]:.1e}); let the split be chosen, independent=None"
        )
    J = -np.linalg.lstsq(square, scaled[:, free], rcond=None)[0]
    J = d[dependent][:, None] * J / d[free]
    return Split(dependent, free, J, float(sizes[0] / sizes[-1]))


def as_rows(N: Any) -> Float[Array, "m n"]:
    """Return constraint rows as a finite matrix; a CasADi matrix of numbers will do."""
    N = as_numbers(N.full() if isinstance(N, ca.DM) else N, "N", finite=True)
    if N.ndim != 2 or N.shape[1] == 0:
        raise ModelError(f"N must be a matrix of constraint rows (m, n) with n > 0; it has shape {N.shape}")
    return N


def pivot_columns(scaled: Float[Array, "m n"]) -> tuple[int, Int[Array, " n"]]:
    """Return the rank and the column order of QR with column pivoting."""
    factors: Any = scipy.linalg.qr(scaled, mode="r", pivoting=True)
    R, order = factors
    sizes = np.abs(np.diag(R))
    return int(np.count_nonzero(sizes > RANK_TOLERANCE * max(scaled.shape) * sizes[0])), order.astype(np.int64)


def _others(independent: Sequence[int], n: int, rank: int) -> Int[Array, " r"]:
    """Return the indices that are not independent, checked."""
    chosen = as_indices(independent, n, "independent")
    if len(chosen) != n - rank:
        raise ModelError(f"{len(chosen)} independent velocities named; N of rank {rank} leaves {n - rank} of {n}")
    return np.setdiff1d(np.arange(n), chosen)
