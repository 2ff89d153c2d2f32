"""The numerical check: a matching is necessary, not sufficient. Ranks of blocks at probed points, culprits by name.

A block-triangular matrix is regular exactly when its diagonal blocks are, so each block is looked at alone. A left null
vector of a block is a combination of equations that says nothing; a right one is a motion of unknowns that no equation
sees.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as sla

from dalembert.errors import ModelError, ShapeError
from dalembert.kkt.echelon import combination, echelon
from dalembert.tableau.decomposition import blocks
from dalembert.tableau.matching import match
from dalembert.tableau.pattern import Pattern
from dalembert.tableau.solvability import listed, require_solvable

Array = np.ndarray

DENSE_LIMIT = 1200
"""Blocks up to this size by singular values; larger ones by inverse iteration on SuperLU's factors."""

TOLERANCE = 64 * np.finfo(float).eps
"""Times the size of the block: singular values below it, in an equilibrated block, are zero."""

SMALL = 1e-7
"""Coefficients of a null vector below this part of its largest are left out of the names."""

SWEEPS = 3

LONGEST = 400
"""Characters shown of a relation between equations."""


@dataclass(frozen=True)
class Dependence:
    """One block without full rank.

    Attributes
    ----------
    equations, unknowns
        Names with coefficients that count, of each null vector.
    relations
        What the equations say, "G1 - 2 G3 = 0 for every value of the unknowns".
    point
        At which probed point.
    """

    equations: tuple[tuple[str, ...], ...]
    unknowns: tuple[tuple[str, ...], ...]
    relations: tuple[str, ...]
    point: int

    def __str__(self) -> str:
        return "; ".join(
            f"equations {listed(e)} are dependent ({_cut(r)}), and do not determine {listed(u)}"
            for e, u, r in zip(self.equations, self.unknowns, self.relations, strict=True)
        )


@dataclass(frozen=True)
class RankReport:
    """Rank of the Jacobian at probed points."""

    points: int
    found: tuple[Dependence, ...]

    @property
    def full(self) -> bool:
        """Whether the rank is full at every probed point."""
        return not self.found

    @property
    def always(self) -> bool:
        """Whether the rank is deficient at every probed point: likely for all values, not by accident."""
        return len({dependence.point for dependence in self.found}) == self.points

    def __str__(self) -> str:
        if self.full:
            return f"numerically regular at {self.points} probed point(s)"
        bad = sorted({dependence.point for dependence in self.found})
        where = "every probed point" if self.always else f"probed point(s) {', '.join(map(str, bad))}"
        lines = dict.fromkeys(str(dependence) for dependence in self.found)
        return f"numerically singular at {where}: " + "\n".join(lines)


def rank_report(given: Any, values: Any) -> RankReport:
    """Check the rank of a structurally solvable matrix at probed points, values (entries,) or (K, entries)."""
    pattern = Pattern.of(given)
    pattern.require_square()
    matching = match(pattern)
    require_solvable(matching)
    order = blocks(matching)
    points = np.atleast_2d(pattern.values_of(values, "values"))
    if points.shape[-1] != pattern.entries or points.ndim != 2 or not len(points):
        raise ShapeError(
            f"values have shape {points.shape}; expected ({pattern.entries},) or (K, {pattern.entries}), row after row"
        )
    if not np.isfinite(points).all():
        k, entry = np.argwhere(~np.isfinite(points))[0]
        raise ModelError(
            f"values at point {k} hold NaN or infinity in equation {pattern.equations[pattern.rows[entry]]!r}"
        )
    found = []
    for k, data in enumerate(points):
        A = pattern.matrix(data)
        for first, last in zip(order.begins[:-1], order.begins[1:], strict=True):
            rows, cols = np.sort(order.rows[first:last]), np.sort(order.cols[first:last])
            left, right = _null_vectors(sp.csr_array(A[rows][:, cols]))
            if left.shape[1]:
                names = [pattern.equations[i] for i in rows]
                unknowns = [pattern.unknowns[j] for j in cols]
                found.append(_named(left, right, names, unknowns, k))
    return RankReport(len(points), tuple(found))


def _cut(relation: str) -> str:
    """Return a relation, a long one by its beginning."""
    return relation if len(relation) <= LONGEST else f"{relation[:LONGEST]} ..."


def _named(left: Array, right: Array, equations: list[str], unknowns: list[str], point: int) -> Dependence:
    """Put sparse null vectors into names."""
    left, right = (echelon(basis, np.ones(len(basis)))[0] for basis in (left, right))
    left = np.where(np.abs(left) < SMALL * np.abs(left).max(axis=0), 0.0, left)
    relations = tuple(f"{combination(np.round(c, 9), tuple(equations))} = 0 whatever the unknowns" for c in left.T)
    return Dependence(_names(left, equations), _names(right, unknowns), relations, point)


def _names(vectors: Array, names: list[str]) -> tuple[tuple[str, ...], ...]:
    """Return, per vector, the names whose coefficients count."""
    return tuple(
        tuple(name for name, c in zip(names, vector, strict=True) if abs(c) >= SMALL * np.abs(vector).max())
        for vector in vectors.T
    )


def _null_vectors(block: Any) -> tuple[Array, Array]:
    """Return bases of the left and right null space of a block, decided after equilibration."""
    n = block.shape[0]
    if not np.isfinite(block.data).all():
        return np.empty((n, 0)), np.empty((n, 0))
    row, col = np.ones(n), np.ones(n)
    size = abs(block)
    for _ in range(SWEEPS):
        row *= _inverse_sqrt((sp.diags_array(row) @ size @ sp.diags_array(col)).max(axis=1).toarray().ravel())
        col *= _inverse_sqrt((sp.diags_array(row) @ size @ sp.diags_array(col)).max(axis=0).toarray().ravel())
    scaled = sp.csr_array(sp.diags_array(row) @ block @ sp.diags_array(col))
    if n > DENSE_LIMIT:
        left, right = _by_inverse_iteration(scaled)
    else:
        u, s, vt = np.linalg.svd(scaled.toarray())
        zero = s <= TOLERANCE * n * max(s[0], np.finfo(float).tiny)
        left, right = u[:, zero], vt[zero].T
    return row[:, None] * left, col[:, None] * right


def _by_inverse_iteration(scaled: Any) -> tuple[Array, Array]:
    """Return one pair of null vectors of a large block, or none."""
    n = scaled.shape[0]
    nudge = TOLERANCE * sp.eye_array(n)
    factors = sla.splu(sp.csc_array(scaled + nudge))
    right = left = np.ones(n) / np.sqrt(n)
    for _ in range(3):
        right, left = factors.solve(right), factors.solve(left, "T")
        right, left = right / np.linalg.norm(right), left / np.linalg.norm(left)
    if np.linalg.norm(scaled @ right) > TOLERANCE * n * np.abs(scaled.data).max(initial=0.0):
        return np.empty((n, 0)), np.empty((n, 0))
    return left[:, None], right[:, None]


def _inverse_sqrt(x: Array) -> Array:
    return 1.0 / np.sqrt(np.where(x > 0.0, x, 1.0))
