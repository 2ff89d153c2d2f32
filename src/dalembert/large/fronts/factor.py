"""The numerical factor of fronts, in compiled loops along the tree."""

from __future__ import annotations

import numpy as np

from dalembert.kernel.loops import fused_allocating, fused_steady, pasted
from dalembert.kkt.limits import DEAD_PIVOT
from dalembert.large.fronts.front_plan import FEW, IN_PLACE, MERGED, NARROW_F, NARROW_L
from dalembert.large.inward import hinges, note
from dalembert.large.joints import (
    GATHERED,
    PACKED,
    ROOM,
    any_joint,
    gathered,
    none,
    plus,
    put,
    stashed,
    subspace,
    taken,
    unpacked,
)
from dalembert.large.simd4 import WIDTH, load, store

# ----------------------------------------------------------------------------------------------------------------------
# The dense part of a front: Cholesky's factor of its closing rows, in blocks, large products by BLAS.


BLOCK = 48
"""Columns eliminated at a time; products of narrower fronts are plain loops."""

HUGE = 1e150


@fused_allocating
def cholesky(m, e, rows, g, pivots):
    """Factor the first e columns of the lower triangle m (w, w), w >= e, in place; pivots go to pivots[rows]."""
    for begin in range(0, e, BLOCK):
        end = min(begin + BLOCK, e)
        for k in range(begin, end):
            pivot = m[k, k]
            for b in range(begin, k):
                pivot -= m[k, b] * m[k, b]
            pivots[rows[k]] = pivot
            if not pivot > DEAD_PIVOT * g[rows[k]]:
                pivot = HUGE * HUGE
            root = np.sqrt(pivot)
            m[k, k] = root
            for a in range(k + 1, m.shape[0]):
                x = m[a, k]
                for b in range(begin, k):
                    x -= m[a, b] * m[k, b]
                m[a, k] = x / root
        if end < e:
            part = np.ascontiguousarray(m[end:, begin:end])
            width = e - end
            m[end:, end:e] -= np.dot(part, np.ascontiguousarray(part[:width].T))


@fused_allocating
def subtract_product(m, e):
    """Subtract the product of what stands left of it from the lower right part of m."""
    w = m.shape[0]
    if e >= BLOCK // 2 and w - e >= BLOCK:
        part = np.ascontiguousarray(m[e:, :e])
        m[e:, e:] -= np.dot(part, np.ascontiguousarray(part.T))
        return
    for a in range(e, w):
        for b in range(e, a + 1):
            x = 0.0
            for c in range(e):
                x += m[a, c] * m[b, c]
            m[a, b] -= x


# ----------------------------------------------------------------------------------------------------------------------
# Rows of a narrow front carried inward along a run of hinges: what `pass_joint` does there, in registers.
#
# Symbols as in `factor.py`: a row's force F_l (6,), Phi_l = z . its moment, d = 1 / D, r from the parent's origin:
#
#     F_l -= U d Phi_l, then about the parent's origin        L += Phi d Phi^T
#
# The forces of the rows do not know of each other: four of them are six registers, eight are twelve. L is a sum over
# the run that nobody asks for before its end: it is formed a block of bodies at a time, eight registers being its rows.


ROWS_AT_ONCE = 64
"""Bodies of a run that are passed at a time."""

REALS = 2 * FEW
"""Reals of a body in a block: Phi, then d Phi."""


