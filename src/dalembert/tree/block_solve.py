"""The block system of a mechanism in straight-line code: accelerations, multipliers and a verdict for each sample.

Symbols: M (n, n) mass matrix with the sparsity of the tree, A (m, n) constraint rows, R = diag(rho) row weights or
zero, H = M + A^T R A, Y = L^-1 A^T, G = A H^-1 A^T the Delassus matrix of H, W = diag(w) the metric on multipliers.

    M a + A^T lam = f        A a = c
    H = L D L^T,   z = L^-1 (f + A^T R c),   G lam = Y^T D^-1 z - c,   a = L^-T D^-1 (z - Y lam)

Three cases, chosen before tracing (`probe.py`): *plain*, G by elimination without pivots; *redundant*, proximal steps
that suit any rank of A; *massless*, R > 0 makes H definite although M is not (same solution for any R > 0; definite
exactly when no admissible motion is massless). That the choice suits a sample is told by its residuals (`verdict.py`).
Cost: sum of squares of the depths for H, m times that for Y, m^2 depth / 2 + m^3 / 6 for G and its factor.
Source: Featherstone 2008, sec. 8.4; Golub and Greif, SIAM J. Sci. Comput. 24 (2003) 2076-2092 (the augmentation).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca

from dalembert.tree.proximal import Proximal
from dalembert.tree.sparse_factor import (
    SparseFactor,
    Vector,
    dense_column,
    entries,
    least_fill_order,
    sparse_factor,
    sparse_rows,
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
    """Expressions of one solve: a (n,), lam (m,), status (`kkt.Status`), residuals of the two block rows (2,)."""

    acceleration: ca.SX
    multipliers: ca.SX
    status: ca.SX
    residuals: ca.SX


@dataclass(frozen=True, eq=False)
class BlockFactor:
    """The factored block matrix, ready for right sides.

    Attributes
    ----------
    mass, rows
        Factor of H; the rows of Y^T.
    delassus
        G (m, m).
    weights
        rho (m,), or None for R = 0.
    schur
        What solves G lam = r: a `SparseFactor`, or `Proximal` steps.
    """

    M: ca.SX
    A: ca.SX
    needs: Needs
    limits: Thresholds
    mass: SparseFactor
    rows: list[Vector]
    delassus: ca.SX
    weights: ca.SX | None
    schur: SparseFactor | Proximal

    def solve(self, f: ca.SX, c: ca.SX) -> BlockAnswer:
        """Return a and lam for one right side, f (n,) and c (m,), with status and residuals."""
        n, m = self.M.shape[0], self.A.shape[0]
        load = f if self.weights is None else f + self.A.T @ (self.weights * c)
        z = self.mass.half_solve({i: load[i] for i in range(n)})
        free = ca.vertcat(*[self.mass.product(self.rows[i], z) - c[i] for i in range(m)]) if m else ca.SX(0, 1)
        lam = dense_column(self.schur.solve({i: free[i] for i in range(m)}), m)
        for i, row in enumerate(self.rows):
            for k, value in row.items():
                z[k] = z[k] - value * lam[i]
        a = dense_column(self.mass.finish(z), n)
        pivots = _scaled(self.mass.pivots, self.needs.mass_scales), self._row_pivots()
        evidence = Evidence(self.M, self.A, f, c, a, lam, free, *pivots)
        omega = residuals(evidence, self.needs.mass_scales, self.needs.row_scales)
        return BlockAnswer(a, lam, verdict(evidence, omega, self.needs.redundant, self.limits), omega)

    def _row_pivots(self) -> list[ca.SX]:
        """Return the pivots of G relative to its diagonal: near 0 for a row that others imply."""
        if isinstance(self.schur, Proximal):
            return list(self.schur.factor.pivots.values())
        return _scaled(self.schur.pivots, self.needs.row_scales)


def block_factor(
    M: ca.SX, A: ca.SX, needs: Needs, metric: Sequence[float] | None = None, limits: Thresholds = DOUBLE
) -> BlockFactor:
    """Factor [M A^T; A 0] in expressions; `metric` (m,) weighs the squares of redundant multipliers."""
    m = A.shape[0]
    weights = ca.vertcat(*row_weights(M, A)) if needs.massless and m else None
    H = M if weights is None else M + A.T @ (ca.repmat(weights, 1, M.shape[0]) * A)
    mass = sparse_factor(H, None if weights is None else least_fill_order(H))
    rows = [mass.half_solve(row) for row in sparse_rows(A)]
    G = _delassus(mass, rows)
    schur = Proximal.of(G, metric, limits.shift) if needs.redundant else sparse_factor(G, tuple(range(m)))
    return BlockFactor(M, A, needs, limits, mass, rows, G, weights, schur)


def row_weights(M: ca.SX, A: ca.SX) -> list[ca.SX]:
    """Return rho: 1 / rho_j = sum_i A_ji^2 / M_ii over coordinates with mass, so that units do not matter.

    A row on massless coordinates alone is weighed by the mean of M's diagonal (or one) over the square of the row.
    """
    masses = {i: entry for i, j, entry in entries(M) if i == j}
    mean = sum(masses.values(), start=ca.SX(0)) / M.shape[0]
    mean = ca.if_else(mean > 0, mean, 1)
    share = {i: ca.if_else(mass > 0, 1 / mass, 0) for i, mass in masses.items()}
    weights = []
    for row in sparse_rows(A):
        reach = sum((value * value * share[i] for i, value in row.items() if i in share), start=ca.SX(0))
        size = sum((value * value for value in row.values()), start=ca.SX(0))
        weights.append(ca.if_else(reach > 0, 1 / reach, mean / size))
    return weights


def _delassus(mass: SparseFactor, rows: list[Vector]) -> ca.SX:
    """Return G = Y^T D^-1 Y; rows on separate branches stay uncoupled."""
    m = len(rows)
    G = ca.SX(m, m)
    for i, row in enumerate(rows):
        scaled = {k: value * mass.reciprocals[k] for k, value in row.items()}
        for j in range(i + 1):
            shared = sorted(scaled.keys() & rows[j].keys())
            if shared:
                G[i, j] = G[j, i] = sum((scaled[k] * rows[j][k] for k in shared), start=ca.SX(0))
    return G


def _scaled(pivots: Vector, scales: Sequence[float]) -> list[ca.SX]:
    """Return pivots times the squares of their scales."""
    return [pivot * scales[k] ** 2 for k, pivot in sorted(pivots.items())]
