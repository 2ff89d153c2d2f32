"""Samples of the explicit loop: at the ends of steps, or at equal times by shorter steps of full order."""

from __future__ import annotations

from dalembert.simulate.smooth.loop_state import ASKED, BEGIN, CLOSING, FULL, SAMPLES, STOP, T
from dalembert.simulate.smooth.step_loops import FINE, begin_at, put, settle, stages
from dalembert.tableau.time.newton_loops import inner, steady

ROUNDING = 8 * 2.2e-16
"""Part of the times by which start + k every may miss the end of the run and still be it."""


@inner
def asked_time(limits, k):
    """Return the time of sample k, start + k every; what misses the end of the run by rounding is the end."""
    t = limits.start + k * limits.every
    return limits.end if abs(t - limits.end) <= ROUNDING * max(abs(limits.start), abs(limits.end)) else t


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
        t = asked_time(limits, counts[ASKED] + 1)
        inside = t - clock[T]
        if t >= end:
            return FINE
        if inside <= 0.0:  # the start of this step, which is a sample
            counts[ASKED] += 1
            continue
        if counts[SAMPLES] == samples.t.size:
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
def sample_end(work, samples, now, counts, limits, h, end, event):
    """Write the end of a step where it is wanted: at every step, at a time that was asked for, at an event."""
    if limits.every > 0.0:
        asked = asked_time(limits, counts[ASKED] + 1) == end
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
