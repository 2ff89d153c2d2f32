"""Route `dense`: symmetric indefinite factorisation of the whole block matrix, with its inertia as the check.

    P K P^T = L D L^T,  D of 1x1 and 2x2 blocks (Bunch and Kaufman), K equilibrated.

The block matrix is invertible with M definite on null(A) exactly when D has n positive and m negative eigenvalues.
M may be singular (seed 000, eq. 33). Cost (n + m)^3 / 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dalembert.first_use import LAPACK
from dalembert.kkt.analysis import Analysis
from dalembert.kkt.limits import INDEPENDENT_RCOND, MANY_DIGITS, REGULAR_RCOND, SMALLEST_RCOND
from dalembert.kkt.routes.contract import RouteDeclined
from dalembert.types import Array


@dataclass(frozen=True, eq=False, slots=True)
class Dense:
    """Factors of the equilibrated block matrix.

    Attributes
    ----------
    LD, pivots
        LAPACK's packed factors.
    scales
        Scales of coordinates and rows.
    rcond
        Estimated reciprocal condition of the equilibrated matrix in the 1-norm.
    regular
        Whether the inertia, and with it the rank of the rows, is decided far from rounding and from doubt.
    """

    LD: Array
    pivots: Array
    scales: Array
    rcond: float
    regular: bool

    name: ClassVar[str] = "dense"
    handles_redundant_rows: ClassVar[bool] = False
    refines: ClassVar[bool] = True

    @classmethod
    def factor(cls, analysis: Analysis) -> Dense:
        """Equilibrate, factor, and check inertia and condition."""
        m, n = analysis.A.shape
        K = analysis.scales[:, None] * analysis.K * analysis.scales
        LD, pivots, info = LAPACK.dsytrf(K, lower=1)
        if info:
            raise RouteDeclined(f"the block matrix is singular: pivot {info - 1} is exactly zero")
        inertia = factor_inertia(LD, pivots)
        if inertia != (n, m, 0):
            raise RouteDeclined(f"inertia {inertia} instead of ({n}, {m}, 0): not a solvable constrained system")
        rcond, _ = LAPACK.dsycon(LD, pivots, np.abs(K).sum(axis=0).max(), lower=1)
        if not rcond > SMALLEST_RCOND:
            raise RouteDeclined(f"the block matrix is singular to rounding (reciprocal condition {rcond:.1e})")
        return cls(LD, pivots, analysis.scales, float(rcond), _clear(analysis, K, float(rcond)))

    @property
    def magnification(self) -> float:
        """The condition; the scaled matrix itself is of size one."""
        return 1.0 / self.rcond

    def solve(self, b: Array) -> Array:
        """Return (a, lam), stacked."""
        scales = self.scales.reshape((-1,) + (1,) * (b.ndim - 1))
        x, _ = LAPACK.dsytrs(self.LD, self.pivots, scales * b, lower=1)
        return scales * x.reshape(b.shape)


def _clear(analysis: Analysis, K: Array, rcond: float) -> bool:
    """Say whether the condition proves rank (`rows.py`) and definiteness (`admissible_motions.py`)."""
    m, n = analysis.A.shape
    if analysis.doubt or (analysis.rank is not None and analysis.rank < m):
        return False
    if rcond <= max(REGULAR_RCOND, (n + m) * max(analysis.precision) / MANY_DIGITS):
        return False
    masses, e = np.abs(K.diagonal()[:n]), analysis.as_given(analysis.scales[n:])
    lightest = float(masses[masses > 0.0].min(initial=1.0)) ** 0.5
    ratio = float(e.min() / e.max()) if m else 1.0
    if analysis.groups is None:  # each row has its own unit: lengths count only where one might be rounding
        if ratio * lightest <= analysis.proof[1] / MANY_DIGITS:
            return False
        ratio = 1.0
    return not m or rcond * lightest * ratio > max(INDEPENDENT_RCOND, analysis.tolerance or 0.0)


def factor_inertia(LD: Array, pivots: Array) -> tuple[int, int, int]:
    """Return (positive, negative, zero) eigenvalues of D; a 2x2 block of Bunch-Kaufman has one of each sign."""
    single = LD.diagonal()[pivots > 0]
    pairs = int(np.count_nonzero(pivots < 0)) // 2
    positive, negative = int(np.count_nonzero(single > 0.0)), int(np.count_nonzero(single < 0.0))
    return positive + pairs, negative + pairs, single.size - positive - negative
