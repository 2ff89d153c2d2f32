# pyright: reportCallIssue=false, reportArgumentType=false
"""The dynamics of contacts in one mode, compiled: forces of closed and sliding contacts, impacts, projections.

A contact has three rows: normal, tangent, tangent (rows that it lacks are zero). Symbols: W contact rows (3 k, n),
u = W v + offsets relative velocities, u' = W a + shift; r reactions on the system (N, T, T), A constraint rows.

    M a + A^T lam = f + W^T r,     A a = -drift,     closed: W_N a = -shift_N,     sticking: W_T a = -shift_T
    sliding along d: r_T = -limit d,   limit = load T_k(|u_T|),  load: given, r_N, or |lam_j| of a constraint row j

so that a load that is a reaction makes the block matrix unsymmetric. Rows that depend on others are left out of it
(`kept`). Where contact rows depend on each other, and at transitions, complementarity over cones decides.
"""

from __future__ import annotations

import numpy as np

from dalembert.friction.cones.sweeps import COULOMB, attempt
from dalembert.friction.problem import BILATERAL, FIXED, UNILATERAL
from dalembert.kernel.loops import invoke, nested
from dalembert.kernel.views import Unit, flags, matrix, table_at, vector, whole, whole_matrix
from dalembert.kkt.limits import CERTAIN, DOUBT
from dalembert.simulate.contact.memory import AT, ROWS
from dalembert.simulate.equations.signals import Tables, set_signals

# ----------------------------------------------------------------------------------------------------------------------
# Memory of the engine.


TERMS, CHART, ALONG, FORCE, EVENTS, LAWS, SIGNALS, HARD, MOTION, PROJECT, SHOT, TRANSITION, BALLS = range(13)
"""Rows of the table of calls; `SIGNALS` is where `signals.set_signals` looks. From `MOTION` on they are units: loops
that are called by their address, so that they are compiled once and not again in every loop around them. Where there
are heightfields `TERMS` is one, too (`field_loops.py`), and calls the kernel in `BALLS`."""

FIRST, SECOND, CODE, RESULT = range(4)
"""Places in `arguments`, which units read at their start and write at their end."""

FAILED = 1
"""Place in the environment that a Python function sets when it fails."""

DRY, STRIBECK, HYPERBOLIC, TABULATED, OTHER = range(5)
"""Laws of friction that loops know; `OTHER` ones are asked by a call."""

(
    SOUND,
    SINGULAR,
    DOUBTFUL,
    NO_FORCES,
    NOT_UNIQUE,
    NOT_FINITE,
    CALLBACK,
    NO_IMPULSES,
    PAINLEVE,
    SLIPPING_LIMB,
    CONTRADICTORY,
) = range(11)
"""How a solve ended."""

NOT_DISSIPATIVE, NO_LOAD = 11, 12
"""How a solve ended, too: a law pushes along the motion, a given load is no number or negative."""


KEPT_ROWS, KEPT_CONSTRAINTS, REDUNDANT, HELD = range(4)
"""Places in `mode_counts`."""

POWER, HEAT, FRICTION_WORK, RESIDUAL = range(4)
"""Places in `powers`."""

CONTACT, NUMBER, APPROACH = range(3)
"""Places in `trouble`: whose, how much, and the acceleration of its gap without reactions."""

MOMENTUM, LAWS_MISSED, ENERGY_BEFORE, ENERGY_AFTER, UNIQUENESS = range(5)
"""Places in `impact`, the certificate of the last one: residuals of its balance and its laws, kinetic energies, and
whether its impulses are unique (`kkt.Status`)."""

INDEPENDENT = DOUBT
"""Rows are independent where what is left of them, rows scaled to one, is above this."""

TOLERANCE, ACCEPTED, SWEEPS, NEWTON = 1e-13, 1e-8, 12, 400
"""What complementarity aims at, and what counts as an answer, relative to the data."""

SHARED = 1e-8
"""Part of the largest entry that makes the matrix of contacts that share their load regular."""

BEYOND = 1e8
"""Reactions this many times those that would stop what is seen cannot be explained by the data."""

SEEN, SLIPS = 1e-9, 1e-7
"""Entries of contact rows along massless motions, and accelerations of massless feet, below these parts are none."""

CONTRADICTION = 1e-5
"""Constraint rows that are left out and miss by more than this, relative to the data, contradict the others."""

ALIGNED, ROUNDS = 1e-14, 60
"""When a direction of sliding has settled, and after how many rounds it is left as it is."""


# ----------------------------------------------------------------------------------------------------------------------
# Arrays: loops written out are compiled several times faster than NumPy's expressions.


@nested
def copy_to(target, source):
    """Copy a vector."""
    for j in range(source.size):
        target[j] = source[j]


@nested
def copy_rows(target, source):
    """Copy a matrix."""
    for i in range(source.shape[0]):
        for j in range(source.shape[1]):
            target[i, j] = source[i, j]


@nested
def fill(target, value):
    """Write a value into all of a vector."""
    for j in range(target.size):
        target[j] = value


@nested
def dot(a, b):
    """Return a . b."""
    total = 0.0
    for j in range(a.size):
        total += a[j] * b[j]
    return total


@nested
def add_multiple(target, factor, source):
    """Add a multiple of a vector."""
    for j in range(source.size):
        target[j] += factor * source[j]


@nested
def least(values):
    """Return the least of some values."""
    found = np.inf
    for j in range(values.size):
        if values[j] < found:
            found = values[j]
    return found


# ----------------------------------------------------------------------------------------------------------------------
# Laws of friction and the terms of a state.


@nested
def kinetic(w, i, s):
    """Return T_k at a speed s >= 0."""
    law_speeds, law_kinetic, law_tables = vector(w, AT.law_speeds), vector(w, AT.law_kinetic), vector(w, AT.law_tables)
    law_ = whole(w, AT.law)
    law_numbers = matrix(w, AT.law_numbers)
    calls = whole_matrix(w, AT.calls)
    law, p = law_[i], law_numbers[i]
    if law == DRY:
        return p[1]
    if law == STRIBECK:
        return p[1] + (p[0] - p[1]) * np.exp(-((s / p[2]) ** p[3])) + p[4] * s
    if law == HYPERBOLIC:
        return p[0] / (1.0 + p[1] * s)
    if law == TABULATED:
        first, count = int(p[1]), int(p[2])
        if s >= law_tables[first + count - 1]:
            return law_tables[first + 2 * count - 1]
        j = 0
        while law_tables[first + j + 1] <= s:
            j += 1
        low, high = law_tables[first + j], law_tables[first + j + 1]
        part = (s - low) / (high - low)
        return (1.0 - part) * law_tables[first + count + j] + part * law_tables[first + count + j + 1]
    law_speeds[i] = s
    invoke(calls[LAWS, 0], calls[LAWS, 1], calls[LAWS, 2])
    return law_kinetic[i]


@nested
def static(w, i):
    """Return T_s."""
    law_static = vector(w, AT.law_static)
    law = whole(w, AT.law)
    law_numbers = matrix(w, AT.law_numbers)
    calls = whole_matrix(w, AT.calls)
    if law[i] != OTHER:
        return law_numbers[i, 0]
    invoke(calls[LAWS, 0], calls[LAWS, 1], calls[LAWS, 2])
    return law_static[i]


@nested
def continued(w, i, s):
    """Return T_k, continued to speeds below zero by its cubic through 0, d, 2 d, 3 d, d = -s."""
    law = whole(w, AT.law)
    if s >= 0.0 or law[i] == DRY:
        return kinetic(w, i, max(s, 0.0))
    return (
        4.0 * kinetic(w, i, 0.0) - 6.0 * kinetic(w, i, -s) + 4.0 * kinetic(w, i, -2.0 * s)
        - kinetic(w, i, -3.0 * s)
    )  # fmt: skip


