"""The block solver in straight-line code: plain elimination, and redundant rows by kept and implied ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from dalembert.kkt.expressions.matrix_system import MatrixSystem
from dalembert.kkt.expressions.sample_verdict import SampleFactors, judged_by_sample
from dalembert.kkt.expressions.scalars import add, is_zero, mul, neg, sub, total
from dalembert.kkt.expressions.sparse_factor import Matrix, SparseFactor, Vector, dense, sparse, sparse_factor
from dalembert.kkt.expressions.verdict import (
    Asked,
    BlockAnswer,
    Conditioning,
    Judged,
    Solved,
    judged,
    relative,
)
from dalembert.kkt.limits import DOUBLE, SampleLimits, Thresholds
from dalembert.types import Scalar

# ----------------------------------------------------------------------------------------------------------------------
# Redundant rows in straight-line code: G lam = r with a singular G, by the rows that were chosen for all states.
#
# Symbols: K kept rows, as many as the generic rank; D implied ones, A_D = T A_K; W = diag(w) the metric.
#
#     G_KK mu = r_K          T = G_DK G_KK^-1          lam_K + T^T lam_D = mu
#
# Any lam of the last kind causes the same accelerations. The least of them in the metric W:
#
#     (W_D + T W_K T^T) lam_D = T W_K mu          lam_K = mu - T^T lam_D
#
# Their derivative along a motion of the rows, dA, needs that of T as well: with Z = [-T^T; 1], whose columns span
# null(A^T), Z^T W lam = 0 gives
#
#     (W_D + T W_K T^T) dlam_D = T W_K dmu + Z^T dA y          A_K y = W_K lam_K
#
# The last term is the turning of the null space: without it dlam would be least, which the derivative of the least
# lam is not. In other letters: dlam = (1 - Z Z^+) X + Z Z^+ dA (A^T)^+T lam for W = 1 and X any solution.
#
# Which rows are kept is decided before tracing, where the system's rank is (`probing.py`), and so is of which rows
# an implied one is made: a row that can move nothing is made of none, and needs no code at all. The pivots of G_KK say
# how far a state is from losing rank: no row of the generic rank is ever dropped, and no row beyond it is ever kept.


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
    def of(cls, G: Matrix, needs: Conditioning, metric: Sequence[float] | None = None) -> RedundantRows:
        """Factor for G (m, m); `metric` (m,) weighs the squares of the multipliers, ones by default."""
        m = len(G)
        weights = tuple([1.0] * m if metric is None else map(float, metric))
        independent = kept_rows(needs)
        implied = tuple(i for i in range(m) if needs.sums[i])
        factor = sparse_factor([[G[i][j] for j in independent] for i in independent], range(len(independent)))
        sums = []
        for i in implied:
            row = factor.solve({place: G[i][j] for place, j in enumerate(independent)})
            sums.append({independent[place]: x for place, x in row.items() if independent[place] in needs.sums[i]})
        squares = [[_weighed(one, two, weights) for two in sums] for one in sums]
        for k, i in enumerate(implied):
            squares[k][k] = add(weights[i], squares[k][k])
        return cls(independent, implied, factor, sums, sparse_factor(squares, range(len(implied))), weights)

    def solve(self, r: Vector) -> Vector:
        """Return the least lam with G lam = r."""
        return self.spread(self.held(r))

    def held(self, r: Vector) -> Vector:
        """Return mu: what the kept rows would bear alone."""
        mu = self.factor.solve({place: r[i] for place, i in enumerate(self.kept) if i in r})
        return {self.kept[place]: x for place, x in mu.items()}

    def spread(self, mu: Vector, turning: Vector | None = None) -> Vector:
        """Return the least multipliers that do what mu does; with `turning` = dA y their derivative, mu being dmu."""
        right = {k: _weighed(row, mu, self.metric) for k, row in enumerate(self.sums)}
        if turning:
            for k, row in enumerate(self.sums):
                sums = total(*(mul(weight, turning[j]) for j, weight in row.items() if j in turning))
                right[k] = add(right[k], sub(turning.get(self.implied[k], 0.0), sums))
        taken = self.least.solve(right) if right else {}
        lam = dict(mu)
        for k, row in enumerate(self.sums):
            for j, weight in row.items():
                lam[j] = sub(lam.get(j, 0.0), mul(weight, taken[k]))
            lam[self.implied[k]] = taken[k]
        return lam

    def lever(self, lam: Sequence[Scalar]) -> Vector:
        """Return nu = G_KK^-1 W_K lam_K by rows of G: y = M^-1 A^T nu has A_K y = W_K lam_K."""
        weighed = {place: mul(self.metric[i], lam[i]) for place, i in enumerate(self.kept)}
        return {self.kept[place]: x for place, x in self.factor.solve(sparse_entries(weighed)).items()}


def sparse_entries(x: Vector) -> Vector:
    """Return a sparse vector without entries that are known to be zero."""
    return {i: entry for i, entry in x.items() if not is_zero(entry)}


def kept_rows(needs: Conditioning) -> tuple[int, ...]:
    """Return the kept rows, those last of which others are made: T then takes the end of a solve only."""
    parts = {j for row in needs.sums for j in row}
    rows = [i for i, implied in enumerate(needs.implied) if not implied]
    return (*(i for i in rows if i not in parts), *(i for i in rows if i in parts))


def _weighed(x: Vector, y: Vector, weights: Sequence[float]) -> Scalar:
    """Return x^T W y."""
    return total(*(mul(weights[j], mul(x[j], y[j])) for j in sorted(x.keys() & y.keys())))


# ----------------------------------------------------------------------------------------------------------------------
# The block system in straight-line code: accelerations, multipliers and a verdict for each sample.
#
# Symbols: H = M, or M + A^T R A where M may be singular; H = L D L^T, Y = L^-1 A^T, G = Y^T D^-1 Y the Delassus matrix.
#
#     M a + A^T lam = f        A a = c
#     z = L^-1 (f + A^T R c),   G lam = Y^T D^-1 z - c,   a = L^-T D^-1 (z - Y lam)
#
# The factors come from the matrices (`matrix_system.py`) or from a tree (`tree/block/articulated_system.py`). Two
# cases, chosen before tracing (`probing.py`): *plain*, G by elimination without pivots; *redundant*, the same of the
# rows that are kept (above). That the choice suits a sample is told by its residuals and pivots: by the rank of a model
# (`verdict.py`), or as `KKT` decides it (`sample_verdict.py`).
# Cost beyond the factors: m^2 d / 2 + m^3 / 6 products for m rows that share d velocities.


class BlockSystem(Judged, Protocol):
    """The same as the solver sees them."""

    @property
    def rows(self) -> list[Vector]:
        """The rows of Y^T."""
        ...

    def start(self, load: Any, c: Sequence[Scalar]) -> Vector:
        """Return z = L^-1 (f + A^T R c)."""
        ...

    def finish(self, z: Vector) -> tuple[list[Scalar], Any]:
        """Return a = L^-T D^-1 z, and the motion that it is."""
        ...


@dataclass(frozen=True, eq=False)
class BlockSolver:
    """The factored block matrix, ready for right sides.

    Attributes
    ----------
    system, needs, limits
        What is solved, what to cope with, limits of the verdict.
    G
        The Delassus matrix (m, m).
    schur
        What solves G lam = r: a `SparseFactor`, or `RedundantRows`.
    """

    system: BlockSystem
    needs: Conditioning
    limits: Thresholds
    G: Matrix
    schur: SparseFactor | RedundantRows

    @classmethod
    def of(
        cls,
        system: BlockSystem,
        needs: Conditioning,
        metric: Sequence[float] | None = None,
        limits: Thresholds = DOUBLE,
        G: Matrix | None = None,
    ) -> BlockSolver:
        """Factor the Delassus matrix; `metric` (m,) weighs the squares of redundant multipliers, ones by default."""
        G = delassus(system) if G is None else G
        return cls(system, needs, limits, G, factored(G, needs, metric))

    def solve(
        self, load: Any, c: Sequence[Scalar], inputs: Sequence[Scalar], sizes: Sequence[float] = ()
    ) -> BlockAnswer:
        """Return a and lam for a load and a right side c (m,) of the rows, with the verdict.

        `inputs` is everything that comes from outside: where it is not finite, the sample is said to be so. `sizes`
        (m,) are what c is a difference of, where it is one.
        """
        data = Asked(load, c, inputs, sizes)
        return judged(self.system, self.needs, self.limits, data, self.solved(load, c))

    def solved(self, load: Any, c: Sequence[Scalar], turning: Vector | None = None) -> Solved:
        """Return a, lam and what the verdict is made from; `turning` as in `RedundantRows.spread`."""
        system = self.system
        z = system.start(load, c)
        pulled = system.mass.scaled(z)
        free = [sub(neg(dot(row, pulled)), c[i]) for i, row in enumerate(system.rows)]
        forces, held = multipliers(self.schur, sparse(free), turning)
        lam = dense(forces, len(free))
        slowed = dict(z)
        for row, force in zip(system.rows, lam, strict=True):
            for k, value in row.items():
                slowed[k] = sub(slowed.get(k, 0.0), mul(value, force))
        a, motion = system.finish(slowed)
        return Solved(a, motion, lam, neg(dot(z, pulled)), held, row_pivots(self.schur, self.needs))

    def turning_motion(self, lam: Sequence[Scalar]) -> list[Scalar]:
        """Return y (n,) with A_K y = W_K lam_K, along which the rows' derivative turns their null space."""
        if not isinstance(self.schur, RedundantRows):
            return []
        z: Vector = {}
        for i, force in self.schur.lever(lam).items():
            for k, value in self.system.rows[i].items():
                z[k] = add(z.get(k, 0.0), mul(value, force))
        return self.system.finish(z)[0]


