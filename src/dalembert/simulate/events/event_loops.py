"""Events: zeros of g(t, x, x') on the polynomial between mesh points, isolated (`isolate_loops.py`) and located.

As in SciPy, a zero at the start counts, in the direction in which the function leaves it, and a terminal one ends the
run there; a function that stays zero has no event. Behind a jump zeros are counted once, before it. A function that
reaches zero without crossing it has an event there if the zero is seen, which takes an exact one.
"""

from __future__ import annotations

import numpy as np

from dalembert.kernel.loops import compiled, invoke
from dalembert.simulate.equations.signals import set_signals
from dalembert.simulate.events.isolate_loops import GRID, SPLIT, begin, insert, narrow, next_trial, verdict
from dalembert.simulate.limits import LEAST_PIECE
from dalembert.simulate.steppers.newton_loops import EVENT_NOT_FINITE, STOPPED

EVENTS = 5
MOST_BISECTIONS = 100
MOST_NODES = 20000
"""Nodes of a step at most: a function that needs more is not resolved, and the run says so."""

EPS = np.finfo(np.float64).eps


@compiled
def interpolate(history, dt, x, rates):
    """Evaluate sum_j phi_j prod_i<j (dt + offset_i) / size_i at t_n + dt, and its derivative: Newton's form."""
    phi, offsets, sizes, k = history
    c, d = 1.0, 0.0
    for i in range(x.size):
        x[i], rates[i] = phi[0, i], 0.0
    for j in range(1, k + 1):
        gap = (dt + offsets[j - 1]) / sizes[j - 1]
        d = d * gap + c / sizes[j - 1]
        c = c * gap
        for i in range(x.size):
            x[i] += c * phi[j, i]
            rates[i] += d * phi[j, i]


@compiled
def of_differences(phi, psi, k):
    """Return the history of a multistep method: the polynomial through its last k + 1 points."""
    offsets = np.zeros(k + 1)
    offsets[1:] = psi[:k]
    return phi, offsets, psi, k


@compiled
def evaluate(calls, environment, tables, t, low, high):
    """Evaluate g at the point that the codes read."""
    set_signals(calls, environment, tables, t, low, high)
    invoke(calls[EVENTS, 0], calls[EVENTS, 1], calls[EVENTS, 2])


@compiled
def values_at(point, tables, history, t, span, offset):
    """Evaluate all events at t + offset on the polynomial: point's `values`."""
    calls, x, rates, environment, _ = point
    interpolate(history, offset, x, rates)
    evaluate(calls, environment, tables, t + offset, span[0], span[1])


@compiled
def locate(point, tables, history, t, span, event, low, g_low, high, g_high):
    """Return the time offset of the root of one event between two offsets, to rounding of t."""
    values = point[4]
    if g_high == 0.0:
        return high
    bracket = np.array([low, g_low, high, g_high, 0.0])
    for _ in range(MOST_BISECTIONS):
        if abs(bracket[2] - bracket[0]) <= 4.0 * EPS * (abs(t) + abs(low)):
            break
        middle = next_trial(bracket)
        values_at(point, tables, history, t, span, middle)
        if values[event] == 0.0:
            return middle
        narrow(bracket, middle, values[event])
    return bracket[2]


@compiled
def nodes_of(point, tables, history, t, step, span, ends):
    """Return the nodes of a step, offsets and values of all events, split until all are certain; and whether they are.

    `ends` are the values at the end of the step.
    """
    values, least = point[4], max(LEAST_PIECE, 16.0 * EPS * abs(t / step))
    s, g, count = np.empty(64), np.empty((64, ends.size)), GRID.size
    # a first grid
    for j in range(count):
        s[j] = GRID[j]
        if j < count - 1:
            values_at(point, tables, history, t, span, (s[j] - 1.0) * step)
            g[j] = values
        else:
            g[j] = ends
    i, certain, scale = 0, True, np.empty(ends.size)
    begin(g, count, scale)
    # pieces that may hide a zero are split
    while i < count - 1:
        piece = verdict(s, g, count, i, least)
        if piece < 0:
            i += 1
            continue
        if count == MOST_NODES:
            certain = False
            break
        if count == s.size:
            wide_s, wide_g = np.empty(2 * count), np.empty((2 * count, ends.size))
            wide_s[:count], wide_g[:count] = s, g
            s, g = wide_s, wide_g
        at = s[piece] + SPLIT * (s[piece + 1] - s[piece])
        values_at(point, tables, history, t, span, (at - 1.0) * step)
        insert(s, g, count, piece, at, values, scale)
        count += 1
    return s[:count], g[:count], certain


