# ruff: noqa: SIM109 - comparisons, not a search in a tuple: these are the innermost branches
"""The inward pass: articulated-body algorithm and Newton-Euler as compiled loops."""

from __future__ import annotations

import numpy as np

from dalembert.kernel.loops import fused_allocating, fused_steady, pasted
from dalembert.large.joints import (
    PLACE,
    ROOM,
    any_joint,
    force_needed,
    gathered,
    hinge,
    inertia_in_world,
    moved,
    pair_at,
    plus,
    put,
    relieved,
    rigid,
    stashed,
    taken,
)
from dalembert.large.layout import BALL, CIRCLE, FLYING, HINGE, PLANE, SCREW, SLIDER, VELOCITIES
from dalembert.large.outward import MOTION, along
from dalembert.large.simd4 import WIDTH, cross, last_and_three, load, nothing, store, total

# ----------------------------------------------------------------------------------------------------------------------
# From the leaves to the ground and back: the articulated-body algorithm as compiled loops.
#
# Symbols as in `joints.py`; T gathering places (slots, 44), Y what is kept of every joint: U, D^-1, u. A child that
# is followed by its parent hands over in registers; only further children of a body meet in a place.
# Memory per hinge: 29 reals beside the model's 26.


@fused_allocating
def articulated(topology, gathering, pitch, inertia, armature, tau, ext, K, T, Y, worst):
    """Eliminate all joints, leaves first; worst (2,) gets the least relative pivot and its body."""
    worst[0], worst[1] = np.inf, -1.0
    articulated_between(
        0, len(topology[0]), topology, gathering, pitch, inertia, armature, tau, ext, K, T, Y, worst,
        np.zeros(ROOM), np.empty((6, 6)),
    )  # fmt: skip


@fused_steady
def articulated_between(begin, end, topology, gathering, pitch, inertia, armature, tau, ext, K, T, Y, worst, W, S):
    """Eliminate the joints of bodies end - 1, ..., begin.

    W (71,) begins with what body `end` hands over where its parent comes next, and then with what body `begin` does.
    S (6, 6) is room to work in.
    """
    parent, code, _, iv = topology
    slot, first, kept = gathering
    i = end - 1
    while i >= begin:
        if code[i] == HINGE or code[i] == CIRCLE:
            i = hinges(i, begin, topology, gathering, inertia, armature, tau, ext, K, T, Y, worst, W)
            continue
        w = gathered(i, first, slot, inertia, K, T, taken(W, 0))
        stashed(relieved(i, w, ext) if ext.shape[0] else w, W)
        ratio = any_joint(i, code[i], iv[i], kept[i], pitch, armature, tau, K, Y, W, S)
        note(ratio, i, worst)
        if parent[i] >= 0 and parent[i] != i - 1:
            put(taken(W, 0), first[i], T, slot[parent[i]])
        i -= 1


@fused_steady
def hinges(i, innermost, topology, gathering, inertia, armature, tau, ext, K, T, Y, worst, W):
    """Eliminate hinges from body i in to `innermost`, as long as there are no other joints; return where it ended.

    A loop of its own, so that what is handed from body to body, at the beginning of W before and after, has all
    registers to itself.
    """
    parent, code, _, iv = topology
    slot, first, kept = gathering
    up = taken(W, 0)
    while i >= innermost and (code[i] == HINGE or code[i] == CIRCLE):
        w = rigid(i, inertia, K)
        if slot[i] >= 0:  # `gathered`, in place
            w = plus(w, up)
            if not first[i + 1]:
                w = plus(w, taken(T, slot[i]))
        if ext.shape[0]:
            w = relieved(i, w, ext)
        w, ratio = hinge(i, K, armature[iv[i]], tau[iv[i]], w, Y, kept[i])
        note(ratio, i, worst)
        up = moved(i, K, w)
        if parent[i] >= 0 and parent[i] != i - 1:
            put(up, first[i], T, slot[parent[i]])
        i -= 1
    stashed(up, W)
    return i


@pasted
def note(ratio, i, worst):
    """Keep the least relative pivot and its body; of those that fail, the first."""
    if worst[0] > 0.0 and not ratio >= worst[0]:
        worst[0], worst[1] = ratio, i


