"""The admissible motions: coordinates of null(A), and whether the mass matrix is definite there (seed 000, eq. 33).

Symbols: a = Z y with A Z = 0; dep, ind the dependent and independent coordinates; Mz = Z^T M Z the reduced mass
matrix. Z is built by coordinate partitioning, Z = [-B1^-1 B2; I], with light coordinates made dependent first: then
Mz is a sum of masses with little cancellation, and a motion of very little mass stays visible beside heavy ones,
which an orthonormal basis of null(A) would blur.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dalembert.first_use import LaterModule
from dalembert.kkt.limits import EPS, WORST_PARTITION, massless_level
from dalembert.kkt.rows import RowStructure
from dalembert.types import Array

if TYPE_CHECKING:
    import scipy.linalg as sla
    from jaxtyping import Float, Int
else:
    sla = LaterModule("scipy.linalg")

MASSLESS_PREFERENCE = 1e6
"""Massless coordinates are made dependent before any other, as if this much lighter than the lightest."""


@dataclass(frozen=True, eq=False)
class MotionStructure:
    """Admissible motions and the reduced mass matrix.

    Attributes
    ----------
    dependent, independent
        Coordinate indices; the first r follow from the others.
    B1
        Rows V1^T of the row space restricted to the dependent coordinates (in scaled coordinates), r x r.
    Z
        Basis of null(A) in scaled coordinates, n x (n - r).
    free
        Free massless motions in scaled coordinates: a basis of null(M) within null(A), or, for an indefinite M without
        such, the admissible motions of zero mass.
    scale, vectors, values
        Mz = Z^T M Z is decided on T Mz T with T = diag(scale), whose eigenpairs these are.
    noise
        An eigenvalue within its own noise of zero counts as zero: what rounding of M's entries does to it.
    """

    dependent: Int[Array, " r"]
    independent: Int[Array, " k"]
    B1: Float[Array, "r r"]
    Z: Float[Array, "n k"]
    free: Float[Array, "n j"]
    scale: Float[Array, " k"]
    vectors: Float[Array, "k k"]
    values: Float[Array, " k"]
    noise: Float[Array, " k"]

    @property
    def massless(self) -> int:
        """Number of free massless motions: dimension of null(M) within null(A)."""
        return self.free.shape[1]

    @property
    def negative(self) -> int:
        """Number of admissible motions with negative mass (an unphysical model)."""
        return int(np.count_nonzero(self.values < -self.noise))

    @property
    def positive(self) -> int:
        """Number of admissible motions with mass."""
        return self.values.size - self.massless - self.negative

    @property
    def negative_motions(self) -> Float[Array, "n j"]:
        """Admissible motions along which M is negative, in scaled coordinates."""
        return self.Z @ (self.scale[:, None] * self.vectors[:, self.values < -self.noise])


def motion_structure(M: Float[Array, "n n"], rows: RowStructure, precision: float = EPS) -> MotionStructure:
    """Partition the coordinates and decide the definiteness of the reduced mass matrix.  O(n^3).

    `precision` is the eps of the numbers in M.
    """
    Mhat = rows.columns[:, None] * M * rows.columns
    V1t = rows.V1t
    dependent, independent = _partition(Mhat, V1t)
    B1 = V1t[:, dependent]
    Z = np.zeros((M.shape[0], independent.size))
    Z[independent, np.arange(independent.size)] = 1.0
    if rows.rank and independent.size:
        Z[dependent] = -np.linalg.solve(B1, V1t[:, independent])
    scale, vectors, values, noise = _reduced_mass(Mhat, Z, precision)
    free, definite = _free_massless(Mhat, V1t, precision)
    if not free.shape[1] and not definite:  # an indefinite M may vanish on a motion without annihilating it
        free = Z @ (scale[:, None] * vectors[:, (values <= 0.0) & (values >= -noise)])
    return MotionStructure(dependent, independent, B1, Z, free, scale, vectors, values, noise)


def _partition(Mhat: Float[Array, "n n"], V1t: Float[Array, "r n"]) -> tuple[Array, Array]:
    """Choose dependent coordinates by column pivoting on light coordinates first."""
    r = V1t.shape[0]
    if r == 0:
        return np.arange(0), np.arange(Mhat.shape[0])
    diagonal = np.diag(Mhat)
    massive = diagonal > 0.0
    weight = 1.0 / np.sqrt(np.where(massive, diagonal, 1.0))
    lightest = weight[massive].max(initial=0.0)
    weight[~massive] = MASSLESS_PREFERENCE * (lightest if lightest > 0.0 else 1.0)
    for columns in (V1t * (weight / weight.max()), V1t):
        _, order = sla.qr(columns, mode="r", pivoting=True)  # pyright: ignore[reportAssignmentType]
        smallest = np.linalg.svd(V1t[:, order[:r]], compute_uv=False)[-1]
        if smallest > WORST_PARTITION:
            break
    return np.sort(order[:r]), np.sort(order[r:])


def _free_massless(
    Mhat: Float[Array, "n n"], V1t: Float[Array, "r n"], precision: float
) -> tuple[Float[Array, "n j"], bool]:
    """Return a basis of null(M) within null(A), and whether M is definite whatever A is.

    Condition (33) of seed 000 holds exactly when the basis is empty.

    null(M) is found on M scaled to unit diagonal, so that a light coordinate is not taken for a massless one; the
    combinations of it that lie in null(A) are those that the orthonormal rows V1^T do not see.
    """
    n = Mhat.shape[0]
    diagonal = np.abs(np.diag(Mhat))
    scale = 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
    values, vectors = np.linalg.eigh(scale[:, None] * Mhat * scale)
    zero = massless_level(n, precision) * max(1.0, np.abs(values).max())
    null = scale[:, None] * vectors[:, np.abs(values) <= zero]
    if not null.shape[1]:
        return null, bool(values[0] > zero)
    null = np.linalg.qr(null)[0]
    _, s, Wt = np.linalg.svd(V1t @ null)
    seen = int(np.count_nonzero(s > massless_level(n)))
    return null @ Wt[seen:].T, False


def _reduced_mass(
    Mhat: Float[Array, "n n"], Z: Float[Array, "n k"], precision: float
) -> tuple[Array, Array, Array, Array]:
    """Return scale, eigenvectors, eigenvalues and their noise for the diagonally scaled reduced mass matrix."""
    reduced = Z.T @ Mhat @ Z
    terms = np.abs(Z).T @ np.abs(Mhat) @ np.abs(Z)
    rounding = massless_level(Mhat.shape[0], precision)
    diagonal, size = np.abs(np.diag(reduced)), np.diag(terms)
    size = np.where(diagonal > rounding * size, diagonal, size)
    scale = 1.0 / np.sqrt(np.where(size > 0.0, size, 1.0))
    scaled = scale[:, None] * reduced * scale
    values, vectors = np.linalg.eigh(0.5 * (scaled + scaled.T))
    spread = scale[:, None] * np.abs(vectors)
    noise = rounding * np.maximum(1.0, np.einsum("ij,ik,kj->j", spread, terms, spread))
    return scale, vectors, values, noise
