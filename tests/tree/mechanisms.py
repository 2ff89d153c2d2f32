"""Small mechanisms with every kind of joint, random in geometry and mass; hypothesis draws the seed."""

from __future__ import annotations

import numpy as np

import dalembert as da
from dalembert.model import Inertia, Placement

MOVING = ("revolute", "continuous", "prismatic", "helical", "universal", "spherical", "planar", "free")
KINDS = (*MOVING, "fixed")


def random_inertia(rng: np.random.Generator, mass: float = 1.0) -> Inertia:
    """Return the inertia of four random points."""
    points = rng.standard_normal((4, 3)) * 0.3
    weights = mass * rng.uniform(0.2, 1.0, 4)
    center = weights @ points / weights.sum()
    spread = (points - center).T @ np.diag(weights) @ (points - center)
    return Inertia(weights.sum(), center, np.trace(spread) * np.eye(3) - spread)


def random_placement(rng: np.random.Generator) -> Placement:
    """Return any placement within a metre."""
    return Placement.from_quaternion(rng.standard_normal(4), rng.uniform(-0.5, 0.5, 3))


def random_tree(
    kinds: list[str], seed: int, *, armature: bool = False, passive: bool = False, chain: bool = False
) -> da.Mechanism:
    """Return a tree with these joints; parents are drawn, or each hangs on the one before."""
    rng = np.random.default_rng(seed)
    builder = da.Builder("tree", gravity=tuple(rng.standard_normal(3) * 5))
    sizes = {"universal": 2, "spherical": 3, "planar": 3, "free": 6, "fixed": 0}
    for i, kind in enumerate(kinds):
        parent = "world" if i == 0 or kind == "free" else f"b{i - 1 if chain else rng.integers(max(0, i - 3), i)}"
        axis, other = (x / np.linalg.norm(x) for x in rng.standard_normal((2, 3)))
        n = sizes.get(kind, 1)
        options = {"armature": tuple(rng.uniform(0.1, 1.0, n))} if armature else {}
        if passive:
            stiffness = tuple(rng.uniform(1, 2, n)) if kind not in ("spherical", "free") else (1.5,) * n
            rest = tuple(rng.uniform(-0.5, 0.5, n))
            options |= {"damping": tuple(rng.uniform(0.1, 1.0, n)), "stiffness": stiffness, "rest": rest}
        builder.body(f"b{i}", inertia=random_inertia(rng))
        builder.joint(
            f"j{i}", kind, parent=parent, child=f"b{i}", placement=random_placement(rng),
            child_placement=random_placement(rng), axis=tuple(axis), axis2=tuple(other), pitch=0.2 * (kind ==
            "helical"), **(options if n else {}),
        )  # fmt: skip
        builder.frame(f"f{i}", f"b{i}", placement=random_placement(rng))
    if passive and len(kinds) > 1:
        builder.spring("across", "f0", f"f{len(kinds) - 1}", stiffness=3.0, rest=0.2, damping=0.4)
    return builder.build(order="added")


def random_state(mechanism: da.Mechanism, seed: int, samples: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return q, v, a of many samples."""
    rng = np.random.default_rng(seed)
    return mechanism.random(rng, samples), *rng.standard_normal((2, samples, mechanism.nv))
