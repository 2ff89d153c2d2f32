"""The motion in a mode, compiled: closed contacts are rows of the block matrix, sliding ones bring their friction.

A contact has three rows: normal, tangent, tangent (rows that it lacks are zero). Symbols: W contact rows (3 k, n),
u = W v + offsets relative velocities, u' = W a + shift; r reactions on the system (N, T, T), A constraint rows.

    M a + A^T lam = f + W^T r,     A a = -drift,     closed: W_N a = -shift_N,     sticking: W_T a = -shift_T
    sliding along d: r_T = -limit d,   limit = load T_k(|u_T|),  load: given, r_N, or |lam_j| of a constraint row j

so that a load that is a reaction makes the block matrix unsymmetric. Rows that depend on others are left out of it
(`kept`). Where contact rows depend on each other complementarity over cones decides (`cone_loops.py`).
"""

# pyright: reportCallIssue=false, reportArgumentType=false

from __future__ import annotations

import numpy as np

from dalembert.kernel.array_loops import copy_to, dot, factor, fill, substitute
from dalembert.kernel.loops import invoke, nested
from dalembert.kernel.views import Unit, flags, matrix, table_at, vector, whole, whole_matrix
from dalembert.kkt.limits import CERTAIN
from dalembert.simulate.contact.cone_loops import decided
from dalembert.simulate.contact.engine_memory import (
    AT,
    CALLBACK,
    CODE,
    CONTRADICTORY,
    DOUBTFUL,
    FAILED,
    FIRST,
    FORCE,
    FORCE_UNIT,
    KEPT_CONSTRAINTS,
    KEPT_ROWS,
    LENGTH_UNIT,
    MOTION,
    NO_LOAD,
    NOT_DISSIPATIVE,
    NOT_FINITE,
    NOT_UNIQUE,
    RATE_UNIT,
    REDUNDANT,
    RESIDUAL,
    ROWS,
    SECOND,
    SINGULAR,
    SOUND,
    TERMS,
)
from dalembert.simulate.contact.friction_loops import limit_factor, own_acceleration, set_directions, set_rates, static
from dalembert.simulate.contact.row_loops import entry, hold_limbs
from dalembert.simulate.equations.signals import Tables, set_signals
from dalembert.simulate.limits import ALIGNED, ALIGNING_ROUNDS, CONTRADICTION, OPENING, STILL, WEAK

# ----------------------------------------------------------------------------------------------------------------------
# The block system of the mode.


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
    held, limb_rate, powers = matrix(w, AT.held_rows), vector(w, AT.limb_rate), vector(w, AT.powers)
    closed, gapped, slides = flags(w, AT.closed), flags(w, AT.gapped), flags(w, AT.slides)
    n, m = M.shape[0], A.shape[0]
    first_held = m + W.shape[0]
    count = mode_counts[KEPT_ROWS] + hold_limbs(w)
    size = n + count
    K, right, x = matrix_K, right_, solution
    for i in range(n):
        right[i] = force[i] - bias[i]
        for j in range(n):
            K[i, j] = M[i, j]
    for p in range(count):
        row = kept[p]
        if row < m:
            right[n + p] = -drift[row]
        else:
            right[n + p] = -shift[row - m] if row < first_held else dot(held[row - first_held], limb_rate)
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
def held(w, careful):
    """Solve the mode; planes that have just let go slide where they are accelerated to; return how it ended."""
    closed, slides, gapped = flags(w, AT.closed), flags(w, AT.slides), flags(w, AT.gapped)
    tangents, load_row = whole(w, AT.tangents), whole(w, AT.load_row)
    slow_, sliding_speed, sign = vector(w, AT.slow), vector(w, AT.sliding_speed), vector(w, AT.sign)
    contact_rate, velocity, lam = vector(w, AT.contact_rate), vector(w, AT.velocity), vector(w, AT.lam)
    sliding_unit, direction = matrix(w, AT.sliding_unit), matrix(w, AT.direction)
    slow = set_directions(w)
    code = SOUND
    for _ in range(ALIGNING_ROUNDS if slow else 1):
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
def hold_on(w):
    """Let contacts of a redundant mode hold where complementarity lets them go: accelerations and powers as before.

    A step that overshoots the end of a mode then sees no kink, as where rows are independent; reactions and contact
    rates stay those of complementarity, which say that the mode has ended. Where friction depends on a reaction that
    is not unique, there is no such continuation.
    """
    closed, slides, gapped = flags(w, AT.closed), flags(w, AT.slides), flags(w, AT.gapped)
    load_row, tangents = whole(w, AT.load_row), whole(w, AT.tangents)
    contact_rate, reactions, lam = vector(w, AT.contact_rate), vector(w, AT.reactions), vector(w, AT.lam)
    acceleration = vector(w, AT.acceleration)
    noise, lets_go = 0.0, False
    for j in range(acceleration.size):
        noise = max(noise, abs(acceleration[j]))
    noise = OPENING * (1.0 + noise)
    for i in range(closed.size):
        if not closed[i]:
            continue
        if slides[i] and (gapped[i] or load_row[i] >= 0):
            return
        lets_go = lets_go or (gapped[i] and contact_rate[3 * i] > noise)
        for j in range(1, 1 + tangents[i]):
            lets_go = lets_go or (not slides[i] and abs(contact_rate[3 * i + j]) > noise)
    if not lets_go:
        return
    rates, forces, multipliers = contact_rate.copy(), reactions.copy(), lam.copy()
    if hold(w, False) == SOUND:
        take(w)
        set_rates(w)
        copy_to(contact_rate, rates)
        copy_to(reactions, forces)
        copy_to(lam, multipliers)


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
        if code == SOUND and not careful:
            hold_on(w)
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


