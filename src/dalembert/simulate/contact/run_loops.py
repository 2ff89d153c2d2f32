# pyright: reportCallIssue=false, reportArgumentType=false
"""Contacts from event to event, compiled: steps of order 8 in a mode, guards isolated and located, transitions, impacts.

    step in a mode ─► gap closes? force, cone or sliding speed reaches its end? user's zero? ─► located by steps of full
    order ─► impact ─► modes anew ─► step ...

The loop comes back when its buffers are full, steps have been taken, or something has no answer: then the driver
(`engine.py`) says why. Only what is complete counts (`keep`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dalembert.kernel.loops import compiled, invoke
from dalembert.simulate.contact.mode_loops import (
    CALLBACK,
    CHART,
    DOUBTFUL,
    EVENTS,
    FAILED,
    FRICTION_WORK,
    HEAT,
    NOT_FINITE,
    POWER,
    SOUND,
    TERMS,
    block,
    choose,
    decided,
    held,
    limit_factor,
    motion,
    other_rows,
    own_acceleration,
    project,
    set_directions,
    static,
    strike,
    substitute,
)
from dalembert.simulate.events.isolate_loops import CROSSING, GRID, QUIET, SPLIT, begin, insert, narrow, next_trial, verdict

# ----------------------------------------------------------------------------------------------------------------------
# Memory of a run.


DONE, FULL, STEPS_TAKEN, FAILURE, ENDED = range(20, 25)
"""Why the loop came back: end of the segment, buffers full, as many steps as asked for, no answer, a terminal event."""

PAINLEVE, DETACHED, COLLAPSED, ENDLESS, UNCERTAIN_GAP, STANDSTILL, PASSAGE, CHATTERING = range(30, 38)
"""What has no answer, beside the codes of `mode_loops`."""

T, H, STOP, END, START, EVERY, WORK, HEAT_SUM, FRICTION_SUM, FAILED_AT, DETAIL, ORIGIN = range(12)
"""Places in `clock`."""

STEPS, REJECTED, EVALUATIONS, SAMPLES, EVENT_COUNT, NEXT, STANDING, GAINS, UNRESOLVED, WHO, COMPLETE, COMPLETE_EVENTS, BEGUN = range(13)
"""Places in `counts`."""

OPEN, CLOSED, STICK, SLIP, SLIP_PLUS, SLIP_MINUS, IMPACT, IMPACTS, REST, RISING, FALLING, NOTHING = range(12)
"""Words of events."""


class RunLimits(NamedTuple):
    """What a run must keep to."""

    rtol: float
    atol: float
    fixed: float  # 0: adaptive
    largest: float
    event_tolerance: float
    sequential: bool
    time_scale: float
    sized: bool  # errors of coordinates relative to their size
    on_events: bool


class Table853(NamedTuple):
    """Dormand and Prince's method of order 8: stages, weights, error weights, further stages and polynomials."""

    a: np.ndarray
    b: np.ndarray
    c: np.ndarray
    fifth: np.ndarray
    third: np.ndarray
    more_a: np.ndarray
    more_c: np.ndarray
    D: np.ndarray
    times: np.ndarray  # (13,) of the stages, parts of the step


class Chains(NamedTuple):
    """Joints from the ground to every ball, for bounds on its motion; pairs by their balls."""

    first: np.ndarray
    links: np.ndarray  # (l, 5) kind, first of q, sliding ones, first of v, number of v
    lengths: np.ndarray  # (l, 3) before, behind, pitch
    end: np.ndarray
    angular: np.ndarray
    ball: np.ndarray  # (k, 2), -1 where there is none
    coordinate: np.ndarray  # (k,) velocity whose limit it is, -1
    radii: np.ndarray  # (k,)
    bounded: np.ndarray  # (k,) bounds are known


class RunMemory(NamedTuple):
    """State, stages and buffers."""

    q: np.ndarray
    v: np.ndarray
    K: np.ndarray  # (16, 2 n + 3)
    y: np.ndarray
    end_q: np.ndarray
    end_v: np.ndarray
    more: np.ndarray  # (3,) work, heat, work of friction of a step
    F: np.ndarray  # (7, 2 n)
    margins: np.ndarray  # (13, 3 k)
    stage_v: np.ndarray  # (13, n)
    stage_a: np.ndarray
    signs: np.ndarray  # of watched functions
    direction_of: np.ndarray
    terminal: np.ndarray  # zeros after which a watched function ends the run, 0: never
    zeros: np.ndarray  # zeros so far
    struck: np.ndarray  # (k, 5) times of impacts, NaN where there is none
    rests: np.ndarray  # (k,) limits of impacts that pile up and are still ahead
    gain: np.ndarray  # (2,) first energy gained, its time
    late: np.ndarray  # times of the last transitions
    clock: np.ndarray
    counts: np.ndarray
    bounds: np.ndarray
    nodes: np.ndarray
    values: np.ndarray
    scale: np.ndarray
    kept_q: np.ndarray
    kept_v: np.ndarray
    kept_clock: np.ndarray
    kept_counts: np.ndarray
    kept_modes: np.ndarray  # (k, 6) closed, slides, direction, slow, sign
    kept_rows: np.ndarray
    kept_struck: np.ndarray
    kept_more: np.ndarray
    t: np.ndarray  # samples
    sq: np.ndarray
    sv: np.ndarray
    sa: np.ndarray
    slam: np.ndarray
    sr: np.ndarray
    smode: np.ndarray
    ssum: np.ndarray  # (samples, 4) work, heat, work of friction, step
    events: np.ndarray  # (events, 4)


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

DIP, ENDS = 0.2, 1e-6
"""A margin below this part of its largest may have been below zero between stages; stages this near to ends are ends."""

GRAZING = 1e-11
"""A gap that closes by less than this and opens again within a step is none, metres."""

LEAST_PART, MOST_LOOKS = 0.02, 2000
"""A step of which less than this part is certain after so many looks ends the run."""

CLOSING, POLYNOMIAL, EARLY, ROUNDING = 1e-9, 4.0, 1e-3, 1e-6
"""Approach, error of the polynomial in tolerances, first look at what opens, depth by which it may seem to sink."""

TOUCHING, STILL, SLOW = 1e-9, 1e-9, 1e-3
"""Gaps that touch (m), velocities that are rest (parts of all), separation that belongs to impacts that pile up (m/s)."""

CHANGES, AT_ONCE = 50, 1000
"""Changes of mode at one instant, and events without a step, at most."""

KNOWN, STEADY, SHORT = 5, 1e-3, 1e-4
"""Impacts that are looked at, by how much factors may differ, what may be left to their limit, seconds."""

STAGES, APART = 1.5, 0.14
"""Accelerations between stages are at most so many times those at them; half of the largest distance of two stages."""

REST_PART = 1e-11
"""Relative velocities up to this part of what they are summed from are zero where contacts come to rest."""

CHATTER, CHATTER_TIME = 30, 1e-7
"""So many changes of mode within this part of the run are an accumulation."""


# ----------------------------------------------------------------------------------------------------------------------
# Steps.


@compiled
def set_state(w, q, v):
    """Put a state where the codes read it."""
    w.q[:] = q
    w.v[:] = v


@compiled
def chart_at(w, base, x, v):
    """Move along the chart: w.q and w.x_rate."""
    w.base[:] = base
    w.x[:] = x
    w.v[:] = v
    invoke(w.calls[CHART, 0], w.calls[CHART, 1], w.calls[CHART, 2])


@compiled
def write_rate(w, row):
    """Write the rate of y = (x, v, work, heat, work of friction)."""
    n = w.v.size
    for j in range(n):
        row[j], row[n + j] = w.x_rate[j], w.a[j]
    row[2 * n], row[2 * n + 1], row[2 * n + 2] = w.rates[POWER], w.rates[HEAT], w.rates[FRICTION_WORK]


