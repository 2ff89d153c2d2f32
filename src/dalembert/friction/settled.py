"""Reactions and accelerations of a known mode, solved once more with the mass matrix itself.

The Delassus matrix weighs forces by inverse masses: with mass ratios of 1e8 a row that is held, u = G r + g = 0 to
rounding, is missed by H a + drift. Here the rows at rest are constraints and the slipping forces follow their normals:

    [ M   A^T  -F ] [ a   ]   [ load + H^T r_given ]
    [ A    0    0 ] [ lam ] = [ -drift             ]      F = H_held^T, normals of slipping contacts with their friction
    [ H_held 0  0 ] [ x   ]   [ -contact drift     ]

Symbols: H contact rows (p, n), r their reactions, u = H a + drift, x the reactions of rows at rest.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float

from dalembert.friction.index_sets import AT_LIMIT, STILL
from dalembert.friction.reaction_problem import FIXED, UNILATERAL, ReactionProblem

Array = np.ndarray

MISSED = 1e-13
"""Rows at rest may move by this part of the data that u is summed from."""

SINGULAR = 1e-14
"""Singular values below this part of the largest are those of redundant rows."""


def rows_at_rest(problem: ReactionProblem, r: Array, still: Bool[Array, " p"]) -> tuple[Array, Array]:
    """Return which rows are at rest (p,), and for each row of a slipping contact the number of its normal, else -1."""
    held, normal = np.zeros(r.size, dtype=bool), np.full(r.size, -1)
    for i in range(len(problem.names)):
        a, b = int(problem.first[i]), int(problem.first[i + 1])
        given = problem.kind[i] == FIXED
        tangent = slice(a if given else a + 1, b)
        if not given:
            if problem.kind[i] == UNILATERAL and r[a] <= 0.0:
                continue
            held[a] = True
        bound = problem.mu[i] * (1.0 if given else abs(r[a]))
        inside = np.linalg.norm(r[tangent]) < bound * (1.0 - AT_LIMIT) or (bound > 0.0 and still[tangent].all())
        if inside and not problem.sliding[i]:
            held[tangent] = True
        elif not given and r[a] != 0.0:
            normal[tangent] = a
    return held, normal


def settled(
    problem: ReactionProblem, a: Float[Array, " n"], r: Float[Array, " p"], noise: Float[Array, " p"]
) -> tuple[Float[Array, " n"], Float[Array, " p"], float]:
    """Return acceleration and reactions with rows at rest held, and by how much they are missed, relative to data.

    `noise` (p,) are the terms that G r + g is summed from. Nothing changes where the rows hold already.
    """
    reduced = problem.reduced
    u, size = reduced.W.T @ a + reduced.contact_drift, reduced.sizes
    held, normal = rows_at_rest(problem, r, np.abs(u) <= 1e2 * STILL * noise)
    missed = float(np.max(np.abs(u[held]) / size[held], initial=0.0))
    if missed <= MISSED:
        return a, r, missed
    new, x = _solved(problem, held, normal, a, r)
    u = reduced.W.T @ new + reduced.contact_drift
    better = float(np.max(np.abs(u[held]) / size[held], initial=0.0))
    close = np.abs(x - r).max(initial=0.0) <= 1e-6 * np.abs(r).max(initial=0.0)
    return (new, x, better) if better < missed and close else (a, r, missed)


def _solved(problem: ReactionProblem, held: Array, normal: Array, a: Array, r: Array) -> tuple[Array, Array]:
    """Correct a and r twice by the block matrix at unit sizes; the least correction where rows are redundant."""
    reduced = problem.reduced
    M, A, H = reduced.system.M, reduced.system.A, reduced.W.T
    n, rows = M.shape[0], np.flatnonzero(held)
    ratio = np.where(normal >= 0, r / np.where(normal >= 0, r[normal], 1.0), 0.0)
    follows = np.zeros((r.size, rows.size))
    follows[rows, np.arange(rows.size)] = 1.0
    for j in np.flatnonzero(normal >= 0):
        follows[j, np.searchsorted(rows, normal[j])] = ratio[j]
    fixed = np.where(held | (normal >= 0), 0.0, r)
    lower = np.vstack([A, H[rows]])
    K = np.block([[M, A.T, -H.T @ follows], [lower, np.zeros((len(lower), len(lower)))]])
    b = np.concatenate([reduced.load + H.T @ fixed, -reduced.drift, -reduced.contact_drift[rows]])
    d = 1.0 / np.sqrt(M.diagonal())
    size = np.abs(lower * d).max(axis=1, initial=0.0)
    e = 1.0 / np.where(size > 0.0, size, 1.0)
    scale = np.concatenate([d, e])
    K, b = scale[:, None] * K * scale, scale * b
    y = np.concatenate([a / d, np.zeros(len(A)), r[rows] / e[len(A) :]])
    for _ in range(3):
        y = y + np.linalg.lstsq(K, b - K @ y, rcond=SINGULAR)[0]
    return d * y[:n], fixed + follows @ (e[len(A) :] * y[n + len(A) :])
