"""Moreau-Jean steps, compiled: gaps and rows of pairs, impulses, many steps in one call."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dalembert.kernel.loops import compiled, invoke
from dalembert.kkt import Status
from dalembert.kkt.limits import CERTAIN
from dalembert.simulate.contact.impulse_loops import approaching, expansion, first_paradox, impulses_of, missed_laws
from dalembert.simulate.contact.surface_loops import SLOTS, set_places, set_tangents
from dalembert.simulate.equations.signals import set_signals
from dalembert.simulate.events.record import Mode
from dalembert.simulate.limits import (
    ACCEPTED,
    BEHIND,
    CLOSED,
    CONTRADICTING_IMPULSES,
    DEEP,
    DEPENDENT_PIVOT,
    PENETRATION,
    RESTING,
    ROUNDOFF,
    STEP_GAIN,
    STILL,
)

# ----------------------------------------------------------------------------------------------------------------------
# Linear algebra and impulses of one time step, compiled: twins of `complementarity.py`.
#
# Symbols: M = L L^T; Z = M^-1 A^T, S = A Z; rows of A that depend on others are left out of S (their verdict is kept).


@compiled
def factor(M, L, kept):
    """Write Cholesky's factor of M and which rows are independent; return how many, and the least part of a pivot.

    That part of its diagonal entry, which elimination leaves of it, says how many digits cancel. Only rows that are
    `kept` count.
    """
    n, rank, least = M.shape[0], 0, 1.0
    for j in range(n):
        total = M[j, j]
        for i in range(j):
            total -= L[j, i] * L[j, i] if kept[i] else 0.0
        kept[j] = kept[j] and total > DEPENDENT_PIVOT * M[j, j]
        if not kept[j]:
            L[j:, j] = 0.0
            continue
        rank += 1
        least = min(least, total / M[j, j])
        L[j, j] = np.sqrt(total)
        for k in range(j + 1, n):
            total = M[k, j]
            for i in range(j):
                total -= L[k, i] * L[j, i]
            L[k, j] = total / L[j, j]
    return rank, least


@compiled
def choose(S, sizes, rank, kept):
    """Keep `rank` rows by the largest pivots of S = A M^-1 A^T beside the sizes that rows of their constraint have.

    What tilted axes leave of a row has next to no pivot, beside them. A negative rank is not known: all are kept.
    """
    m = S.shape[0]
    if rank < 0 or rank >= m:
        return
    rest, kept[:] = S.copy(), False
    for i in range(m):
        for j in range(m):
            rest[i, j] /= sizes[i] * sizes[j]
    for _ in range(rank):
        best, largest = -1, 0.0
        for i in range(m):
            if not kept[i] and rest[i, i] > largest:
                best, largest = i, rest[i, i]
        if best < 0:
            return
        kept[best] = True
        column = rest[:, best].copy()
        for i in range(m):
            for j in range(m):
                rest[i, j] -= column[i] * column[j] / largest


@compiled
def solve_in_place(L, kept, x):
    """Overwrite x (n, k) by the solution of L L^T y = x; places that are not kept get zero."""
    n = L.shape[0]
    for j in range(n):
        if not kept[j]:
            x[j] = 0.0
            continue
        for i in range(j):
            if L[j, i] != 0.0:
                x[j] -= L[j, i] * x[i]
        x[j] /= L[j, j]
    for j in range(n - 1, -1, -1):
        if not kept[j]:
            continue
        for i in range(j + 1, n):
            if L[i, j] != 0.0:
                x[j] -= L[i, j] * x[i]
        x[j] /= L[j, j]


# ----------------------------------------------------------------------------------------------------------------------
# Contact velocities that a time step leaves to the next one, compiled.
#
# Symbols: u contact velocity, n normal, r radius and omega angular velocity of a sphere; n' the normal of the new step:
#
#     u- = u - r omega x (n' - n)       the touching point moves on its sphere as the normal turns


@compiled
def meeting(w):
    """Return contact velocities before the impulses: of contacts that were closed, as the last step left them.

    Rows turn with their bodies from step to step, and velocities of free joints are those of their body axes: the new
    rows would see what rolls as going up and down. What turns truly is the normal, and with it the touching point.
    """
    before = w.W @ w.v
    for k in range(w.gaps.size):
        if not w.closed[k] or not w.axes[k].any():
            continue
        u, s, n = w.left[k, :3], w.left[k, 3:6], w.axes[k, 0] - w.left[k, 6:]
        x = u[0] - s[1] * n[2] + s[2] * n[1]
        y = u[1] - s[2] * n[0] + s[0] * n[2]
        z = u[2] - s[0] * n[1] + s[1] * n[0]
        for i in range(3):
            before[3 * k + i] = w.axes[k, i, 0] * x + w.axes[k, i, 1] * y + w.axes[k, i, 2] * z
    return before


@compiled
def leave(w, pairs, u, v):
    """Keep of every pair: contact velocity in world axes, r omega of its spheres, normal."""
    n = v.size
    for k in range(w.gaps.size):
        w.left[k, :] = 0.0
        for j in range(3):
            for i in range(3):
                w.left[k, j] += w.axes[k, i, j] * u[3 * k + i]
            w.left[k, 6 + j] = w.axes[k, 0, j]
            for side in range(2):
                if pairs.radius[k, side] > 0.0:
                    turning = w.frames[pairs.frame[k, side], DRIFT + (3 + j) * n : DRIFT + (4 + j) * n]
                    w.left[k, 3 + j] += pairs.radius[k, side] * (turning @ v)


# ----------------------------------------------------------------------------------------------------------------------
# Gaps and rows of all pairs, compiled: twin of `geometry.Geometry` without what only accelerations need.
#
# Symbols: frames (F, 18 + 6 n) by rows R (9), p (3), two drifts (6), J (3 n), Jw (3 n) in world axes, as
# `trace_contacts` has them; c centre of a sphere, n normal, W rows (3 k, nv) normal, tangent, tangent.


PLANE, FIELD, SPHERES, LIMIT = range(4)
"""Kinds of pairs."""

DRIFT = 18
"""Where the Jacobians begin in a frame's row."""