@compiled
def here(c, w, z, tables):
    """Solve the motion at the state of the run, with care, and write the first stage; return how it ended."""
    n = w.v.size
    set_state(w, z.q, z.v)
    code = motion(c, w, tables, z.clock[T], z.bounds, True)
    z.counts[EVALUATIONS] += 1
    if code != SOUND:
        return code
    w.x[:] = 0.0
    w.base[:] = z.q
    invoke(w.calls[CHART, 0], w.calls[CHART, 1], w.calls[CHART, 2])
    w.q[:] = z.q
    write_rate(w, z.K[0])
    z.stage_v[0], z.stage_a[0] = z.v, w.a
    margins(c, w, z.margins[0])
    for j in range(2 * n + 3):
        if not np.isfinite(z.K[0, j]):
            return NOT_FINITE
    return SOUND


@compiled
def stage(c, w, z, tables, t, row, watch):
    """Evaluate the rate at z.y; return how it ended."""
    n = w.v.size
    for j in range(2 * n):
        if not abs(z.y[j]) < FAR:
            return NOT_FINITE
    chart_at(w, z.q, z.y[:n], z.y[n : 2 * n])
    code = motion(c, w, tables, t, z.bounds, False)
    z.counts[EVALUATIONS] += 1
    if code != SOUND:
        return code
    write_rate(w, z.K[row])
    if watch:
        z.stage_v[row], z.stage_a[row] = w.v, w.a
        margins(c, w, z.margins[row])
    return SOUND


@compiled
def shot(c, w, z, tables, table, limits, h, watch):
    """Step from the state of the run by h: end in z.end_q, z.end_v, z.more; return how it ended, and the error."""
    n = w.v.size
    t = z.clock[T]
    for i in range(1, 13):
        for j in range(2 * n + 3):
            total = 0.0
            for o in range(i):
                weight = table.a[i, o] if i < 12 else table.b[o]
                if weight != 0.0:
                    total += weight * z.K[o, j]
            z.y[j] = h * total + (z.v[j - n] if n <= j < 2 * n else 0.0)
        code = stage(c, w, z, tables, t + (table.c[i] if i < 12 else 1.0) * h, i, watch)
        if code != SOUND:
            return code, np.inf
    # the error of Hairer's dop853
    five = three = 0.0
    for j in range(2 * n):
        e5 = e3 = 0.0
        for i in range(13):
            e5 += table.fifth[i] * z.K[i, j]
            e3 += table.third[i] * z.K[i, j]
        size = abs(z.v[j - n]) if j >= n else (max(abs(z.q[j]), abs(z.y[j] + z.q[j])) if limits.sized else 1.0)
        scale = limits.atol + limits.rtol * size
        five += (e5 / scale) ** 2
        three += (e3 / scale) ** 2
    ratio = 0.0
    if five > 0.0 or three > 0.0:
        ratio = abs(h) * five / np.sqrt((five + 0.01 * three) * (2 * n))
    if not np.isfinite(ratio):
        return NOT_FINITE, np.inf
    # the end, put back on the rows of the mode; y of the last stage is the end in the chart
    chart_at(w, z.q, z.y[:n], z.y[n : 2 * n])
    code = project(c, w, tables, t + h, z.bounds)
    if code != SOUND:
        return code, np.inf
    z.end_q[:] = w.q
    z.end_v[:] = w.v
    for j in range(3):
        z.more[j] = z.y[2 * n + j]
    return SOUND, ratio


@compiled
def accepted(c, w, z, tables, table, limits, h):
    """Take a step that meets the tolerance, and propose the next; return how it ended, and its length."""
    code = SOUND
    for _ in range(TRIALS):
        code, ratio = shot(c, w, z, tables, table, limits, h, True)
        if code == CALLBACK and h <= SHORTEST:
            return code, h
        if code != SOUND:
            if h <= SHORTEST:
                return code, h
            w.environment[FAILED] = 0.0
            h *= LEAST
            continue
        if ratio < 1.0 or limits.fixed > 0.0:
            best = SAFETY * ratio ** (-1.0 / 8.0) if ratio > 0.0 else MOST
            z.clock[H] = h * min(max(best, LEAST), MOST)
            return SOUND, h
        z.counts[REJECTED] += 1
        h *= max(LEAST, SAFETY * ratio ** (-1.0 / 8.0))
        if h <= 16.0 * 2.2e-16 * abs(z.clock[T]) or h < 1e-280:
            return COLLAPSED, h
    return COLLAPSED if code == SOUND else code, h


@compiled
def go(c, w, z, tables, h):
    """Move the run to the end of the step that was taken last; return how it ended."""
    z.q[:] = z.end_q
    z.v[:] = z.end_v
    z.clock[T] += h
    z.clock[WORK] += z.more[0]
    z.clock[HEAT_SUM] += z.more[1]
    z.clock[FRICTION_SUM] += z.more[2]
    return here(c, w, z, tables)


@compiled
def interpolate(c, w, z, tables, table, h):
    """Make the polynomial of the step that was taken last: three more stages; return how it ended."""
    n = w.v.size
    for p in range(3):
        i = 13 + p
        for j in range(2 * n + 3):
            total = 0.0
            for o in range(i):
                total += table.more_a[p, o] * z.K[o, j]
            z.y[j] = h * total + (z.v[j - n] if n <= j < 2 * n else 0.0)
        code = stage(c, w, z, tables, z.clock[T] + table.more_c[p] * h, i, False)
        if code != SOUND:
            return code
    for j in range(2 * n):
        change = 0.0
        for i in range(12):
            change += table.b[i] * z.K[i, j]
        change *= h
        z.F[0, j] = change
        z.F[1, j] = h * z.K[0, j] - change
        z.F[2, j] = 2.0 * change - h * (z.K[12, j] + z.K[0, j])
        for p in range(4):
            total = 0.0
            for i in range(16):
                total += table.D[p, i] * z.K[i, j]
            z.F[3 + p, j] = h * total
    return SOUND


@compiled
def inside(w, z, part):
    """Put the state at a part of the step, on its polynomial, where the codes read it."""
    n = w.v.size
    for j in range(2 * n):
        total = 0.0
        for i in range(7):
            total = (total + z.F[6 - i, j]) * (part if i % 2 == 0 else 1.0 - part)
        z.y[j] = total + (z.v[j - n] if j >= n else 0.0)
    chart_at(w, z.q, z.y[:n], z.y[n : 2 * n])


# ----------------------------------------------------------------------------------------------------------------------
# Guards.


@compiled
def margins(c, w, out):
    """Write how far contacts are from a change, (3 k,): positive while they push, slide along as now, stick."""
    pull = noise = 0.0
    for j in range(w.r.size):
        pull = max(pull, abs(w.r[j]))
    for j in range(w.a.size):
        noise = max(noise, abs(w.a[j]))
    pull, noise = WEAK * (1.0 + pull), OPENING * (1.0 + noise)
    out[:] = np.inf
    for i in range(w.closed.size):
        if not w.closed[i]:
            continue
        N = w.r[3 * i] if c.gapped[i] else (-w.lam[c.row[i]] if c.row[i] >= 0 else w.load[i])
        if c.gapped[i]:
            if abs(N) > pull:
                out[3 * i] = N
            elif w.contact[3 * i] > noise:
                out[3 * i] = -w.contact[3 * i]
        elif c.row[i] >= 0 and c.pushes[i] and abs(N) > pull:
            out[3 * i] = N
        if c.width[i] == 0:
            continue
        if w.slides[i]:
            along = w.u[3 * i + 1] * w.direction[i, 0] + w.u[3 * i + 2] * w.direction[i, 1]
            if c.width[i] == 1 or w.slow[i] == 0.0:
                out[3 * i + 1] = along
            continue
        coefficient = static(c, w, i)
        if c.gapped[i] and not (coefficient > 0.0 and N > pull):
            continue
        reserve = coefficient * abs(N) - np.sqrt(w.r[3 * i + 1] ** 2 + w.r[3 * i + 2] ** 2)
        begins = np.sqrt(w.contact[3 * i + 1] ** 2 + w.contact[3 * i + 2] ** 2)
        if begins > noise:
            out[3 * i + 2] = -begins
        elif abs(reserve) > pull:
            out[3 * i + 2] = reserve


MARGIN, GAP, WATCH, SPEED = range(4)
"""Guards whose zeros are located by steps of full order."""


@compiled
def guard(c, w, z, tables, table, limits, kind, index, sign, h):
    """Step by h and evaluate a guard at the end; return how it ended, and its value."""
    code, _ = shot(c, w, z, tables, table, limits, h, False)
    if code != SOUND:
        return code, 0.0
    return guard_here(c, w, z, tables, kind, index, sign, h)


