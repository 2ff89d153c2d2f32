"""Large mechanisms of four shapes: chains, trees, ladders and nets of links; any number of bodies."""

from __future__ import annotations

import numpy as np

import dalembert as da

LINK = {"mass": 1.0, "center": (0.0, 0.0, -0.5), "inertia": (0.1, 0.12, 0.05)}
RUNG = {"mass": 0.5, "center": (0.5, 0.0, 0.0), "inertia": (0.01, 0.05, 0.05)}
AXES = ((1, 0, 0), (0, 1, 0), (0, 0, 1))


def chain(n: int, held: bool = True) -> da.Mechanism:
    """Links on hinges about x, y, z in turn; with `held` the last is welded to where it is: m = 6."""
    b = da.Builder(f"chain of {n}")
    for i in range(n):
        b.body(f"b{i}", **LINK)
        parent, place = (f"b{i - 1}", (0, 0, -1)) if i else ("world", (0, 0, 0))
        b.joint(f"j{i}", "revolute", parent=parent, child=f"b{i}", axis=AXES[i % 3], position=place)
    built = b.build()
    return built.constrain(da.Weld(f"b{n - 1}")) if held else built


def tree(n: int, branching: int = 2) -> da.Mechanism:
    """Return a tree in which every link carries `branching` others."""
    b = da.Builder(f"tree of {n}")
    for i in range(n):
        b.body(f"b{i}", **LINK)
        k = (i - 1) // branching
        parent, place = (f"b{k}", (0.2 * ((i - 1) % branching), 0, -1)) if i else ("world", (0, 0, 0))
        b.joint(f"j{i}", "revolute", parent=parent, child=f"b{i}", axis=AXES[i % 3], position=place)
    return b.build()


def ladder(n: int) -> da.Mechanism:
    """Return a rail, rungs on it, and links between the rungs' far ends that close loops; pins about y."""
    b = da.Builder(f"ladder of {n}")
    steps = n // 3
    for i in range(steps):
        b.body(f"left{i}", **LINK)
        parent, place = (f"left{i - 1}", (0, 0, -1)) if i else ("world", (0, 0, 0))
        b.joint(f"left{i}j", "revolute", parent=parent, child=f"left{i}", axis=(0, 1, 0), position=place)
        b.body(f"rung{i}", **RUNG)
        b.joint(f"rung{i}j", "revolute", parent=f"left{i}", child=f"rung{i}", axis=(0, 1, 0), position=(0, 0, -1))
        b.body(f"right{i}", **LINK)
        b.joint(f"right{i}j", "revolute", parent=f"rung{i}", child=f"right{i}", axis=(0, 1, 0), position=(1, 0, 0))
    pins = [
        da.Point(f"right{i}", f"rung{i + 1}", placement=(0, 0, -1), at=(1, 0, 0), name=f"pin{i}")
        for i in range(steps - 1)
    ]
    return b.build().constrain(*pins)


def rails(n: int) -> da.Mechanism:
    """Return a ladder with both rails hung from the ground, rungs closing loops: all of them meet at the ground."""
    b = da.Builder(f"rails of {n}")
    steps = n // 3
    for i in range(steps):
        for side, x in (("left", 0.0), ("right", 1.0)):
            b.body(f"{side}{i}", **LINK)
            parent, place = (f"{side}{i - 1}", (0, 0, -1)) if i else ("world", (x, 0, 0))
            b.joint(f"{side}{i}j", "revolute", parent=parent, child=f"{side}{i}", axis=(0, 1, 0), position=place)
        b.body(f"rung{i}", **RUNG)
        b.joint(f"rung{i}j", "revolute", parent=f"left{i}", child=f"rung{i}", axis=(0, 1, 0), position=(0, 0, -1))
    pins = [da.Point(f"rung{i}", f"right{i}", placement=(1, 0, 0), at=(0, 0, -1), name=f"pin{i}") for i in range(steps)]
    return b.build().constrain(*pins)


def net(side: int) -> da.Mechanism:
    """Return a net of side x side meshes hung from one edge: ropes of links on ball joints, tied by cross links."""
    b = da.Builder(f"net of {side} x {side}")
    for i in range(side):
        for k in range(side):
            b.body(f"rope{i}.{k}", **LINK)
            parent, place = (f"rope{i}.{k - 1}", (0, 0, -1)) if k else ("world", (float(i), 0, 0))
            b.joint(f"r{i}.{k}", "spherical", parent=parent, child=f"rope{i}.{k}", position=place)
            if i + 1 < side:
                b.body(f"tie{i}.{k}", **RUNG)
                b.joint(f"t{i}.{k}", "universal", parent=f"rope{i}.{k}", child=f"tie{i}.{k}", axis=(0, 1, 0),
                        axis2=(0, 0, 1), position=(0, 0, -1))  # fmt: skip
    built = b.build()
    ties = [
        da.Point(f"tie{i}.{k}", f"rope{i + 1}.{k}", placement=(1, 0, 0), at=(0, 0, -1), name=f"knot{i}.{k}")
        for i in range(side - 1)
        for k in range(side)
    ]
    return built.constrain(*ties)


def state(mechanism: da.Mechanism, spread: float = 1.0, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return q near the neutral configuration, v and tau of moderate size."""
    rng = np.random.default_rng(seed)
    q = mechanism.integrate(mechanism.neutral(), spread * rng.uniform(-1, 1, mechanism.nv))
    return q, 0.1 * rng.normal(size=mechanism.nv), rng.normal(size=mechanism.nv)
