"""Rows of a constraint at position, velocity and acceleration level.

Symbols: phi(q, t) residual, zero where the constraint holds; A v + offset its rate; A a + drift the rate's derivative,
always. The rate is phi_dot everywhere for lengths and coordinates; for angles about several axes, of which no vector
has the angular velocity for its derivative, where phi = 0. A row that constrains velocities only has no phi, and
A v + offset is what must vanish.
"""

from __future__ import annotations

from dataclasses import dataclass

from dalembert.model.constraints.algebra import Matrix, stack


@dataclass(frozen=True, eq=False)
class Rows:
    """Some scalar rows.

    Attributes
    ----------
    residual : (h, 1)
        phi of the rows that have one: all (h = m) or none (None).
    jacobian : (m, nv)
        A.
    rate : (m, 1)
        A v + offset.
    drift : (m, 1)
        What remains of the acceleration level at a = 0.
    """

    residual: Matrix | None
    jacobian: Matrix
    rate: Matrix
    drift: Matrix

    def without_residual(self) -> Rows:
        """Return the same rows at velocity level."""
        return Rows(None, self.jacobian, self.rate, self.drift)

    def stabilized(self, gains: tuple[float, float]) -> Rows:
        """Return the rows with drift + kd rate + kp residual for drift (Baumgarte 1972)."""
        kp, kd = gains
        drift = self.drift + kd * self.rate
        if self.residual is not None:
            drift = drift + kp * self.residual
        return Rows(self.residual, self.jacobian, self.rate, drift)


def stacked(parts: list[Rows]) -> Rows:
    """Return rows one below the other; either all have residuals or none has."""
    residuals = [part.residual for part in parts]
    return Rows(
        None if residuals[0] is None else stack(residuals),
        stack([part.jacobian for part in parts]),
        stack([part.rate for part in parts]),
        stack([part.drift for part in parts]),
    )
