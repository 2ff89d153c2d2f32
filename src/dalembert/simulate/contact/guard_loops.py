"""Guards, compiled: where within a step contacts stop to push, stick or slide, or a function of the user is zero."""

# pyright: reportCallIssue=false, reportArgumentType=false

from __future__ import annotations

import numpy as np

from dalembert.kernel.array_loops import copy_rows, copy_to, fill, least
from dalembert.kernel.loops import invoke, nested
from dalembert.kernel.views import flags, matrix, vector, whole, whole_matrix
from dalembert.simulate.contact.engine_memory import (
    AT,
    BEGUN,
    CALLBACK,
    EVALUATIONS,
    EVENT_TOLERANCE,
    EVENTS,
    FAILED,
    FIRED,
    FORCE_UNIT,
    PASSED,
    SOUND,
    TERMS,
    UNRESOLVED,
    T,
)
from dalembert.simulate.contact.field_loops import field_of, gap_and_rate, room_in
from dalembert.simulate.contact.friction_loops import static, static_applies
from dalembert.simulate.contact.mode_loops import margins, motion, opening
from dalembert.simulate.contact.step_loops import inside, interpolate, set_state, shot
from dalembert.simulate.events.isolate_loops import (
    CROSSING,
    GRID,
    QUIET,
    SPLIT,
    begin,
    insert,
    narrow,
    next_trial,
    verdict,
)
from dalembert.simulate.limits import (
    AT_ENDS,
    CHANGE_WIDTH,
    GRAZING,
    LEAST_PIECE,
    NEAR,
    POSITIVE,
    TIME_ROUNDING,
    WEAK,
)

APART_POINTS = 4.0
"""So many parts `NEAR` of a step lie between the points from which the end of sticking is extrapolated: rounding of the
first is hardly magnified."""

FORESEEN, LOOKS = 1e-6, 24
"""On the polynomial of a step zeros are looked for to this part of it, in so many looks at most: below `NEAR`, and far
above what the polynomial misses."""

SLOPE_OVER = 0.05
"""Part of a step over which the slope of a function at its end is taken."""

DIP = 0.2
"""A margin below this part of its largest may dip below zero between stages."""

MARGIN, GAP, WATCH, EDGE = range(4)
"""Guards whose zeros are located by steps of full order."""


# ----------------------------------------------------------------------------------------------------------------------
# Guards, and the location of their zeros by steps of full order.


@nested
def guard(w, kind, index, sign, h):
    """Step by h and evaluate a guard at the end; return how it ended, and its value."""
    code, _ = shot(w, h, False)
    if code != SOUND:
        return code, 0.0
    return guard_here(w, kind, index, sign, h)


@nested
def guard_here(w, kind, index, sign, h):
    """Evaluate a guard at the end of the step that was taken last."""
    q1, v1, environment = vector(w, AT.q1), vector(w, AT.v1), vector(w, AT.environment)
    clock, time = vector(w, AT.clock), vector(w, AT.time)
    event_values = vector(w, AT.event_values)
    tally = whole(w, AT.tally)
    calls = whole_matrix(w, AT.calls)
    closed = flags(w, AT.closed)
    t = clock[T] + h
    set_state(w, q1, v1)
    if kind == MARGIN:
        code = motion(w, t, False)
        tally[EVALUATIONS] += 1
        if code != SOUND:
            return code, 0.0
        values = np.zeros(3 * closed.size)
        margins(w, values)
        return SOUND, least(values)
    if kind == GAP:
        time[0] = t
        invoke(calls[TERMS, 0], calls[TERMS, 1], calls[TERMS, 2])
        return SOUND, gap_and_rate(w, index, field_of(w, index))[0]
    if kind == EDGE:
        time[0] = t
        invoke(calls[TERMS, 0], calls[TERMS, 1], calls[TERMS, 2])
        return SOUND, room_in(w, index)
    environment[0] = t
    invoke(calls[EVENTS, 0], calls[EVENTS, 1], calls[EVENTS, 2])
    if environment[FAILED] != 0.0:
        return CALLBACK, 0.0
    return SOUND, sign * event_values[index]


