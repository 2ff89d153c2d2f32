"""Steps of Moreau and Jean, compiled: as `moreau.py` has them, many in one call.

Symbols as in `moreau.py`; y = v + h M^-1 (tau - bias), Z = M^-1 A^T, S = A Z, L multipliers' impulses.
"""

from __future__ import annotations

import numpy as np

from dalembert.simulate.contact.law_loops import (
    approaching,
    expansion,
    factor,
    impulses_of,
    missed_laws,
    paradox,
    solve_in_place,
)
from dalembert.simulate.contact.left_loops import leave, meeting
from dalembert.simulate.contact.pair_loops import fill_pairs
from dalembert.tableau.graph_loops import compiled
from dalembert.tableau.time.invoke_loops import invoke
from dalembert.tableau.time.signal_loops import set_signals

CONTACTS, ALONG, CLOSE, TAU = range(4)
"""Rows of the table of calls; a Python function for joint forces is in row 6, as `signal_loops` has it."""
FINE, CALLBACK, NON_FINITE, MASSLESS, CONTRADICTORY = range(5)
"""What became of a step."""

COUNT, STRIDE, TOTAL, SAMPLES, UNSOLVED, PARADOXES, PARADOX, DEEP_STEPS, DEEP_PAIR = range(9)
WORK, HEAT, RESIDUAL, STEP, START, PARADOX_TIME, DEEPEST, DEEP_TIME = range(8)
"""Places in `counts` and `sums`: steps in Painleve's paradox, the contact and the time of the first; steps that begin
with a penetration, the contact, depth and time of the deepest."""

DEEP, FALL, SINKING = 1e-6, 10.0, 0.1
"""Depths beyond the first (metres), the second (m/s^2) times the square of the step, and the third times the way of the
contact in a step together, are no error of a first-order step."""

CONTRADICTION = 1e-3
"""Contacts that approach after their impulses by more than this part of the data contradict each other."""

PENETRATION = 1e-12
"""Gaps below minus this are closed again after a step, metres."""

CLOSED, CLOSING = 1e-13, 4
"""Newton's method on constraints ends at this residual, or after so many steps."""

ACCEPTED = 1e-8
"""Residual of the contact laws that counts as an answer, as in `laws`."""

BEHIND = 1e-9
"""Part of a step behind its start at which forces are asked for: a break point there belongs to this step, whatever
the rounding of its time."""

AT_REST = 1e-9
"""Contact velocities below this count as rest in `modes`, m/s."""


@compiled
def move(w, base, scale, way):
    """Write where `scale * way` leads from `base` into w.moved."""
    w.base[:] = base
    for j in range(way.size):
        w.way[j] = scale * way[j]
    invoke(w.calls[ALONG, 0], w.calls[ALONG, 1], w.calls[ALONG, 2])


@compiled
def evaluate(w, pairs, tables, t, h):
    """Evaluate everything that a step needs; return what became of it."""
    move(w, w.q, 0.5 * h, w.v)
    w.middle[:] = w.moved
    w.time[0] = t + 0.5 * h
    w.speed[:] = w.v
    invoke(w.calls[CONTACTS, 0], w.calls[CONTACTS, 1], w.calls[CONTACTS, 2])
    fill_pairs(pairs, w.frames, w.middle, w.gaps, w.W, w.axes)
    set_signals(w.calls, w.environment, tables, t + BEHIND * h, -np.inf, np.inf)
    if w.environment[1] != 0.0:
        return CALLBACK
    if w.calls[TAU, 0] != 0:
        invoke(w.calls[TAU, 0], w.calls[TAU, 1], w.calls[TAU, 2])
    return FINE


@compiled
def constrained(A, Z, L, kept, X):
    """Take from every column of X (n, k) what moves the rows A; return the multipliers (m, k) of that."""
    lam = A @ X
    solve_in_place(L, kept, lam)
    X -= Z @ lam
    return lam


@compiled
def problem(w, pairs, rows, index, free, before, B, h):
    """Return G, g and friction of the contacts `index` with rows `rows`, with Newton's restitution and open gaps."""
    W = w.W[rows]
    G, g = W @ B, W @ free
    for j in range(index.size):
        i = index[j]
        if not pairs.poisson[i]:
            g[3 * j] += pairs.e[i] * min(before[3 * i], 0.0)
        if pairs.e[i] == 0.0:
            g[3 * j] += 2.0 / h * max(w.gaps[i], 0.0)
    return G, g, pairs.mu[index]


