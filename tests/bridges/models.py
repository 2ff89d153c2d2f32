"""Small mechanisms whose kernels compile in a second: quaternion, loop, redundancy."""

from __future__ import annotations

from functools import cache

import numpy as np

import dalembert as da


@cache
def linkage() -> da.Mechanism:
    """A ball joint and a hinge whose end is held by a rod."""
    b = da.Builder("linkage")
    for name in ("a", "b"):
        b.body(name, mass=1.0, inertia=(0.02, 0.03, 0.04), center=(0.1, 0, -0.5))
    b.joint("ball", "spherical", parent="world", child="a")
    b.joint("hinge", "revolute", parent="a", child="b", axis=(0, 1, 0), position=(0, 0, -1))
    return b.build().constrain(da.Distance("b", length=1.2, name="rod"))


@cache
def four_bar() -> da.Mechanism:
    """A plane linkage closed by a hinge in space: three of its five rows are redundant."""
    b = da.Builder("four-bar")
    parent, at = "world", 0.0
    for name, length in {"crank": 0.4, "coupler": 1.0, "rocker": 0.8}.items():
        b.body(name, mass=1.0, center=(length / 2, 0, 0), inertia=(0.01, 0.1, 0.1))
        b.joint(f"{name} hinge", "revolute", parent, name, axis=(0, -1, 0), position=(at, 0, 0))
        parent, at = name, length
    pin = da.Revolute("rocker", at=(1.1, 0, 0), placement=(0.8, 0, 0), axis=(0, 1, 0), name="pin")
    return b.build().constrain(pin)


def batch(mechanism: da.Mechanism, size: int | None, seed: int = 3) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return random q, v, tau."""
    rng = np.random.default_rng(seed)
    shape = (mechanism.nv,) if size is None else (size, mechanism.nv)
    return mechanism.random(rng, size), rng.normal(size=shape), rng.normal(size=shape)
