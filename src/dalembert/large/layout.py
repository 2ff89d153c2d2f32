"""The arrays of a large mechanism, one row per body, and bundles of them for compiled code."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import types
from numba.experimental import structref

from dalembert.errors import UnsupportedError
from dalembert.kernel.loops import once
from dalembert.types import Array

if TYPE_CHECKING:
    from dalembert.model.mechanism.mechanism import Mechanism

# ----------------------------------------------------------------------------------------------------------------------
# A mechanism as arrays, one row per body: what the compiled loops run over.
#
# Symbols: F', G' the joint's frames on parent and child, turned so that the joint's axis is z (of a planar joint the
# plane's directions are x, y); a body's own frame is G'. C_i pose of F' in the parent's frame, constant; m, h, J mass,
# first moment and inertia about the origin, in the body's frame.
#
# Bodies are numbered depth first. A cardan joint is two hinges with a massless body between: then every joint's
# motion subspace is made of axes of the child, and no term of S_dot remains.


FIXED, HINGE, CIRCLE, SLIDER, SCREW, BALL, PLANE, FLYING = range(8)
CODES = {
    "fixed": FIXED,
    "revolute": HINGE,
    "continuous": CIRCLE,
    "prismatic": SLIDER,
    "helical": SCREW,
    "universal": HINGE,
    "spherical": BALL,
    "planar": PLANE,
    "free": FLYING,
}
VELOCITIES = np.array([0, 1, 1, 1, 1, 3, 3, 6])
"""Number of velocities by code; so many reals are then kept of each joint's pivot: U (6 k), D^-1 (k^2), u (k)."""


@dataclass(frozen=True, eq=False)
class Layout:
    """Arrays over the n bodies, depth first, a cardan joint's middle included.

    Attributes
    ----------
    parent, code, iq, iv : (n,)
        Parent's row (-1 for the ground), kind of joint, places of its coordinates in q and v.
    C : (n, 12)
        Rotation of F' in the parent's frame, row by row, then its position.
    pitch : (n,)
        Metres per radian of a screw.
    inertia : (n, 10)
        m, h (3), J (xx xy xz yy yz zz).
    kept : (n + 1,)
        Where each joint's U, D^-1, u begin.
    slot, first : (n,), (n,)
        Place where a body's articulated inertia is gathered (-1 for a leaf), and whether it is the first child that
        arrives at its parent's place. Places are taken again: a chain needs two.
    place_R, place_p : (bodies, 3, 3), (bodies, 3)
        The mechanism's body frames in the frames used here.
    row : (bodies,)
        Where each body of the mechanism is.
    """

    mechanism: Mechanism
    parent: Array
    code: Array
    iq: Array
    iv: Array
    C: Array
    pitch: Array
    inertia: Array
    kept: Array
    slot: Array
    first: Array
    slots: int
    place_R: Array
    place_p: Array
    row: Array

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.parent)

    @cached_property
    def gravity(self) -> Array:
        """In world axes, (3,)."""
        return np.array(self.mechanism.gravity, dtype=float)

    @cached_property
    def moves(self) -> Array:
        """Which rows are not welded to the ground, (n,)."""
        moves = self.code != FIXED
        for i in np.flatnonzero(~moves):  # parents come first
            moves[i] = self.parent[i] >= 0 and moves[self.parent[i]]
        return moves

    @cached_property
    def topology(self) -> tuple[Array, ...]:
        """What every loop over bodies takes first."""
        return self.parent, self.code, self.iq, self.iv

    @cached_property
    def gathering(self) -> tuple[Array, ...]:
        """What loops from the leaves to the ground take besides."""
        return self.slot, self.first, self.kept

    @classmethod
    def of(cls, mechanism: Mechanism) -> Layout:
        """Lay a mechanism out."""
        joints = mechanism.joints
        others = {joint.kind: joint.name for joint in joints if joint.kind not in CODES}
        for kind, name in others.items():
            raise UnsupportedError(f"loops over bodies know no {kind} joint ({name!r}); backend='cpu' unrolls it")
        kinds = np.array([CODES[joint.kind] for joint in joints], dtype=np.int8)
        cardan = np.array([joint.kind == "universal" for joint in joints], dtype=bool)
        rank, order = depth_first(np.array(mechanism.parents, dtype=np.int64))
        row = (np.arange(len(order)) + np.cumsum(cardan[order]))[rank]  # of a cardan joint's child, behind its middle
        n = len(joints) + int(cardan.sum())
        frames = _Frames(mechanism)
        middle = row[cardan] - 1
        parent = np.full(n, -1, dtype=np.int64)
        up = np.array(mechanism.parents, dtype=np.int64)
        parent_row = np.where(up >= 0, row[up], -1) if len(up) else up
        parent[row] = parent_row
        parent[row[cardan]], parent[middle] = middle, parent_row[cardan]
        code = np.zeros(n, dtype=np.int8)
        code[row], code[middle] = kinds, HINGE
        iq, iv = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
        iq[row], iv[row] = mechanism.manifold.q_start[:-1] + cardan, mechanism.manifold.v_start[:-1] + cardan
        iq[middle], iv[middle] = iq[row[cardan]] - 1, iv[row[cardan]] - 1
        C = np.zeros((n, 12))
        C[row] = frames.joints(up)
        C[middle], C[row[cardan]] = frames.cardans(cardan, C[row[cardan]])
        inertia = np.zeros((n, 10))
        inertia[row] = frames.inertias()
        pitch = np.zeros(n)
        pitch[row] = [joint.pitch for joint in joints]
        offsets = np.concatenate([[0], np.cumsum((VELOCITIES * (VELOCITIES + 7))[code])])
        slot, first, slots = places(parent)
        return cls(
            mechanism, parent, code, iq, iv, C, pitch, inertia, offsets, slot, first, slots, frames.R, frames.p, row
        )


