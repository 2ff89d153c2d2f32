"""Matrices of a large tree, where someone wants them in full: M by composite bodies, A by walking up from each row.

Symbols: m, h, J mass, first moment and inertia of a body with all it carries, at its origin in world axes; moved by r

    h' = h + m r        J' = J + 2 (h.r) 1 - h r^T - r h^T + m (r.r 1 - r r^T)

M_ij = S_j^T (Ic_i S_i) for j on the way from i to the ground (Featherstone 2008, ch. 6). Cost: n times the depth.
"""

from __future__ import annotations

import numpy as np

from dalembert.kernel.loops import loop
from dalembert.tree.large.articulate import inertia_in_world
from dalembert.tree.large.lanes import first, second, third
from dalembert.tree.large.other_joints import subspace
from dalembert.tree.large.outward import COMPILED


@loop(**COMPILED)
def composites(parent, inertia, K):
    """Return m, h, J of every body with all it carries, (n, 10)."""
    comp = np.zeros((len(parent), 10))
    for i in range(len(parent) - 1, -1, -1):
        first_moment, Jx, Jy, Jz = inertia_in_world(i, inertia, K)
        c = comp[i]
        c[0] += inertia[i, 0]
        c[1] += first(first_moment)
        c[2] += second(first_moment)
        c[3] += third(first_moment)
        c[4] += first(Jx)
        c[5] += second(Jx)
        c[6] += third(Jx)
        c[7] += second(Jy)
        c[8] += third(Jy)
        c[9] += third(Jz)
        p = parent[i]
        if p < 0:
            continue
        x, y, z = K[i, 9], K[i, 10], K[i, 11]
        m, a, b, e = c[0], c[1], c[2], c[3]
        up = comp[p]
        up[0] += m
        up[1] += a + m * x
        up[2] += b + m * y
        up[3] += e + m * z
        up[4] += c[4] + 2 * (b * y + e * z) + m * (y * y + z * z)
        up[5] += c[5] - a * y - b * x - m * x * y
        up[6] += c[6] - a * z - e * x - m * x * z
        up[7] += c[7] + 2 * (a * x + e * z) + m * (x * x + z * z)
        up[8] += c[8] - b * z - e * y - m * y * z
        up[9] += c[9] + 2 * (a * x + b * y) + m * (x * x + y * y)
    return comp


@loop(**COMPILED)
def mass_matrix(topology, pitch, inertia, armature, K, M):
    """Fill M (nv, nv)."""
    parent, code, _, iv = topology
    comp = composites(parent, inertia, K)
    S, U, f = np.empty((6, 6)), np.empty((6, 6)), np.empty(6)
    M[:] = 0.0
    for i in range(len(parent)):
        count, c = subspace(i, code[i], pitch, K, S), comp[i]
        for k in range(count):
            s = S[k]
            f[0] = c[0] * s[0] + s[4] * c[3] - s[5] * c[2]
            f[1] = c[0] * s[1] + s[5] * c[1] - s[3] * c[3]
            f[2] = c[0] * s[2] + s[3] * c[2] - s[4] * c[1]
            f[3] = c[4] * s[3] + c[5] * s[4] + c[6] * s[5] + c[2] * s[2] - c[3] * s[1]
            f[4] = c[5] * s[3] + c[7] * s[4] + c[8] * s[5] + c[3] * s[0] - c[1] * s[2]
            f[5] = c[6] * s[3] + c[8] * s[4] + c[9] * s[5] + c[1] * s[1] - c[2] * s[0]
            row = M[iv[i] + k]
            walk(i, -1, f, topology, pitch, K, U, row)
            for j in range(iv[i] + k):
                M[j, iv[i] + k] = row[j]
            row[iv[i] + k] += armature[iv[i] + k]


@loop(**COMPILED)
def walk(i, end, f, topology, pitch, K, S, row):
    """Add S^T f of all joints from body i up to, not including, body `end`; f (6,) is moved along and used up."""
    parent, code, _, iv = topology
    while i != end:
        for c in range(subspace(i, code[i], pitch, K, S)):
            total = 0.0
            for d in range(6):
                total += S[c, d] * f[d]
            row[iv[i] + c] += total
        x, y, z = K[i, 9], K[i, 10], K[i, 11]
        f[3] += y * f[2] - z * f[1]
        f[4] += z * f[0] - x * f[2]
        f[5] += x * f[1] - y * f[0]
        i = parent[i]


@loop(**COMPILED)
def row_jacobian(topology, pitch, K, ends, closing, wrenches, A):
    """Fill A (m, nv): forces of rows walked up to the body that carries both ends (closing, n for the ground)."""
    n = len(topology[0])
    S, f = np.empty((6, 6)), np.empty(6)
    A[:] = 0.0
    for row in range(len(ends)):
        for end in range(2):
            if ends[row, end] >= 0:
                f[:] = wrenches[row, end]
                walk(ends[row, end], closing[row] if closing[row] < n else -1, f, topology, pitch, K, S, A[row])
