"""The block system of a mechanism in straight-line code: accelerations, multipliers and a verdict for each sample.

Symbols: H = M, or M + A^T R A where M may be singular; H = L D L^T, Y = L^-1 A^T, G = Y^T D^-1 Y the Delassus matrix.

    M a + A^T lam = f        A a = c
    z = L^-1 (f + A^T R c),   G lam = Y^T D^-1 z - c,   a = L^-T D^-1 (z - Y lam)

The factors come from the matrices (`matrix_system.py`) or from the tree (`articulated_system.py`). Two cases, chosen
before tracing (`probe.py`): *plain*, G by elimination without pivots; *redundant*, proximal steps that suit any rank of
A. That the choice suits a sample is told by its residuals (`verdict.py`).
Cost beyond the factors: m^2 d / 2 + m^3 / 6 products for m rows that share d velocities.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from dalembert.tree.proximal import Proximal
from dalembert.tree.scalars import Scalar, mul, neg, sub, total
from dalembert.tree.sparse_factor import SparseFactor, Vector, dense, sparse, sparse_factor
from dalembert.tree.verdict import DOUBLE, Evidence, Thresholds, residuals, verdict


@dataclass(frozen=True, eq=False)
class Needs:
    """What the straight-line code has to cope with, and typical sizes; see `probe.py`.

    Attributes
    ----------
    redundant, massless
        Whether rows of A may depend on each other, whether M may be singular.
    mass_scales, row_scales
        Constants near H_ii^-1/2 (n,) and G_ii^-1/2 (m,).
    groups
        Per row the constraint it belongs to: a row that does next to nothing beside others of its group is rounding of
        the model's numbers, not a row of its own.
    """

    redundant: bool
    massless: bool
    mass_scales: tuple[float, ...]
    row_scales: tuple[float, ...]
    groups: tuple[int, ...]


class MassFactor(Protocol):
    """H = L D L^T: pivots D, and -D^-1 times a vector."""

    @property
    def pivots(self) -> Vector:
        """D, by velocity."""
        ...

    def scaled(self, y: Vector) -> Vector:
        """Return -D^-1 y."""
        ...


class BlockSystem(Protocol):
    """M and A as the solver sees them; what a load and a motion are is the system's own affair."""

    @property
    def mass(self) -> MassFactor:
        """The factor of H."""
        ...

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

    def imbalance(self, load: Any, motion: Any, lam: Sequence[Scalar]) -> list[Scalar]:
        """Return f - M a - A^T lam, not by way of the factors."""
        ...

    def reached(self, motion: Any) -> list[Scalar]:
        """Return A a, not by way of the factors."""
        ...


@dataclass(frozen=True, eq=False)
class BlockAnswer:
    """Scalars of one solve: a (n,), lam (m,), status (`kkt.Status`), residuals of the two block rows (2,)."""

    acceleration: list[Scalar]
    multipliers: list[Scalar]
    status: Scalar
    residuals: list[Scalar]


@dataclass(frozen=True, eq=False)
class BlockSolver:
    """The factored block matrix, ready for right sides.

    Attributes
    ----------
    system, needs, limits
        What is solved, what to cope with, limits of the verdict.
    schur
        What solves G lam = r: a `SparseFactor`, or `Proximal` steps.
    """

    system: BlockSystem
    needs: Needs
    limits: Thresholds
    schur: SparseFactor | Proximal

    @classmethod
    def of(
        cls,
        system: BlockSystem,
        needs: Needs,
        metric: Sequence[float] | None = None,
        limits: Thresholds = DOUBLE,
    ) -> BlockSolver:
        """Factor the Delassus matrix; `metric` (m,) weighs the squares of redundant multipliers, ones by default."""
        G = delassus(system)
        redundant = needs.redundant and G
        schur = Proximal.of(G, metric, limits.shift, needs.groups) if redundant else sparse_factor(G, range(len(G)))
        return cls(system, needs, limits, schur)

    def solve(self, load: Any, c: Sequence[Scalar], inputs: Sequence[Scalar]) -> BlockAnswer:
        """Return a and lam for a load and a right side c (m,) of the rows, with the verdict.

        `inputs` is everything that comes from outside: where it is not finite, the sample is said to be so.
        """
        system = self.system
        z = system.start(load, c)
        pulled = system.mass.scaled(z)
        free = [sub(neg(_dot(row, pulled)), c[i]) for i, row in enumerate(system.rows)]
        forces, unrest = self._multipliers(sparse(free))
        lam = dense(forces, len(free))
        a, motion = system.finish(self._pulled(z, lam))
        evidence = Evidence(
            imbalance=system.imbalance(load, motion, lam),
            gap=[sub(*pair) for pair in zip(c, system.reached(motion), strict=True)],
            c=c,
            free=neg(_dot(z, pulled)),
            held=total(*map(mul, lam, free)),
            unrest=unrest,
            mass_pivots=_scaled(system.mass.pivots, self.needs.mass_scales),
            row_pivots=self._row_pivots(),
            mass_scales=self.needs.mass_scales,
            row_scales=self.needs.row_scales,
            inputs=inputs,
        )
        omega = residuals(evidence)
        return BlockAnswer(a, lam, verdict(evidence, omega, self.needs.redundant, self.limits), omega)

    def _multipliers(self, free: Vector) -> tuple[Vector, Scalar]:
        """Return lam, and |Y x|^2 in D^-1 for its last change x: twice the energy of what that did to a."""
        if not isinstance(self.schur, Proximal):
            return self.schur.solve(free), 0.0
        lam, change = self.schur.solve(free)
        moved = self._pulled({}, dense(change, len(self.system.rows)))
        return lam, neg(_dot(moved, self.system.mass.scaled(moved)))

    def _pulled(self, z: Vector, lam: Sequence[Scalar]) -> Vector:
        """Return z - Y lam."""
        pulled = dict(z)
        for row, force in zip(self.system.rows, lam, strict=True):
            for k, value in row.items():
                pulled[k] = sub(pulled.get(k, 0.0), mul(value, force))
        return pulled

    def _row_pivots(self) -> list[Scalar]:
        """Return the pivots of G relative to its diagonal: near 0 for a row that others imply."""
        if isinstance(self.schur, Proximal):
            return list(self.schur.factor.pivots.values())
        return _scaled(self.schur.pivots, self.needs.row_scales)


def delassus(system: BlockSystem) -> list[list[Scalar]]:
    """Return G = Y^T D^-1 Y (m, m); rows on separate branches stay uncoupled."""
    m = len(system.rows)
    G: list[list[Scalar]] = [[0.0] * m for _ in range(m)]
    for i, row in enumerate(system.rows):
        scaled = system.mass.scaled(row)
        for j in range(i + 1):
            G[i][j] = G[j][i] = neg(_dot(scaled, system.rows[j]))
    return G


def _dot(x: Vector, y: Vector) -> Scalar:
    return total(*(mul(x[k], y[k]) for k in sorted(x.keys() & y.keys())))


def _scaled(pivots: Vector, scales: Sequence[float]) -> list[Scalar]:
    """Return pivots times the squares of their scales."""
    return [mul(scales[k] ** 2, pivot) for k, pivot in sorted(pivots.items())]