@compiled
def guard_here(c, w, z, tables, kind, index, sign, h):
    """Evaluate a guard at the end of the step that was taken last."""
    t = z.clock[T] + h
    set_state(w, z.end_q, z.end_v)
    if kind == MARGIN:
        code = motion(c, w, tables, t, z.bounds, False)
        z.counts[EVALUATIONS] += 1
        if code != SOUND:
            return code, 0.0
        values = np.zeros(3 * w.closed.size)
        margins(c, w, values)
        return SOUND, values.min()
    if kind == GAP:
        w.time[0] = t
        invoke(w.calls[TERMS, 0], w.calls[TERMS, 1], w.calls[TERMS, 2])
        return SOUND, w.gaps[index]
    w.environment[0] = t
    invoke(w.calls[EVENTS, 0], w.calls[EVENTS, 1], w.calls[EVENTS, 2])
    if w.environment[FAILED] != 0.0:
        return CALLBACK, 0.0
    return SOUND, sign * w.event_values[index]


@compiled
def locate(c, w, z, tables, table, limits, kind, index, sign, low, high, at_low, at_high, tolerance):
    """Step to right behind a zero between two lengths; return how it ended, and the length."""
    bracket = np.array([low, at_low if at_low > 0.0 else 2.2e-308, high, at_high, 0.0])
    widths = np.full(3, np.inf)
    for trial in range(200):
        low, high = bracket[0], bracket[2]
        if high - low <= tolerance or bracket[3] == 0.0:
            break
        slow = high - low > 0.5 * widths[trial % 3]
        widths[trial % 3] = high - low
        middle = 0.5 * (low + high) if slow else next_trial(bracket)
        middle = min(max(middle, low + 0.5 * tolerance), high - 0.5 * tolerance)
        if not low < middle < high:
            break
        code, value = guard(c, w, z, tables, table, limits, kind, index, sign, middle)
        if code != SOUND:
            return code, middle
        narrow(bracket, middle, value)
    h = bracket[2]
    code, _ = shot(c, w, z, tables, table, limits, h, False)
    return code, h


# ----------------------------------------------------------------------------------------------------------------------
# Gaps: bounds on the motion of shapes (see `bounds.py`), and the first zero that they leave possible.


@compiled
def ball_bounds(chains, ball, q, h, speeds, accelerations):
    """Return the largest speed and acceleration of a ball's centre within a step."""
    speed = acceleration = W = B = 0.0
    for l in range(chains.first[ball], chains.first[ball + 1]):
        kind, first_q, straight, first_v, count = chains.links[l]
        before, behind, pitch = chains.lengths[l]
        w2 = b2 = u2 = c2 = 0.0
        w1 = b1 = product = 0.0
        product = 1.0
        for j in range(first_v, first_v + count):
            if chains.angular[j]:
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
    return speed + W * chains.end[ball], acceleration + (B + W * W) * chains.end[ball]


@compiled
def gap_bounds(chains, z, i, h):
    """Return L and K, bounds of the rate of gap i and of its derivative within the step that was taken last."""
    n = z.v.size
    speeds, accelerations = np.zeros(n), np.zeros(n)
    for j in range(n):
        a = v = 0.0
        for s in range(13):
            a, v = max(a, abs(z.stage_a[s, j])), max(v, abs(z.stage_v[s, j]))
        accelerations[j] = STAGES * a
        speeds[j] = v + APART * h * accelerations[j]
    if chains.coordinate[i] >= 0:
        return speeds[chains.coordinate[i]], accelerations[chains.coordinate[i]]
    L, K = ball_bounds(chains, chains.ball[i, 0], z.q, h, speeds, accelerations)
    if chains.ball[i, 1] >= 0:
        more, faster = ball_bounds(chains, chains.ball[i, 1], z.q, h, speeds, accelerations)
        L, K = L + more, K + faster
        K += L * L / chains.radii[i] if chains.radii[i] > 0.0 else np.inf
    return L, K


@compiled
def gap_inside(w, z, i, h, part):
    """Return gap i and its rate at a part of the step, on its polynomial."""
    inside(w, z, part)
    w.time[0] = z.clock[T] + part * h
    invoke(w.calls[TERMS, 0], w.calls[TERMS, 1], w.calls[TERMS, 2])
    return w.gaps[i], w.u[3 * i]


@compiled
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


@compiled
def isolate(w, z, i, h, start, end, L, K, width, slack, found):
    """Isolate the first zero of gap i between two points (s, g, g'); write low and high into found (2, 3).

    Return 1 where there is one, 0 where there is none, -1 where it is certain only up to found[1].
    """
    stack, top, looks = np.zeros((64, 3)), 0, 0
    stack[0] = end
    a = start.copy()
    while top >= 0:
        b = stack[top]
        piece = b[0] - a[0]
        small = piece <= width or L * piece <= GRAZING
        if b[1] <= 0.0 and (small or 0.5 * (a[2] + b[2] + K * piece) < 0.0):
            found[0], found[1] = a, b
            return 1
        if b[1] > 0.0 and (small or least_value(a[0], a[1], a[2], b[0], b[1], b[2], L, K) > -GRAZING):
            a = b.copy()
            top -= 1
            continue
        if looks == MOST_LOOKS or top == 63:
            found[1] = a
            return -1
        looks += 1
        s = 0.5 * (a[0] + b[0])
        g, r = gap_inside(w, z, i, h, s / h)
        top += 1
        stack[top, 0], stack[top, 1], stack[top, 2] = s, g + slack, r
    return 0


@compiled
def gap_in(c, w, z, tables, table, limits, chains, i, h, ready):
    """Find where gap i closes within the step h that was taken last.

    Return how it ended, the length up to which it is certain, whether it closes there, and whether the step has to be
    taken again. `ready`: the polynomial is made.
    """
    set_state(w, z.q, z.v)
    w.time[0] = z.clock[T]
    invoke(w.calls[TERMS, 0], w.calls[TERMS, 1], w.calls[TERMS, 2])
    start = np.array([0.0, w.gaps[i], w.u[3 * i]])
    end_q, end_v, more = z.end_q.copy(), z.end_v.copy(), z.more.copy()
    set_state(w, z.end_q, z.end_v)
    w.time[0] = z.clock[T] + h
    invoke(w.calls[TERMS, 0], w.calls[TERMS, 1], w.calls[TERMS, 2])
    end = np.array([h, w.gaps[i], w.u[3 * i]])
    L, K = gap_bounds(chains, z, i, h)
    width = max(limits.event_tolerance, 2e-16 * abs(z.clock[T]))
    slack = POLYNOMIAL * (limits.atol + limits.rtol)
    # nothing can happen: most steps end here
    if start[1] > 0.0 and end[1] > 0.0:
        if least_value(start[0], start[1], start[2], end[0], end[1], end[2], L, K) > -GRAZING:
            return SOUND, h, False, False
    if not ready[0]:
        code = interpolate(c, w, z, tables, table, h)
        if code != SOUND:
            return code, h, False, False
        ready[0] = True
    if start[1] <= 0.0:
        opened = False
        if not start[2] < -CLOSING * (1.0 + L):
            sure = start[2] > 0.0 and np.isfinite(K)
            if sure and K * h < 2.0 * start[2]:
                start[1], opened = 2.2e-308, True
            else:
                s = 1.9 * start[2] / K if sure else EARLY * h
                while s < h and not opened:
                    g, r = gap_inside(w, z, i, h, s / h)
                    if g > 0.0:
                        start[0], start[1], start[2], opened = s, g, r, True
                    s *= 2.0
                if not opened and end[1] > 0.0:
                    return SOUND, h, False, False
        if not opened:
            if start[2] < 0.0:
                return SOUND, 0.0, True, False
            if end[1] < -ROUNDING * abs(end[2]) * h:
                z.clock[DETAIL] = -end[1]
                z.counts[WHO] = i
                return PASSAGE, h, False, False
            return SOUND, h, False, False
    found = np.zeros((2, 3))
    for _ in range(TRIALS):
        verdict_of = isolate(w, z, i, h, start, end, L, K, width, slack, found)
        if verdict_of <= 0:
            certain = h if verdict_of == 0 else found[1, 0]
            if certain >= h:
                z.end_q[:], z.end_v[:], z.more[:] = end_q, end_v, more
                return SOUND, h, False, False
            if certain <= LEAST_PART * h:
                z.counts[WHO] = i
                return UNCERTAIN_GAP, h, False, False
            return SOUND, certain, False, True
        # the bracket on the polynomial, then steps of full order
        high, g_high = found[1, 0], found[1, 1]
        if high < h:
            K_kept = z.K.copy()
            code, g_high = guard(c, w, z, tables, table, limits, GAP, i, 1.0, high)
            z.K[:] = K_kept
            if code != SOUND:
                return code, h, False, False
        if g_high > 0.0:
            start[0], start[1], start[2] = high, g_high, w.u[3 * i]  # the polynomial was below zero, the step is not
            continue
        low, g_low = found[0, 0], found[0, 1]
        if low > start[0]:
            K_kept = z.K.copy()
            code, g_low = guard(c, w, z, tables, table, limits, GAP, i, 1.0, low)
            z.K[:] = K_kept
            if code != SOUND:
                return code, h, False, False
            if g_low <= 0.0:
                low, g_low = start[0], start[1]
        # near the zero of the polynomial the bracket is small at once
        low, g_low, high, g_high, code = pinch(c, w, z, tables, table, limits, i, h, low, g_low, high, g_high)
        if code != SOUND:
            return code, h, False, False
        code, at = locate(c, w, z, tables, table, limits, GAP, i, 1.0, low, high, g_low, g_high, width)
        return code, at, True, False
    return SOUND, start[0], False, True


