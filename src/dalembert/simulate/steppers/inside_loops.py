"""Event functions inside a step, compiled: on a polynomial of the step in its chart, isolated by `isolate_loops`.

    y(s) = y_0 + h sum_k sum_p P_kp s^p K_k        the continuous extension of an explicit pair, order 7 or 4
    x(s) = cubic through both ends with their velocities, v = x' / h        of a variational step

The polynomial is as good as the step; it says in which piece the first zero is. Where exactly, steps of full order
tell.
Sources: Hairer, Norsett, Wanner, "Solving ODEs I", sec. II.6.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dalembert.kernel.loops import inner, invoke, steady
from dalembert.simulate.events.isolate_loops import GRID, SPLIT, begin, insert, verdict
from dalembert.simulate.limits import COLLAPSE, LEAST_PIECE
from dalembert.simulate.steppers.explicit_loops import EVENTS, FAILED_CALL, FINE, MOVE, evaluate, evaluate_closed, put

LOW, HIGH = range(2)
"""Places in `Nodes.found`: ends of the piece with the first zero, parts of the step; both 0: a zero at the start."""

MOST_NODES = 4096
"""Nodes of a step at most: a function that needs more before its first zero is not resolved, and the run says so."""

ON_A_ZERO, UNRESOLVED = range(2)
"""Places in `Nodes.counts`: 1 until the first step, where a zero at the start counts; steps that were not resolved."""


class Nodes(NamedTuple):
    """Memory of the search."""

    s: np.ndarray
    g: np.ndarray  # (nodes, events)
    C: np.ndarray  # (degree + 1, 2 nv): coefficients of (x, v)
    found: np.ndarray
    counts: np.ndarray
    directions: np.ndarray
    before: np.ndarray  # signs at the start of the step
    scale: np.ndarray
    opened: np.ndarray  # direction in which a function left a zero at the start
    q: np.ndarray
    v: np.ndarray


def nodes_for(directions: np.ndarray, nq: int, nv: int, degree: int) -> Nodes:
    """Return the memory for events with these directions."""
    m = directions.size
    room = MOST_NODES if m else 0
    return Nodes(
        np.zeros(room), np.zeros((room, m)), np.zeros((degree + 1, 2 * nv)), np.zeros(2),
        np.array([1, 0], np.int64), directions.astype(float), np.zeros(m), np.zeros(m), np.zeros(m), np.zeros(nq),
        np.zeros(nv),
    )  # fmt: skip


@steady
def fit_stages(work, tables, pair, now, nodes, t, h, begin, stop, closed):
    """Write the continuous extension of a step whose stages are in now.K; return what became of it."""
    n, K, y = work.x.size, now.K, now.spare[4]
    put(work.base, now.q)
    loose = n < 0  # a value, not a literal: one `evaluate` is compiled for all
    for i in range(pair.more_c.size):
        row = pair.b.size + i
        for j in range(2 * n + 1):
            total = 0.0
            for k in range(row):
                total += pair.more_a[i, k] * K[k, j]
            y[j] = h * total + (0.0 if j < n else (now.v[j - n] if j < 2 * n else now.work[0]))
        if closed:
            code = evaluate_closed(work, tables, now, t + pair.more_c[i] * h, y, row, begin, stop)
        else:
            code = evaluate(work, tables, t + pair.more_c[i] * h, y, K, row, begin, stop, loose)
        if code != FINE:
            return code
    for j in range(2 * n):
        nodes.C[0, j] = 0.0 if j < n else now.v[j - n]
        for p in range(pair.dense.shape[1]):
            total = 0.0
            for k in range(pair.dense.shape[0]):
                total += pair.dense[k, p] * K[k, j]
            nodes.C[p + 1, j] = h * total
    return FINE


@inner
def fit_cubic(now, nodes, end_v, h):
    """Write the cubic of a step from now.q to now.y in the chart, with velocities now.v and end_v."""
    n = end_v.size
    for j in range(n):
        x, a, b = now.y[j], h * now.v[j], h * end_v[j]
        second, third = 3.0 * x - 2.0 * a - b, a + b - 2.0 * x
        nodes.C[0, j], nodes.C[1, j], nodes.C[2, j], nodes.C[3, j] = 0.0, a, second, third
        nodes.C[0, n + j], nodes.C[1, n + j] = now.v[j], 2.0 * second / h
        nodes.C[2, n + j], nodes.C[3, n + j] = 3.0 * third / h, 0.0


@inner
def values_at(work, now, nodes, t, s):
    """Evaluate all event functions at s on the polynomial, at time t; return whether Python went on."""
    n, top = work.x.size, nodes.C.shape[0] - 1
    for j in range(n):
        x, v = nodes.C[top, j], nodes.C[top, n + j]
        for p in range(top - 1, -1, -1):
            x, v = x * s + nodes.C[p, j], v * s + nodes.C[p, n + j]
        work.x[j], work.v[j] = x, v
    put(work.base, now.q)
    work.environment[0] = t
    invoke(work.calls[MOVE, 0], work.calls[MOVE, 1], work.calls[MOVE, 2])
    invoke(work.calls[EVENTS, 0], work.calls[EVENTS, 1], work.calls[EVENTS, 2])
    return work.environment[FAILED_CALL] == 0.0


@inner
def _left_zero(nodes, signs, count):
    """Take the signs of functions that are zero at the start of a run; return whether one of them counts."""
    counts = False
    for e in range(signs.size):
        for j in range(count):
            if signs[e] == 0.0 and nodes.g[j, e] != 0.0:
                signs[e] = np.sign(nodes.g[j, e])
                if nodes.directions[e] * signs[e] >= 0.0:
                    nodes.opened[e], counts = signs[e], True
    return counts


@inner
def _passes(nodes, signs, j):
    """Return whether a function has a zero that counts between the last signs and node j."""
    for e in range(signs.size):
        here = nodes.g[j, e]
        zero = signs[e] * here < 0.0 or (signs[e] != 0.0 and here == 0.0)
        if zero and nodes.directions[e] * signs[e] <= 0.0:
            return True
    return False


@inner
def _search(work, now, nodes, signs, t, h):
    """Find the first piece with a zero that counts; return whether there is one. `signs` are those at its beginning."""
    s, g, count = nodes.s, nodes.g, GRID.size
    nodes.found[LOW], nodes.found[HIGH] = 0.0, 1.0
    # values on a first grid; where one is not finite the whole step is handed over
    for e in range(signs.size):
        if not np.isfinite(work.event_values[e]):
            return True
        g[count - 1, e] = work.event_values[e]
    for j in range(count):
        s[j] = GRID[j]
        if j < count - 1:
            if not values_at(work, now, nodes, t + s[j] * h, s[j]):
                return True
            for e in range(signs.size):
                g[j, e] = work.event_values[e]
    begin(g, count, nodes.scale)
    # a step that begins on a zero
    if nodes.counts[ON_A_ZERO] == 1:
        nodes.counts[ON_A_ZERO] = 0
        if _left_zero(nodes, signs, count):
            nodes.found[HIGH] = 0.0
            return True
    # piece by piece, split where one may hide a zero, up to the first that counts
    least = max(LEAST_PIECE, COLLAPSE * abs(t) / h)
    i, unresolved = 0, 0
    while i < count - 1:
        piece = verdict(s, g, count, i, least)
        if piece >= 0:
            if count < s.size:
                at = s[piece] + SPLIT * (s[piece + 1] - s[piece])
                if not values_at(work, now, nodes, t + at * h, at):
                    return True
                insert(s, g, count, piece, at, work.event_values, nodes.scale)
                count += 1
                continue
            unresolved = 1
        if _passes(nodes, signs, i + 1):
            nodes.found[LOW], nodes.found[HIGH] = s[i], s[i + 1]
            nodes.counts[UNRESOLVED] += unresolved
            return True
        i += 1
        for e in range(signs.size):
            if g[i, e] != 0.0:
                signs[e] = np.sign(g[i, e])
    nodes.counts[UNRESOLVED] += unresolved
    return False


@steady
def crosses(work, now, nodes, signs, t, h, end):
    """Return whether an event lies in a step whose polynomial is in nodes.C and whose end is, and stays, in `work`.

    `end` is t + h, but for rounding at the end of a segment.
    """
    put(nodes.q, work.q)
    put(nodes.v, work.v)
    work.environment[0] = end
    invoke(work.calls[EVENTS, 0], work.calls[EVENTS, 1], work.calls[EVENTS, 2])
    found = True if work.environment[FAILED_CALL] != 0.0 else _search(work, now, nodes, signs, t, h)
    put(work.q, nodes.q)
    put(work.v, nodes.v)
    work.environment[0] = end
    return found
