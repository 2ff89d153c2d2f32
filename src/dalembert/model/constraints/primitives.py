"""The mechanism in motion as constraints see it: frames and coordinates, and primitive rows between frames."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.errors import ModelError
from dalembert.model.constraints.row_algebra import (
    Matrix,
    Rows,
    choose,
    cross,
    dot,
    side_by_side,
    square_root,
    stack,
    stacked,
    without_columns,
)
from dalembert.model.joints import KINDS
from dalembert.model.limits import OPPOSITE, TINY_SQUARE
from dalembert.model.mechanism.placement import IDENTITY, Placement

if TYPE_CHECKING:
    from dalembert.model.mechanism.mechanism import Mechanism

# ----------------------------------------------------------------------------------------------------------------------
# Single coordinates of joints: lengths and angles whose rates are velocities of the mechanism.


def coordinate_index(mechanism: Mechanism, name: str, label: str) -> int:
    """Return a coordinate's place in v; one whose velocity is no rate of it is refused."""
    place = mechanism.index_v(name)
    # of joints that begin at one place only the last moves, those before it are fixed
    i = int(np.searchsorted(mechanism.manifold.v_start[:-1], place.start, side="right")) - 1
    joint = mechanism.joints[i]
    count = place.stop - place.start
    if count != 1 or not KINDS[joint.kind].has_rates:
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


# ----------------------------------------------------------------------------------------------------------------------
# The turn of one frame against another: zero where they are aligned and nowhere else.
#
# Symbols: R = R2^T R1 turns from frame 2 to frame 1; theta = angle times axis of R, no longer than pi; x, y, z
# components of a unit vector.
#
# The components of R - R^T are sines, and the sine of half a turn is zero: a residual made of them would be met by
# frames that look in opposite directions. An angle grows all the way to pi.


def rotation_vector(R: Matrix) -> Matrix:
    """Return theta (3, 1) of a rotation (3, 3), with all digits at any angle.

    The matrix 4 p p^T of the unit quaternion p is linear in R; of its columns the first with a diagonal entry of 1 or
    more is taken, so that nothing small is divided by (Shepperd 1978, "Quaternion from rotation matrix").
    """
    r = [[R[i : i + 1, j : j + 1] for j in range(3)] for i in range(3)]
    wx, wy, wz = r[2][1] - r[1][2], r[0][2] - r[2][0], r[1][0] - r[0][1]
    xy, xz, yz = r[0][1] + r[1][0], r[0][2] + r[2][0], r[1][2] + r[2][1]
    ww, xx = 1 + r[0][0] + r[1][1] + r[2][2], 1 + r[0][0] - r[1][1] - r[2][2]
    yy, zz = 1 - r[0][0] + r[1][1] - r[2][2], 1 - r[0][0] - r[1][1] + r[2][2]
    p = stack([wz, xz, yz, zz])
    for size, column in ((yy, [wy, xy, yy, yz]), (xx, [wx, xx, xy, xz]), (ww, [ww, wx, wy, wz])):
        p = choose(size >= 1, stack(column), p)
    w, u = p[0:1, :], p[1:4, :]
    w, u = choose(w < 0, -w, w), choose(w < 0, -u, u)
    length = square_root(u.T @ u + TINY_SQUARE)
    return u * (2 * angle(length, w) / length)


def tilt(x: Matrix, y: Matrix, z: Matrix) -> Matrix:
    """Return the turn (2, 1), angle times axis, about a frame's first two axes, that brings (x, y, z) to its third."""
    x = choose(z < 0, choose(x * x + y * y < OPPOSITE**2, OPPOSITE, x), x)
    sine = square_root(x * x + y * y + TINY_SQUARE)
    return stack([y, -x]) * (angle(sine, z) / sine)


# ----------------------------------------------------------------------------------------------------------------------
# The rows of which joints between two frames are made: residuals and their derivatives, turns and rates of turning.
#
# Symbols: frames 1 and 2 with R, p, v, w, a, wd as in `kinematics`; d = p1 - p2; u a direction fixed in frame 1, s one
# fixed in frame 2 (Haug 1989, "Computer aided kinematics and dynamics", sec. 9.2: dot-1, dot-2, spherical constraints).


X, Y, Z = (np.eye(3)[:, [i]] for i in range(3))


def coincident(one: FrameKinematics, two: FrameKinematics) -> Rows:
    """Return phi = R2^T (p1 - p2), three rows in the axes of frame 2: no common motion of both frames changes it."""
    return stacked([along(one, two, axis) for axis in (X, Y, Z)])


def perpendicular(one: FrameKinematics, u: Matrix, two: FrameKinematics, s: Matrix, value: float = 0.0) -> Rows:
    """Return phi = u . s - value for u (3, 1) of frame 1 and s (3, 1) of frame 2, each in its own axes.

    phi_dot = (u x s) . (w1 - w2)
    """
    u, s = one.direction(u), two.direction(s)
    normal = cross(u, s)
    du, ds = cross(one.w, u), cross(two.w, s)
    drift = dot(normal, one.wd - two.wd) + 2 * dot(du, ds)
    drift = drift + dot(cross(one.w, du), s) + dot(u, cross(two.w, ds))
    return Rows(dot(u, s) - value, normal.T @ (one.Jw - two.Jw), dot(normal, one.w - two.w), drift)


def along(one: FrameKinematics, two: FrameKinematics, s: Matrix, value: float = 0.0) -> Rows:
    """Return phi = s . d - value for s (3, 1) of frame 2: how far frame 1 is along it.

    phi_dot = s . (v1 - v2) + (w2 x s) . d
    """
    s = two.direction(s)
    d, v = one.position - two.position, one.v - two.v
    moment, ds = cross(s, d), cross(two.w, s)
    jacobian = s.T @ (one.Jv - two.Jv) + moment.T @ two.Jw
    drift = dot(s, one.a - two.a) + 2 * dot(ds, v) + dot(moment, two.wd) + dot(cross(two.w, ds), d)
    return Rows(dot(s, d) - value, jacobian, dot(s, v) + dot(moment, two.w), drift)


def turning(one: FrameKinematics, two: FrameKinematics, e: Matrix, residual: Matrix) -> Rows:
    """Return rows with the rates e . (w1 - w2), for directions e (3, k) in world axes that one of the frames carries.

    The residual is an angle times its axis. Where it is zero its first derivative is the rate, and where both are, its
    second is A a + drift; elsewhere a step by -residual in the rates brings it to zero (exactly, where it is about its
    axis), and A keeps its rank at every angle. (w2 x e) . (w1 - w2) = (w1 x e) . (w1 - w2) = e . (w1 x w2),
    so the drift does not ask which frame carries e.
    """
    drift = e.T @ (one.wd - two.wd + cross(one.w, two.w))
    return Rows(residual, e.T @ (one.Jw - two.Jw), e.T @ (one.w - two.w), drift)


def twist(one: FrameKinematics, two: FrameKinematics) -> Rows:
    """Return three rows, the rotation of frame 1 against frame 2 about x, y and z of frame 2."""
    return turning(one, two, two.rotation, rotation_vector(two.rotation.T @ one.rotation))


def aligned(one: FrameKinematics, two: FrameKinematics, axis: Matrix, e1: Matrix, e2: Matrix) -> Rows:
    """Return two rows, rotation about e1 and e2 of frame 1, of which `axis` stays that of frame 2."""
    a, u1, u2, s = one.direction(axis), one.direction(e1), one.direction(e2), two.direction(axis)
    return turning(one, two, side_by_side([u1, u2]), tilt(dot(u1, s), dot(u2, s), dot(a, s)))
