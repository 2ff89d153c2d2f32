"""From the ground to the leaves: poses, velocities and accelerations of all bodies, as a compiled loop.

Symbols, all in world axes: x, y, z the axes of a body's frame, r its origin from the parent's, w angular velocity,
a acceleration of its origin, alpha angular acceleration; s, o linear and angular velocity of the joint itself:

    w = w_p + o       alpha = alpha_p + w x o + S_o qdd
    a = a_p + alpha_p x r + w_p x (w_p x r + s) + w x s + S_s qdd

S is made of the child's own axes (`layout.py`), so that nothing else remains. World axes, but every body's own origin:
inertias then change their origin only on the way to the parent, and no lever is longer than a link.
"""

# ruff: noqa: SIM109 - comparisons, not a search in a tuple: these are the innermost branches

from __future__ import annotations

import numpy as np
from numba import njit

from dalembert.tree.large.layout import BALL, CIRCLE, FLYING, HINGE, PLANE, SCREW, SLIDER

MOTION = 21
"""Reals kept of a body: x, y, z (9), r (3), w (3), a (3), alpha (3)."""

STRAIGHTEN = 32
"""Axes are made orthogonal again at every so many bodies of a branch: rounding would add up in long chains."""

COMPILED = {"cache": True, "nogil": True, "error_model": "numpy", "fastmath": {"contract"}}


@njit(**COMPILED)
def outward(topology, C, pitch, q, sines, cosines, v, acc, start, K):
    """Fill K (n, 21) for a state q, v and joint accelerations acc; `start` (3,) is the ground's, minus gravity."""
    parent, code, iq, iv = topology
    for i in range(len(parent)):
        p = parent[i]
        kind = code[i]
        k, j = iv[i], iq[i]
        frame(i, p, C, K)
        c, s = 1.0, 0.0
        if kind == HINGE or kind == SCREW:
            c, s = cosines[j], sines[j]
        elif kind == CIRCLE:
            c, s = q[j], q[j + 1]
        elif kind == PLANE:
            slide(i, q[j], q[j + 1], 0.0, K)
            c, s = q[j + 2], q[j + 3]
        elif kind == FLYING:
            slide(i, q[j], q[j + 1], q[j + 2], K)
            turn_by(i, q[j + 3], q[j + 4], q[j + 5], q[j + 6], K)
        elif kind == BALL:
            turn_by(i, q[j], q[j + 1], q[j + 2], q[j + 3], K)
        elif kind == SLIDER:
            slide(i, 0.0, 0.0, q[j], K)
        if s != 0.0 or c != 1.0:
            for d in range(3):
                x, y = K[i, d], K[i, 3 + d]
                K[i, d] = c * x + s * y
                K[i, 3 + d] = c * y - s * x
        sx = sy = sz = ox = oy = oz = 0.0
        ax = ay = az = bx = by = bz = 0.0
        zx, zy, zz = K[i, 6], K[i, 7], K[i, 8]
        if kind == HINGE or kind == CIRCLE or kind == SCREW:
            ox, oy, oz = zx * v[k], zy * v[k], zz * v[k]
            bx, by, bz = zx * acc[k], zy * acc[k], zz * acc[k]
            if kind == SCREW:
                h = pitch[i]
                slide(i, 0.0, 0.0, h * q[j], K)
                sx, sy, sz = h * ox, h * oy, h * oz
                ax, ay, az = h * bx, h * by, h * bz
        elif kind == SLIDER:
            sx, sy, sz = zx * v[k], zy * v[k], zz * v[k]
            ax, ay, az = zx * acc[k], zy * acc[k], zz * acc[k]
        elif kind == BALL:
            ox, oy, oz = along(i, v[k], v[k + 1], v[k + 2], K)
            bx, by, bz = along(i, acc[k], acc[k + 1], acc[k + 2], K)
        elif kind == PLANE:
            sx, sy, sz = along(i, v[k], v[k + 1], 0.0, K)
            ax, ay, az = along(i, acc[k], acc[k + 1], 0.0, K)
            ox, oy, oz = along(i, 0.0, 0.0, v[k + 2], K)
            bx, by, bz = along(i, 0.0, 0.0, acc[k + 2], K)
        elif kind == FLYING:
            sx, sy, sz = along(i, v[k], v[k + 1], v[k + 2], K)
            ax, ay, az = along(i, acc[k], acc[k + 1], acc[k + 2], K)
            ox, oy, oz = along(i, v[k + 3], v[k + 4], v[k + 5], K)
            bx, by, bz = along(i, acc[k + 3], acc[k + 4], acc[k + 5], K)
        if p < 0:
            wx = wy = wz = dx = dy = dz = 0.0
            px, py, pz = start[0], start[1], start[2]
        else:
            wx, wy, wz = K[p, 12], K[p, 13], K[p, 14]
            px, py, pz = K[p, 15], K[p, 16], K[p, 17]
            dx, dy, dz = K[p, 18], K[p, 19], K[p, 20]
        rx, ry, rz = K[i, 9], K[i, 10], K[i, 11]
        tx, ty, tz = wy * rz - wz * ry + sx, wz * rx - wx * rz + sy, wx * ry - wy * rx + sz
        ux, uy, uz = wx + ox, wy + oy, wz + oz
        K[i, 12], K[i, 13], K[i, 14] = ux, uy, uz
        K[i, 15] = px + dy * rz - dz * ry + wy * tz - wz * ty + uy * sz - uz * sy + ax
        K[i, 16] = py + dz * rx - dx * rz + wz * tx - wx * tz + uz * sx - ux * sz + ay
        K[i, 17] = pz + dx * ry - dy * rx + wx * ty - wy * tx + ux * sy - uy * sx + az
        K[i, 18] = dx + uy * oz - uz * oy + bx
        K[i, 19] = dy + uz * ox - ux * oz + by
        K[i, 20] = dz + ux * oy - uy * ox + bz


