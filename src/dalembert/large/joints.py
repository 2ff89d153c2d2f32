# ruff: noqa: SIM109 - comparisons, not a search in a tuple: these are the innermost branches
"""Joints eliminated from an articulated inertia, kind by kind."""

from __future__ import annotations

import numpy as np

from dalembert.kernel.loops import fused_allocating, fused_steady, pasted
from dalembert.large.layout import BALL, CIRCLE, FIXED, FLYING, HINGE, PLANE, SCREW
from dalembert.large.outward import MOTION
from dalembert.large.simd4 import (
    WIDTH,
    all_first,
    all_second,
    all_third,
    along_x,
    along_y,
    along_z,
    cross,
    first,
    lanes,
    load,
    nothing,
    second,
    shuffle,
    store,
    third,
    three,
    total,
    transposed,
)

# ----------------------------------------------------------------------------------------------------------------------
# Joints that are not hinges, eliminated from an articulated inertia: sliders, screws, several velocities at once.
#
# Symbols as in `layout.py`. Here an inertia is 27 reals in memory: A (xx xy xz yy yz zz), B row by row, C as A,
# then the force p = (f, n).


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


@fused_steady
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


@fused_steady
def reduce(U, V, d, u, W):
    """Take U d V^T from the inertia and add U d u to the force."""
    for a in range(6):
        x = U[a] * d
        W[21 + a] += x * u
        for b in range(6):
            place = PACKED[a, b]
            if place >= 0:
                W[place] -= x * V[b]


@fused_steady
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


@fused_steady
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


@fused_steady
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


@fused_steady
def times(W, s, U):
    """U = IA s for IA in W (27,)."""
    for a in range(6):
        total = 0.0
        for b in range(6):
            place = PACKED[a, b] if PACKED[a, b] >= 0 else PACKED[b, a]
            total += W[place] * s[b]
        U[a] = total


@fused_steady
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


@fused_allocating
def subspaces(topology, pitch, K, S):
    """Fill S (nv, 6) with the motion subspaces of all joints, one row per velocity."""
    parent, code, _, iv = topology
    block = np.empty((6, 6))
    for i in range(len(parent)):
        for c in range(subspace(i, code[i], pitch, K, block)):
            S[iv[i] + c] = block[c]


# ----------------------------------------------------------------------------------------------------------------------
# One joint eliminated: articulated inertia without the joint's own motion, moved to the parent's origin.
#
# Symbols (Featherstone 2008, ch. 7), world axes, origin of the body: IA = [A B; B^T C] articulated inertia, p = (f, n)
# force and moment that the subtree needs at zero acceleration beyond its velocity-product one; S motion subspace, U =
# IA S, D = S^T U + armature, u = tau - S^T p:
#
#     Ia = IA - U D^-1 U^T        pa = p + U D^-1 u
#
# and, r from the parent's origin to this one, [r] its cross product:
#
#     A' = A,   B' = B - A [r],   C' = C + X + X^T,  X = [r] (B - A [r] / 2),   n' = n + r x f
#
# An inertia with its force is eleven registers (`simd4.py`): the columns of A, B and C, then f and n. So a chain's
# never touches memory on its way inward.


PLACE = 11 * WIDTH
"""Reals of a gathering place: where children meet that do not follow each other."""

ROOM = PLACE + GATHERED
"""Reals that eliminating a joint of any kind works in: the inertia, and once more in the order of `joints.py`."""

_across_x, _across_y, _across_z = shuffle(3, 6, 1, 3), shuffle(2, 3, 4, 3), shuffle(5, 0, 3, 3)


@pasted
def inertia_in_world(i, inertia, K):
    """Return h and the columns of J of body i, about its origin in world axes."""
    at = MOTION * i
    o = nothing()  # in the lane that nobody reads, too: products of that lane along a chain could grow
    x, y, z = three(load(K, at), o), three(load(K, at + 3), o), three(load(K, at + 6), o)
    a = inertia[i, 4] * x + inertia[i, 5] * y + inertia[i, 6] * z
    b = inertia[i, 5] * x + inertia[i, 7] * y + inertia[i, 8] * z
    c = inertia[i, 6] * x + inertia[i, 8] * y + inertia[i, 9] * z
    return (
        inertia[i, 1] * x + inertia[i, 2] * y + inertia[i, 3] * z,
        K[i, 0] * a + K[i, 3] * b + K[i, 6] * c,
        K[i, 1] * a + K[i, 4] * b + K[i, 7] * c,
        K[i, 2] * a + K[i, 5] * b + K[i, 8] * c,
    )


