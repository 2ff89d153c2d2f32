"""Resolve contacts whose friction is limited by a reaction: exact cones, one direction or a plane."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalembert.errors import ModelError
from dalembert.friction.coulomb_modes import all_solutions, family_of
from dalembert.friction.index_sets import AT_LIMIT, STILL, IndexSets
from dalembert.friction.reaction_problem import BILATERAL, FIXED, UNILATERAL, ReactionProblem, reaction_problem
from dalembert.friction.resolution import OPTIMAL, FrictionCertificate, Resolution
from dalembert.friction.settled import settled
from dalembert.friction.status import FrictionStatus
from dalembert.friction.uniqueness import UniquenessReport, proved_unique, undetermined_forces

Array = np.ndarray

TOLERANCE = 1e-13
"""What the kernel aims at; `OPTIMAL` is what counts as an answer."""

NOTHING = 1e-200
"""A force below this is the remainder of a first guess."""

NEWTON = 400
"""Steps before the kernel gives up; 3 to 10 are usual, 15 to 40 with many redundant contacts."""


def resolve_coulomb(
    M: Any, f: Any, W: Any, state: Any, laws: Any, warm: Any = None, associated: bool = False, **data: Any
) -> Resolution:
    """Solve the complementarity problem of Coulomb's law, or with `associated` the convex one."""
    problem = reaction_problem(M, f, W, state, laws, **data)
    if problem.reduced.singular:
        raise ModelError(
            "M is singular on motions that the other constraints leave free; reactions as limits need a definite one"
        )
    r, residual, rounds = solve_rows(problem, associated, warm)
    if residual > OPTIMAL and not associated:
        every = all_solutions(problem)
        if every is not None and not every:
            return _none(problem, rounds)
        if every:
            r, residual = _best_of(problem, every)
    return _finished(problem, r, residual, rounds, associated)


def _best_of(problem: ReactionProblem, every: list[Array]) -> tuple[Array, float]:
    """Return the answer of a mode that obeys the laws best, each improved by the kernel, and its residual."""
    tried = [solve_rows(problem, False, reactions=x) for x in every]
    r, residual, _ = min(tried, key=lambda one: one[1])
    return r, residual


def solve_rows(
    problem: ReactionProblem, associated: bool, warm: Any = None, reactions: Array | None = None
) -> tuple[Array, float, int]:
    """Run the kernel on the contact rows, from forces or reactions; return reactions, residual and Newton steps."""
    from dalembert.friction.cone_kernel import ASSOCIATED, COULOMB
    from dalembert.friction.contact_kernel import solve_with_rows

    G, g = problem.delassus
    r = np.zeros(g.size) if reactions is None else reactions.copy()
    if warm is not None:
        start = np.asarray(warm, dtype=float)
        for column, row in enumerate(problem.columns):
            if row >= 0:
                r[row] = start[column]
    if g.size == 0:
        return r, 0.0, 0
    law = ASSOCIATED if associated else COULOMB
    J = np.ascontiguousarray(problem.reduced.reduced[1].T)
    residual, _, steps = solve_with_rows(
        J, np.ascontiguousarray(G), np.ascontiguousarray(g), problem.first, problem.mu, law, problem.kind,
        problem.sliding, problem.direction, r, TOLERANCE, 12, NEWTON,
    )  # fmt: skip
    return r, float(residual), int(steps)


def _finished(problem: ReactionProblem, r: Array, residual: float, rounds: int, associated: bool) -> Resolution:
    reduced = problem.reduced
    a, others = reduced.acceleration(r)
    size = np.abs(reduced.delassus[0]) @ np.abs(r) + np.abs(reduced.delassus[1]) + np.finfo(float).tiny
    if not associated and residual <= OPTIMAL:
        a, r, missed = settled(problem, a, r, size)
        residual = max(residual, missed)
    lam = np.zeros(problem.system.m)
    lam[list(problem.others)] = others
    lam[list(problem.normals)] = -r[problem.first[:-1][problem.kind != FIXED]]
    forces = np.where(problem.columns >= 0, r[problem.columns] if r.size else 0.0, problem.known) + 0.0
    forces[np.abs(forces) < NOTHING] = 0.0
    u = reduced.W.T @ a + reduced.contact_drift
    u[np.abs(u) <= 1e3 * STILL * size] = 0.0
    xi = np.array([u[row] if row >= 0 else np.nan for row in problem.columns])
    name = "exact, associated" if associated else "exact, Coulomb cones"
    certificate = FrictionCertificate(name, residual, 0.0, rounds)
    status = FrictionStatus.SOLVED if residual <= OPTIMAL else FrictionStatus.NOT_CONVERGED
    sets = _sets(problem, r, u, size)
    if not status.solved:
        a, forces, lam, xi = (np.full_like(x, np.nan) for x in (a, forces, lam, xi))
    return Resolution(
        a, forces, lam, xi, sets, status, certificate, problem.column_names,
        problem.system.coordinates, lambda: report(problem, r, status.solved, associated),
    )  # fmt: skip


