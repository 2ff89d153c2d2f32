"""Gauss' principle of least constraint (seed 001, eq. 7)."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

Array = np.ndarray


def gauss_function(
    M: Float[Array, "*batch n n"],
    acceleration: Float[Array, "*batch2 n"],
    unconstrained: Float[Array, "*batch3 n"],
) -> Float[Array, "*batch4"] | float:
    """Return G = (a - a0)^T M (a - a0) / 2, the "acceleration energy" of the constraint.

    Among all accelerations that meet the constraints the true one has the least G; a0 = M^-1 f is the acceleration
    without them. `KKT.solve` returns that minimiser.
    """
    difference = np.asarray(acceleration) - unconstrained
    return 0.5 * np.einsum("...i,...ij,...j->...", difference, M, difference)