@fused_steady
def carry(outermost, innermost, w, K, Y, kept, phi, at_phi, L, F, block):
    """Pass the hinges from `outermost` in to `innermost`: phi gets their Phi, L (8, 8) and F (7, 8) go on."""
    a0, a1, a2, a3, a4, a5 = load(F, 0), load(F, 8), load(F, 16), load(F, 24), load(F, 32), load(F, 40)
    b0, b1, b2, b3, b4, b5 = load(F, 4), load(F, 12), load(F, 20), load(F, 28), load(F, 36), load(F, 44)
    g, h, at = load(F, 48), load(F, 52), 0
    for i in range(outermost, innermost - 1, -1):
        y, z0, z1, z2, r0, r1, r2 = kept[i], K[i, 6], K[i, 7], K[i, 8], K[i, 9], K[i, 10], K[i, 11]
        U0, U1, U2, U3, U4, U5, d = Y[y], Y[y + 1], Y[y + 2], Y[y + 3], Y[y + 4], Y[y + 5], Y[y + 6]
        p, s = z0 * a3 + z1 * a4 + z2 * a5, z0 * b3 + z1 * b4 + z2 * b5
        u, v = d * p, d * s
        store(phi, at_phi[i], p)
        store(phi, at_phi[i] + WIDTH, s)
        store(block, at, p)
        store(block, at + WIDTH, s)
        store(block, at + FEW, u)
        store(block, at + FEW + WIDTH, v)
        g, h, at = g + p * u, h + s * v, at + REALS
        a0, a1, a2 = a0 - U0 * u, a1 - U1 * u, a2 - U2 * u
        b0, b1, b2 = b0 - U0 * v, b1 - U1 * v, b2 - U2 * v
        a3, a4, a5 = (
            a3 - U3 * u + r1 * a2 - r2 * a1, a4 - U4 * u + r2 * a0 - r0 * a2, a5 - U5 * u + r0 * a1 - r1 * a0
        )  # fmt: skip
        b3, b4, b5 = (
            b3 - U3 * v + r1 * b2 - r2 * b1, b4 - U4 * v + r2 * b0 - r0 * b2, b5 - U5 * v + r0 * b1 - r1 * b0
        )  # fmt: skip
    for k, (a, b) in enumerate(((a0, b0), (a1, b1), (a2, b2), (a3, b3), (a4, b4), (a5, b5), (g, h))):
        store(F, FEW * k, a)
        store(F, FEW * k + WIDTH, b)
    add_products(outermost - innermost + 1, w, block, L)


@fused_steady
def add_products(count, w, block, L):
    """Add Phi d Phi^T of a block of bodies to L (8, 8); rows that are not open have Phi = 0."""
    for half in range(0, w, WIDTH):
        c0, c1, c2, c3 = load(L, half), load(L, half + 8), load(L, half + 16), load(L, half + 24)
        c4, c5, c6, c7 = load(L, half + 32), load(L, half + 40), load(L, half + 48), load(L, half + 56)
        for at in range(0, REALS * count, REALS):
            x = load(block, at + FEW + half)
            c0, c1, c2, c3 = (
                c0 + block[at] * x, c1 + block[at + 1] * x, c2 + block[at + 2] * x, c3 + block[at + 3] * x
            )  # fmt: skip
            c4, c5, c6, c7 = (
                c4 + block[at + 4] * x, c5 + block[at + 5] * x, c6 + block[at + 6] * x, c7 + block[at + 7] * x
            )  # fmt: skip
        for a, c in enumerate((c0, c1, c2, c3, c4, c5, c6, c7)):
            store(L, half + FEW * a, c)


# ----------------------------------------------------------------------------------------------------------------------
# Fronts in numbers: the block matrix factored, and solved for any right side, in compiled loops along the tree.
#
# Symbols: IA, U, D, S, p, u as in `joints.py`; rows l with forces F_l (6,) on the body, w of them open; lam their
# multipliers, y their right side, delta their shift. With da the acceleration of the body beyond its velocity-product
# one, what has been eliminated so far says
#
#     IA da + F^T lam + p = force on the joint          F da - L lam = y
#
# *Closing* rows e are eliminated from it with L_ee = R R^T, o those that stay:
#
#     IA += F_e^T L_ee^-1 F_e     F_o -= L_oe L_ee^-1 F_e     L_oo -= L_oe L_ee^-1 L_eo     p -= F_e^T L_ee^-1 y_e
#
# and the *joint* with Phi = F S + its couplings:
#
#     F -= Phi D^-1 U^T           L += Phi D^-1 Phi^T         y -= Phi D^-1 u
#
# This is L D L^T of [M A^T; A -delta] in the order of the plan, its pivots D and -L_ee. Sources: Featherstone 2008, ch.
# 7; Brandl, Johanni & Otter 1988; Popov & Vereshchagin 1978 for rows carried inward; Duff & Reid 1983 for fronts.


def room(width: int) -> tuple[np.ndarray, ...]:
    """Return what `factor` works in, for fronts of that width."""
    return (
        np.zeros(ROOM), np.empty((6, 6)), np.empty(GATHERED), np.empty((width, width)), np.empty((width, 6)),
        np.empty((0, 6)), np.zeros(ROWS_AT_ONCE * REALS),
    )  # fmt: skip


