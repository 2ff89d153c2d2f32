"""The corrector of implicit steppers: Newton's method on kept factors."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dalembert.kernel.loops import compiled, inlined, invoke
from dalembert.simulate.limits import FIRST_CORRECTION, POOR_PIVOT
from dalembert.tableau.elimination.looped import INDICES, INDPTR, factor, part, substitute

# ----------------------------------------------------------------------------------------------------------------------
# Dense elimination with row exchanges: what repairs a plan whose pivots failed.


@compiled
def dense_factor(A, exchanges):
    """Overwrite A by its factors P A = L U, rows scaled implicitly; return whether every pivot is nonzero."""
    n = A.shape[0]
    for k in range(n):
        best, pivot = -1.0, k
        for i in range(k, n):
            size = 0.0
            for j in range(k, n):
                size = max(size, abs(A[i, j]))
            share = abs(A[i, k]) / size if size > 0.0 else 0.0
            if share > best:
                best, pivot = share, i
        exchanges[k] = pivot
        if pivot != k:
            for j in range(n):
                A[k, j], A[pivot, j] = A[pivot, j], A[k, j]
        if not abs(A[k, k]) > 0.0:
            return False
        for i in range(k + 1, n):
            if A[i, k] != 0.0:
                multiple = A[i, k] / A[k, k]
                A[i, k] = multiple
                for j in range(k + 1, n):
                    A[i, j] -= multiple * A[k, j]
    return True


@compiled
def dense_solve(A, exchanges, b):
    """Solve in place: b becomes x."""
    n = A.shape[0]
    for k in range(n):
        pivot = exchanges[k]
        if pivot != k:
            b[k], b[pivot] = b[pivot], b[k]
    for k in range(n):
        for j in range(k):
            b[k] -= A[k, j] * b[j]
    for k in range(n - 1, -1, -1):
        for j in range(k + 1, n):
            b[k] -= A[k, j] * b[j]
        b[k] /= A[k, k]


# ----------------------------------------------------------------------------------------------------------------------
# The corrector: Newton's method on kept factors, with a rate of convergence (seed 003, eqs. 12-14).
#
# Symbols: e the correction of the predicted x; x' = x'_pred + c e; delta one Newton step; rho the rate of convergence.
# The iteration stops when rho / (1 - rho) |delta| <= NEWTON_SHARE, |.| the weighted norm of all unknowns, an unknown of
# index 2 weighed by h, one of index 3 by h^2. Factors made for another c may be kept, the step then scaled by
# 2 / (1 + c / c_old). K. E. Brenan, S. L. Campbell, L. R. Petzold, "Numerical Solution of Initial-Value
# Problems in Differential-Algebraic Equations" (SIAM 1996), sec. 5.2.2.


NEWTON, FACTOR, RESIDUAL, ENTRIES, PROJECTION, EVENTS, SIGNALS = range(7)
STRAIGHT, LOOPED, DENSE = range(3)
CONVERGED, DIVERGED, NON_FINITE = range(3)

NEWTON_SHARE = 0.1
"""Share of the tolerance that Newton's method may leave; IDA's 0.33 is too coarse for multipliers."""

NOISE_SHARE = 0.01
"""A second step below this part of the share ends the iteration, whatever its rate: both may be rounding."""

MOST_ITERATIONS = 5
SLOWEST_RATE, SECOND_RATE = 0.9, 2.0
"""Rates that end an iteration. The second step may be as large as the first: forces follow motions one step later."""

UNKNOWN_RATE = 100.0
"""rho / (1 - rho) assumed when nothing useful has been observed, as after a change of c."""


@compiled
def place(point, x, rates):
    """Write x, x' into `point`, the pair that kernels read; element by element, which allocates nothing."""
    for i in range(x.size):
        point[0][i], point[1][i] = x[i], rates[i]


@compiled
def fill_dense(work):
    """Write J at the point in `work` into the dense matrix."""
    invoke(work.calls[ENTRIES, 0], work.calls[ENTRIES, 1], work.calls[ENTRIES, 2])
    indptr, indices = part(work.plan.program, INDPTR), part(work.plan.program, INDICES)
    for i in range(work.x.size):
        work.dense[i] = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            work.dense[i, indices[e]] = work.entries[e]


@inlined
def make_factors(work, state):
    """Factor J at the point in `work`; a plan in trouble is repaired by dense elimination. Return success."""
    s = state[0]
    s.factorizations += 1
    if work.calls[FACTOR, 0] == 0 or s.force_dense == 1:
        return _other_factors(work, state)
    s.solver = STRAIGHT
    invoke(work.calls[FACTOR, 0], work.calls[FACTOR, 1], work.calls[FACTOR, 2])
    if s.fresh == 1:
        s.quality = work.quality[0]
    return True if work.quality[0] >= POOR_PIVOT else _dense_factors(work, state)


@compiled
def _other_factors(work, state):
    """Factor J by the looped plan or, where that is wanted or necessary, by dense elimination."""
    s = state[0]
    if s.force_dense == 0:
        s.solver = LOOPED
        invoke(work.calls[ENTRIES, 0], work.calls[ENTRIES, 1], work.calls[ENTRIES, 2])
        quality = factor(work.plan.program, work.plan.work, work.entries)[0]
        if s.fresh == 1:
            s.quality = quality
        if quality >= POOR_PIVOT:
            return True
    return _dense_factors(work, state)


