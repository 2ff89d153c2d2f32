"""Explicit steps without Python: step control, samples, changes of sign."""

from __future__ import annotations

import numpy as np

from dalembert.kernel.loops import inner, steady
from dalembert.simulate.limits import (
    ALMOST_ALL,
    COLLAPSE,
    FIRST_STEP,
    FLAT_START,
    FLAT_STEP,
    GROW,
    LEAST_FIRST_STEP,
    SAFETY,
    SAME_INSTANT,
    SHRINK,
)
from dalembert.simulate.samples import point_inside
from dalembert.simulate.steppers.explicit_loops import (
    ALLOWED,
    ASKED,
    BEGIN,
    CALLBACK,
    CLOSE,
    CLOSING,
    DECLINED,
    DONE,
    EVALUATIONS,
    EVENT,
    FINE,
    FIRST_WIDE,
    FIXED,
    FULL,
    IN_A_ROW,
    LAST_RATIO,
    LAST_WIDE,
    LEAST_RATIO,
    NOISE,
    NON_FINITE,
    ORIGIN,
    REJECTED,
    RELAXED,
    SAMPLES,
    SHORT,
    STEPS,
    STOP,
    STUCK,
    TRIED,
    TURNED,
    USUAL,
    WIDEST,
    H,
    T,
    begin_at,
    error_ratio,
    put,
    settle,
    sign_changed,
    stages,
    work_ratio,
)
from dalembert.simulate.steppers.inside_loops import HIGH, LOW, UNRESOLVED, crosses, fit_stages

# ----------------------------------------------------------------------------------------------------------------------
# Samples of the explicit loop: at the ends of steps, at equal times or inside of steps by shorter ones of full order.


@inner
def asked_time(limits, clock, k, end):
    """Return the time of sample k: start + k every; or of point k of the step to `end`.

    What misses the end of the run by rounding is the end.
    """
    if limits.inside > 0:
        return clock[T] + point_inside(k, limits.inside) * (end - clock[T]) if k <= limits.inside else end
    t = limits.start + k * limits.every
    return limits.end if abs(t - limits.end) <= SAME_INSTANT * max(abs(limits.start), abs(limits.end)) else t


@steady
def write(work, samples, counts, t, done, h):
    """Append what is in `work` as a sample."""
    row = counts[SAMPLES]
    samples.t[row] = t
    put(samples.q[row], work.q)
    put(samples.v[row], work.v)
    put(samples.a[row], work.acceleration)
    put(samples.multipliers[row], work.multipliers)
    samples.work[row] = done
    samples.h[row] = h
    counts[SAMPLES] += 1


@inner
def asked_samples(work, tables, pair, now, clock, counts, limits, samples, end):
    """Write the samples asked for strictly inside a step to `end`, each by a shorter step of full order."""
    strict = limits.fixed > 0.0
    while True:
        t = asked_time(limits, clock, counts[ASKED] + 1, end)
        inside = t - clock[T]
        if t >= end:
            return FINE
        if inside <= 0.0:  # the start of this step, which is a sample
            counts[ASKED] += 1
            continue
        if counts[SAMPLES] >= samples.t.size - 1:  # the end of the step needs a row, too
            return FULL
        code = stages(work, tables, pair, now, clock[T], inside, clock[BEGIN], clock[STOP], strict, counts[CLOSING] > 0)
        if code == FINE:
            code = settle(work, now, t)
        if code != FINE:
            return code
        kept_work = now.y[2 * work.x.size]
        code = _at(work, tables, now, t, clock)
        if code != FINE:
            return code
        write(work, samples, counts, t, kept_work, 0.0)
        counts[ASKED] += 1


@inner
def _at(work, tables, now, t, clock):
    """Evaluate accelerations at the settled state in `work`; the stages of the step are lost, its start is not."""
    first, start_q, start_v = now.spare[4], now.spare[5], now.spare[6]
    put(first, now.K[0])
    put(start_q, now.q)
    put(start_v, now.v)
    put(now.q, work.q)
    put(now.v, work.v)
    code = begin_at(work, tables, now, t, clock[BEGIN], clock[STOP])
    put(work.q, now.q)
    put(work.v, now.v)
    put(now.q, start_q)
    put(now.v, start_v)
    put(now.K[0], first)
    return code


