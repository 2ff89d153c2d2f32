"""One explicit Runge-Kutta step on the constraint manifold, compiled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dalembert.kernel.loops import inner, invoke, steady
from dalembert.kkt import newton
from dalembert.simulate.equations.signals import set_signals
from dalembert.simulate.limits import CLOSED, HELPS, MOST_CLOSING
from dalembert.simulate.steppers.carried_loops import POSITIONS, RATES, REDUNDANT, accelerated, projected

# ----------------------------------------------------------------------------------------------------------------------
# Memory of the explicit loop between two calls: places in its arrays, its limits, its samples.


DONE, FULL, EVENT, STUCK, SHORT = 10, 11, 12, 13, 14
"""Why the loop came back: end of the segment, buffer full or steps taken, a sign changed, the step size collapsed, or
has become so short that a singular configuration may be near."""

T, H, BEGIN, STOP, TRIED, ORIGIN, ALLOWED, NOISE, LEAST_RATIO, LAST_RATIO, USUAL = range(11)
"""Places in `clock`: time, next step, ends of the segment, step tried last, origin of fixed steps; error over tolerance
that is allowed, rejections that have not helped, least and last error since the last step; longest step of late."""

FIRST_WIDE, LAST_WIDE, WIDEST = range(11, 14)
"""Further places in `clock`: begin of the first and end of the last step that was taken with an error above the
tolerance, and the largest such error over it."""

STEPS, REJECTED, EVALUATIONS, SAMPLES, ASKED, FIXED, RELAXED, CLOSING, IN_A_ROW = range(9)
"""Places in `counts`."""


class StepLimits(NamedTuple):
    """What the loop must keep to."""

    rtol: float
    atol: float
    fixed: float  # 0: adaptive
    largest: float
    every: float  # 0: every step is a sample
    inside: int  # samples inside of every step
    start: float
    end: float
    turn: float
    scale_place: np.ndarray
    rotations: np.ndarray


class StepSamples(NamedTuple):
    """Rows that the loop fills."""

    t: np.ndarray
    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    multipliers: np.ndarray
    work: np.ndarray
    h: np.ndarray


# ----------------------------------------------------------------------------------------------------------------------
# One explicit step on the constraint manifold, compiled: stages in the chart, then position and velocity put back.
#
# Symbols: y = (x, v, W) with W the work of the joint forces; K stages, K[i] = y'(t + c_i h); q0 base of the chart.
# `now` is the state that a step starts from; after `stages` and `settle` its end is in `work.q`, `work.velocity`.
# Sources: Hairer, Norsett, Wanner, "Solving ODEs I", sec. II.10 (dop853); Hairer, Wanner, "Solving ODEs II", sec. VII.2
# (projection).


RATE, MOVE, CLOSE, ADMIT, EVENTS, SHIFT, SIGNALS = range(7)
"""Rows of the table of calls, as `codes.CODES`."""

FINE, DECLINED, NON_FINITE, CALLBACK, OFF = range(5)
"""What became of it: solved, not by this code, not a number, stopped by a Python function, constraints left open."""

TURNED = 5
"""A body turned further in a step than the chart reaches."""

FAILED_CALL = 1
"""Place in the environment that a Python function sets when it fails."""

LAST_SOLVED, NOT_FINITE = 4, 10
"""Largest `Status` with an answer, and that of data which are not finite."""

SPARE = 10
"""Rows of `Now.spare`: 0 to 3 of `evaluate_closed`, the others of samples between steps."""


class Now(NamedTuple):
    """Where a step starts, and its stages."""

    q: np.ndarray
    v: np.ndarray
    work: np.ndarray  # (1,): W
    K: np.ndarray  # (stages + 1, 2 nv + 1); K[0] belongs to the start
    y: np.ndarray  # (2 nv + 1,): end of a step in the chart
    worth: np.ndarray  # (2,): largest `worth` at the stages of a step
    spare: np.ndarray  # (SPARE, largest of nq, 2 nv + 1): what has to be put back; loops allocate nothing


class RungeKuttaPair(NamedTuple):
    """An embedded pair of explicit methods."""

    a: np.ndarray
    b: np.ndarray
    c: np.ndarray
    error: np.ndarray  # weights of the stages
    third: np.ndarray  # second weights of 8(5,3) pairs, or empty
    order: int
    more_a: np.ndarray  # further stages for states inside a step
    more_c: np.ndarray
    dense: np.ndarray  # (all stages, degree): y(s) = y0 + h sum_kp dense[k, p] s^(p+1) K_k


goes_on = inner(newton.goes_on)
"""The rule by which Newton's method onto the constraints ends, compiled."""