@nested
def locate(w, kind, index, sign, low, high, at_low, at_high, tolerance):
    """Find the length of a step to right behind a zero between two; return how it ended, and the length.

    A change of mode is stepped to; who looks for something else steps there when the first of all is known. What begins
    at zero, as the speed of a contact that has just let go, says nothing of where it comes back: halves are taken until
    it is positive somewhere. (A secant from zero looks right behind the start, where it is still zero up to rounding.)
    """
    bracket, widths, grown = np.zeros(5), np.zeros(3), at_low > POSITIVE
    bracket[0], bracket[1], bracket[2], bracket[3] = low, at_low if at_low > 0.0 else POSITIVE, high, at_high
    fill(widths, np.inf)
    for trial in range(200):
        low, high = bracket[0], bracket[2]
        # functions of the user may stay at zero behind it: then it is where they become zero
        if high - low <= tolerance or (bracket[3] == 0.0 and kind != WATCH):
            break
        slow = high - low > 0.5 * widths[trial % 3]
        widths[trial % 3] = high - low
        slow = slow or not grown
        middle = 0.5 * (low + high) if slow else next_trial(bracket)
        if bracket[3] == 0.0 and not slow:
            middle = high - tolerance
        middle = min(max(middle, low + 0.5 * tolerance), high - 0.5 * tolerance)
        if not low < middle < high:
            break
        code, value = guard(w, kind, index, sign, middle)
        if code != SOUND:
            return code, middle
        grown = grown or value > 0.0
        narrow(bracket, middle, value)
    if kind != MARGIN:
        return SOUND, bracket[2]
    code, _ = shot(w, bracket[2], False)
    return code, bracket[2]


# ----------------------------------------------------------------------------------------------------------------------
# The end of sticking, sliding and pushing within a step.


@nested
def first_change(w, h):
    """Find where a closed contact changes its mode within the step h that was taken last, stages in z.margins.

    Return how it ended, the length, and whether something changes there.
    """
    limits, rk_times, clock = vector(w, AT.limits), vector(w, AT.rk_times), vector(w, AT.clock)
    closed_ = flags(w, AT.closed)
    stages, stage_margins = matrix(w, AT.stages), matrix(w, AT.stage_margins)
    closed = False
    for i in range(closed_.size):
        closed = closed or closed_[i]
    if not closed or not h > 0.0:
        return SOUND, h, False
    tolerance = max(CHANGE_WIDTH, limits[EVENT_TOLERANCE], TIME_ROUNDING * abs(clock[T]))
    code, end = guard_here(w, MARGIN, 0, 1.0, h)
    if code != SOUND:
        return code, h, False
    low, at_low = 0.0, least(stage_margins[0])
    # where a margin dips between the stages it is looked at by steps of full order
    looks = np.zeros(40)
    count = doubtful(w, rk_times, h, looks)
    K_kept = stages.copy()
    for j in range(count):
        code, value = guard(w, MARGIN, 0, 1.0, looks[j])
        copy_rows(stages, K_kept)
        if code != SOUND:
            return code, h, False
        if value <= 0.0:
            code, at = located_change(w, h, low, looks[j], at_low, value, tolerance)
            return code, at, True
        low, at_low = looks[j], value
    if end > 0.0:
        if count:
            code, _ = shot(w, h, False)
        return code, h, False
    code, at = located_change(w, h, low, h, at_low, end, tolerance)
    return code, at, True


@nested
def located_change(w, h, low, high, at_low, at_high, tolerance):
    """Step to where a margin reaches zero between two lengths of a step h; return how it ended, and the length."""
    closed, slides, letting = flags(w, AT.closed), flags(w, AT.slides), matrix(w, AT.letting)
    sticks = False
    for i in range(closed.size):
        letting[i, 0] = 0.0
        sticks = sticks or (closed[i] and not slides[i])
    bracket = np.zeros(5)
    code = foresee(w, h, low, high, at_low, at_high, bracket)
    if code != SOUND:
        return code, high
    # what says that contacts hold no more may be zero, up to rounding, for a while before it is seen: back to `first`
    first, low, at_low, high, at_high = low, bracket[0], bracket[1], bracket[2], bracket[3]
    near = NEAR * h
    if sticks and near > tolerance:
        code, high = locate(w, MARGIN, 0, 1.0, low, high, at_low, at_high, near)
        if code != SOUND:
            return code, high
        code, at, holds_no_more = edge(w, first, high, near)
        if code != SOUND or holds_no_more:
            return code, at
        code, at_high = guard(w, MARGIN, 0, 1.0, high)
        if code != SOUND or at_high > 0.0:
            return code, high
    return locate(w, MARGIN, 0, 1.0, low, high, at_low, at_high, tolerance)


