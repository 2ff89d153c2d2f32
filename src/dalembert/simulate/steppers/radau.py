"""Radau IIA of order 5, implicit, for stiff modes: three stages, simplified Newton iteration, embedded error.

z_i = h sum_j a_ij rate(t + c_j h, y + z_j);  y1 = y + z_3.

Source: E. Hairer, G. Wanner, "Solving Ordinary Differential Equations II", 2nd ed., section IV.8.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from dalembert.simulate.steppers.contract import Rate, StepFailed

Array = np.ndarray

S6 = 6.0**0.5
A = np.array(
    [
        [(88 - 7 * S6) / 360, (296 - 169 * S6) / 1800, (-2 + 3 * S6) / 225],
        [(296 + 169 * S6) / 1800, (88 + 7 * S6) / 360, (-2 - 3 * S6) / 225],
        [(16 - S6) / 36, (16 + S6) / 36, 1.0 / 9.0],
    ]
)
C = np.array([(4 - S6) / 10, (4 + S6) / 10, 1.0])
E = np.array([-13 - 7 * S6, -13 + 7 * S6, -1.0]) / 3.0
GAMMA = (6.0 + 81.0 ** (1 / 3) - 9.0 ** (1 / 3)) / 30.0
"""Inverse of the real eigenvalue of A^-1, which the error estimate is filtered with."""

ITERATIONS = 12
"""Newton iterations before the step is refused; the Jacobian is fresh, so 4 to 6 suffice."""

TURN = 1e-3
"""Newton ends when a correction is this part of the tolerance."""


@dataclass(frozen=True)
class Radau:
    """The stepper."""

    name: str = "radau"
    order: int = 5
    adaptive: bool = True

    def step(
        self, rate: Rate, t: float, y: Float[Array, " n"], h: float, k: Float[Array, " n"], scale: Float[Array, " n"]
    ) -> tuple[Float[Array, " n"], float]:
        """Take one step."""
        n = y.size
        J = _jacobian(rate, t, y, k, scale)
        system = np.eye(3 * n) - h * np.kron(A, J)
        z = np.zeros((3, n))
        before = np.inf
        for _ in range(ITERATIONS):
            F = np.array([rate(t + C[i] * h, y + z[i]) for i in range(3)])
            change = np.linalg.solve(system, (h * (A @ F) - z).reshape(-1)).reshape(3, n)
            z += change
            size = float(np.sqrt(np.mean((change / scale) ** 2)))
            if size <= TURN or (size < 1.0 and size > 0.5 * before):
                break
            if not size < 2.0 * before:
                raise StepFailed(f"Newton's iteration diverges at t = {t:.6g}, h = {h:.3g}")
            before = size
        else:
            raise StepFailed(f"Newton's iteration does not end at t = {t:.6g}, h = {h:.3g}")
        filtered = np.linalg.solve(np.eye(n) - h * GAMMA * J, GAMMA * h * k + GAMMA * (E @ z))
        return y + z[2], float(np.sqrt(np.mean((filtered / scale) ** 2)))


def _jacobian(rate: Rate, t: float, y: Array, k: Array, scale: Array) -> Float[Array, "n n"]:
    """Return d rate / d y by one-sided differences."""
    J = np.empty((y.size, y.size))
    for j in range(y.size):
        step = np.sqrt(np.finfo(float).eps) * max(abs(y[j]), 1e-5, scale[j])
        moved = y.copy()
        moved[j] += step
        J[:, j] = (rate(t, moved) - k) / (moved[j] - y[j])
    return J
