"""State vectors of other programs: their conventions, and the map from and to them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dalembert.checks import floats
from dalembert.errors import ModelError, ShapeError, UnsupportedError
from dalembert.model.mechanism.mechanism import Mechanism
from dalembert.model.mechanism.parts import Coupling
from dalembert.readers.draft import Draft
from dalembert.readers.mjcf.reader import names_of
from dalembert.types import Array

# ----------------------------------------------------------------------------------------------------------------------
# State vectors of other tools: how they write free, ball, continuous and planar joints.
#
# Symbols: R rotation of the joint's child in its parent, p position; v, w linear and angular velocity.
#
# dalembert and Pinocchio write a free joint as q = [p, x y z w], velocity = [v, w], both in the child's axes. Where
# another tool takes the parent's (world's) axes, v' = R v, and because power is the same in both, forces turn alike.
# The rate of v' = R v brings one more term: a' = R (a + w x v).


@dataclass(frozen=True)
class Convention:
    """How a tool writes states.

    Attributes
    ----------
    scalar_first
        Whether quaternions are [w x y z] instead of [x y z w].
    rotation_first
        Whether the quaternion of a free joint stands before its position.
    angular_first
        Whether the angular velocity of a free joint stands before the linear one.
    linear_in_world, angular_in_world
        Whether velocities of free joints are in the parent's axes instead of the child's.
    ball_in_world
        The same for ball joints.
    angles
        Whether continuous and planar joints have an angle instead of (cos, sin); a planar joint's linear velocity is
        then in the parent's axes.
    ball
        Whether ball joints have a quaternion at all.
    """

    scalar_first: bool = False
    rotation_first: bool = False
    angular_first: bool = False
    linear_in_world: bool = False
    angular_in_world: bool = False
    ball_in_world: bool = False
    angles: bool = False
    ball: bool = True


CONVENTIONS = {
    "pinocchio": Convention(),
    "mujoco": Convention(scalar_first=True, linear_in_world=True, angles=True),
    "drake": Convention(
        scalar_first=True,
        rotation_first=True,
        angular_first=True,
        linear_in_world=True,
        angular_in_world=True,
        angles=True,
        ball=False,
    ),
    "bullet": Convention(linear_in_world=True, angular_in_world=True, ball_in_world=True, angles=True),
    "isaac": Convention(
        scalar_first=True, linear_in_world=True, angular_in_world=True, ball_in_world=True, angles=True
    ),
}
"""By tool. Pinocchio's is dalembert's own; Drake's is that of its quaternion floating joint."""

SIZES = {"free": (7, 6), "spherical": (4, 3), "continuous": (1, 1), "planar": (3, 3)}
"""Coordinates and velocities of a joint in a convention with angles; the rest is as here."""


WOUND = "wound"
"""A joint that has an angle here and (cos, sin) there, as Pinocchio's continuous joints that others follow."""


def q_to(convention: Convention, kind: str, q: Array) -> Array:
    """Return a joint's coordinates as the tool writes them."""
    if kind == "free":
        turn = np.roll(q[..., 3:], 1, axis=-1) if convention.scalar_first else q[..., 3:]
        pieces = (turn, q[..., :3]) if convention.rotation_first else (q[..., :3], turn)
        return np.concatenate(pieces, axis=-1)
    if kind == WOUND:
        return np.concatenate((np.cos(q), np.sin(q)), axis=-1)
    if kind == "spherical" and convention.scalar_first:
        return np.roll(q, 1, axis=-1)
    if kind in ("continuous", "planar") and convention.angles:
        angle = np.arctan2(q[..., -1:], q[..., -2:-1])
        return np.concatenate((q[..., :-2], angle), axis=-1)
    return q


