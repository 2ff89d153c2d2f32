"""Events: sign changes of g(t, x, x') between mesh points, located on the interpolating polynomial.

A function that is zero at the start is armed once it has left zero, so an event at the start is not reported and does
not stop the run. Roots are found by the Illinois method (M. Dowell, P. Jarratt, BIT 11 (1971) 168-174) to rounding of t.
"""

from __future__ import annotations

import numpy as np

from dalembert.tableau.graph_loops import compiled
from dalembert.tableau.time.invoke_loops import invoke
from dalembert.tableau.time.signal_loops import set_signals
from dalembert.tableau.time.state import STOPPED

EVENTS = 5
MOST_BISECTIONS = 100
EPS = np.finfo(np.float64).eps


@compiled
def interpolate(phi, psi, k, dt, x, rates):
    """Evaluate the polynomial through the last k + 1 points at t_n + dt."""
    c, d = 1.0, 0.0
    gap = dt / psi[0]
    for i in range(x.size):
        x[i], rates[i] = phi[0, i], 0.0
    for j in range(1, k + 1):
        d = d * gap + c / psi[j - 1]
        c = c * gap
        gap = (dt + psi[j - 1]) / psi[j]
        for i in range(x.size):
            x[i] += c * phi[j, i]
            rates[i] += d * phi[j, i]


@compiled
def evaluate(work, tables, t, begin, stop):
    """Write g at the point in `work`."""
    work.environment[0] = t
    set_signals(work, tables, t, begin, stop)
    invoke(work.calls[EVENTS, 0], work.calls[EVENTS, 1], work.calls[EVENTS, 2])


@compiled
def start_signs(work, state, signs, option):
    """Remember g at the start."""
    if signs.size:
        invoke(work.calls[EVENTS, 0], work.calls[EVENTS, 1], work.calls[EVENTS, 2])
        signs[:] = work.event_values


@compiled
def _locate(work, state, tables, phi, psi, event, low, g_low, high, g_high):
    """Return the time offset of the root of one event between two offsets."""
    s = state[0]
    side = 0
    for _ in range(MOST_BISECTIONS):
        if abs(high - low) <= 4.0 * EPS * (abs(s.t) + abs(s.h_used)):
            break
        middle = low + (high - low) * (g_low / (g_low - g_high))
        if not min(low, high) < middle < max(low, high):
            middle = 0.5 * (low + high)
        interpolate(phi, psi, s.order_used, middle, work.x, work.rates)
        evaluate(work, tables, s.t + middle, s.t_begin, s.t_stop)
        g = work.event_values[event]
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
def first_root(work, state, option, tables, phi, psi, signs, events, mesh, rows):
    """Record all events of the last step; at a terminal one shorten the mesh's last row to it and stop."""
    s = state[0]
    n = work.x.size
    step = mesh[rows - 1, 0] - mesh[rows - 2, 0]
    t, x, rates = s.t, work.x.copy(), work.rates.copy()
    evaluate(work, tables, t, s.t_begin, s.t_stop)
    now = work.event_values.copy()
    offsets, which = np.empty(signs.size), np.empty(signs.size, np.int64)
    found = 0
    for e in range(signs.size):
        before, after = signs[e], now[e]
        crossed = (before < 0.0 <= after) or (before > 0.0 >= after)
        if crossed and option.directions[e] * (after - before) >= 0.0:
            offsets[found] = _locate(work, state, tables, phi, psi, e, -step, before, 0.0, after)
            which[found] = e
            found += 1
        if after != 0.0 or crossed:
            signs[e] = after if after != 0.0 else -before
    order = np.argsort(offsets[:found] * (1.0 if step > 0.0 else -1.0))
    for place in order:
        e = which[place]
        interpolate(phi, psi, s.order_used, offsets[place], work.x, work.rates)
        row = np.empty((1, n + 2))
        row[0, 0], row[0, 1], row[0, 2:] = e, t + offsets[place], work.x
        events = np.concatenate((events, row))
        option.terminal[e] -= 1
        if option.terminal[e] == 0:
            s.t, s.status = t + offsets[place], STOPPED
            mesh[rows - 1, 0], mesh[rows - 1, 2 : n + 2], mesh[rows - 1, n + 2 :] = s.t, work.x, work.rates
            return events
    work.x[:], work.rates[:] = x, rates
    work.environment[0] = t
    return events
