"""Residuals of an answer, relative to its data, and the refinement that makes them small.

Symbols: x = (a, lam) and b = (f, c) stacked, r = b - K x. The measure is the componentwise backward error

    omega = max_i |r_i| / (|K| |x| + |b|)_i

the least relative change of the entries of K and b that makes x exact; it knows no units. `ndarray.dot` stands here
for `@`: on vectors of this length it takes half the time. Source: M. Arioli, J. W. Demmel, I. S. Duff, "Solving sparse
linear systems with sparse backward error", SIAM J. Matrix Anal. Appl. 10 (1989) 165-190.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from dalembert.kkt.analysis import Analysis
from dalembert.kkt.bounds import CERTAIN_DIGITS
from dalembert.kkt.routes.contract import FastRoute

Array = np.ndarray
EPS = float(np.finfo(float).eps)

RESIDUAL_FACTOR = 16.0
"""An answer is accepted with relative residuals below RESIDUAL_FACTOR * (n + m) * eps: the rounding of one product."""

MOST_STEPS = 5
"""Refinement goes on at most this often; one step is the rule, more are for the edge of singularity."""


SHARED = 0.25
"""Redundant rows may be off by four times the rounding of the largest among them."""


class Refinable(Protocol):
    """What can be refined: a factored route, or one that also chooses among multipliers."""

    def solve(self, b: Array) -> Array:
        """Return x for K x = b."""
        ...


class Residual(NamedTuple):
    """The residual r, the data it is measured against, and omega."""

    r: Array
    data: Array
    omega: float

    def relative(self, block: slice) -> float:
        """Return omega of one block row."""
        return float((np.abs(self.r[block]) / self.data[block]).max(initial=0.0))

    def overall(self, analysis: Analysis, x: Array) -> float:
        """Return omega, or for redundant rows the residual of each block over its largest data, equilibrated.

        Redundant rows share the rounding of the largest right side among them, a few times over; a small one cannot
        do better (`SHARED`). Nor can rows be better than rounding of the whole motion in the metric of the mass, in
        which their rank was decided.
        """
        n, scales, rows = analysis.M.shape[0], analysis.scales, analysis.rows
        if rows.rank == analysis.A.shape[0]:
            return self.omega
        r, data = np.abs(scales * self.r), scales * self.data
        motion = float(r[:n].max() / data[:n].max(initial=1e-300))
        around = float(np.abs(x[:n] / rows.measures).max())
        size = float((rows.weights * self.data[n:]).max(initial=1e-300))
        inside = float((rows.weights * np.abs(self.r[n:])).max(initial=0.0)) / max(size, around)
        constraint = float(r[n:].max(initial=0.0) / data[n:].max(initial=1e-300))
        return SHARED * max(motion, min(constraint, inside))


def rounding(size: int) -> float:
    """Return the backward error below which refinement of n + m = size unknowns has nothing left to mend."""
    return size * EPS


def acceptable(size: int) -> float:
    """Return the backward error up to which an answer counts as solved to rounding."""
    return RESIDUAL_FACTOR * size * EPS


def residual(analysis: Analysis, b: Array, x: Array) -> Residual:
    """Return the residual of x; omega is NaN where a row has no data at all."""
    r = b - analysis.K.dot(x)
    data = analysis.absK.dot(np.abs(x)) + np.abs(b)
    return Residual(r, data, float(np.maximum.reduce(np.abs(r) / data)))


def floored(analysis: Analysis, b: Array, x: Array, found: Residual) -> Residual:
    """Return the residual, but with rows whose data are all rounding measured against the largest numbers around.

    A row without any data is compared with one. Where an acceleration is exactly zero (a locked joint) the row that
    says so holds nothing but rounding, and its omega is 1 whatever is done; Arioli, Demmel and Duff then compare with
    |K_i| max|x| instead, here in equilibrated units. Where all accelerations are zero (a structure at rest), max|x|
    is what b could cause.
    """
    n, scales = analysis.M.shape[0], analysis.scales
    size = np.maximum(np.abs(x) / scales, np.abs(scales * b).max())
    largest = scales * np.concatenate([np.full(n, size[:n].max()), np.full(x.size - n, size[n:].max(initial=0.0))])
    around = (analysis.absK * largest).max(axis=1)
    data = np.where(found.data <= 1000 * x.size * EPS * around, found.data + around, found.data)
    data[data == 0.0] = 1.0
    return Residual(found.r, data, float(np.maximum.reduce(np.abs(found.r) / data)))


def refined(analysis: Analysis, factor: Refinable, b: Array, steps: int = MOST_STEPS) -> tuple[Array, Residual]:
    """Solve, and refine where that helps: while the residual is above rounding and each step halves it."""
    x = factor.solve(b)
    found = residual(analysis, b, x)
    limit = rounding(x.size)
    if found.omega <= limit:
        return x, found
    found = floored(analysis, b, x, found)
    for _ in range(steps):
        if found.omega <= limit:
            break
        better = x + factor.solve(found.r)
        trial = floored(analysis, b, better, residual(analysis, b, better))
        if not trial.omega <= 0.5 * found.omega:
            break
        x, found = better, trial
    return x, found


def certain(found: Residual, factor: FastRoute, x: Array, n: int) -> bool:
    """Return whether the factors alone prove three digits of a and of lam.

    In scaled units the error is at most magnification * rounding * |data|; the scales bring it into the user's. Where
    this quick test fails, because of cancellation or of units, slower routes and error bars decide.
    """
    scales, a, lam = factor.scales, x[:n], x[n:]
    d, e, scaled = scales[:n], scales[n:], scales * found.data
    error = scaled.dot(scaled) * (factor.magnification * rounding(x.size) / CERTAIN_DIGITS) ** 2
    return bool(error * d.dot(d) <= a.dot(a) and error * e.dot(e) <= lam.dot(lam))
