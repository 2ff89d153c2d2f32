# ruff: noqa: SIM109 - comparisons, not a search in a tuple: these are the innermost branches
"""Residuals and backward error of a large answer."""

from __future__ import annotations

import numpy as np

from dalembert.kernel.loops import fused_allocating, fused_steady, pasted, reordered_steady
from dalembert.kkt.limits import FINE, IDLE_DIAGONAL, IDLE_ROW
from dalembert.large.inward import carrier, felt, put_pair, spread, with_children
from dalembert.large.joints import PLACE, force_needed, inertia_in_world, pair
from dalembert.large.layout import CIRCLE, HINGE, VELOCITIES
from dalembert.large.outward import MOTION, along
from dalembert.large.simd4 import WIDTH, cross, cross_of_sizes, load, nothing, size, store, total

# ----------------------------------------------------------------------------------------------------------------------
# Residuals of an answer: forces on bodies, rows' accelerations, the distance of both block rows from zero.


@fused_steady
def needs(inertia, K, ext, need):
    """Fill need (n, 6) with the forces that bodies need for the motion in K, less ext (n, 6) where it has rows."""
    needs_between(0, len(inertia), inertia, K, ext, need)


@fused_steady
def needs_between(begin, end, inertia, K, ext, need):
    """Fill need for bodies begin, ..., end - 1."""
    for i in range(begin, end):
        h, Jx, Jy, Jz = inertia_in_world(i, inertia, K)
        f, n = force_needed(i, inertia[i, 0], h, Jx, Jy, Jz, K)
        if ext.shape[0]:
            push, moment = pair(ext[i])
            f, n = f - push, n - moment
        store(need, 6 * i, f)
        store(need, 6 * i + 3, n)


@fused_steady
def joint_forces(ends, wrenches, c, lam, A, forces, gap):
    """Set forces (n, 2, 6) of bodies that rows pull at to A^T lam and its size; gap (2, m) to c - A a and its size."""
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


@fused_steady
def relative(gap, size_of_gap, g):
    """Return the sum of |gap| over that of its size, rows weighed by the roots of 1/g; as it is where all is zero."""
    missed = made_of = 0.0
    for row in range(len(g)):
        weight = 1.0 / np.sqrt(g[row]) if g[row] > 0.0 else 1.0
        missed += weight * abs(gap[row])
        made_of += weight * size_of_gap[row]
    return missed / made_of if made_of > 0.0 else missed


@fused_allocating
def largest_of_each(owner, count, g, units):
    """Return for each row the largest diagonal g of its constraint; the largest of all where nothing can move it.

    Lengths and angles are compared by the squares of their `units`. What tilted axes leave of rows across a plane moves
    nothing: scaled up for itself it would lock a loop.
    """
    largest, top = np.zeros(count), 0.0
    for row in range(len(g)):
        largest[owner[row]] = max(largest[owner[row]], g[row])
        top = max(top, g[row] / units[row])
    scale = np.empty(len(g))
    for row in range(len(g)):
        usual = top * units[row] if top > 0.0 else 1.0
        scale[row] = largest[owner[row]] if largest[owner[row]] > IDLE_DIAGONAL * usual else usual
    return scale


@reordered_steady
def all_finite(arrays):
    """Return whether no entry of a tuple of arrays is infinite or not a number."""
    bad = 0.0
    for x in arrays:
        for k in range(len(x)):
            bad += x[k] * 0.0
    return bad == 0.0


