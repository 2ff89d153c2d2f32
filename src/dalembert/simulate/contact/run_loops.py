# pyright: reportCallIssue=false, reportArgumentType=false
"""Contacts from event to event, compiled: Runge-Kutta steps in a mode, guards located, transitions, impacts.

    step in a mode ─► gap closes? force, cone or sliding speed reaches its end? user's zero? ─► located by steps of full
    order ─► impact ─► modes anew ─► step ...

The loop comes back when its buffers are full, steps have been taken, or something has no answer: then the driver
(`engine.py`) says why. Only what is complete counts (`keep`).
"""

from __future__ import annotations

import numpy as np

from dalembert.kernel.loops import invoke, nested
from dalembert.kernel.views import Unit, cube, flags, matrix, table_at, vector, whole, whole_matrix
from dalembert.kkt import Status
from dalembert.simulate.contact.field_loops import (
    BEYOND,
    DOUBLINGS,
    RADIUS,
    STEEP,
    TWIST,
    WIDTH,
    field_of,
    gap_and_rate,
    is_point,
    leaves,
    longest_step,
    on_edge,
    room_around,
    room_in,
    set_cell,
    terms_at,
)
from dalembert.simulate.contact.memory import AT, ROWS
from dalembert.simulate.contact.mode_loops import (
    ALONG,
    CALLBACK,
    CHART,
    CODE,
    CONTACT,
    ENERGY_AFTER,
    ENERGY_BEFORE,
    EVENTS,
    FAILED,
    FIRST,
    FRICTION_WORK,
    HEAT,
    HELD,
    KEPT_CONSTRAINTS,
    KEPT_ROWS,
    MOMENTUM,
    NOT_FINITE,
    NUMBER,
    POWER,
    REDUNDANT,
    RESIDUAL,
    RESULT,
    SECOND,
    SHOT,
    SOUND,
    TERMS,
    TRANSITION,
    choose,
    copy_rows,
    copy_to,
    decided,
    dot,
    factor,
    fill,
    free_motions,
    least,
    motion,
    own_acceleration,
    paradox,
    project,
    see_limbs,
    slipping_limb,
    static,
    strike,
    substitute,
)
from dalembert.simulate.events.isolate_loops import (
    CROSSING,
    GRID,
    QUIET,
    SPLIT,
    begin,
    insert,
    narrow,
    next_trial,
    verdict,
)

# ----------------------------------------------------------------------------------------------------------------------
# Memory of a run.


DONE, FULL, STEPS_TAKEN, FAILURE, ENDED = range(20, 25)
"""Why the loop came back: end of the segment, buffers full, as many steps as asked for, no answer, a terminal event."""

DETACHED, COLLAPSED, ENDLESS, UNCERTAIN_GAP, STANDSTILL, PASSAGE, CHATTERING, CLINGING, ROLLING = range(31, 40)
"""What has no answer, beside the codes of `mode_loops`."""

T, H, STOP, END, START, EVERY, WORK, HEAT_SUM, FRICTION_SUM, FAILED_AT, DETAIL = range(11)
"""Places in `clock`."""

(
    STEPS,
    REJECTED,
    EVALUATIONS,
    SAMPLES,
    EVENT_COUNT,
    NEXT,
    STANDING,
    GAINS,
    UNRESOLVED,
    WHO,
    COMPLETE,
    COMPLETE_EVENTS,
    BEGUN,
) = range(13)
"""Places in `counts`."""

OPEN, CLOSED, STICK, SLIP, SLIP_PLUS, SLIP_MINUS, IMPACT, IMPACTS, REST, RISING, FALLING, NOTHING = range(12)
"""Words of events."""


(
    RTOL, ATOL, FIXED_STEP, LARGEST, EVENT_TOLERANCE, SEQUENTIAL, TIME_SCALE, SIZED, GAIN, ORDER, APART, BETWEEN,
    IMPLICIT,
) = range(13)  # fmt: skip
"""Places in `limits`: tolerances, a fixed step (0: adaptive), the largest, the width of a located zero; impacts one
after the other; time in which forces may turn; errors of coordinates relative to their size; part of the energy of
motion that an impact may add; of the method: order of its error, half of the largest distance of two stages, how much
larger accelerations may be between stages, whether stages are implicit."""

SAFETY, LEAST, MOST = 0.9, 0.2, 6.0
"""Part of the optimal step, and how much a step may shrink or grow at once."""

SHORTEST = 1e-11
"""Steps that have no answer are shortened down to this, seconds: the run ends next to where the answer does."""

FAR = 1e12
"""Stages beyond this (metres, radians, per second) belong to steps that are too long."""

TRIALS = 80
"""Rejected steps in a row, and trials for one zero, at most."""

OPENING, WEAK = 1e-9, 1e-12
"""Parts of the accelerations and of the forces below which they are none."""

NEAR, APART_POINTS = 1e-5, 4.0
"""Part of a step from which the end of sticking is extrapolated, and how many of it lie between the points: rounding of
the first is hardly magnified."""

DIP, ENDS = 0.2, 1e-6
"""A margin below this part of its largest may dip below zero between stages; stages this near to ends are ends."""

GRAZING = 1e-11
"""A gap that closes by less than this and opens again within a step is none, metres."""

LEAST_PART, MOST_LOOKS = 0.02, 2000
"""A step of which less than this part is certain after so many looks ends the run."""

CLOSING, POLYNOMIAL, EARLY, ROUNDING = 1e-9, 4.0, 1e-3, 1e-6
"""Approach, error of the polynomial in tolerances, first look at what opens, depth by which it may seem to sink."""

TOUCHING, STILL, SLOW = 1e-9, 1e-9, 1e-3
"""Gaps that touch (m), velocities that are rest (parts of all), separation within impacts that pile up (m/s)."""

CHANGES, AT_ONCE = 50, 1000
"""Changes of mode at one instant, and events without a step, at most."""

KNOWN, STEADY, SHORT = 5, 1e-3, 1e-4
"""Impacts that are looked at, by how much factors may differ, what may be left to their limit, seconds."""

ITERATIONS, TURN = 12, 1e-3
"""Newton's steps on implicit stages at most, and the part of the tolerance at which they end; the Jacobian is fresh."""

DIFFERENCE, SMALLEST = 1.5e-8, 1e-5
"""Differences of coordinates for the Jacobian: this part of their sizes, and what sizes are at least."""

GAMMA = (6.0 + 81.0 ** (1.0 / 3.0) - 9.0 ** (1.0 / 3.0)) / 30.0
"""Inverse of the real eigenvalue of Radau's A^-1, with which its error estimate is filtered."""

RADAU_E = np.array([-13.0 - 7.0 * 6.0**0.5, -13.0 + 7.0 * 6.0**0.5, -1.0]) / 3.0
"""Weights of its stages in the error estimate."""

BESIDE = 1e-10
"""Part of a step beside the zero of its polynomial at which a zero is looked for."""

CLINGS = 1e-6
"""A massless foot that lands may pull by this part of the largest force: rounding of the moment at which it lands."""

REST_PART = 1e-11
"""Relative velocities up to this part of what they are summed from are zero where contacts come to rest."""

CHATTER, CHATTER_TIME = 30, 1e-7
"""So many changes of mode within this part of the run are an accumulation."""


# ----------------------------------------------------------------------------------------------------------------------
# Steps.


UNIQUE, REDUNDANT_ROWS, HELD_STILL = int(Status.UNIQUE), int(Status.REDUNDANT), int(Status.HELD)
"""Verdicts of a solve, as compiled loops read them."""


@nested
def set_state(w, q, v):
    """Put a state where the codes read it."""
    q_, v_ = vector(w, AT.q), vector(w, AT.v)
    copy_to(q_, q)
    copy_to(v_, v)


@nested
def chart_at(w, base, x, v):
    """Move along the chart: w.q and w.x_rate."""
    chart_base, chart_x, v_ = vector(w, AT.chart_base), vector(w, AT.chart_x), vector(w, AT.v)
    calls = whole_matrix(w, AT.calls)
    copy_to(chart_base, base)
    copy_to(chart_x, x)
    copy_to(v_, v)
    invoke(calls[CHART, 0], calls[CHART, 1], calls[CHART, 2])


@nested
def write_rate(w, row):
    """Write the rate of y = (x, v, work, heat, work of friction)."""
    v, powers, x_rate = vector(w, AT.v), vector(w, AT.powers), vector(w, AT.x_rate)
    acceleration = vector(w, AT.acceleration)
    n = v.size
    for j in range(n):
        row[j], row[n + j] = x_rate[j], acceleration[j]
    row[2 * n], row[2 * n + 1], row[2 * n + 2] = powers[POWER], powers[HEAT], powers[FRICTION_WORK]


@nested
def here(w):
    """Solve the motion at the state of the run, with care, and write the first stage; return how it ended."""
    q0, v, v0 = vector(w, AT.q0), vector(w, AT.v), vector(w, AT.v0)
    chart_x, chart_base = vector(w, AT.chart_x), vector(w, AT.chart_base)
    q, acceleration, clock = vector(w, AT.q), vector(w, AT.acceleration), vector(w, AT.clock)
    tally = whole(w, AT.tally)
    calls = whole_matrix(w, AT.calls)
    stages, stage_v, stage_a = matrix(w, AT.stages), matrix(w, AT.stage_v), matrix(w, AT.stage_a)
    stage_margins = matrix(w, AT.stage_margins)
    n = v.size
    set_state(w, q0, v0)
    code = motion(w, clock[T], True)
    tally[EVALUATIONS] += 1
    if code != SOUND:
        return code
    fill(chart_x, 0.0)
    copy_to(chart_base, q0)
    invoke(calls[CHART, 0], calls[CHART, 1], calls[CHART, 2])
    copy_to(q, q0)
    write_rate(w, stages[0])
    copy_to(stage_v[0], v0)
    copy_to(stage_a[0], acceleration)
    margins(w, stage_margins[0])
    for j in range(2 * n + 3):
        if not np.isfinite(stages[0, j]):
            return NOT_FINITE
    return SOUND


@nested
def stage(w, t, row, watch):
    """Evaluate the rate at z.y; return how it ended."""
    v, q0 = vector(w, AT.v), vector(w, AT.q0)
    stage_y, acceleration = vector(w, AT.stage_y), vector(w, AT.acceleration)
    tally = whole(w, AT.tally)
    stages, stage_v, stage_a = matrix(w, AT.stages), matrix(w, AT.stage_v), matrix(w, AT.stage_a)
    stage_margins = matrix(w, AT.stage_margins)
    n = v.size
    for j in range(2 * n):
        if not abs(stage_y[j]) < FAR:
            return NOT_FINITE
    chart_at(w, q0, stage_y[:n], stage_y[n : 2 * n])
    code = motion(w, t, False)
    tally[EVALUATIONS] += 1
    if code != SOUND:
        return code
    write_rate(w, stages[row])
    if watch:
        copy_to(stage_v[row], v)
        copy_to(stage_a[row], acceleration)
        margins(w, stage_margins[row])
    return SOUND


@nested
def error_size(w, j):
    """Return what the error of component j of y is measured against, once the end of the step is in stage_y."""
    v0, q0, clock = vector(w, AT.v0), vector(w, AT.q0), vector(w, AT.clock)
    stage_y, limits = vector(w, AT.stage_y), vector(w, AT.limits)
    n = v0.size
    if j >= 2 * n:
        return abs(clock[WORK + j - 2 * n])
    if j >= n:
        return abs(v0[j - n])
    return max(abs(q0[j]), abs(stage_y[j] + q0[j])) if limits[SIZED] else 1.0


@nested
def explicit_stages(w, h, watch):
    """Evaluate the stages of a step one after the other; return how it ended."""
    v0, clock, stage_y = vector(w, AT.v0), vector(w, AT.clock), vector(w, AT.stage_y)
    rk_c, stages, rk_a = vector(w, AT.rk_c), matrix(w, AT.stages), matrix(w, AT.rk_a)
    n = v0.size
    for i in range(1, rk_c.size):
        for j in range(2 * n + 3):
            total = 0.0
            for o in range(i):
                weight = rk_a[i, o]
                if weight != 0.0:
                    total += weight * stages[o, j]
            stage_y[j] = h * total + (v0[j - n] if n <= j < 2 * n else 0.0)
        code = stage(w, clock[T] + rk_c[i] * h, i, watch)
        if code != SOUND:
            return code
    return SOUND


@nested
def slopes(w, J):
    """Write the Jacobian of the rate at the start of a step, by differences; return how it ended."""
    v0, q0, clock = vector(w, AT.v0), vector(w, AT.q0), vector(w, AT.clock)
    stage_y, limits, stages = vector(w, AT.stage_y), vector(w, AT.limits), matrix(w, AT.stages)
    n = v0.size
    for j in range(2 * n):
        fill(stage_y, 0.0)
        for i in range(n):
            stage_y[n + i] = v0[i]
        size = abs(v0[j - n]) if j >= n else abs(q0[j]) if limits[SIZED] else 1.0
        before = stage_y[j]
        stage_y[j] += DIFFERENCE * max(size, SMALLEST)
        step = stage_y[j] - before
        code = stage(w, clock[T], 1, False)
        if code != SOUND:
            return code
        for i in range(2 * n):
            J[i, j] = (stages[1, i] - stages[0, i]) / step
    return SOUND


