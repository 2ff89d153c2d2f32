"""What became of a sample: the residuals of both block rows, evaluated after the solve, and a status from them.

Symbols: d (n,), s (m,) constant scales near M_ii^-1/2 and G_ii^-1/2, which take units away,

    omega_1 = max |d (f - M a - A^T lam)| / max d (|M a| + |A^T lam| + |f|)
    omega_2 = max |s (c - A a)|           / max s (|A| |a| + |c| + |A a_free - c|)

A row in which everything cancels, as in a structure at rest, is thereby measured against what the forces could cause.
The pivots say why a residual is large: one of H that is not positive is a motion without mass, one of the Delassus
matrix that vanishes is a row that others imply. NaN makes every comparison false, and ends in the last verdict.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import casadi as ca

from dalembert.kkt import Status
from dalembert.tree.scalars import Scalar, mul, sub, total
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

    `free` is A a_free - c, what the rows would do without multipliers; `mass_pivots` are relative to H's typical diagonal,
    `row_pivots` to the Delassus matrix's.
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


def residuals(e: Evidence, d: Sequence[float], s: Sequence[float]) -> list[Scalar]:
    """Return omega_1 and omega_2."""
    inertial = [total(*terms) for terms in _terms(e.M, e.a)]
    reaction = [total(*terms) for terms in _terms(list(zip(*e.A, strict=True)), e.lam)] or [0.0] * len(e.f)
    first, size = [], []
    for scale, f, Ma, force in zip(d, e.f, inertial, reaction, strict=True):
        first.append(_size(mul(scale, sub(sub(f, Ma), force))))
        size.append(mul(scale, total(_size(f), _size(Ma), _size(force))))
    second, reach = [], []
    for scale, c, terms, free in zip(s, e.c, _terms(e.A, e.a), e.free, strict=True):
        second.append(_size(mul(scale, sub(c, total(*terms)))))
        reach.append(mul(scale, total(_size(c), _size(free), *map(_size, terms))))
    return [_relative(first, size), _relative(second, reach)]


def verdict(e: Evidence, omega: Sequence[Scalar], redundant: bool, limits: Thresholds) -> Scalar:
    """Return the status of a sample, a member of `kkt.Status` as a number."""
    massive = _smallest(e.mass_pivots) > MASSIVE * limits.eps
    small = ca.logic_and(omega[0] <= limits.accept, omega[1] <= limits.accept)
    accepted = ca.logic_and(_finite([*e.a, *e.lam]), small)
    least = _smallest(e.row_pivots)
    if redundant:
        solved = ca.if_else(least > limits.implied, int(Status.UNIQUE), int(Status.REDUNDANT))
        unsolved = ca.if_else(least > limits.implied, int(Status.DECLINED), int(Status.INCONSISTENT))
    else:
        solved = ca.if_else(least > limits.regular, int(Status.UNIQUE), int(Status.DECLINED))
        unsolved = ca.SX(int(Status.DECLINED))
    found = ca.if_else(accepted, solved, unsolved)
    found = ca.if_else(massive, found, int(Status.MASSLESS))
    return ca.if_else(_finite([*e.f, *e.c]), found, int(Status.NONFINITE))


def _terms(A: Matrix, x: Sequence[Scalar]) -> list[list[Scalar]]:
    """Return the products A_ij x_j that are not zero, by rows."""
    return [[mul(entry, x[j]) for j, entry in sparse(row).items()] for row in A]


def _size(x: Scalar) -> Scalar:
    return abs(x) if type(x) is float else ca.fabs(x)


def _relative(parts: list[Scalar], sizes: list[Scalar]) -> Scalar:
    """Return the largest part over the largest size; 0 where both are zero."""
    if not parts:
        return ca.SX(0)
    part, size = reduce(ca.fmax, parts), reduce(ca.fmax, sizes)
    return ca.if_else(size > 0, part / size, part)


def _smallest(values: Sequence[Scalar]) -> Scalar:
    return reduce(ca.fmin, values, ca.SX(1))


def _finite(values: Sequence[Scalar]) -> Scalar:
    """Say whether all are finite: the sum of sizes is below infinity, which is false for NaN."""
    return ca.SX(total(*map(_size, values))) < ca.inf