@njit(inline="always")
def along(i, x, y, z, K):
    """Return a vector of a body's axes in world axes."""
    return (
        K[i, 0] * x + K[i, 3] * y + K[i, 6] * z,
        K[i, 1] * x + K[i, 4] * y + K[i, 7] * z,
        K[i, 2] * x + K[i, 5] * y + K[i, 8] * z,
    )


@njit(inline="always")
def slide(i, x, y, z, K):
    """Move a body's origin by a vector of its axes."""
    dx, dy, dz = along(i, x, y, z, K)
    K[i, 9] += dx
    K[i, 10] += dy
    K[i, 11] += dz


@njit(**COMPILED)
def turn_by(i, x, y, z, w, K):
    """Turn a body's axes by a unit quaternion of these axes."""
    for d in range(3):
        a, b, c = K[i, d], K[i, 3 + d], K[i, 6 + d]
        K[i, d] = a * (1 - 2 * (y * y + z * z)) + b * 2 * (x * y + z * w) + c * 2 * (x * z - y * w)
        K[i, 3 + d] = a * 2 * (x * y - z * w) + b * (1 - 2 * (x * x + z * z)) + c * 2 * (y * z + x * w)
        K[i, 6 + d] = a * 2 * (x * z + y * w) + b * 2 * (y * z - x * w) + c * (1 - 2 * (x * x + y * y))


@njit(inline="always")
def frame(i, p, C, K):
    """Set axes and origin of body i to those of its joint's frame on the parent."""
    if p < 0:
        for d in range(3):
            K[i, d], K[i, 3 + d], K[i, 6 + d] = C[i, 3 * d], C[i, 3 * d + 1], C[i, 3 * d + 2]
            K[i, 9 + d] = C[i, 9 + d]
    else:
        for d in range(3):
            x, y, z = K[p, d], K[p, 3 + d], K[p, 6 + d]
            K[i, d] = x * C[i, 0] + y * C[i, 3] + z * C[i, 6]
            K[i, 3 + d] = x * C[i, 1] + y * C[i, 4] + z * C[i, 7]
            K[i, 6 + d] = x * C[i, 2] + y * C[i, 5] + z * C[i, 8]
            K[i, 9 + d] = x * C[i, 9] + y * C[i, 10] + z * C[i, 11]
        if i % STRAIGHTEN == 0:
            straighten(i, K)


@njit(**COMPILED)
def straighten(i, K):
    """Make the axes orthonormal to rounding: one Newton step of the polar decomposition, R (3 - R^T R) / 2."""
    xx = yy = zz = xy = xz = yz = 0.0
    for d in range(3):
        a, b, c = K[i, d], K[i, 3 + d], K[i, 6 + d]
        xx += a * a
        yy += b * b
        zz += c * c
        xy += a * b
        xz += a * c
        yz += b * c
    for d in range(3):
        a, b, c = K[i, d], K[i, 3 + d], K[i, 6 + d]
        K[i, d] = 0.5 * (a * (3 - xx) - b * xy - c * xz)
        K[i, 3 + d] = 0.5 * (b * (3 - yy) - a * xy - c * yz)
        K[i, 6 + d] = 0.5 * (c * (3 - zz) - a * xz - b * yz)


@njit(**COMPILED)
def velocities(topology, pitch, v, K, V):
    """Fill V (n, 3) with the velocities of all origins: those of frames and springs need them, dynamics does not."""
    parent, code, _, iv = topology
    for i in range(len(parent)):
        p, kind, k = parent[i], code[i], iv[i]
        sx = sy = sz = 0.0
        if kind == SLIDER:
            sx, sy, sz = along(i, 0.0, 0.0, v[k], K)
        elif kind == SCREW:
            sx, sy, sz = along(i, 0.0, 0.0, pitch[i] * v[k], K)
        elif kind == PLANE:
            sx, sy, sz = along(i, v[k], v[k + 1], 0.0, K)
        elif kind == FLYING:
            sx, sy, sz = along(i, v[k], v[k + 1], v[k + 2], K)
        if p >= 0:
            wx, wy, wz, rx, ry, rz = K[p, 12], K[p, 13], K[p, 14], K[i, 9], K[i, 10], K[i, 11]
            sx += V[p, 0] + wy * rz - wz * ry
            sy += V[p, 1] + wz * rx - wx * rz
            sz += V[p, 2] + wx * ry - wy * rx
        V[i, 0], V[i, 1], V[i, 2] = sx, sy, sz


@njit(**COMPILED)
def positions(parent, K, P):
    """Fill P (n, 3) with the places of all origins in the world."""
    for i in range(len(parent)):
        p = parent[i]
        for d in range(3):
            P[i, d] = K[i, 9 + d] + (P[p, d] if p >= 0 else 0.0)


def circular(q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return sines and cosines of all coordinates, whichever are angles: one vector call each."""
    return np.sin(q), np.cos(q)