@fused_steady
def factor(
    inner, outer, topology, gathering, pitch, inertia, armature, K, kinds, ids, at, touches, couplings, merges,
    wrenches, shift, still, T, Y, L, F, phi, kept_factor, g, pivots, worst, narrow, run, work,
):  # fmt: skip
    """Factor the block matrix from body outer - 1 in to `inner`; where that is the first, the ground comes behind it.

    g (m,) gets the rows' diagonal, pivots (m,) theirs, worst (2,) the least of the joints.
    """
    W, S, E, big, forces, ext, block = work
    parent, code, _, iv = topology
    slot, first, kept = gathering
    kind, closed, opened, start, taken_over = kinds
    n = len(parent)
    # the first piece begins: no pivot seen, no inertia handed on
    if outer == n:
        worst[0], worst[1] = np.inf, -1.0
        g[:] = 0.0
        stashed(none(), W)
    i = outer - 1
    while i >= inner:
        # a run of hinges with the same open rows, in registers
        if run[i] <= i:
            i = calm_hinges(i, inner, topology, gathering, run, opened, at, inertia, armature, still, ext, K, T, Y, L,
                            F, phi, worst, W, block)  # fmt: skip
            continue
        w = opened[i]
        # the front of the body: that of its only child extended, or those of several merged
        if kind[i] == IN_PLACE:
            extend(L[at[0, i] :], F[at[1, i] :], taken_over[i], w, narrow)
            begin(n - 1 - i, touches, wrenches, F[at[1, i] :], narrow)
        elif kind[i] == MERGED:
            merge(n - 1 - i, i, kinds, ids, at, touches, merges, wrenches, shift, L, F, kept_factor, g, pivots, big,
                  forces, E, narrow)  # fmt: skip
        # articulated inertia of the body, its joint eliminated
        inertial = gathered(i, first, slot, inertia, K, T, taken(W, 0))
        stashed(plus(inertial, unpacked(E)) if kind[i] == MERGED else inertial, W)
        ratio = any_joint(i, code[i], iv[i], kept[i], pitch, armature, still, K, Y, W, S)
        note(ratio, i, worst)
        if parent[i] >= 0 and parent[i] != i - 1:
            put(taken(W, 0), first[i], T, slot[parent[i]])
        # open rows pass the joint
        if w:
            count = subspace(i, code[i], pitch, K, S)
            pass_joint(
                n - 1 - i, count, w, S, Y[kept[i] :], couplings, phi[at[2, i] :], L[at[0, i] :], F[at[1, i] :],
                ids[start[i] + closed[i] :], g, K[i, 9], K[i, 10], K[i, 11], narrow,
            )  # fmt: skip
        i -= 1
    # rows that close at the ground
    if inner == 0 and kind[n] == MERGED:
        merge(n, n, kinds, ids, at, touches, merges, wrenches, shift, L, F, kept_factor, g, pivots, big, forces, E,
              narrow)  # fmt: skip


@fused_steady
def calm_hinges(
    i, inner, topology, gathering, run, opened, at, inertia, armature, still, ext, K, T, Y, L, F, phi, worst, W, block
):  # fmt: skip
    """Eliminate hinges where no row begins or ends and fronts are narrow, a block at a time: inertias, then rows."""
    while i >= inner and run[i] <= i:
        w, innermost = opened[i], max(run[i], i - ROWS_AT_ONCE + 1, inner)
        hinges(i, innermost, topology, gathering, inertia, armature, still, ext, K, T, Y, worst, W)
        if w:
            carry(i, innermost, w, K, Y, gathering[2], phi, at[2], L[at[0, i] :], F[at[1, i] :], block)
        i = innermost - 1
    return i


