"""Mass, first and second moments of bodies as numbers: from an inertia, and seen from another frame."""

from __future__ import annotations

import numpy as np

from dalembert.model.inertia import Inertia
from dalembert.model.placement import Placement
from dalembert.tree.inertia import Rigid

Array = np.ndarray

ROUNDING = 4 * np.finfo(float).eps
"""Second moments smaller than this fraction of the largest come from rounding a rotation."""


def moments(inertia: Inertia) -> Rigid:
    """Return m, h = m c and E = tr(I_O)/2 1 - I_O."""
    rotational = inertia.about_origin()
    E = 0.5 * np.trace(rotational) * np.eye(3) - rotational
    return rigid(inertia.mass, inertia.mass * inertia.center, E)


def rigid(m: float, h: Array, E: Array) -> Rigid:
    """Return the inertia with these numbers as floats; entries that are rounding are zero."""
    E = np.where(np.abs(E) <= ROUNDING * np.abs(E).max(), 0.0, E)
    h = np.where(np.abs(h) <= ROUNDING * np.abs(h).max(), 0.0, h)
    a, b, c, d, e, f = (float(E[i, j]) for i in range(3) for j in range(i, 3))
    return Rigid(float(m), (float(h[0]), float(h[1]), float(h[2])), (a, b, c, d, e, f))


def matrix(inertia: Rigid) -> tuple[float, Array, Array]:
    """Return m, h (3,) and E (3, 3) as arrays."""
    a, b, c, d, e, f = inertia.E
    return inertia.m, np.array(inertia.h), np.array([[a, b, c], [b, d, e], [c, e, f]])


def moved(inertia: Rigid, placement: Placement) -> Rigid:
    """Return the inertia in frame A, for `placement` = X_AB and this one given in B: r_A = R r_B + p."""
    if placement.is_identity():
        return inertia
    m, h, E = matrix(inertia)
    R, p = placement.rotation, placement.position
    turned = R @ h
    cross = np.outer(turned, p)
    return rigid(m, turned + m * p, R @ E @ R.T + cross + cross.T + m * np.outer(p, p))
