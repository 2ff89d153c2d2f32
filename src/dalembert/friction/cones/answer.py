"""Disks and cones resolved: answer, verdict and report of one state; known modes solved once more."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.friction.cones.contact_rows import ConeProblem
from dalembert.friction.cones.contradiction import contradiction
from dalembert.friction.cones.faceted import FACETS, solve_faceted
from dalembert.friction.cones.massless import (
    determined,
    heavier,
    heaviest,
    massless_report,
    proximal_factors,
    unheld,
)
from dalembert.friction.cones.modes import ModeAnswer, all_solutions, family_of, typical_reaction
from dalembert.friction.contact_problem import BILATERAL, FIXED, UNILATERAL
from dalembert.friction.delassus import Delassus
from dalembert.friction.limits import (
    AIM,
    AT_LIMIT,
    CLOSE,
    DISTINCT,
    ENDLESS,
    LARGE,
    MISSED,
    NOTHING,
    OPTIMAL,
    REDUNDANT_REST,
    STILL,
    SWEEPS,
)
from dalembert.friction.resolution import (
    FrictionCertificate,
    IndexSets,
    Resolution,
)
from dalembert.friction.uniqueness import UniquenessReport, proved_unique, undetermined_forces
from dalembert.status import Status
from dalembert.types import Array

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

# ----------------------------------------------------------------------------------------------------------------------
# Reactions and accelerations of a known mode, solved once more with the mass matrix itself.
#
# The Delassus matrix weighs forces by inverse masses: with mass ratios of 1e8 a row that is held, u = G r + g = 0 to
# rounding, is missed by H a + drift. Here the rows at rest are constraints and the slipping forces follow their
# normals:
#
#     [ M   A^T  -F ] [ a   ]   [ load + H^T r_given ]
#     [ A    0    0 ] [ lam ] = [ -drift             ]      F = H_held^T, normals of slipping contacts with their
#     friction
#     [ H_held 0  0 ] [ x   ]   [ -contact drift     ]
#
# Symbols: H contact rows (p, n), r their reactions, u = H a + drift, x the reactions of rows at rest.


def rows_at_rest(problem: ConeProblem, r: Array, still: Bool[Array, " p"]) -> tuple[Array, Array]:
    """Return which rows are at rest (p,), and for each row of a slipping contact the number of its normal, else -1."""
    held, normal = np.zeros(r.size, dtype=bool), np.full(r.size, -1)
    for i in range(len(problem.names)):
        a, b = int(problem.first[i]), int(problem.first[i + 1])
        fixed = problem.kind[i] == FIXED
        tangent = slice(a if fixed else a + 1, b)
        if not fixed:
            if problem.kind[i] == UNILATERAL and r[a] <= 0.0:
                continue
            held[a] = True
        bound = problem.mu[i] * (1.0 if fixed else abs(r[a]))
        inside = np.linalg.norm(r[tangent]) < bound * (1.0 - AT_LIMIT) or (bound > 0.0 and still[tangent].all())
        if inside and not problem.sliding[i]:
            held[tangent] = True
        elif not fixed and r[a] != 0.0:
            normal[tangent] = a
    return held, normal


def settled(
    problem: ConeProblem, a: Float[Array, " n"], r: Float[Array, " p"], noise: Float[Array, " p"]
) -> tuple[Float[Array, " n"], Float[Array, " p"], float]:
    """Return acceleration and reactions with rows at rest held, and by how much they are missed, relative to data.

    `noise` (p,) are the terms that G r + g is summed from. Nothing changes where the rows hold already.
    """
    reduced = problem.reduced
    u, size = reduced.W.T @ a + reduced.contact_drift, reduced.sizes
    held, normal = rows_at_rest(problem, r, np.abs(u) <= 1e2 * STILL * noise)
    missed = _largest_part(u[held], size[held])
    if missed <= MISSED:
        return a, r, missed
    new, x = _solved(problem, held, normal, a, r)
    u = reduced.W.T @ new + reduced.contact_drift
    better = _largest_part(u[held], size[held])
    close = np.abs(x - r).max(initial=0.0) <= CLOSE * np.abs(r).max(initial=0.0)
    return (new, x, better) if better < missed and close else (a, r, missed)


def _largest_part(u: Array, size: Array) -> float:
    """Return the largest |u| over its size; infinite beside data that are zero."""
    with np.errstate(over="ignore"):
        return float(np.max(np.abs(u) / size, initial=0.0))


def _solved(problem: ConeProblem, held: Array, normal: Array, a: Array, r: Array) -> tuple[Array, Array]:
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
    d = 1.0 / np.sqrt(np.where(M.diagonal() > 0.0, M.diagonal(), 1.0))  # constraints hold what has no mass
    size = np.abs(lower * d).max(axis=1, initial=0.0)
    e = 1.0 / np.where(size > 0.0, size, 1.0)
    scale = np.concatenate([d, e])
    K, b = scale[:, None] * K * scale, scale * b
    y = np.concatenate([a / d, np.zeros(len(A)), r[rows] / e[len(A) :]])
    for _ in range(3):
        y = y + np.linalg.lstsq(K, b - K @ y, rcond=REDUNDANT_REST)[0]
    return d * y[:n], fixed + follows @ (e[len(A) :] * y[n + len(A) :])


# ----------------------------------------------------------------------------------------------------------------------
# Resolve contacts whose friction is limited by a reaction: exact cones, one direction or a plane.


NEWTON = 400
"""Steps before the kernel gives up; 3 to 10 are usual, 15 to 40 with many redundant contacts."""


def resolve_cones(problem: ConeProblem, warm: Any = None, associated: bool = False) -> Resolution:
    """Solve the complementarity problem of Coulomb's law, or with `associated` the convex one."""
    if problem.reduced.singular:
        return _held_massless(problem, associated)
    r, _, rounds = solve_rows(problem, associated, warm)
    answer = _answer(problem, r, associated)
    if answer.residual <= OPTIMAL:
        return _finished(problem, answer, rounds, associated)
    weights = contradiction(problem)
    if weights:
        return _none(problem, rounds, associated, "contacts contradict each other, whatever the forces", weights)
    cone = contradiction(problem, associated=True)
    if associated:
        if cone:
            return _none(problem, rounds, associated, "no acceleration is in the dual cones of the contacts", cone)
        return _finished(problem, answer, rounds, associated)
    every = all_solutions(problem)
    if every is not None and not every:
        return _none(problem, rounds, associated, "all modes were tried", {})
    if every:
        tried = [result for mode in every for result in _answers(problem, mode)]
        answer = min((answer, *tried), key=lambda result: result.residual)
    if cone and answer.residual > OPTIMAL:
        note = f"the associated problem has no answer ({', '.join(cone)}); for Coulomb's law that is not proved"
        return _finished(problem, answer, rounds, associated, note)
    return _finished(problem, answer, rounds, associated)


