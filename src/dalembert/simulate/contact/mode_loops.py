# pyright: reportCallIssue=false, reportArgumentType=false
"""The dynamics of contacts in one mode, compiled: forces of closed, sticking and sliding contacts, impacts, projections.

A contact has three rows: normal, tangent, tangent (rows that it lacks are zero). Symbols: W contact rows (3 k, n),
u = W v + offsets relative velocities, u' = W a + shift; r reactions on the system (N, T, T), A constraint rows.

    M a + A^T lam = f + W^T r,     A a = -drift,     closed: W_N a = -shift_N,     sticking: W_T a = -shift_T
    sliding along d: r_T = -limit d,   limit = load T_k(|u_T|),  load: given, r_N, or |lam_j| of a constraint row j

so that a load that is a reaction makes the block matrix unsymmetric. Rows that depend on others are left out of it
(`kept`). Where contact rows depend on each other, and at transitions, complementarity over cones decides.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dalembert.friction.cones.sweeps import COULOMB, attempt
from dalembert.friction.problem import BILATERAL, FIXED, UNILATERAL
from dalembert.kernel.loops import compiled, invoke
from dalembert.simulate.equations.signals import set_signals

# ----------------------------------------------------------------------------------------------------------------------
# Memory of the engine.


TERMS, CHART, ALONG, FORCE, EVENTS, LAWS, SIGNALS, HARD = range(8)
"""Rows of the table of calls; `SIGNALS` is where `signals.set_signals` looks."""

FAILED = 1
"""Place in the environment that a Python function sets when it fails."""

DRY, STRIBECK, HYPERBOLIC, TABULATED, OTHER = range(5)
"""Laws of friction that loops know; `OTHER` ones are asked by a call."""

SOUND, SINGULAR, DOUBTFUL, NO_FORCES, NOT_UNIQUE, NOT_FINITE, CALLBACK, NO_IMPULSES, GAINING = range(9)
"""How a solve ended."""


class ContactTable(NamedTuple):
    """Contacts as arrays."""

    gapped: np.ndarray  # (k,) may open; else always closed
    row: np.ndarray  # (k,) constraint row whose reaction is the load, or -1
    pushes: np.ndarray  # (k,) that row only pushes
    width: np.ndarray  # (k,) tangents: 0, 1, 2
    restitution: np.ndarray
    poisson: np.ndarray
    law: np.ndarray  # (k,)
    numbers: np.ndarray  # (k, 6) of the laws
    tables: np.ndarray  # speeds and forces of tabulated laws, one after the other
    holonomic: np.ndarray  # (m,) place of a row's residual, or -1
    rank: np.ndarray  # (1,) rank of the constraint rows, -1 where it is not known
    weights: np.ndarray  # (m,) sizes of constraint rows


class ContactMemory(NamedTuple):
    """What the codes read and write, and where they are."""

    calls: np.ndarray
    environment: np.ndarray
    base: np.ndarray
    x: np.ndarray
    x_rate: np.ndarray
    way: np.ndarray
    q: np.ndarray
    moved: np.ndarray
    v: np.ndarray
    time: np.ndarray
    M: np.ndarray
    bias: np.ndarray
    A: np.ndarray
    drift: np.ndarray
    phi: np.ndarray
    psi: np.ndarray
    gaps: np.ndarray
    W: np.ndarray
    u: np.ndarray
    shift: np.ndarray
    load: np.ndarray
    axes: np.ndarray
    force: np.ndarray
    event_values: np.ndarray
    speeds: np.ndarray
    kinetic: np.ndarray
    static: np.ndarray
    # the mode
    closed: np.ndarray
    slides: np.ndarray
    direction: np.ndarray  # (k, 2)
    slow: np.ndarray  # (k,) speeds below which a plane slides where it is accelerated to
    sign: np.ndarray  # (k,) of the reaction of a constraint row
    kept: np.ndarray  # (m + 3 k,) rows that are imposed
    counts: np.ndarray  # number of kept rows, of constraint rows among them, whether contact rows depend on each other
    # the motion
    unit: np.ndarray  # (k, 2)
    along: np.ndarray  # (k,) sliding speeds, signed by the direction
    a: np.ndarray
    lam: np.ndarray
    r: np.ndarray
    contact: np.ndarray  # (3 k,) u'
    rates: np.ndarray  # power of the forces, heat, work of friction; residual
    # linear algebra
    K: np.ndarray
    LU: np.ndarray
    pivot: np.ndarray
    right: np.ndarray
    solution: np.ndarray
    # complementarity
    G: np.ndarray
    g: np.ndarray
    first: np.ndarray
    coefficient: np.ndarray
    kind: np.ndarray
    sliding: np.ndarray
    s: np.ndarray
    reaction: np.ndarray
    owner: np.ndarray  # (3 k,) contact row of a row of the problem; constraint row j: -1 - j
    size: np.ndarray  # rows, contacts of the problem; whether it is one of impulses
    missed: np.ndarray


KEPT_ROWS, KEPT_CONSTRAINTS, REDUNDANT = range(3)
"""Places in `counts`."""

POWER, HEAT, FRICTION_WORK, RESIDUAL = range(4)
"""Places in `rates`."""

INDEPENDENT = 1e-10
"""Rows are independent where what is left of them, rows scaled to one, is above this."""

CERTAIN = 1e-3
"""Accelerations whose relative error may be above this are in doubt."""

TOLERANCE, ACCEPTED, SWEEPS, NEWTON = 1e-13, 1e-8, 12, 400
"""What complementarity aims at, and what counts as an answer, relative to the data."""

BEYOND = 1e8
"""Reactions this many times those that would stop what is seen cannot be explained by the data."""

ALIGNED, ROUNDS = 1e-14, 60
"""When a direction of sliding has settled, and after how many rounds it is left as it is."""


# ----------------------------------------------------------------------------------------------------------------------
# Laws of friction and the terms of a state.


@compiled
def kinetic(c, w, i, s):
    """Return T_k at a speed s >= 0."""
    law, p = c.law[i], c.numbers[i]
    if law == DRY:
        return p[1]
    if law == STRIBECK:
        return p[1] + (p[0] - p[1]) * np.exp(-((s / p[2]) ** p[3])) + p[4] * s
    if law == HYPERBOLIC:
        return p[0] / (1.0 + p[1] * s)
    if law == TABULATED:
        first, count = int(p[1]), int(p[2])
        if s >= c.tables[first + count - 1]:
            return c.tables[first + 2 * count - 1]
        j = np.searchsorted(c.tables[first : first + count], s, side="right") - 1
        low, high = c.tables[first + j], c.tables[first + j + 1]
        part = (s - low) / (high - low)
        return (1.0 - part) * c.tables[first + count + j] + part * c.tables[first + count + j + 1]
    w.speeds[i] = s
    invoke(w.calls[LAWS, 0], w.calls[LAWS, 1], w.calls[LAWS, 2])
    return w.kinetic[i]


@compiled
def static(c, w, i):
    """Return T_s."""
    if c.law[i] != OTHER:
        return c.numbers[i, 0]
    invoke(w.calls[LAWS, 0], w.calls[LAWS, 1], w.calls[LAWS, 2])
    return w.static[i]


@compiled
def continued(c, w, i, s):
    """Return T_k, continued to speeds below zero by its cubic through 0, d, 2 d, 3 d, d = -s."""
    if s >= 0.0 or c.law[i] == DRY:
        return kinetic(c, w, i, max(s, 0.0))
    return (
        4.0 * kinetic(c, w, i, 0.0) - 6.0 * kinetic(c, w, i, -s) + 4.0 * kinetic(c, w, i, -2.0 * s)
        - kinetic(c, w, i, -3.0 * s)
    )  # fmt: skip


@compiled
def evaluate(w, tables, t, bounds):
    """Write the terms at w.q, w.v and time t; between break points forces take their limits from within `bounds`."""
    w.time[0] = t
    invoke(w.calls[TERMS, 0], w.calls[TERMS, 1], w.calls[TERMS, 2])
    if w.calls[FORCE, 0] != 0:
        set_signals(w.calls, w.environment, tables, t, bounds[0], bounds[1])
        invoke(w.calls[FORCE, 0], w.calls[FORCE, 1], w.calls[FORCE, 2])


# ----------------------------------------------------------------------------------------------------------------------
# Linear algebra: elimination with partial pivoting, and independent rows.


@compiled
def factor(K, size, pivot):
    """Overwrite K by its factors; return whether no pivot is zero."""
    for j in range(size):
        p, largest = j, abs(K[j, j])
        for i in range(j + 1, size):
            if abs(K[i, j]) > largest:
                p, largest = i, abs(K[i, j])
        pivot[j] = p
        if not largest > 0.0:
            return False
        if p != j:
            for m in range(size):
                K[j, m], K[p, m] = K[p, m], K[j, m]
        for i in range(j + 1, size):
            if K[i, j] != 0.0:
                part = K[i, j] / K[j, j]
                K[i, j] = part
                for m in range(j + 1, size):
                    K[i, m] -= part * K[j, m]
    return True


@compiled
def substitute(K, size, pivot, x):
    """Overwrite x by the solution."""
    for j in range(size):
        p = pivot[j]
        if p != j:
            x[j], x[p] = x[p], x[j]
    for j in range(size):
        total = x[j]
        for i in range(j):
            total -= K[j, i] * x[i]
        x[j] = total
    for j in range(size - 1, -1, -1):
        total = x[j]
        for i in range(j + 1, size):
            total -= K[j, i] * x[i]
        x[j] = total / K[j, j]


@compiled
def row_of(w, row, out):
    """Write a row: of the constraints, or behind them of the contacts."""
    m = w.A.shape[0]
    for j in range(out.size):
        out[j] = w.A[row, j] if row < m else w.W[row - m, j]


@compiled
def choose(c, w):
    """Choose independent rows of the mode: constraint rows, normals of closed contacts, tangents of sticking ones.

    Constraint rows by size, down to the rank of the system where that is known; contact rows one after the other.
    """
    m, k, n = w.A.shape[0], w.closed.size, w.M.shape[0]
    Q = np.zeros((min(n, m + 3 * k), n))
    scale, y, rest = np.ones(n), np.zeros(n), np.zeros((m, n))
    for j in range(n):
        scale[j] = 1.0 / np.sqrt(w.M[j, j]) if w.M[j, j] > 0.0 else 1.0
    # constraint rows, pivoted
    count, used = 0, np.zeros(m, np.bool_)
    sizes = np.zeros(m)
    for i in range(m):
        for j in range(n):
            rest[i, j] = w.A[i, j] * scale[j]
        sizes[i] = np.sqrt((rest[i] * rest[i]).sum())
    most = m if c.rank[0] < 0 else c.rank[0]
    for _ in range(min(most, n)):
        best, largest = -1, INDEPENDENT if c.rank[0] < 0 else 0.0
        for i in range(m):
            left = np.sqrt((rest[i] * rest[i]).sum()) / sizes[i] if sizes[i] > 0.0 else 0.0
            if not used[i] and left > largest:
                best, largest = i, left
        if best < 0:
            break
        used[best] = True
        Q[count] = rest[best] / np.sqrt((rest[best] * rest[best]).sum())
        for i in range(m):
            if not used[i]:
                for _ in range(2):
                    rest[i] -= (Q[count] * rest[i]).sum() * Q[count]
        count += 1
    place = 0
    for i in range(m):
        if used[i]:
            w.kept[place] = i
            place += 1
    w.counts[KEPT_CONSTRAINTS] = place
    # contact rows in order: normals first
    w.counts[REDUNDANT] = 0
    for part in range(2):
        for i in range(k):
            first, last = (0, 1) if part == 0 else (1, 1 + c.width[i])
            if not w.closed[i] or (part == 0 and not c.gapped[i]) or (part == 1 and w.slides[i]):
                continue
            if part == 1 and c.gapped[i] and not static(c, w, i) > 0.0:
                continue
            for j in range(first, last):
                size = 0.0
                for b in range(n):
                    y[b] = w.W[3 * i + j, b] * scale[b]
                    size += y[b] * y[b]
                if not size > 0.0:
                    continue
                for _ in range(2):
                    for a in range(count):
                        y -= (Q[a] * y).sum() * Q[a]
                left = np.sqrt((y * y).sum() / size)
                if left > INDEPENDENT and count < Q.shape[0]:
                    Q[count] = y / np.sqrt((y * y).sum())
                    count += 1
                    w.kept[place] = m + 3 * i + j
                    place += 1
                else:
                    w.counts[REDUNDANT] = 1
    w.counts[KEPT_ROWS] = place


# ----------------------------------------------------------------------------------------------------------------------
# The motion in a mode.


@compiled
def set_directions(c, w):
    """Write unit vectors of sliding and speeds along them; return how many planes are too slow to tell."""
    slow = 0
    for i in range(w.closed.size):
        w.unit[i, 0], w.unit[i, 1], w.along[i] = 0.0, 0.0, 0.0
        if not (w.closed[i] and w.slides[i]):
            continue
        a, b = w.u[3 * i + 1], w.u[3 * i + 2]
        w.unit[i, 0], w.unit[i, 1] = w.direction[i, 0], w.direction[i, 1]
        w.along[i] = a * w.direction[i, 0] + b * w.direction[i, 1]
        if c.width[i] < 2:
            continue
        size = np.sqrt(a * a + b * b)
        # next to its end a sliding velocity may have crossed zero inside a step: the direction must not turn round
        if size > w.slow[i] and w.along[i] > 0.0:
            w.unit[i, 0], w.unit[i, 1], w.along[i] = a / size, b / size, size
        elif w.slow[i] > 0.0:
            slow += 1
    return slow


@compiled
def limit_factor(c, w, i):
    """Return the limit of a sliding contact for unit load."""
    return continued(c, w, i, w.along[i])


@compiled
def hold(c, w, careful):
    """Solve the block system of the mode with given directions; return how it ended."""
    n, m = w.M.shape[0], w.A.shape[0]
    count = w.counts[KEPT_ROWS]
    size = n + count
    K, right, x = w.K, w.right, w.solution
    for i in range(n):
        right[i] = w.force[i] - w.bias[i]
        for j in range(n):
            K[i, j] = w.M[i, j]
    for p in range(count):
        row = w.kept[p]
        right[n + p] = -w.drift[row] if row < m else -w.shift[row - m]
        for j in range(n):
            value = w.A[row, j] if row < m else w.W[row - m, j]
            K[n + p, j] = value
            K[j, n + p] = value
        for o in range(count):
            K[n + p, n + o] = 0.0
    # friction of sliding contacts: a force, or a part of the column of the reaction that loads it
    for i in range(w.closed.size):
        if not (w.closed[i] and w.slides[i]) or c.width[i] == 0:
            continue
        factor_of = limit_factor(c, w, i)
        if not c.gapped[i] and c.row[i] < 0:
            if factor_of < 0.0 <= w.along[i]:
                return NOT_FINITE
            for j in range(n):
                pull = w.W[3 * i + 1, j] * w.unit[i, 0] + w.W[3 * i + 2, j] * w.unit[i, 1]
                right[j] -= w.load[i] * factor_of * pull
            continue
        normal = m + 3 * i if c.gapped[i] else c.row[i]
        place = -1
        for p in range(count):
            if w.kept[p] == normal:
                place = p
        if place < 0:
            return NOT_UNIQUE
        sign = 1.0 if c.gapped[i] else w.sign[i]
        for j in range(n):
            pull = w.W[3 * i + 1, j] * w.unit[i, 0] + w.W[3 * i + 2, j] * w.unit[i, 1]
            K[j, n + place] -= sign * factor_of * pull
    for i in range(size):
        x[i] = right[i]
        for j in range(size):
            w.LU[i, j] = K[i, j]
    if not factor(w.LU, size, w.pivot):
        return SINGULAR
    substitute(w.LU, size, w.pivot, x)
    # one refinement, which says how many digits are left
    change = w.reaction
    for i in range(size):
        total = right[i]
        for j in range(size):
            total -= K[i, j] * x[j]
        change[i] = total
    substitute(w.LU, size, w.pivot, change)
    error = largest = reach = 0.0
    for i in range(size):
        if not np.isfinite(x[i]):
            return NOT_FINITE
        if i < n:
            root = np.sqrt(K[i, i]) if K[i, i] > 0.0 else 1.0
            error, largest = max(error, abs(root * change[i])), max(largest, abs(root * x[i]))
            reach = max(reach, abs(right[i] / root))
        x[i] += change[i]
    if careful:
        largest = max(largest, reach) if largest <= error else largest
        if error > CERTAIN * largest:
            return DOUBTFUL
    return SOUND


@compiled
def take(c, w):
    """Write accelerations, multipliers and reactions of the solution of `hold`."""
    n, m = w.M.shape[0], w.A.shape[0]
    for j in range(n):
        w.a[j] = w.solution[j]
    w.lam[:] = 0.0
    w.r[:] = 0.0
    for p in range(w.counts[KEPT_ROWS]):
        row = w.kept[p]
        if row < m:
            w.lam[row] = w.solution[n + p]
        else:
            w.r[row - m] = -w.solution[n + p]
    for i in range(w.closed.size):
        if w.closed[i] and w.slides[i] and c.width[i] > 0:
            load = w.r[3 * i] if c.gapped[i] else (abs(w.lam[c.row[i]]) if c.row[i] >= 0 else w.load[i])
            pull = limit_factor(c, w, i) * load
            w.r[3 * i + 1], w.r[3 * i + 2] = -pull * w.unit[i, 0], -pull * w.unit[i, 1]


@compiled
def set_rates(c, w):
    """Write accelerations of contacts, and powers: of the forces, of heat, of friction on the system."""
    n = w.M.shape[0]
    power = heat = friction = 0.0
    for j in range(n):
        power += w.force[j] * w.v[j]
    for row in range(w.W.shape[0]):
        total, speed = w.shift[row], 0.0
        for j in range(n):
            total += w.W[row, j] * w.a[j]
            speed += w.W[row, j] * w.v[j]
        w.contact[row] = total
        if row % 3 != 0 and w.closed[row // 3]:
            friction += w.r[row] * speed
            if w.slides[row // 3]:
                heat -= w.r[row] * w.u[row]
    w.rates[POWER], w.rates[HEAT], w.rates[FRICTION_WORK] = power, heat, friction


@compiled
def own_acceleration(w, i):
    """Return the largest relative acceleration that a friction force of the size of contact i's makes there."""
    n = w.M.shape[0]
    size = np.sqrt(w.r[3 * i + 1] ** 2 + w.r[3 * i + 2] ** 2)
    LU, pivot, y = w.M.copy(), np.zeros(n, np.int64), np.zeros(n)
    if not factor(LU, n, pivot):
        return 0.0
    total = 0.0
    for j in range(1, 3):
        y[:] = w.W[3 * i + j]
        substitute(LU, n, pivot, y)
        total += (w.W[3 * i + j] * y).sum()
    return size * total


