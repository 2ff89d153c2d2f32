"""Impacts: impulses of all contacts that take part; impacts that pile up (Zeno)."""

from __future__ import annotations

import numpy as np

from dalembert.errors import SolvabilityError
from dalembert.kkt import KKT
from dalembert.simulate.contact.complementarity import (
    NO_IMPULSES,
    ContactForces,
    Inverse,
    Limbs,
    impact_impulses,
    stiffened,
)
from tests.reference.contact.geometry import Geometry, State

# ----------------------------------------------------------------------------------------------------------------------
# Impacts: which contacts take part, their impulses, and what stays closed.
#
# Symbols: u = W v contact velocities; P impulses; S contacts that stay, those with an impulse; e restitution.
#
# Complementarity with Coulomb's cones says who stays, sticks and slides. Where all of S stick or are smooth, the jump
# is that of `KKT.impact` with the rows of S (seed 000, section 3), with its certificate; the two must agree:
#
#     M (v+ - v) = A^T L + W_S^T P,   A v+ = A v,   W_N v+ = -e W_N v,   W_T v+ = 0
#
# Limbs without mass take part in S always and pass no impulse (`laws.py`).


Array = np.ndarray

APPROACH = 1e-12
"""Normal velocities below minus this part of the largest are approaching."""

MOST_PAIRS = 10_000
"""Single impacts of a sequence at most; elastic chains take about the square of their length."""

AGREES = 1e-7
"""Velocities of both ways through an impact differ by less than this part of the largest."""

INSIDE = 1e-7
"""Impulses closer to the edge of their cone than this part slide."""


class Collision:
    """Resolves the impacts of one instant; `massless` says which contacts were those of massless limbs."""

    def __init__(self, geometry: Geometry, order: str, limbs: Limbs) -> None:
        self.geometry, self.order, self.limbs = geometry, order, limbs
        self.mu = np.array([pair.friction for pair in geometry.pairs])
        self.e = np.array([pair.restitution for pair in geometry.pairs])
        self.law = np.array([pair.impact for pair in geometry.pairs])
        self.massless = np.zeros(self.mu.size, bool)
        self.certificates: list[object] = []

    def resolve(self, x: State, v: Array, touching: Array, plastic: Array, t: float = 0.0) -> tuple[Array, Array]:
        """Return velocities after, and impulses (3 k,); `plastic` contacts have no restitution whatever they are."""
        try:
            return self._resolve(x, v, touching, plastic, t)
        except SolvabilityError as refused:
            said = str(refused)
            raise SolvabilityError(said if said.startswith("at t = ") else f"impact at t = {t:.9g} s: {said}") from None

    def _resolve(self, x: State, v: Array, touching: Array, plastic: Array, t: float) -> tuple[Array, Array]:
        self.massless = self.limbs.seen_by(x.M, x.A, x.W)
        e = np.where(plastic | self.massless, 0.0, self.e)
        if self.order == "simultaneous":
            return self._together(x, v, np.flatnonzero(touching), e, t)
        total = np.zeros(x.W.shape[0])
        for _ in range(MOST_PAIRS):
            u = (x.W @ v)[::3]
            approach = np.where(touching, u, np.inf)
            worst = int(np.argmin(approach))
            if approach[worst] >= -APPROACH * max(1.0, np.abs(u).max()):
                return v, total
            v, impulses = self._together(x, v, np.array([worst]), e, t)
            total += impulses
        raise SolvabilityError(f"at t = {t:.9g} s {MOST_PAIRS} impacts one after the other did not separate contacts")

    def _together(self, x: State, v: Array, index: Array, e: Array, t: float) -> tuple[Array, Array]:
        """Solve for the contacts `index` at once."""
        rows = (3 * index[:, None] + np.arange(3)).ravel()
        M, A, free = self._free(x, v, index)
        inverse = Inverse.of(M, A)
        motions, _ = inverse.solve(x.W[rows].T, np.zeros((A.shape[0], rows.size)))
        inverse.refuse_uncertain()
        G = x.W[rows] @ motions
        before = x.W[rows] @ v
        answer = impact_impulses(G, before, self.mu[index], e[index], list(self.law[index]), x.W[rows] @ free - before)
        if not answer.ok:
            names = answer.contradiction([self.geometry.pairs[i].name for i in index])
            raise SolvabilityError(NO_IMPULSES.format(t=t, names=names, residual=answer.residual))
        impulses = np.zeros(x.W.shape[0])
        impulses[rows] = answer.r
        after = free + motions @ answer.r
        return self._certified(x, v, after, impulses, index, answer, e)

    def _free(self, x: State, v: Array, index: Array) -> tuple[Array, Array, Array]:
        """Return M and A with massless limbs on the ground, and the velocity that no impulse of others changes."""
        limb = index[self.massless[index]]
        if not self.limbs.any:
            return x.M, x.A, v
        R = self._rows_of(limb)
        M, _ = stiffened(x.M, x.W[R])
        A = np.vstack([x.A, self.limbs.held(x.M, np.vstack([x.A, x.W[R]]))])
        wanted = np.zeros(A.shape[0])
        wanted[: x.A.shape[0]] = x.A @ v
        inverse = Inverse.of(M, A)
        free, _ = inverse.solve((x.M @ v)[:, None], wanted[:, None])
        inverse.refuse_uncertain()
        return M, A, free[:, 0]

    def _rows_of(self, index: Array) -> Array:
        rough = index[self.mu[index] > 0.0]
        return np.concatenate([3 * index, 3 * rough + 1, 3 * rough + 2]).astype(int)

    def _certified(
        self, x: State, v: Array, after: Array, impulses: Array, index: Array, answer: ContactForces, e: Array
    ) -> tuple[Array, Array]:
        """Return the jump by `KKT.impact` with the contacts that stay, where it has the same answer."""
        P = answer.r.reshape(-1, 3)
        stays = (P[:, 0] > 0.0) | self.massless[index]
        edge = np.linalg.norm(P[:, 1:], axis=1) >= (1.0 - INSIDE) * self.mu[index] * P[:, 0]
        slides = stays & (self.mu[index] > 0.0) & (P[:, 0] > 0.0) & edge
        poisson = (self.law[index] == "poisson") & (e[index] > 0.0)
        rates = np.abs(x.A @ v).max(initial=0.0)
        if not stays.any() or slides.any() or poisson.any() or rates > AGREES:
            return after, impulses
        S = index[stays]
        R = self._rows_of(S)
        held = self.limbs.held(x.M, np.vstack([x.A, x.W[R]]))
        restitution = np.zeros(x.A.shape[0] + held.shape[0] + R.size)
        restitution[x.A.shape[0] + held.shape[0] :][: S.size] = e[S]
        try:
            found = KKT(x.M, np.vstack([x.A, held, x.W[R]])).impact(v, restitution)
        except SolvabilityError:
            return after, impulses
        if not found.ok or np.abs(found.velocity - after).max() > AGREES * max(1.0, np.abs(after).max()):
            return after, impulses
        self.certificates.append(found.certificate)
        exact = np.zeros_like(impulses)
        exact[R] = found.reactions[x.A.shape[0] + held.shape[0] :]
        return np.asarray(found.velocity), exact