MASSLESS_NOTE = "M is singular on motions that the other constraints leave free"
"""Begins what is said of problems without a Delassus matrix."""


def _held_massless(problem: ConeProblem, associated: bool) -> Resolution:
    """Resolve a problem whose M is singular, by proximal points; what they find is measured with M itself."""
    rho0, a = heaviest(problem), np.zeros(problem.system.n)
    first, r, rounds = heavier(problem, rho0, a), np.zeros(problem.first[-1]), 0
    sizes, stiffness = first.reduced.sizes, first.delassus[0].diagonal()
    note = f"{MASSLESS_NOTE}: no answer was found by proximal points"
    for part in proximal_factors():
        near = heavier(problem, part * rho0, a)
        r, _, steps = solve_rows(near, associated, reactions=r)
        rounds += steps
        answer = _answer(near, r, associated)
        if not np.isfinite(answer.a).all():
            break
        a, r = answer.a, answer.r
        residual = measured(first, a, r, associated, problem.reduced)
        if residual > OPTIMAL:
            continue
        u = problem.reduced.W.T @ a + problem.reduced.contact_drift
        pushed = np.where(np.abs(r) * stiffness > OPTIMAL * sizes, r, 0.0)
        held, _ = rows_at_rest(problem, pushed, np.abs(u) <= 1e2 * STILL * sizes)
        if not determined(problem, a, held):
            note = f"{MASSLESS_NOTE}, and the contacts do not determine them"
            break
        near, note = heavier(problem, part * rho0, a), "through proximal points: M is singular"
        solved = _finished(near, _Answer(a, r, residual), rounds, associated, note)
        return replace(solved, examine=partial(massless_report, problem, a, r, held))
    return _not_held(problem, first, rounds, associated, note)


