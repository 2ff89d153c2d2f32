"""Sparse LU of the block system in the coordinates of all bodies, for many loops side by side.

Where loops close only at the ground, as in a net of ropes that all hang from it, the fronts of the tree's own order
hold all rows at once. Then the order must not be the tree's. With da, f, qdd, lam accelerations of bodies, forces in
joints, joint accelerations and multipliers,

    I da + F^T lam - f + sum over children of X^T f_c = -need       da - X da_p - S qdd = 0
    -S^T f - armature qdd - B^T lam = -tau                          F da + B qdd - delta lam = c

is as sparse as the mechanism. SuperLU's approximate minimum degree (COLAMD) finds an order, once, and its pivoting
keeps the digits; links may be massless.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csc_array
from scipy.sparse.linalg import splu

from dalembert.kkt.limits import DEPENDENT_VECTOR
from dalembert.large.fronts.front_block import STEPS, FrontFactors
from dalembert.large.joints import subspaces
from dalembert.large.layout import VELOCITIES, Layout
from dalembert.large.residuals import mobility
from dalembert.large.row_kernels import RowValues
from dalembert.large.row_state import RowState
from dalembert.types import Array

HALF = 0.5
"""Of the work of joint forces, what may be missing in masses: nothing, but for rounding."""


class SparseBlock:
    """The block system in all bodies' coordinates; its pattern does not change."""

    fronts = None
    weighed = False

    def __init__(self, state: RowState, massless: bool = False) -> None:
        """Lay it out; where links are `massless`, every factor is asked whether rows hold them."""
        self.massless = massless
        self.state, self.layout, self.rows, self.ends = state, state.layout, state.rows, state.ends
        layout, rows = self.layout, self.rows
        n, nv, m = layout.n, layout.mechanism.nv, rows.m
        self.at_f, self.at_q, self.at_l = 6 * n, 12 * n, 12 * n + nv
        self.size = 12 * n + nv + m
        self.held = np.flatnonzero(layout.parent >= 0)
        order = np.argsort(layout.iv + 0.5 * (VELOCITIES[layout.code] == 0), kind="stable")
        self.body = np.repeat(order, VELOCITIES[layout.code][order])  # that each velocity belongs to
        self.order: Array | None = None

    def matrix(self, K: Array, values: RowValues, armature: Array, shift: Array) -> csc_array:
        """Return the matrix at a state."""
        i, j, x = (np.concatenate(parts) for parts in zip(*self._entries(K, values, armature, shift), strict=True))
        nonzero = x != 0.0
        return csc_array((x[nonzero], (i[nonzero], j[nonzero])), shape=(self.size, self.size))

    def _entries(self, K: Array, values: RowValues, armature: Array, shift: Array) -> list[tuple[Array, Array, Array]]:
        """Return rows, columns and numbers of all blocks."""
        n, f, q, lam = self.layout.n, self.at_f, self.at_q, self.at_l
        six, every = np.arange(6), np.arange(n)
        S = np.empty((lam - q, 6))
        subspaces(self.layout.topology, self.layout.pitch, K, S)
        entries = [self._blocks(every, every, 6, inertias(self.layout, K))]
        diagonal = 6 * n + np.arange(6 * n)
        entries += [(diagonal - f, diagonal, -np.ones(6 * n)), (diagonal, diagonal - f, -np.ones(6 * n))]
        up, r = self.layout.parent[self.held], K[self.held, 9:12]
        X = np.zeros((len(up), 6, 6))  # da at the child's origin from the parent's
        X[:, six, six] = 1.0
        X[:, :3, 3:] = -skew(r)
        i, j, x = self._blocks(self.held, up, 6, X)
        entries += [(i + f, j, x), (j, i + f, x)]
        i = (6 * self.body[:, None] + six).ravel()
        j = np.repeat(np.arange(q, lam), 6)
        entries += [(i + f, j, S.ravel()), (j, i + f, S.ravel())]
        entries += [(np.arange(q, lam), np.arange(q, lam), armature)]
        for end in range(2):
            on = np.flatnonzero(self.ends[:, end] >= 0)
            i, j = np.repeat(lam + on, 6), (6 * self.ends[on, end][:, None] + six).ravel()
            x = values.wrenches[on, end].ravel()
            entries += [(i, j, x), (j, i, x)]
        i, j = lam + self.rows.row, q + self.rows.place
        entries += [(i, j, self.rows.factor), (j, i, self.rows.factor)]
        entries += [(np.arange(lam, self.size), np.arange(lam, self.size), -shift)]
        return entries

    def _blocks(self, rows: Array, columns: Array, k: int, x: Array) -> tuple[Array, Array, Array]:
        """Return the entries of dense k x k blocks."""
        i = k * rows[:, None, None] + np.arange(k)[None, :, None] + np.zeros((1, 1, k), dtype=int)
        j = k * columns[:, None, None] + np.arange(k)[None, None, :] + np.zeros((1, k, 1), dtype=int)
        return i.ravel(), j.ravel(), x.ravel()

    def first(self, values: RowValues, *_: Any) -> tuple[FrontFactors, None]:
        """Return what is known without factoring: nothing is solved, since proximal steps suit any rank."""
        mobility(self.ends, self.layout.inertia, values.wrenches, g := np.zeros(self.rows.m))
        g[self.rows.row] += 1.0
        return FrontFactors(np.zeros_like(g), g, np.zeros_like(g)), None

    def factor(self, values: RowValues, shift: Array) -> FrontFactors:
        """Factor [M A^T; A -shift]; whether rows depend on each other is seen by what proximal steps leave."""
        factors, _ = self.first(values)
        factors.shift = shift
        factors.solve = self._factored(values, shift)
        if factors.solve is None or (self.massless and not self._answers_with_mass(factors)):
            factors.worst = 0.0
            return factors
        still = np.zeros(self.at_l - self.at_q)
        vector = trial = np.cos(np.arange(len(shift)))
        for _ in range(STEPS):
            vector = self.solve(factors, np.zeros((0, 6)), still, -shift * vector)[1]
        if np.linalg.norm(vector) < DEPENDENT_VECTOR * np.linalg.norm(trial):
            factors.pivots = np.full(len(shift), np.inf)
        return factors

    def _answers_with_mass(self, factors: FrontFactors) -> bool:
        """Say whether what joint forces do goes into masses: no motion that rows allow moves none.

        M a + A^T lam = tau and A a = delta lam give a . tau = a . M a + lam . delta lam. Along a motion without mass
        something is divided by rounding, a is 1e16 or more, and the two have nothing in common.
        """
        tau, tree = np.cos(1.0 + np.arange(self.at_l - self.at_q)), self.state.tree
        b = np.zeros(self.size)
        b[self.at_q : self.at_l] = tau
        x = factors.solve(b)
        da, a, lam = x[: self.at_f].reshape(-1, 6), x[self.at_q : self.at_l], x[self.at_l :]
        moved = np.einsum("ni,nij,nj", da, inertias(self.layout, tree.memory.K), da) + (tree.armature * a * a).sum()
        moved += (factors.shift * lam * lam).sum()
        return bool(abs(moved - a @ tau) <= HALF * abs(a @ tau))

    def _factored(self, values: RowValues, shift: Array) -> Any:
        """Return what solves, or None where the matrix is singular to the last digit."""
        A = self.matrix(self.state.tree.memory.K, values, self.state.tree.armature, shift)
        try:
            if self.order is None:
                self.order = np.argsort(splu(A, permc_spec="COLAMD").perm_c)
            order = self.order
            inner = splu(A[:, order], permc_spec="NATURAL")
        except RuntimeError:
            return None

        def solve(b: Array) -> Array:
            x = np.empty_like(b)
            x[order] = inner.solve(b)
            return x

        return solve

    def solve(self, factors: FrontFactors, need: Array, tau: Array, c: Array) -> tuple[Array, Array]:
        """Return a (nv,) and lam (m,)."""
        b = np.zeros(self.size)
        if need.shape[0]:
            b[: self.at_f] = -need.ravel()
        b[self.at_q : self.at_l], b[self.at_l :] = tau, c
        x = factors.solve(b)
        return x[self.at_q : self.at_l], x[self.at_l :]


def inertias(layout: Layout, K: Array) -> Array:
    """Return inertia matrices of all bodies at their origins in world axes, (n, 6, 6)."""
    R = np.swapaxes(K[:, :9].reshape(-1, 3, 3), 1, 2)
    m, h = layout.inertia[:, 0], np.einsum("nij,nj->ni", R, layout.inertia[:, 1:4])
    xx, xy, xz, yy, yz, zz = layout.inertia[:, 4:].T
    J = R @ np.stack([xx, xy, xz, xy, yy, yz, xz, yz, zz], axis=1).reshape(-1, 3, 3) @ np.swapaxes(R, 1, 2)
    whole = np.zeros((layout.n, 6, 6))
    whole[:, :3, :3], whole[:, 3:, 3:] = m[:, None, None] * np.eye(3), J
    whole[:, :3, 3:], whole[:, 3:, :3] = -skew(h), skew(h)
    return whole


def skew(r: Array) -> Array:
    """Return the matrices of cross products with vectors (k, 3)."""
    zero = np.zeros(len(r))
    x, y, z = r.T
    return np.stack([zero, -z, y, z, zero, -x, -y, x, zero], axis=1).reshape(-1, 3, 3)
