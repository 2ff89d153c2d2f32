# pyright: reportCallIssue=false, reportArgumentType=false
"""`resolve_batch`: many states of one system, one status per sample."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalembert.errors import ModelError, ShapeError, SolvabilityError
from dalembert.friction.bounded.box import SOLVED, accelerations, least_norm, solve_box
from dalembert.friction.cones.measure import data_sizes, violation
from dalembert.friction.cones.sweeps import ASSOCIATED, COULOMB, TINY, attempt
from dalembert.friction.contact_problem import FIXED, UNILATERAL, ContactProblem, problem_over
from dalembert.friction.limits import AIM, AT_LIMIT, OPTIMAL, ROUNDING, SHARED, STILL, SYMMETRIC, UNSEEN
from dalembert.friction.resolution import BatchResolution, least_multipliers
from dalembert.friction.resolve import refuse_method, refuse_negative, resolve_state
from dalembert.friction.sample_elimination import (
    CONTRADICTS,
    GOOD,
    NOT_DEFINITE,
    NOT_FINITE,
    UNSOLVED,
    backward,
    dot,
    eliminated,
    forward,
    particular,
    prescribed_terms,
    project,
)
from dalembert.kernel.loops import compiled
from dalembert.kkt.inputs import as_real
from dalembert.status import Status
from dalembert.types import Array

# ----------------------------------------------------------------------------------------------------------------------
# Many states of disks and cones in compiled code, one after the other.
#
# All states share their contacts and rows; who slides, and with which coefficient, is per state. A bounded contact in
# motion keeps its row with the limit zero, and its force goes to the load.
#
# Symbols as in `sample_elimination.py` and `sweeps.py`: H contact rows (p, n), J = H L^-T without the span of Q,
# G = J J^T, r reactions, u = H a + drift contact accelerations.


NEWTON = 10
"""Steps of Newton's method in the compiled loop; what is left unsolved then is resolved by itself."""

REDUNDANT = 16
"""With so many rows, more than there are coordinates, each sample is resolved by itself: Newton's method would fail."""


@compiled
def contact_rows(W, A, source, H):
    """Write the rows H: columns of W, or rows of A."""
    for i in range(source.size):
        if source[i] >= 0:
            H[i] = W[:, source[i]]
        else:
            H[i] = A[-1 - source[i]]


@compiled
def reacting_samples(
    M, load, W, A, source, others, drift, rows_drift, mu, direction, first, kind, sliding, law, settings,
    a, r, u, code, status, residual, steps,
):  # fmt: skip
    """Resolve all samples; M, W, A (N or 1, ...), the others (N, ...). Outputs are written; r is the first guess."""
    (N, n), p, c = load.shape, source.size, others.size
    L, J, H, b = np.zeros((n, n)), np.empty((p, n)), np.empty((p, n)), np.zeros(n)
    Q, R, G = np.zeros((c, n)), np.zeros((c, c)), np.empty((p, p))
    common, sound = M.shape[0] == 1 and W.shape[0] == 1 and A.shape[0] == 1, False
    for s in range(N):
        # matrices that all samples share are eliminated once: rows H, then G = J J^T
        if s == 0 or not common:
            As = A[min(s, A.shape[0] - 1)]
            contact_rows(W[min(s, W.shape[0] - 1)], As, source, H)
            sound = eliminated(M[min(s, M.shape[0] - 1)], As[others], H, L, Q, R, J)
            if sound:
                for i in range(p):
                    for j in range(p):
                        G[i, j] = dot(J[i], J[j])
        # a sample without an answer is named, the others are resolved
        finite = np.isfinite(load[s]).all() and np.isfinite(drift[s]).all() and np.isfinite(mu[s]).all()
        if not (finite and np.isfinite(rows_drift[s]).all() and np.isfinite(H).all()):
            status[s] = NOT_FINITE
        elif not sound:
            status[s] = NOT_DEFINITE
        elif not particular(Q, R, rows_drift[s], b):
            status[s] = CONTRADICTS
        else:
            residual[s], steps[s] = reacting_one(
                L, J, H, Q, G, b, load[s], drift[s], mu[s], direction[s], first, kind, sliding[s], law, settings,
                a[s], r[s], u[s], code[s],
            )  # fmt: skip
            status[s] = GOOD if residual[s] <= settings[1] else UNSOLVED  # NaN is no answer


