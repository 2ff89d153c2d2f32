"""Kinematics as constraints ask for it: frames in motion, single coordinates of joints."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.errors import ModelError
from dalembert.model.constraints.rows import Matrix, without_columns
from dalembert.model.mechanism.placement import IDENTITY, Placement

if TYPE_CHECKING:
    from dalembert.model.mechanism.mechanism import Mechanism

# ----------------------------------------------------------------------------------------------------------------------
# Single coordinates of joints: lengths and angles whose rates are velocities of the mechanism.


SINGLE = ("revolute", "continuous", "prismatic", "helical", "universal")
"""Kinds whose velocities are rates of lengths and angles."""


def coordinate_index(mechanism: Mechanism, name: str, label: str) -> int:
    """Return a coordinate's place in v; one whose velocity is no rate of it is refused."""
    place = mechanism.index_v(name)
    # of joints that begin at one place only the last moves, those before it are fixed
    i = int(np.searchsorted(mechanism.manifold.v_start[:-1], place.start, side="right")) - 1
    joint = mechanism.joints[i]
    count = place.stop - place.start
    if count != 1 or joint.kind not in SINGLE:
        why = f"has {count} velocities" if count != 1 else f"belongs to a {joint.kind} joint, where no angle counts on"
        raise ModelError(
            f"constraint {label!r}: {name!r} is no single length or angle, it {why}; constrain frames instead (Point, "
            "Weld, Expression)"
        )
    return place.start


def coordinate_value(mechanism: Mechanism, q: Matrix, name: str) -> Matrix:
    """Return the value (1, 1) of a coordinate in q (nq, 1); of a continuous joint its angle in (-pi, pi]."""
    part = q[mechanism.index_q(name), :]
    return part if part.shape[0] == 1 else angle(part[1:2, :], part[0:1, :])


def shared_carrier(mechanism: Mechanism, one: str, two: str) -> tuple[str, list[int]]:
    """Return the body next to both that carries them, and the places in v of all joints that move both alike."""
    first, second = _carriers(mechanism, one), set(_carriers(mechanism, two))
    common = [i for i in first if i in second]
    start = mechanism.manifold.v_start
    velocities = sorted(place for i in common for place in range(start[i], start[i + 1]))
    return (mechanism.bodies[common[0]].name if common else mechanism.ground), velocities


def _carriers(mechanism: Mechanism, body: str) -> list[int]:
    """Return a body, the one that carries it, and so on to the ground."""
    i, carriers = mechanism.body_index(body), []
    while i >= 0:
        carriers.append(i)
        i = mechanism.parents[i]
    return carriers


def angle(sine: Any, cosine: Any) -> Matrix:
    """Return atan2(sine, cosine) of (1, 1) matrices."""
    if isinstance(sine, np.ndarray):
        return np.arctan2(sine, cosine)
    import casadi as ca

    return ca.atan2(sine, cosine)


# ----------------------------------------------------------------------------------------------------------------------
# The mechanism in motion as constraints see it; the room `tree` provides it.
#
# Symbols: R rotation, p position of a frame in the world; V = [v; w] = J qd velocity of its origin and angular
# velocity, in world axes; its acceleration is J qdd + [a; wd].
#
# Matrices are two-dimensional, NumPy arrays or CasADi SX alike: constraints use only `@`, `.T`, `+`, `-`, `*`, slices
# and `algebra`, so that one formula serves as expression and as plain twin.


@dataclass(frozen=True, eq=False)
class FrameKinematics:
    """One frame in motion.

    Attributes
    ----------
    rotation, position : (3, 3), (3, 1)
        R and p in the world.
    jacobian : (6, nv)
        J, rows [linear; angular] in world axes at the frame's origin ("local_world_aligned").
    velocity, drift : (6, 1)
        J qd and J_dot qd.
    """

    rotation: Matrix
    position: Matrix
    jacobian: Matrix
    velocity: Matrix
    drift: Matrix

    @property
    def Jv(self) -> Matrix:
        """Rows of the linear velocity, (3, nv)."""
        return self.jacobian[0:3, :]

    @property
    def Jw(self) -> Matrix:
        """Rows of the angular velocity, (3, nv)."""
        return self.jacobian[3:6, :]

    @property
    def v(self) -> Matrix:
        """Velocity of the origin, (3, 1)."""
        return self.velocity[0:3, :]

    @property
    def w(self) -> Matrix:
        """Angular velocity, (3, 1)."""
        return self.velocity[3:6, :]

    @property
    def a(self) -> Matrix:
        """Acceleration of the origin at qdd = 0, (3, 1)."""
        return self.drift[0:3, :]

    @property
    def wd(self) -> Matrix:
        """Angular acceleration at qdd = 0, (3, 1)."""
        return self.drift[3:6, :]

    def direction(self, vector: Any) -> Matrix:
        """Return a vector of the frame's axes (3, 1) in world axes."""
        return self.rotation @ vector

    def unmoved_by(self, velocities: list[int]) -> FrameKinematics:
        """Return the frame with zeros for these columns of its Jacobian."""
        return replace(self, jacobian=without_columns(self.jacobian, velocities)) if velocities else self

    def standing(self) -> FrameKinematics:
        """Return a frame that stands still where this one is now."""
        return FrameKinematics(self.rotation, self.position, 0 * self.jacobian, 0 * self.velocity, 0 * self.drift)


class Kinematics:
    """A mechanism in motion: its state, and every frame of it.

    Attributes
    ----------
    mechanism
        What moves.
    q, v, t : (nq, 1), (nv, 1), (1, 1)
        Configuration, velocity, time in seconds.
    rate : (nq, 1)
        dq/dt = N(q) v.
    """

    mechanism: Mechanism
    q: Matrix
    v: Matrix
    t: Matrix
    rate: Matrix

    def frame(self, name: str, placement: Placement = IDENTITY) -> FrameKinematics:
        """Return a frame by name (body, joint, frame or ground), or a place on it."""
        raise NotImplementedError

    def seen_from(self, body: str) -> Kinematics:
        """Return the same motion as seen from a body that carries all frames in question, or anything that is as good.

        Rows between frames do not depend on how what carries both moves; seen from there they are shorter, and keep
        their digits wherever the mechanism stands.
        """
        return self

    def coordinate(self, name: str) -> Matrix:
        """Return a length or angle of a joint, (1, 1); the angle of a continuous joint is in (-pi, pi]."""
        return coordinate_value(self.mechanism, self.q, name)
