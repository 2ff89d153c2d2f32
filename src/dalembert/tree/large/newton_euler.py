"""Newton-Euler inward: forces on bodies become joint forces, from the leaves to the ground.

Symbols as in `articulate.py`: (f, n) force and moment that a subtree needs at a body's origin, S motion subspace of its
joint; the joint's part is S^T (f, n), the rest is handed to the parent: n + r x f.
"""

# ruff: noqa: SIM109 - comparisons, not a search in a tuple: these are the innermost branches

from __future__ import annotations

from numba import njit

from dalembert.kernel.loops import loop
from dalembert.tree.large.articulate import PLACE, force_needed, inertia_in_world, pair_at
from dalembert.tree.large.lanes import WIDTH, cross, load, nothing, store, total
from dalembert.tree.large.layout import BALL, CIRCLE, FLYING, HINGE, PLANE, SCREW, SLIDER
from dalembert.tree.large.outward import LOOP, MOTION


@loop(**LOOP)
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


@loop(**LOOP)
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


@njit(inline="always")
def with_children(i, first, slot, T, f, n, up, turn):
    """Return a force and moment with those of all children, the last of which is in registers."""
    if slot[i] >= 0:
        f, n = f + up, n + turn
        if not first[i + 1]:
            f, n = f + load(T, PLACE * slot[i]), n + load(T, PLACE * slot[i] + WIDTH)
    return f, n


@njit(inline="always")
def put_pair(i, p, first, slot, T, f, n):
    """Put a force and moment where children meet, unless the parent comes next."""
    if p >= 0 and p != i - 1:
        at = PLACE * slot[p]
        if not first[i]:
            f, n = f + load(T, at), n + load(T, at + WIDTH)
        store(T, at, f)
        store(T, at + WIDTH, n)


@njit(inline="always")
def felt_by(i, kind, k, h, K, f, n, tau):
    """Set tau[k], tau[k + 1], ... of the joint of body i to S^T (f, n)."""
    at = MOTION * i
    if kind == HINGE or kind == CIRCLE:
        tau[k] = total(load(K, at + 6) * n)
    else:
        felt(kind, k, h, load(K, at), load(K, at + 3), load(K, at + 6), f, n, tau)


@loop(**LOOP)
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
