"""Elementary changes of frame: a screw about a coordinate axis, and a rotation that is full.

Every constant transform between two joint axes is at most three screws, about z, x and z (Denavit & Hartenberg 1955),
the joint's own motion being part of the last. So each transform of a vector is a few rotations in a plane, 4 products
and 2 sums each, where a 3 x 3 matrix takes 9 and 6.

Symbols: frame B in frame A is turned by an angle (c, s its cosine and sine) about axis k and moved by d along it; i,
j, k is a cyclic order of the axes. "into" carries components from A to B, "out" from B to A. Motions are pairs (v, w)
of the velocity of the frame's origin and the angular velocity, forces pairs (f, n) with n about the frame's origin.
"""

from __future__ import annotations

from typing import NamedTuple

from dalembert.kkt.expressions.scalars import add as plus
from dalembert.kkt.expressions.scalars import is_zero, mul, neg, sub
from dalembert.tree.algebra import vectors
from dalembert.tree.algebra.rigid import Rigid
from dalembert.tree.algebra.vectors import PLACE, Matrix, Symmetric, Vector
from dalembert.types import Scalar

Pair = tuple[Vector, Vector]


class Pose(NamedTuple):
    """Where a frame stands: the columns of its rotation and its origin."""

    R: Matrix = vectors.EYE
    p: Vector = vectors.ZERO


class Screw(NamedTuple):
    """A turn about axis k and a slide along it."""

    k: int
    c: Scalar = 1.0
    s: Scalar = 0.0
    d: Scalar = 0.0

    def inverse(self) -> Screw:
        """Return the change from B to A."""
        return Screw(self.k, self.c, neg(self.s), neg(self.d))

    def plane(self, s: Scalar, x: Scalar, y: Scalar) -> tuple[Scalar, Scalar]:
        """Return (x, y) turned in the plane by the angle with this sine."""
        return sub(mul(self.c, x), mul(s, y)), plus(mul(s, x), mul(self.c, y))

    def into(self, u: Vector) -> Vector:
        """Return R^T u."""
        i, j = (self.k + 1) % 3, (self.k + 2) % 3
        result = list(u)
        result[i], result[j] = self.plane(neg(self.s), u[i], u[j])
        return result[0], result[1], result[2]

    def out(self, u: Vector) -> Vector:
        """Return R u."""
        i, j = (self.k + 1) % 3, (self.k + 2) % 3
        result = list(u)
        result[i], result[j] = self.plane(self.s, u[i], u[j])
        return result[0], result[1], result[2]

    def motion_into(self, motion: Pair) -> Pair:
        """Return R^T (v + w x d e_k), R^T w."""
        v, w = motion
        i, j = (self.k + 1) % 3, (self.k + 2) % 3
        moved = list(v)
        moved[i] = plus(v[i], mul(self.d, w[j]))
        moved[j] = sub(v[j], mul(self.d, w[i]))
        return self.into((moved[0], moved[1], moved[2])), self.into(w)

    def force_out(self, force: Pair) -> Pair:
        """Return R f, R (n + d e_k x f)."""
        f, n = force
        i, j = (self.k + 1) % 3, (self.k + 2) % 3
        moved = list(n)
        moved[i] = sub(n[i], mul(self.d, f[j]))
        moved[j] = plus(n[j], mul(self.d, f[i]))
        return self.out(f), self.out((moved[0], moved[1], moved[2]))

    def pose(self, pose: Pose) -> Pose:
        """Return the pose of B for that of A."""
        i, j = (self.k + 1) % 3, (self.k + 2) % 3
        x, y = pose.R[i], pose.R[j]
        columns = list(pose.R)
        columns[i] = vectors.add(vectors.scale(self.c, x), vectors.scale(self.s, y))
        columns[j] = vectors.difference(vectors.scale(self.c, y), vectors.scale(self.s, x))
        p = vectors.add(pose.p, vectors.scale(self.d, pose.R[self.k]))
        return Pose((columns[0], columns[1], columns[2]), p)

    def symmetric_out(self, S: Symmetric) -> Symmetric:
        """Return R S R^T, 8 products and 7 sums."""
        i, j, k = (self.k + 1) % 3, (self.k + 2) % 3, self.k
        result = list(S)
        block = turned_block(self, S[PLACE[i][i]], S[PLACE[i][j]], S[PLACE[i][j]], S[PLACE[j][j]])
        result[PLACE[i][i]], result[PLACE[i][j]], _, result[PLACE[j][j]] = block
        result[PLACE[i][k]], result[PLACE[j][k]] = self.plane(self.s, S[PLACE[i][k]], S[PLACE[j][k]])
        a, b, c, d, e, f = result
        return a, b, c, d, e, f

    def rigid_out(self, inertia: Rigid) -> Rigid:
        """Return the inertia in A: m, R h + m d e_k, and E turned and moved."""
        m, h, E = inertia
        k, d = self.k, self.d
        h, E = self.out(h), self.symmetric_out(E)
        if is_zero(d):
            return Rigid(m, h, E)
        moved, first = list(E), list(h)
        first[k] = plus(h[k], mul(m, d))
        for other in range(3):
            amount = plus(h[k], first[k]) if other == k else h[other]
            moved[PLACE[k][other]] = plus(E[PLACE[k][other]], mul(d, amount))
        a, b, c, e, f, g = moved
        return Rigid(m, (first[0], first[1], first[2]), (a, b, c, e, f, g))


