"""The straight-line executor of a plan: L, U and the solution as expressions."""

from __future__ import annotations

import operator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from dalembert.kernel import Kernel
from dalembert.tableau.elimination.checks import ACCEPTED_ERROR, SUSPECT_GROWTH, SUSPECT_PIVOT
from dalembert.tableau.elimination.looped import PROBE_SHARE
from dalembert.tableau.elimination.plan import Plan

# ----------------------------------------------------------------------------------------------------------------------
# The plan as straight-line code: L, U and the solution as CasADi expressions (seed 003, sec. 5.1).
#
# What the seed does by symbolic manipulation: with the pivots fixed, each entry of L and U is a short formula,
# constants fold (a pivot of one divides nothing) and structural zeros cost nothing. The kernel compiles the list; W
# samples run side by side. Same operations as `looped.py`.


TINY = float(np.finfo(float).tiny)
"""Stands for zero in a quotient: 0 / TINY is 0, as a row without any term deserves."""

HUGE = 1e300
"""Sums of sizes from here on count as not finite."""


@dataclass(frozen=True, eq=False)
class SolvedEntries:
    """The solution, and what its checks are made of.

    Attributes
    ----------
    pivots, qualities
        Pivots that are no constants, and how many digits of each are left.
    upper, rows
        Entries of U that elimination changed, and the entries of A in their rows.
    """

    x: ca.SX
    pivots: list[ca.SX]
    qualities: list[ca.SX]
    upper: list[ca.SX]
    rows: list[ca.SX]


def straight_line_solve(plan: Plan, values: list[ca.SX], right: list[ca.SX]) -> SolvedEntries:
    """Return x with A x = b; values are the entries of A in CSR order."""
    row_place, col_place, _ = plan.places
    by_row: list[dict[int, ca.SX]] = [{} for _ in range(plan.n)]
    for e, (k, c) in enumerate(zip(row_place.tolist(), col_place.tolist(), strict=True)):
        by_row[k][c] = values[e]
    y: list[ca.SX] = [ca.SX(0)] * plan.n
    rows_u: list[dict[int, ca.SX]] = [{} for _ in range(plan.n)]
    found = SolvedEntries(ca.SX(0, 1), [], [], [], [])
    for first, last in zip(plan.begins[:-1].tolist(), plan.begins[1:].tolist(), strict=True):
        for k in range(first, last):
            y[k] = _forward_row(plan, k, first, by_row, rows_u, y, right[plan.rows[k]], found)
        for k in range(last - 1, first - 1, -1):
            value = y[k]
            for c, u in rows_u[k].items():
                if c > k:
                    value = value - u * y[c]
            y[k] = value / rows_u[k][k]
    x: list[ca.SX] = [ca.SX(0)] * plan.n
    for k, j in enumerate(plan.cols.tolist()):
        x[j] = y[k]
    return replace(found, x=ca.vertcat(*x))


def _forward_row(
    plan: Plan,
    k: int,
    first: int,
    by_row: list[dict[int, ca.SX]],
    rows_u: list[dict[int, ca.SX]],
    y: list[ca.SX],
    value: ca.SX,
    found: SolvedEntries,
) -> ca.SX:
    """Find row k of U, note its checks, and return its right side."""
    w = {c: v for c, v in by_row[k].items() if c >= first}
    for c, v in by_row[k].items():
        if c < first:
            value = value - v * y[c]
    own = list(w.values())
    terms = ca.fabs(w.get(k, ca.SX(0)))
    touched = set()
    for j in plan.lower[plan.lower_indptr[k] : plan.lower_indptr[k + 1]].tolist():
        factor = w.pop(j) / rows_u[j][j]
        for c, u in rows_u[j].items():
            if c > j:
                change = factor * u
                w[c] = w[c] - change if c in w else -change
                touched.add(c)
                if c == k:
                    terms = terms + ca.fabs(change)
        value = value - factor * y[j]
    rows_u[k] = w
    if not w[k].is_constant():
        expected = PROBE_SHARE * float(plan.probe[k])
        found.pivots.append(w[k])
        found.qualities.append(
            ca.fabs(w[k]) / ca.fmax(terms, expected) if k in touched else ca.fabs(w[k]) * min(1 / expected, HUGE)
        )
    if touched:
        found.upper.extend(w[c] for c in sorted(touched) if c >= k)
        found.rows.extend(own)
    return value


