"""The mass-weighted generalised inverse that routes `gauss` and `augmented` share (seed 001, eqs. 11-14).

Symbols: P = L L^T a definite matrix (M itself, or M + rho A^T A), J = A L^-T, J = U S V^T, J^+ its Moore-Penrose
inverse. Oprea writes J_M = A M^-1/2; the Cholesky factor differs from M^1/2 by a rotation, which J^+ absorbs.

    a   = a0 + L^-T J^+ (c - A a0)             a0 = P^-1 f the unconstrained acceleration
    lam = -(J^+)^T J^+ (c - A a0)              least norm over the scaled rows
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dalembert.kkt.limits import rounding_level
from dalembert.kkt.routes.contract import RouteDeclined

Array = np.ndarray


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
