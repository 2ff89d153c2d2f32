"""What became of a sample: the residuals of both block rows, evaluated after the solve, and a status from them.

Symbols: d (n,), s (m,) constant scales near H_ii^-1/2 and G_ii^-1/2, which take units away; |.| the sum of sizes;
T_f^2 = f^T H^-1 f, T_l^2 = lam^T G lam, so that by Cauchy's inequality no entry of d f is larger than T_f, none of
d A^T lam larger than T_l, none of d M a or s A a larger than their sum:

    omega_1 = |d (f - M a - A^T lam)| / n (T_f + T_l)
    omega_2 = |s (c - A a)| / (|s c| + m (T_f + T_l))

A row in which everything cancels, as in a structure at rest, is thus measured against what the forces could cause. The
pivots say why a residual is large: one of H that is not positive is a motion without mass, one of the Delassus matrix
that vanishes is a row that others imply. NaN makes every comparison false, and sums let none get lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import casadi as ca

from dalembert.kkt import Status
from dalembert.tree.scalars import Scalar, add, is_zero, mul, total


@dataclass(frozen=True, eq=False)
class Thresholds:
    """Limits for one precision.

    Attributes
    ----------
    eps
        The precision's rounding unit.
    digits
        Relative size of what counts as rounding of the model's numbers: redundant rows agree to that.
    shift
        mu of the proximal steps: eps^0.64, 1e-10 in double precision. Three steps meet eigenvalues sigma of the unit-
        diagonal Delassus matrix down to 1e-6 to the last digits; those below mu, which are squares of singular
        values of A below 1e-5, count as zero: files have about so many digits.
    accept
        Relative residuals up to here count as solved.
    implied
        A pivot of the equilibrated Delassus matrix up to here marks a row that others imply.
    """

    eps: float
    digits: float = 1e-9

    @property
    def shift(self) -> float:
        """Return mu."""
        return self.eps**0.64

    @property
    def accept(self) -> float:
        """Return the largest relative residual of an answer."""
        return self.eps**0.625

    @property
    def agree(self) -> float:
        """Return the largest residual of redundant rows."""
        return max(self.digits, self.accept)

    @property
    def implied(self) -> float:
        """Return the pivot below which a row is implied by others: mu times the squares of how many it takes."""
        return max(100 * self.shift, self.eps**0.4)

    @property
    def settled(self) -> float:
        """Return the largest part of T_l that the last correction of the proximal steps may move.

        What is still wrong is three times that. More than the model's digits says that an eigenvalue is near mu:
        whether that row counts is for `KKT` to say.
        """
        return max(self.digits, self.eps**0.575)

    @property
    def regular(self) -> float:
        """Return the pivot above which rows without a shift are solved with digits to spare."""
        return self.eps**0.6


MASSIVE = 64.0
"""A pivot of H above MASSIVE * eps of its typical diagonal is mass, not rounding."""

DOUBLE = Thresholds(2.0**-52)
SINGLE = Thresholds(2.0**-23)


@dataclass(frozen=True, eq=False)
class Evidence:
    """Everything the verdict is made from.

    Attributes
    ----------
    imbalance, gap
        f - M a - A^T lam (n,) and c - A a (m,).
    c, inputs
        Right side of the rows; everything that came from outside.
    free, held
        T_f^2 and T_l^2.
    unrest
        What the last correction of the proximal steps moved, in the measure of T_l^2: near zero unless a row is neither
        implied by others nor clearly independent of them.
    mass_pivots, row_pivots
        Pivots of H and G relative to their typical diagonals, of which the scales d and s are the roots.
    """

    imbalance: Sequence[Scalar]
    gap: Sequence[Scalar]
    c: Sequence[Scalar]
    free: Scalar
    held: Scalar
    unrest: Scalar
    mass_pivots: Sequence[Scalar]
    row_pivots: Sequence[Scalar]
    mass_scales: Sequence[float]
    row_scales: Sequence[float]
    inputs: Sequence[Scalar]


def residuals(e: Evidence) -> list[Scalar]:
    """Return omega_1 and omega_2."""
    reach = add(_root(e.free), _root(e.held))
    first = _over(_sum(e.mass_scales, e.imbalance), mul(float(len(e.imbalance)), reach))
    if not e.gap:
        return [first, ca.SX(0)]
    return [first, _over(_sum(e.row_scales, e.gap), add(_sum(e.row_scales, e.c), mul(float(len(e.gap)), reach)))]


def verdict(e: Evidence, omega: Sequence[Scalar], redundant: bool, limits: Thresholds) -> Scalar:
    """Return the status of a sample, a member of `kkt.Status` as a number."""
    massive = _smallest(e.mass_pivots) > MASSIVE * limits.eps
    least = _smallest(e.row_pivots)
    reached = ca.if_else(least > limits.implied, limits.accept, limits.agree) if redundant else limits.accept
    accepted = ca.logic_and(omega[0] <= limits.accept, omega[1] <= reached)
    if redundant:
        settled = ca.fabs(e.unrest) <= limits.settled**2 * ca.fabs(e.held)
        solved = ca.if_else(least > limits.implied, int(Status.UNIQUE), int(Status.REDUNDANT))
        solved = ca.if_else(settled, solved, int(Status.DECLINED))
        contradicted = ca.logic_and(least <= limits.implied, omega[0] < ca.inf)  # an overflow contradicts nothing
        unsolved = ca.if_else(contradicted, int(Status.INCONSISTENT), int(Status.DECLINED))
    else:
        solved = ca.if_else(least > limits.regular, int(Status.UNIQUE), int(Status.DECLINED))
        unsolved = ca.SX(int(Status.DECLINED))
    found = ca.if_else(accepted, solved, unsolved)
    found = ca.if_else(massive, found, int(Status.MASSLESS))
    finite = ca.fabs(ca.SX(total(*e.inputs))) < ca.inf
    return ca.if_else(finite, found, int(Status.NONFINITE))


def _root(x: Scalar) -> Scalar:
    """Return the root of what is not negative but for rounding."""
    return 0.0 if is_zero(x) else ca.sqrt(ca.fabs(x))


def _sum(scales: Sequence[float], x: Sequence[Scalar]) -> Scalar:
    """Return the sum of |scale x|."""
    sizes = (abs(each) if type(each) is float else ca.fabs(each) for each in x)
    return total(*(mul(scale, size) for scale, size in zip(scales, sizes, strict=True)))


def _over(part: Scalar, size: Scalar) -> Scalar:
    """Return part / size; 0 where both are zero."""
    return ca.if_else(ca.SX(size) > 0, part / ca.SX(size), part)


def _smallest(values: Sequence[Scalar]) -> Scalar:
    return reduce(ca.fmin, values, ca.SX(1))
