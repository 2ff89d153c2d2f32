"""Method `switch`: try every combination of stick and slip (seed 001, sec. 1, its reference [2]), for comparison only.

In a band around zero velocity a contact may stick or slip either way; the first combination that contradicts no law is
taken. k contacts in the band have 3^k combinations, and sticking contacts that are redundant are judged by one member
of the family of their forces, so a combination that is possible may be passed over.

Source: R. I. Leine, D. H. van Campen, A. de Kraker, L. van den Steen, "Stick-slip vibrations induced by alternate
friction models", Nonlinear Dynamics 16 (1998) 41-54.
"""

from __future__ import annotations

from itertools import product

import numpy as np
from jaxtyping import Float

from dalembert.errors import ModelError, UnsupportedError
from dalembert.friction.index_sets import AT_LIMIT
from dalembert.friction.law import is_number
from dalembert.friction.methods.contract import Found
from dalembert.friction.problem import Problem
from dalembert.friction.status import FrictionStatus
from dalembert.kkt import KKT

Array = np.ndarray

MOST = 9
"""Contacts in the band: 3^9 = 19,683 combinations take about a second."""


def switch(problem: Problem, warm: Float[Array, " m"] | None = None, slack: float = 1e-11) -> Found:
    """Return the forces of the first combination without contradiction; `warm` is not used."""
    if not is_number(slack) or not 0.0 <= slack < np.inf:
        raise ModelError(f"slack={slack!r} must be a finite part >= 0")
    R = np.flatnonzero(problem.rest)
    if R.size > MOST:
        raise UnsupportedError(f"{R.size} contacts at rest have 3^{R.size} combinations; use method='exact'")
    for count, modes in enumerate(product((0, 1, -1), repeat=R.size)):
        T = _forces(problem, R, np.array(modes, dtype=int))
        if T is not None and _consistent(problem, R, np.array(modes, dtype=int), T, slack):
            return Found(T, count + 1)
    return Found(np.full(problem.rest.size, np.nan), 3**R.size, FrictionStatus.NO_SOLUTION, "no combination fits")


def _forces(problem: Problem, R: Array, modes: Array) -> Float[Array, " m"] | None:
    """Return the forces of one combination; slipping contacts at their limit against the direction."""
    T = problem.forces_in_motion.copy()
    T[R] = -modes * problem.limits[R]
    S = R[modes == 0]
    stick = np.isin(np.arange(T.size), S)
    quick = problem.holding_forces(T, stick)
    if np.isfinite(quick).all():
        T[stick] = quick
        return T
    rows = np.vstack([problem.system.A, problem.W[:, S].T])
    load, drift = problem.f + problem.W @ T, np.concatenate([problem.drift, problem.contact_drift[S]])
    solved = KKT(problem.system.M, rows).solve(load[None], drift[None])
    if not np.isfinite(solved.acceleration).all():
        return None
    T[S] = solved.reactions[0, problem.system.m :]
    return T


def _consistent(problem: Problem, R: Array, modes: Array, T: Array, slack: float) -> bool:
    """Say whether sticking forces are within their limits and slipping contacts accelerate in their direction."""
    if np.any(np.abs(T[R][modes == 0]) > problem.limits[R][modes == 0] * (1.0 + AT_LIMIT)):
        return False
    a, _ = problem.acceleration(T)
    xi = problem.W.T @ a + problem.contact_drift
    G, g = problem.delassus
    size = np.abs(G) @ np.abs(np.where(problem.rest, T, 0.0)) + np.abs(g)
    return bool(np.all((modes * xi[R] >= -slack * size[R])[modes != 0]))