@compiled
def roots(point, tables, history, t, step, span, signs, directions, opening):
    """Return the events of the last step in the order of time, rows (event, t, x), and whether no other can be there.

    `signs` are those of the values last seen apart from zero, 0 where a function is on a zero that was counted; they
    are updated. In the `opening` step a zero at its beginning counts.
    """
    calls, x, rates, environment, values = point
    kept, kept_rates = x.copy(), rates.copy()
    evaluate(calls, environment, tables, t, span[0], span[1])
    s, g, certain = nodes_of(point, tables, history, t, step, span, values.copy())
    found = np.empty((8, x.size + 2))
    count = 0
    for e in range(signs.size):
        still = opening
        for j in range(s.size):
            # a change of sign, a zero that is reached, or one at the beginning that is left
            before, here = signs[e], g[j, e]
            began = still and before == 0.0 and here != 0.0
            still = still and here == 0.0
            if not (began or before * here < 0.0 or (before != 0.0 and here == 0.0)):
                signs[e] = np.sign(here) if here != 0.0 else before
                continue
            signs[e] = np.sign(here)
            if directions[e] * (here if began else -before) < 0.0:
                continue
            # where it is
            high = (s[j] - 1.0) * step
            if began or j == 0:
                offset = -step
            else:
                low = (s[j - 1] - 1.0) * step
                offset = locate(point, tables, history, t, span, e, low, g[j - 1, e], high, here)
            values_at(point, tables, history, t, span, offset)
            if count == found.shape[0]:
                wide = np.empty((2 * count, x.size + 2))
                wide[:count] = found
                found = wide
            found[count, 0], found[count, 1], found[count, 2:] = e, t + offset, x
            count += 1
    # the state at the end of the step again
    x[:], rates[:] = kept, kept_rates
    environment[0] = t
    order = np.argsort(found[:count, 1] * np.sign(step), kind="mergesort")
    return found[:count][order], certain


@compiled
def _until_terminal(found, terminal):
    """Count down the terminal events; return how many events count, negative where one ends the integration.

    Events at the same time as the one that ends it count as well.
    """
    ended = False
    for k in range(found.shape[0]):
        if ended and abs(found[k, 1] - found[k - 1, 1]) > 8.0 * EPS * abs(found[k, 1]):
            return -k
        e = int(found[k, 0])
        terminal[e] -= 1
        ended = ended or terminal[e] == 0
    return -found.shape[0] if ended else found.shape[0]


@compiled
def begin_events(point, tables, state, signs, option):
    """Take the signs at the beginning of a segment; return events there, and whether one ends the run.

    A sign that changed across a jump is an event at the jump.
    """
    s = state[0]
    _, x, _, _, values = point
    found, count = np.empty((signs.size, x.size + 2)), 0
    if signs.size:
        evaluate(point[0], point[3], tables, s.t, s.t_low, s.t_high)
    for e in range(signs.size):
        crossed = s.opening == 0 and signs[e] * values[e] < 0.0
        if crossed and option.directions[e] * values[e] >= 0.0:
            found[count, 0], found[count, 1], found[count, 2:] = e, s.t, x
            count += 1
        if s.opening != 0 or values[e] != 0.0:
            signs[e] = np.sign(values[e])
    used = _until_terminal(found[:count], option.terminal)
    if used < 0:
        s.status = STOPPED
    return found[: abs(used)], used < 0


@compiled
def pass_events(point, tables, history, state, step, signs, option, events):
    """Find the events of the step that just ended at s.t; return all of them so far, and whether one ends the run.

    If so, s.t and the point in `work` are those of the event.
    """
    s = state[0]
    evaluate(point[0], point[3], tables, s.t, s.t_low, s.t_high)
    for e in range(signs.size):
        if not np.isfinite(point[4][e]):
            s.status, s.worst = EVENT_NOT_FINITE, e
            return events, True
    span = (s.t_low, s.t_high)
    found, certain = roots(point, tables, history, s.t, step, span, signs, option.directions, s.opening == 1)
    s.opening = 0
    s.unresolved += 0 if certain else 1
    used = _until_terminal(found, option.terminal)
    events = np.concatenate((events, found[: abs(used)]))
    if used < 0:
        time = found[-used - 1, 1]
        interpolate(history, time - s.t, point[1], point[2])
        s.t, s.status = time, STOPPED
    return events, used < 0
