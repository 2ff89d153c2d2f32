"""The Delassus matrix of a large mechanism: itself, its factor, and its inverse times a vector without forming it.

Symbols: G = A M^-1 A^T (m, m); L unit lower triangular, D diagonal; delta shift of redundant rows, as in
`tree/routes/delassus_kernels.py`.

    G e_k               A a with M a = A^T e_k: one run of the articulated-body algorithm
    G + delta = L D L^T no shift where every pivot is well above zero
    G x = b             M a + A^T x = 0, A a = -b: the block system with its fronts
"""

from __future__ import annotations

import numpy as np

from dalembert.errors import ModelError
from dalembert.kkt import Status
from dalembert.tree.large.balance import forget_rounding
from dalembert.tree.large.constrained import LargeSystem
from dalembert.tree.large.progress import progress

Array = np.ndarray

OUTSIDE = 4
"""Times that a right side outside the range of G is brought into it: the first leaves 1e-6 of it, the third nothing."""


def refuse_no_delassus(system: LargeSystem) -> None:
    """Refuse a tree with a motion without mass, whose M has no inverse."""
    if system.massless is not None:
        raise ModelError(
            f"nothing resists the coordinate {system.massless!r} of the open tree of "
            f"{system.layout.mechanism.name!r}, so M has no inverse and A M^-1 A^T no value; 'delassus_solve', 'kkt' "
            "and 'forward' solve the block form, or give the link mass or its joint armature"
        )


def delassus_matrix(system: LargeSystem, q: Array, t: float) -> Array:
    """Return G (m, m), one column after the other."""
    m = system.rows.m
    G, values = np.zeros((m, m)), system.still(q, t)
    for k in progress(range(m), "delassus"):
        G[:, k] = system.move_rows(values, system.tree.yielding(system.pull(values, np.eye(1, m, k)[0])))
    return (G + G.T) / 2


def delassus_factor(system: LargeSystem, q: Array, t: float) -> tuple[Array, Array, Array]:
    """Return L (m, m), D (m,), shift (m,); NaN where G is not finite."""
    G = delassus_matrix(system, q, t)
    g = np.diagonal(G).copy()
    forget_rounding(system.ends, system.layout.inertia, system.still(q, t).wrenches, g)
    shift, scale = np.zeros(len(g)), system.scales(g)
    L, D = _lower(G)
    if not (system.limits.implied * scale < D).all():
        shift = system.shift(g, scale)
        L, D = _lower(G + np.diag(shift))
    return L, D, shift


def delassus_solution(system: LargeSystem, q: Array, b: Array, t: float) -> Array:
    """Return x (m,) with G x = b: least where rows are redundant.

    Where b is not in the range of G, what is outside of it goes into x as 1 / mu times itself: solved again with what x
    does reach, G x = -A a, x is that of least squares. Each time mu of the outside is left, and rounding of x.
    """
    still = np.zeros(system.layout.mechanism.nv)
    found = system.right_sides(q, still, -b, t)
    for _ in range(OUTSIDE):
        if found.status != Status.INCONSISTENT or not np.isfinite(found.acceleration).all():
            break
        b = -system.move_rows(system.still(q, t), found.acceleration)
        found = system.right_sides(q, still, -b, t)
    return found.multipliers


def _lower(G: Array) -> tuple[Array, Array]:
    """Return L, D of L D L^T = G; NaN where G is not positive definite or not finite."""
    try:
        R = np.linalg.cholesky(G)
    except np.linalg.LinAlgError:
        return np.full_like(G, np.nan), np.full(len(G), np.nan)
    root = np.diagonal(R)
    return R / root, root**2
