"""Samples and events of a run as its loops write them down, compiled, and the last state that counts."""

# pyright: reportCallIssue=false, reportArgumentType=false

from __future__ import annotations

import numpy as np

from dalembert.kernel.array_loops import copy_to, fill
from dalembert.kernel.loops import nested
from dalembert.kernel.views import cube, flags, matrix, vector, whole, whole_matrix
from dalembert.kkt import Status
from dalembert.simulate.contact.engine_memory import (
    AT,
    COMPLETE,
    COMPLETE_EVENTS,
    END,
    EVENT_COUNT,
    EVERY,
    FALLING,
    FIRED,
    FORCE_UNIT,
    FRICTION_SUM,
    HEAT_SUM,
    HELD,
    INSIDE,
    KEPT_CONSTRAINTS,
    KNOWN,
    NOTHING,
    OPEN,
    REDUNDANT,
    RESIDUAL,
    RISING,
    SAMPLES,
    SLIP,
    SLIP_MINUS,
    SLIP_PLUS,
    START,
    STICK,
    WHO,
    WORK,
    T,
)
from dalembert.simulate.contact.friction_loops import static
from dalembert.simulate.limits import SAME_INSTANT, WEAK
from dalembert.simulate.samples import point_inside

UNIQUE, REDUNDANT_ROWS, HELD_STILL = int(Status.UNIQUE), int(Status.REDUNDANT), int(Status.HELD)
"""Verdicts of a solve, as compiled loops read them."""


# ----------------------------------------------------------------------------------------------------------------------
# Events.


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
def note_zeros(w, watched, fired):
    """Write zeros of the user's functions down, at the state of the run, and count them."""
    tally, zeros, events = whole(w, AT.tally), whole(w, AT.zeros), matrix(w, AT.events)
    signs, clock = vector(w, AT.signs), vector(w, AT.clock)
    for e in range(watched):
        if fired[e] == FIRED:
            if tally[EVENT_COUNT] < events.shape[0]:
                row = events[tally[EVENT_COUNT]]
                row[0], row[1], row[2], row[3] = clock[T], e, NOTHING, RISING if signs[e] < 0 else FALLING
                tally[EVENT_COUNT] += 1
            zeros[e] += 1


@nested
def is_terminal(w, watched, fired):
    """Return whether a zero of the user's functions ends the run, and note which."""
    tally, zeros, terminal = whole(w, AT.tally), whole(w, AT.zeros), whole(w, AT.terminal)
    for e in range(watched):
        if fired[e] == FIRED and terminal[e] > 0 and zeros[e] >= terminal[e]:
            tally[WHO] = e
            return True
    return False


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


# ----------------------------------------------------------------------------------------------------------------------
# Samples.


@nested
def within_limit(w, i):
    """Return the force of a contact that sticks along one direction, without what it exceeds its limit by rounding."""
    reactions, lam, load = vector(w, AT.reactions), vector(w, AT.lam), vector(w, AT.load)
    gapped, load_row = flags(w, AT.gapped), whole(w, AT.load_row)
    N = reactions[3 * i] if gapped[i] else (abs(lam[load_row[i]]) if load_row[i] >= 0 else load[i])
    force, limit = reactions[3 * i + 1], static(w, i) * N
    rounding = limit < abs(force) <= limit + WEAK * (vector(w, AT.limits)[FORCE_UNIT] + limit)
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
def asked(w, k, end):
    """Return the time of sample k, or of point k of the step to `end`; what misses the end of the run is the end."""
    clock, inside = vector(w, AT.clock), vector(w, AT.limits)[INSIDE]
    if inside > 0.0:
        return clock[T] + point_inside(k, inside) * (end - clock[T]) if k <= inside else end
    t = clock[START] + k * clock[EVERY]
    return clock[END] if abs(t - clock[END]) <= SAME_INSTANT * max(abs(clock[START]), abs(clock[END])) else t


# ----------------------------------------------------------------------------------------------------------------------
# What counts.


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