@nested
def foresee(w, h, low, high, at_low, at_high, bracket):
    """Narrow the bracket of a margin's zero on the polynomial of the step h, which costs one evaluation a look.

    Both ends are checked by steps of full order; return how it ended.
    """
    clock, tally = vector(w, AT.clock), whole(w, AT.tally)
    bracket[0], bracket[1], bracket[2], bracket[3] = low, at_low, high, at_high
    if not at_low > 0.0 or interpolate(w, h) != SOUND:
        return SOUND
    guess, values, width = bracket.copy(), np.zeros(3 * flags(w, AT.closed).size), FORESEEN * h
    for _ in range(LOOKS):
        if guess[2] - guess[0] <= width:
            break
        middle = min(max(next_trial(guess), guess[0] + 0.25 * width), guess[2] - 0.25 * width)
        inside(w, middle / h)
        code = motion(w, clock[T] + middle, False)
        tally[EVALUATIONS] += 1
        if code == CALLBACK:
            return code
        if code != SOUND:
            return SOUND
        margins(w, values)
        narrow(guess, middle, least(values))
    for side in range(2):
        at = guess[0] - width if side == 0 else guess[2] + width
        if bracket[0] < at < bracket[2]:
            code, value = guard(w, MARGIN, 0, 1.0, at)
            if code != SOUND:
                return code
            narrow(bracket, at, value)
    return SOUND


@nested
def edge(w, low, at, near):
    """Step to where contacts hold no more, if that is what happens next to `at`.

    Return how it ended, the length, and whether it is.
    What says it is zero before, grows from zero behind the edge, and is too small there to be told from zero: the force
    beyond the limit, or, where rows depend on each other and forces are not unique, the relative acceleration that
    complementarity gives. A parabola through three points on the right gives the edge; who lets go is seen there
    (`letting`: who, and where to).
    """
    letting = matrix(w, AT.letting)
    excess, who, code = np.zeros((3, letting.shape[0])), -1, SOUND
    for p in range(3):
        code, _ = guard(w, MARGIN, 0, 1.0, at + (1.0 + APART_POINTS * p) * near)
        if code != SOUND:
            break
        first = beyond(w, excess[p], p == 0)
        who = first if p == 0 else who
        if who < 0:
            break
    value = -1.0
    if code == SOUND and who >= 0:
        left = APART_POINTS * near * zero_before(excess[0, who], excess[1, who], excess[2, who])
        if np.isfinite(left):
            at = min(max(at + near - left, low), at)
            code, value = guard(w, MARGIN, 0, 1.0, at)
    # something else happens before: nobody lets go yet
    if value < 0.0:
        for i in range(letting.shape[0]):
            letting[i, 0] = 0.0
    return code if value >= 0.0 else SOUND, at, value >= 0.0


@nested
def beyond(w, out, first):
    """Write by how much sticking contacts do not hold; the first time note who lets go. Return who does most."""
    closed, slides, gapped = flags(w, AT.closed), flags(w, AT.slides), flags(w, AT.gapped)
    tangents, load_row = whole(w, AT.tangents), whole(w, AT.load_row)
    contact_rate = vector(w, AT.contact_rate)
    reactions, lam, load = vector(w, AT.reactions), vector(w, AT.lam), vector(w, AT.load)
    letting, limits, levers = matrix(w, AT.letting), vector(w, AT.limits), vector(w, AT.levers)
    pull = noise = largest = 0.0
    who = -1
    for j in range(reactions.size):
        pull = max(pull, abs(reactions[j]))
    pull, noise = WEAK * (limits[FORCE_UNIT] + pull), opening(w)
    for i in range(closed.size):
        if not closed[i] or slides[i] or tangents[i] == 0 or not static_applies(w, i):
            continue
        N = reactions[3 * i] if gapped[i] else (abs(lam[load_row[i]]) if load_row[i] >= 0 else load[i])
        if gapped[i] and not pull < N:
            continue  # it opens
        x, y, least_seen = contact_rate[3 * i + 1], contact_rate[3 * i + 2], noise * levers[i]
        out[i] = np.sqrt(x * x + y * y)
        if out[i] <= noise * levers[i]:
            x, y, least_seen = -reactions[3 * i + 1], -reactions[3 * i + 2], pull
            out[i] = np.sqrt(x * x + y * y) - static(w, i) * N
        if first and out[i] > least_seen:
            letting[i, 0], letting[i, 1], letting[i, 2] = 1.0, x, y
            if out[i] > largest:
                who, largest = i, out[i]
    return who