def _not_held(problem: ConeProblem, first: ConeProblem, rounds: int, associated: bool, note: str) -> Resolution:
    """Return why a problem whose M is singular has no answer: a contradiction, a motion that nothing holds, doubt."""
    weights = contradiction(problem)
    if weights:
        return _none(problem, rounds, associated, "contacts contradict each other, whatever the forces", weights)
    n, p = problem.system.n, int(problem.first[-1])
    nothing = _Answer(np.full(n, np.nan), np.full(p, np.nan), np.inf)
    refused = _finished(first, nothing, rounds, associated, note)
    if not (np.all(problem.kind == FIXED) and unheld(problem)):
        return refused
    note = f"{MASSLESS_NOTE}, and no contact holds one of them"
    report = UniquenessReport(False, None, (), note, np.zeros((0, n)))
    certificate = replace(refused.certificate, note=note)
    return replace(refused, status=Status.MASSLESS, certificate=certificate, examine=lambda: report)


@dataclass(frozen=True, eq=False)
class _Answer:
    """Acceleration, reactions of the contact rows, and by how much they miss the laws, measured against data."""

    a: Array
    r: Array
    residual: float


def _answers(problem: ConeProblem, mode: ModeAnswer) -> list[_Answer]:
    """Return the answers that a mode leads to: as it is, and improved by the kernel."""
    return [_answer(problem, x, False) for x in (mode.r, solve_rows(problem, False, reactions=mode.r)[0])]


def _answer(problem: ConeProblem, r: Array, associated: bool) -> _Answer:
    """Return the acceleration of these reactions, its mode solved once more where that helps, and measure both."""
    reduced = problem.reduced
    if not np.abs(r).max(initial=0.0) < ENDLESS:
        return _Answer(np.full(problem.system.n, np.nan), np.full(r.size, np.nan), np.inf)
    a = reduced.acceleration(r)[0]
    first = _Answer(a, r, measured(problem, a, r, associated))
    if associated:
        return first
    noise = np.abs(reduced.delassus[0]) @ np.abs(r) + np.abs(reduced.delassus[1]) + np.finfo(float).tiny
    a, r, _ = settled(problem, a, r, noise)
    if a is first.a:
        return first
    again = _Answer(a, r, measured(problem, a, r, associated))
    return again if again.residual <= max(first.residual, OPTIMAL) else first


def measured(problem: ConeProblem, a: Array, r: Array, associated: bool, balance: Delassus | None = None) -> float:
    """Return by how much acceleration and reactions miss the laws and the equations of motion, relative to data.

    The equations are those of `balance` where that is another system: M where the problem has M + rho I.

    Data explain a motion and reactions of about the size of the free motion, in the metric of kinetic energy, and of
    one that obeys the drifts. Of what is larger only that part gives a residual its size, and the digits that its
    rounding costs are counted as a residual.
    """
    from dalembert.friction.cones.measure import violation
    from dalembert.friction.cones.sweeps import ASSOCIATED, COULOMB

    reduced = problem.reduced
    if r.size == 0:
        return 0.0
    if not max(np.abs(a).max(initial=0.0), np.abs(r).max(initial=0.0)) < ENDLESS:  # NaN is not below either
        return np.inf
    H = reduced.W.T
    stiffness = reduced.delassus[0].diagonal()
    amplified = _amplified(problem, a, r, stiffness)
    explained = min(1.0, 1.0 / max(amplified, np.finfo(float).tiny))
    size = reduced.sizes + explained * (np.abs(H) @ np.abs(a))
    u = H @ a + reduced.contact_drift
    law = ASSOCIATED if associated else COULOMB
    wrong: Any = violation(
        u, r, size, np.ascontiguousarray(stiffness), problem.first, problem.mu, law, problem.kind, problem.sliding,
        problem.direction,
    )  # fmt: skip
    whole = reduced.whole_motion
    off = (balance or reduced).out_of_balance(a, r, explained, whole if balance is None else whole.max(initial=0.0))
    return float(max(wrong, off, np.finfo(float).eps * amplified))


