"""Gaps within a step, compiled: bounds on the motion of shapes, the first zero of a gap, edges of heightfields."""

# pyright: reportCallIssue=false, reportArgumentType=false

from __future__ import annotations

import numpy as np

from dalembert.kernel.array_loops import copy_rows, copy_to
from dalembert.kernel.loops import invoke, nested
from dalembert.kernel.views import cube, flags, matrix, vector, whole, whole_matrix
from dalembert.simulate.contact.engine_memory import (
    ALONG,
    APART,
    AT,
    ATOL,
    BETWEEN,
    DETAIL,
    EVENT_TOLERANCE,
    PASSAGE,
    RATE_UNIT,
    ROLLING,
    RTOL,
    SOUND,
    STANDING,
    TERMS,
    UNCERTAIN_GAP,
    WHO,
    T,
)
from dalembert.simulate.contact.field_loops import (
    DOUBLINGS,
    RADIUS,
    STEEP,
    TWIST,
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
from dalembert.simulate.contact.guard_loops import EDGE, GAP, guard, locate
from dalembert.simulate.contact.step_loops import TRIALS, accepted, inside, interpolate, set_state, shot, stay
from dalembert.simulate.limits import (
    APPROACHING,
    BESIDE_ZERO,
    EDGE_WIDTH,
    GRAZING,
    LOW_FLIGHT,
    OUTSIDE,
    PINCHED,
    POSITIVE,
    SEEMS_TO_SINK,
    TIME_ROUNDING,
)

LEAST_PART, MOST_LOOKS = 0.02, 2000
"""The run ends where, after MOST_LOOKS looks, less than LEAST_PART of a step is known to be without a contact."""

POLYNOMIAL, EARLY = 4.0, 1e-3
"""Error of the polynomial in tolerances, first look at what opens as a part of the step."""

# ----------------------------------------------------------------------------------------------------------------------
# Bounds on the motion of shapes (see `geometry.py`), and the first zero that they leave possible.


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
def isolate(w, i, h, start, end, L, within, width, slack, bracket):
    """Isolate the first zero of gap i between two points (s, g, g', room); write low and high into found (2, 4).

    Return 1 where there is one, 0 where there is none, -1 where it is certain only up to found[1]. `within` bounds the
    second derivative; of a point over a heightfield as long as it is certain to stay over one cell.
    """
    stack, top, looks = np.zeros((64, 4)), 0, 0
    grazing = GRAZING * vector(w, AT.levers)[i]
    a, f = np.zeros(4), field_of(w, i)
    speed = L / matrix(w, AT.field_numbers)[f, STEEP] if is_point(w, f) else 0.0
    copy_to(stack[0], end)
    copy_to(a, start)
    while top >= 0:
        b = stack[top]
        piece = b[0] - a[0]
        K = within if speed == 0.0 or speed * piece < a[3] else np.inf
        small = piece <= width or L * piece <= grazing
        if b[1] <= 0.0 and (small or 0.5 * (a[2] + b[2] + K * piece) < 0.0):
            copy_to(bracket[0], a)
            copy_to(bracket[1], b)
            return 1
        if b[1] > 0.0 and (small or least_value(a[0], a[1], a[2], b[0], b[1], b[2], L, K) > -grazing):
            copy_to(a, b)
            top -= 1
            continue
        if looks == MOST_LOOKS or top == 63:
            copy_to(bracket[1], a)
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
    width = max(limits[EVENT_TOLERANCE], TIME_ROUNDING * abs(clock[T]))
    slack = POLYNOMIAL * (limits[ATOL] + limits[RTOL])
    # nothing can happen: most steps end here
    lowest = least_value(start[0], start[1], start[2], end[0], end[1], end[2], L, K)
    if start[1] > 0.0 and end[1] > 0.0 and lowest > -GRAZING * vector(w, AT.levers)[i]:
        return SOUND, h, False
    if not ready[0]:
        code = interpolate(w, h)
        if code != SOUND:
            return code, h, False
        ready[0] = True
    if start[1] <= 0.0:
        code, at, struck, opened = opens(w, i, h, start, end, L, K)
        if not opened:
            return code, at, struck
    bracket = np.zeros((2, 4))
    for _ in range(TRIALS):
        verdict_of = isolate(w, i, h, start, end, L, within, width, slack, bracket)
        if verdict_of <= 0:
            certain = h if verdict_of == 0 else bracket[1, 0]
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
        low, g_low, high, g_high, code, sure = pinch(w, i, h, bracket)
        if code != SOUND:
            return code, h, False
        if sure:
            code, at = locate(w, GAP, i, 1.0, low, high, g_low, g_high, width)
            return code, at, True
        # else the bracket on the polynomial, by steps of full order
        code, low, g_low, high, g_high = stepped_bracket(w, i, h, start, bracket)
        if code != SOUND:
            return code, h, False
        if g_high > 0.0:
            # the polynomial was below zero, the step is not
            start[0], start[1], start[3] = high, g_high, room_around(w, f)
            start[2] = gap_and_rate(w, i, f)[1]
            continue
        code, at = locate(w, GAP, i, 1.0, low, high, g_low, g_high, width)
        return code, at, True
    return SOUND, start[0], False


@nested
def opens(w, i, h, start, end, L, K):
    """Look whether gap i, closed at the start of a step h, opens within it; then `start` is moved to where it is open.

    Return how it ended, the length up to which it is certain, whether it closes there, and whether it opens.
    """
    clock, tally, f = vector(w, AT.clock), whole(w, AT.tally), field_of(w, i)
    levers, limits = vector(w, AT.levers), vector(w, AT.limits)
    if not start[2] < -APPROACHING * (levers[i] * limits[RATE_UNIT] + L):
        sure = start[2] > 0.0 and np.isfinite(K)
        if sure and K * h < 2.0 * start[2] and not is_point(w, f):
            start[1] = POSITIVE
            return SOUND, h, False, True
        s = 1.9 * start[2] / K if sure else EARLY * h
        while s < h:
            g, r = gap_inside(w, i, h, s / h)
            if g > 0.0:
                start[0], start[1], start[2], start[3] = s, g, r, room_around(w, f)
                return SOUND, h, False, True
            s *= 2.0
        if end[1] > 0.0:
            return SOUND, h, False, False
    if start[2] < 0.0:
        return SOUND, 0.0, True, False
    if end[1] < -SEEMS_TO_SINK * abs(end[2]) * h:
        # it falls back at once: an impact now closes it; if none does, nothing can be told
        low = start[2] * start[2] <= 2.0 * K * LOW_FLIGHT * levers[i]
        if low and tally[STANDING] <= levers.size:
            return SOUND, 0.0, True, False
        clock[DETAIL] = -end[1]
        tally[WHO] = i
        return PASSAGE, h, False, False
    return SOUND, h, False, False


@nested
def stepped_bracket(w, i, h, start, bracket):
    """Return how it ended, and the bracket of a zero of gap i on the polynomial, its gaps by steps of full order."""
    stages = matrix(w, AT.stages)
    low, g_low, high, g_high = bracket[0, 0], bracket[0, 1], bracket[1, 0], bracket[1, 1]
    kept_stages = stages.copy()
    if high < h:
        code, g_high = guard(w, GAP, i, 1.0, high)
        copy_rows(stages, kept_stages)
        if code != SOUND:
            return code, low, g_low, high, g_high
    if not g_high > 0.0 and low > start[0]:
        code, g_low = guard(w, GAP, i, 1.0, low)
        copy_rows(stages, kept_stages)
        if code != SOUND:
            return code, low, g_low, high, g_high
        if g_low <= 0.0:
            low, g_low = start[0], start[1]
    return SOUND, low, g_low, high, g_high


@nested
def pinch(w, i, h, bracket):
    """Look by two steps of full order for a zero of gap i beside that of the step's polynomial in a bracket.

    Return the bracket (low, gap there, high, gap there), how it ended, and whether the zero is in it.
    """
    stages = matrix(w, AT.stages)
    low, g_low, high, g_high = bracket[0, 0], bracket[0, 1], bracket[1, 0], bracket[1, 1]
    a, b, ga, gb = low / h, high / h, g_low, g_high
    s = b
    for _ in range(60):
        s = b - gb * (b - a) / (gb - ga) if gb != ga else 0.5 * (a + b)
        s = s if a < s < b else 0.5 * (a + b)
        g, r = gap_inside(w, i, h, s)
        step = -g / r / h if r < 0.0 else 0.0
        if abs(step) < PINCHED or b - a < PINCHED:
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
        trial = s * h + part * BESIDE_ZERO * h
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
# Edges of heightfields.


@nested
def accepted_in_cells(w, h):
    """Take a step that meets the tolerance; closed contacts with heightfields end it right before an edge.

    Return how it ended, its length, and whether an edge is at its end.
    """
    q0, v0, clock = vector(w, AT.q0), vector(w, AT.v0), vector(w, AT.clock)
    q1, v1 = vector(w, AT.q1), vector(w, AT.v1)
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
            at_hand = at_hand or (rooms[f] <= OUTSIDE and leaving[f])
    if at_hand:
        stay(w)
        return SOUND, 0.0, True
    code, h = accepted(w, min(h, longest_step(w)))
    if code != SOUND:
        return code, h, False
    terms_at(w, q1, v1, clock[T] + h)
    ends, first, K_kept = np.zeros(count), h, stages.copy()
    for f in range(count):
        ends[f] = room_in(w, f) if closed[field_pair[f]] else 0.0
    crosses = False
    for f in range(count):
        if ends[f] >= 0.0 or (ends[f] >= -OUTSIDE and not leaving[f]):
            continue
        code, at = locate(w, EDGE, f, 1.0, 0.0, h, rooms[f], ends[f], EDGE_WIDTH)
        copy_rows(stages, K_kept)
        # right before it
        back, before = EDGE_WIDTH, 0.0
        while code == SOUND and at - back > 0.0:
            code, room = guard(w, EDGE, f, 1.0, at - back)
            copy_rows(stages, K_kept)
            if room > 0.0:
                before = at - back
                break
            back *= 2.0
        if code != SOUND:
            return code, h, False
        first, crosses = min(first, before), True
    if not crosses:
        return SOUND, h, False
    if first > 0.0:
        code, _ = shot(w, first, True)
        return code, first, True
    stay(w)
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
    time, room = EDGE_WIDTH, np.inf
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
        if room < 0.0 or room > before + OUTSIDE:
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
