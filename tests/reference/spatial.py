"""Spatial vectors as arrays (6,), order [linear, angular].

Symbols (Featherstone 2008, ch. 2, with the two halves exchanged): X motion transform (6, 6) from A to B for a frame B
that stands at (R, p) in A, v_B = X v_A; forces go back with f_A = X^T f_B; crm(v) u = v x u for motions, crf(v) f = v
x* f for forces, crf(v) = -crm(v)^T.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

Array = np.ndarray


def skew(x: Float[Array, " 3"]) -> Float[Array, "3 3"]:
    """Return [x]: [x] y = x x y."""
    return np.array([[0, -x[2], x[1]], [x[2], 0, -x[0]], [-x[1], x[0], 0]])


def transform(R: Float[Array, "3 3"], p: Float[Array, " 3"]) -> Float[Array, "6 6"]:
    """Return X: v_B = R^T (v_A + w_A x p), w_B = R^T w_A."""
    return np.block([[R.T, -R.T @ skew(p)], [np.zeros((3, 3)), R.T]])


def crm(v: Float[Array, " 6"]) -> Float[Array, "6 6"]:
    """Return the matrix of v x for motions."""
    linear, angular = skew(v[:3]), skew(v[3:])
    return np.block([[angular, linear], [np.zeros((3, 3)), angular]])


def crf(v: Float[Array, " 6"]) -> Float[Array, "6 6"]:
    """Return the matrix of v x* for forces."""
    return -crm(v).T
