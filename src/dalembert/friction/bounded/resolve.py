"""`resolve`: the friction forces and accelerations of one state with bounded contacts, by a method of choice."""

from __future__ import annotations

from dataclasses import replace
from inspect import signature
from typing import Any

import numpy as np

from dalembert.checks import is_number
from dalembert.errors import ModelError
from dalembert.friction.bounded.massless import hold_massless
from dalembert.friction.bounded.methods import METHODS, MethodForces
from dalembert.friction.bounded.problem import FrictionProblem, checked_problem
from dalembert.friction.cones.problem import Limited, Reacting
from dalembert.friction.cones.resolve import resolve_coulomb
from dalembert.friction.resolution import (
    AT_LIMIT,
    FrictionCertificate,
    FrictionStatus,
    IndexSets,
    Resolution,
    index_sets,
)
from dalembert.friction.uniqueness import UniquenessReport, undetermined_forces
from dalembert.kkt.inputs import checked_vector, refuse_nonfinite
from dalembert.names import near_matches

Array = np.ndarray

HELD = 1e-10
"""A sticking contact's acceleration is zero up to this part of its terms; methods that miss that are not corrected."""

ROUNDED = 0.03
"""This part of the terms of g counts besides g itself: where they cancel, g is rounding and no measure of anything."""

RESOLVED = 1e-3
"""So does this part of the largest force: others are known to its rounding only."""


def resolve(
    M: Any,
    f: Any,
    W: Any,
    state: Any,
    laws: Any,
    method: str = "exact",
    *,
    A: Any = None,
    drift: Any = None,
    contact_drift: Any = None,
    names: Any = None,
    rows: Any = None,
    coordinates: Any = None,
    loads: Any = None,
    at_rest: float = 0.0,
    warm: Any = None,
    state_of_system: Any = None,
    **options: Any,
) -> Resolution:
    """Find accelerations and friction forces: M a + A^T lam = f + W T, A a = -drift, T by the friction laws.

    Parameters
    ----------
    M, f
        Mass matrix (n, n), which may be singular where constraints and sticking contacts hold the massless motion;
        applied minus velocity-dependent forces (n,).
    W
        Contact directions as columns, (n, m), as in eq. (21a); possibly redundant.
    state
        Relative velocities of the contacts, (m,): zero (up to `at_rest`) is rest, where the law is set-valued.
    laws
        One law, or one per contact: a law of `dalembert.friction`, a number (Coulomb's law), or `Reacting` where the
        limit is a coefficient times the reaction of a row of A. A contact in a plane takes two columns of W: `Reacting`
        with directions=2, or `Limited` for a given limit.
    method
        One of `dalembert.friction.METHODS`: "exact", "flowchart" (options form, release), "switch", "regularised".
        `Reacting` and `Limited` laws need "exact" (option associated).
    A, drift
        Constraint rows (k, n) and A_dot v.
    contact_drift
        What remains of the relative accelerations at a = 0, (m,): W_dot^T v minus the surface's acceleration.
    names, rows, coordinates
        Names of contacts, rows and coordinates.
    loads
        Factors on the laws of bounded contacts, (m,).
    at_rest
        Relative velocities up to this size count as zero.
    warm
        Forces of a neighbouring state, (m,), as a first guess.
    state_of_system
        (q, v, t), for laws that depend on it.

    Returns
    -------
    Resolution
        With status and certificate; `report` says what is not unique. A state without an answer is data too: its
        acceleration is NaN.

    Examples
    --------
    Two blocks on a belt, all three contacts at rest (seed 001, eq. 21a, Table 1):

    >>> r = resolve(np.diag([4.0, 7.0]), [-6.3, 0.0], [[1, 0, 1], [0, 1, -1]], [0, 0, 0], [4.0, 7.0, 5.0])
    >>> r.forces, r.sets.sticking
    (array([4. , 2.3, 2.3]), ('contact 0', 'contact 1', 'contact 2'))
    """
    _refuse_unknown(method)
    refuse_negative(at_rest)
    laws = [laws] if isinstance(laws, Reacting | Limited) else laws
    if warm is not None:
        warm = checked_vector(warm, np.shape(W)[-1] if np.ndim(W) else 0, "warm")
        refuse_nonfinite(warm, "warm", [f"column {i}" for i in range(warm.size)])
    common = {"A": A, "drift": drift, "contact_drift": contact_drift, "names": names, "rows": rows}
    common |= {"coordinates": coordinates, "at_rest": at_rest, "loads": loads, "state_of_system": state_of_system}
    if isinstance(laws, list | tuple) and any(isinstance(law, Reacting | Limited) for law in laws):
        if method != "exact":
            raise ModelError(f"method={method!r} knows given limits in one direction only; others need method='exact'")
        _refuse_options(options, resolve_coulomb, method, "with Reacting or Limited laws")
        return resolve_coulomb(M, f, W, state, laws, warm=warm, **common, **options)
    _refuse_options(options, METHODS[method], method, "with given limits")
    problem = checked_problem(M, f, W, state, laws, **common)
    if problem.singular:
        return hold_massless(problem, method, METHODS[method], finished)
    return finished(problem, method, METHODS[method](problem, warm, **options))


