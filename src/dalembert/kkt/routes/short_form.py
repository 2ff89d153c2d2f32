"""Routes `short_form`, `gram_form`: T = -W^+ h or -(W^T W)^+ W^T h (seed 001, eqs. 15-17), and when they are exact.

With W = A^T, h = -f and T = -lam in the seed's signs, the short form needs no mass matrix: lam = (A^T)^+ f. It solves
the system only if the constraints ask for zero acceleration (c = 0) and

    W^T M^-1 (I - W W^+) h = 0                       the range condition

which holds, for example, for equal masses or for W of full row rank. For unequal masses it fails in the seed's own
two-block example as soon as only the contact between the blocks sticks. The route therefore verifies the
condition for every right side, and refuses with its residual.

The other computation of the seed, T = -(W^T W)^+ W^T h, is the same in exact arithmetic. Contacts that slide are taken
out of it as rows and columns of W^T W, and as elements of W^T h. It squares the condition of W, whose rank the Gram
matrix shows down to a ratio of singular values of 1e-8 only; beyond that the route declines.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dalembert.kkt.analysis import Analysis
from dalembert.kkt.limits import GRAM_RATIO, NOISE, RANGE_TOLERANCE
from dalembert.kkt.routes.contract import RouteDeclined
from dalembert.kkt.routes.schur import inverse_factor
from dalembert.types import Array


@dataclass(frozen=True, eq=False, slots=True)
class ShortForm:
    """The Moore-Penrose inverse of A^T beside the factor of M that recovers the acceleration."""

    analysis: Analysis
    Li: Array
    pseudo_inverse: Array

    name: ClassVar[str] = "short_form"
    handles_redundant_rows: ClassVar[bool] = True
    refines: ClassVar[bool] = False

    @classmethod
    def factor(cls, analysis: Analysis) -> ShortForm:
        """Compute (A^T)^+ at the rank of the row structure, and L^-1."""
        Li, _, _ = inverse_factor(
            analysis.M, "M is singular or indefinite: the accelerations do not follow from forces"
        )
        U, s, Vt = np.linalg.svd(analysis.A, full_matrices=False)
        r = analysis.rows.rank
        return cls(analysis, Li, (U[:, :r] / s[:r]) @ Vt[:r])

    def solve(self, b: Array) -> Array:
        """Return (a, lam), stacked, or decline with the residual of the range condition."""
        n = self.Li.shape[0]
        force = b[:n]
        if np.any(b[n:]):
            raise RouteDeclined("the short form holds for constraints of zero acceleration only, and drift is not zero")
        A = self.analysis.A
        lam = self.pseudo_inverse @ force
        lam = lam + self.pseudo_inverse @ (force - A.T @ lam)
        free = force - A.T @ lam
        free[np.abs(free) <= NOISE * (np.abs(force) + np.abs(A.T) @ np.abs(lam))] = 0.0
        a = self.Li.T @ (self.Li @ free)
        size = np.abs(A) @ (np.abs(self.Li.T @ self.Li) @ np.abs(force))
        residual = (np.abs(A @ a) / np.where(size > 0.0, size, 1.0)).max(initial=0.0)
        if residual > RANGE_TOLERANCE:
            raise RouteDeclined(
                f"the range condition W^T M^-1 (I - W W^+) h = 0 fails with relative residual {residual:.2e}; "
                "use route 'gauss', the mass-weighted form"
            )
        return np.concatenate([a, lam])


@dataclass(frozen=True, eq=False, slots=True)
class GramForm(ShortForm):
    """(W^T W)^+ W^T in place of W^+: a symmetric matrix of the size of the rows, from which rows are taken out."""

    name: ClassVar[str] = "gram_form"

    @classmethod
    def factor(cls, analysis: Analysis) -> GramForm:
        """Compute (A A^T)^+ A at the rank of the row structure, and L^-1."""
        Li, _, _ = inverse_factor(
            analysis.M, "M is singular or indefinite: the accelerations do not follow from forces"
        )
        A, r = analysis.A, analysis.rows.rank
        values, vectors = np.linalg.eigh(A @ A.T)
        values, vectors = values[::-1][:r], vectors[:, ::-1][:, :r]
        if r and not values[-1] > GRAM_RATIO * values[0]:
            part = max(float(values[-1] / values[0]), 0.0)
            raise RouteDeclined(
                f"the Gram matrix W^T W squares the condition of W: its eigenvalue number {r}, the rank of W, is "
                f"{part:.1e} of the largest, which is rounding; use route 'short_form'"
            )
        return cls(analysis, Li, (vectors / values) @ (vectors.T @ A))
