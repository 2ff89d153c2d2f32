"""The diagnosis of a constrained system: what is redundant, conflicting, massless or not unique, by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dalembert.kkt.analysis import Analysis
from dalembert.kkt.conflict import Conflict, smallest_conflict
from dalembert.kkt.limits import EPS, massless_level
from dalembert.kkt.rows import combination, echelon
from dalembert.status import Status
from dalembert.types import Array

if TYPE_CHECKING:
    from jaxtyping import Bool, Float


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """What can be said of M and A (and, if given, a drift) before and without solving.  `print` it.

    Attributes
    ----------
    verdict
        The status that a solve with default options would have.
    names, coordinates
        Names of constraint rows and of coordinates.
    rank, rank_gap
        Rank of A, and how clearly it was decided (smallest singular value kept over largest dropped, or over eps).
    mass_rank
        Rank of M; n - mass_rank is the dimension of massless motion, constrained or not.
    inertia
        Positive, negative and zero eigenvalues of the block matrix; (n, m, 0) exactly when it is regular.
    redundant
        Row index -> coefficients (m,) of the other rows that add up to it.
    unique
        Per row, whether its reaction is unique (Wojtyra's criterion).
    multiplier_basis
        Basis of null(A^T), (m, k), in echelon form: multipliers may change by any combination of its columns.
    massless
        Free massless motions, (n, k), in echelon form: admissible, and moving no mass (condition 33 fails on them).
    negative
        Admissible motions along which M is negative, (n, k).
    conflict
        The smallest set of contradictory rows, where a drift was given and conflicts.
    condition
        2-norm condition of the equilibrated block matrix, redundant rows and massless motions left out.
    doubt
        A sentence where the rank of A was a close decision, else empty.
    """

    verdict: Status
    names: tuple[str, ...]
    coordinates: tuple[str, ...]
    rank: int
    rank_gap: float
    mass_rank: int
    inertia: tuple[int, int, int]
    redundant: dict[int, Float[Array, " m"]]
    unique: Bool[Array, " m"]
    multiplier_basis: Float[Array, "m k"]
    massless: Float[Array, "n j"]
    negative: Float[Array, "n i"]
    conflict: Conflict | None
    condition: float
    doubt: str

    @property
    def solvable(self) -> bool:
        """True when accelerations are unique for every consistent drift: condition (33) of seed 000."""
        return not self.massless.size and not self.negative.size

    @property
    def dagger_ranks(self) -> tuple[int, int] | None:
        """Ranks (n - m, m - d) of M-dagger and Lambda-dagger, d = n - rank M; None where there is no dagger."""
        n, m = len(self.coordinates), len(self.names)
        return (n - m, m - (n - self.mass_rank)) if self.solvable and self.rank == m else None

    @property
    def redundant_names(self) -> tuple[str, ...]:
        """Names of the rows that follow from rows before them."""
        return tuple(self.names[i] for i in self.redundant)

    @property
    def massless_motions(self) -> tuple[str, ...]:
        """Each free massless motion as a combination of coordinates."""
        return tuple(combination(column, self.coordinates) for column in self.massless.T)

    def __str__(self) -> str:
        lines = [f"{len(self.coordinates)} coordinates, {len(self.names)} constraint rows: {self.verdict.message}"]
        lines += [f"  rank of A {self.rank} of {len(self.names)} (gap {self.rank_gap:.1e}), rank of M {self.mass_rank}"]
        lines += [f"  inertia of the block matrix {self.inertia}, condition {self.condition:.1e}"]
        lines += [f"  {self.doubt}"] if self.doubt else []
        lines += [f"  redundant: {self.names[i]} = {combination(y, self.names)}" for i, y in self.redundant.items()]
        if self.conflict is not None:
            lines += [f"  {self.conflict.describe(self.names)}"]
        lines += [f"  free massless motion: {motion}" for motion in self.massless_motions]
        lines += [f"  negative mass along: {combination(y, self.coordinates)}" for y in self.negative.T]
        if not self.unique.all():
            lines += [f"  reactions not unique: {self._listed(~self.unique)}"]
            lines += [f"  reactions unique: {self._listed(self.unique) or 'none'}"]
        return "\n".join(lines)

    def _listed(self, chosen: Array) -> str:
        return ", ".join(name for name, take in zip(self.names, chosen, strict=True) if take)


def diagnose(
    analysis: Analysis,
    names: tuple[str, ...],
    coordinates: tuple[str, ...],
    rhs: Array | None,
) -> Diagnosis:
    """Diagnose one system; `rhs` is c = -drift, or None to leave consistency aside."""
    rows, motion = analysis.rows, analysis.motion
    basis, pivots = rows.redundancies
    conflict = None
    if rhs is not None and rows.rank < len(names):
        conflict = smallest_conflict(rhs, rows, analysis.precision[1])
    massless = echelon(motion.free, rows.columns)[0]
    negative = echelon(motion.negative_motions, rows.columns)[0]
    return Diagnosis(
        verdict=_verdict(analysis, conflict),
        names=names,
        coordinates=coordinates,
        rank=rows.rank,
        rank_gap=rows.gap,
        mass_rank=mass_rank(analysis.M, analysis.precision[0]),
        inertia=analysis.inertia,
        redundant=dict(sorted((row, _others(basis[:, j], row)) for j, row in enumerate(pivots))),
        unique=rows.unique,
        multiplier_basis=basis,
        massless=massless,
        negative=negative,
        conflict=conflict,
        condition=block_condition(analysis),
        doubt=rows.doubt,
    )


def mass_rank(M: Float[Array, "n n"], precision: float = EPS) -> int:
    """Return the rank of M, decided on M scaled to unit diagonal."""
    size = np.sqrt(np.abs(M).max(axis=1))
    scale = 1.0 / np.where(size > 0.0, size, 1.0)
    diagonal = np.sqrt(np.abs(np.diag(M)))
    scale = np.where(diagonal > 0.0, 1.0 / np.where(diagonal > 0.0, diagonal, 1.0), scale)
    values = np.linalg.eigvalsh(scale[:, None] * M * scale)
    level = massless_level(M.shape[0], precision) * max(1.0, np.abs(values).max())
    return int(np.count_nonzero(np.abs(values) > level))


def block_condition(analysis: Analysis) -> float:
    """Return the ratio of extreme singular values of the equilibrated block matrix, its null space left out."""
    K = analysis.scales[:, None] * analysis.K * analysis.scales
    values = np.sort(np.abs(np.linalg.eigvalsh(K)))[analysis.inertia[2] :]
    return float(values[-1] / values[0]) if values.size and values[0] > 0.0 else np.inf


def _verdict(analysis: Analysis, conflict: Conflict | None) -> Status:
    """Return what a solve with default options would say."""
    if conflict is not None:
        return Status.INCONSISTENT
    if analysis.motion.negative:
        return Status.INDEFINITE
    if analysis.motion.massless:
        return Status.MASSLESS
    if analysis.rows.ambiguous:
        return Status.ILL_CONDITIONED
    return Status.REDUNDANT if analysis.rows.rank < analysis.A.shape[0] else Status.UNIQUE


def _others(column: Array, row: int) -> Array:
    """Return the coefficients of the other rows that add up to `row`, from a null vector that is 1 there."""
    others = -column
    others[row] = 0.0
    return others + 0.0
