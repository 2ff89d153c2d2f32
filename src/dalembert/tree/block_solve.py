"""The block system of a mechanism in straight-line code: accelerations, multipliers and a verdict for each sample.

Symbols: M (n, n) mass matrix with the zeros of the tree, A (m, n) constraint rows, R = diag(rho) row weights or zero,
H = M + A^T R A = L D L^T, Y = L^-1 A^T, G = A H^-1 A^T the Delassus matrix of H.

    M a + A^T lam = f        A a = c
    z = L^-1 (f + A^T R c),   G lam = Y^T D^-1 z - c,   a = L^-T D^-1 (z - Y lam)

Three cases, chosen before tracing (`probe.py`): *plain*, G by elimination without pivots; *redundant*, proximal steps
that suit any rank of A; *massless*, R > 0 makes H definite although M is not (same solution for any R > 0; definite
exactly when no admissible motion is massless). That the choice suits a sample is told by its residuals (`verdict.py`).
Cost: sum of squares of the depths for H, m times the sum of depths for Y, m^2 depth / 2 + m^3 / 6 for G and its factor.
Source: Featherstone 2008, sec. 8.4; Golub & Greif, SIAM J. Sci. Comput. 24 (2003) 2076-2092 (the augmentation).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca

from dalembert.tree.proximal import Proximal
from dalembert.tree.scalars import Scalar, add, is_zero, mul, neg, sub, total
from dalembert.tree.sparse_factor import (
    Matrix,
    SparseFactor,
    Vector,
    dense,
    least_fill_order,
    sparse,
    sparse_factor,
    tree_order,
)
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
    """

    redundant: bool
    massless: bool
    mass_scales: tuple[float, ...]
    row_scales: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class BlockAnswer:
    """Scalars of one solve: a (n,), lam (m,), status (`kkt.Status`), residuals of the two block rows (2,)."""

    acceleration: list[Scalar]
    multipliers: list[Scalar]
    status: Scalar
    residuals: list[Scalar]


@dataclass(frozen=True, eq=False)
class BlockFactor:
    """The factored block matrix, ready for right sides.

    Attributes
    ----------
    mass, rows
        Factor of H; the rows of Y^T.
    delassus
        G (m, m), rows of scalars.
    weights
        rho (m,), or None for R = 0.
    schur
        What solves G lam = r: a `SparseFactor`, or `Proximal` steps.
    """

    M: Matrix
    A: Matrix
    needs: Needs
    limits: Thresholds
    mass: SparseFactor
    rows: list[Vector]
    delassus: list[list[Scalar]]
    weights: list[Scalar] | None
    schur: SparseFactor | Proximal

    def solve(self, f: Sequence[Scalar], c: Sequence[Scalar]) -> BlockAnswer:
        """Return a and lam for one right side, f (n,) and c (m,), with status and residuals."""
        n, m = len(self.M), len(self.A)
        z = self.mass.half_solve(sparse(self._load(f, c)))
        pulled = self.mass.scaled(z)
        free = [sub(neg(_dot(row, pulled)), c[i]) for i, row in enumerate(self.rows)]
        lam = dense(self.schur.solve(sparse(free)), m)
        for row, force in zip(self.rows, lam, strict=True):
            for k, value in row.items():
                z[k] = sub(z.get(k, 0.0), mul(value, force))
        a = dense(self.mass.finish(z), n)
        pivots = _scaled(self.mass.pivots, self.needs.mass_scales), self._row_pivots()
        scales = self.needs.mass_scales, self.needs.row_scales
        evidence = Evidence(self.M, self.A, f, c, a, lam, free, *pivots, *scales)
        omega = residuals(evidence)
        return BlockAnswer(a, lam, verdict(evidence, omega, self.needs.redundant, self.limits), omega)

    def _load(self, f: Sequence[Scalar], c: Sequence[Scalar]) -> list[Scalar]:
        """Return f + A^T R c."""
        load = list(f)
        for i, weight in enumerate(self.weights or ()):
            for k, value in sparse(self.A[i]).items():
                load[k] = add(load[k], mul(value, mul(weight, c[i])))
        return load

    def _row_pivots(self) -> list[Scalar]:
        """Return the pivots of G relative to its diagonal: near 0 for a row that others imply."""
        if isinstance(self.schur, Proximal):
            return list(self.schur.factor.pivots.values())
        return _scaled(self.schur.pivots, self.needs.row_scales)


def block_factor(
    M: Matrix, A: Matrix, needs: Needs, metric: Sequence[float] | None = None, limits: Thresholds = DOUBLE
) -> BlockFactor:
    """Factor [M A^T; A 0]; `metric` (m,) weighs the squares of redundant multipliers."""
    m = len(A)
    weights = row_weights(M, A) if needs.massless and m else None
    H = M if weights is None else _augmented(M, A, weights)
    mass = sparse_factor(H, tree_order(len(M)) if weights is None else least_fill_order(H))
    rows = [mass.half_solve(sparse(row)) for row in A]
    G = _delassus(mass, rows)
    schur = Proximal.of(G, metric, limits.shift) if needs.redundant else sparse_factor(G, range(m))
    return BlockFactor(M, A, needs, limits, mass, rows, G, weights, schur)


def row_weights(M: Matrix, A: Matrix) -> list[Scalar]:
    """Return rho: 1 / rho_j = sum_i A_ji^2 / M_ii over coordinates with mass, so that units do not matter.

    A row on massless coordinates alone is weighed by the mean of M's diagonal (or one) over the square of the row.
    """
    masses = {i: M[i][i] for i in range(len(M)) if not is_zero(M[i][i])}
    mean = ca.SX(mul(1.0 / len(M), total(*masses.values())))
    mean = ca.if_else(mean > 0, mean, 1)
    share = {i: ca.if_else(mass > 0, 1 / ca.SX(mass), 0) for i, mass in masses.items()}
    weights: list[Scalar] = []
    for row in A:
        squares = {i: mul(value, value) for i, value in sparse(row).items()}
        reach = ca.SX(total(*(mul(square, share[i]) for i, square in squares.items() if i in share)))
        size = ca.SX(total(*squares.values()))
        weights.append(ca.if_else(reach > 0, 1 / reach, mean / size) if squares else 0.0)
    return weights


def _augmented(M: Matrix, A: Matrix, weights: Sequence[Scalar]) -> list[list[Scalar]]:
    """Return H = M + A^T R A."""
    H = [list(row) for row in M]
    for row, weight in zip(A, weights, strict=True):
        entries = sparse(row)
        for i, left in entries.items():
            scaled = mul(weight, left)
            for j, right in entries.items():
                H[i][j] = add(H[i][j], mul(scaled, right))
    return H


def _delassus(mass: SparseFactor, rows: list[Vector]) -> list[list[Scalar]]:
    """Return G = Y^T D^-1 Y; rows on separate branches stay uncoupled."""
    m = len(rows)
    G: list[list[Scalar]] = [[0.0] * m for _ in range(m)]
    for i, row in enumerate(rows):
        scaled = mass.scaled(row)
        for j in range(i + 1):
            G[i][j] = G[j][i] = neg(_dot(scaled, rows[j]))
    return G


def _dot(x: Vector, y: Vector) -> Scalar:
    return total(*(mul(x[k], y[k]) for k in sorted(x.keys() & y.keys())))


def _scaled(pivots: Vector, scales: Sequence[float]) -> list[Scalar]:
    """Return pivots times the squares of their scales."""
    return [mul(scales[k] ** 2, pivot) for k, pivot in sorted(pivots.items())]