@steady
def sample_end(work, samples, now, clock, counts, limits, h, end, event):
    """Write the end of a step where it is wanted: at every step, at a time that was asked for, at an event."""
    if limits.inside > 0:
        counts[ASKED] = 0
    elif limits.every > 0.0:
        asked = asked_time(limits, clock, counts[ASKED] + 1, end) == end
        if not (asked or event) and end < limits.end:
            return
        counts[ASKED] += 1 if asked else 0
    put(work.q, now.q)
    write(work, samples, counts, end, now.work[0], h)


@steady
def sample_inside(work, tables, pair, now, clock, counts, limits, samples, end):
    """Write the samples inside a step to `end`; its end is in `work` before and after."""
    kept_q, kept_v, kept_y = now.spare[7], now.spare[8], now.spare[9]
    put(kept_q, work.q)
    put(kept_v, work.v)
    put(kept_y, now.y)
    code = asked_samples(work, tables, pair, now, clock, counts, limits, samples, end)
    put(work.q, kept_q)
    put(work.v, kept_v)
    put(now.y, kept_y)
    return code


# ----------------------------------------------------------------------------------------------------------------------
# Step after step without Python: step control, samples, changes of sign; back to Python where that has to decide.
#
# Source of the step control: Hairer, Norsett, Wanner, "Solving ODEs I", secs. II.4 and II.10.


REACH = 0.8
"""Part of the chart's reach that a step may turn a body by at its present speed."""

MOST_REJECTIONS = 100
"""Rejections in a row after which the run ends."""

TROUBLE = 0.3
"""Steps that have to be shorter than this part of the usual ones are taken with every stage on the manifold."""

VERY_SHORT = 0.03
"""Steps shorter than this part of the usual ones: Python looks whether rows are about to become dependent."""

NOISY, LARGEST_NOISE = 3, 1e6
"""Rejections in a row that do not halve the error; and the error over tolerance up to which noise is accepted."""


@steady
def first_step(now, limits, n, duration):
    """Return a first step from the sizes of y, y' and y'' (Hairer, Norsett, Wanner, II.4); K[0] belongs to the start.

    d0, d1: root mean squares of y and y' over the tolerance; h = d0 / (100 d1).
    """
    if n == 0:
        return limits.largest
    d0 = d1 = 0.0
    for j in range(2 * n):
        size = 1.0 if j < n else abs(now.v[j - n])
        scale = limits.atol + limits.rtol * size
        d0 += (size / scale) ** 2
        d1 += (now.K[0, j] / scale) ** 2
    d0, d1 = np.sqrt(d0 / (2 * n)), np.sqrt(d1 / (2 * n))
    h = 0.01 * d0 / d1 if d1 > FLAT_START else FLAT_STEP
    return max(min(h, limits.largest, FIRST_STEP * duration), LEAST_FIRST_STEP * duration)


@steady
def accept(work, tables, now, clock, counts, t):
    """Make the settled end of a step the start of the next one; evaluate K[0] there."""
    n = work.x.size
    put(now.q, work.q)
    put(now.v, work.v)
    now.work[0] = now.y[2 * n]
    clock[T] = t
    counts[EVALUATIONS] += 1
    return begin_at(work, tables, now, t, clock[BEGIN], clock[STOP])


@inner
def turned_too_far(now, limits):
    """Return whether a body has turned further than the chart reaches."""
    for k in range(limits.rotations.size):
        i = limits.rotations[k]
        if now.y[i] ** 2 + now.y[i + 1] ** 2 + now.y[i + 2] ** 2 > limits.turn**2:
            return True
    return False


@inner
def smallest(clock):
    """Return the step below which time does not move any more."""
    return COLLAPSE * max(abs(clock[T]), abs(clock[STOP]))


