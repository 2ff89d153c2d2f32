"""Backward error of a large answer: what is left of M a + A^T lam = tau beside the sizes of all that it is made of.

    largest over i of |left|_i / (|M| |a| + |A|^T |lam| + |tau| + |need|)_i

(Oettli & Prager 1964): with matrices that differ from the given ones by so much, entry by entry, the answer would be
exact. M is never formed: |a| is spread outward and inertial forces are gathered inward, all with sizes in place of
numbers. The rounding of a alone leaves this much in a ladder of thirty thousand steps, whose levers add up to
kilometres.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from dalembert.kernel.loops import loop
from dalembert.tree.large.articulate import inertia_in_world
from dalembert.tree.large.inward import carrier
from dalembert.tree.large.lanes import cross_of_sizes, load, nothing, size, store
from dalembert.tree.large.layout import VELOCITIES
from dalembert.tree.large.newton_euler import felt, put_pair, with_children
from dalembert.tree.large.outward import COMPILED, LOOP, MOTION, along


@loop(**COMPILED)
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


@loop(**LOOP)
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


@njit(inline="always")
def sizes_of_forces(i, inertia, K, A):
    """Return the sizes of a body's inertial force and moment for accelerations of the sizes in A."""
    h, Jx, Jy, Jz = inertia_in_world(i, inertia, K)
    a, b, h = load(A, 6 * i), load(A, 6 * i + 3), size(h)
    return (
        inertia[i, 0] * a + cross_of_sizes(b, h),
        A[i, 3] * size(Jx) + A[i, 4] * size(Jy) + A[i, 5] * size(Jz) + cross_of_sizes(h, a),
    )
