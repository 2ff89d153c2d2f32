"""Proximal points for disks and cones where M is singular: contacts may hold what has no mass.

As for intervals (`bounded/answer.py`): M + rho I in place of M and f + rho a_k in place of f, rho smaller with each
step. A fixed point a_(k+1) = a_k obeys the laws with M itself. Disks, and the associated problem, are convex: the steps
lead to an answer where there is one. With Coulomb's law they may; what they find is measured with M, against the data
of the first step, in which no answer has a part.

With disks alone there is no answer, or more than one, where a massless motion d is held by none,

    M d = 0,  A d = 0,  f . d >= sum_i limit_i |W_i^T d|

and the acceleration is unique where M, and the curvature of the disks that slip, are definite on what the others leave.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from dalembert.first_use import OPTIMIZE
from dalembert.friction.bounded.answer import LEAST, SHRINK, STEPS
from dalembert.friction.cones.contact_rows import ConeProblem
from dalembert.friction.cones.modes import sides
from dalembert.friction.contact_problem import FIXED
from dalembert.friction.limits import AT_LIMIT, DEPENDENT_UNIT, UNHELD
from dalembert.friction.uniqueness import UniquenessReport, null_space, undetermined_forces
from dalembert.kkt import KKT
from dalembert.types import Array

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

TURNS = 8
"""Linear programmes with the corners of the last answer among the directions of the disks: two or three are usual."""


def heaviest(problem: ConeProblem) -> float:
    """Return the largest mass on the diagonal: what the first step adds everywhere; one where there is none."""
    largest = float(np.max(problem.system.M.diagonal(), initial=0.0))
    return largest if largest > 0.0 else 1.0


def heavier(problem: ConeProblem, rho: float, a: Float[Array, " n"]) -> ConeProblem:
    """Return the problem with M + rho I and f + rho a."""
    reduced, M = problem.reduced, problem.system.M
    block = KKT(M + rho * np.eye(len(M)), reduced.system.A, reduced.system.names, reduced.system.coordinates)
    return replace(problem, reduced=replace(reduced, system=block, f=reduced.f + rho * a))


def proximal_factors() -> list[float]:
    """Return rho of each step, as parts of the first."""
    return [max(SHRINK**k, LEAST) for k in range(STEPS)]


def unheld(problem: ConeProblem) -> bool:
    """Say whether some massless motion that the constraints allow is held by no disk, or just so; disks alone.

    |w| is the largest n . w over unit vectors n: a linear programme with a few of them, and that of its answer next.
    """
    M, A = problem.system.M, problem.reduced.system.A
    rows = np.vstack([M, A])
    N = null_space(rows / np.maximum(np.abs(rows).max(axis=1), np.finfo(float).tiny)[:, None])
    slope, moved, q = N.T @ problem.reduced.load, problem.reduced.W.T @ N, N.shape[1]
    parts = [slice(int(a), int(b)) for a, b in zip(problem.first[:-1], problem.first[1:], strict=True)]
    limits, k = problem.mu, len(parts)
    scale = np.abs(slope).max(initial=0.0) + float(np.sum(np.abs(moved))) * limits.max(initial=0.0)
    cost = np.concatenate([-slope, limits]) / max(scale, np.finfo(float).tiny)
    faces = [(i, n) for i, part in enumerate(parts) for n, _ in sides(np.eye(part.stop - part.start)[0])]
    for j in range(q):
        for end in (1.0, -1.0):
            bounds = [(end, end) if i == j else (-1.0, 1.0) for i in range(q)] + [(0.0, None)] * k
            for _ in range(TURNS):
                above = np.array([np.append(n @ moved[parts[i]], -np.eye(k)[i]) for i, n in faces]).reshape(-1, q + k)
                best = OPTIMIZE.linprog(cost, A_ub=above, b_ub=np.zeros(len(above)), bounds=bounds, method="highs")
                if best.status != 0 or best.fun > UNHELD:
                    break
                w = moved @ best.x[:q]
                speed = np.array([np.linalg.norm(w[part]) for part in parts])
                if cost[:q] @ best.x[:q] + cost[q:] @ speed <= UNHELD:
                    return True
                faces += [(i, w[part] / speed[i]) for i, part in enumerate(parts) if speed[i] > 0.0]
    return False


def determined(problem: ConeProblem, a: Array, held: Bool[Array, " p"]) -> bool:
    """Say whether constraints and the rows held leave no motion without mass, or only such as slipping disks resist.

    A disk that slips at speed |u| under its limit resists a turn of its force with the stiffness limit / |u| across it.
    """
    H = problem.reduced.W.T
    u, stiffness = H @ a + problem.reduced.contact_drift, problem.system.M.copy()
    for i in np.flatnonzero(problem.kind == FIXED):
        part = slice(int(problem.first[i]), int(problem.first[i + 1]))
        speed = float(np.linalg.norm(u[part]))
        if not held[part].any() and part.stop - part.start > 1 and speed > 0.0:
            e = u[part] / speed
            stiffness += problem.mu[i] / speed * (H[part].T @ (np.eye(e.size) - np.outer(e, e)) @ H[part])
    rows = np.vstack([problem.reduced.system.A, H[held]])
    N = null_space(rows / np.maximum(np.abs(rows).max(axis=1, initial=0.0), np.finfo(float).tiny)[:, None])
    if not N.shape[1]:
        return True
    values = np.linalg.eigvalsh(N.T @ stiffness @ N)
    return bool(values[0] > DEPENDENT_UNIT * np.abs(stiffness).max())


def massless_report(problem: ConeProblem, a: Array, r: Array, held: Bool[Array, " p"]) -> UniquenessReport:
    """Say what disks determine where some of them hold a massless motion; nothing is proved of cones."""
    nothing = np.zeros((0, problem.system.n))
    if not np.all(problem.kind == FIXED):
        reason = "contacts hold a motion without mass: whether there are other answers is not proved"
        return UniquenessReport(True, None, (), reason, nothing)
    inside = held.copy()
    for i in range(len(problem.names)):
        part = slice(int(problem.first[i]), int(problem.first[i + 1]))
        inside[part] &= bool(np.linalg.norm(r[part]) < problem.mu[i] * (1.0 - AT_LIMIT))
    A = problem.reduced.system.A
    outside = np.eye(problem.system.n) - np.linalg.pinv(A) @ A
    owner = [name for i, name in enumerate(problem.names) for _ in range(problem.first[i + 1] - problem.first[i])]
    loose = held & np.repeat(problem.mu > 0.0, np.diff(problem.first))
    open_rows = undetermined_forces(outside @ problem.reduced.W, loose, np.zeros(r.size, dtype=int), owner)
    unique = True if determined(problem, a, inside) else None
    reason = "the sticking contacts hold the massless motion"
    return UniquenessReport(True, unique, tuple(dict.fromkeys(open_rows)), reason, nothing)
