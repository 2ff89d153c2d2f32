# pyright: reportCallIssue=false, reportArgumentType=false
"""Batches of states with reactions as limits, in compiled code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dalembert.errors import ModelError, ShapeError
from dalembert.friction.bounded.batch import (
    CONTRADICTS,
    GOOD,
    NOT_DEFINITE,
    NOT_FINITE,
    UNSEEN,
    UNSOLVED,
    admissible,
    backward,
    dot,
    factored,
    forward,
    orthonormal,
    particular,
    prescribed_terms,
    project,
)
from dalembert.friction.cones.measure import data_sizes, violation
from dalembert.friction.cones.problem import BILATERAL, FIXED, UNILATERAL, Limited, Reacting, directions_of, row_number
from dalembert.friction.cones.resolve import TOLERANCE
from dalembert.friction.cones.sweeps import TINY, attempt
from dalembert.friction.laws.laws import Law, as_law
from dalembert.friction.resolution import (
    OPTIMAL,
    STILL,
    BatchResolution,
    FrictionStatus,
    StateSamples,
    least_multipliers,
)
from dalembert.kernel.loops import loop

# ----------------------------------------------------------------------------------------------------------------------
# Many states with reactions as limits in compiled code, one after the other: the loop of `batch.py`.
#
# Symbols as in `batch.py` and `sweeps.py`: M = L L^T, H contact rows (p, n), J = H L^-T without the span Q of the
# other constraint rows, G = J J^T, r reactions, u = H a + drift contact accelerations.


compiled = loop(nogil=True, error_model="numpy")

SHARED = 1e-5
"""Part of the whole motion in the size of a contact acceleration, as in `problem`."""

ROUNDING = 2.2e-16
"""Part of the reactions that rounding leaves unknown."""

FULL = 1.0 - 1e-12
"""A force of at least this part of its limit is at the limit, as in `resolution.py`."""


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
        if s == 0 or not common:
            As = A[min(s, A.shape[0] - 1)]
            contact_rows(W[min(s, W.shape[0] - 1)], As, source, H)
            sound = factored(M[min(s, M.shape[0] - 1)], L)
            if sound:
                orthonormal(As[others], L, Q, R)
                for i in range(p):
                    J[i] = H[i]
                    forward(L, J[i])
                    admissible(Q, J[i])
                for i in range(p):
                    for j in range(p):
                        G[i, j] = dot(J[i], J[j])
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
    found, used = attempt(G, g, first, mu, law, kind, sliding, direction, r, tolerance, 12, newton)
    data, answer = dot(y, y) + dot(b, b), 0.0
    for i in range(kind.size):
        for j in range(first[i], first[i + 1]):
            if G[j, j] > 0.0:
                data += drift[j] * drift[j] / G[j, j] + (mu[i] * mu[i] * G[j, j] if kind[i] == FIXED else 0.0)
            answer += G[j, j] * r[j] * r[j]
    for i in range(r.size):
        for j in range(y.size):
            y[j] += r[i] * J[i, j]
    project(Q, y)
    y += b
    amplified = np.sqrt(max(answer, dot(y, y)) / data) if data > 0.0 else 0.0
    backward(L, y)
    a[:] = y
    size = data_sizes(H, a, terms, min(1.0, 1.0 / max(amplified, TINY)))
    for i in range(r.size):
        size[i] += SHARED * np.sqrt(G[i, i] * data)
        u[i] = dot(H[i], a) + drift[i]
    found = max(found, violation(u, r, size, np.diag(G), first, mu, law, kind, sliding, direction))
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
    if force >= bound * FULL and speed > 1e2 * still * scale:
        return -2 if last - start == 1 and u[start] < 0.0 else 2
    return 0


# ----------------------------------------------------------------------------------------------------------------------
# Many states with reactions as limits: the contacts of all samples as arrays, then the compiled loop.
#
# All samples share their contacts and rows; who slides, and with which coefficient, is per sample. A bounded contact in
# motion keeps its row with the limit zero, and its force goes to the load.


Array = np.ndarray

NEWTON = 10
"""Steps of Newton's method in the compiled loop; what is left unsolved then is resolved by itself."""

REDUNDANT = 16
"""With so many rows, more than there are coordinates, each sample is resolved by itself: Newton's method would fail."""


@dataclass(frozen=True, eq=False)
class ReactingBatch:
    """Contacts (c) with rows (p) of N samples.

    `source` (p,) says where a row comes from: a column of W, or -1 - i for row i of A. `first`, `kind` as in
    `problem.py`; `mu`, `sliding` (N, c), `direction` (N, p), `known` (N, m) forces of bounded contacts in motion;
    `others` are the rows of A that load no contact.
    """

    source: Array
    first: Array
    kind: Array
    others: Array
    mu: Array
    sliding: Array
    direction: Array
    known: Array


