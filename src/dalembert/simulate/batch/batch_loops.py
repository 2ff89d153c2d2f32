"""Run after run without Python: memory put back to its beginning, the loops of a single run called, samples appended.

Nothing here integrates: `advance_loops.advance` takes the steps of smooth runs, the unit of `contact/run_loops.py`
those from event to event. A run that comes back for Python (a rescue, an error, a start that is refused) is left out,
with its number in `verdict`: who called makes it by itself.
"""

# pyright: reportCallIssue=false, reportArgumentType=false

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dalembert.kernel.loops import compiled, invoke, nested
from dalembert.kernel.views import flags, whole, whole_matrix
from dalembert.simulate.contact import engine_memory as memory
from dalembert.simulate.contact.run_loops import BEGIN, EVALUATE, GO_ON
from dalembert.simulate.limits import DECAY_DIFFERENCE, DEEP
from dalembert.simulate.steppers.advance_loops import advance, first_step, write
from dalembert.simulate.steppers.explicit_loops import BEGIN as PIECE
from dalembert.simulate.steppers.explicit_loops import (
    DONE,
    FINE,
    FULL,
    LAST_SOLVED,
    SAMPLES,
    STEPS,
    STOP,
    H,
    T,
    begin_at,
    evaluate,
    put,
)
from dalembert.simulate.steppers.explicit_loops import ORIGIN as FIXED_FROM
from dalembert.types import Array

WAITING, COMPLETE, ALONE = range(3)
"""What became of a run: not yet tried, in the samples, to be made by itself."""

AT_A_TIME = 4096
"""Steps in one call of the loop, as of a single run."""

LONGEST = 50
"""Calls of the loop in one run: longer runs are made by themselves, where the keyboard is looked at."""


# ----------------------------------------------------------------------------------------------------------------------
# Memory as it was before the first run.


class Snapshot(NamedTuple):
    """Tables (k, 4) of arrays and of their copies, by words and by bytes."""

    words: Array
    kept_words: Array
    bytes: Array
    kept_bytes: Array


def snapshot(arrays: Sequence[Array]) -> tuple[Snapshot, list[Array]]:
    """Return what puts arrays back to what they are now, and what must be kept alive with it."""
    rows: dict[bool, list[list[int]]] = {True: [], False: []}
    kept, alive = {True: [], False: []}, []
    for array in arrays:
        if not array.size:
            continue
        copy = array.copy()
        alive += [array, copy]
        word = array.itemsize == 8
        for table, each in ((rows, array), (kept, copy)):
            table[word].append([each.__array_interface__["data"][0], each.size, 0, 0])
    tables = [np.array(table[word], np.int64).reshape(-1, 4) for word in (True, False) for table in (rows, kept)]
    return Snapshot(*tables), alive


@nested
def restore(snapshot):
    """Put memory back."""
    for k in range(snapshot.words.shape[0]):
        here, kept = whole(snapshot.words, k), whole(snapshot.kept_words, k)
        for i in range(here.size):
            here[i] = kept[i]
    for k in range(snapshot.bytes.shape[0]):
        flag, kept_flag = flags(snapshot.bytes, k), flags(snapshot.kept_bytes, k)
        for i in range(flag.size):
            flag[i] = kept_flag[i]


# ----------------------------------------------------------------------------------------------------------------------
# Smooth runs.


class Starts(NamedTuple):
    """Where N runs start: states, times of start and end, numbers of parameters."""

    q: Array
    v: Array
    begin: Array
    end: Array
    parameters: Array


class RunEnds(NamedTuple):
    """What became of N runs: numbers, places of their samples and events (first, one after the last), steps."""

    verdict: Array
    samples: Array  # (N, 2)
    events: Array  # (N, 2)
    steps: Array


@nested
def fastest(work, tables, now, clock):
    """Return a bound of how fast velocities decay at the state: the largest column sum of |da/dv|; inf if unknown."""
    n, most = work.x.size, 0.0
    loose = n < 0  # a value, not a literal: one `evaluate` is compiled for all
    put(work.base, now.q)
    for j in range(n):
        for side in range(2):
            for i in range(n):
                now.y[i], now.y[n + i] = 0.0, now.v[i]
            now.y[n + j] += DECAY_DIFFERENCE if side == 0 else -DECAY_DIFFERENCE
            now.y[2 * n] = 0.0
            code = evaluate(work, tables, clock[T], now.y, now.K, 1 + side, clock[PIECE], clock[STOP], loose)
            if code != FINE or not work.status[0] <= LAST_SOLVED:
                return np.inf
        total = 0.0
        for i in range(n):
            total += abs(now.K[1, n + i] - now.K[2, n + i])
        most = max(most, total / (2.0 * DECAY_DIFFERENCE))
    return most


@nested
def place(work, now, clock, starts, i, first):
    """Put the start of run i into memory that is as at the beginning."""
    put(now.q, starts.q[i])
    put(now.v, starts.v[i])
    for k in range(starts.parameters.shape[1]):
        work.environment[first + k] = starts.parameters[i, k]
    clock[T] = starts.begin[i]
    clock[PIECE] = clock[T]
    clock[STOP] = starts.end[i]
    clock[FIXED_FROM] = clock[T]