@fused_steady
def merge(entry, i, kinds, ids, at, touches, merges, wrenches, shift, L, F, kept_factor, g, pivots, big, forces, E,
          narrow):  # fmt: skip
    """Assemble a front of several children, close its rows; E (27,) gets what they add to the body's inertia."""
    _, closed, opened, start, _ = kinds
    e, w = closed[i], opened[i]
    m, f = big[: e + w, : e + w], forces[: e + w]
    E[:] = 0.0
    assemble(entry, merges, kinds, ids, at, L, F, m, f, g, narrow)
    begin(entry, touches, wrenches, f.reshape(-1), False)
    rows = ids[start[i] : start[i] + e]
    close(m, f, e, rows, shift, g, pivots, kept_factor[at[3, i] : at[3, i] + e * (e + w + 6)], E)
    settle(m, f, e, w, L[at[0, i] :], F[at[1, i] :], narrow)


@pasted
def strides(narrow):
    """Return the steps in F from row to row and from entry to entry of a force."""
    return (1, FEW) if narrow else (6, 1)


@pasted
def line(a, narrow):
    """Return where row a of L begins."""
    return FEW * a if narrow else a * (a + 1) // 2


@fused_steady
def extend(L, F, old, w, narrow):
    """Put zeros behind the rows that a front takes over; those of a narrow one are there from its beginning."""
    if narrow:
        if old == 0:
            L[:NARROW_L] = 0.0
            F[:NARROW_F] = 0.0
        return
    for k in range(old * (old + 1) // 2, w * (w + 1) // 2):
        L[k] = 0.0
    for k in range(6 * old, 6 * w):
        F[k] = 0.0


@fused_steady
def begin(entry, touches, wrenches, F, narrow):
    """Add the forces of rows that begin at a body."""
    starts, rows, places, ends = touches
    by_row, by_entry = strides(narrow)
    for k in range(starts[entry], starts[entry + 1]):
        for d in range(6):
            F[by_row * places[k] + by_entry * d] += wrenches[rows[k], ends[k], d]


@fused_steady
def assemble(entry, merges, kinds, ids, at, L, F, m, f, g, narrow):
    """Gather children's fronts in the lower triangle m and the forces f; of narrow ones the rows' diagonal in g."""
    starts, sources, map_starts, maps = merges
    _, closed, opened, start, _ = kinds
    by_row, by_entry = strides(narrow)
    m[:] = 0.0
    f[:] = 0.0
    for k in range(starts[entry], starts[entry + 1]):
        c = sources[k]
        to, from_L, from_F = maps[map_starts[k] :], at[0, c], at[1, c]
        for a in range(opened[c]):
            if narrow:
                g[ids[start[c] + closed[c] + a]] += F[from_F + 6 * FEW + a]
            for d in range(6):
                f[to[a], d] += F[from_F + by_row * a + by_entry * d]
            for b in range(a + 1):
                x = L[from_L + line(a, narrow) + b]
                if to[a] >= to[b]:
                    m[to[a], to[b]] += x
                else:
                    m[to[b], to[a]] += x


@fused_steady
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


@fused_steady
def settle(m, f, e, w, L, F, narrow):
    """Put the rows that stay open onto the stacks."""
    by_row, by_entry = strides(narrow)
    extend(L, F, 0, 0, narrow)
    for a in range(w):
        for d in range(6):
            F[by_row * a + by_entry * d] = f[e + a, d]
        for b in range(a + 1):
            L[line(a, narrow) + b] = m[e + a, e + b]
            if narrow:
                L[line(b, narrow) + a] = m[e + a, e + b]


@fused_steady
def pass_joint(entry, count, w, S, Y, couplings, phi, L, F, rows, g, r0, r1, r2, narrow):
    """Eliminate a joint from its open rows, and move their forces to the parent's origin."""
    starts, places, columns, factors = couplings
    by_row, by_entry = strides(narrow)
    D = 6 * count
    for c in range(count):
        for a in range(w):
            x = 0.0
            for d in range(6):
                x += S[c, d] * F[by_row * a + by_entry * d]
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
                    F[by_row * a + by_entry * h] -= x * Y[6 * b + h]
                for h in range(w if narrow else a + 1):
                    L[line(a, narrow) + h] += x * phi[b * w + h]
    for a in range(w):
        k, one = by_row * a, by_entry
        f0, f1, f2 = F[k], F[k + one], F[k + 2 * one]
        F[k + 3 * one] += r1 * f2 - r2 * f1
        F[k + 4 * one] += r2 * f0 - r0 * f2
        F[k + 5 * one] += r0 * f1 - r1 * f0
