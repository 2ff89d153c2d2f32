# ruff: noqa: SIM109 - comparisons, not a search in a tuple: these are the innermost branches
"""The outward pass: poses, velocities and accelerations of all bodies and frames."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np

from dalembert.kernel import Kernel
from dalembert.kernel.loops import fused_steady, pasted
from dalembert.large.layout import BALL, CIRCLE, FLYING, HINGE, PLANE, SCREW, SLIDER, Layout
from dalembert.large.simd4 import along_x, along_y, along_z, cross, last_and_three, load, nothing, padded, store, total
from dalembert.model.mechanism.placement import IDENTITY, Placement
from dalembert.types import Array

# ----------------------------------------------------------------------------------------------------------------------
# From the ground to the leaves: poses, velocities and accelerations of all bodies, as a compiled loop.
#
# Symbols, all in world axes: x, y, z the axes of a body's frame, r its origin from the parent's, w angular velocity,
# a acceleration of its origin, b angular acceleration; s, o linear and angular velocity of the joint itself:
#
#     w = w_p + o       b = b_p + w x o + S_o qdd
#     a = a_p + b_p x r + w_p x (w_p x r + s) + w x s + S_s qdd
#
# S is made of the child's own axes (`layout.py`), so that nothing else remains. World axes, but every body's own
# origin: inertias then change their origin only on the way to the parent, and no lever is longer than a link.


MOTION = 21
"""Reals kept of a body: x, y, z (9), r (3), w (3), a (3), b (3)."""

STRAIGHTEN = 32
"""Axes are made orthogonal again at every so many bodies of a branch: rounding would add up in long chains."""


@fused_steady
def outward(topology, C, pitch, q, sines, cosines, v, acc, start, K):
    """Fill K (n, 21) for a state q, v and joint accelerations acc; `start` (3,) is the ground's, minus gravity."""
    outward_between(0, len(topology[0]), topology, C, pitch, q, sines, cosines, v, acc, start, K)


@fused_steady
def outward_between(begin, end, topology, C, pitch, q, sines, cosines, v, acc, start, K):
    """Fill K for bodies begin, ..., end - 1, whose parents are among them or are there already.

    What a body's only or first child needs of it stays in registers.
    """
    parent, code, iq, iv = topology
    x, y, z, w, a, b = along_x(), along_y(), along_z(), nothing(), nothing(), nothing()
    ground = start[0] * x + start[1] * y + start[2] * z
    if begin < end and parent[begin] >= 0:
        x, y, z, _, w, a, b = recalled(parent[begin], K)
    for i in range(begin, end):
        p, kind, k, j, row = parent[i], code[i], iv[i], iq[i], MOTION * i
        # the parent's motion: the ground's, in registers from the body before, or from memory
        if p < 0:
            x, y, z, w, a, b = along_x(), along_y(), along_z(), nothing(), ground, nothing()
        elif p != i - 1:
            x, y, z, _, w, a, b = recalled(p, K)
        # the joint's place on the parent: r, and its axes in the world
        r = C[i, 9] * x + C[i, 10] * y + C[i, 11] * z
        x, y, z = (
            C[i, 0] * x + C[i, 3] * y + C[i, 6] * z,
            C[i, 1] * x + C[i, 4] * y + C[i, 7] * z,
            C[i, 2] * x + C[i, 5] * y + C[i, 8] * z,
        )
        if i % STRAIGHTEN == 0:
            x, y, z = straightened(x, y, z)
        # the joint's own motion: o, s, and the body's w, a, b
        if kind == HINGE or kind == CIRCLE:
            cosine, sine = (cosines[j], sines[j]) if kind == HINGE else (q[j], q[j + 1])
            x, y = cosine * x + sine * y, cosine * y - sine * x
            o = v[k] * z
            a = a + cross(b, r) + cross(w, cross(w, r))
            b = b + cross(w, o) + acc[k] * z
            w = w + o
        else:
            x, y, z, r = placed(kind, j, pitch[i], q, sines, cosines, x, y, z, r)
            s, o = along(kind, k, pitch[i], v, x, y, z)
            more_a, more_b = along(kind, k, pitch[i], acc, x, y, z)
            a = a + cross(b, r) + cross(w, cross(w, r) + s) + cross(w + o, s) + more_a
            b = b + cross(w, o) + more_b
            w = w + o
        # x, y, z, r, w, a, b; each store overwrites the fourth entry of the one before
        store(K, row, x)
        store(K, row + 3, y)
        store(K, row + 6, z)
        store(K, row + 9, r)
        store(K, row + 12, w)
        store(K, row + 15, a)
        store(K, row + 17, last_and_three(a, b))


