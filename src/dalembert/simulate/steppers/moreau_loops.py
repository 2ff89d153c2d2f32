"""Steps of Moreau and Jean, compiled: factors, rows, impulses and positions of many steps in one call, no array made.

Symbols as in `moreau.py`: M = L^T D L with the pattern of the tree (Featherstone 2008, table 6.3), a dense matrix being
a chain; half(x) = D^-1/2 L^-T x, so that M^-1 = half^T half; Q = C^-1 half(A^T)^T rows that are orthonormal, C C^T =
A M^-1 A^T; Y = half(W^T) - Q^T Q half(W^T) contact rows that the constraint rows leave free; G = Y Y^T.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dalembert.contact.detect_loops import detect
from dalembert.contact.scene import SceneMemory, SceneTables
from dalembert.friction.cones.turns import CONE, NORMAL, ConeWork, rows_of_kind, solve_laws
from dalembert.kernel.array_loops import substitute_lower, substitute_upper
from dalembert.kernel.loops import compiled, invoke, nested, reordered_inner, steady
from dalembert.kkt import Status
from dalembert.kkt.limits import CERTAIN
from dalembert.simulate.contact.surface_loops import set_places, set_tangents
from dalembert.simulate.equations.signals import set_signals
from dalembert.simulate.events.record import Mode
from dalembert.simulate.limits import (
    ACCEPTED,
    AIM_IN_STEPS,
    BEHIND,
    CLOSED,
    CONTRADICTING_IMPULSES,
    CONTRADICTING_RATES,
    DEEP,
    DEPENDENT_PIVOT,
    NO_VELOCITY,
    PENETRATION,
    RESTING,
    ROUNDOFF,
    STEP_GAIN,
    STILL,
    UNEXPLAINED_IMPULSE,
)

TERMS, BIAS, ALONG, CLOSE, TAU = range(5)
"""Rows of the table of calls; a Python function for joint forces is in row 6, as `signals.py` has it."""

FINE, CALLBACK, NON_FINITE, MASSLESS, CONTRADICTORY, TRAPPED, OPPOSED, FULL, UNSTABLE = range(9)
"""What became of a step."""

COUNT, STRIDE, TOTAL, SAMPLES, UNSOLVED, PARADOXES, PARADOX, DEEP_STEPS, DEEP_PAIR, GAINS, UNCERTAIN, STREAK = range(12)
(
    WORK,
    HEAT,
    RESIDUAL,
    STEP,
    START,
    PARADOX_TIME,
    DEEPEST,
    DEEP_TIME,
    DEEP_FIRST,
    GAIN,
    GAIN_TIME,
    DOUBT_TIME,
    STREAK_ENERGY,
) = range(13)
"""Places in `counts` and `sums`: steps in Painleve's paradox, the contact and the time of the first; steps that begin
with a penetration, the contact, depth and time of the deepest, the time of the first; steps whose contacts gain energy,
the first gain and its time; steps without certain digits, the time of the first; steps in a row that forces outrun, and
the energy of motion at their start."""

SINKING = 0.1
"""What "completed" promises of time steps: no contact begins a step deeper than `DEEP`, this part of its way in a step,
and what forces alone move it by in half a step. Steps resolve the moment of a contact, and so its gap, to its way in a
step: gaps are distances, and change by no more. A tenth of that is ten times better."""

IN_DOUBT = int(Status.ILL_CONDITIONED)
"""Verdict of a step without certain digits."""

CLOSING = 4
"""Newton's method on constraints ends after so many steps."""

SAME_FEATURE = 1e-6
"""What the square of a distance to a contact of the last step counts where it has the same corner or edge."""

OUTRUN_CHANGE, OUTRUN_PART, OUTRUN_STEPS, OUTRUN_GROWTH = 0.25, 0.1, 8, 1e3
"""Forces outrun the steps where their squares change by more than the first part of themselves, and the error of their
work is more than the second of the energy of motion, in so many steps in a row, and it grows by the last factor."""

HELD_ROW = 1e-11
"""Contact rows of which constraint rows leave less than this part, in the metric of the mass, cannot be moved."""

OPEN, STICK, SLIP = int(Mode.OPEN), int(Mode.STICK), int(Mode.SLIP)
"""Modes of samples, as compiled loops read them."""


class SteppedContacts(NamedTuple):
    """What contacts are, (k,) each; heightfields as `ContactSystem.field_arrays` has them, a ball for several slots."""

    kind: np.ndarray
    gapped: np.ndarray
    mu: np.ndarray
    limit: np.ndarray  # of friction without a normal, beside its load
    e: np.ndarray
    poisson: np.ndarray
    ball: np.ndarray  # row of `balls` of a contact with a heightfield, -1 of others
    place: np.ndarray  # which of the places at which a sphere touches a heightfield
    radius: np.ndarray  # (balls,)
    reach: np.ndarray  # (balls,)
    field: np.ndarray  # (balls, 5)
    heights: np.ndarray
    path: np.ndarray  # (k, n) velocities that move a contact, rising, with all that carry them
    size: np.ndarray  # (k,) how many
    fixed: np.ndarray  # (1,) contacts that are always looked at; those between shapes come behind, found in each step
    body_path: np.ndarray  # (frames, n) velocities that move a body with shapes
    body_size: np.ndarray
    body_reach: np.ndarray  # (frames,) farthest place of a body's shapes from its origin
    pair_laws: np.ndarray  # (pairs, 2) friction, restitution


class FoundShapes(NamedTuple):
    """Scene and memory of `contact.detect_loops.detect`."""

    tables: SceneTables
    memory: SceneMemory


