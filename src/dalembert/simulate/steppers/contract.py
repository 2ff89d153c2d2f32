"""The contract of a stepper: one step of y' = rate(t, y), with its error relative to a tolerance."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from jaxtyping import Float

Array = np.ndarray
Rate = Callable[[float, Array], Array]


class Stepper(Protocol):
    """A one-step method."""

    @property
    def name(self) -> str:
        """What the user writes in `stepper=`."""
        ...

    @property
    def order(self) -> int:
        """Order of the error of a solution."""
        ...

    @property
    def adaptive(self) -> bool:
        """Whether `step` estimates its error."""
        ...

    def step(
        self, rate: Rate, t: float, y: Float[Array, " n"], h: float, k: Float[Array, " n"], scale: Float[Array, " n"]
    ) -> tuple[Float[Array, " n"], float]:
        """Return y(t + h) and the error over the tolerance `scale` (root mean square; 0 if not adaptive).

        `k` is rate(t, y). Raises `StepFailed` where an implicit equation is not solved: try a smaller step.
        """
        ...


class StepFailed(ArithmeticError):  # noqa: N818 - a signal to the step control
    """An implicit step did not converge."""
