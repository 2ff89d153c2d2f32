"""The verdict of `kkt` on a sample of straight-line code: the sample decides rank, mass and consistency.

Where a model says what its rank is, `verdict.py` judges by it. Systems in expressions say nothing of the kind: their
parameters may take any value, and a rank holds at one state and not at the next. So each sample must prove what the
code was traced for, by the rules that `KKT` applies to it, and is declined where it does not: `KKT` then decides.

Symbols: H = M, or M + A^T R A where M may be singular; H = L D L^T, Y = L^-1 A^T, G = Y^T D^-1 Y; K kept rows, implied
ones A_i = T_i A_K; d = |H_kk|^-1/2, s = G_ii^-1/2, taken at the sample, so that no unit matters; p pivots of unit
diagonal; T_f, T_l as in `verdict.py`, S = T_f + T_l + |s c|.

    regular     p of H and of G_KK above the least that a fast route proves a rank with
    dependent   |Y_i - T_i Y_K|^2 / (G_ii + T_i^2 G_KK) at the level of rounding: A has no more rows than are kept
    lengths     no row is rounding beside another
    solved      omega_1, omega_2 at the level of rounding
    certain     three digits of a and of lam in their own units: their errors are about (1/p_H + 1/p_G) (n + m) eps S
                times |d| and |s|, p_H and p_G the least pivots; or both are zero to that, in scaled units
    agreeing    |c_i - T_i c_K| at the level of rounding of |c_i| + |T_i| |c_K|, or of the accelerations of size |L^T a|
                that there are, or far below what the forces alone could cause there (`AT_REST`)

All of these make an answer unique, or redundant where rows are implied; a conflict above the limit of consistency makes
it inconsistent. A pivot of H that vanishes is a massless motion, if H has the rows in it: else they may hold what M
does not resist.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import casadi as ca

from dalembert.kkt.expressions.scalars import add, is_zero, mul, sub, total
from dalembert.kkt.expressions.sparse_factor import Vector
from dalembert.kkt.expressions.verdict import (
    Asked,
    BlockAnswer,
    Judged,
    Solved,
    SolveEvidence,
    inner,
    relative,
    residuals,
    root,
    sum_of_sizes,
)
from dalembert.kkt.limits import AT_REST, CERTAIN, SampleLimits
from dalembert.status import Status
from dalembert.types import Scalar


@dataclass(frozen=True, eq=False)
class SampleFactors:
    """The factored block matrix as this verdict sees it.

    Attributes
    ----------
    heights
        The rows of Y^T.
    lengths
        G_ii (m,), the squares of the rows' lengths.
    pivots
        Of G_KK, by row.
    sums
        T by implied row; empty for a row that can move nothing.
    masses
        H_kk (n,).
    covered
        Whether H has mass or rows along every coordinate that could have either: then a pivot that vanishes is a
        massless motion.
    """

    heights: Sequence[Vector]
    lengths: Sequence[Scalar]
    pivots: Vector
    sums: Mapping[int, Vector]
    masses: Sequence[Scalar]
    covered: bool


def judged_by_sample(
    system: Judged, rows: SampleFactors, limits: SampleLimits, asked: Asked, solved: Solved
) -> BlockAnswer:
    """Return an answer with its residuals and the verdict that `KKT` would give, or `DECLINED`."""
    d, s = [_scale(x) for x in rows.masses], [_scale(x) for x in rows.lengths]
    mass_pivots, row_pivots = relative(system.mass.pivots, d), relative(rows.pivots, s)
    evidence = SolveEvidence(
        imbalance=system.imbalance(asked.load, solved.motion, solved.lam),
        gap=[sub(*pair) for pair in zip(asked.c, system.reached(solved.motion), strict=True)],
        c=asked.c,
        free=solved.free,
        held=solved.held,
        work=inner(solved.lam, asked.c),
        mass_pivots=mass_pivots,
        row_pivots=row_pivots,
        mass_scales=d,
        row_scales=s,
        implied=[i in rows.sums for i in range(len(s))],
        inputs=asked.inputs,
    )
    omega = residuals(evidence)
    spread = total(*(1.0 / ca.SX(reduce(ca.fmin, p)) for p in (mass_pivots, row_pivots) if p))
    whole = total(root(solved.free), root(solved.held), sum_of_sizes(s, asked.c))
    error = spread * limits.rounding * whole
    independent = [j for j in range(len(s)) if j not in rows.sums]
    borne = _borne(rows, solved.lam, independent)
    conditions = [
        *(ca.SX(p) > limits.regular for p in (*mass_pivots, *row_pivots)),
        *(ca.SX(conflict) <= limits.accept for conflict in omega[:2]),
        *_certain(solved.a, rows.masses, d, error, whole),
        *_certain(borne, [rows.lengths[j] for j in independent], [s[j] for j in independent], error, whole),
        *_dependent(system, rows, limits),
        *_lengths(s, limits),
    ]
    motion = root(total(*(mul(mul(x, x), _size(mass)) for x, mass in zip(solved.a, rows.masses, strict=True))))
    conflicts = _conflicts(rows, asked.c, solved, limits)
    met = [ca.SX(conflict) <= limits.accept for conflict in conflicts]
    met += _fulfilled(evidence, motion, rows, whole, limits)
    contradicted = [ca.SX(conflict) > limits.agree for conflict in conflicts]
    status = _verdict(evidence, rows, limits, conditions, met, contradicted)
    return BlockAnswer(solved.a, solved.lam, status, omega)


def _verdict(
    e: SolveEvidence,
    rows: SampleFactors,
    limits: SampleLimits,
    conditions: list[ca.SX],
    met: list[ca.SX],
    contradicted: list[ca.SX],
) -> Scalar:
    """Return the status of a sample, a member of `Status` as a number; every comparison is false for NaN."""
    answer = ca.SX(int(Status.REDUNDANT if rows.sums else Status.UNIQUE))
    if met:
        answer = ca.if_else(reduce(ca.logic_and, met), answer, int(Status.DECLINED))
    if contradicted:
        answer = ca.if_else(reduce(ca.logic_or, contradicted), int(Status.INCONSISTENT), answer)
    status = ca.if_else(reduce(ca.logic_and, conditions), answer, int(Status.DECLINED))
    if rows.covered:
        vanishing = reduce(ca.logic_or, (ca.fabs(p) <= limits.massless for p in e.mass_pivots))
        status = ca.if_else(vanishing, int(Status.MASSLESS), status)
    finite = ca.fabs(ca.SX(total(*e.inputs))) < ca.inf
    return ca.if_else(finite, status, int(Status.NONFINITE))


def _scale(square: Scalar) -> Scalar:
    """Return |square|^-1/2, zero where there is nothing."""
    if type(square) is float:
        return abs(square) ** -0.5 if square else 0.0
    size = ca.fabs(square)
    return ca.if_else(size == 0, 0.0, 1.0 / ca.sqrt(size))


def _certain(
    x: Sequence[Scalar], diagonal: Sequence[Scalar], scales: Sequence[Scalar], error: Scalar, whole: Scalar
) -> list[ca.SX]:
    """Return whether three digits of one block are certain in its own units, or it is zero.

    `error` is the largest in scaled units, x / scales. A block is zero that is so to rounding in scaled units, with
    three digits of what the data could cause in its least entry.
    """
    weights = [mul(x_i, x_i) for x_i in scales if not is_zero(x_i)]
    if not weights:
        return []
    squares = [mul(x_i, x_i) for x_i in x]
    largest = mul(total(*weights), error**2)
    scaled = total(*(mul(square, _size(weight)) for square, weight in zip(squares, diagonal, strict=True)))
    cause = mul(reduce(ca.fmin, weights), ca.SX(whole) ** 2)
    zero = ca.logic_and(ca.SX(scaled) <= error**2, largest <= CERTAIN**2 * cause)
    return [ca.logic_or(largest <= CERTAIN**2 * ca.SX(total(*squares)), zero)]


def _borne(rows: SampleFactors, lam: Sequence[Scalar], kept: Sequence[int]) -> list[Scalar]:
    """Return what the kept rows would bear alone, lam_K + T^T lam_i."""
    shares = {j: [mul(parts[j], lam[i]) for i, parts in rows.sums.items() if j in parts] for j in kept}
    return [total(lam[j], *shares[j]) for j in kept]


def _fulfilled(
    e: SolveEvidence, motion: Scalar, rows: SampleFactors, whole: Scalar, limits: SampleLimits
) -> list[ca.SX]:
    """Return whether implied rows are met to rounding of the motion |L^T a|, as kept ones are to that of the forces."""
    limit = add(mul(limits.accept, add(motion, sum_of_sizes(e.row_scales, e.c))), mul(limits.rounding, whole))
    gaps = [mul(e.row_scales[i], _size(e.gap[i])) for i in rows.sums]
    return [ca.SX(gap) <= limit for gap in gaps if not is_zero(gap)]


def _dependent(system: Judged, rows: SampleFactors, limits: SampleLimits) -> list[ca.SX]:
    """Return whether implied rows are sums of kept ones to rounding.

    Of y = (T_i, -1) in units of the rows' lengths, |B^T y| / |y| bounds the least singular value of B from above.
    """
    distances = []
    for i, parts in rows.sums.items():
        rest = dict(rows.heights[i])
        for j, weight in parts.items():
            for k, value in rows.heights[j].items():
                rest[k] = sub(rest.get(k, 0.0), mul(weight, value))
        if not rest:
            continue
        scaled = system.mass.scaled(rest)  # -D^-1 rest
        square = total(*(mul(rest[k], scaled[k]) for k in rest))
        size = total(rows.lengths[i], *(mul(mul(weight, weight), rows.lengths[j]) for j, weight in parts.items()))
        distances.append(ca.if_else(ca.SX(size) > 0, -square / ca.SX(size), 0))
    return [total(*distances) <= limits.dependent**2] if distances else []


def _lengths(s: Sequence[Scalar], limits: SampleLimits) -> list[ca.SX]:
    """Return whether no row is rounding beside another; rows that are known to be zero are none."""
    scales = [scale for scale in s if not is_zero(scale)]
    if len(scales) < 2:
        return []
    return [reduce(ca.fmin, scales) > limits.lengths * reduce(ca.fmax, scales)]


def _conflicts(rows: SampleFactors, c: Sequence[Scalar], solved: Solved, limits: SampleLimits) -> list[ca.SX]:
    """Return, by implied row, how far its right side is from the sum of those that it is made of, relative to them.

    Rounding of the accelerations that coordinates of these rows have, |L^T a| of them, is no conflict; nor is what is
    nothing beside those that the forces alone could cause (`AT_REST`).
    """
    conflicts = []
    for i, parts in rows.sums.items():
        terms = [mul(weight, c[j]) for j, weight in parts.items()]
        conflict = sub(c[i], total(*terms))
        if is_zero(conflict):
            continue
        size = ca.SX(sum_of_sizes([1.0] * (len(terms) + 1), [c[i], *terms]))
        reach = [root(rows.lengths[i]), *(mul(_size(weight), root(rows.lengths[j])) for j, weight in parts.items())]
        near = sorted({*rows.heights[i], *(k for j in parts for k in rows.heights[j])})
        motion = root(total(*(mul(mul(solved.a[k], solved.a[k]), _size(rows.masses[k])) for k in near)))
        noise = add(mul(limits.rounding, motion), mul(AT_REST, root(solved.free)))
        within = _size(conflict) <= mul(noise, total(*reach))
        conflicts.append(ca.if_else(within, 0, _size(conflict) / size))
    return conflicts


def _size(x: Scalar) -> Scalar:
    """Return |x|."""
    return abs(x) if type(x) is float else ca.fabs(x)
