"""Steppers of modes with dry friction: explicit Runge-Kutta from a table, Radau IIA for stiff modes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from dalembert.simulate.limits import LEAST_SIZE, STAGE_ITERATIONS, STAGES_SOLVED
from dalembert.simulate.runge_kutta import DOP853, RK45
from dalembert.types import Array

if TYPE_CHECKING:
    from jaxtyping import Float

# ----------------------------------------------------------------------------------------------------------------------
# The contract of a stepper: one step of y' = rate(t, y), with its error relative to a tolerance.


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


# ----------------------------------------------------------------------------------------------------------------------
# Explicit Runge-Kutta steps from a table: k_i = rate(t + c_i h, y + h sum_j a_ij k_j), y1 = y + h sum_i b_i k_i.
#
# Source: E. Hairer, S. P. Norsett, G. Wanner, "Solving Ordinary Differential Equations I", 2nd ed., sections II.1,
# II.5, II.10.


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


# ----------------------------------------------------------------------------------------------------------------------
# The explicit tables: the classical method of order 4, Dormand and Prince 5(4), and 8(5,3).


RK4 = ExplicitRungeKutta(
    "rk4",
    4,
    np.array([[0.0, 0.0, 0.0, 0.0], [0.5, 0.0, 0.0, 0.0], [0.0, 0.5, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]]),
    np.array([1.0, 2.0, 2.0, 1.0]) / 6.0,
    np.array([0.0, 0.5, 0.5, 1.0]),
)

DOPRI5 = ExplicitRungeKutta("dopri5", 5, np.asarray(RK45.A), np.asarray(RK45.B), np.asarray(RK45.C), np.asarray(RK45.E))

DOP853_TABLE = ExplicitRungeKutta(
    "dop853",
    8,
    np.asarray(DOP853.A),
    np.asarray(DOP853.B),
    np.asarray(DOP853.C),
    np.asarray(DOP853.E5),
    np.asarray(DOP853.E3),
)
"""Coefficients as SciPy carries them (Hairer's dop853)."""


# ----------------------------------------------------------------------------------------------------------------------
# Radau IIA of order 5, implicit, for stiff modes: three stages, simplified Newton iteration, embedded error.
#
# z_i = h sum_j a_ij rate(t + c_j h, y + z_j);  y1 = y + z_3.
#
# Source: E. Hairer, G. Wanner, "Solving Ordinary Differential Equations II", 2nd ed., section IV.8.


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


@dataclass(frozen=True)
class DryRadau:
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
        for _ in range(STAGE_ITERATIONS):
            F = np.array([rate(t + C[i] * h, y + z[i]) for i in range(3)])
            change = np.linalg.solve(system, (h * (A @ F) - z).reshape(-1)).reshape(3, n)
            z += change
            size = float(np.sqrt(np.mean((change / scale) ** 2)))
            if size <= STAGES_SOLVED or (size < 1.0 and size > 0.5 * before):
                break
            if not size < 2.0 * before:
                raise StepFailed(f"Newton's iteration diverges at t = {t:.6g}, h = {h:.3g}")
            before = size
        else:
            raise StepFailed(f"Newton's iteration does not end at t = {t:.6g}, h = {h:.3g}")
        filtered = np.linalg.solve(np.eye(n) - h * GAMMA * J, GAMMA * h * k + GAMMA * (E @ z))
        return y + z[2], float(np.sqrt(np.mean((filtered / scale) ** 2)))


STEPPERS: dict[str, Stepper] = {one.name: one for one in (DOP853_TABLE, DOPRI5, RK4, DryRadau())}
"""Steppers by name."""


def _jacobian(rate: Rate, t: float, y: Array, k: Array, scale: Array) -> Float[Array, "n n"]:
    """Return d rate / d y by one-sided differences."""
    J = np.empty((y.size, y.size))
    for j in range(y.size):
        step = np.sqrt(np.finfo(float).eps) * max(abs(y[j]), LEAST_SIZE, scale[j])
        moved = y.copy()
        moved[j] += step
        J[:, j] = (rate(t, moved) - k) / (moved[j] - y[j])
    return J
