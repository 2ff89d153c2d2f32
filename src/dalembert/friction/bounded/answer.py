"""One state with given limits resolved: forces turned into accelerations, certificate, verdict and report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from dalembert.first_use import OPTIMIZE
from dalembert.friction.bounded.methods import METHODS, IntervalProblem, MethodForces, exact
from dalembert.friction.limits import AT_LIMIT, CANCELLED, HELD, HELD_MASSLESS, RESOLVED, UNHELD
from dalembert.friction.resolution import (
    FrictionCertificate,
    IndexSets,
    Resolution,
    index_sets,
)
from dalembert.friction.uniqueness import UniquenessReport, null_space, undetermined_forces
from dalembert.kkt import KKT
from dalembert.status import Status
from dalembert.types import Array

# ----------------------------------------------------------------------------------------------------------------------
# Proximal points for intervals where M is singular: sticking contacts may hold what has no mass.
#
# There is no Delassus matrix, but the problem is convex in the acceleration,
#
#     minimise  a^T M a / 2 - f^T a + sum_i limit_i |xi''_i|    subject to  A a = -drift,  xi'' = W^T a + contact_drift,
#
# and the proximal point method solves it through definite ones: M + rho I in place of M, f + rho a_k in place of f, rho
# smaller with each step. Its index sets settle after a few steps; the block matrix with the sticking rows, M as it is,
# then gives the answer, which is checked against the laws. There is no answer, or more than one, where no contact holds
# a massless motion d:
#
#     M d = 0,  A d = 0,  f . d >= sum_i limit_i |w_i . d|,      a linear programme for each direction of d
#
# Source: R. T. Rockafellar, "Monotone operators and the proximal point algorithm", SIAM J. Control Optim. 14 (1976).


STEPS = 40
"""Proximal steps; one to five are usual."""

SHRINK, LEAST = 0.25, 1e-8
"""Factor on rho with each step, and where it ends: far beyond, M + rho I would be singular to rounding."""


def hold_massless(problem: IntervalProblem, method: str, finish: Callable) -> Resolution:
    """Resolve a problem without a Delassus matrix, by `exact` only."""
    if method != "exact":
        answer = MethodForces(np.full(len(problem.names), np.nan), 0, Status.DECLINED, "M is singular: use 'exact'")
        return finish(problem, method, answer)
    heaviest = float(np.max(np.diag(problem.system.M), initial=0.0))
    rho = heaviest if heaviest > 0.0 else 1.0
    a, warm, least = np.zeros(problem.system.n), None, LEAST * rho
    for k in range(STEPS):
        heavier = KKT(problem.system.M + rho * np.eye(problem.system.n), problem.system.A)
        near = replace(problem, system=heavier, f=problem.f + rho * a)
        warm = exact(near, warm).forces
        a, _ = near.acceleration(warm)
        stick = problem.rest & (np.abs(warm) < problem.limits * (1.0 - AT_LIMIT))
        tried = _held(problem, warm, stick, k + 1)
        if tried is not None:
            return tried
        rho = max(SHRINK * rho, least)
    status = Status.MASSLESS if unheld(problem) else Status.NOT_CONVERGED
    return finish(problem, method, MethodForces(np.full(len(problem.names), np.nan), STEPS, status))


def unheld(problem: IntervalProblem) -> bool:
    """Say whether some massless motion that A allows is held by no contact, or just so."""
    M, A = problem.system.M, problem.system.A
    size = np.maximum(np.abs(np.vstack([M, A])).max(axis=1), np.finfo(float).tiny)
    N = null_space(np.vstack([M, A]) / size[:, None])
    W, limits = problem.W[:, problem.rest], problem.limits[problem.rest]
    q, m = N.shape[1], limits.size
    slope, moved = N.T @ problem.load, W.T @ N
    scale = np.abs(slope).max(initial=0.0) + (limits @ np.abs(moved)).max(initial=0.0) + np.finfo(float).tiny
    cost = np.concatenate([-slope, limits]) / scale
    above = np.vstack([np.hstack([moved, -np.eye(m)]), np.hstack([-moved, -np.eye(m)])])
    for j, end in product(range(q), (1.0, -1.0)):
        bounds = [(end, end) if i == j else (-1.0, 1.0) for i in range(q)] + [(0.0, None)] * m
        best = OPTIMIZE.linprog(cost, A_ub=above, b_ub=np.zeros(2 * m), bounds=bounds, method="highs")
        if best.status == 0 and best.fun <= UNHELD:
            return True
    return False


def _held(problem: IntervalProblem, warm: Array, stick: Array, rounds: int) -> Resolution | None:
    """Solve with the sticking rows in the block matrix; None where the laws do not hold there."""
    S = np.flatnonzero(stick)
    T = np.where(problem.rest, np.sign(warm) * problem.limits, problem.forces_in_motion)
    T[S] = 0.0
    rows = np.vstack([problem.system.A, problem.W[:, S].T])
    drift = np.concatenate([problem.drift, problem.contact_drift[S]])
    solved = KKT(problem.system.M, rows).solve((problem.f + problem.W @ T)[None], drift[None])
    if not np.all(solved.ok):
        return None
    a, reactions = solved.acceleration[0], solved.reactions[0]
    T[S] = reactions[problem.system.m :]
    xi = problem.W.T @ a + problem.contact_drift
    xi[S] = 0.0
    size = np.abs(problem.W.T) @ np.abs(a) + np.abs(problem.contact_drift) + np.finfo(float).tiny
    over = float(np.max((np.abs(T) - problem.limits)[S] / problem.limits[S], initial=0.0))
    slip = problem.rest & ~stick
    wrong = float(np.max((xi * np.sign(T) / size)[slip], initial=0.0))
    if over > AT_LIMIT or wrong > HELD_MASSLESS:
        return None
    sets = index_sets(problem.names, problem.rest, T, problem.limits, xi, size)
    certificate = FrictionCertificate("exact", wrong, max(over, 0.0), rounds, "through the block matrix: M is singular")
    return Resolution(
        a, T, -reactions[: problem.system.m], xi, sets, Status.SOLVED, certificate, problem.names,
        problem.system.coordinates, lambda: _report(problem, T, sets),
    )  # fmt: skip


def _report(problem: IntervalProblem, T: Array, sets: IndexSets) -> UniquenessReport:
    """Say which forces are determined: W itself takes the place of Z^T W, constraint rows beside it."""
    stuck = np.array([name in sets.sticking for name in problem.names], dtype=bool)
    side = np.where(np.abs(T) >= problem.limits * (1.0 - AT_LIMIT), np.sign(T), 0.0).astype(int)
    A = problem.system.A
    outside = np.eye(problem.system.n) - np.linalg.pinv(A) @ A
    names = undetermined_forces(outside @ problem.W, stuck & (problem.limits > 0.0), side, problem.names)
    return UniquenessReport(
        True, True, names, "the sticking contacts hold the massless motion", np.zeros((0, problem.system.n))
    )


# ----------------------------------------------------------------------------------------------------------------------
# Forces of a method turned into accelerations, certificate, verdict and report.


def resolve_intervals(problem: IntervalProblem, method: str, warm: Array | None, **options: Any) -> Resolution:
    """Find the forces by a method of `METHODS`, and judge them."""
    if problem.singular:
        return hold_massless(problem, method, finished)
    return finished(problem, method, METHODS[method](problem, warm, **options))


def finished(problem: IntervalProblem, method: str, answer: MethodForces) -> Resolution:
    """Turn forces into a resolution: acceleration, index sets, certificate, verdict."""
    T = answer.forces
    if not np.isfinite(T).all():
        return _without_answer(problem, method, answer)
    a, lam, certain = problem.solved(problem.f + problem.W @ T)
    G, g = problem.delassus
    R = problem.rest
    terms = problem.terms + RESOLVED * G.diagonal() * np.abs(T).max(initial=0.0)
    size = np.abs(G) @ np.abs(np.where(R, T, 0.0)) + np.abs(g) + CANCELLED * terms + np.finfo(float).tiny
    c = G @ np.where(R, T, 0.0) + g
    sets = index_sets(problem.names, R, T, problem.limits, c, size)
    stick = np.array([name in sets.sticking for name in problem.names], dtype=bool)
    stick &= np.abs(c) <= HELD * size
    if stick.any():
        held = problem.held_acceleration(T, stick)
        if np.isfinite(held).all():
            inside = stick & (np.abs(T) < problem.limits * (1.0 - AT_LIMIT))
            forces = problem.balanced(held, T, inside) if method == "exact" and inside.any() else T
            if problem.in_balance(held, forces):
                if problem.system.m and forces is not T:
                    lam = problem.acceleration(forces)[1]
                a, T, certain = held, forces, True  # zero at rest has no digits of its own: the rows certify it
                c = problem.W.T @ a + problem.contact_drift  # what G has lost with mass ratios of 1e8
    certificate = certify(problem, method, replace(answer, forces=T), c, size)
    xi = problem.W.T @ a + problem.contact_drift
    xi[stick] = 0.0
    status = answer.status
    if status is None or status is Status.NOT_CONVERGED:
        status = Status.SOLVED if certificate.ok else status or Status.NOT_OPTIMAL
    if status is Status.SOLVED and not (certain and problem.certain):
        status, certificate = Status.NOT_CONVERGED, replace(certificate, note=_with_doubt(certificate.note))
    return Resolution(
        a, T, lam, xi, sets, status, certificate, problem.names, problem.system.coordinates,
        lambda: report_of(problem, T, sets),
    )  # fmt: skip


def _with_doubt(note: str) -> str:
    return f"{note}; the motion under these forces has fewer than three certain digits".removeprefix("; ")


def certify(problem: IntervalProblem, method: str, answer: MethodForces, c: Array, size: Array) -> FrictionCertificate:
    """Measure how far the forces are from the friction laws, at rest (c are accelerations) and in motion."""
    R, T, G, kinetic = problem.rest, answer.forces, problem.delassus[0], problem.forces_in_motion
    diagonal = np.where(np.diag(G) > 0.0, np.diag(G), 1.0)
    missed = diagonal * np.abs(T - np.clip(T - c / diagonal, -problem.limits, problem.limits))
    off = np.abs(T - kinetic)
    short = np.divide(off, np.abs(kinetic), out=np.where(off > 0.0, np.inf, 0.0), where=kinetic != 0.0)
    at_rest = np.divide(missed, size, out=np.zeros_like(missed), where=R)
    optimality = float(np.max(np.where(R, at_rest, short), initial=0.0))
    limit = np.where(R, problem.limits, np.abs(kinetic))
    over = np.abs(T) - limit
    excess = float(np.max(np.where(over > 0.0, over / np.where(limit > 0.0, limit, 1.0), 0.0), initial=0.0))
    return FrictionCertificate(method, optimality, excess, answer.iterations, answer.note)


def report_of(problem: IntervalProblem, T: Array, sets: IndexSets) -> UniquenessReport:
    """Say which forces of a bounded problem are determined."""
    stuck = np.array([name in sets.sticking for name in problem.names], dtype=bool)
    side = np.where(np.abs(T) >= problem.limits * (1.0 - AT_LIMIT), np.sign(T), 0.0).astype(int)
    loose = stuck & (problem.limits > 0.0)
    names = undetermined_forces(problem.reduced[0], loose, side, problem.names)
    reason = "given limits: a strictly convex problem in the acceleration"
    if names:
        reason += "; the sticking contacts are redundant, the least-norm forces are returned"
    return UniquenessReport(True, True, names, reason, np.zeros((0, problem.system.n)))


def _without_answer(problem: IntervalProblem, method: str, answer: MethodForces) -> Resolution:
    n, m = problem.system.n, len(problem.names)
    sets = IndexSets(
        tuple(name for name, rest in zip(problem.names, problem.rest, strict=True) if not rest), (), {}, ()
    )
    certificate = FrictionCertificate(method, np.inf, np.inf, answer.iterations, answer.note)
    nothing = UniquenessReport(None, None, (), "the method found no answer", np.zeros((0, n)))
    return Resolution(
        np.full(n, np.nan), np.full(m, np.nan), np.full(problem.system.m, np.nan), np.full(m, np.nan), sets,
        answer.status or Status.NOT_CONVERGED, certificate, problem.names, problem.system.coordinates,
        lambda: nothing,
    )  # fmt: skip