def q_from(convention: Convention, kind: str, q: Array) -> Array:
    """Return a joint's coordinates from the tool's."""
    if kind == "free":
        turn, place = (q[..., :4], q[..., 4:]) if convention.rotation_first else (q[..., 3:], q[..., :3])
        return np.concatenate((place, np.roll(turn, -1, axis=-1) if convention.scalar_first else turn), axis=-1)
    if kind == WOUND:
        return np.arctan2(q[..., 1:], q[..., :1])
    if kind == "spherical" and convention.scalar_first:
        return np.roll(q, -1, axis=-1)
    if kind in ("continuous", "planar") and convention.angles:
        return np.concatenate((q[..., :-1], np.cos(q[..., -1:]), np.sin(q[..., -1:])), axis=-1)
    return q


def v_turned(
    convention: Convention, kind: str, q: Array, x: Array, turn: Callable[[Array, Array], Array], forth: bool
) -> Array:
    """Return velocities or forces of one joint; `turn` goes between the axes of parent and child."""
    if kind == "free":
        swapped = convention.angular_first and not forth
        linear, angular = (x[..., 3:], x[..., :3]) if swapped else (x[..., :3], x[..., 3:])
        linear = turn(q[..., 3:], linear) if convention.linear_in_world else linear
        angular = turn(q[..., 3:], angular) if convention.angular_in_world else angular
        linear, angular = np.broadcast_arrays(linear, angular)
        pieces = (angular, linear) if convention.angular_first and forth else (linear, angular)
        return np.concatenate(pieces, axis=-1)
    if kind == "spherical" and convention.ball_in_world:
        return turn(q, x)
    if kind == "planar" and convention.angles:
        c, s = q[..., 2], q[..., 3] * (1.0 if forth else -1.0)
        parts = (c * x[..., 0] - s * x[..., 1], s * x[..., 0] + c * x[..., 1], x[..., 2] + 0.0 * c)
        return np.stack(parts, axis=-1)
    return x


def to_world(xyzw: Array, x: Array) -> Array:
    """Return R x for the rotation of a quaternion: x + 2 w (u x x) + 2 u x (u x x)."""
    u, w = xyzw[..., :3], xyzw[..., 3:]
    twice = 2 * np.cross(u, x)
    return x + w * twice + np.cross(u, twice)


def to_body(xyzw: Array, x: Array) -> Array:
    """Return R^T x."""
    return to_world(xyzw * np.array([-1.0, -1.0, -1.0, 1.0]), x)


# ----------------------------------------------------------------------------------------------------------------------
# Whole turns of coupled joints, where another tool has kept only (cos, sin).
#
# Symbols: q angle within (-pi, pi], n number of whole turns, f factor of a coupling  sum f (q + 2 pi n) = offset.
#
# A coupling with one joint whose turns are open gives them: n is the whole number next to what closes the row. Where
# several are open, those that others follow keep n = 0, and the rest follows. So couplings hold as well as any choice
# of turns lets them, unless the leader itself had turned and its followers are slower than it.


def add_turns(mechanism: Mechanism, wound: Iterable[str], q: Array) -> None:
    """Add whole turns to the angles of `wound` joints in q (..., nq), in place."""
    unknown = set(wound)
    couplings = [coupling for coupling in mechanism.couplings if unknown & _joints(coupling)]
    while couplings:
        coupling = min(couplings, key=lambda coupling_rule: len(unknown & _joints(coupling_rule)))
        couplings.remove(coupling)
        names = [name for name, factor in coupling.terms if factor and name in unknown]
        if names:  # a follower is the first term of its coupling
            _close(mechanism, coupling, names[0], q)
        unknown -= _joints(coupling)


def _joints(coupling: Coupling) -> set[str]:
    return {name for name, factor in coupling.terms if factor}


def _close(mechanism: Mechanism, coupling: Coupling, name: str, q: Array) -> None:
    """Turn one joint so that a coupling's residual is as small as whole turns make it."""
    slope = dict(coupling.terms)[name]
    total = sum(factor * q[..., mechanism.index_q(joint)] for joint, factor in coupling.terms if factor)
    turns = np.round((coupling.offset - total) / (slope * 2 * math.pi))
    q[..., mechanism.index_q(name)] += 2 * math.pi * np.where(np.isfinite(turns), turns, 0.0)