@compiled
def run_smooth(
    work, tables, pair, now, clock, counts, limits, samples, signs, nodes, kept, starts, ends, i, first, decay
):
    """Make the runs from i on; return the first that found no room for its samples.

    `first` is the place of parameters in the environment, `decay` the fastest decay in the length of a run that
    explicit steps are taken for, 0 where the method was asked for.
    """
    count = 0
    while i < starts.begin.size:
        if ends.verdict[i] != WAITING:
            i += 1
            continue
        span = starts.end[i] - starts.begin[i]
        if decay > 0.0:
            restore(kept)
            place(work, now, clock, starts, i, first)
            if not fastest(work, tables, now, clock) * span <= decay:
                ends.verdict[i] = ALONE
                i += 1
                continue
        restore(kept)
        place(work, now, clock, starts, i, first)
        counts[SAMPLES] = count
        code = begin_at(work, tables, now, clock[T], clock[PIECE], clock[STOP])
        if code == FINE:
            if count == samples.t.size:
                return i
            put(work.q, now.q)
            write(work, samples, counts, clock[T], now.work[0], 0.0)
            clock[H] = limits.fixed if limits.fixed > 0.0 else first_step(now, limits, work.x.size, span)
            calls = 0
            code = FULL
            while code == FULL and calls < LONGEST and counts[SAMPLES] < samples.t.size - 1:
                code = advance(work, tables, pair, now, clock, counts, limits, samples, signs, nodes, AT_A_TIME)
                calls += 1
            if code == FULL and calls < LONGEST and count > 0:
                return i  # again, in an empty buffer
        ends.verdict[i] = COMPLETE if code == DONE else ALONE
        if code == DONE:
            ends.samples[i, 0], ends.samples[i, 1] = count, counts[SAMPLES]
            ends.steps[i] = counts[STEPS]
            count = counts[SAMPLES]
        i += 1
    return i


# ----------------------------------------------------------------------------------------------------------------------
# Runs from event to event.


class Contacts(NamedTuple):
    """The memory of the engine that starts and ends of its runs are read from and written to."""

    command: Array  # (2,): where the unit of its loops and its table are
    arguments: Array
    tally: Array
    clock: Array
    environment: Array
    q0: Array
    v0: Array
    kept_q: Array
    kept_v: Array
    parameters: Array
    gapped: Array
    gaps: Array
    source: Array  # tables (k, 4) of its samples, and of the rows that they are appended to
    target: Array
    events: Array  # (rows, 4): time, number, words before and after
    all_events: Array


@nested
def ask(engine, which, number):
    """Run the loop of the engine."""
    engine.arguments[memory.FIRST], engine.arguments[memory.SECOND] = which, number
    invoke(engine.command[0], engine.command[1], 0)


@nested
def append(engine, row, event):
    """Move complete samples and events to the end of those of all runs; return where these end, or -1: no room."""
    count, happened = engine.tally[memory.COMPLETE], engine.tally[memory.COMPLETE_EVENTS]
    if row + count > engine.target[0, 1] or event + happened > engine.all_events.shape[0]:
        return -1, event
    for k in range(engine.source.shape[0]):
        source, target = whole_matrix(engine.source, k), whole_matrix(engine.target, k)
        for i in range(count):
            for j in range(source.shape[1]):
                target[row + i, j] = source[i, j]
    for i in range(happened):
        for j in range(4):
            engine.all_events[event + i, j] = engine.events[i, j]
    engine.tally[memory.SAMPLES] = engine.tally[memory.COMPLETE] = 0
    engine.tally[memory.EVENT_COUNT] = engine.tally[memory.COMPLETE_EVENTS] = 0
    return row + count, event + happened


@nested
def penetrates(engine):
    """Return whether a gap at the state is too small for a start, or no number."""
    deep = False
    for i in range(engine.gaps.size):
        deep = deep or (engine.gapped[i] and not engine.gaps[i] >= -DEEP)
    return deep


@nested
def begun(engine, starts, i):
    """Put the start of run i into memory that is as at the beginning; return whether it began."""
    put(engine.q0, starts.q[i])
    put(engine.v0, starts.v[i])
    put(engine.kept_q, starts.q[i])
    put(engine.kept_v, starts.v[i])
    put(engine.parameters, starts.parameters[i])
    ask(engine, EVALUATE, 0)
    if penetrates(engine):
        return False
    ask(engine, BEGIN, 0)
    return int(engine.arguments[memory.CODE]) == memory.SOUND


@compiled
def run_contacts(engine, kept, starts, ends, i, most):
    """Make the runs from i on; return the first that found no room. `most`: steps in one call of the engine's loop."""
    row = event = 0
    while i < starts.begin.size:
        if ends.verdict[i] != WAITING:
            i += 1
            continue
        restore(kept)
        why, end, happened = memory.FAILURE, row, event
        if begun(engine, starts, i):
            why = memory.FULL
            while why == memory.FULL or why == memory.STEPS_TAKEN:
                ask(engine, GO_ON, most)
                why = int(engine.arguments[memory.RESULT])
                if why == memory.DONE or why == memory.FULL or why == memory.STEPS_TAKEN:
                    end, happened = append(engine, end, happened)
                    if end < 0 and row > 0:
                        return i  # again, in an empty buffer
                    if end < 0 or engine.clock[memory.T] >= starts.end[i]:
                        break
        sound = why == memory.DONE and end >= 0 and engine.tally[memory.GAINS] == 0
        if sound and engine.environment[memory.FAILED] == 0.0:
            ends.verdict[i] = COMPLETE
            ends.samples[i, 0], ends.samples[i, 1] = row, end
            ends.events[i, 0], ends.events[i, 1] = event, happened
            ends.steps[i] = engine.tally[memory.STEPS]
            row, event = end, happened
        else:
            ends.verdict[i] = ALONE
        i += 1
    return i
