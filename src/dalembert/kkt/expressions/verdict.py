"""The verdict on a sample: residuals of both block rows, a status from them, and the answer with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Protocol

import casadi as ca

from dalembert.kkt.expressions.scalars import add, is_zero, mul, sub, total
from dalembert.kkt.expressions.sparse_factor import Vector
from dalembert.kkt.limits import MASSIVE, Thresholds
from dalembert.status import Status
from dalembert.types import Scalar

# ----------------------------------------------------------------------------------------------------------------------
# The verdict on a sample: residuals of both block rows, evaluated after the solve, and a status from them.
#
# Symbols: d (n,), s (m,) constant scales near H_ii^-1/2 and G_ii^-1/2, which take units away; |.| the sum of sizes;
# T_f^2 = f^T H^-1 f, T_l^2 = lam^T G lam, so that by Cauchy's inequality no entry of d f is larger than T_f, none of
# d A^T lam larger than T_l, none of d M a or s A a larger than their sum:
#
#     omega_1 = |d (f - M a - A^T lam)| / n (T_f + T_l)
#     omega_2 = |s (c - A a)| / (|s c| + m (T_f + T_l))          of the rows that are kept; omega_3 of those implied
#
# A row in which everything cancels, as in a structure at rest, is thus measured against what the forces could cause.
#
# **Implied rows** must be met as well. What they may miss has two causes: numbers of the model are known to its digits,
# and these act on the motion that there is, T_a^2 = a^T H a = T_f^2 - T_l^2 - 2 lam^T c; and a is rounded, by
# eps / sqrt(p) of what the forces could cause:
#
#     |s (c - A a)| <= digits (|s c| + m T_a) + eps^(3/4) (|s c| + m (T_f + T_l))
#
# Digits of what the forces could cause are not enough: a robot that stands has large ones, and a small contradiction
# between its rows, all that moves it, would vanish beside them. What is missed by more than this and less than that
# is not told by a kernel.
#
# Right sides that are themselves the misses of a configuration (`sizes`) are known to the digits of what they are
# differences of, the lengths of the system: where it is closed to rounding, rounding contradicts nothing.
#
# **From residuals to errors.** Let r_1, r_2 be what is left of the two block rows. In the metric of the mass the answer
# is wrong by P M^-1 r_1 + A^+ r_2, P a projection, so by no more than |r_1| + |r_2| / s_r, s_r the least singular value
# of the kept rows in that metric, whatever became of lam. Pivots of G are no smaller than s_r^2, and seldom much
# larger: with p the least of them
#
#     |error of a| <= n omega_1 (T_f + T_l) + omega_2 (|s c| + m (T_f + T_l)) / sqrt(p)
#
# A is itself rounded, which no residual shows: that is another eps / sqrt(p). Both must leave half of the digits at
# hand, sqrt(eps); so a state near a singular configuration is answered as long as its digits last, in double and in
# single precision alike, and declined where they do not.
#
# The pivots say why: one of H that is not positive is a motion without mass, one of the Delassus matrix that vanishes
# is a rank that is lost. Implied rows that are missed although the kept ones are met contradict them. NaN makes every
# comparison false, and sums let none get lost.


@dataclass(frozen=True, eq=False)
class SolveEvidence:
    """Everything the verdict is made from.

    Attributes
    ----------
    imbalance, gap
        f - M a - A^T lam (n,) and c - A a (m,).
    c, inputs
        Right side of the rows; everything that came from outside.
    free, held, work
        T_f^2, T_l^2 and lam^T c.
    mass_pivots, row_pivots
        Pivots of H and, of kept rows, of G, relative to their typical diagonals, of which d and s are the roots.
    implied
        Per row, whether it is beyond the system's rank.
    sizes
        Per row, what c is a difference of; empty where it is no difference.
    """

    imbalance: Sequence[Scalar]
    gap: Sequence[Scalar]
    c: Sequence[Scalar]
    free: Scalar
    held: Scalar
    work: Scalar
    mass_pivots: Sequence[Scalar]
    row_pivots: Sequence[Scalar]
    mass_scales: Sequence[Scalar]
    row_scales: Sequence[Scalar]
    implied: Sequence[bool]
    inputs: Sequence[Scalar]
    sizes: Sequence[float] = ()


def residuals(e: SolveEvidence) -> list[Scalar]:
    """Return omega_1, omega_2, omega_3."""
    reach = add(root(e.free), root(e.held))
    first = _over(sum_of_sizes(e.mass_scales, e.imbalance), mul(float(len(e.imbalance)), reach))
    if not e.gap:
        return [first, ca.SX(0), ca.SX(0)]
    size = _size(e, reach)
    sides = [[implied is side for implied in e.implied] for side in (False, True)]
    missed = [
        sum_of_sizes([s if chosen else 0.0 for s, chosen in zip(e.row_scales, side, strict=True)], e.gap)
        for side in sides
    ]
    return [first, *(ca.SX(0) if is_zero(miss) else _over(miss, size) for miss in missed)]


def _size(e: SolveEvidence, motion: Scalar) -> Scalar:
    """Return |s c| + m T: what rows ask for, and what a motion of that size makes of them."""
    return add(sum_of_sizes(e.row_scales, e.c), mul(float(len(e.gap)), motion))


def _agreement(e: SolveEvidence, limits: Thresholds) -> Scalar:
    """Return the largest omega_3 of implied rows that the model's digits and the rounding of a explain."""
    moved = sub(sub(e.free, e.held), mul(2.0, e.work))
    share = _over(_size(e, root(moved)), _size(e, add(root(e.free), root(e.held))))
    allowed = limits.digits * share + limits.rounded
    if not e.sizes:
        return allowed
    lengths = sum_of_sizes(e.row_scales, e.sizes)
    return allowed + _over(mul(limits.digits, lengths), _size(e, add(root(e.free), root(e.held))))