class MoreauWork(NamedTuple):
    """Memory of one run: what the codes read and write, and where they are."""

    calls: np.ndarray
    q: np.ndarray
    v: np.ndarray
    environment: np.ndarray  # t, failure, signals
    time: np.ndarray  # (1,)
    h: np.ndarray  # (1,)
    tau: np.ndarray
    slopes: np.ndarray  # (2 n,) -d tau_j / d v_j, then -d tau_j / d q_j of forces that are expressions
    passive: np.ndarray  # (2 n,) damping, then stiffness of joints
    added: np.ndarray  # (n,) what implicit springs and dampers add to the diagonal of M
    tau_before: np.ndarray
    mean: np.ndarray  # (n,) velocity of the last step's way
    base: np.ndarray
    way: np.ndarray
    moved: np.ndarray
    middle: np.ndarray
    speed: np.ndarray  # at which bias is taken
    M: np.ndarray
    bias: np.ndarray
    power: np.ndarray  # (1,) of forces of the system's own that have no potential
    A: np.ndarray
    rate: np.ndarray  # (m,) of rows that move by themselves, at the end of the step
    screws: np.ndarray  # (n, 6) velocity of the point at the world's origin, and angular, that each velocity gives
    poses: np.ndarray  # (frames, 12) of bodies with shapes
    correction: np.ndarray
    residual: np.ndarray
    ancestors: np.ndarray  # (n, n) velocities before each on its way to the ground, rising
    depth: np.ndarray  # (n,)
    stiff: np.ndarray  # (1,) 1 where rows carry what has no mass
    rho: np.ndarray  # (1,)
    stiffened: np.ndarray  # (n, n)
    L: np.ndarray
    D: np.ndarray  # pivots, their inverses
    root: np.ndarray
    Q: np.ndarray
    S: np.ndarray
    C: np.ndarray
    rest: np.ndarray
    kept: np.ndarray
    side: np.ndarray
    lam: np.ndarray
    row_sizes: np.ndarray  # (m,) that rows of their constraint have in the metric of the mass, where the rank is known
    known_rank: np.ndarray  # (1,), -1 where it is not known
    driven: np.ndarray  # (m,) rows that move by themselves
    push: np.ndarray
    half: np.ndarray
    free: np.ndarray
    new: np.ndarray
    gaps: np.ndarray
    W: np.ndarray
    offset: np.ndarray  # (3 k,) what contact velocities have beside W v
    load: np.ndarray
    axes: np.ndarray
    live: np.ndarray  # (1,) contacts of this step: those that are always looked at, then those found between shapes
    found: np.ndarray  # (most, 7) point, normal, distance of contacts between shapes
    who: np.ndarray  # (most, 3) pair, feature, number
    past: np.ndarray  # (1,) how many pushed in the last step
    past_who: np.ndarray  # (most, 2) pair, feature
    past_at: np.ndarray  # (most, 3) place
    past_push: np.ndarray  # (most, 3) impulse, world axes
    past_left: np.ndarray  # (most, 9) as `left`
    taken: np.ndarray  # (most,) of the last step's that found their contact again
    margin: np.ndarray  # (1,) within which contacts between shapes are looked at, beside their way
    balls: np.ndarray
    turns: np.ndarray  # (3 k, n) r omega of the spheres of a contact, of those whose normal may turn; else no rows
    Y: np.ndarray  # (k, n, 3)
    block: np.ndarray  # (3, 3) of G
    ready: np.ndarray  # (k,) whose rows of Y are of this step
    distance: np.ndarray
    normals: np.ndarray
    places: np.ndarray
    normal: np.ndarray
    warm: np.ndarray  # impulses of the last step
    closed: np.ndarray  # (k,) contacts that touch at the start of the step
    left: np.ndarray  # (k, 9) contact velocity after the last step in world axes, r omega, normal
    before: np.ndarray
    after: np.ndarray
    P: np.ndarray
    missed: np.ndarray  # (k,) by how much the laws of contacts were missed in the last step, relative to the data
    inside: np.ndarray  # (k,) contacts in the problem
    active: np.ndarray
    kinds: np.ndarray
    first: np.ndarray
    mu: np.ndarray
    bound: np.ndarray
    floor: np.ndarray
    G: np.ndarray
    g: np.ndarray
    r: np.ndarray
    more: np.ndarray
    cones: ConeWork


class MoreauSamples(NamedTuple):
    """Rows of a block; the last ones as `record.CONTACT_FIELDS`."""

    t: np.ndarray
    q: np.ndarray
    v: np.ndarray
    acceleration: np.ndarray
    multipliers: np.ndarray
    work: np.ndarray
    step: np.ndarray
    heat: np.ndarray
    contact_forces: np.ndarray
    modes: np.ndarray
    contact_status: np.ndarray
    contact_residual: np.ndarray
    contact_moments: np.ndarray
    contact_points: np.ndarray


# ----------------------------------------------------------------------------------------------------------------------
# The mass matrix: its factor with the pattern of the tree, and half of its inverse.


@reordered_inner
def factor_mass(w):
    """Write L, 1 / D and D^-1/2 of M, or of M + rho A^T A; return the least part of a pivot, or 0 where M is singular.

    That part of its diagonal entry, which elimination leaves of it, says how many digits cancel.
    """
    n, M = w.D.size, w.stiffened
    stiffen(w)
    for k in range(n):
        for a in range(w.depth[k]):
            j = w.ancestors[k, a]
            w.L[k, j] = M[k, j]
        w.L[k, k] = M[k, k]
    least = 1.0
    for k in range(n - 1, -1, -1):
        pivot = w.L[k, k]
        if not pivot > DEPENDENT_PIVOT * M[k, k]:
            return 0.0
        least = min(least, pivot / M[k, k])
        one = 1.0 / pivot
        w.D[k] = one
        w.root[k] = np.sqrt(one)
        for a in range(w.depth[k] - 1, -1, -1):
            i = w.ancestors[k, a]
            ratio = w.L[k, i] * one
            for b in range(a + 1):
                j = w.ancestors[k, b]
                w.L[i, j] -= ratio * w.L[k, j]
            w.L[k, i] = ratio
    return least


@reordered_inner
def stiffen(w):
    """Write M with implicit springs and dampers; where rows carry what has no mass, M + rho A^T A besides.

    rho is of the size of the masses, so that the sum is definite.
    """
    n, m = w.D.size, w.rate.size
    for i in range(n):
        for a in range(w.depth[i]):
            j = w.ancestors[i, a]
            w.stiffened[i, j] = w.M[i, j]
        w.stiffened[i, i] = w.M[i, i] + w.added[i]
    if w.stiff[0] == 0.0:
        return
    trace, largest = 0.0, 0.0
    for i in range(n):
        trace += w.M[i, i]
    for k in range(m):
        size = 0.0
        for i in range(n):
            size += w.A[k, i] * w.A[k, i]
        largest = max(largest, size)
    w.rho[0] = trace / n / largest if largest > 0.0 else 0.0
    for i in range(n):
        for j in range(i + 1):
            total = 0.0
            for k in range(m):
                total += w.A[k, i] * w.A[k, j]
            w.stiffened[i, j] += w.rho[0] * total


@reordered_inner
def soften(w, h):
    """Write what springs and dampers that are known add to the diagonal of M: h D + h^2 K / 2, of both kinds.

    Slopes of the other sign, which push away, stay explicit.
    """
    n = w.v.size
    for i in range(n):
        D = max(w.slopes[i], 0.0) + w.passive[i]
        K = max(w.slopes[n + i], 0.0) + w.passive[n + i]
        w.added[i] = h * D + 0.5 * h * h * K


@reordered_inner
def halve(w, x):
    """Overwrite x by half(x) = D^-1/2 L^-T x."""
    for i in range(w.D.size - 1, -1, -1):
        s = x[i]
        if s != 0.0:
            for a in range(w.depth[i]):
                j = w.ancestors[i, a]
                x[j] -= w.L[i, j] * s
        x[i] = s * w.root[i]


@reordered_inner
def halve_three(w, path, size, y):
    """Overwrite the columns of y (n, 3), which are zero but at the velocities path[:size], by half(y)."""
    for b in range(size - 1, -1, -1):
        i = path[b]
        y0, y1, y2, root = y[i, 0], y[i, 1], y[i, 2], w.root[i]
        for a in range(w.depth[i]):
            j = w.ancestors[i, a]
            ratio = w.L[i, j]
            y[j, 0] -= ratio * y0
            y[j, 1] -= ratio * y1
            y[j, 2] -= ratio * y2
        y[i, 0], y[i, 1], y[i, 2] = root * y0, root * y1, root * y2


