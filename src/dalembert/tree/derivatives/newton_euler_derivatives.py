"""Derivatives of inverse dynamics by recursion: two passes over composite bodies, O(N d), in one frame.

All vectors are given in the frame of the first link of their tree, the one that stands on the ground: a sum over what
hangs on a joint is then a sum of numbers, and for a robot that floats the columns of its base are unit vectors.

Symbols, of a link with parent p: S the columns of its joint, V velocity, A acceleration less gravity, both spatial;
composite quantities, of the link and all that hangs on it: m, h, E as in `algebra/rigid.py`, linear momentum P, net
force F, and K = (h . v) 1 - v h^T - [w x] E of its bodies, summed. For a motion (d, e),

    I (d, e)   = (m d + e x h,  h x d + (tr(E) 1 - E) e)
    2 B (d, e) = (2 e x P,  2 K e)                              B of Echeandia & Wensing: V x* I V = B V
    Q = V_p x S      R = A_p x S + V_p x Q      D = Q + V x S

    d tau_i / d q_j = S_i^T (2 B Q_j + I R_j)                   j on the way from i to the ground, i itself included
    d tau_j / d q_i = S_j^T (2 B Q_i + I R_i + S_i x* F)        j before i
    d tau_i / d v_j = S_i^T (2 B S_j + I D_j)
    d tau_j / d v_i = S_j^T (2 B S_i + I D_i)
    d tau_i / d a_j = S_i^T I S_j

with B, I, F those of i; q is varied along its tangent. Source: Singh, Russell & Wensing, "Efficient analytical
derivatives of rigid-body dynamics using spatial vector algebra", IEEE Robotics and Automation Letters 7(2), 2022.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from dalembert.kkt.expressions.scalars import add, mul, sub, total
from dalembert.tree.algebra import vectors
from dalembert.tree.algebra.rigid import Rigid, momentum
from dalembert.tree.algebra.screws import Pair, Pose, Rotation
from dalembert.tree.algebra.vectors import ZERO, Matrix, Vector, columns_times, cross, dot, scale, transposed_times
from dalembert.tree.block.articulated_system import scaled
from dalembert.tree.prepared.configuration import Posed, outward, pair_add
from dalembert.tree.prepared.link import Tree
from dalembert.types import Scalar


class Slopes(NamedTuple):
    """Derivatives of joint forces along q, v, a by columns, each nv columns of nv scalars."""

    q: list[list[Scalar]]
    v: list[list[Scalar]]
    a: list[list[Scalar]]


class JointColumn(NamedTuple):
    """What the column S of a joint's velocity brings into the motion of what hangs on it: S, Q, R, D and 2 Q's turn."""

    S: Pair
    Q: Pair
    R: Pair
    D: Pair
    turn: Vector


class MovingLink(NamedTuple):
    """A link in the frame of the first one: where it stands, how it moves, its joint's columns."""

    pose: Pose = Pose()
    V: Pair = (ZERO, ZERO)
    A: Pair = (ZERO, ZERO)
    columns: tuple[JointColumn, ...] = ()


@dataclass(frozen=True, eq=False)
class Composite:
    """A link and all that hangs on it: inertia, linear momentum, K by columns, force."""

    inertia: Rigid
    P: Vector
    K: Matrix
    force: Pair

    def add(self, other: Composite) -> Composite:
        """Return both together."""
        K = tuple(vectors.add(*pair) for pair in zip(self.K, other.K, strict=True))
        return Composite(
            self.inertia.add(other.inertia),
            vectors.add(self.P, other.P),
            (K[0], K[1], K[2]),
            pair_add(self.force, other.force),
        )


def newton_euler_derivatives(
    tree: Tree, posed: list[Posed], gravity: Vector, v: list[Scalar], a: list[Scalar], forces: Mapping[int, Pair]
) -> Slopes:
    """Return the derivatives of tau = M a + C v + g + J^T forces.

    `forces` by link are constant in its axes. Armature, springs and dampers are not counted.
    """
    moving = _moving(posed, gravity, v, a)
    bodies = [_body(link.inertia, m, forces.get(i)) for i, (link, m) in enumerate(zip(tree.links, moving, strict=True))]
    for i in reversed(range(len(bodies))):
        parent = tree.links[i].parent
        if parent >= 0:
            bodies[parent] = bodies[parent].add(bodies[i])
    slopes = Slopes(*([[0.0] * tree.nv for _ in range(tree.nv)] for _ in Slopes._fields))
    for i, link in enumerate(tree.links):
        for k, column in enumerate(moving[i].columns):
            here = link.v + k
            ahead = _Ahead.of(bodies[i], column)
            for j in tree.ancestors(i):
                for there, other in enumerate(moving[j].columns, tree.links[j].v):
                    slopes.q[there][here], slopes.v[there][here] = ahead.row(other)
                    slopes.a[there][here] = slopes.a[here][there] = _product(ahead.inertia, other.S)
                    if j != i:
                        slopes.q[here][there], slopes.v[here][there] = (_product(other.S, x) for x in ahead.behind)
    return slopes


