"""The user's metric on multipliers: which member of a redundant family is returned.

Symbols: W symmetric definite (m, m), N a basis of null(A^T). Among lam + N z the least is

    lam* = lam - N (N^T W N)^-1 N^T W lam            minimises lam^T W lam

and, dually, the nearest consistent right side c* = c - W N (N^T W N)^-1 N^T c minimises (c - c*)^T W^-1 (c - c*).
The default W = I depends on the units of the rows: that is why the choice is the user's (Wojtyra, Pekal and Fraczek,
Mechanism and Machine Theory 153 (2020) 103999).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dalembert.kkt.limits import EPS
from dalembert.kkt.routes.contract import Route
from dalembert.types import Array


def least_multipliers(lam: Array, N: Array, W: Array | None) -> Array:
    """Return the member of lam + range(N) of least W-norm; `lam` may be a matrix of columns.

    With W = C^T C and C N = Q R it is lam - C^-1 Q Q^T C lam: only the orthonormal Q is used, however N is scaled.
    Done twice: the first time may leave rounding of a lam that was much larger than the least one.
    """
    if not N.shape[1]:
        return lam
    C = np.eye(N.shape[0]) if W is None else np.linalg.cholesky(W).T
    Q = np.linalg.qr(C @ (N / np.abs(N).max(axis=0)))[0]
    for _ in range(2):
        lam = lam - np.linalg.solve(C, Q @ (Q.T @ (C @ lam)))
    return lam


def nearest_consistent(c: Array, N: Array, W: Array | None) -> Array:
    """Return the right side in range(A) nearest to c in the dual metric W^-1: c - C^T Q Q^T C^-T c."""
    C = np.eye(N.shape[0]) if W is None else np.linalg.cholesky(W).T
    Q = np.linalg.qr(C @ N)[0]
    return c - C.T @ (Q @ (Q.T @ np.linalg.solve(C.T, c)))


@dataclass(frozen=True, eq=False)
class LeastMultipliers:
    """A factored route whose every answer has the least multipliers, corrections included.

    Refining this, rather than choosing at the end, keeps the digits that the choice would cost where the route's own
    multipliers are much larger than the least ones.
    """

    factor: Route
    n: int
    null: Array
    metric: Array | None

    def solve(self, b: Array) -> Array:
        """Return (a, lam), stacked, lam least in the metric."""
        x = self.factor.solve(b)
        x[self.n :] = least_multipliers(x[self.n :], self.null, self.metric)
        return x


def choice_error(lam: Array, N: Array, W: Array | None) -> float:
    """Return a bound for the error of each multiplier that comes from the choice of the least one.

    The choice is as well conditioned as the basis N, in the metric: badly, where rows have very different units.
    """
    C = np.eye(N.shape[0]) if W is None else np.linalg.cholesky(W).T
    spread = float(np.linalg.cond(C @ (N / np.abs(N).max(axis=0))) * np.linalg.cond(C))
    return 2.0 * spread * lam.size * EPS * float(np.abs(lam).sum())
