"""The smallest set of constraint rows that contradict each other.

A set of rows is inconsistent when some y with A^T y = 0 on it has y^T c != 0: the same combination of the rows that
gives zero on the left gives something else on the right. The smallest such set is what a person can act on.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np
from jaxtyping import Float

from dalembert.kkt.echelon import combination

Array = np.ndarray

MOST_SETS = 4000
"""Sets tried by size; beyond this many, rows are dropped one by one instead (irreducible, perhaps not smallest)."""

RANK = 1e-10
"""Relative singular value below which a set of equilibrated rows is dependent."""


@dataclass(frozen=True, eq=False)
class Conflict:
    """Rows that cannot hold together.

    Attributes
    ----------
    rows
        Their indices.
    weights
        y (m,), zero outside `rows`, largest entry 1, with A^T y = 0.
    mismatch
        y^T c: what the right sides add up to where the left sides add up to zero.
    smallest
        True when no smaller set conflicts (False: the set is irreducible, but the search for the smallest was cut).
    """

    rows: tuple[int, ...]
    weights: Float[Array, " m"]
    mismatch: float
    smallest: bool

    def describe(self, names: tuple[str, ...]) -> str:
        """Say in one sentence which rows conflict and how."""
        listed = ", ".join(repr(names[i]) for i in self.rows)
        word = "the smallest conflict" if self.smallest else "a conflict without a smaller one inside"
        if len(self.rows) == 1:
            return f"{word}: row {listed} is zero, yet asks for the acceleration {self.mismatch:.6g}"
        return (
            f"{word}: rows {listed}; {combination(self.weights, names)} is zero on the left "
            f"and {self.mismatch:.6g} on the right"
        )


def smallest_conflict(A: Float[Array, "m n"], c: Float[Array, " m"], tolerance: float) -> Conflict | None:
    """Find the smallest set of (equilibrated) rows in conflict, or None where all right sides agree.

    `A`, `c` are scaled; `weights` and `mismatch` of the result belong to the scaled rows.
    """
    limit = tolerance * np.abs(c).max(initial=0.0)
    if _mismatch(A, c, limit) is None:
        return None
    candidates, tried = tuple(range(A.shape[0])), 0
    for size in range(1, A.shape[0] + 1):
        tried += comb(len(candidates), size)
        if tried > MOST_SETS:
            break
        for rows in combinations(candidates, size):
            if (y := _mismatch(A[list(rows)], c[list(rows)], limit)) is not None:
                return _conflict(A, c, rows, y, smallest=True)
    rows = candidates
    for row in reversed(candidates):
        fewer = tuple(i for i in rows if i != row)
        if _mismatch(A[list(fewer)], c[list(fewer)], limit) is not None:
            rows = fewer
    y = _mismatch(A[list(rows)], c[list(rows)], limit)
    assert y is not None
    return _conflict(A, c, rows, y, smallest=False)


def _mismatch(A: Array, c: Array, limit: float) -> Array | None:
    """Return y with A^T y = 0 and y^T c beyond the limit, or None."""
    U, s, _ = np.linalg.svd(A)
    rank = int(np.count_nonzero(s > RANK * max(1.0, s.max(initial=0.0))))
    null = U[:, rank:]
    along = null.T @ c
    if np.abs(along).max(initial=0.0) <= limit:
        return None
    return null @ along


def _conflict(A: Array, c: Array, rows: tuple[int, ...], y: Array, *, smallest: bool) -> Conflict:
    """Pack a conflict with its largest weight normalised to one."""
    weights = np.zeros(A.shape[0])
    weights[list(rows)] = y / y[np.argmax(np.abs(y))]
    return Conflict(rows, weights, float(weights @ c), smallest)