@nested
def zero_before(a, b, c):
    """Return how far left of 0 the parabola through (0, a), (1, b), (2, c) has its zero."""
    curve = 0.5 * (c - 2.0 * b + a)
    slope = b - a - curve
    under = slope * slope - 4.0 * curve * a
    if slope == 0.0 or under < 0.0:
        return np.nan
    return 2.0 * a / (slope + np.sign(slope) * np.sqrt(under))


@nested
def doubtful(w, times, h, looks):
    """Write times inside of a step at which a margin may dip below zero and come back; return how many.

    Stages are states of low order: a margin that falls there below `DIP` of its largest and rises again is looked at.
    """
    stage_margins = matrix(w, AT.stage_margins)
    order = whole(w, AT.rk_order)
    count = 0
    for g in range(stage_margins.shape[1]):
        lowest, largest, where = np.inf, 0.0, -1
        for o in range(order.size):
            value = stage_margins[order[o], g]
            if np.isfinite(value):
                largest = max(largest, value)
                if value < lowest:
                    lowest, where = value, o
        if where < 0 or lowest >= DIP * largest:
            continue
        s = times[order[where]]
        if not AT_ENDS < s < 1.0 - AT_ENDS:
            continue
        for o in range(order.size):
            s = times[order[o]]
            if stage_margins[order[o], g] < DIP * largest and AT_ENDS < s < 1.0 - AT_ENDS and count < looks.size - 1:
                looks[count] = s * h
                count += 1
    for a in range(1, count):
        for b in range(a, 0, -1):
            if looks[b] < looks[b - 1]:
                looks[b], looks[b - 1] = looks[b - 1], looks[b]
    kept = 0
    for j in range(count):
        if kept == 0 or looks[j] > looks[kept - 1]:
            looks[kept] = looks[j]
            kept += 1
    return kept


# ----------------------------------------------------------------------------------------------------------------------
# Functions without bounds: those of the user, gaps given as expressions; isolated on nodes (`isolate_loops.py`).


@nested
def node(w, h, part, watched, loose, slack, out):
    """Write all functions at a part of the step: the user's, then gaps without bounds; return whether none failed."""
    q0, v0, environment = vector(w, AT.q0), vector(w, AT.v0), vector(w, AT.environment)
    time, q1, v1 = vector(w, AT.time), vector(w, AT.q1), vector(w, AT.v1)
    clock, event_values, gaps = vector(w, AT.clock), vector(w, AT.event_values), vector(w, AT.gaps)
    calls = whole_matrix(w, AT.calls)
    if part == 0.0:
        set_state(w, q0, v0)
    elif part == 1.0:
        set_state(w, q1, v1)
    else:
        inside(w, part)
    place = 0
    if watched:
        environment[0] = clock[T] + part * h
        invoke(calls[EVENTS, 0], calls[EVENTS, 1], calls[EVENTS, 2])
        if environment[FAILED] != 0.0:
            return False
        for k in range(watched):
            out[place] = event_values[k]
            place += 1
    if loose.size:
        time[0] = clock[T] + part * h
        invoke(calls[TERMS, 0], calls[TERMS, 1], calls[TERMS, 2])
        for k in range(loose.size):
            # a gap that has just opened begins at zero, up to rounding: it is closed where it is clearly below
            if part == 0.0:
                grazing = GRAZING * vector(w, AT.levers)[loose[k]]
                slack[k] = grazing if gaps[loose[k]] <= grazing else 0.0
            out[place] = gaps[loose[k]] + slack[k]
            place += 1
    return True