@steady
def try_step(work, tables, pair, now, clock, counts, limits, h, end):
    """Take the stages of a step and settle its end; return (what became of it, error over tolerance)."""
    fixed = limits.fixed > 0.0
    counts[EVALUATIONS] += pair.b.size - 1
    code = stages(work, tables, pair, now, clock[T], h, clock[BEGIN], clock[STOP], fixed, counts[CLOSING] > 0)
    if code != FINE:
        return code, np.inf
    if turned_too_far(now, limits):
        return NON_FINITE if fixed else TURNED, np.inf
    ratio = error_ratio(work, pair, now, h, limits.scale_place, limits.rtol, limits.atol)
    if work.worth.size:
        ratio = max(ratio, work_ratio(work, pair, now, h, limits.rtol, limits.atol))
    if not fixed and not ratio < clock[ALLOWED]:
        return FINE, ratio
    code = settle(work, now, end)
    return code, max(ratio, admitted_ratio(work, now, limits)) if code == FINE else ratio


@inner
def admitted_ratio(work, now, limits):
    """Return by how much velocities had to change to be admissible at the end of a step, over the tolerance.

    No more than the error of the step, but next to a singular configuration: rows that have become short make a large
    change of a small error, which the stages do not see.
    """
    n, total = work.x.size, 0.0
    for j in range(n):
        size = max(abs(now.v[j]), abs(work.v[j]))
        total += ((work.v[j] - now.y[n + j]) / (limits.atol + limits.rtol * size)) ** 2
    return np.sqrt(total / n) if n else 0.0


@inner
def shrink(clock, counts, pair, h, ratio, can_close):
    """Choose a shorter step after a rejection; notice errors that do not fall with the step: noise near a singularity.

    Where three shorter steps in a row have not halved the error, it is not one of the method, and the smallest error
    seen is allowed for the next step.
    """
    counts[REJECTED] += 1
    counts[IN_A_ROW] += 1
    noisy = ratio > 0.5 * clock[LAST_RATIO]
    clock[NOISE] = clock[NOISE] + 1.0 if noisy else 0.0
    clock[LEAST_RATIO] = min(clock[LEAST_RATIO], ratio)
    clock[LAST_RATIO] = ratio
    if h < TROUBLE * clock[USUAL] and counts[CLOSING] == 0:
        counts[CLOSING] = can_close
    if clock[NOISE] >= NOISY and clock[LEAST_RATIO] < LARGEST_NOISE:
        clock[ALLOWED] = 2.0 * clock[LEAST_RATIO]
        clock[NOISE] = 0.0
        clock[H] = 2.0 * h
        return
    factor = SHRINK if not ratio < np.inf else max(SHRINK, SAFETY * ratio ** (-1.0 / pair.order))
    clock[H] = h * factor


@inner
def note_wide(clock, counts, end, ratio):
    """Note when a step is taken with an error above the tolerance, and by how much."""
    if counts[RELAXED] == 0:
        clock[FIRST_WIDE] = clock[T]
    clock[LAST_WIDE], clock[WIDEST] = end, max(clock[WIDEST], ratio)
    counts[RELAXED] += 1


@inner
def grow(clock, counts, pair, h, ratio, last, after_rejection):
    """Choose the next step after an accepted one."""
    clock[USUAL] = max(0.95 * clock[USUAL], h)
    counts[IN_A_ROW] = 0
    if h > 2.0 * TROUBLE * clock[USUAL]:
        counts[CLOSING] = 0
    clock[ALLOWED], clock[NOISE], clock[LEAST_RATIO], clock[LAST_RATIO] = 1.0, 0.0, np.inf, np.inf
    if last and h < clock[H] * 0.99:
        return
    factor = GROW if ratio == 0.0 else min(GROW, SAFETY * ratio ** (-1.0 / pair.order))
    clock[H] = h * (min(factor, 1.0) if after_rejection else max(SHRINK, factor))