@reordered_inner
def halve_back(w, x):
    """Overwrite x by half^T x = L^-1 D^-1/2 x."""
    for i in range(w.D.size):
        s = x[i] * w.root[i]
        for a in range(w.depth[i]):
            j = w.ancestors[i, a]
            s -= w.L[i, j] * x[j]
        x[i] = s


# ----------------------------------------------------------------------------------------------------------------------
# Constraint rows: those that are independent, orthonormal in the metric of the mass.


@reordered_inner
def choose_rows(w):
    """Keep as many rows as the known rank, by the largest pivots of S beside the sizes of rows of their constraint.

    What tilted axes leave of a row has next to no pivot, beside them. Where no rank is known all are kept.
    """
    m, rank = w.rate.size, w.known_rank[0]
    for i in range(m):
        w.kept[i] = rank < 0 or rank >= m
    if rank < 0 or rank >= m:
        return
    for i in range(m):
        for j in range(m):
            w.rest[i, j] = w.S[i, j] / (w.row_sizes[i] * w.row_sizes[j])
    for _ in range(rank):
        best, largest = -1, 0.0
        for i in range(m):
            if not w.kept[i] and w.rest[i, i] > largest:
                best, largest = i, w.rest[i, i]
        if best < 0:
            return
        w.kept[best] = True
        for i in range(m):
            w.side[i] = w.rest[i, best]
        for i in range(m):
            for j in range(m):
                w.rest[i, j] -= w.side[i] * w.side[j] / largest


@reordered_inner
def set_rows(w):
    """Write Q and C; return the least part of a pivot of S. Rows that depend on others are zero, and their C is one."""
    m, n, least = w.rate.size, w.D.size, 1.0
    for i in range(m):
        for j in range(n):
            w.Q[i, j] = w.A[i, j]
        halve(w, w.Q[i])
    for i in range(m):
        for j in range(i + 1):
            total = 0.0
            for a in range(n):
                total += w.Q[i, a] * w.Q[j, a]
            w.S[i, j] = w.S[j, i] = total
    choose_rows(w)
    for i in range(m):
        for j in range(i):
            total = w.S[i, j]
            for a in range(j):
                total -= w.C[i, a] * w.C[j, a]
            w.C[i, j] = total / w.C[j, j] if w.kept[j] and w.kept[i] else 0.0
        total = w.S[i, i]
        for a in range(i):
            total -= w.C[i, a] * w.C[i, a]
        w.kept[i] = w.kept[i] and total > DEPENDENT_PIVOT * w.S[i, i]
        w.C[i, i] = np.sqrt(total) if w.kept[i] else 1.0
        if not w.kept[i]:
            for a in range(i):
                w.C[i, a] = 0.0
            for j in range(n):
                w.Q[i, j] = 0.0
            continue
        least = min(least, total / w.S[i, i])
        for j in range(n):
            total = w.Q[i, j]
            for a in range(i):
                total -= w.C[i, a] * w.Q[a, j]
            w.Q[i, j] = total / w.C[i, i]
    return least


@reordered_inner
def set_side(w):
    """Write C^-1 (A v + rate): what the rows ask for, zero for those that depend on others."""
    for i in range(w.rate.size):
        total = w.rate[i]
        for j in range(w.v.size):
            total += w.A[i, j] * w.v[j]
        w.side[i] = total if w.kept[i] else 0.0
    substitute_lower(w.C, w.rate.size, w.side)


@reordered_inner
def answer(w, x, velocity):
    """Write the velocity that impulses lead to, x = half(impulses) being overwritten, and the multipliers' impulses."""
    m = w.rate.size
    for i in range(m):
        total = w.side[i]
        for j in range(x.size):
            total += w.Q[i, j] * x[j]
        w.lam[i] = total
    for i in range(m):
        for j in range(x.size):
            x[j] -= w.Q[i, j] * w.lam[i]
    substitute_upper(w.C, m, w.lam)
    halve_back(w, x)
    for j in range(x.size):
        velocity[j] = w.v[j] + x[j]
    if w.stiff[0] != 0.0:  # (M + rho A^T A) x = h f - A^T L': of M alone the impulses are L' + rho A x, of every row
        for i in range(m):
            total = 0.0
            for j in range(x.size):
                total += w.A[i, j] * x[j]
            w.lam[i] += w.rho[0] * total


@reordered_inner
def energy_of(w, v):
    """Return v . M v / 2, with the pattern of the tree."""
    total = 0.0
    for i in range(v.size):
        s = 0.5 * w.M[i, i] * v[i]
        for a in range(w.depth[i]):
            j = w.ancestors[i, a]
            s += w.M[i, j] * v[j]
        total += s * v[i]
    return total


@reordered_inner
def opposed(w, velocity):
    """Return by how much rows that were left out are missed, relative to what rows of their constraint may sum up to.

    |a . v| <= |a| |v| in the metric of the mass; what tilted axes leave of a row says nothing of its own size.
    """
    worst, speed = 0.0, np.sqrt(2.0 * energy_of(w, velocity))
    for i in range(w.rate.size):
        if w.kept[i]:
            continue
        total = w.rate[i]
        for j in range(velocity.size):
            total += w.A[i, j] * velocity[j]
        worst = max(worst, abs(total) / (abs(w.rate[i]) + w.row_sizes[i] * speed + NO_VELOCITY))
    return worst


# ----------------------------------------------------------------------------------------------------------------------
# Terms of a step.


@reordered_inner
def evaluate(w, c, tables, t, h):
    """Evaluate everything that a step needs; return what became of it."""
    w.time[0], w.h[0] = t, h
    invoke(w.calls[TERMS, 0], w.calls[TERMS, 1], w.calls[TERMS, 2])
    if c.radius.size:
        set_fields(w, c)
    set_signals(w.calls, w.environment, tables, t + BEHIND * h, -np.inf, np.inf)
    if w.environment[1] != 0.0:
        return CALLBACK
    if w.calls[TAU, 0] != 0:
        invoke(w.calls[TAU, 0], w.calls[TAU, 1], w.calls[TAU, 2])
    soften(w, h)
    w.live[0] = c.fixed[0]
    return FINE


@nested
def set_fields(w, c):
    """Write gaps, rows and axes of contacts with heightfields."""
    n = w.v.size
    for k in range(c.ball.size):
        f = c.ball[k]
        if f < 0:
            continue
        row, s, radius = w.balls[f], c.place[k], c.radius[f]
        if s == 0:
            set_places(c.heights, c.field[f], row[:3], c.reach[f], w.distance, w.normals, w.places)
        w.gaps[k] = w.distance[s] - radius
        for j in range(3):
            w.normal[j] = w.normals[s, j]
        if w.normal[0] == 0.0 and w.normal[1] == 0.0 and w.normal[2] == 0.0:  # nothing within reach
            for j in range(3):
                for i in range(3):
                    w.axes[k, j, i] = 0.0
                for i in range(n):
                    w.W[3 * k + j, i] = w.turns[3 * k + j, i] = 0.0
            continue
        set_tangents(w.normal, w.axes[k])
        x, y, z = -radius * w.normal[0], -radius * w.normal[1], -radius * w.normal[2]
        first, turn = 12, 12 + 3 * n
        for i in range(n):
            w0, w1, w2 = row[turn + i], row[turn + n + i], row[turn + 2 * n + i]
            u0 = row[first + i] + w1 * z - w2 * y
            u1 = row[first + n + i] + w2 * x - w0 * z
            u2 = row[first + 2 * n + i] + w0 * y - w1 * x
            for j in range(3):
                w.W[3 * k + j, i] = w.axes[k, j, 0] * u0 + w.axes[k, j, 1] * u1 + w.axes[k, j, 2] * u2
            w.turns[3 * k, i], w.turns[3 * k + 1, i], w.turns[3 * k + 2, i] = radius * w0, radius * w1, radius * w2