@compiled
def held(c, w, careful):
    """Solve the mode; planes that have just let go slide where they are accelerated to; return how it ended."""
    slow = set_directions(c, w)
    code = SOUND
    for _ in range(ROUNDS if slow else 1):
        for _ in range(2):
            code = hold(c, w, careful)
            if code != SOUND:
                return code
            take(c, w)
            turned = False
            for i in range(w.closed.size):
                if w.slides[i] and c.row[i] >= 0 and not c.gapped[i] and -w.lam[c.row[i]] * w.sign[i] < 0.0:
                    w.sign[i], turned = -w.sign[i], True
            if not turned:
                break
        set_rates(c, w)
        if slow == 0:
            break
        change = 0.0
        for i in range(w.closed.size):
            if w.closed[i] and w.slides[i] and c.width[i] == 2 and w.slow[i] > 0.0:
                size = np.sqrt(w.u[3 * i + 1] ** 2 + w.u[3 * i + 2] ** 2)
                if size > w.slow[i]:
                    continue
                k = own_acceleration(w, i)
                x, y = w.contact[3 * i + 1] + k * w.unit[i, 0], w.contact[3 * i + 2] + k * w.unit[i, 1]
                length = np.sqrt(x * x + y * y)
                if length > 0.0:
                    change = max(change, abs(x / length - w.unit[i, 0]), abs(y / length - w.unit[i, 1]))
                    w.unit[i, 0], w.unit[i, 1] = x / length, y / length
                    w.direction[i, 0], w.direction[i, 1] = w.unit[i, 0], w.unit[i, 1]
                    w.along[i] = size
        if change <= ALIGNED:
            break
    return code