def verdict(e: SolveEvidence, omega: Sequence[Scalar], limits: Thresholds) -> Scalar:
    """Return the status of a sample, a member of `kkt.Status` as a number."""
    massive = _smallest(e.mass_pivots) > MASSIVE * limits.eps
    least, redundant = _smallest(e.row_pivots), any(e.implied)
    m = max(len(e.gap), 1)
    certain = ca.logic_and(least > limits.regular, (m * omega[1]) ** 2 <= limits.certain**2 * ca.fmin(least, 1))
    solved = ca.logic_and(certain, ca.logic_and(omega[0] <= limits.accept, omega[1] <= limits.accept))
    answer = ca.SX(int(Status.REDUNDANT if redundant else Status.UNIQUE))
    if redundant:
        missed = ca.if_else(least > limits.implied, int(Status.INCONSISTENT), int(Status.DECLINED))
        missed = ca.if_else(omega[2] < ca.inf, missed, int(Status.DECLINED))  # an overflow contradicts nothing
        missed = ca.if_else(omega[2] <= limits.agree, int(Status.DECLINED), missed)
        answer = ca.if_else(omega[2] <= _agreement(e, limits), answer, missed)
    status = ca.if_else(solved, answer, int(Status.DECLINED))
    status = ca.if_else(massive, status, int(Status.MASSLESS))
    finite = ca.fabs(ca.SX(total(*e.inputs))) < ca.inf
    return ca.if_else(finite, status, int(Status.NONFINITE))


def root(x: Scalar) -> Scalar:
    """Return the root of what is not negative but for rounding."""
    return 0.0 if is_zero(x) else ca.sqrt(ca.fabs(x))


def inner(x: Sequence[Scalar], y: Sequence[Scalar]) -> Scalar:
    """Return x . y."""
    return total(*(mul(*pair) for pair in zip(x, y, strict=True)))


def sum_of_sizes(scales: Sequence[Scalar], x: Sequence[Scalar]) -> Scalar:
    """Return the sum of |scale x|."""
    sizes = (abs(entry) if type(entry) is float else ca.fabs(entry) for entry in x)
    return total(*(mul(scale, size) for scale, size in zip(scales, sizes, strict=True)))


def _over(part: Scalar, size: Scalar) -> Scalar:
    """Return part / size; 0 where both are zero."""
    return ca.if_else(ca.SX(size) > 0, part / ca.SX(size), part)


def _smallest(values: Sequence[Scalar]) -> Scalar:
    return reduce(ca.fmin, values, ca.SX(1))


# ----------------------------------------------------------------------------------------------------------------------
# An answer to the block system with its verdict, whatever route it came by.
#
# Symbols: H, G as in `block_solver.py`; T_f, T_l as in `verdict.py`. Residuals are made from the answer alone, never by
# way of the factors that led to it: so one verdict serves all routes.


