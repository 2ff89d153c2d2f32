"""The straight-line executor of a plan: factors and solution as expressions, real or complex."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from dalembert.kernel import Kernel
from dalembert.kkt.limits import ACCEPTED_ERROR, PROBE_SHARE, SUSPECT_GROWTH, SUSPECT_PIVOT, UNIT_ROUNDOFF
from dalembert.tableau.elimination.plan import Plan

# ----------------------------------------------------------------------------------------------------------------------
# Entries of a matrix: SX, or pairs of them where it is complex, as an implicit Runge-Kutta method needs it.


@dataclass(frozen=True, eq=False)
class Complex:
    """re + i im, with the operations of an elimination."""

    re: ca.SX
    im: ca.SX

    def __add__(self, other: Complex) -> Complex:
        return Complex(self.re + other.re, self.im + other.im)

    def __sub__(self, other: Complex) -> Complex:
        return Complex(self.re - other.re, self.im - other.im)

    def __neg__(self) -> Complex:
        return Complex(-self.re, -self.im)

    def __mul__(self, other: Complex) -> Complex:
        return Complex(self.re * other.re - self.im * other.im, self.re * other.im + self.im * other.re)

    def __rtruediv__(self, one: float) -> Complex:
        square = self.re * self.re + self.im * self.im
        return Complex(one * self.re / square, -one * self.im / square)

    def is_constant(self) -> bool:
        """Whether both parts are numbers."""
        return self.re.is_constant() and self.im.is_constant()


def magnitude(x: ca.SX | Complex) -> ca.SX:
    """Return the size of an entry."""
    return ca.fabs(x.re) + ca.fabs(x.im) if isinstance(x, Complex) else ca.fabs(x)


def zero(like: ca.SX | Complex) -> ca.SX | Complex:
    """Return zero of the same kind."""
    return Complex(ca.SX(0), ca.SX(0)) if isinstance(like, Complex) else ca.SX(0)


def scalars(x: ca.SX | Complex) -> list[ca.SX]:
    """Return the expressions of an entry: one, or two."""
    return [x.re, x.im] if isinstance(x, Complex) else [x]


def symbol(name: str, like: ca.SX | Complex) -> ca.SX | Complex:
    """Return a symbol of the same kind."""
    if isinstance(like, Complex):
        return Complex(ca.SX.sym(f"{name}r"), ca.SX.sym(f"{name}i"))
    return ca.SX.sym(name)


# ----------------------------------------------------------------------------------------------------------------------
# The plan as straight-line code: L and U as expressions, and their use (seed 003, sec. 5.1).
#
# What the seed does by symbolic manipulation: with the pivots fixed, each entry of L and U is a short formula,
# constants fold (a pivot of one divides nothing) and structural zeros cost nothing. The kernel compiles the list; W
# samples run side by side. Same operations as `looped.py`. Factors that are used once divide by their pivots; a stepper
# that keeps them for several steps stores reciprocals, and folds constants (the ones of q' - v = 0) into the code.


TINY = float(np.finfo(float).tiny)
"""Stands for zero in a quotient: 0 / TINY is 0, as a row without any term deserves."""

HUGE = 1e300
"""Sums of sizes from here on count as not finite."""

Rows = list[dict[int, Any]]


@dataclass(frozen=True, eq=False)
class Factors:
    """Entries by pivot position.

    Attributes
    ----------
    lower, upper, moved
        Rows of L, of U right of the diagonal, and of what earlier blocks move to the right side.
    pivots
        Diagonal of U.
    inverse
        Reciprocal pivots, by which factors are used that are kept; none where they divide.
    terms
        Sum of the sizes of what each pivot is made of.
    changed
        Per row, the places of U that elimination has changed.
    """

    lower: Rows
    upper: Rows
    moved: Rows
    pivots: list[Any]
    inverse: list[Any]
    terms: list[ca.SX]
    changed: list[set[int]]

    def over_pivot(self, x: Any, k: int) -> Any:
        """Return x over pivot k."""
        return x * self.inverse[k] if self.inverse else x / self.pivots[k]

    @property
    def quality(self) -> ca.SX:
        """The least pivot quality: size over the sizes of its terms."""
        pairs = enumerate(zip(self.pivots, self.terms, strict=True))
        return _least([magnitude(p) / t for k, (p, t) in pairs if k in self.changed[k] and not p.is_constant()])

    def stored(self) -> tuple[ca.SX, Factors]:
        """Return the column of all entries that are no constants, and the same factors with symbols in their place."""
        values: list[ca.SX] = []

        def name(entry: Any) -> Any:
            if entry.is_constant():
                return entry
            values.extend(scalars(entry))
            return symbol(f"f{len(values)}", entry)

        lower, upper, moved = (
            [{c: name(e) for c, e in row.items()} for row in part] for part in (self.lower, self.upper, self.moved)
        )
        symbols = Factors(lower, upper, moved, [], [name(e) for e in self.inverse], [], [])
        return ca.vertcat(*values, ca.SX(0, 1)), symbols

    def symbols(self) -> ca.SX:
        """Return the symbols of stored factors, in the order of `stored`."""
        parts = (self.lower, self.upper, self.moved)
        entries = [e for part in parts for row in part for e in row.values()] + self.inverse
        free = [s for e in entries if not e.is_constant() for s in scalars(e)]
        return ca.vertcat(*free, ca.SX(0, 1))


def factor(plan: Plan, values: list[Any], reciprocal: bool = True) -> Factors:
    """Return the factors of A from its entries in CSR order; `reciprocal` where they are to be kept."""
    factors = Factors([], [], [], [], [], [], [])
    for row, first in _pivot_rows(plan, values):
        _factor_row(plan, first, row, factors, reciprocal)
    return factors


def _pivot_rows(plan: Plan, values: list[Any]) -> list[tuple[dict[int, Any], int]]:
    """Return the rows of A by pivot position, entries by place, and where the block of each begins."""
    row_place, col_place, _ = plan.places
    rows: Rows = [{} for _ in range(plan.n)]
    for e, (k, c) in enumerate(zip(row_place.tolist(), col_place.tolist(), strict=True)):
        rows[k][c] = values[e]
    return list(zip(rows, np.repeat(plan.begins[:-1], np.diff(plan.begins)).tolist(), strict=True))


def _factor_row(plan: Plan, first: int, row: dict[int, Any], factors: Factors, reciprocal: bool) -> None:
    """Find the next row, up-looking: w = row of A, less l u_j for every earlier pivot j of the block."""
    k = len(factors.pivots)
    w = {c: v for c, v in row.items() if c >= first}
    factors.moved.append({c: v for c, v in row.items() if c < first})
    lower: dict[int, Any] = {}
    changed: set[int] = set()
    terms = magnitude(w[k]) if k in w else ca.SX(0)
    for j in plan.lower[plan.lower_indptr[k] : plan.lower_indptr[k + 1]].tolist():
        lower[j] = factors.over_pivot(w.pop(j), j)
        for c, u in factors.upper[j].items():
            change = lower[j] * u
            w[c] = w[c] - change if c in w else -change
            changed.add(c)
            if c == k:
                terms = terms + magnitude(change)
    pivot = w.pop(k)
    factors.lower.append(lower)
    factors.upper.append(w)
    factors.pivots.append(pivot)
    factors.terms.append(terms)
    factors.changed.append(changed)
    if reciprocal:
        factors.inverse.append(1 / pivot)


def solve(plan: Plan, factors: Factors, right: list[Any]) -> list[Any]:
    """Return x with A x = b."""
    y: list[Any] = [zero(right[0])] * plan.n
    for first, last in zip(plan.begins[:-1].tolist(), plan.begins[1:].tolist(), strict=True):
        for k in range(first, last):
            value = right[plan.rows[k]]
            for part in (factors.moved[k], factors.lower[k]):
                for c, entry in part.items():
                    value = value - entry * y[c]
            y[k] = value
        for k in range(last - 1, first - 1, -1):
            value = y[k]
            for c, u in factors.upper[k].items():
                value = value - u * y[c]
            y[k] = factors.over_pivot(value, k)
    x: list[Any] = [zero(right[0])] * plan.n
    for k, j in enumerate(plan.cols.tolist()):
        x[j] = y[k]
    return x


# ----------------------------------------------------------------------------------------------------------------------
# Factors and solution in one sweep, with what their checks are made of.


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
    factors = factor(plan, values, reciprocal=False)
    solved = SolvedEntries(ca.vertcat(*solve(plan, factors, right)), [], [], [], [])
    for k, (row, first) in enumerate(_pivot_rows(plan, values)):
        pivot, changed = factors.pivots[k], factors.changed[k]
        if not pivot.is_constant():
            size, expected = ca.fabs(pivot), PROBE_SHARE * float(plan.probe[k])
            lost = size / ca.fmax(factors.terms[k], expected) if k in changed else size * min(1 / expected, HUGE)
            solved.pivots.append(pivot)
            solved.qualities.append(lost)
        if changed:
            entries = factors.upper[k] | {k: pivot}
            solved.upper.extend(entries[c] for c in sorted(changed) if c >= k)
            solved.rows.extend(entry for c, entry in row.items() if c >= first)
    return solved


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
    ratios = [ca.SX(float(roundings) * UNIT_ROUNDOFF)]
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