@nested
def implicit_stages(w, h, watch):
    """Solve the stages of Radau IIA by Newton's method; return how it ended, and the error over the tolerance.

    z_i = h sum_j a_ij rate(t + c_j h, y + z_j); the error is (1 - gamma h J)^-1 gamma (h rate(t, y) + sum_i e_i z_i)
    (Hairer, Wanner 1996, IV.8).
    """
    v0, q0, clock = vector(w, AT.v0), vector(w, AT.q0), vector(w, AT.clock)
    stage_y, limits, rk_c = vector(w, AT.stage_y), vector(w, AT.limits), vector(w, AT.rk_c)
    stages, rk_a = matrix(w, AT.stages), matrix(w, AT.rk_a)
    n = v0.size
    m = 2 * n
    J, K, z, x = np.zeros((m, m)), np.zeros((3 * m, 3 * m)), np.zeros((3, m)), np.zeros(3 * m)
    scale, pivot = np.zeros(m), np.zeros(3 * m, np.int64)
    code = slopes(w, J)
    if code != SOUND:
        return code, np.inf
    for j in range(m):
        size = abs(v0[j - n]) if j >= n else abs(q0[j]) if limits[SIZED] else 1.0
        scale[j] = limits[ATOL] + limits[RTOL] * size
    # 1 - h a x J, by blocks of the stages
    for i in range(3):
        for o in range(3):
            for a in range(m):
                for b in range(m):
                    K[i * m + a, o * m + b] = (1.0 if i == o and a == b else 0.0) - h * rk_a[1 + i, 1 + o] * J[a, b]
    if not factor(K, 3 * m, pivot):
        return COLLAPSED, np.inf
    before, solved = np.inf, False
    for _ in range(ITERATIONS):
        for i in range(3):
            fill(stage_y, 0.0)
            for j in range(m):
                stage_y[j] = z[i, j] + (v0[j - n] if j >= n else 0.0)
            code = stage(w, clock[T] + rk_c[1 + i] * h, 1 + i, watch)
            if code != SOUND:
                return code, np.inf
        for i in range(3):
            for j in range(m):
                total = 0.0
                for o in range(3):
                    total += rk_a[1 + i, 1 + o] * stages[1 + o, j]
                x[i * m + j] = h * total - z[i, j]
        substitute(K, 3 * m, pivot, x)
        total = 0.0
        for i in range(3):
            for j in range(m):
                z[i, j] += x[i * m + j]
                total += (x[i * m + j] / scale[j]) ** 2
        size = np.sqrt(total / (3 * m))
        if size <= TURN or (size < 1.0 and size > 0.5 * before):
            solved = True
            break
        if not size < 2.0 * before:
            break
        before = size
    if not solved:
        return COLLAPSED, np.inf
    # the filtered error
    for a in range(m):
        total = h * stages[0, a]
        for i in range(3):
            total += RADAU_E[i] * z[i, a]
        x[a] = GAMMA * total
        for b in range(m):
            K[a, b] = (1.0 if a == b else 0.0) - h * GAMMA * J[a, b]
    if not factor(K, m, pivot):
        return COLLAPSED, np.inf
    substitute(K, m, pivot, x)
    total = 0.0
    for j in range(m):
        total += (x[j] / scale[j]) ** 2
    return SOUND, np.sqrt(total / m)


@nested
def explicit_error(w, h):
    """Return the error of a step over the tolerance: Hairer's for dop853; of vector systems that of work and heat too.

    Without weights of order 3 it is the root mean square of those of the lower order.
    """
    limits, stages = vector(w, AT.limits), matrix(w, AT.stages)
    rk_fifth, rk_third = vector(w, AT.rk_fifth), vector(w, AT.rk_third)
    n = vector(w, AT.v0).size
    five = three = 0.0
    count = 2 * n + 3 if limits[SIZED] else 2 * n
    for j in range(count):
        e5 = e3 = 0.0
        for i in range(rk_fifth.size):
            e5 += rk_fifth[i] * stages[i, j]
            e3 += rk_third[i] * stages[i, j]
        scale = limits[ATOL] + limits[RTOL] * error_size(w, j)
        five += (e5 / scale) ** 2
        three += (e3 / scale) ** 2
    if five > 0.0 or three > 0.0:
        return abs(h) * five / np.sqrt((five + 0.01 * three) * count)
    return 0.0


@nested
def take_shot(w, h, watch):
    """Step from the state of the run by h: end in z.end_q, z.end_v, z.more; return how it ended, and the error."""
    q, v, clock = vector(w, AT.q), vector(w, AT.v), vector(w, AT.clock)
    q0, q1 = vector(w, AT.q0), vector(w, AT.q1)
    v1, limits, stage_y = vector(w, AT.v1), vector(w, AT.limits), vector(w, AT.stage_y)
    sums, v0, rk_b = vector(w, AT.sums), vector(w, AT.v0), vector(w, AT.rk_b)
    stages = matrix(w, AT.stages)
    n, count = v.size, rk_b.size
    t = clock[T]
    if limits[IMPLICIT]:
        code, ratio = implicit_stages(w, h, watch)
    else:
        code, ratio = explicit_stages(w, h, watch), 0.0
    if code != SOUND:
        return code, np.inf
    # the end, and the rate there
    for j in range(2 * n + 3):
        total = 0.0
        for o in range(count):
            if rk_b[o] != 0.0:
                total += rk_b[o] * stages[o, j]
        stage_y[j] = h * total + (v0[j - n] if n <= j < 2 * n else 0.0)
    code = stage(w, t + h, count, watch)
    if code != SOUND:
        return code, np.inf
    if not limits[IMPLICIT]:
        ratio = explicit_error(w, h)
    if not np.isfinite(ratio):
        return NOT_FINITE, np.inf
    # the end, put back on the rows of the mode; y of the last stage is the end in the chart
    chart_at(w, q0, stage_y[:n], stage_y[n : 2 * n])
    code = project(w, t + h)
    if code != SOUND:
        return code, np.inf
    copy_to(q1, q)
    copy_to(v1, v)
    for j in range(3):
        sums[j] = stage_y[2 * n + j]
    return SOUND, ratio


def _shot(address, first, stop, scratch):
    w = table_at(address, ROWS)
    arguments = vector(w, AT.arguments)
    code, ratio = take_shot(w, arguments[FIRST], arguments[SECOND] != 0.0)
    arguments[CODE], arguments[RESULT] = code, ratio


shot_unit = Unit(_shot)


@nested
def shot(w, h, watch):
    """Step from the state of the run by h: end in q1, v1, sums; return how it ended, and the error."""
    arguments, calls = vector(w, AT.arguments), whole_matrix(w, AT.calls)
    arguments[FIRST], arguments[SECOND] = h, 1.0 if watch else 0.0
    invoke(calls[SHOT, 0], calls[SHOT, 1], calls[SHOT, 2])
    return int(arguments[CODE]), arguments[RESULT]


@nested
def accepted(w, h):
    """Take a step that meets the tolerance, and propose the next; return how it ended, and its length."""
    tally = whole(w, AT.tally)
    environment, limits, clock = vector(w, AT.environment), vector(w, AT.limits), vector(w, AT.clock)
    code = SOUND
    for _ in range(TRIALS):
        code, ratio = shot(w, h, True)
        if code == SOUND and (ratio < 1.0 or limits[FIXED_STEP] > 0.0):
            code = paradox_at_end(w, h)
        if code == CALLBACK and h <= SHORTEST:
            return code, h
        if code != SOUND:
            if h <= SHORTEST:
                return code, h
            environment[FAILED] = 0.0
            h *= LEAST
            continue
        if ratio < 1.0 or limits[FIXED_STEP] > 0.0:
            best = SAFETY * ratio ** (-1.0 / limits[ORDER]) if ratio > 0.0 else MOST
            clock[H] = h * min(max(best, LEAST), MOST)
            return SOUND, h
        tally[REJECTED] += 1
        h *= max(LEAST, SAFETY * ratio ** (-1.0 / limits[ORDER]))
        if h <= 16.0 * 2.2e-16 * abs(clock[T]) or h < 1e-280:
            return COLLAPSED, h
    return COLLAPSED if code == SOUND else code, h


@nested
def paradox_at_end(w, h):
    """Look for Painleve's paradox at the end of the step that was taken last; return how it ended."""
    closed, slides, gapped = flags(w, AT.closed), flags(w, AT.slides), flags(w, AT.gapped)
    rubs = False
    for i in range(closed.size):
        rubs = rubs or (closed[i] and slides[i] and gapped[i])
    if not rubs:
        return SOUND
    set_state(w, vector(w, AT.q1), vector(w, AT.v1))
    code = motion(w, vector(w, AT.clock)[T] + h, False)
    return paradox(w) if code == SOUND else code


@nested
def go(w, h):
    """Move the run to the end of the step that was taken last; return how it ended."""
    q1, v1, q0 = vector(w, AT.q1), vector(w, AT.v1), vector(w, AT.q0)
    v0, clock, sums = vector(w, AT.v0), vector(w, AT.clock), vector(w, AT.sums)
    copy_to(q0, q1)
    copy_to(v0, v1)
    clock[T] += h
    clock[WORK] += sums[0]
    clock[HEAT_SUM] += sums[1]
    clock[FRICTION_SUM] += sums[2]
    return here(w)


@nested
def interpolate(w, h):
    """Make the polynomial of the step that was taken last, with further stages where it needs some; return how."""
    v, stage_y, clock = vector(w, AT.v), vector(w, AT.stage_y), vector(w, AT.clock)
    rk_b, v0, rk_more_c = vector(w, AT.rk_b), vector(w, AT.v0), vector(w, AT.rk_more_c)
    polynomial, stages, rk_more_a = matrix(w, AT.polynomial), matrix(w, AT.stages), matrix(w, AT.rk_more_a)
    rk_dense = matrix(w, AT.rk_dense)
    n, count, more = v.size, rk_b.size, rk_more_c.size
    for p in range(more):
        i = count + 1 + p
        for j in range(2 * n + 3):
            total = 0.0
            for o in range(i):
                total += rk_more_a[p, o] * stages[o, j]
            stage_y[j] = h * total + (v0[j - n] if n <= j < 2 * n else 0.0)
        code = stage(w, clock[T] + rk_more_c[p] * h, i, False)
        if code != SOUND:
            return code
    for j in range(2 * n):
        change = 0.0
        for i in range(count):
            change += rk_b[i] * stages[i, j]
        change *= h
        polynomial[0, j] = change
        polynomial[1, j] = h * stages[0, j] - change
        polynomial[2, j] = 2.0 * change - h * (stages[count, j] + stages[0, j])
        for p in range(4):
            total = 0.0
            if p < rk_dense.shape[0]:
                for i in range(count + 1 + more):
                    total += rk_dense[p, i] * stages[i, j]
            polynomial[3 + p, j] = h * total
    return SOUND


@nested
def inside(w, part):
    """Put the state at a part of the step, on its polynomial, where the codes read it."""
    v, q0, stage_y = vector(w, AT.v), vector(w, AT.q0), vector(w, AT.stage_y)
    v0 = vector(w, AT.v0)
    polynomial = matrix(w, AT.polynomial)
    n = v.size
    for j in range(2 * n):
        total = 0.0
        for i in range(7):
            total = (total + polynomial[6 - i, j]) * (part if i % 2 == 0 else 1.0 - part)
        stage_y[j] = total + (v0[j - n] if j >= n else 0.0)
    chart_at(w, q0, stage_y[:n], stage_y[n : 2 * n])


# ----------------------------------------------------------------------------------------------------------------------
# Guards.


@nested
def margins(w, out):
    """Write how far contacts are from a change, (3 k,): positive while they push, slide along as now, stick."""
    reactions, acceleration, load = vector(w, AT.reactions), vector(w, AT.acceleration), vector(w, AT.load)
    lam, contact_rate, velocity = vector(w, AT.lam), vector(w, AT.contact_rate), vector(w, AT.velocity)
    slow = vector(w, AT.slow)
    closed, gapped, slides = flags(w, AT.closed), flags(w, AT.gapped), flags(w, AT.slides)
    pushes = flags(w, AT.pushes)
    tangents, load_row = whole(w, AT.tangents), whole(w, AT.load_row)
    direction = matrix(w, AT.direction)
    pull = noise = 0.0
    for j in range(reactions.size):
        pull = max(pull, abs(reactions[j]))
    for j in range(acceleration.size):
        noise = max(noise, abs(acceleration[j]))
    pull, noise = WEAK * (1.0 + pull), OPENING * (1.0 + noise)
    fill(out, np.inf)
    for i in range(closed.size):
        if not closed[i]:
            continue
        N = reactions[3 * i] if gapped[i] else (-lam[load_row[i]] if load_row[i] >= 0 else load[i])
        if gapped[i]:
            if abs(N) > pull:
                out[3 * i] = N
            elif contact_rate[3 * i] > noise:
                out[3 * i] = -contact_rate[3 * i]
        elif load_row[i] >= 0 and pushes[i] and abs(N) > pull:
            out[3 * i] = N
        if tangents[i] == 0:
            continue
        if slides[i]:
            along = velocity[3 * i + 1] * direction[i, 0] + velocity[3 * i + 2] * direction[i, 1]
            # a plane that has just let go begins at zero, up to rounding: it has come back where it is clearly below
            out[3 * i + 1] = along if tangents[i] == 1 or slow[i] == 0.0 else along + 0.5 * STILL
            continue
        coefficient = static(w, i)
        if gapped[i] and not (coefficient > 0.0 and pull < N):
            continue
        reserve = coefficient * abs(N) - np.sqrt(reactions[3 * i + 1] ** 2 + reactions[3 * i + 2] ** 2)
        begins = np.sqrt(contact_rate[3 * i + 1] ** 2 + contact_rate[3 * i + 2] ** 2)
        if begins > noise:
            out[3 * i + 2] = -begins
        elif abs(reserve) > pull:
            out[3 * i + 2] = reserve


