"""From the leaves to the ground and back: the articulated-body algorithm and Newton-Euler as compiled loops.

Symbols as in `articulate.py`; T gathering places (slots, 27), Y what is kept of every joint: U, D^-1, u.
Cost per hinge: about 420 operations; memory 29 reals beside the model's 26.
"""

# ruff: noqa: SIM109 - comparisons, not a search in a tuple: these are the innermost branches

from __future__ import annotations

import numpy as np
from numba import njit

from dalembert.tree.large.articulate import (
    GATHERED,
    as_tuple,
    body,
    hand_over,
    hinge,
    other,
    plus,
    relieved,
    rigid,
    subspace,
)
from dalembert.tree.large.layout import CIRCLE, HINGE, SCREW, SLIDER
from dalembert.tree.large.outward import COMPILED


@njit(**COMPILED)
def articulated(topology, gathering, pitch, inertia, armature, tau, ext, K, T, Y, worst):
    """Eliminate all joints, leaves first; worst (2,) gets the least relative pivot and its body."""
    parent, code, _, iv = topology
    slot, first, kept = gathering
    W, S, nothing = np.empty(GATHERED), np.empty((6, 6)), np.empty(0)
    worst[0], worst[1] = np.inf, -1.0
    for i in range(len(parent) - 1, -1, -1):
        up = slot[parent[i]] if parent[i] >= 0 else -1
        ratio = eliminate(
            i, code[i], iv[i], slot[i], up, first[i], kept[i], pitch, inertia, armature, tau, ext, nothing,
            K, T, Y, W, S,
        )  # fmt: skip
        if worst[0] > 0.0 and not ratio >= worst[0]:  # the first that fails is the one to name
            worst[0], worst[1] = ratio, i


@njit(inline="always")
def eliminate(
    i, kind, k, s, up, first, at, pitch, inertia, armature, tau, ext, more, K, T, Y, W, S
):  # fmt: skip
    """Eliminate the joint of body i: gather at place s, add `more` (27,) if it has entries, hand over to place up."""
    w = rigid(i, inertia, K)
    if s >= 0:
        w = plus(w, T[s])
    if ext.shape[0]:
        w = relieved(w, ext[i])
    if more.shape[0]:
        w = plus(w, more)
    if kind == HINGE or kind == CIRCLE:
        w, ratio = hinge(K[i, 6], K[i, 7], K[i, 8], armature[k], tau[k], w, Y, at)
    else:
        for d in range(GATHERED):
            W[d] = w[d]
        ratio = other(i, kind, k, pitch, armature, tau, K, W, Y, at, S)
        w = as_tuple(W)
    if up >= 0:
        hand_over(K[i, 9], K[i, 10], K[i, 11], w, first, T[up])
    return ratio


@njit(**COMPILED)
def accelerations(topology, kept, pitch, K, Y, qdd, A):
    """Return to the leaves: qdd = D^-1 (u - U^T a) for every joint; A (n, 6) accelerations beyond those."""
    parent, code, _, iv = topology
    S = np.empty((6, 6))
    for i in range(len(parent)):
        carried(i, parent[i], K, A)
        at, k = kept[i], iv[i]
        if kept[i + 1] - at == 8:
            x = Y[at + 7]
            for d in range(6):
                x -= Y[at + d] * A[i, d]
            x *= Y[at + 6]
            qdd[k] = x
            single(i, code[i], pitch, x, K, A)
        elif kept[i + 1] > at:
            count = subspace(i, code[i], pitch, K, S)
            D, u = at + 6 * count, at + 6 * count + count * count
            for c in range(count):
                qdd[k + c] = 0.0
                for e in range(count):
                    x = Y[u + e]
                    for d in range(6):
                        x -= Y[at + 6 * e + d] * A[i, d]
                    qdd[k + c] += Y[D + c * count + e] * x
            for c in range(count):
                for d in range(6):
                    A[i, d] += S[c, d] * qdd[k + c]


