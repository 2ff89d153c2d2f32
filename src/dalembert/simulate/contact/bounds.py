"""Bounds on the motion of shapes within a step: speeds and accelerations of their centres, from those of the joints.

Symbols: along the chain from the ground to a shape, W angular speed, B angular acceleration of a link, l length of a
piece that moves with it, x way of a sliding joint; w, b relative angular speed and acceleration of a joint, u, c
relative linear ones; all are largest values within the step:

    speed        += W l              acceleration += (B + W^2) l                of every rigid piece
    speed        += W x + u          acceleration += (B + W^2) x + 2 W u + c    of every joint that slides
    W += w,  B += b + W w                                                       of every joint that turns

`gap_loops.ball_bounds` sums them up. The configuration does not enter but for the ways of sliding joints, so that a bar
may turn many times in a step. The speeds of the joints themselves are what the stages of the step say
(`gap_loops.gap_bounds`): between two stages they change by at most the acceleration times half of their distance, and
accelerations are taken `STAGES` times as large as any stage's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.simulate.contact.shapes import Sphere

if TYPE_CHECKING:
    from dalembert.model.mechanism.mechanism import Mechanism


class Chain:
    """Joints from the ground to a sphere, and the lengths between them."""

    def __init__(self, mechanism: Mechanism, ball: Sphere) -> None:
        m = mechanism.manifold
        carried = {joint.child: (i, joint) for i, joint in enumerate(mechanism.joints)}
        frame = mechanism.frame(ball.frame)
        at = np.asarray(frame.placement.position) + np.asarray(frame.placement.rotation) @ np.array(ball.at)
        self.end = float(np.linalg.norm(at))
        self.links: list[tuple[Any, slice, slice, float, float]] = []
        body = frame.body
        while body in carried:
            i, joint = carried[body]
            q, v = slice(int(m.q_start[i]), int(m.q_start[i + 1])), slice(int(m.v_start[i]), int(m.v_start[i + 1]))
            before, behind = (np.linalg.norm(p.position) for p in (joint.placement, joint.child_placement))
            self.links.insert(0, (joint, q, v, float(before), float(behind)))
            body = joint.parent
