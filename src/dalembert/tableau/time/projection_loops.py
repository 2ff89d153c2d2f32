"""A point put back on its constraints after a step, in the mass metric: one Newton step for q, then v.

    [M  A^T] [dq]   [  0 ]                 [M  A^T] [dv]   [  0 ]
    [A   0 ] [ .] = [-phi]  at (q, v)      [A   0 ] [ .] = [-psi]  at (q + dq, v)

E. Eich, SIAM J. Numer. Anal. 30 (1993) 1467-1482. The matrix is eliminated by a plan of its own, in loops, so its size
has no limit; where pivots fail, by dense elimination with exchanges.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dalembert.tableau.graph_loops import compiled
from dalembert.tableau.time.dense_loops import dense_factor, dense_solve
from dalembert.tableau.time.invoke_loops import invoke
from dalembert.tableau.time.newton_loops import POOR_PIVOT, PROJECTION
from dalembert.tableau.time.plan_loops import PlanArrays, plan_factor, plan_solve


class ProjectionWork(NamedTuple):
    """Memory of the projection; everything is empty where there is none."""

    plan: PlanArrays
    entries: np.ndarray
    right: np.ndarray  # (0, -phi)
    rate_right: np.ndarray  # (0, -psi)
    step: np.ndarray
    dense: np.ndarray
    exchanges: np.ndarray
    free: np.ndarray  # (1,): how many coordinates move


@compiled
def project(work, state):
    """Move the point in `work` onto the constraints; where they are singular it stays."""
    p = work.projection
    free = p.free[0]
    for level in range(2):
        invoke(work.calls[PROJECTION, 0], work.calls[PROJECTION, 1], work.calls[PROJECTION, 2])
        right = p.right if level == 0 else p.rate_right
        if plan_factor(p.plan, p.entries) >= POOR_PIVOT:
            plan_solve(p.plan, p.entries, right, p.step)
        elif not _dense(p, right, state):
            return
        for i in range(free):
            work.x[level * free + i] += p.step[i]


@compiled
def _dense(p, right, state):
    """Solve by dense elimination; return success."""
    state[0].repairs += 1
    if p.dense.shape[0] == 0:
        return False
    for i in range(right.size):
        p.dense[i] = 0.0
        p.step[i] = right[i]
        for e in range(p.plan.indptr[i], p.plan.indptr[i + 1]):
            p.dense[i, p.plan.indices[e]] = p.entries[e]
    if not dense_factor(p.dense, p.exchanges):
        return False
    dense_solve(p.dense, p.exchanges, p.step)
    return True
