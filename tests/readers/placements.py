"""Where bodies stand in a configuration, by the definition of a joint; nothing of `dalembert.tree` is used."""

from __future__ import annotations

import numpy as np

import dalembert as da
from dalembert.model import KINDS, Placement


def placements(robot: da.Mechanism, q=None) -> dict[str, Placement]:
    """Return the placement of every body: parent · placement · motion(q) · child_placement⁻¹."""
    q = robot.neutral() if q is None else np.asarray(q, dtype=float)
    found = {robot.ground: Placement()}
    for joint in robot.joints:
        R, p = KINDS[joint.kind].motion(joint, q[robot.index_q(joint.name)])
        motion = Placement(np.array(R, dtype=float), np.array(p, dtype=float))
        found[joint.child] = found[joint.parent] @ joint.placement @ motion @ joint.child_placement.inverse()
    return found


def assert_same(one: Placement, other: Placement, tolerance: float = 1e-12) -> None:
    np.testing.assert_allclose(one.rotation, other.rotation, atol=tolerance)
    np.testing.assert_allclose(one.position, other.position, atol=tolerance)
