"""The Delassus matrix by two recursions, in numbers: plain twins of `tree/routes/efpa.py` and `hops.py`.

Symbols: L_i = (1 - S D^-1 U^T) X_i carries accelerations past joint i, and forces back with L_i^T; Omega_i mobility of
body i (`tree/routes/pv.py`); K, j as in `row_forces.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tests.reference.row_forces import RowForces
from tests.reference.state import State

Array = np.ndarray


@dataclass(frozen=True)
class Passes:
    """Per body L_i, S D^-1 S^T and Omega_i, U and D."""

    L: list[Array]
    own: list[Array]
    Omega: list[Array]
    U: list[Array]
    D: list[Array]

    @classmethod
    def of(cls, state: State) -> Passes:
        """Make both passes over the bodies."""
        count = len(state.parents)
        IA, U, D = list(state.I), [np.zeros(0)] * count, [np.zeros(0)] * count
        for i in reversed(range(count)):
            U[i] = IA[i] @ state.S[i]
            D[i] = state.S[i].T @ U[i] + np.diag(state.armature[state.v[i]])
            if state.parents[i] >= 0:
                Ia = IA[i] - U[i] @ np.linalg.solve(D[i], U[i].T)
                IA[state.parents[i]] = IA[state.parents[i]] + state.X[i].T @ Ia @ state.X[i]
        L = [(np.eye(6) - state.S[i] @ np.linalg.solve(D[i], U[i].T)) @ state.X[i] for i in range(count)]
        own = [state.S[i] @ np.linalg.solve(D[i], state.S[i].T) for i in range(count)]
        Omega: list[Array] = []
        for i, parent in enumerate(state.parents):
            Omega.append(own[i] + (L[i] @ Omega[parent] @ L[i].T if parent >= 0 else 0))
        return cls(L, own, Omega, U, D)


def delassus_by_propagators(state: State, rows: RowForces) -> Array:
    """Return G (m, m): extended force propagators carry two forces to where they meet, Omega does the rest."""
    if rows.j.any():
        raise NotImplementedError("rows on joints: use delassus_by_passes")
    passes = Passes.of(state)
    G = np.zeros((len(rows.j), len(rows.j)))
    acting = [i for i, K in enumerate(rows.K) if K.any()]
    for i in acting:
        for k in acting:
            body, left, right = i, rows.K[i], rows.K[k]
            other = k
            while body != other and min(body, other) >= 0:
                if body > other:
                    left, body = left @ passes.L[body], state.parents[body]
                else:
                    right, other = right @ passes.L[other], state.parents[other]
            if body == other:
                G += left @ passes.Omega[body] @ right.T
    return G


def delassus_by_passes(state: State, rows: RowForces) -> Array:
    """Return G (m, m) by one pass inward: K = K L, G = G + kappa D^-1 kappa^T at every joint (Popov-Vereshchagin)."""
    passes = Passes.of(state)
    G = np.zeros((len(rows.j), len(rows.j)))
    K = [each.copy() for each in rows.K]
    for i in reversed(range(len(state.parents))):
        kappa = K[i] @ state.S[i] + rows.j[:, state.v[i]]
        G += kappa @ np.linalg.solve(passes.D[i], kappa.T)
        if state.parents[i] >= 0:
            passed = K[i] - kappa @ np.linalg.solve(passes.D[i], passes.U[i].T)
            K[state.parents[i]] += passed @ state.X[i]
    return G