class _Frames:
    """Constant poses of a mechanism, all joints at once."""

    def __init__(self, mechanism: Mechanism) -> None:
        joints = mechanism.joints
        self.mechanism = mechanism
        axes = _array([j.axis if j.kind != "universal" else j.axis2 for j in joints], (3,))
        self.turns = aligned(axes)
        self.turns[np.array([j.kind in ("fixed", "spherical", "free") for j in joints], dtype=bool)] = np.eye(3)
        rotation = _array([j.child_placement.rotation for j in joints], (3, 3)) @ self.turns
        position = _array([j.child_placement.position for j in joints], (3,))
        self.R = np.swapaxes(rotation, 1, 2).copy()
        self.p = -np.einsum("nij,nj->ni", self.R, position)

    def joints(self, parents: Array) -> Array:
        """Return C of every joint, a cardan joint's taken as one about its second axis."""
        joints = self.mechanism.joints
        R = _array([j.placement.rotation for j in joints], (3, 3)) @ self.turns
        p = _array([j.placement.position for j in joints], (3,))
        held = parents >= 0
        up = parents[held]
        p[held] = np.einsum("nij,nj->ni", self.R[up], p[held]) + self.p[up]
        R[held] = self.R[up] @ R[held]
        return np.concatenate([R.reshape(-1, 9), p], axis=1)

    def cardans(self, cardan: Array, C: Array) -> tuple[Array, Array]:
        """Return C of first and second hinges."""
        axes = [j.axis for j, is_one in zip(self.mechanism.joints, cardan, strict=True) if is_one]
        first, second = aligned(_array(axes, (3,))), self.turns[cardan]
        whole = C[:, :9].reshape(-1, 3, 3) @ np.swapaxes(second, 1, 2)
        between = np.swapaxes(first, 1, 2) @ second
        return (
            np.concatenate([(whole @ first).reshape(-1, 9), C[:, 9:]], axis=1),
            np.concatenate([between.reshape(-1, 9), np.zeros((len(C), 3))], axis=1),
        )

    def inertias(self) -> Array:
        """Return m, h, J of every body in its frame here."""
        bodies = self.mechanism.bodies
        m = np.array([body.inertia.mass for body in bodies])
        c = _array([body.inertia.center for body in bodies], (3,))
        moments = _array([body.inertia.rotational for body in bodies], (3, 3))
        c = np.einsum("nij,nj->ni", self.R, c) + self.p
        J = self.R @ moments @ np.swapaxes(self.R, 1, 2)
        J = J + m[:, None, None] * ((c * c).sum(axis=1)[:, None, None] * np.eye(3) - c[:, :, None] * c[:, None, :])
        upper = J[:, [0, 0, 0, 1, 1, 2], [0, 1, 2, 1, 2, 2]]
        return np.concatenate([m[:, None], m[:, None] * c, upper], axis=1)


