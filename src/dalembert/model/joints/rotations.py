"""Unit quaternions, the unit circle and rotations about an axis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.model.joints.kind import Rows
from dalembert.model.limits import SMALL_ANGLE
from dalembert.types import Array, Scalar

if TYPE_CHECKING:
    from jaxtyping import Float

# ----------------------------------------------------------------------------------------------------------------------
# Unit quaternions [x y z w] and rigid motions: exponential and logarithm, over leading axes.
#
# Symbols: w rotation vector (axis times angle), t = |w|; q = [sin(t/2) w/t, cos(t/2)];
# V(w) = 1 + (1 - cos t)/t^2 [w]x + (t - sin t)/t^3 [w]x^2, the left Jacobian of SO(3)
# (Sola, Deray, Atchuthan 2018, "A micro Lie theory", app. B and D).


def product(a: Float[Array, "*n 4"], b: Float[Array, "*n 4"]) -> Float[Array, "*n 4"]:
    """Return a b, the quaternion with R(a b) = R(a) R(b)."""
    u, s = a[..., :3], a[..., 3:]
    w, t = b[..., :3], b[..., 3:]
    vector = s * w + t * u + np.cross(u, w)
    return np.concatenate([vector, s * t - (u * w).sum(-1, keepdims=True)], axis=-1)


def conjugate(a: Float[Array, "*n 4"]) -> Float[Array, "*n 4"]:
    """Return the quaternion of the inverse rotation."""
    return a * np.array([-1.0, -1.0, -1.0, 1.0])


def unit_quaternion(a: Float[Array, "*n 4"]) -> Float[Array, "*n 4"]:
    """Return a / |a|; zero, which is no rotation, gives NaN without a warning."""
    norm = np.linalg.norm(a, axis=-1, keepdims=True)
    return np.divide(a, norm, out=np.full(np.broadcast(a, norm).shape, np.nan), where=norm > 0)


def exponential(w: Float[Array, "*n 3"]) -> Float[Array, "*n 4"]:
    """Return the quaternion of a rotation vector."""
    half = 0.5 * np.linalg.norm(w, axis=-1, keepdims=True)
    return np.concatenate([0.5 * np.sinc(half / np.pi) * w, np.cos(half)], axis=-1)


def logarithm(a: Float[Array, "*n 4"]) -> Float[Array, "*n 3"]:
    """Return the rotation vector of a unit quaternion, of length at most pi.

    The angle comes from atan2(|xyz|, |w|), which keeps its digits next to 0 and next to pi.
    """
    a = np.where(a[..., 3:] < 0, -a, a)
    vector, w = a[..., :3], a[..., 3:]
    n = np.linalg.norm(vector, axis=-1, keepdims=True)
    safe = np.where(n > 0, n, 1.0)
    return vector * np.where(n > 0, 2 * np.arctan2(n, w) / safe, 2.0)


def rotate(a: Float[Array, "*n 4"], x: Float[Array, "*n 3"]) -> Float[Array, "*n 3"]:
    """Return R(a) x."""
    twice = 2 * np.cross(a[..., :3], x)
    return x + a[..., 3:] * twice + np.cross(a[..., :3], twice)


def left_jacobian(w: Float[Array, "*n 3"], x: Float[Array, "*n 3"]) -> Float[Array, "*n 3"]:
    """Return V(w) x: the displacement of a body that turns by w while it moves by x in its own axes."""
    t = np.linalg.norm(w, axis=-1, keepdims=True)
    safe = np.where(t > SMALL_ANGLE, t, 1.0)
    second = np.where(t > SMALL_ANGLE, (safe - np.sin(safe)) / safe**3, 1 / 6 - t**2 / 120 + t**4 / 5040)
    turned = np.cross(w, x)
    return x + 0.5 * np.sinc(t / (2 * np.pi)) ** 2 * turned + second * np.cross(w, turned)


def left_jacobian_inverse(w: Float[Array, "*n 3"], x: Float[Array, "*n 3"]) -> Float[Array, "*n 3"]:
    """Return V(w)^-1 x = x - [w]x x / 2 + (1 - t/2 cot(t/2)) / t^2 [w]x^2 x, for t <= pi."""
    t = np.linalg.norm(w, axis=-1, keepdims=True)
    safe = np.where(t > SMALL_ANGLE, t, 1.0)
    exact = (1 - safe / 2 * np.cos(safe / 2) / np.sin(safe / 2)) / safe**2
    second = np.where(t > SMALL_ANGLE, exact, 1 / 12 + t**2 / 720 + t**4 / 30240)
    turned = np.cross(w, x)
    return x - 0.5 * turned + second * np.cross(w, turned)


def random_unit(rng: np.random.Generator, size: tuple[int, ...]) -> Float[Array, "*n 4"]:
    """Return quaternions of rotations that are uniform on SO(3), (*size, 4)."""
    return unit_quaternion(rng.standard_normal((*size, 4)))


def rotation_rows(x: Scalar, y: Scalar, z: Scalar, w: Scalar) -> Rows:
    """Return R of a unit quaternion as nested lists of scalars."""
    tx, ty, tz = 2 * x, 2 * y, 2 * z
    return [
        [1 - (ty * y + tz * z), tx * y - tz * w, tx * z + ty * w],
        [tx * y + tz * w, 1 - (tx * x + tz * z), ty * z - tx * w],
        [tx * z - ty * w, ty * z + tx * w, 1 - (tx * x + ty * y)],
    ]


def rate(q: list[Scalar], w: list[Scalar]) -> list[Scalar]:
    """Return dq/dt = q [w, 0] / 2 for the angular velocity w in the turned axes."""
    x, y, z, s = (0.5 * entry for entry in q)
    return [
        s * w[0] + y * w[2] - z * w[1],
        s * w[1] + z * w[0] - x * w[2],
        s * w[2] + x * w[1] - y * w[0],
        -(x * w[0] + y * w[1] + z * w[2]),
    ]


# ----------------------------------------------------------------------------------------------------------------------
# The circle: angles as (cos, sin), over leading axes.


def at(angle: Any) -> Float[Array, "*n 2"]:
    """Return (cos, sin) of angles."""
    return np.stack([np.cos(angle), np.sin(angle)], axis=-1)


def turn(q: Float[Array, "*n 2"], angle: Float[Array, "*n"]) -> Float[Array, "*n 2"]:
    """Return q turned by angles; made unit, so that many small steps do not add up their rounding."""
    c, s = np.cos(angle), np.sin(angle)
    return unit_circle(np.stack([q[..., 0] * c - q[..., 1] * s, q[..., 0] * s + q[..., 1] * c], axis=-1))


def between(q0: Float[Array, "*n 2"], q1: Float[Array, "*n 2"]) -> Float[Array, "*n"]:
    """Return the angle from q0 to q1, in (-pi, pi]."""
    cross = q0[..., 0] * q1[..., 1] - q0[..., 1] * q1[..., 0]
    return np.arctan2(cross, q0[..., 0] * q1[..., 0] + q0[..., 1] * q1[..., 1])


def unit_circle(q: Float[Array, "*n 2"]) -> Float[Array, "*n 2"]:
    """Return q / |q|; zero, which is no direction, gives NaN without a warning."""
    norm = np.hypot(q[..., 0], q[..., 1])[..., None]
    return np.divide(q, norm, out=np.full(q.shape, np.nan), where=norm > 0)


# ----------------------------------------------------------------------------------------------------------------------
# Rotation about a constant axis, and the directions of a plane, as nested lists of scalars.
#
# Symbols: a unit axis, c and s cosine and sine of the angle:  R = a a^T + c (1 - a a^T) + s [a]x  (Rodrigues).


def about(axis: Any, c: Scalar, s: Scalar) -> Rows:
    """Return R, (3, 3); entries that do not depend on the angle are floats."""
    a = [float(x) for x in axis]
    skew = [[0.0, -a[2], a[1]], [a[2], 0.0, -a[0]], [-a[1], a[0], 0.0]]
    return [[_entry(a[i] * a[j], float(i == j), skew[i][j], c, s) for j in range(3)] for i in range(3)]


def _entry(along: float, unit: float, skew: float, c: Scalar, s: Scalar) -> Scalar:
    """Return along + (unit - along) c + skew s, without the terms that vanish."""
    terms: list[Scalar] = [along] if along else []
    if unit != along:
        terms.append(c if unit - along == 1.0 else (unit - along) * c)
    if skew:
        terms.append(s if skew == 1.0 else -s if skew == -1.0 else skew * s)
    if not terms:
        return 0.0
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


def scaled(axis: Any, factor: Scalar) -> list[Scalar]:
    """Return axis * factor, (3,); zeros stay floats."""
    return [0.0 if not x else factor if x == 1.0 else float(x) * factor for x in axis]


def column(linear: Any, angular: Any) -> list[Scalar]:
    """Return a spatial vector [linear; angular], (6,)."""
    return [*linear, *angular]


def as_columns(*columns: list[Scalar]) -> Rows:
    """Return the matrix with these columns."""
    return [list(row) for row in zip(*columns, strict=True)]


def plane(axis: Any) -> tuple[list[float], list[float]]:
    """Return directions e1, e2 of the plane with normal `axis`, so that e1, e2, axis are right-handed.

    e1 is the projection of the coordinate axis that follows the one nearest to the normal: the plane of z has
    (x, y), that of x has (y, z), that of y has (z, x).
    """
    normal = np.asarray(axis, dtype=float)
    e1 = np.eye(3)[(int(np.argmax(np.abs(normal))) + 1) % 3]
    e1 = e1 - normal * (normal @ e1)
    e1 = e1 / np.linalg.norm(e1)
    return [float(x) for x in e1], [float(x) + 0.0 for x in np.cross(normal, e1)]
