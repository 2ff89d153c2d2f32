"""Random configurations that meet the constraints: anywhere if that can be, else near the neutral one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from dalembert.model.mechanism import Mechanism

Array = np.ndarray

SHRINKINGS = 6
"""How often the distance from the neutral configuration is halved before a start is given up."""


def closed_samples(
    mechanism: Mechanism, close: Callable[[Array], Array | None], count: int, seed: int
) -> list[tuple[Array, bool]]:
    """Return `count` configurations, each with whether it meets the constraints.

    A random configuration of a mechanism with loops is seldom near a closed one. Where it cannot be closed, the search
    starts again from the closed neutral configuration, displaced by a random velocity of half the size each time.

    Parameters
    ----------
    close
        Returns the closed configuration near one, or None.
    """
    rng = np.random.default_rng(seed)
    neutral = close(mechanism.neutral())
    samples = []
    for start in mechanism.random(rng, count):
        found = close(start)
        scale = 1.0
        for _ in range(SHRINKINGS if found is None and neutral is not None else 0):
            found = close(mechanism.integrate(neutral, scale * rng.normal(size=mechanism.nv)))
            if found is not None:
                break
            scale /= 2
        samples.append((start, False) if found is None else (found, True))
    return samples


def closed_or_none(project: Callable[[Any], Any]) -> Callable[[Array], Array | None]:
    """Return a projection that gives None where it fails."""
    from dalembert.errors import SolvabilityError

    def close(q: Array) -> Array | None:
        try:
            return project(q)
        except SolvabilityError:
            return None

    return close