@nested
def first_watched(w, h, jumps, watched, loose, ready, fired):
    """Find the first zero of the user's functions, or of a gap without bounds, within the step that was taken last.

    Return how it ended, the length, and which kind: -2 none, -1 a function of the user, else the gap. A gap may only
    fall through zero. `fired` says which functions are zero there. Where a gap closes, or a step `jumps` at its end,
    these are also those that would be zero within the tolerance around it: rounding alone decides which is first.
    """
    nodes, node_scale, limits = vector(w, AT.nodes), vector(w, AT.node_scale), vector(w, AT.limits)
    q1, v1, sums = vector(w, AT.q1), vector(w, AT.v1), vector(w, AT.sums)
    signs, clock = vector(w, AT.signs), vector(w, AT.clock)
    node_values, tally = matrix(w, AT.node_values), whole(w, AT.tally)
    total = watched + loose.size
    for k in range(watched):
        fired[k] = 0
    if total == 0 or not h > 0.0:
        return SOUND, h, -2
    if not ready[0]:
        code = interpolate(w, h)
        if code != SOUND:
            return code, h, -2
        ready[0] = True
    s, g, scale, values, slack = nodes, node_values, node_scale, np.zeros(total), np.zeros(loose.size)
    end_q, end_v, more = q1.copy(), v1.copy(), sums.copy()
    count = GRID.size
    for j in range(count):
        s[j] = GRID[j]
        if not node(w, h, GRID[j], watched, loose, slack, values):
            return CALLBACK, h, -2
        for e in range(total):
            g[j, e] = values[e]
    begin(g[:, :total], count, scale)
    if tally[BEGUN] == 0:
        tally[BEGUN] = 1
        if left_at_start(w, watched, g, fired):
            return SOUND, 0.0, -1
    tolerance = max(limits[EVENT_TOLERANCE], TIME_ROUNDING * abs(clock[T]))
    least = max(LEAST_PIECE, tolerance / h)
    i, added = 0, 0
    while i < count - 1:
        piece = verdict(s[:count], g[:count, :total], count, i, least)
        if piece >= 0:
            if added >= 200 or count >= s.size - 1:
                tally[UNRESOLVED] += 1
                piece = CROSSING
            else:
                at = s[piece] + SPLIT * (s[piece + 1] - s[piece])
                if not node(w, h, at, watched, loose, slack, values):
                    return CALLBACK, h, -2
                insert(s, g[:, :total], count, piece, at, values, scale)
                count, added = count + 1, added + 1
                i = min(i, piece)
                continue
        if piece != QUIET:
            code, best, who = first_crossing(w, h, s[i], s[i + 1], g[i], g[i + 1], watched, loose, fired, tolerance)
            if code != SOUND:
                return code, h, -2
            if who > -2:
                return SOUND, best, who
            copy_to(q1, end_q)
            copy_to(v1, end_v)
            copy_to(sums, more)
        for k in range(watched):
            if g[i + 1, k] != 0.0:
                signs[k] = np.sign(g[i + 1, k])
        i += 1
    if jumps and zero_at_end(w, h, s[:count], g[:count], watched, tolerance, fired):
        return SOUND, h, -1
    return SOUND, h, -2


@nested
def zero_at_end(w, h, s, g, watched, tolerance, fired):
    """Return whether functions of the user reach zero within a tolerance behind the step h, by their last slopes.

    Those that are zero this near, and do not count, are `PASSED`: behind the jump they are on the side that they go to.
    """
    last, before, some = s.size - 1, s.size - 2, False
    while before > 0 and s[last] - s[before] < SLOPE_OVER:
        before -= 1
    for k in range(watched):
        change = (g[last, k] - g[before, k]) / ((s[last] - s[before]) * h) * tolerance
        note_zero_at_end(w, k, g[last, k], change, fired)
        some = some or fired[k] == FIRED
    return some


@nested
def note_zero_at_end(w, k, value, change, fired):
    """Note whether a function is zero where a jump comes, as far as its change within the tolerance can tell."""
    signs, direction_of = vector(w, AT.signs), vector(w, AT.direction_of)
    fired[k] = 0
    if change == 0.0 or abs(value) > abs(change):
        return
    if signs[k] * change < 0.0 and (direction_of[k] == 0 or direction_of[k] == -signs[k]):
        fired[k] = FIRED
    else:
        fired[k], signs[k] = PASSED, np.sign(change)