@compiled
def pinch(c, w, z, tables, table, limits, i, h, low, g_low, high, g_high):
    """Narrow a bracket of gap i by the zero of the step's polynomial: two steps of full order instead of six."""
    a, b, ga, gb = low / h, high / h, g_low, g_high
    for _ in range(60):
        s = b - gb * (b - a) / (gb - ga) if gb != ga else 0.5 * (a + b)
        s = s if a < s < b else 0.5 * (a + b)
        g, r = gap_inside(w, z, i, h, s)
        step = -g / r / h if r < 0.0 else 0.0
        if abs(step) < 1e-13 or b - a < 1e-13:
            break
        if g > 0.0:
            a, ga = s, g
        else:
            b, gb = s, g
        new = s + step
        if a < new < b:
            g, r = gap_inside(w, z, i, h, new)
            if g > 0.0:
                a, ga = new, g
            else:
                b, gb = new, g
            s = new
    K_kept = z.K.copy()
    for part in (-1.0, 1.0):
        trial = s * h + part * 1e-10 * h
        if not low < trial < high:
            continue
        code, g = guard(c, w, z, tables, table, limits, GAP, i, 1.0, trial)
        z.K[:] = K_kept
        if code != SOUND:
            return low, g_low, high, g_high, code
        if g > 0.0:
            low, g_low = trial, g
        else:
            high, g_high = trial, g
    return low, g_low, high, g_high, SOUND


# ----------------------------------------------------------------------------------------------------------------------
# Functions without bounds: those of the user, gaps given as expressions; isolated on nodes (`isolate_loops.py`).


@compiled
def node(c, w, z, h, part, watched, loose, out):
    """Write all functions at a part of the step: the user's, then gaps without bounds; return whether they are there."""
    if part == 0.0:
        set_state(w, z.q, z.v)
    elif part == 1.0:
        set_state(w, z.end_q, z.end_v)
    else:
        inside(w, z, part)
    place = 0
    if watched:
        w.environment[0] = z.clock[T] + part * h
        invoke(w.calls[EVENTS, 0], w.calls[EVENTS, 1], w.calls[EVENTS, 2])
        if w.environment[FAILED] != 0.0:
            return False
        for k in range(watched):
            out[place] = w.event_values[k]
            place += 1
    if loose.size:
        w.time[0] = z.clock[T] + part * h
        invoke(w.calls[TERMS, 0], w.calls[TERMS, 1], w.calls[TERMS, 2])
        for k in range(loose.size):
            out[place] = w.gaps[loose[k]]
            place += 1
    return True


@compiled
def first_watched(c, w, z, tables, table, limits, h, watched, loose, ready, fired):
    """Find the first zero of the user's functions, or of a gap without bounds, within the step that was taken last.

    Return how it ended, the length, and which kind: -2 none, -1 a function of the user (`fired` says which), else the
    gap. A gap may only fall through zero.
    """
    total = watched + loose.size
    if total == 0 or not h > 0.0:
        return SOUND, h, -2
    if not ready[0]:
        code = interpolate(c, w, z, tables, table, h)
        if code != SOUND:
            return code, h, -2
        ready[0] = True
    s, g, scale, values = z.nodes, z.values, z.scale, np.zeros(total)
    end_q, end_v, more = z.end_q.copy(), z.end_v.copy(), z.more.copy()
    count = GRID.size
    for j in range(count):
        s[j] = GRID[j]
        if not node(c, w, z, h, GRID[j], watched, loose, values):
            return CALLBACK, h, -2
        for e in range(total):
            g[j, e] = values[e]
    begin(g[:, :total], count, scale)
    # zeros at the start of a run count in the direction in which they are left
    if z.counts[BEGUN] == 0:
        z.counts[BEGUN] = 1
        opened = False
        for k in range(watched):
            fired[k] = False
            if z.signs[k] == 0.0 and g[1, k] != 0.0:
                way = np.sign(g[1, k])
                wanted = z.direction_of[k] == 0 or z.direction_of[k] == way
                z.signs[k] = -way if wanted else way
                fired[k] = wanted
                opened = opened or wanted
        if opened:
            return SOUND, 0.0, -1
    tolerance = max(limits.event_tolerance, 2e-16 * abs(z.clock[T]))
    least = max(1e-10, tolerance / h)
    i, added = 0, 0
    while i < count - 1:
        found = verdict(s[:count], g[:count, :total], count, i, least)
        if found >= 0:
            if added >= 200 or count >= s.size - 1:
                z.counts[UNRESOLVED] += 1
                found = CROSSING
            else:
                at = s[found] + SPLIT * (s[found + 1] - s[found])
                if not node(c, w, z, h, at, watched, loose, values):
                    return CALLBACK, h, -2
                insert(s, g[:, :total], count, found, at, values, scale)
                count, added = count + 1, added + 1
                i = min(i, found)
                continue
        if found != QUIET:
            # who crosses as wanted between these nodes
            best, who = np.inf, -2
            K_kept = z.K.copy()
            for k in range(total):
                low, high = s[i] * h, s[i + 1] * h
                if k < watched:
                    fired[k] = False
                    crosses = z.signs[k] != 0.0 and z.signs[k] * g[i + 1, k] <= 0.0
                    crosses = crosses and (g[i, k] != 0.0 or g[i + 1, k] != 0.0)
                    crosses = crosses and (z.direction_of[k] == 0 or z.direction_of[k] == -z.signs[k])
                    if not crosses:
                        continue
                    code, at = locate(
                        c, w, z, tables, table, limits, WATCH, k, z.signs[k], low, high, z.signs[k] * g[i, k],
                        z.signs[k] * g[i + 1, k], tolerance,
                    )  # fmt: skip
                    z.K[:] = K_kept
                    if code != SOUND:
                        return code, h, -2
                    if at < best:
                        for o in range(k):
                            fired[o] = False
                        best, who = at, -1
                    fired[k] = at <= best
                elif g[i, k] > 0.0 and g[i + 1, k] <= 0.0:
                    gap = loose[k - watched]
                    code, at_high = guard(c, w, z, tables, table, limits, GAP, gap, 1.0, high)
                    code2, at_low = guard(c, w, z, tables, table, limits, GAP, gap, 1.0, low) if low > 0.0 else (SOUND, g[i, k])
                    z.K[:] = K_kept
                    if code != SOUND or code2 != SOUND:
                        return max(code, code2), h, -2
                    if at_high > 0.0:
                        g[i + 1, k] = at_high
                        continue
                    code, at = locate(
                        c, w, z, tables, table, limits, GAP, gap, 1.0, low if at_low > 0.0 else 0.0, high,
                        max(at_low, 2.2e-308), at_high, tolerance,
                    )  # fmt: skip
                    z.K[:] = K_kept
                    if code != SOUND:
                        return code, h, -2
                    if at < best:
                        best, who = at, gap
            if who > -2:
                return SOUND, best, who
            z.end_q[:], z.end_v[:], z.more[:] = end_q, end_v, more
        for k in range(watched):
            if g[i + 1, k] != 0.0:
                z.signs[k] = np.sign(g[i + 1, k])
        i += 1
    return SOUND, h, -2


