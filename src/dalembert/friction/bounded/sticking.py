"""Accelerations with sticking contacts as constraints: at rest to the last digit, however light the bodies.

Symbols: rows R of constraints and sticking contacts, M = D^-1 (unit diagonal) D^-1, E the sizes of R D.

    [ D M D    (E R D)^T ] [ D^-1 a ]   [ D load   ]
    [ E R D        0     ] [ ...    ] = [ -E drift ]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dalembert.friction.limits import DEPENDENT_STICKING, HOLDS
from dalembert.kkt.rows import pivoted_rows
from dalembert.types import Array

if TYPE_CHECKING:
    from jaxtyping import Float


def independent_sticking(rows: Float[Array, "r n"]) -> Array:
    """Return the numbers of a largest set of independent rows of constraints and sticking contacts, at unit size."""
    if not rows.size:
        return np.zeros(0, dtype=int)
    size = np.abs(rows).max(axis=1)
    return pivoted_rows(rows / np.where(size > 0.0, size, 1.0)[:, None], tolerance=DEPENDENT_STICKING)


def held_by(M: Float[Array, "n n"], rows: Float[Array, "r n"], load: Array, drift: Array) -> Float[Array, " n"]:
    """Return the acceleration with independent rows, M definite: the block matrix at unit diagonal, refined once.

    As many rows as coordinates leave no mass in it. NaN where the residual is above rounding.
    """
    n, r = M.shape[0], len(rows)
    if r == n:
        return np.linalg.solve(rows, -drift) + 0.0
    d = 1.0 / np.sqrt(M.diagonal())
    scaled = rows * d
    e = 1.0 / np.abs(scaled).max(axis=1)
    K, scale = np.zeros((n + r, n + r)), np.concatenate([d, e])
    K[:n, :n], K[n:, :n] = M * d * d[:, None], scaled * e[:, None]
    K[:n, n:] = K[n:, :n].T
    b = scale * np.concatenate([load, -drift])
    try:
        inverse = np.linalg.inv(K)
    except np.linalg.LinAlgError:
        return np.full(n, np.nan)
    x = inverse @ b
    x = x + inverse @ (b - K @ x)
    sound = np.abs(b - K @ x) <= HOLDS * (np.abs(K) @ np.abs(x) + np.abs(b))
    return d * x[:n] if sound.all() else np.full(n, np.nan)
