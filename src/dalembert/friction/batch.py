"""`resolve_batch`: many states of one system, one status per sample."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalembert.errors import ModelError, ShapeError, SolvabilityError
from dalembert.friction.bounded.resolve import refuse_negative, resolve
from dalembert.friction.cones.batch import reacting_batch, solved_reacting
from dalembert.friction.cones.problem import Limited, Reacting
from dalembert.friction.laws.contacts import checked_laws
from dalembert.friction.laws.laws import Law
from dalembert.friction.resolution import BatchResolution, FrictionStatus, StateSamples, least_multipliers
from dalembert.kkt.inputs import as_real, checked_names

Array = np.ndarray


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
    M, W, f, velocity = (as_real(x, what)[0] for x, what in ((M, "M"), (W, "W"), (f, "f"), (state, "state")))
    M, W = (x[None] if x.ndim == 2 else x for x in (M, W))
    if f.ndim != 2 or velocity.ndim != 2 or len(f) != len(velocity) or M.ndim != 3 or W.ndim != 3:
        raise ShapeError(f"f and state must be (N, n) and (N, m); they have shapes {f.shape} and {velocity.shape}")
    N, n, m = len(f), f.shape[1], velocity.shape[1]
    if M.shape[1:] != (n, n) or W.shape[1:] != (n, m) or len(M) not in (1, N) or len(W) not in (1, N):
        raise ShapeError(f"M {M.shape} and W {W.shape} do not fit f {f.shape} and state {velocity.shape}")
    refuse_negative(at_rest)
    laws = [laws] if isinstance(laws, Reacting | Limited) else laws
    reacting = isinstance(laws, list | tuple) and any(isinstance(law, Reacting | Limited) for law in laws)
    c = len(laws) if reacting else m
    names = checked_names([f"contact {i}" for i in range(c)] if names is None else names, c, "names", "contacts")
    A, k = _constraint_rows(A, N, n)
    rows = checked_names([f"row {i}" for i in range(k)] if rows is None else rows, k, "rows", "constraint rows")
    rates = (
        _broadcast(x, default, (N, width), what)
        for x, default, width, what in (
            (drift, 0.0, k, "drift"), (contact_drift, 0.0, m, "contact_drift"), (loads, 1.0, c, "loads")
        )
    )  # fmt: skip
    data = StateSamples(M, f, W, velocity, A, *rates)
    start = np.zeros((N, m)) if warm is None else _broadcast(warm, 0.0, (N, m), "warm").copy()
    options: dict[str, Any] = {"at_rest": at_rest, "names": names, "rows": rows}
    if reacting:
        contacts = reacting_batch(data, laws, names, rows, at_rest)
        out = solved_reacting(data, contacts, start, associated)
        options["associated"] = associated
    else:
        if associated:
            raise ModelError("associated=True is for Reacting laws; with given limits the problem is convex as it is")
        laws = checked_laws(laws, m, names)
        out = _solved(data, laws, at_rest, start)
    again = [FrictionStatus.MASSLESS, FrictionStatus.NOT_CONVERGED]
    for s in np.flatnonzero(np.isin(out.status, again)).tolist():
        _alone(out, s, data, list(laws), options)
    return out


def _constraint_rows(A: Any, N: int, n: int) -> tuple[Array, int]:
    """Return A as (N or 1, k, n), and k."""
    if A is None:
        return np.zeros((1, 0, n)), 0
    A, _ = as_real(A, "A")
    A = A[None] if A.ndim == 2 else A
    if A.ndim != 3 or A.shape[2] != n or len(A) not in (1, N):
        raise ShapeError(f"A must be (k, {n}) or ({N}, k, {n}); it has shape {A.shape}")
    return A, A.shape[1]


def _broadcast(values: Any, default: float, shape: tuple[int, int], what: str) -> Array:
    array = np.asarray(default) if values is None else as_real(values, what)[0]
    try:
        return np.broadcast_to(array, shape).astype(float)
    except ValueError:
        raise ShapeError(f"{what} must be {shape} or ({shape[1]},); it has shape {array.shape}") from None


def _solved(data: StateSamples, laws: tuple[Law, ...], at_rest: float, T: Array) -> BatchResolution:
    """Run the kernel."""
    from dalembert.friction.bounded.batch import resolve_samples

    N, n = data.f.shape
    velocity, weight = data.velocity, data.loads
    m = velocity.shape[1]
    rest = np.abs(velocity) <= at_rest
    static = np.array([float(law.static()) for law in laws])
    sliding = np.column_stack([law.force(velocity[:, i]) for i, law in enumerate(laws)]) if m else np.zeros((N, 0))
    known = np.isfinite(velocity) & (weight >= 0.0)
    limits = np.where(known, weight * static, np.nan)
    moving = np.where(rest | ~known, 0.0, weight * np.nan_to_num(sliding))
    a, xi = np.full((N, n), np.nan), np.full((N, m), np.nan)
    code, status, rounds = np.zeros((N, m), dtype=np.int64), np.zeros(N, dtype=np.int64), np.zeros(N, dtype=np.int64)
    residual = np.full(N, np.nan)
    arrays = data.M, data.f, data.W, data.A, data.drift, rest, limits, moving, data.contact_drift
    given = tuple(np.ascontiguousarray(x) for x in arrays)
    resolve_samples(*given, a, T, xi, code, status, residual, rounds)  # pyright: ignore[reportCallIssue]
    T[status != FrictionStatus.SOLVED] = np.nan
    return BatchResolution(a, T, xi, least_multipliers(data, a, T), code, status, residual, rounds)


def _alone(out: BatchResolution, s: int, data: StateSamples, laws: list, options: dict[str, Any]) -> None:
    """Resolve one sample through `resolve` and write its answer."""
    given = data.one(s)
    M = given["M"]
    if not np.isfinite(M).all() or not np.allclose(M, M.T, rtol=1e-12, atol=0.0):
        out.status[s] = FrictionStatus.NONFINITE
        return
    try:
        one = resolve(laws=laws, **options, **given)
    except SolvabilityError:
        out.status[s] = FrictionStatus.INCONSISTENT
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
    for i, name in enumerate(options["names"]):
        out.sets[s, i] = one.sets.code(name)