@fused_steady
def imbalance(topology, gathering, pitch, inertia, armature, K, A, need, rowed, load_, a, coupled, T, left, felt_here):
    """Fill left (nv,) with tau - M a - A^T lam by Newton-Euler, and return how large it is.

    That is the largest |left| over the sum of the sizes of all products it is made of, joint by joint (Oettli & Prager
    1964), which forgives the rounding of long levers. felt_here (2, 6) is room to work in.
    """
    parent, code, _, iv = topology
    slot, first, _ = gathering
    up, largest = (nothing(), nothing(), nothing(), nothing()), 0.0
    for i in range(len(parent) - 1, -1, -1):
        # forces and torques that the body and all it carries need, and their sizes
        w = own_forces(i, inertia, K, A, need, rowed)
        if slot[i] >= 0:
            w = four_plus(w, up)
            if not first[i + 1]:
                w = four_plus(w, four_at(T, slot[i]))
        # what the joint feels of them, against what is applied there
        kind, at, k = code[i], MOTION * i, iv[i]
        if kind == HINGE or kind == CIRCLE:
            z = load(K, at + 6)
            left[k], made_of = rest(k, armature, load_, a, coupled, total(z * w[1]), total(size(z) * w[3]))
            largest = larger(largest, abs(left[k]), made_of)
        elif VELOCITIES[kind]:
            x, y, z = load(K, at), load(K, at + 3), load(K, at + 6)
            felt(kind, 0, pitch[i], x, y, z, w[0], w[1], felt_here[0])
            felt(kind, 0, abs(pitch[i]), size(x), size(y), size(z), w[2], w[3], felt_here[1])
            for c in range(VELOCITIES[kind]):
                left[k + c], made_of = rest(k + c, armature, load_, a, coupled, felt_here[0, c], felt_here[1, c])
                largest = larger(largest, abs(left[k + c]), made_of)
        # on to the parent's origin
        r = load(K, at + 9)
        up = w[0], w[1] + cross(r, w[0]), w[2], w[3] + cross_of_sizes(size(r), w[2])
        if parent[i] >= 0 and parent[i] != i - 1:
            four_put(up, first[i], T, slot[parent[i]])
    return largest


@pasted
def rest(k, armature, load_, a, coupled, felt, size_felt):
    """Return what is left at velocity k, and the sizes of what it is made of."""
    push = armature[k] * a[k]
    return load_[k] - push - coupled[k] - felt, abs(load_[k]) + abs(push) + abs(coupled[k]) + size_felt


@pasted
def larger(largest, left, made_of):
    """Return the larger of a ratio and left / made_of, dividing for a new maximum only; what is not a number counts."""
    if left <= largest * made_of or not largest >= 0.0:
        return largest
    return left / made_of if made_of != 0.0 else max(largest, left)


@fused_steady
def imbalance_in_sum(
    topology, kept, pitch, inertia, armature, K, Y, weighed, A, need, rowed, load_, a, coupled, left, felt_here
):  # fmt: skip
    """Return the sum of all |left| over that of what each body contributes to its own joint, weighed by roots of 1/D.

    It forgives rounding where a joint carries nothing. felt_here (6,) is room to work in.
    """
    _, code, _, iv = topology
    total_left, parts = 0.0, 0.0
    for i in range(len(code)):
        _, _, f, n = own_forces(i, inertia, K, A, need, rowed)
        kind, at, k, count = code[i], MOTION * i, iv[i], VELOCITIES[code[i]]
        felt(kind, 0, abs(pitch[i]), size(load(K, at)), size(load(K, at + 3)), size(load(K, at + 6)), f, n, felt_here)
        for c in range(count):
            made_of = rest(k + c, armature, load_, a, coupled, 0.0, felt_here[c])[1]
            weight = np.sqrt(abs(Y[kept[i] + 6 * count + c * count + c])) if weighed else 1.0
            total_left += weight * abs(left[k + c])
            parts += weight * made_of
    return total_left / parts if parts != 0.0 else total_left


@pasted
def own_forces(i, inertia, K, A, need, rowed):
    """Return the force and moment a body needs for its acceleration and against rows, and the sizes of all parts."""
    h, Jx, Jy, Jz = inertia_in_world(i, inertia, K)
    a, b = load(A, 6 * i), load(A, 6 * i + 3)
    f = inertia[i, 0] * a + cross(b, h)
    n = A[i, 3] * Jx + A[i, 4] * Jy + A[i, 5] * Jz + cross(h, a)
    large_f, large_n = size(f) + load(rowed, 12 * i + 6), size(n) + load(rowed, 12 * i + 9)
    f, n = f + load(rowed, 12 * i), n + load(rowed, 12 * i + 3)
    if need.shape[0]:
        more_f, more_n = load(need, 6 * i), load(need, 6 * i + 3)
        f, n, large_f, large_n = f + more_f, n + more_n, large_f + size(more_f), large_n + size(more_n)
    return f, n, large_f, large_n


