"""Contacts from event to event, compiled: the run.

    step in a mode ─► gap closes? force, cone or sliding speed reaches its end? user's zero? ─► located by steps of full
    order ─► impact ─► modes anew ─► step ...

The loop comes back when its buffers are full, steps have been taken, or something has no answer: then the driver
(`engine.py`) says why. Only what is complete counts (`keep`).
"""

# pyright: reportCallIssue=false, reportArgumentType=false

from __future__ import annotations

import numpy as np

from dalembert.kernel.array_loops import copy_rows, copy_to
from dalembert.kernel.loops import invoke, nested
from dalembert.kernel.views import Unit, flags, matrix, table_at, vector, whole, whole_matrix
from dalembert.simulate.contact.cone_loops import paradox
from dalembert.simulate.contact.engine_memory import (
    AT,
    CALLBACK,
    CHATTERING,
    CODE,
    DONE,
    END,
    ENDED,
    EVENT_COUNT,
    EVERY,
    FAILED_AT,
    FAILURE,
    FIRED,
    FIRST,
    FIXED_STEP,
    FRICTION_SUM,
    FULL,
    HEAT_SUM,
    INSIDE,
    LARGEST,
    LAST_STEP,
    NEXT,
    OPEN,
    RESULT,
    ROWS,
    SAMPLES,
    SECOND,
    SOUND,
    STANDING,
    STANDSTILL,
    START,
    STEPS,
    STEPS_TAKEN,
    STOP,
    TERMS,
    WORK,
    H,
    T,
)
from dalembert.simulate.contact.gap_loops import accepted_in_cells, gap_in, step_behind
from dalembert.simulate.contact.guard_loops import first_change, first_watched, note_signs
from dalembert.simulate.contact.mode_loops import motion
from dalembert.simulate.contact.projection_loops import project
from dalembert.simulate.contact.record_loops import (
    asked,
    is_terminal,
    keep,
    note,
    note_zeros,
    record,
    record_here,
    word_of,
)
from dalembert.simulate.contact.step_loops import go, here, set_state, shot, stay
from dalembert.simulate.contact.transition_loops import (
    CHANGE,
    COLLIDE,
    SETTLE,
    first_modes,
    follow,
    plane_limit,
    rest,
    rest_planes,
    touches,
    transit,
)
from dalembert.simulate.limits import AT_STOP, CHATTER_TIME

AT_ONCE = 1000
"""Events without a step at most."""


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
    fired = np.zeros(max(watched, 1), np.int64)
    if not note_signs(w, watched, fired, False):
        return CALLBACK
    keep(w)
    return SOUND


