"""Fronts in numbers: the block matrix factored, and solved for any right side, in compiled loops along the tree.

Symbols: IA, U, D, S, p, u as in `articulate.py`; rows l with forces F_l (6,) on the body, w of them open; lam their
multipliers, y their right side, delta their shift. With da the acceleration of the body beyond its velocity-product
one, what has been eliminated so far says

    IA da + F^T lam + p = force on the joint          F da - L lam = y

*Closing* rows e are eliminated from it with L_ee = R R^T, o those that stay:

    IA += F_e^T L_ee^-1 F_e     F_o -= L_oe L_ee^-1 F_e     L_oo -= L_oe L_ee^-1 L_eo     p -= F_e^T L_ee^-1 y_e

and the *joint* with Phi = F S + its couplings:

    F -= Phi D^-1 U^T           L += Phi D^-1 Phi^T         y -= Phi D^-1 u

This is L D L^T of [M A^T; A -delta] in the order of the plan, its pivots D and -L_ee. Sources: Featherstone 2008, ch.
7; Brandl, Johanni & Otter 1988; Popov & Vereshchagin 1978 for rows carried inward; Duff & Reid 1983 for fronts.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from dalembert.tree.large.articulate import GATHERED, PACKED, subspace
from dalembert.tree.large.dense import cholesky, subtract_product
from dalembert.tree.large.fronts import IN_PLACE, MERGED
from dalembert.tree.large.inward import carried, eliminate
from dalembert.tree.large.outward import COMPILED


@njit(**COMPILED)
def factor(
    topology, gathering, pitch, inertia, armature, K, kinds, ids, at, touches, couplings, merges,
    wrenches, shift, T, Y, L, F, phi, kept_factor, g, pivots, worst, width,
):  # fmt: skip
    """Factor the block matrix; g (m,) gets the rows' diagonal, pivots (m,) theirs, worst (2,) the joints' least."""
    parent, code, _, iv = topology
    slot, first, kept = gathering
    kind, closed, opened, start, taken = kinds
    n = len(parent)
    zero = np.zeros(len(armature))
    no_force, nothing = np.empty((0, 6)), np.empty(0)
    W, S, E = np.empty(GATHERED), np.empty((6, 6)), np.empty(GATHERED)
    big, forces = np.empty((width, width)), np.empty((width, 6))
    worst[0], worst[1] = np.inf, -1.0
    g[:] = 0.0
    for turn in range(n - 1, -2, -1):
        i = turn if turn >= 0 else n
        ground = turn < 0
        E[:] = 0.0
        w = opened[i]
        at_L, at_F = at[0, i], at[1, i]
        if kind[i] == IN_PLACE:
            extend(L[at_L:], F[at_F:], taken[i], w)
            begin(n - 1 - i, touches, wrenches, F[at_F:])
        elif kind[i] == MERGED:
            e = closed[i]
            m, f = big[: e + w, : e + w], forces[: e + w]
            assemble(n - 1 - i if not ground else n, merges, opened, at, L, F, m, f)
            begin(n - 1 - i if not ground else n, touches, wrenches, f.reshape(-1))
            rows = ids[start[i] : start[i] + e]
            close(m, f, e, rows, shift, g, pivots, kept_factor[at[3, i] : at[3, i] + e * (e + w + 6)], E)
            settle(m, f, e, w, L[at_L:], F[at_F:])
        if ground:
            break
        up = slot[parent[i]] if parent[i] >= 0 else -1
        ratio = eliminate(
            i, code[i], iv[i], slot[i], up, first[i], kept[i], pitch, inertia, armature, zero, no_force,
            E if kind[i] == MERGED else nothing, K, T, Y, W, S,
        )  # fmt: skip
        if worst[0] > 0.0 and not ratio >= worst[0]:  # the first that fails is the one to name
            worst[0], worst[1] = ratio, i
        if w:
            count = subspace(i, code[i], pitch, K, S)
            pass_joint(
                n - 1 - i, count, w, S, Y[kept[i] :], couplings, phi[at[2, i] :], L[at_L:], F[at_F:],
                ids[start[i] + closed[i] :], g, K[i, 9], K[i, 10], K[i, 11],
            )  # fmt: skip


@njit(**COMPILED)
def extend(L, F, old, w):
    """Put zeros behind the rows that a front takes over."""
    for k in range(old * (old + 1) // 2, w * (w + 1) // 2):
        L[k] = 0.0
    for k in range(6 * old, 6 * w):
        F[k] = 0.0


@njit(**COMPILED)
def begin(entry, touches, wrenches, F):
    """Add the forces of rows that begin at a body."""
    starts, rows, places, ends = touches
    for k in range(starts[entry], starts[entry + 1]):
        for d in range(6):
            F[6 * places[k] + d] += wrenches[rows[k], ends[k], d]


@njit(**COMPILED)
def assemble(entry, merges, opened, at, L, F, m, f):
    """Gather children's fronts in the lower triangle m and the forces f."""
    starts, sources, map_starts, maps = merges
    m[:] = 0.0
    f[:] = 0.0
    for k in range(starts[entry], starts[entry + 1]):
        c = sources[k]
        to, from_L, from_F = maps[map_starts[k] :], at[0, c], at[1, c]
        for a in range(opened[c]):
            for d in range(6):
                f[to[a], d] += F[from_F + 6 * a + d]
            for b in range(a + 1):
                x = L[from_L + a * (a + 1) // 2 + b]
                if to[a] >= to[b]:
                    m[to[a], to[b]] += x
                else:
                    m[to[b], to[a]] += x


@njit(**COMPILED)
def close(m, f, e, rows, shift, g, pivots, kept, E):
    """Eliminate the first e rows of a front; E (27,) gets what they add to the body's inertia."""
    for a in range(e):
        m[a, a] += shift[rows[a]]
    cholesky(m, e, rows, g, pivots)
    w = m.shape[0]
    for a in range(e):
        for d in range(6):
            x = f[a, d]
            for b in range(a):
                x -= m[a, b] * f[b, d]
            f[a, d] = x / m[a, a]
    for a in range(e):
        for b in range(6):
            for c in range(b, 6):
                E[PACKED[b, c]] += f[a, b] * f[a, c]
    if w > e:
        for o in range(e, w):
            for a in range(e):
                x = m[o, a]
                for d in range(6):
                    f[o, d] -= x * f[a, d]
        subtract_product(m, e)
    for a in range(w):
        for b in range(e):
            kept[a * e + b] = m[a, b]
    for a in range(e):
        for d in range(6):
            kept[w * e + 6 * a + d] = f[a, d]


@njit(**COMPILED)
def settle(m, f, e, w, L, F):
    """Put the rows that stay open onto the stacks."""
    for a in range(w):
        for d in range(6):
            F[6 * a + d] = f[e + a, d]
        for b in range(a + 1):
            L[a * (a + 1) // 2 + b] = m[e + a, e + b]


@njit(**COMPILED)
def pass_joint(entry, count, w, S, Y, couplings, phi, L, F, rows, g, r0, r1, r2):
    """Eliminate a joint from its open rows, and move their forces to the parent's origin."""
    starts, places, columns, factors = couplings
    D = 6 * count
    for c in range(count):
        for a in range(w):
            x = 0.0
            for d in range(6):
                x += S[c, d] * F[6 * a + d]
            phi[c * w + a] = x
    for k in range(starts[entry], starts[entry + 1]):
        phi[columns[k] * w + places[k]] += factors[k]
    for c in range(count):
        for b in range(count):
            d = Y[D + c * count + b]
            for a in range(w):
                x = phi[c * w + a] * d
                g[rows[a]] += x * phi[b * w + a]
                for h in range(6):
                    F[6 * a + h] -= x * Y[6 * b + h]
                line = a * (a + 1) // 2
                for h in range(a + 1):
                    L[line + h] += x * phi[b * w + h]
    for a in range(w):
        f0, f1, f2 = F[6 * a], F[6 * a + 1], F[6 * a + 2]
        F[6 * a + 3] += r1 * f2 - r2 * f1
        F[6 * a + 4] += r2 * f0 - r0 * f2
        F[6 * a + 5] += r0 * f1 - r1 * f0


@njit(**COMPILED)
def solve(
    topology, gathering, pitch, K, kinds, ids, at, Y, phi, kept_factor, need, tau, y, T, qdd, lam, A
):  # fmt: skip
    """Solve for joint forces tau, forces `need` (n, 6) on bodies and right sides y (m,), which is used up."""
    parent, code, _, iv = topology
    slot, first, kept = gathering
    kind, closed, opened, start, _ = kinds
    n = len(parent)
    S, p = np.empty((6, 6)), np.empty(6)
    for turn in range(n - 1, -2, -1):
        i = turn if turn >= 0 else n
        p[:] = 0.0
        if turn >= 0:
            for d in range(6):
                p[d] = need[i, d] if need.shape[0] else 0.0
                if slot[i] >= 0:
                    p[d] += T[slot[i], d]
        if kind[i] == MERGED and closed[i]:
            descend(ids[start[i] :], closed[i], opened[i], kept_factor[at[3, i] :], y, p)
        if turn < 0:
            break
        count = subspace(i, code[i], pitch, K, S)
        D, u, w = kept[i] + 6 * count, kept[i] + 6 * count + count * count, opened[i]
        rows = ids[start[i] + closed[i] :]
        for c in range(count):
            x = tau[iv[i] + c]
            for d in range(6):
                x -= S[c, d] * p[d]
            Y[u + c] = x
        for c in range(count):
            x = 0.0
            for b in range(count):
                x += Y[D + c * count + b] * Y[u + b]
            for d in range(6):
                p[d] += Y[kept[i] + 6 * c + d] * x
            for a in range(w):
                y[rows[a]] -= phi[at[2, i] + c * w + a] * x
        if parent[i] >= 0:
            move(K[i, 9], K[i, 10], K[i, 11], p, first[i], T[slot[parent[i]]])
    back(topology, kept, pitch, K, kinds, ids, at, Y, phi, kept_factor, y, qdd, lam, A)


@njit(**COMPILED)
def move(r0, r1, r2, p, first, T):
    """Add a force, moved to the parent's origin, to the parent's place."""
    n0, n1, n2 = p[3] + r1 * p[2] - r2 * p[1], p[4] + r2 * p[0] - r0 * p[2], p[5] + r0 * p[1] - r1 * p[0]
    if first:
        T[0], T[1], T[2], T[3], T[4], T[5] = p[0], p[1], p[2], n0, n1, n2
    else:
        T[0] += p[0]
        T[1] += p[1]
        T[2] += p[2]
        T[3] += n0
        T[4] += n1
        T[5] += n2


@njit(**COMPILED)
def descend(rows, e, w, kept, y, p):
    """Eliminate closing rows from a right side: y_e becomes R^-1 y_e."""
    for a in range(e):
        x = y[rows[a]]
        for b in range(a):
            x -= kept[a * e + b] * y[rows[b]]
        y[rows[a]] = x / kept[a * e + a]
    for o in range(e, e + w):
        x = 0.0
        for b in range(e):
            x += kept[o * e + b] * y[rows[b]]
        y[rows[o]] -= x
    for a in range(e):
        for d in range(6):
            p[d] -= kept[(e + w) * e + 6 * a + d] * y[rows[a]]


@njit(**COMPILED)
def back(topology, kept, pitch, K, kinds, ids, at, Y, phi, kept_factor, y, qdd, lam, A):
    """Return to the leaves: qdd and lam, body by body."""
    parent, code, _, iv = topology
    kind, closed, opened, start, _ = kinds
    n = len(parent)
    S, still = np.empty((6, 6)), np.zeros(6)
    if kind[n] == MERGED:
        ascend(ids[start[n] :], closed[n], 0, kept_factor[at[3, n] :], y, still, lam)
    for i in range(n):
        carried(i, parent[i], K, A)
        count, k, w = subspace(i, code[i], pitch, K, S), iv[i], opened[i]
        D, u = kept[i] + 6 * count, kept[i] + 6 * count + count * count
        rows = ids[start[i] + closed[i] :]
        for c in range(count):
            x = Y[u + c]
            for d in range(6):
                x -= Y[kept[i] + 6 * c + d] * A[i, d]
            for a in range(w):
                x -= phi[at[2, i] + c * w + a] * lam[rows[a]]
            Y[u + c] = x
        for c in range(count):
            x = 0.0
            for b in range(count):
                x += Y[D + c * count + b] * Y[u + b]
            qdd[k + c] = x
            for d in range(6):
                A[i, d] += S[c, d] * x
        if kind[i] == MERGED and closed[i]:
            ascend(ids[start[i] :], closed[i], w, kept_factor[at[3, i] :], y, A[i], lam)


@njit(**COMPILED)
def ascend(rows, e, w, kept, y, a, lam):
    """Fill in lam of closed rows: R^T lam_e = F' da - L_eo lam_o - R^-1 y_e."""
    for b in range(e):
        x = -y[rows[b]]
        for d in range(6):
            x += kept[(e + w) * e + 6 * b + d] * a[d]
        lam[rows[b]] = x
    for o in range(e, e + w):
        x = lam[rows[o]]
        for b in range(e):
            lam[rows[b]] -= kept[o * e + b] * x
    for b in range(e - 1, -1, -1):
        x = lam[rows[b]] / kept[b * e + b]
        lam[rows[b]] = x
        for c in range(b):
            lam[rows[c]] -= kept[b * e + c] * x