@inner
def reach_of_chart(now, limits):
    """Return the step in which no body turns further than most of the chart's reach."""
    fastest = 0.0
    for k in range(limits.rotations.size):
        i = limits.rotations[k]
        fastest = max(fastest, now.v[i] ** 2 + now.v[i + 1] ** 2 + now.v[i + 2] ** 2)
    return REACH * limits.turn / np.sqrt(fastest) if fastest > 0.0 else np.inf


@inner
def next_step(clock, counts, limits, now):
    """Return the size of the next step, where it ends, and whether that is the end of the segment."""
    fixed = limits.fixed > 0.0
    h = limits.fixed if fixed else min(clock[H], limits.largest, reach_of_chart(now, limits))
    left = clock[STOP] - clock[T]
    if h * (1.0 + ALMOST_ALL) >= left:
        return left, clock[STOP], True
    return h, clock[ORIGIN] + (counts[FIXED] + 1) * limits.fixed if fixed else clock[T] + h, False


@steady
def event_inside(work, tables, pair, now, clock, counts, nodes, signs, h, end):
    """Return whether an event lies in the step just tried; its end stays in `work`, `nodes.found` says where."""
    put(nodes.before, signs)
    put(nodes.q, work.q)
    put(nodes.v, work.v)
    closed = counts[CLOSING] > 0
    code = fit_stages(work, tables, pair, now, nodes, clock[T], h, clock[BEGIN], clock[STOP], closed)
    put(work.q, nodes.q)
    put(work.v, nodes.v)
    if code == FINE:
        return crosses(work, now, nodes, signs, clock[T], h, end)
    nodes.counts[UNRESOLVED] += 1
    nodes.found[LOW], nodes.found[HIGH] = 0.0, 1.0
    return sign_changed(work, signs, end)


@steady
def advance(work, tables, pair, now, clock, counts, limits, samples, signs, nodes, most_steps):
    """Step to clock[STOP]; return why it came back. K[0] must belong to the start."""
    taken = 0
    rejected = False
    fixed = limits.fixed > 0.0
    while clock[T] < clock[STOP]:
        if taken >= most_steps or counts[SAMPLES] >= samples.t.size:
            return FULL
        # a trial step: stages, and the state put back onto the manifold
        h, end, last = next_step(clock, counts, limits, now)
        if not (last or h > smallest(clock)):
            return STUCK
        clock[TRIED] = h
        code, ratio = try_step(work, tables, pair, now, clock, counts, limits, h, end)
        if code in (CALLBACK, DECLINED) or (fixed and code != FINE):
            return code
        if code == TURNED and h > smallest(clock):  # the chart ends; the motion is as good as ever
            counts[REJECTED] += 1
            clock[H] = 0.5 * h
            continue
        # rejected: a shorter step, unless it would be too short
        if code != FINE or not (fixed or ratio < clock[ALLOWED]):
            rejected = True
            shrink(clock, counts, pair, h, np.inf if code != FINE else ratio, 1 if work.calls[CLOSE, 0] != 0 else 0)
            if not clock[H] > smallest(clock) or counts[IN_A_ROW] > MOST_REJECTIONS:
                return NON_FINITE if code != FINE else STUCK
            if counts[CLOSING] == 1 and clock[H] < VERY_SHORT * clock[USUAL]:
                return SHORT
            continue
        # accepted: an event inside ends the call, samples inside are written
        if not fixed and ratio > 1.0:
            note_wide(clock, counts, end, ratio)
        if signs.size and event_inside(work, tables, pair, now, clock, counts, nodes, signs, h, end):
            return EVENT
        if limits.every > 0.0 or limits.inside > 0:
            code = sample_inside(work, tables, pair, now, clock, counts, limits, samples, end)
            if code != FINE:
                put(signs, nodes.before)
                return code
        # the next step, the end of this one as its start
        if not fixed:
            grow(clock, counts, pair, h, ratio, last, rejected)
        rejected = False
        counts[STEPS] += 1
        counts[FIXED] += 1
        taken += 1
        code = accept(work, tables, now, clock, counts, end)
        if code != FINE:
            return code
        sample_end(work, samples, now, clock, counts, limits, h, end, False)
    return DONE