@nested
def evaluate(w, t):
    """Write the terms at q, v and time t; between break points forces take their limits from within `bounds`."""
    bounds = vector(w, AT.bounds)
    time, environment = vector(w, AT.time), vector(w, AT.environment)
    calls = whole_matrix(w, AT.calls)
    time[0] = t
    invoke(calls[TERMS, 0], calls[TERMS, 1], calls[TERMS, 2])
    if calls[FORCE, 0] != 0:
        tables = Tables(whole_matrix(w, AT.table_layout), vector(w, AT.table_breaks), vector(w, AT.table_coefficients))
        set_signals(calls, environment, tables, t, bounds[0], bounds[1])
        invoke(calls[FORCE, 0], calls[FORCE, 1], calls[FORCE, 2])


# ----------------------------------------------------------------------------------------------------------------------
# Linear algebra: elimination with partial pivoting, and independent rows.


@nested
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


@nested
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


@nested
def choose(w):
    """Choose independent rows of the mode: constraint rows, normals of closed contacts, tangents of sticking ones.

    Constraint rows by size, down to the rank of the system where that is known, beside the sizes that rows of their
    constraint have: what tilted axes leave of a row is not scaled up. Contact rows one after the other.
    """
    mode_counts, known_rank, kept = whole(w, AT.mode_counts), whole(w, AT.known_rank), whole(w, AT.kept)
    tangents, row_sizes = whole(w, AT.tangents), vector(w, AT.row_sizes)
    closed, gapped, slides = flags(w, AT.closed), flags(w, AT.gapped), flags(w, AT.slides)
    A, M, W = matrix(w, AT.A), matrix(w, AT.M), matrix(w, AT.W)
    see_limbs(w)
    m, k, n = A.shape[0], closed.size, M.shape[0]
    Q = np.zeros((min(n, m + 3 * k), n))
    scale, y, rest = np.ones(n), np.zeros(n), np.zeros((m, n))
    for j in range(n):
        scale[j] = 1.0 / np.sqrt(M[j, j]) if M[j, j] > 0.0 else 1.0
    # constraint rows, pivoted
    count, used = 0, np.zeros(m, np.bool_)
    sizes = np.zeros(m)
    for i in range(m):
        for j in range(n):
            rest[i, j] = A[i, j] * scale[j]
        sizes[i] = np.sqrt(dot(rest[i], rest[i])) if known_rank[0] < 0 else row_sizes[i]
    most = m if known_rank[0] < 0 else known_rank[0]
    for _ in range(min(most, n)):
        best, largest = -1, INDEPENDENT if known_rank[0] < 0 else 0.0
        for i in range(m):
            left = np.sqrt(dot(rest[i], rest[i])) / sizes[i] if sizes[i] > 0.0 else 0.0
            if not used[i] and left > largest:
                best, largest = i, left
        if best < 0:
            break
        used[best] = True
        fill(Q[count], 0.0)
        add_multiple(Q[count], 1.0 / np.sqrt(dot(rest[best], rest[best])), rest[best])
        for i in range(m):
            if not used[i]:
                for _ in range(2):
                    add_multiple(rest[i], -dot(Q[count], rest[i]), Q[count])
        count += 1
    place = 0
    for i in range(m):
        if used[i]:
            kept[place] = i
            place += 1
    mode_counts[KEPT_CONSTRAINTS] = place
    # contact rows in order: normals first
    mode_counts[REDUNDANT] = 0
    for part in range(2):
        for i in range(k):
            first, last = (0, 1) if part == 0 else (1, 1 + tangents[i])
            if not closed[i] or (part == 0 and not gapped[i]) or (part == 1 and slides[i]):
                continue
            if part == 1 and gapped[i] and not static(w, i) > 0.0:
                continue
            for j in range(first, last):
                size = 0.0
                for b in range(n):
                    y[b] = W[3 * i + j, b] * scale[b]
                    size += y[b] * y[b]
                if not size > 0.0:
                    continue
                for _ in range(2):
                    for a in range(count):
                        add_multiple(y, -dot(Q[a], y), Q[a])
                left = np.sqrt(dot(y, y) / size)
                if left > INDEPENDENT and count < Q.shape[0]:
                    add_multiple(Q[count], 1.0 / np.sqrt(dot(y, y)), y)
                    count += 1
                    kept[place] = m + 3 * i + j
                    place += 1
                else:
                    mode_counts[REDUNDANT] = 1
    mode_counts[KEPT_ROWS] = place


# ----------------------------------------------------------------------------------------------------------------------
# Massless limbs: on the ground they are levers, in the air they are held (see `complementarity.py`).


@nested
def entry(A, W, held, row, j):
    """Return an entry of a row: of a constraint, of a contact, of a motion without mass that is held."""
    m, p = A.shape[0], W.shape[0]
    if row < m:
        return A[row, j]
    return W[row - m, j] if row < m + p else held[row - m - p, j]


@nested
def add_direction(Q, count, y, tolerance):
    """Add what is new of y to orthonormal rows Q; return their count."""
    size = dot(y, y)
    if not size > 0.0:
        return count
    for _ in range(2):
        for a in range(count):
            add_multiple(y, -dot(Q[a], y), Q[a])
    left = dot(y, y)
    if left > tolerance * tolerance * size and count < Q.shape[0]:
        for j in range(y.size):
            Q[count, j] = y[j] / np.sqrt(left)
        return count + 1
    return count


@nested
def complement(Q, count, scale, out):
    """Write an orthonormal basis of what rows Q, columns scaled, do not see; return its size."""
    n = Q.shape[0]
    y, found = np.zeros(n), 0
    total = count
    while total < n:
        best, largest = -1, 0.0
        for b in range(n):
            left = 1.0
            for a in range(total):
                left -= Q[a, b] * Q[a, b]
            if left > largest:
                best, largest = b, left
        fill(y, 0.0)
        y[best] = 1.0
        new = add_direction(Q, total, y, 0.0)
        if new == total:
            break
        for j in range(n):
            out[found, j] = Q[total, j] * scale[j]
        total, found = new, found + 1
    # orthonormal again after scaling
    basis, count = np.zeros((n, n)), 0
    for b in range(found):
        copy_to(y, out[b])
        count = add_direction(basis, count, y, 0.0)
    for b in range(count):
        copy_to(out[b], basis[b])
    return count


@nested
def mass_directions(w, Q, scale):
    """Write the directions that M sees, columns scaled to one, into Q; return how many."""
    M = matrix(w, AT.M)
    n, largest, y, count = M.shape[0], 0.0, np.zeros(M.shape[0]), 0
    for j in range(n):
        largest = max(largest, M[j, j])
    for j in range(n):
        scale[j] = 1.0 / np.sqrt(M[j, j]) if M[j, j] > INDEPENDENT * largest else 1.0
    for i in range(n):
        for j in range(n):
            y[j] = M[i, j] * scale[i] * scale[j]
        if dot(y, y) > INDEPENDENT * INDEPENDENT:
            count = add_direction(Q, count, y, INDEPENDENT)
    return count


@nested
def free_motions(w, rows, count):
    """Write an orthonormal basis of the motions without mass that some rows allow into `held_rows`; return its size."""
    A, W, held = matrix(w, AT.A), matrix(w, AT.W), matrix(w, AT.held_rows)
    n = held.shape[0]
    Q, scale, y = np.zeros((n, n)), np.ones(n), np.zeros(n)
    seen = mass_directions(w, Q, scale)
    for p in range(count):
        for j in range(n):
            y[j] = entry(A, W, held, rows[p], j) * scale[j]
        seen = add_direction(Q, seen, y, INDEPENDENT)
    return complement(Q, seen, scale, held)


