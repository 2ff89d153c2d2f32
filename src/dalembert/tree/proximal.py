"""Redundant rows in straight-line code: G lam = r with a singular G, by a few proximal steps.

Symbols: S = diag(G)^-1/2 equilibrates, W = diag(w) the metric, E = S W S scaled to at most one, x = S^-1 lam,

    x_0 = 0,     x_k+1 = x_k + (S G S + mu E)^-1 (S r - S G S x_k)

Each step shrinks the error in range(G) by mu / (sigma + mu), sigma its generalised eigenvalue; x_k never leaves the
span where x^T E x = lam^T W lam is least, so the limit is the least-norm answer in the metric W, whatever the rank.
The part of r outside range(G), rounding if the rows agree, is magnified by 1 / mu: it moves lam along null(A^T) and
leaves a alone. That part is then taken out again: (mu (S G S + mu E)^-1 E)^k keeps it and shrinks all else by
(mu / sigma)^k, so subtracting this image of x leaves the least-norm answer to rounding. Source of the steps:
J. Carpentier, R. Budhiraja, N. Mansard, "Proximal and sparse resolution of constrained dynamic equations", RSS 2021.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca

from dalembert.tree.sparse_factor import SparseFactor, Vector, dense_column, entries, sparse_factor

STEPS = 3


@dataclass(frozen=True, eq=False)
class Proximal:
    """S, S G S, mu E, and the factor of S G S + mu E, whose pivots are near mu where a row is implied by others."""

    scales: ca.SX
    scaled: ca.SX
    shift: ca.SX
    factor: SparseFactor

    @classmethod
    def of(cls, G: ca.SX, metric: Sequence[float] | None, mu: float) -> Proximal:
        """Factor for G (m, m); `metric` (m,) weighs the squares of the multipliers, ones by default."""
        m = G.shape[0]
        s = ca.vertcat(*[ca.if_else(G[i, i] > 0, 1 / ca.sqrt(G[i, i]), 1) for i in range(m)])
        shift = s * s if metric is None else ca.DM(list(metric)) * s * s
        shift = mu * shift / ca.mmax(shift)
        scaled = ca.SX(m, m)
        for i, j, entry in entries(G):
            scaled[i, j] = s[i] * entry * s[j]
        return cls(s, scaled, shift, sparse_factor(scaled + ca.diag(shift), tuple(range(m))))

    def solve(self, r: Vector) -> Vector:
        """Return the least-norm lam with G lam = r."""
        m = self.scales.numel()
        right = self.scales * dense_column(r, m)
        x = self._step(right)
        for _ in range(STEPS - 1):
            x = x + self._step(right - self.scaled @ x)
        astray = x
        for _ in range(STEPS):
            astray = self._step(self.shift * astray)
        lam = self.scales * (x - astray)
        return {i: lam[i] for i in range(m)}

    def _step(self, right: ca.SX) -> ca.SX:
        m = right.numel()
        return dense_column(self.factor.solve({i: right[i] for i in range(m)}), m)