MARGIN, GAP, WATCH, EDGE = range(4)
"""Guards whose zeros are located by steps of full order."""


@nested
def guard(w, kind, index, sign, h):
    """Step by h and evaluate a guard at the end; return how it ended, and its value."""
    code, _ = shot(w, h, False)
    if code != SOUND:
        return code, 0.0
    return guard_here(w, kind, index, sign, h)


@nested
def guard_here(w, kind, index, sign, h):
    """Evaluate a guard at the end of the step that was taken last."""
    q1, v1, environment = vector(w, AT.q1), vector(w, AT.v1), vector(w, AT.environment)
    clock, time = vector(w, AT.clock), vector(w, AT.time)
    event_values = vector(w, AT.event_values)
    tally = whole(w, AT.tally)
    calls = whole_matrix(w, AT.calls)
    closed = flags(w, AT.closed)
    t = clock[T] + h
    set_state(w, q1, v1)
    if kind == MARGIN:
        code = motion(w, t, False)
        tally[EVALUATIONS] += 1
        if code != SOUND:
            return code, 0.0
        values = np.zeros(3 * closed.size)
        margins(w, values)
        return SOUND, least(values)
    if kind == GAP:
        time[0] = t
        invoke(calls[TERMS, 0], calls[TERMS, 1], calls[TERMS, 2])
        return SOUND, gap_and_rate(w, index, field_of(w, index))[0]
    if kind == EDGE:
        time[0] = t
        invoke(calls[TERMS, 0], calls[TERMS, 1], calls[TERMS, 2])
        return SOUND, room_in(w, index)
    environment[0] = t
    invoke(calls[EVENTS, 0], calls[EVENTS, 1], calls[EVENTS, 2])
    if environment[FAILED] != 0.0:
        return CALLBACK, 0.0
    return SOUND, sign * event_values[index]


@nested
def locate(w, kind, index, sign, low, high, at_low, at_high, tolerance):
    """Find the length of a step to right behind a zero between two; return how it ended, and the length.

    A change of mode is stepped to; who looks for something else steps there when the first of all is known.
    """
    bracket, widths = np.zeros(5), np.zeros(3)
    bracket[0], bracket[1], bracket[2], bracket[3] = low, at_low if at_low > 0.0 else 2.2e-308, high, at_high
    fill(widths, np.inf)
    for trial in range(200):
        low, high = bracket[0], bracket[2]
        # functions of the user may stay at zero behind it: then it is where they become zero
        if high - low <= tolerance or (bracket[3] == 0.0 and kind != WATCH):
            break
        slow = high - low > 0.5 * widths[trial % 3]
        widths[trial % 3] = high - low
        middle = 0.5 * (low + high) if slow else next_trial(bracket)
        if bracket[3] == 0.0 and not slow:
            middle = high - tolerance
        middle = min(max(middle, low + 0.5 * tolerance), high - 0.5 * tolerance)
        if not low < middle < high:
            break
        code, value = guard(w, kind, index, sign, middle)
        if code != SOUND:
            return code, middle
        narrow(bracket, middle, value)
    if kind != MARGIN:
        return SOUND, bracket[2]
    code, _ = shot(w, bracket[2], False)
    return code, bracket[2]


# ----------------------------------------------------------------------------------------------------------------------
# Gaps: bounds on the motion of shapes (see `bounds.py`), and the first zero that they leave possible.


@nested
def ball_bounds(w, ball, q, h, speeds, accelerations):
    """Return the largest speed and acceleration of a ball's centre within a step."""
    chain_first = whole(w, AT.chain_first)
    chain_links = whole_matrix(w, AT.chain_links)
    chain_lengths = matrix(w, AT.chain_lengths)
    angular = flags(w, AT.angular)
    chain_end = vector(w, AT.chain_end)
    speed = acceleration = W = B = 0.0
    for link in range(chain_first[ball], chain_first[ball + 1]):
        kind, first_q, straight, first_v, count = chain_links[link]
        before, behind, pitch = chain_lengths[link]
        w2 = b2 = u2 = c2 = 0.0
        w1 = b1 = product = 0.0
        product = 1.0
        for j in range(first_v, first_v + count):
            if angular[j]:
                w2, b2 = w2 + speeds[j] ** 2, b2 + accelerations[j] ** 2
                w1, b1, product = w1 + speeds[j], b1 + accelerations[j], product * speeds[j]
            else:
                u2, c2 = u2 + speeds[j] ** 2, c2 + accelerations[j] ** 2
        w, b, u, c = np.sqrt(w2), np.sqrt(b2), np.sqrt(u2), np.sqrt(c2)
        way = 0.0
        if kind == 1:  # helical
            way, u, c = pitch * (abs(q[first_q]) + h * w), pitch * w, pitch * b
        else:
            if kind == 2:  # universal
                w, b = w1, b1 + product
            for j in range(first_q, first_q + straight):
                way += q[j] ** 2
            way = np.sqrt(way) + h * u
            c += w * u  # velocities in the child's axes, which turn
        speed += W * (before + way) + u
        acceleration += (B + W * W) * (before + way) + 2.0 * W * u + c
        W, B = W + w, B + b + W * w
        speed, acceleration = speed + W * behind, acceleration + (B + W * W) * behind
    return speed + W * chain_end[ball], acceleration + (B + W * W) * chain_end[ball]


@nested
def gap_bounds(w, i, h):
    """Return L and K, bounds of the rate of gap i and of its derivative within the step that was taken last."""
    v0, q0, pair_radii = vector(w, AT.v0), vector(w, AT.q0), vector(w, AT.pair_radii)
    pair_coordinate = whole(w, AT.pair_coordinate)
    pair_ball = whole_matrix(w, AT.pair_ball)
    stage_a, stage_v = matrix(w, AT.stage_a), matrix(w, AT.stage_v)
    limits, count = vector(w, AT.limits), vector(w, AT.rk_times).size
    n = v0.size
    speeds, accelerations = np.zeros(n), np.zeros(n)
    for j in range(n):
        a = v = 0.0
        for s in range(count):
            a, v = max(a, abs(stage_a[s, j])), max(v, abs(stage_v[s, j]))
        accelerations[j] = limits[BETWEEN] * a
        speeds[j] = v + limits[APART] * h * accelerations[j]
    if pair_coordinate[i] >= 0:
        return speeds[pair_coordinate[i]], accelerations[pair_coordinate[i]]
    L, K = ball_bounds(w, pair_ball[i, 0], q0, h, speeds, accelerations)
    if pair_ball[i, 1] >= 0:
        more, faster = ball_bounds(w, pair_ball[i, 1], q0, h, speeds, accelerations)
        L, K = L + more, K + faster
        K += L * L / pair_radii[i] if pair_radii[i] > 0.0 else np.inf
    f = field_of(w, i)
    if f >= 0:
        # over a heightfield: of a point's height within one cell; of a sphere no bound is known
        numbers = matrix(w, AT.field_numbers)[f]
        K = np.inf if numbers[RADIUS] > 0.0 else numbers[STEEP] * K + 2.0 * numbers[TWIST] * L * L
        L *= numbers[STEEP]
    return L, K


@nested
def gap_inside(w, i, h, part):
    """Return gap i and its rate at a part of the step, on its polynomial."""
    time, clock = vector(w, AT.time), vector(w, AT.clock)
    calls = whole_matrix(w, AT.calls)
    inside(w, part)
    time[0] = clock[T] + part * h
    invoke(calls[TERMS, 0], calls[TERMS, 1], calls[TERMS, 2])
    return gap_and_rate(w, i, field_of(w, i))


@nested
def least_value(a_s, a_g, a_r, b_s, b_g, b_r, L, K):
    """Return a lower bound of g between two points with |g'| <= L, |g''| <= K."""
    w = b_s - a_s
    cones = 0.5 * (a_g + b_g - L * w)
    if not np.isfinite(K):
        return cones
    bend = K * w + b_r - a_r
    meet = (a_g - b_g + b_r * w + 0.5 * K * w * w) / bend if bend > 0.0 else -1.0
    if not 0.0 <= meet <= w:
        return cones
    return max(cones, min(a_g, b_g, a_g + a_r * meet - 0.5 * K * meet * meet))


@nested
def isolate(w, i, h, start, end, L, within, width, slack, found):
    """Isolate the first zero of gap i between two points (s, g, g', room); write low and high into found (2, 4).

    Return 1 where there is one, 0 where there is none, -1 where it is certain only up to found[1]. `within` bounds the
    second derivative; of a point over a heightfield as long as it is certain to stay over one cell.
    """
    stack, top, looks = np.zeros((64, 4)), 0, 0
    a, f = np.zeros(4), field_of(w, i)
    speed = L / matrix(w, AT.field_numbers)[f, STEEP] if is_point(w, f) else 0.0
    copy_to(stack[0], end)
    copy_to(a, start)
    while top >= 0:
        b = stack[top]
        piece = b[0] - a[0]
        K = within if speed == 0.0 or speed * piece < a[3] else np.inf
        small = piece <= width or L * piece <= GRAZING
        if b[1] <= 0.0 and (small or 0.5 * (a[2] + b[2] + K * piece) < 0.0):
            copy_to(found[0], a)
            copy_to(found[1], b)
            return 1
        if b[1] > 0.0 and (small or least_value(a[0], a[1], a[2], b[0], b[1], b[2], L, K) > -GRAZING):
            copy_to(a, b)
            top -= 1
            continue
        if looks == MOST_LOOKS or top == 63:
            copy_to(found[1], a)
            return -1
        looks += 1
        s = 0.5 * (a[0] + b[0])
        g, r = gap_inside(w, i, h, s / h)
        top += 1
        stack[top, 0], stack[top, 1], stack[top, 2], stack[top, 3] = s, g + slack, r, room_around(w, f)
    return 0


@nested
def opening_bound(w, f, start, L, within):
    """Return the bound of the second derivative of a gap that has just opened; of a point while it is over one cell."""
    if not is_point(w, f):
        return within
    speed = L / matrix(w, AT.field_numbers)[f, STEEP]
    return within if start[2] > 0.0 and 1.9 * start[2] * speed < within * start[3] else np.inf


@nested
def gap_in(w, i, h, ready):
    """Find where gap i closes within the step h that was taken last.

    Return how it ended, the length up to which it is certain, and whether it closes there. `ready`: the polynomial is
    made.
    """
    q0, v0, time = vector(w, AT.q0), vector(w, AT.v0), vector(w, AT.time)
    clock, q1, v1 = vector(w, AT.clock), vector(w, AT.q1), vector(w, AT.v1)
    limits, sums = vector(w, AT.limits), vector(w, AT.sums)
    calls = whole_matrix(w, AT.calls)
    stages = matrix(w, AT.stages)
    tally, f = whole(w, AT.tally), field_of(w, i)
    set_state(w, q0, v0)
    time[0] = clock[T]
    invoke(calls[TERMS, 0], calls[TERMS, 1], calls[TERMS, 2])
    start, end = np.zeros(4), np.zeros(4)
    start[1], start[2] = gap_and_rate(w, i, f)
    start[3] = room_around(w, f)
    end_q, end_v, more = q1.copy(), v1.copy(), sums.copy()
    set_state(w, q1, v1)
    time[0] = clock[T] + h
    invoke(calls[TERMS, 0], calls[TERMS, 1], calls[TERMS, 2])
    end[0], end[3] = h, room_around(w, f)
    end[1], end[2] = gap_and_rate(w, i, f)
    L, within = gap_bounds(w, i, h)
    K = opening_bound(w, f, start, L, within)
    width = max(limits[EVENT_TOLERANCE], 2e-16 * abs(clock[T]))
    slack = POLYNOMIAL * (limits[ATOL] + limits[RTOL])
    # nothing can happen: most steps end here
    lowest = least_value(start[0], start[1], start[2], end[0], end[1], end[2], L, K)
    if start[1] > 0.0 and end[1] > 0.0 and lowest > -GRAZING:
        return SOUND, h, False
    if not ready[0]:
        code = interpolate(w, h)
        if code != SOUND:
            return code, h, False
        ready[0] = True
    if start[1] <= 0.0:
        opened = False
        if not start[2] < -CLOSING * (1.0 + L):
            sure = start[2] > 0.0 and np.isfinite(K)
            if sure and K * h < 2.0 * start[2] and not is_point(w, f):
                start[1], opened = 2.2e-308, True
            else:
                s = 1.9 * start[2] / K if sure else EARLY * h
                while s < h and not opened:
                    g, r = gap_inside(w, i, h, s / h)
                    if g > 0.0:
                        start[0], start[1], start[2], opened = s, g, r, True
                        start[3] = room_around(w, f)
                    s *= 2.0
                if not opened and end[1] > 0.0:
                    return SOUND, h, False
        if not opened:
            if start[2] < 0.0:
                return SOUND, 0.0, True
            if end[1] < -ROUNDING * abs(end[2]) * h:
                clock[DETAIL] = -end[1]
                tally[WHO] = i
                return PASSAGE, h, False
            return SOUND, h, False
    found = np.zeros((2, 4))
    for _ in range(TRIALS):
        verdict_of = isolate(w, i, h, start, end, L, within, width, slack, found)
        if verdict_of <= 0:
            certain = h if verdict_of == 0 else found[1, 0]
            if certain >= h:
                copy_to(q1, end_q)
                copy_to(v1, end_v)
                copy_to(sums, more)
                return SOUND, h, False
            if certain <= LEAST_PART * h:
                tally[WHO] = i
                return UNCERTAIN_GAP, h, False
            return SOUND, certain, False
        # near the zero of the polynomial a bracket of steps of full order is small at once
        low, g_low, high, g_high, code, sure = pinch(w, i, h, found)
        if code != SOUND:
            return code, h, False
        if sure:
            code, at = locate(w, GAP, i, 1.0, low, high, g_low, g_high, width)
            return code, at, True
        # else the bracket on the polynomial, by steps of full order
        high, g_high = found[1, 0], found[1, 1]
        if high < h:
            K_kept = stages.copy()
            code, g_high = guard(w, GAP, i, 1.0, high)
            copy_rows(stages, K_kept)
            if code != SOUND:
                return code, h, False
        if g_high > 0.0:
            # the polynomial was below zero, the step is not
            start[0], start[1], start[3] = high, g_high, room_around(w, f)
            start[2] = gap_and_rate(w, i, f)[1]
            continue
        low, g_low = found[0, 0], found[0, 1]
        if low > start[0]:
            K_kept = stages.copy()
            code, g_low = guard(w, GAP, i, 1.0, low)
            copy_rows(stages, K_kept)
            if code != SOUND:
                return code, h, False
            if g_low <= 0.0:
                low, g_low = start[0], start[1]
        code, at = locate(w, GAP, i, 1.0, low, high, g_low, g_high, width)
        return code, at, True
    return SOUND, start[0], False


