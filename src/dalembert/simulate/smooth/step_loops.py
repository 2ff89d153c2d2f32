"""One explicit step on the constraint manifold, compiled: stages in the chart, then position and velocity put back.

Symbols: y = (x, v, W) with W the work of the joint forces; K stages, K[i] = y'(t + c_i h); q0 base of the chart.
`now` is the state that a step starts from; after `stages` and `settle` its end is in `work.q`, `work.velocity`.
Sources: Hairer, Norsett, Wanner, "Solving ODEs I", sec. II.10 (dop853); Hairer, Wanner, "Solving ODEs II", sec. VII.2
(projection).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dalembert.tableau.graph_loops import compiled
from dalembert.tableau.time.invoke_loops import invoke
from dalembert.tableau.time.signal_loops import set_signals

RATE, MOVE, CLOSE, ADMIT, EVENTS, SPARE, SIGNALS = range(7)
"""Rows of the table of calls, as `codes.CODES`."""

FINE, DECLINED, NON_FINITE, CALLBACK, OFF = range(5)
"""What became of it: solved, not by this code, not a number, stopped by a Python function, constraints left open."""

FAILED_CALL = 1
"""Place in the environment that a Python function sets when it fails."""

LAST_SOLVED, NOT_FINITE = 4, 10
"""Largest `Status` with an answer, and that of data which are not finite."""

CLOSED = 1e-13
"""Newton's method on positions ends at this residual (metres, radians), or where it makes no progress."""

OPEN = 1e-8
"""A residual that stays above this after closing means that the step was too long; files with few digits stay below."""

MOST_CLOSING = 6
"""Steps of Newton's method at most; one or two are usual."""


class Now(NamedTuple):
    """Where a step starts, and its stages."""

    q: np.ndarray
    v: np.ndarray
    work: np.ndarray  # (1,): W
    K: np.ndarray  # (stages + 1, 2 nv + 1); K[0] belongs to the start
    y: np.ndarray  # (2 nv + 1,): end of a step in the chart


class Pair(NamedTuple):
    """An embedded pair of explicit methods."""

    a: np.ndarray
    b: np.ndarray
    c: np.ndarray
    error: np.ndarray  # weights of the stages
    third: np.ndarray  # second weights of 8(5,3) pairs, or empty
    order: int


@compiled
def evaluate(work, tables, t, y, K, i, begin, stop, strict):
    """Write y' at (t, y) into K[i]; return what became of it.

    Stages are off the manifold, where redundant rows contradict each other by the error of the stage: their status says
    little, and the error test sees what matters. `strict` asks for a certified answer, at states on the manifold.
    """
    n = work.x.size
    for j in range(n):
        work.x[j], work.v[j] = y[j], y[n + j]
    if work.calls[SIGNALS, 0] != 0:
        invoke(work.calls[MOVE, 0], work.calls[MOVE, 1], work.calls[MOVE, 2])
    set_signals(work.calls, work.environment, tables, t, begin, stop)
    if work.environment[FAILED_CALL] != 0.0:
        return CALLBACK
    invoke(work.calls[RATE, 0], work.calls[RATE, 1], work.calls[RATE, 2])
    total = work.power[0]
    for j in range(n):
        K[i, j], K[i, n + j] = work.x_rate[j], work.acceleration[j]
        total += work.x_rate[j] + work.acceleration[j]
    K[i, 2 * n] = work.power[0]
    if strict and not work.status[0] <= LAST_SOLVED:
        return NON_FINITE if work.status[0] == NOT_FINITE else DECLINED
    return FINE if np.isfinite(total) else NON_FINITE


@compiled
def close(work):
    """Put work.q onto the constraints by Newton's method; return what became of it. Loses base and x."""
    last = np.inf
    worst = 0.0
    for _ in range(MOST_CLOSING):
        invoke(work.calls[CLOSE, 0], work.calls[CLOSE, 1], work.calls[CLOSE, 2])
        worst = np.abs(work.residual).max()
        if not np.isfinite(worst + np.abs(work.correction).sum()):
            return NON_FINITE
        if worst <= CLOSED or worst > 0.5 * last:
            break
        last = worst
        work.base[:] = work.q
        work.x[:] = work.correction
        invoke(work.calls[MOVE, 0], work.calls[MOVE, 1], work.calls[MOVE, 2])
    return OFF if worst > OPEN else FINE


