"""Interior points on the cones of friction in plain NumPy: the twin of `interior_kernel.py`, dense.

Symbols as there, all contacts at once: x, z (k, 3) in the second-order cones, R (3 k, n) rows in cone units over the
root of the mass, y = R^T x, h (k, 3), V the scaling of Nesterov and Todd (k, 3, 3), e the axes of the cones.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

Array = np.ndarray

SIGNS = np.array([1.0, -1.0, -1.0])


def interior_plain(
    J: Float[Array, "p n"], g: Float[Array, " p"], mu: Float[Array, " k"], coulomb: bool, steps: int, near: float = 0.99
) -> Float[Array, "k 3"]:
    """Return reactions after so many steps; contacts in planes, unilateral, at rest, mu > 0."""
    k, n = mu.size, J.shape[1]
    unit = np.column_stack([1.0 / mu, np.ones((k, 2))])
    R, h = unit.reshape(-1, 1) * J, unit * g.reshape(k, 3)
    e = np.tile([1.0, 0.0, 0.0], (k, 1))
    size = np.abs(h).max()
    x, z = 3.0 * k * size / np.sum(R * R) * e, size * e
    y = R.T @ x.ravel()
    for _ in range(steps):
        u = (R @ y).reshape(k, 3) + h
        shift, tilt = np.linalg.norm(u[:, 1:], axis=1), np.zeros((k, 3, 3))
        if coulomb:
            tilt[:, 0, 1:] = u[:, 1:] / (shift + 1e-300)[:, None]
            u = u + shift[:, None] * e
        missed, apart = u - z, R.T @ x.ravel() - y
        V = _scaling(x, z)
        inverse = np.linalg.inv(V)
        D = inverse @ inverse
        tilted = ((np.eye(3) + tilt) @ R.reshape(k, 3, n)).reshape(3 * k, n)
        A = np.eye(n) + R.T @ (D @ tilted.reshape(k, 3, n)).reshape(3 * k, n)
        lam = _each(inverse, z)
        data = R, tilted, A, inverse, D, missed, apart
        dx, dz, _ = _direction(-lam, *data)
        step = min(1.0, _reach(x, dx), _reach(z, dz))
        centre = np.sum(x * z) / k * (1.0 - step) ** 3 * e
        right = centre - _product(lam, lam) - _product(_each(V, dx), _each(inverse, dz))
        dx, dz, dy = _direction(np.linalg.solve(_arrow(lam), right[:, :, None])[:, :, 0], *data)
        step = min(1.0, near * min(_reach(x, dx), _reach(z, dz)))
        x, z, y = x + step * dx, z + step * dz, y + step * dy
        if coulomb:
            u = (R @ y).reshape(k, 3) + h
            raised = u[:, 0] + np.linalg.norm(u[:, 1:], axis=1) - (1.0 - step) * missed[:, 0]
            z[:, 0] = np.maximum(z[:, 0], raised)
    return unit * x


def _direction(c, R, tilted, A, inverse, D, missed, apart) -> tuple[Array, Array, Array]:
    """Return dx, dz, dy for a right side c."""
    dy = np.linalg.solve(A, R.T @ (_each(inverse, c) - _each(D, missed)).ravel() + apart)
    dz = missed + (tilted @ dy).reshape(c.shape)
    return _each(inverse, c - _each(inverse, dz)), dz, dy


def _each(B: Array, x: Array) -> Array:
    return (B @ x[:, :, None])[:, :, 0]


def _product(x: Array, z: Array) -> Array:
    """Return the Jordan product."""
    return _each(_arrow(x), z)


def _arrow(x: Array) -> Array:
    """Return the matrix of the Jordan product by x."""
    out = x[:, :1, None] * np.eye(3)
    out[:, 0, 1:] = out[:, 1:, 0] = x[:, 1:]
    return out


def _root(x: Array) -> Array:
    return np.sqrt(x[:, 0] ** 2 - np.sum(x[:, 1:] ** 2, axis=1))


def _scaling(x: Array, z: Array) -> Array:
    """Return V with V x = V^-1 z."""
    a, b = x / _root(x)[:, None], z / _root(z)[:, None]
    v = (b + SIGNS * a) / np.sqrt(2.0 + 2.0 * np.sum(a * b, axis=1))[:, None]
    v = (v + np.array([1.0, 0.0, 0.0])) / np.sqrt(2.0 * (v[:, :1] + 1.0))
    eta = np.sqrt(_root(z) / _root(x))
    return eta[:, None, None] * (2.0 * v[:, :, None] * v[:, None, :] - np.diag(SIGNS))


def _reach(x: Array, dx: Array) -> float:
    """Return the longest step that keeps x in the cones: the least positive root of det(x + step dx), by cone."""
    longest = 1e3
    for p, d in zip(x, dx, strict=True):
        roots = np.roots([np.sum(SIGNS * d * d), 2.0 * np.sum(SIGNS * p * d), np.sum(SIGNS * p * p)])
        real = roots.real[(np.abs(roots.imag) <= 1e-12 * np.abs(roots)) & (roots.real > 0.0)]
        longest = min(longest, real.min(initial=np.inf))
    return longest
