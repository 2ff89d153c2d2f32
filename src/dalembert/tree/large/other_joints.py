"""Joints that are not hinges, eliminated from an articulated inertia: sliders, screws, several velocities at once.

Symbols as in `articulate.py`. Here an inertia is 27 reals in memory: A (xx xy xz yy yz zz), B row by row, C as A, then
the force p = (f, n).
"""

# ruff: noqa: SIM109 - comparisons, not a search in a tuple: these are the innermost branches

from __future__ import annotations

import numpy as np

from dalembert.kernel.loops import loop
from dalembert.tree.large.layout import BALL, CIRCLE, FIXED, FLYING, HINGE, PLANE, SCREW
from dalembert.tree.large.outward import COMPILED, LOOP

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


@loop(**LOOP)
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
    Y[at], Y[at + 1], Y[at + 2], Y[at + 3], Y[at + 4], Y[at + 5] = U0, U1, U2, U3, U4, U5
    Y[at + 6], Y[at + 7] = 1.0 / D, u
    reduce(Y[at : at + 6], Y[at : at + 6], 1.0 / D, u, W)
    return ratio


@loop(**LOOP)
def reduce(U, V, d, u, W):
    """Take U d V^T from the inertia and add U d u to the force."""
    for a in range(6):
        x = U[a] * d
        W[21 + a] += x * u
        for b in range(6):
            place = PACKED[a, b]
            if place >= 0:
                W[place] -= x * V[b]


@loop(**LOOP)
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


@loop(**LOOP)
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


@loop(**LOOP)
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
            reduce(U[6 * c : 6 * c + 6], U[6 * e : 6 * e + 6], D[c * count + e], Y[u + e], W)
    return ratio


@loop(**LOOP)
def times(W, s, U):
    """U = IA s for IA in W (27,)."""
    for a in range(6):
        total = 0.0
        for b in range(6):
            place = PACKED[a, b] if PACKED[a, b] >= 0 else PACKED[b, a]
            total += W[place] * s[b]
        U[a] = total


@loop(**LOOP)
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


@loop(**COMPILED)
def subspaces(topology, pitch, K, S):
    """Fill S (nv, 6) with the motion subspaces of all joints, one row per velocity."""
    parent, code, _, iv = topology
    block = np.empty((6, 6))
    for i in range(len(parent)):
        for c in range(subspace(i, code[i], pitch, K, block)):
            S[iv[i] + c] = block[c]
