"""The block system of a large mechanism by fronts along its tree: factor, solve; both with residuals in one call."""

from __future__ import annotations

import threading

import numpy as np

from dalembert.tree.large import front_loops, front_solve
from dalembert.tree.large.factors import Factors, Trial
from dalembert.tree.large.fronts import FEW, Fronts
from dalembert.tree.large.plain_answer import plain_answer
from dalembert.tree.large.row_state import RowState
from dalembert.tree.large.rows import RowValues
from dalembert.tree.verdict import MASSIVE, Thresholds

Array = np.ndarray


class Stacks(threading.local):
    """Fronts L, F, and what elimination leaves of joints (phi) and of closed rows; made once for each thread."""

    def __init__(self, sizes: dict[str, int]) -> None:
        self.L, self.F = np.zeros(sizes["L"] + FEW), np.zeros(sizes["F"] + FEW)
        self.phi, self.closed = np.zeros(sizes["phi"] + FEW), np.zeros(sizes["factor"] + 1)


class FrontBlock:
    """Factors and solves along the tree; a new factor overwrites the one before."""

    weighed = True
    """Pivots of joints are known: they weigh what is left at each."""

    def __init__(self, state: RowState, fronts: Fronts, limits: Thresholds) -> None:
        self.state, self.fronts = state, fronts
        self.stacks = Stacks(fronts.sizes)
        self.width = max(fronts.sizes["width"], 1)
        self.limits = (MASSIVE * limits.eps, limits.implied, limits.accept)
        self.unshifted = np.zeros(state.rows.m)

    def factor(self, values: RowValues, shift: Array) -> Factors:
        """Factor [M A^T; A -shift] at the state in memory."""
        layout, memory, f, stacks = self.state.layout, self.state.tree.memory, self.fronts, self.stacks
        m = self.state.rows.m
        found = Factors(shift, np.zeros(m), np.zeros(m))
        front_loops.factor(
            layout.topology, layout.gathering, layout.pitch, layout.inertia, self.state.tree.armature, memory.K,
            f.counts, f.ids, f.at, f.touches, f.couplings, f.merges, values.wrenches, shift,
            memory.T, memory.Y, stacks.L, stacks.F, stacks.phi, stacks.closed,
            found.g, found.pivots, memory.worst, self.width, f.narrow, f.run,
        )  # fmt: skip
        found.worst = float(memory.worst[0])
        return found

    def solve(self, factors: Factors, need: Array, tau: Array, c: Array) -> tuple[Array, Array]:
        """Return a and lam for forces `need` (n, 6) that bodies need, joint forces tau and right sides c."""
        layout, memory, f, stacks = self.state.layout, self.state.tree.memory, self.fronts, self.stacks
        a, lam = np.empty(len(tau)), np.zeros(len(c))
        front_solve.solve(
            layout.topology, layout.gathering, layout.pitch, memory.K, f.counts, f.ids, f.at, f.run, memory.Y,
            stacks.phi, stacks.closed, need, tau, np.array(c), memory.T, a, lam, memory.A,
        )  # fmt: skip
        return a, lam

    def first(self, values: RowValues, load: tuple, present: Array) -> tuple[Factors, Trial | None]:
        """Factor without a shift, and solve where the rows that are `present` are independent."""
        state, f, stacks = self.state, self.fronts, self.stacks
        layout, memory, rows, room = state.layout, state.tree.memory, state.rows, state.room
        need, tau, c = load
        g, pivots, y, lam = np.zeros((4, rows.m))
        a, gap = np.empty(len(tau)), np.empty((2, rows.m))
        clear, one, two = plain_answer(
            layout.topology, layout.gathering, layout.pitch, layout.inertia, state.tree.armature, memory.K,
            f.counts, f.ids, f.at, f.run, f.touches, f.couplings, f.merges, self.width, f.narrow,
            state.ends, rows.linear_terms, rows.owner, rows.owners, present, values.wrenches, self.unshifted,
            need, tau, c, self.limits, memory.T, memory.Y, memory.A, stacks.L, stacks.F, stacks.phi, stacks.closed,
            room.forces, room.coupled, memory.worst, g, pivots, y, a, lam, room.left, gap,
        )  # fmt: skip
        factors = Factors(self.unshifted, g, pivots, float(memory.worst[0]))
        return factors, Trial(a, lam, one, two, room.left, gap[0]) if clear else None