@compiled
def expand(w, pairs, index, G, g, mu, P):
    """Add the expansion of Poisson's law to the impulses of compression, for contacts just closed; return residual."""
    floor = np.zeros(index.size)
    for j in range(index.size):
        i = index[j]
        if pairs.poisson[i] and w.warm[3 * i] == 0.0:
            floor[j] = pairs.e[i] * P[3 * j]
    if not floor.any():
        return 0.0
    more = np.zeros(P.size)
    residual = expansion(G, g + G @ P, mu, floor, more)
    P += more
    return residual


@compiled
def depths(w, index, new, B, h):
    """Return G, gaps after the step, and motions of the normals, as a problem without friction."""
    k, normal = index.size, 3 * index
    G, target = np.zeros((3 * k, 3 * k)), np.zeros(3 * k)
    BN = np.ascontiguousarray(B[:, ::3])
    G[::3, ::3] = w.W[normal] @ BN
    target[::3] = w.gaps[index] + 0.5 * h * (w.W[normal] @ new)
    return G, target, BN


@compiled
def close(w, t):
    """Put w.moved onto the constraints."""
    w.time[0] = t
    for _ in range(CLOSING):
        invoke(w.calls[CLOSE, 0], w.calls[CLOSE, 1], w.calls[CLOSE, 2])
        if np.abs(w.residual).max() <= CLOSED:
            return
        start, way = w.moved.copy(), w.correction.copy()
        move(w, start, 1.0, way)


@compiled
def without_contacts(w, h):
    """Return what a step needs of M and A, and the velocity and multipliers that no contact would change.

    In this order: independent motions of M (all, or mass is missing), L, Z, factor and kept rows of S, multipliers,
    velocity.
    """
    n, m = w.v.size, w.A.shape[0]
    L, kept, SL, rows_kept = np.zeros((n, n)), np.ones(n, np.bool_), np.zeros((m, m)), np.ones(m, np.bool_)
    rank = factor(w.M, L, kept)
    half = np.zeros((n, 1))
    half[:, 0] = 0.5 * (h * (w.tau - w.bias) + w.warm @ w.W)
    solve_in_place(L, kept, half)
    w.speed[:] = w.v + half[:, 0]
    invoke(w.calls[CONTACTS, 0], w.calls[CONTACTS, 1], w.calls[CONTACTS, 2])
    X = np.zeros((n, 1 + m))
    X[:, 0] = h * (w.tau - w.bias)
    X[:, 1:] = w.A.T
    solve_in_place(L, kept, X)
    X[:, 0] += w.v
    Z, y = np.ascontiguousarray(X[:, 1:]), np.ascontiguousarray(X[:, :1])
    if m:
        factor(w.A @ Z, SL, rows_kept)
    lam = constrained(w.A, Z, SL, rows_kept, y)
    return rank, L, Z, SL, rows_kept, lam[:, 0].copy(), y[:, 0].copy()


@compiled
def begin(w, pairs, tables, t, h):
    """Evaluate a step up to its impulses; what became of it, then all that it needs after them."""
    n = w.v.size
    code = evaluate(w, pairs, tables, t, h)
    rank, L, Z, SL, rows_kept, lam, free = without_contacts(w, h)
    if code == FINE and rank < n:
        code = MASSLESS
    index = np.flatnonzero(w.gaps + 0.5 * h * (w.W[::3].copy() @ free) <= 0.0)
    rows = np.repeat(3 * index, 3) + np.arange(3 * index.size) % 3
    B = np.zeros((n, 3 * index.size))
    B[:, :] = w.W[rows].T
    solve_in_place(L, np.ones(n, np.bool_), B)
    pressed = constrained(w.A, Z, SL, rows_kept, B)
    return code, index, rows, free, lam, B, pressed, 0 if rows_kept.all() else 1


@compiled
def look_back(w, t, h, counts, sums):
    """Count a step that begins with a penetration, and keep the deepest: gaps of the middle, half a step back."""
    deep = False
    for k in range(w.gaps.size):
        u = w.W[3 * k : 3 * k + 3] @ w.v
        depth = 0.5 * h * u[0] - w.gaps[k]
        if depth > DEEP + FALL * h * h + SINKING * h * np.sqrt(u[0] * u[0] + u[1] * u[1] + u[2] * u[2]):
            deep = True
            if depth > sums[DEEPEST]:
                sums[DEEPEST], sums[DEEP_TIME], counts[DEEP_PAIR] = depth, t, k
    counts[DEEP_STEPS] += 1 if deep else 0


