"""Constraints eliminated inside the tree, in numbers: the plain twin of `tree/routes/caba.py`.

Symbols: as there. A group of rows goes at the first body where no other holds it and L of the group is far from
singular; what is left at the ground is solved by least squares.
"""

from __future__ import annotations

import numpy as np

from tests.reference.row_forces import RowForces
from tests.reference.state import State

Array = np.ndarray

SAFE = 1e-6
"""Least eigenvalue of L of a group relative to its largest at which it may go."""


def caba(state: State, rows: RowForces, y1: Array, y2: Array) -> tuple[Array, Array]:
    """Return a (nv,), lam (m,) with M a + A^T lam = y1, A a = y2; rows independent."""
    count, m = len(state.parents), len(y2)
    IA, pA, K = list(state.I), [np.zeros(6)] * count, [each.copy() for each in rows.K]
    L, b = np.zeros((m, m)), -y2.copy()
    holders = [{i for i in range(count) if rows.K[i][r].any() or rows.j[r, state.v[i]].any()} for r in range(m)]
    steps: list[tuple[str, int, tuple[Array, ...]]] = []
    is_open = np.ones(m, dtype=bool)
    for i in reversed(range(count)):
        S, parent = state.S[i], state.parents[i]
        kappa = K[i] @ S + rows.j[:, state.v[i]]
        U = IA[i] @ S
        D = S.T @ U + np.diag(state.armature[state.v[i]])
        u = y1[state.v[i]] - S.T @ pA[i]
        steps.append(("joint", i, (U, D, u, kappa)))
        Ia, pa = IA[i] - U @ np.linalg.solve(D, U.T), pA[i] + U @ np.linalg.solve(D, u)
        F = K[i] - kappa @ np.linalg.solve(D, U.T)
        L += kappa @ np.linalg.solve(D, kappa.T)
        b += kappa @ np.linalg.solve(D, u)
        for group in sorted(set(rows.groups)):
            g = np.flatnonzero(np.array(rows.groups) == group)
            if is_open[g].all() and all(holders[r] == {i} for r in g) and _safe(L[np.ix_(g, g)]):
                inverse = np.linalg.inv(L[np.ix_(g, g)])
                is_open[g] = False
                h = np.flatnonzero(is_open)
                Lhg = L[np.ix_(h, g)]
                steps.append(("rows", i, (g, inverse, F[g].copy(), Lhg.T, h, b[g].copy())))
                Ia, pa = Ia + F[g].T @ inverse @ F[g], pa + F[g].T @ inverse @ b[g]
                F[h] -= Lhg @ inverse @ F[g]
                b[h] -= Lhg @ inverse @ b[g]
                L[np.ix_(h, h)] -= Lhg @ inverse @ Lhg.T
                F[g], L[g], L[:, g] = 0.0, 0.0, 0.0
        for held in holders:
            if i in held:
                held.remove(i)
                held.update({parent} if parent >= 0 else ())
        if parent >= 0:
            X = state.X[i]
            IA[parent], pA[parent] = IA[parent] + X.T @ Ia @ X, pA[parent] + X.T @ pa
            K[parent] += F @ X
    return _outward(state, steps, L, b, np.flatnonzero(is_open))


def _safe(L: Array) -> bool:
    values = np.linalg.eigvalsh(L)
    return bool(values[0] > SAFE * values[-1] > 0)


def _outward(
    state: State, steps: list[tuple[str, int, tuple[Array, ...]]], L: Array, b: Array, left: Array
) -> tuple[Array, Array]:
    """Return a and lam, the rows that are left at the ground first."""
    lam, a = np.zeros(len(b)), np.zeros(state.nv)
    lam[left] = np.linalg.pinv(L[np.ix_(left, left)], rcond=1e-10, hermitian=True) @ b[left]
    link = [np.zeros(6)] * len(state.parents)
    begun: set[int] = set()
    for kind, i, values in reversed(steps):
        if i not in begun:
            begun.add(i)
            link[i] = state.X[i] @ (link[state.parents[i]] if state.parents[i] >= 0 else np.zeros(6))
        if kind == "rows":
            g, inverse, F, Lgh, h, own = values
            lam[g] = inverse @ (F @ link[i] + own - Lgh @ lam[h])
        else:
            U, D, u, kappa = values
            a[state.v[i]] = np.linalg.solve(D, u - U.T @ link[i] - kappa.T @ lam)
            link[i] = link[i] + state.S[i] @ a[state.v[i]]
    return a, lam