@compiled
def note_signs(w, z, watched, fired, any_fired):
    """Remember the signs of the user's functions at the state of the run; those that fired have changed theirs."""
    if not watched:
        return True
    set_state(w, z.q, z.v)
    w.environment[0] = z.clock[T]
    invoke(w.calls[EVENTS, 0], w.calls[EVENTS, 1], w.calls[EVENTS, 2])
    if w.environment[FAILED] != 0.0:
        return False
    for k in range(watched):
        value = -z.signs[k] if any_fired and fired[k] else w.event_values[k]
        if value != 0.0:
            z.signs[k] = np.sign(value)
    return True


# ----------------------------------------------------------------------------------------------------------------------
# The end of sticking, sliding and pushing within a step.


@compiled
def first_change(c, w, z, tables, table, limits, h):
    """Find where a closed contact changes its mode within the step h that was taken last, stages in z.margins.

    Return how it ended, the length, and whether something changes there.
    """
    closed = False
    for i in range(w.closed.size):
        closed = closed or w.closed[i]
    if not closed or not h > 0.0:
        return SOUND, h, False
    tolerance = max(1e-13, limits.event_tolerance, 2e-16 * abs(z.clock[T]))
    code, end = guard_here(c, w, z, tables, MARGIN, 0, 1.0, h)
    if code != SOUND:
        return code, h, False
    low, at_low = 0.0, z.margins[0].min()
    # where a margin dips between the stages it is looked at by steps of full order
    looks = np.zeros(40)
    count = doubtful(z, table.times, h, looks)
    K_kept = z.K.copy()
    for j in range(count):
        code, value = guard(c, w, z, tables, table, limits, MARGIN, 0, 1.0, looks[j])
        z.K[:] = K_kept
        if code != SOUND:
            return code, h, False
        if value <= 0.0:
            code, at = locate(
                c, w, z, tables, table, limits, MARGIN, 0, 1.0, low, looks[j], at_low, value, tolerance
            )  # fmt: skip
            return code, at, True
        low, at_low = looks[j], value
    if end > 0.0:
        if count:
            code, _ = shot(c, w, z, tables, table, limits, h, False)
        return code, h, False
    code, at = locate(c, w, z, tables, table, limits, MARGIN, 0, 1.0, low, h, at_low, end, tolerance)
    return code, at, True


@compiled
def doubtful(z, times, h, looks):
    """Write times inside of a step at which a margin may dip below zero and come back; return how many.

    Stages are states of low order: a margin that falls there below `DIP` of its largest and rises again is looked at.
    """
    order = np.argsort(times)
    count = 0
    for g in range(z.margins.shape[1]):
        least, largest, where = np.inf, 0.0, -1
        for o in range(13):
            value = z.margins[order[o], g]
            if np.isfinite(value):
                largest = max(largest, value)
                if value < least:
                    least, where = value, o
        if where < 0 or least >= DIP * largest:
            continue
        s = times[order[where]]
        if not ENDS < s < 1.0 - ENDS:
            continue
        for o in range(13):
            s = times[order[o]]
            if z.margins[order[o], g] < DIP * largest and ENDS < s < 1.0 - ENDS and count < looks.size - 1:
                looks[count] = s * h
                count += 1
    looks[:count].sort()
    kept = 0
    for j in range(count):
        if kept == 0 or looks[j] > looks[kept - 1]:
            looks[kept] = looks[j]
            kept += 1
    return kept


# ----------------------------------------------------------------------------------------------------------------------
# Transitions.


@compiled
def note(z, t, i, old, new):
    """Write an event down."""
    if z.counts[EVENT_COUNT] < z.events.shape[0]:
        row = z.events[z.counts[EVENT_COUNT]]
        row[0], row[1], row[2], row[3] = t, i, old, new
        z.counts[EVENT_COUNT] += 1
    if new == OPEN:
        z.rests[i] = np.inf


@compiled
def word_of(c, w, i):
    """Return what a contact does, as events call it."""
    if not w.closed[i]:
        return OPEN
    if not w.slides[i]:
        return STICK
    if c.width[i] == 2 or c.gapped[i]:
        return SLIP
    return SLIP_PLUS if w.direction[i, 0] > 0.0 else SLIP_MINUS


@compiled
def let_go(c, w, z, limits, i, x, y):
    """Let a contact slide along (x, y)."""
    size = np.sqrt(x * x + y * y)
    w.slides[i] = True
    w.direction[i, 0], w.direction[i, 1] = (x / size, y / size) if size > 0.0 else (1.0, 0.0)
    w.slow[i] = limits.time_scale * own_acceleration(w, i) if c.width[i] == 2 else 0.0


@compiled
def settle(c, w, z, tables, limits):
    """Open and let slide what must, at the state of the run, until the mode holds; return how it ended."""
    k = w.closed.size
    needed = np.zeros(3 * k)
    for _ in range(CHANGES):
        set_state(w, z.q, z.v)
        choose_at(c, w, z)
        code = project(c, w, tables, z.clock[T], z.bounds)
        if code != SOUND:
            return code
        z.q[:] = w.q
        z.v[:] = w.v
        code = motion(c, w, tables, z.clock[T], z.bounds, True)
        if code != SOUND:
            return code
        needed[:] = w.r
        largest = noise = 0.0
        for j in range(3 * k):
            largest = max(largest, abs(w.r[j]))
        for j in range(w.a.size):
            noise = max(noise, abs(w.a[j]))
        pull = WEAK * (1.0 + largest)
        wrong = False
        for i in range(k):
            if not w.closed[i]:
                continue
            if c.gapped[i] and (w.r[3 * i] < -pull or w.contact[3 * i] > OPENING * (1.0 + noise)):
                wrong = True
            if not c.gapped[i] and c.row[i] >= 0 and c.pushes[i] and -w.lam[c.row[i]] < -pull:
                z.counts[WHO] = i
                return DETACHED
            if c.width[i] and not w.slides[i] and static_applies(c, w, i):
                N = w.r[3 * i] if c.gapped[i] else (abs(w.lam[c.row[i]]) if c.row[i] >= 0 else w.load[i])
                force = np.sqrt(w.r[3 * i + 1] ** 2 + w.r[3 * i + 2] ** 2)
                if static(c, w, i) * N - force < -pull:
                    wrong = True
                if np.sqrt(w.contact[3 * i + 1] ** 2 + w.contact[3 * i + 2] ** 2) > OPENING * (1.0 + noise):
                    wrong = True
        if not wrong:
            return SOUND
        code = decided(c, w)
        if code != SOUND:
            return code
        noise = 0.0
        for j in range(w.a.size):
            noise = max(noise, abs(w.a[j]))
        noise = OPENING * (1.0 + noise)
        opened = begins = False
        for i in range(k):
            if w.closed[i] and c.gapped[i] and w.r[3 * i] <= pull:
                if w.contact[3 * i] > noise or needed[3 * i] < -pull:
                    w.closed[i], w.slides[i], opened = False, False, True
                    note(z, z.clock[T], i, CLOSED, OPEN)
        if opened:
            continue
        for i in range(k):
            if not w.closed[i] or w.slides[i] or c.width[i] == 0 or not static_applies(c, w, i):
                continue
            N = w.r[3 * i] if c.gapped[i] else (abs(w.lam[c.row[i]]) if c.row[i] >= 0 else w.load[i])
            if c.gapped[i] and not N > pull:
                continue
            x, y = w.contact[3 * i + 1], w.contact[3 * i + 2]
            force = np.sqrt(needed[3 * i + 1] ** 2 + needed[3 * i + 2] ** 2)
            load = needed[3 * i] if c.gapped[i] else N
            if np.sqrt(x * x + y * y) > noise:
                let_go(c, w, z, limits, i, x, y)
                begins = True
            elif static(c, w, i) * load - force < -pull and load > 0.0:
                let_go(c, w, z, limits, i, -needed[3 * i + 1], -needed[3 * i + 2])
                begins = True
        if not begins:
            # complementarity holds all: the forces of the mode are another choice of redundant ones
            return SOUND
    return ENDLESS