@nested
def left_at_start(w, watched, g, fired):
    """Let zeros at the start of a run count in the direction in which they are left; return whether there are some."""
    signs, direction_of = vector(w, AT.signs), vector(w, AT.direction_of)
    left = False
    for k in range(watched):
        fired[k] = 0
        if signs[k] == 0.0 and g[1, k] != 0.0:
            way = np.sign(g[1, k])
            wanted = direction_of[k] == 0 or direction_of[k] == way
            signs[k] = -way if wanted else way
            fired[k] = FIRED if wanted else 0
            left = left or wanted
    return left


@nested
def first_crossing(w, h, first, last, g_first, g_last, watched, loose, fired, tolerance):
    """Locate the first zero, in a direction that is wanted, between two nodes at parts of the step h.

    Return how it ended, the length, and which kind, as `first_watched` does; a gap that the step does not close is
    corrected in `g_last`.
    """
    signs, direction_of, stages = vector(w, AT.signs), vector(w, AT.direction_of), matrix(w, AT.stages)
    best, who, low, high = np.inf, -2, first * h, last * h
    kept_stages = stages.copy()
    for k in range(watched):
        fired[k] = 0
        crosses = signs[k] != 0.0 and signs[k] * g_last[k] <= 0.0
        crosses = crosses and (g_first[k] != 0.0 or g_last[k] != 0.0)
        crosses = crosses and (direction_of[k] == 0 or direction_of[k] == -signs[k])
        if not crosses:
            continue
        code, at = locate(w, WATCH, k, signs[k], low, high, signs[k] * g_first[k], signs[k] * g_last[k], tolerance)
        copy_rows(stages, kept_stages)
        if code != SOUND:
            return code, best, who
        if at < best:
            for o in range(k):
                fired[o] = 0
            best, who = at, -1
        fired[k] = FIRED if at <= best else 0
    for k in range(watched, watched + loose.size):
        if not (g_first[k] > 0.0 and g_last[k] <= 0.0):
            continue
        gap = loose[k - watched]
        code, at_high = guard(w, GAP, gap, 1.0, high)
        code2, at_low = guard(w, GAP, gap, 1.0, low) if low > 0.0 else (SOUND, g_first[k])
        copy_rows(stages, kept_stages)
        if code != SOUND or code2 != SOUND:
            return max(code, code2), best, who
        if at_high > 0.0:
            g_last[k] = at_high
            continue
        low_end = low if at_low > 0.0 else 0.0
        code, at = locate(w, GAP, gap, 1.0, low_end, high, max(at_low, POSITIVE), at_high, tolerance)
        copy_rows(stages, kept_stages)
        if code != SOUND:
            return code, best, who
        if at < best:
            best, who = at, gap
    for k in range(watched if who >= 0 else 0):
        code, value = guard(w, WATCH, k, 1.0, best)
        copy_rows(stages, kept_stages)
        if code != SOUND:
            return code, best, who
        note_zero_at_end(w, k, value, (g_last[k] - g_first[k]) / (high - low) * tolerance, fired)
    return SOUND, best, who


@nested
def note_signs(w, watched, fired, any_fired):
    """Remember the signs of the user's functions at the state of the run; those that fired have changed theirs."""
    q0, v0, environment = vector(w, AT.q0), vector(w, AT.v0), vector(w, AT.environment)
    clock, event_values, signs = vector(w, AT.clock), vector(w, AT.event_values), vector(w, AT.signs)
    calls = whole_matrix(w, AT.calls)
    if not watched:
        return True
    set_state(w, q0, v0)
    environment[0] = clock[T]
    invoke(calls[EVENTS, 0], calls[EVENTS, 1], calls[EVENTS, 2])
    if environment[FAILED] != 0.0:
        return False
    for k in range(watched):
        value = -signs[k] if any_fired and fired[k] == FIRED else event_values[k]
        if value != 0.0 and fired[k] != PASSED:
            signs[k] = np.sign(value)
    return True
