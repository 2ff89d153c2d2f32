"""Unit quaternions [x y z w] and rigid motions: exponential and logarithm, over leading axes.

Symbols: w rotation vector (axis times angle), t = |w|; q = [sin(t/2) w/t, cos(t/2)];
V(w) = 1 + (1 - cos t)/t^2 [w]x + (t - sin t)/t^3 [w]x^2, the left Jacobian of SO(3)
(Sola, Deray, Atchuthan 2018, "A micro Lie theory", app. B and D).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dalembert.model.joints.kind import Rows, Scalar

if TYPE_CHECKING:
    from jaxtyping import Float

Array = np.ndarray

SMALL = 1e-2
"""Angles below this go through series: their first omitted term is then below rounding."""


def product(a: Float[Array, "*n 4"], b: Float[Array, "*n 4"]) -> Float[Array, "*n 4"]:
    """Return a b, the quaternion with R(a b) = R(a) R(b)."""
    u, s = a[..., :3], a[..., 3:]
    w, t = b[..., :3], b[..., 3:]
    vector = s * w + t * u + np.cross(u, w)
    return np.concatenate([vector, s * t - (u * w).sum(-1, keepdims=True)], axis=-1)


def conjugate(a: Float[Array, "*n 4"]) -> Float[Array, "*n 4"]:
    """Return the quaternion of the inverse rotation."""
    return a * np.array([-1.0, -1.0, -1.0, 1.0])


def unit(a: Float[Array, "*n 4"]) -> Float[Array, "*n 4"]:
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
    safe = np.where(t > SMALL, t, 1.0)
    second = np.where(t > SMALL, (safe - np.sin(safe)) / safe**3, 1 / 6 - t**2 / 120 + t**4 / 5040)
    turned = np.cross(w, x)
    return x + 0.5 * np.sinc(t / (2 * np.pi)) ** 2 * turned + second * np.cross(w, turned)


def left_jacobian_inverse(w: Float[Array, "*n 3"], x: Float[Array, "*n 3"]) -> Float[Array, "*n 3"]:
    """Return V(w)^-1 x = x - [w]x x / 2 + (1 - t/2 cot(t/2)) / t^2 [w]x^2 x, for t <= pi."""
    t = np.linalg.norm(w, axis=-1, keepdims=True)
    safe = np.where(t > SMALL, t, 1.0)
    exact = (1 - safe / 2 * np.cos(safe / 2) / np.sin(safe / 2)) / safe**2
    second = np.where(t > SMALL, exact, 1 / 12 + t**2 / 720 + t**4 / 30240)
    turned = np.cross(w, x)
    return x - 0.5 * turned + second * np.cross(w, turned)


def random_unit(rng: np.random.Generator, size: tuple[int, ...]) -> Float[Array, "*n 4"]:
    """Return quaternions of rotations that are uniform on SO(3), (*size, 4)."""
    return unit(rng.standard_normal((*size, 4)))


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
