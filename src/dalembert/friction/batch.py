"""`resolve_batch`: many states of one system, one status per sample."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalembert.errors import ModelError, ShapeError, SolvabilityError
from dalembert.friction.limits import SYMMETRIC
from dalembert.friction.problem import ContactProblem, problem_over
from dalembert.friction.resolution import BatchResolution, FrictionStatus
from dalembert.friction.resolve import refuse_negative, resolve_state
from dalembert.kkt import Status
from dalembert.kkt.inputs import as_real
from dalembert.types import Array

AGAIN = (FrictionStatus.MASSLESS, FrictionStatus.NOT_CONVERGED)
"""What the compiled loops leave is resolved as a single state: there M may be singular, and all modes are tried."""


def resolve_batch(
    M: Any, f: Any, W: Any, state: Any, laws: Any, *, A: Any = None, drift: Any = None, contact_drift: Any = None,
    loads: Any = None, names: Any = None, rows: Any = None, at_rest: float = 0.0, warm: Any = None,
    associated: bool = False,
) -> BatchResolution:  # fmt: skip
    """Resolve many states exactly, in compiled code.

    Parameters
    ----------
    M, W
        (n, n) and (n, m), common to all samples, or (N, n, n) and (N, n, m).
    f, state
        Forces and relative velocities, (N, n) and (N, m).
    laws
        One law, or one per contact, `Reacting` ones among them (two columns of W for a plane); laws that depend on the
        state of the system are refused.
    A, drift
        Constraint rows, (k, n) or (N, k, n), and A_dot v, (N, k) or (k,); rows may be redundant.
    contact_drift, loads
        (N, m) or (m,); loads are per contact.
    names, rows
        Names of contacts and of constraint rows; a `Reacting` law names its row.
    warm
        First guesses, (N, m).
    associated
        With `Reacting` laws: solve the convex problem instead.

    Notes
    -----
    A sample whose M is singular is resolved by itself, with sticking contacts that hold the massless motion; so is one
    with reactions as limits that the kernel leaves unsolved: if all modes can be tried, its status says whether there
    is an answer. About a microsecond for one contact, ten for ten.
    """
    refuse_negative(at_rest)
    problem = problem_over(M, f, W, state, laws, A=A, drift=drift, contact_drift=contact_drift, names=names, rows=rows,
                           at_rest=at_rest, loads=loads)  # fmt: skip
    start = np.zeros(problem.velocity.shape)
    if warm is not None:
        start += _first_guess(warm, start.shape)
    if problem.contacts.intervals:
        from dalembert.friction.bounded.batch import interval_samples

        if associated:
            raise ModelError("associated=True is for Reacting laws; with given limits the problem is convex as it is")
        out, options = interval_samples(problem, start), {}
    else:
        from dalembert.friction.cones.batch import cone_samples

        out, options = cone_samples(problem, start, associated), {"associated": associated}
    for s in np.flatnonzero(np.isin(out.status, AGAIN)).tolist():
        _alone(out, s, problem, options)
    return out


def _first_guess(warm: Any, shape: tuple[int, ...]) -> Array:
    array, _ = as_real(warm, "warm")
    try:
        return np.broadcast_to(array, shape)
    except ValueError:
        raise ShapeError(f"warm must be {shape} or ({shape[1]},); it has shape {array.shape}") from None


def _alone(out: BatchResolution, s: int, problem: ContactProblem, options: dict[str, Any]) -> None:
    """Resolve one sample as a single state and write its answer."""
    matrices = problem.matrices(s)
    M = matrices[0]
    if not all(np.isfinite(x).all() for x in matrices) or not np.allclose(M, M.T, rtol=SYMMETRIC, atol=0.0):
        out.status[s] = FrictionStatus.NONFINITE
        return
    try:
        one = resolve_state(problem, s, **options)
    except SolvabilityError as refused:
        contradicts = refused.diagnosis is not None and refused.diagnosis.verdict is Status.INCONSISTENT
        out.status[s] = FrictionStatus.INCONSISTENT if contradicts else FrictionStatus.MASSLESS
        return
    except ModelError:  # the laws were checked before: M is singular where the loop's own test passed it
        out.status[s] = FrictionStatus.MASSLESS
        return
    out.status[s], out.optimality[s] = one.status, one.certificate.optimality
    out.iterations[s] = one.certificate.iterations
    if not one.ok:
        return
    out.acceleration[s], out.forces[s], out.multipliers[s] = one.acceleration, one.forces, one.multipliers
    out.contact_acceleration[s] = one.contact_acceleration
    for i, name in enumerate(problem.contacts.names):
        out.sets[s, i] = one.sets.code(name)
