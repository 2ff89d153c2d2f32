"""One physical system, written in three ways: a slider on a spring over a foot that strikes, rubs, or does both.

Symbols: x height of slider and foot, held together by a rod; M mass, k spring on the foot, g gravity; Fc dry friction
in the foot's guide; e restitution of the foot on the floor x = 0; F = ramp t applied to the foot.

    M x'' = -M g - k x + F(t) - Fc sign(x')

| answers | mass of slider, foot | rows |
|---|---|---|
| unique | 1.2, 0.8 | rod |
| redundant | 1.2, 0.8 | rod, the same again ten times as large |
| massless | 2, 0 | rod |
| redundant and massless | 2, 0 | both |
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

import dalembert as da
from dalembert.friction import Dry, JointFriction, Unilateral
from dalembert.model import Matrices

M, SPRING, GRAVITY = 2.0, 50.0, 9.81
MASSES = {"unique": (1.2, 0.8), "redundant": (1.2, 0.8), "massless": (M, 0.0), "redundant and massless": (M, 0.0)}
ANSWERS = tuple(MASSES)


@dataclass(frozen=True)
class Motion:
    """What happens: a start, a duration, friction, restitution (None: no floor) and the rate of the applied force."""

    x: float
    v: float
    duration: float
    friction: float = 0.0
    restitution: float | None = None
    ramp: float = 0.0


MOTIONS = {
    "smooth": Motion(0.2, 0.5, 1.0),
    "impact": Motion(0.2, 0.5, 0.72, restitution=0.6),
    "stick-slip": Motion(0.2, 2.0, 0.8, friction=40.0, ramp=-40.0),
    "both": Motion(0.4, -4.0, 0.48, friction=60.0, restitution=0.6, ramp=-100.0),
}


def rows(answers: str) -> list[tuple[str, float]]:
    """Return names and factors of the rows that hold slider and foot together."""
    return [("rod", 1.0), ("again", 10.0)][: 2 if "redundant" in answers else 1]


def mechanism(answers: str, motion: Motion) -> tuple[Any, dict[str, Any]]:
    """Return two sliders on vertical guides, coupled; a sphere without radius touches the floor."""
    b = da.Builder("slider")
    slider, foot = MASSES[answers]
    inertia = (0.1, 0.1, 0.1)
    b.body("slider", mass=slider, inertia=inertia)
    b.body("foot", mass=foot, inertia=inertia if foot else (0.0, 0.0, 0.0))
    b.joint("slider", "prismatic", parent="world", child="slider", axis=(0, 0, 1))
    b.joint(
        "foot", "prismatic", parent="world", child="foot", axis=(0, 0, 1), stiffness=SPRING, friction=motion.friction
    )
    for name, factor in rows(answers):
        b.couple(name, {"slider": factor, "foot": -factor})
    options = {} if motion.restitution is None else {
        "contacts": [da.Contact(da.Sphere("foot"), restitution=motion.restitution, name="floor")]
    }  # fmt: skip
    return b.build(), options


def lagrangian(answers: str, motion: Motion) -> tuple[Any, dict[str, Any]]:
    """Return T, V and the same contacts as expressions."""
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    masses = ca.DM(MASSES[answers])
    rubs = [JointFriction("guide", "foot", Dry(motion.friction))] if motion.friction else None
    floor = None if motion.restitution is None else [Unilateral("floor", gap=q[1], restitution=motion.restitution)]
    system = da.Lagrangian(
        q, v, kinetic=ca.dot(masses, v**2) / 2, potential=GRAVITY * ca.dot(masses, q) + SPRING * q[1] ** 2 / 2,
        constraints={name: factor * (q[0] - q[1]) for name, factor in rows(answers)}, coordinates=("slider", "foot"),
        friction=rubs, unilateral=floor,
    )  # fmt: skip
    return system, {}


def matrices(answers: str, motion: Motion) -> tuple[Any, dict[str, Any]]:
    """Return the matrices of the same system, forces as a Python function."""
    masses = np.array(MASSES[answers])
    rubs = [JointFriction("guide", "foot", Dry(motion.friction))] if motion.friction else None
    more = {} if motion.restitution is None else {
        "unilateral": [Unilateral("floor", gap=([0.0, 1.0], 0.0), restitution=motion.restitution)]
    }  # fmt: skip
    system = Matrices(
        {"slider": masses[0], "foot": masses[1]}, {name: [factor, -factor] for name, factor in rows(answers)},
        force=lambda q, v, t: -GRAVITY * masses - np.array([0.0, SPRING * q[1]]), friction=rubs, **more,
        energy=lambda q, v, t: float(masses @ v**2 / 2 + GRAVITY * masses @ q + SPRING * q[1] ** 2 / 2),
    )  # fmt: skip
    return system, {}


WRITTEN = {"Mechanism": mechanism, "Lagrangian": lagrangian, "Matrices": matrices}
"""Three ways to write the system."""
