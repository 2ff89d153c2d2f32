"""Route `schur`: eliminate the accelerations through a definite M (seed 000, eqs. 3, 4 and 24, 25).

Symbols: M = L L^T, Y = L^-1 A^T, S = Y^T Y = A M^-1 A^T the Delassus matrix, S = Ls Ls^T.

    lam = S^-1 (A M^-1 f - c)        a = M^-1 (f - A^T lam)

Cost n^3/3 + n^2 m + n m^2 + m^3/3. The fastest route; it refuses a singular M and redundant rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.linalg.lapack import dpotrf, dtrtri  # pyright: ignore[reportAttributeAccessIssue]

from dalembert.kkt.analysis import Analysis
from dalembert.kkt.limits import CLEARLY_REGULAR as CLEARLY_REGULAR
from dalembert.kkt.limits import regular_trace
from dalembert.kkt.routes.contract import RouteDeclined

Array = np.ndarray
EPS = float(np.finfo(float).eps)


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
    limit
        The spread below which the factors prove a regular system.
    """

    Li: Array
    Y: Array
    Lsi: Array
    spread: float
    scales: Array
    limit: float

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
        limit = regular_trace(*Y.shape, max(analysis.precision), analysis.tolerance, analysis.rank)
        return cls(Li, Y, Lsi, max(spread_M, spread_S), np.concatenate((d, e)), limit)

    @property
    def regular(self) -> bool:
        """True when both factors are far from singular."""
        return self.spread < self.limit

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
    L, info = dpotrf(P.T, lower=1, clean=1)
    if info:
        raise RouteDeclined(f"{complaint} at pivot {info - 1}")
    Li, info = dtrtri(L, lower=1, overwrite_c=1)
    scales = P.diagonal() ** -0.5
    scaled = (Li / scales).ravel("K")
    spread = float(scaled.dot(scaled))
    if info or not spread * EPS < 1.0:
        raise RouteDeclined(f"{complaint} to rounding")
    return Li, spread, scales
