"""Residuals relative to the data, iterative refinement, and error bounds."""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol

import numpy as np

from dalembert.first_use import LAPACK
from dalembert.kkt.analysis import Analysis
from dalembert.kkt.limits import CERTAIN, EPS, ROUNDING_ONLY, SHARED, UNIT_ROUNDOFF, rounding
from dalembert.kkt.routes.contract import FastRoute
from dalembert.types import Array

# ----------------------------------------------------------------------------------------------------------------------
# Residuals of an answer, relative to its data, and the refinement that makes them small.
#
# Symbols: x = (a, lam) and b = (f, c) stacked, r = b - K x. The measure is the componentwise backward error
#
#     omega = max_i |r_i| / (|K| |x| + |b|)_i
#
# the least relative change of the entries of K and b that makes x exact; it knows no units. `ndarray.dot` stands here
# for `@`: on vectors of this length it takes half the time. Source: M. Arioli, J. W. Demmel, I. S. Duff, "Solving
# sparse linear systems with sparse backward error", SIAM J. Matrix Anal. Appl. 10 (1989) 165-190.


MOST_STEPS = 5
"""Refinement goes on at most this often; one step is the rule, more are for the edge of singularity."""


TINY = float(np.finfo(float).tiny)
"""Squares below this have lost digits, or vanished."""


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


def residual(analysis: Analysis, b: Array, x: Array) -> Residual:
    """Return the residual of x; omega is NaN where a row has no data at all."""
    r = b - analysis.K.dot(x)
    data = analysis.absK.dot(np.abs(x)) + np.abs(b)
    return Residual(r, data, float(np.maximum.reduce(np.abs(r) / data)))


def floored(analysis: Analysis, b: Array, x: Array, residual: Residual) -> Residual:
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
    data = np.where(residual.data <= ROUNDING_ONLY * x.size * EPS * around, residual.data + around, residual.data)
    data[data == 0.0] = 1.0
    return Residual(residual.r, data, float(np.maximum.reduce(np.abs(residual.r) / data)))


def relative_residuals(M: Array, A: Array, f: Array, c: Array, a: Array, lam: Array) -> tuple[float, float]:
    """Return omega of both block rows of an answer, wherever it came from: rows of rounding only as in `floored`."""
    analysis, b, x = Analysis(M, A), np.concatenate((f, c)), np.concatenate((a, lam))
    with np.errstate(all="ignore"):
        remainder = floored(analysis, b, x, residual(analysis, b, x))
        return remainder.relative(slice(None, len(f))), remainder.relative(slice(len(f), None))


def refined(analysis: Analysis, factor: Refinable, b: Array, steps: int = MOST_STEPS) -> tuple[Array, Residual]:
    """Solve, and refine where that helps: while the residual is above rounding and each step halves it."""
    x = factor.solve(b)
    remainder = residual(analysis, b, x)
    limit = rounding(x.size)
    if remainder.omega <= limit:
        return x, remainder
    remainder = floored(analysis, b, x, remainder)
    for _ in range(steps):
        if remainder.omega <= limit:
            break
        better = x + factor.solve(remainder.r)
        trial = floored(analysis, b, better, residual(analysis, b, better))
        if not trial.omega <= 0.5 * remainder.omega:
            break
        x, remainder = better, trial
    return x, remainder


def certain(residual: Residual, factor: FastRoute, x: Array, n: int) -> bool:
    """Return whether the factors alone prove three digits of a and of lam.

    In scaled units the error is at most magnification * rounding * |data|; the scales bring it into the user's. Where
    this quick test fails, because of cancellation or of units, slower routes and error bars decide.
    """
    scales, a, lam = factor.scales, x[:n], x[n:]
    d, e, scaled = scales[:n], scales[n:], scales * residual.data
    error = _length(scaled) * factor.magnification * rounding(x.size) / CERTAIN
    return error * _length(d) <= _length(a) and error * _length(e) <= _length(lam)


def _length(x: Array) -> float:
    """Return |x|, also where the squares leave the range."""
    square = float(x.dot(x))
    if TINY <= square < np.inf:
        return math.sqrt(square)
    largest = float(np.abs(x).max(initial=0.0))
    return largest * float(np.linalg.norm(x / largest)) if 0.0 < largest < np.inf else largest


