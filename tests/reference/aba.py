"""Forward dynamics, Featherstone 2008, table 7.1."""

from __future__ import annotations

import numpy as np

from tests.reference.spatial import crf, crm
from tests.reference.state import State

Array = np.ndarray


def aba(state: State, v: Array, tau: Array) -> Array:
    """Return the accelerations (nv,); a joint without inertia of its own raises numpy's LinAlgError or gives inf."""
    bodies = range(len(state.parents))
    vs: list[Array] = []
    c: list[Array] = []
    IA, pA = list(state.I), []
    for i in bodies:
        parent = state.parents[i]
        vJ = state.S[i] @ v[state.v[i]]
        vs.append((state.X[i] @ vs[parent] if parent >= 0 else 0) + vJ)
        c.append(state.cJ[i] + crm(vs[i]) @ vJ)
        pA.append(crf(vs[i]) @ state.I[i] @ vs[i])
    U, D, u = {}, {}, {}
    for i in reversed(bodies):
        U[i] = IA[i] @ state.S[i]
        D[i] = state.S[i].T @ U[i] + np.diag(state.armature[state.v[i]])
        u[i] = tau[state.v[i]] - state.S[i].T @ pA[i]
        parent = state.parents[i]
        if parent >= 0:
            Ia = IA[i] - U[i] @ np.linalg.solve(D[i], U[i].T)
            pa = pA[i] + Ia @ c[i] + U[i] @ np.linalg.solve(D[i], u[i])
            IA[parent] = IA[parent] + state.X[i].T @ Ia @ state.X[i]
            pA[parent] = pA[parent] + state.X[i].T @ pa
    accelerations: list[Array] = []
    qdd = np.zeros(state.nv)
    for i in bodies:
        parent = state.parents[i]
        carried = state.X[i] @ (accelerations[parent] if parent >= 0 else state.base_acceleration()) + c[i]
        qdd[state.v[i]] = np.linalg.solve(D[i], u[i] - U[i].T @ carried)
        accelerations.append(carried + state.S[i] @ qdd[state.v[i]])
    return qdd
