"""Examples: the crank-slider of seed 000, the belt of seed 001, the Stanford arm of seed 003."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalembert.errors import ModelError
from dalembert.friction import Bounded, Hyperbolic
from dalembert.model.lagrangian.lagrangian import Lagrangian
from dalembert.model.matrices import Matrices
from dalembert.model.mechanism.builder import Builder
from dalembert.model.mechanism.mechanism import Mechanism
from dalembert.model.mechanism.placement import Placement
from dalembert.types import Array

# ----------------------------------------------------------------------------------------------------------------------
# The two-link arm of seed 000 (eq. 31) as a crank-slider: the smallest system with a massless link.
#
# Symbols: theta1 the crank's angle, theta2 the rod's angle relative to the crank, counted clockwise (so that the row
# for equal lengths is proportional to [2, -1], as in the seed; with theta2 counted as in eq. 31 it is [2, 1]); w = v1 -
# v2 angular velocity of the rod; l1, l2 lengths, m1, m2 masses, I1, I2 = m2 l2^2 / 12 inertias about the centres.
#
#     2 T = (m1 l1^2 / 4 + I1) v1^2 + m2 (l1^2 v1^2 + l1 l2 cos(theta2) v1 w + l2^2 w^2 / 4) + I2 w^2
#     V / g = m1 l1 sin(theta1) / 2 + m2 (l1 sin(theta1) + l2 sin(theta1 - theta2) / 2)


def crank_slider(
    rod_mass: float = 0.0,
    l1: float = 1.0,
    l2: float = 1.0,
    crank_mass: float = 3.0,
    crank_inertia: float = 0.25,
    gravity: float = 9.81,
) -> Lagrangian:
    """Return crank, connecting rod, and a slider on the line y = 0; m1 l1^2 / 4 + I1 = 1 by default, as in eq. (34).

    All numbers are parameters of the system. Start it where the slider is on its line, as at q = (a, 2 a) for equal
    lengths.
    """
    import casadi as ca

    values = {
        "rod_mass": rod_mass,
        "l1": l1,
        "l2": l2,
        "crank_mass": crank_mass,
        "crank_inertia": crank_inertia,
        "gravity": gravity,
    }
    p = {name: ca.SX.sym(name) for name in values}
    m1, m2, a, b = p["crank_mass"], p["rod_mass"], p["l1"], p["l2"]
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    w, turn = v[0] - v[1], q[0] - q[1]
    crank = (m1 * a**2 / 4 + p["crank_inertia"]) * v[0] ** 2
    rod = m2 * (a**2 * v[0] ** 2 + a * b * ca.cos(q[1]) * v[0] * w + b**2 * w**2 / 4) + m2 * b**2 / 12 * w**2
    height = m1 * a * ca.sin(q[0]) / 2 + m2 * (a * ca.sin(q[0]) + b * ca.sin(turn) / 2)
    return Lagrangian(
        q,
        v,
        kinetic=(crank + rod) / 2,
        potential=p["gravity"] * height,
        constraints={"slider": a * ca.sin(q[0]) + b * ca.sin(turn)},
        parameters={name: (p[name], value) for name, value in values.items()},
        coordinates=("theta1", "theta2"),
    )


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


def stanford_arm(reading: str = "centimetres") -> Mechanism:
    """Return the arm; `reading` of the table of centres of mass is "centimetres" or "printed".

    The frame of link i is its Denavit-Hartenberg frame; joint i turns about, or slides along, the z axis before it.
    """
    if not isinstance(reading, str) or reading not in CENTRES:
        raise ModelError(f"reading {reading!r} is not one of {', '.join(map(repr, CENTRES))}")
    b = Builder("Stanford arm")
    for i, (kind, theta, d, a, alpha) in enumerate(FRAMES):
        link, parent = f"link{i + 1}", f"link{i}" if i else "world"
        b.body(link, mass=MASSES[i], center=CENTRES[reading][i], inertia=INERTIAS[i])
        before = Placement.from_rpy((0, 0, theta or 0.0), (0, 0, d or 0.0))
        after = Placement.from_rpy((alpha, 0, 0), (a, 0, 0))
        b.joint(
            f"joint{i + 1}",
            kind,
            parent=parent,
            child=link,
            axis=(0, 0, 1),
            placement=before,
            child_placement=after.inverse(),
        )
    return b.build()
