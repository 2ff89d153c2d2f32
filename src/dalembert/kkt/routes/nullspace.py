"""Route `nullspace`: rank revealing, for any A and any M that is definite on null(A).

In scaled coordinates (a = G ahat, lam = E lamhat), with Ahat = U1 S V1^T the r independent rows that `rows.py` has
chosen and admissible motions Z:

    V1^T a = S^-1 U1^T c             the constraints, in their row space
    (Z^T M Z) y = Z^T (f - M a_p)    the motion, where a = a_p + Z y
    B1^T (S U1^T lam) = (f - M a)_dep    the multipliers, from the dependent coordinates

The part of c outside range(A) is ignored (the caller decides whether it may be); lam is zero on the other rows.
Cost O(n^3 + m n min(m, n)).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dalembert.kkt.analysis import Analysis
from dalembert.kkt.routes.contract import RouteDeclined
from dalembert.types import Array


@dataclass(frozen=True, eq=False, slots=True)
class NullSpace:
    """The scaled mass matrix with the inverses that the three steps need."""

    analysis: Analysis
    M: Array
    B1i: Array
    compliance: Array

    name: ClassVar[str] = "nullspace"
    handles_redundant_rows: ClassVar[bool] = True
    refines: ClassVar[bool] = True

    @classmethod
    def factor(cls, analysis: Analysis) -> NullSpace:
        """Invert the dependent block and the reduced mass matrix; decline where the latter is not definite."""
        rows, motion = analysis.rows, analysis.motion
        if motion.massless or np.any(motion.values <= 0.0):
            raise RouteDeclined(
                f"the reduced mass matrix is not definite: {motion.massless} massless and "
                f"{motion.negative} negative of {motion.values.size} admissible motions"
            )
        half = motion.Z @ (motion.scale[:, None] * (motion.vectors / np.sqrt(motion.values)))
        M = rows.columns[:, None] * analysis.M * rows.columns
        return cls(analysis, M, np.linalg.inv(motion.B1), half @ half.T)

    def solve(self, b: Array) -> Array:
        """Return (a, lam), stacked."""
        rows, dependent = self.analysis.rows, self.analysis.motion.dependent
        shape = (-1,) + (1,) * (b.ndim - 1)
        G, E, s, U1 = rows.columns.reshape(shape), rows.rows.reshape(shape), rows.s1.reshape(shape), rows.U1
        n = self.M.shape[0]
        f = G * b[:n]
        a = np.zeros_like(f)
        a[dependent] = self.B1i @ ((U1.T @ (E * rows.in_range(b[n:])[rows.chosen])) / s)
        a = a + self.compliance @ (f - self.M @ a)
        lam = np.zeros_like(b[n:])
        lam[rows.chosen] = E * (U1 @ ((self.B1i.T @ (f - self.M @ a)[dependent]) / s))
        return np.concatenate([G * a, lam])