def _moving(posed: list[Posed], gravity: Vector, v: list[Scalar], a: list[Scalar]) -> list[MovingLink]:
    """Return every link in the frame of the first one of its tree; the ground accelerates with -gravity."""

    def step(i: int, link: Posed, parent: MovingLink) -> MovingLink:
        first = link.link.parent < 0
        pose = Pose() if first else link.pose(parent.pose)
        V, A = parent.V, (link.into(scale(-1.0, gravity)), ZERO) if first else parent.A
        screws = [_seen(pose, link.link.relative(unit)) for unit in _units(link.link.v, len(link.link.axes), len(v))]
        speed = gain = (ZERO, ZERO)
        for place, S in enumerate(screws, link.link.v):
            speed = pair_add(speed, scaled(v[place], S))
            gain = pair_add(gain, scaled(a[place], S))
        after = pair_add(V, speed)
        columns = tuple(_column(S, V, A, after, len(screws) == 1) for S in screws)
        return MovingLink(pose, after, pair_add(A, pair_add(gain, _turned(V, speed))), columns)

    return outward(posed, MovingLink(), step)


def _units(first: int, count: int, size: int) -> list[list[Scalar]]:
    """Return unit vectors."""
    return [[1.0 if i == first + k else 0.0 for i in range(size)] for k in range(count)]


def _seen(pose: Pose, motion: Pair) -> Pair:
    """Return a motion of a link's frame in that of the first link."""
    d, e = columns_times(pose.R, motion[0]), columns_times(pose.R, motion[1])
    return vectors.add(d, cross(pose.p, e)), e


def _column(S: Pair, V: Pair, A: Pair, after: Pair, alone: bool) -> JointColumn:
    """Return the column of S behind a link that moves with V and A, `after` being the velocity of its own link."""
    Q = _turned(V, S)
    R = pair_add(_turned(A, S), _turned(V, Q))
    D = scaled(2.0, Q) if alone else pair_add(Q, _turned(after, S))
    return JointColumn(S, Q, R, D, D[1] if alone else scale(2.0, Q[1]))


def _body(inertia: Rigid, link: MovingLink, force: Pair | None) -> Composite:
    """Return a link alone, with the force that its motion needs and one that it bears."""
    (v, w), (a, wd) = link.V, link.A
    own = _rigid(inertia, link.pose)
    P = vectors.add(scale(own.m, v), cross(w, own.h))
    E, h = own.E, own.h
    hv = dot(h, v)
    K = []
    for k, column in enumerate(((E[0], E[1], E[2]), (E[1], E[3], E[4]), (E[2], E[4], E[5]))):
        entries = [sub(x, y) for x, y in zip(scale(-1.0, scale(h[k], v)), cross(w, column), strict=True)]
        entries[k] = add(entries[k], hv)
        K.append((entries[0], entries[1], entries[2]))
    needed = momentum(own, a, wd)
    columns: Matrix = (K[0], K[1], K[2])
    needed = pair_add(needed, (cross(w, P), columns_times(columns, w)))
    if force is not None:
        f, n = columns_times(link.pose.R, force[0]), columns_times(link.pose.R, force[1])
        needed = pair_add(needed, (f, vectors.add(n, cross(link.pose.p, f))))
    return Composite(own, P, columns, needed)


def _rigid(inertia: Rigid, pose: Pose) -> Rigid:
    """Return the inertia of a link's frame in that of the first link."""
    m, h, E = Rotation(pose.R).rigid_out(inertia)
    p = pose.p
    moved = vectors.add(h, scale(m, p))
    shift = [add(mul(h[i], p[j]), mul(p[i], moved[j])) for i in range(3) for j in range(i, 3)]
    a, b, c, d, e, f = (add(*pair) for pair in zip(E, shift, strict=True))
    return Rigid(m, moved, (a, b, c, d, e, f))


class _Ahead(NamedTuple):
    """What hangs on a joint, for one of its columns: rows for the columns before it, forces that they feel.

    Attributes
    ----------
    inertia, rate
        I S, and half of what 2 B^T S gives for an angular velocity.
    behind
        Forces along q and along v.
    """

    inertia: Pair
    rate: Vector
    behind: tuple[Pair, Pair]

    @classmethod
    def of(cls, body: Composite, column: JointColumn) -> _Ahead:
        """Return it for a column of the joint that carries the body."""
        (d, e), double = column.S, scale(2.0, column.S[1])
        f, n = body.force
        along_q = pair_add(_coriolis(body, column.turn), momentum(body.inertia, *column.R))
        along_q = pair_add(along_q, (cross(e, f), vectors.add(cross(e, n), cross(d, f))))
        along_v = pair_add(_coriolis(body, double), momentum(body.inertia, *column.D))
        rate = vectors.add(cross(body.P, d), transposed_times(body.K, e))
        return cls(momentum(body.inertia, d, e), rate, (along_q, along_v))

    def row(self, other: JointColumn) -> tuple[Scalar, Scalar]:
        """Return what the joint feels of a column before it, along q and along v."""
        along_q = add(dot(self.rate, other.turn), _product(self.inertia, other.R))
        along_v = add(mul(2.0, dot(self.rate, other.S[1])), _product(self.inertia, other.D))
        return along_q, along_v


def _coriolis(body: Composite, double: Vector) -> Pair:
    """Return 2 B (d, e) for 2 e."""
    return cross(double, body.P), columns_times(body.K, double)


def _turned(V: Pair, S: Pair) -> Pair:
    """Return the motion V x S."""
    return vectors.add(cross(V[1], S[0]), cross(V[0], S[1])), cross(V[1], S[1])


def _product(x: Pair, y: Pair) -> Scalar:
    return total(*(mul(*pair) for u, w in zip(x, y, strict=True) for pair in zip(u, w, strict=True)))
