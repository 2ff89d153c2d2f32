"""Mechanisms with loops and contacts that everybody knows."""

from __future__ import annotations

import numpy as np

import dalembert as da


def slider_crank(r=0.5, rod=1.5):
    """Return a crank and a rod in the plane of x and z, and a slider along x that the rod's end must follow."""
    b = da.Builder("slider-crank")
    b.body("crank", mass=1.0, center=(r / 2, 0, 0), inertia=(0.001, 0.02, 0.02))
    b.body("rod", mass=0.7, center=(rod / 2, 0, 0), inertia=(0.001, 0.13, 0.13))
    b.body("slider", mass=0.4)
    b.joint("crank_hinge", "revolute", parent="world", child="crank", axis=(0, -1, 0))
    b.joint("rod_hinge", "revolute", parent="crank", child="rod", axis=(0, -1, 0), position=(r, 0, 0))
    b.joint("rail", "prismatic", parent="world", child="slider", axis=(1, 0, 0))
    return b.build().constrain(da.Revolute("rod", "slider", placement=(rod, 0, 0), axis=(0, 1, 0), name="wrist"))


def door(hinges):
    """Return a door that flies but for its hinges, points on a vertical line at the given heights."""
    b = da.Builder("door")
    b.body("door", mass=20.0, center=(0.4, 0, 1.0), inertia=(1.7, 2.8, 1.1))
    points = [da.Point("door", at=(0, 0, z), placement=(0, 0, z), name=f"hinge at {z:g} m") for z in hinges]
    return b.build(base="floating").constrain(*points)


def stewart():
    """Return a plate of 10 kg on six rods of equal length from three points of the ground."""
    b = da.Builder("Stewart platform")
    b.body("plate", mass=10.0, center=(0.05, -0.02, 0.01), inertia=(0.3, 0.3, 0.6))
    robot = b.build(base="floating")
    height, rods = 1.0, []
    for k in range(3):
        foot = 2.0 * np.array([np.cos(2 * np.pi * k / 3), np.sin(2 * np.pi * k / 3), 0])
        for side in (-1, 1):
            angle = 2 * np.pi * k / 3 + side * np.pi / 3 * 0.9
            top = 0.5 * np.array([np.cos(angle), np.sin(angle), 0])
            length = float(np.linalg.norm(top - foot + np.array([0, 0, height])))
            rods.append(da.Distance("plate", at=foot, placement=top, length=length, name=f"rod {k}{'ab'[side > 0]}"))
    return robot.constrain(*rods), np.array([0, 0, height, 0, 0, 0, 1.0])


def parallelogram(bars=2):
    """Return a plank on parallel bars of 1 m in the plane of x and z; the first carries it, the others close loops."""
    b = da.Builder("parallelogram")
    b.body("bar 0", mass=1.0, center=(0, 0, 0.5), inertia=(0.1, 0.1, 0.001))
    b.joint("foot 0", "revolute", parent="world", child="bar 0", axis=(0, 1, 0))
    b.body("plank", mass=3.0, center=(1.0, 0, 0), inertia=(0.1, 0.8, 0.8))
    b.joint("head 0", "revolute", parent="bar 0", child="plank", axis=(0, 1, 0), position=(0, 0, 1))
    loops = []
    for i in range(1, bars):
        b.body(f"bar {i}", mass=1.0, center=(0, 0, 0.5), inertia=(0.1, 0.1, 0.001))
        b.joint(f"foot {i}", "revolute", parent="world", child=f"bar {i}", axis=(0, 1, 0), position=(float(i), 0, 0))
        loops.append(da.PointOnLine(f"bar {i}", "plank", placement=(0, 0, 1), at=(float(i), 0, 0), axis=(0, 1, 0)))
    return b.build().constrain(*loops)


def pinned_twice(apart, size=1.0):
    """Return a four-bar linkage of this size in metres, its loop pinned twice: the pins are so many metres apart."""
    b = da.Builder("four-bar")
    for name, parent, place in (
        ("left", "world", (0, 0, 0)),
        ("coupler", "left", (0.45, 0, 0)),
        ("right", "world", (1.15, 0.1, 0)),
    ):
        b.body(name, mass=1.0, inertia=[0.02 * size**2] * 3, center=(0.3 * size, 0, 0))
        b.joint(name[0], "revolute", parent=parent, child=name, axis=(0, 0, 1), position=size * np.array(place))
    for k in range(2):
        b.frame(f"c{k}", "coupler", position=(0.95 * size + k * apart, 0, 0.05 * size * k))
        b.frame(f"r{k}", "right", position=(0.8 * size, 0, 0.05 * size * k))
    return b.build().constrain(da.Point("c0", "r0"), da.Point("c1", "r1"))


def massless_leg(mass=0.0):
    """Return a trunk that moves in a plane, on a leg of two links of this mass whose foot stays where it is."""
    b = da.Builder("leg")
    b.body("trunk", mass=5.0, inertia=(0.1, 0.1, 0.1))
    b.joint("rail", "planar", parent="world", child="trunk", axis=(0, 1, 0))
    for name, parent, x in (("thigh", "trunk", 0.0), ("shank", "thigh", 0.4)):
        moments = mass * np.array([1e-4, 0.4**2 / 12, 0.4**2 / 12])
        b.body(name, mass=mass, center=(0.2, 0, 0), inertia=moments)
        b.joint(f"{name}_hinge", "revolute", parent=parent, child=name, axis=(0, 1, 0), position=(x, 0, 0))
    b.frame("foot", "shank", position=(0.4, 0, 0))
    return b.build().constrain(da.PointOnLine("foot", axis=(0, 1, 0)))


def block_on_corners():
    """Return a block with points of contact at its four lower corners."""
    b = da.Builder("block")
    b.body("block", mass=2.0, inertia=(0.1, 0.1, 0.1))
    corners = {f"corner {i}{j}": (0.3 * (2 * i - 1), 0.2 * (2 * j - 1), -0.1) for i in (0, 1) for j in (0, 1)}
    points = [da.Point("block", at=place, placement=place, name=name) for name, place in corners.items()]
    return b.build(base="floating").constrain(*points)
