"""The mass matrix, Featherstone 2008, table 6.2."""

from __future__ import annotations

import numpy as np

from tests.reference.state import State

Array = np.ndarray


def crba(state: State) -> Array:
    """Return M (nv, nv)."""
    Ic = list(state.I)
    M = np.diag(state.armature)
    for i in reversed(range(len(Ic))):
        parent = state.parents[i]
        if parent >= 0:
            Ic[parent] = Ic[parent] + state.X[i].T @ Ic[i] @ state.X[i]
        F = Ic[i] @ state.S[i]
        M[state.v[i], state.v[i]] += state.S[i].T @ F
        j = i
        while state.parents[j] >= 0:
            F = state.X[j].T @ F
            j = state.parents[j]
            M[state.v[i], state.v[j]] = F.T @ state.S[j]
            M[state.v[j], state.v[i]] = M[state.v[i], state.v[j]].T
    return M