# ----------------------------------------------------------------------------------------------------------------------
# Impacts that pile up: infinitely many in finite time, recognised by their intervals and completed.
#
# Intervals d_k between impacts of a contact that shrink by a constant factor p end at t + d p / (1 - p). Under constant
# forces and Newton's restitution the factor is exactly e (a bouncing ball); elsewhere it becomes constant as they
# shrink.


KNOWN = 5
"""Impacts that are looked at."""

STEADY = 1e-3
"""Factors of successive intervals may differ by this much."""

SHORT = 1e-4
"""What is left until the limit, times one over the rate: up to there the contact is taken as closed from now on."""


class Zeno:
    """Remembers the impacts of every contact; `rests` are limits that were completed and are still ahead, or inf."""

    def __init__(self, contacts: int, rate: float = 1.0) -> None:
        self.rate = rate
        self.times: list[list[float]] = [[] for _ in range(contacts)]
        self.rests = np.full(contacts, np.inf)

    def as_array(self) -> Array:
        """Return all that is remembered, (contacts, KNOWN + 1), NaN where there is nothing; last the times of rest."""
        found = np.full((len(self.times), KNOWN + 1), np.nan)
        for i, times in enumerate(self.times):
            found[i, : len(times)] = times
        found[:, KNOWN] = self.rests
        return found

    @classmethod
    def from_array(cls, array: Array, rate: float = 1.0) -> Zeno:
        """Return what `as_array` was made of."""
        zeno = cls(len(array), rate)
        zeno.times = [[float(t) for t in row[:KNOWN] if np.isfinite(t)] for row in array]
        zeno.rests = array[:, KNOWN].copy() if array.shape[1] > KNOWN else zeno.rests  # not in files of older versions
        return zeno

    def struck(self, i: int, t: float, completed: bool) -> None:
        """Note an impact; a completed sequence is forgotten."""
        self.times[i] = [] if completed else [*self.times[i][1 - KNOWN :], t]

    def limits(self, t: float) -> Array:
        """Return per contact the time at which its impacts would end if it were struck now, or 0."""
        return np.array([limit([*times[1 - KNOWN :], t], SHORT / self.rate) for times in self.times])


def limit(times: list[float], longest: float = SHORT) -> float:
    """Return the limit of a steady sequence of impacts if it ends within `longest`, or 0."""
    if len(times) < KNOWN:
        return 0.0
    intervals = np.diff(times)
    if not (intervals > 0.0).all():
        return 0.0
    factors = intervals[1:] / intervals[:-1]
    p = float(factors[-1])
    left = float(intervals[-1]) * p / (1.0 - p) if p < 1.0 else np.inf
    if p >= 1.0 or np.ptp(factors) > STEADY or left > longest:
        return 0.0
    return times[-1] + left
