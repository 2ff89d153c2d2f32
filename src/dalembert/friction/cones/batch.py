# pyright: reportCallIssue=false, reportArgumentType=false
"""Many states of disks and cones in compiled code, one after the other.

All states share their contacts and rows; who slides, and with which coefficient, is per state. A bounded contact in
motion keeps its row with the limit zero, and its force goes to the load.

Symbols as in `elimination.py` and `sweeps.py`: H contact rows (p, n), J = H L^-T without the span of Q, G = J J^T, r
reactions, u = H a + drift contact accelerations.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dalembert.friction.cones.measure import data_sizes, violation
from dalembert.friction.cones.sweeps import ASSOCIATED, COULOMB, TINY, attempt
from dalembert.friction.elimination import (
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
from dalembert.friction.limits import AIM, AT_LIMIT, OPTIMAL, ROUNDING, SHARED, STILL, UNSEEN
from dalembert.friction.problem import FIXED, UNILATERAL, ContactProblem
from dalembert.friction.resolution import BatchResolution, FrictionStatus, least_multipliers
from dalembert.kernel.loops import compiled
from dalembert.types import Array

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
        if s == 0 or not common:
            As = A[min(s, A.shape[0] - 1)]
            contact_rows(W[min(s, W.shape[0] - 1)], As, source, H)
            sound = eliminated(M[min(s, M.shape[0] - 1)], As[others], H, L, Q, R, J)
            if sound:
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
    given = (data.M, load, data.W, data.A, c.source, c.others, drift, data.drift[:, c.others], c.mu, c.direction)
    compiled: Any = reacting_samples
    stack = p >= REDUNDANT and p > n - c.others.size
    compiled(
        *(np.ascontiguousarray(x) for x in given), c.first, c.kind, c.sliding, ASSOCIATED if associated else COULOMB,
        (AIM, OPTIMAL, STILL, 0 if stack else NEWTON), a, r, u, code, status, residual, steps,
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
    lam[:, c.others] = least_multipliers(data.M, pushed, data.W, data.A[:, c.others], a, forces - c.known)
    lam[bad] = np.nan
    return BatchResolution(a, forces, xi, lam, code, status, residual, steps)