@fused_steady
def accelerations(topology, gathering, pitch, K, Y, qdd, A):
    """Return to the leaves: qdd = D^-1 (u - U^T a) for every joint; A (n, 6) is memory for their own accelerations."""
    accelerations_between(0, len(topology[0]), topology, gathering, pitch, K, Y, qdd, A)


@fused_steady
def accelerations_between(begin, end, topology, gathering, pitch, K, Y, qdd, A):
    """Return from body `begin` to end - 1; their parents are among them or have been there.

    A body's acceleration is kept where a child asks for it that does not come next.
    """
    parent, code, _, iv = topology
    slot, first, kept = gathering
    a, b = nothing(), nothing()
    if begin < end and parent[begin] >= 0:
        a, b = load(A, 6 * parent[begin]), load(A, 6 * parent[begin] + 3)
    for i in range(begin, end):
        a, b = carrier(i, parent[i], A, a, b)
        at, k, r = kept[i], iv[i], load(K, MOTION * i + 9)
        if code[i] == HINGE or code[i] == CIRCLE:
            U = load(Y, at)
            x = Y[at + 6] * (Y[at + 7] - total(U * a + (load(Y, at + 3) + cross(r, U)) * b))
            qdd[k] = x
            a, b = a + cross(b, r), b + x * load(K, MOTION * i + 6)
        else:
            a = a + cross(b, r)
            yielded(VELOCITIES[code[i]], at, k, Y, Y, 0, kept, 0, Y, a, b, qdd)
            a, b = onward(i, code[i], k, pitch[i], K, qdd, a, b)
        if i == end - 1 or (slot[i] >= 0 and not first[i + 1]):
            store(A, 6 * i, a)
            store(A, 6 * i + 2, last_and_three(a, b))


@pasted
def carrier(i, p, A, a, b):
    """Return the acceleration of the parent: what is in registers where it comes just before."""
    if p < 0:
        return nothing(), nothing()
    if p != i - 1:
        return load(A, 6 * p), load(A, 6 * p + 3)
    return a, b


@fused_steady
def yielded(count, at, k, Y, phi, at_phi, rows, w, lam, a, b, qdd):
    """Fill in qdd of a joint of any kind: D^-1 (u - U^T a - Phi^T lam), w rows being open there."""
    D, u = at + 6 * count, at + 6 * count + count * count
    for c in range(count):
        qdd[k + c] = 0.0
    for e in range(count):
        x = Y[u + e] - total(load(Y, at + 6 * e) * a + load(Y, at + 6 * e + 3) * b)
        for row in range(w):
            x -= phi[at_phi + e * w + row] * lam[rows[row]]
        for c in range(count):
            qdd[k + c] += Y[D + c * count + e] * x


@pasted
def onward(i, kind, k, h, K, qdd, a, b):
    """Return the acceleration of body i: its parent's, there, and S qdd."""
    at = MOTION * i
    s, o = along(kind, k, h, qdd, load(K, at), load(K, at + 3), load(K, at + 6))
    return a + s, b + o


@fused_steady
def spread(topology, pitch, K, qdd, A):
    """Fill A (n, 6) with the accelerations that joint accelerations qdd alone cause."""
    spread_between(0, len(topology[0]), topology, pitch, K, qdd, A)


@fused_steady
def spread_between(begin, end, topology, pitch, K, qdd, A):
    """Fill A for bodies begin, ..., end - 1, whose parents are among them or are there already."""
    parent, code, _, iv = topology
    a, b = nothing(), nothing()
    if begin < end and parent[begin] >= 0:
        a, b = load(A, 6 * parent[begin]), load(A, 6 * parent[begin] + 3)
    for i in range(begin, end):
        a, b = carrier(i, parent[i], A, a, b)
        a = a + cross(b, load(K, MOTION * i + 9))
        if code[i] == HINGE or code[i] == CIRCLE:
            b = b + qdd[iv[i]] * load(K, MOTION * i + 6)
        else:
            a, b = onward(i, code[i], iv[i], pitch[i], K, qdd, a, b)
        store(A, 6 * i, a)
        store(A, 6 * i + 3, b)


