"""One joint eliminated: articulated inertia without the joint's own motion, handed to the parent.

Symbols (Featherstone 2008, ch. 7), world axes, origin of the body: IA = [A B; B^T C] articulated inertia, p force that
the subtree needs at zero acceleration beyond its velocity-product one; S motion subspace, U = IA S, D = S^T U +
armature, u = tau - S^T p:

    Ia = IA - U D^-1 U^T        pa = p + U D^-1 u

and, r from the parent's origin to this one, [r] its cross product:

    A' = A,   B' = B - A [r],   C' = C - B^T [r] + [r] B',   n' = n + r x f

A gathering place holds 27 reals: A (xx xy xz yy yz zz), B row by row, C as A, p = (f, n).
"""

# ruff: noqa: SIM109 - comparisons, not a search in a tuple: these are the innermost branches

from __future__ import annotations

import numpy as np
from numba import njit

from dalembert.tree.large.layout import BALL, CIRCLE, FIXED, FLYING, HINGE, PLANE, SCREW
from dalembert.tree.large.outward import COMPILED

GATHERED = 27

PACKED = np.array(
    [
        [0, 1, 2, 6, 7, 8],
        [-1, 3, 4, 9, 10, 11],
        [-1, -1, 5, 12, 13, 14],
        [-1, -1, -1, 15, 16, 17],
        [-1, -1, -1, -1, 18, 19],
        [-1, -1, -1, -1, -1, 20],
    ]
)
"""Where an entry of the upper triangle stands among the 27."""


@njit(inline="always")
def rigid(i, inertia, K):
    """Return the 27 reals of body i alone: its inertia, and the force that its motion needs."""
    m = inertia[i, 0]
    xx, xy, xz, yx, yy, yz, zx, zy, zz = (
        K[i, 0], K[i, 3], K[i, 6], K[i, 1], K[i, 4], K[i, 7], K[i, 2], K[i, 5], K[i, 8]
    )  # fmt: skip
    hx = xx * inertia[i, 1] + xy * inertia[i, 2] + xz * inertia[i, 3]
    hy = yx * inertia[i, 1] + yy * inertia[i, 2] + yz * inertia[i, 3]
    hz = zx * inertia[i, 1] + zy * inertia[i, 2] + zz * inertia[i, 3]
    j0, j1, j2, j3, j4, j5 = (
        inertia[i, 4], inertia[i, 5], inertia[i, 6], inertia[i, 7], inertia[i, 8], inertia[i, 9]
    )  # fmt: skip
    ax, ay, az = xx * j0 + xy * j1 + xz * j2, xx * j1 + xy * j3 + xz * j4, xx * j2 + xy * j4 + xz * j5
    bx, by, bz = yx * j0 + yy * j1 + yz * j2, yx * j1 + yy * j3 + yz * j4, yx * j2 + yy * j4 + yz * j5
    cx, cy, cz = zx * j0 + zy * j1 + zz * j2, zx * j1 + zy * j3 + zz * j4, zx * j2 + zy * j4 + zz * j5
    Jxx, Jxy, Jxz = ax * xx + ay * xy + az * xz, ax * yx + ay * yy + az * yz, ax * zx + ay * zy + az * zz
    Jyy, Jyz = bx * yx + by * yy + bz * yz, bx * zx + by * zy + bz * zz
    Jzz = cx * zx + cy * zy + cz * zz
    wx, wy, wz, px, py, pz = K[i, 12], K[i, 13], K[i, 14], K[i, 15], K[i, 16], K[i, 17]
    dx, dy, dz = K[i, 18], K[i, 19], K[i, 20]
    tx, ty, tz = wy * hz - wz * hy, wz * hx - wx * hz, wx * hy - wy * hx
    lx, ly, lz = Jxx * wx + Jxy * wy + Jxz * wz, Jxy * wx + Jyy * wy + Jyz * wz, Jxz * wx + Jyz * wy + Jzz * wz
    f0 = m * px + dy * hz - dz * hy + wy * tz - wz * ty
    f1 = m * py + dz * hx - dx * hz + wz * tx - wx * tz
    f2 = m * pz + dx * hy - dy * hx + wx * ty - wy * tx
    n0 = Jxx * dx + Jxy * dy + Jxz * dz + wy * lz - wz * ly + hy * pz - hz * py
    n1 = Jxy * dx + Jyy * dy + Jyz * dz + wz * lx - wx * lz + hz * px - hx * pz
    n2 = Jxz * dx + Jyz * dy + Jzz * dz + wx * ly - wy * lx + hx * py - hy * px
    return (
        m, 0.0, 0.0, m, 0.0, m,
        0.0, hz, -hy, -hz, 0.0, hx, hy, -hx, 0.0,
        Jxx, Jxy, Jxz, Jyy, Jyz, Jzz,
        f0, f1, f2, n0, n1, n2,
    )  # fmt: skip


