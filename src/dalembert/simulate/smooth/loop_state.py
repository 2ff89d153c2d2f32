"""What the explicit loop keeps between two calls: places in its arrays, its limits, its samples."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

DONE, FULL, EVENT, STUCK, SHORT = 10, 11, 12, 13, 14
"""Why the loop came back: end of the segment, buffer full or steps taken, a sign changed, the step size collapsed, or
has become so short that a singular configuration may be near."""

T, H, BEGIN, STOP, TRIED, ORIGIN, ALLOWED, NOISE, LEAST_RATIO, LAST_RATIO, USUAL = range(11)
"""Places in `clock`: time, next step, ends of the segment, step tried last, origin of fixed steps; error over tolerance
that is allowed, rejections that have not helped, least and last error since the last step; longest step
of late."""

STEPS, REJECTED, EVALUATIONS, SAMPLES, ASKED, FIXED, RELAXED, CLOSING, IN_A_ROW = range(9)
"""Places in `counts`."""


class Limits(NamedTuple):
    """What the loop must keep to."""

    rtol: float
    atol: float
    fixed: float  # 0: adaptive
    largest: float
    every: float  # 0: every step is a sample
    start: float
    end: float
    turn: float
    scale_place: np.ndarray
    rotations: np.ndarray


class Samples(NamedTuple):
    """Rows that the loop fills."""

    t: np.ndarray
    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    multipliers: np.ndarray
    work: np.ndarray
    h: np.ndarray
