"""What became of a sample: the residuals of both block rows, evaluated after the solve, and a status from them.

Symbols: d (n,), s (m,) constant scales near M_ii^-1/2 and G_ii^-1/2, which take units away,

    omega_1 = max |d (f - M a - A^T lam)| / max d (|M a| + |A^T lam| + |f|)
    omega_2 = max |s (c - A a)|           / max s (|A| |a| + |c| + |A a_free - c|)

A row in which everything cancels, as in a structure at rest, is thereby measured against what the forces could cause.
The pivots say why a residual is large: one of H that is not positive is a motion without mass, one of the Delassus
matrix that vanishes is a row that others imply. NaN makes every comparison false, and ends in the last verdict.
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca

from dalembert.kkt import Status
from dalembert.tree.sparse_factor import entries


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

    `free` is A a_free - c, what the rows would do without multipliers; `mass_pivots` are relative to H's diagonal,
    `row_pivots` to the equilibrated Delassus matrix's.
    """

    M: ca.SX
    A: ca.SX
    f: ca.SX
    c: ca.SX
    a: ca.SX
    lam: ca.SX
    free: ca.SX
    mass_pivots: list[ca.SX]
    row_pivots: list[ca.SX]


def residuals(e: Evidence, d: list[float], s: list[float]) -> ca.SX:
    """Return omega_1 and omega_2, (2,)."""
    n, m = e.M.shape[0], e.A.shape[0]
    inertial, reaction = _products(e.M, e.a)[0], _products(e.A.T, e.lam)[0]
    first = [ca.fabs(d[i] * (e.f[i] - inertial[i] - reaction[i])) for i in range(n)]
    size = [d[i] * (ca.fabs(inertial[i]) + ca.fabs(reaction[i]) + ca.fabs(e.f[i])) for i in range(n)]
    reached, reach = _products(e.A, e.a)
    second = [ca.fabs(s[i] * (e.c[i] - reached[i])) for i in range(m)]
    range_ = [s[i] * (reach[i] + ca.fabs(e.c[i]) + ca.fabs(e.free[i])) for i in range(m)]
    return ca.vertcat(_relative(first, size), _relative(second, range_))


def verdict(e: Evidence, omega: ca.SX, redundant: bool, limits: Thresholds) -> ca.SX:
    """Return the status of a sample, a member of `kkt.Status` as a number."""
    answer = _finite([*ca.vertsplit(e.a), *ca.vertsplit(e.lam)])
    data = _finite([*ca.vertsplit(e.f), *ca.vertsplit(e.c)])
    massive = _smallest(e.mass_pivots) > MASSIVE * limits.eps
    accepted = ca.logic_and(answer, ca.logic_and(omega[0] <= limits.accept, omega[1] <= limits.accept))
    least = _smallest(e.row_pivots)
    if redundant:
        solved = ca.if_else(least > limits.implied, int(Status.UNIQUE), int(Status.REDUNDANT))
        unsolved = ca.if_else(least > limits.implied, int(Status.DECLINED), int(Status.INCONSISTENT))
    else:
        solved = ca.if_else(least > limits.regular, int(Status.UNIQUE), int(Status.DECLINED))
        unsolved = ca.SX(int(Status.DECLINED))
    found = ca.if_else(accepted, solved, unsolved)
    found = ca.if_else(massive, found, int(Status.MASSLESS))
    return ca.if_else(data, found, int(Status.NONFINITE))


def _products(A: ca.SX, x: ca.SX) -> tuple[list[ca.SX], list[ca.SX]]:
    """Return A x and |A| |x|, by rows."""
    sums = [ca.SX(0)] * A.shape[0]
    sizes = [ca.SX(0)] * A.shape[0]
    for i, j, entry in entries(A):
        term = entry * x[j]
        sums[i] = sums[i] + term
        sizes[i] = sizes[i] + ca.fabs(term)
    return sums, sizes


def _relative(parts: list[ca.SX], sizes: list[ca.SX]) -> ca.SX:
    """Return the largest part over the largest size; 0 where both are zero."""
    if not parts:
        return ca.SX(0)
    part, size = _largest(parts), _largest(sizes)
    return ca.if_else(size > 0, part / size, part)


def _largest(values: list[ca.SX]) -> ca.SX:
    found = values[0]
    for value in values[1:]:
        found = ca.fmax(found, value)
    return found


def _smallest(values: list[ca.SX]) -> ca.SX:
    found = ca.SX(1)
    for value in values:
        found = ca.fmin(found, value)
    return found


def _finite(values: list[ca.SX]) -> ca.SX:
    """Say whether all are finite: the sum of sizes is below infinity, which is false for NaN."""
    return sum((ca.fabs(value) for value in values), start=ca.SX(0)) < ca.inf
