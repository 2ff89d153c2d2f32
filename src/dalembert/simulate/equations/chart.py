"""Coordinates for one step: every joint's configurations around a base point, as expressions.

Symbols: q0 base (nq,), x coordinates (nv,), q = q0 * x; v velocities as the mechanism has them; s = |x|^2 of a
rotation.

    vector spaces    q = q0 + x                        x' = v
    circles          q = q0 turned by x                x' = v
    rotations        q = q0 exp(x)                     x' = dexp(x)^-1 v = v + x * v / 2 + c(s) x * (x * v)
    positions        p = p0 + x                        x' = R(q) v     (planar and free joints)

with c(s) = (1 - t/2 cot(t/2)) / s, t = sqrt(s). Runge-Kutta in x is the method of Munthe-Kaas: stages are on the group
whatever the step, and errors are radians. The base moves to the end of every step, so x stays small.
Source: E. Hairer, C. Lubich, G. Wanner, "Geometric Numerical Integration", 2nd ed., sections IV.7-8.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import casadi as ca

from dalembert.model.joints import rotations as quaternion
from dalembert.model.joints.kinds import PlanarJoint
from dalembert.simulate.limits import SERIES

if TYPE_CHECKING:
    from dalembert.model.mechanism.mechanism import Mechanism

Scalar = Any

LARGEST_TURN = 3.0
"""A step may turn a body by less than this, radians; dexp^-1 ends at a full turn."""

ROTATIONS = {"free": (3, 3), "spherical": (0, 0)}
"""Kinds with a quaternion: where it begins in q, and where its rotation vector begins in x."""


def chart(mechanism: Mechanism, base: ca.SX, x: ca.SX, v: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Return q (nq,) at the coordinates x around `base`, and x' (nv,) under the velocities v."""
    q: list[Scalar] = []
    rate: list[Scalar] = []
    m = mechanism.manifold
    for i, joint in enumerate(mechanism.joints):
        iq, iv = range(m.q_start[i], m.q_start[i + 1]), range(m.v_start[i], m.v_start[i + 1])
        parts = [[column[j] for j in place] for column, place in ((base, iq), (x, iv), (v, iv))]
        ends, rates = _KINDS.get(joint.kind, _vector)(*parts)
        q += ends
        rate += rates
    return ca.vertcat(*q, ca.SX(0, 1)), ca.vertcat(*rate, ca.SX(0, 1))


def normalised(mechanism: Mechanism, q: ca.SX) -> ca.SX:
    """Return q with quaternions and (cos, sin) of length one."""
    from dalembert.model.joints import KINDS

    parts = [q[i] for i in range(q.numel())]
    for i, joint in enumerate(mechanism.joints):
        start = int(mechanism.manifold.q_start[i])
        unit = KINDS[joint.kind].unit
        places = range(start + unit.start, start + unit.stop)
        if len(places):
            length = ca.sqrt(sum(parts[j] ** 2 for j in places))
            for j in places:
                parts[j] = parts[j] / length
    return ca.vertcat(*parts, ca.SX(0, 1))


def rotation_places(system: Any) -> list[int]:
    """Return where rotation vectors begin in x; vectors have none."""
    mechanism = system
    if not hasattr(mechanism, "joints"):
        return []
    starts = mechanism.manifold.v_start
    return [int(starts[i]) + ROTATIONS[j.kind][1] for i, j in enumerate(mechanism.joints) if j.kind in ROTATIONS]


def _vector(q: list[Scalar], x: list[Scalar], v: list[Scalar]) -> tuple[list[Scalar], list[Scalar]]:
    return [a + b for a, b in zip(q, x, strict=True)], v


def _turned(q: list[Scalar], angle: Scalar) -> list[Scalar]:
    c, s = ca.cos(angle), ca.sin(angle)
    return [q[0] * c - q[1] * s, q[0] * s + q[1] * c]


def _continuous(q: list[Scalar], x: list[Scalar], v: list[Scalar]) -> tuple[list[Scalar], list[Scalar]]:
    return _turned(q, x[0]), v


def _planar(q: list[Scalar], x: list[Scalar], v: list[Scalar]) -> tuple[list[Scalar], list[Scalar]]:
    end = [q[0] + x[0], q[1] + x[1], *_turned(q[2:], x[2])]
    return end, [*PlanarJoint().rate(end, v)[:2], v[2]]


def _spherical(q: list[Scalar], x: list[Scalar], v: list[Scalar]) -> tuple[list[Scalar], list[Scalar]]:
    s = x[0] * x[0] + x[1] * x[1] + x[2] * x[2]
    small = s < SERIES
    t = ca.sqrt(ca.if_else(small, 1.0, s))
    half_sinc = ca.if_else(small, 0.5 - s / 48 * (1 - s / 80 * (1 - s / 168 * (1 - s / 288))), ca.sin(t / 2) / t)
    cosine = ca.if_else(small, 1 - s / 8 * (1 - s / 48 * (1 - s / 120 * (1 - s / 224))), ca.cos(t / 2))
    turn = [half_sinc * x[0], half_sinc * x[1], half_sinc * x[2], cosine]
    exact = (1 - t / 2 * ca.cos(t / 2) / ca.sin(t / 2)) / (t * t)
    second = ca.if_else(small, 1 / 12 + s / 720 * (1 + s / 42 * (1 + s / 40 * (1 + s / 39.6))), exact)
    once = _cross(x, v)
    twice = _cross(x, once)
    return _product(q, turn), [v[i] + 0.5 * once[i] + second * twice[i] for i in range(3)]


def _free(q: list[Scalar], x: list[Scalar], v: list[Scalar]) -> tuple[list[Scalar], list[Scalar]]:
    turned, rate = _spherical(q[3:], x[3:], v[3:])
    R = quaternion.rotation_rows(*turned)
    moved = [R[i][0] * v[0] + R[i][1] * v[1] + R[i][2] * v[2] for i in range(3)]
    return [*(q[i] + x[i] for i in range(3)), *turned], [*moved, *rate]


_KINDS = {"continuous": _continuous, "planar": _planar, "spherical": _spherical, "free": _free}


def _cross(a: list[Scalar], b: list[Scalar]) -> list[Scalar]:
    return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]


def _product(a: list[Scalar], b: list[Scalar]) -> list[Scalar]:
    """Return the product of quaternions [x y z w]."""
    u = _cross(a[:3], b[:3])
    vector = [a[3] * b[i] + b[3] * a[i] + u[i] for i in range(3)]
    return [*vector, a[3] * b[3] - (a[0] * b[0] + a[1] * b[1] + a[2] * b[2])]
