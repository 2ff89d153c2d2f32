"""The elimination plan: in which order a sparse system is solved, as an index program.

Symbols: A x = b with equations i and unknowns j; pivot k stands at (rows[k], cols[k]); blocks are solved in order.
Within a block A = L U with L unit lower triangular; entries of earlier blocks only move to the right side
(T. A. Davis, E. P. Natarajan, "Algorithm 907: KLU", ACM TOMS 37 (2010) 36, does the same).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from dalembert.errors import ModelError, ShapeError
from dalembert.tableau.decomposition import blocks as find_blocks
from dalembert.tableau.inputs import as_flag, as_numbers, as_pairs, as_scalar
from dalembert.tableau.matching import match
from dalembert.tableau.ordering import order_blocks
from dalembert.tableau.pattern import Pattern
from dalembert.tableau.solvability import require_solvable

Array = np.ndarray

LEAST_THRESHOLD = 1e-12
"""Below it a pivot may be no more than rounding of its row."""


@dataclass(frozen=True, eq=False)
class Plan:
    """A pivot order with the patterns of L and U.

    Attributes
    ----------
    pattern
        Of A, with names.
    rows, cols
        Equation and unknown of each pivot, in solving order.
    begins
        Block b holds pivots begins[b] ... begins[b + 1] - 1.
    lower_indptr, lower
        Row k of L below the diagonal: positions of earlier pivots of its block, ascending.
    upper_indptr, upper
        Row k of U right of the diagonal: positions of later pivots of its block, ascending.
    probe
        Size of each pivot's entry of A at the probed points, the largest; 1 where nothing was probed.
    paired
        Whether equation k belongs to unknown k: a plan made anew keeps to it.
    """

    pattern: Pattern
    rows: Int[Array, " n"]
    cols: Int[Array, " n"]
    begins: Int[Array, " blocks_and_one"]
    lower_indptr: Int[Array, " n_and_one"]
    lower: Int[Array, " lower"]
    upper_indptr: Int[Array, " n_and_one"]
    upper: Int[Array, " upper"]
    probe: Float[Array, " n"]
    paired: bool = False

    @property
    def n(self) -> int:
        """Number of unknowns."""
        return len(self.rows)

    @cached_property
    def places(self) -> tuple[Int[Array, " entries"], Int[Array, " entries"], Int[Array, " entries"]]:
        """Pivot position of the row and of the column of every entry of A, and the block of its row."""
        row_place, col_place = np.empty(self.n, np.int64), np.empty(self.n, np.int64)
        row_place[self.rows] = np.arange(self.n)
        col_place[self.cols] = np.arange(self.n)
        block = np.repeat(np.arange(len(self.begins) - 1), np.diff(self.begins))
        at = row_place[self.pattern.rows]
        return at, col_place[self.pattern.indices], block[at]

    @cached_property
    def outside(self) -> Any:
        """Which entries of A lie in earlier blocks: they move to the right side."""
        _, col, block = self.places
        return col < self.begins[block]

    @property
    def fill(self) -> int:
        """Entries of L and U that A does not have."""
        return len(self.lower) + len(self.upper) + self.n - int(np.count_nonzero(~self.outside))

    @property
    def operations(self) -> int:
        """Multiplications, divisions and additions of one factorization and solve."""
        up = np.diff(self.upper_indptr)
        factor = int(np.sum(1 + 2 * up[self.lower])) if len(self.lower) else 0
        moved = int(np.count_nonzero(self.outside))
        return factor + 2 * (len(self.lower) + len(self.upper) + moved) + self.n

    def explain(self) -> str:
        """Return order, fill and operations in words."""
        from dalembert.tableau.explain import explain

        return explain(self)

    def picture(self, kind: str = "matrix") -> str:
        """Return an SVG: "matrix" before and after ordering (seed 003, Figs. 3, 7, 8), "graph" (Figs. 5, 6)."""
        from dalembert.tableau.picture import picture

        return picture(self, kind)


def make_plan(
    given: Any,
    values: Any = None,
    preferred: Iterable[tuple[int, int]] = (),
    constant: Any = None,
    equations: Any = None,
    unknowns: Any = None,
    threshold: float = 0.1,
    paired: bool = False,
) -> Plan:
    """Return a plan for a square sparse system.

    Parameters
    ----------
    given
        A `Pattern`, a SciPy sparse matrix, a `casadi.Sparsity`, or a dense array.
    values
        Entries of A at one or several probed points, (entries,) or (K, entries), in CSR order. Pivots are sound at all
        of them. None: any entry is taken for a pivot; for matrices without numerical traps only.
    preferred
        (equation, unknown) pairs, declared causality: first choice for matching and, at equal fill, for pivots.
    constant
        Mask (entries,) of entries that never change: safe pivots, preferred at equal fill.
    equations, unknowns
        Names.
    threshold
        A pivot is at least this part of the largest entry of its row.
    paired
        Whether equation k belongs to unknown k, also where it does not contain it: pivots are looked for in these pairs
        first, as on the diagonal of a symmetric matrix. Forces and velocities, constraints and multipliers are such.

    Raises `SolvabilityError`, with names, if no perfect matching exists.
    """
    pattern = Pattern.of(given, equations, unknowns)
    pattern.require_square()
    numbers = _probes(values, pattern)
    threshold, paired = as_scalar(threshold, "threshold", LEAST_THRESHOLD, 1.0), as_flag(paired, "paired")
    preferred = as_pairs(preferred, *pattern.shape, "preferred")
    matching = match(pattern, preferred)
    require_solvable(matching)
    marks = np.zeros(pattern.entries) if constant is None else as_numbers(constant, "constant", finite=True)
    if marks.shape != (pattern.entries,):
        raise ShapeError(f"constant has shape {marks.shape} for {pattern.entries} entries")
    marks = (marks != 0).astype(np.int64)
    for i, j in preferred:
        place = pattern.indptr[i] + np.searchsorted(pattern.indices[pattern.indptr[i] : pattern.indptr[i + 1]], j)
        if place < pattern.indptr[i + 1] and pattern.indices[place] == j:
            marks[place] = 1
    ordered = order_blocks(pattern, find_blocks(matching), numbers, marks, threshold, paired)
    return Plan(pattern, *ordered, probe=_probe_sizes(pattern, numbers, ordered[0], ordered[1]), paired=paired)


def _probes(values: Any, pattern: Pattern) -> Float[Array, "entries K"] | None:
    """Return probed values, one column per point."""
    if values is None:
        return None
    numbers = np.atleast_2d(pattern.values_of(values, "values"))
    if numbers.ndim != 2 or numbers.shape[1] != pattern.entries:
        hint = "; give A[A != 0], row after row" if numbers.shape == pattern.shape else ""
        raise ShapeError(
            f"values have shape {numbers.shape}; expected (K, {pattern.entries}) or ({pattern.entries},){hint}"
        )
    if not np.isfinite(numbers).all():
        point, entry = np.argwhere(~np.isfinite(numbers))[0]
        row, unknown = pattern.equations[pattern.rows[entry]], pattern.unknowns[pattern.indices[entry]]
        raise ModelError(
            f"probed point {point} gives {numbers[point, entry]} for unknown {unknown!r} in equation {row!r}; "
            "probe where all entries are finite"
        )
    return np.ascontiguousarray(numbers.T)


def _probe_sizes(pattern: Pattern, numbers: Any, rows: Array, cols: Array) -> Float[Array, " n"]:
    """Return the largest probed size of the entry of A at each pivot, 1 where it is zero or not probed."""
    if numbers is None:
        return np.ones(len(rows))
    size = np.abs(numbers).max(axis=1)
    found = np.zeros(len(rows))
    partner = np.empty(len(rows), np.int64)
    partner[rows] = cols
    place = np.empty(len(rows), np.int64)
    place[rows] = np.arange(len(rows))
    at = pattern.indices == partner[pattern.rows]
    found[place[pattern.rows[at]]] = size[at]
    return np.where(found > 0.0, found, 1.0)