@nested
def pinch(w, i, h, found):
    """Look by two steps of full order for a zero of gap i beside that of the step's polynomial in a bracket.

    Return the bracket (low, gap there, high, gap there), how it ended, and whether the zero is in it.
    """
    stages = matrix(w, AT.stages)
    low, g_low, high, g_high = found[0, 0], found[0, 1], found[1, 0], found[1, 1]
    a, b, ga, gb = low / h, high / h, g_low, g_high
    s = b
    for _ in range(60):
        s = b - gb * (b - a) / (gb - ga) if gb != ga else 0.5 * (a + b)
        s = s if a < s < b else 0.5 * (a + b)
        g, r = gap_inside(w, i, h, s)
        step = -g / r / h if r < 0.0 else 0.0
        if abs(step) < 1e-13 or b - a < 1e-13:
            break
        if g > 0.0:
            a, ga = s, g
        else:
            b, gb = s, g
        new = s + step
        if a < new < b:
            g, r = gap_inside(w, i, h, new)
            if g > 0.0:
                a, ga = new, g
            else:
                b, gb = new, g
            s = new
    K_kept, above, below = stages.copy(), False, False
    for part in (-1.0, 1.0):
        trial = s * h + part * BESIDE * h
        if not low < trial < high:
            continue
        code, g = guard(w, GAP, i, 1.0, trial)
        copy_rows(stages, K_kept)
        if code != SOUND:
            return low, g_low, high, g_high, code, False
        if g > 0.0:
            low, g_low, above = trial, g, True
        else:
            high, g_high, below = trial, g, True
    return low, g_low, high, g_high, SOUND, above and below


# ----------------------------------------------------------------------------------------------------------------------
# Functions without bounds: those of the user, gaps given as expressions; isolated on nodes (`isolate_loops.py`).


@nested
def node(w, h, part, watched, loose, slack, out):
    """Write all functions at a part of the step: the user's, then gaps without bounds; return whether none failed."""
    q0, v0, environment = vector(w, AT.q0), vector(w, AT.v0), vector(w, AT.environment)
    time, q1, v1 = vector(w, AT.time), vector(w, AT.q1), vector(w, AT.v1)
    clock, event_values, gaps = vector(w, AT.clock), vector(w, AT.event_values), vector(w, AT.gaps)
    calls = whole_matrix(w, AT.calls)
    if part == 0.0:
        set_state(w, q0, v0)
    elif part == 1.0:
        set_state(w, q1, v1)
    else:
        inside(w, part)
    place = 0
    if watched:
        environment[0] = clock[T] + part * h
        invoke(calls[EVENTS, 0], calls[EVENTS, 1], calls[EVENTS, 2])
        if environment[FAILED] != 0.0:
            return False
        for k in range(watched):
            out[place] = event_values[k]
            place += 1
    if loose.size:
        time[0] = clock[T] + part * h
        invoke(calls[TERMS, 0], calls[TERMS, 1], calls[TERMS, 2])
        for k in range(loose.size):
            # a gap that has just opened begins at zero, up to rounding: it is closed where it is clearly below
            if part == 0.0:
                slack[k] = GRAZING if gaps[loose[k]] <= GRAZING else 0.0
            out[place] = gaps[loose[k]] + slack[k]
            place += 1
    return True


@nested
def first_watched(w, h, watched, loose, ready, fired):
    """Find the first zero of the user's functions, or of a gap without bounds, within the step that was taken last.

    Return how it ended, the length, and which kind: -2 none, -1 a function of the user (`fired` says which), else the
    gap. A gap may only fall through zero.
    """
    nodes, node_scale, limits = vector(w, AT.nodes), vector(w, AT.node_scale), vector(w, AT.limits)
    q1, v1, sums = vector(w, AT.q1), vector(w, AT.v1), vector(w, AT.sums)
    signs, clock, direction_of = vector(w, AT.signs), vector(w, AT.clock), vector(w, AT.direction_of)
    node_values, stages = matrix(w, AT.node_values), matrix(w, AT.stages)
    tally = whole(w, AT.tally)
    total = watched + loose.size
    if total == 0 or not h > 0.0:
        return SOUND, h, -2
    if not ready[0]:
        code = interpolate(w, h)
        if code != SOUND:
            return code, h, -2
        ready[0] = True
    s, g, scale, values, slack = nodes, node_values, node_scale, np.zeros(total), np.zeros(loose.size)
    end_q, end_v, more = q1.copy(), v1.copy(), sums.copy()
    count = GRID.size
    for j in range(count):
        s[j] = GRID[j]
        if not node(w, h, GRID[j], watched, loose, slack, values):
            return CALLBACK, h, -2
        for e in range(total):
            g[j, e] = values[e]
    begin(g[:, :total], count, scale)
    # zeros at the start of a run count in the direction in which they are left
    if tally[BEGUN] == 0:
        tally[BEGUN] = 1
        opened = False
        for k in range(watched):
            fired[k] = False
            if signs[k] == 0.0 and g[1, k] != 0.0:
                way = np.sign(g[1, k])
                wanted = direction_of[k] == 0 or direction_of[k] == way
                signs[k] = -way if wanted else way
                fired[k] = wanted
                opened = opened or wanted
        if opened:
            return SOUND, 0.0, -1
    tolerance = max(limits[EVENT_TOLERANCE], 2e-16 * abs(clock[T]))
    least = max(1e-10, tolerance / h)
    i, added = 0, 0
    while i < count - 1:
        found = verdict(s[:count], g[:count, :total], count, i, least)
        if found >= 0:
            if added >= 200 or count >= s.size - 1:
                tally[UNRESOLVED] += 1
                found = CROSSING
            else:
                at = s[found] + SPLIT * (s[found + 1] - s[found])
                if not node(w, h, at, watched, loose, slack, values):
                    return CALLBACK, h, -2
                insert(s, g[:, :total], count, found, at, values, scale)
                count, added = count + 1, added + 1
                i = min(i, found)
                continue
        if found != QUIET:
            # who crosses as wanted between these nodes
            best, who = np.inf, -2
            K_kept = stages.copy()
            for k in range(total):
                low, high = s[i] * h, s[i + 1] * h
                if k < watched:
                    fired[k] = False
                    crosses = signs[k] != 0.0 and signs[k] * g[i + 1, k] <= 0.0
                    crosses = crosses and (g[i, k] != 0.0 or g[i + 1, k] != 0.0)
                    crosses = crosses and (direction_of[k] == 0 or direction_of[k] == -signs[k])
                    if not crosses:
                        continue
                    code, at = locate(
                        w, WATCH, k, signs[k], low, high, signs[k] * g[i, k],
                        signs[k] * g[i + 1, k], tolerance,
                    )  # fmt: skip
                    copy_rows(stages, K_kept)
                    if code != SOUND:
                        return code, h, -2
                    if at < best:
                        for o in range(k):
                            fired[o] = False
                        best, who = at, -1
                    fired[k] = at <= best
                elif g[i, k] > 0.0 and g[i + 1, k] <= 0.0:
                    gap = loose[k - watched]
                    code, at_high = guard(w, GAP, gap, 1.0, high)
                    code2, at_low = guard(w, GAP, gap, 1.0, low) if low > 0.0 else (SOUND, g[i, k])
                    copy_rows(stages, K_kept)
                    if code != SOUND or code2 != SOUND:
                        return max(code, code2), h, -2
                    if at_high > 0.0:
                        g[i + 1, k] = at_high
                        continue
                    code, at = locate(
                        w, GAP, gap, 1.0, low if at_low > 0.0 else 0.0, high,
                        max(at_low, 2.2e-308), at_high, tolerance,
                    )  # fmt: skip
                    copy_rows(stages, K_kept)
                    if code != SOUND:
                        return code, h, -2
                    if at < best:
                        best, who = at, gap
            if who > -2:
                return SOUND, best, who
            copy_to(q1, end_q)
            copy_to(v1, end_v)
            copy_to(sums, more)
        for k in range(watched):
            if g[i + 1, k] != 0.0:
                signs[k] = np.sign(g[i + 1, k])
        i += 1
    return SOUND, h, -2


@nested
def note_signs(w, watched, fired, any_fired):
    """Remember the signs of the user's functions at the state of the run; those that fired have changed theirs."""
    q0, v0, environment = vector(w, AT.q0), vector(w, AT.v0), vector(w, AT.environment)
    clock, event_values, signs = vector(w, AT.clock), vector(w, AT.event_values), vector(w, AT.signs)
    calls = whole_matrix(w, AT.calls)
    if not watched:
        return True
    set_state(w, q0, v0)
    environment[0] = clock[T]
    invoke(calls[EVENTS, 0], calls[EVENTS, 1], calls[EVENTS, 2])
    if environment[FAILED] != 0.0:
        return False
    for k in range(watched):
        value = -signs[k] if any_fired and fired[k] else event_values[k]
        if value != 0.0:
            signs[k] = np.sign(value)
    return True


# ----------------------------------------------------------------------------------------------------------------------
# The end of sticking, sliding and pushing within a step.


@nested
def first_change(w, h):
    """Find where a closed contact changes its mode within the step h that was taken last, stages in z.margins.

    Return how it ended, the length, and whether something changes there.
    """
    limits, rk_times, clock = vector(w, AT.limits), vector(w, AT.rk_times), vector(w, AT.clock)
    closed_ = flags(w, AT.closed)
    stages, stage_margins = matrix(w, AT.stages), matrix(w, AT.stage_margins)
    closed = False
    for i in range(closed_.size):
        closed = closed or closed_[i]
    if not closed or not h > 0.0:
        return SOUND, h, False
    tolerance = max(1e-13, limits[EVENT_TOLERANCE], 2e-16 * abs(clock[T]))
    code, end = guard_here(w, MARGIN, 0, 1.0, h)
    if code != SOUND:
        return code, h, False
    low, at_low = 0.0, least(stage_margins[0])
    # where a margin dips between the stages it is looked at by steps of full order
    looks = np.zeros(40)
    count = doubtful(w, rk_times, h, looks)
    K_kept = stages.copy()
    for j in range(count):
        code, value = guard(w, MARGIN, 0, 1.0, looks[j])
        copy_rows(stages, K_kept)
        if code != SOUND:
            return code, h, False
        if value <= 0.0:
            code, at = located_change(w, h, low, looks[j], at_low, value, tolerance)
            return code, at, True
        low, at_low = looks[j], value
    if end > 0.0:
        if count:
            code, _ = shot(w, h, False)
        return code, h, False
    code, at = located_change(w, h, low, h, at_low, end, tolerance)
    return code, at, True


@nested
def located_change(w, h, low, high, at_low, at_high, tolerance):
    """Step to where a margin reaches zero between two lengths of a step h; return how it ended, and the length."""
    closed, slides, letting = flags(w, AT.closed), flags(w, AT.slides), matrix(w, AT.letting)
    sticks = False
    for i in range(closed.size):
        letting[i, 0] = 0.0
        sticks = sticks or (closed[i] and not slides[i])
    near = NEAR * h
    if sticks and near > tolerance:
        code, high = locate(w, MARGIN, 0, 1.0, low, high, at_low, at_high, near)
        if code != SOUND:
            return code, high
        code, at, holds_no_more = edge(w, low, high, near)
        if code != SOUND or holds_no_more:
            return code, at
        code, at_high = guard(w, MARGIN, 0, 1.0, high)
        if code != SOUND or at_high > 0.0:
            return code, high
    return locate(w, MARGIN, 0, 1.0, low, high, at_low, at_high, tolerance)