@compiled
def _dense_factors(work, state):
    """Factor J by dense elimination, where there is room."""
    s = state[0]
    if work.dense.shape[0] == 0:
        return False
    s.solver = DENSE
    s.repairs += 1
    fill_dense(work)
    return dense_factor(work.dense, work.exchanges)


@compiled
def newton_step(work, state):
    """Write -J^-1 F at the point in `work` to `work.step`, by the looped plan or dense factors."""
    s = state[0]
    s.evaluations += 1
    invoke(work.calls[RESIDUAL, 0], work.calls[RESIDUAL, 1], work.calls[RESIDUAL, 2])
    if s.solver == DENSE:
        for i in range(work.x.size):
            work.step[i] = -work.residual[i]
        dense_solve(work.dense, work.exchanges, work.step)
        return
    for i in range(work.x.size):
        work.residual[i] = -work.residual[i]
    substitute(work.plan.program, work.plan.work, work.entries, work.residual, work.step)


@inlined
def solve_step(work, state):
    """Write -J^-1 F at the point in `work` to `work.step`, by whatever factors there are."""
    s = state[0]
    if s.solver == STRAIGHT:
        s.evaluations += 1
        invoke(work.calls[NEWTON, 0], work.calls[NEWTON, 1], work.calls[NEWTON, 2])
    else:
        newton_step(work, state)


@inlined
def correct(work, state, scale, correction, predicted, predicted_rates, share):
    """Iterate from the prediction; x, x' in `work`, e in `correction`; `scale` are the weights of the norm."""
    s = state[0]
    n = work.x.size
    s.iterations_last = 0
    first_norm = 0.0
    # factors of another leading coefficient: the step is scaled
    damping = 2.0 / (1.0 + s.shift / s.shift_factored)
    for i in range(n):
        work.x[i], work.rates[i], correction[i] = predicted[i], predicted_rates[i], 0.0
    for iteration in range(MOST_ITERATIONS):
        solve_step(work, state)
        s.iterations += 1
        s.iterations_last += 1
        # e += step, x and x' follow it; the step's weighted norm
        total = 0.0
        for i in range(n):
            step = work.step[i] * damping
            work.step[i] = step
            total += (step * scale[i]) ** 2
            correction[i] += step
            work.x[i] = predicted[i] + correction[i]
            work.rates[i] = predicted_rates[i] + s.shift * correction[i]
        norm = np.sqrt(total / n)
        if not np.isfinite(norm):
            return NON_FINITE
        # rate of convergence from the second step on; the error left is rate / (1 - rate) times the step
        if iteration == 0:
            first_norm = norm
            if norm <= FIRST_CORRECTION * share:
                return CONVERGED
        elif norm <= NOISE_SHARE * share:
            return CONVERGED
        else:
            rate = (norm / first_norm) ** (1.0 / iteration)
            if rate > (SLOWEST_RATE if iteration > 1 else SECOND_RATE):
                return DIVERGED
            s.rate = rate / (1.0 - rate) if rate < SLOWEST_RATE else UNKNOWN_RATE
        if s.rate * norm <= share:
            return CONVERGED
    return DIVERGED


# ----------------------------------------------------------------------------------------------------------------------
# The stepper's scalars, and how a run may end.


DONE, STOPPED, TOO_MANY_STEPS, FAILED_ERROR_TEST, FAILED_CONVERGENCE, FAILED_NON_FINITE = range(6)
ROW_OPENED, INTERRUPTED, EVENT_NOT_FINITE = range(6, 9)
RUNNING = -1

_REAL = ("t", "t_low", "t_high", "t_stop", "h", "h_used", "h_first", "h_collapsed", "h_factored")
_REAL += ("shift", "shift_factored", "rate", "quality", "trusted", "t_avoided", "gain", "span")
_WHOLE = (
    "order",
    "order_used",
    "order_new",
    "same",
    "phase",
    "opening",
    "fresh",
    "solver",
    "force_dense",
    "iterations_last",
    "worst",
    "status",
    "steps",
    "evaluations",
    "factorizations",
    "iterations",
    "error_failures",
    "newton_failures",
    "repairs",
    "relaxations",
    "widened",
    "unresolved",
)
STATE = np.dtype([*((name, "f8") for name in _REAL), *((name, "i8") for name in _WHOLE), ("order_counts", "i8", 8)])
"""Names as in `bdf.py`; the last ten are counts. Inputs are evaluated between t_low and t_high, inside the jumps
that a segment ends at; `opening` is 1 until the first step of a run is done, 2 where signs of events are taken anew.
"""


class Option(NamedTuple):
    """What a user may set, and what the DAE says of its unknowns."""

    rtol: float
    atol: np.ndarray
    power: np.ndarray
    tested: np.ndarray
    lasting: np.ndarray  # places of tested unknowns weighed by h, see `manifold_loops.py`
    tested_count: float
    share: float
    shift_range: float
    relax: np.ndarray  # (2, rows): of the run, and for trouble
    least: float
    most_step: float
    first_step: float
    most_order: int
    most_steps: int
    directions: np.ndarray
    terminal: np.ndarray
    keyboard: np.ndarray  # numbers of signals that arrived, see `interruptible.py`


def new_state() -> np.recarray:
    """Return a state of zeros."""
    return np.zeros(1, STATE).view(np.recarray)
