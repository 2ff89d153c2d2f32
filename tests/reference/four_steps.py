"""The four steps of seed 002, in numbers: the plain twin of `tree/routes/four_steps.py`."""

from __future__ import annotations

import numpy as np

from tests.reference.row_forces import RowForces
from tests.reference.state import State

Array = np.ndarray


def ABA(state: State, rows: RowForces, tau: Array, f: Array) -> tuple[Array, Array]:
    """Return theta'' (nv,) and a_c (m,) at rest, without gravity: M theta'' = tau - J^T f, a_c = J theta''."""
    bodies = range(len(state.parents))
    tau = tau - rows.j.T @ f
    IA, pA = list(state.I), [K.T @ f for K in rows.K]
    U, D, u = {}, {}, {}
    for i in reversed(bodies):
        S, X, parent = state.S[i], state.X[i], state.parents[i]
        U[i] = IA[i] @ S
        D[i] = S.T @ U[i] + np.diag(state.armature[state.v[i]])
        u[i] = tau[state.v[i]] - S.T @ pA[i]
        if parent >= 0:
            IA[parent] = IA[parent] + X.T @ (IA[i] - U[i] @ np.linalg.solve(D[i], U[i].T)) @ X
            pA[parent] = pA[parent] + X.T @ (pA[i] + U[i] @ np.linalg.solve(D[i], u[i]))
    a: list[Array] = []
    qdd = np.zeros(state.nv)
    for i in bodies:
        carried = state.X[i] @ (a[state.parents[i]] if state.parents[i] >= 0 else np.zeros(6))
        qdd[state.v[i]] = np.linalg.solve(D[i], u[i] - U[i].T @ carried)
        a.append(carried + state.S[i] @ qdd[state.v[i]])
    return qdd, rows.accelerate(a, qdd)


def four_steps(state: State, rows: RowForces, y1: Array, y2: Array) -> tuple[Array, Array]:
    """Return x1 (nv,), x2 (m,) with M x1 + J^T x2 = y1, J x1 = y2, rows independent."""
    m = len(y2)
    _, a1 = ABA(state, rows, y1, np.zeros(m))
    inverse = np.array([ABA(state, rows, np.zeros(state.nv), -e)[1] for e in np.eye(m)]).T
    x2 = np.linalg.solve(inverse, a1 - y2)
    x1, _ = ABA(state, rows, y1, x2)
    return x1, x2
