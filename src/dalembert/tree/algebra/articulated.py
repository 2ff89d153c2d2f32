"""Articulated inertia: a symmetric 6 x 6 matrix of which the upper triangle is kept.

Symbols (Featherstone 2008, ch. 7), order [linear, angular]:

    [ f ]   [ A  B ] [ a  ]
    [ n ] = [ B^T C ] [ wd ]        A, C symmetric; B has rows of f and columns of wd

For a rigid body A = m 1, B = -[h x], C = I. A joint that gives way along S takes U U^T / D from it, U = IA S, D = S^T
U.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from dalembert.kkt.expressions.scalars import add, is_zero, minus_inverse, mul, neg, sub, total
from dalembert.tree.algebra import vectors
from dalembert.tree.algebra.rigid import Rigid, rotational
from dalembert.tree.algebra.screws import Element, Pair, Rotation, Screw, turned_block
from dalembert.tree.algebra.vectors import PLACE, Matrix, Symmetric
from dalembert.types import Scalar

if TYPE_CHECKING:
    from dalembert.tree.prepared.configuration import Posed


class Articulated(NamedTuple):
    """A and C by their upper triangles, B by its columns."""

    A: Symmetric
    B: Matrix
    C: Symmetric

    def add(self, other: Articulated) -> Articulated:
        """Return the sum, both in one frame."""
        x, y, z = (vectors.add(column, other_column) for column, other_column in zip(self.B, other.B, strict=True))
        return Articulated(vectors.symmetric_add(self.A, other.A), (x, y, z), vectors.symmetric_add(self.C, other.C))

    def entry(self, i: int, j: int) -> Scalar:
        """Return entry (i, j) of the 6 x 6 matrix."""
        if i > j:
            i, j = j, i
        if j < 3:
            return self.A[PLACE[i][j]]
        return self.B[j - 3][i] if i < 3 else self.C[PLACE[i - 3][j - 3]]

    def out(self, element: Element) -> Articulated:
        """Return the inertia in the frame from which `element` leads to this one."""
        if isinstance(element, Rotation):
            return _rotated(element, self)
        return _slid(element.k, element.d, _turned(element, self))


NONE = Articulated(vectors.NOTHING, (vectors.ZERO, vectors.ZERO, vectors.ZERO), vectors.NOTHING)


def articulated(inertia: Rigid) -> Articulated:
    """Return a rigid inertia as an articulated one."""
    m, (x, y, z), E = inertia
    B = ((0.0, neg(z), y), (z, 0.0, neg(x)), (neg(y), x, 0.0))
    return Articulated((m, 0.0, 0.0, m, 0.0, m), B, rotational(E))


def carried(link: Posed, inertia: Articulated) -> Articulated:
    """Return the inertia in the frame of the link's parent."""
    for element in reversed(link.path):
        inertia = inertia.out(element)
    return inertia


def times(inertia: Articulated, motion: Pair) -> Pair:
    """Return (f, n) = IA (a, wd)."""
    a, wd = motion
    f = vectors.add(vectors.symmetric_times(inertia.A, a), vectors.columns_times(inertia.B, wd))
    n = vectors.add(vectors.transposed_times(inertia.B, a), vectors.symmetric_times(inertia.C, wd))
    return f, n


def give_way(
    inertia: Articulated, U: list[Scalar], D: Scalar, axis: int | None
) -> tuple[Articulated, Scalar, list[Scalar]]:
    """Return IA - U U^T / D, -1/D and -U/D.

    Where the joint has no armature and S is the unit vector `axis`, that row and column become zero: known, not
    computed.
    """
    r = minus_inverse(D)
    scaled = [mul(u, r) for u in U]

    def entry(i: int, j: int) -> Scalar:
        if axis in (i, j):
            return 0.0
        return add(inertia.entry(i, j), mul(scaled[i], U[j]))

    upper = [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)]
    A = tuple(entry(i, j) for i, j in upper)
    C = tuple(entry(i + 3, j + 3) for i, j in upper)
    x, y, z = ((entry(0, j), entry(1, j), entry(2, j)) for j in (3, 4, 5))
    return Articulated(A, (x, y, z), C), r, scaled  # type: ignore[arg-type]


def _turned(screw: Screw, inertia: Articulated) -> Articulated:
    """Return the inertia in axes that are turned back by the screw's angle; 12 products for B."""
    if is_zero(screw.s) and screw.c == 1.0:
        return inertia
    i, j, k = (screw.k + 1) % 3, (screw.k + 2) % 3, screw.k
    B = [list(column) for column in inertia.B]  # B[column][row]
    B[i][i], B[j][i], B[i][j], B[j][j] = turned_block(screw, B[i][i], B[j][i], B[i][j], B[j][j])
    B[k][i], B[k][j] = screw.plane(screw.s, B[k][i], B[k][j])
    B[i][k], B[j][k] = screw.plane(screw.s, B[i][k], B[j][k])
    x, y, z = ((column[0], column[1], column[2]) for column in B)
    return Articulated(screw.symmetric_out(inertia.A), (x, y, z), screw.symmetric_out(inertia.C))


def _slid(k: int, d: Scalar, inertia: Articulated) -> Articulated:
    """Return the inertia about a point that lies -d along axis k, p = d e_k.

    B - A [p x] and C + [p x] B + ([p x] B)^T - [p x] A [p x]: 10 products.
    """
    if is_zero(d):
        return inertia
    i, j = (k + 1) % 3, (k + 2) % 3
    A, old = inertia.A, inertia.B
    moves = [mul(d, A[PLACE[i][row]]) for row in range(3)], [mul(d, A[PLACE[j][row]]) for row in range(3)]
    B = [list(column) for column in old]
    for row in range(3):
        B[i][row] = sub(old[i][row], moves[1][row])
        B[j][row] = add(old[j][row], moves[0][row])
    C = list(inertia.C)
    C[PLACE[i][i]] = sub(C[PLACE[i][i]], mul(d, add(old[i][j], B[i][j])))
    C[PLACE[j][j]] = add(C[PLACE[j][j]], mul(d, add(old[j][i], B[j][i])))
    C[PLACE[i][j]] = add(C[PLACE[i][j]], mul(d, sub(old[i][i], B[j][j])))
    C[PLACE[i][k]] = sub(C[PLACE[i][k]], mul(d, old[k][j]))
    C[PLACE[j][k]] = add(C[PLACE[j][k]], mul(d, old[k][i]))
    x, y, z = ((column[0], column[1], column[2]) for column in B)
    return Articulated(A, (x, y, z), tuple(C))  # type: ignore[arg-type]


def _rotated(rotation: Rotation, inertia: Articulated) -> Articulated:
    """Return the inertia in axes turned by a full rotation: R A R^T and so on."""
    rows = rotation.inverse().R
    columns = [vectors.columns_times(inertia.B, row) for row in rows]  # B (row j of R)
    x, y, z = ((vectors.dot(rows[0], u), vectors.dot(rows[1], u), vectors.dot(rows[2], u)) for u in columns)
    return Articulated(rotation.symmetric_out(inertia.A), (x, y, z), rotation.symmetric_out(inertia.C))


def along(inertia: Articulated, column: list[tuple[int, float]]) -> list[Scalar]:
    """Return U = IA S for S with entries (axis, value)."""
    return [total(*(mul(value, inertia.entry(row, axis)) for axis, value in column)) for row in range(6)]