@nested
def hold_limbs(w):
    """Append the motions without mass that the mode allows to its rows; return how many; note whose feet they are."""
    kept, mode_counts = whole(w, AT.kept), whole(w, AT.mode_counts)
    A, W = matrix(w, AT.A), matrix(w, AT.W)
    mode_counts[HELD] = 0
    if whole(w, AT.limbs)[0] == 0:
        return 0
    mode_counts[HELD] = free_motions(w, kept, mode_counts[KEPT_ROWS])
    for j in range(mode_counts[HELD]):
        kept[mode_counts[KEPT_ROWS] + j] = A.shape[0] + W.shape[0] + j
    return mode_counts[HELD]


@nested
def see_limbs(w):
    """Note which contacts are feet of massless limbs: their rows see motions without mass."""
    massless = flags(w, AT.massless)
    A, W, M = matrix(w, AT.A), matrix(w, AT.W), matrix(w, AT.M)
    if whole(w, AT.limbs)[0] == 0:
        return
    n = M.shape[0]
    Q, scale, y, free = np.zeros((n, n)), np.ones(n), np.zeros(n), np.zeros((n, n))
    seen = mass_directions(w, Q, scale)
    for i in range(A.shape[0]):
        for j in range(n):
            y[j] = A[i, j] * scale[j]
        seen = add_direction(Q, seen, y, INDEPENDENT)
    count = complement(Q, seen, scale, free)
    for i in range(massless.size):
        massless[i] = False
        for row in range(3 * i, 3 * i + 3):
            largest = 0.0
            for j in range(n):
                largest = max(largest, abs(W[row, j]))
            for b in range(count):
                massless[i] = massless[i] or abs(dot(W[row], free[b])) > SEEN * largest


@nested
def with_limbs(w, rows, count, taking, impulses, stiff):
    """Append motions without mass that are held to some constraint rows; write what stiffens massless feet that stay.

    M + rho R^T R in place of M has the same motions and forces, R the rows of feet that stay.
    """
    massless, slides = flags(w, AT.massless), flags(w, AT.slides)
    kept, mode_counts, tangents = whole(w, AT.kept), whole(w, AT.mode_counts), whole(w, AT.tangents)
    M, A, W = matrix(w, AT.M), matrix(w, AT.A), matrix(w, AT.W)
    fill(stiff, 0.0)
    if whole(w, AT.limbs)[0] == 0:
        return count
    n, m, trace, largest = M.shape[0], A.shape[0], 0.0, 0.0
    fixing = np.zeros(m + W.shape[0], np.int64)
    fixed = mode_counts[KEPT_CONSTRAINTS]
    for p in range(fixed):
        fixing[p] = kept[p]
    for i in range(massless.size):
        if not (taking[i] and massless[i]):
            continue
        rough = static(w, i) > 0.0 and (impulses or not slides[i])
        for j in range(1 + (tangents[i] if rough else 0)):
            size = dot(W[3 * i + j], W[3 * i + j])
            if size > 0.0:
                stiff[3 * i + j], largest = 1.0, max(largest, size)
                fixing[fixed] = m + 3 * i + j
                fixed += 1
    for j in range(n):
        trace += M[j, j]
    for row in range(stiff.size):
        stiff[row] *= trace / n / largest if largest > 0.0 else 0.0
    found = free_motions(w, fixing, fixed) if impulses else free_motions(w, kept, mode_counts[KEPT_ROWS])
    for j in range(found):
        rows[count] = m + W.shape[0] + j
        count += 1
    return count


# ----------------------------------------------------------------------------------------------------------------------
# The motion in a mode.


@nested
def set_directions(w):
    """Write unit vectors of sliding and speeds along them; return how many planes are too slow to tell."""
    closed, slides = flags(w, AT.closed), flags(w, AT.slides)
    sliding_speed, velocity, slow_ = vector(w, AT.sliding_speed), vector(w, AT.velocity), vector(w, AT.slow)
    sliding_unit, direction = matrix(w, AT.sliding_unit), matrix(w, AT.direction)
    tangents = whole(w, AT.tangents)
    slow = 0
    for i in range(closed.size):
        sliding_unit[i, 0], sliding_unit[i, 1], sliding_speed[i] = 0.0, 0.0, 0.0
        if not (closed[i] and slides[i]):
            continue
        a, b = velocity[3 * i + 1], velocity[3 * i + 2]
        sliding_unit[i, 0], sliding_unit[i, 1] = direction[i, 0], direction[i, 1]
        sliding_speed[i] = a * direction[i, 0] + b * direction[i, 1]
        if tangents[i] < 2:
            continue
        size = np.sqrt(a * a + b * b)
        # next to its end a sliding velocity may have crossed zero inside a step: the direction must not turn round
        if size > slow_[i] and sliding_speed[i] > 0.0:
            sliding_unit[i, 0], sliding_unit[i, 1], sliding_speed[i] = a / size, b / size, size
        elif slow_[i] > 0.0:
            slow += 1
    return slow


@nested
def limit_factor(w, i):
    """Return the limit of a sliding contact for unit load."""
    sliding_speed = vector(w, AT.sliding_speed)
    return continued(w, i, sliding_speed[i])


@nested
def hold(w, careful):
    """Solve the block system of the mode with given directions; return how it ended."""
    cone_r, right_, solution = vector(w, AT.cone_r), vector(w, AT.right), vector(w, AT.solution)
    force, bias, sign_ = vector(w, AT.force), vector(w, AT.bias), vector(w, AT.sign)
    drift, shift, sliding_speed = vector(w, AT.drift), vector(w, AT.shift), vector(w, AT.sliding_speed)
    load = vector(w, AT.load)
    mode_counts, pivot, kept = whole(w, AT.mode_counts), whole(w, AT.pivot), whole(w, AT.kept)
    load_row, tangents = whole(w, AT.load_row), whole(w, AT.tangents)
    matrix_K, factors, M = matrix(w, AT.matrix_K), matrix(w, AT.factors), matrix(w, AT.M)
    A, W, sliding_unit = matrix(w, AT.A), matrix(w, AT.W), matrix(w, AT.sliding_unit)
    held, powers = matrix(w, AT.held_rows), vector(w, AT.powers)
    closed, gapped, slides = flags(w, AT.closed), flags(w, AT.gapped), flags(w, AT.slides)
    n, m = M.shape[0], A.shape[0]
    count = mode_counts[KEPT_ROWS] + hold_limbs(w)
    size = n + count
    K, right, x = matrix_K, right_, solution
    for i in range(n):
        right[i] = force[i] - bias[i]
        for j in range(n):
            K[i, j] = M[i, j]
    for p in range(count):
        row = kept[p]
        right[n + p] = -drift[row] if row < m else (-shift[row - m] if row < m + W.shape[0] else 0.0)
        for j in range(n):
            value = entry(A, W, held, row, j)
            K[n + p, j] = value
            K[j, n + p] = value
        for o in range(count):
            K[n + p, n + o] = 0.0
    # friction of sliding contacts: a force, or a part of the column of the reaction that loads it
    for i in range(closed.size):
        if not (closed[i] and slides[i]) or tangents[i] == 0:
            continue
        factor_of = limit_factor(w, i)
        if factor_of < 0.0 <= sliding_speed[i]:
            return NOT_DISSIPATIVE
        if not gapped[i] and load_row[i] < 0:
            for j in range(n):
                pull = W[3 * i + 1, j] * sliding_unit[i, 0] + W[3 * i + 2, j] * sliding_unit[i, 1]
                right[j] -= load[i] * factor_of * pull
            continue
        normal = m + 3 * i if gapped[i] else load_row[i]
        place = -1
        for p in range(count):
            if kept[p] == normal:
                place = p
        if place < 0:
            return NOT_UNIQUE
        sign = 1.0 if gapped[i] else sign_[i]
        for j in range(n):
            pull = W[3 * i + 1, j] * sliding_unit[i, 0] + W[3 * i + 2, j] * sliding_unit[i, 1]
            K[j, n + place] -= sign * factor_of * pull
    for i in range(size):
        x[i] = right[i]
        for j in range(size):
            factors[i, j] = K[i, j]
    if not factor(factors, size, pivot):
        return SINGULAR
    substitute(factors, size, pivot, x)
    # one refinement, which says how many digits are left
    change = cone_r
    for i in range(size):
        total = right[i]
        for j in range(size):
            total -= K[i, j] * x[j]
        change[i] = total
    substitute(factors, size, pivot, change)
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
        # what is left of the equations, relative to their right-hand side
        worst = data = 0.0
        for i in range(size):
            total = right[i]
            for j in range(size):
                total -= K[i, j] * x[j]
            worst, data = max(worst, abs(total)), max(data, abs(right[i]))
        powers[RESIDUAL] = worst / (1.0 + data)
    return SOUND


