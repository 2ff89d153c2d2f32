"""The Dirac structure that constraints induce on the cotangent bundle (seed 003, eqs. 1-5, Fig. 1).

Symbols: q_dot, p_dot rates of coordinates and momenta; (alpha, w) a covector of (q, p); N constraint rows, B a basis of
null(N), lam multipliers. At one configuration D is the set of (q_dot, p_dot, alpha, w) with

    representation I     N q_dot = 0,  w = q_dot,  alpha + p_dot = N^T lam          (eq. 3)
    representation II    N q_dot = 0,  w = q_dot,  B^T (alpha + p_dot) = 0

Its dimension is 2n and it is its own orthogonal complement under <alpha, q_dot'> + <w, p_dot'> + (the same, exchanged).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from dalembert.errors import ModelError, ShapeError
from dalembert.tableau.inputs import as_numbers
from dalembert.tableau.split import Split, as_rows, connection_split

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class DiracStructure:
    """D at one configuration, made by `DiracStructure.of` or `DiracStructure.at`."""

    N: Float[Array, "m n"]
    split: Split

    @classmethod
    def of(cls, N: Any, independent: Sequence[int] | None = None) -> DiracStructure:
        """Make it from constraint rows (m, n); `independent` fixes the split."""
        rows = as_rows(N)
        return cls(rows, connection_split(rows, independent))

    @classmethod
    def at(cls, system: Any, q: Any, t: float = 0.0, independent: Sequence[int] | None = None) -> DiracStructure:
        """Make it from a `System`, a `Lagrangian` or a `Mechanism` at a configuration."""
        if not callable(getattr(system, "jacobian", None)):
            raise ModelError(f"{type(system).__name__} has no constraint rows: give a System, Lagrangian or Mechanism")
        return cls.of(system.jacobian(as_numbers(q, "q", finite=True), t), independent)

    @property
    def n(self) -> int:
        """Number of coordinates."""
        return self.N.shape[1]

    @property
    def B(self) -> Float[Array, "n f"]:
        """Basis of the admissible velocities."""
        return self.split.B

    def residual_I(self, q_dot: Any, p_dot: Any, alpha: Any, w: Any) -> tuple[float, Float[Array, " m"]]:
        """Return how far a point is from representation I, and the multipliers of least norm."""
        q_dot, p_dot, alpha, w = self._checked(q_dot, p_dot, alpha, w)
        lam = np.linalg.lstsq(self.N.T, alpha + p_dot, rcond=None)[0] if len(self.N) else np.empty(0)
        gaps = self.N @ q_dot, w - q_dot, alpha + p_dot - self.N.T @ lam
        return max(float(np.abs(gap).max(initial=0.0)) for gap in gaps), lam

    def residual_II(self, q_dot: Any, p_dot: Any, alpha: Any, w: Any) -> float:
        """Return how far a point is from representation II."""
        q_dot, p_dot, alpha, w = self._checked(q_dot, p_dot, alpha, w)
        gaps = self.N @ q_dot, w - q_dot, self.B.T @ (alpha + p_dot)
        return max(float(np.abs(gap).max(initial=0.0)) for gap in gaps)

    def basis(self) -> Float[Array, "four_n two_n"]:
        """Return 2n points (q_dot, p_dot, alpha, w) that span D, one per column."""
        n, f, rows = self.n, self.B.shape[1], self._independent_rows()
        motion = np.vstack([self.B, np.zeros((2 * n, f)), self.B])
        momentum = np.vstack([np.zeros((n, n)), np.eye(n), -np.eye(n), np.zeros((n, n))])
        reaction = np.vstack([np.zeros((2 * n, len(rows))), rows.T, np.zeros((n, len(rows)))])
        return np.hstack([motion, momentum, reaction])

    def pairing(self, first: Any, second: Any) -> Float[Array, "..."]:
        """Return <alpha1, q_dot2> + <w1, p_dot2> + <alpha2, q_dot1> + <w2, p_dot1> of points as columns."""
        points = [as_numbers(x, "a point") for x in (first, second)]
        for x in points:
            if x.ndim not in (1, 2) or len(x) != 4 * self.n:
                raise ShapeError(
                    f"points have {4 * self.n} numbers, ({4 * self.n},) or ({4 * self.n}, k); not {x.shape}"
                )
        (q1, p1, a1, w1), (q2, p2, a2, w2) = (np.split(x, 4) for x in points)
        return a1.T @ q2 + w1.T @ p2 + (a2.T @ q1 + w2.T @ p1).T

    def power(self, q_dot: Any, p_dot: Any, alpha: Any, w: Any) -> float:
        """Return <alpha, q_dot> + <w, p_dot>: zero for every point of D, nothing is made or lost in the connection."""
        q_dot, p_dot, alpha, w = self._checked(q_dot, p_dot, alpha, w)
        return float(alpha @ q_dot + w @ p_dot)

    def checks(self) -> dict[str, float]:
        """Return what must vanish: power balance, isotropy, missing dimension, and B^T N^T (virtual work)."""
        basis = self.basis()
        scale = max(float(np.abs(self.N).max(initial=1.0)), 1.0) * max(float(np.abs(self.B).max(initial=1.0)), 1.0)
        return {
            "power": float(np.abs(np.diag(self.pairing(basis, basis))).max(initial=0.0)) / (2.0 * scale),
            "isotropy": float(np.abs(self.pairing(basis, basis)).max(initial=0.0)) / scale,
            "missing dimension": float(2 * self.n - np.linalg.matrix_rank(basis)),
            "orthogonality": float(np.abs(self.B.T @ self.N.T).max(initial=0.0)) / scale,
        }

    def _independent_rows(self) -> Float[Array, "r n"]:
        """Return rows that span those of N: [I | -J], without redundancy."""
        rows = np.zeros((len(self.split.dependent), self.n))
        rows[:, self.split.dependent] = np.eye(len(rows))
        rows[:, self.split.independent] = -self.split.J
        return rows

    def _checked(self, *parts: Any) -> list[Array]:
        """Return four vectors of n numbers."""
        names = ("q_dot", "p_dot", "alpha", "w")
        arrays = [as_numbers(part, name, finite=True) for part, name in zip(parts, names, strict=True)]
        for name, array in zip(names, arrays, strict=True):
            if array.shape != (self.n,):
                raise ShapeError(f"{name} must have shape ({self.n},); it has {array.shape}")
        return arrays