@njit(**COMPILED)
def body(i, inertia, K):
    """Return what `rigid` does, by a call: where time is not all, code is shorter."""
    return rigid(i, inertia, K)


@njit(inline="always")
def plus(W, T):
    """Return W + T."""
    return (
        W[0] + T[0], W[1] + T[1], W[2] + T[2], W[3] + T[3], W[4] + T[4], W[5] + T[5],
        W[6] + T[6], W[7] + T[7], W[8] + T[8], W[9] + T[9], W[10] + T[10], W[11] + T[11],
        W[12] + T[12], W[13] + T[13], W[14] + T[14], W[15] + T[15], W[16] + T[16], W[17] + T[17],
        W[18] + T[18], W[19] + T[19], W[20] + T[20], W[21] + T[21], W[22] + T[22], W[23] + T[23],
        W[24] + T[24], W[25] + T[25], W[26] + T[26],
    )  # fmt: skip


@njit(inline="always")
def relieved(W, f):
    """Return W less the force f (6,) that acts on the body from outside."""
    return (*W[:21], W[21] - f[0], W[22] - f[1], W[23] - f[2], W[24] - f[3], W[25] - f[4], W[26] - f[5])


@njit(inline="always")
def as_tuple(W):
    """Return an array of 27 as a tuple."""
    return (
        W[0], W[1], W[2], W[3], W[4], W[5], W[6], W[7], W[8], W[9], W[10], W[11], W[12], W[13],
        W[14], W[15], W[16], W[17], W[18], W[19], W[20], W[21], W[22], W[23], W[24], W[25], W[26],
    )  # fmt: skip


@njit(inline="always")
def hinge(z0, z1, z2, armature, tau, W, Y, at):
    """Eliminate a hinge about (z0, z1, z2) from W; U, 1/D, u go to Y[at:]. Return what is left, and D over trace C."""
    U0, U1, U2 = (
        W[6] * z0 + W[7] * z1 + W[8] * z2, W[9] * z0 + W[10] * z1 + W[11] * z2, W[12] * z0 + W[13] * z1 + W[14] * z2
    )  # fmt: skip
    U3, U4, U5 = (
        W[15] * z0 + W[16] * z1 + W[17] * z2, W[16] * z0 + W[18] * z1 + W[19] * z2, W[17] * z0 + W[19] * z1 + W[20] * z2
    )  # fmt: skip
    D = z0 * U3 + z1 * U4 + z2 * U5 + armature
    u = tau - z0 * W[24] - z1 * W[25] - z2 * W[26]
    ratio = D / (W[15] + W[18] + W[20] + armature)
    return subtract(U0, U1, U2, U3, U4, U5, 1.0 / D, u, W, Y, at), ratio


@njit(**COMPILED)
def slider(z0, z1, z2, h, turning, armature, tau, W, Y, at):
    """Eliminate S = [h z; turning z]: a slider (1, 0) or a screw (pitch, 1). Return D over what it is made of."""
    a, b = h, turning
    U0 = a * (W[0] * z0 + W[1] * z1 + W[2] * z2) + b * (W[6] * z0 + W[7] * z1 + W[8] * z2)
    U1 = a * (W[1] * z0 + W[3] * z1 + W[4] * z2) + b * (W[9] * z0 + W[10] * z1 + W[11] * z2)
    U2 = a * (W[2] * z0 + W[4] * z1 + W[5] * z2) + b * (W[12] * z0 + W[13] * z1 + W[14] * z2)
    U3 = a * (W[6] * z0 + W[9] * z1 + W[12] * z2) + b * (W[15] * z0 + W[16] * z1 + W[17] * z2)
    U4 = a * (W[7] * z0 + W[10] * z1 + W[13] * z2) + b * (W[16] * z0 + W[18] * z1 + W[19] * z2)
    U5 = a * (W[8] * z0 + W[11] * z1 + W[14] * z2) + b * (W[17] * z0 + W[19] * z1 + W[20] * z2)
    D = a * (z0 * U0 + z1 * U1 + z2 * U2) + b * (z0 * U3 + z1 * U4 + z2 * U5) + armature
    u = tau - a * (z0 * W[21] + z1 * W[22] + z2 * W[23]) - b * (z0 * W[24] + z1 * W[25] + z2 * W[26])
    ratio = D / (a * a * (W[0] + W[3] + W[5]) + b * b * (W[15] + W[18] + W[20]) + armature)
    left = subtract(U0, U1, U2, U3, U4, U5, 1.0 / D, u, W, Y, at)
    for d in range(GATHERED):
        W[d] = left[d]
    return ratio