# ----------------------------------------------------------------------------------------------------------------------
# Complementarity: forces and impulses of all closed contacts at once.


@compiled
def block(w, rows, count):
    """Factor the block matrix of M and some constraint rows; return whether it is regular."""
    n = w.M.shape[0]
    size = n + count
    for i in range(n):
        for j in range(n):
            w.LU[i, j] = w.M[i, j]
    for p in range(count):
        for j in range(n):
            w.LU[n + p, j] = w.A[rows[p], j]
            w.LU[j, n + p] = w.A[rows[p], j]
        for o in range(count):
            w.LU[n + p, n + o] = 0.0
    return factor(w.LU, size, w.pivot)


@compiled
def other_rows(c, w, rows, impulses):
    """Write the independent constraint rows that load no contact that takes part; return how many."""
    count = 0
    for p in range(w.counts[KEPT_CONSTRAINTS]):
        row, loads = w.kept[p], False
        for i in range(w.closed.size):
            loads = loads or (c.row[i] == row and not c.gapped[i])
        if not loads:
            rows[count] = row
            count += 1
    return count


@compiled
def pose(c, w, taking, impulses):
    """Write kinds, coefficients and rows of the contacts that take part; known forces go to w.right."""
    rows = contacts = 0
    w.first[0] = 0
    for i in range(w.closed.size):
        if not taking[i]:
            continue
        own = c.gapped[i] or c.row[i] >= 0
        if not own and (impulses or w.slides[i]):
            continue
        w.sliding[contacts] = w.slides[i] and not impulses
        if own:
            w.kind[contacts] = UNILATERAL if c.gapped[i] or c.pushes[i] else BILATERAL
            w.owner[rows] = 3 * i if c.gapped[i] else -1 - c.row[i]
            w.s[rows] = 0.0
            rows += 1
            w.coefficient[contacts] = limit_factor(c, w, i) if w.sliding[contacts] else static(c, w, i)
        else:
            w.kind[contacts] = FIXED
            w.coefficient[contacts] = w.load[i] * static(c, w, i)
        if not own or w.coefficient[contacts] > 0.0:
            for j in range(c.width[i]):
                w.owner[rows], w.s[rows] = 3 * i + 1 + j, w.unit[i, j]
                rows += 1
        contacts += 1
        w.first[contacts] = rows
    w.size[0], w.size[1], w.size[2] = rows, contacts, impulses


