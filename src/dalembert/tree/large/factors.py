"""What factoring and solving the block system of a large mechanism leave, by either way of doing it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray

STEPS = 3
"""Proximal steps: each shrinks what is wrong in the range of G by mu / (sigma + mu), sigma an eigenvalue of G; they
never leave the span where multipliers are least. Source: J. Carpentier, R. Budhiraja, N. Mansard, "Proximal and sparse
resolution of constrained dynamic equations", RSS 2021."""

CLEANINGS = 2
"""What redundant right sides have outside the range of G, rounding, is magnified by 1 / mu along null(A^T) and taken
out again: the first time leaves eps / mu of it, 2e-6; the second the square of that."""

Out = tuple[Array, Array]
"""Where an answer goes: a (nv,), lam (m,)."""


@dataclass(eq=False)
class Factors:
    """Of [M A^T; A -shift].

    Attributes
    ----------
    shift, g, pivots : (m,)
        Shift of the rows; their diagonal of the Delassus matrix, and their pivots.
    worst
        The least relative pivot of a joint.
    solve
        What a sparse LU solves with; None of fronts, whose factors are in their memory.
    """

    shift: Array
    g: Array
    pivots: Array
    worst: float = 1.0
    solve: Any = None


class Trial(NamedTuple):
    """An answer a (nv,), lam (m,), both residuals, and what is left: tau - M a - A^T lam, c - A a with its size."""

    a: Array
    lam: Array
    one: float
    two: float
    left: Array
    gap: Array
    size: Array