def estimated(K: Array, b: Array, n: int) -> tuple[Array, float]:
    """Return x of K x = b, (N,) or (N, k), by elimination, and an estimate of the relative error of its first n.

    For block matrices that friction makes unsymmetric, and where speed counts. The estimate is what one refinement
    would change, in the metric of the masses on the diagonal of K; numbers that are zero to rounding are measured
    against what the forces alone could cause. `LinAlgError` where a pivot is zero.
    """
    lu, pivots, singular = LAPACK.dgetrf(K)
    if singular:
        raise np.linalg.LinAlgError("a pivot is zero")
    columns = b.reshape(len(b), -1)
    x = LAPACK.dgetrs(lu, pivots, columns)[0]
    change = LAPACK.dgetrs(lu, pivots, columns - K @ x)[0]
    mass = np.abs(K.diagonal()[:n, None])
    root = np.sqrt(np.where(mass > 0.0, mass, 1.0))
    error, size = np.abs(root * change[:n]).max(axis=0, initial=0.0), np.abs(root * x[:n]).max(axis=0, initial=0.0)
    reach = np.abs(columns[:n] / root).max(axis=0, initial=0.0)
    size = np.where(size <= error, np.maximum(size, reach), size)
    worst = error / np.where(size > 0.0, size, 1.0)
    return x.reshape(b.shape), float(worst.max(initial=0.0)) if np.isfinite(worst).all() else np.inf


# ----------------------------------------------------------------------------------------------------------------------
# Error bars: a bound for every number of an answer, and the condition of the solve.
#
# Symbols: X the (generalised) inverse of the block matrix K, r the residual, u the unit roundoff. From
# x - x_true = X r, evaluated with rounding errors of at most gamma (|K| |x| + |b|), gamma = (n + m + 2) u:
#
#     |x - x_true| <= |X| (|r| + gamma (|K| |x| + |b|))
#
# componentwise and to first order in u. Source: N. J. Higham, "Accuracy and Stability of Numerical Algorithms",
# 2nd ed. (2002), section 7.2; R. D. Skeel, J. ACM 26 (1979) 494-526.


class Bounds(NamedTuple):
    """Absolute error bounds per number, and the condition of the solve.

    `condition` is Skeel's: the factor by which relative errors of the data are magnified in the larger of the two
    relative errors, |a - a_true| / |a| and |lam - lam_true| / |lam| in the maximum norm, in user units.
    `relative_error` is the larger relative error in equilibrated units, so that units do not decide what is certain.
    A block that is zero to rounding (a structure at rest) is judged against what its data could have produced.
    """

    acceleration: Array
    multipliers: Array
    condition: float
    relative_error: float


def error_bounds(
    K: Array, X: Array, b: Array, x: Array, n: int, scales: Array, choice: float, removed: Array | None = None,
    exponents: Array | None = None,
) -> Bounds:  # fmt: skip
    """Return the error bounds of x = (a, lam), K x = b, given X; the user's numbers are x 2^exponents.

    n is the size of a; `scales` equilibrate K, and say what b could cause in an answer that is zero to rounding;
    `choice` is the error of every multiplier from their choice in a family: it widens the bars and counts in the
    condition, not in the relative error, by which accelerations and the force of the constraints are judged.
    `removed` is what was taken from b, and from K times x, to make dependent rows agree: it moves the answer by up to
    |X| removed.
    """
    gamma = (x.size + 2) * UNIT_ROUNDOFF
    data = np.abs(K) @ np.abs(x) + np.abs(b)
    noise = gamma * (np.abs(X) @ data)
    error = noise + np.abs(X) @ (np.abs(b - K @ x) + (0.0 if removed is None else removed))
    reach = scales * np.abs(scales * b).max()
    blocks = slice(None, n), slice(n, None)
    relative = max(_relative(*(y[part] / scales[part] for y in (error, x, reach))) for part in blocks)
    noise[n:] += choice
    error[n:] += choice
    if exponents is not None:
        noise, error, x, reach = (np.ldexp(y, exponents) for y in (noise, error, x, reach))
    condition = max(_relative(noise[part], x[part], reach[part]) for part in blocks) / gamma
    return Bounds(error[:n], error[n:], condition, relative)


def _relative(error: Array, x: Array, reach: Array) -> float:
    """Return the largest error relative to the largest entry, or to the reach of the data where x is all rounding."""
    worst = float(error.max(initial=0.0))
    size = float(np.abs(x).max(initial=0.0))
    if size <= worst:
        size = max(size, float(reach.max(initial=0.0)))
    return worst / size if size > 0.0 else 0.0