# ----------------------------------------------------------------------------------------------------------------------
# Contacts between shapes, found in each step, behind those that are always looked at.
#
# Symbols: S (n, 6) screws; x point of a contact; row of direction d on a body: d . (S_v + S_w x x) over the velocities
# on its way to the ground; n from the first shape to the second, so that rows are those of the second less the first.


@reordered_inner
def place_of(w, c, k):
    """Return the place of a contact among those of samples: its own, or that of its pair of shapes."""
    return k if k < c.fixed[0] else c.fixed[0] + w.who[k - c.fixed[0], 0]


@reordered_inner
def reach_of_step(w, c, h):
    """Return within which distance contacts may close in a step: twice the way of the quickest body, and the margin."""
    fastest = 0.0
    for f in range(w.poses.shape[0]):
        x, y, z, a, b, e = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for j in range(c.body_size[f]):
            i = c.body_path[f, j]
            v = w.v[i]
            x, y, z = x + w.screws[i, 0] * v, y + w.screws[i, 1] * v, z + w.screws[i, 2] * v
            a, b, e = a + w.screws[i, 3] * v, b + w.screws[i, 4] * v, e + w.screws[i, 5] * v
        p0, p1, p2 = w.poses[f, 9], w.poses[f, 10], w.poses[f, 11]
        x, y, z = x + b * p2 - e * p1, y + e * p0 - a * p2, z + a * p1 - b * p0
        speed = np.sqrt(x * x + y * y + z * z) + c.body_reach[f] * np.sqrt(a * a + b * b + e * e)
        fastest = max(fastest, speed)
    return w.margin[0] + 2.0 * h * fastest


@reordered_inner
def find_shapes(w, c, shapes, h):
    """Append the contacts between shapes to those of the step, with what the last step knows of them."""
    count = detect(shapes.tables, shapes.memory, w.poses, reach_of_step(w, c, h), w.found, w.who)
    if count > w.found.shape[0]:
        return FULL
    for o in range(w.past[0]):
        w.taken[o] = False
    for f in range(count):
        k, pair = c.fixed[0] + f, w.who[f, 0]
        c.mu[k], c.e[k] = c.pair_laws[pair, 0], c.pair_laws[pair, 1]
        c.kind[k] = CONE if c.mu[k] > 0.0 else NORMAL
        w.gaps[k], w.normal[0], w.normal[1], w.normal[2] = w.found[f, 6], w.found[f, 3], w.found[f, 4], w.found[f, 5]
        set_tangents(w.normal, w.axes[k])
        one = shapes.memory.shapes[shapes.tables.pairs[pair, 0]].body
        two = shapes.memory.shapes[shapes.tables.pairs[pair, 1]].body
        set_shape_rows(w, c, k, f, one, two)
        recall(w, c, k, f)
    w.live[0] = c.fixed[0] + count
    return FINE


@reordered_inner
def set_shape_rows(w, c, k, f, one, two):
    """Write path and rows of a contact between two bodies; -1 is the ground."""
    a, b, size = 0, 0, 0
    first = c.body_size[one] if one >= 0 else 0
    second = c.body_size[two] if two >= 0 else 0
    while a < first or b < second:
        i = c.body_path[one, a] if a < first else w.v.size
        j = c.body_path[two, b] if b < second else w.v.size
        less = min(i, j)
        c.path[k, size] = less
        size += 1
        sign = 0.0
        if i == less:
            a += 1
            sign -= 1.0
        if j == less:
            b += 1
            sign += 1.0
        S = w.screws[less]
        x = S[0] + S[4] * w.found[f, 2] - S[5] * w.found[f, 1]
        y = S[1] + S[5] * w.found[f, 0] - S[3] * w.found[f, 2]
        z = S[2] + S[3] * w.found[f, 1] - S[4] * w.found[f, 0]
        for d in range(3):
            n = w.axes[k, d]
            w.W[3 * k + d, less] = sign * (n[0] * x + n[1] * y + n[2] * z)
    c.size[k] = size


@reordered_inner
def recall(w, c, k, f):
    """Take over what the contact of the same pair and feature did in the last step, or the nearest of its pair."""
    best, nearest = -1, np.inf
    for o in range(w.past[0]):
        if w.past_who[o, 0] != w.who[f, 0] or w.taken[o]:
            continue
        away = 0.0
        for j in range(3):
            away += (w.past_at[o, j] - w.found[f, j]) ** 2
        if w.past_who[o, 1] == w.who[f, 1] and w.who[f, 1] != 0:
            away *= SAME_FEATURE
        if away < nearest:
            best, nearest = o, away
    w.closed[k] = best >= 0
    for j in range(3):
        w.warm[3 * k + j] = 0.0
        for d in range(3):
            if best >= 0:
                w.warm[3 * k + j] += w.axes[k, j, d] * w.past_push[best, d]
    for j in range(9):
        w.left[k, j] = w.past_left[best, j] if best >= 0 else 0.0
    if best >= 0:
        w.taken[best] = True


@reordered_inner
def remember(w, c):
    """Keep of the contacts between shapes that push: who they are, where, impulse, what they leave to the next step."""
    count = 0
    for k in range(c.fixed[0], w.live[0]):
        f = k - c.fixed[0]
        if not w.P[3 * k] > 0.0:
            continue
        w.past_who[count, 0], w.past_who[count, 1] = w.who[f, 0], w.who[f, 1]
        for d in range(3):
            w.past_at[count, d] = w.found[f, d]
            total = 0.0
            for j in range(3):
                total += w.axes[k, j, d] * w.P[3 * k + j]
            w.past_push[count, d] = total
        for d in range(9):
            w.past_left[count, d] = w.left[k, d]
        count += 1
    w.past[0] = count


@reordered_inner
def along_row(w, c, k, j, x):
    """Return row j of contact k times x."""
    total, row = 0.0, 3 * k + j
    for a in range(c.size[k]):
        i = c.path[k, a]
        total += w.W[row, i] * x[i]
    return total


@reordered_inner
def add_impulses(w, c, P, x):
    """Add W^T P to x."""
    for k in range(w.live[0]):
        for j in range(3):
            p = P[3 * k + j]
            if p != 0.0:
                for a in range(c.size[k]):
                    i = c.path[k, a]
                    x[i] += w.W[3 * k + j, i] * p


