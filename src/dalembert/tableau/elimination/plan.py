"""The elimination plan: pivot orders, patterns of L and U, an index program."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from dalembert.errors import ModelError, ShapeError
from dalembert.kkt.limits import GENERIC_THRESHOLD, LEAST_THRESHOLD
from dalembert.tableau.elimination.pivots import markowitz
from dalembert.tableau.inputs import as_flag, as_numbers, as_pairs, as_scalar
from dalembert.tableau.structure.matching import Blocks, depth_first, match
from dalembert.tableau.structure.matching import blocks as find_blocks
from dalembert.tableau.structure.pattern import Pattern
from dalembert.tableau.structure.solvability import require_solvable
from dalembert.types import Array

if TYPE_CHECKING:
    from jaxtyping import Float, Int

# ----------------------------------------------------------------------------------------------------------------------
# Pivot orders of all blocks, put together: the patterns of L and U.


SWEEPS = 3
"""Rounds of row and column scaling before pivots are compared (Ruiz 2001); rounding of scales does not matter here."""

SMALL = 64
"""Blocks up to this size are ordered all at once: a call for each would take longer than the work."""

NO_LIMIT = np.iinfo(np.int64).max

FIRST_ROOM = 4
"""The store for fill holds at first this many times the entries of a block; doubled as long as it is too small."""


def order_blocks(
    pattern: Pattern, blocks: Blocks, numbers: Any, marks: Int[Array, " entries"], threshold: float, paired: bool
) -> tuple[Array, Array, Array, Array, Array, Array, Array]:
    """Return rows, cols, begins, and L and U as (indptr, positions) of the whole system."""
    rows, cols = blocks.rows.copy(), blocks.cols.copy()
    of_row, of_col = np.empty(len(rows), np.int64), np.empty(len(cols), np.int64)
    of_row[rows] = of_col[cols] = np.repeat(np.arange(len(blocks.sizes)), blocks.sizes)
    lower, upper = [], []
    for places in _together(blocks):
        own_rows, own_cols, entries, block = _block(pattern, rows[places], cols[places], of_row, of_col)
        values = _generic(len(entries)) if numbers is None else _equilibrated(block, numbers[entries])
        pairs = _pairs(own_rows, own_cols) if paired else None
        accepted = GENERIC_THRESHOLD if numbers is None else threshold
        pivots, low, up = _order(block, values, marks[entries], accepted, pairs)
        new_rows, new_cols = own_rows[pivots[:, 0]], own_cols[pivots[:, 1]]
        target = np.empty(len(places), np.int64)
        target[np.argsort(of_row[new_rows], kind="stable")] = places
        rows[target], cols[target] = new_rows, new_cols
        lower.append(target[low])
        upper.append(target[up])
    n = len(rows)
    return rows, cols, blocks.begins, *_compressed(lower, n), *_compressed(upper, n)


def _together(blocks: Blocks) -> list[Int[Array, " some"]]:
    """Return the places of pivots that are ordered in one go: of each large block, and of all small ones."""
    spans = [np.arange(blocks.begins[b], blocks.begins[b + 1]) for b in np.flatnonzero(blocks.sizes > SMALL)]
    size = np.repeat(blocks.sizes, blocks.sizes)
    small = np.flatnonzero((size > 1) & (size <= SMALL))
    return [*spans, small] if small.size else spans


def _block(
    pattern: Pattern, rows: Array, cols: Array, of_row: Array, of_col: Array
) -> tuple[Array, Array, Array, sp.csr_array]:
    """Return sorted rows and columns of blocks, the places of their entries in A, and their own CSR pattern."""
    rows, cols = np.sort(rows), np.sort(cols)
    counts = np.diff(pattern.indptr)[rows]
    owner = np.repeat(np.arange(len(rows)), counts)
    entries = np.repeat(pattern.indptr[rows] - np.cumsum(counts) + counts, counts) + np.arange(len(owner))
    inside = of_col[pattern.indices[entries]] == of_row[rows][owner]
    owner, entries = owner[inside], entries[inside]
    local = np.searchsorted(cols, pattern.indices[entries])
    indptr = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=len(rows)))])
    shape = (len(rows), len(cols))
    return rows, cols, entries, sp.csr_array((np.ones(len(owner)), local, indptr), shape=shape)


def _generic(entries: int) -> Float[Array, "entries 1"]:
    """Return values that stand for any others: of similar size, and nothing cancels."""
    return np.random.default_rng(0).uniform(1.0, 2.0, (entries, 1))


def _pairs(rows: Array, cols: Array) -> Int[Array, " n"]:
    """Return the local column with the same number as each row, -1 if it belongs to another block."""
    at = np.minimum(np.searchsorted(cols, rows), len(cols) - 1)
    return np.where(cols[at] == rows, at, -1)


def _equilibrated(block: Any, values: Float[Array, "entries K"]) -> Float[Array, "entries K"]:
    """Return the values with rows and columns scaled to largest entries of about one, point by point."""
    row = np.repeat(np.arange(block.shape[0]), np.diff(block.indptr))
    scaled = values.copy()
    for k in range(values.shape[1]):
        for _ in range(SWEEPS):
            for at in (row, block.indices):
                largest = np.zeros(block.shape[0])
                np.maximum.at(largest, at, np.abs(scaled[:, k]))
                scaled[:, k] /= np.where(largest > 0.0, largest, 1.0)[at]
    return scaled


def _order(
    block: Any, values: Array, marks: Array, threshold: float, pairs: Array | None
) -> tuple[Array, Array, Array]:
    """Return pivots (row, column), and entries (row, column) of L and U as positions; the cheaper of two orders.

    A symmetric pattern keeps its symmetry (partners on the diagonal), and pairs that are given are kept: free pivots
    would cost more, always.
    """
    turned: Any = sp.csr_array(block.T)
    turned.sort_indices()
    symmetric = np.array_equal(block.indptr, turned.indptr) and np.array_equal(block.indices, turned.indices)
    if symmetric and pairs is None:
        pairs = np.arange(block.shape[0])
    ways = ((pairs, True),) if pairs is not None else _free_ways(block)
    best = None
    for partner, first in ways:
        limit = NO_LIMIT if best is None else _cost(best)
        best = _one_order(block, turned, values, marks, partner, threshold, first, limit) or best
    assert best is not None
    return best


def _free_ways(block: Any) -> tuple[tuple[Array, bool], tuple[Array, bool]]:
    """Return the two ways without pairs: any pivot, or matched ones first."""
    matched = match(Pattern.of(block)).col_of_row
    return (matched, False), (matched, True)


def _cost(order: tuple[Array, Array, Array]) -> int:
    """Return multiplications of a factorization."""
    pivots, low, up = order
    width = np.bincount(up[:, 0], minlength=len(pivots))
    return int(width[low[:, 1]].sum()) + len(low)


def _one_order(
    block: Any, turned: Any, values: Array, marks: Array, partner: Array, threshold: float, first: bool, limit: int
) -> tuple[Array, Array, Array] | None:
    """Run the elimination once, and put its pivots depth first; None where it costs more than `limit`."""
    n = block.shape[0]
    indptr, indices, col_indptr, col_indices = (
        x.astype(np.int64) for x in (block.indptr, block.indices, turned.indptr, turned.indices)
    )
    capacity = FIRST_ROOM * block.nnz + 16 * n
    while True:
        pivots, low, start, length, entries = markowitz(
            indptr, indices, values, marks, partner, col_indptr, col_indices, threshold, first, capacity, limit
        )
        if len(pivots):
            break
        capacity *= 2
    if pivots[0, 0] < 0:
        return None
    row_place, col_place = np.empty(n, np.int64), np.empty(n, np.int64)
    row_place[pivots[:, 0]] = col_place[pivots[:, 1]] = np.arange(n)
    low = np.column_stack([row_place[low[:, 0]], low[:, 1]])
    of_row = np.repeat(np.arange(n), length)
    within = np.arange(len(of_row)) - np.repeat(np.cumsum(length) - length, length)
    up = np.column_stack([row_place[of_row], col_place[entries[start[of_row] + within]]])
    up = up[up[:, 0] != up[:, 1]]
    order = _depth_first(n, low, up)
    place = np.empty(n, np.int64)
    place[order] = np.arange(n)
    return pivots[order], place[low], place[up]


def _depth_first(n: int, low: Int[Array, "lower 2"], up: Int[Array, "upper 2"]) -> Int[Array, " n"]:
    """Return an order with the same L and U in which pivots stand near those that use them: memory is read locally."""
    later = np.concatenate([low[:, 0], up[:, 1]])
    earlier = np.concatenate([low[:, 1], up[:, 0]])
    order = np.argsort(later, kind="stable")
    indptr = np.concatenate([[0], np.cumsum(np.bincount(later, minlength=n))]).astype(np.int64)
    return depth_first(indptr, earlier[order].astype(np.int64))


def _compressed(parts: list[Array], n: int) -> tuple[Array, Array]:
    """Return entries (row, column) as CSR: indptr and ascending columns."""
    entries = np.concatenate(parts) if parts else np.empty((0, 2), np.int64)
    order = np.lexsort((entries[:, 1], entries[:, 0]))
    indptr = np.zeros(n + 1, np.int64)
    np.cumsum(np.bincount(entries[:, 0], minlength=n), out=indptr[1:])
    return indptr, np.ascontiguousarray(entries[order, 1])


# ----------------------------------------------------------------------------------------------------------------------
# A plan in words: order, fill, operations.


SHOWN = 40
"""Pivots listed; of a longer plan the first ones."""


def explain(plan: Plan) -> str:
    """Return a table of the pivots in solving order, with totals."""
    p, sizes = plan.pattern, np.diff(plan.begins)
    singles = int(np.count_nonzero(sizes == 1))
    held = len(plan.lower) + len(plan.upper) + plan.n
    lines = [
        f"{plan.n} equations, {p.entries} entries ({100 * p.entries / max(plan.n, 1) ** 2:.2g} %)",
        f"{len(sizes)} blocks: {singles} of one equation, the largest of {int(sizes.max(initial=0))}",
        f"L and U hold {held} entries, {plan.fill} of them fill; {plan.operations} operations a solve "
        f"(dense: {2 * plan.n**3 // 3 + 2 * plan.n**2})",
        "solving order (equation -> unknown it gives):",
    ]
    block = np.repeat(np.arange(len(sizes)), sizes)
    for k in range(min(plan.n, SHOWN)):
        name = f"{p.equations[plan.rows[k]]} -> {p.unknowns[plan.cols[k]]}"
        inside = f"   (block {block[k]}, {sizes[block[k]]} equations)" if sizes[block[k]] > 1 else ""
        lines.append(f"  {k:4d}  {name}{inside}")
    if plan.n > SHOWN:
        lines.append(f"  ... {plan.n - SHOWN} more")
    return "\n".join(lines)


# ----------------------------------------------------------------------------------------------------------------------
# The elimination plan: in which order a sparse system is solved, as an index program.
#
# Symbols: A x = b with equations i and unknowns j; pivot k stands at (rows[k], cols[k]); blocks are solved in order.
# Within a block A = L U with L unit lower triangular; entries of earlier blocks only move to the right side
# (T. A. Davis, E. P. Natarajan, "Algorithm 907: KLU", ACM TOMS 37 (2010) 36, does the same).


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
        return explain(self)

    def picture(self, kind: str = "matrix") -> str:
        """Return an SVG: "matrix" before and after ordering (seed 003, Figs. 3, 7, 8), "graph" (Figs. 5, 6)."""
        from dalembert.tableau.structure.pictures import picture

        return picture(self, kind)


def make_plan(
    system: Any,
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
    system
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
    pattern = Pattern.of(system, equations, unknowns)
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
    sizes = np.zeros(len(rows))
    partner = np.empty(len(rows), np.int64)
    partner[rows] = cols
    place = np.empty(len(rows), np.int64)
    place[rows] = np.arange(len(rows))
    at = pattern.indices == partner[pattern.rows]
    sizes[place[pattern.rows[at]]] = size[at]
    return np.where(sizes > 0.0, sizes, 1.0)
