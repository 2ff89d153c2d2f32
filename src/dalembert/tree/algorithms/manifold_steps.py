"""Steps on the space of configurations as expressions: integrate, difference, and the rate of q.

    integrate   q exp(v)          joint by joint: where the constant velocity v leads from q in unit time
    difference  log(q0^-1 q1)     the least v with integrate(q0, v) = q1
    rate        N(q) v            dq/dt

The formulas of `model/joints` for arrays, over scalars that may be CasADi expressions. Near the angle zero they go
through series in its square, so that derivatives exist there; no branch that is not taken divides by zero or takes a
root of zero, since a derivative would multiply its infinity by zero.

Symbols: t angle, s = t^2, w rotation vector, x displacement; quaternions are [x y z w].
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import casadi as ca

from dalembert.model.joints import KINDS, as_expression
from dalembert.model.joints.rotations import rotation_rows
from dalembert.model.limits import SMALL_ANGLE
from dalembert.types import Scalar

if TYPE_CHECKING:
    from dalembert.model.mechanism.mechanism import Mechanism

SMALL = SMALL_ANGLE**2
Column = list[Scalar]


def trace_integrate(mechanism: Mechanism) -> ca.Function:
    """Return q, v -> q exp(v)."""
    return _trace(mechanism, "integrate", {"q": mechanism.nq, "v": mechanism.nv}, "q_next", INTEGRATE, _add)


def trace_difference(mechanism: Mechanism) -> ca.Function:
    """Return q0, q1 -> log(q0^-1 q1)."""
    return _trace(mechanism, "difference", {"q0": mechanism.nq, "q1": mechanism.nq}, "v", DIFFERENCE, _subtract)


def trace_rate(mechanism: Mechanism) -> ca.Function:
    """Return q, v -> dq/dt."""
    rates = {name: kind.rate for name, kind in KINDS.items()}
    return _trace(mechanism, "rate", {"q": mechanism.nq, "v": mechanism.nv}, "dq", rates, _add)


def _trace(
    mechanism: Mechanism,
    name: str,
    inputs: dict[str, int],
    output: str,
    table: dict[str, Callable[..., Column]],
    otherwise: Callable[[Column, Column], Column],
) -> ca.Function:
    """Return a function of two columns that is computed joint by joint."""
    first, second = (ca.SX.sym(letter, size) for letter, size in inputs.items())
    index_second = mechanism.index_v if "v" in inputs else mechanism.index_q
    result: Column = []
    for joint in mechanism.joints:
        x = ca.vertsplit(first[mechanism.index_q(joint.name)]) if KINDS[joint.kind].nq else []
        y = ca.vertsplit(second[index_second(joint.name)]) if KINDS[joint.kind].nq else []
        result += table.get(joint.kind, otherwise)(x, y)
    column = as_expression(result) if result else ca.SX(0, 1)
    return ca.Function(name, [first, second], [column], list(inputs), [output])


def _add(q: Column, v: Column) -> Column:
    return [a + b for a, b in zip(q, v, strict=True)]


def _subtract(q0: Column, q1: Column) -> Column:
    return [b - a for a, b in zip(q0, q1, strict=True)]


# ----------------------------------------------------------------------------------------------------------------------
# Functions of the square of an angle.


def _of_square(s: Scalar, far: Callable[[Any], Any], series: Sequence[float]) -> Any:
    """Return far(t), or below `SMALL` the series in s; far never sees an angle of zero."""
    small = s < SMALL
    near: Any = 0.0
    for c in reversed(series):
        near = near * s + c
    return ca.if_else(small, near, far(ca.sqrt(ca.if_else(small, 1.0, s))))


def _sinc(s: Scalar) -> Any:
    """Return sin t / t."""
    return _of_square(s, lambda t: ca.sin(t) / t, (1.0, -1 / 6, 1 / 120, -1 / 5040))


def _cos(s: Scalar) -> Any:
    """Return cos t."""
    return _of_square(s, ca.cos, (1.0, -1 / 2, 1 / 24, -1 / 720, 1 / 40320))


def _versine(s: Scalar) -> Any:
    """Return (1 - cos t) / t^2, by half angles so that it keeps its digits."""
    return _sinc(s / 4) ** 2 / 2


def _cubic(s: Scalar) -> Any:
    """Return (t - sin t) / t^3."""
    return _of_square(s, lambda t: (t - ca.sin(t)) / t**3, (1 / 6, -1 / 120, 1 / 5040))


def _cotangent(s: Scalar) -> Any:
    """Return (1 - t/2 cot(t/2)) / t^2."""
    return _of_square(s, lambda t: (1 - t / 2 / ca.tan(t / 2)) / t**2, (1 / 12, 1 / 720, 1 / 30240))


# ----------------------------------------------------------------------------------------------------------------------
# Circle, plane, rotations, screws.


def _unit(q: Column) -> Column:
    norm = ca.sqrt(sum(x * x for x in q))
    return [x / norm for x in q]


def _turn(q: Column, angle: Scalar) -> Column:
    c, s = ca.cos(angle), ca.sin(angle)
    return _unit([q[0] * c - q[1] * s, q[0] * s + q[1] * c])


def _between(q0: Column, q1: Column) -> Scalar:
    return ca.atan2(q0[0] * q1[1] - q0[1] * q1[0], q0[0] * q1[0] + q0[1] * q1[1])


def _planar_integrate(q: Column, v: Column) -> Column:
    s = v[2] * v[2]
    a, b = _sinc(s), v[2] * _versine(s)
    dx, dy = a * v[0] - b * v[1], b * v[0] + a * v[1]
    c, n = q[2], q[3]
    return [q[0] + c * dx - n * dy, q[1] + n * dx + c * dy, *_turn(q[2:], v[2])]


def _planar_difference(q0: Column, q1: Column) -> Column:
    angle = _between(q0[2:], q1[2:])
    dx, dy = q1[0] - q0[0], q1[1] - q0[1]
    c, n = q0[2], q0[3]
    x, y = c * dx + n * dy, c * dy - n * dx
    half, cot = angle / 2, 1 - angle * angle * _cotangent(angle * angle)
    return [cot * x + half * y, cot * y - half * x, angle]


def _product(a: Column, b: Column) -> Column:
    """Return the quaternion a b."""
    return [
        a[3] * b[0] + a[0] * b[3] + a[1] * b[2] - a[2] * b[1],
        a[3] * b[1] - a[0] * b[2] + a[1] * b[3] + a[2] * b[0],
        a[3] * b[2] + a[0] * b[1] - a[1] * b[0] + a[2] * b[3],
        a[3] * b[3] - a[0] * b[0] - a[1] * b[1] - a[2] * b[2],
    ]


def _square(w: Column) -> Scalar:
    return w[0] * w[0] + w[1] * w[1] + w[2] * w[2]


def _cross(a: Column, b: Column) -> Column:
    return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]


def _spherical_integrate(q: Column, w: Column) -> Column:
    quarter = _square(w) / 4
    factor = _sinc(quarter) / 2
    return _unit(_product(q, [factor * w[0], factor * w[1], factor * w[2], _cos(quarter)]))


def _spherical_difference(q0: Column, q1: Column) -> Column:
    x, y, z, w = _unit(_product([-q0[0], -q0[1], -q0[2], q0[3]], q1))
    sign = ca.if_else(w < 0, -1.0, 1.0)
    x, y, z, w = (sign * entry for entry in (x, y, z, w))
    n = _square([x, y, z])
    small = n < SMALL
    length, cosine = ca.sqrt(ca.if_else(small, 1.0, n)), ca.if_else(small, w, 1.0)
    r = n / cosine**2
    near = 2 / cosine * (1 + r * (-1 / 3 + r * (1 / 5 - r / 7)))
    factor = ca.if_else(small, near, 2 * ca.atan2(length, w) / length)
    return [factor * x, factor * y, factor * z]


def _rotated(q: Column, x: Column, transposed: bool = False) -> Column:
    R = rotation_rows(*q)
    return [sum(R[k][i] * x[k] if transposed else R[i][k] * x[k] for k in range(3)) for i in range(3)]


def _screw(w: Column, x: Column, first: Scalar, second: Scalar) -> Column:
    """Return x + first [w]x x + second [w]x [w]x x."""
    once = _cross(w, x)
    twice = _cross(w, once)
    return [x[i] + first * once[i] + second * twice[i] for i in range(3)]


def _free_integrate(q: Column, v: Column) -> Column:
    linear, angular = v[:3], v[3:]
    s = _square(angular)
    moved = _rotated(q[3:], _screw(angular, linear, _versine(s), _cubic(s)))
    return [*(a + b for a, b in zip(q[:3], moved, strict=True)), *_spherical_integrate(q[3:], angular)]


def _free_difference(q0: Column, q1: Column) -> Column:
    angular = _spherical_difference(q0[3:], q1[3:])
    moved = _rotated(q0[3:], [b - a for a, b in zip(q0[:3], q1[:3], strict=True)], transposed=True)
    return [*_screw(angular, moved, -0.5, _cotangent(_square(angular))), *angular]


INTEGRATE: dict[str, Callable[[Column, Column], Column]] = {
    "continuous": lambda q, v: _turn(q, v[0]),
    "planar": _planar_integrate,
    "spherical": _spherical_integrate,
    "free": _free_integrate,
}
"""By kind of joint; all other kinds add."""

DIFFERENCE: dict[str, Callable[[Column, Column], Column]] = {
    "continuous": lambda q0, q1: [_between(q0, q1)],
    "planar": _planar_difference,
    "spherical": _spherical_difference,
    "free": _free_difference,
}
"""By kind of joint; all other kinds subtract."""
