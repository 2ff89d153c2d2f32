"""Dirac structures (seed 003, eqs. 1-5) and the connection split of velocities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np
import scipy.linalg

from dalembert.errors import ModelError, ShapeError, SolvabilityError
from dalembert.kkt.limits import BLOCK_ROUNDING
from dalembert.kkt.scaling import row_scales
from dalembert.tableau.inputs import as_indices, as_numbers
from dalembert.tableau.mechanics.connection import RowDerivatives, row_derivatives
from dalembert.types import Array

if TYPE_CHECKING:
    from jaxtyping import Float, Int

# ----------------------------------------------------------------------------------------------------------------------
# The connection split of velocities into dependent and independent ones (seed 003, eqs. 4, 5).
#
# Symbols: N (m, n) constraint rows, N v = 0; v° dependent, v* independent velocities; J with v° = J v*; B a basis of
# the admissible velocities, B^T N^T = 0; Q forces dual to v.


@dataclass(frozen=True, eq=False)
class Split:
    """Which velocities depend on which.

    Attributes
    ----------
    dependent, independent
        Indices of v° (as many as independent rows) and v*.
    J
        v° = J v*.
    condition
        Of the square part of N that was inverted, in the 2-norm of equilibrated rows.
    """

    dependent: Int[Array, " r"]
    independent: Int[Array, " f"]
    J: Float[Array, "r f"]
    condition: float

    @property
    def B(self) -> Float[Array, "n f"]:
        """Basis of admissible velocities: v = B v*, identity on the independent ones."""
        n = len(self.dependent) + len(self.independent)
        basis = np.zeros((n, len(self.independent)))
        basis[self.dependent] = self.J
        basis[self.independent] = np.eye(len(self.independent))
        return basis

    def dual(self, forces: Any) -> Float[Array, "*batch f"]:
        """Return J^T Q° + Q*, zero for constraint forces (eq. 5)."""
        Q, n = as_numbers(forces, "forces"), len(self.dependent) + len(self.independent)
        if Q.ndim == 0 or Q.shape[-1] != n:
            raise ShapeError(f"forces must have shape ({n},) or (..., {n}), one per velocity; they have {Q.shape}")
        return Q[..., self.dependent] @ self.J + Q[..., self.independent]


def connection_split(N: Any, independent: Sequence[int] | None = None) -> Split:
    """Split the velocities; the dependent ones by QR with column pivoting, so that J is well conditioned.

    Parameters
    ----------
    N
        Constraint rows (m, n); redundant rows are found and used once.
    independent
        Indices that the user wants as v*; refused if the others do not follow from them.
    """
    N = as_rows(N)
    if N.shape[0] == 0:
        if independent is not None:
            _others(independent, N.shape[1], 0)
        return Split(np.empty(0, np.int64), np.arange(N.shape[1]), np.empty((0, N.shape[1])), 1.0)
    d, e = row_scales(N)
    scaled = e[:, None] * N * d
    rank, order = pivot_columns(scaled)
    dependent = np.sort(order[:rank]) if independent is None else _others(independent, N.shape[1], rank)
    free = np.setdiff1d(np.arange(N.shape[1]), dependent)
    square = scaled[:, dependent]
    sizes = np.linalg.svd(square, compute_uv=False) if rank else np.ones(1)
    if sizes[-1] <= BLOCK_ROUNDING * max(N.shape) * sizes[0]:
        raise SolvabilityError(
            f"the velocities {dependent.tolist()} do not follow from {free.tolist()}: their part of N is singular "
            f"(smallest singular value {sizes[-1]:.1e} of {sizes[0]:.1e}); let the split be chosen, independent=None"
        )
    J = -np.linalg.lstsq(square, scaled[:, free], rcond=None)[0]
    J = d[dependent][:, None] * J / d[free]
    return Split(dependent, free, J, float(sizes[0] / sizes[-1]))


def as_rows(N: Any) -> Float[Array, "m n"]:
    """Return constraint rows as a finite matrix; a CasADi matrix of numbers will do."""
    N = as_numbers(N.full() if isinstance(N, ca.DM) else N, "N", finite=True)
    if N.ndim != 2 or N.shape[1] == 0:
        raise ModelError(f"N must be a matrix of constraint rows (m, n) with n > 0; it has shape {N.shape}")
    return N


def pivot_columns(scaled: Float[Array, "m n"]) -> tuple[int, Int[Array, " n"]]:
    """Return the rank and the column order of QR with column pivoting."""
    factors: Any = scipy.linalg.qr(scaled, mode="r", pivoting=True)
    R, order = factors
    sizes = np.abs(np.diag(R))
    return int(np.count_nonzero(sizes > BLOCK_ROUNDING * max(scaled.shape) * sizes[0])), order.astype(np.int64)


def _others(independent: Sequence[int], n: int, rank: int) -> Int[Array, " r"]:
    """Return the indices that are not independent, checked."""
    chosen = as_indices(independent, n, "independent")
    if len(chosen) != n - rank:
        raise ModelError(f"{len(chosen)} independent velocities named; N of rank {rank} leaves {n - rank} of {n}")
    return np.setdiff1d(np.arange(n), chosen)


# ----------------------------------------------------------------------------------------------------------------------
# The Dirac structure that constraints induce on the cotangent bundle (seed 003, eqs. 1-5, Fig. 1).
#
# Symbols: q_dot, p_dot rates of coordinates and momenta; (alpha, w) a covector of (q, p); N constraint rows, B a basis
# of null(N), lam multipliers. At one configuration D is the set of (q_dot, p_dot, alpha, w) with
#
#     representation I     N q_dot = 0,  w = q_dot,  alpha + p_dot = N^T lam          (eq. 3)
#     representation II    N q_dot = 0,  w = q_dot,  B^T (alpha + p_dot) = 0
#
# Its dimension is 2n and it is its own orthogonal complement under <alpha, q_dot'> + <w, p_dot'> + (the same,
# exchanged).


@dataclass(frozen=True, eq=False)
class DiracStructure:
    """D at one configuration, made by `DiracStructure.of` or `DiracStructure.at`."""

    N: Float[Array, "m n"]
    split: Split
    derivatives: RowDerivatives | None = None

    @classmethod
    def of(cls, N: Any, independent: Sequence[int] | None = None) -> DiracStructure:
        """Make it from constraint rows (m, n); `independent` fixes the split."""
        rows = as_rows(N)
        return cls(rows, connection_split(rows, independent))

    @classmethod
    def at(cls, system: Any, q: Any, t: float = 0.0, independent: Sequence[int] | None = None) -> DiracStructure:
        """Make it from a `System`, a `Lagrangian` or a `Mechanism` at a configuration."""
        if not callable(getattr(system, "jacobian", None)):
            raise ModelError(f"{type(system).__name__} has no constraint rows: give a System, Lagrangian or Mechanism")
        q = as_numbers(q, "q", finite=True)
        rows = as_rows(system.jacobian(q, t))
        return cls(rows, connection_split(rows, independent), row_derivatives(system, q, float(t)))

    @property
    def n(self) -> int:
        """Number of coordinates."""
        return self.N.shape[1]

    @property
    def B(self) -> Float[Array, "n f"]:
        """Basis of the admissible velocities."""
        return self.split.B

    # --- the Ehresmann connection of the split (seed 003, sec. 2.3): its fibres are the dependent coordinates

    @property
    def vertical(self) -> Float[Array, "n n"]:
        """The connection A: A v = v° - J v* along the dependent velocities, zero where v is admissible; A A = A."""
        projector = np.zeros((self.n, self.n))
        projector[self.split.dependent] = self._independent_rows()
        return projector

    @property
    def horizontal(self) -> Float[Array, "n n"]:
        """I - A: the admissible velocity with the same independent part."""
        return np.eye(self.n) - self.vertical

    @cached_property
    def curvature(self) -> Float[Array, "r f f"]:
        """The dependent part of -A [X, Y] for the columns X, Y of B as they are carried along: (r, f, f).

        It vanishes in a neighbourhood if and only if the rows are holonomic there (Frobenius), however they are
        written: with velocities, multiplied by functions, redundant. Rows that depend on time are taken at an instant.
        """
        return self._curvature[0]

    @property
    def is_flat(self) -> bool:
        """Whether the curvature is zero here, but for rounding: the rows may be holonomic."""
        curvature, size = self._curvature
        assert self.derivatives is not None
        return bool((np.abs(curvature) <= self.derivatives.rounding * size).all())

    def flat_rows(self) -> Float[Array, "k n"]:
        """Return a basis of those combinations of the rows that have no curvature; only among them are holonomic ones.

        They are those of the first derived system. A system of rows is holonomic where all of them are left.
        """
        curvature, size = self._curvature
        assert self.derivatives is not None
        matrix = curvature.reshape(len(curvature), -1)
        scale = np.maximum(size.reshape(matrix.shape).max(axis=1, initial=0.0), np.finfo(float).tiny)
        U, s, _ = np.linalg.svd(matrix / scale[:, None], full_matrices=True)
        rank = int(np.count_nonzero(s > self.derivatives.rounding * max(matrix.shape)))
        return (U[:, rank:].T / scale) @ self._independent_rows()

    @cached_property
    def _curvature(self) -> tuple[Array, Array]:
        """Curvature and the size of its terms, both (r, f, f)."""
        if self.derivatives is None:
            raise ModelError(
                "rows at one configuration have no curvature: make the structure from a system, DiracStructure.at"
            )
        turned, size = self.derivatives.exterior(self.N, self.B)
        inverse = np.linalg.pinv(self.N[:, self.split.dependent])
        scale = np.einsum("rm,mab->rab", np.abs(inverse), size)
        return np.einsum("rm,mab->rab", inverse, turned), scale + np.finfo(float).tiny

    def residual_I(self, q_dot: Any, p_dot: Any, alpha: Any, w: Any) -> tuple[float, Float[Array, " m"]]:
        """Return how far a point is from representation I, and the multipliers of least norm."""
        q_dot, p_dot, alpha, w = self._checked(q_dot, p_dot, alpha, w)
        lam = np.linalg.lstsq(self.N.T, alpha + p_dot, rcond=None)[0] if len(self.N) else np.empty(0)
        gaps = self.N @ q_dot, w - q_dot, alpha + p_dot - self.N.T @ lam
        return max(float(np.abs(gap).max(initial=0.0)) for gap in gaps), lam

    def residual_II(self, q_dot: Any, p_dot: Any, alpha: Any, w: Any) -> float:
        """Return how far a point is from representation II."""
        q_dot, p_dot, alpha, w = self._checked(q_dot, p_dot, alpha, w)
        gaps = self.N @ q_dot, w - q_dot, self.B.T @ (alpha + p_dot)
        return max(float(np.abs(gap).max(initial=0.0)) for gap in gaps)

    def basis(self) -> Float[Array, "four_n two_n"]:
        """Return 2n points (q_dot, p_dot, alpha, w) that span D, one per column."""
        n, f, rows = self.n, self.B.shape[1], self._independent_rows()
        motion = np.vstack([self.B, np.zeros((2 * n, f)), self.B])
        momentum = np.vstack([np.zeros((n, n)), np.eye(n), -np.eye(n), np.zeros((n, n))])
        reaction = np.vstack([np.zeros((2 * n, len(rows))), rows.T, np.zeros((n, len(rows)))])
        return np.hstack([motion, momentum, reaction])

    def pairing(self, first: Any, second: Any) -> Float[Array, "..."]:
        """Return <alpha1, q_dot2> + <w1, p_dot2> + <alpha2, q_dot1> + <w2, p_dot1> of points as columns."""
        points = [as_numbers(x, "a point") for x in (first, second)]
        for x in points:
            if x.ndim not in (1, 2) or len(x) != 4 * self.n:
                raise ShapeError(
                    f"points have {4 * self.n} numbers, ({4 * self.n},) or ({4 * self.n}, k); not {x.shape}"
                )
        (q1, p1, a1, w1), (q2, p2, a2, w2) = (np.split(x, 4) for x in points)
        return a1.T @ q2 + w1.T @ p2 + (a2.T @ q1 + w2.T @ p1).T

    def power(self, q_dot: Any, p_dot: Any, alpha: Any, w: Any) -> float:
        """Return <alpha, q_dot> + <w, p_dot>: zero for every point of D, nothing is made or lost in the connection."""
        q_dot, p_dot, alpha, w = self._checked(q_dot, p_dot, alpha, w)
        return float(alpha @ q_dot + w @ p_dot)

    def checks(self) -> dict[str, float]:
        """Return what must vanish: power balance, isotropy, missing dimension, and B^T N^T (virtual work)."""
        basis = self.basis()
        scale = max(float(np.abs(self.N).max(initial=1.0)), 1.0) * max(float(np.abs(self.B).max(initial=1.0)), 1.0)
        return {
            "power": float(np.abs(np.diag(self.pairing(basis, basis))).max(initial=0.0)) / (2.0 * scale),
            "isotropy": float(np.abs(self.pairing(basis, basis)).max(initial=0.0)) / scale,
            "missing dimension": float(2 * self.n - np.linalg.matrix_rank(basis)),
            "orthogonality": float(np.abs(self.B.T @ self.N.T).max(initial=0.0)) / scale,
        }

    def _independent_rows(self) -> Float[Array, "r n"]:
        """Return rows that span those of N: [I | -J], without redundancy."""
        rows = np.zeros((len(self.split.dependent), self.n))
        rows[:, self.split.dependent] = np.eye(len(rows))
        rows[:, self.split.independent] = -self.split.J
        return rows

    def _checked(self, *parts: Any) -> list[Array]:
        """Return four vectors of n numbers."""
        names = ("q_dot", "p_dot", "alpha", "w")
        arrays = [as_numbers(part, name, finite=True) for part, name in zip(parts, names, strict=True)]
        for name, array in zip(names, arrays, strict=True):
            if array.shape != (self.n,):
                raise ShapeError(f"{name} must have shape ({self.n},); it has {array.shape}")
        return arrays
