"""Routes `gauss` and `augmented`: the mass-weighted generalised inverse (seed 001, eqs. 7, 11-14)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from dalembert.kkt.analysis import Analysis
from dalembert.kkt.limits import rounding_level
from dalembert.kkt.routes.contract import RouteDeclined
from dalembert.kkt.routes.schur import inverse_factor
from dalembert.types import Array

if TYPE_CHECKING:
    from jaxtyping import Float

# ----------------------------------------------------------------------------------------------------------------------
# Gauss' principle of least constraint (seed 001, eq. 7).


def gauss_function(
    M: Float[Array, "*batch n n"],
    acceleration: Float[Array, "*batch2 n"],
    unconstrained: Float[Array, "*batch3 n"],
) -> Float[Array, "*batch4"] | float:
    """Return G = (a - a0)^T M (a - a0) / 2, the "acceleration energy" of the constraint.

    Among all accelerations that meet the constraints the true one has the least G; a0 = M^-1 f is the acceleration
    without them. `KKT.solve` returns that minimiser.
    """
    difference = np.asarray(acceleration) - unconstrained
    return 0.5 * np.einsum("...i,...ij,...j->...", difference, M, difference)


# ----------------------------------------------------------------------------------------------------------------------
# The mass-weighted generalised inverse that routes `gauss` and `augmented` share (seed 001, eqs. 11-14).
#
# Symbols: P = L L^T a definite matrix (M itself, or M + rho A^T A), J = A L^-T, J = U S V^T, J^+ its Moore-Penrose
# inverse. Oprea writes J_M = A M^-1/2; the Cholesky factor differs from M^1/2 by a rotation, which J^+ absorbs.
#
#     a   = a0 + L^-T J^+ (c - A a0)             a0 = P^-1 f the unconstrained acceleration
#     lam = -(J^+)^T J^+ (c - A a0)              least norm over the scaled rows


@dataclass(frozen=True, eq=False, slots=True)
class MassWeighted:
    """L^-1 of the definite matrix and the singular value decomposition of E J; `E` gives its rows unit length."""

    Li: Array
    E: Array
    U: Array
    s: Array
    Vt: Array

    def solve(self, b: Array, A: Array) -> Array:
        """Return (a, lam), stacked, of P a + A^T lam = f, A a = c, for b = (f, c) stacked."""
        n = self.Li.shape[0]
        shape = (-1,) + (1,) * (b.ndim - 1)
        g = self.Li @ b[:n]
        a0 = self.Li.T @ g
        conflict = self.E.reshape(shape) * (b[n:] - A @ a0)
        w = (self.U.T @ conflict) / self.s.reshape(shape)
        lam = -self.E.reshape(shape) * (self.U @ (w / self.s.reshape(shape)))
        return np.concatenate([a0 + self.Li.T @ (self.Vt.T @ w), lam])


def mass_weighted(Li: Array, A: Array, rank: int) -> MassWeighted:
    """Decompose the weighted rows at the rank found on A itself; decline if the weights blur that rank."""
    J = A @ Li.T
    length = np.linalg.norm(J, axis=1)
    E = 1.0 / np.where(length > 0.0, length, 1.0)
    U, s, Vt = np.linalg.svd(E[:, None] * J, full_matrices=False)
    threshold = rounding_level(*A.shape) * s.max(initial=0.0)
    if rank and s[rank - 1] <= threshold:
        raise RouteDeclined(
            f"the masses hide the rank of A: weighted singular value {s[rank - 1]:.1e} below {threshold:.1e}"
        )
    return MassWeighted(Li, E, U[:, :rank], s[:rank], Vt[:rank])


# ----------------------------------------------------------------------------------------------------------------------
# Route `gauss`: Gauss' principle through the generalised inverse J_M^+ (seed 001, eqs. 13, 14).
#
# The acceleration nearest to the unconstrained one in the mass metric, among those that meet the constraints. Redundant
# rows are welcome; M must be definite, for the unconstrained acceleration M^-1 f must exist. Cost O(n^3 + m n min(m,
# n)).


@dataclass(frozen=True, eq=False, slots=True)
class Gauss:
    """J_M = A L^-T decomposed, M = L L^T."""

    analysis: Analysis
    weighted: MassWeighted

    name: ClassVar[str] = "gauss"
    handles_redundant_rows: ClassVar[bool] = True
    refines: ClassVar[bool] = True

    @classmethod
    def factor(cls, analysis: Analysis) -> Gauss:
        """Factor M and decompose J_M."""
        Li, _, _ = inverse_factor(analysis.M, "M is singular or indefinite: there is no unconstrained acceleration")
        return cls(analysis, mass_weighted(Li, analysis.A, analysis.rows.rank))

    def solve(self, b: Array) -> Array:
        """Return (a, lam), stacked."""
        return self.weighted.solve(b, self.analysis.A)


# ----------------------------------------------------------------------------------------------------------------------
# Route `augmented`: M + rho A^T A in place of M, with the same solution for every rho > 0.
#
#     (M + rho A^T A) a + A^T lam = f + rho A^T c,    A a = c
#
# The augmented matrix is definite exactly when seed 000's condition (33) holds, so a singular M needs no special case,
# and its Cholesky factorisation is the test of (33). Cost O(n^3 + m n min(m, n)).


@dataclass(frozen=True, eq=False, slots=True)
class Augmented:
    """The augmented matrix, in equilibrated rows, where rho = 1 is the natural choice."""

    analysis: Analysis
    rho: Array
    weighted: MassWeighted

    name: ClassVar[str] = "augmented"
    handles_redundant_rows: ClassVar[bool] = True
    refines: ClassVar[bool] = True

    @classmethod
    def factor(cls, analysis: Analysis) -> Augmented:
        """Factor M + A^T R A with R = E^2, the squared row scales of the equilibrated block matrix."""
        A = analysis.A
        rho = analysis.scales[A.shape[1] :] ** 2
        Li, _, _ = inverse_factor(
            analysis.M + A.T @ (rho[:, None] * A),
            "M + rho A^T A is not definite: a motion that the constraints allow moves no mass (or negative mass)",
        )
        return cls(analysis, rho, mass_weighted(Li, A, analysis.rows.rank))

    def solve(self, b: Array) -> Array:
        """Return (a, lam), stacked."""
        A, n = self.analysis.A, self.analysis.A.shape[1]
        rho = self.rho.reshape((-1,) + (1,) * (b.ndim - 1))
        return self.weighted.solve(np.concatenate([b[:n] + A.T @ (rho * b[n:]), b[n:]]), A)