def check_expressions(plan: Plan, values: list[ca.SX], right: list[ca.SX], solved: SolvedEntries) -> ca.SX:
    """Return backward error, least pivot quality, growth, and whether all is sound (1 or 0), (4,).

    An unknown in a block of its own is found by substitution, which is exact for data changed by at most m + 1
    roundings, m the entries of the row (N. J. Higham, "Accuracy and Stability of Numerical Algorithms", 2002, theorem
    8.5): this bound stands for their residuals. Where any number is not finite, the sum of sizes is not,
    and the error is infinite.
    """
    x = ca.vertsplit(solved.x)
    alone = np.diff(plan.begins) == 1
    substituted = plan.rows[plan.begins[:-1][alone]]
    roundings = 1 + np.diff(plan.pattern.indptr)[substituted].max(initial=0)
    ratios = [ca.SX(float(roundings) * np.finfo(float).eps / 2)]
    ratios += [_ratio(plan, i, values, right[i], x) for i in np.setdiff1d(plan.rows, substituted).tolist()]
    error, quality = _largest(ratios), _least([ca.SX(1), *solved.qualities])
    growth = ca.SX(1)
    if solved.upper:
        largest, entry = (_largest([ca.fabs(v) for v in group]) for group in (solved.upper, solved.rows))
        growth = ca.fmax(1, largest / entry)
    size = _tree([ca.fabs(v) for v in (*x, *solved.pivots)], operator.add, 0.0)
    error = error / (size < HUGE)
    verdict = (error <= ACCEPTED_ERROR) * (quality >= SUSPECT_PIVOT) * (growth <= SUSPECT_GROWTH)
    return ca.vertcat(error, quality, growth, verdict)


def _ratio(plan: Plan, i: int, values: list[ca.SX], right: ca.SX, x: list[ca.SX]) -> ca.SX:
    """Return |b - A x| / (|A| |x| + |b|) of one equation."""
    residual, size = right, ca.fabs(right)
    for e in range(plan.pattern.indptr[i], plan.pattern.indptr[i + 1]):
        term = values[e] * x[plan.pattern.indices[e]]
        residual = residual - term
        size = size + ca.fabs(term)
    return ca.fabs(residual) / ca.fmax(size, TINY)


def _largest(values: list[ca.SX]) -> ca.SX:
    """Return the maximum as a balanced tree (short dependency chains), 0 of none."""
    return _tree(values, ca.fmax, 0.0)


def _least(values: list[ca.SX]) -> ca.SX:
    return _tree(values, ca.fmin, 1.0)


def _tree(values: list[ca.SX], pair: object, empty: float) -> ca.SX:
    values = list(values) or [ca.SX(empty)]
    while len(values) > 1:
        values = [pair(a, b) for a, b in zip(values[::2], values[1::2], strict=False)] + (  # type: ignore[operator]
            [values[-1]] if len(values) % 2 else []
        )
    return values[0]


# ----------------------------------------------------------------------------------------------------------------------
# A function compiled twice: wide for batches, one sample wide for single calls; each when first needed.
#
# A wide kernel spends a whole vector on one sample; on a tableau of 738 equations a single call takes 8.6 us with eight
# lanes and 5.1 us with one. The results are the same, bit for bit.


class TwoWidths:
    """Calls the kernel that fits: `f(*arrays)`, all of one sample (size,) or at least one batch (N, size)."""

    def __init__(self, function: Any) -> None:
        self.function = function

    @cached_property
    def wide(self) -> Kernel:
        """The kernel for batches."""
        return Kernel(self.function)

    @cached_property
    def narrow(self) -> Kernel:
        """The kernel for one sample."""
        return Kernel(self.function, width=1)

    def __call__(self, *arrays: Any) -> Any:
        """Return what the kernel returns."""
        single = all(np.ndim(array) == 1 for array in arrays)
        return (self.narrow if single else self.wide)(*arrays)