@pasted
def force_needed(i, m, h, Jx, Jy, Jz, K):
    """Return the force and moment that the motion of body i in K needs: Newton and Euler about its origin."""
    at = MOTION * i
    w, a, b = load(K, at + 12), load(K, at + 15), load(K, at + 18)
    turning = K[i, 12] * Jx + K[i, 13] * Jy + K[i, 14] * Jz
    return (
        m * a + cross(b, h) + cross(w, cross(w, h)),
        K[i, 18] * Jx + K[i, 19] * Jy + K[i, 20] * Jz + cross(w, turning) + cross(h, a),
    )


@pasted
def rigid(i, inertia, K):
    """Return body i alone: its inertia, and the force that its motion needs."""
    m = inertia[i, 0]
    h, Jx, Jy, Jz = inertia_in_world(i, inertia, K)
    f, n = force_needed(i, m, h, Jx, Jy, Jz, K)
    back = nothing() - h
    return (
        m * along_x(), m * along_y(), m * along_z(), _across_x(h, back), _across_y(h, back), _across_z(h, back),
        Jx, Jy, Jz, f, n,
    )  # fmt: skip


@pasted
def plus(w, t):
    """Return w + t."""
    return (
        w[0] + t[0], w[1] + t[1], w[2] + t[2], w[3] + t[3], w[4] + t[4], w[5] + t[5], w[6] + t[6], w[7] + t[7],
        w[8] + t[8], w[9] + t[9], w[10] + t[10],
    )  # fmt: skip


@pasted
def pair(row):
    """Return a force and a moment (6,) in registers."""
    return lanes(row[0], row[1], row[2]), lanes(row[3], row[4], row[5])


@pasted
def pair_at(i, rows):
    """Return the force and moment in row i of rows (n, 6)."""
    return lanes(rows[i, 0], rows[i, 1], rows[i, 2]), lanes(rows[i, 3], rows[i, 4], rows[i, 5])


@pasted
def relieved(i, w, ext):
    """Return w less the force and moment that act on body i from outside, row i of ext (n, 6)."""
    f, n = pair_at(i, ext)
    return w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8], w[9] - f, w[10] - n


@pasted
def none():
    """Return an inertia of nothing."""
    o = nothing()
    return o, o, o, o, o, o, o, o, o, o, o


@pasted
def gathered(i, first_child, slot, inertia, K, T, up):
    """Return body i with all its children: the last is `up`, in registers, others have met in a place of T."""
    w = rigid(i, inertia, K)
    if slot[i] >= 0:
        w = plus(w, up)
        if not first_child[i + 1]:
            w = plus(w, taken(T, slot[i]))
    return w


@pasted
def taken(T, s):
    """Return what has met in place s of T."""
    at = PLACE * s
    return (
        load(T, at), load(T, at + 4), load(T, at + 8), load(T, at + 12), load(T, at + 16), load(T, at + 20),
        load(T, at + 24), load(T, at + 28), load(T, at + 32), load(T, at + 36), load(T, at + 40),
    )  # fmt: skip


@fused_steady
def put(w, is_first, T, s):
    """Add w to place s of T, or set it where nothing is there yet."""
    if not is_first:
        w = plus(w, taken(T, s))
    stashed(w, T, PLACE * s)


@pasted
def stashed(w, W, at=0):
    """Put the registers of w at a place of W."""
    store(W, at, w[0])
    store(W, at + 4, w[1])
    store(W, at + 8, w[2])
    store(W, at + 12, w[3])
    store(W, at + 16, w[4])
    store(W, at + 20, w[5])
    store(W, at + 24, w[6])
    store(W, at + 28, w[7])
    store(W, at + 32, w[8])
    store(W, at + 36, w[9])
    store(W, at + 40, w[10])