@nested
def edge(w, low, at, near):
    """Step to where contacts hold no more, if that is what happens next to `at`.

    Return how it ended, the length, and whether it is.
    What says it is zero before, grows from zero behind the edge, and is too small there to be told from zero: the force
    beyond the limit, or, where rows depend on each other and forces are not unique, the relative acceleration that
    complementarity gives. A parabola through three points on the right gives the edge; who lets go is seen there
    (`letting`: who, and where to).
    """
    letting = matrix(w, AT.letting)
    excess, who, code = np.zeros((3, letting.shape[0])), -1, SOUND
    for p in range(3):
        code, _ = guard(w, MARGIN, 0, 1.0, at + (1.0 + APART_POINTS * p) * near)
        if code != SOUND:
            break
        first = beyond(w, excess[p], p == 0)
        who = first if p == 0 else who
        if who < 0:
            break
    value = -1.0
    if code == SOUND and who >= 0:
        left = APART_POINTS * near * zero_before(excess[0, who], excess[1, who], excess[2, who])
        if np.isfinite(left):
            at = min(max(at + near - left, low), at)
            code, value = guard(w, MARGIN, 0, 1.0, at)
    # something else happens before: nobody lets go yet
    if value < 0.0:
        for i in range(letting.shape[0]):
            letting[i, 0] = 0.0
    return code if value >= 0.0 else SOUND, at, value >= 0.0


@nested
def beyond(w, out, first):
    """Write by how much sticking contacts do not hold; the first time note who lets go. Return who does most."""
    closed, slides, gapped = flags(w, AT.closed), flags(w, AT.slides), flags(w, AT.gapped)
    tangents, load_row = whole(w, AT.tangents), whole(w, AT.load_row)
    contact_rate, acceleration = vector(w, AT.contact_rate), vector(w, AT.acceleration)
    reactions, lam, load = vector(w, AT.reactions), vector(w, AT.lam), vector(w, AT.load)
    letting = matrix(w, AT.letting)
    pull = noise = largest = 0.0
    who = -1
    for j in range(reactions.size):
        pull = max(pull, abs(reactions[j]))
    for j in range(acceleration.size):
        noise = max(noise, abs(acceleration[j]))
    pull, noise = WEAK * (1.0 + pull), OPENING * (1.0 + noise)
    for i in range(closed.size):
        if not closed[i] or slides[i] or tangents[i] == 0 or not static_applies(w, i):
            continue
        N = reactions[3 * i] if gapped[i] else (abs(lam[load_row[i]]) if load_row[i] >= 0 else load[i])
        if gapped[i] and not pull < N:
            continue  # it opens
        x, y, least_seen = contact_rate[3 * i + 1], contact_rate[3 * i + 2], noise
        out[i] = np.sqrt(x * x + y * y)
        if out[i] <= noise:
            x, y, least_seen = -reactions[3 * i + 1], -reactions[3 * i + 2], pull
            out[i] = np.sqrt(x * x + y * y) - static(w, i) * N
        if first and out[i] > least_seen:
            letting[i, 0], letting[i, 1], letting[i, 2] = 1.0, x, y
            if out[i] > largest:
                who, largest = i, out[i]
    return who


@nested
def zero_before(a, b, c):
    """Return how far left of 0 the parabola through (0, a), (1, b), (2, c) has its zero."""
    curve = 0.5 * (c - 2.0 * b + a)
    slope = b - a - curve
    under = slope * slope - 4.0 * curve * a
    if slope == 0.0 or under < 0.0:
        return np.nan
    return 2.0 * a / (slope + np.sign(slope) * np.sqrt(under))


@nested
def doubtful(w, times, h, looks):
    """Write times inside of a step at which a margin may dip below zero and come back; return how many.

    Stages are states of low order: a margin that falls there below `DIP` of its largest and rises again is looked at.
    """
    stage_margins = matrix(w, AT.stage_margins)
    order = whole(w, AT.rk_order)
    count = 0
    for g in range(stage_margins.shape[1]):
        lowest, largest, where = np.inf, 0.0, -1
        for o in range(order.size):
            value = stage_margins[order[o], g]
            if np.isfinite(value):
                largest = max(largest, value)
                if value < lowest:
                    lowest, where = value, o
        if where < 0 or lowest >= DIP * largest:
            continue
        s = times[order[where]]
        if not ENDS < s < 1.0 - ENDS:
            continue
        for o in range(order.size):
            s = times[order[o]]
            if stage_margins[order[o], g] < DIP * largest and ENDS < s < 1.0 - ENDS and count < looks.size - 1:
                looks[count] = s * h
                count += 1
    for a in range(1, count):
        for b in range(a, 0, -1):
            if looks[b] < looks[b - 1]:
                looks[b], looks[b - 1] = looks[b - 1], looks[b]
    kept = 0
    for j in range(count):
        if kept == 0 or looks[j] > looks[kept - 1]:
            looks[kept] = looks[j]
            kept += 1
    return kept


# ----------------------------------------------------------------------------------------------------------------------
# Transitions.


@nested
def note(w, t, i, old, new):
    """Write an event down."""
    tally = whole(w, AT.tally)
    events = matrix(w, AT.events)
    rests = vector(w, AT.rests)
    if tally[EVENT_COUNT] < events.shape[0]:
        row = events[tally[EVENT_COUNT]]
        row[0], row[1], row[2], row[3] = t, i, old, new
        tally[EVENT_COUNT] += 1
    if new == OPEN:
        rests[i] = np.inf


@nested
def word_of(w, i):
    """Return what a contact does, as events call it."""
    closed, slides, gapped = flags(w, AT.closed), flags(w, AT.slides), flags(w, AT.gapped)
    tangents = whole(w, AT.tangents)
    direction = matrix(w, AT.direction)
    if not closed[i]:
        return OPEN
    if not slides[i]:
        return STICK
    if tangents[i] == 2 or gapped[i]:
        return SLIP
    return SLIP_PLUS if direction[i, 0] > 0.0 else SLIP_MINUS


@nested
def let_go(w, i, x, y):
    """Let a contact slide along (x, y)."""
    slides = flags(w, AT.slides)
    slow, limits = vector(w, AT.slow), vector(w, AT.limits)
    direction = matrix(w, AT.direction)
    tangents = whole(w, AT.tangents)
    size = np.sqrt(x * x + y * y)
    slides[i] = True
    direction[i, 0], direction[i, 1] = (x / size, y / size) if size > 0.0 else (1.0, 0.0)
    slow[i] = limits[TIME_SCALE] * own_acceleration(w, i) if tangents[i] == 2 else 0.0


@nested
def do_settle(w):
    """Open and let slide what must, at the state of the run, until the mode holds; return how it ended."""
    closed, gapped, pushes = flags(w, AT.closed), flags(w, AT.gapped), flags(w, AT.pushes)
    slides = flags(w, AT.slides)
    q, v, reactions = vector(w, AT.q), vector(w, AT.v), vector(w, AT.reactions)
    q0, v0 = vector(w, AT.q0), vector(w, AT.v0)
    clock, acceleration, contact_rate = vector(w, AT.clock), vector(w, AT.acceleration), vector(w, AT.contact_rate)
    load_, lam = vector(w, AT.load), vector(w, AT.lam)
    tally, tangents, load_row = whole(w, AT.tally), whole(w, AT.tangents), whole(w, AT.load_row)
    k = closed.size
    needed, goes = np.zeros(3 * k), np.zeros(k, np.bool_)
    for _ in range(CHANGES):
        set_state(w, q0, v0)
        choose_at(w)
        code = project(w, clock[T])
        if code != SOUND:
            return code
        copy_to(q0, q)
        copy_to(v0, v)
        code = motion(w, clock[T], True)
        if code == SOUND:
            code = slipping_limb(w)
        if code != SOUND:
            return code
        copy_to(needed, reactions)
        largest = noise = 0.0
        for j in range(3 * k):
            largest = max(largest, abs(reactions[j]))
        for j in range(acceleration.size):
            noise = max(noise, abs(acceleration[j]))
        pull = WEAK * (1.0 + largest)
        wrong = False
        for i in range(k):
            if not closed[i]:
                continue
            if gapped[i] and (reactions[3 * i] < -pull or contact_rate[3 * i] > OPENING * (1.0 + noise)):
                wrong = True
            if not gapped[i] and load_row[i] >= 0 and pushes[i] and -lam[load_row[i]] < -pull:
                tally[WHO] = i
                return DETACHED
            if tangents[i] and not slides[i] and static_applies(w, i):
                N = reactions[3 * i] if gapped[i] else (abs(lam[load_row[i]]) if load_row[i] >= 0 else load_[i])
                force = np.sqrt(reactions[3 * i + 1] ** 2 + reactions[3 * i + 2] ** 2)
                if static(w, i) * N - force < -pull:
                    wrong = True
                if np.sqrt(contact_rate[3 * i + 1] ** 2 + contact_rate[3 * i + 2] ** 2) > OPENING * (1.0 + noise):
                    wrong = True
        if not wrong:
            return SOUND
        code = decided(w)
        if code != SOUND:
            return code
        noise = 0.0
        for j in range(acceleration.size):
            noise = max(noise, abs(acceleration[j]))
        noise = OPENING * (1.0 + noise)
        opened = begins = False
        fill(goes, False)
        weakest, excess = -1, pull
        for i in range(k):
            leaves = contact_rate[3 * i] > noise or needed[3 * i] < -pull
            goes[i] = closed[i] and gapped[i] and reactions[3 * i] <= pull and leaves
        code = stays_down(w, goes, needed)
        if code != SOUND:
            return code
        for i in range(k):
            if goes[i]:
                closed[i], slides[i], opened = False, False, True
                note(w, clock[T], i, CLOSED, OPEN)
        if opened:
            continue
        for i in range(k):
            if not closed[i] or slides[i] or tangents[i] == 0 or not static_applies(w, i):
                continue
            N = reactions[3 * i] if gapped[i] else (abs(lam[load_row[i]]) if load_row[i] >= 0 else load_[i])
            if gapped[i] and not pull < N:
                continue
            x, y = contact_rate[3 * i + 1], contact_rate[3 * i + 2]
            force = np.sqrt(needed[3 * i + 1] ** 2 + needed[3 * i + 2] ** 2)
            load = needed[3 * i] if gapped[i] else N
            if np.sqrt(x * x + y * y) > noise:
                let_go(w, i, x, y)
                begins = True
            elif force - static(w, i) * load > excess and load > 0.0:
                weakest, excess = i, force - static(w, i) * load
        # next to the edge nobody is seen to slip: who is most beyond its limit lets go, others may hold then
        if not begins and weakest >= 0:
            let_go(w, weakest, -needed[3 * weakest + 1], -needed[3 * weakest + 2])
            begins = True
        if not begins:
            # complementarity holds all: the forces of the mode are another choice of redundant ones
            return SOUND
    return ENDLESS


@nested
def stays_down(w, goes, needed):
    """Take those out of `goes` whose massless limbs, let go and held, would sink; return how it ended."""
    closed, massless = flags(w, AT.closed), flags(w, AT.massless)
    v, trouble = vector(w, AT.v), vector(w, AT.trouble)
    W, held = matrix(w, AT.W), matrix(w, AT.held_rows)
    kept, mode_counts = whole(w, AT.kept), whole(w, AT.mode_counts)
    if whole(w, AT.limbs)[0] == 0:
        return SOUND
    largest = 0.0
    for j in range(needed.size):
        largest = max(largest, abs(needed[j]))
    for i in range(closed.size):
        closed[i] = closed[i] and not goes[i]
    choose(w)
    count = free_motions(w, kept, mode_counts[KEPT_ROWS])
    left, code = v.copy(), SOUND
    for b in range(count):
        along = dot(held[b], v)
        for j in range(v.size):
            left[j] -= along * held[b, j]
    for i in range(closed.size):
        if not goes[i]:
            continue
        closed[i] = True
        if massless[i] and dot(W[3 * i], left) < 0.0:
            goes[i] = False
            if needed[3 * i] < -CLINGS * (1.0 + largest):
                trouble[CONTACT], trouble[NUMBER], code = i, -needed[3 * i], CLINGING
    choose(w)
    return code


@nested
def static_applies(w, i):
    """Return whether a contact that does not slide sticks: it has friction, or its limit is given."""
    gapped = flags(w, AT.gapped)
    return not gapped[i] or static(w, i) > 0.0


@nested
def choose_at(w):
    """Choose independent rows of the mode at w.q, w.v."""
    time, clock = vector(w, AT.time), vector(w, AT.clock)
    calls = whole_matrix(w, AT.calls)
    time[0] = clock[T]
    invoke(calls[TERMS, 0], calls[TERMS, 1], calls[TERMS, 2])
    choose(w)