class Pairs(NamedTuple):
    """All pairs as arrays; what a kind does not have is zero."""

    kind: np.ndarray
    frame: np.ndarray  # (k, 2)
    at: np.ndarray  # (k, 2, 3): centres in their frames
    radius: np.ndarray  # (k, 2)
    normal: np.ndarray  # (k, 3)
    offset: np.ndarray
    place: np.ndarray  # (k, 2): of a limited joint in q and v
    sign: np.ndarray
    bound: np.ndarray
    field: np.ndarray  # (k, 5): where x, y, z begin in `heights`, and their sizes
    slot: np.ndarray  # which place of a sphere on a heightfield
    reach: np.ndarray  # how far its places are looked for
    heights: np.ndarray
    mu: np.ndarray
    e: np.ndarray
    poisson: np.ndarray


@compiled
def set_centre(frame, at, c, d):
    """Write the arm d of a centre from its frame's origin, in world axes, and the centre c."""
    for i in range(3):
        d[i] = frame[3 * i] * at[0] + frame[3 * i + 1] * at[1] + frame[3 * i + 2] * at[2]
        c[i] = frame[9 + i] + d[i]


@compiled
def add_point(frame, arm, sign, axes, rows):
    """Add the rows of the velocity of the point at `arm` from the frame's origin, along the axes."""
    n = rows.shape[1]
    for j in range(n):
        w0, w1, w2 = frame[DRIFT + 3 * n + j], frame[DRIFT + 4 * n + j], frame[DRIFT + 5 * n + j]
        x = frame[DRIFT + j] + w1 * arm[2] - w2 * arm[1]
        y = frame[DRIFT + n + j] + w2 * arm[0] - w0 * arm[2]
        z = frame[DRIFT + 2 * n + j] + w0 * arm[1] - w1 * arm[0]
        for i in range(3):
            rows[i, j] += sign * (axes[i, 0] * x + axes[i, 1] * y + axes[i, 2] * z)


