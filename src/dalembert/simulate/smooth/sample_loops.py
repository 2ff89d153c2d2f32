"""Samples of the explicit loop: at the ends of steps, or at equal times by shorter steps of full order."""

from __future__ import annotations

from dalembert.simulate.smooth.loop_state import ASKED, BEGIN, CLOSING, FULL, SAMPLES, STOP, T
from dalembert.simulate.smooth.step_loops import FINE, begin_at, put, settle, stages
from dalembert.tableau.time.newton_loops import inner, steady

SAME = 1e-9
"""A sample that is asked for within this part of a step of its end is that end."""


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
def asked_samples(work, tables, pair, now, clock, counts, limits, samples, h):
    """Write the samples asked for strictly inside a step by h, each by a shorter step of full order."""
    strict = limits.fixed > 0.0
    while True:
        t = limits.start + (counts[ASKED] + 1) * limits.every
        inside = t - clock[T]
        if inside >= h * (1.0 - SAME):
            return FINE
        counts[ASKED] += 1
        if inside <= h * SAME:
            continue
        if counts[SAMPLES] == samples.t.size:
            counts[ASKED] -= 1
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


@inner
def sample_end(work, samples, now, counts, limits, h, end):
    """Write the end of a step where it is wanted."""
    if limits.every > 0.0:
        t = limits.start + (counts[ASKED] + 1) * limits.every
        asked = abs(t - end) <= h * SAME
        if not asked and end < limits.end:
            return
        counts[ASKED] += 1 if asked else 0
    put(work.q, now.q)
    write(work, samples, counts, end, now.work[0], h)


@inner
def sample_inside(work, tables, pair, now, clock, counts, limits, samples, h):
    """Write the samples inside a step; its end is in `work` before and after."""
    kept_q, kept_v, kept_y = now.spare[7], now.spare[8], now.spare[9]
    put(kept_q, work.q)
    put(kept_v, work.v)
    put(kept_y, now.y)
    code = asked_samples(work, tables, pair, now, clock, counts, limits, samples, h)
    put(work.q, kept_q)
    put(work.v, kept_v)
    put(now.y, kept_y)
    return code