# ----------------------------------------------------------------------------------------------------------------------
# The states of one mechanism in the convention of another tool, there and back.


@dataclass(frozen=True, eq=False)
class StateMap:
    """States of one mechanism in the convention of another tool; arrays may have leading axes.

    `to_...` takes dalembert's arrays to the other tool's, `from_...` brings them back; velocities need the
    configuration, accelerations the velocity too. Both are those of the side that the arrays come from.

    Attributes
    ----------
    mechanism, convention
        Whose states; how the tool writes them.
    joints
        Names of the joints in the order of the tool.
    wound
        Joints that have an angle here and (cos, sin) there, which has no turns; their angle comes back with the turn
        that their coupling asks for (`add_turns`), and within (-pi, pi] where that leaves it open.
    """

    mechanism: Mechanism
    convention: Convention
    joints: tuple[str, ...]
    wound: frozenset[str] = frozenset()

    @cached_property
    def _parts(self) -> list[tuple[str, slice, slice, slice, slice]]:
        """Kind of each joint, with its places in q, v here and there."""
        parts, at_q, at_v = [], 0, 0
        for name in self.joints:
            kind = WOUND if name in self.wound else self.mechanism.joint(name).kind
            q, v = self.mechanism.index_q(name), self.mechanism.index_v(name)
            sizes = (q.stop - q.start, v.stop - v.start)
            if kind == WOUND:
                sizes = (2, 1)
            nq, nv = SIZES[kind] if kind in SIZES and (self.convention.angles or kind == "free") else sizes
            parts.append((kind, q, v, slice(at_q, at_q + nq), slice(at_v, at_v + nv)))
            at_q, at_v = at_q + nq, at_v + nv
        return parts

    @property
    def nq(self) -> int:
        """Coordinates in the other tool."""
        return self._parts[-1][3].stop if self._parts else 0

    @property
    def nv(self) -> int:
        """Velocities in the other tool."""
        return self._parts[-1][4].stop if self._parts else 0

    def to_q(self, q: Any) -> Array:
        """Return the tool's configuration."""
        q = _array(q, self.mechanism.nq, "q")
        out = np.empty((*q.shape[:-1], self.nq))
        for kind, source, _, target, _ in self._parts:
            out[..., target] = q_to(self.convention, kind, q[..., source])
        return out

    def from_q(self, q: Any) -> Array:
        """Return the configuration from the tool's."""
        q = _array(q, self.nq, "q")
        out = np.empty((*q.shape[:-1], self.mechanism.nq))
        for kind, target, _, source, _ in self._parts:
            out[..., target] = q_from(self.convention, kind, q[..., source])
        if self.wound:
            add_turns(self.mechanism, self.wound, out)
        return out

    def to_v(self, q: Any, v: Any) -> Array:
        """Return the tool's velocity at dalembert's q."""
        return self._turned(q, v, to_world, forth=True)

    def from_v(self, q: Any, v: Any) -> Array:
        """Return the velocity from the tool's, at the tool's q."""
        return self._turned(self.from_q(q), v, to_body, forth=False)

    def to_tau(self, q: Any, tau: Any) -> Array:
        """Return the tool's generalised force at dalembert's q; power is the same in both."""
        return self._turned(q, tau, to_world, forth=True)

    def from_tau(self, q: Any, tau: Any) -> Array:
        """Return the generalised force from the tool's, at the tool's q."""
        return self._turned(self.from_q(q), tau, to_body, forth=False)

    def to_a(self, q: Any, v: Any, a: Any) -> Array:
        """Return the tool's acceleration at dalembert's q and v: the rate of its velocity."""
        v, a = _array(v, self.mechanism.nv, "v"), _array(a, self.mechanism.nv, "a")
        return self.to_v(q, a + self._transport(v))

    def from_a(self, q: Any, v: Any, a: Any) -> Array:
        """Return the acceleration from the tool's, at the tool's q and v."""
        return self.from_v(q, a) - self._transport(self.from_v(q, v))

    def _turned(self, q: Any, x: Any, turn: Callable[[Array, Array], Array], forth: bool) -> Array:
        """Return velocities or forces of one side, given those of the other; q is dalembert's."""
        q = _array(q, self.mechanism.nq, "q")
        x = _array(x, self.mechanism.nv if forth else self.nv, "the vector")
        shape = np.broadcast_shapes(q.shape[:-1], x.shape[:-1])
        out = np.empty((*shape, self.nv if forth else self.mechanism.nv))
        for kind, at_q, here, _, there in self._parts:
            source, target = (here, there) if forth else (there, here)
            out[..., target] = v_turned(self.convention, kind, q[..., at_q], x[..., source], turn, forth)
        return out

    def _transport(self, v: Array) -> Array:
        """Return w x v for the joints whose linear velocity the tool has in other axes, else zero."""
        out = np.zeros_like(v)
        for kind, _, columns, _, _ in self._parts:
            part = v[..., columns]
            if kind == "free" and self.convention.linear_in_world:
                out[..., columns.start : columns.start + 3] = np.cross(part[..., 3:], part[..., :3])
            elif kind == "planar" and self.convention.angles:
                w = part[..., 2]
                out[..., columns.start] = -w * part[..., 1]
                out[..., columns.start + 1] = w * part[..., 0]
        return out


