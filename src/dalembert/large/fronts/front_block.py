"""The block system by fronts: factored once, solved for any right side inward and back, with residuals."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dalembert.kernel.loops import fused_allocating, fused_steady, pasted
from dalembert.kkt.limits import MASSIVE, Thresholds
from dalembert.large.fronts import factor as front_loops
from dalembert.large.fronts.factor import factor
from dalembert.large.fronts.front_plan import FEW, MERGED, Fronts
from dalembert.large.inward import carrier, felt, onward, put_pair, spread_between, with_children, yielded
from dalembert.large.layout import CIRCLE, HINGE, VELOCITIES, FrontBundle, front_bundle
from dalembert.large.outward import MOTION
from dalembert.large.residuals import forget_rounding, largest_of_each, measured
from dalembert.large.row_kernels import RowValues
from dalembert.large.row_state import RowState
from dalembert.large.simd4 import WIDTH, cross, first, fourth, load, nothing, second, store, third, total
from dalembert.types import Array

# ----------------------------------------------------------------------------------------------------------------------
# Fronts in numbers: the block system solved for any right side, inward and back, with factors of `factor.py`.
#
# Symbols as there: rows' right sides y become R^-1 y where they close; u of joints goes into Y; lam comes on the way
# back.


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
        # force that the body and its children hand on
        f, m = nothing(), nothing()
        if need.shape[0]:
            f, m = load(need, 6 * i), load(need, 6 * i + 3)
        f, m = with_children(i, first_child, slot, T, f, m, up, twist)
        # rows that close here: R^-1 y, and what they take from the force
        if kind[i] == MERGED and closed[i]:
            store(p, 0, f)
            store(p, 3, m)
            descend(ids[start[i] :], closed[i], opened[i], kept_factor[at[3, i] :], y, p)
            f, m = load(p, 0), load(p, 3)
        rows = start[i] + closed[i]
        # a hinge gives way: u = tau - S^T p, p + U u / D, and rows that are still open feel it
        if code[i] == HINGE or code[i] == CIRCLE:
            u = tau[iv[i]] - total(load(K, MOTION * i + 6) * m)
            Y[kept[i] + 7] = u
            x = Y[kept[i] + 6] * u
            f, m = f + x * load(Y, kept[i]), m + x * load(Y, kept[i] + 3)
            # along a run of hinges open rows stay in registers
            if opened[i] and run[i] <= i:
                if i == outer - 1 or run[i + 1] != run[i]:
                    low, high = rows_of_front(ids, rows, opened[i], y, p)
                low, high = low - x * load(phi, at[2, i]), high - x * load(phi, at[2, i] + WIDTH)
                if i == run[i] or i == inner:
                    keep_rows(ids, rows, opened[i], low, high, y, p)
            else:
                for a in range(opened[i]):
                    y[ids[rows + a]] -= phi[at[2, i] + a] * x
        # other joints, one velocity after the other
        elif VELOCITIES[code[i]]:
            f, m = give_way(i, code[i], pitch[i], K, Y, kept[i], tau[iv[i] :], f, m, phi, at[2, i], ids[rows:],
                            opened[i], y, S)  # fmt: skip
        # on to the parent, about its origin
        up, twist = f, m + cross(load(K, MOTION * i + 9), f)
        put_pair(i, parent[i], first_child, slot, T, up, twist)
    store(handed, 0, up)
    store(handed, WIDTH, twist)
    # rows that close at the ground
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


# ----------------------------------------------------------------------------------------------------------------------
# Factors and solutions of the block system of a large mechanism, of either way to them.


STEPS = 3
"""Proximal steps: each shrinks what is wrong in the range of G by mu / (sigma + mu), sigma an eigenvalue of G; they
never leave the span where multipliers are least. Source: J. Carpentier, R. Budhiraja, N. Mansard, "Proximal and sparse
resolution of constrained dynamic equations", RSS 2021."""

CLEANINGS = 2
"""What redundant right sides have outside the range of G, rounding, is magnified by 1 / mu along null(A^T) and taken
out again: the first time leaves eps / mu of it, 2e-6; the second the square of that."""

Out = tuple[Array, Array]
"""Where an answer goes: a (nv,), lam (m,)."""