def reacting_batch(data: StateSamples, laws: Any, names: Any, rows: Any, at_rest: float) -> ReactingBatch:
    """Check the laws and evaluate them at all velocities; a bad sample has NaN for a coefficient."""
    (N, m), c = data.velocity.shape, len(laws)
    widths = directions_of(laws, names)
    if sum(widths) != m:
        raise ShapeError(f"the {c} laws take {sum(widths)} columns of W (two for a plane); W has {m}")
    source, first, kind = [], [0], []
    mu, sliding, known = np.empty((N, c)), np.empty((N, c), dtype=np.bool_), np.zeros((N, m))
    column = 0
    for i, law in enumerate(laws):
        columns = list(range(column, column + widths[i]))
        velocity = data.velocity[:, columns]
        speed = np.linalg.norm(velocity, axis=1)
        sliding[:, i] = ~(speed <= at_rest)
        given = _law(law.law if isinstance(law, Reacting | Limited) else law, names[i])
        moving = np.asarray(given.kinetic(np.nan_to_num(speed))) * np.ones(N)
        mu[:, i] = np.where(sliding[:, i], moving, float(given.static()))
        if isinstance(law, Reacting):
            row = _normal(law, names[i], rows, source)
            source.append(-1 - row)
            kind.append(UNILATERAL if law.unilateral else BILATERAL)
        else:
            load = np.where(data.loads[:, i] >= 0.0, data.loads[:, i], np.nan)
            unit = np.where(np.isfinite(velocity), velocity, 0.0) / np.where(speed > 0.0, speed, 1.0)[:, None]
            known[:, columns] = np.where(sliding[:, [i]], -(load * moving)[:, None] * unit, 0.0)
            mu[:, i] = np.where(sliding[:, i] & np.isfinite(load), 0.0, load * mu[:, i])
            kind.append(FIXED)
        mu[~np.isfinite(speed), i] = np.nan
        source += columns
        first.append(len(source))
        column += widths[i]
    source = np.array(source, dtype=np.int64)
    others = np.setdiff1d(np.arange(data.A.shape[1]), -1 - source[source < 0])
    direction = _directions(data.velocity, source, np.array(first), np.array(kind), sliding)
    return ReactingBatch(source, np.array(first), np.array(kind, dtype=np.int64), others, mu, sliding, direction, known)


def _law(given: Any, name: str) -> Law:
    law = as_law(given, f"contact {name!r}")
    if law.needs_state:
        raise ModelError(f"contact {name!r}: a law that depends on the state is resolved one by one: use resolve")
    return law


def _normal(law: Reacting, name: str, rows: Any, source: list[int]) -> int:
    """Return the row of A that loads a contact; each row loads one."""
    row = row_number(rows, law.row, name)
    if -1 - row in source:
        raise ModelError(f"contact {name!r}: the row {rows[row]!r} is the normal of another contact already")
    return row


def _directions(velocity: Array, source: Array, first: Array, kind: Array, sliding: Array) -> Array:
    """Return unit vectors of sliding on the tangential rows, zero elsewhere."""
    out = np.zeros((len(velocity), source.size))
    for i in range(first.size - 1):
        if kind[i] != FIXED:
            tangent = np.arange(first[i] + 1, first[i + 1])
            v = velocity[:, source[tangent]]
            speed = np.linalg.norm(v, axis=1)[:, None]
            moving = sliding[:, [i]] & (speed > 0.0)
            out[:, tangent] = np.where(moving, v / np.where(speed > 0.0, speed, 1.0), 0.0)
    return out


def solved_reacting(data: StateSamples, c: ReactingBatch, T: Array, associated: bool) -> BatchResolution:
    """Run the kernel; T comes in as the first guess."""
    from dalembert.friction.cones.sweeps import ASSOCIATED, COULOMB

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
    given = (data.M, load, data.W, data.A, c.source, c.others, drift, data.drift[:, c.others], c.mu, c.direction)
    compiled: Any = reacting_samples
    stack = p >= REDUNDANT and p > n - c.others.size
    compiled(
        *(np.ascontiguousarray(x) for x in given), c.first, c.kind, c.sliding, ASSOCIATED if associated else COULOMB,
        (TOLERANCE, OPTIMAL, STILL, 0 if stack else NEWTON), a, r, u, code, status, residual, steps,
    )  # fmt: skip
    forces, xi = c.known.copy(), np.full((N, m), np.nan)
    forces[:, c.source[tangent]] += r[:, tangent]
    xi[:, c.source[tangent]] = u[:, tangent]
    bad = status != FrictionStatus.SOLVED
    forces[bad], a[bad], xi[bad] = np.nan, np.nan, np.nan
    lam = np.zeros((N, data.A.shape[1]))
    lam[:, normals] = -r[:, ~tangent]
    pushed = load + np.einsum(
        "sij,sj->si", np.broadcast_to(data.A, (N, *data.A.shape[1:]))[:, normals].transpose(0, 2, 1), r[:, ~tangent]
    )
    left = StateSamples(
        data.M, pushed, data.W, data.velocity, data.A[:, c.others], data.drift, data.contact_drift, data.loads
    )
    lam[:, c.others] = least_multipliers(left, a, forces - c.known)
    lam[bad] = np.nan
    return BatchResolution(a, forces, xi, lam, code, status, residual, steps)
