"""H = L D L^T of a sparse symmetric matrix of scalars, in a given order, without pivots.

Symbols: L unit lower triangular in the order of elimination, D the pivots, r = -1/D. Known zeros (float 0) are no
entries.

Along a kinematic tree, with the last velocity eliminated first, this is Featherstone's L^T D L: the mass matrix couples
a velocity only to those before it on the way to the ground, and no entry fills in (Featherstone 2008, sec. 6.5). For a
matrix of another kind, such as M + A^T R A, `least_fill_order` finds an order. Cost: sum over the unknowns of the
square of the number of entries left in their columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dalembert.errors import ModelError
from dalembert.kkt.expressions.scalars import add, is_zero, minus_inverse, mul, neg, sub, total
from dalembert.kkt.limits import VANISHING
from dalembert.status import Status
from dalembert.types import Scalar

Matrix = Sequence[Sequence[Scalar]]
"""Rows of scalars."""

Vector = dict[int, Scalar]
"""A sparse vector: index -> entry; what is not there is zero."""


@dataclass(frozen=True, eq=False)
class SparseFactor:
    """L, D and r = -1/D, all in the numbering of H.

    Attributes
    ----------
    order
        Unknowns in the order of their elimination.
    columns
        columns[k][i] = L_ik for every i eliminated after k.
    pivots, r
        D_k and -1/D_k, by unknown; with this sign CasADi keeps the reciprocal, so that one division serves all
        products.
    """

    order: tuple[int, ...]
    columns: dict[int, Vector]
    pivots: Vector
    r: Vector

    def half_solve(self, b: Vector) -> Vector:
        """Return y = L^-1 b; y has entries only where b, or what is eliminated before, has something to pass on."""
        y = {k: value for k, value in b.items() if not is_zero(value)}
        for k in self.order:
            if k in y:
                for i, entry in self.columns[k].items():
                    y[i] = sub(y.get(i, 0.0), mul(entry, y[k]))
        return y

    def finish(self, y: Vector) -> Vector:
        """Return x = L^-T D^-1 y."""
        x: Vector = {}
        for k in reversed(self.order):
            rest = total(*(mul(entry, x[i]) for i, entry in self.columns[k].items()))
            x[k] = neg(add(mul(y.get(k, 0.0), self.r[k]), rest))
        return x

    def scaled(self, y: Vector) -> Vector:
        """Return -D^-1 y."""
        return {k: mul(value, self.r[k]) for k, value in y.items()}

    def solve(self, b: Vector) -> Vector:
        """Return H^-1 b."""
        return self.finish(self.half_solve(b))


def sparse_factor(H: Matrix, order: Iterable[int], names: Sequence[str] = ()) -> SparseFactor:
    """Factor H, of which the lower triangle is read; a pivot known to vanish is refused by name."""
    order = tuple(order)
    place = {k: at for at, k in enumerate(order)}
    rows: dict[int, Vector] = {k: {} for k in order}
    for i, row in enumerate(H):
        for j, entry in enumerate(row[: i + 1]):
            if not is_zero(entry):
                first, later = (i, j) if place[i] < place[j] else (j, i)
                rows[first][later] = entry
    columns: dict[int, Vector] = {}
    pivots: Vector = {}
    r: Vector = {}
    for k in order:
        row = rows.pop(k)
        pivots[k] = _checked(row.pop(k, 0.0), H[k][k], k, names)
        r[k] = minus_inverse(pivots[k])
        later = sorted(row, key=place.__getitem__)
        minus = {i: mul(row[i], r[k]) for i in later}
        columns[k] = {i: neg(value) for i, value in minus.items()}
        for at, i in enumerate(later):
            for j in later[at:]:
                rows[i][j] = add(rows[i].get(j, 0.0), mul(minus[i], row[j]))
    return SparseFactor(order, columns, pivots, r)


def tree_order(size: int) -> tuple[int, ...]:
    """Return the order without fill of a mass matrix: the last velocity first."""
    return tuple(reversed(range(size)))


def least_fill_order(H: Matrix) -> tuple[int, ...]:
    """Return an order of elimination by least degree (Tinney & Walker 1967), ties to the last unknown."""
    neighbours: dict[int, set[int]] = {k: set() for k in range(len(H))}
    for i, row in enumerate(H):
        for j in range(i):
            if not is_zero(row[j]):
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


def sparse(row: Sequence[Scalar]) -> Vector:
    """Return a row or column of scalars without its zeros."""
    return {i: entry for i, entry in enumerate(row) if not is_zero(entry)}


def dense(x: Vector, size: int) -> list[Scalar]:
    """Return a sparse vector with its zeros."""
    return [x.get(i, 0.0) for i in range(size)]


def _checked(pivot: Scalar, entry: Scalar, k: int, names: Sequence[str]) -> Scalar:
    if type(pivot) is float and pivot <= 0.0:
        name = repr(names[k]) if names else f"number {k}"
        if type(entry) is float and pivot < -VANISHING * abs(entry):
            raise ModelError(
                f"the inertia that resists the coordinate {name} is negative, {pivot:.6g}: "
                f"{Status.INDEFINITE.message}; check the signs of masses and moments that it moves"
            )
        raise ModelError(
            f"nothing resists the coordinate {name}: the mass matrix is singular there; give the link mass or "
            "armature, or constrain it"
        )
    return pivot