@njit(inline="always")
def subtract(U0, U1, U2, U3, U4, U5, d, u, W, Y, at):
    """Return IA - U d U^T, p + U d u; keep U, d, u."""
    Y[at], Y[at + 1], Y[at + 2], Y[at + 3], Y[at + 4], Y[at + 5] = U0, U1, U2, U3, U4, U5
    Y[at + 6], Y[at + 7] = d, u
    V0, V1, V2, V3, V4, V5 = d * U0, d * U1, d * U2, d * U3, d * U4, d * U5
    return (
        W[0] - U0 * V0, W[1] - U0 * V1, W[2] - U0 * V2, W[3] - U1 * V1, W[4] - U1 * V2,
        W[5] - U2 * V2, W[6] - U0 * V3, W[7] - U0 * V4, W[8] - U0 * V5, W[9] - U1 * V3,
        W[10] - U1 * V4, W[11] - U1 * V5, W[12] - U2 * V3, W[13] - U2 * V4, W[14] - U2 * V5,
        W[15] - U3 * V3, W[16] - U3 * V4, W[17] - U3 * V5, W[18] - U4 * V4, W[19] - U4 * V5,
        W[20] - U5 * V5, W[21] + V0 * u, W[22] + V1 * u, W[23] + V2 * u, W[24] + V3 * u,
        W[25] + V4 * u, W[26] + V5 * u,
    )  # fmt: skip


@njit(inline="always")
def hand_over(r0, r1, r2, W, first, T):
    """Add W, moved to the parent's origin, to the parent's gathering place T (27,); set it for a first child."""
    A0, A1, A2, A3, A4, A5 = W[0], W[1], W[2], W[3], W[4], W[5]
    # B' = B - A [r]: the rows of A [r] are the rows of A, crossed with r
    B0, B1, B2 = W[6] - (A1 * r2 - A2 * r1), W[7] - (A2 * r0 - A0 * r2), W[8] - (A0 * r1 - A1 * r0)
    B3, B4, B5 = W[9] - (A3 * r2 - A4 * r1), W[10] - (A4 * r0 - A1 * r2), W[11] - (A1 * r1 - A3 * r0)
    B6, B7, B8 = W[12] - (A4 * r2 - A5 * r1), W[13] - (A5 * r0 - A2 * r2), W[14] - (A2 * r1 - A4 * r0)
    C0 = W[15] - (W[9] * r2 - W[12] * r1) + r1 * B6 - r2 * B3
    C1 = W[16] - (W[12] * r0 - W[6] * r2) + r1 * B7 - r2 * B4
    C2 = W[17] - (W[6] * r1 - W[9] * r0) + r1 * B8 - r2 * B5
    C3 = W[18] - (W[13] * r0 - W[7] * r2) + r2 * B1 - r0 * B7
    C4 = W[19] - (W[7] * r1 - W[10] * r0) + r2 * B2 - r0 * B8
    C5 = W[20] - (W[8] * r1 - W[11] * r0) + r0 * B5 - r1 * B2
    f0, f1, f2 = W[21], W[22], W[23]
    n0, n1, n2 = W[24] + r1 * f2 - r2 * f1, W[25] + r2 * f0 - r0 * f2, W[26] + r0 * f1 - r1 * f0
    if first:
        T[0], T[1], T[2], T[3], T[4], T[5] = A0, A1, A2, A3, A4, A5
        T[6], T[7], T[8], T[9], T[10], T[11], T[12], T[13], T[14] = B0, B1, B2, B3, B4, B5, B6, B7, B8
        T[15], T[16], T[17], T[18], T[19], T[20] = C0, C1, C2, C3, C4, C5
        T[21], T[22], T[23], T[24], T[25], T[26] = f0, f1, f2, n0, n1, n2
    else:
        T[0] += A0
        T[1] += A1
        T[2] += A2
        T[3] += A3
        T[4] += A4
        T[5] += A5
        T[6] += B0
        T[7] += B1
        T[8] += B2
        T[9] += B3
        T[10] += B4
        T[11] += B5
        T[12] += B6
        T[13] += B7
        T[14] += B8
        T[15] += C0
        T[16] += C1
        T[17] += C2
        T[18] += C3
        T[19] += C4
        T[20] += C5
        T[21] += f0
        T[22] += f1
        T[23] += f2
        T[24] += n0
        T[25] += n1
        T[26] += n2


