"""The Stanford (Scheinman) arm, seed 003's example (Fig. 9): six joints, the third one prismatic.

Parameters: R. P. Paul, "Robot Manipulators", MIT Press 1981, and Stanford AIM-177 (1972), as printed in P. Corke's
Robotics Toolbox for MATLAB, `mdl_stanford.m`; standard Denavit-Hartenberg frames. The toolbox's centres of mass of
links 2 to 6 look ten times too large (the book's table is in centimetres): both readings are offered.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dalembert.errors import ModelError
from dalembert.tableau.bodies import BASE, Body, Joint, Multibody

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