# ----------------------------------------------------------------------------------------------------------------------
# Newton-Euler inward: forces on bodies become joint forces, from the leaves to the ground.
#
# Symbols as in `joints.py`: (f, n) force and moment that a subtree needs at a body's origin, S motion subspace of
# its joint; the joint's part is S^T (f, n), the rest is handed to the parent: n + r x f.


@fused_steady
def needed(topology, gathering, pitch, inertia, armature, acc, ext, K, T, tau):
    """Newton-Euler, inward: joint forces tau for the motion in K, armature times acc included."""
    parent, code, _, iv = topology
    slot, first, _ = gathering
    up, turn = nothing(), nothing()
    for i in range(len(parent) - 1, -1, -1):
        h, Jx, Jy, Jz = inertia_in_world(i, inertia, K)
        f, n = force_needed(i, inertia[i, 0], h, Jx, Jy, Jz, K)
        if ext.shape[0]:
            push, moment = pair_at(i, ext)
            f, n = f - push, n - moment
        f, n = with_children(i, first, slot, T, f, n, up, turn)
        felt_by(i, code[i], iv[i], pitch[i], K, f, n, tau)
        up, turn = f, n + cross(load(K, MOTION * i + 9), f)
        put_pair(i, parent[i], first, slot, T, up, turn)
    for k in range(len(tau)):
        tau[k] += armature[k] * acc[k]


@fused_steady
def transmitted(topology, gathering, pitch, forces, K, T, tau):
    """Fill tau with the joint forces that forces (n, 6) on bodies amount to: J^T times them."""
    parent, code, _, iv = topology
    slot, first, _ = gathering
    up, turn = nothing(), nothing()
    for i in range(len(parent) - 1, -1, -1):
        f, n = pair_at(i, forces)
        f, n = with_children(i, first, slot, T, f, n, up, turn)
        felt_by(i, code[i], iv[i], pitch[i], K, f, n, tau)
        up, turn = f, n + cross(load(K, MOTION * i + 9), f)
        put_pair(i, parent[i], first, slot, T, up, turn)


@pasted
def with_children(i, first, slot, T, f, n, up, turn):
    """Return a force and moment with those of all children, the last of which is in registers."""
    if slot[i] >= 0:
        f, n = f + up, n + turn
        if not first[i + 1]:
            f, n = f + load(T, PLACE * slot[i]), n + load(T, PLACE * slot[i] + WIDTH)
    return f, n


@pasted
def put_pair(i, p, first, slot, T, f, n):
    """Put a force and moment where children meet, unless the parent comes next."""
    if p >= 0 and p != i - 1:
        at = PLACE * slot[p]
        if not first[i]:
            f, n = f + load(T, at), n + load(T, at + WIDTH)
        store(T, at, f)
        store(T, at + WIDTH, n)


@pasted
def felt_by(i, kind, k, h, K, f, n, tau):
    """Set tau[k], tau[k + 1], ... of the joint of body i to S^T (f, n)."""
    at = MOTION * i
    if kind == HINGE or kind == CIRCLE:
        tau[k] = total(load(K, at + 6) * n)
    else:
        felt(kind, k, h, load(K, at), load(K, at + 3), load(K, at + 6), f, n, tau)


@fused_steady
def felt(kind, k, h, x, y, z, f, n, tau):
    """Set tau[k], ... to S^T (f, n) for S made of the axes x, y, z; the other way of `along`."""
    if kind == SLIDER:
        tau[k] = total(z * f)
    elif kind == SCREW:
        tau[k] = h * total(z * f) + total(z * n)
    elif kind == PLANE:
        tau[k], tau[k + 1], tau[k + 2] = total(x * f), total(y * f), total(z * n)
    elif kind == BALL:
        tau[k], tau[k + 1], tau[k + 2] = total(x * n), total(y * n), total(z * n)
    elif kind == FLYING:
        tau[k], tau[k + 1], tau[k + 2] = total(x * f), total(y * f), total(z * f)
        tau[k + 3], tau[k + 4], tau[k + 5] = total(x * n), total(y * n), total(z * n)
    elif kind == HINGE or kind == CIRCLE:
        tau[k] = total(z * n)