@pasted
def four_plus(w, t):
    """Return w + t."""
    return w[0] + t[0], w[1] + t[1], w[2] + t[2], w[3] + t[3]


@pasted
def four_at(T, s):
    """Return what has met in place s of T."""
    at = PLACE * s
    return load(T, at), load(T, at + WIDTH), load(T, at + 2 * WIDTH), load(T, at + 3 * WIDTH)


@fused_steady
def four_put(w, is_first, T, s):
    """Add w to place s of T, or set it where nothing is there yet."""
    if not is_first:
        w = four_plus(w, four_at(T, s))
    at = PLACE * s
    for lane in w:
        store(T, at, lane)
        at += WIDTH


@fused_steady
def mobility(ends, inertia, wrenches, g):
    """Fill g (m,) with what unit multipliers would do to their bodies alone: a size for the rows of G."""
    for row in range(len(ends)):
        g[row] = alone(row, ends, inertia, wrenches)


@pasted
def alone(row, ends, inertia, wrenches):
    """Return what the unit multiplier of a row would do to its bodies alone."""
    done = 0.0
    for end in range(2):
        i = ends[row, end]
        if i >= 0:
            m, J = inertia[i, 0], inertia[i, 4] + inertia[i, 7] + inertia[i, 9]
            for d in range(3):
                if m > 0.0:
                    done += wrenches[row, end, d] ** 2 / m
                if J > 0.0:
                    done += wrenches[row, end, 3 + d] ** 2 / J
    return done


@fused_steady
def forget_rounding(ends, inertia, wrenches, g):
    """Set to zero the diagonals g (m,) of G that are rounding: far below what rows would do to their bodies alone."""
    for row in range(len(g)):
        if g[row] <= IDLE_ROW * alone(row, ends, inertia, wrenches):
            g[row] = 0.0


# ----------------------------------------------------------------------------------------------------------------------
# Both block rows of an answer in one call: Newton-Euler with it, and the rows' accelerations.
#
# Neither knows the factors. Where the first is not small entry by entry it is measured in other ways that are as
# honest: in sum (`residuals.py`), and beside |M| |a| + |A|^T |lam| + |tau| (`residuals.py`).


@fused_allocating
def residuals(
    topology, gathering, pitch, inertia, armature, K, Y, weighed, ends, linear, wrenches, need, tau, c, a, lam, g,
    A, forces, coupled, T, left, gap, accept,
):  # fmt: skip
    """Return both relative residuals of a, lam; what is left goes to left (nv,) and gap (2, m)."""
    spread(topology, pitch, K, a, A)
    return measured(
        topology, gathering, pitch, inertia, armature, K, Y, weighed, ends, linear, wrenches, need, tau, c, a, lam, g,
        A, forces, coupled, T, left, gap, accept,
    )  # fmt: skip


@fused_allocating
def measured(
    topology, gathering, pitch, inertia, armature, K, Y, weighed, ends, linear, wrenches, need, tau, c, a, lam, g,
    A, forces, coupled, T, left, gap, accept,
):  # fmt: skip
    """Return both residuals where A (n, 6) are the accelerations of bodies for a.

    left (nv,) gets tau - M a - A^T lam, gap (2, m) gets c - A a and its size.
    """
    joint_forces(ends, wrenches, c, lam, A, forces, gap)
    row, place, factor = linear
    if len(row):
        coupled[:] = 0.0
    for k in range(len(row)):
        coupled[place[k]] += factor[k] * lam[row[k]]
        gap[0, row[k]] -= factor[k] * a[place[k]]
        gap[1, row[k]] += abs(factor[k] * a[place[k]])
    here = np.zeros((2, 6))
    one = imbalance(topology, gathering, pitch, inertia, armature, K, A, need, forces, tau, a, coupled, T, left, here)
    if not one <= FINE:
        in_sum = imbalance_in_sum(
            topology, gathering[2], pitch, inertia, armature, K, Y, weighed, A, need, forces, tau, a, coupled, left,
            here[0],
        )  # fmt: skip
        one = min(one, in_sum) if in_sum >= 0.0 else in_sum
    if one > accept:
        one = min(one, backward_error(
            topology, gathering, pitch, inertia, armature, K, need, forces, tau, a, coupled, T, A, left
        ))  # fmt: skip
    return one, relative(gap[0], gap[1], g)


