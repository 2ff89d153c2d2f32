"""Constraint rows of a large mechanism at a state: what they are, and A and A^T times vectors, which need no A."""

from __future__ import annotations

import threading
from functools import cached_property

import numpy as np

from dalembert.tree.large import inward, newton_euler
from dalembert.tree.large.balance import joint_forces
from dalembert.tree.large.bundles import motion_bundle
from dalembert.tree.large.composite import row_jacobian
from dalembert.tree.large.lanes import padded
from dalembert.tree.large.meeting import closing_bodies
from dalembert.tree.large.motion import motion
from dalembert.tree.large.outward import circular
from dalembert.tree.large.rows import Rows, RowValues
from dalembert.tree.large.tree import LargeTree

Array = np.ndarray


class Room(threading.local):
    """Arrays to work in, made once for each thread: fresh ones cost more than what is done in them.

    Places P, velocities V of origins, forces `need` that bodies need; forces of rows on bodies, and of couplings on
    joints, with what is `left` of a joint's balance.
    """

    def __init__(self, tree: LargeTree) -> None:
        layout, memory = tree.layout, tree.memory
        n, nv = layout.n, layout.mechanism.nv
        self.P, self.V, self.need = padded(n, 3), padded(n, 3), padded(n, 6)
        self.forces, self.coupled, self.left = padded(n, 12).reshape(-1, 2, 6), np.zeros(nv), np.zeros(nv)
        self.bundle = motion_bundle(
            (layout.topology, layout.C, layout.pitch, layout.inertia),
            memory.still,
            (memory.K, self.P, self.V, self.need),
        )


class RowState:
    """The rows of a mechanism, one state at a time, which stays in memory until the next."""

    def __init__(self, tree: LargeTree) -> None:
        self.tree, self.layout = tree, tree.layout
        self.rows = Rows(tree.layout)
        self.room = Room(tree)

    @cached_property
    def ends(self) -> Array:
        """Bodies of both ends of every row, (m, 2); -1 where there is none."""
        found = np.full((self.rows.m, 2), -1, dtype=np.int64)
        ends = self.rows.touches.ends
        found[ends[:, 0], ends[:, 2]] = ends[:, 1]
        return found

    def moved(self, q: Array, v: Array, t: float, gravity: bool = True) -> RowValues:
        """Move to a state and return the rows there; `room.need` gets what bodies need for their motion."""
        room = self.room
        motion(room.bundle, q, *circular(q), v, self.tree.lift if gravity else np.zeros(3))
        return self.rows.at(self.tree.memory.K, room.P, room.V, q, v, t)

    def still(self, q: Array, t: float) -> RowValues:
        """Return the rows at a configuration at rest, without gravity, which is in memory from then on."""
        return self.moved(q, self.tree.memory.still, t, gravity=False)

    def pull(self, values: RowValues, lam: Array) -> Array:
        """Return A^T lam, (nv,)."""
        layout, memory, rows = self.layout, self.tree.memory, self.rows
        forces, pulled = padded(layout.n, 12).reshape(-1, 2, 6), np.zeros(layout.mechanism.nv)
        joint_forces(self.ends, values.wrenches, lam, lam, memory.A, forces, np.empty((2, rows.m)))
        newton_euler.transmitted(
            layout.topology, layout.gathering, layout.pitch, forces[:, 0].copy(), memory.K, memory.T, pulled
        )
        np.add.at(pulled, rows.place, rows.factor * lam[rows.row])
        return pulled

    def move_rows(self, values: RowValues, a: Array) -> Array:
        """Return A a, (m,)."""
        layout, memory, rows = self.layout, self.tree.memory, self.rows
        inward.spread(layout.topology, layout.pitch, memory.K, a, memory.A)
        still, gap, forces = np.zeros(rows.m), np.empty((2, rows.m)), padded(layout.n, 12).reshape(-1, 2, 6)
        joint_forces(self.ends, values.wrenches, still, still, memory.A, forces, gap)
        moved = -gap[0]
        np.add.at(moved, rows.row, rows.factor * a[rows.place])
        return moved

    def furthest(self, q: Array, v: Array, t: float, a: Array) -> str:
        """Return in words which rows accelerations a miss by most."""
        values = self.moved(q, v, t)
        missed = np.abs(self.move_rows(values, a) + values.drift)
        names = self.layout.mechanism.names
        worst = [f"{names[i]!r} ({missed[i]:.2g})" for i in np.argsort(-missed)[:3]]
        return f"the rows furthest from being met are {', '.join(worst)}"

    def jacobian(self, q: Array, t: float) -> Array:
        """Return A (m, nv), dense."""
        layout, memory, rows = self.layout, self.tree.memory, self.rows
        A = np.zeros((rows.m, layout.mechanism.nv))
        wrenches = self.moved(q, memory.still, t).wrenches
        closing = closing_bodies(layout.parent, rows.touches)
        row_jacobian(layout.topology, layout.pitch, memory.K, self.ends, closing, wrenches, A)
        np.add.at(A, (rows.row, rows.place), rows.factor)
        return A