def finished(problem: FrictionProblem, method: str, found: MethodForces) -> Resolution:
    """Turn forces into a resolution: acceleration, index sets, certificate, verdict."""
    T = found.forces
    if not np.isfinite(T).all():
        return _without_answer(problem, method, found)
    a, lam, certain = problem.solved(problem.f + problem.W @ T)
    G, g = problem.delassus
    R = problem.rest
    terms = problem.terms + RESOLVED * G.diagonal() * np.abs(T).max(initial=0.0)
    size = np.abs(G) @ np.abs(np.where(R, T, 0.0)) + np.abs(g) + ROUNDED * terms + np.finfo(float).tiny
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


def certify(problem: FrictionProblem, method: str, found: MethodForces, c: Array, size: Array) -> FrictionCertificate:
    """Measure how far the forces are from the friction laws at the contacts at rest, c their accelerations."""
    R, T, G = problem.rest, found.forces, problem.delassus[0]
    diagonal = np.where(np.diag(G) > 0.0, np.diag(G), 1.0)
    missed = diagonal * np.abs(T - np.clip(T - c / diagonal, -problem.limits, problem.limits))
    optimality = float(np.max(missed[R] / size[R], initial=0.0))
    limit = np.where(R, problem.limits, np.abs(problem.forces_in_motion))
    over = np.abs(T) - limit
    excess = float(np.max(np.where(over > 0.0, over / np.where(limit > 0.0, limit, 1.0), 0.0), initial=0.0))
    return FrictionCertificate(method, optimality, excess, found.iterations, found.note)


def report_of(problem: FrictionProblem, T: Array, sets: IndexSets) -> UniquenessReport:
    """Say which forces of a bounded problem are determined."""
    stuck = np.array([name in sets.sticking for name in problem.names], dtype=bool)
    side = np.where(np.abs(T) >= problem.limits * (1.0 - AT_LIMIT), np.sign(T), 0.0).astype(int)
    loose = stuck & (problem.limits > 0.0)
    names = undetermined_forces(problem.reduced[0], loose, side, problem.names)
    reason = "given limits: a strictly convex problem in the acceleration"
    if names:
        reason += "; the sticking contacts are redundant, the least-norm forces are returned"
    return UniquenessReport(True, True, names, reason, np.zeros((0, problem.system.n)))


def _without_answer(problem: FrictionProblem, method: str, found: MethodForces) -> Resolution:
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


def _refuse_unknown(method: str) -> None:
    if not isinstance(method, str) or method not in METHODS:
        near = near_matches(method, METHODS)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ModelError(f"method={method!r} is not one of {', '.join(map(repr, METHODS))}{hint}")


def refuse_negative(at_rest: float) -> None:
    """Raise for a band of rest that is negative or no number: every contact would seem to slide."""
    if not is_number(at_rest) or not 0.0 <= at_rest < np.inf:
        raise ModelError(f"at_rest={at_rest!r} must be finite and not negative: velocities up to it count as zero")


def _refuse_options(options: dict[str, Any], function: Any, method: str, where: str) -> None:
    """Raise for an option that the method does not have."""
    if not options:
        return
    known = [name for name, one in signature(function).parameters.items() if one.default is not one.empty]
    known = [name for name in known if name != "warm"]
    for name in options:
        if name not in known:
            has = f"it has {', '.join(known)}" if known else "it has none"
            raise ModelError(f"method={method!r} {where} does not know the option {name!r}; {has}")