@compiled
def solve_cones(w, rows, contacts):
    """Solve the problem in w.G, w.g; return whether its laws hold."""
    G, g = w.G[:rows, :rows].copy(), w.g[:rows].copy()
    r = np.zeros(rows)
    if contacts == 1 and rows == 1 and w.kind[0] == UNILATERAL:
        r[0] = max(0.0, -g[0] / G[0, 0]) if G[0, 0] > 0.0 else 0.0
        w.reaction[0] = r[0]
        return G[0, 0] > 0.0 or g[0] >= 0.0
    residual, _ = attempt(
        G, g, w.first[: contacts + 1].copy(), w.coefficient[:contacts].copy(), COULOMB, w.kind[:contacts].copy(),
        w.sliding[:contacts].copy(), w.s[:rows].copy(), r, TOLERANCE, SWEEPS, NEWTON,
    )  # fmt: skip
    # reactions beyond what the data explain are part of a contradiction
    explained, sound = 0.0, residual <= ACCEPTED
    for j in range(rows):
        explained = max(explained, abs(g[j]))
    for j in range(rows):
        if G[j, j] * abs(r[j]) > BEYOND * max(explained, 1e-9) or not np.isfinite(r[j]):
            sound = False
    for j in range(rows):
        w.reaction[j] = r[j]
    if not sound:
        w.missed[0] = 1.0
        invoke(w.calls[HARD, 0], w.calls[HARD, 1], w.calls[HARD, 2])
        sound = w.missed[0] <= ACCEPTED
    w.rates[RESIDUAL] = min(residual, ACCEPTED)
    return sound


