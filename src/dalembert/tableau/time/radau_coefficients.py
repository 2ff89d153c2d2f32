"""Radau IIA of order 5: nodes, inverse of the Runge-Kutta matrix, and its real form.

A^-1 = T diag(gamma, [[a, -b], [b, a]]) T^-1 splits the stage equations into one real system with the leading
coefficient gamma / h and one complex with (a + i b) / h. Found from the nodes here, not typed. Source: E. Hairer, G.
Wanner, "Solving Ordinary Differential Equations II", secs. IV.5 and IV.8.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray


class Radau(NamedTuple):
    """Coefficients; E weighs the stages in the error estimate."""

    c: Array
    W: Array
    T: Array
    T_inverse: Array
    gamma: float
    a: float
    b: float
    E: Array


@cache
def radau() -> Radau:
    """Return the coefficients."""
    root = np.sqrt(6.0)
    c = np.array([(4 - root) / 10, (4 + root) / 10, 1.0])
    powers = c[:, None] ** np.arange(3)
    A = (powers * c[:, None] / np.arange(1, 4)) @ np.linalg.inv(powers)
    W = np.linalg.inv(A)
    found: Any = np.linalg.eig(W)
    values, vectors = found
    real, upper = int(np.argmin(np.abs(values.imag))), int(np.argmax(values.imag))
    gamma, a, b = values[real].real, values[upper].real, values[upper].imag
    v = vectors[:, upper]
    # W (Re v) = a Re v - b Im v, W (Im v) = b Re v + a Im v
    T = np.stack([vectors[:, real].real, v.real, -v.imag], axis=1)
    E = np.array([-13 - 7 * root, -13 + 7 * root, -1.0]) / 3
    return Radau(c, W, T, np.linalg.inv(T), float(gamma), float(a), float(b), E)
