"""Torques and multipliers of a trajectory, from its positions and velocities.

Symbols: M, bias, A, drift as in `formulation.py`, E = dbias/dtau; at every point (t, q, v) of the trajectory

    [M  E  A^T] [a  ]   [-bias ]
    [A  0   0 ] [tau] = [-drift]        the equations of index 1, known accelerations in bias and drift
                [lam]

A stepper's own torques and multipliers are of index 2 or 3: no error test sees them, and they lose one or two powers of
the step. These are as good as q and v, which the tolerance controls. Where rows are redundant, lam is of least norm.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dalembert.model.ranks import GenericRank, solve_under_rank
from dalembert.tableau.time.least_change import RANK, scales

if TYPE_CHECKING:
    from dalembert.tableau.time.problem import Problem
    from dalembert.tableau.time.result import Result

Array = np.ndarray

PART = 4096
"""Points that are solved at once."""


def forces(problem: Problem, result: Result) -> dict[str, Array]:
    """Return unknown controls and multipliers by name, (N,) each, at the times of a result."""
    m = problem.motion
    if m is None or not (m.tau.numel() + m.lam.numel()):
        return {}
    names = [*m.free_controls, *(f"lam[{name}]" for name in m.names)]
    if not len(result.t):
        return {name: np.zeros(0) for name in names}
    parts = [slice(k, k + PART) for k in range(0, len(result.t), PART)]
    found = np.concatenate([_part(problem, result.inside[part], result.y[:, part].T) for part in parts])
    return dict(zip(names, found.T, strict=True))


def _part(problem: Problem, t: Array, x: Array) -> Array:
    """Return tau and lam at some points, (N, controls + rows)."""
    m, N = problem.motion, len(t)
    assert m is not None
    nf, nt, count = len(m.free), m.tau.numel(), m.lam.numel()
    signals = np.array([problem.signals.values(t[k], x=x[k]) for k in range(N)]).reshape(N, -1)
    p = np.tile(problem.parameters, (N, 1))
    M, bias, A, full, drift, *_, effect = problem.finder.terms(x[:, :nf], x[:, nf : 2 * nf], t[:, None], signals, p)
    known = problem.finder.rank(x[0, :nf], float(t[0]))
    if known is not None and known.redundant:
        return np.array([_under(known, *each) for each in zip(M, A, -bias, drift, strict=True)])
    n = bias.shape[-1]
    K = np.zeros((N, n + count, nf + nt + count))
    K[:, :n, :nf], K[:, :n, nf : nf + nt], K[:, :n, nf + nt :] = M, effect, full.transpose(0, 2, 1)
    K[:, n:, :nf] = A
    good = np.isfinite(K).all(axis=(1, 2)) & np.isfinite(bias).all(axis=1) & np.isfinite(drift).all(axis=1)
    found = np.full((N, nt + count), np.nan)
    found[good] = _solved(K[good], -np.concatenate([bias, drift], axis=1)[good])[:, nf:]
    if count and good.any():
        across = full[good].transpose(0, 2, 1)
        found[good, nt:] = _least_norm(across, found[good, nt:])
    return found


def _under(known: GenericRank, M: Array, A: Array, force: Array, drift: Array) -> Array:
    """Return lam under the rank of the mechanism; NaN where the point is not finite."""
    if not all(np.isfinite(each).all() for each in (M, A, force, drift)):
        return np.full(len(drift), np.nan)
    return solve_under_rank(known, M, A, force, drift)[1]


def _solved(K: Array, b: Array) -> Array:
    """Return the solutions of scaled systems, of least norm where they are not unique."""
    rows, cols = scales(K)
    inverse = np.linalg.pinv(rows[..., :, None] * K * cols[..., None, :], rcond=RANK)
    return cols * np.einsum("nij,nj->ni", inverse, rows * b)


def _least_norm(across: Array, lam: Array) -> Array:
    """Return the multipliers of least norm with the same forces A^T lam."""
    pushes = np.einsum("nij,nj->ni", across, lam)
    return np.einsum("nij,nj->ni", np.linalg.pinv(across, rcond=1e-9), pushes)
