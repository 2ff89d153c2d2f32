"""From a system to its dagger terms: the inverse of the block matrix, refined once, or the reason for none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dalembert.errors import SolvabilityError
from dalembert.kkt.analysis import Analysis
from dalembert.kkt.dagger import Dagger
from dalembert.kkt.inputs import symmetric_part
from dalembert.kkt.routes import FAST_ROUTES, NullSpace, Route, RouteDeclined, factored

if TYPE_CHECKING:
    from dalembert.kkt.kkt import KKT

Array = np.ndarray


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
            one = _sample_inverse(system, index)
            X[index] = np.nan if one is None else one
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