@njit(**COMPILED)
def other(i, kind, k, pitch, armature, tau, K, W, Y, at, S):
    """Eliminate a joint that is no hinge from the array W (27,); return its least pivot over its trace."""
    if kind == FIXED:
        return 1.0
    if kind == BALL or kind == PLANE or kind == FLYING:
        return several(i, kind, k, pitch, armature, tau, K, W, Y, at, S)
    z0, z1, z2 = K[i, 6], K[i, 7], K[i, 8]
    if kind == SCREW:
        return slider(z0, z1, z2, pitch[i], 1.0, armature[k], tau[k], W, Y, at)
    return slider(z0, z1, z2, 1.0, 0.0, armature[k], tau[k], W, Y, at)


@njit(**COMPILED)
def subspace(i, kind, pitch, K, S):
    """Fill S (6, 6) with the motion subspace, column by column as rows; return how many there are."""
    S[:] = 0.0
    if kind == FIXED:
        return 0
    if kind == BALL or kind == FLYING:
        linear = 3 if kind == FLYING else 0
        for d in range(3):
            for e in range(3):
                if linear:
                    S[d, e] = K[i, 3 * d + e]
                S[linear + d, 3 + e] = K[i, 3 * d + e]
        return 3 + linear
    if kind == PLANE:
        for e in range(3):
            S[0, e], S[1, e], S[2, 3 + e] = K[i, e], K[i, 3 + e], K[i, 6 + e]
        return 3
    turning = kind == HINGE or kind == CIRCLE or kind == SCREW
    h = pitch[i] if kind == SCREW else 0.0 if turning else 1.0
    for e in range(3):
        S[0, e] = h * K[i, 6 + e]
        if turning:
            S[0, 3 + e] = K[i, 6 + e]
    return 1


@njit(**COMPILED)
def several(i, kind, k, pitch, armature, tau, K, W, Y, at, S):
    """Eliminate a joint with several velocities: D by Cholesky, then as `hinge`."""
    count = subspace(i, kind, pitch, K, S)
    U, D, u = Y[at : at + 6 * count], Y[at + 6 * count : at + 6 * count + count * count], at + 6 * count + count * count
    for c in range(count):
        times(W, S[c], U[6 * c : 6 * c + 6])
    ratio = invert(U, S, armature[k : k + count], count, D)
    for c in range(count):
        force = tau[k + c]
        for d in range(6):
            force -= S[c, d] * W[21 + d]
        Y[u + c] = force
    for c in range(count):
        for e in range(count):
            d = D[c * count + e]
            for a in range(6):
                x = U[6 * c + a] * d
                W[21 + a] += x * Y[u + e]
                for b in range(6):
                    place = PACKED[a, b]
                    if place >= 0:
                        W[place] -= x * U[6 * e + b]
    return ratio


@njit(**COMPILED)
def times(W, s, U):
    """U = IA s for IA in W (27,)."""
    for a in range(6):
        total = 0.0
        for b in range(6):
            place = PACKED[a, b] if PACKED[a, b] >= 0 else PACKED[b, a]
            total += W[place] * s[b]
        U[a] = total


@njit(**COMPILED)
def invert(U, S, armature, count, D):
    """Fill D (count^2,) with (S^T U + armature)^-1 by Gauss-Jordan; return the least pivot over the largest entry."""
    least, largest = np.inf, 0.0
    for c in range(count):
        for e in range(count):
            total = armature[c] if c == e else 0.0
            for d in range(6):
                total += S[c, d] * U[6 * e + d]
            D[c * count + e] = total
        largest = max(largest, D[c * count + c])
    for c in range(count):
        pivot = D[c * count + c]
        if not pivot >= least:
            least = pivot
        D[c * count + c] = 1.0
        for e in range(count):
            D[c * count + e] /= pivot
        for g in range(count):
            if g != c:
                factor = D[g * count + c]
                D[g * count + c] = 0.0
                for e in range(count):
                    D[g * count + e] -= factor * D[c * count + e]
    return least / largest


@njit(**COMPILED)
def subspaces(topology, pitch, K, S):
    """Fill S (nv, 6) with the motion subspaces of all joints, one row per velocity."""
    parent, code, _, iv = topology
    block = np.empty((6, 6))
    for i in range(len(parent)):
        for c in range(subspace(i, code[i], pitch, K, block)):
            S[iv[i] + c] = block[c]