def turned_block(screw: Screw, ii: Scalar, ij: Scalar, ji: Scalar, jj: Scalar) -> tuple[Scalar, Scalar, Scalar, Scalar]:
    """Return the block of a matrix in the screw's plane after the turn, 4 products.

    The trace and ij - ji stay; with t = s (ii - jj) + c (ij + ji) the block becomes

        ii - s t    c t - ji
        c t - ij    jj + s t
    """
    c, s = screw.c, screw.s
    if is_zero(s):
        return ii, ij, ji, jj
    if is_zero(c):
        return jj, neg(ji), neg(ij), ii
    t = plus(mul(s, sub(ii, jj)), mul(c, plus(ij, ji)))
    st, ct = mul(s, t), mul(c, t)
    return sub(ii, st), sub(ct, ji), sub(ct, ij), plus(jj, st)


class Rotation(NamedTuple):
    """A full rotation, by its columns; both frames share their origin."""

    R: Matrix

    def inverse(self) -> Rotation:
        """Return the change from B to A."""
        (a, b, c), (d, e, f), (g, h, i) = self.R
        return Rotation(((a, d, g), (b, e, h), (c, f, i)))

    def into(self, u: Vector) -> Vector:
        """Return R^T u."""
        return vectors.transposed_times(self.R, u)

    def out(self, u: Vector) -> Vector:
        """Return R u."""
        return vectors.columns_times(self.R, u)

    def motion_into(self, motion: Pair) -> Pair:
        """Return R^T v, R^T w."""
        return self.into(motion[0]), self.into(motion[1])

    def force_out(self, force: Pair) -> Pair:
        """Return R f, R n."""
        return self.out(force[0]), self.out(force[1])

    def pose(self, pose: Pose) -> Pose:
        """Return the pose of B for that of A."""
        x, y, z = (vectors.columns_times(pose.R, column) for column in self.R)
        return Pose((x, y, z), pose.p)

    def symmetric_out(self, S: Symmetric) -> Symmetric:
        """Return R S R^T."""
        rows = self.inverse().R  # row i of R
        columns = [vectors.symmetric_times(S, row) for row in rows]
        a, b, c, d, e, f = (vectors.dot(rows[i], columns[j]) for i in range(3) for j in range(i, 3))
        return a, b, c, d, e, f

    def rigid_out(self, inertia: Rigid) -> Rigid:
        """Return the inertia in A."""
        return Rigid(inertia.m, self.out(inertia.h), self.symmetric_out(inertia.E))


Element = Screw | Rotation
