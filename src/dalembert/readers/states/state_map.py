"""The map between the states of a mechanism and those of another tool."""

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
from dalembert.readers.states.conventions import (
    CONVENTIONS,
    SIZES,
    WOUND,
    Convention,
    q_from,
    q_to,
    to_body,
    to_world,
    v_turned,
)
from dalembert.types import Array

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
    left = [coupling for coupling in mechanism.couplings if unknown & _joints(coupling)]
    while left:
        coupling = min(left, key=lambda each: len(unknown & _joints(each)))
        left.remove(coupling)
        names = [name for name, factor in coupling.terms if factor and name in unknown]
        if names:  # a follower is the first term of its coupling
            _close(mechanism, coupling, names[0], q)
        unknown -= _joints(coupling)


def _joints(coupling: Coupling) -> set[str]:
    return {name for name, factor in coupling.terms if factor}


def _close(mechanism: Mechanism, coupling: Coupling, name: str, q: Array) -> None:
    """Turn one joint so that a coupling's residual is as small as whole turns make it."""
    own = dict(coupling.terms)[name]
    total = sum(factor * q[..., mechanism.index_q(joint)] for joint, factor in coupling.terms if factor)
    turns = np.round((coupling.offset - total) / (own * 2 * math.pi))
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
        for kind, here, _, there, _ in self._parts:
            out[..., there] = q_to(self.convention, kind, q[..., here])
        return out

    def from_q(self, q: Any) -> Array:
        """Return the configuration from the tool's."""
        q = _array(q, self.nq, "q")
        out = np.empty((*q.shape[:-1], self.mechanism.nq))
        for kind, here, _, there, _ in self._parts:
            out[..., here] = q_from(self.convention, kind, q[..., there])
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
        for kind, _, here, _, _ in self._parts:
            part = v[..., here]
            if kind == "free" and self.convention.linear_in_world:
                out[..., here.start : here.start + 3] = np.cross(part[..., 3:], part[..., :3])
            elif kind == "planar" and self.convention.angles:
                w = part[..., 2]
                out[..., here.start] = -w * part[..., 1]
                out[..., here.start + 1] = w * part[..., 0]
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
