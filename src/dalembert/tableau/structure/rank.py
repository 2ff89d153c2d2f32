"""Ranks of blocks at probed points, culprits by name: a matching is necessary, not sufficient.

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
from dalembert.kkt.limits import BLOCK_ROUNDING, LOOSER, NAMED, VANISHING
from dalembert.kkt.rows import combination, echelon
from dalembert.tableau.elimination.equilibration import equilibrate
from dalembert.tableau.structure.matching import blocks, match
from dalembert.tableau.structure.pattern import Pattern
from dalembert.tableau.structure.solvability import SETS_SHOWN, listed, require_solvable
from dalembert.types import Array

DENSE_LIMIT = 1200
"""Blocks up to this size by singular values; larger ones by inverse iteration on SuperLU's factors."""

SUBSPACE = 8
"""Dependences that are looked for in one large block, at most."""

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
        sets = [
            f"equations {listed(e)} are dependent ({_cut(r)}), and do not determine {listed(u)}"
            if len(e) > 1
            else f"all coefficients of equation {listed(e)} vanish, and {listed(u)} is not determined"
            for e, u, r in zip(self.equations, self.unknowns, self.relations, strict=True)
        ]
        more = [f"... and {len(sets) - SETS_SHOWN} more such sets"] if len(sets) > SETS_SHOWN else []
        return "; ".join(sets[:SETS_SHOWN] + more)


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


def rank_report(system: Any, values: Any, tolerance: float = BLOCK_ROUNDING, reference: Any = None) -> RankReport:
    """Check the rank of a structurally solvable matrix at probed points, values (entries,) or (K, entries).

    Rank is decided on blocks scaled so that it does not depend on units (`equilibrate`). A point with NaN or infinity
    is refused. `tolerance` times the size of a block is the part of its largest singular value below which one counts
    as zero. Where `reference` sizes of the entries are given, equations and unknowns all of whose coefficients are
    rounding beside them count as absent: without, a row of rounding errors is a row like any other.
    """
    pattern = Pattern.of(system)
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
    if reference is not None:
        rows, cols = vanished(pattern, points, np.asarray(reference, dtype=float))
        points = np.where(rows[:, pattern.rows] | cols[:, pattern.indices], 0.0, points)
    dependences = []
    for k, data in enumerate(points):
        A = pattern.matrix(data)
        for first, last in zip(order.begins[:-1], order.begins[1:], strict=True):
            rows, cols = np.sort(order.rows[first:last]), np.sort(order.cols[first:last])
            left, right, scales = null_vectors(sp.csr_array(A[rows][:, cols]), tolerance)
            if left.shape[1]:
                names = [pattern.equations[i] for i in rows]
                unknowns = [pattern.unknowns[j] for j in cols]
                dependences.append(_named(left, right, scales, names, unknowns, k))
    return RankReport(len(points), tuple(dependences))


def vanished(pattern: Pattern, values: Array, reference: Array) -> tuple[Array, Array]:
    """Return which equations and which unknowns have only coefficients that are rounding beside reference sizes.

    Coefficients (K, entries) below VANISHING times the reference (entries,) count as rounding: cos(pi/2) = 6e-17.
    """
    rounding = np.abs(values) <= VANISHING * reference
    absent = []
    for at, count in zip((pattern.rows, pattern.indices), pattern.shape, strict=True):
        present = np.zeros((len(values), count), bool)
        sample, entry = np.nonzero(~rounding)
        present[sample, at[entry]] = True
        absent.append(~present)
    return absent[0], absent[1]


def loose_rank_report(system: Any, values: Any) -> RankReport:
    """Check the rank of a matrix that was found singular: looser and looser, so that someone is named."""
    report = rank_report(system, values)
    for tolerance in LOOSER:
        report = rank_report(system, values, tolerance) if report.full else report
    return report


def _cut(relation: str) -> str:
    """Return a relation, a long one by its beginning."""
    return relation if len(relation) <= LONGEST else f"{relation[:LONGEST]} ..."


def _named(left: Array, right: Array, row: Array, equations: list[str], unknowns: list[str], point: int) -> Dependence:
    """Put sparse null vectors into names: what counts is decided on scaled rows, relations are in the user's units."""
    shown = echelon(left, row)[0]
    left, right = (echelon(basis, np.ones(len(basis)))[0] for basis in (left, right))
    shown = np.where(np.abs(left) < NAMED * np.abs(left).max(axis=0), 0.0, shown)
    relations = tuple(f"{combination(_rounded(c), tuple(equations))} = 0 whatever the unknowns" for c in shown.T)
    return Dependence(_names(left, equations), _names(right, unknowns), relations, point)


def _rounded(c: Array) -> Array:
    """Return coefficients to nine digits, each of its own."""
    return np.array([float(f"{value:.9g}") for value in c])


def _names(vectors: Array, names: list[str]) -> tuple[tuple[str, ...], ...]:
    """Return, per vector, the names whose coefficients count."""
    return tuple(
        tuple(name for name, c in zip(names, vector, strict=True) if abs(c) >= NAMED * np.abs(vector).max())
        for vector in vectors.T
    )


def null_vectors(block: Any, tolerance: float = BLOCK_ROUNDING) -> tuple[Array, Array, Array]:
    """Return bases of the left and right null space of a scaled block, D A E, and D."""
    n = block.shape[0]
    if n == 1:  # most blocks of a large system
        one = np.ones((1, 1 if not block.nnz or block.data[0] == 0.0 else 0))
        return one, one, np.ones(1)
    row, col = equilibrate(block)
    scaled = sp.csr_array(sp.diags_array(row) @ block @ sp.diags_array(col))
    if n > DENSE_LIMIT:
        return *_by_inverse_iteration(scaled, tolerance), row
    u, s, vt = np.linalg.svd(scaled.toarray())
    zero = s <= tolerance * n * max(s[0], np.finfo(float).tiny)
    return u[:, zero], vt[zero].T, row


def _by_inverse_iteration(scaled: Any, tolerance: float) -> tuple[Array, Array]:
    """Return null vectors of a large block, at most SUBSPACE of them: subspace iteration with (A^T A)^-1."""
    n = scaled.shape[0]
    rng = np.random.default_rng(5)
    factors = _nudged_factors(scaled, rng)
    right, left = np.linalg.qr(rng.standard_normal((n, SUBSPACE)))[0], np.empty((n, SUBSPACE))
    for _ in range(3):
        left = np.linalg.qr(factors.solve(right, "T"))[0]
        right = np.linalg.qr(factors.solve(left))[0]
    largest = np.abs(scaled.data).max(initial=np.finfo(float).tiny)
    bases = []
    for matrix, basis in ((scaled.T, left), (scaled, right)):
        _, s, vt = np.linalg.svd(matrix @ basis, full_matrices=False)
        bases.append(basis @ vt[s <= tolerance * n * largest].T)
    common = min(basis.shape[1] for basis in bases)
    return bases[0][:, :common], bases[1][:, :common]


def _nudged_factors(scaled: Any, rng: np.random.Generator) -> Any:
    """Return SuperLU's factors of a matrix that may be singular, its diagonal changed by a rounding or two."""
    n = scaled.shape[0]
    while True:
        nudge = sp.diags_array(BLOCK_ROUNDING * rng.uniform(1.0, 2.0, n))
        try:
            return sla.splu(sp.csc_array(scaled + nudge))
        except RuntimeError:  # the nudge met its match: another one will not
            continue
