"""Random bounded problems of the hard kinds: redundant contacts, mass ratios to 1e8, zero and equal limits."""

from __future__ import annotations

import numpy as np

Array = np.ndarray


def bounded(rng: np.random.Generator, spread: float = 4.0) -> tuple[Array, Array, Array, Array]:
    """Return M, f, W and limits."""
    n, m = int(rng.integers(1, 7)), int(rng.integers(1, 11))
    W = rng.integers(-2, 3, (n, m)).astype(float)
    if rng.random() < 0.5:
        W = W @ (rng.random((m, m)) < 0.4)
    M = np.diag(10.0 ** rng.uniform(-spread, spread, n))
    f = rng.normal(size=n) * 10.0 ** rng.uniform(-2, 2)
    limits = rng.choice([0.0, 1.0, 1.0, 5.0 * rng.random()], m)
    return M, f, W, limits


def cone(rng: np.random.Generator, contacts: int, mu: float = 0.5) -> tuple[Array, Array, Array]:
    """Return a definite Delassus matrix, g and coefficients of contacts in planes."""
    n = max(6, 3 * contacts + 2)
    H, M = rng.normal(size=(3 * contacts, n)), rng.uniform(0.5, 2.0, n)
    return (H / M) @ H.T, H @ rng.normal(size=n), np.full(contacts, mu)


def stack_rows(rng: np.random.Generator, contacts: int) -> tuple[Array, Array, Array]:
    """Return boxes on each other, four points of contact each, with unequal coefficients: rows over the root of M."""
    bodies = max(1, contacts // 4)
    H = np.zeros((contacts, 3, bodies, 6))
    for c in range(contacts):
        x, y, z = 0.5 * rng.normal(size=3)
        turn = np.array([[0, z, -y], [-z, 0, x], [y, -x, 0]])
        b = c // 4 % bodies
        H[c, :, b] = np.hstack([np.eye(3), turn])[[2, 0, 1]]
        if b:
            H[c, :, b - 1] = -H[c, :, b]
    H = H.reshape(3 * contacts, 6 * bodies)
    mass = np.tile([1.0, 1.0, 1.0, 0.1, 0.1, 0.1], bodies)
    v = np.tile([0.0, 0.0, -0.1, 0.0, 0.0, 0.0], bodies) + 0.05 * rng.normal(size=6 * bodies)
    return H / np.sqrt(mass), H @ v, rng.uniform(0.2, 0.9, contacts)


def stack(rng: np.random.Generator, contacts: int) -> tuple[Array, Array, Array]:
    """Return the same as a Delassus matrix, sparse and redundant."""
    J, g, mu = stack_rows(rng, contacts)
    return J @ J.T, g, mu
