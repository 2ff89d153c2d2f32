"""The block matrix and its analysis: what is known of (M, A) before any right side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.kkt.admissible_motions import MotionStructure, motion_structure
from dalembert.kkt.limits import EPS, NOTHING_PROVED, fast_proof
from dalembert.kkt.rows import RowStructure, row_structure
from dalembert.kkt.scaling import block_scales, common_units, own_units
from dalembert.types import Array

if TYPE_CHECKING:
    from jaxtyping import Float, Int

# ----------------------------------------------------------------------------------------------------------------------
# The block matrix itself, and its inverse through the Schur complement (seed 000, section 1).


def block_matrix(M: Array, A: Array) -> Array:
    """Return [[M, A^T], [A, 0]], shape (..., n + m, n + m)."""
    m, n = A.shape[-2:]
    batch = np.broadcast_shapes(M.shape[:-2], A.shape[:-2]) if M.ndim + A.ndim > 4 else ()
    K = np.zeros((*batch, n + m, n + m))
    K[..., :n, :n] = M
    K[..., n:, :n] = A
    K[..., :n, n:] = A.swapaxes(-1, -2)
    return K


def block_inverse(E: Array, F: Array, G: Array, H: Array) -> tuple[Array, Array, Array, Array]:
    """Invert [[E, F], [G, H]] through the Schur complement of E (seed 000, eqs. 1, 2); returns its four blocks.

    S_E = H - G E^-1 F; E and S_E must be invertible, symmetric or not. Leading axes are batches.  O((n + m)^3).
    """
    EiF = np.linalg.solve(E, F)
    GEi = np.swapaxes(np.linalg.solve(np.swapaxes(E, -1, -2), np.swapaxes(G, -1, -2)), -1, -2)
    Si = np.linalg.inv(H - G @ EiF)
    return np.linalg.inv(E) + EiF @ Si @ GEi, -EiF @ Si, -Si @ GEi, Si


# ----------------------------------------------------------------------------------------------------------------------
# Analyse: what is known of one pair (M, A) before any right side, found once and shared by all routes.


LARGEST, SMALLEST = 1e100, 1e-100
"""Squares of numbers beyond these, times what is around them, leave the range of double precision."""


class Analysis:
    """One mass matrix with its constraint rows, copied and never changed; what takes time is computed on demand.

    Attributes
    ----------
    M, A
        Mass matrix (n, n), symmetric, and constraint rows (m, n).
    K, absK
        The block matrix and its absolute values.
    tolerance, rank
        Relative rank tolerance and rank, where given.
    precision
        The eps of the numbers in M and in A.
    groups
        Which rows share a unit; None where each has its own.
    units
        Exponents of two by which the rows were multiplied; None for rows as they were given.
    factors
        Routes factored so far (or their refusals), by name, so that further right sides cost a solve only.
    """

    def __init__(
        self,
        M: Float[Array, "n n"],
        A: Float[Array, "m n"],
        tolerance: float | None = None,
        precision: tuple[float, float] = (EPS, EPS),
        rank: int | None = None,
        groups: Sequence[int] | None = None,
        units: Int[Array, " m"] | None = None,
        doubt: str = "",
    ) -> None:
        n = M.shape[0]
        self.K = block_matrix(M, A)
        self.M, self.A = self.K[:n, :n], self.K[n:, :n]
        self.tolerance, self.precision, self.rank, self.groups = tolerance, precision, rank, groups
        self.units, self.doubt = units, doubt
        self.absK = np.abs(self.K)
        self.factors: dict[str, Any] = {}

    @cached_property
    def scales(self) -> Float[Array, " k"]:
        """Scales of coordinates, then of rows, that equilibrate the whole block matrix."""
        return np.concatenate(block_scales(self.A, self.M))

    @cached_property
    def rows(self) -> RowStructure:
        """Rank and null space of the constraint rows."""
        structure = row_structure(
            self.A, self.M, self.tolerance, self.precision[1], self.rank, self.groups, units=self.units
        )
        return replace(structure, doubt=self.doubt) if self.doubt else structure

    @cached_property
    def in_common_units(self) -> tuple[Analysis, Int[Array, " k"]]:
        """The same system with M and A of size one, and the exponents s of its units; see `in_units`."""
        s = np.concatenate(common_units(self.A, self.M))
        return self.in_units(s), s

    @cached_property
    def in_own_units(self) -> tuple[Analysis, Int[Array, " k"]]:
        """The same system with every coordinate and row of size one, and the exponents s of its units."""
        s = np.concatenate(own_units(self.A, self.M, self.groups))
        return self.in_units(s), s

    def in_units(self, s: Int[Array, " k"]) -> Analysis:
        """Return the system K' = 2^s K 2^s, exactly: with x = 2^s x' and b' = 2^s b the equations are the same."""
        if not s.any():
            return self
        n = self.M.shape[0]
        d, e = s[:n], s[n:]
        M, A = np.ldexp(self.M, d[:, None] + d), np.ldexp(self.A, e[:, None] + d)
        return Analysis(M, A, self.tolerance, self.precision, self.rank, self.groups, e, self.doubt)

    def same_as(self, scaled: Analysis, s: Int[Array, " k"]) -> bool:
        """Say whether nothing was lost in a change to units of exponents s: every number comes back."""
        return scaled is self or np.array_equal(np.ldexp(scaled.K, -s[:, None] - s), self.K)

    @cached_property
    def motion(self) -> MotionStructure:
        """Admissible motions and their masses."""
        return motion_structure(self.M, self.rows, self.precision[0])

    @property
    def inertia(self) -> tuple[int, int, int]:
        """Numbers of positive, negative and zero eigenvalues of the block matrix.

        inertia(K) = inertia(Z^T M Z) + (r, r, m - r); invertible with M definite on null(A) exactly when (n, m, 0).
        Source: N. I. M. Gould, "On practical conditions for the existence and uniqueness of solutions to the
        general equality quadratic programming problem", Mathematical Programming 32 (1985) 90-99.
        """
        r, motion = self.rows.rank, self.motion
        return motion.positive + r, motion.negative + r, motion.massless + self.A.shape[0] - r

    @property
    def extreme(self) -> str:
        """A sentence where numbers are so large or small that their products overflow or vanish, else nothing."""
        sizes = self.absK[self.absK > 0.0]
        least, most = (float(sizes.min()), float(sizes.max())) if sizes.size else (1.0, 1.0)
        if least >= SMALLEST and most <= LARGEST:
            return ""
        return f"the entries of M and A reach from {least:.0e} to {most:.0e}, and products of them overflow or vanish"

    @property
    def proof(self) -> tuple[float, float]:
        """Limits for the factors of a fast route: largest trace, least ratio of row lengths; see `limits.py`."""
        m, n = self.A.shape
        if self.doubt:
            return NOTHING_PROVED
        return fast_proof(n, m, self.precision, self.tolerance, self.rank, grouped=self.groups is not None)

    def as_given(self, e: Float[Array, " m"]) -> Float[Array, " m"]:
        """Return reciprocal lengths of rows, or scales, for the rows as they were given."""
        return e if self.units is None else np.ldexp(e, self.units)

    def with_rows(self, extra: Float[Array, "k n"], units: Int[Array, " k"]) -> Analysis:
        """Return the analysis of the same masses with further constraint rows below, independent of these.

        `units` are the exponents of two by which these rows were multiplied.
        """
        rank = None if self.rank is None else self.rank + extra.shape[0]
        groups = self.groups
        if groups is not None:  # a further row is a unit of its own
            groups = [*groups, *range(max(groups, default=0) + 1, max(groups, default=0) + 1 + extra.shape[0])]
        units = np.append(np.zeros(self.A.shape[0], dtype=np.int32) if self.units is None else self.units, units)
        rows = np.vstack([self.A, extra])
        return Analysis(self.M, rows, self.tolerance, self.precision, rank, groups, units, self.doubt)

    def of_rank(self) -> Analysis:
        """Return the analysis of the rows without what was projected away; this one where that is rounding."""
        if not self.rows.truncated:
            return self
        options = self.tolerance, self.precision, self.rank, self.groups, self.units, self.doubt
        reduced = Analysis(self.M, self.rows.A, *options)
        reduced.__dict__["rows"] = self.rows
        return reduced