@compiled
def decided(c, w):
    """Decide forces and accelerations of all closed contacts by complementarity; return how it ended."""
    n = w.M.shape[0]
    set_directions(c, w)
    rows = np.zeros(w.A.shape[0], np.int64)
    count = other_rows(c, w, rows, False)
    if not block(w, rows, count):
        return SINGULAR
    pose(c, w, w.closed, 0)
    p = w.size[0]
    # the motion without reactions of the contacts; sliding ones with a given limit push already
    free = np.zeros(n + count)
    for j in range(n):
        free[j] = w.force[j] - w.bias[j]
    for i in range(w.closed.size):
        if w.closed[i] and w.slides[i] and not c.gapped[i] and c.row[i] < 0:
            size = w.load[i] * limit_factor(c, w, i)
            for j in range(n):
                free[j] -= size * (w.W[3 * i + 1, j] * w.unit[i, 0] + w.W[3 * i + 2, j] * w.unit[i, 1])
    for o in range(count):
        free[n + o] = -w.drift[rows[o]]
    substitute(w.LU, n + count, w.pivot, free)
    X = np.zeros((p, n + count))
    H = np.zeros((p, n))
    for a in range(p):
        own = w.owner[a]
        for j in range(n):
            H[a, j] = w.W[own, j] if own >= 0 else w.A[-1 - own, j]
            X[a, j] = H[a, j]
        substitute(w.LU, n + count, w.pivot, X[a])
    for a in range(p):
        own = w.owner[a]
        total = w.shift[own] if own >= 0 else w.drift[-1 - own]
        for j in range(n):
            total += H[a, j] * free[j]
        w.g[a] = total
        for b in range(p):
            total = 0.0
            for j in range(n):
                total += H[a, j] * X[b, j]
            w.G[a, b] = total
    if p and not solve_cones(w, p, w.size[1]):
        return NO_FORCES
    w.lam[:] = 0.0
    w.r[:] = 0.0
    for a in range(p):
        for j in range(n + count):
            free[j] += X[a, j] * w.reaction[a]
        if w.owner[a] >= 0:
            w.r[w.owner[a]] = w.reaction[a]
        else:
            w.lam[-1 - w.owner[a]] = -w.reaction[a]
    for j in range(n):
        if not np.isfinite(free[j]):
            return NOT_FINITE
        w.a[j] = free[j]
    for o in range(count):
        w.lam[rows[o]] = free[n + o]
    for i in range(w.closed.size):
        if w.closed[i] and w.slides[i] and not c.gapped[i] and c.row[i] < 0:
            size = w.load[i] * limit_factor(c, w, i)
            w.r[3 * i + 1], w.r[3 * i + 2] = -size * w.unit[i, 0], -size * w.unit[i, 1]
    set_rates(c, w)
    return SOUND


