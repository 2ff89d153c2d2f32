"""Impacts: which contacts take part, their impulses, and what stays closed."""

from __future__ import annotations

import numpy as np

from dalembert.errors import SolvabilityError
from dalembert.simulate.contact.geometry import Geometry, State
from dalembert.simulate.contact.laws import Inverse, impact_impulses

Array = np.ndarray

ORDERS = ("simultaneous", "sequential")
"""All touching contacts in one problem; or one after the other, the fastest first, until none approaches."""

APPROACH = 1e-12
"""Normal velocities below minus this part of the largest are approaching."""

MOST_PAIRS = 10_000
"""Single impacts of a sequence at most; elastic chains take about the square of their length."""


class Collision:
    """Resolves the impacts of one instant."""

    def __init__(self, geometry: Geometry, order: str) -> None:
        self.geometry, self.order = geometry, order
        self.mu = np.array([pair.friction for pair in geometry.pairs])
        self.e = np.array([pair.restitution for pair in geometry.pairs])
        self.law = [pair.law for pair in geometry.pairs]

    def resolve(self, x: State, v: Array, touching: Array, plastic: Array) -> tuple[Array, Array]:
        """Return velocities after, and impulses (3 k,); `plastic` contacts have no restitution whatever they are."""
        e = np.where(plastic, 0.0, self.e)
        if self.order == "simultaneous":
            return self._together(x, v, np.flatnonzero(touching), e)
        total = np.zeros(x.W.shape[0])
        for _ in range(MOST_PAIRS):
            u = (x.W @ v)[::3]
            approach = np.where(touching, u, np.inf)
            worst = int(np.argmin(approach))
            if approach[worst] >= -APPROACH * max(1.0, np.abs(u).max()):
                return v, total
            v, impulses = self._together(x, v, np.array([worst]), e)
            total += impulses
        raise SolvabilityError(f"{MOST_PAIRS} impacts one after the other did not separate the contacts")

    def _together(self, x: State, v: Array, index: Array, e: Array) -> tuple[Array, Array]:
        rows = (3 * index[:, None] + np.arange(3)).ravel()
        motions, _ = Inverse.of(x.M, x.A).solve(x.W[rows].T, np.zeros((x.A.shape[0], rows.size)))
        G = x.W[rows] @ motions
        answer = impact_impulses(G, x.W[rows] @ v, self.mu[index], e[index], [self.law[i] for i in index])
        if not answer.ok:
            raise SolvabilityError(f"no impulses obey the laws of impact (residual {answer.residual:.1e})")
        impulses = np.zeros(x.W.shape[0])
        impulses[rows] = answer.r
        return v + motions @ answer.r, impulses
