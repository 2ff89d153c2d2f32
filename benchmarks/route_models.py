"""Mechanisms whose size is one number, for counting operations of routes."""

from __future__ import annotations

import numpy as np

import dalembert as da


def limbs(name: str, depths: list[int], base: bool = False, seed: int = 0) -> da.Mechanism:
    """Return limbs of hinges on the ground, or on a flying body; frames "end 0", "end 1", ... on their last links."""
    rng, b = np.random.default_rng(seed), da.Builder(name)
    if base:
        b.body("base", mass=5.0, center=rng.uniform(-0.1, 0.1, 3), inertia=(1, 1, 1))
        b.joint("base", "free", parent="world", child="base")
    for k, depth in enumerate(depths):
        for i in range(depth):
            parent = f"b{k},{i - 1}" if i else "base" if base else "world"
            _hinge(b, rng, f"{k},{i}", parent)
        b.frame(f"end {k}", f"b{k},{depth - 1}", position=rng.uniform(-0.5, 0.5, 3))
    return b.build()


def _hinge(b: da.Builder, rng: np.random.Generator, name: str, parent: str) -> None:
    b.body(f"b{name}", mass=1.0, center=rng.uniform(-0.3, 0.3, 3), inertia=rng.uniform(0.5, 1, 3))
    place = {"position": rng.uniform(-0.5, 0.5, 3), "rotation": rng.standard_normal(4)}
    b.joint(f"j{name}", "revolute", parent=parent, child=f"b{name}", axis=(0, 0, 1), **place)


def chain(n: int) -> da.Mechanism:
    """Return a chain welded at its end."""
    return limbs("chain", [n]).constrain(da.Weld("end 0"))


def bundle(m: int) -> da.Mechanism:
    """Return a chain held at many points of its last link."""
    rng = np.random.default_rng(1)
    made = [da.Point("end 0", placement=rng.uniform(-0.5, 0.5, 3), name=f"p{i}") for i in range(m // 3)]
    return limbs("bundle", [16]).constrain(*made)


def points(m: int) -> da.Mechanism:
    """Return a chain held by points along it."""
    tree = limbs("points", [96])
    places = np.linspace(0, 95, m // 3 + 1).astype(int)[1:]
    return tree.constrain(*[da.Point(f"b0,{i}", placement=(0.1, 0.2, 0.3)) for i in places])


def star(d: int) -> da.Mechanism:
    """Return two limbs of d hinges, the first held by two welds."""
    held = (da.Weld("end 0"), da.Weld("end 0", placement=(0.3, 0.2, 0.1), name="again"))
    return limbs("star", [d, d]).constrain(*held)


def legs(count: int) -> da.Mechanism:
    """Return a body on legs with knees that stay bent."""
    b = da.Builder("legs")
    b.body("trunk", mass=8.0, inertia=(0.3, 0.4, 0.2))
    b.joint("base", "free", parent="world", child="trunk")
    for k in range(count):
        for name in ("hip", "thigh", "shank"):
            b.body(f"{name} {k}", mass=1.0, center=(0.01, 0.02, -0.2), inertia=(0.02, 0.02, 0.01))
        place = {"position": (0.2 * k, 0.1, 0), "rpy": (0, 0, 0.7 * k)}
        b.joint(f"abduct {k}", "revolute", parent="trunk", child=f"hip {k}", axis=(1, 0, 0), **place)
        b.joint(f"swing {k}", "revolute", parent=f"hip {k}", child=f"thigh {k}", axis=(0, 1, 0), position=(0, 0.1, 0))
        ends = {"parent": f"thigh {k}", "child": f"shank {k}", "position": (0, 0, -0.4), "limits": (0.8, 1.8)}
        b.joint(f"knee {k}", "revolute", axis=(0, 1, 0), **ends)
        b.frame(f"end {k}", f"shank {k}", position=(0, 0, -0.4))
    return b.build().constrain(*[da.Point(f"end {k}") for k in range(count)])


def ladder(count: int) -> da.Mechanism:
    """Return a flying chain of hinges whose links carry two limbs each that meet in a point."""
    rng, b = np.random.default_rng(2), da.Builder("ladder")
    b.body("b0", mass=5.0, inertia=(1, 1, 1))
    b.joint("base", "free", parent="world", child="b0")
    loops = []
    for k in range(count):
        if k:
            _hinge(b, rng, f"{k}", f"b{k - 1}")
        limb = np.random.default_rng(5)  # every loop alike
        for side in "lr":
            for i in range(3):
                _hinge(b, limb, f"{k}{side}{i}", f"b{k}{side}{i - 1}" if i else f"b{k}")
            b.frame(f"{k}{side}", f"b{k}{side}2", position=(0.3, 0.1, 0.2))
        loops.append(da.Point(f"{k}l", f"{k}r"))
    return b.build().constrain(*loops)