@nested
def take(w):
    """Write accelerations, multipliers and reactions of the solution of `hold`."""
    lam, reactions, acceleration = vector(w, AT.lam), vector(w, AT.reactions), vector(w, AT.acceleration)
    solution, load_ = vector(w, AT.solution), vector(w, AT.load)
    mode_counts, kept, tangents = whole(w, AT.mode_counts), whole(w, AT.kept), whole(w, AT.tangents)
    load_row = whole(w, AT.load_row)
    closed, slides, gapped = flags(w, AT.closed), flags(w, AT.slides), flags(w, AT.gapped)
    M, A, sliding_unit = matrix(w, AT.M), matrix(w, AT.A), matrix(w, AT.sliding_unit)
    n, m = M.shape[0], A.shape[0]
    for j in range(n):
        acceleration[j] = solution[j]
    fill(lam, 0.0)
    fill(reactions, 0.0)
    for p in range(mode_counts[KEPT_ROWS]):
        row = kept[p]
        if row < m:
            lam[row] = solution[n + p]
        else:
            reactions[row - m] = -solution[n + p]
    for i in range(closed.size):
        if closed[i] and slides[i] and tangents[i] > 0:
            load = reactions[3 * i] if gapped[i] else (abs(lam[load_row[i]]) if load_row[i] >= 0 else load_[i])
            pull = limit_factor(w, i) * load
            reactions[3 * i + 1], reactions[3 * i + 2] = -pull * sliding_unit[i, 0], -pull * sliding_unit[i, 1]


