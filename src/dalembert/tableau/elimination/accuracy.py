"""Error bounds of a sparse solve, compiled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as sla

from dalembert.kernel.loops import compiled
from dalembert.kkt.limits import (
    ACCEPTED_ERROR,
    CLEARED,
    SAMPLED_REACH,
    SUSPECT_GROWTH,
    SUSPECT_PIVOT,
    TRUSTED,
    UNIT_ROUNDOFF,
)
from dalembert.tableau.elimination.equilibration import equilibrate, is_regular_pattern
from dalembert.tableau.elimination.looped import INDICES, INDPTR, factor, make_nudges, part, substitute
from dalembert.types import Array

if TYPE_CHECKING:
    from jaxtyping import Float

# ----------------------------------------------------------------------------------------------------------------------
# Compiled: one solve with its checks, and how good its answer is.
#
# Symbols: r = b - A x, s = |A| |x| + |b|, d = A^-1 r; u_k given vectors with entries of size 1/2 to 1, random signs.
#
#     row by row           max_i |r|_i / s_i                         (Oettli and Prager 1964)
#     unknown by unknown   max_j |d|_j / max(|x|, max_k |A^-1 (u_k s)|)_j
#
# Both are sizes of a change of data. The first says that x is exact for data changed so much; it fails where a row of s
# is itself only rounding, as with an unknown that is zero by symmetry. The second, never larger by more than the luck
# of u_k, says that x is as near to the solution as those of data changed so much are, every unknown for itself: |A^-1|
# s is the reach of such changes (R. D. Skeel, J. ACM 26 (1979) 494-526), and A^-1 (u_k s) one that is really reached
# (sampled as C. S. Kenney, A. J. Laub, M. S. Reese, SIAM J. Sci. Comput. 19 (1998) 566-583). A coefficient that is zero
# does not change, hence it excuses nothing. Where it is taken, A^-1 (r - A d) is added twice to |d|: factors that do
# not contract the residual count against x.
#
# Unknowns that are exactly zero, as most are with a sparse right side and with bodies that cannot move, come out of an
# elimination as rounding, of which no digit is right. A step of refinement takes nearly all of it away and never all of
# it. So such unknowns are set to zero; what is kept is decided row by row, where a zero that is none shows.


@compiled
def backward_error(indptr, indices, data, right, x):
    """Return the error row by row, zero rows left out; NaN if anything is."""
    worst = 0.0
    for i in range(right.size):
        residual, size = right[i], abs(right[i])
        for e in range(indptr[i], indptr[i + 1]):
            term = data[e] * x[indices[e]]
            residual -= term
            size += abs(term)
        if not np.isfinite(size):
            return np.nan
        if size > 0.0:
            worst = max(worst, abs(residual) / size)
    return worst


@compiled
def residual_of(indptr, indices, data, right, x, found, size):
    """Find r and s."""
    for i in range(right.size):
        value, total = right[i], abs(right[i])
        for e in range(indptr[i], indptr[i + 1]):
            term = data[e] * x[indices[e]]
            value -= term
            total += abs(term)
        found[i], size[i] = value, total


@compiled
def correct(program, work, data, right, x, cleared, plain):
    """Take a step of refinement from x; return the errors row by row without and with zeros put in."""
    n = x.size
    r, s = np.empty(n), np.empty(n)
    residual_of(part(program, INDPTR), part(program, INDICES), data, right, x, r, s)
    substitute(program, work, data, r, plain)
    for j in range(n):
        plain[j] += x[j]
        cleared[j] = 0.0 if abs(plain[j]) <= CLEARED * abs(x[j]) or x[j] == 0.0 else plain[j]
    plainly = backward_error(part(program, INDPTR), part(program, INDICES), data, right, plain)
    return plainly, backward_error(part(program, INDPTR), part(program, INDICES), data, right, cleared)


@compiled
def refined(program, work, data, right, x):
    """Find x = A^-1 b with a step of refinement: factors of poor pivots alone may overrate it."""
    n = right.size
    r, s, d = np.empty(n), np.empty(n), np.empty(n)
    substitute(program, work, data, right, x)
    residual_of(part(program, INDPTR), part(program, INDICES), data, right, x, r, s)
    substitute(program, work, data, r, d)
    x += d


@compiled
def reached_error(program, work, data, right, x):
    """Return the error unknown by unknown; the factors are in `work`."""
    n = x.size
    r, s, d, again, reach = np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.abs(x)
    residual_of(part(program, INDPTR), part(program, INDICES), data, right, x, r, s)
    substitute(program, work, data, r, d)
    for k in range(program.nudges.shape[0]):
        refined(program, work, data, program.nudges[k] * s, again)
        reach = np.maximum(reach, np.abs(again))
    residual_of(part(program, INDPTR), part(program, INDICES), data, r, d, r, s)
    substitute(program, work, data, r, again)
    worst = 0.0
    for j in range(n):
        error = abs(d[j]) + 2.0 * abs(again[j])
        if not np.isfinite(error) or not np.isfinite(reach[j]):
            return np.nan
        if abs(again[j]) > TRUSTED * max(abs(d[j]), ACCEPTED_ERROR * reach[j]):
            return np.inf
        if error > 0.0:
            worst = max(worst, error / reach[j] if reach[j] > 0.0 else np.inf)
    return worst


@compiled
def only_zeros_differ(x, cleared):
    """Return whether all but the unknowns set to zero stay as they are."""
    for j in range(x.size):
        if cleared[j] != 0.0 and abs(cleared[j] - x[j]) > ACCEPTED_ERROR * abs(cleared[j]):
            return False
    return True


@compiled
def judge(program, work, data, right, x, pivots, checks, refining):
    """Write the checks of an answer: the lesser error, least pivot quality, growth.

    An answer whose rows are not good is exchanged for the corrected one where that one's are: where only zeros are new,
    and while refining any.
    """
    quality, largest, entry = pivots
    checks[1], checks[2] = quality, max(1.0, largest / entry) if entry > 0.0 else 1.0
    checks[0] = backward_error(part(program, INDPTR), part(program, INDICES), data, right, x)
    if not checks[0] > ACCEPTED_ERROR or checks[1] < SUSPECT_PIVOT or checks[2] > SUSPECT_GROWTH:
        return
    cleared, plain = np.empty(x.size), np.empty(x.size)
    plainly, error = correct(program, work, data, right, x, cleared, plain)
    if error <= min(plainly, ACCEPTED_ERROR) and (refining or only_zeros_differ(x, cleared)):
        x[:], checks[0] = cleared, error
    elif refining and plainly <= ACCEPTED_ERROR:
        x[:], checks[0] = plain, plainly
    else:
        checks[0] = min(checks[0], reached_error(program, work, data, right, x))


@compiled
def factor_solve_batch(program, work, data, right, x, checks):
    """Solve many systems of one plan, one after another; leading axis of every array."""
    for sample in range(right.shape[0]):
        pivots = factor(program, work, data[sample])
        substitute(program, work, data[sample], right[sample], x[sample])
        judge(program, work, data[sample], right[sample], x[sample], pivots, checks[sample], False)


@compiled
def refine_batch(program, work, data, right, x, checks):
    """Add A^-1 (b - A x) to every x, twice, with zeros put in where that is sound and no worse, and judge again."""
    n = right.shape[1]
    cleared, plain = np.empty(n), np.empty(n)
    for sample in range(right.shape[0]):
        pivots = factor(program, work, data[sample])
        for _ in range(2):
            plainly, error = correct(program, work, data[sample], right[sample], x[sample], cleared, plain)
            x[sample] = cleared if error <= min(plainly, ACCEPTED_ERROR) else plain
        judge(program, work, data[sample], right[sample], x[sample], pivots, checks[sample], True)


@compiled
def backward_errors(indptr, indices, data, right, x, found):
    """Return the errors row by row of many systems."""
    for sample in range(right.shape[0]):
        found[sample] = backward_error(indptr, indices, data[sample], right[sample], x[sample])


# ----------------------------------------------------------------------------------------------------------------------
# The accuracy of an answer: partial pivoting at run time on scaled rows and columns, and its error.
#
# Symbols: r = b - A x, s = |A| |x| + |b|, u the unit roundoff, m entries of a row. For data taken as exact,
#
#     |x - A^-1 b| <= |A^-1| (|r| + (m + 1) u s)
#
# (N. J. Higham, "Accuracy and Stability of Numerical Algorithms", 2002, sec. 7.7: the second term is what r itself may
# be wrong by). |A^-1 r| is found by solving, |A^-1| (m + 1) u s sampled with random signs; see `accuracy.py`.


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
        """Return the error unknown by unknown as `accuracy.py` has it, and the estimated |x - A^-1 b|."""
        size = abs(self.A)
        r, s = b - self.A @ x, size @ np.abs(x) + np.abs(b)
        d = self.solve(r)
        second = np.abs(self.solve(r - self.A @ d))
        moved = np.abs(d) + 2.0 * second
        entries = 1.0 + np.bincount(sp.coo_array(size).coords[0], minlength=len(b))
        nudges = make_nudges(len(b))
        reach, rounding = (
            np.max([np.abs(self.refined(nudge * weight)) for nudge in nudges], axis=0) for weight in (s, entries * s)
        )
        reach = np.maximum(reach, np.abs(x))
        if (second > TRUSTED * np.maximum(np.abs(d), ACCEPTED_ERROR * reach)).any():
            moved = np.where(second > 0.0, np.inf, moved)  # the factors are no inverse, nor the correction an error
        ratio = np.where(moved > 0.0, moved / np.where(reach > 0.0, reach, np.finfo(float).tiny), 0.0)
        return float(ratio.max(initial=0.0)), moved + SAMPLED_REACH * UNIT_ROUNDOFF * rounding