@njit(inline="always")
def carried(i, p, K, A):
    """Set A[i] to the parent's acceleration, at this body's origin."""
    if p < 0:
        for d in range(6):
            A[i, d] = 0.0
    else:
        rx, ry, rz, bx, by, bz = K[i, 9], K[i, 10], K[i, 11], A[p, 3], A[p, 4], A[p, 5]
        A[i, 0] = A[p, 0] + by * rz - bz * ry
        A[i, 1] = A[p, 1] + bz * rx - bx * rz
        A[i, 2] = A[p, 2] + bx * ry - by * rx
        A[i, 3], A[i, 4], A[i, 5] = bx, by, bz


@njit(inline="always")
def single(i, kind, pitch, x, K, A):
    """Add S x of a joint with one velocity to A[i]."""
    turning = 0.0 if kind == SLIDER else 1.0
    h = pitch[i] if kind == SCREW else 1.0 - turning
    for d in range(3):
        A[i, d] += h * K[i, 6 + d] * x
        A[i, 3 + d] += turning * K[i, 6 + d] * x


@njit(**COMPILED)
def spread(topology, pitch, K, qdd, A):
    """Fill A (n, 6) with the accelerations that joint accelerations qdd alone cause."""
    parent, code, _, iv = topology
    S = np.empty((6, 6))
    for i in range(len(parent)):
        carried(i, parent[i], K, A)
        for c in range(subspace(i, code[i], pitch, K, S)):
            for d in range(6):
                A[i, d] += S[c, d] * qdd[iv[i] + c]


@njit(**COMPILED)
def needed(topology, gathering, pitch, inertia, armature, acc, ext, K, T, tau):
    """Newton-Euler, inward: joint forces tau for the motion in K, armature times acc included."""
    parent, code, _, iv = topology
    slot, first, _ = gathering
    W, S = np.empty(GATHERED), np.empty((6, 6))
    loads = ext.shape[0] > 0
    for i in range(len(parent) - 1, -1, -1):
        w = body(i, inertia, K)
        s = slot[i]
        for d in range(21, 27):
            W[d] = w[d] + (T[s, d] if s >= 0 else 0.0) - (ext[i, d - 21] if loads else 0.0)
        k = iv[i]
        for c in range(subspace(i, code[i], pitch, K, S)):
            total = armature[k + c] * acc[k + c]
            for d in range(6):
                total += S[c, d] * W[21 + d]
            tau[k + c] = total
        if parent[i] >= 0:
            lift(K[i, 9], K[i, 10], K[i, 11], W, first[i], T[slot[parent[i]]])


@njit(inline="always")
def lift(r0, r1, r2, W, first, T):
    """Add the force in W, moved to the parent's origin, to the parent's place."""
    f0, f1, f2 = W[21], W[22], W[23]
    n0, n1, n2 = W[24] + r1 * f2 - r2 * f1, W[25] + r2 * f0 - r0 * f2, W[26] + r0 * f1 - r1 * f0
    if first:
        T[21], T[22], T[23], T[24], T[25], T[26] = f0, f1, f2, n0, n1, n2
    else:
        T[21] += f0
        T[22] += f1
        T[23] += f2
        T[24] += n0
        T[25] += n1
        T[26] += n2


@njit(**COMPILED)
def transmitted(topology, gathering, pitch, forces, K, T, tau):
    """Fill tau with the joint forces that forces (n, 6) on bodies amount to: J^T times them."""
    parent, code, _, iv = topology
    slot, first, _ = gathering
    W, S = np.empty(GATHERED), np.empty((6, 6))
    for i in range(len(parent) - 1, -1, -1):
        for d in range(6):
            W[21 + d] = forces[i, d] + (T[slot[i], 21 + d] if slot[i] >= 0 else 0.0)
        for c in range(subspace(i, code[i], pitch, K, S)):
            total = 0.0
            for d in range(6):
                total += S[c, d] * W[21 + d]
            tau[iv[i] + c] = total
        if parent[i] >= 0:
            lift(K[i, 9], K[i, 10], K[i, 11], W, first[i], T[slot[parent[i]]])
