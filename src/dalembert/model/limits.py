"""The limits of geometry and inertia: which lengths, angles and moments are rounding. Of ranks: `kkt/limits.py`."""

from __future__ import annotations

from dalembert.kkt.limits import BUILT, EPS, FILE, ROUNDING

EXACT, EXACT_SUM = 4 * EPS, 8 * EPS
"""Entries of a rotation, or second moments, this close to a whole number, or zero beside the largest, are taken as such
(cos(pi/2) is 6e-17 only by rounding); lengths, angles and entries that come out of products of several rotations."""

# ----------------------------------------------------------------------------------------------------------------------
# Numbers from files, which have about six digits: what is corrected, and what is refused.


ORTHOGONALITY = FILE
"""A rotation matrix may be off by this much; it is made orthogonal. More is an error."""

OFF_MANIFOLD = FILE
"""Squared lengths of quaternions and (cos, sin) may be off by this much: integrators drift, files round."""

TRIANGLE = FILE
"""Principal moments may break I1 + I2 >= I3 by this fraction of I3: files round inertias to a few digits."""

SKEWED_INERTIA = BUILT
"""A rotational inertia and its transpose may differ by this part of the largest entry."""

NO_LEVER = 1e-8
"""Metres: moments below mass * NO_LEVER^2 are rounding of zero, as 4e-18 kg m^2 beside 2 kg is."""

# ----------------------------------------------------------------------------------------------------------------------
# Axes: when two of them are one.


ONE_AXIS = FILE
"""Sine of the angle below which the two axes of a universal joint count as one."""

PARALLEL = ROUNDING
"""Axes with a smaller sine between them are parallel: files give right angles with rounded pi."""

NEARLY_PARALLEL = 1e-2
"""Below this sine the common normal may be far away; its feet would cost digits."""

OPPOSITE = 1e-9
"""Below this sine an opposite axis has no direction of its own: then the turn is about the first across it."""

# ----------------------------------------------------------------------------------------------------------------------
# Functions of angles and lengths near zero.


SMALL_ANGLE = 1e-2
"""Angles below this go through series: their first omitted term is then below rounding."""

TINY_SQUARE = 1e-30
"""Added to squared lengths and sines before a root: a spring of no length pulls in no direction instead of in NaN, and
angle / sine, which is even in the sine, does not notice."""