def _amplified(problem: ConeProblem, a: Array, r: Array, stiffness: Array) -> float:
    """Return how much larger acceleration and reactions are than data explain, in the metric of kinetic energy."""
    reduced = problem.reduced
    M, drift = reduced.system.M, reduced.contact_drift

    def energy(x: Array) -> float:
        return float(np.sqrt(max(x @ M @ x, 0.0)))

    data = reduced.kinetic + float(np.linalg.norm(np.sqrt(stiffness) * problem.row_limits))
    answer = max(energy(a), float(np.linalg.norm(np.sqrt(stiffness) * r)))
    if answer <= LARGE * data:
        return answer / data if data > 0.0 else 0.0
    rows = np.vstack([reduced.system.A, reduced.W.T])
    size = np.abs(rows).max(axis=1)
    size = np.where(size > 0.0, size, 1.0)
    drifts = np.concatenate([reduced.drift, drift]) / size
    data += energy(np.linalg.lstsq(rows / size[:, None], -drifts, rcond=1.0 / LARGE)[0])
    return answer / data if data > 0.0 else np.inf


def solve_rows(
    problem: ConeProblem, associated: bool, warm: Any = None, reactions: Array | None = None
) -> tuple[Array, float, int]:
    """Run the kernel on the contact rows, from forces or reactions; return reactions, residual and Newton steps."""
    from dalembert.friction.cones.solver import solve_with_rows
    from dalembert.friction.cones.sweeps import ASSOCIATED, COULOMB

    G, g = problem.delassus
    r = _first_reactions(problem, warm) if reactions is None else reactions.copy()
    if g.size == 0:
        return r, 0.0, 0
    law = ASSOCIATED if associated else COULOMB
    J = np.ascontiguousarray(problem.reduced.reduced[1].T)
    residual, _, steps = solve_with_rows(
        J, np.ascontiguousarray(G), np.ascontiguousarray(g), problem.first, problem.mu, law, problem.kind,
        problem.sliding, problem.direction, r, AIM, 12, NEWTON,
    )  # fmt: skip
    return r, float(residual), int(steps)


def _first_reactions(problem: ConeProblem, warm: Any) -> Float[Array, " p"]:
    """Return reactions to begin with: zero, tangential ones from the forces of a neighbouring state."""
    r = np.zeros(int(problem.first[-1]))
    if warm is not None:
        start = np.asarray(warm, dtype=float)
        for column, row in enumerate(problem.columns):
            if row >= 0:
                r[row] = start[column]
    return r


def _finished(
    problem: ConeProblem, answer: _Answer, rounds: int, associated: bool, note: str = "", method: str = "",
    otherwise: Status = Status.NOT_CONVERGED,
) -> Resolution:  # fmt: skip
    """Return an answer with its verdict: SOLVED where it obeys the laws, else `otherwise`."""
    reduced = problem.reduced
    a, r, residual = answer.a, answer.r, answer.residual
    others = reduced.acceleration(r)[1] if np.isfinite(r).all() else np.full(len(problem.others), np.nan)
    size = np.abs(reduced.delassus[0]) @ np.abs(r) + np.abs(reduced.delassus[1]) + np.finfo(float).tiny
    lam = np.zeros(problem.system.m)
    lam[list(problem.others)] = others
    lam[list(problem.normals)] = -r[problem.first[:-1][problem.kind != FIXED]]
    forces = np.where(problem.columns >= 0, r[problem.columns] if r.size else 0.0, problem.known) + 0.0
    forces[np.abs(forces) < NOTHING] = 0.0
    u = reduced.W.T @ a + reduced.contact_drift
    u[np.abs(u) <= 1e3 * STILL * size] = 0.0
    xi = problem.W.T @ a + problem.contact_drift
    xi[problem.columns >= 0] = u[problem.columns[problem.columns >= 0]]
    name = "exact, associated" if associated else "exact, Coulomb cones"
    certificate = FrictionCertificate(method or name, residual, 0.0, rounds, note)
    status = Status.SOLVED if residual <= OPTIMAL else otherwise
    sets = _sets(problem, r, u, size)
    if not status.ok and status is not Status.NOT_OPTIMAL:
        a, forces, lam, xi = (np.full_like(x, np.nan) for x in (a, forces, lam, xi))
    return Resolution(
        a, forces, lam, xi, sets, status, certificate, problem.column_names,
        problem.system.coordinates, lambda: report(problem, r, status.ok, associated, note),
    )  # fmt: skip


