"""The block system of a mechanism in straight-line code: accelerations, multipliers and a verdict for each sample.

Symbols: H = M, or M + A^T R A where M may be singular; H = L D L^T, Y = L^-1 A^T, G = Y^T D^-1 Y the Delassus matrix.

    M a + A^T lam = f        A a = c
    z = L^-1 (f + A^T R c),   G lam = Y^T D^-1 z - c,   a = L^-T D^-1 (z - Y lam)

The factors come from the matrices (`matrix_system.py`) or from the tree (`articulated_system.py`). Two cases, chosen
before tracing (`probe.py`): *plain*, G by elimination without pivots; *redundant*, the same of the rows that are kept
(`redundant_rows.py`). That the choice suits a sample is told by its residuals and pivots (`verdict.py`).
Cost beyond the factors: m^2 d / 2 + m^3 / 6 products for m rows that share d velocities.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from dalembert.tree.judged import Asked, BlockAnswer, Judged, Needs, Solved, judged, relative
from dalembert.tree.redundant_rows import RedundantRows
from dalembert.tree.scalars import Scalar, mul, neg, sub, total
from dalembert.tree.sparse_factor import Matrix, SparseFactor, Vector, dense, sparse, sparse_factor
from dalembert.tree.verdict import DOUBLE, Thresholds


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
    schur
        What solves G lam = r: a `SparseFactor`, or `RedundantRows`.
    """

    system: BlockSystem
    needs: Needs
    limits: Thresholds
    schur: SparseFactor | RedundantRows

    @classmethod
    def of(
        cls,
        system: BlockSystem,
        needs: Needs,
        metric: Sequence[float] | None = None,
        limits: Thresholds = DOUBLE,
        G: Matrix | None = None,
    ) -> BlockSolver:
        """Factor the Delassus matrix; `metric` (m,) weighs the squares of redundant multipliers, ones by default."""
        return cls(system, needs, limits, factored(delassus(system) if G is None else G, needs, metric))

    def solve(self, load: Any, c: Sequence[Scalar], inputs: Sequence[Scalar]) -> BlockAnswer:
        """Return a and lam for a load and a right side c (m,) of the rows, with the verdict.

        `inputs` is everything that comes from outside: where it is not finite, the sample is said to be so.
        """
        system = self.system
        z = system.start(load, c)
        pulled = system.mass.scaled(z)
        free = [sub(neg(dot(row, pulled)), c[i]) for i, row in enumerate(system.rows)]
        forces, held = multipliers(self.schur, sparse(free))
        lam = dense(forces, len(free))
        slowed = dict(z)
        for row, force in zip(system.rows, lam, strict=True):
            for k, value in row.items():
                slowed[k] = sub(slowed.get(k, 0.0), mul(value, force))
        a, motion = system.finish(slowed)
        found = Solved(a, motion, lam, neg(dot(z, pulled)), held, row_pivots(self.schur, self.needs))
        return judged(system, self.needs, self.limits, Asked(load, c, inputs), found)


def factored(G: Matrix, needs: Needs, metric: Sequence[float] | None) -> SparseFactor | RedundantRows:
    """Return what solves G lam = r."""
    return RedundantRows.of(G, needs, metric) if needs.redundant else sparse_factor(G, range(len(G)))


def multipliers(schur: SparseFactor | RedundantRows, r: Vector) -> tuple[Vector, Scalar]:
    """Return lam with G lam = r, the least where rows are redundant, and T_l^2 = lam^T G lam."""
    held = schur.held(r) if isinstance(schur, RedundantRows) else schur.solve(r)
    return schur.spread(held) if isinstance(schur, RedundantRows) else held, dot(held, r)


def row_pivots(schur: SparseFactor | RedundantRows, needs: Needs) -> list[Scalar]:
    """Return the pivots of G relative to its diagonal, those of kept rows: near 0 where rank is about to be lost."""
    if isinstance(schur, RedundantRows):
        scales = [needs.row_scales[i] for i in schur.kept]
        return relative(schur.factor.pivots, scales)
    return relative(schur.pivots, needs.row_scales)


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