@compiled
def motion(c, w, tables, t, bounds, careful):
    """Evaluate the terms at w.q, w.v and solve the mode; return how it ended."""
    evaluate(w, tables, t, bounds)
    if w.environment[FAILED] != 0.0:
        return CALLBACK
    if w.counts[REDUNDANT]:
        return decided(c, w)
    code = held(c, w, careful)
    if code == SINGULAR or code == DOUBTFUL:
        code = decided(c, w)
    return code


@compiled
def strike(c, w, taking, plastic, impulses, after):
    """Resolve the impact of contacts `taking`; write impulses (3 k,) and velocities after; return how it ended.

    `plastic` contacts have no restitution whatever they are.
    """
    n = w.M.shape[0]
    rows = np.zeros(w.A.shape[0], np.int64)
    count = other_rows(c, w, rows, True)
    if not block(w, rows, count):
        return SINGULAR
    pose(c, w, taking, 1)
    p = w.size[0]
    X, H = np.zeros((p, n + count)), np.zeros((p, n))
    for a in range(p):
        own = w.owner[a]
        for j in range(n):
            H[a, j] = w.W[own, j] if own >= 0 else w.A[-1 - own, j]
            X[a, j] = H[a, j]
        substitute(w.LU, n + count, w.pivot, X[a])
    poisson = False
    for a in range(p):
        own = w.owner[a]
        w.g[a] = w.u[own] if own >= 0 else 0.0
        if own >= 0 and own % 3 == 0:
            i = own // 3
            if c.poisson[i]:
                poisson = poisson or (c.restitution[i] > 0.0 and not plastic[i])
            elif not plastic[i]:
                w.g[a] += c.restitution[i] * min(w.u[own], 0.0)
        for b in range(p):
            total = 0.0
            for j in range(n):
                total += H[a, j] * X[b, j]
            w.G[a, b] = total
    sound = True
    if poisson:
        w.missed[0] = 2.0  # the law of impulses has two phases: Python knows it
        for i in range(plastic.size):
            w.missed[1 + i] = 1.0 if plastic[i] else 0.0
        invoke(w.calls[HARD, 0], w.calls[HARD, 1], w.calls[HARD, 2])
        sound = w.missed[0] <= ACCEPTED
    elif p:
        sound = solve_cones(w, p, w.size[1])
    if not sound:
        return NO_IMPULSES
    impulses[:] = 0.0
    for j in range(n):
        after[j] = w.v[j]
    for a in range(p):
        for j in range(n):
            after[j] += X[a, j] * w.reaction[a]
        if w.owner[a] >= 0:
            impulses[w.owner[a]] = w.reaction[a]
    for j in range(n):
        if not np.isfinite(after[j]):
            return NOT_FINITE
    return SOUND


