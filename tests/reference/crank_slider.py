"""The crank-slider of seed 000 with its matrices written down by hand, eq. (31), theta2 clockwise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

Array = np.ndarray


@dataclass(frozen=True)
class CrankSlider:
    """Crank, connecting rod, and a slider on the line y = 0; m1 l1^2 / 4 + I1 = 1 by default, as in eq. (34)."""

    rod_mass: float = 0.0
    l1: float = 1.0
    l2: float = 1.0
    crank_mass: float = 3.0
    crank_inertia: float = 0.25
    gravity: float = 9.81

    coordinates = ("theta1", "theta2")
    names = ("slider",)

    def mass_matrix(self, q: Array, t: float = 0.0) -> Array:
        """Return M of eq. (31), theta2 clockwise."""
        m2, l1, l2 = self.rod_mass, self.l1, self.l2
        own = m2 * l2**2 / 4 + m2 * l2**2 / 12
        coupling = m2 * l1 * l2 / 2 * np.cos(q[1])
        first = self.crank_mass * l1**2 / 4 + self.crank_inertia + m2 * l1**2 + own + 2 * coupling
        return np.array([[first, -own - coupling], [-own - coupling, own]])

    def bias(self, q: Array, v: Array, t: float = 0.0) -> Array:
        """Return Coriolis and gravity terms."""
        m2, l1, l2, g = self.rod_mass, self.l1, self.l2, self.gravity
        h = m2 * l1 * l2 / 2 * np.sin(q[1])
        rod = m2 * g * l2 / 2 * np.cos(q[0] - q[1])
        crank = (self.crank_mass / 2 + m2) * g * l1 * np.cos(q[0])
        return np.array([h * v[1] * (v[1] - 2 * v[0]) + crank + rod, h * v[0] ** 2 - rod])

    def jacobian(self, q: Array, t: float = 0.0) -> Array:
        """Return the row of l1 sin(theta1) + l2 sin(theta1 - theta2) = 0."""
        rod = self.l2 * np.cos(q[0] - q[1])
        return np.array([[self.l1 * np.cos(q[0]) + rod, -rod]])

    def drift(self, q: Array, v: Array, t: float = 0.0) -> Array:
        """Return A_dot v."""
        turn = v[0] - v[1]
        return np.array([-self.l1 * np.sin(q[0]) * v[0] ** 2 - self.l2 * np.sin(q[0] - q[1]) * turn**2])
