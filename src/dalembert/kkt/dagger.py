"""Dagger terms: the blocks of the inverse of the block matrix (seed 000, eq. 5).

    [ M-dagger   A-dagger^T    ]   [ M  A^T ] -1
    [ A-dagger   Lambda-dagger ] = [ A   0  ]

They exist whenever the whole matrix is invertible, even if M is not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dalembert.errors import SolvabilityError
from dalembert.kkt.analysis import Analysis
from dalembert.kkt.inputs import symmetric_part
from dalembert.kkt.routes import FAST_ROUTES, NullSpace, Route, RouteDeclined, factored
from dalembert.types import Array

if TYPE_CHECKING:
    from jaxtyping import Float

    from dalembert.kkt.kkt import KKT


@dataclass(frozen=True, eq=False)
class Dagger:
    """The dagger terms of one system, or of a batch (NaN where a sample has none).

    Attributes
    ----------
    M
        Inverse of the mass matrix in the constrained space: forces to accelerations, (..., n, n), rank n - m.
    A
        Forces to multipliers, (..., m, n); its transpose is the mass-weighted right inverse of A.
    Lambda
        Constraint accelerations to multipliers, (..., m, m), negative semidefinite, nullity that of M.
    mass, rows
        The M and A they belong to.
    """

    M: Float[Array, "*batch n n"]
    A: Float[Array, "*batch m n"]
    Lambda: Float[Array, "*batch m m"]
    mass: Float[Array, "*batch n n"]
    rows: Float[Array, "*batch m n"]

    def residuals(self) -> dict[str, Float[Array, "*batch"] | float]:
        """Return how far the identities (11)-(14) and the symmetries (17), (18) are from holding, relative.

        Each value is the largest entry of the defect over the sizes of the matrices multiplied (M+ counts at least
        as 1 / max |M|: it vanishes for a fully constrained system). Values near 1e-16 certify the dagger.
        """
        M, A, Md, Ad, Ld = self.mass, self.rows, self.M, self.A, self.Lambda
        compliance = _reciprocal(_largest(M))
        At, Adt = np.swapaxes(A, -1, -2), np.swapaxes(Ad, -1, -2)
        n, m = np.eye(M.shape[-1]), np.eye(A.shape[-2])
        zero = np.zeros
        return {
            "(11) M M+ + A^T A+ = I": _defect([(M, Md), (At, Ad)], n),
            "(11) M+ M + A+^T A = I": _defect([(Md, M), (Adt, A)], n),
            "(12) M A+^T + A^T L+ = 0": _defect([(M, Adt), (At, Ld)], zero(At.shape[-2:])),
            "(12) A+ M + L+ A = 0": _defect([(Ad, M), (Ld, A)], zero(A.shape[-2:])),
            "(13) A M+ = 0": _defect([(A, Md)], zero(A.shape[-2:]), _largest(A) * compliance),
            "(13) M+ A^T = 0": _defect([(Md, At)], zero(At.shape[-2:]), _largest(A) * compliance),
            "(14) A A+^T = I": _defect([(A, Adt)], m),
            "(14) A+ A^T = I": _defect([(Ad, At)], m),
            "(17) M+ symmetric": _defect([(Md, n)], np.swapaxes(Md, -1, -2)),
            "(18) L+ symmetric": _defect([(Ld, m)], np.swapaxes(Ld, -1, -2)),
        }

    def __str__(self) -> str:
        with np.printoptions(precision=6, suppress=True):
            return f"M+ =\n{self.M}\nA+ =\n{self.A}\nLambda+ =\n{self.Lambda}"


def _defect(products: list[tuple[Array, Array]], target: Array, floor: Array | float = 0.0) -> Array | float:
    """Return max |sum of products - target| / (floor + sum of max |left| max |right| + max |target|), per sample."""
    worst = _largest(sum(left @ right for left, right in products) - target)
    whole = sum(_largest(left) * _largest(right) for left, right in products) + _largest(target) + floor
    return worst * _reciprocal(whole)


def _reciprocal(x: Array | float) -> Array | float:
    """Return 1 / x, and 1 where x is zero."""
    return 1.0 / np.where(np.asarray(x) > 0.0, x, 1.0)


def _largest(x: Array) -> Array | float:
    """Return the largest absolute entry per sample."""
    return np.abs(x).max(axis=(-1, -2), initial=0.0)


# ----------------------------------------------------------------------------------------------------------------------
# From a system to its dagger terms: the inverse of the block matrix, refined once, or the reason for none.


def dagger_of(system: KKT) -> Dagger:
    """Return the dagger terms of a system or batch."""
    n, m = system.n, system.m
    if not system.batch_shape:
        X = inverse(system.analysis)
        if X is None:
            report = system.diagnose()
            raise SolvabilityError(
                f"the block matrix has no inverse, so there are no dagger terms\n{report}\n"
                "To try: leave out the redundant rows, or use solve(), which needs no inverse.",
                report,
            )
    else:
        X = np.full((*system.batch_shape, n + m, n + m), np.nan)
        for index in np.ndindex(system.batch_shape):
            blocks = _sample_inverse(system, index)
            X[index] = np.nan if blocks is None else blocks
    return Dagger(X[..., :n, :n], X[..., n:, :n], X[..., n:, n:], system.M, system.A)


def inverse(analysis: Analysis) -> Array | None:
    """Return the inverse of the block matrix, symmetric and refined once; None where it is singular.

    X <- X + X (I - K X) squares the relative error of X that scaling or elimination has left.
    """
    factor = _invertible(analysis)
    if factor is None:
        return None
    identity = np.eye(sum(analysis.A.shape))
    X = factor.solve(identity)
    X = X + factor.solve(identity - analysis.K @ X)
    return 0.5 * (X + X.T) + 0.0


def _invertible(analysis: Analysis) -> Route | None:
    """Return factors by the first route that shows the block matrix to be invertible."""
    for route in FAST_ROUTES:
        try:
            factor = factored(route, analysis)
        except RouteDeclined:
            continue
        if factor.regular:
            return factor
    if analysis.rows.rank < analysis.A.shape[0] or analysis.rows.ambiguous:
        return None
    try:
        return factored(NullSpace, analysis)
    except RouteDeclined:
        return None


def _sample_inverse(system: KKT, index: tuple[int, ...]) -> Array | None:
    """Return the inverse for one sample of a batch, None also where its data are no numbers."""
    M = np.broadcast_to(system.M, (*system.batch_shape, system.n, system.n))[index]
    A = np.broadcast_to(system.A, (*system.batch_shape, system.m, system.n))[index]
    if not (np.isfinite(M).all() and np.isfinite(A).all()):
        return None
    symmetric = symmetric_part(M, system.skewness)
    return None if symmetric is None else inverse(system.analysed(symmetric, A))
