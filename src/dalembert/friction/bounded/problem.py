"""Intervals: one state whose contacts have given limits and one direction each, a box-constrained problem."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from dalembert.friction.delassus import Delassus
from dalembert.friction.limits import DEPENDENT_COLUMN
from dalembert.friction.problem import ContactProblem
from dalembert.types import Array


@dataclass(frozen=True, eq=False)
class IntervalProblem(Delassus):
    """A contact per column of W; `limits` (m,) hold for those at `rest` (m,)."""

    names: tuple[str, ...]
    velocity: Float[Array, " m"]
    limits: Float[Array, " m"]
    rest: Bool[Array, " m"]

    @classmethod
    def of(cls, problem: ContactProblem, s: int = 0) -> IntervalProblem:
        """Return state s of a problem."""
        sets = problem.contacts
        return cls(
            problem.block(s), problem.f[s], problem.drift[s], problem.matrices(s)[1], problem.contact_drift[s],
            sets.known[s], sets.names, problem.velocity[s], sets.mu[s], ~sets.sliding[s],
        )  # fmt: skip

    def balanced(self, a: Float[Array, " n"], T: Float[Array, " m"], loose: Bool[Array, " m"]) -> Float[Array, " m"]:
        """Return forces corrected so that Z^T (M a - f - W T) = 0 to rounding, the correction on loose contacts alone.

        G weighs forces by inverse masses, so the balance of a coordinate a million times heavier loses six digits.
        """
        L = np.flatnonzero(loose)
        corrected = T.copy()
        corrected[L] += np.linalg.lstsq(self.reduced[0][:, L], self.imbalance(a, T), rcond=DEPENDENT_COLUMN)[0]
        return np.where(loose, np.clip(corrected, -self.limits, self.limits), T)