@fused_steady
def any_joint(i, kind, k, at, pitch, armature, tau, K, Y, W, S):
    """Eliminate a joint of any kind from the inertia at the beginning of W, in memory; return its relative pivot."""
    w = taken(W, 0)
    if kind == HINGE or kind == CIRCLE:
        w, ratio = hinge(i, K, armature[k], tau[k], w, Y, at)
    else:
        packed = W[PLACE:]
        pack(w, packed)
        ratio = other(i, kind, k, pitch, armature, tau, K, packed, Y, at, S)
        w = unpacked(packed)
    stashed(moved(i, K, w), W)
    return ratio


@pasted
def hinge(i, K, armature, tau, w, Y, at):
    """Eliminate a hinge about z of body i. The relative pivot is D over the trace of C."""
    A0, A1, A2, B0, B1, B2, C0, C1, C2, f, n = w
    z0, z1, z2, z = K[i, 6], K[i, 7], K[i, 8], load(K, MOTION * i + 6)
    U, Q = z0 * B0 + z1 * B1 + z2 * B2, z0 * C0 + z1 * C1 + z2 * C2
    D, u = total(z * Q) + armature, tau - total(z * n)
    ratio, d = D / (first(C0) + second(C1) + third(C2) + armature), 1.0 / D
    store(Y, at, U)
    store(Y, at + 3, Q)
    Y[at + 6], Y[at + 7] = d, u
    V, P = d * U, d * Q
    v0, v1, v2 = all_first(V, V), all_second(V, V), all_third(V, V)
    p0, p1, p2 = all_first(P, P), all_second(P, P), all_third(P, P)
    left = (
        A0 - v0 * U, A1 - v1 * U, A2 - v2 * U, B0 - p0 * U, B1 - p1 * U, B2 - p2 * U,
        C0 - p0 * Q, C1 - p1 * Q, C2 - p2 * Q, f + u * V, n + u * P,
    )  # fmt: skip
    return left, ratio


@pasted
def moved(i, K, w):
    """Return w about the origin of the parent of body i."""
    A0, A1, A2, B0, B1, B2, C0, C1, C2, f, n = w
    r0, r1, r2, r = K[i, 9], K[i, 10], K[i, 11], load(K, MOTION * i + 9)
    R0, R1, R2 = r2 * A1 - r1 * A2, r0 * A2 - r2 * A0, r1 * A0 - r0 * A1  # A [r]
    X0, X1, X2 = cross(r, B0 - 0.5 * R0), cross(r, B1 - 0.5 * R1), cross(r, B2 - 0.5 * R2)
    x0, x1, x2 = transposed(X0, X1, X2)
    return (
        A0, A1, A2, B0 - R0, B1 - R1, B2 - R2, C0 + X0 + x0, C1 + X1 + x1, C2 + X2 + x2, f, n + cross(r, f)
    )  # fmt: skip


@fused_steady
def pack(w, W):
    """Fill W (27,) with an inertia and its force, as `joints.py` has them."""
    A0, A1, A2, B0, B1, B2, C0, C1, C2, f, n = w
    W[0], W[1], W[2], W[3], W[4], W[5] = first(A0), second(A0), third(A0), second(A1), third(A1), third(A2)
    W[6], W[7], W[8] = first(B0), first(B1), first(B2)
    W[9], W[10], W[11] = second(B0), second(B1), second(B2)
    W[12], W[13], W[14] = third(B0), third(B1), third(B2)
    W[15], W[16], W[17], W[18], W[19], W[20] = first(C0), second(C0), third(C0), second(C1), third(C1), third(C2)
    W[21], W[22], W[23], W[24], W[25], W[26] = first(f), second(f), third(f), first(n), second(n), third(n)


@fused_steady
def unpacked(W):
    """Return W (27,) in registers."""
    return (
        lanes(W[0], W[1], W[2]), lanes(W[1], W[3], W[4]), lanes(W[2], W[4], W[5]),
        lanes(W[6], W[9], W[12]), lanes(W[7], W[10], W[13]), lanes(W[8], W[11], W[14]),
        lanes(W[15], W[16], W[17]), lanes(W[16], W[18], W[19]), lanes(W[17], W[19], W[20]),
        lanes(W[21], W[22], W[23]), lanes(W[24], W[25], W[26]),
    )  # fmt: skip