# ----------------------------------------------------------------------------------------------------------------------
# Backward error of a large answer: what is left of M a + A^T lam = tau beside the sizes of all that it is made of.
#
#     largest over i of |left|_i / (|M| |a| + |A|^T |lam| + |tau| + |need|)_i
#
# (Oettli & Prager 1964): with matrices that differ from the given ones by so much, entry by entry, the answer would be
# exact. M is never formed: |a| is spread outward and inertial forces are gathered inward, all with sizes in place of
# numbers. The rounding of a alone leaves this much in a ladder of thirty thousand steps, whose levers add up to
# kilometres.


@fused_allocating
def backward_error(topology, gathering, pitch, inertia, armature, K, need, rowed, tau, a, coupled, T, A, left):
    """Return the backward error of a with |A|^T |lam| on bodies in rowed[:, 1]; A (n, 6) is used up."""
    parent, code, _, iv = topology
    slot, first, _ = gathering
    sizes_outward(topology, pitch, K, np.abs(a), A)
    up, turn, here = nothing(), nothing(), np.zeros(6)
    largest = 0.0
    for i in range(len(parent) - 1, -1, -1):
        f, n = sizes_of_forces(i, inertia, K, A)
        f, n = f + load(rowed, 12 * i + 6), n + load(rowed, 12 * i + 9)
        if need.shape[0]:
            f, n = f + size(load(need, 6 * i)), n + size(load(need, 6 * i + 3))
        f, n = with_children(i, first, slot, T, f, n, up, turn)
        at, kind, k = MOTION * i, code[i], iv[i]
        felt(kind, 0, abs(pitch[i]), size(load(K, at)), size(load(K, at + 3)), size(load(K, at + 6)), f, n, here)
        for c in range(VELOCITIES[kind]):
            made_of = here[c] + abs(armature[k + c] * a[k + c]) + abs(tau[k + c]) + abs(coupled[k + c])
            if not abs(left[k + c]) <= largest * made_of:
                largest = abs(left[k + c]) / made_of if made_of > 0.0 else max(largest, abs(left[k + c]))
        up, turn = f, n + cross_of_sizes(size(load(K, at + 9)), f)
        put_pair(i, parent[i], first, slot, T, up, turn)
    return largest


@fused_steady
def sizes_outward(topology, pitch, K, qdd, A):
    """Fill A (n, 6) with the sums of the sizes of what accelerations of bodies are made of, for qdd not negative."""
    parent, code, _, iv = topology
    a, b = nothing(), nothing()
    for i in range(len(parent)):
        a, b = carrier(i, parent[i], A, a, b)
        at = MOTION * i
        x, y, z = size(load(K, at)), size(load(K, at + 3)), size(load(K, at + 6))
        s, o = along(code[i], iv[i], abs(pitch[i]), qdd, x, y, z)
        a, b = a + cross_of_sizes(size(load(K, at + 9)), b) + s, b + o
        store(A, 6 * i, a)
        store(A, 6 * i + 3, b)


@pasted
def sizes_of_forces(i, inertia, K, A):
    """Return the sizes of a body's inertial force and moment for accelerations of the sizes in A."""
    h, Jx, Jy, Jz = inertia_in_world(i, inertia, K)
    a, b, h = load(A, 6 * i), load(A, 6 * i + 3), size(h)
    return (
        inertia[i, 0] * a + cross_of_sizes(b, h),
        A[i, 3] * size(Jx) + A[i, 4] * size(Jy) + A[i, 5] * size(Jz) + cross_of_sizes(h, a),
    )