def state_map(mechanism: Mechanism, tool: str | Convention, joints: Iterable[str] | Any = None) -> StateMap:
    """Return the map between dalembert's states of a mechanism and another tool's.

    Parameters
    ----------
    tool
        A name in `CONVENTIONS`, or a `Convention`.
    joints
        The order of the joints there: their names, a `pinocchio.Model` or a `mujoco.MjModel`; by default as here.
    """
    if isinstance(tool, str):
        if tool not in CONVENTIONS:
            raise UnsupportedError(f"no convention {tool!r}; known are {', '.join(CONVENTIONS)}; or give a Convention")
        tool = CONVENTIONS[tool]
    moving = [joint.name for joint in mechanism.joints if joint.kind != "fixed"]
    names = moving if joints is None else _names(joints)
    unknown, missing = sorted(set(names) - set(moving)), sorted(set(moving) - set(names))
    if unknown or missing or len(set(names)) < len(names):
        raise ModelError(
            f"the joints of {mechanism.name!r} and of the tool must be the same: not here {unknown[:5]}, "
            f"not there {missing[:5]}"
        )
    balls = [name for name in names if mechanism.joint(name).kind == "spherical"]
    if balls and not tool.ball:
        raise UnsupportedError(f"joint {balls[0]!r} is a ball joint, which has no quaternion there")
    return StateMap(mechanism, tool, tuple(names), _wound(mechanism, joints, names))


def _wound(mechanism: Mechanism, joints: Any, names: list[str]) -> frozenset[str]:
    """Return the joints that are revolute here and on the circle in a Pinocchio model."""
    if not hasattr(joints, "nqs"):
        return frozenset()
    pairs = zip(names, list(joints.nqs)[1:], strict=True)
    return frozenset(name for name, nq in pairs if nq == 2 and mechanism.joint(name).kind == "revolute")


def _names(joints: Any) -> list[str]:
    """Return the names of moving joints in a list, a Pinocchio model or a MuJoCo model."""
    if hasattr(joints, "njnt"):
        return names_of(joints, Draft("", ""))[1]
    if hasattr(joints, "njoints"):
        return list(joints.names)[1:]
    return [str(name) for name in joints]


def _array(values: Any, size: int, what: str) -> Array:
    array = floats(values, what)
    if array.ndim == 0 or array.shape[-1] != size:
        raise ShapeError(f"{what} must have {size} entries in its last axis; its shape is {array.shape}")
    return array
