"""Redundant rows in straight-line code: G lam = r with a singular G, by the rows that were chosen for all states.

Symbols: K kept rows, as many as the generic rank; D implied ones, A_D = T A_K; W = diag(w) the metric.

    G_KK mu = r_K          T = G_DK G_KK^-1          lam_K + T^T lam_D = mu

Any lam of the last kind causes the same accelerations. The least of them in the metric W:

    (W_D + T W_K T^T) lam_D = T W_K mu          lam_K = mu - T^T lam_D

Which rows are kept is decided before tracing, where the mechanism's rank is (`probe.py`), and so is of which rows an
implied one is made: a row that can move nothing is made of none, and needs no code at all. The pivots of G_KK say how
far a state is from losing rank: no row of the generic rank is ever dropped, and no row beyond it is ever kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dalembert.tree.judged import Needs
from dalembert.tree.scalars import Scalar, add, mul, sub, total
from dalembert.tree.sparse_factor import Matrix, SparseFactor, Vector, sparse_factor


@dataclass(frozen=True, eq=False)
class RedundantRows:
    """The factor of G_KK, T by implied rows, and the factor of W_D + T W_K T^T.

    Attributes
    ----------
    kept, implied
        Rows in the numbering of G; of the implied ones only those that others make up.
    factor
        Of G_KK, in the numbering of `kept`.
    sums
        T: for each of `implied` its weights, by rows of G.
    least
        Factor for the least multipliers, in the numbering of `implied`.
    metric
        w by rows of G.
    """

    kept: tuple[int, ...]
    implied: tuple[int, ...]
    factor: SparseFactor
    sums: list[Vector]
    least: SparseFactor
    metric: tuple[float, ...]

    @classmethod
    def of(cls, G: Matrix, needs: Needs, metric: Sequence[float] | None = None) -> RedundantRows:
        """Factor for G (m, m); `metric` (m,) weighs the squares of the multipliers, ones by default."""
        m = len(G)
        weights = tuple([1.0] * m if metric is None else map(float, metric))
        kept = kept_rows(needs)
        implied = tuple(i for i in range(m) if needs.sums[i])
        factor = sparse_factor([[G[i][j] for j in kept] for i in kept], range(len(kept)))
        sums = []
        for i in implied:
            row = factor.solve({place: G[i][j] for place, j in enumerate(kept)})
            sums.append({kept[place]: x for place, x in row.items() if kept[place] in needs.sums[i]})
        squares = [[_weighed(one, two, weights) for two in sums] for one in sums]
        for k, i in enumerate(implied):
            squares[k][k] = add(weights[i], squares[k][k])
        return cls(kept, implied, factor, sums, sparse_factor(squares, range(len(implied))), weights)

    def solve(self, r: Vector) -> Vector:
        """Return the least lam with G lam = r."""
        return self.spread(self.held(r))

    def held(self, r: Vector) -> Vector:
        """Return mu: what the kept rows would bear alone."""
        mu = self.factor.solve({place: r[i] for place, i in enumerate(self.kept) if i in r})
        return {self.kept[place]: x for place, x in mu.items()}

    def spread(self, mu: Vector) -> Vector:
        """Return the least multipliers that do what mu does."""
        right = {k: _weighed(row, mu, self.metric) for k, row in enumerate(self.sums)}
        taken = self.least.solve(right) if right else {}
        lam = dict(mu)
        for k, row in enumerate(self.sums):
            for j, weight in row.items():
                lam[j] = sub(lam.get(j, 0.0), mul(weight, taken[k]))
            lam[self.implied[k]] = taken[k]
        return lam


def kept_rows(needs: Needs) -> tuple[int, ...]:
    """Return the kept rows, those last of which others are made: T then takes the end of a solve only."""
    parts = {j for row in needs.sums for j in row}
    rows = [i for i, implied in enumerate(needs.implied) if not implied]
    return (*(i for i in rows if i not in parts), *(i for i in rows if i in parts))


def _weighed(x: Vector, y: Vector, weights: Sequence[float]) -> Scalar:
    """Return x^T W y."""
    return total(*(mul(weights[j], mul(x[j], y[j])) for j in sorted(x.keys() & y.keys())))
