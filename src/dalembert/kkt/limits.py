"""The limits of ranks and verdicts of block systems, by name and with their reasons.

None has a unit. Those of rank are singular values of constraint rows in the metric of the mass, relative to the largest
(`rows.py`); those of residuals are backward errors; those of pivots are parts of a diagonal. `docs/verdict.md` has them
in a table. Limits of geometry (parallel axes, exact lengths, inertias) are in `model/limits.py`.

Whoever decides a rank names a policy, that is whose digits decide: `ROUNDING` those of the computer, `BUILT` those of a
model that was built from numbers in full, `FILE` those of a model that was read from a file.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

EPS = float(np.finfo(float).eps)

UNIT_ROUNDOFF = 0.5 * EPS
"""Largest relative error of one operation."""

NOISE = 4 * EPS
"""Entries below this part of the largest beside them are rounding (cos(pi/2) = 6e-17): they set no scale. A force that
constraints take up to this part of it is taken up whole: at rest the acceleration is zero."""

# ----------------------------------------------------------------------------------------------------------------------
# Policies: whose digits decide a rank.


ROUNDING = 1e-14
"""The computer's: singular values up to this part of the largest are rounding of its sums, and a configuration where
s_r / s_1 is no larger is singular. A row so small beside the others is nothing but rounding, whatever its constraint:
scaled up, it would pass for a row."""

BUILT = 1e-9
"""Those of a model built from numbers in full: lengths and angles to nine digits, after some trigonometry."""

FILE = 1e-6
"""Those of a model read from a file, where lengths and angles have about six digits."""

# ----------------------------------------------------------------------------------------------------------------------
# Rank: which rows are independent.


ROUNDING_FACTOR = 10.0
"""Singular values of rows of length one up to ROUNDING_FACTOR * sqrt(max(m, n)) * eps are rounding: a few roundings of
every entry, in random directions, make as much of dependent rows."""

DOUBT = 1e-10
"""Up to here a singular value above rounding may still be made of numbers that cancelled somewhere: rows that are
independent by less are solved as such, but the answer is not certified. Beyond it six digits of it are certain."""

CERTAIN = 1e-3
"""An answer is certified with three digits or more; data of precision p leave them above p / CERTAIN."""

CLEARLY_REGULAR = 1e7
"""Traces of the inverses of M and A M^-1 A^T, scaled to unit diagonal, below this prove definiteness with eight digits
to spare: singular values of the rows are above 3e-4 in the metric of the mass."""

MANY_DIGITS = 1e-2
"""In single precision a fast route must leave these two digits above rounding of the data."""

CLEARLY_DEFINITE = 1e7
"""Trace of the inverse of M, scaled to unit diagonal, up to which M itself is the metric (seven digits of M)."""

EXPLAINED = 3.0
"""Growth of rounding in the metric by up to this factor explains a singular value that was dropped; more is doubt."""

PROJECTION_FACTOR = 8.0
"""Entries that the projection of rows onto a rank changes by this many roundings of their terms stay as they are."""

WORST_PARTITION = 1e-6
"""A partition whose dependent block is worse conditioned than this gives way to plain column pivoting."""


# ----------------------------------------------------------------------------------------------------------------------
# Redundant rows in words: who takes part in a redundancy, and with which coefficient.


READABLE_PIVOT = 1e-3
"""A pivot of a null-space basis must be at least this part of the largest entry left, so that elimination is stable."""

NEGLIGIBLE, LEAST_NEGLIGIBLE = 1e-9, 1e-12
"""Coefficients of a combination of rows below the first are rounding and become zero; below the second in any case."""

PARTICIPATION_FACTOR = 10.0
"""A row takes part in a redundancy when a unit null vector has more on it than PARTICIPATION_FACTOR times what the
singular values taken for zero, or rounding, could have put there."""

MOST_PARTICIPATION = 1e-3
"""Where rounding could have put more than this on every row, a null vector still speaks of the rows it is made of."""


def participation_level(noise: float) -> float:
    """Return what a unit null vector must have on a row that takes part in it, for noise relative to what was kept."""
    return min(PARTICIPATION_FACTOR * noise, MOST_PARTICIPATION)


def negligible_level(participation: float) -> float:
    """Return the coefficient, beside the largest, that is rounding: a hundred times what takes part, within bounds."""
    return min(max(100.0 * participation, LEAST_NEGLIGIBLE), NEGLIGIBLE)


def open_level(noise: float) -> float:
    """Return the part of the largest effect of null vectors that is rounding: effects above it are a choice.

    `noise` is what singular values taken for zero, or rounding, have beside what was kept.
    """
    level = participation_level(noise)
    return max(negligible_level(level), level)


# ----------------------------------------------------------------------------------------------------------------------
# Consistency: whether the right sides of dependent rows agree.


CONSISTENCY = 1e-10
"""Relative conflict among the right sides of dependent rows up to which they count as consistent: drift terms are
differences of larger numbers and rarely better than this."""

SYMMETRY_FACTOR = 64.0
"""M and its transpose may differ by SYMMETRY_FACTOR * n * eps of their entries' size, eps of M's own precision."""

SYMMETRIC = 1e-12
"""A metric of multipliers and its transpose may differ by this part of each entry."""

AT_REST = 1e-3 * EPS
"""Right sides of dependent rows up to this part of what the forces could cause in them without any row ask for nothing:
no solve would see them beside those. More is asked for, however light the limb that would be so fast."""

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
square root, and by 3e3 where masses are coupled as closely as `CLEARLY_DEFINITE` lets them."""

