"""A plan's factors as straight-line code, apart from their use: factor once, solve many times.

`tableau/straight_line.py` factors and solves in one sweep; a stepper that keeps its Jacobian for several steps needs
the two apart. L and U of each block, reciprocal pivots, and the entries that earlier blocks move to the right side are
kept; constants (the ones of q' - v = 0) are folded into the code and not stored. Entries are SX, or pairs of them where
the matrix is complex.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import casadi as ca

from dalembert.tableau.plan import Plan
from dalembert.tableau.time.complex_entries import magnitude, scalars, symbol, zero

Rows = list[dict[int, Any]]


@dataclass(frozen=True, eq=False)
class Factors:
    """Entries by pivot position: rows of L, of U right of the diagonal, what moves; reciprocal pivots."""

    lower: Rows
    upper: Rows
    moved: Rows
    inverse: list[Any]
    quality: ca.SX

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
        kept = Factors(lower, upper, moved, [name(e) for e in self.inverse], self.quality)
        return ca.vertcat(*values, ca.SX(0, 1)), kept

    def symbols(self) -> ca.SX:
        """Return the symbols of stored factors, in the order of `stored`."""
        parts = (self.lower, self.upper, self.moved)
        entries = [e for part in parts for row in part for e in row.values()] + self.inverse
        found = [s for e in entries if not e.is_constant() for s in scalars(e)]
        return ca.vertcat(*found, ca.SX(0, 1))


def factor(plan: Plan, values: list[Any]) -> Factors:
    """Return the factors of A from its entries in CSR order, and the least pivot quality."""
    row_place, col_place, _ = plan.places
    by_row: Rows = [{} for _ in range(plan.n)]
    for e, (k, c) in enumerate(zip(row_place.tolist(), col_place.tolist(), strict=True)):
        by_row[k][c] = values[e]
    found = Factors([], [], [], [], ca.SX(1))
    quality: list[ca.SX] = []
    for first, last in zip(plan.begins[:-1].tolist(), plan.begins[1:].tolist(), strict=True):
        for k in range(first, last):
            _factor_row(plan, k, first, by_row[k], found, quality)
    return Factors(found.lower, found.upper, found.moved, found.inverse, _least(quality))


def _factor_row(plan: Plan, k: int, first: int, row: dict[int, Any], found: Factors, quality: list[ca.SX]) -> None:
    """Find row k, up-looking: w = row of A, less l u_j for every earlier pivot j of the block."""
    w = {c: v for c, v in row.items() if c >= first}
    found.moved.append({c: v for c, v in row.items() if c < first})
    lower: dict[int, Any] = {}
    terms = magnitude(w[k]) if k in w else ca.SX(0)
    touched = False
    for j in plan.lower[plan.lower_indptr[k] : plan.lower_indptr[k + 1]].tolist():
        lower[j] = w.pop(j) * found.inverse[j]
        for c, u in found.upper[j].items():
            change = lower[j] * u
            w[c] = w[c] - change if c in w else -change
            if c == k:
                terms = terms + magnitude(change)
                touched = True
    pivot = w.pop(k)
    if touched and not pivot.is_constant():
        quality.append(magnitude(pivot) / terms)
    found.lower.append(lower)
    found.upper.append(w)
    found.inverse.append(1 / pivot)


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
            y[k] = value * factors.inverse[k]
    x: list[Any] = [zero(right[0])] * plan.n
    for k, j in enumerate(plan.cols.tolist()):
        x[j] = y[k]
    return x


def _least(values: list[ca.SX]) -> ca.SX:
    """Return the minimum as a balanced tree, 1 of none."""
    values = list(values) or [ca.SX(1)]
    while len(values) > 1:
        odd = [values[-1]] if len(values) % 2 else []
        values = [ca.fmin(a, b) for a, b in zip(values[::2], values[1::2], strict=False)] + odd
    return values[0]
