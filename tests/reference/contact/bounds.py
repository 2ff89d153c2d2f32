"""Bounds on the motion of shapes within a step, as `simulate/contact/gap_loops.py` has them, in plain NumPy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.model.joints import KINDS
from dalembert.simulate.contact.geometry import Chain
from dalembert.simulate.contact.shapes import ContactPair, Heightfield
from dalembert.simulate.runge_kutta import method_of

if TYPE_CHECKING:
    from dalembert.model.mechanism.mechanism import Mechanism
    from tests.reference.contact.geometry import State
    from tests.reference.contact.mode_dynamics import ContactState, TrialStep

Array = np.ndarray


class BoundedChain(Chain):
    """A chain of joints with the bounds of its end."""

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
        self.chains = {
            ball: BoundedChain(mechanism, ball) for p in pairs for ball in (p.ball, p.other) if ball is not None
        }

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
    method = method_of("dop853")
    accelerations = method.between * np.max([np.abs(stage.motion.a) for stage in shot.stages], axis=0)
    speeds = np.max([np.abs(stage.v) for stage in shot.stages], axis=0)
    return speeds + method.apart * shot.h * accelerations, accelerations