@inner
def put(target, values):
    """Copy as many numbers as there are in the shorter one."""
    for i in range(min(target.size, values.size)):
        target[i] = values[i]


@inner
def rate(work, strict):
    """Evaluate x', accelerations, multipliers, power and status; under a rank that is carried where there is one."""
    invoke(work.calls[RATE, 0], work.calls[RATE, 1], work.calls[RATE, 2])
    if work.carried.rank[0] >= 0:
        work.status[0] = accelerated(work.carried, work.v, work.acceleration, work.multipliers, strict)
        if work.worth.size:
            work.power[0] += power_of_rows(work)


@inner
def power_of_rows(work):
    """Return the power (M a - f) . v of the forces of all rows under a rank: that of drives, other rows have none.

    At the stages of a step there are no multipliers.
    """
    c, total = work.carried, 0.0
    for i in range(work.v.size):
        pull = -c.force[i]
        for j in range(work.v.size):
            pull += c.M[i, j] * work.acceleration[j]
        total += pull * work.v[i]
    return total


@steady
def certified(work):
    """Return whether accelerations exist at the state in `work`."""
    rate(work, work.status.size == 1)
    return work.status[0] <= LAST_SOLVED


@inner
def admit(work):
    """Write the admissible velocity nearest to work.v, and its status."""
    invoke(work.calls[ADMIT, 0], work.calls[ADMIT, 1], work.calls[ADMIT, 2])
    c = work.carried
    if c.rank[0] < 0:
        return
    for i in range(c.counts[RATES]):
        row = c.order[RATES, i]
        c.b[i] = -c.scales[row] * c.rate[row]
    left = projected(c, RATES, work.velocity)
    for j in range(work.v.size):
        work.velocity[j] += work.v[j]
    work.status[0] = REDUNDANT if np.isfinite(left) else np.nan


@inner
def newton_step(work):
    """Write Newton's step onto the constraints and the residuals; return the largest that a step can take away."""
    invoke(work.calls[CLOSE, 0], work.calls[CLOSE, 1], work.calls[CLOSE, 2])
    c, worst = work.carried, 0.0
    if c.rank[0] < 0:
        for i in range(work.residual.size):
            worst = max(worst, abs(work.residual[i]) / work.sizes[i])
        return worst
    for k in range(c.counts[POSITIONS]):
        c.b[k] = -c.scales[c.order[POSITIONS, k]] * work.residual[c.place[c.order[POSITIONS, k]]]
    projected(c, POSITIONS, work.correction)
    for k in range(c.counts[POSITIONS]):
        row = c.order[POSITIONS, k]
        i = c.place[row]
        worst = max(worst, abs(work.residual[i] + c.b[k] / c.scales[row]) / work.sizes[i])
    return worst


@inner
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
    inside = min(t, np.nextafter(stop, begin))  # the end of a segment is seen from within: what jumps there is behind
    set_signals(work.calls, work.environment, tables, inside, begin, stop)
    if work.environment[FAILED_CALL] != 0.0:
        return CALLBACK
    rate(work, strict)
    total = work.power[0]
    for j in range(n):
        K[i, j], K[i, n + j] = work.x_rate[j], work.acceleration[j]
        total += work.x_rate[j] + work.acceleration[j]
    K[i, 2 * n] = work.power[0]
    if strict and not work.status[0] <= LAST_SOLVED:
        return NON_FINITE if work.status[0] == NOT_FINITE else DECLINED
    return FINE if np.isfinite(total) else NON_FINITE


@inner
def close(work):
    """Put work.q onto the constraints by Newton's method; return what became of it. Loses base and x."""
    last = np.inf
    for _ in range(MOST_CLOSING):
        worst = newton_step(work)
        total = worst
        for i in range(work.correction.size):
            total += work.correction[i]
        if not np.isfinite(total):
            return NON_FINITE
        if not goes_on(worst, last, CLOSED, np.inf, HELPS):
            break
        last = worst
        put(work.base, work.q)
        invoke(work.calls[SHIFT, 0], work.calls[SHIFT, 1], work.calls[SHIFT, 2])
    worst = 0.0
    for i in range(work.residual.size):
        worst = max(worst, abs(work.residual[i]) / work.sizes[i])
    return OFF if not worst <= work.open[0] else FINE