@compiled
def reacting_one(
    L, J, H, Q, G, b, load, drift, mu, direction, first, kind, sliding, law, settings, a, r, u, code
):  # fmt: skip
    """Resolve one sample, its matrices factored; return the residual, measured against data, and the steps."""
    tolerance, optimal, still, newton = settings
    # g = J y + H L^-T b + drift: contact accelerations without reactions; what is rounding is zero
    y, inward, g, terms = load.copy(), b.copy(), np.empty(r.size), np.abs(drift)
    forward(L, y)
    backward(L, inward)
    known = prescribed_terms(L, Q, b)
    for i in range(r.size):
        g[i] = dot(J[i], y) + dot(H[i], inward) + drift[i]
        for j in range(y.size):
            terms[i] += abs(J[i, j] * y[j]) + abs(H[i, j]) * known[j]
        if abs(g[i]) <= UNSEEN * terms[i]:
            g[i] = 0.0
    # reactions that obey the laws, by sweeps and Newton's method
    found, used = attempt(G, g, first, mu, law, kind, sliding, direction, r, tolerance, 12, newton)
    # sizes of data and answer in the metric of the mass: their ratio is how far data are amplified
    data, answer = dot(y, y) + dot(b, b), 0.0
    for i in range(kind.size):
        for j in range(first[i], first[i + 1]):
            if G[j, j] > 0.0:
                data += drift[j] * drift[j] / G[j, j] + (mu[i] * mu[i] * G[j, j] if kind[i] == FIXED else 0.0)
            answer += G[j, j] * r[j] * r[j]
    for i in range(r.size):
        for j in range(y.size):
            y[j] += r[i] * J[i, j]
    # a = L^-T (P L^-1 (load + H^T r) + b)
    project(Q, y)
    y += b
    amplified = np.sqrt(max(answer, dot(y, y)) / data) if data > 0.0 else 0.0
    backward(L, y)
    a[:] = y
    # the laws, measured on a itself against data
    size = data_sizes(H, a, terms, min(1.0, 1.0 / max(amplified, TINY)))
    for i in range(r.size):
        size[i] += SHARED * np.sqrt(G[i, i] * data)
        u[i] = dot(H[i], a) + drift[i]
    found = max(found, violation(u, r, size, np.diag(G), first, mu, law, kind, sliding, direction))
    # accelerations that are rounding are zero; then the mode of each contact
    found = max(found, ROUNDING * amplified)
    for i in range(r.size):
        size[i] = abs(g[i]) + TINY
        for j in range(r.size):
            size[i] += abs(G[i, j] * r[j])
        if abs(u[i]) <= 1e3 * still * size[i]:
            u[i] = 0.0
    for i in range(kind.size):
        code[i] = mode_of(first[i], first[i + 1], mu[i], kind[i], sliding[i], G, r, u, size, optimal, still)
    return found, used


@compiled
def mode_of(first, last, mu, kind, sliding, G, r, u, size, optimal, still):
    """Return 0 sticks, 1 slides, +2 or -2 about to slip (a plane: 2), 3 open, of one contact."""
    if kind == UNILATERAL and u[first] > 0.0 and G[first, first] * r[first] <= optimal * size[first]:
        return 3
    if sliding:
        return 1
    start = first if kind == FIXED else first + 1
    force, speed, scale = 0.0, 0.0, 0.0
    for j in range(start, last):
        force, speed, scale = np.hypot(force, r[j]), np.hypot(speed, u[j]), max(scale, size[j])
    bound = mu if kind == FIXED else mu * abs(r[first])
    if force >= bound * (1.0 - AT_LIMIT) and speed > 1e2 * still * scale:
        return -2 if last - start == 1 and u[start] < 0.0 else 2
    return 0


