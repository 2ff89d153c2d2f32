"""Variational steps, compiled: Newton's method on the discrete equations, momentum projected, step after step."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dalembert.simulate.smooth.step_loops import (
    ADMIT,
    DECLINED,
    FINE,
    LAST_SOLVED,
    MOVE,
    NON_FINITE,
    OFF,
    begin_at,
    close,
)
from dalembert.simulate.smooth.step_loops import CLOSE as CLOSING
from dalembert.tableau.graph_loops import compiled
from dalembert.tableau.time.invoke_loops import invoke
from dalembert.tableau.time.signal_loops import set_signals

DONE, FULL = 10, 11
"""As in `advance_loops`."""

STEP, MASS = 0, 1
"""Rows of the second table of calls."""

MOST_NEWTON = 12
SOLVED = 1e-14
"""Newton's method ends where its step is below this part of the unknowns, or stops falling."""


AT_REST = 1e-3
"""Added to the way of a step, metres or radians: next to a standstill rounding of q counts, not that of the way."""


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


@compiled
def newton(work, discrete, redundant):
    """Solve for x and lam; return what became of it."""
    n, rows = work.x.size, discrete.lam.size
    last = np.inf
    for _ in range(MOST_NEWTON):
        invoke(discrete.calls[STEP, 0], discrete.calls[STEP, 1], discrete.calls[STEP, 2])
        if not np.isfinite(discrete.residual.sum() + discrete.jacobian.sum()):
            return NON_FINITE
        if redundant:
            change = np.linalg.lstsq(discrete.jacobian, -discrete.residual, 1e-11)[0]
        else:
            change = np.linalg.solve(discrete.jacobian, -discrete.residual)
        for j in range(n):
            work.x[j] += change[j]
        for j in range(rows):
            discrete.lam[j] += change[n + j]
        size = np.abs(change[:n]).max()
        reach = np.abs(work.x).max() + AT_REST
        if size <= SOLVED * reach or (size <= 1e-9 * reach and size > 0.25 * last):
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
def run_steps(work, tables, discrete, now, clock, counts, samples, step, stride, total, redundant):
    """Take steps until `total` of them are done or the samples are full. clock: t, start; counts: steps, samples."""
    while counts[0] < total:
        if counts[1] >= samples.t.size:
            return FULL
        t = clock[1] + counts[0] * step
        end = clock[1] + (counts[0] + 1) * step
        discrete.h[0] = step
        work.base[:] = now.q
        work.x[:] = step * now.v
        work.v[:] = now.v
        set_signals(work.calls, work.environment, tables, t + step / 2, t, t + 2 * step)
        work.environment[0] = t
        code = newton(work, discrete, redundant)
        if code != FINE:
            return code
        invoke(discrete.calls[STEP, 0], discrete.calls[STEP, 1], discrete.calls[STEP, 2])
        invoke(work.calls[MOVE, 0], work.calls[MOVE, 1], work.calls[MOVE, 2])
        work.environment[0] = end
        if work.calls[CLOSING, 0] != 0:
            code = close(work)
            if code != FINE:
                return code
        invoke(discrete.calls[MASS, 0], discrete.calls[MASS, 1], discrete.calls[MASS, 2])
        work.v[:] = np.linalg.solve(discrete.M, discrete.momentum)
        if work.calls[ADMIT, 0] != 0:
            invoke(work.calls[ADMIT, 0], work.calls[ADMIT, 1], work.calls[ADMIT, 2])
            if not work.status[0] <= LAST_SOLVED:
                return DECLINED
            work.v[:] = work.velocity
        if not np.isfinite(work.v.sum()):
            return NON_FINITE
        now.q[:] = work.q
        now.v[:] = work.v
        discrete.p[:] = discrete.M @ work.v
        counts[0] += 1
        clock[0] = end
        if counts[0] % stride == 0 or counts[0] == total:
            code = begin_at(work, tables, now, end, t, end + step)
            if code != FINE:
                return code
            row = counts[1]
            samples.t[row], samples.h[row] = end, step
            samples.q[row] = now.q
            samples.v[row] = now.v
            samples.a[row] = work.acceleration
            samples.multipliers[row] = work.multipliers
            counts[1] += 1
    return DONE
