"""Newton's method onto a constraint manifold: the loop of projections, and the rule by which it ends.

All that puts a point onto rows ends by `goes_on`: plain loops go through `onto_manifold`, compiled ones (steps of the
explicit steppers and of contacts) compile the rule. What differs is the step, which each takes from the factors that it
has: of kernels, of rows under a rank, of sparse fronts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dalembert.kkt.limits import CLOSED, SLACK


def goes_on(size, least, closed, enough, gain):
    """Return whether a further step is worth it: rows are open, and steps help.

    Parameters
    ----------
    size
        Largest residual at the point, as a part of its size.
    least
        The least before, infinite at the start.
    closed
        Residuals that need no step.
    enough
        Residuals above it may grow on the way: the point is still far.
    gain
        Part of `least` below which a step counts as help.
    """
    return closed < size < np.inf and (size < gain * least or size >= enough)


def onto_manifold(
    q: Any,
    linearised: Callable[[Any], tuple[float, Callable[[], Any]]],
    move: Callable[[Any, Any], Any],
    most: int,
    closed: float = CLOSED,
    enough: float = SLACK,
) -> tuple[Any, float]:
    """Return the best point that Newton's steps from q meet, and its largest residual (infinite where all fail).

    Parameters
    ----------
    q
        The point to begin at.
    linearised
        Returns the largest residual at a point, and a function that returns Newton's step there.
    move
        Takes a step from a point.
    most
        Points to look at.
    closed, enough
        See `goes_on`.
    """
    best, least = q, np.inf
    for turn in range(most):
        size, step = linearised(q)
        further = goes_on(size, least, closed, enough, 1.0)
        if size < least:
            best, least = q, size
        if not further or turn == most - 1:
            break
        q = move(q, step())
    return best, least
