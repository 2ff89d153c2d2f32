"""The block system of a large mechanism by fronts along its tree: factor, solve; both with residuals in one call."""

from __future__ import annotations

import threading

import numpy as np

from dalembert.tree.large import front_loops, front_solve
from dalembert.tree.large.balance import forget_rounding
from dalembert.tree.large.bundles import FrontBundle, front_bundle
from dalembert.tree.large.factors import Factors, Out, Trial
from dalembert.tree.large.fronts import FEW, Fronts
from dalembert.tree.large.plain_answer import plain_answer
from dalembert.tree.large.row_state import RowState
from dalembert.tree.large.rows import RowValues
from dalembert.tree.verdict import MASSIVE, Thresholds

Array = np.ndarray

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

    def factor(self, values: RowValues, shift: Array) -> Factors:
        """Factor [M A^T; A -shift] at the state in memory."""
        layout, memory, f, stacks = self.state.layout, self.state.tree.memory, self.fronts, self.stacks
        m = self.state.rows.m
        found = Factors(shift, np.zeros(m), np.zeros(m))
        front_loops.factor(
            0, layout.n, layout.topology, layout.gathering, layout.pitch, layout.inertia, self.state.tree.armature,
            memory.K, f.counts, f.ids, f.at, f.touches, f.couplings, f.merges, values.wrenches, shift,
            memory.still, memory.T, memory.Y, stacks.L, stacks.F, stacks.phi, stacks.closed,
            found.g, found.pivots, memory.worst, f.narrow, f.run, stacks.work,
        )  # fmt: skip
        forget_rounding(self.state.ends, layout.inertia, values.wrenches, found.g)
        found.worst = float(memory.worst[0])
        return found

    def solve(self, factors: Factors, need: Array, tau: Array, c: Array) -> tuple[Array, Array]:
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

    def first(self, values: RowValues, load: tuple, present: Array, out: Out) -> tuple[Factors, Trial | None]:
        """Factor without a shift, and solve where the rows that are `present` are independent: a, lam = out."""
        need, tau, c = load
        made, (a, lam) = np.empty((5, len(c))), out
        g, pivots, y, gap, size = made
        clear, one, two = plain_answer(
            self.stacks.bundle, present, values.wrenches, self.unshifted, need, tau, c, g, pivots, y, a, lam, made[3:]
        )
        factors = Factors(self.unshifted, g, pivots, float(self.state.tree.memory.worst[0]))
        return factors, Trial(a, lam, one, two, self.state.room.left, gap, size) if clear else None
