"""Massless limbs: on the ground they are levers, in the air they are held (seed 000, after eq. 35; its [3], A5, A6).

Symbols: N basis of null(M) within null(A): motions without momentum; R contact rows that see them, R N != 0.

While those contacts stay, R a = c is known, and M + rho R^T R in place of M has the same motions and forces, for any
rho > 0, and is definite where the contacts cover all of N (condition 33). What they do not cover is held: H^T v = 0.
Nothing resists a limb without mass, so it lands without rebound, and its foot must not be pushed out of its cone.
Source: A. M. Johnson, S. E. Burden, D. E. Koditschek, Int. J. Robotics Research 35 (2016) 1354-1392.
"""

from __future__ import annotations

import numpy as np

from dalembert.kkt import KKT

Array = np.ndarray

SEEN = 1e-9
"""Contact rows whose entries along massless motions are below this part of the row do not see them."""


class Limbs:
    """What of a mechanism has no mass; `any` is False for most, and then nothing is done."""

    def __init__(self, M: Array) -> None:
        n = M.shape[0]
        self.any = bool(n) and free_motion(M, np.zeros((0, n))).shape[1] > 0

    def seen_by(self, M: Array, A: Array, W: Array) -> Array:
        """Return which contacts, three rows each in W, touch with a limb without mass."""
        k = W.shape[0] // 3
        if not self.any:
            return np.zeros(k, bool)
        along = np.abs(W @ free_motion(M, A)).max(axis=1, initial=0.0)
        return (along > SEEN * np.abs(W).max(axis=1, initial=0.0)).reshape(k, 3).any(axis=1)

    def held(self, M: Array, rows: Array) -> Array:
        """Return rows H^T (j, n) of the motions without mass that `rows` allow."""
        n = M.shape[0]
        return free_motion(M, rows).T if self.any else np.zeros((0, n))


def free_motion(M: Array, rows: Array) -> Array:
    """Return a basis (n, j) of null(M) within null(rows)."""
    return KKT(M, rows).analysis.motion.free


def stiffened(M: Array, R: Array) -> tuple[Array, float]:
    """Return M + rho R^T R, and rho of the size of the masses."""
    if not R.shape[0]:
        return M, 0.0
    rho = float(np.trace(M)) / M.shape[0] / float((R * R).sum(axis=1).max())
    return M + rho * R.T @ R, rho
