"""What became of a sample: the residuals of both block rows, evaluated after the solve, and a status from them.

Symbols: d (n,), s (m,) constant scales near H_ii^-1/2 and G_ii^-1/2, which take units away, |.| the sum of sizes,

    omega_1 = |d (f - M a - A^T lam)| / (|d f| + |d M a| + |d A^T lam|)
    omega_2 = |s (c - A a)| / (|s c| + |s (A a_free - c)| + m (a^T M a)^1/2)

The last term bounds the terms of s A a, since s_i^2 = 1 / (A M^-1 A^T)_ii: so a row in which everything cancels, as in a
structure at rest, is measured against what the forces could cause. The pivots say why a residual is large: one of H that
is not positive is a motion without mass, one of the Delassus matrix that vanishes is a row that others imply. NaN makes
every comparison false, and sums let none get lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import casadi as ca

from dalembert.kkt import Status
from dalembert.tree.scalars import Scalar, add, mul, sub, total
from dalembert.tree.sparse_factor import Matrix, sparse


@dataclass(frozen=True, eq=False)
class Thresholds:
    """Limits for one precision; `eps` is its rounding unit.

    Attributes
    ----------
    shift
        mu of the proximal steps: eps^0.45, 9e-8 in double precision: three steps from there meet sigma = 1e-3 to
        1e-12, and rounding moves lam along null(A^T) by eps / mu = 2e-9 of its size.
    accept
        Relative residuals up to here count as solved.
    implied
        A pivot of the equilibrated Delassus matrix up to here marks a row that others imply.
    """

    eps: float

    @property
    def shift(self) -> float:
        """Return mu."""
        return self.eps**0.45

    @property
    def accept(self) -> float:
        """Return the largest relative residual of an answer."""
        return self.eps**0.625

    @property
    def implied(self) -> float:
        """Return the pivot below which a row is implied by others."""
        return 100 * self.shift

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
    """Everything the verdict is made from: the system, its answer, and the pivots met on the way.

    `free` is A a_free - c, what the rows would do without multipliers; pivots are relative to typical diagonals of H and of
    the Delassus matrix, of which the scales d and s are the roots.
    """

    M: Matrix
    A: Matrix
    f: Sequence[Scalar]
    c: Sequence[Scalar]
    a: Sequence[Scalar]
    lam: Sequence[Scalar]
    free: Sequence[Scalar]
    mass_pivots: Sequence[Scalar]
    row_pivots: Sequence[Scalar]
    mass_scales: Sequence[float]
    row_scales: Sequence[float]


def residuals(e: Evidence) -> list[Scalar]:
    """Return omega_1 and omega_2."""
    d, s = e.mass_scales, e.row_scales
    inertial = _product(e.M, e.a)
    reaction = _product(list(zip(*e.A, strict=True)), e.lam) or [0.0] * len(e.f)
    left = [sub(sub(*pair), force) for *pair, force in zip(e.f, inertial, reaction, strict=True)]
    first = _over(_sum(d, left), total(_sum(d, e.f), _sum(d, inertial), _sum(d, reaction)))
    if not e.A:
        return [first, ca.SX(0)]
    energy = total(*map(mul, e.a, inertial))
    gap = [sub(*pair) for pair in zip(e.c, _product(e.A, e.a), strict=True)]
    reach = mul(float(len(e.A)), ca.sqrt(ca.fabs(ca.SX(energy))))
    return [first, _over(_sum(s, gap), total(_sum(s, e.c), _sum(s, e.free), reach))]


def verdict(e: Evidence, omega: Sequence[Scalar], redundant: bool, limits: Thresholds) -> Scalar:
    """Return the status of a sample, a member of `kkt.Status` as a number."""
    massive = _smallest(e.mass_pivots) > MASSIVE * limits.eps
    accepted = ca.logic_and(omega[0] <= limits.accept, omega[1] <= limits.accept)
    least = _smallest(e.row_pivots)
    if redundant:
        solved = ca.if_else(least > limits.implied, int(Status.UNIQUE), int(Status.REDUNDANT))
        unsolved = ca.if_else(least > limits.implied, int(Status.DECLINED), int(Status.INCONSISTENT))
    else:
        solved = ca.if_else(least > limits.regular, int(Status.UNIQUE), int(Status.DECLINED))
        unsolved = ca.SX(int(Status.DECLINED))
    found = ca.if_else(accepted, solved, unsolved)
    found = ca.if_else(massive, found, int(Status.MASSLESS))
    finite = ca.SX(add(_sum(e.mass_scales, e.f), _sum(e.row_scales, e.c))) < ca.inf
    return ca.if_else(finite, found, int(Status.NONFINITE))


def _product(A: Matrix, x: Sequence[Scalar]) -> list[Scalar]:
    """Return A x."""
    return [total(*(mul(entry, x[j]) for j, entry in sparse(row).items())) for row in A]


def _sum(scales: Sequence[float], x: Sequence[Scalar]) -> Scalar:
    """Return the sum of |scale x|."""
    sizes = (abs(each) if type(each) is float else ca.fabs(each) for each in x)
    return total(*(mul(scale, size) for scale, size in zip(scales, sizes, strict=True)))


def _over(part: Scalar, size: Scalar) -> Scalar:
    """Return part / size; 0 where both are zero."""
    return ca.if_else(ca.SX(size) > 0, part / ca.SX(size), part)


def _smallest(values: Sequence[Scalar]) -> Scalar:
    return reduce(ca.fmin, values, ca.SX(1))