@dataclass(eq=False)
class FrontFactors:
    """Of [M A^T; A -shift].

    Attributes
    ----------
    shift, g, pivots : (m,)
        Shift of the rows; their diagonal of the Delassus matrix, and their pivots.
    worst
        The least relative pivot of a joint.
    solve
        What a sparse LU solves with; None of fronts, whose factors are in their memory.
    """

    shift: Array
    g: Array
    pivots: Array
    worst: float = 1.0
    solve: Any = None


class Trial(NamedTuple):
    """An answer a (nv,), lam (m,), both residuals, and what is left: tau - M a - A^T lam, c - A a with its size."""

    a: Array
    lam: Array
    one: float
    two: float
    left: Array
    gap: Array
    size: Array


# ----------------------------------------------------------------------------------------------------------------------
# Factor, solve where rows are independent, and measure the answer: one call for most states.
#
# Sweeps in the same direction go side by side, some hundreds of bodies at a time: what the first has found of them is
# still in the caches when the second asks for it. Arguments that never change come in a bundle (`layout.py`).


@fused_allocating
def plain_answer(bundle, present, wrenches, shift, need, tau, c, g, pivots, y, a, lam, gap):
    """Return whether joints and the rows that are `present` have pivots; if so, both residuals of a (nv,), lam (m,)."""
    topology, gathering, pitch, inertia, armature = bundle.layout
    kinds, ids, at, run, touches, couplings, merges = bundle.plan
    narrow, owners, piece = bundle.sizes
    ends, linear, owner, units = bundle.rows
    massive, implied, accept = bundle.limits
    K, T, Y, A, worst, still = bundle.memory
    L, F, phi, closed, places = bundle.stacks
    forces, coupled, left = bundle.room
    n = len(topology[0])
    # inward, piece by piece so that a piece stays in the cache: factor, then eliminate
    y[:], lam[:] = c, 0.0
    for outer in range(n, 0, -piece):
        inner = max(outer - piece, 0)
        factor(
            inner, outer, topology, gathering, pitch, inertia, armature, K, kinds, ids, at, touches, couplings, merges,
            wrenches, shift, still, T, Y, L, F, phi, closed, g, pivots, worst, narrow, run, bundle.work,
        )  # fmt: skip
        eliminate(
            inner, outer, topology, gathering, pitch, K, kinds, ids, at, run, Y, phi, closed, need, tau, y, places,
            bundle.rows_work,
        )  # fmt: skip
    # pivots of joints and rows must be clear of rounding, or the caller takes care
    forget_rounding(ends, inertia, wrenches, g)
    scale = largest_of_each(owner, owners, g, units)
    clear = worst[0] > massive
    for row in range(len(g)):
        clear &= pivots[row] > implied * scale[row] or not present[row]
    if not clear:
        return False, 0.0, 0.0
    # outward: accelerations and multipliers
    for inner in range(0, n, piece):
        outer = min(inner + piece, n)
        back(
            inner, outer, topology, gathering[2], pitch, K, kinds, ids, at, run, Y, phi, closed, y, a, lam, A,
            bundle.rows_work,
        )  # fmt: skip
        spread_between(inner, outer, topology, pitch, K, a, A)
    # residuals of both block rows, from rigid inertias
    one, two = measured(
        topology, gathering, pitch, inertia, armature, K, Y, True, ends, linear, wrenches, need, tau, c, a, lam, g,
        A, forces, coupled, T, left, gap, accept,
    )  # fmt: skip
    return True, one, two


# ----------------------------------------------------------------------------------------------------------------------
# The block system of a large mechanism by fronts along its tree: factor, solve; both with residuals in one call.


PIECE = 512
"""Bodies that sweeps in the same direction take in turns; a body is 1.4 kB of memory with six rows open."""


class Stacks(threading.local):
    """Fronts L, F, and what elimination leaves of joints (phi) and of closed rows; made once for each thread."""

    def __init__(self, block: FrontBlock) -> None:
        sizes = block.fronts.sizes
        self.L, self.F = np.zeros(sizes["L"] + FEW), np.zeros(sizes["F"] + FEW)
        self.phi, self.closed = np.zeros(sizes["phi"] + FEW), np.zeros(sizes["factor"] + 1)
        self.places = np.zeros_like(block.state.tree.memory.T)
        self.work, self.rows_work = front_loops.room(max(sizes["width"], 1)), (np.zeros(FEW), np.zeros(6), np.zeros(8))
        self.bundle = block.bundle(self)


