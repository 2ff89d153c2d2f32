"""Mechanisms that hit, bounce, rock and slide, with published or exact answers."""

from __future__ import annotations

import casadi as ca
import numpy as np

import dalembert as da
from dalembert.simulate.contact import Box, Contact, Plane, Sphere


def vertical_ball():
    """Return a ball of 1 kg that moves up and down only."""
    b = da.Builder("ball")
    b.body("ball", mass=1.0, inertia=(0.004, 0.004, 0.004))
    b.joint("up", "prismatic", parent="world", child="ball", axis=(0, 0, 1))
    return b.build()


def plate(name, mass, inertia, gravity=9.81):
    """Return a body in the plane of x and z on three joints: x, z, and the angle about -y (from x to z)."""
    b = da.Builder(name, gravity=(0, 0, -gravity))
    b.body("cart")
    b.joint("x", "prismatic", parent="world", child="cart", axis=(1, 0, 0))
    b.body("lift")
    b.joint("z", "prismatic", parent="cart", child="lift", axis=(0, 0, 1))
    b.body(name, mass=mass, inertia=(inertia, inertia, inertia))
    b.joint("angle", "revolute", parent="lift", child=name, axis=(0, -1, 0))
    return b.build()


def rocking_block():
    """Return Leine's block (a = 12.5 mm, b = 50 mm), its start at 8 degrees on one corner, and its contacts."""
    a, b, phi = 0.0125, 0.05, np.deg2rad(8.0)
    m = plate("block", 1.0, (a * a + b * b) / 3)
    q = np.array([0.0, a * np.sin(phi) + b * np.cos(phi), phi])
    corners = {"left": (-a, 0, -b), "right": (a, 0, -b)}
    return m, q, [Contact(Sphere("block", 0.0, at), friction=0.3, name=name) for name, at in corners.items()]


def impacting_stick():
    """Return Siconos' stick (1 m, 1 kg), its start, and its contact with e = 1, mu = 0.01."""
    m = plate("stick", 1.0, 1 / 12, gravity=10.0)
    theta = np.pi / 4
    q = np.array([0.5 * np.sin(theta), 0.5 * np.cos(theta) + 0.01, theta])
    v = np.array([-0.5, 0.1, 0.1])
    return m, q, v, [Contact(Sphere("stick", 0.0, (0, 0, -0.5)), friction=0.01, restitution=1.0, name="tip")]


def tennis_ball():
    """Return Leine's ball between two plates 1 m apart, e_N = 1, e_T = 0, mu = 1."""
    m = plate("ball", 1.0, 0.004, gravity=10.0)
    ball = Sphere("ball", 0.1)
    contacts = [
        Contact(ball, Plane(), friction=1.0, restitution=1.0, name="floor"),
        Contact(ball, Plane((0, 0, -1), -1.0), friction=1.0, restitution=1.0, name="ceiling"),
    ]
    return m, np.array([0.0, 0.9, 0.0]), np.array([1.0, -1.0, 0.0]), contacts


def cradle(count=5):
    """Return equal balls on a line that touch, and contacts between neighbours with e = 1."""
    b = da.Builder("cradle", gravity=(0, 0, 0))
    for i in range(count):
        b.body(f"ball {i}", mass=0.1, inertia=(1e-4, 1e-4, 1e-4))
        b.joint(f"x {i}", "prismatic", parent="world", child=f"ball {i}", axis=(1, 0, 0))
    contacts = [
        Contact(Sphere(f"ball {i + 1}", 0.02), Sphere(f"ball {i}", 0.02), restitution=1.0, name=f"{i}-{i + 1}")
        for i in range(count - 1)
    ]
    return b.build(), 0.04 * np.arange(count), contacts


def sliding_rod(mu):
    """Return Painleve's rod: thin, 1 m and 1 kg, sliding on its tip with 45 degrees of lean, and its contact."""
    m = plate("rod", 1.0, 1 / 12)
    angle = np.deg2rad(45.0)
    q = np.array([0.0, 0.5 * np.cos(angle), angle])
    return m, q, [Contact(Sphere("rod", 0.0, (0, 0, -0.5)), friction=mu, name="tip")]


def brick():
    """Return a brick that flies, and its contact with the ground."""
    b = da.Builder("brick")
    b.body("brick", mass=2.0, inertia=(0.02, 0.03, 0.04))
    return b.build(base="floating"), Contact(Box("brick", (0.2, 0.1, 0.06)), friction=0.6, name="brick")


def cam_follower():
    """Return a cam of three spheres that turns and a follower with a roller, their start, a spring and the contacts."""
    b = da.Builder("cam")
    b.body("cam", mass=4.0, inertia=(0.05, 0.05, 0.05))
    b.joint("turn", "revolute", parent="world", child="cam", axis=(0, 1, 0))
    b.body("follower", mass=0.2, inertia=(1e-4, 1e-4, 1e-4))
    b.joint("lift", "prismatic", parent="world", child="follower", axis=(0, 0, 1))
    roller = Sphere("follower", 0.02)
    lobes = {"base": (0.06, (0.0, 0.0, 0.0)), "nose": (0.03, (0.05, 0.0, 0.0)), "heel": (0.04, (-0.03, 0.0, 0.0))}
    contacts = [
        Contact(roller, Sphere("cam", radius, at), friction=0.1, restitution=0.3, name=name)
        for name, (radius, at) in lobes.items()
    ]
    t, q, v = ca.SX.sym("t"), ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    spring = ca.Function("spring", [t, q, v], [ca.vertcat(0, -40.0 * (q[1] - 0.05))])
    return b.build(), np.array([0.0, 0.085]), np.array([8.0, 0.0]), spring, contacts