@nested
def advance(w, watched, loose_all, most):
    """Go on until the stop of this segment; return why it came back; how the last solve ended is in `arguments`."""
    arguments = vector(w, AT.arguments)
    q0, v0, clock = vector(w, AT.q0), vector(w, AT.v0), vector(w, AT.clock)
    sample_t = vector(w, AT.sample_t)
    tally = whole(w, AT.tally)
    events = matrix(w, AT.events)
    ready, fired = np.zeros(1, np.bool_), np.zeros(max(watched, 1), np.int64)
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
def step_limit(w):
    """Return how long the next step may be, and when impacts that pile up come to rest."""
    clock, limits, rests = vector(w, AT.clock), vector(w, AT.limits), vector(w, AT.rests)
    due = np.inf
    for i in range(rests.size):
        due = min(due, rests[i])
    h = limits[FIXED_STEP] if limits[FIXED_STEP] > 0.0 else clock[H]
    h = min(h, clock[STOP] - clock[T], due - clock[T], limits[LARGEST])
    if clock[EVERY] > 0.0:
        h = min(h, (vector(w, AT.sample_t).size // 4) * clock[EVERY])
    return h, due


@nested
def come_to_rest(w):
    """Let planes that are at rest now stick, without a step; return how it ended."""
    record_here(w, 0.0)
    keep(w)
    code = rest_planes(w)
    code = here(w) if code == SOUND else code
    if code != SOUND:
        return code
    record_here(w, 0.0)
    follow(w)
    return standstill(w, 0.0)


@nested
def first_strike(w, h, ready, kept_stages):
    """Shorten the step to where the first gap with bounds closes; return how it ended, the length, what is at its end.

    At its end: 0 nothing new, 1 the end up to which the step is certain, 2 a contact that closes. `kept_stages` are
    those of the step.
    """
    closed, gapped, pair_bounded = flags(w, AT.closed), flags(w, AT.gapped), flags(w, AT.pair_bounded)
    stages, what = matrix(w, AT.stages), 0
    for i in range(closed.size):
        if gapped[i] and not closed[i] and pair_bounded[i] and h > 0.0:
            code, at, struck = gap_in(w, i, h, ready)
            if code != SOUND:
                return code, h, what
            if at < h or struck:
                copy_rows(stages, kept_stages)
                ready[0] = False
                h, what = at, 2 if struck else 1
                if h == 0.0:
                    stay(w)
                    break
                code, _ = shot(w, h, True)
                if code != SOUND:
                    return code, h, what
                copy_rows(kept_stages, stages)
    return SOUND, h, what


@nested
def open_gaps(w, loose_all):
    """Return which of some gaps are open."""
    closed, count = flags(w, AT.closed), 0
    loose = np.zeros(loose_all.size, np.int64)
    for j in range(loose_all.size):
        if not closed[loose_all[j]]:
            loose[count] = loose_all[j]
            count += 1
    return loose[:count]


@nested
def sample_on_the_way(w, end):
    """Record samples at asked times before the end of the step, by steps of their own; return how it ended."""
    inside = vector(w, AT.limits)[INSIDE] > 0.0
    clock, tally, sums = vector(w, AT.clock), whole(w, AT.tally), vector(w, AT.sums)
    q1, v1 = vector(w, AT.q1), vector(w, AT.v1)
    finish_q, finish_v, finish, t = q1.copy(), v1.copy(), sums.copy(), clock[T]
    if inside:
        tally[NEXT] = 1
    while asked(w, tally[NEXT], end) < end:
        at = asked(w, tally[NEXT], end)
        tally[NEXT] += 1
        if at <= t:
            continue
        set_state(w, vector(w, AT.q0), vector(w, AT.v0))
        code = here(w)
        if code == SOUND:
            code, _ = shot(w, at - t, False)
        if code != SOUND:
            return code
        set_state(w, q1, v1)
        code = motion(w, at, True)
        if code != SOUND:
            return code
        set_state(w, q1, v1)
        vector(w, AT.time)[0] = at
        record(w, 0.0, clock[WORK] + sums[0], clock[HEAT_SUM] + sums[1], clock[FRICTION_SUM] + sums[2])
    copy_to(q1, finish_q)
    copy_to(v1, finish_v)
    copy_to(sums, finish)
    return SOUND


@nested
def jump_at_end(w, h, edge, strikes):
    """Record the state before a jump and change the modes at the end of the step h; return how it ended."""
    clock, tally = vector(w, AT.clock), whole(w, AT.tally)
    clock[LAST_STEP] = 0.0
    record_here(w, h)
    if clock[EVERY] > 0.0 and asked(w, tally[NEXT], clock[T]) == clock[T]:
        tally[NEXT] += 1
    keep(w)
    if strikes or edge:
        code = SOUND if strikes else step_behind(w)
        code = transit(w, COLLIDE) if code == SOUND else code
        rest(w, clock[T])
    else:
        code = transit(w, CHANGE)
    return here(w) if code == SOUND else code


@nested
def chatters(w):
    """Note a change of mode; return whether so many come so soon after each other that they are an accumulation."""
    clock, late = vector(w, AT.clock), vector(w, AT.late)
    for j in range(late.size - 1):
        late[j] = late[j + 1]
    late[late.size - 1] = clock[T]
    return clock[T] - late[0] <= CHATTER_TIME * (clock[END] - clock[START])


@nested
def step(w, watched, loose_all, ready, fired):
    """Take one step, or part of one up to an event; return how it ended."""
    clock, stages = vector(w, AT.clock), matrix(w, AT.stages)
    tally = whole(w, AT.tally)
    t, stop = clock[T], clock[STOP]
    clock[FAILED_AT] = t
    h, due = step_limit(w)
    slow = plane_limit(w)
    if slow == 0.0:
        return come_to_rest(w)
    ready[0] = False
    code, h, edge = accepted_in_cells(w, min(h, slow))
    if code != SOUND:
        return code
    # gaps with bounds
    kept_stages = stages.copy()
    code, h, what = first_strike(w, h, ready, kept_stages)
    if code != SOUND:
        return code
    strikes, edge = what == 2, edge and what == 0
    # modes
    changed = False
    if h > 0.0:
        before = h
        copy_rows(kept_stages, stages)
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
            copy_rows(stages, kept_stages)
    # the user's functions, and gaps without bounds; one that has just opened begins at zero: it is looked at when open
    loose, watching = open_gaps(w, loose_all), False
    if watched or loose.size:
        code, at, kind = first_watched(w, h, changed or strikes, watched, loose, ready, fired)
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
                stay(w)
            for e in range(watched):
                watching = watching or fired[e] == FIRED
            strikes = strikes or kind >= 0
    end = t + h
    if not (changed or strikes or edge):
        if end >= stop - AT_STOP * abs(stop):
            end = stop
        elif due - end <= AT_STOP * abs(end):
            end = due
    if clock[EVERY] > 0.0 or vector(w, AT.limits)[INSIDE] > 0.0:
        code = sample_on_the_way(w, end)
        if code != SOUND:
            return code
    # the run moves to the end, and modes change there
    code = go(w, h)
    clock[T] = end
    clock[FAILED_AT] = end
    code = paradox(w) if code == SOUND else code
    if code != SOUND:
        return code
    rest(w, end)
    if watching:
        note_zeros(w, watched, fired)
    jump = changed or strikes or edge
    if jump:
        code = jump_at_end(w, h, edge, strikes)
        if code != SOUND:
            return code
    follow(w)
    wanted = clock[EVERY] > 0.0 and asked(w, tally[NEXT], end) == end and end < clock[END]
    if wanted and not jump:
        tally[NEXT] += 1
    if jump or watching or wanted or clock[EVERY] == 0.0 or end >= clock[END]:
        record_here(w, 0.0 if jump else h)
    if not note_signs(w, watched, fired, watching):
        return CALLBACK
    tally[STEPS] += 1
    code = standstill(w, h)
    if (changed or edge) and not strikes and chatters(w) and code == SOUND:
        return CHATTERING
    if code == SOUND and watching and is_terminal(w, watched, fired):
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
    if code == SOUND and vector(w, AT.limits)[INSIDE] > 0.0:  # pieces begin behind the jump
        code = here(w)
        record_here(w, 0.0)
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
