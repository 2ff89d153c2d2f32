"""Events: sign changes of g(t, x, x') between mesh points, located on the interpolating polynomial.

As in SciPy, a zero at the start counts, in the direction in which the function leaves it, and a terminal one ends the
run there; a function that stays zero has no event. Behind a jump zeros are counted once, before it.

Roots are found by the Illinois method (M. Dowell, P. Jarratt, BIT 11 (1971) 168-174) to rounding of
t.
"""

from __future__ import annotations

import numpy as np

from dalembert.tableau.graph_loops import compiled
from dalembert.tableau.time.invoke_loops import invoke
from dalembert.tableau.time.signal_loops import set_signals
from dalembert.tableau.time.state import EVENT_NOT_FINITE, STOPPED

EVENTS = 5
MOST_BISECTIONS = 100
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
def locate(point, tables, history, t, span, event, low, g_low, g_high):
    """Return the time offset of the root of one event between the offsets `low` and 0."""
    calls, x, rates, environment, values = point
    side, high = 0, 0.0
    if g_high == 0.0:
        return high
    for _ in range(MOST_BISECTIONS):
        if abs(high - low) <= 4.0 * EPS * (abs(t) + abs(low)):
            break
        middle = low + (high - low) * (g_low / (g_low - g_high))
        if not min(low, high) < middle < max(low, high):
            middle = 0.5 * (low + high)
        interpolate(history, middle, x, rates)
        evaluate(calls, environment, tables, t + middle, span[0], span[1])
        g = values[event]
        if g == 0.0:
            return middle
        if (g > 0.0) == (g_high > 0.0):
            high, g_high = middle, g
            if side == -1:
                g_low *= 0.5
            side = -1
        else:
            low, g_low = middle, g
            if side == 1:
                g_high *= 0.5
            side = 1
    return high


@compiled
def roots(point, tables, history, t, step, span, signs, directions, opening):
    """Return the events of the last step in the order of time, rows (event, t, x); update the signs.

    In the `opening` step a zero at its beginning counts.
    """
    calls, x, rates, environment, values = point
    kept, kept_rates = x.copy(), rates.copy()
    evaluate(calls, environment, tables, t, span[0], span[1])
    now = values.copy()
    found = np.empty((signs.size, x.size + 2))
    count = 0
    for e in range(signs.size):
        before, after = signs[e], now[e]
        crossed = (before < 0.0 <= after) or (before > 0.0 >= after)
        began = opening and before == 0.0 and after != 0.0
        if (crossed or began) and directions[e] * (after - before) >= 0.0:
            offset = -step if began else locate(point, tables, history, t, span, e, -step, before, after)
            interpolate(history, offset, x, rates)
            found[count, 0], found[count, 1], found[count, 2:] = e, t + offset, x
            count += 1
        if after != 0.0 or crossed:
            signs[e] = after if after != 0.0 else -before
    x[:], rates[:] = kept, kept_rates
    environment[0] = t
    for i in range(1, count):  # a handful: sorted by insertion
        for j in range(i, 0, -1):
            if (found[j, 1] - found[j - 1, 1]) * step < 0.0:
                row = found[j].copy()
                found[j] = found[j - 1]
                found[j - 1] = row
    return found[:count]


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
            signs[e] = values[e]
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
    found = roots(point, tables, history, s.t, step, span, signs, option.directions, s.opening == 1)
    s.opening = 0
    used = _until_terminal(found, option.terminal)
    events = np.concatenate((events, found[: abs(used)]))
    if used < 0:
        time = found[-used - 1, 1]
        interpolate(history, time - s.t, point[1], point[2])
        s.t, s.status = time, STOPPED
    return events, used < 0
