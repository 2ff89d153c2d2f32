"""Redundant rows in straight-line code: G lam = r with a singular G, by a few proximal steps.

Symbols: S scales the rows of each constraint by one factor, so that its largest G_ii is one, W = diag(w) the metric, E
= S W S scaled to at most one where rows depend on each other, x = S^-1 lam,

    x_0 = 0,     x_k+1 = x_k + (S G S + mu E)^-1 (S r - S G S x_k)

Each step shrinks the error in range(G) by mu / (sigma + mu), sigma its generalised eigenvalue; x_k never leaves the
span where x^T E x = lam^T W lam is least, so the limit is the least-norm answer in the metric W, whatever the rank.
The part of r outside range(G), rounding if the rows agree, is magnified by 1 / mu: it moves lam along null(A^T) and
leaves a alone. That part is then taken out again: (mu (S G S + mu E)^-1 E)^k keeps it and shrinks all else by
(mu / sigma)^k, so subtracting this image of x leaves the least-norm answer to rounding. Source of the steps:
J. Carpentier, R. Budhiraja, N. Mansard, "Proximal and sparse resolution of constrained dynamic equations", RSS 2021.

One factor for each constraint, not for each row: a row that does next to nothing beside others of its constraint is
rounding of the model's numbers (a loop in a plane has one across it), and scaled up it would demand forces without
limit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from math import cos

import casadi as ca

from dalembert.tree.scalars import Scalar, add, is_zero, mul, sub, total
from dalembert.tree.sparse_factor import Matrix, SparseFactor, Vector, dense, sparse, sparse_factor

STEPS = 3

CLEANINGS = 2
"""The first leaves eps / mu of what was astray, 2e-6; the second the square of that."""


@dataclass(frozen=True, eq=False)
class Proximal:
    """S, S G S, mu E, the factor of S G S + mu E, and mu."""

    scales: list[Scalar]
    scaled: list[list[Scalar]]
    shift: list[Scalar]
    factor: SparseFactor
    mu: float

    @classmethod
    def of(
        cls,
        G: Matrix,
        metric: Sequence[float] | None,
        mu: float,
        groups: Sequence[int],
        floors: Sequence[float],
        dependent: Sequence[bool],
        known: Mapping[int, float] | None = None,
    ) -> Proximal:
        """Factor for G (m, m); `metric` (m,) weighs the squares of the multipliers, ones by default.

        `floors` (m,) are the least G_ii that rows are scaled by, the same for all of a constraint. `dependent`
        (m,) are rows that depend on others somewhere: the rest has no say in how small their shift is.
        `known` gives scales of rows whose constraint has others that are not in G: their own diagonal tells nothing.
        """
        m, known = len(G), known or {}
        s = [known.get(i, scale) for i, scale in enumerate(_scales([G[i][i] for i in range(m)], groups, floors))]
        shift = [mul(1.0 if metric is None else float(metric[i]), mul(s[i], s[i])) for i in range(m)]
        among = list(dependent) if any(dependent) else [True] * m
        largest = reduce(ca.fmax, [each for each, in_it in zip(shift, among, strict=True) if in_it])
        shift = [
            mu * (each / largest if in_it else ca.fmin(each / largest, 1))
            for each, in_it in zip(shift, among, strict=True)
        ]
        scaled = [[mul(mul(s[i], G[i][j]), s[j]) for j in range(m)] for i in range(m)]
        shifted = [[add(scaled[i][j], shift[i] if i == j else 0.0) for j in range(m)] for i in range(m)]
        return cls(s, scaled, shift, sparse_factor(shifted, range(m)), mu)

    def solve(self, r: Vector) -> Vector:
        """Return the least-norm lam with G lam = r."""
        return self.corrected(r)[0]

    def corrected(self, r: Vector) -> tuple[Vector, Scalar]:
        """Return the least-norm lam with G lam = r, and x^T S G S x for its last change x.

        That change, the second of what is taken out again, moves accelerations by next to nothing where every sigma is
        much larger than mu, or so much smaller that it counts as zero.
        """
        m = len(self.scales)
        right = [mul(s, each) for s, each in zip(self.scales, dense(r, m), strict=True)]
        x = astray = self._step(right)
        for _ in range(STEPS - 1):
            left = [sub(each, total(*map(mul, row, x))) for each, row in zip(right, self.scaled, strict=True)]
            x = [add(*pair) for pair in zip(x, self._step(left), strict=True)]
        for _ in range(CLEANINGS):
            astray = x
            for _ in range(STEPS):
                astray = self._step([mul(*pair) for pair in zip(self.shift, astray, strict=True)])
            x = [sub(*pair) for pair in zip(x, astray, strict=True)]
        moved = [total(*map(mul, row, astray)) for row in self.scaled]
        lam = {i: mul(*pair) for i, pair in enumerate(zip(self.scales, x, strict=True))}
        return lam, total(*map(mul, astray, moved))

    def least(self) -> Scalar:
        """Return about the smallest sigma + mu: mu over what a step leaves of a vector that is a bit of all.

        The pivot of a row that others imply is mu / n^2, n its part in the dependence: not small where n is.
        """
        trial = [cos(i) for i in range(len(self.scales))]
        left = self._step([mul(*pair) for pair in zip(self.shift, trial, strict=True)])
        return self.mu * sum(map(abs, trial)) / total(*(ca.fabs(ca.SX(x)) for x in left))

    def _step(self, right: list[Scalar]) -> list[Scalar]:
        """Return (S G S + mu E)^-1 times a right side."""
        return dense(self.factor.solve(sparse(right)), len(right))


def _scales(diagonal: Sequence[Scalar], groups: Sequence[int], floors: Sequence[float]) -> list[Scalar]:
    """Return G_jj^-1/2 for the largest j of each row's group, at least its floor."""
    largest: dict[int, Scalar] = {}
    for size, group in zip(diagonal, groups, strict=True):
        known = largest.get(group, 0.0)
        largest[group] = size if is_zero(known) else known if is_zero(size) else ca.fmax(known, size)
    least = dict(zip(groups, floors, strict=True))
    scales = {k: least[k] ** -0.5 if is_zero(x) else 1 / ca.sqrt(ca.fmax(x, least[k])) for k, x in largest.items()}
    return [scales[group] for group in groups]
