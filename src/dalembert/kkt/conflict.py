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
from dalembert.kkt.rows import RowStructure

Array = np.ndarray

MOST_SETS = 4000
"""Sets tried by size; beyond this many, rows are dropped one by one instead (irreducible, perhaps not smallest)."""

CONSISTENCY = 1e-10
"""Relative conflict among the right sides of dependent rows up to which they count as consistent: drift terms are
differences of larger numbers and rarely better than this."""


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


def relative_conflict(rows: RowStructure, c: Float[Array, " m"]) -> float:
    """Return the part of c outside range(A), relative to c, on equilibrated rows."""
    scaled = rows.rows * c
    conflict = float(np.abs(rows.scaled_null.T @ scaled).max(initial=0.0))
    return conflict / float(np.abs(scaled).max()) if conflict else 0.0


def smallest_conflict(A: Float[Array, "m n"], c: Float[Array, " m"], rows: RowStructure) -> Conflict | None:
    """Find the smallest set of rows in conflict, or None where all right sides agree.

    Ranks are decided as they were for the whole of A: on its equilibrated rows, at the same threshold.
    """
    if relative_conflict(rows, c) <= CONSISTENCY:
        return None
    scaled, scaled_c = rows.rows[:, None] * A * rows.columns, rows.rows * c
    limit = CONSISTENCY * float(np.abs(scaled_c).max())

    def mismatch(chosen: tuple[int, ...]) -> Array | None:
        return _mismatch(scaled[list(chosen)], scaled_c[list(chosen)], rows.threshold, limit)

    candidates, tried = tuple(range(A.shape[0])), 0
    for size in range(1, A.shape[0] + 1):
        tried += comb(len(candidates), size)
        if tried > MOST_SETS:
            break
        for chosen in combinations(candidates, size):
            if (y := mismatch(chosen)) is not None:
                return _conflict(rows.rows, c, chosen, y, smallest=True)
    chosen, y = candidates, mismatch(candidates)
    for row in reversed(candidates):
        fewer = tuple(i for i in chosen if i != row)
        if (found := mismatch(fewer)) is not None:
            chosen, y = fewer, found
    assert y is not None
    return _conflict(rows.rows, c, chosen, y, smallest=False)


def _mismatch(A: Array, c: Array, threshold: float, limit: float) -> Array | None:
    """Return y with A^T y = 0 and y^T c beyond the limit, or None."""
    U, s, _ = np.linalg.svd(A)
    null = U[:, np.count_nonzero(s > threshold) :]
    along = null.T @ c
    return null @ along if np.abs(along).max(initial=0.0) > limit else None


def _conflict(scales: Array, c: Array, chosen: tuple[int, ...], y: Array, *, smallest: bool) -> Conflict:
    """Pack a conflict in the user's units, its largest weight normalised to one."""
    weights = np.zeros(c.size)
    weights[list(chosen)] = scales[list(chosen)] * y
    weights = weights / weights[np.argmax(np.abs(weights))]
    return Conflict(chosen, weights, float(weights @ c), smallest)