@dataclass(frozen=True, eq=False)
class Conditioning:
    """What the straight-line code has to cope with, and typical sizes; see `probing.py`.

    Attributes
    ----------
    massless
        Whether M may be singular.
    mass_scales, row_scales
        Constants near H_ii^-1/2 (n,) and G_ii^-1/2 (m,), the latter one for all rows of a unit in a constraint.
    size_floors
        |A_i|^2 (m,) below which a row is not scaled up any further. A constraint that can move nothing at any probe
        has rows of rounding, or none: what is typical of the others is its floor.
    implied
        Per row, whether it is beyond the system's rank: others, which are kept, imply it.
    sums
        Per row, the kept rows that an implied one is a sum of; none of a row that can move nothing.
    near
        Whether a singular value lies in a band that was asked for: then the system decides its rank, not the probes.
    doubtful
        Whether its rank is in doubt: no answer is certified.
    """

    massless: bool
    mass_scales: tuple[float, ...]
    row_scales: tuple[float, ...]
    size_floors: tuple[float, ...]
    implied: tuple[bool, ...]
    sums: tuple[tuple[int, ...], ...]
    near: bool = False
    doubtful: bool = False

    @property
    def redundant(self) -> bool:
        """Whether some rows are implied by others."""
        return any(self.implied)

    @property
    def dependent(self) -> tuple[bool, ...]:
        """Per row, whether it has a part in a dependence."""
        parts = {j for row in self.sums for j in row}
        return tuple(implied or i in parts for i, implied in enumerate(self.implied))

    @property
    def idle(self) -> tuple[bool, ...]:
        """Per row, whether it is implied and made of no others: it bears nothing."""
        return tuple(implied and not parts for implied, parts in zip(self.implied, self.sums, strict=True))

    def of_rows(self, rows: Sequence[int]) -> Conditioning:
        """Return the needs of some of the rows, among which are those that implied ones are made of."""
        words = ("row_scales", "size_floors", "implied")
        place = {i: k for k, i in enumerate(rows)}
        sums = tuple(tuple(place[j] for j in self.sums[i]) for i in rows)
        return replace(self, sums=sums, **{name: tuple(getattr(self, name)[i] for i in rows) for name in words})


class MassFactor(Protocol):
    """H = L D L^T: pivots D, and -D^-1 times a vector."""

    @property
    def pivots(self) -> Vector:
        """D, by velocity."""
        ...

    def scaled(self, y: Vector) -> Vector:
        """Return -D^-1 y."""
        ...


class Judged(Protocol):
    """M and A as the verdict sees them; what a load and a motion are is the system's own affair."""

    @property
    def mass(self) -> MassFactor:
        """The factor of H."""
        ...

    def imbalance(self, load: Any, motion: Any, lam: Sequence[Scalar]) -> list[Scalar]:
        """Return f - M a - A^T lam, not by way of the factors."""
        ...

    def reached(self, motion: Any) -> list[Scalar]:
        """Return A a, not by way of the factors."""
        ...


@dataclass(frozen=True, eq=False)
class Asked:
    """Right sides, and everything that comes from outside: where that is not finite, the sample is said to be so.

    `sizes` (m,) are what c is a difference of, where it is one.
    """

    load: Any
    c: Sequence[Scalar]
    inputs: Sequence[Scalar]
    sizes: Sequence[float] = ()


@dataclass(frozen=True, eq=False)
class Solved:
    """What a route found.

    a (n,), the motion that it is, lam (m,), T_f^2, T_l^2, and the pivots of kept rows, relative.
    """

    a: list[Scalar]
    motion: Any
    lam: list[Scalar]
    free: Scalar
    held: Scalar
    row_pivots: list[Scalar]


@dataclass(frozen=True, eq=False)
class BlockAnswer:
    """Scalars of one solve: a (n,), lam (m,), status (`kkt.Status`), residuals (3,)."""

    acceleration: list[Scalar]
    multipliers: list[Scalar]
    status: Scalar
    residuals: list[Scalar]


def judged(system: Judged, needs: Conditioning, limits: Thresholds, asked: Asked, solved: Solved) -> BlockAnswer:
    """Return an answer with its residuals and verdict."""
    evidence = SolveEvidence(
        imbalance=system.imbalance(asked.load, solved.motion, solved.lam),
        gap=[sub(*pair) for pair in zip(asked.c, system.reached(solved.motion), strict=True)],
        c=asked.c,
        free=solved.free,
        held=solved.held,
        work=inner(solved.lam, asked.c),
        mass_pivots=relative(system.mass.pivots, needs.mass_scales),
        row_pivots=solved.row_pivots,
        mass_scales=needs.mass_scales,
        row_scales=needs.row_scales,
        implied=needs.implied,
        inputs=asked.inputs,
        sizes=asked.sizes,
    )
    omega = residuals(evidence)
    return BlockAnswer(solved.a, solved.lam, doubted(verdict(evidence, omega, limits), needs), omega)


def doubted(status: Scalar, needs: Conditioning) -> Scalar:
    """Return the status, that of an answer without certificate where the system's rank is in doubt."""
    if not needs.doubtful:
        return status
    return ca.if_else(ca.SX(status) <= int(Status.REDUNDANT), int(Status.ILL_CONDITIONED), status)


def relative(pivots: Vector, scales: Sequence[Scalar]) -> list[Scalar]:
    """Return pivots times the squares of their scales."""
    return [mul(scales[k] ** 2, pivot) for k, pivot in sorted(pivots.items())]
