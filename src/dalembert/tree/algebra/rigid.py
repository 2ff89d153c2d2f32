"""Rigid inertia by ten numbers that add up: mass, first and second moments.

Symbols: m mass; h = m c first moment; E = ∫ r r^T dm second moments about the frame's origin, of which the rotational
inertia is I = tr(E) 1 - E. All three are linear in the mass distribution: bodies that are welded add, and a mass
that lies on a joint's axis may be counted with either of its two bodies (`regroup`).
"""

from __future__ import annotations

from typing import NamedTuple

from dalembert.kkt.expressions.scalars import add as plus
from dalembert.kkt.expressions.scalars import is_zero, mul, neg, sub, total
from dalembert.tree.algebra import vectors
from dalembert.tree.algebra.vectors import NOTHING, ZERO, Matrix, Symmetric, Vector, cross, scale
from dalembert.types import Scalar


class Rigid(NamedTuple):
    """m, h and E of a body, or of several welded together."""

    m: Scalar = 0.0
    h: Vector = ZERO
    E: Symmetric = NOTHING

    def add(self, other: Rigid) -> Rigid:
        """Return the inertia of both, given in one frame."""
        return Rigid(plus(self.m, other.m), vectors.add(self.h, other.h), vectors.symmetric_add(self.E, other.E))


def rotational(E: Symmetric) -> Symmetric:
    """Return I = tr(E) 1 - E about the origin."""
    xx, xy, xz, yy, yz, zz = E
    return plus(yy, zz), neg(xy), neg(xz), plus(xx, zz), neg(yz), plus(xx, yy)


def momentum(inertia: Rigid, v: Vector, w: Vector) -> tuple[Vector, Vector]:
    """Return p = m v + w x h and L = I w + h x v about the origin."""
    m, h, E = inertia
    p = vectors.add(scale(m, v), cross(w, h))
    return p, vectors.add(vectors.symmetric_times(rotational(E), w), cross(h, v))


def rate_matrix(w: Vector, wd: Vector) -> Matrix:
    """Return the columns of U = [wd x] + [w x][w x]: the point r of a body has acceleration a + U r.

    Khalil & Dombre 2002, eq. (9.87). Cost: 6 products, 9 sums.
    """
    xx, yy, zz = mul(w[0], w[0]), mul(w[1], w[1]), mul(w[2], w[2])
    xy, xz, yz = mul(w[0], w[1]), mul(w[0], w[2]), mul(w[1], w[2])
    return (
        (neg(plus(yy, zz)), plus(xy, wd[2]), sub(xz, wd[1])),
        (sub(xy, wd[2]), neg(plus(xx, zz)), plus(yz, wd[0])),
        (plus(xz, wd[1]), sub(yz, wd[0]), neg(plus(xx, yy))),
    )


def inertial_force(inertia: Rigid, w: Vector, wd: Vector, a: Vector, U: Matrix) -> tuple[Vector, Vector]:
    """Return f = ∫ r'' dm = m a + U h and n = ∫ r x r'' dm = h x a + ∫ r x U r dm about the origin.

    The last term has the components of the antisymmetric part of U E: 15 products where I wd + w x I w has 24.
    """
    m, h, E = inertia
    f = vectors.add(scale(m, a), vectors.columns_times(U, h))
    return f, vectors.add(cross(h, a), _moment(U, E, w, wd))


def _moment(U: Matrix, E: Symmetric, w: Vector, wd: Vector) -> Vector:
    """Return ∫ r x U r dm: its x is sum_k U_zk E_ky - U_yk E_kz, the others by rotating the letters."""
    xx, xy, xz, yy, yz, zz = E
    (Uxx, Uyx, Uzx), (Uxy, Uyy, Uzy), (Uxz, Uyz, Uzz) = U
    x = total(mul(Uzx, xy), mul(sub(Uzz, Uyy), yz), _diagonal(yy, zz, Uzy, Uyz, mul(w[1], w[2]), wd[0]))
    y = total(mul(Uxy, yz), mul(sub(Uxx, Uzz), xz), _diagonal(zz, xx, Uxz, Uzx, mul(w[0], w[2]), wd[1]))
    z = total(mul(Uyz, xz), mul(sub(Uyy, Uxx), xy), _diagonal(xx, yy, Uyx, Uxy, mul(w[0], w[1]), wd[2]))
    return sub(x, mul(Uyx, xz)), sub(y, mul(Uzy, xy)), sub(z, mul(Uxz, yz))


def _diagonal(first: Scalar, second: Scalar, plus_entry: Scalar, minus_entry: Scalar, ww: Scalar, wd: Scalar) -> Scalar:
    """Return (ww + wd) first - (ww - wd) second; where both moments are there, without the two entries of U."""
    if is_zero(first) or is_zero(second):
        return sub(mul(plus_entry, first), mul(minus_entry, second))
    return plus(mul(ww, sub(first, second)), mul(wd, plus(first, second)))
