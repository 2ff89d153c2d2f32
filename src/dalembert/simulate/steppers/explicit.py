"""Explicit Runge-Kutta steps from a table: k_i = rate(t + c_i h, y + h sum_j a_ij k_j), y1 = y + h sum_i b_i k_i.

Source: E. Hairer, S. P. Norsett, G. Wanner, "Solving Ordinary Differential Equations I", 2nd ed., sections II.1,
II.5, II.10.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from dalembert.simulate.steppers.contract import Rate

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class ExplicitRungeKutta:
    """A table a, b, c; error weights `error` (stages + 1, the last for rate at the end), `third` for 8(5,3) pairs."""

    name: str
    order: int
    a: Array
    b: Array
    c: Array
    error: Array | None = None
    third: Array | None = None

    @property
    def adaptive(self) -> bool:
        """True where the table has error weights."""
        return self.error is not None

    def step(
        self, rate: Rate, t: float, y: Float[Array, " n"], h: float, k: Float[Array, " n"], scale: Float[Array, " n"]
    ) -> tuple[Float[Array, " n"], float]:
        """Take one step."""
        stages = self.b.size
        K = np.empty((stages + 1, y.size))
        K[0] = k
        for i in range(1, stages):
            K[i] = rate(t + self.c[i] * h, y + h * (self.a[i, :i] @ K[:i]))
        new = y + h * (self.b @ K[:stages])
        if self.error is None:
            return new, 0.0
        K[stages] = rate(t + h, new)
        return new, self._ratio(K, h, scale)

    def _ratio(self, K: Array, h: float, scale: Array) -> float:
        """Return the error over the tolerance; for 8(5,3) the combination of Hairer's dop853."""
        fifth = (self.error @ K) / scale
        if self.third is None:
            return abs(h) * float(np.sqrt(np.mean(fifth**2)))
        third = (self.third @ K) / scale
        five, three = float(fifth @ fifth), float(third @ third)
        if five == 0.0 and three == 0.0:
            return 0.0
        return abs(h) * five / np.sqrt((five + 0.01 * three) * scale.size)