def factored(G: Matrix, needs: Conditioning, metric: Sequence[float] | None) -> SparseFactor | RedundantRows:
    """Return what solves G lam = r."""
    return RedundantRows.of(G, needs, metric) if needs.redundant else sparse_factor(G, range(len(G)))


def multipliers(schur: SparseFactor | RedundantRows, r: Vector, turning: Vector | None = None) -> tuple[Vector, Scalar]:
    """Return lam with G lam = r, the least where rows are redundant, and T_l^2 = lam^T G lam."""
    if isinstance(schur, RedundantRows):
        held = schur.held(r)
        return schur.spread(held, turning), dot(held, r)
    held = schur.solve(r)
    return held, dot(held, r)


def row_pivots(schur: SparseFactor | RedundantRows, needs: Conditioning) -> list[Scalar]:
    """Return the pivots of G relative to its diagonal, those of kept rows: near 0 where rank is about to be lost."""
    if isinstance(schur, RedundantRows):
        scales = [needs.row_scales[i] for i in schur.kept]
        return relative(schur.factor.pivots, scales)
    return relative(schur.pivots, needs.row_scales)


def kept_pivots(schur: SparseFactor | RedundantRows) -> Vector:
    """Return the pivots of G by row, those of kept rows."""
    if isinstance(schur, RedundantRows):
        return {schur.kept[place]: pivot for place, pivot in schur.factor.pivots.items()}
    return schur.pivots