# ----------------------------------------------------------------------------------------------------------------------
# Projection: positions and velocities put back on the rows of the mode, by the least change in the metric of the mass.


CLOSED = 1e-15
"""Residuals below this are none."""

MOST_CLOSING = 3
"""Newton's steps onto positions at most."""


@compiled
def least_change(w, rows, count, missing, out):
    """Write the least change, in the metric of the mass, that moves some rows by -missing; return whether there is."""
    n, m = w.M.shape[0], w.A.shape[0]
    size = n + count
    x = w.solution
    for i in range(n):
        x[i] = 0.0
        for j in range(n):
            w.LU[i, j] = w.M[i, j]
    for p in range(count):
        x[n + p] = -missing[p]
        row = rows[p]
        for j in range(n):
            value = w.A[row, j] if row < m else w.W[row - m, j]
            w.LU[n + p, j] = value
            w.LU[j, n + p] = value
        for o in range(count):
            w.LU[n + p, n + o] = 0.0
    if not factor(w.LU, size, w.pivot):
        return False
    substitute(w.LU, size, w.pivot, x)
    for j in range(n):
        if not np.isfinite(x[j]):
            return False
        out[j] = x[j]
    return True


@compiled
def project(c, w, tables, t, bounds):
    """Move w.q onto closed gaps and constraints, w.v onto the rows of the mode; return how it ended."""
    n, m = w.M.shape[0], w.A.shape[0]
    if w.counts[KEPT_ROWS] == 0:
        return SOUND
    rows, missing = np.zeros(m + w.W.shape[0], np.int64), np.zeros(m + w.W.shape[0])
    change = np.zeros(n)
    for _ in range(MOST_CLOSING):
        w.time[0] = t
        invoke(w.calls[TERMS, 0], w.calls[TERMS, 1], w.calls[TERMS, 2])
        if w.environment[FAILED] != 0.0:
            return CALLBACK
        count, worst = 0, 0.0
        for p in range(w.counts[KEPT_ROWS]):
            row = w.kept[p]
            if row < m and c.holonomic[row] >= 0:
                rows[count], missing[count] = row, w.phi[c.holonomic[row]]
            elif row >= m and (row - m) % 3 == 0:
                rows[count], missing[count] = row, w.gaps[(row - m) // 3]
            else:
                continue
            worst = max(worst, abs(missing[count]))
            count += 1
        if worst <= CLOSED:
            break
        if not least_change(w, rows, count, missing, change):
            return SINGULAR
        w.base[:] = w.q
        w.way[:] = change
        invoke(w.calls[ALONG, 0], w.calls[ALONG, 1], w.calls[ALONG, 2])
        w.q[:] = w.moved
    else:
        w.time[0] = t
        invoke(w.calls[TERMS, 0], w.calls[TERMS, 1], w.calls[TERMS, 2])
    for _ in range(2):
        worst = 0.0
        for p in range(w.counts[KEPT_ROWS]):
            row = w.kept[p]
            missing[p] = w.psi[row] if row < m else w.u[row - m]
            worst = max(worst, abs(missing[p]))
        if worst == 0.0:
            break
        if not least_change(w, w.kept, w.counts[KEPT_ROWS], missing, change):
            return SINGULAR
        for j in range(n):
            w.v[j] += change[j]
        invoke(w.calls[TERMS, 0], w.calls[TERMS, 1], w.calls[TERMS, 2])
    return SOUND
