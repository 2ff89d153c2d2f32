"""The block system from its matrices: M and A by rows, zeros left out.

Symbols: R = diag(rho) row weights, H = M + A^T R A = L D L^T. Without R the factor of M fills nothing in. With R > 0
the system H a + A^T lam = f + A^T R c, A a = c has the solution of that with M, for any R, and H is definite exactly
when no admissible motion is massless (seed 000, eq. 33): so singular M needs no pivots either.
Source: Golub & Greif, SIAM J. Sci. Comput. 24 (2003) 2076-2092; plain twin `kkt/routes/mass_weighted.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca

from dalembert.kkt.expressions.scalars import add, is_zero, mul, sub, total
from dalembert.kkt.expressions.sparse_factor import (
    Matrix,
    SparseFactor,
    Vector,
    dense,
    least_fill_order,
    sparse,
    sparse_factor,
    tree_order,
)
from dalembert.types import Scalar


@dataclass(frozen=True, eq=False)
class MatrixSystem:
    """A `BlockSystem` of rows of scalars; a load is f (n,), a motion is a (n,).

    Attributes
    ----------
    M, A
        Mass matrix (n, n), constraint rows (m, n).
    mass, rows
        Factor of H; the rows of Y^T.
    weights
        rho (m,), empty for R = 0.
    diagonal
        H_kk (n,).
    """

    M: Matrix
    A: Matrix
    mass: SparseFactor
    rows: list[Vector]
    weights: list[Scalar]
    diagonal: list[Scalar]

    @classmethod
    def of(
        cls, M: Matrix, A: Matrix, massless: bool = False, names: Sequence[str] = (), floors: Sequence[float] = ()
    ) -> MatrixSystem:
        """Factor H of a tree; `massless` where M may be singular, `floors` (m,) as in `row_weights`."""
        weights = row_weights(M, A, floors or [0.0] * len(A)) if massless and A else []
        return cls.weighed(M, A, weights, None if weights else tree_order(len(M)), names)

    @classmethod
    def weighed(
        cls,
        M: Matrix,
        A: Matrix,
        weights: list[Scalar],
        order: Sequence[int] | None = None,
        names: Sequence[str] = (),
    ) -> MatrixSystem:
        """Factor H for given weights rho (m,), or none, in an order of elimination, by default one of little fill."""
        H = augmented(M, A, weights) if weights else M
        mass = sparse_factor(H, least_fill_order(H) if order is None else order, names)
        rows = [mass.half_solve(sparse(row)) for row in A]
        return cls(M, A, mass, rows, weights, [H[k][k] for k in range(len(M))])

    def start(self, load: Sequence[Scalar], c: Sequence[Scalar]) -> Vector:
        """Return z = L^-1 (f + A^T R c)."""
        total_load = list(load)
        for i, weight in enumerate(self.weights):
            for k, value in sparse(self.A[i]).items():
                total_load[k] = add(total_load[k], mul(value, mul(weight, c[i])))
        return self.mass.half_solve(sparse(total_load))

    def finish(self, z: Vector) -> tuple[list[Scalar], list[Scalar]]:
        """Return a, which is the motion as well."""
        a = dense(self.mass.finish(z), len(self.M))
        return a, a

    def imbalance(self, load: Sequence[Scalar], motion: Sequence[Scalar], lam: Sequence[Scalar]) -> list[Scalar]:
        """Return f - M a - A^T lam."""
        remainder = [sub(*pair) for pair in zip(load, product(self.M, motion), strict=True)]
        for row, force in zip(self.A, lam, strict=True):
            for k, value in sparse(row).items():
                remainder[k] = sub(remainder[k], mul(value, force))
        return remainder

    def reached(self, motion: Sequence[Scalar]) -> list[Scalar]:
        """Return A a."""
        return product(self.A, motion)


def product(A: Matrix, x: Sequence[Scalar]) -> list[Scalar]:
    """Return A x."""
    return [total(*(mul(entry, x[j]) for j, entry in sparse(row).items())) for row in A]


def row_weights(M: Matrix, A: Matrix, floors: Sequence[float]) -> list[Scalar]:
    """Return rho: how heavy a row is, as its heavy coordinates tell: sum_i A_ji^2 M_ii / (sum_i A_ji^2)^2.

    Any positive rho gives the same solution; this one keeps H far from singular however light the other coordinates of
    a row are. A row on massless coordinates alone is weighed by the mean of M's diagonal (or one) over its square.
    A row whose square is below its floor, up to rounding itself, weighs less.
    """
    masses = {i: M[i][i] for i in range(len(M)) if not is_zero(M[i][i])}
    mean = ca.SX(mul(1.0 / len(M), total(*masses.values())))
    mean = ca.if_else(mean > 0, mean, 1)
    weights: list[Scalar] = []
    for row, floor in zip(A, floors, strict=True):
        squares = {i: mul(value, value) for i, value in sparse(row).items()}
        heavy = ca.SX(total(*(mul(square, masses[i]) for i, square in squares.items() if i in masses)))
        size = ca.fmax(ca.SX(total(*squares.values())), floor)
        weights.append(ca.if_else(heavy > 0, heavy / size, mean) / size if squares else 0.0)
    return weights


def unit_free_weights(M: Matrix, A: Matrix, implied: Sequence[bool]) -> list[Scalar]:
    """Return rho: 1 / rho_j = sum_i A_ji^2 / M_ii over coordinates with mass, the Delassus diagonal of a diagonal M.

    No unit matters. A row on massless coordinates alone is weighed by the mean of M's diagonal (or one) over its
    square. Implied rows weigh nothing: one that contradicts the others leaves their answer as it is.
    """
    masses = [ca.SX(M[i][i]) for i in range(len(M))]
    mean = total(*masses) / len(M)
    mean = ca.if_else(mean > 0, mean, 1)
    weights: list[Scalar] = []
    for row, idle in zip(A, implied, strict=True):
        squares = {i: mul(value, value) for i, value in sparse(row).items()}
        reach = total(*(mul(x, ca.if_else(masses[i] > 0, 1 / masses[i], 0)) for i, x in squares.items()))
        size = ca.SX(total(*squares.values()))
        weights.append(0.0 if idle or not squares else ca.if_else(ca.SX(reach) > 0, 1 / reach, mean / size))
    return weights


def augmented(M: Matrix, A: Matrix, weights: Sequence[Scalar]) -> list[list[Scalar]]:
    """Return H = M + A^T R A."""
    H = [list(row) for row in M]
    for row, weight in zip(A, weights, strict=True):
        entries = sparse(row)
        for i, left in entries.items():
            scaled = mul(weight, left)
            for j, right in entries.items():
                H[i][j] = add(H[i][j], mul(scaled, right))
    return H