@compiled
def fill_pairs(pairs, frames, q, gaps, W, axes):
    """Write gaps, rows and axes of all pairs."""
    W[:, :] = 0.0
    c1, d1, c2, d2, n = np.zeros(3), np.zeros(3), np.zeros(3), np.zeros(3), np.zeros(3)
    away, normals, places = np.zeros(SLOTS), np.zeros((SLOTS, 3)), np.zeros((SLOTS, 3))
    for k in range(pairs.kind.size):
        kind, rows = pairs.kind[k], W[3 * k : 3 * k + 3]
        # a joint limit: one coordinate, no tangents
        if kind == LIMIT:
            gaps[k] = pairs.sign[k] * (q[pairs.place[k, 0]] - pairs.bound[k])
            rows[0, pairs.place[k, 1]] = pairs.sign[k]
            axes[k] = np.eye(3)
            continue
        # the centre of the sphere, and the normal at its nearest point of a plane, a heightfield or a sphere
        one = frames[pairs.frame[k, 0]]
        set_centre(one, pairs.at[k, 0], c1, d1)
        if kind == PLANE:
            n[:] = pairs.normal[k]
            gaps[k] = n[0] * c1[0] + n[1] * c1[1] + n[2] * c1[2] - pairs.offset[k] - pairs.radius[k, 0]
        elif kind == FIELD:
            if pairs.slot[k] == 0:
                set_places(pairs.heights, pairs.field[k], c1, pairs.reach[k], away, normals, places)
            gaps[k] = away[pairs.slot[k]] - pairs.radius[k, 0]
            n[:] = normals[pairs.slot[k]]
            if not n.any():  # nothing within reach
                axes[k] = 0.0
                continue
        else:
            set_centre(frames[pairs.frame[k, 1]], pairs.at[k, 1], c2, d2)
            distance = np.sqrt((c1[0] - c2[0]) ** 2 + (c1[1] - c2[1]) ** 2 + (c1[2] - c2[2]) ** 2)
            for i in range(3):
                n[i] = (c1[i] - c2[i]) / distance if distance > 0.0 else (1.0 if i == 2 else 0.0)
            gaps[k] = distance - pairs.radius[k, 0] - pairs.radius[k, 1]
        # rows n, t_1, t_2 of the relative velocity where they touch
        set_tangents(n, axes[k])
        add_point(one, d1 - pairs.radius[k, 0] * n, 1.0, axes[k], rows)
        if kind == SPHERES:
            add_point(frames[pairs.frame[k, 1]], d2 + pairs.radius[k, 1] * n, -1.0, axes[k], rows)


# ----------------------------------------------------------------------------------------------------------------------
# Steps of Moreau and Jean, compiled: as `moreau.py` has them, many in one call.
#
# Symbols as in `moreau.py`; y = v + h M^-1 (tau - bias), Z = M^-1 A^T, S = A Z, L multipliers' impulses.


CONTACTS, ALONG, CLOSE, TAU = range(4)
"""Rows of the table of calls; a Python function for joint forces is in row 6, as `signals.py` has it."""
FINE, CALLBACK, NON_FINITE, MASSLESS, CONTRADICTORY, TRAPPED = range(6)
"""What became of a step."""

COUNT, STRIDE, TOTAL, SAMPLES, UNSOLVED, PARADOXES, PARADOX, DEEP_STEPS, DEEP_PAIR, GAINS, UNCERTAIN = range(11)
WORK, HEAT, RESIDUAL, STEP, START, PARADOX_TIME, DEEPEST, DEEP_TIME, DEEP_FIRST, GAIN, GAIN_TIME, DOUBT_TIME = range(12)
"""Places in `counts` and `sums`: steps in Painleve's paradox, the contact and the time of the first; steps that begin
with a penetration, the contact, depth and time of the deepest, the time of the first; steps whose contacts gain energy,
the first gain and its time; steps without certain digits, the time of the first."""

