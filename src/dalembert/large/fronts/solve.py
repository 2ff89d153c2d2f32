"""Fronts in numbers: the block system solved for any right side, inward and back, with factors of `factor.py`.

Symbols as there: rows' right sides y become R^-1 y where they close; u of joints goes into Y; lam comes on the way
back.
"""

from __future__ import annotations

from dalembert.kernel.loops import fused_steady, pasted
from dalembert.large.fronts.plan import FEW, MERGED
from dalembert.large.inward import carrier, felt, onward, put_pair, with_children, yielded
from dalembert.large.layout import CIRCLE, HINGE, VELOCITIES
from dalembert.large.outward import MOTION
from dalembert.large.simd4 import WIDTH, cross, first, fourth, load, nothing, second, store, third, total


@fused_steady
def eliminate(
    inner, outer, topology, gathering, pitch, K, kinds, ids, at, run, Y, phi, kept_factor, need, tau, y, T, work
):  # fmt: skip
    """Go from body outer - 1 in to `inner`: u of joints into Y, y of rows becomes R^-1 y where they close.

    Where body `inner` is the first, the ground comes behind it. work: room for rows (8,), for a joint (6,), and what
    body `outer` has handed inward (8,).
    """
    parent, code, _, iv = topology
    slot, first_child, kept = gathering
    kind, closed, opened, start, _ = kinds
    p, S, handed = work
    n, up, twist, low, high = len(parent), load(handed, 0), load(handed, WIDTH), nothing(), nothing()
    for i in range(outer - 1, inner - 1, -1):
        f, m = nothing(), nothing()
        if need.shape[0]:
            f, m = load(need, 6 * i), load(need, 6 * i + 3)
        f, m = with_children(i, first_child, slot, T, f, m, up, twist)
        if kind[i] == MERGED and closed[i]:
            store(p, 0, f)
            store(p, 3, m)
            descend(ids[start[i] :], closed[i], opened[i], kept_factor[at[3, i] :], y, p)
            f, m = load(p, 0), load(p, 3)
        rows = start[i] + closed[i]
        if code[i] == HINGE or code[i] == CIRCLE:
            u = tau[iv[i]] - total(load(K, MOTION * i + 6) * m)
            Y[kept[i] + 7] = u
            x = Y[kept[i] + 6] * u
            f, m = f + x * load(Y, kept[i]), m + x * load(Y, kept[i] + 3)
            if opened[i] and run[i] <= i:
                if i == outer - 1 or run[i + 1] != run[i]:
                    low, high = rows_of_front(ids, rows, opened[i], y, p)
                low, high = low - x * load(phi, at[2, i]), high - x * load(phi, at[2, i] + WIDTH)
                if i == run[i] or i == inner:
                    keep_rows(ids, rows, opened[i], low, high, y, p)
            else:
                for a in range(opened[i]):
                    y[ids[rows + a]] -= phi[at[2, i] + a] * x
        elif VELOCITIES[code[i]]:
            f, m = give_way(i, code[i], pitch[i], K, Y, kept[i], tau[iv[i] :], f, m, phi, at[2, i], ids[rows:],
                            opened[i], y, S)  # fmt: skip
        up, twist = f, m + cross(load(K, MOTION * i + 9), f)
        put_pair(i, parent[i], first_child, slot, T, up, twist)
    store(handed, 0, up)
    store(handed, WIDTH, twist)
    if inner == 0 and kind[n] == MERGED and closed[n]:
        descend(ids[start[n] :], closed[n], opened[n], kept_factor[at[3, n] :], y, p)


@pasted
def rows_of_front(ids, start, w, y, p):
    """Return the entries of y (m,) of the w rows of a narrow front, in two registers, zeros behind them."""
    for a in range(FEW):
        p[a] = y[ids[start + a]] if a < w else 0.0
    return load(p, 0), load(p, WIDTH)


@pasted
def keep_rows(ids, start, w, low, high, y, p):
    """Put two registers back to where `rows_of_front` has them from."""
    store(p, 0, low)
    store(p, WIDTH, high)
    for a in range(w):
        y[ids[start + a]] = p[a]


@fused_steady
def give_way(i, kind, h, K, Y, kept, tau, f, m, phi, at_phi, rows, w, y, S):
    """Return the force behind a joint of any kind; its u goes to Y, its part of open rows to y."""
    count = VELOCITIES[kind]
    D, u = kept + 6 * count, kept + 6 * count + count * count
    felt(kind, 0, h, load(K, MOTION * i), load(K, MOTION * i + 3), load(K, MOTION * i + 6), f, m, S)
    for c in range(count):
        Y[u + c] = tau[c] - S[c]
    for c in range(count):
        x = 0.0
        for b in range(count):
            x += Y[D + c * count + b] * Y[u + b]
        f, m = f + x * load(Y, kept + 6 * c), m + x * load(Y, kept + 6 * c + 3)
        for a in range(w):
            y[rows[a]] -= phi[at_phi + c * w + a] * x
    return f, m


@fused_steady
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


@fused_steady
def back(inner, outer, topology, kept, pitch, K, kinds, ids, at, run, Y, phi, kept_factor, y, qdd, lam, A, work):
    """Return from body `inner` to outer - 1: qdd and lam, body by body; A (n, 6) is there for those before."""
    parent, code, _, iv = topology
    kind, closed, opened, start, _ = kinds
    n, p, low, high, a, b = len(parent), work[0], nothing(), nothing(), nothing(), nothing()
    # rows that are closed at the ground come first
    if inner == 0 and kind[n] == MERGED:
        p[:] = 0.0
        ascend(ids[start[n] :], closed[n], 0, kept_factor[at[3, n] :], y, p, lam)
    if inner < outer and parent[inner] >= 0:
        a, b = load(A, 6 * parent[inner]), load(A, 6 * parent[inner] + 3)
    for i in range(inner, outer):
        a, b = carrier(i, parent[i], A, a, b)
        r, at_Y, k, rows = load(K, MOTION * i + 9), kept[i], iv[i], start[i] + closed[i]
        # qdd = D^-1 (u - Phi^T lam - U^T a); rows of a run stay in registers
        if code[i] == HINGE or code[i] == CIRCLE:
            U, held = load(Y, at_Y), Y[at_Y + 7]
            if opened[i] and run[i] <= i:
                if i == run[i] or i == inner:
                    low, high = rows_of_front(ids, rows, opened[i], lam, p)
                felt_rows = low * load(phi, at[2, i]) + high * load(phi, at[2, i] + WIDTH)
                held -= total(felt_rows) + fourth(felt_rows)
            else:
                for row in range(opened[i]):
                    held -= phi[at[2, i] + row] * lam[ids[rows + row]]
            x = Y[at_Y + 6] * (held - total(U * a + (load(Y, at_Y + 3) + cross(r, U)) * b))
            qdd[k] = x
            a, b = a + cross(b, r), b + x * load(K, MOTION * i + 6)
        else:
            a = a + cross(b, r)
            yielded(VELOCITIES[code[i]], at_Y, k, Y, phi, at[2, i], ids[rows:], opened[i], lam, a, b, qdd)
            a, b = onward(i, code[i], k, pitch[i], K, qdd, a, b)
        # the body's acceleration, and the multipliers of rows that are closed at it
        store(A, 6 * i, a)
        store(A, 6 * i + 3, b)
        if kind[i] == MERGED and closed[i]:
            p[0], p[1], p[2], p[3], p[4], p[5] = first(a), second(a), third(a), first(b), second(b), third(b)
            ascend(ids[start[i] :], closed[i], opened[i], kept_factor[at[3, i] :], y, p, lam)


@fused_steady
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
