"""Intervals resolved: the forces of a method turned into accelerations, index sets, certificate and verdict."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dalembert.friction.bounded.massless import hold_massless
from dalembert.friction.bounded.methods import METHODS, MethodForces
from dalembert.friction.bounded.problem import IntervalProblem
from dalembert.friction.limits import AT_LIMIT, CANCELLED, HELD, RESOLVED
from dalembert.friction.resolution import (
    FrictionCertificate,
    FrictionStatus,
    IndexSets,
    Resolution,
    index_sets,
)
from dalembert.friction.uniqueness import UniquenessReport, undetermined_forces
from dalembert.types import Array


def resolve_intervals(problem: IntervalProblem, method: str, warm: Array | None, **options: Any) -> Resolution:
    """Find the forces by a method of `METHODS`, and judge them."""
    if problem.singular:
        return hold_massless(problem, method, finished)
    return finished(problem, method, METHODS[method](problem, warm, **options))


def finished(problem: IntervalProblem, method: str, found: MethodForces) -> Resolution:
    """Turn forces into a resolution: acceleration, index sets, certificate, verdict."""
    T = found.forces
    if not np.isfinite(T).all():
        return _without_answer(problem, method, found)
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
                a, T = held, forces
                c = problem.W.T @ a + problem.contact_drift  # what G has lost with mass ratios of 1e8
    certificate = certify(problem, method, replace(found, forces=T), c, size)
    xi = problem.W.T @ a + problem.contact_drift
    xi[stick] = 0.0
    status = found.status
    if status is None or status is FrictionStatus.NOT_CONVERGED:
        status = FrictionStatus.SOLVED if certificate.ok else status or FrictionStatus.NOT_OPTIMAL
    if status is FrictionStatus.SOLVED and not (certain and problem.certain):
        status, certificate = FrictionStatus.NOT_CONVERGED, replace(certificate, note=_with_doubt(certificate.note))
    return Resolution(
        a, T, lam, xi, sets, status, certificate, problem.names, problem.system.coordinates,
        lambda: report_of(problem, T, sets),
    )  # fmt: skip


def _with_doubt(note: str) -> str:
    return f"{note}; the motion under these forces has fewer than three certain digits".removeprefix("; ")


def certify(problem: IntervalProblem, method: str, found: MethodForces, c: Array, size: Array) -> FrictionCertificate:
    """Measure how far the forces are from the friction laws, at rest (c are accelerations) and in motion."""
    R, T, G, known = problem.rest, found.forces, problem.delassus[0], problem.forces_in_motion
    diagonal = np.where(np.diag(G) > 0.0, np.diag(G), 1.0)
    missed = diagonal * np.abs(T - np.clip(T - c / diagonal, -problem.limits, problem.limits))
    off = np.abs(T - known)
    short = np.divide(off, np.abs(known), out=np.where(off > 0.0, np.inf, 0.0), where=known != 0.0)
    at_rest = np.divide(missed, size, out=np.zeros_like(missed), where=R)
    optimality = float(np.max(np.where(R, at_rest, short), initial=0.0))
    limit = np.where(R, problem.limits, np.abs(known))
    over = np.abs(T) - limit
    excess = float(np.max(np.where(over > 0.0, over / np.where(limit > 0.0, limit, 1.0), 0.0), initial=0.0))
    return FrictionCertificate(method, optimality, excess, found.iterations, found.note)


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


def _without_answer(problem: IntervalProblem, method: str, found: MethodForces) -> Resolution:
    n, m = problem.system.n, len(problem.names)
    sets = IndexSets(
        tuple(name for name, rest in zip(problem.names, problem.rest, strict=True) if not rest), (), {}, ()
    )
    certificate = FrictionCertificate(method, np.inf, np.inf, found.iterations, found.note)
    nothing = UniquenessReport(None, None, (), "the method found no answer", np.zeros((0, n)))
    return Resolution(
        np.full(n, np.nan), np.full(m, np.nan), np.full(problem.system.m, np.nan), np.full(m, np.nan), sets,
        found.status or FrictionStatus.NOT_CONVERGED, certificate, problem.names, problem.system.coordinates,
        lambda: nothing,
    )  # fmt: skip
