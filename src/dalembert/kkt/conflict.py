"""The smallest set of constraint rows that contradict each other.

A set of rows is inconsistent when some y with A^T y = 0 on it has y^T c != 0: the same combination of the rows that
gives zero on the left gives something else on the right. The smallest such set is what a person can act on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import TYPE_CHECKING

import numpy as np

from dalembert.kkt.limits import EPS, SHARE, consistency_level
from dalembert.kkt.rows import RowStructure, combination, echelon
from dalembert.types import Array

if TYPE_CHECKING:
    from jaxtyping import Float

MOST_SETS = 4000
"""Sets tried by size; beyond this many, rows are dropped one by one instead (irreducible, perhaps not smallest)."""


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
        kind = "the smallest conflict" if self.smallest else "a conflict without a smaller one inside"
        if len(self.rows) == 1:
            return f"{kind}: row {listed} is zero, yet asks for the acceleration {self.mismatch:.6g}"
        return (
            f"{kind}: rows {listed}; {combination(self.weights, names)} is zero on the left "
            f"and {self.mismatch:.6g} on the right"
        )


def relative_conflict(rows: RowStructure, c: Float[Array, " m"], noise: Float[Array, " m"] | float = 0.0) -> float:
    """Return how far the right sides of dependent rows contradict each other, relative to themselves.

    For every redundancy y (in echelon form, so that it speaks of few rows): |y^T c| / sum |y_i c_i|. A mismatch within
    sum |y_i| noise_i, the rounding that c is known to have, is none.
    """
    basis = rows.null
    mismatch, size = np.abs(basis.T @ c), np.abs(basis).T @ np.abs(c)
    mismatch = np.where(mismatch <= np.abs(basis).T @ np.broadcast_to(noise, c.shape), 0.0, mismatch)
    return float((mismatch / np.where(size > 0.0, size, 1.0)).max(initial=0.0))


def agreement(rows: RowStructure, precision: float = EPS) -> float:
    """Return the relative conflict up to which right sides of dependent rows agree.

    `CONSISTENCY`, or what the precision of the data leaves, or what a given rank or tolerance has dropped: right sides
    of rows that are dependent to five digits agree to five digits.
    """
    dropped = SHARE * rows.dropped / rows.kept if rows.truncated else 0.0
    return max(consistency_level(rows.B.shape[0], precision), min(dropped, 1.0))


def smallest_conflict(c: Float[Array, " m"], rows: RowStructure, precision: float = EPS) -> Conflict | None:
    """Find the smallest set of rows in conflict, or None where all right sides agree.

    Ranks are decided as they were for the whole of A: in the metric of the mass, at the same threshold.
    """
    limit = agreement(rows, precision)
    if relative_conflict(rows, c) <= limit:
        return None
    weighted_c = rows.weights * c

    def mismatch(chosen: tuple[int, ...]) -> Array | None:
        return _mismatch(rows.B[list(chosen)], weighted_c[list(chosen)], rows.threshold, limit)

    candidates, tried = tuple(int(i) for i in np.flatnonzero(~rows.unique)), 0
    for size in range(1, len(candidates) + 1):
        tried += comb(len(candidates), size)
        if tried > MOST_SETS:
            break
        for chosen in combinations(candidates, size):
            if (y := mismatch(chosen)) is not None:
                return _conflict(rows.weights, c, chosen, y, smallest=True)
    return _irreducible_conflict(rows, c, mismatch)


def _irreducible_conflict(
    rows: RowStructure, c: Array, mismatch: Callable[[tuple[int, ...]], Array | None]
) -> Conflict:
    """Begin with the redundancy of largest mismatch and leave out every row that the conflict does not need."""
    size = np.abs(rows.null).T @ np.abs(c)
    worst = int(np.argmax(np.abs(rows.null.T @ c) / np.where(size > 0.0, size, 1.0)))
    column = rows.null[:, worst] / rows.weights
    chosen = tuple(int(i) for i in np.flatnonzero(column))
    y = column[list(chosen)]
    for row in reversed(chosen):
        fewer = tuple(i for i in chosen if i != row)
        if (conflict := mismatch(fewer)) is not None:
            chosen, y = fewer, conflict
    return _conflict(rows.weights, c, chosen, y, smallest=False)


def _mismatch(A: Array, c: Array, threshold: float, limit: float) -> Array | None:
    """Return y with A^T y = 0 whose y^T c is beyond `limit` of its terms, or None."""
    U, s, _ = np.linalg.svd(A)
    null = U[:, np.count_nonzero(s > threshold) :]
    if not null.shape[1]:
        return None
    basis = echelon(null, np.ones(c.size))[0]
    off = np.abs(basis.T @ c) - limit * (np.abs(basis).T @ np.abs(c))
    return basis[:, np.argmax(off)] if off.max() > 0.0 else None


def _conflict(scales: Array, c: Array, chosen: tuple[int, ...], y: Array, *, smallest: bool) -> Conflict:
    """Pack a conflict in the user's units, its largest weight normalised to one."""
    weights = np.zeros(c.size)
    weights[list(chosen)] = scales[list(chosen)] * y
    weights = weights / weights[np.argmax(np.abs(weights))]
    return Conflict(chosen, weights, float(weights @ c), smallest)
