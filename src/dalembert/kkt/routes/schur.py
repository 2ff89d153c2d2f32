"""Route `schur`: eliminate the accelerations through a definite M (seed 000, eqs. 3, 4 and 24, 25).

Symbols: M = L L^T, Y = L^-1 A^T, S = Y^T Y = A M^-1 A^T the Delassus matrix, S = Ls Ls^T.

    lam = S^-1 (A M^-1 f - c)        a = M^-1 (f - A^T lam)

Cost n^3/3 + n^2 m + n m^2 + m^3/3. The fastest route; it refuses a singular M and redundant rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dalembert.first_use import LAPACK
from dalembert.kkt.analysis import Analysis
from dalembert.kkt.limits import EPS
from dalembert.kkt.routes.contract import RouteDeclined
from dalembert.types import Array


@dataclass(frozen=True, eq=False, slots=True)
class Schur:
    """Inverse Cholesky factors of M and of the Delassus matrix.

    Attributes
    ----------
    Li, Lsi
        Inverses of the Cholesky factors.
    Y
        L^-1 A^T.
    spread
        Largest trace of the inverse of the two matrices scaled to unit diagonal; it bounds 1 / (smallest eigenvalue).
    scales
        The reciprocal square roots of the two diagonals.
    regular
        Whether both factors are far from singular, and no row is so short that its rank would be in doubt.
    """

    Li: Array
    Y: Array
    Lsi: Array
    spread: float
    scales: Array
    regular: bool

    name: ClassVar[str] = "schur"
    handles_redundant_rows: ClassVar[bool] = False
    refines: ClassVar[bool] = True

    @classmethod
    def factor(cls, analysis: Analysis) -> Schur:
        """Factor M, then the Delassus matrix; decline where either is not definite."""
        Li, spread_M, d = inverse_factor(analysis.M, "M is singular or indefinite: its Cholesky factorisation fails")
        Y = Li.dot(analysis.A.T)
        S = Y.T.dot(Y)
        Lsi, spread_S, e = inverse_factor(S, "constraint rows are redundant: A M^-1 A^T is singular")
        spread, (limit, ratio) = max(spread_M, spread_S), analysis.proof
        pivots = analysis.as_given(e)
        clear = spread < limit and (e.size < 2 or bool(pivots.min() > ratio * pivots.max()))
        return cls(Li, Y, Lsi, spread, np.concatenate((d, e)), clear)

    @property
    def magnification(self) -> float:
        """The larger trace bounds every block of the inverse."""
        return self.spread

    def solve(self, b: Array) -> Array:
        """Return (a, lam), stacked."""
        n = self.Li.shape[0]
        g = self.Li.dot(b[:n])
        lam = self.Lsi.T.dot(self.Lsi.dot(self.Y.T.dot(g) - b[n:]))
        return np.concatenate((self.Li.T.dot(g - self.Y.dot(lam)), lam))


def inverse_factor(P: Array, complaint: str) -> tuple[Array, float, Array]:
    """Return L^-1 for P = L L^T, the trace of the inverse of P scaled to unit diagonal, and the scales diag(P)^-1/2.

    The trace bounds the reciprocal of the smallest eigenvalue of the scaled matrix; it has no units.
    """
    if not P.shape[0]:
        return P, 0.0, np.ones(0)
    L, info = LAPACK.dpotrf(P.T, lower=1, clean=1)
    if info:
        raise RouteDeclined(f"{complaint} at pivot {info - 1}")
    Li, info = LAPACK.dtrtri(L, lower=1, overwrite_c=1)
    scales = P.diagonal() ** -0.5
    scaled = (Li / scales).ravel("K")
    spread = float(scaled.dot(scaled))
    if info or not spread * EPS < 1.0:
        raise RouteDeclined(f"{complaint} to rounding")
    return Li, spread, scales
