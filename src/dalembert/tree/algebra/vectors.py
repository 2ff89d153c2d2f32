"""Vectors with three components and symmetric 3 x 3 matrices, as tuples of scalars.

A symmetric matrix is kept as (xx, xy, xz, yy, yz, zz).
"""

from __future__ import annotations

from dalembert.kkt.expressions import scalars
from dalembert.kkt.expressions.scalars import mul, sub, total
from dalembert.types import Scalar

Vector = tuple[Scalar, Scalar, Scalar]
Symmetric = tuple[Scalar, Scalar, Scalar, Scalar, Scalar, Scalar]
Matrix = tuple[Vector, Vector, Vector]
"""Three columns."""

ZERO: Vector = (0.0, 0.0, 0.0)
NOTHING: Symmetric = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
EYE: Matrix = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))

PLACE = ((0, 1, 2), (1, 3, 4), (2, 4, 5))
"""Where entry (i, j) of a symmetric matrix is kept."""


def add(*vectors: Vector) -> Vector:
    """Return the sum."""
    return total(*(u[0] for u in vectors)), total(*(u[1] for u in vectors)), total(*(u[2] for u in vectors))


def difference(u: Vector, v: Vector) -> Vector:
    """Return u - v."""
    return sub(u[0], v[0]), sub(u[1], v[1]), sub(u[2], v[2])


def scale(factor: Scalar, u: Vector) -> Vector:
    """Return factor u."""
    return mul(factor, u[0]), mul(factor, u[1]), mul(factor, u[2])


def dot(u: Vector, v: Vector) -> Scalar:
    """Return u . v."""
    return total(mul(u[0], v[0]), mul(u[1], v[1]), mul(u[2], v[2]))


def cross(u: Vector, v: Vector) -> Vector:
    """Return u x v."""
    return (
        sub(mul(u[1], v[2]), mul(u[2], v[1])),
        sub(mul(u[2], v[0]), mul(u[0], v[2])),
        sub(mul(u[0], v[1]), mul(u[1], v[0])),
    )


def columns_times(columns: Matrix, u: Vector) -> Vector:
    """Return the matrix with these columns times u."""
    return add(scale(u[0], columns[0]), scale(u[1], columns[1]), scale(u[2], columns[2]))


def transposed_times(columns: Matrix, u: Vector) -> Vector:
    """Return the transpose of the matrix with these columns times u."""
    return dot(columns[0], u), dot(columns[1], u), dot(columns[2], u)


def symmetric_times(S: Symmetric, u: Vector) -> Vector:
    """Return S u."""
    return dot((S[0], S[1], S[2]), u), dot((S[1], S[3], S[4]), u), dot((S[2], S[4], S[5]), u)


def symmetric_add(*matrices: Symmetric) -> Symmetric:
    """Return the sum of symmetric matrices."""
    a, b, c, d, e, f = (total(*entries) for entries in zip(*matrices, strict=True))
    return a, b, c, d, e, f


def is_zero(u: Vector) -> bool:
    """Say whether u is known to be zero."""
    return all(scalars.is_zero(x) for x in u)