@inner
def evaluate_closed(work, tables, now, t, y, i, begin, stop):
    """Write y' = f(the state on the manifold next to y) into now.K[i].

    An extension of the equations beyond the manifold as good as any, with the same solutions. Near configurations where
    rows become dependent it stays bounded, where f itself grows like violation / distance^2.
    """
    n, K = work.x.size, now.K
    loose = i < 0  # a value, not a literal: one `evaluate` is compiled for all
    base, closed, z, rates = now.spare[0], now.spare[1], now.spare[2], now.spare[3]
    # the state of the stage, closed: positions, then velocities
    put(base, work.base)
    work.environment[0] = t
    put(work.x, y)
    put(work.v, y[n:])
    invoke(work.calls[MOVE, 0], work.calls[MOVE, 1], work.calls[MOVE, 2])
    code = close(work)
    if code == FINE:
        admit(work)
        # x' at y, from the base of the step; v' at the closed state, with itself as base
        put(closed, work.q)
        put(z, y)
        put(z[n:], work.velocity)
        put(work.base, base)
        code = evaluate(work, tables, t, z, K, i, begin, stop, loose)
        if code == FINE:
            # the same from the closed state: its accelerations, the rates of x as before
            put(rates, K[i])
            for j in range(n):
                z[j] = 0.0
            put(work.base, closed)
            code = evaluate(work, tables, t, z, K, i, begin, stop, loose)
            for j in range(n):
                K[i, j] = rates[j]
    put(work.base, base)
    return code


@steady
def begin_at(work, tables, now, t, begin, stop):
    """Put the base of the chart where the state is, and evaluate K[0]."""
    n = work.x.size
    put(work.base, now.q)
    for j in range(n):
        now.y[j], now.y[n + j] = 0.0, now.v[j]
    now.y[2 * n] = now.work[0]
    first = 0 * n  # values, not literals: one `evaluate` is compiled for all
    return evaluate(work, tables, t, now.y, now.K, first, begin, stop, first == 0)


@steady
def stages(work, tables, pair, now, t, h, begin, stop, strict, closed):
    """Compute the stages of a step by h and its end in now.y; `closed`: each from a state on the manifold."""
    n = work.x.size
    K, y = now.K, now.y
    put(work.base, now.q)
    now.worth[0] = now.worth[1] = 0.0
    for i in range(1, pair.b.size):
        for j in range(2 * n + 1):
            total = 0.0
            for k in range(i):
                total += pair.a[i, k] * K[k, j]
            start = 0.0 if j < n else (now.v[j - n] if j < 2 * n else now.work[0])
            y[j] = start + h * total
        if closed:
            code = evaluate_closed(work, tables, now, t + pair.c[i] * h, y, i, begin, stop)
        else:
            code = evaluate(work, tables, t + pair.c[i] * h, y, K, i, begin, stop, strict)
        if code != FINE:
            return code
        for k in range(work.worth.size):
            now.worth[k] = max(now.worth[k], work.worth[k])
    for j in range(2 * n + 1):
        total = 0.0
        for k in range(pair.b.size):
            total += pair.b[k] * K[k, j]
        start = 0.0 if j < n else (now.v[j - n] if j < 2 * n else now.work[0])
        y[j] = start + h * total
    return FINE


@steady
def settle(work, now, t):
    """Move to the end of the step, close positions, make velocities admissible: work.q and work.v."""
    n = work.x.size
    work.environment[0] = t
    put(work.base, now.q)
    put(work.x, now.y)
    put(work.v, now.y[n:])
    invoke(work.calls[MOVE, 0], work.calls[MOVE, 1], work.calls[MOVE, 2])
    if work.calls[CLOSE, 0] != 0:
        code = close(work)
        if code != FINE:
            return code
    if work.calls[ADMIT, 0] != 0:
        admit(work)
        if not work.status[0] <= LAST_SOLVED:
            return DECLINED
        put(work.v, work.velocity)
    return FINE


@inner
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


@inner
def work_ratio(work, pair, now, h, rtol, atol):
    """Return the error of the work of drives in a step over what the tolerance of the state is worth (`drives.py`).

    Rows may hold the whole state, whose steps are then as long as they like; the integral of lam . b needs its own.
    """
    scale = atol * now.worth[0] + rtol * now.worth[1]
    if not scale > 0.0:
        return 0.0
    j, first, second = 2 * work.x.size, 0.0, 0.0
    for k in range(pair.b.size):
        first += pair.error[k] * now.K[k, j]
        if pair.third.size:
            second += pair.third[k] * now.K[k, j]
    if first == 0.0:
        return 0.0
    if pair.third.size:
        return abs(h) * first**2 / np.sqrt(first**2 + 0.01 * second**2) / scale
    return abs(h * first) / scale


@inner
def sign_changed(work, signs, t):
    """Return whether an event function changes its sign from the start of a step to its settled end."""
    work.environment[0] = t
    invoke(work.calls[EVENTS, 0], work.calls[EVENTS, 1], work.calls[EVENTS, 2])
    for k in range(signs.size):
        same = signs[k] * work.event_values[k] > 0.0 or signs[k] == 0.0
        if not (same and np.isfinite(work.event_values[k])):
            return True
    return False