def aligned(axes: Array) -> Array:
    """Return rotations whose columns are e1, e2 and the axis, of many axes: `plane` of `model/joints/rotations.py`."""
    k = np.arange(len(axes))
    e1 = np.eye(3)[(np.argmax(np.abs(axes), axis=1) + 1) % 3]
    e1 = e1 - axes * axes[k, np.argmax(e1, axis=1)][:, None]
    e1 = e1 / np.linalg.norm(e1, axis=1, keepdims=True)
    return np.stack([e1, np.cross(axes, e1), axes], axis=2)


def depth_first(parents: Array) -> tuple[Array, Array]:
    """Return each body's place in depth-first order, and the bodies in that order."""
    n = len(parents)
    size = np.ones(n + 1, dtype=np.int64)
    for i in range(n - 1, -1, -1):
        size[parents[i]] += size[i]
    rank, free = np.empty(n, dtype=np.int64), np.zeros(n + 1, dtype=np.int64)
    for i in range(n):
        up = parents[i]
        rank[i] = free[up]
        free[up] += size[i]
        free[i] = rank[i] + 1
    order = np.empty(n, dtype=np.int64)
    order[rank] = np.arange(n)
    return rank, order


def places(parent: Array) -> tuple[Array, Array, int]:
    """Return where each body's children are gathered, which child comes first, and how many places it takes."""
    n = len(parent)
    slot, first = np.full(n, -1, dtype=np.int64), np.zeros(n, dtype=np.int8)
    free: list[int] = []
    count = 0
    for i in range(n - 1, -1, -1):
        up = parent[i]
        if up >= 0 and slot[up] < 0:
            if not free:
                free.append(count)
                count += 1
            slot[up] = free.pop()
            first[i] = 1
        if slot[i] >= 0:  # freed only now: the place that is read must not be written at once
            free.append(int(slot[i]))
    return slot, first, count


def _array(values: Any, shape: tuple[int, ...]) -> Array:
    """Return a stack of small arrays; an empty one keeps its shape."""
    return np.array(values, dtype=float).reshape(-1, *shape)


# ----------------------------------------------------------------------------------------------------------------------
# Arrays that do not change from call to call, handed to compiled code as one object.
#
# To hand over an array costs a tenth of a microsecond: sixty of them as much as forty bodies. A bundle is made once for
# each thread, and its fields are taken out inside.


class _Fields(types.StructRef):
    def preprocess_fields(self, fields: Any) -> Any:
        """Return the fields' types without the values that literals have."""
        return tuple((name, types.unliteral(kind)) for name, kind in fields)


@structref.register
class TreeType(_Fields):
    """The compiled type of a `TreeBundle`."""


@structref.register
class MotionType(_Fields):
    """The compiled type of a `MotionBundle`."""


@structref.register
class FrontType(_Fields):
    """The compiled type of a `FrontBundle`."""


class TreeBundle(structref.StructRefProxy):
    """Layout and memory of an open tree's forward dynamics."""


class MotionBundle(structref.StructRefProxy):
    """Layout and memory of the sweep outward."""


class FrontBundle(structref.StructRefProxy):
    """Layout, plan and memory of elimination by fronts."""


structref.define_proxy(TreeBundle, TreeType, ["layout", "still", "start", "memory"])
structref.define_proxy(MotionBundle, MotionType, ["layout", "still", "memory"])
structref.define_proxy(
    FrontBundle,
    FrontType,
    ["layout", "plan", "sizes", "rows", "limits", "memory", "stacks", "work", "rows_work", "room"],
)


@once
def tree_bundle(layout, still, start, memory):
    """Return (topology, gathering, C, pitch, inertia, armature), zeros, the ground's acceleration, (K, Y, A) in one."""
    return TreeBundle(layout, still, start, memory)


@once
def motion_bundle(layout, still, memory):
    """Return (topology, C, pitch, inertia), accelerations of zero, and (K, P, V, need) in one."""
    return MotionBundle(layout, still, memory)


@once
def front_bundle(layout, plan, sizes, rows, limits, memory, stacks, work, rows_work, room):
    """Return what `plain_answer` takes apart."""
    return FrontBundle(layout, plan, sizes, rows, limits, memory, stacks, work, rows_work, room)
