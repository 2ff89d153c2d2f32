"""The tolerances of rank, by name and with their reasons: every room takes them from here.

All are singular values of constraint rows in the metric of the mass, relative to the largest (`rows.py`): no units.
"""

from __future__ import annotations

import numpy as np

EPS = float(np.finfo(float).eps)

ROUNDING_FACTOR = 10.0
"""Singular values of rows of length one up to ROUNDING_FACTOR * sqrt(max(m, n)) * eps are rounding: a few roundings of
every entry, in random directions, make as much of dependent rows."""

DOUBT = 1e-10
"""Up to here a singular value above rounding may still be made of numbers that cancelled somewhere: rows that are
independent by less are solved as such, but the answer is not certified. Beyond it six digits of it are certain."""

BUILT = 1e-9
"""Rows of a model built from numbers in full: lengths and angles to nine digits, after some trigonometry."""

FILE = 1e-6
"""Rows of a model read from a file, where lengths and angles have about six digits."""

CERTAIN = 1e-3
"""An answer is certified with three digits or more; data of precision p leave them above p / CERTAIN."""

CLEARLY_REGULAR = 1e7
"""Traces of the inverses of M and A M^-1 A^T, scaled to unit diagonal, below this prove definiteness with eight digits
to spare: singular values of the rows are above 3e-4 in the metric of the mass."""

MANY_DIGITS = 1e-2
"""In single precision a fast route must leave these two digits above rounding of the data."""


def rounding_level(m: int, n: int, precision: float = EPS) -> float:
    """Return the singular value up to which rows (m, n) of length one and of that precision (eps) are dependent."""
    return ROUNDING_FACTOR * max(m, n, 1) ** 0.5 * precision


def doubt_level(precision: float = EPS) -> float:
    """Return the relative singular value up to which independent rows leave the answer without a certificate.

    In single precision it is what leaves three digits, 1e-4.
    """
    return max(DOUBT, precision / CERTAIN)


def regular_trace(
    n: int, m: int, precision: float = EPS, tolerance: float | None = None, rank: int | None = None
) -> float:
    """Return the trace of an inverse of unit diagonal below which a fast route proves what `rows.py` would decide.

    The trace bounds 1 / s^2 for every singular value s of the rows, the largest of which is at most sqrt(m). Nothing
    is proved where the rank is given and smaller than m.
    """
    if rank is not None and rank < m:
        return 0.0
    limit = min(CLEARLY_REGULAR, MANY_DIGITS / ((n + m) * precision))
    return min(limit, 1.0 / (max(m, 1) * tolerance**2)) if tolerance else limit
