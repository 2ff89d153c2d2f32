"""Springs, dampers and held-up weights of a large mechanism, all joints of a kind at once.

The formulas are those of `tree/algorithms/passive.py`: k stiffness, c damping, l length of a spring, e unit vector
along it; a joint's spring resists with k times its deviation from rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dalembert.errors import UnsupportedError
from dalembert.large.layout import Layout
from dalembert.model.joints import rotations as quaternion
from dalembert.model.limits import TINY_SQUARE
from dalembert.tree.prepared.prepare import tendon_data
from dalembert.types import Array

if TYPE_CHECKING:
    from dalembert.large.outward import Frames
    from dalembert.model.mechanism.mechanism import Mechanism

NO_FORCE = np.empty((0, 6))


@dataclass(frozen=True, eq=False)
class JointSprings:
    """Springs in the joints of one kind: places of coordinates (k, nq) and velocities (k, nv), stiffness, rest."""

    kind: str
    iq: Array
    iv: Array
    stiffness: Array
    rest: Array

    def deviation(self, q: Array) -> Array:
        """Return how far every joint is from rest, (k, nv)."""
        x, rest = q[self.iq], self.rest
        if self.kind == "continuous":
            return _angle(x[:, 0], x[:, 1], rest[:, 0])[:, None]
        if self.kind == "planar":
            return np.column_stack([x[:, :2] - rest[:, :2], _angle(x[:, 2], x[:, 3], rest[:, 2])])
        if self.kind == "spherical":
            return _rotation_vector(x, rest)
        if self.kind == "free":
            return np.concatenate([x[:, :3] - rest[:, :3], _rotation_vector(x[:, 3:], rest[:, 3:])], axis=1)
        return x - rest

    def force(self, q: Array) -> Array:
        """Return the forces along the velocities, (k, nv)."""
        f, x = self.stiffness * self.deviation(q), q[self.iq]
        if self.kind == "planar":
            c, s = x[:, 2], x[:, 3]
            f[:, 0], f[:, 1] = c * f[:, 0] + s * f[:, 1], c * f[:, 1] - s * f[:, 0]
        elif self.kind == "free":
            f[:, :3] = quaternion.rotate(quaternion.conjugate(x[:, 3:]), f[:, :3])
        return f


class Passive:
    """What resists motion without being asked: dampers and springs of joints, springs between frames, lifts."""

    def __init__(self, layout: Layout) -> None:
        mechanism = layout.mechanism
        on = mechanism.passive
        self.damping = np.array(mechanism.damping) if on and mechanism.damping.any() else None
        self.joints = _joint_springs(mechanism) if on and mechanism.stiffness.any() else []
        self.springs = mechanism.springs if on else ()
        self.tendons = tendon_data(mechanism)
        held = [i for i, body in enumerate(mechanism.bodies) if body.compensation and layout.moves[layout.row[i]]]
        self.lifted = layout.row[np.array(held, dtype=int)]
        self.share = np.array([mechanism.bodies[i].compensation for i in held])
        self.layout = layout

        self.acts_on_joints = self.damping is not None or bool(self.joints) or bool(self.tendons)
        self.acts_on_bodies = bool(self.springs) or len(self.lifted) > 0
        self.acts = self.acts_on_joints or self.acts_on_bodies

    def resistance(self, q: Array, v: Array) -> Array | None:
        """Return what joints take from tau, (nv,); None where nothing does."""
        if not self.acts_on_joints:
            return None
        tau = np.zeros_like(v) if self.damping is None else self.damping * v
        for springs in self.joints:
            tau[springs.iv] += springs.force(q)
        for terms, k, rest, c in self.tendons:
            pull = k * _stretch(terms, rest, q) + c * sum(factor * v[place] for _, place, factor in terms)
            for _, place, factor in terms:
                tau[place] += factor * pull
        return tau

    def lifts(self, frames: Frames) -> Array:
        """Return the forces that hold weights, (n, 6) about the origins of bodies; no rows where there are none."""
        if not len(self.lifted):
            return NO_FORCE
        ext = np.zeros((self.layout.n, 6))
        m, h = self.layout.inertia[self.lifted, 0], frames.moments(self.lifted)
        ext[self.lifted, :3] -= self.share[:, None] * m[:, None] * self.layout.gravity
        ext[self.lifted, 3:] -= self.share[:, None] * np.cross(h, self.layout.gravity)
        return ext

    def forces(self, frames: Frames) -> Array:
        """Return the forces on bodies, (n, 6) about their origins in world axes; no rows where there are none."""
        if not self.acts_on_bodies:
            return NO_FORCE
        ext = self.lifts(frames) if len(self.lifted) else np.zeros((self.layout.n, 6))
        if self.springs:
            first, second = (frames.places([getattr(s, end) for s in self.springs]) for end in ("frame", "other"))
            k, rest, c = np.array([(s.stiffness, s.rest, s.damping) for s in self.springs]).T
            length, e = _line(first.position, second.position)
            rate = ((second.velocity - first.velocity) * e).sum(axis=1)
            pull = (k * (length - rest) + c * rate)[:, None] * e
            for end, sign in ((first, 1.0), (second, -1.0)):
                on = end.row >= 0
                force = sign * pull[on]
                np.add.at(ext, end.row[on], np.concatenate([force, np.cross(end.arm[on], force)], axis=1))
        return ext

    def energy(self, q: Array, frames: Frames) -> float:
        """Return what springs and lifts hold, in joules."""
        total = sum(0.5 * float((springs.stiffness * springs.deviation(q) ** 2).sum()) for springs in self.joints)
        total += sum(0.5 * k * float(np.square(_stretch(terms, rest, q))) for terms, k, rest, _ in self.tendons)
        if self.springs:
            first, second = (frames.places([getattr(s, end) for s in self.springs]) for end in ("frame", "other"))
            length, _ = _line(first.position, second.position)
            k, rest = np.array([(s.stiffness, s.rest) for s in self.springs]).T
            total += 0.5 * float((k * (length - rest) ** 2).sum())
        if len(self.lifted):
            m, h = self.layout.inertia[self.lifted, 0], frames.moments(self.lifted)
            lifted = h + m[:, None] * frames.origins[self.lifted]
            total += float((self.share * (lifted @ self.layout.gravity)).sum())
        return total


def _stretch(terms: tuple[tuple[int, int, float], ...], rest: tuple[float, float], q: Array) -> float:
    """Return how much longer a tendon is than its rest, or shorter (negative); zero while it is slack."""
    length = sum(factor * q[place] for place, _, factor in terms)
    low, high = rest
    return max(length - high, 0.0) + min(length - low, 0.0)


def _joint_springs(mechanism: Mechanism) -> list[JointSprings]:
    """Return the springs in joints by kind."""
    stiffness, rest = np.array(mechanism.stiffness), np.array(mechanism.rest)
    springs = []
    for kind, iq, iv in mechanism.manifold.groups:
        sprung = stiffness[iv].any(axis=1)
        spring = JointSprings(kind.name, iq[sprung], iv[sprung], stiffness[iv[sprung]], rest[iv[sprung]])
        turning = {"spherical": slice(0, 3), "free": slice(3, 6)}.get(kind.name)
        if turning is not None and (np.ptp(spring.stiffness[:, turning], axis=1) > 0).any():
            raise UnsupportedError("a ball joint's spring must be the same about all three axes; use springs of frames")
        springs += [spring] if sprung.any() else []
    return springs


def _angle(c: Array, s: Array, rest: Array) -> Array:
    """Return angles of (c, s) less rest, within pi."""
    c0, s0 = np.cos(rest), np.sin(rest)
    return np.arctan2(c0 * s - s0 * c, c0 * c + s0 * s)


def _rotation_vector(q: Array, rest: Array) -> Array:
    """Return log(rest^-1 q) of quaternions q and rotation vectors `rest`."""
    return quaternion.logarithm(quaternion.product(quaternion.exponential(-rest), q))


def _line(start: Array, end: Array) -> tuple[Array, Array]:
    """Return lengths from start to end and the unit vectors along them."""
    d = end - start
    length = np.sqrt((d * d).sum(axis=1) + TINY_SQUARE)
    return length, d / length[:, None]
