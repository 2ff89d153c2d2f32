"""What an answer is judged by: forces on bodies, rows' accelerations, and how far both block rows are from zero."""

from __future__ import annotations

import numpy as np
from numba import njit

from dalembert.tree.large.articulate import rigid
from dalembert.tree.large.outward import COMPILED


@njit(**COMPILED)
def needs(inertia, K, ext, need):  # noqa: ANN001, ANN201
    """Fill need (n, 6) with the forces that bodies need for the motion in K, less ext (n, 6) where it has rows."""
    for i in range(len(inertia)):
        w = rigid(i, inertia, K)
        for d in range(6):
            need[i, d] = w[21 + d] - (ext[i, d] if ext.shape[0] else 0.0)


@njit(**COMPILED)
def accelerated(inertia, K, A, forces):  # noqa: ANN001, ANN201
    """Fill forces (n, 6) with inertia times the accelerations A (n, 6)."""
    for i in range(len(inertia)):
        w = rigid(i, inertia, K)
        m, hx, hy, hz = w[0], w[11], w[12], w[7]
        ax, ay, az, bx, by, bz = A[i, 0], A[i, 1], A[i, 2], A[i, 3], A[i, 4], A[i, 5]
        forces[i, 0] = m * ax + by * hz - bz * hy
        forces[i, 1] = m * ay + bz * hx - bx * hz
        forces[i, 2] = m * az + bx * hy - by * hx
        forces[i, 3] = w[15] * bx + w[16] * by + w[17] * bz + hy * az - hz * ay
        forces[i, 4] = w[16] * bx + w[18] * by + w[19] * bz + hz * ax - hx * az
        forces[i, 5] = w[17] * bx + w[19] * by + w[20] * bz + hx * ay - hy * ax


@njit(**COMPILED)
def joint_forces(ends, wrenches, c, lam, A, forces):  # noqa: ANN001, ANN201
    """Add the rows' forces A^T lam to forces (n, 6); return (2, m): c - A a, and the sizes of its parts."""
    gap = np.empty((2, len(lam)))
    for row in range(len(lam)):
        left, size = c[row], abs(c[row])
        for end in range(2):
            i = ends[row, end]
            if i >= 0:
                moved = 0.0
                for d in range(6):
                    moved += wrenches[row, end, d] * A[i, d]
                    forces[i, d] += wrenches[row, end, d] * lam[row]
                left -= moved
                size += abs(moved)
        gap[0, row], gap[1, row] = left, size
    return gap


@njit(**COMPILED)
def imbalance(topology, kept, Y, weighed, tau, needed, pulled):  # noqa: ANN001, ANN201
    """Return the sum of |tau - needed - pulled| over that of its parts, both `weighed` by the roots of 1/D."""
    parent, _, _, iv = topology
    left = size = 0.0
    for i in range(len(parent)):
        kept_reals = kept[i + 1] - kept[i]
        count = 1 if kept_reals == 8 else 0 if kept_reals == 0 else 3 if kept_reals == 30 else 6
        for c in range(count):
            k = iv[i] + c
            d = np.sqrt(abs(Y[kept[i] + 6 * count + c * count + c])) if weighed else 1.0
            left += d * abs(tau[k] - needed[k] - pulled[k])
            size += d * (abs(tau[k]) + abs(needed[k]) + abs(pulled[k]))
    return left / size if size != 0.0 else left


@njit(**COMPILED)
def mobility(ends, inertia, wrenches, g):  # noqa: ANN001, ANN201
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
