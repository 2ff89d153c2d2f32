"""The constraint rows: rank of A, which rows are redundant, which reactions are unique.

Symbols: Ahat = E A G equilibrated rows, Ahat = U S V^T, r rank, N = E U2 a basis of null(A^T).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float

from dalembert.kkt.echelon import echelon
from dalembert.kkt.scaling import row_scales

Array = np.ndarray
EPS = np.finfo(float).eps

RANK_FACTOR = 4.0
"""Singular values below RANK_FACTOR * sqrt(max(m, n)) * eps of the largest are zero: what rounding of A's entries, each
by an eps or so in random directions, makes of dependent rows."""

CLEAR_FACTOR = 2.0
"""Below CLEAR_FACTOR * sqrt(max(m, n)) * eps a singular value is rounding beyond doubt; between the two, ambiguous."""

PARTICIPATION = 1.5e-8
"""A row takes part in a redundancy when a unit null vector has more than this on it (square root of eps)."""


@dataclass(frozen=True, eq=False)
class RowStructure:
    """Rank-revealing decomposition of the equilibrated constraint rows.

    Attributes
    ----------
    columns, rows
        The scales G and E.
    U, s, Vt
        Singular value decomposition of E A G; `U` is square.
    rank, kept, dropped
        The rank, and the relative singular values on either side of the decision.
    threshold
        Singular values up to this were taken for zero.
    ambiguous
        Whether one of these may be more than rounding, so that another rank would be as right. Never where the user
        has set the tolerance: then the decision is the user's.
    """

    columns: Float[Array, " n"]
    rows: Float[Array, " m"]
    U: Float[Array, "m m"]
    s: Float[Array, " k"]
    Vt: Float[Array, "n n"]
    rank: int
    kept: float
    dropped: float
    threshold: float
    ambiguous: bool

    @property
    def gap(self) -> float:
        """Ratio of the smallest singular value kept to the largest dropped (or to eps): large means a clear rank."""
        return self.kept / max(self.dropped, float(EPS))

    @property
    def doubt(self) -> str:
        """A sentence where the rank is ambiguous, else nothing."""
        if not self.ambiguous:
            return ""
        return f"the rank is in doubt: a singular value of {self.dropped:.0e} was taken for zero; set rank_tolerance"

    @property
    def scaled_null(self) -> Float[Array, "m k"]:
        """Orthonormal basis of null(Ahat^T)."""
        return self.U[:, self.rank :]

    @cached_property
    def redundancies(self) -> tuple[Float[Array, "m k"], list[int]]:
        """Basis of null(A^T) in echelon form, and its pivots: row pivots[j] is minus the rest of column j."""
        return echelon(self.scaled_null, self.rows)

    @property
    def null(self) -> Float[Array, "m k"]:
        """Basis of null(A^T), in echelon form: every multiplier family is lam + null @ anything."""
        return self.redundancies[0]

    @property
    def unique(self) -> Bool[Array, " m"]:
        """Whether each reaction is unique: no vector of null(A^T) has a component on it.

        Source: M. Wojtyra, "Joint reaction forces in multibody systems with redundant constraints", Multibody
        System Dynamics 14 (2005) 23-46.
        """
        return np.linalg.norm(self.scaled_null, axis=1) <= PARTICIPATION


def row_structure(A: Float[Array, "m n"], tolerance: float | None = None) -> RowStructure:
    """Decompose the rows of A; `tolerance` replaces the default relative threshold for the rank.  O(m n min(m, n))."""
    m, n = A.shape
    columns, rows = row_scales(A)
    U, s, Vt = np.linalg.svd(rows[:, None] * A * columns)
    largest = float(s[0]) if s.size and s[0] > 0.0 else 1.0
    noise = float(EPS) * max(m, n) ** 0.5
    threshold = largest * (RANK_FACTOR * noise if tolerance is None else tolerance)
    rank = int(np.count_nonzero(s > threshold))
    kept = float(s[rank - 1]) / largest if rank else 1.0
    dropped = float(s[rank]) / largest if rank < s.size else 0.0
    ambiguous = tolerance is None and dropped > CLEAR_FACTOR * noise
    return RowStructure(columns, rows, U, s, Vt, rank, kept, dropped, threshold, ambiguous)
