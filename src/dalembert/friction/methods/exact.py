"""Method `exact`: bounded contacts at rest by the box-constrained problem, to optimality, least-norm forces.

With fixed limits the acceleration always exists and is unique (a strictly convex problem in a), also where the
flowchart of the seed clamps a force the wrong way. Source: J. J. Moreau, "Quadratic programming in mechanics:
dynamics of one-sided constraints", SIAM J. Control 4 (1966) 153-158.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from dalembert.friction.methods.contract import Found
from dalembert.friction.problem import Problem
from dalembert.friction.status import FrictionStatus

Array = np.ndarray


def exact(problem: Problem, warm: Float[Array, " m"] | None = None) -> Found:
    """Solve for the contacts at rest; O(k^3) a round, two to six rounds."""
    from dalembert.friction.box_kernel import SOLVED, solve_box
    from dalembert.friction.least_kernel import least_norm

    T = problem.forces_in_motion.copy()
    R = np.flatnonzero(problem.rest)
    if not R.size:
        return Found(T, 0)
    G, g = problem.delassus
    G, g, limit = np.ascontiguousarray(G[np.ix_(R, R)]), g[R], problem.limits[R]
    x = np.zeros(R.size) if warm is None else np.asarray(warm, dtype=float)[R].copy()
    code, rounds, _ = solve_box(G, g, -limit, limit, x)
    family = least_norm(np.ascontiguousarray(problem.reduced[0][:, R]), G, g, -limit, limit, x)
    T[R] = x + 0.0
    note = f"least-norm member of a family of dimension {family}" if family else ""
    return Found(T, int(rounds), None if code == SOLVED else FrictionStatus.NOT_CONVERGED, note)
