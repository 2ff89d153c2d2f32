"""Bounds on the motion of shapes within a step: speeds and accelerations of their centres, from those of the joints.

Symbols: along the chain from the ground to a shape, W angular speed, B angular acceleration of a link, l length of a
piece that moves with it, x way of a sliding joint; w, b relative angular speed and acceleration of a joint, u, c
relative linear ones; all are largest values within the step:

    speed        += W l              acceleration += (B + W^2) l                of every rigid piece
    speed        += W x + u          acceleration += (B + W^2) x + 2 W u + c    of every joint that slides
    W += w,  B += b + W w                                                       of every joint that turns

The configuration does not enter but for the ways of sliding joints, so that a bar may turn many times in a step. The
speeds of the joints themselves are what the stages of the step say (`largest`): between two stages they change by at
most the acceleration times half of their distance, and accelerations are taken `STAGES` times as large as any stage's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.model.joints import KINDS
from dalembert.simulate.contact.shapes import ContactPair, Heightfield, Sphere

if TYPE_CHECKING:
    from dalembert.model.mechanism.mechanism import Mechanism
    from dalembert.simulate.contact.geometry import State
    from dalembert.simulate.contact.mode_dynamics import ContactState, TrialStep

Array = np.ndarray

STAGES = 1.5
"""Accelerations between the stages of a step are at most this many times those at the stages."""

APART = 0.14
"""Half of the largest distance of two stages of a step (order 8), as a part of it: 0.333 and 0.6."""


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

    def bounds(self, q: Array, h: float, speeds: Array, accelerations: Array) -> tuple[float, float]:
        """Return the largest speed and acceleration of the centre within a step h from q."""
        speed = acceleration = W = B = 0.0
        for joint, iq, iv, before, behind in self.links:
            v, a = speeds[iv], accelerations[iv]
            x, u, c, w, b = _relative(joint, q[iq], v, a, h)
            speed += W * (before + x) + u
            acceleration += (B + W * W) * (before + x) + 2.0 * W * u + c
            W, B = W + w, B + b + W * w
            speed, acceleration = speed + W * behind, acceleration + (B + W * W) * behind
        return speed + W * self.end, acceleration + (B + W * W) * self.end


def _relative(joint: Any, q: Array, v: Array, a: Array, h: float) -> tuple[float, float, float, float, float]:
    """Return way, speed and acceleration, angular speed and acceleration of a joint, as largest values."""
    turns = np.array(KINDS[joint.kind].angular, dtype=bool) if v.size else np.zeros(0, bool)
    w, b = float(np.linalg.norm(v[turns])), float(np.linalg.norm(a[turns]))
    u, c = float(np.linalg.norm(v[~turns])), float(np.linalg.norm(a[~turns]))
    if joint.kind == "helical":
        pitch = abs(joint.pitch)
        return pitch * (abs(float(q[0])) + h * w), pitch * w, pitch * b, w, b
    if joint.kind == "universal":
        w, b = float(np.abs(v).sum()), float(np.abs(a).sum() + np.abs(v).prod())
    way = float(np.linalg.norm(q[: np.count_nonzero(~turns)]))
    return way + h * u, u, c + w * u, w, b  # velocities in the child's axes, which turn: c + w u in the parent's


class MotionBounds:
    """Bounds of the gaps of all pairs: L of their rates, K of their second derivatives."""

    def __init__(self, mechanism: Mechanism, pairs: tuple[ContactPair, ...]) -> None:
        self.pairs = pairs
        self.points = [
            i
            for i, p in enumerate(pairs)
            if isinstance(p.ground, Heightfield) and p.ball is not None and not p.ball.radius
        ]
        self.steep = {
            i: p.ground.steepness(p.ball.radius)
            for i, p in enumerate(pairs)
            if isinstance(p.ground, Heightfield) and p.ball is not None
        }
        self.chains = {ball: Chain(mechanism, ball) for p in pairs for ball in (p.ball, p.other) if ball is not None}

    def guards(self, x: State, v: Array) -> tuple[Array, Array]:
        """Return gaps and their rates; over a heightfield the height of a point, which is continuous over edges."""
        gaps, rates = x.gaps.copy(), x.W[::3] @ v
        for i in self.points:
            gaps[i], rates[i] = gaps[i] / x.axes[i, 0, 2], rates[i] / x.axes[i, 0, 2]
        return gaps, rates

    def of(self, here: ContactState, shot: TrialStep) -> tuple[Array, Array]:
        """Return L and K of every pair within a step; K of points over a heightfield is that within one cell."""
        speeds, accelerations = largest(shot)
        moving = {ball: chain.bounds(here.q, shot.h, speeds, accelerations) for ball, chain in self.chains.items()}
        L, K = np.zeros(len(self.pairs)), np.zeros(len(self.pairs))
        for i, pair in enumerate(self.pairs):
            if pair.ball is None:
                L[i], K[i] = speeds[pair.coordinate[1]], accelerations[pair.coordinate[1]]
                continue
            L[i], K[i] = moving[pair.ball]
            if pair.other is not None:
                more, faster = moving[pair.other]
                L[i], K[i] = L[i] + more, K[i] + faster
                apart = pair.ball.radius + pair.other.radius  # the line of centres turns, at this distance or more
                K[i] += L[i] ** 2 / apart if apart > 0.0 else np.inf
            elif isinstance(pair.ground, Heightfield):
                steep = self.steep[i]
                within = steep * K[i] + 2.0 * pair.ground.most_twist() * L[i] ** 2  # of a height, within one cell
                L[i], K[i] = L[i] * steep, np.inf if pair.ball.radius else within
        return L, K


def largest(shot: TrialStep) -> tuple[Array, Array]:
    """Return the largest speeds and accelerations of all joints within a step, from its stages."""
    accelerations = STAGES * np.max([np.abs(stage.motion.a) for stage in shot.stages], axis=0)
    speeds = np.max([np.abs(stage.v) for stage in shot.stages], axis=0)
    return speeds + APART * shot.h * accelerations, accelerations