@reordered_inner
def set_forces(w, c, h):
    """Write the impulses of forces; bias at the velocity to which they and the last impulses lead in the middle."""
    for i in range(w.v.size):
        w.half[i] = h * (w.tau[i] - w.bias[i])
    add_impulses(w, c, w.warm, w.half)
    halve(w, w.half)
    halve_back(w, w.half)
    for i in range(w.v.size):
        w.speed[i] = w.v[i] + 0.5 * w.half[i]
    w.time[0] += 0.5 * h
    invoke(w.calls[BIAS, 0], w.calls[BIAS, 1], w.calls[BIAS, 2])
    n = w.v.size
    for i in range(n):
        w.push[i] = h * (w.tau[i] - w.bias[i])
        # springs and dampers act at the end of the step; tau is that of its start, bias of its middle
        w.push[i] -= h * h * max(w.slopes[n + i], 0.0) * w.v[i]
        w.push[i] -= h * w.passive[i] * (w.v[i] - w.speed[i]) + 0.5 * h * h * w.passive[n + i] * w.v[i]


@reordered_inner
def move(w, base, scale, way):
    """Write where `scale * way` leads from `base` into w.moved."""
    for j in range(base.size):
        w.base[j] = base[j]
    for j in range(way.size):
        w.way[j] = scale * way[j]
    invoke(w.calls[ALONG, 0], w.calls[ALONG, 1], w.calls[ALONG, 2])


# ----------------------------------------------------------------------------------------------------------------------
# Contact velocities that a time step leaves to the next one.
#
# Symbols: u contact velocity, n normal, r radius and omega angular velocity of a sphere; n' the normal of the new step:
#
#     u- = u - r omega x (n' - n)       the touching point moves on its sphere as the normal turns


@reordered_inner
def meet(w, c):
    """Write contact velocities before the impulses: of contacts that were closed, as the last step left them.

    Rows turn with their bodies from step to step, and velocities of free joints are those of their body axes: the new
    rows would see what rolls as going up and down. What turns truly is the normal, and with it the touching point.
    """
    for k in range(w.live[0]):
        there = w.axes[k, 0, 0] != 0.0 or w.axes[k, 0, 1] != 0.0 or w.axes[k, 0, 2] != 0.0
        if not (w.closed[k] and there):
            for j in range(3):
                w.before[3 * k + j] = along_row(w, c, k, j, w.v) + w.offset[3 * k + j]
            continue
        n0, n1, n2 = w.axes[k, 0, 0] - w.left[k, 6], w.axes[k, 0, 1] - w.left[k, 7], w.axes[k, 0, 2] - w.left[k, 8]
        s0, s1, s2 = w.left[k, 3], w.left[k, 4], w.left[k, 5]
        x = w.left[k, 0] - s1 * n2 + s2 * n1
        y = w.left[k, 1] - s2 * n0 + s0 * n2
        z = w.left[k, 2] - s0 * n1 + s1 * n0
        for j in range(3):
            w.before[3 * k + j] = w.axes[k, j, 0] * x + w.axes[k, j, 1] * y + w.axes[k, j, 2] * z


@reordered_inner
def leave(w, c):
    """Keep of every contact: contact velocity in world axes, r omega of its spheres, normal."""
    for k in range(w.live[0]):
        for j in range(3):
            total = 0.0
            for i in range(3):
                total += w.axes[k, i, j] * w.after[3 * k + i]
            w.left[k, j] = total
            w.left[k, 6 + j] = w.axes[k, 0, j]
            total = 0.0
            if 3 * k < w.turns.shape[0]:
                for i in range(w.new.size):
                    total += w.turns[3 * k + j, i] * w.new[i]
            w.left[k, 3 + j] = total


# ----------------------------------------------------------------------------------------------------------------------
# The problem of a step: contacts in it, their rows, G and g; what of it is trouble.


@reordered_inner
def ready_rows(w, c, k):
    """Write the rows Y of a contact, once a step."""
    if w.ready[k]:
        return
    w.ready[k] = True
    y = w.Y[k]
    for i in range(w.v.size):
        y[i, 0] = y[i, 1] = y[i, 2] = 0.0
    for a in range(c.size[k]):
        i = c.path[k, a]
        y[i, 0], y[i, 1], y[i, 2] = w.W[3 * k, i], w.W[3 * k + 1, i], w.W[3 * k + 2, i]
    halve_three(w, c.path[k], c.size[k], y)
    if w.rate.size:
        for j in range(3):
            free_of_rows(w, y, j)


@reordered_inner
def free_of_rows(w, y, j):
    """Take from column j of y what the constraint rows hold; what they leave of it below rounding is nothing."""
    before, after, n = 0.0, 0.0, w.v.size
    for a in range(n):
        before += y[a, j] * y[a, j]
    for i in range(w.rate.size):
        total = 0.0
        for a in range(n):
            total += w.Q[i, a] * y[a, j]
        if total != 0.0:
            for a in range(n):
                y[a, j] -= total * w.Q[i, a]
    for a in range(n):
        after += y[a, j] * y[a, j]
    if after <= HELD_ROW * HELD_ROW * before:
        for a in range(n):
            y[a, j] = 0.0


@reordered_inner
def gather(w, c, h, dry):
    """Write kinds, rows, G, g, bounds and the guess of the contacts inside; return how many, and their rows.

    `dry` takes normals alone, with gaps at the end of the step in place of velocities.
    """
    m, size = 0, 0
    for k in range(w.live[0]):
        if not w.inside[k]:
            continue
        ready_rows(w, c, k)
        w.active[m], w.first[m] = k, size
        w.kinds[m] = NORMAL if dry else c.kind[k]
        w.mu[m], w.floor[m], w.bound[m] = c.mu[k], 0.0, h * w.load[k] * c.limit[k]
        begin = 0 if c.gapped[k] else 1
        for j in range(rows_of_kind(w.kinds[m])):
            row = 3 * k + begin + j
            w.g[size + j] = along_row(w, c, k, begin + j, w.free) + w.offset[row]
            w.r[size + j] = w.P[row]
        if c.gapped[k] and not dry:
            if not c.poisson[k]:
                w.g[size] += c.e[k] * min(w.before[3 * k], 0.0)
            if c.e[k] == 0.0:
                w.g[size] += 2.0 / h * max(w.gaps[k], 0.0)
        size += rows_of_kind(w.kinds[m])
        m += 1
    for s in range(m):
        for t in range(s + 1):
            fill_block(w, c, s, t)
    return m, size


@reordered_inner
def share_tree(w, c, k, m):
    """Return whether two contacts move velocities of the same tree: these begin with the same ones at the ground."""
    for a in range(c.size[k]):
        i = c.path[k, a]
        if w.depth[i] == 0:
            for b in range(c.size[m]):
                if c.path[m, b] >= i:
                    if c.path[m, b] == i:
                        return True
                    break
    return False


