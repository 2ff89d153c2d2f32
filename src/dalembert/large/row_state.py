"""Matrices and products of constraint rows at a state."""

from __future__ import annotations

import threading
from functools import cached_property

import numpy as np

from dalembert.kernel.loops import fused_allocating, fused_steady
from dalembert.large import inward
from dalembert.large import inward as newton_euler
from dalembert.large.fronts.front_plan import closing_bodies
from dalembert.large.joints import inertia_in_world, subspace
from dalembert.large.large_tree import LargeTree, motion
from dalembert.large.layout import motion_bundle
from dalembert.large.outward import circular
from dalembert.large.residuals import joint_forces
from dalembert.large.row_kernels import LargeRows, RowValues
from dalembert.large.simd4 import first, padded, second, third
from dalembert.types import Array

# ----------------------------------------------------------------------------------------------------------------------
# Matrices of a large tree, where someone wants them in full: M by composite bodies, A by walking up from each row.
#
# Symbols: m, h, J mass, first moment and inertia of a body with all it carries, at its origin in world axes; moved by r
#
#     h' = h + m r        J' = J + 2 (h.r) 1 - h r^T - r h^T + m (r.r 1 - r r^T)
#
# M_ij = S_j^T (Ic_i S_i) for j on the way from i to the ground (Featherstone 2008, ch. 6). Cost: n times the depth.


@fused_allocating
def composites(parent, inertia, K):
    """Return m, h, J of every body with all it carries, (n, 10)."""
    comp = np.zeros((len(parent), 10))
    for i in range(len(parent) - 1, -1, -1):
        first_moment, Jx, Jy, Jz = inertia_in_world(i, inertia, K)
        # the body itself beside what its children have added
        c = comp[i]
        c[0] += inertia[i, 0]
        c[1] += first(first_moment)
        c[2] += second(first_moment)
        c[3] += third(first_moment)
        c[4] += first(Jx)
        c[5] += second(Jx)
        c[6] += third(Jx)
        c[7] += second(Jy)
        c[8] += third(Jy)
        c[9] += third(Jz)
        p = parent[i]
        if p < 0:
            continue
        # all of it about the parent's origin (Steiner)
        x, y, z = K[i, 9], K[i, 10], K[i, 11]
        m, a, b, e = c[0], c[1], c[2], c[3]
        up = comp[p]
        up[0] += m
        up[1] += a + m * x
        up[2] += b + m * y
        up[3] += e + m * z
        up[4] += c[4] + 2 * (b * y + e * z) + m * (y * y + z * z)
        up[5] += c[5] - a * y - b * x - m * x * y
        up[6] += c[6] - a * z - e * x - m * x * z
        up[7] += c[7] + 2 * (a * x + e * z) + m * (x * x + z * z)
        up[8] += c[8] - b * z - e * y - m * y * z
        up[9] += c[9] + 2 * (a * x + b * y) + m * (x * x + y * y)
    return comp


@fused_steady
def momentum(c, s, f):
    """Fill f (6,) with Ic S, of an inertia m, h, J (10,) and a motion (v, w)."""
    f[0] = c[0] * s[0] + s[4] * c[3] - s[5] * c[2]
    f[1] = c[0] * s[1] + s[5] * c[1] - s[3] * c[3]
    f[2] = c[0] * s[2] + s[3] * c[2] - s[4] * c[1]
    f[3] = c[4] * s[3] + c[5] * s[4] + c[6] * s[5] + c[2] * s[2] - c[3] * s[1]
    f[4] = c[5] * s[3] + c[7] * s[4] + c[8] * s[5] + c[3] * s[0] - c[1] * s[2]
    f[5] = c[6] * s[3] + c[8] * s[4] + c[9] * s[5] + c[1] * s[1] - c[2] * s[0]


@fused_allocating
def mass_matrix(topology, pitch, inertia, armature, K, M):
    """Fill M (nv, nv)."""
    parent, code, _, iv = topology
    comp = composites(parent, inertia, K)
    S, U, f = np.empty((6, 6)), np.empty((6, 6)), np.empty(6)
    M[:] = 0.0
    for i in range(len(parent)):
        count, c = subspace(i, code[i], pitch, K, S), comp[i]
        for k in range(count):
            momentum(c, S[k], f)
            row = M[iv[i] + k]
            walk(i, -1, f, topology, pitch, K, U, row)
            for j in range(iv[i] + k):
                M[j, iv[i] + k] = row[j]
            row[iv[i] + k] += armature[iv[i] + k]


@fused_allocating
def walk(i, end, f, topology, pitch, K, S, row):
    """Add S^T f of all joints from body i up to, not including, body `end`; f (6,) is moved along and used up."""
    parent, code, _, iv = topology
    while i != end:
        for c in range(subspace(i, code[i], pitch, K, S)):
            total = 0.0
            for d in range(6):
                total += S[c, d] * f[d]
            row[iv[i] + c] += total
        x, y, z = K[i, 9], K[i, 10], K[i, 11]
        f[3] += y * f[2] - z * f[1]
        f[4] += z * f[0] - x * f[2]
        f[5] += x * f[1] - y * f[0]
        i = parent[i]


@fused_allocating
def row_jacobian(topology, pitch, K, ends, closing, wrenches, A):
    """Fill A (m, nv): forces of rows walked up to the body that carries both ends (closing, n for the ground)."""
    n = len(topology[0])
    S, f = np.empty((6, 6)), np.empty(6)
    A[:] = 0.0
    for row in range(len(ends)):
        for end in range(2):
            if ends[row, end] >= 0:
                f[:] = wrenches[row, end]
                walk(ends[row, end], closing[row] if closing[row] < n else -1, f, topology, pitch, K, S, A[row])


# ----------------------------------------------------------------------------------------------------------------------
# Constraint rows of a large mechanism at a state: what they are, and A and A^T times vectors, which need no A.


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
        self.rows = LargeRows(tree.layout)
        self.room = Room(tree)

    @cached_property
    def ends(self) -> Array:
        """Bodies of both ends of every row, (m, 2); -1 where there is none."""
        bodies = np.full((self.rows.m, 2), -1, dtype=np.int64)
        ends = self.rows.touches.ends
        bodies[ends[:, 0], ends[:, 2]] = ends[:, 1]
        return bodies

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
