"""What an answer is judged by: forces on bodies, rows' accelerations, and how far both block rows are from zero."""

# ruff: noqa: SIM109 - comparisons, not a search in a tuple: these are the innermost branches

from __future__ import annotations

import numpy as np
from numba import njit

from dalembert.tree.large.articulate import PLACE, force_needed, inertia_in_world, pair
from dalembert.tree.large.inward import felt
from dalembert.tree.large.lanes import WIDTH, cross, load, nothing, size, store, total, yzx
from dalembert.tree.large.layout import CIRCLE, HINGE, VELOCITIES
from dalembert.tree.large.outward import COMPILED, MOTION


@njit(**COMPILED)
def needs(inertia, K, ext, need):
    """Fill need (n, 6) with the forces that bodies need for the motion in K, less ext (n, 6) where it has rows."""
    for i in range(len(inertia)):
        h, Jx, Jy, Jz = inertia_in_world(i, inertia, K)
        f, n = force_needed(i, inertia[i, 0], h, Jx, Jy, Jz, K)
        if ext.shape[0]:
            push, moment = pair(ext[i])
            f, n = f - push, n - moment
        store(need, 6 * i, f)
        store(need, 6 * i + 3, n)


@njit(**COMPILED)
def joint_forces(ends, wrenches, c, lam, A, forces):
    """Set forces (n, 2, 6) of bodies that rows pull at to A^T lam and its size; return c - A a and its size, (2, m)."""
    gap = np.empty((2, len(lam)))
    for row in range(len(lam)):
        for end in range(2):
            if ends[row, end] >= 0:
                forces[ends[row, end]] = 0.0
    for row in range(len(lam)):
        left, size = c[row], abs(c[row])
        for end in range(2):
            i = ends[row, end]
            if i >= 0:
                moved = 0.0
                for d in range(6):
                    moved += wrenches[row, end, d] * A[i, d]
                    forces[i, 0, d] += wrenches[row, end, d] * lam[row]
                    forces[i, 1, d] += abs(wrenches[row, end, d] * lam[row])
                left -= moved
                size += abs(moved)
        gap[0, row], gap[1, row] = left, size
    return gap


@njit(**COMPILED)
def relative(gap, size_of_gap, g):
    """Return the sum of |gap| over that of its size, rows weighed by the roots of 1/g; as it is where all is zero."""
    missed = made_of = 0.0
    for row in range(len(g)):
        weight = 1.0 / np.sqrt(g[row]) if g[row] > 0.0 else 1.0
        missed += weight * abs(gap[row])
        made_of += weight * size_of_gap[row]
    return missed / made_of if made_of > 0.0 else missed


@njit(**COMPILED)
def largest_of_each(owner, count, g):
    """Return for each row the largest diagonal g of its constraint; the largest of all where nothing can move it."""
    largest = np.zeros(count)
    for row in range(len(g)):
        largest[owner[row]] = max(largest[owner[row]], g[row])
    top = largest.max() if count else 0.0
    for k in range(count):
        if not largest[k] > 0.0:
            largest[k] = top if top > 0.0 else 1.0
    return largest[owner]


@njit(**COMPILED)
def all_finite(x):
    """Return whether no entry is infinite or not a number."""
    bad = 0.0
    for k in range(len(x)):
        bad += x[k] * 0.0
    return bad == 0.0