def cone_samples(data: ContactProblem, T: Array, associated: bool) -> BatchResolution:
    """Run the loop over all states; T (N, m) comes in as the first guess."""
    c = data.contacts
    (N, n), (m, p) = data.f.shape, (T.shape[1], c.source.size)
    tangent = c.source >= 0
    r, a, u = np.zeros((N, p)), np.full((N, n), np.nan), np.full((N, p), np.nan)
    r[:, tangent] = np.nan_to_num(T[:, c.source[tangent]])
    normals = -1 - c.source[~tangent]
    drift = np.empty((N, p))
    drift[:, tangent], drift[:, ~tangent] = data.contact_drift[:, c.source[tangent]], data.drift[:, normals]
    load = data.f + np.einsum("sij,sj->si", np.broadcast_to(data.W, (N, n, m)), c.known)
    residual, steps = np.full(N, np.nan), np.zeros(N, dtype=np.int64)
    code, status = np.zeros((N, c.kind.size), dtype=np.int64), np.zeros(N, dtype=np.int64)
    arrays = (data.M, load, data.W, data.A, c.source, c.others, drift, data.drift[:, c.others], c.mu, c.direction)
    stack = p >= REDUNDANT and p > n - c.others.size
    reacting_samples(
        *(np.ascontiguousarray(x) for x in arrays), c.first, c.kind, c.sliding, ASSOCIATED if associated else COULOMB,
        (AIM, OPTIMAL, STILL, 0 if stack else NEWTON), a, r, u, code, status, residual, steps,
    )  # fmt: skip
    forces, xi = c.known.copy(), np.full((N, m), np.nan)
    forces[:, c.source[tangent]] += r[:, tangent]
    xi[:, c.source[tangent]] = u[:, tangent]
    bad = status != Status.SOLVED
    forces[bad], a[bad], xi[bad] = np.nan, np.nan, np.nan
    lam = np.zeros((N, data.A.shape[1]))
    lam[:, normals] = -r[:, ~tangent]
    pushed = load + np.einsum(
        "sij,sj->si", np.broadcast_to(data.A, (N, *data.A.shape[1:]))[:, normals].transpose(0, 2, 1), r[:, ~tangent]
    )
    lam[:, c.others] = least_multipliers(data.M, pushed, data.W, data.A[:, c.others], a, forces - c.known)
    lam[bad] = np.nan
    return BatchResolution(a, forces, xi, lam, code, status, residual, steps)


# ----------------------------------------------------------------------------------------------------------------------
# Many states of intervals in compiled code, one after the other.
#
# Symbols as in `sample_elimination.py`; J = W^T L^-T without the span of Q (a row per contact), P = I - Q^T Q:
#
#     G = J J^T,   a = L^-T (P L^-1 (f + W T) + b)


@compiled
def resolve_samples(M, f, W, A, rows_drift, rest, limits, moving, drift, a, T, xi, code, status, residual, rounds):
    """Resolve all samples; M, W, A (N or 1, ...), the others (N, ...). Outputs are written.

    `code`: 0 sticks, 1 slides, +2 or -2 about to slip in that direction; T comes in as the first guess.
    """
    N, n = f.shape
    m, c = limits.shape[1], A.shape[1]
    L, J, Q, R, b = np.zeros((n, n)), np.empty((m, n)), np.zeros((c, n)), np.zeros((c, c)), np.zeros(n)
    common, sound = M.shape[0] == 1 and W.shape[0] == 1 and A.shape[0] == 1, False
    for s in range(N):
        Ws = min(s, W.shape[0] - 1)
        # matrices that all samples share are eliminated once
        if s == 0 or not common:
            sound = eliminated(M[min(s, M.shape[0] - 1)], A[min(s, A.shape[0] - 1)], W[Ws].T, L, Q, R, J)
        finite = np.isfinite(f[s]).all() and np.isfinite(drift[s]).all() and np.isfinite(limits[s]).all()
        if not (finite and np.isfinite(rows_drift[s]).all()):
            status[s] = NOT_FINITE
            continue
        if not sound:
            status[s] = NOT_DEFINITE
            continue
        if not particular(Q, R, rows_drift[s], b):
            status[s] = CONTRADICTS
            continue
        resolve_one(
            L, J, Q, b, W[Ws], f[s], rest[s], limits[s], moving[s], drift[s], a[s], T[s], xi[s], code[s], status,
            residual, rounds, s,
        )  # fmt: skip


