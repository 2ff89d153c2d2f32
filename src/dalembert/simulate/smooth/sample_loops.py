"""Samples of the explicit loop: at the ends of steps, or at equal times by shorter steps of full order."""

from __future__ import annotations

from dalembert.simulate.smooth.loop_state import ASKED, BEGIN, CLOSING, FULL, SAMPLES, STOP, T
from dalembert.simulate.smooth.step_loops import FINE, begin_at, settle, stages
from dalembert.tableau.graph_loops import compiled

SAME = 1e-9
"""A sample that is asked for within this part of a step of its end is that end."""


@compiled
def write(work, samples, counts, t, done, h):
    """Append what is in `work` as a sample."""
    row = counts[SAMPLES]
    samples.t[row] = t
    samples.q[row] = work.q
    samples.v[row] = work.v
    samples.a[row] = work.acceleration
    samples.multipliers[row] = work.multipliers
    samples.work[row] = done
    samples.h[row] = h
    counts[SAMPLES] += 1


@compiled
def asked_samples(work, tables, pair, now, clock, counts, limits, samples, h):
    """Write the samples asked for strictly inside a step by h, each by a shorter step of full order."""
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
        code = stages(work, tables, pair, now, clock[T], inside, clock[BEGIN], clock[STOP], False, counts[CLOSING] > 0)
        if code == FINE:
            code = settle(work, now, t)
        if code != FINE:
            return code
        kept_q, kept_v, kept_work = work.q.copy(), work.v.copy(), now.y[2 * work.x.size]
        code = _at(work, tables, now, t, kept_q, kept_v, clock)
        if code != FINE:
            return code
        write(work, samples, counts, t, kept_work, 0.0)


@compiled
def _at(work, tables, now, t, q, v, clock):
    """Evaluate accelerations at a state beside the step; the stages of the step are lost, its start is not."""
    first = now.K[0].copy()
    kept_q, kept_v = now.q.copy(), now.v.copy()
    now.q[:] = q
    now.v[:] = v
    code = begin_at(work, tables, now, t, clock[BEGIN], clock[STOP])
    now.q[:] = kept_q
    now.v[:] = kept_v
    now.K[0] = first
    work.q[:] = q
    work.v[:] = v
    return code


@compiled
def sample_end(work, samples, now, counts, limits, h, end):
    """Write the end of a step where it is wanted."""
    if limits.every > 0.0:
        t = limits.start + (counts[ASKED] + 1) * limits.every
        if abs(t - end) > h * SAME:
            return
        counts[ASKED] += 1
    work.q[:] = now.q
    write(work, samples, counts, end, now.work[0], h)


@compiled
def sample_inside(work, tables, pair, now, clock, counts, limits, samples, h):
    """Write the samples inside a step; its end is in `work` before and after."""
    kept_q, kept_v, kept_y = work.q.copy(), work.v.copy(), now.y.copy()
    code = asked_samples(work, tables, pair, now, clock, counts, limits, samples, h)
    work.q[:] = kept_q
    work.v[:] = kept_v
    now.y[:] = kept_y
    return code
