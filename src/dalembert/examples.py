"""Examples: the crank-slider of seed 000, the belt of seed 001, the Stanford arm of seed 003."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dalembert.errors import ModelError
from dalembert.friction import Bounded, Hyperbolic
from dalembert.model.matrices import Matrices
from dalembert.tableau.mechanics.bodies import BASE, Body, Joint, Multibody

# ----------------------------------------------------------------------------------------------------------------------
# The two-link arm of seed 000 (eq. 31) as a crank-slider: the smallest system with a massless link.
#
# Symbols: theta1 the crank's angle, theta2 the rod's angle relative to the crank, counted clockwise (so that the row
# for equal lengths is proportional to [2, -1], as in the seed; with theta2 counted as in eq. 31 it is [2, 1]); l1, l2
# lengths, m1, m2 masses, I1, I2 = m2 l2^2 / 12 inertias about the centres.


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


# ----------------------------------------------------------------------------------------------------------------------
# Two blocks on a belt (seed 001, section 4, Table 1, eqs. 21a, 21b): three contacts, redundant when all stick.
#
# Symbols: q1, q2 displacements, m1, m2 masses, k stiffness of both springs, T1, T2 limits between blocks and belt, T3
# between the blocks, speed of the belt. Elastic forces -k (2 q1 - q2) on block 1 and -k (q2 - q1) on block 2.


CONTACTS = ("belt 1", "belt 2", "between")
"""Names of the contacts, in the order of T1, T2, T3."""


def two_blocks(
    masses: tuple[float, float] = (4.0, 7.0),
    limits: tuple[float, float, float] = (4.0, 7.0, 5.0),
    stiffness: float = 14.0,
    speed: float = 0.3,
    decay: float = 3.0,
) -> Matrices:
    """Return the system with the parameters of Table 1; start it at q = (0, 0), v = (speed, speed)."""
    elastic = stiffness * np.array([[2.0, -1.0], [-1.0, 1.0]])
    M = np.diag(masses)

    def energy(q: Array, v: Array, t: float) -> float:
        return 0.5 * float(v @ M @ v) + 0.5 * float(q @ elastic @ q)

    directions = ([1.0, 0.0], [0.0, 1.0], [1.0, -1.0])
    surfaces = (speed, speed, 0.0)
    return Matrices(
        {"q1": masses[0], "q2": masses[1]},
        force=lambda q, v, t: -elastic @ q,
        friction=[
            Bounded(name, w, Hyperbolic(limit, decay), surface=surface)
            for name, w, limit, surface in zip(CONTACTS, directions, limits, surfaces, strict=True)
        ],
        energy=energy,
    )


# ----------------------------------------------------------------------------------------------------------------------
# The Stanford (Scheinman) arm, seed 003's example (Fig. 9): six joints, the third one prismatic.
#
# Parameters: R. P. Paul, "Robot Manipulators", MIT Press 1981, and Stanford AIM-177 (1972), as printed in P. Corke's
# Robotics Toolbox for MATLAB, `mdl_stanford.m`; standard Denavit-Hartenberg frames. The toolbox's centres of mass of
# links 2 to 6 look ten times too large (the book's table is in centimetres): both readings are offered.


FRAMES = (  # kind, theta, d, a, alpha; the joint's variable stands where None is
    ("revolute", None, 0.412, 0.0, -np.pi / 2),
    ("revolute", None, 0.154, 0.0, np.pi / 2),
    ("prismatic", -np.pi / 2, None, 0.0, 0.0),
    ("revolute", None, 0.0, 0.0, -np.pi / 2),
    ("revolute", None, 0.0, 0.0, np.pi / 2),
    ("revolute", None, 0.263, 0.0, 0.0),
)

MASSES = (9.29, 5.01, 4.25, 1.08, 0.630, 0.51)

INERTIAS = (
    (0.276, 0.255, 0.071),
    (0.108, 0.018, 0.100),
    (2.51, 2.51, 0.006),
    (0.002, 0.001, 0.001),
    (0.003, 0.003, 0.0004),
    (0.013, 0.013, 0.0003),
)
"""Principal moments about the centres of mass, along the link frames."""

CENTRES: dict[str, Any] = {
    "printed": (
        (0, 0.0175, -0.1105),
        (0, -1.054, 0),
        (0, 0, -6.447),
        (0, 0.092, -0.054),
        (0, 0, 0.566),
        (0, 0, 1.554),
    ),
    "centimetres": (
        (0, 0.0175, -0.1105),
        (0, -0.1054, 0),
        (0, 0, -0.6447),
        (0, 0.0092, -0.0054),
        (0, 0, 0.0566),
        (0, 0, 0.1554),
    ),
}
"""Centres of mass in the link frames, metres: as printed, and with links 2 to 6 read as centimetres times ten."""


def stanford_arm(reading: str = "centimetres") -> Multibody:
    """Return the arm; `reading` of the table of centres of mass is "centimetres" or "printed"."""
    if not isinstance(reading, str) or reading not in CENTRES:
        raise ModelError(f"reading {reading!r} is not one of {', '.join(map(repr, CENTRES))}")
    bodies, joints = [], []
    placed_R, placed_r = np.eye(3), np.zeros(3)
    for i, (kind, theta, d, a, alpha) in enumerate(FRAMES):
        R = placed_R if theta is None else placed_R @ _about_z(theta)
        r = placed_r if d is None else placed_r + placed_R @ np.array([0.0, 0.0, d])
        joints.append(Joint(f"joint{i + 1}", kind, i - 1 if i else BASE, i, np.array([0.0, 0.0, 1.0]), R, r))
        placed_R, placed_r = _about_x(alpha), np.array([a, 0.0, 0.0])
        centre = placed_r + placed_R @ np.array(CENTRES[reading][i], dtype=float)
        inertia = placed_R @ np.diag(INERTIAS[i]) @ placed_R.T
        bodies.append(Body(f"link{i + 1}", MASSES[i], centre, inertia))
    return Multibody(bodies, joints)


def _about_z(angle: float) -> np.ndarray:
    c, s = _exact(angle)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


def _about_x(angle: float) -> np.ndarray:
    c, s = _exact(angle)
    return np.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])


def _exact(angle: float) -> tuple[float, float]:
    """Return cosine and sine, exact for multiples of a right angle, so that zeros are structural."""
    c, s = (float(round(x)) if abs(x - round(x)) < 1e-15 else float(x) for x in (np.cos(angle), np.sin(angle)))
    return c, s
