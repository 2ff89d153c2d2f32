"""Friction that depends on loads which depend on friction, with some sliding and some at rest, in numbers.

Symbols: tau torques of friction, F_i loads across axes, f_i coefficient times radius, or a limit of its own;
F_i = F_i0 + G_ij tau_j, a = a_0 + H tau accelerations along the friction; L those that slide, S those at rest.

    L    tau_i = -s_i f_i |F_i|  (-s_i f_i)        S    a_i = 0
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dalembert.errors import SolvabilityError
from dalembert.kkt.limits import CERTAIN, EPS, ROUNDING, open_level
from dalembert.model.mechanism.bearing_friction import ITERATIONS, friction_torques
from dalembert.types import Array

if TYPE_CHECKING:
    from dalembert.simulate.contact.bearing_loads import ModeOfFriction


@dataclass(frozen=True, eq=False)
class RubbingTogether:
    """Friction at a state.

    Attributes
    ----------
    F0, G, a0, H
        Loads of bearings (k, 3), by torques (k, n, 3); accelerations (n,), by torques (n, n).
    loaded
        Which of the n are the k bearings.
    kinetic, static
        Per newton of load, or limits of their own, (n,).
    names, t
        For messages.
    alone
        H where other contacts exert no forces, (n, n).
    """

    F0: Array
    G: Array
    a0: Array
    H: Array
    loaded: list[int]
    kinetic: Array
    static: Array
    names: list[str]
    t: float
    alone: Array

    def loads(self, mode: ModeOfFriction) -> Array:
        """Return the forces across the axes, (k, 3), in a mode."""
        slides, signs = mode.slides.copy(), mode.signs.copy()
        passing = ~slides & self._passing()
        slides[passing], signs[passing] = True, np.sign(self.a0[passing])
        L, S = np.flatnonzero(slides), np.flatnonzero(~slides)
        if not S.size:
            tau = self._sliding(L, signs, self.F0, self.G)
            return self.F0 + np.einsum("ilc,l->ic", self.G[:, L], tau)
        U, s, Vt = np.linalg.svd(self.H[np.ix_(S, S)])
        free = np.linalg.svd(self.alone[np.ix_(S, S)], compute_uv=False)
        rank = int(np.count_nonzero(s > EPS / CERTAIN * free[0]))
        inverse = (Vt[:rank].T / s[:rank]) @ U[:, :rank].T
        rest, by = -inverse @ self.a0[S], -inverse @ self.H[np.ix_(S, L)]
        F, G = self.F0 + np.einsum("isc,s->ic", self.G[:, S], rest), self.G.copy()
        G[:, L] += np.einsum("isc,sl->ilc", self.G[:, S], by)
        self._refuse_shares(L, S, Vt[rank:], level_of_shares(s, rank, float(free[0])))
        tau = self._sliding(L, signs, F, G)
        if rank == S.size:
            return F + np.einsum("ilc,l->ic", G[:, L], tau)
        if np.count_nonzero(free > EPS / CERTAIN * free[0]) > rank:
            self._refuse_contacts(S)
        pushed = self.F0 + np.einsum("ilc,l->ic", self.G[:, L], tau)
        return self._resting(S, pushed, self.a0[S] + self.H[np.ix_(S, L)] @ tau)

    def _passing(self) -> Array:
        """Return which cannot be held at rest by any friction that obeys its limits, (n,).

        All torques obey |tau_j| <= f_j |F_j|, so that |F| <= |F_0| + |G| |tau| bounds loads and torques alike where
        |G| f is a contraction; a_i0 beyond the sum of |H_ij| times these bounds has nothing to hold it. At the dead
        point of a rocker H_ij is zero: the bearing turns back.
        """
        f = np.maximum(self.kinetic, self.static)
        P = np.linalg.norm(self.G, axis=2) * f
        unloaded = np.setdiff1d(np.arange(f.size), self.loaded)
        among = P[:, self.loaded]
        if np.abs(np.linalg.eigvals(among)).max(initial=0.0) >= 1.0:
            return np.zeros(f.size, dtype=bool)
        right = np.linalg.norm(self.F0, axis=1) + P[:, unloaded].sum(axis=1)
        most = f.copy()
        most[self.loaded] *= np.linalg.solve(np.eye(len(among)) - among, right)
        return np.abs(self.a0) > np.abs(self.H) @ most

    def _sliding(self, L: Array, signs: Array, F: Array, G: Array) -> Array:
        """Return the torques of those that slide, (l,)."""
        tau = -signs[L] * self.kinetic[L]
        several = [p for p, i in enumerate(L) if i in self.loaded]
        if not several:
            return tau
        places = [self.loaded.index(int(L[p])) for p in several]
        others = np.setdiff1d(np.arange(L.size), several)
        F = F + np.einsum("ilc,l->ic", G[:, L[others]], tau[others])
        of = L[several]
        tau[several], sure = friction_torques(signs[of], self.kinetic[of], F[places], G[np.ix_(np.array(places), of)])
        if not sure:
            names = ", ".join(repr(self.names[i]) for i in of)
            raise SolvabilityError(
                f"at t = {self.t:.9g} s the friction of the bearings {names} is not the only one: they jam, or move in "
                "several ways; smaller coefficients or radii have one answer"
            )
        return tau

    def _refuse_shares(self, L: Array, S: Array, null: Array, rounding: float) -> None:
        """Refuse those at rest whose shares of the torque, N, change the load of one that slides.

        `rounding` is the part of the largest load of a unit torque that the null vectors may add by it.
        """
        places = [k for k, i in enumerate(self.loaded) if i in L]
        share = np.abs(np.einsum("isc,rs->irc", self.G[places][:, S], null)).max(initial=0.0)
        if share > rounding * np.abs(self.G).max(initial=0.0):
            names, others = (", ".join(repr(self.names[i]) for i in some) for some in (S, L))
            raise SolvabilityError(
                f"at t = {self.t:.9g} s {names} rest together while {others} slide: how they share the torque is not "
                "unique and loads those that slide, so that the motion is not; leave one of them without friction"
            )

    def _refuse_contacts(self, S: Array) -> None:
        """Refuse those at rest that contacts with reactions of their own hold, too: cones limit these, not numbers."""
        names = ", ".join(repr(self.names[i]) for i in S)
        raise SolvabilityError(
            f"at t = {self.t:.9g} s {names} rest, and closed contacts hold them, too: how they share the load is not "
            "unique; leave the friction of one of them out"
        )

    def _resting(self, S: Array, F0: Array, a0: Array) -> Array:
        """Return the loads where several at rest hold the motion in more than one way; see `bearing_loads.py`."""
        loads, tau = F0, np.zeros(S.size)
        for _ in range(ITERATIONS):
            limits = self.static.copy()
            limits[self.loaded] *= np.linalg.norm(loads, axis=1)
            tau, before = holding_torques(self.H[np.ix_(S, S)], a0, limits[S]), tau
            loads = F0 + np.einsum("isc,s->ic", self.G[:, S], tau)
            if np.abs(tau - before).max() <= ROUNDING * np.abs(tau).max(initial=0.0) / CERTAIN:
                return loads
        names = ", ".join(repr(self.names[i]) for i in S)
        raise SolvabilityError(
            f"at t = {self.t:.9g} s {names} rest together, and no torques were found that fit the limits of their own "
            "loads: they may jam; smaller coefficients or radii have an answer"
        )


def level_of_shares(s: Array, rank: int, largest: float) -> float:
    """Return the part of the largest effect up to which null vectors, of singular values s[rank:], have none.

    Rounding of the matrix, whose largest value is given, and the values taken for zero tilt them by this over the least
    value that was kept.
    """
    if not rank:
        return open_level(ROUNDING)
    dropped = float(s[rank]) if rank < s.size else 0.0
    return open_level(max(ROUNDING * largest, dropped) / float(s[rank - 1]))


def holding_torques(H: Array, a0: Array, limits: Array) -> Array:
    """Return tau with H tau = -a_0: the least squares of tau_i / limit_i, or where one exceeds 1 their least size."""
    B = limits[:, None] * H * limits
    U, s, Vt = np.linalg.svd(B)
    rank = int(np.count_nonzero(s > EPS / CERTAIN * s[0])) if s[0] > 0.0 else 0
    right = -(U[:, :rank].T @ (limits * a0)) / s[:rank]
    y = Vt[:rank].T @ right
    if np.abs(y).max(initial=0.0) > 1.0:
        y = least_parts(Vt[:rank], right)
    return limits * y


def least_parts(rows: Array, right: Array) -> Array:
    """Return y with rows . y = right whose largest entry is least."""
    if len(rows) == 1:
        return right[0] * np.sign(rows[0]) / np.abs(rows[0]).sum()
    from scipy.optimize import linprog

    n = rows.shape[1]
    cost, ones = np.append(np.zeros(n), 1.0), np.ones((n, 1))
    both = np.block([[np.eye(n), -ones], [-np.eye(n), -ones]])
    equal = np.column_stack([rows, np.zeros(len(rows))])
    optimum = linprog(cost, both, np.zeros(2 * n), equal, right, bounds=(None, None), method="highs")
    return np.asarray(optimum.x[:n])