# ----------------------------------------------------------------------------------------------------------------------
# Methods for comparison: faceted cones by Lemke's pivoting, projected sweeps. What they find is measured by the exact
# laws; where it misses them it is returned all the same, as NOT_OPTIMAL.


def resolve_faceted(problem: ConeProblem, warm: Any = None, facets: int = FACETS) -> Resolution:
    """Solve the linear complementarity problem of faceted cones; `warm` is not used, pivoting has no first guess."""
    if problem.reduced.singular:
        return _declined(problem, "lcp")
    r, ray, pivots = solve_faceted(
        *problem.delassus, problem.first, problem.mu, problem.kind, problem.sliding, problem.direction, facets
    )
    if np.isfinite(r).all():
        return _compared(problem, r, pivots, "lcp")
    weights = contradiction(problem)
    if weights:
        return _none(problem, pivots, False, "contacts contradict each other, whatever the forces", weights, "lcp")
    who = ", ".join(problem.names[i] for i in ray)
    note = f"Lemke's method ended on a ray along {who}" if who else "Lemke's method was given up"
    nothing = _Answer(np.full(problem.system.n, np.nan), r, np.inf)
    return _finished(problem, nothing, pivots, False, note, "lcp")


def resolve_by_sweeps(
    problem: ConeProblem, warm: Any = None, scheme: str = "gauss-seidel", sweeps: int = SWEEPS, relaxation: Any = None
) -> Resolution:
    """Sweep over the contacts from rest or from `warm`, with no other method behind it."""
    from dalembert.friction.cones.plain_sweeps import solve_by_sweeps

    if problem.reduced.singular:
        return _declined(problem, "sweeps")
    G, g = problem.delassus
    r = _first_reactions(problem, warm)
    _, done = solve_by_sweeps(
        G, g, problem.first, problem.mu, problem.kind, problem.sliding, problem.direction, r, scheme, sweeps,
        relaxation, AIM,
    )  # fmt: skip
    return _compared(problem, r, done, "sweeps")


def _compared(problem: ConeProblem, r: Array, rounds: int, method: str) -> Resolution:
    """Return reactions with the verdict of the exact laws."""
    a = problem.reduced.acceleration(r)[0]
    answer = _Answer(a, r, measured(problem, a, r, False))
    return _finished(problem, answer, rounds, False, "", method, Status.NOT_OPTIMAL)


def _declined(problem: ConeProblem, method: str) -> Resolution:
    """Return that a method needs a Delassus matrix, which a singular M does not have."""
    first = heavier(problem, heaviest(problem), np.zeros(problem.system.n))
    nothing = _Answer(np.full(problem.system.n, np.nan), np.full(int(problem.first[-1]), np.nan), np.inf)
    return _finished(first, nothing, 0, False, f"{MASSLESS_NOTE}: use method='exact'", method, Status.DECLINED)


METHODS = {"exact": resolve_cones, "lcp": resolve_faceted, "sweeps": resolve_by_sweeps}
"""Methods that know reactions as limits and planes."""


def _sets(problem: ConeProblem, r: Array, u: Array, size: Array) -> IndexSets:
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


def report(problem: ConeProblem, r: Array, solved: bool, associated: bool = False, note: str = "") -> UniquenessReport:
    """Say whether there are other answers, as far as that can be proved."""
    nothing = np.zeros((0, problem.system.n))
    if not solved:
        reason = note or "the method found no answer, and that there is none is not proved"
        return UniquenessReport(None, None, (), reason, nothing)
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
    J = problem.reduced.reduced[1]
    definite = J.shape[0] >= J.shape[1]  # fewer motions than rows: G is singular, no contraction
    if definite and proved_unique(problem.delassus[0], problem.first, problem.mu, problem.kind, problem.sliding):
        return UniquenessReport(True, True, (), "friction is weak enough for the coupling: a contraction", nothing)
    every = all_solutions(problem)
    if every is None:
        reason = "too many contacts (or a plane) to try all modes, and too strong a coupling for the contraction"
        return UniquenessReport(True, None, open_names, reason, nothing)
    tried, loose = [], np.array([name in open_names for name in problem.names])
    for mode in every:
        good = [x for x in _answers(problem, mode) if x.residual <= OPTIMAL]
        tried += good
        loose |= mode.loose & bool(good)
    a = np.array([x.a for x in tried]).reshape(len(tried), problem.system.n)
    others = a[_differs(problem, a, problem.reduced.acceleration(r)[0])]
    loose |= _differing(problem, r, [x.r for x in tried])
    who = tuple(problem.names[i] for i in np.flatnonzero(loose))
    if len(others):
        return UniquenessReport(True, False, who, "several modes obey the laws (Painleve)", others)
    return UniquenessReport(True, True, who, "all modes were tried: no other acceleration obeys the laws", nothing)


