"""Events: sign changes of g(t, x, x') between mesh points, located on the interpolating polynomial.

A function that is zero at the start is armed once it has left zero, so an event at the start is not reported and does
not stop the run. Roots are found by the Illinois method (M. Dowell, P. Jarratt, BIT 11 (1971) 168-174) to rounding of
t.
"""

from __future__ import annotations

import numpy as np

from dalembert.tableau.graph_loops import compiled
from dalembert.tableau.time.invoke_loops import invoke
from dalembert.tableau.time.signal_loops import set_signals

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
def evaluate(calls, environment, tables, t, begin, stop):
    """Evaluate g at the point that the codes read."""
    set_signals(calls, environment, tables, t, begin, stop)
    invoke(calls[EVENTS, 0], calls[EVENTS, 1], calls[EVENTS, 2])


@compiled
def locate(point, tables, phi, psi, k, t, span, event, low, g_low, g_high):
    """Return the time offset of the root of one event between the offsets `low` and 0."""
    calls, x, rates, environment, values = point
    side, high = 0, 0.0
    for _ in range(MOST_BISECTIONS):
        if abs(high - low) <= 4.0 * EPS * (abs(t) + abs(low)):
            break
        middle = low + (high - low) * (g_low / (g_low - g_high))
        if not min(low, high) < middle < max(low, high):
            middle = 0.5 * (low + high)
        interpolate(phi, psi, k, middle, x, rates)
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
def roots(point, tables, phi, psi, k, t, step, span, signs, directions):
    """Return the events of the last step in the order of time, rows (event, t, x); update the signs."""
    calls, x, rates, environment, values = point
    kept, kept_rates = x.copy(), rates.copy()
    evaluate(calls, environment, tables, t, span[0], span[1])
    now = values.copy()
    found = np.empty((signs.size, x.size + 2))
    count = 0
    for e in range(signs.size):
        before, after = signs[e], now[e]
        crossed = (before < 0.0 <= after) or (before > 0.0 >= after)
        if crossed and directions[e] * (after - before) >= 0.0:
            offset = locate(point, tables, phi, psi, k, t, span, e, -step, before, after)
            interpolate(phi, psi, k, offset, x, rates)
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
