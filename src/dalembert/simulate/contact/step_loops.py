"""One step of a Runge-Kutta method in a mode, compiled: stages in a chart, error, projection, the polynomial inside."""

# pyright: reportCallIssue=false, reportArgumentType=false

from __future__ import annotations

import numpy as np

from dalembert.kernel.array_loops import copy_to, factor, fill, substitute
from dalembert.kernel.loops import invoke, nested
from dalembert.kernel.views import Unit, flags, matrix, table_at, vector, whole, whole_matrix
from dalembert.simulate.contact.cone_loops import paradox
from dalembert.simulate.contact.engine_memory import (
    AT,
    ATOL,
    CALLBACK,
    CHART,
    CODE,
    COLLAPSED,
    EVALUATIONS,
    FAILED,
    FIRST,
    FIXED_STEP,
    FORCE_UNIT,
    FRICTION_SUM,
    FRICTION_WORK,
    HEAT,
    HEAT_SUM,
    IMPLICIT,
    LAST_RATIO,
    LAST_STEP,
    LENGTH_UNIT,
    NOT_FINITE,
    ORDER,
    POWER,
    REJECTED,
    RESULT,
    ROWS,
    RTOL,
    SECOND,
    SHOT,
    SIZED,
    SOUND,
    WORK,
    H,
    T,
)
from dalembert.simulate.contact.mode_loops import margins, motion
from dalembert.simulate.contact.projection_loops import project
from dalembert.simulate.limits import (
    COLLAPSE,
    FAR_STAGE,
    GROW,
    LEAST_SIZE,
    LEAST_STEP,
    SAFETY,
    SHORTEST,
    SHRINK,
    STAGE_DIFFERENCE,
    STAGE_ITERATIONS,
    STAGES_SOLVED,
)

TRIALS = 80
"""Rejected steps in a row, and trials for one zero, at most."""

LEAST_RATIO = 1e-2
"""Errors below this part of the tolerance say nothing of how they grow."""

GAMMA = (6.0 + 81.0 ** (1.0 / 3.0) - 9.0 ** (1.0 / 3.0)) / 30.0
"""Inverse of the real eigenvalue of Radau's A^-1, with which its error estimate is filtered."""

RADAU_E = np.array([-13.0 - 7.0 * 6.0**0.5, -13.0 + 7.0 * 6.0**0.5, -1.0]) / 3.0
"""Weights of its stages in the error estimate."""


# ----------------------------------------------------------------------------------------------------------------------
# States and rates.


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
        if not abs(stage_y[j]) < FAR_STAGE:
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


# ----------------------------------------------------------------------------------------------------------------------
# Stages, and the error of a step.


@nested
def error_size(w, j):
    """Return what the error of component j of y is measured against, once the end of the step is in stage_y."""
    v0, q0 = vector(w, AT.v0), vector(w, AT.q0)
    stage_y, limits = vector(w, AT.stage_y), vector(w, AT.limits)
    n = v0.size
    if j >= n:
        return abs(v0[j - n])
    return max(abs(q0[j]), abs(stage_y[j] + q0[j])) if limits[SIZED] else 1.0


@nested
def tolerance(w, j):
    """Return the error that component j of y may have in a step, once the end of the step is in stage_y.

    Energies are measured by those of the system: its unit of force along its unit of length.
    """
    limits, clock, n = vector(w, AT.limits), vector(w, AT.clock), vector(w, AT.v0).size
    if j < 2 * n:
        return limits[ATOL] + limits[RTOL] * error_size(w, j)
    return limits[ATOL] * limits[FORCE_UNIT] * limits[LENGTH_UNIT] + limits[RTOL] * abs(clock[WORK + j - 2 * n])


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
    """Write the Jacobian (2 n + 3, 2 n) of the rate at the start of a step, by differences; return how it ended."""
    v0, q0, clock = vector(w, AT.v0), vector(w, AT.q0), vector(w, AT.clock)
    stage_y, limits, stages = vector(w, AT.stage_y), vector(w, AT.limits), matrix(w, AT.stages)
    n = v0.size
    for j in range(2 * n):
        fill(stage_y, 0.0)
        for i in range(n):
            stage_y[n + i] = v0[i]
        size = abs(v0[j - n]) if j >= n else abs(q0[j]) if limits[SIZED] else 1.0
        before = stage_y[j]
        stage_y[j] += STAGE_DIFFERENCE * max(size, LEAST_SIZE)
        step = stage_y[j] - before
        code = stage(w, clock[T], 1, False)
        if code != SOUND:
            return code
        for i in range(2 * n + 3):
            J[i, j] = (stages[1, i] - stages[0, i]) / step
    return SOUND