@reordered_inner
def fill_block(w, c, s, t):
    """Write the block of G of two contacts."""
    k, m = w.active[s], w.active[t]
    if not w.rate.size and not share_tree(w, c, k, m):
        for a in range(w.first[s], w.first[s] + rows_of_kind(w.kinds[s])):
            for b in range(w.first[t], w.first[t] + rows_of_kind(w.kinds[t])):
                w.G[a, b] = w.G[b, a] = 0.0
        return
    x, y, dense = w.Y[k], w.Y[m], w.rate.size > 0
    less = k if c.size[k] <= c.size[m] else m
    g00 = g01 = g02 = g10 = g11 = g12 = g20 = g21 = g22 = 0.0
    for e in range(w.v.size if dense else c.size[less]):
        i = e if dense else c.path[less, e]
        x0, x1, x2, y0, y1, y2 = x[i, 0], x[i, 1], x[i, 2], y[i, 0], y[i, 1], y[i, 2]
        g00, g01, g02 = g00 + x0 * y0, g01 + x0 * y1, g02 + x0 * y2
        g10, g11, g12 = g10 + x1 * y0, g11 + x1 * y1, g12 + x1 * y2
        g20, g21, g22 = g20 + x2 * y0, g21 + x2 * y1, g22 + x2 * y2
    block = w.block
    block[0, 0], block[0, 1], block[0, 2] = g00, g01, g02
    block[1, 0], block[1, 1], block[1, 2] = g10, g11, g12
    block[2, 0], block[2, 1], block[2, 2] = g20, g21, g22
    a0, b0 = 0 if c.gapped[k] else 1, 0 if c.gapped[m] else 1
    for a in range(rows_of_kind(w.kinds[s])):
        for b in range(rows_of_kind(w.kinds[t])):
            value = block[a0 + a, b0 + b]
            w.G[w.first[s] + a, w.first[t] + b] = w.G[w.first[t] + b, w.first[s] + a] = value


@reordered_inner
def spread(w, c, m, r, P):
    """Write the impulses r of the contacts in the problem into all contacts' P."""
    for a in range(P.size):
        P[a] = 0.0
    for s in range(m):
        k = w.active[s]
        begin = 0 if c.gapped[k] else 1
        for j in range(rows_of_kind(w.kinds[s])):
            P[3 * k + begin + j] = r[w.first[s] + j]


@reordered_inner
def velocity_of(w, c, m, r, velocity):
    """Write P and the velocity that forces and the impulses r lead to, and the multipliers of both."""
    spread(w, c, m, r, w.P)
    for i in range(w.v.size):
        w.half[i] = w.push[i]
    add_impulses(w, c, w.P, w.half)
    halve(w, w.half)
    answer(w, w.half, velocity)


@reordered_inner
def judge(w, m):
    """Note by how much each law is missed, relative to the data; return the largest velocity of approach, alike.

    Impulses beyond what the data explain count as approach: they grow along a way on which no impulse helps.
    """
    scale, worst = NO_VELOCITY, 0.0
    for s in range(m):
        for a in range(w.first[s], w.first[s] + rows_of_kind(w.kinds[s])):
            scale = max(scale, abs(w.g[a]))
    for s in range(m):
        a, miss = w.first[s], 0.0
        for b in range(a, a + rows_of_kind(w.kinds[s])):
            normal = b == a and (w.kinds[s] == CONE or w.kinds[s] == NORMAL)
            p = w.cones.p[s, 0 if normal else 1]
            size = p if p > 0.0 else w.cones.sizes[0]
            miss = max(miss, abs(w.cones.F[b]) / size, -w.cones.u[b] if normal and p == 0.0 else 0.0)
            if normal:
                beyond = w.G[b, b] * w.r[b] > UNEXPLAINED_IMPULSE * scale
                worst = max(worst, -w.cones.u[b], scale if beyond else 0.0)
                miss = max(miss, scale if beyond else 0.0)
        w.missed[w.active[s]] = miss / scale
    return worst / scale


@reordered_inner
def select(w, c, h):
    """Choose the contacts of the problem: friction, gaps that free motion closes, and who is closed and stays there."""
    some = False
    for k in range(w.live[0]):
        if not c.gapped[k]:
            w.inside[k] = True
        else:
            speed = np.sqrt(w.before[3 * k + 1] ** 2 + w.before[3 * k + 2] ** 2)
            stays = w.closed[k] and abs(w.before[3 * k]) <= RESTING * (1.0 + speed)
            way = 0.5 * h * (along_row(w, c, k, 0, w.free) + w.offset[3 * k])
            w.inside[k] = stays or w.gaps[k] + way <= 0.0
        some = some or w.inside[k]
    return some


@reordered_inner
def add_closing(w, c, h):
    """Add contacts that the answer would close to the problem; return whether there are some."""
    more = False
    for k in range(w.live[0]):
        if not w.inside[k]:
            way = 0.5 * h * (along_row(w, c, k, 0, w.new) + w.offset[3 * k])
            if w.gaps[k] + way < -PENETRATION:
                w.inside[k] = more = True
    return more


@reordered_inner
def look_back(w, c, t, h, counts, sums):
    """Count a step that begins with a penetration, keep the deepest; mark who touches or penetrates in such a step.

    Gaps are those of the middle, half a step back. The way of a contact is that of its touching point and of the
    sphere that rolls over it.
    """
    deep = False
    for k in range(w.live[0]):
        w.inside[k] = False
        if not c.gapped[k]:
            continue
        u = along_row(w, c, k, 0, w.v) + w.offset[3 * k]
        depth = 0.5 * h * u - w.gaps[k]
        w.inside[k] = depth >= -DEEP
        if depth <= DEEP:
            continue
        x, y = along_row(w, c, k, 1, w.v) + w.offset[3 * k + 1], along_row(w, c, k, 2, w.v) + w.offset[3 * k + 2]
        speed = np.sqrt(u * u + x * x + y * y)
        speed += np.sqrt(w.left[k, 3] ** 2 + w.left[k, 4] ** 2 + w.left[k, 5] ** 2)
        pulled = abs(along_row(w, c, k, 0, w.free) + w.offset[3 * k] - u)
        if depth > DEEP + SINKING * h * speed + 0.5 * h * pulled:
            sums[DEEP_FIRST] = t if counts[DEEP_STEPS] == 0 and not deep else sums[DEEP_FIRST]
            deep = True
            if depth > sums[DEEPEST]:
                sums[DEEPEST], sums[DEEP_TIME], counts[DEEP_PAIR] = depth, t, place_of(w, c, k)
    counts[DEEP_STEPS] += 1 if deep else 0
    return deep


@reordered_inner
def trapped(w, c, h):
    """Return whether no motion frees the contacts inside of a penetration; by how much is then noted as missed."""
    for a in range(w.P.size):
        w.P[a] = 0.0
    m, size = gather(w, c, h, True)
    for s in range(m):
        k = w.active[s]
        w.g[s] = w.gaps[k] - 0.5 * h * (along_row(w, c, k, 0, w.v) + w.offset[3 * k])
    solve_laws(
        w.G, w.g, w.kinds, w.first, w.mu, w.bound, w.floor, m, size, w.r, AIM_IN_STEPS, w.cones
    )  # fmt: skip
    return judge(w, m) > CONTRADICTING_IMPULSES