@nested
def set_rates(w):
    """Write accelerations of contacts, and powers: of the forces, of heat, of friction on the system."""
    M, W = matrix(w, AT.M), matrix(w, AT.W)
    contact_rate, powers, force = vector(w, AT.contact_rate), vector(w, AT.powers), vector(w, AT.force)
    v, shift, acceleration = vector(w, AT.v), vector(w, AT.shift), vector(w, AT.acceleration)
    reactions, velocity = vector(w, AT.reactions), vector(w, AT.velocity)
    closed, slides = flags(w, AT.closed), flags(w, AT.slides)
    n = M.shape[0]
    power, heat, friction = vector(w, AT.applied)[0], 0.0, 0.0
    for j in range(n):
        power += force[j] * v[j]
    for row in range(W.shape[0]):
        total, speed = shift[row], 0.0
        for j in range(n):
            total += W[row, j] * acceleration[j]
            speed += W[row, j] * v[j]
        contact_rate[row] = total
        if row % 3 != 0 and closed[row // 3]:
            friction += reactions[row] * speed
            if slides[row // 3]:
                heat -= reactions[row] * velocity[row]
    powers[POWER], powers[HEAT], powers[FRICTION_WORK] = power, heat, friction


@nested
def own_acceleration(w, i):
    """Return the largest relative acceleration that a friction force of the size of contact i's makes there."""
    M, W = matrix(w, AT.M), matrix(w, AT.W)
    reactions = vector(w, AT.reactions)
    n = M.shape[0]
    size = np.sqrt(reactions[3 * i + 1] ** 2 + reactions[3 * i + 2] ** 2)
    LU, pivot, y = M.copy(), np.zeros(n, np.int64), np.zeros(n)
    if not factor(LU, n, pivot):
        return 0.0
    total = 0.0
    for j in range(1, 3):
        copy_to(y, W[3 * i + j])
        substitute(LU, n, pivot, y)
        total += dot(W[3 * i + j], y)
    return size * total


@nested
def held(w, careful):
    """Solve the mode; planes that have just let go slide where they are accelerated to; return how it ended."""
    closed, slides, gapped = flags(w, AT.closed), flags(w, AT.slides), flags(w, AT.gapped)
    tangents, load_row = whole(w, AT.tangents), whole(w, AT.load_row)
    slow_, sliding_speed, sign = vector(w, AT.slow), vector(w, AT.sliding_speed), vector(w, AT.sign)
    contact_rate, velocity, lam = vector(w, AT.contact_rate), vector(w, AT.velocity), vector(w, AT.lam)
    sliding_unit, direction = matrix(w, AT.sliding_unit), matrix(w, AT.direction)
    slow = set_directions(w)
    code = SOUND
    for _ in range(ROUNDS if slow else 1):
        for _ in range(2):
            code = hold(w, careful)
            if code != SOUND:
                return code
            take(w)
            turned = False
            for i in range(closed.size):
                if slides[i] and load_row[i] >= 0 and not gapped[i] and -lam[load_row[i]] * sign[i] < 0.0:
                    sign[i], turned = -sign[i], True
            if not turned:
                break
        set_rates(w)
        if slow == 0:
            break
        change = 0.0
        for i in range(closed.size):
            if closed[i] and slides[i] and tangents[i] == 2 and slow_[i] > 0.0:
                size = np.sqrt(velocity[3 * i + 1] ** 2 + velocity[3 * i + 2] ** 2)
                if size > slow_[i]:
                    continue
                k = own_acceleration(w, i)
                x, y = (
                    contact_rate[3 * i + 1] + k * sliding_unit[i, 0],
                    contact_rate[3 * i + 2] + k * sliding_unit[i, 1],
                )
                length = np.sqrt(x * x + y * y)
                if length > 0.0:
                    change = max(change, abs(x / length - sliding_unit[i, 0]), abs(y / length - sliding_unit[i, 1]))
                    sliding_unit[i, 0], sliding_unit[i, 1] = x / length, y / length
                    direction[i, 0], direction[i, 1] = sliding_unit[i, 0], sliding_unit[i, 1]
                    sliding_speed[i] = size
        if change <= ALIGNED:
            break
    return code


# ----------------------------------------------------------------------------------------------------------------------
# Complementarity: forces and impulses of all closed contacts at once.


@nested
def block(w, rows, count, stiff):
    """Factor the block matrix of rows and M, stiffened by `stiff` (3 k,); return whether it is regular."""
    factors, M, A = matrix(w, AT.factors), matrix(w, AT.M), matrix(w, AT.A)
    W, held = matrix(w, AT.W), matrix(w, AT.held_rows)
    pivot = whole(w, AT.pivot)
    n = M.shape[0]
    size = n + count
    for i in range(n):
        for j in range(n):
            factors[i, j] = M[i, j]
    for row in range(stiff.size):
        if stiff[row] > 0.0:
            for i in range(n):
                for j in range(n):
                    factors[i, j] += stiff[row] * W[row, i] * W[row, j]
    for p in range(count):
        for j in range(n):
            value = entry(A, W, held, rows[p], j)
            factors[n + p, j] = value
            factors[j, n + p] = value
        for o in range(count):
            factors[n + p, n + o] = 0.0
    return factor(factors, size, pivot)


@nested
def other_rows(w, rows, impulses):
    """Write the independent constraint rows that load no contact that takes part; return how many."""
    mode_counts, kept, load_row = whole(w, AT.mode_counts), whole(w, AT.kept), whole(w, AT.load_row)
    closed, gapped = flags(w, AT.closed), flags(w, AT.gapped)
    count = 0
    for p in range(mode_counts[KEPT_CONSTRAINTS]):
        row, loads = kept[p], False
        for i in range(closed.size):
            loads = loads or (load_row[i] == row and not gapped[i])
        if not loads:
            rows[count] = row
            count += 1
    return count


@nested
def pose(w, taking, impulses):
    """Write kinds, coefficients and rows of the contacts that take part; known forces go to w.right."""
    cone_first, cone_size, cone_kind = whole(w, AT.cone_first), whole(w, AT.cone_size), whole(w, AT.cone_kind)
    cone_row, load_row, tangents = whole(w, AT.cone_row), whole(w, AT.load_row), whole(w, AT.tangents)
    closed, cone_sliding, gapped = flags(w, AT.closed), flags(w, AT.cone_sliding), flags(w, AT.gapped)
    slides, pushes = flags(w, AT.slides), flags(w, AT.pushes)
    cone_s, cone_mu, load = vector(w, AT.cone_s), vector(w, AT.cone_mu), vector(w, AT.load)
    sliding_unit = matrix(w, AT.sliding_unit)
    rows = contacts = 0
    cone_first[0] = 0
    for i in range(closed.size):
        if not taking[i]:
            continue
        own = gapped[i] or load_row[i] >= 0
        if not own and (impulses or slides[i]):
            continue
        cone_sliding[contacts] = slides[i] and not impulses
        if own:
            cone_kind[contacts] = UNILATERAL if gapped[i] or pushes[i] else BILATERAL
            cone_row[rows] = 3 * i if gapped[i] else -1 - load_row[i]
            cone_s[rows] = 0.0
            rows += 1
            cone_mu[contacts] = limit_factor(w, i) if cone_sliding[contacts] else static(w, i)
        else:
            cone_kind[contacts] = FIXED
            cone_mu[contacts] = load[i] * static(w, i)
        if not own or cone_mu[contacts] > 0.0:
            for j in range(tangents[i]):
                cone_row[rows], cone_s[rows] = 3 * i + 1 + j, sliding_unit[i, j]
                rows += 1
        contacts += 1
        cone_first[contacts] = rows
    cone_size[0], cone_size[1], cone_size[2] = rows, contacts, impulses


@nested
def shared_evenly(w, G, g, r):
    """Write forces that hold sticking contacts with given limits: of all, the least in parts of these limits.

    With y = r / mu and B = mu G mu: B y = -mu g of least |y|, by steps with B + SHARED I, which stay in the range of B.
    Return whether they are within the limits; where they are not they are cut off there.
    """
    cone_kind, cone_first, cone_size = whole(w, AT.cone_kind), whole(w, AT.cone_first), whole(w, AT.cone_size)
    cone_mu = vector(w, AT.cone_mu)
    contacts, p, fixed = cone_size[1], g.size, True
    mu, y, part = np.ones(p), np.zeros(p), np.zeros(p)
    for i in range(contacts):
        fixed = fixed and cone_kind[i] == FIXED and cone_mu[i] > 0.0
        for a in range(cone_first[i], cone_first[i + 1]):
            mu[a] = cone_mu[i]
    fill(r, 0.0)
    if not fixed or cone_size[2]:
        return False
    B, LU, pivot, largest = np.zeros((p, p)), np.zeros((p, p)), np.zeros(p, np.int64), 0.0
    for a in range(p):
        for b in range(p):
            B[a, b] = mu[a] * G[a, b] * mu[b]
            LU[a, b] = B[a, b]
        largest = max(largest, B[a, a])
    for a in range(p):
        LU[a, a] += SHARED * largest
    if not factor(LU, p, pivot):
        return False
    for _ in range(4):
        for a in range(p):
            part[a] = -mu[a] * g[a] - dot(B[a], y)
        substitute(LU, p, pivot, part)
        add_multiple(y, 1.0, part)
    holds, missing, size = True, 0.0, 0.0
    for i in range(contacts):
        length = 0.0
        for a in range(cone_first[i], cone_first[i + 1]):
            length += y[a] * y[a]
        cut = 1.0 / np.sqrt(length) if length > 1.0 else 1.0
        holds = holds and length <= 1.0
        for a in range(cone_first[i], cone_first[i + 1]):
            r[a] = mu[a] * y[a] * cut
    for a in range(p):
        missing, size = max(missing, abs(dot(G[a], r) + g[a])), max(size, abs(g[a]))
    return holds and missing <= TOLERANCE * size


@nested
def cut_off(w, r):
    """Cut friction along one direction off at its limit, which it may exceed by rounding."""
    cone_kind, cone_first, cone_size = whole(w, AT.cone_kind), whole(w, AT.cone_first), whole(w, AT.cone_size)
    cone_mu = vector(w, AT.cone_mu)
    for i in range(cone_size[1]):
        normal = 0 if cone_kind[i] == FIXED else 1
        a = cone_first[i] + normal
        if cone_first[i + 1] - a == 1:
            limit = cone_mu[i] * (abs(r[a - 1]) if normal else 1.0)
            r[a] = min(max(r[a], -limit), limit)


@nested
def solve_cones(w, rows, contacts):
    """Solve the problem in w.G, w.g; return whether its laws hold."""
    powers, cone_r, missed = vector(w, AT.powers), vector(w, AT.cone_r), vector(w, AT.missed)
    cone_g, cone_mu, cone_s = vector(w, AT.cone_g), vector(w, AT.cone_mu), vector(w, AT.cone_s)
    cone_kind, cone_first = whole(w, AT.cone_kind), whole(w, AT.cone_first)
    calls = whole_matrix(w, AT.calls)
    cone_G = matrix(w, AT.cone_G)
    cone_sliding = flags(w, AT.cone_sliding)
    G, g = cone_G[:rows, :rows].copy(), cone_g[:rows].copy()
    r = np.zeros(rows)
    if contacts == 1 and rows == 1 and cone_kind[0] == UNILATERAL:
        r[0] = max(0.0, -g[0] / G[0, 0]) if G[0, 0] > 0.0 else 0.0
        cone_r[0], powers[RESIDUAL] = r[0], 0.0
        return G[0, 0] > 0.0 or g[0] >= 0.0
    if shared_evenly(w, G, g, r):
        copy_to(cone_r, r)
        powers[RESIDUAL] = 0.0
        return True
    residual, _ = attempt(
        G, g, cone_first[: contacts + 1].copy(), cone_mu[:contacts].copy(), COULOMB, cone_kind[:contacts].copy(),
        cone_sliding[:contacts].copy(), cone_s[:rows].copy(), r, TOLERANCE, SWEEPS, NEWTON,
    )  # fmt: skip
    # two steps of Newton's more: the end of redundant sticking is found from accelerations that are nearly zero
    if 0.0 < residual <= TOLERANCE:
        residual, _ = attempt(
            G, g, cone_first[: contacts + 1].copy(), cone_mu[:contacts].copy(), COULOMB, cone_kind[:contacts].copy(),
            cone_sliding[:contacts].copy(), cone_s[:rows].copy(), r, 0.0, 0, 2,
        )  # fmt: skip
    cut_off(w, r)
    # reactions beyond what the data explain are part of a contradiction
    explained, sound = 0.0, residual <= ACCEPTED
    for j in range(rows):
        explained = max(explained, abs(g[j]))
    for j in range(rows):
        if G[j, j] * abs(r[j]) > BEYOND * max(explained, 1e-9) or not np.isfinite(r[j]):
            sound = False
    for j in range(rows):
        cone_r[j] = r[j]
    if not sound:
        missed[0] = 1.0
        invoke(calls[HARD, 0], calls[HARD, 1], calls[HARD, 2])
        sound, residual = missed[0] <= ACCEPTED, missed[0]
    powers[RESIDUAL] = residual
    return sound


@nested
def decided(w):
    """Decide forces and accelerations of all closed contacts by complementarity; return how it ended."""
    closed, slides, gapped = flags(w, AT.closed), flags(w, AT.slides), flags(w, AT.gapped)
    cone_size, pivot, cone_row = whole(w, AT.cone_size), whole(w, AT.pivot), whole(w, AT.cone_row)
    load_row = whole(w, AT.load_row)
    factors, M, A = matrix(w, AT.factors), matrix(w, AT.M), matrix(w, AT.A)
    cone_G, W, sliding_unit = matrix(w, AT.cone_G), matrix(w, AT.W), matrix(w, AT.sliding_unit)
    lam, reactions, cone_g = vector(w, AT.lam), vector(w, AT.reactions), vector(w, AT.cone_g)
    acceleration, force, bias = vector(w, AT.acceleration), vector(w, AT.force), vector(w, AT.bias)
    drift, shift, cone_r = vector(w, AT.drift), vector(w, AT.shift), vector(w, AT.cone_r)
    load, powers = vector(w, AT.load), vector(w, AT.powers)
    n, m = M.shape[0], A.shape[0]
    set_directions(w)
    rows, stiff = np.zeros(m + n, np.int64), np.zeros(W.shape[0])
    count = with_limbs(w, rows, other_rows(w, rows, False), closed, False, stiff)
    if not block(w, rows, count, stiff):
        return SINGULAR
    pose(w, closed, 0)
    p = cone_size[0]
    # the motion without reactions of the contacts; sliding ones with a given limit push already
    free = np.zeros(n + count)
    for j in range(n):
        free[j] = force[j] - bias[j]
    for i in range(closed.size):
        if closed[i] and slides[i] and not gapped[i] and load_row[i] < 0:
            size = load[i] * limit_factor(w, i)
            for j in range(n):
                free[j] -= size * (W[3 * i + 1, j] * sliding_unit[i, 0] + W[3 * i + 2, j] * sliding_unit[i, 1])
    for row in range(stiff.size):
        if stiff[row] > 0.0:
            for j in range(n):
                free[j] -= stiff[row] * W[row, j] * shift[row]
    for o in range(count):
        free[n + o] = -drift[rows[o]] if rows[o] < m else 0.0
    substitute(factors, n + count, pivot, free)
    X = np.zeros((p, n + count))
    H = np.zeros((p, n))
    for a in range(p):
        own = cone_row[a]
        for j in range(n):
            H[a, j] = W[own, j] if own >= 0 else A[-1 - own, j]
            X[a, j] = H[a, j]
        substitute(factors, n + count, pivot, X[a])
    for a in range(p):
        own = cone_row[a]
        total = shift[own] if own >= 0 else drift[-1 - own]
        for j in range(n):
            total += H[a, j] * free[j]
        cone_g[a] = total
        for b in range(p):
            total = 0.0
            for j in range(n):
                total += H[a, j] * X[b, j]
            cone_G[a, b] = total
    powers[RESIDUAL] = 0.0
    if p and not solve_cones(w, p, cone_size[1]):
        code = paradox(w)
        return NO_FORCES if code == SOUND else code
    fill(lam, 0.0)
    fill(reactions, 0.0)
    for a in range(p):
        for j in range(n + count):
            free[j] += X[a, j] * cone_r[a]
        if cone_row[a] >= 0:
            reactions[cone_row[a]] = cone_r[a]
        else:
            lam[-1 - cone_row[a]] = -cone_r[a]
    for j in range(n):
        if not np.isfinite(free[j]):
            return NOT_FINITE
        acceleration[j] = free[j]
    for o in range(count):
        if rows[o] < m:
            lam[rows[o]] = free[n + o]
    for i in range(closed.size):
        if closed[i] and slides[i] and not gapped[i] and load_row[i] < 0:
            size = load[i] * limit_factor(w, i)
            reactions[3 * i + 1], reactions[3 * i + 2] = -size * sliding_unit[i, 0], -size * sliding_unit[i, 1]
    set_rates(w)
    return slipping_limb(w)


@nested
def slipping_limb(w):
    """Refuse feet of massless limbs that are pushed out of their cones: nothing would resist; return how it ended."""
    closed, slides, massless = flags(w, AT.closed), flags(w, AT.slides), flags(w, AT.massless)
    reactions, contact_rate = vector(w, AT.reactions), vector(w, AT.contact_rate)
    trouble = vector(w, AT.trouble)
    if whole(w, AT.limbs)[0] == 0:
        return SOUND
    largest = 0.0
    for j in range(contact_rate.size):
        largest = max(largest, abs(contact_rate[j]))
    for i in range(closed.size):
        if closed[i] and massless[i] and reactions[3 * i] > 0.0 and static(w, i) > 0.0:
            begins = np.sqrt(contact_rate[3 * i + 1] ** 2 + contact_rate[3 * i + 2] ** 2)
            if slides[i] or begins > SLIPS * (1.0 + largest):
                trouble[CONTACT], trouble[NUMBER] = i, static(w, i)
                return SLIPPING_LIMB
    return SOUND


@nested
def paradox(w):
    """Look for sliding contacts whose friction leaves no force, or several: G_NN - mu G_NT . d <= 0."""
    force, bias, drift = vector(w, AT.force), vector(w, AT.bias), vector(w, AT.drift)
    shift, trouble = vector(w, AT.shift), vector(w, AT.trouble)
    closed, slides, gapped = flags(w, AT.closed), flags(w, AT.slides), flags(w, AT.gapped)
    W, factors, A = matrix(w, AT.W), matrix(w, AT.factors), matrix(w, AT.A)
    sliding_unit = matrix(w, AT.sliding_unit)
    pivot = whole(w, AT.pivot)
    n, m = W.shape[1], A.shape[0]
    rows, stiff = np.zeros(m + n, np.int64), np.zeros(W.shape[0])
    for i in range(closed.size):
        if not (closed[i] and slides[i] and gapped[i]):
            continue
        count = with_limbs(w, rows, other_rows(w, rows, False), closed, False, stiff)
        if not block(w, rows, count, stiff):
            return SOUND
        y, free = np.zeros(n + count), np.zeros(n + count)
        copy_to(y, W[3 * i])
        substitute(factors, n + count, pivot, y)
        coefficient = limit_factor(w, i)
        effective = 0.0
        for j in range(n):
            pull = W[3 * i + 1, j] * sliding_unit[i, 0] + W[3 * i + 2, j] * sliding_unit[i, 1]
            effective += (W[3 * i, j] - coefficient * pull) * y[j]
        # (W_N - mu d W_T) M^-1 W_N = G_NN - mu G_NT . d
        if effective <= 0.0:
            for j in range(n):
                free[j] = force[j] - bias[j]
                for row in range(stiff.size):
                    free[j] -= stiff[row] * W[row, j] * shift[row]
            for o in range(count):
                free[n + o] = -drift[rows[o]] if rows[o] < m else 0.0
            substitute(factors, n + count, pivot, free)
            trouble[CONTACT], trouble[NUMBER] = i, effective
            trouble[APPROACH] = shift[3 * i] + dot(W[3 * i], free[:n])
            return PAINLEVE
    return SOUND


@nested
def missed_rows(w):
    """Return by how much constraint rows, those included that were left out, miss their accelerations over the data."""
    A, drift, acceleration = matrix(w, AT.A), vector(w, AT.drift), vector(w, AT.acceleration)
    force, bias = vector(w, AT.force), vector(w, AT.bias)
    worst = data = 0.0
    for j in range(force.size):
        data = max(data, abs(force[j] - bias[j]))
    for i in range(drift.size):
        data = max(data, abs(drift[i]))
        worst = max(worst, abs(drift[i] + dot(A[i], acceleration)))
    return worst / (1.0 + data)


@nested
def loads_are_sound(w):
    """Return whether all given loads are finite and not negative."""
    load, load_row, gapped = vector(w, AT.load), whole(w, AT.load_row), flags(w, AT.gapped)
    sound = True
    for i in range(load.size):
        sound = sound and (gapped[i] or load_row[i] >= 0 or 0.0 <= load[i] < np.inf)
    return sound


@nested
def solve_motion(w, t, careful):
    """Evaluate the terms at w.q, w.v and solve the mode; return how it ended."""
    mode_counts = whole(w, AT.mode_counts)
    environment, powers = vector(w, AT.environment), vector(w, AT.powers)
    evaluate(w, t)
    if environment[FAILED] != 0.0:
        return CALLBACK
    if not loads_are_sound(w):
        return NO_LOAD
    if mode_counts[REDUNDANT]:
        code = decided(w)
    else:
        code = held(w, careful)
        if code in (SINGULAR, DOUBTFUL):
            code = decided(w)
    if careful and code == SOUND and mode_counts[KEPT_CONSTRAINTS] < whole(w, AT.holonomic).size:
        powers[RESIDUAL] = max(powers[RESIDUAL], missed_rows(w))
        if powers[RESIDUAL] > CONTRADICTION:
            return CONTRADICTORY
    return code


def _motion(address, first, stop, scratch):
    w = table_at(address, ROWS)
    arguments = vector(w, AT.arguments)
    arguments[CODE] = solve_motion(w, arguments[FIRST], arguments[SECOND] != 0.0)


motion_unit = Unit(_motion)


@nested
def motion(w, t, careful):
    """Evaluate the terms at q, v and solve the mode; return how it ended."""
    arguments, calls = vector(w, AT.arguments), whole_matrix(w, AT.calls)
    arguments[FIRST], arguments[SECOND] = t, 1.0 if careful else 0.0
    invoke(calls[MOTION, 0], calls[MOTION, 1], calls[MOTION, 2])
    return int(arguments[CODE])


@nested
def strike(w, taking, plastic, impulses, after):
    """Resolve the impact of contacts `taking`; write impulses (3 k,) and velocities after; return how it ended.

    `plastic` contacts have no restitution whatever they are.
    """
    cone_size, cone_row, pivot = whole(w, AT.cone_size), whole(w, AT.cone_row), whole(w, AT.pivot)
    M, factors, A = matrix(w, AT.M), matrix(w, AT.factors), matrix(w, AT.A)
    cone_G, W = matrix(w, AT.cone_G), matrix(w, AT.W)
    cone_g, missed, v = vector(w, AT.cone_g), vector(w, AT.missed), vector(w, AT.v)
    velocity, cone_r, restitution = vector(w, AT.velocity), vector(w, AT.cone_r), vector(w, AT.restitution)
    poisson_ = flags(w, AT.poisson)
    powers, impact, row_impulses = vector(w, AT.powers), vector(w, AT.impact), vector(w, AT.row_impulses)
    calls = whole_matrix(w, AT.calls)
    n, m = M.shape[0], A.shape[0]
    rows, stiff = np.zeros(m + n, np.int64), np.zeros(W.shape[0])
    count = with_limbs(w, rows, other_rows(w, rows, True), taking, True, stiff)
    if not block(w, rows, count, stiff):
        return SINGULAR
    # the velocity without impulses of these contacts: massless feet that land stop at once
    free = np.zeros(n + count)
    if whole(w, AT.limbs)[0]:
        for i in range(n):
            free[i] = dot(M[i], v)
        for o in range(count):
            free[n + o] = dot(A[rows[o]], v) if rows[o] < m else 0.0
        substitute(factors, n + count, pivot, free)
    else:
        copy_to(free, v)
    pose(w, taking, 1)
    p = cone_size[0]
    X, H = np.zeros((p, n + count)), np.zeros((p, n))
    for a in range(p):
        own = cone_row[a]
        for j in range(n):
            H[a, j] = W[own, j] if own >= 0 else A[-1 - own, j]
            X[a, j] = H[a, j]
        substitute(factors, n + count, pivot, X[a])
    poisson = False
    for a in range(p):
        own = cone_row[a]
        cone_g[a] = velocity[own] if own >= 0 else 0.0
        for j in range(n):
            cone_g[a] += H[a, j] * (free[j] - v[j])
        if own >= 0 and own % 3 == 0:
            i = own // 3
            if poisson_[i]:
                poisson = poisson or (restitution[i] > 0.0 and not plastic[i])
            elif not plastic[i]:
                cone_g[a] += restitution[i] * min(velocity[own], 0.0)
        for b in range(p):
            total = 0.0
            for j in range(n):
                total += H[a, j] * X[b, j]
            cone_G[a, b] = total
    sound = True
    if poisson:
        missed[0] = 2.0  # the law of impulses has two phases: Python knows it
        for i in range(plastic.size):
            missed[1 + i] = 1.0 if plastic[i] else 0.0
        invoke(calls[HARD, 0], calls[HARD, 1], calls[HARD, 2])
        sound, powers[RESIDUAL] = missed[0] <= ACCEPTED, missed[0]
    elif p:
        sound = solve_cones(w, p, cone_size[1])
    if not sound:
        return NO_IMPULSES
    impact[LAWS_MISSED] = max(impact[LAWS_MISSED], powers[RESIDUAL] if p else 0.0)
    impact[UNIQUENESS] = max(impact[UNIQUENESS], 0.0 if independent(cone_G, p) else 1.0)
    fill(impulses, 0.0)
    for j in range(n):
        after[j] = free[j]
    for a in range(p):
        for j in range(n):
            after[j] += X[a, j] * cone_r[a]
        for o in range(count):
            if rows[o] < m:
                row_impulses[rows[o]] += X[a, n + o] * cone_r[a]
        if cone_row[a] >= 0:
            impulses[cone_row[a]] = cone_r[a]
    for j in range(n):
        if not np.isfinite(after[j]):
            return NOT_FINITE
    return SOUND


@nested
def independent(G, p):
    """Return whether the rows of contacts are independent: no pivot of G, scaled to one, is rounding."""
    S = np.zeros((p, p))
    for a in range(p):
        for b in range(p):
            size = np.sqrt(G[a, a] * G[b, b])
            S[a, b] = G[a, b] / size if size > 0.0 else 0.0
    for a in range(p):
        if not S[a, a] > INDEPENDENT:
            return False
        for b in range(a + 1, p):
            part = S[b, a] / S[a, a]
            for c in range(a, p):
                S[b, c] -= part * S[a, c]
    return True


# ----------------------------------------------------------------------------------------------------------------------
# Projection: positions and velocities put back on the rows of the mode, by the least change in the metric of the mass.


CLOSED = 1e-15
"""Residuals below this are none."""

PIVOT, LIGHT = 1e-9, 1e-12
"""A row whose largest entry left is below this part of its size depends on rows above; masses that stand for none."""

MOST_CLOSING = 3
"""Newton's steps onto positions at most."""


@nested
def least_change(w, rows, count, missing, out):
    """Write the least change, in the metric of the mass, that moves some rows by -missing; return whether there is."""
    solution = vector(w, AT.solution)
    factors, M, A = matrix(w, AT.factors), matrix(w, AT.M), matrix(w, AT.A)
    W, held = matrix(w, AT.W), matrix(w, AT.held_rows)
    pivot = whole(w, AT.pivot)
    n, m, given = M.shape[0], A.shape[0], count
    if whole(w, AT.limbs)[0]:
        # what has no mass and is not held by these rows stays
        for j in range(free_motions(w, rows, count)):
            rows[count] = m + W.shape[0] + j
            count += 1
    size = n + count
    x = solution
    for i in range(n):
        x[i] = 0.0
        for j in range(n):
            factors[i, j] = M[i, j]
    for p in range(count):
        x[n + p] = -missing[p] if p < given else 0.0
        row = rows[p]
        for j in range(n):
            value = entry(A, W, held, row, j)
            factors[n + p, j] = value
            factors[j, n + p] = value
        for o in range(count):
            factors[n + p, n + o] = 0.0
    if not factor(factors, size, pivot):
        return False
    substitute(factors, size, pivot, x)
    for j in range(n):
        if not np.isfinite(x[j]):
            return False
        out[j] = x[j]
    return True


@nested
def move_onto(w, t):
    """Move w.q onto closed gaps and constraints, w.v onto the rows of the mode; return how it ended."""
    q, moved, time = vector(w, AT.q), vector(w, AT.moved), vector(w, AT.time)
    chart_base, way, environment = vector(w, AT.chart_base), vector(w, AT.way), vector(w, AT.environment)
    v, psi, velocity = vector(w, AT.v), vector(w, AT.psi), vector(w, AT.velocity)
    phi, gaps = vector(w, AT.phi), vector(w, AT.gaps)
    mode_counts, kept, holonomic = whole(w, AT.mode_counts), whole(w, AT.kept), whole(w, AT.holonomic)
    M, A, W = matrix(w, AT.M), matrix(w, AT.A), matrix(w, AT.W)
    calls = whole_matrix(w, AT.calls)
    n, m = M.shape[0], A.shape[0]
    limbs, held = whole(w, AT.limbs)[0], matrix(w, AT.held_rows)
    if mode_counts[KEPT_ROWS] == 0 and not limbs:
        return SOUND
    rows, missing = np.zeros(m + W.shape[0] + 2 * n, np.int64), np.zeros(m + W.shape[0] + 2 * n)
    change = np.zeros(n)
    for _ in range(MOST_CLOSING):
        time[0] = t
        invoke(calls[TERMS, 0], calls[TERMS, 1], calls[TERMS, 2])
        if environment[FAILED] != 0.0:
            return CALLBACK
        count, worst = 0, 0.0
        for p in range(mode_counts[KEPT_ROWS]):
            row = kept[p]
            if row < m and holonomic[row] >= 0:
                rows[count], missing[count] = row, phi[holonomic[row]]
            elif row >= m and (row - m) % 3 == 0:
                rows[count], missing[count] = row, gaps[(row - m) // 3]
            else:
                continue
            worst = max(worst, abs(missing[count]))
            count += 1
        if worst <= CLOSED:
            break
        if not least_change(w, rows, count, missing, change):
            return SINGULAR
        copy_to(chart_base, q)
        copy_to(way, change)
        invoke(calls[ALONG, 0], calls[ALONG, 1], calls[ALONG, 2])
        copy_to(q, moved)
    else:
        time[0] = t
        invoke(calls[TERMS, 0], calls[TERMS, 1], calls[TERMS, 2])
    for _ in range(2):
        worst, count = 0.0, mode_counts[KEPT_ROWS]
        for p in range(count):
            row = kept[p]
            rows[p], missing[p] = row, psi[row] if row < m else velocity[row - m]
            worst = max(worst, abs(missing[p]))
        if limbs:
            for j in range(free_motions(w, kept, count)):
                rows[count], missing[count] = m + W.shape[0] + j, dot(held[j], v)
                worst = max(worst, abs(missing[count]))
                count += 1
        if worst == 0.0:
            break
        if not least_change(w, rows, count, missing, change):
            return SINGULAR
        for j in range(n):
            v[j] += change[j]
        invoke(calls[TERMS, 0], calls[TERMS, 1], calls[TERMS, 2])
    if sticks_without_gap(w):
        for _ in range(2):
            if not round_off(w, missing, change):
                break
            invoke(calls[TERMS, 0], calls[TERMS, 1], calls[TERMS, 2])
    return SOUND


@nested
def sticks_without_gap(w):
    """Return whether a row of the mode is the tangent of a contact without a gap."""
    mode_counts, kept, gapped = whole(w, AT.mode_counts), whole(w, AT.kept), flags(w, AT.gapped)
    m = matrix(w, AT.A).shape[0]
    found = False
    for p in range(mode_counts[KEPT_ROWS]):
        found = found or (kept[p] >= m and not gapped[(kept[p] - m) // 3])
    return found


@nested
def round_off(w, missing, change):
    """Move w.v so that rows of zeros and ones hold to the last bit: a block on a belt, blocks together.

    Dependent velocities follow from independent ones through a row-reduced form of the rows, light coordinates first.
    Return whether something was missing.
    """
    M, A, W = matrix(w, AT.M), matrix(w, AT.A), matrix(w, AT.W)
    psi, velocity, v = vector(w, AT.psi), vector(w, AT.velocity), vector(w, AT.v)
    mode_counts, kept = whole(w, AT.mode_counts), whole(w, AT.kept)
    n, m, count = M.shape[0], A.shape[0], mode_counts[KEPT_ROWS]
    R, size, weight = np.zeros((count, n)), np.zeros(count), np.zeros(n)
    pivots, heaviest, any_missing = np.full(count, -1), 1.0, False
    for j in range(n):
        heaviest = max(heaviest, M[j, j])
    for j in range(n):
        weight[j] = 1.0 / np.sqrt(M[j, j]) if M[j, j] > 0.0 else 1.0 / np.sqrt(LIGHT * heaviest)
    for p in range(count):
        row = kept[p]
        missing[p] = -(psi[row] if row < m else velocity[row - m])
        any_missing = any_missing or missing[p] != 0.0
        for j in range(n):
            R[p, j] = A[row, j] if row < m else W[row - m, j]
            size[p] = max(size[p], abs(R[p, j]))
    if not any_missing:
        return False
    for p in range(count):
        column, largest = 0, -1.0
        for j in range(n):
            if abs(R[p, j]) * weight[j] > largest:
                column, largest = j, abs(R[p, j]) * weight[j]
        lead = R[p, column]
        if abs(lead) <= PIVOT * size[p]:
            continue
        pivots[p] = column
        missing[p] /= lead
        for j in range(n):
            R[p, j] /= lead
        for o in range(count):
            part = R[o, column]
            if o != p and part != 0.0:
                missing[o] -= part * missing[p]
                add_multiple(R[o], -part, R[p])
    fill(change, 0.0)
    for p in range(count):
        if pivots[p] >= 0:
            change[pivots[p]] = missing[p]
    for j in range(n):
        v[j] += change[j]
    return True


def _project(address, first, stop, scratch):
    w = table_at(address, ROWS)
    arguments = vector(w, AT.arguments)
    arguments[CODE] = move_onto(w, arguments[FIRST])


project_unit = Unit(_project)


@nested
def project(w, t):
    """Move q onto closed gaps and constraints, v onto the rows of the mode; return how it ended."""
    arguments, calls = vector(w, AT.arguments), whole_matrix(w, AT.calls)
    arguments[FIRST] = t
    invoke(calls[PROJECT, 0], calls[PROJECT, 1], calls[PROJECT, 2])
    return int(arguments[CODE])