GRAM_RATIO = 1e-14
"""Eigenvalues of a Gram matrix below this part of the largest are rounding of the sums that it consists of."""

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


NOTHING_PROVED = (0.0, np.inf)
"""What no factors of a fast route keep to: least trace, largest ratio of row lengths."""


def fast_proof(
    n: int, m: int, precision: tuple[float, float], tolerance: float | None, rank: int | None, *, grouped: bool
) -> tuple[float, float]:
    """Return `regular_trace` and `length_ratio`: what proves that a fast route's rank is that of `rows.py`."""
    eps = max(precision)
    return regular_trace(n, m, eps, tolerance, rank), length_ratio(n, m, eps, tolerance, grouped=grouped)


# ----------------------------------------------------------------------------------------------------------------------
# The rank of a mechanism, a property of all its configurations (`model/mechanism/ranks.py`, `precision.py`).


CLEAR = 100.0
"""Times the model's digits that a singular value must have somewhere: digits of levers much shorter than the model
count so many times, and a row that is independent has more by far."""

TILTED = 3.0
"""Times CLEAR x digits from which on rows are clearly more than rounding: singular values in the metric of the mass and
entries in the model's units measure one tilt by numbers that differ by no more, so that all rooms see it."""

NEXT_TO = 10.0
"""Times the model's digits: no row of a sample farther than this from a singular configuration is dropped for them,
however rows are scaled."""

TOUCHING = 10.0
"""Times the root of a gap by which rows may look independent that are not."""

CLEARLY_MORE = 10.0
"""Times what was dropped elsewhere, or the gap of a configuration, from which on a difference is no accident."""

IDLE_CONSTRAINT = 1e-9
"""A constraint whose rows are nowhere larger than this part of the largest has no size of its own: it moves nothing."""

IDLE_DIAGONAL = 1e-14
"""The same for diagonals of A M^-1 A^T, lengths and angles in their units: axes of large mechanisms that are tilted by
1e-7 are parallel."""

LEVER_ROUNDING = 64 * EPS
"""Entries of A below this part of their joint's lever are rounding: chains of tens of joints add up so much."""

UNMISSED = EPS**0.5
"""Part of a row's largest entry, each beside its lever, up to which the row does not miss another: half of its digits.
Rows next to a singular configuration are as small as rounding of others, and lose none of their entries."""

LARGEST_ROUNDING = 1e-6
"""Metres. Further than 1e8 m from the origin rounding is larger, and no reason to drop what holds a mechanism."""

DRIFT_SHARE = 0.01
"""Part of the usual size of a drift, lever times speed squared, that a drift counts for at least: the digits of the
model are measured against it."""

SAFE = 1e-4
"""Least eigenvalue of a constraint's rows that joints so far must make, relative to the whole Delassus matrix, where
rows are eliminated inside the tree: that costs accelerations as many digits as this has, and four leave twelve."""


# ----------------------------------------------------------------------------------------------------------------------
# Configurations that are looked for: when a loop is closed, and forces are balanced (`model/mechanism`).


CLOSED_LOOP = 1e-11
"""Residuals up to this part of their size (the mechanism's, one radian) close a loop; a search goes to a tenth."""

CONTRADICTING = 1e-10
"""Residuals of this part of their size that Newton's steps leave are no rounding: rows contradict each other within the
model's digits, and are closed by least squares."""

BALANCED = 1e-9
"""Forces that remain at rest, as a part of those that act."""

LEAST_LOAD = 1e-3
"""Part of the weight that forces which act count for at least."""

