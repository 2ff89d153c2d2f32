"""H = L D L^T of a sparse symmetric matrix of expressions, in a given order, without pivots.

Symbols: `order[k]` the k-th unknown to be eliminated, L unit lower triangular in that order, D diagonal,
ancestors(k) the unknowns that the k-th is coupled to when its turn comes (nonzeros of column k of L).

Along a kinematic tree with the leaves first this is Featherstone's L^T D L: the mass matrix couples a joint to its
ancestors only, so no entry fills in (Featherstone 2008, secs. 6.5, 8.4). For a matrix that is not of that kind, such
as M + A^T R A, `least_fill_order` finds an order. Cost: sum over k of |ancestors(k)|^2 multiplications; the
straight-line code holds nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca

Vector = dict[int, ca.SX]
"""A sparse vector of expressions: index -> entry; what is not there is zero."""


@dataclass(frozen=True, eq=False)
class SparseFactor:
    """L, the pivots D, and their reciprocals, all in the numbering of H.

    Attributes
    ----------
    order
        Unknowns in the order of their elimination.
    columns
        columns[k][i] = L_ik for every i eliminated after k.
    pivots, reciprocals
        D_k and 1 / D_k, by unknown.
    """

    order: tuple[int, ...]
    columns: dict[int, Vector]
    pivots: Vector
    reciprocals: Vector

    def half_solve(self, b: Vector) -> Vector:
        """Return y = L^-1 b; y is zero where b and all that is eliminated before has nothing to pass on."""
        y = dict(b)
        for k in self.order:
            if k in y:
                for i, entry in self.columns[k].items():
                    subtract(y, i, entry * y[k])
        return y

    def finish(self, y: Vector) -> Vector:
        """Return x = L^-T D^-1 y."""
        x: Vector = {}
        for k in reversed(self.order):
            value = y[k] * self.reciprocals[k] if k in y else ca.SX(0)
            for i, entry in self.columns[k].items():
                value = value - entry * x[i]
            x[k] = value
        return x

    def product(self, y: Vector, z: Vector) -> ca.SX:
        """Return y^T D^-1 z."""
        total = ca.SX(0)
        for k in sorted(y.keys() & z.keys()):
            total = total + y[k] * self.reciprocals[k] * z[k]
        return total

    def solve(self, b: Vector) -> Vector:
        """Return H^-1 b."""
        return self.finish(self.half_solve(b))


def sparse_factor(H: ca.SX, order: Sequence[int] | None = None) -> SparseFactor:
    """Factor H (n, n), of which the lower triangle is read; `order` by default from the last unknown to the first."""
    n = H.shape[0]
    order = tuple(reversed(range(n))) if order is None else tuple(order)
    place = {k: at for at, k in enumerate(order)}
    left: dict[int, Vector] = {k: {} for k in order}
    for i, j, entry in entries(H):
        if i >= j:
            first, later = (i, j) if place[i] < place[j] else (j, i)
            left[first][later] = entry
    columns: dict[int, Vector] = {}
    pivots: Vector = {}
    reciprocals: Vector = {}
    for k in order:
        row = left.pop(k)
        pivots[k] = row.pop(k, ca.SX(0))
        reciprocals[k] = 1 / pivots[k]
        later = sorted(row, key=place.__getitem__)
        columns[k] = {i: row[i] * reciprocals[k] for i in later}
        for at, i in enumerate(later):
            for j in later[at:]:
                subtract(left[i], j, columns[k][i] * row[j])
    return SparseFactor(order, columns, pivots, reciprocals)


def least_fill_order(H: ca.SX) -> tuple[int, ...]:
    """Return an order of elimination by least degree (Tinney and Walker 1967), ties to the last unknown."""
    neighbours: dict[int, set[int]] = {k: set() for k in range(H.shape[0])}
    for i, j, _ in entries(H):
        if i != j:
            neighbours[i].add(j)
            neighbours[j].add(i)
    order: list[int] = []
    while neighbours:
        k = min(neighbours, key=lambda i: (len(neighbours[i]), -i))
        clique = neighbours.pop(k)
        for i in clique:
            neighbours[i] |= clique
            neighbours[i] -= {i, k}
        order.append(k)
    return tuple(order)


def entries(H: ca.SX) -> list[tuple[int, int, ca.SX]]:
    """Return (row, column, entry) of everything that is not zero by structure or by value."""
    rows, columns = H.sparsity().get_triplet()
    found = zip(rows, columns, H.nonzeros(), strict=True)
    return [(i, j, entry) for i, j, entry in found if not entry.is_zero()]


def sparse_rows(A: ca.SX) -> list[Vector]:
    """Return the rows of A as sparse vectors."""
    rows: list[Vector] = [{} for _ in range(A.shape[0])]
    for i, j, entry in entries(A):
        rows[i][j] = entry
    return rows


def dense_column(x: Vector, size: int) -> ca.SX:
    """Return a sparse vector as a dense column."""
    return ca.vertcat(*[x.get(i, ca.SX(0)) for i in range(size)]) if size else ca.SX(0, 1)


def subtract(x: Vector, i: int, value: ca.SX) -> None:
    """Set x_i to x_i - value."""
    x[i] = x[i] - value if i in x else -value
