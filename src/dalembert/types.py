"""Types that all rooms share: names for annotations, which cost nothing where code runs."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray
"""An array of numbers; shapes are said by jaxtyping, as in Float[Array, "n n"]."""

Scalar = Any
"""A number or an expression of one: float, NumPy's, or a CasADi SX."""
