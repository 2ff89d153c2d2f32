"""Types that all rooms share: names for annotations, and energy by name."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray
"""An array of numbers; shapes are said by jaxtyping, as in Float[Array, "n n"]."""

Scalar = Any
"""A number or an expression of one: float, NumPy's, or a CasADi SX."""


class Energy(NamedTuple):
    """Kinetic and potential energy, joules: one number each, or one per sample."""

    kinetic: Array
    potential: Array

    @property
    def total(self) -> Array:
        """Their sum."""
        return self.kinetic + self.potential
