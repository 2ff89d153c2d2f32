"""How many digits of an answer are right: partial pivoting at run time on scaled rows and columns, and its error.

Symbols: r = b - A x, s = |A| |x| + |b|, u the unit roundoff, m entries of a row. For data taken as exact,

    |x - A^-1 b| <= |A^-1| (|r| + (m + 1) u s)

(N. J. Higham, "Accuracy and Stability of Numerical Algorithms", 2002, sec. 7.7: the second term is what r itself may be
wrong by). |A^-1 r| is found by solving, |A^-1| (m + 1) u s sampled with random signs; see `accuracy_loops`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as sla
from jaxtyping import Float

from dalembert.tableau.accuracy_loops import TRUSTED
from dalembert.tableau.checks import ACCEPTED_ERROR
from dalembert.tableau.equilibrate import equilibrate, is_regular_pattern
from dalembert.tableau.program import make_nudges

Array = np.ndarray

SAFETY = 4.0
"""Sampled reach of roundings times this: three samples are below half the true one in a few cases of a hundred."""


@dataclass(frozen=True, eq=False)
class ScaledFactors:
    """A matrix with SuperLU's factors of D A E."""

    A: Any
    row: Float[Array, " n"]
    col: Float[Array, " n"]
    factors: Any

    @classmethod
    def of(cls, A: Any) -> ScaledFactors | None:
        """Factor a square sparse matrix; None where SuperLU finds a zero pivot or the nonzeros have no matching."""
        if not A.shape[0] or not is_regular_pattern(A):  # SuperLU does not survive every empty or doubled column
            return None
        row, col = equilibrate(A)
        scaled = sp.csc_array(sp.diags_array(row) @ A @ sp.diags_array(col))
        scaled.eliminate_zeros()
        if not is_regular_pattern(scaled):  # what underflows is zero
            return None
        try:
            return cls(A, row, col, sla.splu(scaled))
        except RuntimeError:
            return None

    def solve(self, b: Float[Array, " n"]) -> Float[Array, " n"]:
        """Return x with A x = b."""
        return self.col * self.factors.solve(self.row * b)

    def refined(self, b: Float[Array, " n"]) -> Float[Array, " n"]:
        """Return x with A x = b after a step of refinement."""
        x = self.solve(b)
        return x + self.solve(b - self.A @ x)

    def condition(self) -> float:
        """Return an estimate of the condition of D A E in the 1-norm (Higham and Tisseur 2000, as SciPy has it)."""
        n = len(self.row)
        scaled = sp.csc_array(sp.diags_array(self.row) @ self.A @ sp.diags_array(self.col))
        if n <= 4:
            return float(np.linalg.cond(scaled.toarray(), 1))
        solve: dict[str, Any] = {"matvec": self.factors.solve, "rmatvec": lambda y: self.factors.solve(y, "T")}
        solve["dtype"] = float
        estimate: Any = sla.onenormest(sla.LinearOperator(scaled.shape, **solve))
        return float(estimate * sla.norm(scaled, 1))

    def errors(self, b: Float[Array, " n"], x: Float[Array, " n"]) -> tuple[float, Float[Array, " n"]]:
        """Return the error unknown by unknown as `accuracy_loops` has it, and the estimated |x - A^-1 b|."""
        size = abs(self.A)
        r, s = b - self.A @ x, size @ np.abs(x) + np.abs(b)
        d = self.solve(r)
        second = np.abs(self.solve(r - self.A @ d))
        moved = np.abs(d) + 2.0 * second
        entries = 1.0 + np.bincount(sp.coo_array(size).coords[0], minlength=len(b))
        nudges = make_nudges(len(b))
        reach, rounding = (
            np.max([np.abs(self.refined(nudge * each)) for nudge in nudges], axis=0) for each in (s, entries * s)
        )
        reach = np.maximum(reach, np.abs(x))
        if (second > TRUSTED * np.maximum(np.abs(d), ACCEPTED_ERROR * reach)).any():
            moved = np.where(second > 0.0, np.inf, moved)  # the factors are no inverse, nor the correction an error
        ratio = np.where(moved > 0.0, moved / np.where(reach > 0.0, reach, np.finfo(float).tiny), 0.0)
        unit = np.finfo(float).eps / 2
        return float(ratio.max(initial=0.0)), moved + SAFETY * unit * rounding