@reordered_inner
def look_for_paradox(w, c, m, t, counts, sums):
    """Count a step in which a contact slides, without striking, into Painleve's paradox; keep the first.

    G_NN - mu G_NT . s <= 0 with s the direction of sliding: pushed harder, the contact is drawn in by its friction.
    Without a force such a contact approaches, and there is no answer, or it separates, and there are several.
    """
    for i in range(m):
        k, a = w.active[i], w.first[i]
        if w.kinds[i] != CONE:
            continue
        x, y = w.before[3 * k + 1], w.before[3 * k + 2]
        speed = np.sqrt(x * x + y * y)
        if speed <= NO_VELOCITY or w.before[3 * k] < -RESTING * (1.0 + speed):
            continue
        if w.G[a, a] - w.mu[i] * (w.G[a + 1, a] * x + w.G[a + 2, a] * y) / speed <= 0.0:
            if counts[PARADOXES] == 0:
                sums[PARADOX_TIME], counts[PARADOX] = t, place_of(w, c, k)
            counts[PARADOXES] += 1
            return


@reordered_inner
def expand(w, c, m, size):
    """Add the expansion of Poisson's law to compression, for contacts just closed; return its residual, or -1.

    Compression is w.r; the expansion has at least e times its normal impulse, and friction in the cone of its own.
    """
    some = False
    for s in range(m):
        k = w.active[s]
        w.floor[s] = c.e[k] * w.r[w.first[s]] if c.poisson[k] and w.warm[3 * k] == 0.0 else 0.0
        some = some or w.floor[s] > 0.0
    if not some:
        return -1.0
    for a in range(size):
        total = 0.0
        for b in range(size):
            total += w.G[a, b] * w.r[b]
        w.g[a] += total
        w.more[a] = 0.0
    for s in range(m):
        w.more[w.first[s]] = w.floor[s]
    residual = solve_laws(
        w.G, w.g, w.kinds, w.first, w.mu, w.bound, w.floor, m, size, w.more, AIM_IN_STEPS, w.cones
    )  # fmt: skip
    for a in range(size):
        w.r[a] += w.more[a]
    return residual


# ----------------------------------------------------------------------------------------------------------------------
# The end of a step: positions, sums, the sample.


@reordered_inner
def move_back(w, c, h):
    """Move positions back where a contact has gone below the surface, least in kinetic energy."""
    low = 0.0
    for k in range(w.live[0]):
        w.inside[k] = w.inside[k] and c.gapped[k]
        if w.inside[k]:
            low = min(low, w.gaps[k] + 0.5 * h * (along_row(w, c, k, 0, w.new) + w.offset[3 * k]))
    if low >= -PENETRATION:
        return
    m, size = gather(w, c, h, True)
    for s in range(m):
        k = w.active[s]
        w.g[s] = w.gaps[k] + 0.5 * h * (along_row(w, c, k, 0, w.new) + w.offset[3 * k])
        w.r[s] = 0.0
    solve_laws(
        w.G, w.g, w.kinds, w.first, w.mu, w.bound, w.floor, m, size, w.r, AIM_IN_STEPS, w.cones
    )  # fmt: skip
    for i in range(w.v.size):
        w.half[i] = 0.0
    for s in range(m):
        for i in range(w.v.size):
            w.half[i] += w.Y[w.active[s], i, 0] * w.r[s]
    halve_back(w, w.half)
    move(w, w.moved, 1.0, w.half)


@reordered_inner
def close(w, t):
    """Put w.moved onto the constraints."""
    w.time[0] = t
    for _ in range(CLOSING):
        invoke(w.calls[CLOSE, 0], w.calls[CLOSE, 1], w.calls[CLOSE, 2])
        worst = 0.0
        for i in range(w.residual.size):
            worst = max(worst, abs(w.residual[i]))
        if worst <= CLOSED:
            return
        move(w, w.moved, 1.0, w.correction)


@reordered_inner
def count_gain(w, c, t, counts, sums):
    """Count a step whose impulses gain energy from surfaces at rest, P . u of (v_free + v+) / 2, and keep the first.

    v_free is where forces alone lead: what they do in the step is no work of impulses.
    """
    work, some = 0.0, False
    for k in range(w.live[0]):
        for j in range(3):
            p = w.P[3 * k + j]
            if p != 0.0:
                some = True
                u = along_row(w, c, k, j, w.free) + along_row(w, c, k, j, w.new)
                work += p * (0.5 * u + w.offset[3 * k + j])
    if some and work > 0.0 and work > STEP_GAIN * max(energy_of(w, w.free), energy_of(w, w.new)):
        if counts[GAINS] == 0:
            sums[GAIN], sums[GAIN_TIME] = work, t
        counts[GAINS] += 1


@reordered_inner
def add_sums(w, c, h, sums):
    """Add heat of contacts, and work of forces, of driven rows and of surfaces that move."""
    heat, work = 0.0, 0.0
    for a in range(w.P.size):
        if w.P[a] != 0.0:
            heat -= 0.5 * w.P[a] * (w.before[a] + w.after[a])
            work -= w.P[a] * w.offset[a]
    n = w.v.size
    for i in range(n):
        D, K = max(w.slopes[i], 0.0), max(w.slopes[n + i], 0.0)
        push = h * w.tau[i] - h * h * K * w.v[i] - (h * D + 0.5 * h * h * K) * (w.new[i] - w.v[i])
        work += 0.5 * push * (w.v[i] + w.new[i])
    for i in range(w.rate.size):
        if w.driven[i]:
            total = 0.0
            for j in range(w.v.size):
                total += w.A[i, j] * (w.v[j] + w.new[j])
            work -= 0.5 * w.lam[i] * total
    sums[HEAT] += heat
    sums[WORK] += work + h * w.power[0]


@reordered_inner
def record(w, c, samples, row, t, h, sums, status):
    """Write a sample."""
    samples.t[row], samples.step[row] = t, h
    for i in range(w.q.size):
        samples.q[row, i] = w.moved[i]
    for i in range(w.v.size):
        samples.v[row, i], samples.acceleration[row, i] = w.new[i], (w.new[i] - w.v[i]) / h
    for i in range(w.rate.size):
        samples.multipliers[row, i] = w.lam[i] / h
    samples.work[row], samples.heat[row] = sums[WORK], sums[HEAT]
    samples.contact_status[row], samples.contact_residual[row] = status, sums[RESIDUAL]
    for a in range(samples.contact_forces.shape[1]):
        samples.contact_forces[row, a] = samples.contact_moments[row, a] = 0.0
    for a in range(samples.modes.shape[1]):
        samples.modes[row, a], samples.contact_points[row, a] = OPEN, 0
    for k in range(w.live[0]):
        place = place_of(w, c, k)
        if c.gapped[k] and w.P[3 * k] <= 0.0:
            continue
        slips = np.sqrt(w.after[3 * k + 1] ** 2 + w.after[3 * k + 2] ** 2) > STILL
        if samples.modes[row, place] != STICK:  # several points of a pair: one that sticks holds it
            samples.modes[row, place] = SLIP if slips else STICK
        samples.contact_points[row, place] += 1
        for j in range(3):
            force = 0.0
            for i in range(3):
                force += w.axes[k, i, j] * w.P[3 * k + i] / h
            w.normal[j] = force
            samples.contact_forces[row, 3 * place + j] += force
        if k >= c.fixed[0]:
            x, F, M = w.found[k - c.fixed[0]], w.normal, samples.contact_moments[row]
            M[3 * place] += x[1] * F[2] - x[2] * F[1]
            M[3 * place + 1] += x[2] * F[0] - x[0] * F[2]
            M[3 * place + 2] += x[0] * F[1] - x[1] * F[0]