@compiled
def resolve_one(L, J, Q, b, W, f, rest, limits, moving, drift, a, T, xi, code, status, residual, rounds, s):
    """Resolve sample s, its matrices factored."""
    n, index = f.size, np.flatnonzero(rest)
    k = index.size
    # load of the motion without contacts at rest
    load = f + W @ moving
    forward(L, load)
    load += b
    G, g, B = np.empty((k, k)), np.empty(k), np.empty((n, k))
    inward = b.copy()  # W^T a = J (load) + W^T L^-T b: what the constraints prescribe is not in J
    backward(L, inward)
    known = prescribed_terms(L, Q, b)
    # G = J J^T and g of the contacts at rest; what is rounding is zero
    for i in range(k):
        j = index[i]
        B[:, i] = J[j] if Q.shape[0] else W[:, j]
        g[i] = dot(J[j], load) + dot(W[:, j], inward) + drift[j]
        terms = abs(drift[j])
        for p in range(n):
            terms += abs(J[j, p] * load[p]) + abs(W[p, j]) * known[p]
        if abs(g[i]) <= UNSEEN * terms:
            g[i] = 0.0
        for p in range(k):
            G[i, p] = dot(J[j], J[index[p]])
    # the box problem, and of its answers the one of least norm
    x, limit = T[index], limits[index]
    if k:
        found, rounds[s], residual[s] = solve_box(G, g, -limit, limit, x)
        least_norm(B, G, g, -limit, limit, x)
        status[s] = GOOD if found == SOLVED else UNSOLVED
    else:
        status[s], rounds[s], residual[s] = GOOD, 0, 0.0
    # who sticks, slides, or is about to slip
    c, size = np.empty(k), np.empty(k)
    accelerations(G, g, x, c, size)
    T[:] = moving
    code[:] = 1
    for i in range(k):
        T[index[i]] = x[i]
        onset = abs(x[i]) >= limit[i] * (1.0 - AT_LIMIT) and abs(c[i]) > STILL * size[i]
        code[index[i]] = (2 if c[i] > 0.0 else -2) if onset else 0
    # a = L^-T (P L^-1 (f + W T) + b), and contact accelerations
    load = f + W @ T
    forward(L, load)
    project(Q, load)
    load += b
    backward(L, load)
    a[:] = load
    xi[:] = W.T @ load + drift
    for i in range(k):
        if code[index[i]] == 0:
            xi[index[i]] = 0.0


def interval_samples(problem: ContactProblem, T: Array) -> BatchResolution:
    """Run the loop over all states; T (N, m) comes in as the first guess."""
    (N, n), m, sets = problem.f.shape, T.shape[1], problem.contacts
    a, xi, residual = np.full((N, n), np.nan), np.full((N, m), np.nan), np.full(N, np.nan)
    code, status, rounds = np.zeros((N, m), dtype=np.int64), np.zeros(N, dtype=np.int64), np.zeros(N, dtype=np.int64)
    arrays = problem.M, problem.f, problem.W, problem.A, problem.drift, ~sets.sliding, sets.mu, sets.known
    data = tuple(np.ascontiguousarray(x) for x in (*arrays, problem.contact_drift))
    resolve_samples(*data, a, T, xi, code, status, residual, rounds)
    T[status != Status.SOLVED] = np.nan
    lam = least_multipliers(problem.M, problem.f, problem.W, problem.A, a, T)
    return BatchResolution(a, T, xi, lam, code, status, residual, rounds)


