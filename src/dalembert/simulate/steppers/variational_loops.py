"""Variational steps, compiled: Newton's method on the discrete equations, momentum projected, step after step."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dalembert.kernel.loops import compiled, invoke
from dalembert.simulate.equations.signals import set_signals
from dalembert.simulate.limits import (
    FORCE_ROUNDING,
    FORCES_AGREE,
    FORCES_SETTLED,
    MIDPOINT_SOLVED,
    MIDPOINT_STALLED,
    STANDSTILL_WAY,
)
from dalembert.simulate.steppers.carried_loops import RATES
from dalembert.simulate.steppers.explicit_loops import (
    ADMIT,
    CALLBACK,
    DECLINED,
    FAILED_CALL,
    FINE,
    LAST_SOLVED,
    MOVE,
    NON_FINITE,
    OFF,
    SIGNALS,
    admit,
    begin_at,
    close,
    put,
)
from dalembert.simulate.steppers.explicit_loops import CLOSE as CLOSING
from dalembert.simulate.steppers.inside_loops import crosses, fit_cubic

DONE, FULL, EVENT = 10, 11, 12
"""As in `advance_loops`."""

RESTLESS = 13
"""The forces of a Python function do not settle."""

MOST_PASSES = 30
STEP, MASS = 0, 1
"""Rows of the second table of calls."""

MOST_NEWTON = 12


class Discrete(NamedTuple):
    """Memory of the discrete equations."""

    calls: np.ndarray
    p: np.ndarray
    lam: np.ndarray
    h: np.ndarray
    residual: np.ndarray
    jacobian: np.ndarray
    momentum: np.ndarray
    M: np.ndarray
    middle: np.ndarray
    speed: np.ndarray
    power: np.ndarray
    A: np.ndarray  # rows that carry massless motions; (0, n) where every motion has mass


@compiled
def under_rank(work, discrete):
    """Return Newton's step on the rows chosen at the start of the step, as many as the mechanism's rank; others rest.

    Rows beyond the rank follow from these where the constraints hold; at the middle of a step they are a little
    different, and would push with forces without limit.
    """
    n, c = work.x.size, work.carried
    r, size = c.rank[RATES], discrete.lam.size + n
    square = np.zeros((n + r, n + r))
    right = np.zeros(n + r)
    for i in range(n + r):
        row = i if i < n else n + c.order[RATES, i - n]
        right[i] = -discrete.residual[row]
        for j in range(n + r):
            square[i, j] = discrete.jacobian[row, j if j < n else n + c.order[RATES, j - n]]
    found = np.linalg.solve(square, right)
    change = np.zeros(size)
    change[:n] = found[:n]
    for k in range(r):
        change[n + c.order[RATES, k]] = found[n + k]
    return change


@compiled
def newton(work, discrete, redundant):
    """Solve for x and lam; return what became of it."""
    n, rows = work.x.size, discrete.lam.size
    last = np.inf
    for _ in range(MOST_NEWTON):
        invoke(discrete.calls[STEP, 0], discrete.calls[STEP, 1], discrete.calls[STEP, 2])
        if not np.isfinite(discrete.residual.sum() + discrete.jacobian.sum()):
            return NON_FINITE
        change = under_rank(work, discrete) if redundant else np.linalg.solve(discrete.jacobian, -discrete.residual)
        if not np.isfinite(change.sum()):
            return NON_FINITE
        for j in range(n):
            work.x[j] += change[j]
        for j in range(rows):
            discrete.lam[j] += change[n + j]
        size = np.abs(change[:n]).max()
        reach = np.abs(work.x).max() + STANDSTILL_WAY
        if size <= MIDPOINT_SOLVED * reach or (size <= MIDPOINT_STALLED * reach and size > 0.25 * last):
            return FINE
        last = size
    return OFF


@compiled
def momentum_of(work, discrete, now):
    """Set p = M(q) v at the start of a run."""
    work.q[:] = now.q
    invoke(discrete.calls[MASS, 0], discrete.calls[MASS, 1], discrete.calls[MASS, 2])
    discrete.p[:] = discrete.M @ now.v


@compiled
def forced(work, tables, discrete, t, step, redundant):
    """Solve the discrete equations of a step from t; forces of a Python function are those at its middle."""
    set_signals(work.calls, work.environment, tables, t + step / 2, t, t + 2 * step)
    called = work.calls[SIGNALS, 0] != 0
    if work.environment[FAILED_CALL] != 0.0:
        return CALLBACK
    last = np.inf
    momentum = np.abs(discrete.p).max() + np.abs(discrete.M).max() * STANDSTILL_WAY
    for _ in range(MOST_PASSES):
        work.environment[0] = t
        before = work.environment.copy()
        code = newton(work, discrete, redundant)
        if code != FINE or not called:
            return RESTLESS if called and code == OFF else code
        work.q[:] = discrete.middle
        work.v[:] = discrete.speed
        set_signals(work.calls, work.environment, tables, t + step / 2, t, t + 2 * step)
        if work.environment[FAILED_CALL] != 0.0:
            return CALLBACK
        worst = np.abs(work.environment[2:] - before[2:]).max()
        reach = np.abs(work.environment[2:]).max() + momentum / step
        agreed = worst <= FORCES_AGREE * np.abs(work.environment[2:]).max() + FORCE_ROUNDING * momentum / step
        if agreed or (worst <= FORCES_SETTLED * reach and worst > 0.25 * last):
            work.environment[0] = t
            return FINE
        last = worst
    return RESTLESS


@compiled
def carrying(M, A):
    """Return M + rho A^T A with rho of the size of the masses: definite where rows carry what has no mass."""
    if A.shape[0] == 0:
        return M
    rho = np.trace(M) / (A * A).sum()
    return M + rho * (A.T @ A)


@compiled
def take_step(work, tables, discrete, now, t, step, redundant):
    """Take one step from `now`; its end is in work.q, work.v. The start stays as it is."""
    discrete.h[0] = step
    work.base[:] = now.q
    work.x[:] = step * now.v
    work.q[:] = now.q
    work.v[:] = now.v
    code = forced(work, tables, discrete, t, step, redundant)
    if code != FINE:
        return code
    invoke(discrete.calls[STEP, 0], discrete.calls[STEP, 1], discrete.calls[STEP, 2])
    put(now.y, work.x)  # the way in the chart, for events inside
    invoke(work.calls[MOVE, 0], work.calls[MOVE, 1], work.calls[MOVE, 2])
    work.environment[0] = t + step
    if work.calls[CLOSING, 0] != 0:
        code = close(work)
        if code != FINE:
            return code
    invoke(discrete.calls[MASS, 0], discrete.calls[MASS, 1], discrete.calls[MASS, 2])
    work.v[:] = np.linalg.solve(carrying(discrete.M, discrete.A), discrete.momentum)
    if work.calls[ADMIT, 0] != 0:
        admit(work)
        if not work.status[0] <= LAST_SOLVED:
            return DECLINED
        work.v[:] = work.velocity
    return FINE if np.isfinite(work.v.sum()) else NON_FINITE


@compiled
def accept(work, discrete, now, step):
    """Make the end of a step the start of the next one."""
    now.q[:] = work.q
    now.v[:] = work.v
    now.work[0] += step * discrete.power[0]
    discrete.p[:] = discrete.M @ work.v
    # what the impulses of rows at the end do, -mu . A v1; those of the start are in the power
    if discrete.lam.size:
        now.work[0] += (discrete.p - discrete.momentum) @ work.v


@compiled
def write(work, now, samples, counts, t, step):
    """Append `now`, whose accelerations are in `work`, as a sample."""
    row = counts[1]
    samples.t[row], samples.h[row], samples.work[row] = t, step, now.work[0]
    samples.q[row] = now.q
    samples.v[row] = now.v
    samples.a[row] = work.acceleration
    samples.multipliers[row] = work.multipliers
    counts[1] += 1


@compiled
def run_steps(work, tables, discrete, now, clock, counts, samples, signs, nodes, step, stride, total, most, redundant):
    """Take up to `most` steps until `total` of them are done or the samples are full.

    clock: t, start; counts: steps, samples, whether the events of the next step are noted already. Where an event
    function has a zero, the step is not taken: its lam is that of the start, and Python decides.
    """
    for _ in range(most):
        if counts[0] >= total:
            return DONE
        if counts[1] >= samples.t.size:
            return FULL
        # times are multiples of the step: they do not drift
        t = clock[1] + counts[0] * step
        end = clock[1] + (counts[0] + 1) * step
        kept = discrete.lam.copy()
        code = take_step(work, tables, discrete, now, t, step, redundant)
        if code != FINE:
            return code
        # events inside the step, before it is accepted
        if signs.size and counts[2] == 0:
            nodes.before[:] = signs
            fit_cubic(now, nodes, work.v, step)
            if crosses(work, now, nodes, signs, t, step, end):
                discrete.lam[:] = kept
                return EVENT
        counts[2] = 0
        accept(work, discrete, now, step)
        counts[0] += 1
        clock[0] = end
        # samples need accelerations at the end; multipliers of redundant rows begin anew
        written = counts[0] % stride == 0 or counts[0] == total
        if written or redundant:
            code = begin_at(work, tables, now, end, t, end + step)
            if redundant:
                discrete.lam[:] = 0.0
            if code != FINE:
                return code
        if written:
            write(work, now, samples, counts, end, step)
    return DONE if counts[0] >= total else FULL
