"""Laws of contacts with given limits, checked, and what they say at one state: limits at rest, forces in motion."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dalembert.errors import ModelError, ShapeError
from dalembert.friction.law import Law
from dalembert.friction.laws import as_law

Array = np.ndarray


def checked_laws(laws: Any, m: int, names: Sequence[str]) -> tuple[Law, ...]:
    """Return one law per contact; a single law or number stands for all."""
    if isinstance(laws, Law) or np.ndim(laws) == 0:
        laws = [laws] * m
    if len(laws) != m:
        raise ShapeError(f"{len(laws)} laws for {m} contacts")
    return tuple(as_law(law, f"contact {name!r}") for law, name in zip(laws, names, strict=True))


def forces_by_law(
    laws: Sequence[Law], velocity: Array, loads: Array, names: Sequence[str], at_rest: float, state: Any
) -> tuple[Array, Array, Array]:
    """Return limits at rest, forces in motion (zero at rest), and who is at rest."""
    m = velocity.size
    rest = np.abs(velocity) <= at_rest
    limits, moving = np.zeros(m), np.zeros(m)
    for i, law in enumerate(laws):
        if not (np.isfinite(loads[i]) and loads[i] >= 0.0):
            raise ModelError(f"contact {names[i]!r}: its load is {loads[i]}; a load must be finite and not negative")
        limits[i] = loads[i] * float(law.static(state))
        if not rest[i]:
            moving[i] = loads[i] * float(law.force(velocity[i], state))
        if law.needs_state and (limits[i] < 0.0 or moving[i] * velocity[i] > 0.0 or not np.isfinite(limits[i])):
            raise ModelError(
                f"contact {names[i]!r}: the friction law is not dissipative here: static limit {limits[i]:.6g}, force "
                f"{moving[i]:.6g} at relative velocity {velocity[i]:.6g}"
            )
    return limits, moving, rest