@njit(**COMPILED)
def imbalance(
    topology, gathering, pitch, inertia, armature, K, Y, weighed, A, need, rowed, load_, a, coupled, T, left
):  # fmt: skip
    """Fill left (nv,) with tau - M a - A^T lam by Newton-Euler, and return how large it is.

    The smaller of two measures counts: the sum of all |left| over that of what each body contributes to its own joint,
    weighed by the roots of 1/D; and the largest |left| over the sum of the sizes of all products it is made of, joint
    by joint (Oettli & Prager 1964). The first forgives rounding where a joint carries nothing, the second long levers.
    """
    parent, code, _, iv = topology
    slot, first, kept = gathering
    felt_here = np.zeros((4, 6))
    up = nothing(), nothing(), nothing(), nothing(), nothing(), nothing()
    sums = np.zeros(3)
    for i in range(len(parent) - 1, -1, -1):
        own = own_forces(i, inertia, K, A, need, rowed)
        w = own
        if slot[i] >= 0:
            w = six_plus(w, up)
            if not first[i + 1]:
                w = six_plus(w, six_at(T, slot[i]))
        kind, at = code[i], MOTION * i
        x, y, z = load(K, at), load(K, at + 3), load(K, at + 6)
        if kind == HINGE or kind == CIRCLE:
            felt_here[0, 0], felt_here[1, 0] = total(z * w[1]), total(z * w[3])
            felt_here[2, 0], felt_here[3, 0] = total(size(z) * w[5]), total(size(z) * own[5])
            judge(iv[i], 1, kept[i], Y, weighed, armature, load_, a, coupled, felt_here, left, sums)
        elif VELOCITIES[kind]:
            felt(kind, 0, pitch[i], x, y, z, w[0], w[1], felt_here[0])
            felt(kind, 0, pitch[i], x, y, z, w[2], w[3], felt_here[1])
            felt(kind, 0, abs(pitch[i]), size(x), size(y), size(z), w[4], w[5], felt_here[2])
            felt(kind, 0, abs(pitch[i]), size(x), size(y), size(z), own[4], own[5], felt_here[3])
            judge(iv[i], VELOCITIES[kind], kept[i], Y, weighed, armature, load_, a, coupled, felt_here, left, sums)
        up = six_moved(load(K, at + 9), w)
        if parent[i] >= 0 and parent[i] != i - 1:
            six_put(up, first[i], T, slot[parent[i]])
    total_left, parts, largest = sums[0], sums[1], sums[2]
    normwise = total_left / parts if parts != 0.0 else total_left
    return min(normwise, largest) if normwise == normwise else normwise


@njit(inline="always")
def judge(k, count, at, Y, weighed, armature, load_, a, coupled, felt_here, left, sums):
    """Add what is left at a joint, and what it is made of, to the sums: |left| and parts weighed, largest ratio."""
    for c in range(count):
        i = k + c
        push = armature[i] * a[i]
        size_here = abs(load_[i]) + abs(push) + abs(coupled[i])
        rest = load_[i] - (push + felt_here[0, c]) - (coupled[i] + felt_here[1, c])
        left[i] = rest
        weight = np.sqrt(abs(Y[at + 6 * count + c * count + c])) if weighed else 1.0
        sums[0] += weight * abs(rest)
        sums[1] += weight * (size_here + felt_here[3, c])
        size_here += felt_here[2, c]
        if not abs(rest) <= sums[2] * size_here:  # a division for a new maximum only
            sums[2] = abs(rest) / size_here if size_here > 0.0 else max(sums[2], abs(rest))


@njit(inline="always")
def own_forces(i, inertia, K, A, need, rowed):
    """Return a body's own inertial force, the rows' force on it, and the sizes of what both are made of."""
    h, Jx, Jy, Jz = inertia_in_world(i, inertia, K)
    a, b = load(A, 6 * i), load(A, 6 * i + 3)
    f = inertia[i, 0] * a + cross(b, h)
    n = A[i, 3] * Jx + A[i, 4] * Jy + A[i, 5] * Jz + cross(h, a)
    pull, turn = load(rowed, 12 * i), load(rowed, 12 * i + 3)
    large_f, large_n = size(f) + load(rowed, 12 * i + 6), size(n) + load(rowed, 12 * i + 9)
    if need.shape[0]:
        more_f, more_n = load(need, 6 * i), load(need, 6 * i + 3)
        f, n, large_f, large_n = f + more_f, n + more_n, large_f + size(more_f), large_n + size(more_n)
    return f, n, pull, turn, large_f, large_n


@njit(inline="always")
def six_plus(w, t):
    """Return w + t."""
    return w[0] + t[0], w[1] + t[1], w[2] + t[2], w[3] + t[3], w[4] + t[4], w[5] + t[5]


@njit(inline="always")
def six_moved(r, w):
    """Return forces and their sizes about the parent's origin."""
    s, t = size(r), w[4]
    return (
        w[0], w[1] + cross(r, w[0]), w[2], w[3] + cross(r, w[2]), t, w[5] + yzx(s * yzx(t) + t * yzx(s))
    )  # fmt: skip


@njit(inline="always")
def six_at(T, s):
    """Return what has met in place s of T."""
    at = PLACE * s
    return load(T, at), load(T, at + 4), load(T, at + 8), load(T, at + 12), load(T, at + 16), load(T, at + 20)


@njit(**COMPILED)
def six_put(w, is_first, T, s):
    """Add w to place s of T, or set it where nothing is there yet."""
    if not is_first:
        w = six_plus(w, six_at(T, s))
    at = PLACE * s
    for each in w:
        store(T, at, each)
        at += WIDTH


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
