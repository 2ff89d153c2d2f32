"""The circle: angles as (cos, sin), over leading axes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Float

Array = np.ndarray


def at(angle: Any) -> Float[Array, "*n 2"]:
    """Return (cos, sin) of angles."""
    return np.stack([np.cos(angle), np.sin(angle)], axis=-1)


def turn(q: Float[Array, "*n 2"], angle: Float[Array, "*n"]) -> Float[Array, "*n 2"]:
    """Return q turned by angles; made unit, so that many small steps do not add up their rounding."""
    c, s = np.cos(angle), np.sin(angle)
    return unit(np.stack([q[..., 0] * c - q[..., 1] * s, q[..., 0] * s + q[..., 1] * c], axis=-1))


def between(q0: Float[Array, "*n 2"], q1: Float[Array, "*n 2"]) -> Float[Array, "*n"]:
    """Return the angle from q0 to q1, in (-pi, pi]."""
    cross = q0[..., 0] * q1[..., 1] - q0[..., 1] * q1[..., 0]
    return np.arctan2(cross, q0[..., 0] * q1[..., 0] + q0[..., 1] * q1[..., 1])


def unit(q: Float[Array, "*n 2"]) -> Float[Array, "*n 2"]:
    """Return q / |q|; zero, which is no direction, gives NaN without a warning."""
    norm = np.hypot(q[..., 0], q[..., 1])[..., None]
    return np.divide(q, norm, out=np.full(q.shape, np.nan), where=norm > 0)