@pasted
def recalled(i, K):
    """Return what is kept of a body: x, y, z, r, w, a, b."""
    at = MOTION * i
    return (
        load(K, at), load(K, at + 3), load(K, at + 6), load(K, at + 9), load(K, at + 12), load(K, at + 15),
        load(K, at + 18),
    )  # fmt: skip


@fused_steady
def placed(kind, j, h, q, sines, cosines, x, y, z, r):
    """Return the axes and origin of a body behind its joint; h is the pitch of a screw."""
    if kind == PLANE:
        r = r + q[j] * x + q[j + 1] * y
        x, y = q[j + 2] * x + q[j + 3] * y, q[j + 2] * y - q[j + 3] * x
    elif kind == FLYING:
        r = r + q[j] * x + q[j + 1] * y + q[j + 2] * z
        x, y, z = turned(q[j + 3], q[j + 4], q[j + 5], q[j + 6], x, y, z)
    elif kind == BALL:
        x, y, z = turned(q[j], q[j + 1], q[j + 2], q[j + 3], x, y, z)
    elif kind == SLIDER:
        r = r + q[j] * z
    elif kind == SCREW:
        r = r + (h * q[j]) * z
        x, y = cosines[j] * x + sines[j] * y, cosines[j] * y - sines[j] * x
    return x, y, z, r


@fused_steady
def along(kind, k, h, v, x, y, z):
    """Return S v of a joint, linear and angular, for velocities v[k], v[k + 1], ..."""
    none = nothing()
    if kind == HINGE or kind == CIRCLE:
        return none, v[k] * z
    if kind == SLIDER:
        return v[k] * z, none
    if kind == SCREW:
        return (h * v[k]) * z, v[k] * z
    if kind == PLANE:
        return v[k] * x + v[k + 1] * y, v[k + 2] * z
    if kind == BALL:
        return none, v[k] * x + v[k + 1] * y + v[k + 2] * z
    if kind == FLYING:
        return v[k] * x + v[k + 1] * y + v[k + 2] * z, v[k + 3] * x + v[k + 4] * y + v[k + 5] * z
    return none, none


@fused_steady
def turned(a, b, c, d, x, y, z):
    """Return axes turned by a unit quaternion of these axes, its real part last."""
    return (
        (1 - 2 * (b * b + c * c)) * x + (2 * (a * b + c * d)) * y + (2 * (a * c - b * d)) * z,
        (2 * (a * b - c * d)) * x + (1 - 2 * (a * a + c * c)) * y + (2 * (b * c + a * d)) * z,
        (2 * (a * c + b * d)) * x + (2 * (b * c - a * d)) * y + (1 - 2 * (a * a + b * b)) * z,
    )


@fused_steady
def straightened(x, y, z):
    """Return axes that are orthonormal to rounding: one Newton step of the polar decomposition, R (3 - R^T R) / 2."""
    xy, xz, yz = 0.5 * total(x * y), 0.5 * total(x * z), 0.5 * total(y * z)
    return (
        (1.5 - 0.5 * total(x * x)) * x - xy * y - xz * z,
        (1.5 - 0.5 * total(y * y)) * y - xy * x - yz * z,
        (1.5 - 0.5 * total(z * z)) * z - xz * x - yz * y,
    )


@fused_steady
def velocities(topology, pitch, v, K, V):
    """Fill V (n, 3) with the velocities of all origins: those of frames and springs need them, dynamics does not."""
    velocities_between(0, len(topology[0]), topology, pitch, v, K, V)


@fused_steady
def velocities_between(begin, end, topology, pitch, v, K, V):
    """Fill V for bodies begin, ..., end - 1, whose parents are among them or are there already."""
    parent, code, _, iv = topology
    last = load(V, 3 * parent[begin]) if begin < end and parent[begin] >= 0 else nothing()
    for i in range(begin, end):
        p, at = parent[i], MOTION * i
        if p < 0:
            last = nothing()
        else:
            if p != i - 1:
                last = load(V, 3 * p)
            last = last + cross(load(K, MOTION * p + 12), load(K, at + 9))
        if code[i] != HINGE and code[i] != CIRCLE:
            last = last + along(code[i], iv[i], pitch[i], v, load(K, at), load(K, at + 3), load(K, at + 6))[0]
        store(V, 3 * i, last)


@fused_steady
def positions(parent, K, P):
    """Fill P (n, 3) with the places of all origins in the world."""
    positions_between(0, len(parent), parent, K, P)


@fused_steady
def positions_between(begin, end, parent, K, P):
    """Fill P for bodies begin, ..., end - 1, whose parents are among them or are there already."""
    last = load(P, 3 * parent[begin]) if begin < end and parent[begin] >= 0 else nothing()
    for i in range(begin, end):
        p = parent[i]
        if p < 0:
            last = nothing()
        elif p != i - 1:
            last = load(P, 3 * p)
        last = last + load(K, MOTION * i + 9)
        store(P, 3 * i, last)