def implied_sums(schur: SparseFactor | RedundantRows, needs: Conditioning) -> dict[int, Vector]:
    """Return T by implied row, empty for those that can move nothing."""
    sums = dict(zip(schur.implied, schur.sums, strict=True)) if isinstance(schur, RedundantRows) else {}
    return {i: sums.get(i, {}) for i, implied in enumerate(needs.implied) if implied}


def delassus(system: BlockSystem) -> list[list[Scalar]]:
    """Return G = Y^T D^-1 Y (m, m); rows on separate branches stay uncoupled."""
    m = len(system.rows)
    G: list[list[Scalar]] = [[0.0] * m for _ in range(m)]
    for i, row in enumerate(system.rows):
        scaled = system.mass.scaled(row)
        for j in range(i + 1):
            G[i][j] = G[j][i] = neg(dot(scaled, system.rows[j]))
    return G


def dot(x: Vector, y: Vector) -> Scalar:
    """Return x . y of sparse vectors."""
    return total(*(mul(x[k], y[k]) for k in sorted(x.keys() & y.keys())))


def solve_by_sample(
    system: MatrixSystem,
    needs: Conditioning,
    f: Sequence[Scalar],
    c: Sequence[Scalar],
    inputs: Sequence[Scalar],
    eps: float,
) -> BlockAnswer:
    """Return a and lam with the verdict of `KKT`: each sample, in numbers of that precision, decides its rank.

    One step of refinement brings residuals to rounding row by row, as in `kkt/residual.py`.
    """
    solver, m = BlockSolver.of(system, needs), len(c)
    rows = SampleFactors(
        heights=system.rows,
        lengths=[solver.G[i][i] for i in range(m)],
        pivots=kept_pivots(solver.schur),
        sums=implied_sums(solver.schur, needs),
        masses=system.diagonal,
        covered=bool(system.weights) or not m,
    )
    limits = SampleLimits.of(len(f), m, eps)
    return judged_by_sample(system, rows, limits, Asked(f, c, inputs), refined(solver, f, c))


def refined(solver: BlockSolver, f: Sequence[Scalar], c: Sequence[Scalar]) -> Solved:
    """Return the solution after one step of refinement with the same factors."""
    system, first = solver.system, solver.solved(f, c)
    gap = [sub(*pair) for pair in zip(c, system.reached(first.motion), strict=True)]
    second = solver.solved(system.imbalance(f, first.motion, first.lam), gap)
    a, lam = (list(map(add, *pair)) for pair in ((first.a, second.a), (first.lam, second.lam)))
    return replace(first, a=a, motion=a, lam=lam)