@nested
def implicit_stages(w, h, watch):
    """Solve the stages of Radau IIA by Newton's method; return how it ended, and the error over the tolerance.

    z_i = h sum_j a_ij rate(t + c_j h, y + z_j); the error is (1 - gamma h J)^-1 gamma (h rate(t, y) + sum_i e_i z_i)
    (Hairer, Wanner 1996, IV.8). Work and heat are sums: no rate depends on them, and their z need no equations.
    """
    v0, q0, clock = vector(w, AT.v0), vector(w, AT.q0), vector(w, AT.clock)
    stage_y, limits, rk_c = vector(w, AT.stage_y), vector(w, AT.limits), vector(w, AT.rk_c)
    stages, rk_a = matrix(w, AT.stages), matrix(w, AT.rk_a)
    n = v0.size
    m = 2 * n
    J, K, z, x = np.zeros((m + 3, m)), np.zeros((3 * m, 3 * m)), np.zeros((3, m)), np.zeros(3 * m)
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
    for _ in range(STAGE_ITERATIONS):
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
        if size <= STAGES_SOLVED or (size < 1.0 and size > 0.5 * before):
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
    for j in range(m, m + 3):
        error = h * stages[0, j]
        for i in range(3):
            for o in range(3):
                error += RADAU_E[i] * h * rk_a[1 + i, 1 + o] * stages[1 + o, j]
        error *= GAMMA
        for b in range(m):
            error += h * GAMMA * J[j, b] * x[b]
        total += (error / tolerance(w, j)) ** 2
    return SOUND, np.sqrt(total / (m + 3))


@nested
def explicit_error(w, h):
    """Return the error of a step over the tolerance: Hairer's for dop853; that of work and heat counts too.

    Without weights of order 3 it is the root mean square of those of the lower order.
    """
    stages = matrix(w, AT.stages)
    rk_fifth, rk_third = vector(w, AT.rk_fifth), vector(w, AT.rk_third)
    five = three = 0.0
    count = 2 * vector(w, AT.v0).size + 3
    for j in range(count):
        e5 = e3 = 0.0
        for i in range(rk_fifth.size):
            e5 += rk_fifth[i] * stages[i, j]
            e3 += rk_third[i] * stages[i, j]
        scale = tolerance(w, j)
        five += (e5 / scale) ** 2
        three += (e3 / scale) ** 2
    if five > 0.0 or three > 0.0:
        return abs(h) * five / np.sqrt((five + 0.01 * three) * count)
    return 0.0


# ----------------------------------------------------------------------------------------------------------------------
# One step.


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
            h *= SHRINK
            continue
        if ratio < 1.0 or limits[FIXED_STEP] > 0.0:
            best = SAFETY * ratio ** (-1.0 / limits[ORDER]) if ratio > 0.0 else GROW
            # errors that grow from step to step are seen coming (Gustafsson 1994; Hairer, Wanner 1996, IV.8.25)
            if clock[LAST_STEP] > 0.0 and ratio > 0.0:
                best *= min(1.0, h / clock[LAST_STEP] * (clock[LAST_RATIO] / ratio) ** (1.0 / limits[ORDER]))
            clock[LAST_STEP], clock[LAST_RATIO] = h, max(ratio, LEAST_RATIO)
            clock[H] = h * min(max(best, SHRINK), GROW)
            return SOUND, h
        tally[REJECTED] += 1
        h *= max(SHRINK, SAFETY * ratio ** (-1.0 / limits[ORDER]))
        if h <= COLLAPSE * abs(clock[T]) or h < LEAST_STEP:
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
def stay(w):
    """Make the start of the step its end."""
    copy_to(vector(w, AT.q1), vector(w, AT.q0))
    copy_to(vector(w, AT.v1), vector(w, AT.v0))
    fill(vector(w, AT.sums), 0.0)


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


# ----------------------------------------------------------------------------------------------------------------------
# Between the ends of a step.


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