SINKING = 0.1
"""What "completed" promises of time steps: no contact begins a step deeper than `DEEP`, this part of its way in a step,
and what forces alone move it by in half a step. Steps resolve the moment of a contact, and so its gap, to its way in a
step: gaps are distances, and change by no more. A tenth of that is ten times better."""

IN_DOUBT = int(Status.ILL_CONDITIONED)
"""Verdict of a step without certain digits."""

CLOSING = 4
"""Newton's method on constraints ends after so many steps."""

OPEN, STICK, SLIP = int(Mode.OPEN), int(Mode.STICK), int(Mode.SLIP)
"""Modes of samples, as compiled loops read them."""


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
def gaps_back(w, near, away, h):
    """Return G and gaps of the contacts `near` at the start of a step, as a problem without friction."""
    G, target = np.zeros((3 * near.size, 3 * near.size)), np.zeros(3 * near.size)
    N = w.W[3 * near]
    G[::3, ::3] = N @ away
    target[::3] = w.gaps[near] - 0.5 * h * (N @ w.v)
    return G, target


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
    velocity, and an estimate of its relative error.
    """
    n, m = w.v.size, w.A.shape[0]
    L, kept, SL, rows_kept = np.zeros((n, n)), np.ones(n, np.bool_), np.zeros((m, m)), np.ones(m, np.bool_)
    rank, least = factor(w.M, L, kept)
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
        S = w.A @ Z
        choose(S, w.row_sizes, w.known_rank[0], rows_kept)
        _, part = factor(S, SL, rows_kept)
        least *= part
    lam = constrained(w.A, Z, SL, rows_kept, y)
    return rank, L, Z, SL, rows_kept, lam[:, 0].copy(), y[:, 0].copy(), ROUNDOFF / least


@compiled
def look_back(w, free, t, h, counts, sums):
    """Count a step that begins with a penetration, keep the deepest; return who touches or penetrates in such a step.

    Gaps are those of the middle, half a step back. The way of a contact is that of its touching point and of the
    sphere that rolls over it.
    """
    near, deep = np.zeros(w.gaps.size, np.bool_), False
    for k in range(w.gaps.size):
        u, s = w.W[3 * k : 3 * k + 3] @ w.v, w.left[k, 3:6]
        depth = 0.5 * h * u[0] - w.gaps[k]
        near[k] = depth >= -DEEP
        if depth <= DEEP:
            continue
        speed = np.sqrt(u[0] * u[0] + u[1] * u[1] + u[2] * u[2]) + np.sqrt(s[0] * s[0] + s[1] * s[1] + s[2] * s[2])
        pulled = abs(w.W[3 * k] @ free - u[0])
        if depth > DEEP + SINKING * h * speed + 0.5 * h * pulled:
            sums[DEEP_FIRST] = t if counts[DEEP_STEPS] == 0 and not deep else sums[DEEP_FIRST]
            deep = True
            if depth > sums[DEEPEST]:
                sums[DEEPEST], sums[DEEP_TIME], counts[DEEP_PAIR] = depth, t, k
    counts[DEEP_STEPS] += 1 if deep else 0
    return np.flatnonzero(near & deep)


@compiled
def begin(w, pairs, tables, t, h, counts, sums):
    """Evaluate a step up to its impulses; what became of it, then all that it needs after them.

    The last three: contacts that touch or penetrate where a step begins with a penetration, their normals' motions, and
    contact velocities at the start.
    """
    n = w.v.size
    code = evaluate(w, pairs, tables, t, h)
    rank, L, Z, SL, rows_kept, lam, free, error = without_contacts(w, h)
    if code == FINE and rank < n:
        code = MASSLESS
    status = 0 if rows_kept.all() else 1
    if error > CERTAIN:
        status = IN_DOUBT
        sums[DOUBT_TIME] = t if counts[UNCERTAIN] == 0 else sums[DOUBT_TIME]
        counts[UNCERTAIN] += 1
    near = look_back(w, free, t, h, counts, sums)
    away, _ = motions(w, L, Z, SL, rows_kept, 3 * near)
    closes, before = w.gaps + 0.5 * h * (w.W[::3].copy() @ free) <= 0.0, meeting(w)
    index = np.flatnonzero(closes)
    rows = rows_of(index)
    B, pressed = motions(w, L, Z, SL, rows_kept, rows)
    if code == FINE:
        touching = np.flatnonzero(closes | leaving(w, before))
        few, _ = (B, pressed) if touching.size == index.size else motions(w, L, Z, SL, rows_kept, rows_of(touching))
        look_for_paradox(w, few, before, pairs.mu, touching, t, counts, sums)
    return code, index, rows, free, lam, B, pressed, status, near, away, before


@compiled
def rows_of(index):
    """Return the three rows of every contact of `index`."""
    return np.repeat(3 * index, 3) + np.arange(3 * index.size) % 3


@compiled
def motions(w, L, Z, SL, rows_kept, rows):
    """Return the motions (n, k) that unit impulses along the contact rows `rows` cause, and their multipliers."""
    B = np.zeros((w.v.size, rows.size))
    B[:, :] = w.W[rows].T
    solve_in_place(L, np.ones(w.v.size, np.bool_), B)
    return B, constrained(w.A, Z, SL, rows_kept, B)


@compiled
def leaving(w, before):
    """Return which contacts are closed at the start of a step and neither approach nor separate there."""
    still = np.zeros(w.gaps.size, np.bool_)
    for k in range(w.gaps.size):
        speed = np.sqrt(before[3 * k + 1] ** 2 + before[3 * k + 2] ** 2)
        still[k] = w.closed[k] and abs(before[3 * k]) <= RESTING * (1.0 + speed)
    return still


@compiled
def look_for_paradox(w, B, before, mu, touching, t, counts, sums):
    """Count a step in which a contact that touches slides into Painleve's paradox; keep the first."""
    who = first_paradox(w.W, B, before, mu, touching)
    if who >= 0:
        if counts[PARADOXES] == 0:
            sums[PARADOX_TIME], counts[PARADOX] = t, who
        counts[PARADOXES] += 1