@nested
def limit_of(times, t):
    """Return the limit of a sequence of impacts, the last at t, if it is a steady one that ends soon, or 0."""
    all_times = np.zeros(KNOWN)
    for j in range(KNOWN - 1):
        all_times[j] = times[j + 1]
    all_times[KNOWN - 1] = t
    for j in range(KNOWN):
        if not np.isfinite(all_times[j]):
            return 0.0
    low, high, p, last = np.inf, 0.0, 0.0, 0.0
    for j in range(KNOWN - 1):
        interval = all_times[j + 1] - all_times[j]
        if not interval > 0.0:
            return 0.0
        if j > 0:
            p = interval / last
            low, high = min(low, p), max(high, p)
        last = interval
    if p >= 1.0 or high - low > STEADY or last * p / (1.0 - p) > SHORT:
        return 0.0
    return t + last * p / (1.0 - p)


@nested
def do_impact(w):
    """Let touching contacts collide, close those that do not separate, settle; return how it ended."""
    limits, q0, v0 = vector(w, AT.limits), vector(w, AT.q0), vector(w, AT.v0)
    time, v, clock = vector(w, AT.time), vector(w, AT.v), vector(w, AT.clock)
    velocity, rests, gaps = vector(w, AT.velocity), vector(w, AT.rests), vector(w, AT.gaps)
    slow, gain = vector(w, AT.slow), vector(w, AT.gain)
    impulses, row_impulses, impact = vector(w, AT.impulses), vector(w, AT.row_impulses), vector(w, AT.impact)
    closed, gapped, slides = flags(w, AT.closed), flags(w, AT.gapped), flags(w, AT.slides)
    massless = flags(w, AT.massless)
    calls = whole_matrix(w, AT.calls)
    tally, load_row, tangents = whole(w, AT.tally), whole(w, AT.load_row), whole(w, AT.tangents)
    struck, direction, W = matrix(w, AT.struck), matrix(w, AT.direction), matrix(w, AT.W)
    k, n, t = closed.size, v.size, clock[T]
    set_state(w, q0, v0)
    time[0] = t
    invoke(calls[TERMS, 0], calls[TERMS, 1], calls[TERMS, 2])
    before, size = velocity.copy(), 1.0
    for j in range(3 * k):
        if gapped[j // 3]:
            size = max(size, abs(before[j]))
    touching, plastic, limit = np.zeros(k, np.bool_), np.zeros(k, np.bool_), np.zeros(k)
    for i in range(k):
        touching[i] = not gapped[i] or closed[i] or (gaps[i] <= TOUCHING and before[3 * i] <= STILL * size)
        if gapped[i]:
            limit[i] = limit_of(struck[i], t)
            plastic[i] = limit[i] > 0.0
    see_limbs(w)
    for i in range(k):
        plastic[i] = plastic[i] or massless[i]
    fill(impact, 0.0)
    fill(row_impulses, 0.0)
    after, start = np.zeros(n), v0.copy()
    if limits[SEQUENTIAL]:
        total, one = np.zeros(3 * k), np.zeros(k, np.bool_)
        code = ENDLESS
        for _ in range(10_000):
            worst, slowest = -1, np.inf
            fastest = 1.0
            for i in range(k):
                if gapped[i]:
                    fastest = max(fastest, abs(velocity[3 * i]))
            for i in range(k):
                if gapped[i] and touching[i] and velocity[3 * i] < slowest:
                    worst, slowest = i, velocity[3 * i]
            if worst < 0 or slowest >= -1e-12 * fastest:
                code = SOUND
                break
            fill(one, False)
            one[worst] = True
            code = strike(w, one, plastic, impulses, after)
            if code != SOUND:
                return code
            total += impulses
            copy_to(v, after)
            invoke(calls[TERMS, 0], calls[TERMS, 1], calls[TERMS, 2])
            code = ENDLESS
        if code != SOUND:
            return code
        copy_to(impulses, total)
        copy_to(after, v)
    else:
        code = strike(w, touching, plastic, impulses, after)
        if code != SOUND:
            return code
    # notes of impacts, and of those that pile up
    piled = False
    for i in range(k):
        if not gapped[i]:
            continue
        if impulses[3 * i] > 0.0 or (massless[i] and touching[i] and before[3 * i] < -STILL):
            if before[3 * i] < -STILL:
                if limit[i] > 0.0 or massless[i]:
                    fill(struck[i], np.nan)
                else:
                    for j in range(KNOWN - 1):
                        struck[i, j] = struck[i, j + 1]
                    struck[i, KNOWN - 1] = t
                note(w, t, i, OPEN, IMPACT)
            if limit[i] > 0.0:
                rests[i] = max(limit[i], t)
        piled = piled or (limit[i] > 0.0 and touching[i] and before[3 * i] < -STILL)
    copy_to(v0, after)
    set_state(w, q0, v0)
    invoke(calls[TERMS, 0], calls[TERMS, 1], calls[TERMS, 2])
    # what the contacts take: P . (u- + u+) / 2; what they do to the system: P . W (v- + v+) / 2
    heat = work = 0.0
    for j in range(3 * k):
        if gapped[j // 3] or load_row[j // 3] >= 0:
            heat -= 0.5 * impulses[j] * (before[j] + velocity[j])
            for b in range(n):
                work += 0.5 * impulses[j] * W[j, b] * (start[b] + after[b])
    stays = np.zeros(k, np.bool_)
    for i in range(k):
        stays[i] = touching[i] and velocity[3 * i] <= (SLOW if piled else STILL * size)
        if gapped[i] and stays[i] and not closed[i]:
            note(w, t, i, OPEN, CLOSED)
    for i in range(k):
        if gapped[i] and closed[i] and not stays[i]:
            note(w, t, i, CLOSED, OPEN)
    for i in range(k):
        word = word_of(w, i)
        if gapped[i]:
            closed[i] = stays[i]
        x, y = velocity[3 * i + 1], velocity[3 * i + 2]
        speed = np.sqrt(x * x + y * y)
        if not closed[i] or tangents[i] == 0 or (gapped[i] and not static(w, i) > 0.0):
            slides[i] = False
        elif gapped[i]:
            slides[i], slow[i] = speed > STILL, 0.0
            if slides[i]:
                direction[i, 0], direction[i, 1] = x / speed, y / speed
        else:
            moving = speed > REST_PART * terms_of(w, i) and speed > 0.0
            slides[i], slow[i] = moving, 0.0
            if moving:
                direction[i, 0], direction[i, 1] = x / speed, y / speed
            if word_of(w, i) != word:
                note(w, t, i, word, word_of(w, i))
    sticks = np.zeros(k, np.bool_)
    for i in range(k):
        sticks[i] = closed[i] and gapped[i] and not slides[i]
    code = do_settle(w)
    for i in range(k):
        if sticks[i] and closed[i] and slides[i]:
            note(w, t, i, STICK, SLIP)
    clock[HEAT_SUM] += heat
    clock[FRICTION_SUM] += work
    certify(w, start)
    if heat < -2.0 * limits[GAIN] * impact[ENERGY_BEFORE]:
        if tally[GAINS] == 0:
            gain[0], gain[1] = -heat, t
        tally[GAINS] += 1
    return code


@nested
def certify(w, start):
    """Write kinetic energies before and after an impact, and what its balance of momentum misses.

    M (v+ - v-) + A^T L = W^T P, with velocities as they are after contacts have closed, relative to its terms.
    """
    impulses, row_impulses, impact = vector(w, AT.impulses), vector(w, AT.row_impulses), vector(w, AT.impact)
    M, A, W, v0 = matrix(w, AT.M), matrix(w, AT.A), matrix(w, AT.W), vector(w, AT.v0)
    n, before, after, worst, data = v0.size, 0.0, 0.0, 0.0, 0.0
    for i in range(n):
        held, pushed = dot(M[i], start), 0.0
        moved = dot(M[i], v0)
        before, after = before + 0.5 * start[i] * held, after + 0.5 * v0[i] * moved
        missing = moved - held
        for row in range(A.shape[0]):
            missing += A[row, i] * row_impulses[row]
        for row in range(W.shape[0]):
            missing -= W[row, i] * impulses[row]
            pushed = max(pushed, abs(W[row, i] * impulses[row]))
        worst, data = max(worst, abs(missing)), max(data, abs(held), abs(moved), pushed)
    impact[MOMENTUM] = worst / data if data > 0.0 else 0.0
    impact[ENERGY_BEFORE], impact[ENERGY_AFTER] = before, after


@nested
def terms_of(w, i):
    """Return the size of the terms that the relative velocity of a contact is summed from."""
    v, velocity = vector(w, AT.v), vector(w, AT.velocity)
    W = matrix(w, AT.W)
    total = 0.0
    for j in range(1, 3):
        size, sum_of = 0.0, 0.0
        for b in range(v.size):
            size += abs(W[3 * i + j, b] * v[b])
            sum_of += W[3 * i + j, b] * v[b]
        size += abs(velocity[3 * i + j] - sum_of)
        total += size * size
    return np.sqrt(total)


@nested
def do_change(w):
    """Let those come to rest whose sliding has ended; open, and let slide, what must; return how it ended."""
    q0, v0, time = vector(w, AT.q0), vector(w, AT.v0), vector(w, AT.time)
    clock, velocity = vector(w, AT.clock), vector(w, AT.velocity)
    closed, slides = flags(w, AT.closed), flags(w, AT.slides)
    calls = whole_matrix(w, AT.calls)
    direction, letting = matrix(w, AT.direction), matrix(w, AT.letting)
    tangents = whole(w, AT.tangents)
    k, t = closed.size, clock[T]
    old = np.zeros(k, np.int64)
    set_state(w, q0, v0)
    time[0] = t
    invoke(calls[TERMS, 0], calls[TERMS, 1], calls[TERMS, 2])
    for i in range(k):
        old[i] = word_of(w, i)
    arrived = False
    for i in range(k):
        if closed[i] and slides[i]:
            x, y = velocity[3 * i + 1], velocity[3 * i + 2]
            along = x * direction[i, 0] + y * direction[i, 1]
            if along > 0.0:
                continue
            if tangents[i] == 2 and np.sqrt(x * x + y * y) > max(STILL, 1e-6 * terms_of(w, i)):
                continue  # its path has turned by a right angle: it slides on
            slides[i], arrived = False, True
    # those that let go although nothing is seen of it yet
    for i in range(k):
        if letting[i, 0] != 0.0 and closed[i] and not slides[i]:
            let_go(w, i, letting[i, 1], letting[i, 2])
        letting[i, 0] = 0.0
    # contacts that come to rest together
    for i in range(k):
        if arrived and closed[i] and slides[i]:
            x, y = velocity[3 * i + 1], velocity[3 * i + 2]
            if np.sqrt(x * x + y * y) <= REST_PART * terms_of(w, i):
                slides[i] = False
    code = do_settle(w)
    for i in range(k):
        new = word_of(w, i)
        if new != old[i] and new != OPEN and old[i] != OPEN:
            note(w, t, i, old[i], new)
    return code


SETTLE, COLLIDE, CHANGE = range(3)
"""Transitions."""


def _transition(address, first, stop, scratch):
    w = table_at(address, ROWS)
    arguments = vector(w, AT.arguments)
    which = arguments[FIRST]
    if which == SETTLE:
        code = do_settle(w)
    elif which == COLLIDE:
        code = do_impact(w)
    else:
        code = do_change(w)
    arguments[CODE] = code


transition_unit = Unit(_transition)


@nested
def transit(w, which):
    """Change the modes at the state of the run; return how it ended."""
    arguments, calls = vector(w, AT.arguments), whole_matrix(w, AT.calls)
    arguments[FIRST] = which
    invoke(calls[TRANSITION, 0], calls[TRANSITION, 1], calls[TRANSITION, 2])
    return int(arguments[CODE])


@nested
def follow(w):
    """Turn the directions of planes that slide with their velocities; what has got going is slow no longer."""
    closed, slides = flags(w, AT.closed), flags(w, AT.slides)
    tangents = whole(w, AT.tangents)
    velocity, slow = vector(w, AT.velocity), vector(w, AT.slow)
    direction = matrix(w, AT.direction)
    for i in range(closed.size):
        if closed[i] and slides[i] and tangents[i] == 2:
            x, y = velocity[3 * i + 1], velocity[3 * i + 2]
            size = np.sqrt(x * x + y * y)
            if size > slow[i]:
                slow[i] = 0.0
                if size > STILL:
                    direction[i, 0], direction[i, 1] = x / size, y / size


# ----------------------------------------------------------------------------------------------------------------------
# The loop.


@nested
def within_limit(w, i):
    """Return the force of a contact that sticks along one direction, without what it exceeds its limit by rounding."""
    reactions, lam, load = vector(w, AT.reactions), vector(w, AT.lam), vector(w, AT.load)
    gapped, load_row = flags(w, AT.gapped), whole(w, AT.load_row)
    N = reactions[3 * i] if gapped[i] else (abs(lam[load_row[i]]) if load_row[i] >= 0 else load[i])
    force, limit = reactions[3 * i + 1], static(w, i) * N
    rounding = limit < abs(force) <= limit + WEAK * (1.0 + limit)
    return limit * np.sign(force) if rounding else force


@nested
def record(w, h, work, heat, friction):
    """Write a sample of the motion that was solved last."""
    tally = whole(w, AT.tally)
    sample_t, time, q = vector(w, AT.sample_t), vector(w, AT.time), vector(w, AT.q)
    v, acceleration, lam = vector(w, AT.v), vector(w, AT.acceleration), vector(w, AT.lam)
    reactions, contact_rate = vector(w, AT.reactions), vector(w, AT.contact_rate)
    sample_q, sample_v, sample_a = matrix(w, AT.sample_q), matrix(w, AT.sample_v), matrix(w, AT.sample_a)
    sample_lam, sample_sums, sample_r = matrix(w, AT.sample_lam), matrix(w, AT.sample_sums), matrix(w, AT.sample_r)
    sample_u, velocity, tangents = matrix(w, AT.sample_u), vector(w, AT.velocity), whole(w, AT.tangents)
    closed, gapped, slides = flags(w, AT.closed), flags(w, AT.gapped), flags(w, AT.slides)
    sample_mode, direction = whole_matrix(w, AT.sample_mode), matrix(w, AT.direction)
    axes = cube(w, AT.axes)
    row = tally[SAMPLES]
    sample_t[row] = time[0]
    copy_to(sample_q[row], q)
    copy_to(sample_v[row], v)
    copy_to(sample_a[row], acceleration)
    copy_to(sample_lam[row], lam)
    for i in range(closed.size):
        # a plane is at rest where its velocity along the way that it came has ended
        arrived = (
            closed[i]
            and slides[i]
            and tangents[i] == 2
            and (velocity[3 * i + 1] * direction[i, 0] + velocity[3 * i + 2] * direction[i, 1] <= 0.0)
        )
        for j in range(3):
            sample_r[row, 3 * i + j] = reactions[3 * i + j]
            if j == 1 and tangents[i] == 1 and closed[i] and not slides[i]:
                sample_r[row, 3 * i + 1] = within_limit(w, i)
            # what sticks has no relative velocity, whatever rounding says
            held = closed[i] and (j == 0 or not (slides[i] or gapped[i]) or arrived)
            sample_u[row, 3 * i + j] = 0.0 if held else velocity[3 * i + j]
            if axes.shape[0] and gapped[i]:
                sample_r[row, 3 * i + j] = (
                    axes[i, 0, j] * reactions[3 * i]
                    + axes[i, 1, j] * reactions[3 * i + 1]
                    + axes[i, 2, j] * reactions[3 * i + 2]
                )
        word = word_of(w, i)
        if word == STICK and gapped[i] and not (reactions[3 * i] > 0.0 or contact_rate[3 * i] <= 0.0):
            word = OPEN
        sample_mode[row, i] = word
    sample_sums[row, 0], sample_sums[row, 1], sample_sums[row, 2], sample_sums[row, 3] = work, heat, friction, h
    record_verdict(w, row)
    tally[SAMPLES] += 1


@nested
def record_verdict(w, row):
    """Write status and residual of the last solve, impulses and certificate of the impact that led here, if one did."""
    mode_counts, holonomic = whole(w, AT.mode_counts), whole(w, AT.holonomic)
    impulses, impact, powers = vector(w, AT.impulses), vector(w, AT.impact), vector(w, AT.powers)
    sample_verdict, sample_impulse = matrix(w, AT.sample_verdict), matrix(w, AT.sample_impulse)
    sample_impact, axes = matrix(w, AT.sample_impact), cube(w, AT.axes)
    status = REDUNDANT_ROWS if mode_counts[KEPT_CONSTRAINTS] < holonomic.size or mode_counts[REDUNDANT] else UNIQUE
    sample_verdict[row, 0] = HELD_STILL if mode_counts[HELD] > 0 else status
    sample_verdict[row, 1] = powers[RESIDUAL]
    for i in range(impulses.size // 3):
        for j in range(3):
            sample_impulse[row, 3 * i + j] = impulses[3 * i + j]
            if axes.shape[0]:
                sample_impulse[row, 3 * i + j] = (
                    axes[i, 0, j] * impulses[3 * i]
                    + axes[i, 1, j] * impulses[3 * i + 1]
                    + axes[i, 2, j] * impulses[3 * i + 2]
                )
    copy_to(sample_impact[row], impact)
    fill(impulses, 0.0)
    fill(impact, 0.0)


@nested
def record_here(w, h):
    """Write a sample of the state of the run, whose motion was solved last."""
    q0, v0, q = vector(w, AT.q0), vector(w, AT.v0), vector(w, AT.q)
    v, time, clock = vector(w, AT.v), vector(w, AT.time), vector(w, AT.clock)
    copy_to(q, q0)
    copy_to(v, v0)
    time[0] = clock[T]
    record(w, h, clock[WORK], clock[HEAT_SUM], clock[FRICTION_SUM])


@nested
def keep(w):
    """Note that all up to here counts, and all that the run needs to go on from here."""
    q0, v0, clock = vector(w, AT.q0), vector(w, AT.v0), vector(w, AT.clock)
    gain, kept_q, kept_v = vector(w, AT.gain), vector(w, AT.kept_q), vector(w, AT.kept_v)
    kept_clock, kept_more, rests = vector(w, AT.kept_clock), vector(w, AT.kept_more), vector(w, AT.rests)
    signs, slow, sign = vector(w, AT.signs), vector(w, AT.slow), vector(w, AT.sign)
    tally, kept, kept_counts = whole(w, AT.tally), whole(w, AT.kept), whole(w, AT.kept_counts)
    kept_rows, mode_counts = whole(w, AT.kept_rows), whole(w, AT.mode_counts)
    closed, slides = flags(w, AT.closed), flags(w, AT.slides)
    kept_struck, kept_modes, direction = matrix(w, AT.kept_struck), matrix(w, AT.kept_modes), matrix(w, AT.direction)
    struck = matrix(w, AT.struck)
    tally[COMPLETE], tally[COMPLETE_EVENTS] = tally[SAMPLES], tally[EVENT_COUNT]
    copy_to(kept_q, q0)
    copy_to(kept_v, v0)
    copy_to(kept_clock, clock)
    copy_to(kept_counts, tally)
    for i in range(closed.size):
        kept_modes[i, 0], kept_modes[i, 1] = closed[i], slides[i]
        kept_modes[i, 2], kept_modes[i, 3] = direction[i, 0], direction[i, 1]
        kept_modes[i, 4], kept_modes[i, 5] = slow[i], sign[i]
        for j in range(KNOWN):
            kept_struck[i, j] = struck[i, j]
        kept_struck[i, KNOWN] = rests[i]
    kept_rows[: kept.size] = kept
    for j in range(mode_counts.size):
        kept_rows[kept.size + j] = mode_counts[j]
    kept_more[:2] = gain
    for k in range(signs.size):
        kept_more[2 + k] = signs[k]


@nested
def rest(w, t):
    """Note the end of impacts that pile up, where it is due."""
    closed = flags(w, AT.closed)
    rests = vector(w, AT.rests)
    for i in range(closed.size):
        if rests[i] <= t:
            if closed[i]:
                note(w, rests[i], i, IMPACTS, REST)
            rests[i] = np.inf


@nested
def asked(w, k):
    """Return the time of sample k; what misses the end of the run by rounding is the end."""
    clock = vector(w, AT.clock)
    t = clock[START] + k * clock[EVERY]
    return clock[END] if abs(t - clock[END]) <= 8 * 2.2e-16 * max(abs(clock[START]), abs(clock[END])) else t


@nested
def touches(w):
    """Return whether something touches and does not separate, at the state of the run."""
    q0, v0, time = vector(w, AT.q0), vector(w, AT.v0), vector(w, AT.time)
    clock, gaps, velocity = vector(w, AT.clock), vector(w, AT.gaps), vector(w, AT.velocity)
    calls = whole_matrix(w, AT.calls)
    closed, gapped = flags(w, AT.closed), flags(w, AT.gapped)
    set_state(w, q0, v0)
    time[0] = clock[T]
    invoke(calls[TERMS, 0], calls[TERMS, 1], calls[TERMS, 2])
    found = False
    for i in range(closed.size):
        found = found or (gapped[i] and gaps[i] <= TOUCHING and velocity[3 * i] <= STILL)
    return found


@nested
def first_modes(w):
    """Let contacts without a gap slide where they move, at the state of the run."""
    q0, v0, time = vector(w, AT.q0), vector(w, AT.v0), vector(w, AT.time)
    clock, velocity = vector(w, AT.clock), vector(w, AT.velocity)
    calls = whole_matrix(w, AT.calls)
    closed, slides, gapped = flags(w, AT.closed), flags(w, AT.slides), flags(w, AT.gapped)
    direction = matrix(w, AT.direction)
    set_state(w, q0, v0)
    time[0] = clock[T]
    invoke(calls[TERMS, 0], calls[TERMS, 1], calls[TERMS, 2])
    for i in range(closed.size):
        closed[i] = not gapped[i]
        x, y = velocity[3 * i + 1], velocity[3 * i + 2]
        speed = np.sqrt(x * x + y * y)
        slides[i] = closed[i] and speed > REST_PART * terms_of(w, i)
        if slides[i]:
            direction[i, 0], direction[i, 1] = x / speed, y / speed
    choose(w)


@nested
def start(w, watched):
    """Begin a run: contacts that touch collide or close, others find out whether they stick; return how it ended."""
    clock = vector(w, AT.clock)
    first_modes(w)
    if whole(w, AT.limbs)[0]:
        code = project(w, clock[T])
        if code != SOUND:
            return code
        copy_to(vector(w, AT.q0), vector(w, AT.q))
        copy_to(vector(w, AT.v0), vector(w, AT.v))
    if touches(w):
        code = here(w)
        if code != SOUND:
            return code
        record_here(w, 0.0)
        keep(w)
        code = transit(w, COLLIDE)
    else:
        code = transit(w, SETTLE)
    if code != SOUND:
        return code
    rest(w, clock[T])
    code = here(w)
    if code != SOUND:
        return code
    record_here(w, 0.0)
    fired = np.zeros(max(watched, 1), np.bool_)
    if not note_signs(w, watched, fired, False):
        return CALLBACK
    keep(w)
    return SOUND


@nested
def plane_limit(w):
    """Return the longest step that planes about to rest allow: half of the way; 0 where one is at rest now."""
    closed, slides = flags(w, AT.closed), flags(w, AT.slides)
    tangents = whole(w, AT.tangents)
    slow, velocity, limits = vector(w, AT.slow), vector(w, AT.velocity), vector(w, AT.limits)
    contact_rate, clock = vector(w, AT.contact_rate), vector(w, AT.clock)
    longest = np.inf
    for i in range(closed.size):
        if closed[i] and slides[i] and tangents[i] == 2 and slow[i] == 0.0:
            x, y = velocity[3 * i + 1], velocity[3 * i + 2]
            slowing = -(x * contact_rate[3 * i + 1] + y * contact_rate[3 * i + 2])
            # only where the path bends: a straight one ends at a zero of its speed
            bend = abs(x * contact_rate[3 * i + 2] - y * contact_rate[3 * i + 1])
            if slowing > 0.0 and bend > 1e-9 * slowing:
                left = (x * x + y * y) / slowing
                if left <= max(limits[EVENT_TOLERANCE], 8 * 2.2e-16 * abs(clock[T])):
                    return 0.0
                longest = min(longest, 0.5 * left)
    return longest


@nested
def rest_planes(w):
    """Let planes that are at rest but for less than the tolerance come to rest; return how it ended."""
    closed, slides = flags(w, AT.closed), flags(w, AT.slides)
    clock, velocity, limits = vector(w, AT.clock), vector(w, AT.velocity), vector(w, AT.limits)
    contact_rate = vector(w, AT.contact_rate)
    tangents = whole(w, AT.tangents)
    k, t = closed.size, clock[T]
    old = np.zeros(k, np.int64)
    for i in range(k):
        old[i] = word_of(w, i)
        if closed[i] and slides[i] and tangents[i] == 2:
            x, y = velocity[3 * i + 1], velocity[3 * i + 2]
            slowing = -(x * contact_rate[3 * i + 1] + y * contact_rate[3 * i + 2])
            if slowing > 0.0 and (x * x + y * y) / slowing <= max(limits[EVENT_TOLERANCE], 8 * 2.2e-16 * abs(t)):
                slides[i] = False
    code = transit(w, SETTLE)
    for i in range(k):
        new = word_of(w, i)
        if new != old[i] and new != OPEN and old[i] != OPEN:
            note(w, t, i, old[i], new)
    return code


@nested
def advance(w, watched, loose_all, most):
    """Go on until the stop of this segment; return why it came back; how the last solve ended is in `arguments`."""
    arguments = vector(w, AT.arguments)
    q0, v0, clock = vector(w, AT.q0), vector(w, AT.v0), vector(w, AT.clock)
    sample_t = vector(w, AT.sample_t)
    tally = whole(w, AT.tally)
    events = matrix(w, AT.events)
    ready, fired = np.zeros(1, np.bool_), np.zeros(max(watched, 1), np.bool_)
    set_state(w, q0, v0)
    code = here(w)
    if code != SOUND:
        clock[FAILED_AT] = clock[T]
        arguments[CODE] = code
        return FAILURE
    taken = 0
    while clock[T] < clock[STOP]:
        if tally[SAMPLES] >= sample_t.size // 2 or tally[EVENT_COUNT] >= events.shape[0] // 2:
            arguments[CODE] = SOUND
            return FULL
        if taken >= most:
            arguments[CODE] = SOUND
            return STEPS_TAKEN
        code = step(w, watched, loose_all, ready, fired)
        if code == ENDED:
            arguments[CODE] = SOUND
            return ENDED
        if code != SOUND:
            arguments[CODE] = code
            return FAILURE
        keep(w)
        taken += 1
    arguments[CODE] = SOUND
    return DONE


@nested
def accepted_in_cells(w, h):
    """Take a step that meets the tolerance; closed contacts with heightfields end it right before an edge.

    Return how it ended, its length, and whether an edge is at its end.
    """
    q0, v0, q1 = vector(w, AT.q0), vector(w, AT.v0), vector(w, AT.q1)
    v1, sums, clock = vector(w, AT.v1), vector(w, AT.sums), vector(w, AT.clock)
    field_pair, tally, closed = whole(w, AT.field_pair), whole(w, AT.tally), flags(w, AT.closed)
    stages = matrix(w, AT.stages)
    count, at_hand = field_pair.size, False
    if count == 0:
        code, h = accepted(w, h)
        return code, h, False
    terms_at(w, q0, v0, clock[T])
    rooms, leaving = np.zeros(count), np.zeros(count, np.bool_)
    for f in range(count):
        if closed[field_pair[f]]:
            if on_edge(w, f, cube(w, AT.axes)[field_pair[f], 0]):
                tally[WHO] = field_pair[f]
                return ROLLING, h, False
            set_cell(w, f)
            rooms[f], leaving[f] = room_in(w, f), leaves(w, f)
            at_hand = at_hand or (rooms[f] <= BEYOND and leaving[f])
    if at_hand:
        copy_to(q1, q0)
        copy_to(v1, v0)
        fill(sums, 0.0)
        return SOUND, 0.0, True
    code, h = accepted(w, min(h, longest_step(w)))
    if code != SOUND:
        return code, h, False
    terms_at(w, q1, v1, clock[T] + h)
    ends, first, K_kept = np.zeros(count), h, stages.copy()
    for f in range(count):
        ends[f] = room_in(w, f) if closed[field_pair[f]] else 0.0
    found = False
    for f in range(count):
        if ends[f] >= 0.0 or (ends[f] >= -BEYOND and not leaving[f]):
            continue
        code, at = locate(w, EDGE, f, 1.0, 0.0, h, rooms[f], ends[f], WIDTH)
        copy_rows(stages, K_kept)
        # right before it
        back, before = WIDTH, 0.0
        while code == SOUND and at - back > 0.0:
            code, room = guard(w, EDGE, f, 1.0, at - back)
            copy_rows(stages, K_kept)
            if room > 0.0:
                before = at - back
                break
            back *= 2.0
        if code != SOUND:
            return code, h, False
        first, found = min(first, before), True
    if not found:
        return SOUND, h, False
    if first > 0.0:
        code, _ = shot(w, first, True)
        return code, first, True
    copy_to(q1, q0)
    copy_to(v1, v0)
    fill(sums, 0.0)
    return SOUND, 0.0, True


@nested
def step_behind(w):
    """Move the state of the run right behind the edge before which it is; return how it ended.

    A foot that turns back at the edge does not cross it: the state stays.
    """
    q0, v0, clock = vector(w, AT.q0), vector(w, AT.v0), vector(w, AT.clock)
    chart_base, way, moved = vector(w, AT.chart_base), vector(w, AT.way), vector(w, AT.moved)
    field_pair, tally, closed = whole(w, AT.field_pair), whole(w, AT.tally), flags(w, AT.closed)
    calls, axes = whole_matrix(w, AT.calls), cube(w, AT.axes)
    terms_at(w, q0, v0, clock[T])
    normals, before = np.zeros((field_pair.size, 3)), np.inf
    for f in range(field_pair.size):
        copy_to(normals[f], axes[field_pair[f], 0])
        if closed[field_pair[f]]:
            before = min(before, room_in(w, f))
    time, room = WIDTH, np.inf
    for _ in range(DOUBLINGS):
        copy_to(chart_base, q0)
        for j in range(v0.size):
            way[j] = time * v0[j]
        invoke(calls[ALONG, 0], calls[ALONG, 1], calls[ALONG, 2])
        terms_at(w, moved, v0, clock[T])
        room = np.inf
        for f in range(field_pair.size):
            if closed[field_pair[f]]:
                room = min(room, room_in(w, f))
        if room < 0.0 or room > before + BEYOND:
            break
        time *= 2.0
    if room >= 0.0:
        return SOUND
    copy_to(q0, moved)
    for f in range(field_pair.size):
        if closed[field_pair[f]] and on_edge(w, f, normals[f]):
            tally[WHO] = field_pair[f]
            return ROLLING
    return SOUND


@nested
def step(w, watched, loose_all, ready, fired):
    """Take one step, or part of one up to an event; return how it ended."""
    closed, gapped, pair_bounded = flags(w, AT.closed), flags(w, AT.gapped), flags(w, AT.pair_bounded)
    clock, limits, late = vector(w, AT.clock), vector(w, AT.limits), vector(w, AT.late)
    rests, q0, v0 = vector(w, AT.rests), vector(w, AT.q0), vector(w, AT.v0)
    q1, v1 = vector(w, AT.q1), vector(w, AT.v1)
    sums, q, v = vector(w, AT.sums), vector(w, AT.q), vector(w, AT.v)
    time, sample_t, signs = vector(w, AT.time), vector(w, AT.sample_t), vector(w, AT.signs)
    stages, events = matrix(w, AT.stages), matrix(w, AT.events)
    tally, zeros, terminal = whole(w, AT.tally), whole(w, AT.zeros), whole(w, AT.terminal)
    k = closed.size
    t, stop = clock[T], clock[STOP]
    clock[FAILED_AT] = t
    due = np.inf
    for i in range(k):
        due = min(due, rests[i])
    h = limits[FIXED_STEP] if limits[FIXED_STEP] > 0.0 else clock[H]
    h = min(h, stop - t, due - t, limits[LARGEST])
    if clock[EVERY] > 0.0:
        h = min(h, (sample_t.size // 4) * clock[EVERY])
    slow = plane_limit(w)
    if slow == 0.0:
        record_here(w, 0.0)
        keep(w)
        code = rest_planes(w)
        code = here(w) if code == SOUND else code
        if code == SOUND:
            record_here(w, 0.0)
            follow(w)
            return standstill(w, 0.0)
        return code
    h = min(h, slow)
    ready[0] = False
    code, h, edge = accepted_in_cells(w, h)
    if code != SOUND:
        return code
    # gaps with bounds
    strikes = False
    K_kept = stages.copy()
    for i in range(k):
        if gapped[i] and not closed[i] and pair_bounded[i] and h > 0.0:
            code, at, struck = gap_in(w, i, h, ready)
            if code != SOUND:
                return code
            if at < h or struck:
                copy_rows(stages, K_kept)
                ready[0] = False
                h, strikes, edge = at, struck, False
                if h > 0.0:
                    code, _ = shot(w, h, True)
                    if code != SOUND:
                        return code
                    copy_rows(K_kept, stages)
                else:
                    copy_to(q1, q0)
                    copy_to(v1, v0)
                    fill(sums, 0.0)
                    break
    # modes
    changed = False
    if h > 0.0:
        before = h
        copy_rows(K_kept, stages)
        code, h, changed = first_change(w, h)
        if code != SOUND:
            return code
        if changed:
            strikes, edge = strikes and h >= before, False
            ready[0] = False
            if watched or loose_all.size:
                code, _ = shot(w, h, True)
                if code != SOUND:
                    return code
        else:
            copy_rows(stages, K_kept)
    # the user's functions, and gaps without bounds
    count = 0
    loose = np.zeros(loose_all.size, np.int64)
    for j in range(loose_all.size):
        if not closed[loose_all[j]]:
            loose[count] = loose_all[j]
            count += 1
    loose = loose[:count]
    watching = False
    if watched or count:
        # a gap that has just opened without velocity begins at zero: it is looked at when it is open
        code, at, kind = first_watched(w, h, watched, loose, ready, fired)
        if code != SOUND:
            return code
        if kind > -2:
            if at < h:
                changed, strikes, edge = False, False, False
            h = at
            if h > 0.0:
                code, _ = shot(w, h, False)
                if code != SOUND:
                    return code
            else:
                copy_to(q1, q0)
                copy_to(v1, v0)
                fill(sums, 0.0)
            watching = kind == -1
            strikes = strikes or kind >= 0
    # samples at asked times on the way are steps of their own
    end = t + h
    if not (changed or strikes or edge):
        if end >= stop - 1e-15 * abs(stop):
            end = stop
        elif due - end <= 1e-15 * abs(end):
            end = due
    if clock[EVERY] > 0.0:
        finish_q, finish_v, finish = q1.copy(), v1.copy(), sums.copy()
        while asked(w, tally[NEXT]) < end:
            at = asked(w, tally[NEXT])
            tally[NEXT] += 1
            if at <= t:
                continue
            set_state(w, q0, v0)
            code = here(w)
            if code == SOUND:
                code, _ = shot(w, at - t, False)
            if code != SOUND:
                return code
            set_state(w, q1, v1)
            code = motion(w, at, True)
            if code != SOUND:
                return code
            q[:], v[:], time[0] = q1, v1, at
            record(w, 0.0, clock[WORK] + sums[0], clock[HEAT_SUM] + sums[1], clock[FRICTION_SUM] + sums[2])
        copy_to(q1, finish_q)
        copy_to(v1, finish_v)
        copy_to(sums, finish)
    code = go(w, h)
    clock[T] = end
    clock[FAILED_AT] = end
    if code != SOUND:
        return code
    code = paradox(w)
    if code != SOUND:
        return code
    rest(w, end)
    if watching:
        for e in range(watched):
            if fired[e]:
                if tally[EVENT_COUNT] < events.shape[0]:
                    row = events[tally[EVENT_COUNT]]
                    row[0], row[1], row[2], row[3] = end, e, NOTHING, RISING if signs[e] < 0 else FALLING
                    tally[EVENT_COUNT] += 1
                zeros[e] += 1
    jump = changed or strikes or edge
    if jump:
        record_here(w, h)
        if clock[EVERY] > 0.0 and asked(w, tally[NEXT]) == end:
            tally[NEXT] += 1
        keep(w)
        if strikes or edge:
            code = SOUND if strikes else step_behind(w)
            code = transit(w, COLLIDE) if code == SOUND else code
            rest(w, end)
        else:
            code = transit(w, CHANGE)
        if code == SOUND:
            code = here(w)
        if code != SOUND:
            return code
    follow(w)
    wanted = clock[EVERY] > 0.0 and asked(w, tally[NEXT]) == end and end < clock[END]
    if wanted and not jump:
        tally[NEXT] += 1
    if jump or watching or wanted or clock[EVERY] == 0.0 or end >= clock[END]:
        record_here(w, 0.0 if jump else h)
    if not note_signs(w, watched, fired, watching):
        return CALLBACK
    tally[STEPS] += 1
    code = standstill(w, h)
    if (changed or edge) and not strikes:
        for j in range(late.size - 1):
            late[j] = late[j + 1]
        late[late.size - 1] = end
        if code == SOUND and end - late[0] <= CHATTER_TIME * (clock[END] - clock[START]):
            return CHATTERING
    if code == SOUND and watching:
        for e in range(watched):
            if fired[e] and terminal[e] > 0 and zeros[e] >= terminal[e]:
                tally[WHO] = e
                keep(w)
                return ENDED
    return code


@nested
def standstill(w, h):
    """Count events without a step; return whether they go on."""
    tally = whole(w, AT.tally)
    tally[STANDING] = 0 if h > 0.0 else tally[STANDING] + 1
    if tally[STANDING] > AT_ONCE:
        return STANDSTILL
    return SOUND


@nested
def settle_here(w):
    """Decide modes anew at the state of the run, and note changes; return how it ended."""
    closed, clock = flags(w, AT.closed), vector(w, AT.clock)
    k = closed.size
    old = np.zeros(k, np.int64)
    for i in range(k):
        old[i] = word_of(w, i)
    code = transit(w, SETTLE)
    for i in range(k):
        new = word_of(w, i)
        if new != old[i] and new != OPEN and old[i] != OPEN:
            note(w, clock[T], i, old[i], new)
    keep(w)
    return code


@nested
def evaluate_here(w):
    """Write the terms at the state of the run."""
    time, clock, calls = vector(w, AT.time), vector(w, AT.clock), whole_matrix(w, AT.calls)
    set_state(w, vector(w, AT.q0), vector(w, AT.v0))
    time[0] = clock[T]
    invoke(calls[TERMS, 0], calls[TERMS, 1], calls[TERMS, 2])


BEGIN, GO_ON, DECIDE, EVALUATE, FIND_MODES = range(5)
"""What the driver asks for."""


def _command(address, first, stop, scratch):
    w = table_at(address, ROWS)
    arguments, loose, watched = vector(w, AT.arguments), whole(w, AT.loose), vector(w, AT.direction_of).size
    which = arguments[FIRST]
    if which == BEGIN:
        arguments[CODE] = start(w, watched)
    elif which == GO_ON:
        arguments[RESULT] = advance(w, watched, loose, int(arguments[SECOND]))
    elif which == DECIDE:
        arguments[CODE] = settle_here(w)
    elif which == EVALUATE:
        evaluate_here(w)
    else:
        first_modes(w)


command_unit = Unit(_command)
