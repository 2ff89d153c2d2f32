"""Mechanisms for tests: one joint of each kind beside Pinocchio's, and random trees."""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin

import dalembert as da
from dalembert.model.joints import KINDS
from dalembert.model.mechanism.parts import Joint

OBLIQUE = (2 / 7, -3 / 7, 6 / 7)
SECOND = (0.0, 0.6, 0.8)
PITCH = 0.3

CASES = [
    *[(kind, axis) for kind in ("revolute", "prismatic", "helical") for axis in ("x", "y", "z", OBLIQUE)],
    *[("continuous", axis) for axis in ("x", "y", "z")],
    ("universal", OBLIQUE),
    ("spherical", "x"),
    ("planar", "z"),
    ("free", "x"),
]
"""Kinds with axes for which Pinocchio has the same joint; `fixed` has no motion to compare."""

UNIT = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}


def make_joint(kind: str, axis: Any) -> Joint:
    return Joint("j", kind, "world", "b", axis=UNIT.get(axis, axis), axis2=SECOND, pitch=PITCH)


def pinocchio_joint(kind: str, axis: Any) -> Any:
    """Return Pinocchio's joint model for a case."""
    vector = np.array(UNIT.get(axis, axis))
    if kind == "helical":
        return pin.JointModelHelicalUnaligned(vector, PITCH)
    if kind == "universal":
        return pin.JointModelUniversal(vector, np.array(SECOND))
    letter = axis.upper() if isinstance(axis, str) else None
    aligned = {"revolute": "R", "prismatic": "P", "continuous": "RUB"}
    unaligned = {
        "revolute": "JointModelRevoluteUnaligned",
        "prismatic": "JointModelPrismaticUnaligned",
    }
    if kind in aligned:
        return getattr(pin, f"JointModel{aligned[kind]}{letter}")() if letter else getattr(pin, unaligned[kind])(vector)
    return {"spherical": pin.JointModelSpherical, "planar": pin.JointModelPlanar, "free": pin.JointModelFreeFlyer}[
        kind
    ]()


def row_of_joints() -> tuple[da.Mechanism, pin.Model]:
    """Return a chain with every case as a joint, and Pinocchio's model of it."""
    builder, model = da.Builder("row"), pin.Model()
    parent, last = "world", 0
    for i, (kind, axis) in enumerate(CASES):
        builder.body(f"b{i}", mass=1.0, inertia=(1, 1, 1))
        builder.joint(f"j{i}", kind, parent=parent, child=f"b{i}", axis=UNIT.get(axis, axis), axis2=SECOND, pitch=PITCH)
        last = model.addJoint(last, pinocchio_joint(kind, axis), pin.SE3.Identity(), f"j{i}")
        parent = f"b{i}"
    return builder.build(), model


def random_tree(seed: int, bodies: int = 6, kinds: Any = None) -> da.Mechanism:
    """Return a tree with joints of all kinds, oblique placements and frames "f0", "f1", ... on its bodies."""
    rng = np.random.default_rng(seed)
    builder = da.Builder(f"tree {seed}")
    names = list(kinds or KINDS)
    for i in range(bodies):
        parent = "world" if i == 0 else f"b{rng.integers(max(0, i - 3), i)}"
        moments = rng.uniform(0.5, 1.0, 3)
        builder.body(f"b{i}", mass=rng.uniform(0.5, 2), center=rng.uniform(-0.3, 0.3, 3), inertia=moments)
        builder.joint(
            f"j{i}",
            str(rng.choice(names)),
            parent=parent,
            child=f"b{i}",
            axis=rng.standard_normal(3) if rng.random() < 0.5 else np.eye(3)[rng.integers(3)],
            axis2=rng.standard_normal(3),
            pitch=0.2,
            position=rng.uniform(-1, 1, 3),
            rotation=rng.standard_normal(4),
        )
        builder.frame(f"f{i}", f"b{i}", position=rng.uniform(-1, 1, 3), rotation=rng.standard_normal(4))
    return builder.build()