# ----------------------------------------------------------------------------------------------------------------------
# How far a mode is from its end.


@nested
def still(w, i):
    """Return the relative speed of a contact up to which it is at rest."""
    return STILL * vector(w, AT.levers)[i] * vector(w, AT.limits)[RATE_UNIT]


@nested
def opening(w):
    """Return the acceleration of a contact's gap, as a part of its lever, up to which it is none."""
    acceleration, limits, angular = vector(w, AT.acceleration), vector(w, AT.limits), flags(w, AT.angular)
    length, noise = limits[LENGTH_UNIT], 0.0
    for j in range(acceleration.size):
        noise = max(noise, abs(acceleration[j]) * (length if angular[j] else 1.0))
    return OPENING * (limits[RATE_UNIT] ** 2 + noise / length)


@nested
def margins(w, out):
    """Write how far contacts are from a change, (3 k,): positive while they push, slide along as now, stick."""
    reactions, load = vector(w, AT.reactions), vector(w, AT.load)
    lam, contact_rate, velocity = vector(w, AT.lam), vector(w, AT.contact_rate), vector(w, AT.velocity)
    slow, limits, levers = vector(w, AT.slow), vector(w, AT.limits), vector(w, AT.levers)
    closed, gapped, slides = flags(w, AT.closed), flags(w, AT.gapped), flags(w, AT.slides)
    pushes = flags(w, AT.pushes)
    tangents, load_row = whole(w, AT.tangents), whole(w, AT.load_row)
    direction = matrix(w, AT.direction)
    pull = noise = 0.0
    for j in range(reactions.size):
        pull = max(pull, abs(reactions[j]))
    pull, noise = WEAK * (limits[FORCE_UNIT] + pull), opening(w)
    fill(out, np.inf)
    for i in range(closed.size):
        if not closed[i]:
            continue
        N = reactions[3 * i] if gapped[i] else (-lam[load_row[i]] if load_row[i] >= 0 else load[i])
        if gapped[i]:
            if abs(N) > pull:
                out[3 * i] = N
            elif contact_rate[3 * i] > noise * levers[i]:
                out[3 * i] = -contact_rate[3 * i]
        elif load_row[i] >= 0 and pushes[i] and abs(N) > pull:
            out[3 * i] = N
        if tangents[i] == 0:
            continue
        if slides[i]:
            along = velocity[3 * i + 1] * direction[i, 0] + velocity[3 * i + 2] * direction[i, 1]
            # a plane that has just let go begins at zero, up to rounding: it has come back where it is clearly below
            out[3 * i + 1] = along if tangents[i] == 1 or slow[i] == 0.0 else along + 0.5 * still(w, i)
            continue
        coefficient = static(w, i)
        if gapped[i] and not (coefficient > 0.0 and pull < N):
            continue
        reserve = coefficient * abs(N) - np.sqrt(reactions[3 * i + 1] ** 2 + reactions[3 * i + 2] ** 2)
        begins = np.sqrt(contact_rate[3 * i + 1] ** 2 + contact_rate[3 * i + 2] ** 2)
        if begins > noise * levers[i]:
            out[3 * i + 2] = -begins
        elif abs(reserve) > pull:
            out[3 * i + 2] = reserve
