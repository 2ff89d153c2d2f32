"""Initial states with contacts: nothing may begin inside of something else."""

from __future__ import annotations

import numpy as np

from dalembert.errors import ModelError
from dalembert.simulate.contact.geometry import Geometry

Array = np.ndarray

DEEP = 1e-6
"""A start that penetrates by more than this is refused, metres."""


def refuse_penetration(geometry: Geometry, q: Array) -> None:
    """Refuse a start in which a gap is negative, with names and depths."""
    gaps = geometry.gaps(q)
    deep = np.flatnonzero(gaps < -DEEP)
    if deep.size:
        worst = deep[np.argsort(gaps[deep])][:3]
        said = ", ".join(f"{geometry.pairs[i].name!r} by {-gaps[i]:.3g} m" for i in worst)
        raise ModelError(f"the start interpenetrates: {said}; lift the mechanism, or move the contacts")