def circular(q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return sines and cosines of all coordinates, whichever are angles, by a kernel whose batch they are."""
    sines, cosines = _circular_kernel()(q[:, None])
    return sines.ravel(), cosines.ravel()


@cache
def _circular_kernel() -> Kernel:
    def build() -> Any:
        import casadi as ca

        x = ca.SX.sym("x")
        return ca.Function("circular", [x], [ca.sin(x), ca.cos(x)], ["x"], ["sine", "cosine"])

    return Kernel.cached(("sine and cosine of a batch",), build)


# ----------------------------------------------------------------------------------------------------------------------
# Frames of a large mechanism in motion, many at once: poses, velocities, accelerations in world axes.


@dataclass(frozen=True, eq=False)
class Sites:
    """Constant places on bodies: row of the body (k,), -1 for the ground; pose there (k, 3, 3), (k, 3)."""

    row: Array
    rotation: Array
    position: Array

    @classmethod
    def of(cls, layout: Layout, ends: Any) -> Sites:
        """Return the sites of pairs (name of a frame, placement on it)."""
        mechanism = layout.mechanism
        ends = [(mechanism.frame(name), placement) for name, placement in ends]
        body = np.array([mechanism.body_index(frame.body) for frame, _ in ends], dtype=int)
        within = [
            frame.placement if placement is IDENTITY else frame.placement @ placement for frame, placement in ends
        ]
        R = np.array([x.rotation for x in within]).reshape(-1, 3, 3)
        p = np.array([x.position for x in within]).reshape(-1, 3)
        on = body >= 0
        p[on] = np.einsum("nij,nj->ni", layout.place_R[body[on]], p[on]) + layout.place_p[body[on]]
        R[on] = layout.place_R[body[on]] @ R[on]
        return cls(np.where(on, layout.row[body], -1) if len(layout.row) else body, R, p)


@dataclass(frozen=True, eq=False)
class Moving:
    """Sites in motion: where they are, R (k, 3, 3), position, arm from the body's origin, velocity, acceleration."""

    row: Array
    rotation: Array
    position: Array
    arm: Array
    velocity: Array
    angular: Array
    acceleration: Array
    turning: Array


class Frames:
    """The motion that `outward` has found (K), as seen at any place; gravity is taken out of accelerations."""

    def __init__(self, layout: Layout, K: Array, v: Array) -> None:
        self.layout, self.K, self.v = layout, K, v

    @cached_property
    def origins(self) -> Array:
        """Of all rows in the world, (n, 3)."""
        P = padded(self.layout.n, 3)
        positions(self.layout.parent, self.K, P)
        return P

    @cached_property
    def speeds(self) -> Array:
        """Velocities of the origins, (n, 3)."""
        V = padded(self.layout.n, 3)
        velocities(self.layout.topology, self.layout.pitch, self.v, self.K, V)
        return V

    def axes(self, rows: Array) -> Array:
        """Return rotations of bodies, (k, 3, 3)."""
        return np.swapaxes(self.K[rows, :9].reshape(-1, 3, 3), 1, 2)

    def moments(self, rows: Array) -> Array:
        """Return first moments about the bodies' origins, world axes, (k, 3)."""
        return np.einsum("nij,nj->ni", self.axes(rows), self.layout.inertia[rows, 1:4])

    def places(self, names: Any) -> Moving:
        """Return frames by name in motion."""
        return self.at(Sites.of(self.layout, [(name, IDENTITY) for name in names]))

    def place(self, name: str, placement: Placement = IDENTITY) -> Moving:
        """Return one frame in motion, arrays of length one."""
        return self.at(Sites.of(self.layout, [(name, placement)]))

    def at(self, sites: Sites) -> Moving:
        """Return sites in motion; the ground stands still."""
        row, on = sites.row, sites.row >= 0
        R, p = sites.rotation.copy(), sites.position.copy()
        arm, v, w, a, wd = (np.zeros_like(p) for _ in range(5))
        k = row[on]
        axes = self.axes(k)
        arm[on] = np.einsum("nij,nj->ni", axes, sites.position[on])
        R[on] = axes @ sites.rotation[on]
        p[on] = self.origins[k] + arm[on]
        w[on], wd[on] = self.K[k, 12:15], self.K[k, 18:21]
        v[on] = self.speeds[k] + np.cross(w[on], arm[on])
        a[on] = self.K[k, 15:18] + self.layout.gravity + np.cross(wd[on], arm[on])
        a[on] += np.cross(w[on], np.cross(w[on], arm[on]))
        return Moving(row, R, p, arm, v, w, a, wd)
