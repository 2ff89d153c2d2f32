"""Error bars: a bound for every number of an answer, and the condition of the solve.

Symbols: X the (generalised) inverse of the block matrix K, r the residual, u the unit roundoff. From
x - x_true = X r, evaluated with rounding errors of at most gamma (|K| |x| + |b|), gamma = (n + m + 2) u:

    |x - x_true| <= |X| (|r| + gamma (|K| |x| + |b|))

componentwise and to first order in u. Source: N. J. Higham, "Accuracy and Stability of Numerical Algorithms",
2nd ed. (2002), section 7.2; R. D. Skeel, J. ACM 26 (1979) 494-526.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

Array = np.ndarray
UNIT_ROUNDOFF = 0.5 * float(np.finfo(float).eps)


CERTAIN_DIGITS = 1e-3
"""Relative error bound above which an answer is called ill conditioned."""


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
    K: Array, X: Array, b: Array, x: Array, n: int, scales: Array, choice: float, removed: Array | None = None
) -> Bounds:
    """Return the error bounds of x = (a, lam), K x = b, given X.

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
    condition = max(_relative(noise[part], x[part], reach[part]) for part in blocks) / gamma
    return Bounds(error[:n], error[n:] + choice, condition, relative)


def _relative(error: Array, x: Array, reach: Array) -> float:
    """Return the largest error relative to the largest entry, or to the reach of the data where x is all rounding."""
    worst = float(error.max(initial=0.0))
    size = float(np.abs(x).max(initial=0.0))
    if size <= worst:
        size = max(size, float(reach.max(initial=0.0)))
    return worst / size if size > 0.0 else 0.0
