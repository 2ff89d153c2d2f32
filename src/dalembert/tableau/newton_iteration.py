"""Newton's iteration for a batch: which samples are done, which are lost and why."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from jaxtyping import Float, Int

from dalembert.tableau.accuracy import ScaledFactors
from dalembert.tableau.checks import Outcome
from dalembert.tableau.newton_step import NewtonStep

Array = np.ndarray

STALLED = 0.9
"""A step that is more than this part of the last one, and small, is rounding: it gets no smaller."""


class NewtonOutcome(IntEnum):
    """How Newton's method ended for a sample; only the first is an answer."""

    CONVERGED = 0
    LIMIT = 1
    SINGULAR = 2
    NON_FINITE = 3
    CONTRADICTED = 4


@dataclass(frozen=True, eq=False)
class Iterated:
    """Where each sample ended; last point of those without an answer, and their last step."""

    x: Float[Array, "N n"]
    status: Int[Array, " N"]
    step: Float[Array, "N n"]
    iterations: int


def _is_rounding(newton: NewtonStep, x: Float[Array, " n"], others: list[Array], tolerance: float) -> bool:
    """Whether the step from x is within reach of changes of the data by `tolerance` (`accuracy_loops`)."""
    data, rows = (np.asarray(each).reshape(-1) for each in newton.entries(x, *others))
    A = newton.plan.pattern.matrix(data)
    factors = ScaledFactors.of(A)
    if factors is None:
        return False
    with np.errstate(all="ignore"):
        return bool(factors.errors(A @ x - rows, x)[0] <= tolerance)


def iterate(newton: NewtonStep, x: Float[Array, "N n"], others: list[Array], tolerance: float, limit: int) -> Iterated:
    """Take steps of each sample until it is done or lost, or the limit is reached.

    Done is a sample whose step is below tolerance (1 + |x|), element by element, and below tolerance times its largest
    unknown, or no longer shrinks. Done is also one whose step no longer shrinks and is no more than data changed by
    `tolerance` would move each unknown: a badly conditioned Jacobian allows no smaller step.
    """
    x, step = np.array(x), np.zeros(x.shape)
    status = np.full(len(x), NewtonOutcome.LIMIT, np.int64)
    last = np.full(len(x), np.inf)
    iterations, left = 0, np.arange(len(x))
    while iterations < limit and left.size:
        found = newton.step(x[left], *[other[left] for other in others])
        iterations += 1
        lost = ~found.linear.ok
        non_finite = found.linear.status == Outcome.NON_FINITE
        status[left[lost]] = np.where(non_finite[lost], NewtonOutcome.NON_FINITE, NewtonOutcome.SINGULAR)
        size, largest = np.abs(found.step), np.abs(x[left]).max(axis=1, initial=0.0, keepdims=True)
        longest = size.max(axis=1, initial=0.0)
        near = np.all(size <= tolerance * (1.0 + np.abs(x[left])), axis=1)
        settled = np.all(size <= tolerance * largest, axis=1) | (longest >= STALLED * last[left])
        done = ~lost & near & settled
        for k in np.flatnonzero(~lost & ~near & (longest >= STALLED * last[left])):
            done[k] = _is_rounding(newton, x[left[k]], [other[left[k]] for other in others], tolerance)
        x[left[~lost]] += found.step[~lost]
        step[left], last[left] = found.step, longest
        status[left[done]] = NewtonOutcome.CONVERGED
        left = left[~lost & ~done]
    return Iterated(x, status, step, iterations)
