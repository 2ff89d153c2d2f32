"""Route `augmented`: M + rho A^T A in place of M, with the same solution for every rho > 0.

    (M + rho A^T A) a + A^T lam = f + rho A^T c,    A a = c

The augmented matrix is definite exactly when seed 000's condition (33) holds, so a singular M needs no special case,
and its Cholesky factorisation is the test of (33). Cost O(n^3 + m n min(m, n)).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dalembert.kkt.analysis import Analysis
from dalembert.kkt.routes.mass_weighted import MassWeighted, mass_weighted
from dalembert.kkt.routes.schur import inverse_factor

Array = np.ndarray


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
