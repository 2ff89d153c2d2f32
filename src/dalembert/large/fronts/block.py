"""The block system by fronts: factor and solve with residuals, in one call."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dalembert.kernel.loops import fused_allocating
from dalembert.kkt.limits import MASSIVE, Thresholds
from dalembert.large.fronts import factor as front_loops
from dalembert.large.fronts import solve as front_solve
from dalembert.large.fronts.factor import factor
from dalembert.large.fronts.plan import FEW, Fronts
from dalembert.large.fronts.solve import back, eliminate
from dalembert.large.inward import spread_between
from dalembert.large.layout import FrontBundle, front_bundle
from dalembert.large.residuals import forget_rounding, largest_of_each, measured
from dalembert.large.row_state import RowState
from dalembert.large.rows import RowValues
from dalembert.types import Array

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
    ends, linear, owner = bundle.rows
    massive, implied, accept = bundle.limits
    K, T, Y, A, worst, still = bundle.memory
    L, F, phi, closed, places = bundle.stacks
    forces, coupled, left = bundle.room
    n = len(topology[0])
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
    forget_rounding(ends, inertia, wrenches, g)
    scale = largest_of_each(owner, owners, g)
    clear = worst[0] > massive
    for row in range(len(g)):
        clear &= pivots[row] > implied * scale[row] or not present[row]
    if not clear:
        return False, 0.0, 0.0
    for inner in range(0, n, piece):
        outer = min(inner + piece, n)
        back(
            inner, outer, topology, gathering[2], pitch, K, kinds, ids, at, run, Y, phi, closed, y, a, lam, A,
            bundle.rows_work,
        )  # fmt: skip
        spread_between(inner, outer, topology, pitch, K, a, A)
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
        front_solve.eliminate(
            0, layout.n, layout.topology, layout.gathering, layout.pitch, memory.K, f.counts, f.ids, f.at, f.run,
            memory.Y, stacks.phi, stacks.closed, need, tau, y, memory.T, stacks.rows_work,
        )  # fmt: skip
        front_solve.back(
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
            (state.ends, rows.linear_terms, rows.owner),
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
        made, (a, lam) = np.empty((5, len(c))), out
        g, pivots, y, gap, size = made
        clear, one, two = plain_answer(
            self.stacks.bundle, present, values.wrenches, self.unshifted, need, tau, c, g, pivots, y, a, lam, made[3:]
        )
        factors = FrontFactors(self.unshifted, g, pivots, float(self.state.tree.memory.worst[0]))
        return factors, Trial(a, lam, one, two, self.state.room.left, gap, size) if clear else None