@compiled
def evaluate_closed(work, tables, t, y, K, i, begin, stop):
    """Write y' = f(the state on the manifold next to y) into K[i].

    An extension of the equations beyond the manifold as good as any, with the same solutions. Near configurations where
    rows become dependent it stays bounded, where f itself grows like violation / distance^2.
    """
    n = work.x.size
    base = work.base.copy()
    work.environment[0] = t
    work.x[:] = y[:n]
    work.v[:] = y[n : 2 * n]
    invoke(work.calls[MOVE, 0], work.calls[MOVE, 1], work.calls[MOVE, 2])
    code = close(work)
    if code == FINE:
        invoke(work.calls[ADMIT, 0], work.calls[ADMIT, 1], work.calls[ADMIT, 2])
        admitted, closed, z = work.velocity.copy(), work.q.copy(), y.copy()
        z[n : 2 * n] = admitted
        work.base[:] = base
        code = evaluate(work, tables, t, z, K, i, begin, stop, False)
        if code == FINE:
            rates = K[i, :n].copy()
            z[:n] = 0.0
            work.base[:] = closed
            code = evaluate(work, tables, t, z, K, i, begin, stop, False)
            K[i, :n] = rates
    work.base[:] = base
    return code


@compiled
def begin_at(work, tables, now, t, begin, stop):
    """Put the base of the chart where the state is, and evaluate K[0]."""
    n = work.x.size
    work.base[:] = now.q
    now.y[:n] = 0.0
    now.y[n : 2 * n] = now.v
    now.y[2 * n] = now.work[0]
    return evaluate(work, tables, t, now.y, now.K, 0, begin, stop, True)


@compiled
def stages(work, tables, pair, now, t, h, begin, stop, strict, closed):
    """Compute the stages of a step by h and its end in now.y; `closed`: each from a state on the manifold."""
    n = work.x.size
    K, y = now.K, now.y
    work.base[:] = now.q
    for i in range(1, pair.b.size):
        for j in range(2 * n + 1):
            total = 0.0
            for k in range(i):
                total += pair.a[i, k] * K[k, j]
            start = 0.0 if j < n else (now.v[j - n] if j < 2 * n else now.work[0])
            y[j] = start + h * total
        if closed:
            code = evaluate_closed(work, tables, t + pair.c[i] * h, y, K, i, begin, stop)
        else:
            code = evaluate(work, tables, t + pair.c[i] * h, y, K, i, begin, stop, strict)
        if code != FINE:
            return code
    for j in range(2 * n + 1):
        total = 0.0
        for k in range(pair.b.size):
            total += pair.b[k] * K[k, j]
        start = 0.0 if j < n else (now.v[j - n] if j < 2 * n else now.work[0])
        y[j] = start + h * total
    return FINE


@compiled
def settle(work, now, t):
    """Move to the end of the step, close positions, make velocities admissible: work.q and work.v."""
    n = work.x.size
    work.environment[0] = t
    work.base[:] = now.q
    work.x[:] = now.y[:n]
    work.v[:] = now.y[n : 2 * n]
    invoke(work.calls[MOVE, 0], work.calls[MOVE, 1], work.calls[MOVE, 2])
    if work.calls[CLOSE, 0] != 0:
        code = close(work)
        if code != FINE:
            return code
    if work.calls[ADMIT, 0] != 0:
        invoke(work.calls[ADMIT, 0], work.calls[ADMIT, 1], work.calls[ADMIT, 2])
        if not work.status[0] <= LAST_SOLVED:
            return DECLINED
        work.v[:] = work.velocity
    return FINE


@compiled
def error_ratio(work, pair, now, h, scale_place, rtol, atol):
    """Return the error of the step over the tolerance; for 8(5,3) the combination of Hairer's dop853."""
    n = work.x.size
    five = three = 0.0
    for j in range(2 * n):
        if j < n:
            place = scale_place[j]
            size = 1.0 if place < 0 else max(abs(now.q[place]), abs(now.q[place] + now.y[j]))
        else:
            size = max(abs(now.v[j - n]), abs(now.y[j]))
        first = second = 0.0
        for k in range(pair.b.size):
            first += pair.error[k] * now.K[k, j]
            if pair.third.size:
                second += pair.third[k] * now.K[k, j]
        scale = atol + rtol * size
        five += (first / scale) ** 2
        three += (second / scale) ** 2
    if five == 0.0 and three == 0.0:
        return 0.0
    if pair.third.size:
        return abs(h) * five / np.sqrt((five + 0.01 * three) * 2 * n)
    return abs(h) * np.sqrt(five / (2 * n))
