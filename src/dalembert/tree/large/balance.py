"""What an answer is judged by: forces on bodies, rows' accelerations, and how far both block rows are from zero."""

from __future__ import annotations

import numpy as np
from numba import njit

from dalembert.tree.large.articulate import body, subspace
from dalembert.tree.large.outward import COMPILED


@njit(**COMPILED)
def needs(inertia, K, ext, need):
    """Fill need (n, 6) with the forces that bodies need for the motion in K, less ext (n, 6) where it has rows."""
    for i in range(len(inertia)):
        w = body(i, inertia, K)
        for d in range(6):
            need[i, d] = w[21 + d] - (ext[i, d] if ext.shape[0] else 0.0)


@njit(**COMPILED)
def joint_forces(ends, wrenches, c, lam, A, forces):
    """Add the rows' forces A^T lam, and their sizes, to forces (2, n, 6); return c - A a and its size, (2, m)."""
    gap = np.empty((2, len(lam)))
    for row in range(len(lam)):
        left, size = c[row], abs(c[row])
        for end in range(2):
            i = ends[row, end]
            if i >= 0:
                moved = 0.0
                for d in range(6):
                    moved += wrenches[row, end, d] * A[i, d]
                    forces[0, i, d] += wrenches[row, end, d] * lam[row]
                    forces[1, i, d] += abs(wrenches[row, end, d] * lam[row])
                left -= moved
                size += abs(moved)
        gap[0, row], gap[1, row] = left, size
    return gap


@njit(**COMPILED)
def imbalance(
    topology, gathering, pitch, inertia, armature, K, Y, weighed, A, need, rowed, load, a, coupled, T, left
):  # fmt: skip
    """Fill left (nv,) with tau - M a - A^T lam by Newton-Euler, and return how large it is.

    The smaller of two measures counts: the sum of all |left| over that of what each body contributes to its own joint,
    weighed by the roots of 1/D; and the largest |left| over the sum of the sizes of all products it is made of, joint
    by joint (Oettli & Prager 1964). The first forgives rounding where a joint carries nothing, the second long levers.
    """
    parent, code, _, iv = topology
    slot, first, kept = gathering
    W, S, alone = np.empty(18), np.empty((6, 6)), np.empty(6)
    total = parts = largest = 0.0
    for i in range(len(parent) - 1, -1, -1):
        own(i, inertia, K, A, need, rowed, W)
        for d in range(6):
            alone[d] = W[12 + d]
        if slot[i] >= 0:
            for d in range(18):
                W[d] += T[slot[i], d]
        count = subspace(i, code[i], pitch, K, S)
        for c in range(count):
            k = iv[i] + c
            needed, pulled, size = armature[k] * a[k], coupled[k], abs(load[k]) + abs(armature[k] * a[k])
            size += abs(pulled)
            part = size
            for d in range(6):
                part += abs(S[c, d]) * alone[d]
                needed += S[c, d] * W[d]
                pulled += S[c, d] * W[6 + d]
                size += abs(S[c, d]) * W[12 + d]
            left[k] = load[k] - needed - pulled
            weight = np.sqrt(abs(Y[kept[i] + 6 * count + c * count + c])) if weighed else 1.0
            total += weight * abs(left[k])
            parts += weight * part
            ratio = abs(left[k]) / size if size > 0.0 else abs(left[k])
            if not ratio <= largest:
                largest = ratio
        if parent[i] >= 0:
            hand_down(K[i, 9], K[i, 10], K[i, 11], W, first[i], T[slot[parent[i]]])
    normwise = total / parts if parts != 0.0 else total
    return min(normwise, largest) if normwise == normwise else normwise


@njit(**COMPILED)
def own(i, inertia, K, A, need, rowed, W):
    """Fill W (18,) with a body's own inertial force, the rows' force on it, and the sizes of what both are made of."""
    w = body(i, inertia, K)
    m, hx, hy, hz = w[0], w[11], w[12], w[7]
    ax, ay, az, bx, by, bz = A[i, 0], A[i, 1], A[i, 2], A[i, 3], A[i, 4], A[i, 5]
    W[0], W[1], W[2] = m * ax + by * hz - bz * hy, m * ay + bz * hx - bx * hz, m * az + bx * hy - by * hx
    W[3] = w[15] * bx + w[16] * by + w[17] * bz + hy * az - hz * ay
    W[4] = w[16] * bx + w[18] * by + w[19] * bz + hz * ax - hx * az
    W[5] = w[17] * bx + w[19] * by + w[20] * bz + hx * ay - hy * ax
    for d in range(6):
        W[12 + d] = abs(W[d]) + rowed[1, i, d]
        W[6 + d] = rowed[0, i, d]
        if need.shape[0]:
            W[12 + d] += abs(need[i, d])
            W[d] += need[i, d]


@njit(**COMPILED)
def hand_down(x, y, z, W, first, T):
    """Add forces and their sizes, moved to the parent's origin, to the parent's place."""
    for k in range(0, 12, 6):
        W[k + 3] += y * W[k + 2] - z * W[k + 1]
        W[k + 4] += z * W[k] - x * W[k + 2]
        W[k + 5] += x * W[k + 1] - y * W[k]
    W[15] += abs(y) * W[14] + abs(z) * W[13]
    W[16] += abs(z) * W[12] + abs(x) * W[14]
    W[17] += abs(x) * W[13] + abs(y) * W[12]
    for d in range(18):
        T[d] = W[d] if first else T[d] + W[d]


@njit(**COMPILED)
def mobility(ends, inertia, wrenches, g):
    """Fill g (m,) with what unit multipliers would do to their bodies alone: a size for the rows of G."""
    for row in range(len(ends)):
        for end in range(2):
            i = ends[row, end]
            if i >= 0:
                m, J = inertia[i, 0], inertia[i, 4] + inertia[i, 7] + inertia[i, 9]
                for d in range(3):
                    if m > 0.0:
                        g[row] += wrenches[row, end, d] ** 2 / m
                    if J > 0.0:
                        g[row] += wrenches[row, end, 3 + d] ** 2 / J
