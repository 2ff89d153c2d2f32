"""Route `gauss`: Gauss' principle through the generalised inverse J_M^+ (seed 001, eqs. 13, 14).

The acceleration nearest to the unconstrained one in the mass metric, among those that meet the constraints. Redundant
rows are welcome; M must be definite, for the unconstrained acceleration M^-1 f must exist. Cost O(n^3 + m n min(m, n)).
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