@compiled
def look_for_paradox(index, G, mu, before, t, counts, sums):
    """Count a step in which a contact slides into Painleve's paradox; keep the first."""
    j = paradox(G, before, mu, index)
    if j >= 0:
        if counts[PARADOXES] == 0:
            sums[PARADOX_TIME], counts[PARADOX] = t, index[j]
        counts[PARADOXES] += 1


@compiled
def finish(w, pairs, t, h, sums, samples, row, new, lam, P, before, residual, status):
    """Take positions that stay on the constraints, sums and the sample."""
    if w.calls[CLOSE, 0] != 0:
        close(w, t + h)
    after = w.W @ new
    sums[HEAT] -= P @ (before + after) / 2.0
    sums[WORK] += h * (w.tau @ (w.v + new)) / 2.0
    sums[RESIDUAL] = residual
    if row >= 0:
        record(w, samples, row, t + h, (new - w.v) / h, lam / h, P / h, new, h, sums, status)
    w.v[:] = new
    w.q[:] = w.moved
    w.warm[:] = P
    leave(w, pairs, after, new)


@compiled
def record(w, samples, row, t, a, lam, r, v, h, sums, status):
    """Write a sample."""
    samples.t[row], samples.step[row] = t, h
    samples.q[row], samples.v[row], samples.acceleration[row] = w.moved, v, a
    samples.multipliers[row] = lam
    samples.work[row], samples.heat[row] = sums[WORK], sums[HEAT]
    samples.contact_status[row], samples.contact_residual[row] = status, sums[RESIDUAL]
    u = w.W @ v
    for k in range(w.gaps.size):
        for j in range(3):
            force = 0.0
            for i in range(3):
                force += w.axes[k, i, j] * r[3 * k + i]
            samples.contact_forces[row, 3 * k + j] = force
        slips = np.sqrt(u[3 * k + 1] ** 2 + u[3 * k + 2] ** 2) > AT_REST
        samples.modes[row, k] = 2 if r[3 * k] <= 0.0 else 1 if slips else 0


@compiled
def advance(w, pairs, tables, counts, sums, samples, most):
    """Take up to `most` steps, or until the block is full; return what became of the last.

    The cones' solver is called from here alone: every function around it would be compiled with all of it once more.
    """
    h = sums[STEP]
    for _ in range(most):
        if counts[COUNT] >= counts[TOTAL] or counts[SAMPLES] >= samples.t.size:
            return FINE
        t = sums[START] + counts[COUNT] * h
        code, index, rows, free, lam, B, pressed, status = begin(w, pairs, tables, t, h)
        if code != FINE:
            return code
        P, new, residual, before = np.zeros(w.warm.size), free.copy(), 0.0, meeting(w)
        look_back(w, t, h, counts, sums)
        w.missed[:] = 0.0
        if index.size:
            G, g, mu = problem(w, pairs, rows, index, free, before, B, h)
            some, missed, slides = w.warm[rows], np.zeros(index.size), np.zeros(index.size, np.bool_)
            residual = impulses_of(G, g, mu, some)
            residual = max(residual, missed_laws(G, g, mu, slides, some, missed))
            if residual > ACCEPTED:
                some[:] = 0.0
                residual = impulses_of(G, g, mu, some)
                residual = max(residual, missed_laws(G, g, mu, slides, some, missed))
            w.missed[index] = missed
            if approaching(G, g, some) > CONTRADICTION:
                return CONTRADICTORY
            look_for_paradox(index, G, mu, before, t, counts, sums)
            residual = max(residual, expand(w, pairs, index, G, g, mu, some))
            P[rows] = some
            new += B @ some
            lam += pressed @ some
        if not np.isfinite(new.sum()):
            return NON_FINITE
        move(w, w.q, 0.5 * h, w.v + new)
        if index.size:
            G, depth, BN = depths(w, index, new, B, h)
            if depth.min() < -PENETRATION:
                some = np.zeros(rows.size)
                impulses_of(G, depth, np.zeros(index.size), some)
                move(w, w.moved.copy(), 1.0, BN @ some[::3].copy())
        counts[COUNT] += 1
        wanted = counts[COUNT] % counts[STRIDE] == 0 or counts[COUNT] == counts[TOTAL]
        finish(w, pairs, t, h, sums, samples, counts[SAMPLES] if wanted else -1, new, lam, P, before, residual, status)
        counts[SAMPLES] += 1 if wanted else 0
        counts[UNSOLVED] += 1 if residual > ACCEPTED else 0
    return FINE
