"""`resolve`: the friction forces and accelerations of one state, by a method of choice."""

from __future__ import annotations

from inspect import signature
from typing import Any

import numpy as np

from dalembert.checks import is_number
from dalembert.errors import ModelError
from dalembert.friction.bounded.answer import resolve_intervals
from dalembert.friction.bounded.methods import METHODS, IntervalProblem
from dalembert.friction.cones.answer import METHODS as CONE_METHODS
from dalembert.friction.cones.contact_rows import ConeProblem
from dalembert.friction.contact_problem import ContactProblem, problem_at
from dalembert.friction.resolution import Resolution
from dalembert.kkt.inputs import checked_vector, refuse_nonfinite
from dalembert.names import near_matches


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
        One of `dalembert.friction.METHODS`: "exact", "flowchart" (options form, release), "lcp" (facets), "sweeps"
        (scheme "gauss-seidel" or "jacobi", sweeps, relaxation), "switch", "regularised". `Reacting` and `Limited` laws
        need "exact" (option associated), "lcp" or "sweeps".
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
    if warm is not None:
        warm = checked_vector(warm, np.shape(W)[-1] if np.ndim(W) else 0, "warm")
        refuse_nonfinite(warm, "warm", [f"column {i}" for i in range(warm.size)])
    problem = problem_at(
        M, f, W, state, laws, A=A, drift=drift, contact_drift=contact_drift, names=names, rows=rows,
        coordinates=coordinates, at_rest=at_rest, loads=loads, state_of_system=state_of_system,
    )  # fmt: skip
    return resolve_state(problem, 0, method, warm, **options)


def resolve_state(
    problem: ContactProblem, s: int, method: str = "exact", warm: Any = None, **options: Any
) -> Resolution:
    """Resolve state s of a problem: intervals by a method of choice, disks and cones by complementarity."""
    refuse_method(problem.contacts.intervals, method, options)
    if problem.contacts.intervals:
        return resolve_intervals(IntervalProblem.of(problem, s), method, warm, **options)
    return CONE_METHODS[method](ConeProblem.of(problem, s), warm, **options)


def refuse_method(intervals: bool, method: str, options: dict[str, Any]) -> None:
    """Raise for a method that does not know these contacts, and for options that it does not have."""
    _refuse_unknown(method)
    if intervals:
        _refuse_options(options, METHODS[method], method, "with given limits")
        return
    if method not in CONE_METHODS:
        others = " or ".join(map(repr, CONE_METHODS))
        raise ModelError(f"method={method!r} knows given limits in one direction only; others need method={others}")
    _refuse_options(options, CONE_METHODS[method], method, "with Reacting or Limited laws")


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
    keywords = [
        name for name, parameter in signature(function).parameters.items() if parameter.default is not parameter.empty
    ]
    keywords = [name for name in keywords if name != "warm"]
    for name in options:
        if name not in keywords:
            has = f"it has {', '.join(keywords)}" if keywords else "it has none"
            raise ModelError(f"method={method!r} {where} does not know the option {name!r}; {has}")