# ----------------------------------------------------------------------------------------------------------------------
# All samples: the loop of their kind of contacts, then one by one what it leaves.


AGAIN = (Status.MASSLESS, Status.NOT_CONVERGED)
"""What the compiled loops leave is resolved as a single state: there M may be singular, and all modes are tried."""


def resolve_batch(
    M: Any, f: Any, W: Any, state: Any, laws: Any, *, A: Any = None, drift: Any = None, contact_drift: Any = None,
    loads: Any = None, names: Any = None, rows: Any = None, at_rest: float = 0.0, warm: Any = None,
    associated: bool = False, method: str = "exact", **options: Any,
) -> BatchResolution:  # fmt: skip
    """Resolve many states, by default exactly, in compiled code.

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
    method, options
        As of `resolve`. Methods other than "exact" are for comparison and take the samples one by one; what they find
        is returned where it misses the laws, too, with the status NOT_OPTIMAL.

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
    refuse_method(problem.contacts.intervals, method, options)
    if method != "exact":
        return _one_by_one(problem, {"method": method, **options}, associated, None if warm is None else start)
    if problem.contacts.intervals:
        if associated:
            raise ModelError("associated=True is for Reacting laws; with given limits the problem is convex as it is")
        out, options = interval_samples(problem, start), {}
    else:
        out, options = cone_samples(problem, start, associated), {"associated": associated}
    for s in np.flatnonzero(np.isin(out.status, AGAIN)).tolist():
        _alone(out, s, problem, options)
    return out


def _one_by_one(
    problem: ContactProblem, options: dict[str, Any], associated: bool, warm: Array | None
) -> BatchResolution:
    """Resolve every sample as a single state, by a method for comparison."""
    if associated:
        raise ModelError(f"associated=True is an option of method='exact', not of {options['method']!r}")
    (N, n), m = problem.f.shape, problem.velocity.shape[1]
    codes, counts = np.zeros((N, len(problem.contacts.names)), np.int64), np.zeros((2, N), np.int64)
    shapes = ((N, n), (N, m), (N, m), (N, problem.A.shape[1]))
    out = BatchResolution(
        *(np.full(shape, np.nan) for shape in shapes), codes, counts[0], np.full(N, np.nan), counts[1]
    )
    sets = problem.contacts
    given = np.hstack([problem.f, problem.drift, problem.velocity, problem.contact_drift, sets.mu, sets.known])
    out.status[~np.isfinite(given).all(axis=1)] = Status.NONFINITE
    for s in np.flatnonzero(out.status != Status.NONFINITE).tolist():
        _alone(out, s, problem, {**options, "warm": None if warm is None else warm[s]})
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
        out.status[s] = Status.NONFINITE
        return
    try:
        resolution = resolve_state(problem, s, **options)
    except SolvabilityError as refused:
        contradicts = refused.diagnosis is not None and refused.diagnosis.verdict is Status.INCONSISTENT
        out.status[s] = Status.INCONSISTENT if contradicts else Status.MASSLESS
        return
    except ModelError:  # the laws were checked before: M is singular where the loop's own test passed it
        out.status[s] = Status.MASSLESS
        return
    out.status[s], out.optimality[s] = resolution.status, resolution.certificate.optimality
    out.iterations[s] = resolution.certificate.iterations
    if not (resolution.ok or ("method" in options and resolution.status is Status.NOT_OPTIMAL)):
        return
    out.acceleration[s], out.forces[s], out.multipliers[s] = (
        resolution.acceleration,
        resolution.forces,
        resolution.multipliers,
    )
    out.contact_acceleration[s] = resolution.contact_acceleration
    for i, name in enumerate(problem.contacts.names):
        out.sets[s, i] = resolution.sets.code(name)
