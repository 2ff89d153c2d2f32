"""Residuals of an answer, relative to its data, and the refinement that makes them small.

`ndarray.dot` stands here for `@`: on vectors of this length it takes half the time.

Symbols: r1 = f - M a - A^T lam, r2 = c - A a; d, e scales of coordinates and rows, in whose units all parts of the
block matrix are of size one, so that sizes may be compared.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dalembert.kkt.analysis import Analysis
from dalembert.kkt.routes.contract import Route

Array = np.ndarray
EPS = float(np.finfo(float).eps)

RESIDUAL_FACTOR = 16.0
"""An answer is accepted with relative residuals below RESIDUAL_FACTOR * (n + m) * eps: the rounding of one product."""

MOST_STEPS = 5
"""Refinement goes on at most this often; one step is the rule, more are for the edge of singularity."""


class Residual(NamedTuple):
    """Residual vectors and their sizes relative to the data of their block row."""

    motion: Array
    constraint: Array
    relative_motion: float
    relative_constraint: float

    @property
    def worst(self) -> float:
        """The larger of the two relative residuals."""
        return max(self.relative_motion, self.relative_constraint)


def acceptable(n: int, m: int) -> float:
    """Return the relative residual up to which an answer counts as solved to rounding."""
    return RESIDUAL_FACTOR * (n + m) * EPS


def rounding(n: int, m: int) -> float:
    """Return the relative residual below which refinement has nothing left to mend."""
    return (n + m) * EPS


def residual(analysis: Analysis, scales: tuple[Array, Array], f: Array, c: Array, a: Array, lam: Array) -> Residual:
    """Return the residuals of (a, lam).

    Relative to the largest of applied, inertial and constraint forces in the first block row, and of prescribed and
    found accelerations and those that the forces alone could cause in the second; Euclidean norms in scaled units.
    """
    d, e = scales
    inertial = analysis.M.dot(a)
    r1, r2 = f - inertial - lam.dot(analysis.A), c - analysis.A.dot(a)
    applied = _norm(d * f)
    forces = max(applied, _norm(d * inertial), _norm(lam / e))
    accelerations = max(applied, _norm(a / d), _norm(e * c))
    return Residual(r1, r2, _ratio(_norm(d * r1), forces), _ratio(_norm(e * r2), accelerations))


def refined(analysis: Analysis, factor: Route, f: Array, c: Array) -> tuple[Array, Array, Residual]:
    """Solve, and refine where that helps: while the residual is above rounding and each step halves it."""
    a, lam = factor.solve(f, c)
    found = residual(analysis, factor.scales, f, c, a, lam)
    limit = rounding(a.size, lam.size)
    for _ in range(MOST_STEPS if factor.refines else 0):
        if found.worst <= limit:
            break
        da, dlam = factor.solve(found.motion, found.constraint)
        trial = residual(analysis, factor.scales, f, c, a + da, lam + dlam)
        if not trial.worst <= 0.5 * found.worst:
            break
        a, lam, found = a + da, lam + dlam, trial
    return a, lam, found


def _norm(x: Array) -> float:
    """Return the Euclidean norm (quicker than NumPy's for the short vectors met here)."""
    return math.sqrt(x.dot(x))


def _ratio(part: float, whole: float) -> float:
    """Return part / whole, and 0 for 0 / 0."""
    return float(part) / float(whole) if whole > 0.0 else (0.0 if part == 0.0 else np.inf)
