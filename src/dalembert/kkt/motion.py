"""The admissible motions: coordinates of null(A), and whether the mass matrix is definite there (seed 000, eq. 33).

Symbols: a = Z y with A Z = 0; dep, ind the dependent and independent coordinates; Mz = Z^T M Z the reduced mass
matrix. Z is built by coordinate partitioning, Z = [-B1^-1 B2; I], with light coordinates made dependent first: then
Mz is a sum of masses with little cancellation, and a motion of very little mass stays visible beside heavy ones,
which an orthonormal basis of null(A) would blur.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg as sla
from jaxtyping import Float, Int

from dalembert.kkt.rows import RowStructure

Array = np.ndarray
EPS = np.finfo(float).eps

MASS_FACTOR = 8.0
"""Reduced masses below MASS_FACTOR * n * eps of the terms they are summed from are zero."""

MASSLESS_PREFERENCE = 1e6
"""Massless coordinates are made dependent before any other, as if this much lighter than the lightest."""

WORST_PARTITION = 1e-9
"""A partition whose dependent block is worse conditioned than this gives way to plain column pivoting."""


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
    scale, vectors, values
        Mz = Z^T M Z is decided on T Mz T with T = diag(scale), whose eigenpairs these are.
    noise
        An eigenvalue within its own noise of zero counts as zero: what rounding of M's entries does to it.
    """

    dependent: Int[Array, " r"]
    independent: Int[Array, " k"]
    B1: Float[Array, "r r"]
    Z: Float[Array, "n k"]
    scale: Float[Array, " k"]
    vectors: Float[Array, "k k"]
    values: Float[Array, " k"]
    noise: Float[Array, " k"]

    @property
    def positive(self) -> int:
        """Number of admissible motions with mass."""
        return int(np.count_nonzero(self.values > self.noise))

    @property
    def negative(self) -> int:
        """Number of admissible motions with negative mass (an unphysical model)."""
        return int(np.count_nonzero(self.values < -self.noise))

    @property
    def massless(self) -> int:
        """Number of free massless motions: dimension of null(M) within null(A)."""
        return self.values.size - self.positive - self.negative

    def directions(self, kind: str) -> Float[Array, "n j"]:
        """Return the motions of one kind ("massless" or "negative") in scaled coordinates."""
        chosen = np.abs(self.values) <= self.noise if kind == "massless" else self.values < -self.noise
        return self.Z @ (self.scale[:, None] * self.vectors[:, chosen])


def motion_structure(M: Float[Array, "n n"], rows: RowStructure) -> MotionStructure:
    """Partition the coordinates and decide the definiteness of the reduced mass matrix.  O(n^3).

    Entries of Z at the rounding level of the singular vectors become zero: beside a heavy coordinate they would look
    like mass.
    """
    Mhat = rows.columns[:, None] * M * rows.columns
    V1t = rows.Vt[: rows.rank]
    dependent, independent = _partition(Mhat, V1t)
    B1 = V1t[:, dependent]
    Z = np.zeros((M.shape[0], independent.size))
    Z[independent, np.arange(independent.size)] = 1.0
    if rows.rank and independent.size:
        Z[dependent] = -np.linalg.solve(B1, V1t[:, independent])
        noise = MASS_FACTOR * M.shape[0] * EPS / rows.kept
        Z[np.abs(Z) <= noise * np.abs(Z).max(axis=0)] = 0.0
    return MotionStructure(dependent, independent, B1, Z, *_reduced_mass(Mhat, Z))


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


def _reduced_mass(Mhat: Float[Array, "n n"], Z: Float[Array, "n k"]) -> tuple[Array, Array, Array, Array]:
    """Return scale, eigenvectors, eigenvalues and their noise for the diagonally scaled reduced mass matrix."""
    reduced = Z.T @ Mhat @ Z
    terms = np.abs(Z).T @ np.abs(Mhat) @ np.abs(Z)
    rounding = MASS_FACTOR * Mhat.shape[0] * EPS
    diagonal, size = np.abs(np.diag(reduced)), np.diag(terms)
    size = np.where(diagonal > rounding * size, diagonal, size)
    scale = 1.0 / np.sqrt(np.where(size > 0.0, size, 1.0))
    scaled = scale[:, None] * reduced * scale
    values, vectors = np.linalg.eigh(0.5 * (scaled + scaled.T))
    spread = scale[:, None] * np.abs(vectors)
    noise = rounding * np.maximum(1.0, np.einsum("ij,ik,kj->j", spread, terms, spread))
    return scale, vectors, values, noise
