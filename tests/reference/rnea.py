"""Inverse dynamics, Featherstone 2008, table 5.1."""

from __future__ import annotations

import numpy as np

from tests.reference.spatial import crf, crm
from tests.reference.state import State

Array = np.ndarray


def rnea(state: State, v: Array, a: Array) -> Array:
    """Return tau = M a + C v + g."""
    vs: list[Array] = []
    accelerations: list[Array] = []
    forces: list[Array] = []
    for i, parent in enumerate(state.parents):
        vJ = state.S[i] @ v[state.v[i]]
        vi = (state.X[i] @ vs[parent] if parent >= 0 else 0) + vJ
        before = accelerations[parent] if parent >= 0 else state.base_acceleration()
        ai = state.X[i] @ before + state.S[i] @ a[state.v[i]] + state.cJ[i] + crm(vi) @ vJ
        vs.append(vi)
        accelerations.append(ai)
        forces.append(state.I[i] @ ai + crf(vi) @ state.I[i] @ vi)
    tau = state.armature * a
    for i in reversed(range(len(forces))):
        tau[state.v[i]] += state.S[i].T @ forces[i]
        if state.parents[i] >= 0:
            forces[state.parents[i]] = forces[state.parents[i]] + state.X[i].T @ forces[i]
    return tau
