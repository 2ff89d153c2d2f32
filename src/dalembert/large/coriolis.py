"""The Coriolis matrix of a large tree as a compiled loop."""

from __future__ import annotations

from dalembert.kernel.loops import fused_steady, pasted
from dalembert.large.joints import inertia_in_world, subspace
from dalembert.large.row_state import momentum
from dalembert.large.simd4 import first, second, third

# ----------------------------------------------------------------------------------------------------------------------
# C by composite bodies, as M is: bias = C v + N, M' - 2 C skew-symmetric.
#
# Symbols and equations as in `tree/algorithms/coriolis.py`, here in world axes about every body's own origin: V, w its
# velocity; S columns (s, z) of its joint, S' = V x S; p momentum, W = ∫ u r^T dm, row by row. Moved by r to the
# parent's origin, W becomes W + p r^T. Cost: n times the depth.


FLOW = 12
"""Reals kept of how the mass of a body flows, with all it carries: p (3), W (9)."""


@fused_steady
def flows(parent, inertia, K, V, out):
    """Fill out (n, 12) with p and W of every body with all it carries."""
    out[:] = 0.0
    for i in range(len(parent) - 1, -1, -1):
        h, Jx, Jy, Jz = inertia_in_world(i, inertia, K)
        own_flow(i, inertia[i, 0], (first(h), second(h), third(h)), (first(Jx), second(Jx), third(Jx)),
                 (second(Jy), third(Jy), third(Jz)), K, V, out[i])  # fmt: skip
        if parent[i] < 0:
            continue
        # what it carries too, about the parent's origin
        up = out[parent[i]]
        for a in range(3):
            up[a] += out[i, a]
            for b in range(3):
                up[3 + 3 * a + b] += out[i, 3 + 3 * a + b] + out[i, a] * K[i, 9 + b]


@fused_steady
def own_flow(i, m, h, Jx, rest, K, V, flow):
    """Add p = m V + w x h and W = V h^T + [w x] E of body i; E = tr(J) / 2 1 - J."""
    w0, w1, w2 = K[i, 12], K[i, 13], K[i, 14]
    Jyy, Jyz, Jzz = rest
    half = 0.5 * (Jx[0] + Jyy + Jzz)
    flow[0] += m * V[i, 0] + w1 * h[2] - w2 * h[1]
    flow[1] += m * V[i, 1] + w2 * h[0] - w0 * h[2]
    flow[2] += m * V[i, 2] + w0 * h[1] - w1 * h[0]
    columns = ((half - Jx[0], -Jx[1], -Jx[2]), (-Jx[1], half - Jyy, -Jyz), (-Jx[2], -Jyz, half - Jzz))
    for b in range(3):
        x, y, z = columns[b]
        flow[3 + b] += V[i, 0] * h[b] + w1 * z - w2 * y
        flow[6 + b] += V[i, 1] * h[b] + w2 * x - w0 * z
        flow[9 + b] += V[i, 2] * h[b] + w0 * y - w1 * x


@pasted
def turned(i, s, K, V, rate):
    """Fill rate (6,) with V x S of a column s of body i: (w x s + V x z, w x z)."""
    w0, w1, w2 = K[i, 12], K[i, 13], K[i, 14]
    rate[0] = w1 * s[2] - w2 * s[1] + V[i, 1] * s[5] - V[i, 2] * s[4]
    rate[1] = w2 * s[0] - w0 * s[2] + V[i, 2] * s[3] - V[i, 0] * s[5]
    rate[2] = w0 * s[1] - w1 * s[0] + V[i, 0] * s[4] - V[i, 1] * s[3]
    rate[3] = w1 * s[5] - w2 * s[4]
    rate[4] = w2 * s[3] - w0 * s[5]
    rate[5] = w0 * s[4] - w1 * s[3]


@fused_steady
def flow_forces(flow, s, along, flowing):
    """Add ∫ G^T G' dm S to `along`, and fill `flowing` with its transpose times S."""
    trace = flow[3] + flow[7] + flow[11]
    along[0] += s[4] * flow[2] - s[5] * flow[1]
    along[1] += s[5] * flow[0] - s[3] * flow[2]
    along[2] += s[3] * flow[1] - s[4] * flow[0]
    flowing[0], flowing[1], flowing[2] = 0.0, 0.0, 0.0
    flowing[3] = flow[1] * s[2] - flow[2] * s[1] + trace * s[3]
    flowing[4] = flow[2] * s[0] - flow[0] * s[2] + trace * s[4]
    flowing[5] = flow[0] * s[1] - flow[1] * s[0] + trace * s[5]
    for a in range(3):
        along[3 + a] += trace * s[3 + a]
        for b in range(3):
            along[3 + a] -= flow[3 + 3 * a + b] * s[3 + b]
            flowing[3 + a] -= flow[3 + 3 * b + a] * s[3 + b]


@fused_steady
def moved_in(i, K, f):
    """Move a force (6,) from the origin of body i to its parent's."""
    x, y, z = K[i, 9], K[i, 10], K[i, 11]
    f[3] += y * f[2] - z * f[1]
    f[4] += z * f[0] - x * f[2]
    f[5] += x * f[1] - y * f[0]


@fused_steady
def coriolis_matrix(topology, pitch, inertia, K, V, composite, flow, room, C):
    """Fill C (nv, nv); `composite` (n, 10) are inertias with all that is carried; flow (n, 12), room (16, 6) memory."""
    parent, code, _, iv = topology
    S, up, rate = room[:6], room[6:12], room[12]
    along, carried, flowing = room[13], room[14], room[15]
    flows(parent, inertia, K, V, flow)
    C[:] = 0.0
    for i in range(len(parent)):
        for k in range(subspace(i, code[i], pitch, K, S)):
            # the forces of a column: for the rows inward of it, and for the columns
            turned(i, S[k], K, V, rate)
            momentum(composite[i], rate, along)
            momentum(composite[i], S[k], carried)
            flow_forces(flow[i], S[k], along, flowing)
            column, j = iv[i] + k, i
            while j >= 0:
                for c in range(subspace(j, code[j], pitch, K, up)):
                    turned(j, up[c], K, V, rate)
                    forth, back = 0.0, 0.0
                    for d in range(6):
                        forth += up[c, d] * along[d]
                        back += rate[d] * carried[d] + up[c, d] * flowing[d]
                    C[iv[j] + c, column] = forth
                    if j != i:
                        C[column, iv[j] + c] = back
                moved_in(j, K, along)
                moved_in(j, K, carried)
                moved_in(j, K, flowing)
                j = parent[j]