FLAT = 1e-12
"""A stiffness up to this part of the largest is none: nothing brings that motion back."""


# ----------------------------------------------------------------------------------------------------------------------
# Probing before code is traced: at a few configurations that meet the constraints (`expressions/probing.py`).


NEARLY_IMPLIED = 1e-6
"""Rows beside very light coordinates look implied: eigenvalue of the unit-diagonal Delassus matrix up to which."""

NEARLY_MASSLESS = 1e-12
"""M counts as singular where its unit-diagonal form has a smaller eigenvalue: lighter links lose all digits in M^-1."""

VANISHING = 1e-13
"""A pivot below this part of the diagonal of M at every sampled configuration, or a coefficient of an equation below
this part of its usual size, is zero but for rounding."""

FADED = 1e-3
"""Part of its typical |A_i| up to which a row is scaled up: one that fades further at some configuration counts less
and less, and not at all where rounding is all that is left of it."""

PART = 1e-8
"""Weight in a sum of rows, of unit scale, from which on a row has a part in it: below is rounding over pivots."""

SLACK = 1e-8
"""Rows that depend on each other may contradict each other by this part of the system's size, or by its digits where
these are fewer: more is a constraint that cannot be met."""

CLOSED = 1e-15
"""Part of its size at which a residual ends the steps towards the constraints, if they have not come to rest before;
numbers that differ by less are equal."""

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
# Named equations: ranks of their blocks (`tableau/structure`), verdicts on their elimination (`tableau/elimination`).


BLOCK_ROUNDING = 64 * EPS
"""Times the size of an equilibrated block: singular values, or pivots of QR, up to this part of the largest
are zero."""

SINGULAR_JACOBIAN = 1e-11
"""The scaled Jacobian of a system whose index is reduced is singular where a singular value is no larger a part of the
largest: its entries come from derivatives."""

LOOSER = (VANISHING, SINGULAR_JACOBIAN, BUILT)
"""Tolerances at which dependent equations are looked for where no rank is missing to the last digit."""

NAMED, NAMED_AT_SINGULARITY = 1e-7, 1e-6
"""Coefficients of a null vector below this part of its largest are left out of the names; the second, of a singular
vector of a Jacobian that is singular by `SINGULAR_JACOBIAN` only."""

ZERO_ROW = 1e-12
"""Part of the largest row below which a row is zero but for rounding."""

FULFILLED = 1e-9
"""Violation of a condition, as a part of the sizes of its terms, that given data to ten digits may have."""

LEAST_TERMS = 1e-4
"""Part of the largest sizes of terms that every condition has at least."""

ACCEPTED_ERROR = 1e-12
"""Backward error of a sound solve: some thousand roundings, data exact to twelve digits."""

STRANGE_ERROR = 1e-6
"""Backward error of numbers that no solve gives."""

SUSPECT_PIVOT = 1e-9
"""A pivot with fewer than seven digits left is not trusted, whatever the residual says."""

SUSPECT_GROWTH = 1e8
"""Growth that may cost half the digits."""

PROBE_SHARE = 1e-4
"""A pivot that is its entry of A is compared with this part of its size at the probed points."""

GENERIC_THRESHOLD = 1e-6
"""Of pivots where no values are known: any entry will do that elimination has not made a zero."""

LEAST_THRESHOLD = 1e-12
"""Below this part of its row's largest entry a pivot may be no more than rounding."""

SINGULAR_CONDITION = 0.1 / EPS
"""Condition, in the 1-norm after equilibration, from which no digit of the solution is certain."""

CLEARED = 1e-3
"""An unknown that a step of refinement shrinks below this part of itself may have been rounding in place of zero."""

TRUSTED = 0.01
"""A second correction larger than this part of the first: the factors are no inverse, nor is the first an error."""

SAMPLED_REACH = 4.0
"""Sampled reach of roundings times this: three samples are below half the true one in a few cases of a hundred."""


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
    rounded
        Part of what the forces could cause by which rounding alone makes an answer miss redundant rows.
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
    def rounded(self) -> float:
        """Return the part of what forces could cause that redundant rows may be missed by.

        Roundings eps of forces move rows by eps / sqrt(p) of their unit-diagonal pivots p. An answer with fewer than
        half of its digits, p < eps^(1/2), is not called certain; so eps / eps^(1/4) is the most.
        """
        return self.eps**0.75

    @property
    def agree(self) -> float:
        """Return the residual of redundant rows, beside what the forces could cause, from which they contradict."""
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
