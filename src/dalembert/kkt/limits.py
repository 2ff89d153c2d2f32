"""The limits of ranks and verdicts, by name and with their reasons: every room takes them from here.

None has a unit. Those of rank are singular values of constraint rows in the metric of the mass, relative to the largest
(`rows.py`); those of residuals are backward errors; those of pivots are parts of a diagonal. `docs/verdict.md` has them
in a table.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

EPS = float(np.finfo(float).eps)

# ----------------------------------------------------------------------------------------------------------------------
# Rank: which rows are independent.


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


# ----------------------------------------------------------------------------------------------------------------------
# Consistency: whether the right sides of dependent rows agree.


CONSISTENCY = 1e-10
"""Relative conflict among the right sides of dependent rows up to which they count as consistent: drift terms are
differences of larger numbers and rarely better than this."""

SHARE = 2.0
"""A right side A a of rows that a given rank has changed contradicts this rank by the part that was dropped; twice."""


def consistency_level(m: int, precision: float = EPS) -> float:
    """Return the relative conflict up to which right sides of m rows of that precision agree."""
    return max(CONSISTENCY, ROUNDING_FACTOR * m**0.5 * precision)


# ----------------------------------------------------------------------------------------------------------------------
# Mass: which motions have one.


MASS_FACTOR = 8.0
"""Reduced masses below MASS_FACTOR * n * eps (of M's own precision) of the terms they are summed from are zero."""


def massless_level(n: int, precision: float = EPS) -> float:
    """Return the part of its terms up to which a mass, or an eigenvalue of M of unit diagonal, is zero."""
    return MASS_FACTOR * n * precision


# ----------------------------------------------------------------------------------------------------------------------
# Backward error: whether an answer is solved to rounding.


RESIDUAL_FACTOR = 16.0
"""An answer is accepted with relative residuals below RESIDUAL_FACTOR * (n + m) * eps: the rounding of one product."""

ROUNDING_ONLY = 1000.0
"""A row whose data are below ROUNDING_ONLY * (n + m) * eps of the largest numbers around holds rounding only."""

SHARED = 0.25
"""Redundant rows may be off by four times the rounding of the largest among them."""


def rounding(size: int, precision: float = EPS) -> float:
    """Return the backward error below which refinement of n + m = size unknowns has nothing left to mend."""
    return size * precision


def acceptable(size: int, precision: float = EPS) -> float:
    """Return the backward error up to which an answer counts as solved to rounding."""
    return RESIDUAL_FACTOR * size * precision


# ----------------------------------------------------------------------------------------------------------------------
# Proofs of a factorisation: reciprocal condition, and the range condition of the short form.


SMALLEST_RCOND = 1e-14
"""Reciprocal condition below which factors of the whole matrix no longer tell full rank from rank deficiency."""

REGULAR_RCOND = 1e-9
"""Reciprocal condition above which inertia (n, m, 0) proves solvability beyond rounding."""

INDEPENDENT_RCOND = 1e-6
"""Reciprocal condition, times the square root of the lightest mass in it, above which rows are independent in the
metric of the mass, too, by `DOUBT`: that metric stretches light coordinates, and rows with them, by no more than the
square root, and by 3e3 where masses are coupled as closely as `rows.CLEARLY_DEFINITE` lets them."""

RANGE_TOLERANCE = 1e-11
"""Relative residual of the range condition up to which the short form counts as exact."""


# ----------------------------------------------------------------------------------------------------------------------
# Rank, in numbers of a given size and precision.


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


def length_ratio(
    n: int, m: int, precision: float = EPS, tolerance: float | None = None, *, grouped: bool = False
) -> float:
    """Return the ratio of shortest to longest row, in the metric of the mass, above which a fast route proves a rank.

    Rows for themselves are in doubt where one is rounding beside another. Rows in groups may be as much shorter than
    the longest as their singular values, each scaled for itself, are above doubt and tolerance.
    """
    if not grouped:
        return 0.0 if tolerance is not None else rounding_level(m, n, precision)
    trace = regular_trace(n, m, precision, tolerance)
    return (m * trace) ** 0.5 * max(doubt_level(precision), tolerance or 0.0)


def fast_proof(
    n: int, m: int, precision: tuple[float, float], tolerance: float | None, rank: int | None, *, grouped: bool
) -> tuple[float, float]:
    """Return `regular_trace` and `length_ratio`: what proves that a fast route's rank is that of `rows.py`."""
    eps = max(precision)
    return regular_trace(n, m, eps, tolerance, rank), length_ratio(n, m, eps, tolerance, grouped=grouped)


# ----------------------------------------------------------------------------------------------------------------------
# Probing before code is traced: at a few configurations that meet the constraints (`expressions/probing.py`).


NEARLY_IMPLIED = 1e-6
"""Rows beside very light coordinates look implied: eigenvalue of the unit-diagonal Delassus matrix up to which."""

NEARLY_MASSLESS = 1e-12
"""M counts as singular where its unit-diagonal form has a smaller eigenvalue: lighter links lose all digits in M^-1."""

VANISHING = 1e-13
"""A pivot below this fraction of the diagonal of M at every sampled configuration is zero but for rounding."""

FADED = 1e-3
"""Part of its typical |A_i| up to which a row is scaled up: one that fades further at some configuration counts less
and less, and not at all where rounding is all that is left of it."""

PART = 1e-8
"""Weight in a sum of rows, of unit scale, from which on a row has a part in it: below is rounding over pivots."""

SLACK = 1e-8
"""Rows that depend on each other may contradict each other by this part of the system's size, or by its digits where
these are fewer: more is a constraint that cannot be met."""

CLOSED = 1e-15
"""Part of its size at which a residual ends the steps towards the constraints, if they have not come to rest before."""

CLEARLY_CLOSED = 0.01
"""Part of the model's digits by which constraints may be open where ranks are looked at: rows that depend on each other
differ by as much, levers apart."""

SINGULAR_STEP = 1e-8
"""Singular values up to this part of the largest take no part in a step towards the constraints."""


# ----------------------------------------------------------------------------------------------------------------------
# Rows and pivots of systems that are too large for dense decompositions (`large`): ranks from pivots and vectors.


IMPLIED_PIVOT = 1e-10
"""A pivot up to this part of its row's diagonal is none: the square of a part of 1e-5."""

DEAD_PIVOT = 1e-14
"""A pivot below this part of its row's diagonal is rounding: the row is left out of the solve (its lam stays put)."""

DEPENDENT_VECTOR = 1e-5
"""Rows depend on each other where three proximal steps leave more than this of a vector that is a bit of all."""

IDLE_ROW = 1e-20
"""Part of what a row would do to its bodies alone up to which its diagonal of G is rounding: a square."""

FINE = 1e-13
"""A residual up to this is as good as any; above it another measure, or another solve, may be worth its time."""


# ----------------------------------------------------------------------------------------------------------------------
# The verdict on a sample of compiled code, in one precision.


MASSIVE = 64.0
"""A pivot above MASSIVE * eps of its typical diagonal is more than rounding: of H mass, of G a row."""


@dataclass(frozen=True, eq=False)
class Thresholds:
    """Limits for one precision.

    Attributes
    ----------
    eps
        The precision's rounding unit.
    digits
        Relative size of what counts as rounding of the model's numbers: redundant rows agree to that.
    shift
        mu of proximal steps in loops: eps^0.64, 1e-10 in double precision. Three steps meet eigenvalues sigma of the
        unit-diagonal Delassus matrix down to 1e-6 to the last digits.
    accept
        Relative residuals up to here count as solved, whatever the pivots.
    certain
        Largest part of an acceleration that may be wrong: half of the digits.
    regular
        Pivot of kept rows, beside their typical diagonal, from which on it is more than rounding of what it is made of.
    implied
        A pivot of the equilibrated Delassus matrix up to here does not tell an implied row from a lost rank.
    """

    eps: float
    digits: float = BUILT

    @property
    def shift(self) -> float:
        """Return mu."""
        return self.eps**0.64

    @property
    def accept(self) -> float:
        """Return the largest relative residual of an answer."""
        return self.eps**0.625

    @property
    def agree(self) -> float:
        """Return the largest residual of redundant rows."""
        return max(self.digits, self.accept)

    @property
    def certain(self) -> float:
        """Return the largest relative error of an answer."""
        return self.eps**0.5

    @property
    def implied(self) -> float:
        """Return the pivot below which a row may be implied by others: mu times the squares of how many it takes."""
        return max(100 * self.shift, self.eps**0.4)

    @property
    def regular(self) -> float:
        """Return the pivot above which kept rows have a rank."""
        return MASSIVE * self.eps


DOUBLE = Thresholds(2.0**-52)
SINGLE = Thresholds(2.0**-23)


@dataclass(frozen=True)
class SampleLimits:
    """The limits of `kkt` for n coordinates and m rows in one precision, as straight-line code compares with them.

    Attributes
    ----------
    regular
        Least pivot, of unit diagonal: that of a matrix whose inverse has at most the trace of a fast route's proof.
    dependent
        Distance of a row of length one from others up to which it depends on them: half of the rounding in `rows.py`,
        since the rows in the metric of the mass are themselves rounded, differently here and there.
    lengths
        Ratio of shortest to longest row above which no row is rounding beside another.
    agree
        Relative conflict up to which right sides of dependent rows agree.
    massless
        Pivot of the mass, of unit diagonal, up to which a motion has none.
    accept, rounding
        Backward error up to which an answer is solved; that of data.
    """

    regular: float
    dependent: float
    lengths: float
    agree: float
    massless: float
    accept: float
    rounding: float

    @classmethod
    def of(cls, n: int, m: int, precision: float = EPS) -> SampleLimits:
        """Return the limits for a size and a precision."""
        return cls(
            regular=1.0 / regular_trace(n, m, precision),
            dependent=0.5 * rounding_level(m, n, precision),
            lengths=length_ratio(n, m, precision),
            agree=consistency_level(m, precision),
            massless=massless_level(n, precision),
            accept=acceptable(n + m, precision),
            rounding=rounding(n + m, precision),
        )