def _report_associated(problem: ConeProblem, r: Array, nothing: Array) -> UniquenessReport:
    """Say what the convex problem determines: the acceleration, unless contacts in motion or pulling rows are in it."""
    if np.any(problem.sliding) or np.any(problem.kind == BILATERAL):
        reason = "associated, with rows that pull or contacts in motion: not a convex problem"
        return UniquenessReport(True, None, (), reason, nothing)
    inside = np.zeros(r.size, dtype=bool)
    for i in range(len(problem.names)):
        a, b, fixed = problem.first[i], problem.first[i + 1], problem.kind[i] == FIXED
        bound = problem.mu[i] if fixed else problem.mu[i] * r[a]
        inside[a:b] = np.linalg.norm(r[a if fixed else a + 1 : b]) < bound * (1.0 - AT_LIMIT)
    owner = [name for i, name in enumerate(problem.names) for _ in range(problem.first[i + 1] - problem.first[i])]
    loose = undetermined_forces(problem.reduced.reduced[0], inside, np.zeros(r.size, dtype=int), owner)
    return UniquenessReport(True, True, tuple(dict.fromkeys(loose)), "associated: a strictly convex problem", nothing)


def _differs(problem: ConeProblem, a: Float[Array, "j n"], here: Float[Array, " n"]) -> Bool[Array, " j"]:
    """Say which accelerations are others than `here`: some contact row sees the difference, beside data and both.

    Two answers differ by M^-1 H^T d, reduced to what the constraints allow; where no contact row sees that, it is zero.
    """
    H = np.abs(problem.reduced.W.T)
    size = problem.reduced.sizes + np.abs(a) @ H.T + H @ np.abs(here)
    return np.any(np.abs((a - here) @ problem.reduced.W) > DISTINCT * size, axis=1)


def _differing(problem: ConeProblem, r: Array, every: list[Array]) -> Bool[Array, " k"]:
    """Say whose reactions differ between answers, beside a typical reaction and the answers."""
    scale = max((np.abs(x).max(initial=0.0) for x in every), default=0.0) + typical_reaction(problem)
    apart = np.abs(np.array([*every, r]) - r).max(axis=0, initial=0.0) > DISTINCT * scale
    return np.array([apart[a:b].any() for a, b in pairwise(problem.first)], dtype=bool)


def _none(
    problem: ConeProblem, rounds: int, associated: bool, note: str, weights: dict[str, float], method: str = ""
) -> Resolution:
    """Return that there is no answer, and who contradicts whom where weights prove it."""
    n, m, k = problem.system.n, problem.columns.size, problem.system.m
    who = tuple(weights) or tuple(problem.names)
    reason = f"no combination of stick, slip and lift-off obeys the laws at {', '.join(who)}"
    if weights:
        parts = " + ".join(f"{weight:.4g} x {name}" for name, weight in weights.items())
        reason = f"{note}: {', '.join(who)} (the rows {parts} sum to zero, their drifts do not)"
    named = tuple(name for name in who if name in problem.names)
    nothing = UniquenessReport(False, None, named, reason, np.zeros((0, n)))
    name = method or ("exact, associated" if associated else "exact, Coulomb cones")
    note = f"{note}: {', '.join(who)}" if weights else note
    certificate = FrictionCertificate(name, np.inf, np.inf, rounds, note, tuple(weights.items()))
    sets = IndexSets(tuple(n for n, s in zip(problem.names, problem.sliding, strict=True) if s), (), {}, ())
    return Resolution(
        np.full(n, np.nan), np.full(m, np.nan), np.full(k, np.nan), np.full(m, np.nan), sets,
        Status.NO_SOLUTION, certificate, problem.column_names, problem.system.coordinates, lambda: nothing,
    )  # fmt: skip