@compiled
def count_gain(w, t, free, new, P, counts, sums):
    """Count a step whose impulses gain energy, P . W (v_free + v+) / 2, and keep the first.

    v_free is where forces alone lead: what they do in the step is no work of impulses.
    """
    work = 0.5 * P @ (w.W @ (free + new))
    if work > 0.5 * STEP_GAIN * max(free @ (w.M @ free), new @ (w.M @ new)):
        if counts[GAINS] == 0:
            sums[GAIN], sums[GAIN_TIME] = work, t
        counts[GAINS] += 1


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
    w.closed[:] = P[::3] > 0.0
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
        slips = np.sqrt(u[3 * k + 1] ** 2 + u[3 * k + 2] ** 2) > STILL
        samples.modes[row, k] = OPEN if r[3 * k] <= 0.0 else SLIP if slips else STICK


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
        code, index, rows, free, lam, B, pressed, status, near, away, before = begin(
            w, pairs, tables, t, h, counts, sums
        )
        if code != FINE:
            return code
        P, new, residual = np.zeros(w.warm.size), free.copy(), 0.0
        w.missed[:] = 0.0
        if near.size:
            # a penetration: does any motion free all who touch?
            G, depth = gaps_back(w, near, away, h)
            some, missed = np.zeros(3 * near.size), np.zeros(near.size)
            impulses_of(G, depth, np.zeros(near.size), some)
            missed_laws(G, depth, np.zeros(near.size), np.zeros(near.size, np.bool_), some, missed)
            if approaching(G, depth, some) > CONTRADICTING_IMPULSES:
                w.missed[near] = missed
                return TRAPPED
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
            if approaching(G, g, some) > CONTRADICTING_IMPULSES:
                return CONTRADICTORY
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
        row = counts[SAMPLES] if wanted else -1
        count_gain(w, t, free, new, P, counts, sums)
        finish(w, pairs, t, h, sums, samples, row, new, lam, P, before, residual, status)
        counts[SAMPLES] += 1 if wanted else 0
        counts[UNSOLVED] += 1 if residual > ACCEPTED else 0
    return FINE