@reordered_inner
def finish(w, c, t, h, counts, sums, samples, status):
    """Take positions that stay on the constraints, sums, the sample, and what the next step begins with."""
    if w.calls[CLOSE, 0] != 0:
        close(w, t + h)
    for k in range(w.live[0]):
        for j in range(3):
            w.after[3 * k + j] = along_row(w, c, k, j, w.new) + w.offset[3 * k + j]
    add_sums(w, c, h, sums)
    counts[COUNT] += 1
    if counts[COUNT] % counts[STRIDE] == 0 or counts[COUNT] == counts[TOTAL]:
        record(w, c, samples, counts[SAMPLES], t + h, h, sums, status)
        counts[SAMPLES] += 1
    counts[UNSOLVED] += 1 if sums[RESIDUAL] > ACCEPTED else 0
    leave(w, c)
    remember(w, c)
    for i in range(w.v.size):
        w.mean[i] = 0.5 * (w.v[i] + w.new[i])
        w.v[i] = w.new[i]
    for i in range(w.q.size):
        w.q[i] = w.moved[i]
    for a in range(w.P.size):
        w.warm[a] = w.P[a]
    for k in range(w.live[0]):
        w.closed[k] = w.P[3 * k] > 0.0


# ----------------------------------------------------------------------------------------------------------------------
# One step, and many.


@reordered_inner
def outrun(w, h, counts, sums):
    """Return whether joint forces outrun the steps: the motion feeds on what forces change by from step to step.

    The work h tau . v of a step is off by h (tau' - tau) . v / 2, tau' being the force at its end. Where that is no
    small part of the energy of motion, step after step, while this energy grows, the steps make it.
    """
    error, change, size, n = 0.0, 0.0, 0.0, w.v.size
    for i in range(n):
        more = w.tau[i] - w.tau_before[i]
        error += 0.5 * h * more * w.mean[i]
        change, size = change + more * more, size + w.tau_before[i] * w.tau_before[i]
        w.tau_before[i] = w.tau[i]
    if error == 0.0 or change <= OUTRUN_CHANGE * size:
        counts[STREAK] = 0
        return False
    energy = energy_of(w, w.v)
    if abs(error) <= OUTRUN_PART * energy or not energy > 0.0:
        counts[STREAK] = 0
        return False
    if counts[STREAK] == 0:
        sums[STREAK_ENERGY] = energy
    counts[STREAK] += 1
    return counts[STREAK] >= OUTRUN_STEPS and energy > OUTRUN_GROWTH * sums[STREAK_ENERGY]


@reordered_inner
def prepare(w, c, t, h, counts, sums):
    """Factor masses and rows, find the velocity without contacts; return what became of it, and the rows' status."""
    for k in range(w.live[0]):
        w.ready[k] = False
    least = factor_mass(w)
    if not least > 0.0:
        return MASSLESS, 0
    set_forces(w, c, h)
    least *= set_rows(w)
    set_side(w)
    for i in range(w.v.size):
        w.half[i] = w.push[i]
    halve(w, w.half)
    answer(w, w.half, w.free)
    status = 0
    for i in range(w.rate.size):
        status = status if w.kept[i] else 1
    if status == 1 and opposed(w, w.free) > CONTRADICTING_RATES:
        return OPPOSED, status
    if ROUNDOFF / least > CERTAIN:
        status = IN_DOUBT
        sums[DOUBT_TIME] = t if counts[UNCERTAIN] == 0 else sums[DOUBT_TIME]
        counts[UNCERTAIN] += 1
    return FINE, status


@reordered_inner
def solve(w, c, t, h, counts, sums):
    """Find impulses and velocity of a step, the contacts closed under the answer; return what became of it."""
    m, size, residual = 0, 0, 0.0
    for a in range(w.P.size):
        w.P[a] = w.warm[a]
    for turn in range(w.live[0] + 1):  # every round but the last adds a contact
        m, size = gather(w, c, h, False)
        if turn == 0:
            look_for_paradox(w, c, m, t, counts, sums)
        residual = solve_laws(
            w.G, w.g, w.kinds, w.first, w.mu, w.bound, w.floor, m, size, w.r, AIM_IN_STEPS, w.cones
        )  # fmt: skip
        velocity_of(w, c, m, w.r, w.new)
        if not add_closing(w, c, h):
            break
    sums[RESIDUAL] = residual
    if judge(w, m) > CONTRADICTING_IMPULSES:
        return CONTRADICTORY
    more = expand(w, c, m, size)
    if more >= 0.0:
        sums[RESIDUAL] = max(sums[RESIDUAL], more)
        velocity_of(w, c, m, w.r, w.new)
    return FINE


@steady
def advance(w, c, shapes, tables, counts, sums, samples, most):
    """Take up to `most` steps, or until the block is full; return what became of the last.

    `shapes` is None where nothing is to be found, and the code has no narrow phase then.
    """
    h = sums[STEP]
    for _ in range(most):
        if counts[COUNT] >= counts[TOTAL] or counts[SAMPLES] >= samples.t.size:
            return FINE
        t = sums[START] + counts[COUNT] * h
        code = evaluate(w, c, tables, t, h)
        if shapes is not None and code == FINE:
            code = find_shapes(w, c, shapes, h)
        if code != FINE:
            return code
        if w.calls[TAU, 0] != 0 and outrun(w, h, counts, sums):
            return UNSTABLE
        code, status = prepare(w, c, t, h, counts, sums)
        if code != FINE:
            return code
        sums[RESIDUAL] = 0.0
        for k in range(w.live[0]):
            w.missed[k] = 0.0
        meet(w, c)
        if look_back(w, c, t, h, counts, sums) and trapped(w, c, h):  # a penetration: does any motion free all?
            return TRAPPED
        if select(w, c, h):
            code = solve(w, c, t, h, counts, sums)
            if code != FINE:
                return code
        else:
            for a in range(w.P.size):
                w.P[a] = 0.0
            for i in range(w.v.size):
                w.new[i] = w.free[i]
        total = 0.0
        for i in range(w.v.size):
            total += w.new[i]
        if not np.isfinite(total):
            return NON_FINITE
        for i in range(w.v.size):
            w.half[i] = w.v[i] + w.new[i]
        move(w, w.q, 0.5 * h, w.half)
        move_back(w, c, h)
        count_gain(w, c, t, counts, sums)
        finish(w, c, t, h, counts, sums, samples, status)
    return FINE


@compiled
def fields_at_start(w, c):
    """Write gaps and rows of contacts with heightfields, for a look at the start."""
    set_fields(w, c)


@steady
def leave_at_start(w, c):
    """Keep what contacts do before the first step."""
    leave(w, c)


@steady
def kinetic_energy(w):
    """Return the energy of motion at the start of the step."""
    return energy_of(w, w.v)