def _sets(problem: ReactionProblem, r: Array, u: Array, size: Array) -> IndexSets:
    """Sort contacts by reaction, velocity, force and relative acceleration."""
    sliding, sticking, onset, limit, apart = [], [], {}, [], []
    stiffness = np.diag(problem.delassus[0])
    for i, name in enumerate(problem.names):
        a, b = problem.first[i], problem.first[i + 1]
        tangent = np.arange(a if problem.kind[i] == FIXED else a + 1, b)
        if problem.kind[i] == UNILATERAL and u[a] > 0.0 and stiffness[a] * r[a] <= OPTIMAL * size[a]:
            apart.append(name)
            continue
        if problem.sliding[i]:
            sliding.append(name)
            continue
        bound = problem.mu[i] if problem.kind[i] == FIXED else problem.mu[i] * abs(r[a])
        force, speed = np.linalg.norm(r[tangent]), np.linalg.norm(u[tangent])
        full = force >= bound * (1.0 - AT_LIMIT)
        if full and speed > STILL * 1e2 * size[tangent].max(initial=0.0):
            onset[name] = float(np.sign(u[tangent][0])) if tangent.size == 1 else u[tangent] / speed
        else:
            sticking.append(name)
            if full:
                limit.append(name)
    return IndexSets((*sliding, *problem.moving), tuple(sticking), onset, tuple(limit), tuple(apart))


def report(problem: ReactionProblem, r: Array, solved: bool, associated: bool = False) -> UniquenessReport:
    """Say whether there are other answers, as far as that can be proved."""
    nothing = np.zeros((0, problem.system.n))
    if not solved:
        return UniquenessReport(
            None, None, (), "the method found no answer, and there are too many modes to try all", nothing
        )
    if associated:
        return _report_associated(problem, r, nothing)
    spread, open_names = family_of(problem, r)
    if spread.shape[0]:
        return UniquenessReport(
            True,
            False,
            open_names,
            "redundant reactions share their load in many ways, and the friction with them",
            spread,
        )
    if np.all(problem.kind == FIXED):
        return UniquenessReport(True, True, open_names, "given limits: a strictly convex problem", nothing)
    if proved_unique(problem.delassus[0], problem.first, problem.mu, problem.kind, problem.sliding):
        return UniquenessReport(True, True, (), "friction is weak enough for the coupling: a contraction", nothing)
    every = all_solutions(problem)
    if every is None:
        reason = "too many contacts (or a plane) to try all modes, and too strong a coupling for the contraction"
        return UniquenessReport(True, None, open_names, reason, nothing)
    a = np.array([problem.reduced.acceleration(x)[0] for x in every])
    here = problem.reduced.acceleration(r)[0]
    scale = np.abs(a).max() + np.abs(here).max() + np.abs(problem.reduced.free_acceleration).max()
    others = a[np.abs(a - here).max(axis=1) > 1e-8 * scale]
    who = tuple(sorted({*open_names, *_differing(problem, r, every)}))
    if len(others):
        return UniquenessReport(True, False, who, "several modes obey the laws (Painleve)", others)
    return UniquenessReport(
        True, True, open_names, "all modes were tried: no other acceleration obeys the laws", nothing
    )


def _report_associated(problem: ReactionProblem, r: Array, nothing: Array) -> UniquenessReport:
    """Say what the convex problem determines: the acceleration, unless contacts in motion or pulling rows are in it."""
    if np.any(problem.sliding) or np.any(problem.kind == BILATERAL):
        reason = "associated, with rows that pull or contacts in motion: not a convex problem"
        return UniquenessReport(True, None, (), reason, nothing)
    inside = np.zeros(r.size, dtype=bool)
    for i in range(len(problem.names)):
        a, b, given = problem.first[i], problem.first[i + 1], problem.kind[i] == FIXED
        bound = problem.mu[i] if given else problem.mu[i] * r[a]
        inside[a:b] = np.linalg.norm(r[a if given else a + 1 : b]) < bound * (1.0 - AT_LIMIT)
    owner = [name for i, name in enumerate(problem.names) for _ in range(problem.first[i + 1] - problem.first[i])]
    loose = undetermined_forces(problem.reduced.reduced[0], inside, np.zeros(r.size, dtype=int), owner)
    return UniquenessReport(True, True, tuple(dict.fromkeys(loose)), "associated: a strictly convex problem", nothing)


def _differing(problem: ReactionProblem, r: Array, every: list[Array]) -> set[str]:
    scale = max(np.abs(x).max(initial=0.0) for x in every)
    return {
        name
        for i, name in enumerate(problem.names)
        for x in every
        if np.abs((x - r)[problem.first[i] : problem.first[i + 1]]).max() > 1e-8 * scale
    }


def _none(problem: ReactionProblem, rounds: int) -> Resolution:
    n, m, k = problem.system.n, problem.columns.size, problem.system.m
    who = tuple(problem.names)
    reason = f"no combination of stick, slip and lift-off obeys the laws at {', '.join(who)}"
    nothing = UniquenessReport(False, None, who, reason, np.zeros((0, n)))
    certificate = FrictionCertificate("exact, Coulomb cones", np.inf, np.inf, rounds, "all modes were tried")
    sets = IndexSets(tuple(n for n, s in zip(problem.names, problem.sliding, strict=True) if s), (), {}, ())
    return Resolution(
        np.full(n, np.nan), np.full(m, np.nan), np.full(k, np.nan), np.full(m, np.nan), sets,
        FrictionStatus.NO_SOLUTION, certificate, problem.column_names, problem.system.coordinates, lambda: nothing,
    )  # fmt: skip