class FrontBlock:
    """Factors and solves along the tree; a new factor overwrites the one before."""

    weighed = True
    """Pivots of joints are known: they weigh what is left at each."""

    def __init__(self, state: RowState, fronts: Fronts, limits: Thresholds, piece: int = PIECE) -> None:
        self.state, self.fronts = state, fronts
        self.limits = (MASSIVE * limits.eps, limits.implied, limits.accept)
        self.unshifted = np.zeros(state.rows.m)
        self.piece = piece
        self.stacks = Stacks(self)

    def factor(self, values: RowValues, shift: Array) -> FrontFactors:
        """Factor [M A^T; A -shift] at the state in memory."""
        layout, memory, f, stacks = self.state.layout, self.state.tree.memory, self.fronts, self.stacks
        m = self.state.rows.m
        factors = FrontFactors(shift, np.zeros(m), np.zeros(m))
        front_loops.factor(
            0, layout.n, layout.topology, layout.gathering, layout.pitch, layout.inertia, self.state.tree.armature,
            memory.K, f.counts, f.ids, f.at, f.touches, f.couplings, f.merges, values.wrenches, shift,
            memory.still, memory.T, memory.Y, stacks.L, stacks.F, stacks.phi, stacks.closed,
            factors.g, factors.pivots, memory.worst, f.narrow, f.run, stacks.work,
        )  # fmt: skip
        forget_rounding(self.state.ends, layout.inertia, values.wrenches, factors.g)
        factors.worst = float(memory.worst[0])
        return factors

    def solve(self, factors: FrontFactors, need: Array, tau: Array, c: Array) -> tuple[Array, Array]:
        """Return a and lam for forces `need` (n, 6) that bodies need, joint forces tau and right sides c."""
        layout, memory, f, stacks = self.state.layout, self.state.tree.memory, self.fronts, self.stacks
        a, lam = np.empty(len(tau)), np.zeros(len(c))
        y = np.array(c)
        eliminate(
            0, layout.n, layout.topology, layout.gathering, layout.pitch, memory.K, f.counts, f.ids, f.at, f.run,
            memory.Y, stacks.phi, stacks.closed, need, tau, y, memory.T, stacks.rows_work,
        )  # fmt: skip
        back(
            0, layout.n, layout.topology, layout.kept, layout.pitch, memory.K, f.counts, f.ids, f.at, f.run,
            memory.Y, stacks.phi, stacks.closed, y, a, lam, memory.A, stacks.rows_work,
        )  # fmt: skip
        return a, lam

    def bundle(self, stacks: Stacks) -> FrontBundle:
        """Return what `plain_answer` takes in one."""
        state, f = self.state, self.fronts
        layout, memory, rows, room = state.layout, state.tree.memory, state.rows, state.room
        return front_bundle(
            (layout.topology, layout.gathering, layout.pitch, layout.inertia, state.tree.armature),
            (f.counts, f.ids, f.at, f.run, f.touches, f.couplings, f.merges),
            (f.narrow, rows.owners, self.piece),
            (state.ends, rows.linear_terms, rows.owner, rows.units),
            self.limits,
            (memory.K, memory.T, memory.Y, memory.A, memory.worst, memory.still),
            (stacks.L, stacks.F, stacks.phi, stacks.closed, stacks.places),
            stacks.work,
            stacks.rows_work,
            (room.forces, room.coupled, room.left),
        )

    def first(self, values: RowValues, load: tuple, present: Array, out: Out) -> tuple[FrontFactors, Trial | None]:
        """Factor without a shift, and solve where the rows that are `present` are independent: a, lam = out."""
        need, tau, c = load
        vectors, (a, lam) = np.empty((5, len(c))), out
        g, pivots, y, gap, size = vectors
        clear, one, two = plain_answer(
            self.stacks.bundle,
            present,
            values.wrenches,
            self.unshifted,
            need,
            tau,
            c,
            g,
            pivots,
            y,
            a,
            lam,
            vectors[3:],
        )
        factors = FrontFactors(self.unshifted, g, pivots, float(self.state.tree.memory.worst[0]))
        return factors, Trial(a, lam, one, two, self.state.room.left, gap, size) if clear else None
