"""The woodpecker toy and hoppers on massless legs: mechanisms, and their equations written down by hand."""

from __future__ import annotations

import casadi as ca
import numpy as np

import dalembert as da
from dalembert.simulate.contact import Contact, Plane, Sphere

POLE, HOLE, HALF, HINGE, CENTRE, BEAK_X, BEAK_Z = 0.0025, 0.0031, 0.0058, 0.010, 0.015, 0.0201, 0.02
SLEEVE, BIRD, SLEEVE_INERTIA, BIRD_INERTIA, SPRING, MU = 0.0003, 0.0045, 5e-9, 7e-7, 0.0056, 0.3
"""Leine, van Campen, Glocker, "Nonlinear dynamics and modeling of various wooden toys", J. Vib. Control 9 (2003)."""


def woodpecker():
    """Return the toy, a start at rest with the sleeve's lower edge on the pole, its spring and its contacts."""
    b = da.Builder("woodpecker")
    b.body("ring")
    b.joint("height", "prismatic", parent="world", child="ring", axis=(0, 0, 1))
    b.body("sleeve", mass=SLEEVE, inertia=(SLEEVE_INERTIA,) * 3)
    b.joint("tilt", "revolute", parent="ring", child="sleeve", axis=(0, -1, 0))
    b.body("bird", mass=BIRD, center=(CENTRE, 0, 0), inertia=(BIRD_INERTIA,) * 3)
    b.joint("spring", "revolute", parent="sleeve", child="bird", axis=(0, -1, 0), position=(HINGE, 0, 0))
    pole = Plane((1, 0, 0), POLE)
    contacts = [
        Contact(Sphere("bird", 0.0, (CENTRE - BEAK_X, 0, BEAK_Z)), pole, friction=MU, restitution=0.5, name="beak"),
        Contact(Sphere("sleeve", 0.0, (HOLE, 0, -HALF)), pole, friction=MU, name="lower edge"),
        Contact(Sphere("sleeve", 0.0, (HOLE, 0, HALF)), pole, friction=MU, name="upper edge"),
    ]
    t, q, v = ca.SX.sym("t"), ca.SX.sym("q", 3), ca.SX.sym("v", 3)
    law = ca.Function("spring", [t, q, v], [ca.vertcat(0, 0, -SPRING * q[2])])
    tilt = np.arcsin(POLE / np.hypot(HOLE, HALF)) - np.arctan2(HOLE, HALF)
    return b.build(), np.array([0.0, tilt, -0.25]), law, contacts


def woodpecker_equations():
    """Return q, v -> M, force, gaps, W, W_dot v from Lagrange's equations in height, tilt and the bird's own angle."""
    q, v = ca.SX.sym("q", 3), ca.SX.sym("v", 3)
    y, tilt, bird = q[0], q[1], q[1] + q[2]
    place = ca.vertcat(HINGE * ca.cos(tilt) + CENTRE * ca.cos(bird), y + HINGE * ca.sin(tilt) + CENTRE * ca.sin(bird))
    speed = ca.jtimes(place, q, v)
    kinetic = 0.5 * (SLEEVE * v[0] ** 2 + SLEEVE_INERTIA * v[1] ** 2 + BIRD_INERTIA * (v[1] + v[2]) ** 2)
    kinetic += 0.5 * BIRD * ca.dot(speed, speed)
    potential = 9.81 * (SLEEVE * y + BIRD * place[1]) + 0.5 * SPRING * q[2] ** 2
    momentum = ca.gradient(kinetic, v)
    force = ca.gradient(kinetic - potential, q) - ca.jtimes(momentum, q, v)

    def corner(x, z, angle):
        return ca.vertcat(x * ca.cos(angle) - z * ca.sin(angle), x * ca.sin(angle) + z * ca.cos(angle))

    hinge = ca.vertcat(HINGE * ca.cos(tilt), y + HINGE * ca.sin(tilt))
    points = [hinge + corner(CENTRE - BEAK_X, BEAK_Z, bird)]
    points += [ca.vertcat(0, y) + corner(HOLE, z, tilt) for z in (-HALF, HALF)]
    both = ca.vertcat(*points)
    W = ca.jacobian(both, q)
    return ca.Function(
        "toy",
        [q, v],
        [ca.jacobian(momentum, v), force, both[::2] - POLE, W, ca.jtimes(W @ v, q, v), kinetic, potential],
    )


def hopper(mass=2.0, stiffness=800.0, length=0.5):
    """Return a body that hops on a massless leg, up and down, and the spring in its leg."""
    b = da.Builder("hopper")
    b.body("body", mass=mass, inertia=(0.1, 0.1, 0.1))
    b.joint("up", "prismatic", parent="world", child="body", axis=(0, 0, 1))
    b.body("leg")
    b.joint("length", "prismatic", parent="body", child="leg", axis=(0, 0, -1))
    t, q, v = ca.SX.sym("t"), ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    spring = ca.Function("spring", [t, q, v], [ca.vertcat(0, stiffness * (length - q[1]))])
    return b.build(), spring, [Contact(Sphere("leg"), friction=0.8, name="foot")]


def runner(stiffness=6000.0, length=1.0):
    """Return a point mass of 80 kg in the plane on a massless leg (hip and length), and the spring in it (SLIP)."""
    b = da.Builder("runner")
    b.body("cart")
    b.joint("x", "prismatic", parent="world", child="cart", axis=(1, 0, 0))
    b.body("body", mass=80.0, inertia=(1.0, 1.0, 1.0))
    b.joint("z", "prismatic", parent="cart", child="body", axis=(0, 0, 1))
    b.body("thigh")
    b.joint("hip", "revolute", parent="body", child="thigh", axis=(0, 1, 0))
    b.body("shank")
    b.joint("length", "prismatic", parent="thigh", child="shank", axis=(0, 0, -1))
    t, q, v = ca.SX.sym("t"), ca.SX.sym("q", 4), ca.SX.sym("v", 4)
    spring = ca.Function("spring", [t, q, v], [ca.vertcat(0, 0, 0, stiffness * (length - q[3]))])
    return b.build(), spring, [Contact(Sphere("shank"), friction=1.0, name="foot")]