@compiled
def static_applies(c, w, i):
    """Return whether a contact that does not slide sticks: it has friction, or its limit is given."""
    return not c.gapped[i] or static(c, w, i) > 0.0


@compiled
def choose_at(c, w, z):
    """Choose independent rows of the mode at w.q, w.v."""
    w.time[0] = z.clock[T]
    invoke(w.calls[TERMS, 0], w.calls[TERMS, 1], w.calls[TERMS, 2])
    choose(c, w)


@compiled
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


@compiled
def impact(c, w, z, tables, limits):
    """Let touching contacts collide, close those that do not separate, settle; return how it ended."""
    k, n, t = w.closed.size, w.v.size, z.clock[T]
    set_state(w, z.q, z.v)
    w.time[0] = t
    invoke(w.calls[TERMS, 0], w.calls[TERMS, 1], w.calls[TERMS, 2])
    before, size = w.u.copy(), 1.0
    for j in range(3 * k):
        if c.gapped[j // 3]:
            size = max(size, abs(before[j]))
    touching, plastic, limit = np.zeros(k, np.bool_), np.zeros(k, np.bool_), np.zeros(k)
    for i in range(k):
        touching[i] = not c.gapped[i] or w.closed[i] or (w.gaps[i] <= TOUCHING and before[3 * i] <= STILL * size)
        if c.gapped[i]:
            limit[i] = limit_of(z.struck[i], t)
            plastic[i] = limit[i] > 0.0
    impulses, after, start = np.zeros(3 * k), np.zeros(n), z.v.copy()
    if limits.sequential:
        total, one = np.zeros(3 * k), np.zeros(k, np.bool_)
        code = ENDLESS
        for _ in range(10_000):
            worst, least = -1, np.inf
            fastest = 1.0
            for i in range(k):
                if c.gapped[i]:
                    fastest = max(fastest, abs(w.u[3 * i]))
            for i in range(k):
                if c.gapped[i] and touching[i] and w.u[3 * i] < least:
                    worst, least = i, w.u[3 * i]
            if worst < 0 or least >= -1e-12 * fastest:
                code = SOUND
                break
            one[:] = False
            one[worst] = True
            code = strike(c, w, one, plastic, impulses, after)
            if code != SOUND:
                return code
            total += impulses
            w.v[:] = after
            invoke(w.calls[TERMS, 0], w.calls[TERMS, 1], w.calls[TERMS, 2])
            code = ENDLESS
        if code != SOUND:
            return code
        impulses[:] = total
        after[:] = w.v
    else:
        code = strike(c, w, touching, plastic, impulses, after)
        if code != SOUND:
            return code
    # notes of impacts, and of those that pile up
    piled = False
    for i in range(k):
        if not c.gapped[i]:
            continue
        if impulses[3 * i] > 0.0:
            if before[3 * i] < -STILL:
                if limit[i] > 0.0:
                    z.struck[i] = np.nan
                else:
                    for j in range(KNOWN - 1):
                        z.struck[i, j] = z.struck[i, j + 1]
                    z.struck[i, KNOWN - 1] = t
                note(z, t, i, OPEN, IMPACT)
            if limit[i] > 0.0:
                z.rests[i] = max(limit[i], t)
        piled = piled or (limit[i] > 0.0 and touching[i] and before[3 * i] < -STILL)
    z.v[:] = after
    set_state(w, z.q, z.v)
    invoke(w.calls[TERMS, 0], w.calls[TERMS, 1], w.calls[TERMS, 2])
    heat = 0.0
    for j in range(3 * k):
        if c.gapped[j // 3] or c.row[j // 3] >= 0:
            heat -= 0.5 * impulses[j] * (before[j] + w.u[j])
    for i in range(k):
        word = word_of(c, w, i)
        if c.gapped[i]:
            stays = touching[i] and w.u[3 * i] <= (SLOW if piled else STILL * size)
            if stays and not w.closed[i]:
                note(z, t, i, OPEN, CLOSED)
            elif w.closed[i] and not stays:
                note(z, t, i, CLOSED, OPEN)
            w.closed[i] = stays
        x, y = w.u[3 * i + 1], w.u[3 * i + 2]
        speed = np.sqrt(x * x + y * y)
        if not w.closed[i] or c.width[i] == 0 or (c.gapped[i] and not static(c, w, i) > 0.0):
            w.slides[i] = False
        elif c.gapped[i]:
            w.slides[i], w.slow[i] = speed > STILL, 0.0
            if w.slides[i]:
                w.direction[i, 0], w.direction[i, 1] = x / speed, y / speed
        else:
            moving = speed > REST_PART * terms_of(w, i) and speed > 0.0
            w.slides[i], w.slow[i] = moving, 0.0
            if moving:
                w.direction[i, 0], w.direction[i, 1] = x / speed, y / speed
            if word_of(c, w, i) != word:
                note(z, t, i, word, word_of(c, w, i))
    code = settle(c, w, z, tables, limits)
    z.clock[HEAT_SUM] += heat
    if heat < 0.0:
        energy = 0.0
        for i in range(n):
            for j in range(n):
                energy += start[i] * w.M[i, j] * start[j]
        if heat < -1e-9 * energy:
            if z.counts[GAINS] == 0:
                z.gain[0], z.gain[1] = -heat, t
            z.counts[GAINS] += 1
    return code


@compiled
def terms_of(w, i):
    """Return the size of the terms that the relative velocity of a contact is summed from."""
    total = 0.0
    for j in range(1, 3):
        size, sum_of = 0.0, 0.0
        for b in range(w.v.size):
            size += abs(w.W[3 * i + j, b] * w.v[b])
            sum_of += w.W[3 * i + j, b] * w.v[b]
        size += abs(w.u[3 * i + j] - sum_of)
        total += size * size
    return np.sqrt(total)


@compiled
def change(c, w, z, tables, limits):
    """Let those come to rest whose sliding has ended; open, and let slide, what must; return how it ended."""
    k, t = w.closed.size, z.clock[T]
    old = np.zeros(k, np.int64)
    set_state(w, z.q, z.v)
    w.time[0] = t
    invoke(w.calls[TERMS, 0], w.calls[TERMS, 1], w.calls[TERMS, 2])
    for i in range(k):
        old[i] = word_of(c, w, i)
    arrived = False
    for i in range(k):
        if w.closed[i] and w.slides[i]:
            x, y = w.u[3 * i + 1], w.u[3 * i + 2]
            along = x * w.direction[i, 0] + y * w.direction[i, 1]
            if along > 0.0:
                continue
            if c.width[i] == 2 and np.sqrt(x * x + y * y) > max(STILL, 1e-6 * terms_of(w, i)):
                continue  # its path has turned by a right angle: it slides on
            w.slides[i], arrived = False, True
    # contacts that come to rest together
    for i in range(k):
        if arrived and w.closed[i] and w.slides[i]:
            x, y = w.u[3 * i + 1], w.u[3 * i + 2]
            if np.sqrt(x * x + y * y) <= REST_PART * terms_of(w, i):
                w.slides[i] = False
    code = settle(c, w, z, tables, limits)
    for i in range(k):
        new = word_of(c, w, i)
        if new != old[i] and new != OPEN and old[i] != OPEN:
            note(z, t, i, old[i], new)
    return code


@compiled
def follow(c, w, z):
    """Turn the directions of planes that slide with their velocities; what has got going is slow no longer."""
    for i in range(w.closed.size):
        if w.closed[i] and w.slides[i] and c.width[i] == 2:
            x, y = w.u[3 * i + 1], w.u[3 * i + 2]
            size = np.sqrt(x * x + y * y)
            if size > w.slow[i]:
                w.slow[i] = 0.0
                if size > STILL:
                    w.direction[i, 0], w.direction[i, 1] = x / size, y / size


@compiled
def paradox(c, w, z):
    """Look for sliding contacts whose friction leaves no force, or several: G_NN - mu G_NT . d <= 0."""
    n = w.v.size
    rows = np.zeros(w.A.shape[0], np.int64)
    for i in range(w.closed.size):
        if not (w.closed[i] and w.slides[i] and c.gapped[i]):
            continue
        count = other_rows(c, w, rows, False)
        if not block(w, rows, count):
            return SOUND
        y = np.zeros(n + count)
        y[:n] = w.W[3 * i]
        substitute(w.LU, n + count, w.pivot, y)
        coefficient = limit_factor(c, w, i)
        effective = 0.0
        for j in range(n):
            pull = w.W[3 * i + 1, j] * w.unit[i, 0] + w.W[3 * i + 2, j] * w.unit[i, 1]
            effective += (w.W[3 * i, j] - coefficient * pull) * y[j]
        # (W_N - mu d W_T) M^-1 W_N = G_NN - mu G_NT . d
        if effective <= 0.0:
            z.counts[WHO] = i
            z.clock[DETAIL] = effective
            return PAINLEVE
    return SOUND


# ----------------------------------------------------------------------------------------------------------------------
# The loop.


@compiled
def record(c, w, z, h, work, heat, friction):
    """Write a sample of the motion that was solved last."""
    row = z.counts[SAMPLES]
    z.t[row] = w.time[0]
    z.sq[row], z.sv[row], z.sa[row], z.slam[row] = w.q, w.v, w.a, w.lam
    for i in range(w.closed.size):
        for j in range(3):
            z.sr[row, 3 * i + j] = w.r[3 * i + j]
            if w.axes.shape[0]:
                z.sr[row, 3 * i + j] = (
                    w.axes[i, 0, j] * w.r[3 * i] + w.axes[i, 1, j] * w.r[3 * i + 1] + w.axes[i, 2, j] * w.r[3 * i + 2]
                )
        word = word_of(c, w, i)
        if word == STICK and c.gapped[i] and not (w.r[3 * i] > 0.0 or w.contact[3 * i] <= 0.0):
            word = OPEN
        z.smode[row, i] = word
    z.ssum[row, 0], z.ssum[row, 1], z.ssum[row, 2], z.ssum[row, 3] = work, heat, friction, h
    z.counts[SAMPLES] += 1


@compiled
def record_here(c, w, z, h):
    """Write a sample of the state of the run, whose motion was solved last."""
    w.q[:] = z.q
    w.v[:] = z.v
    w.time[0] = z.clock[T]
    record(c, w, z, h, z.clock[WORK], z.clock[HEAT_SUM], z.clock[FRICTION_SUM])


@compiled
def keep(w, z):
    """Note that all up to here counts, and all that the run needs to go on from here."""
    z.counts[COMPLETE], z.counts[COMPLETE_EVENTS] = z.counts[SAMPLES], z.counts[EVENT_COUNT]
    z.kept_q[:] = z.q
    z.kept_v[:] = z.v
    z.kept_clock[:] = z.clock
    z.kept_counts[:] = z.counts
    for i in range(w.closed.size):
        z.kept_modes[i, 0], z.kept_modes[i, 1] = w.closed[i], w.slides[i]
        z.kept_modes[i, 2], z.kept_modes[i, 3] = w.direction[i, 0], w.direction[i, 1]
        z.kept_modes[i, 4], z.kept_modes[i, 5] = w.slow[i], w.sign[i]
        for j in range(KNOWN):
            z.kept_struck[i, j] = z.struck[i, j]
        z.kept_struck[i, KNOWN] = z.rests[i]
    z.kept_rows[: w.kept.size] = w.kept
    for j in range(w.counts.size):
        z.kept_rows[w.kept.size + j] = w.counts[j]
    z.kept_more[:2] = z.gain
    for k in range(z.signs.size):
        z.kept_more[2 + k] = z.signs[k]


@compiled
def rest(z, w, t):
    """Note the end of impacts that pile up, where it is due."""
    for i in range(w.closed.size):
        if z.rests[i] <= t:
            if w.closed[i]:
                note(z, z.rests[i], i, IMPACTS, REST)
            z.rests[i] = np.inf


@compiled
def asked(z, k):
    """Return the time of sample k; what misses the end of the run by rounding is the end."""
    t = z.clock[START] + k * z.clock[EVERY]
    return z.clock[END] if abs(t - z.clock[END]) <= 8 * 2.2e-16 * max(abs(z.clock[START]), abs(z.clock[END])) else t


@compiled
def touches(c, w, z):
    """Return whether something touches and does not separate, at the state of the run."""
    set_state(w, z.q, z.v)
    w.time[0] = z.clock[T]
    invoke(w.calls[TERMS, 0], w.calls[TERMS, 1], w.calls[TERMS, 2])
    for i in range(w.closed.size):
        if c.gapped[i] and w.gaps[i] <= TOUCHING and w.u[3 * i] <= STILL:
            return True
    return False


@compiled
def first_modes(c, w, z):
    """Let contacts without a gap slide where they move, at the state of the run."""
    set_state(w, z.q, z.v)
    w.time[0] = z.clock[T]
    invoke(w.calls[TERMS, 0], w.calls[TERMS, 1], w.calls[TERMS, 2])
    for i in range(w.closed.size):
        w.closed[i] = not c.gapped[i]
        x, y = w.u[3 * i + 1], w.u[3 * i + 2]
        speed = np.sqrt(x * x + y * y)
        w.slides[i] = w.closed[i] and speed > REST_PART * terms_of(w, i)
        if w.slides[i]:
            w.direction[i, 0], w.direction[i, 1] = x / speed, y / speed
    choose(c, w)


@compiled
def start(c, w, z, tables, limits, watched):
    """Begin a run: contacts that touch collide or close, others find out whether they stick; return how it ended."""
    first_modes(c, w, z)
    if touches(c, w, z):
        code = here(c, w, z, tables)
        if code != SOUND:
            return code
        record_here(c, w, z, 0.0)
        keep(w, z)
        code = impact(c, w, z, tables, limits)
    else:
        code = settle(c, w, z, tables, limits)
    if code != SOUND:
        return code
    rest(z, w, z.clock[T])
    code = here(c, w, z, tables)
    if code != SOUND:
        return code
    record_here(c, w, z, 0.0)
    fired = np.zeros(max(watched, 1), np.bool_)
    if not note_signs(w, z, watched, fired, False):
        return CALLBACK
    keep(w, z)
    return SOUND


@compiled
def plane_limit(c, w, z, limits):
    """Return the longest step that planes about to rest allow: half of the way; 0 where one is at rest now."""
    longest = np.inf
    for i in range(w.closed.size):
        if w.closed[i] and w.slides[i] and c.width[i] == 2 and w.slow[i] == 0.0:
            x, y = w.u[3 * i + 1], w.u[3 * i + 2]
            slowing = -(x * w.contact[3 * i + 1] + y * w.contact[3 * i + 2])
            # only where the path bends: a straight one ends at a zero of its speed
            bend = abs(x * w.contact[3 * i + 2] - y * w.contact[3 * i + 1])
            if slowing > 0.0 and bend > 1e-9 * slowing:
                left = (x * x + y * y) / slowing
                if left <= max(limits.event_tolerance, 8 * 2.2e-16 * abs(z.clock[T])):
                    return 0.0
                longest = min(longest, 0.5 * left)
    return longest


@compiled
def rest_planes(c, w, z, tables, limits):
    """Let planes that are at rest but for less than the tolerance come to rest; return how it ended."""
    k, t = w.closed.size, z.clock[T]
    old = np.zeros(k, np.int64)
    for i in range(k):
        old[i] = word_of(c, w, i)
        if w.closed[i] and w.slides[i] and c.width[i] == 2:
            x, y = w.u[3 * i + 1], w.u[3 * i + 2]
            slowing = -(x * w.contact[3 * i + 1] + y * w.contact[3 * i + 2])
            if slowing > 0.0 and (x * x + y * y) / slowing <= max(limits.event_tolerance, 8 * 2.2e-16 * abs(t)):
                w.slides[i] = False
    code = settle(c, w, z, tables, limits)
    for i in range(k):
        new = word_of(c, w, i)
        if new != old[i] and new != OPEN and old[i] != OPEN:
            note(z, t, i, old[i], new)
    return code


@compiled
def advance(c, w, z, tables, table, limits, chains, watched, loose_all, most):
    """Go on until the stop of this segment; return why it came back."""
    k = w.closed.size
    ready, fired = np.zeros(1, np.bool_), np.zeros(max(watched, 1), np.bool_)
    set_state(w, z.q, z.v)
    code = here(c, w, z, tables)
    if code != SOUND:
        z.clock[FAILED_AT] = z.clock[T]
        return FAILURE, code
    taken = 0
    while z.clock[T] < z.clock[STOP]:
        if z.counts[SAMPLES] >= z.t.size // 2 or z.counts[EVENT_COUNT] >= z.events.shape[0] // 2:
            return FULL, SOUND
        if taken >= most:
            return STEPS_TAKEN, SOUND
        code = step(c, w, z, tables, table, limits, chains, watched, loose_all, ready, fired)
        if code == ENDED:
            return ENDED, SOUND
        if code != SOUND:
            return FAILURE, code
        keep(w, z)
        taken += 1
    return DONE, SOUND


@compiled
def step(c, w, z, tables, table, limits, chains, watched, loose_all, ready, fired):
    """Take one step, or part of one up to an event; return how it ended."""
    k = w.closed.size
    t, stop = z.clock[T], z.clock[STOP]
    z.clock[FAILED_AT] = t
    due = np.inf
    for i in range(k):
        due = min(due, z.rests[i])
    h = limits.fixed if limits.fixed > 0.0 else z.clock[H]
    h = min(h, stop - t, due - t, limits.largest)
    if z.clock[EVERY] > 0.0:
        h = min(h, (z.t.size // 4) * z.clock[EVERY])
    slow = plane_limit(c, w, z, limits)
    if slow == 0.0:
        record_here(c, w, z, 0.0)
        keep(w, z)
        code = rest_planes(c, w, z, tables, limits)
        code = here(c, w, z, tables) if code == SOUND else code
        if code == SOUND:
            record_here(c, w, z, 0.0)
            follow(c, w, z)
            return standstill(z, 0.0)
        return code
    h = min(h, slow)
    ready[0] = False
    code, h = accepted(c, w, z, tables, table, limits, h)
    if code != SOUND:
        return code
    whole = h
    # gaps with bounds
    strikes, again = False, False
    K_kept = z.K.copy()
    for i in range(k):
        if c.gapped[i] and not w.closed[i] and chains.bounded[i]:
            code, at, struck, repeat = gap_in(c, w, z, tables, table, limits, chains, i, h, ready)
            if code != SOUND:
                return code
            if at < h or struck:
                z.K[:] = K_kept
                ready[0] = False
                h, strikes = at, struck
                if h > 0.0:
                    code, _ = shot(c, w, z, tables, table, limits, h, True)
                    if code != SOUND:
                        return code
                    K_kept[:] = z.K
                else:
                    z.end_q[:], z.end_v[:], z.more[:] = z.q, z.v, 0.0
                    break
    # modes
    changed = False
    if h > 0.0:
        before = h
        K_kept[:] = z.K
        code, h, changed = first_change(c, w, z, tables, table, limits, h)
        if code != SOUND:
            return code
        if changed:
            strikes = strikes and h >= before
            ready[0] = False
            if watched or loose_all.size:
                code, _ = shot(c, w, z, tables, table, limits, h, True)
                if code != SOUND:
                    return code
        else:
            z.K[:] = K_kept
    # the user's functions, and gaps without bounds
    count = 0
    loose = np.zeros(loose_all.size, np.int64)
    for j in range(loose_all.size):
        if not w.closed[loose_all[j]]:
            loose[count] = loose_all[j]
            count += 1
    loose = loose[:count]
    watching = False
    if watched or count:
        # a gap that has just opened without velocity begins at zero: it is looked at when it is open
        code, at, kind = first_watched(c, w, z, tables, table, limits, h, watched, loose, ready, fired)
        if code != SOUND:
            return code
        if kind > -2:
            if at < h:
                changed, strikes = False, False
            h = at
            if h > 0.0:
                code, _ = shot(c, w, z, tables, table, limits, h, False)
                if code != SOUND:
                    return code
            else:
                z.end_q[:], z.end_v[:], z.more[:] = z.q, z.v, 0.0
            watching = kind == -1
            strikes = strikes or kind >= 0
    # samples at asked times on the way are steps of their own
    end = t + h
    if not (changed or strikes):
        if end >= stop - 1e-15 * abs(stop):
            end = stop
        elif due - end <= 1e-15 * abs(end):
            end = due
    if z.clock[EVERY] > 0.0:
        finish_q, finish_v, finish = z.end_q.copy(), z.end_v.copy(), z.more.copy()
        while asked(z, z.counts[NEXT]) < end:
            at = asked(z, z.counts[NEXT])
            z.counts[NEXT] += 1
            if at <= t:
                continue
            set_state(w, z.q, z.v)
            code = here(c, w, z, tables)
            if code == SOUND:
                code, _ = shot(c, w, z, tables, table, limits, at - t, False)
            if code != SOUND:
                return code
            set_state(w, z.end_q, z.end_v)
            code = motion(c, w, tables, at, z.bounds, True)
            if code != SOUND:
                return code
            w.q[:], w.v[:], w.time[0] = z.end_q, z.end_v, at
            record(c, w, z, 0.0, z.clock[WORK] + z.more[0], z.clock[HEAT_SUM] + z.more[1], z.clock[FRICTION_SUM] + z.more[2])
        z.end_q[:], z.end_v[:], z.more[:] = finish_q, finish_v, finish
    code = go(c, w, z, tables, h)
    z.clock[T] = end
    z.clock[FAILED_AT] = end
    if code != SOUND:
        return code
    code = paradox(c, w, z)
    if code != SOUND:
        return code
    rest(z, w, end)
    if watching:
        for e in range(watched):
            if fired[e]:
                if z.counts[EVENT_COUNT] < z.events.shape[0]:
                    row = z.events[z.counts[EVENT_COUNT]]
                    row[0], row[1], row[2], row[3] = end, e, NOTHING, RISING if z.signs[e] < 0 else FALLING
                    z.counts[EVENT_COUNT] += 1
                z.zeros[e] += 1
    jump = changed or strikes
    if jump:
        record_here(c, w, z, h)
        if z.clock[EVERY] > 0.0 and asked(z, z.counts[NEXT]) == end:
            z.counts[NEXT] += 1
        keep(w, z)
        if strikes:
            code = impact(c, w, z, tables, limits)
            rest(z, w, end)
        else:
            code = change(c, w, z, tables, limits)
        if code == SOUND:
            code = here(c, w, z, tables)
        if code != SOUND:
            return code
    follow(c, w, z)
    wanted = z.clock[EVERY] > 0.0 and asked(z, z.counts[NEXT]) == end and end < z.clock[END]
    if wanted and not jump:
        z.counts[NEXT] += 1
    if jump or watching or wanted or z.clock[EVERY] == 0.0 or end >= z.clock[END]:
        record_here(c, w, z, 0.0 if jump else h)
    if not note_signs(w, z, watched, fired, watching):
        return CALLBACK
    z.counts[STEPS] += 1
    code = standstill(z, h)
    if changed and not strikes:
        for j in range(z.late.size - 1):
            z.late[j] = z.late[j + 1]
        z.late[z.late.size - 1] = end
        if code == SOUND and end - z.late[0] <= CHATTER_TIME * (z.clock[END] - z.clock[START]):
            return CHATTERING
    if code == SOUND and watching:
        for e in range(watched):
            if fired[e] and z.terminal[e] > 0 and z.zeros[e] >= z.terminal[e]:
                z.counts[WHO] = e
                keep(w, z)
                return ENDED
    return code


@compiled
def standstill(z, h):
    """Count events without a step; return whether they go on."""
    z.counts[STANDING] = 0 if h > 0.0 else z.counts[STANDING] + 1
    if z.counts[STANDING] > AT_ONCE:
        return STANDSTILL
    return SOUND
