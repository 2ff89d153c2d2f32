"""Random mechanisms with contacts, loops, couplings and redundant rows, for tests of routes."""

from __future__ import annotations

from typing import Any

import numpy as np

import dalembert as da
from dalembert.model import KINDS, Placement
from tests.tree.closed import Traced

MOVING = [kind for kind in KINDS if kind != "fixed"]
SINGLE = ["revolute", "prismatic", "helical"]


def tree(rng: np.random.Generator, depth: int, branches: int, kinds: list[str]) -> da.Mechanism:
    """Return limbs of `depth` joints on a trunk of one joint or on the ground; frames "f0", "f1", ... on all bodies."""
    b = da.Builder("tree")
    trunk = rng.random() < 0.5
    parents = ["world"] if trunk else []
    for _ in range(branches):
        for k in range(depth):
            parents.append(f"b{len(parents) - 1}" if k else "b0" if trunk else "world")
    for i, parent in enumerate(parents):
        kind = "free" if trunk and i == 0 and rng.random() < 0.5 else str(rng.choice(kinds))
        b.body(f"b{i}", mass=rng.uniform(0.5, 2), center=rng.uniform(-0.3, 0.3, 3), inertia=rng.uniform(0.5, 1, 3))
        place = {"position": rng.uniform(-1, 1, 3), "rotation": rng.standard_normal(4)}
        armature = 0.3 * rng.random() if rng.random() < 0.3 else 0.0
        axes = {"axis": rng.standard_normal(3), "axis2": rng.standard_normal(3), "pitch": 0.2}
        b.joint(f"j{i}", kind, parent=parent, child=f"b{i}", armature=armature, **axes, **place)
        b.frame(f"f{i}", f"b{i}", position=rng.uniform(-1, 1, 3), rotation=rng.standard_normal(4))
    return b.build()


def closed(seed: int, depth: int, branches: int, contacts: int, loops: int, extras: str = "") -> Any:
    """Return a mechanism and a configuration that meets its rows.

    `extras` may have "c" for a coupling of joints, "r" for rows that others imply (a contact given twice).
    """
    rng = np.random.default_rng(seed)
    mechanism = tree(rng, depth, branches, SINGLE if extras else MOVING)
    q, count = mechanism.random(rng), len(mechanism.bodies)
    see = Traced(mechanism)

    def pose(frame: str) -> Placement:
        return Placement(*see("kinematics", q, frame=frame))

    ends = rng.permutation(count)
    made: list[Any] = [
        (da.Point, da.Weld)[int(rng.random() < 0.3)](f"f{ends[i % count]}", name=f"contact {i}")
        for i in range(contacts)
    ]
    for k in range(loops if count > 1 else 0):
        one, two = (f"f{i}" for i in rng.choice(count, 2, replace=False))
        kind = (da.Point, da.Revolute, da.PointOnLine)[rng.integers(3)]
        made.append(kind(one, two, at=pose(two).inverse() @ pose(one), name=f"loop {k}"))
    joints = [joint.name for joint in mechanism.joints if joint.kind in SINGLE]
    if "c" in extras and len(joints) > 1:
        angles = [float(q[mechanism.index_q(joint)][0]) for joint in (joints[0], joints[-1])]
        terms = {joints[0]: 1.0, joints[-1]: -0.7}
        made.append(da.Coupler(terms, angles[0] - 0.7 * angles[1], name="gear"))
    if "r" in extras:
        made.append(da.Point(f"f{ends[0]}", name="again"))
    return mechanism.constrain(*made), q, rng
