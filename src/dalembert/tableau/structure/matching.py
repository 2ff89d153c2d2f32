"""Bipartite matching, Dulmage-Mendelsohn parts, strong components."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from dalembert.kernel.loops import compiled
from dalembert.tableau.structure.pattern import Pattern
from dalembert.types import Array

if TYPE_CHECKING:
    from jaxtyping import Bool, Int

# ----------------------------------------------------------------------------------------------------------------------
# Compiled loops over a bipartite graph: augmenting paths, alternating reach, strong components.
#
# Symbols: row i is an equation, column j an unknown; `indptr, indices` list the columns of each row (CSR);
# `col_of_row` and `row_of_col` are a matching, -1 where there is none.


@compiled
def augment(indptr, indices, col_of_row, row_of_col):
    """Enlarge a matching, in place, until no augmenting path is left.

    Depth first with look-ahead (I. S. Duff, "On algorithms for obtaining a maximum transversal", ACM TOMS 7 (1981)
    315-330). Rows that are matched stay matched, perhaps to another column. Worst case O(rows * entries), in practice
    close to linear.
    """
    rows = indptr.size - 1
    ahead, position = indptr[:-1].copy(), indptr[:-1].copy()
    visited = np.full(row_of_col.size, -1, np.int64)
    stack, chosen = np.empty(rows + 1, np.int64), np.empty(rows + 1, np.int64)
    for root in range(rows):
        if col_of_row[root] >= 0:
            continue
        # a path from an unmatched row, deeper through matched columns, back where none is left
        stack[0], depth, free = root, 0, -1
        position[root] = indptr[root]
        while depth >= 0:
            row = stack[depth]
            free = _free_column(indptr, indices, row_of_col, ahead, row)
            if free >= 0:
                break
            column = _next_column(indptr, indices, visited, position, row, root)
            if column < 0:
                depth -= 1
                continue
            chosen[depth] = column
            depth += 1
            stack[depth] = row_of_col[column]
            position[stack[depth]] = indptr[stack[depth]]
        # flip the path: every row on it takes the column by which it was left
        for level in range(depth, -1, -1):
            column = free if level == depth else chosen[level]
            col_of_row[stack[level]] = column
            row_of_col[column] = stack[level]


@compiled
def _free_column(indptr, indices, row_of_col, ahead, row):
    """Return a column of the row that is not matched, or -1; a matched column never becomes free again."""
    while ahead[row] < indptr[row + 1]:
        column = indices[ahead[row]]
        ahead[row] += 1
        if row_of_col[column] < 0:
            return column
    return -1


@compiled
def _next_column(indptr, indices, visited, position, row, root):
    """Return the next column of the row that this search has not seen, or -1."""
    while position[row] < indptr[row + 1]:
        column = indices[position[row]]
        position[row] += 1
        if visited[column] != root:
            visited[column] = root
            return column
    return -1


@compiled
def reach(indptr, indices, row_of_col, starts):
    """Return which rows and columns alternating paths reach: row -> any column -> the row matched to it."""
    rows, cols = np.zeros(indptr.size - 1, np.bool_), np.zeros(row_of_col.size, np.bool_)
    stack = np.empty(indptr.size, np.int64)
    depth = 0
    for start in starts:
        if not rows[start]:
            rows[start] = True
            stack[depth] = start
            depth += 1
    while depth > 0:
        depth -= 1
        row = stack[depth]
        for k in range(indptr[row], indptr[row + 1]):
            column = indices[k]
            if cols[column]:
                continue
            cols[column] = True
            other = row_of_col[column]
            if other >= 0 and not rows[other]:
                rows[other] = True
                stack[depth] = other
                depth += 1
    return rows, cols


@compiled
def strong_components(indptr, indices, row_of_col):
    """Return the rows of a perfectly matched square graph in solving order, and where each block begins.

    Row i needs row k if it contains k's matched unknown. Tarjan's algorithm closes a component after everything it
    needs (R. Tarjan, "Depth-first search and linear graph algorithms", SIAM J. Comput. 1 (1972) 146-160), so the order
    in which components close is the order in which blocks are solved. O(entries).
    """
    n = indptr.size - 1
    index, low = np.full(n, -1, np.int64), np.zeros(n, np.int64)
    position, on_stack = indptr[:-1].copy(), np.zeros(n, np.bool_)
    calls, stack = np.empty(n + 1, np.int64), np.empty(n + 1, np.int64)
    order, begins = np.empty(n, np.int64), np.empty(n + 1, np.int64)
    counter = height = done = blocks = 0
    for root in range(n):
        if index[root] >= 0:
            continue
        # depth first, with a stack of calls in place of recursion
        calls[0], depth = root, 0
        while depth >= 0:
            row = calls[depth]
            if index[row] < 0:
                index[row] = low[row] = counter
                counter += 1
                stack[height], on_stack[row] = row, True
                height += 1
            needed = _unvisited(indptr, indices, row_of_col, index, low, on_stack, position, row)
            if needed >= 0:
                depth += 1
                calls[depth] = needed
                continue
            # the root of a component: all above it on the stack belong to it
            if low[row] == index[row]:
                begins[blocks] = done
                blocks += 1
                member = -1
                while member != row:
                    height -= 1
                    member = stack[height]
                    on_stack[member] = False
                    order[done] = member
                    done += 1
            depth -= 1
            if depth >= 0:
                low[calls[depth]] = min(low[calls[depth]], low[row])
    begins[blocks] = n
    return order, begins[: blocks + 1]


@compiled
def _unvisited(indptr, indices, row_of_col, index, low, on_stack, position, row):
    """Return the next row that this one needs and that was not visited, or -1; lower the link on the way."""
    while position[row] < indptr[row + 1]:
        other = row_of_col[indices[position[row]]]
        position[row] += 1
        if index[other] < 0:
            return other
        if on_stack[other]:
            low[row] = min(low[row], index[other])
    return -1


@compiled
def depth_first(indptr, indices):
    """Return the nodes of an acyclic graph, each after those that its list names, depth first from the last."""
    n = indptr.size - 1
    position, entered = indptr[:-1].copy(), np.zeros(n, np.bool_)
    stack, order = np.empty(n + 1, np.int64), np.empty(n, np.int64)
    done = 0
    for root in range(n - 1, -1, -1):
        if entered[root]:
            continue
        stack[0], depth, entered[root] = root, 0, True
        while depth >= 0:
            node = stack[depth]
            if position[node] < indptr[node + 1]:
                needed = indices[position[node]]
                position[node] += 1
                if not entered[needed]:
                    entered[needed] = True
                    depth += 1
                    stack[depth] = needed
            else:
                order[done] = node
                done += 1
                depth -= 1
    return order


# ----------------------------------------------------------------------------------------------------------------------
# Matchings between equations and unknowns, and the cover that proves one maximal (seed 003, sec. 4.3).
#
# Konig and Egervary: the largest matching has as many arcs as the smallest cover has vertices. A cover is a set of
# equations and unknowns that touches every entry; whoever doubts that a matching is maximal counts the cover.


@dataclass(frozen=True, eq=False)
class Matching:
    """A maximum matching: which unknown each equation determines.

    Attributes
    ----------
    col_of_row, row_of_col
        Partners, -1 where there is none.
    """

    pattern: Pattern
    col_of_row: Int[Array, " rows"]
    row_of_col: Int[Array, " cols"]

    @property
    def size(self) -> int:
        """Number of arcs: the structural rank."""
        return int(np.count_nonzero(self.col_of_row >= 0))

    @property
    def perfect(self) -> bool:
        """Whether every equation and every unknown is matched."""
        return self.size == self.pattern.shape[0] == self.pattern.shape[1]

    @property
    def free_rows(self) -> Int[Array, " surplus"]:
        """Equations without an unknown."""
        return np.flatnonzero(self.col_of_row < 0)

    @property
    def free_cols(self) -> Int[Array, " missing"]:
        """Unknowns without an equation."""
        return np.flatnonzero(self.row_of_col < 0)

    def pairs(self) -> dict[str, str]:
        """Return equation -> the unknown it determines, by name."""
        names = self.pattern
        return {names.equations[i]: names.unknowns[j] for i, j in enumerate(self.col_of_row) if j >= 0}

    def causal_matrix(self) -> sp.csr_array:
        """Return the causal Jacobian: +1 the output of an equation, -1 its inputs (seed 003, Fig. 4)."""
        p = self.pattern
        output = p.indices == self.col_of_row[p.rows]
        return sp.csr_array((np.where(output, 1, -1), p.indices, p.indptr), shape=p.shape)

    def arcs(self) -> list[tuple[str, str]]:
        """Return the directed graph (Fig. 5): unknown -> equation for inputs, equation -> unknown for outputs."""
        p, signs = self.pattern, self.causal_matrix().data
        names = [(p.equations[i], p.unknowns[j]) for i, j in zip(p.rows, p.indices, strict=True)]
        return [(e, u) if sign > 0 else (u, e) for (e, u), sign in zip(names, signs, strict=True)]

    @cached_property
    def cover(self) -> tuple[Bool[Array, " rows"], Bool[Array, " cols"]]:
        """The smallest cover: equations, unknowns (Konig's construction from the unmatched equations)."""
        rows, cols = reach(self.pattern.indptr, self.pattern.indices, self.row_of_col, self.free_rows)
        return ~rows, cols


def match(pattern: Pattern, preferred: Iterable[tuple[int, int]] = ()) -> Matching:
    """Return a maximum matching that starts from preferred (row, column) pairs and keeps what it can of them.

    Two preferred pairs that share a row or a column: the first counts. A preferred pair that is no entry is left out.
    """
    rows, cols = pattern.shape
    col_of_row, row_of_col = np.full(rows, -1, np.int64), np.full(cols, -1, np.int64)
    for i, j in preferred:
        columns = pattern.indices[pattern.indptr[i] : pattern.indptr[i + 1]]
        if j in columns and col_of_row[i] < 0 and row_of_col[j] < 0:
            col_of_row[i], row_of_col[j] = j, i
    augment(pattern.indptr, pattern.indices, col_of_row, row_of_col)
    return Matching(pattern, col_of_row, row_of_col)


# ----------------------------------------------------------------------------------------------------------------------
# Dulmage-Mendelsohn parts, blocks in solving order, and the smallest sets that do not fit.
#
# A. L. Dulmage, N. S. Mendelsohn, "Coverings of bipartite graphs", Canad. J. Math. 10 (1958) 517-534; A. Pothen,
# C.-J. Fan, "Computing the block triangular form of a sparse matrix", ACM TOMS 16 (1990) 303-324.
#
# What alternating paths reach from an unmatched equation has more equations than unknowns (the over-determined part);
# from an unmatched unknown, fewer (under-determined); the rest is square and falls apart into blocks.


@dataclass(frozen=True, eq=False)
class Parts:
    """The coarse decomposition, as masks over equations and unknowns; what is in neither is square."""

    over_rows: Bool[Array, " rows"]
    over_cols: Bool[Array, " cols"]
    under_rows: Bool[Array, " rows"]
    under_cols: Bool[Array, " cols"]


@dataclass(frozen=True, eq=False)
class Blocks:
    """Square blocks in solving order: block b needs unknowns of blocks before b only.

    Attributes
    ----------
    rows, cols
        Equations and unknowns in solving order, matched pairs side by side.
    begins
        Block b is rows[begins[b]:begins[b + 1]].
    """

    rows: Int[Array, " n"]
    cols: Int[Array, " n"]
    begins: Int[Array, " blocks_and_one"]

    @property
    def sizes(self) -> Int[Array, " blocks"]:
        """Number of equations of each block."""
        return np.diff(self.begins)


def parts(matching: Matching) -> Parts:
    """Return the over- and under-determined parts; they do not depend on which maximum matching is used."""
    p, t = matching.pattern, matching.pattern.transposed
    over_rows, over_cols = reach(p.indptr, p.indices, matching.row_of_col, matching.free_rows)
    under_cols, under_rows = reach(t.indptr, t.indices, matching.col_of_row, matching.free_cols)
    return Parts(over_rows, over_cols, under_rows, under_cols)


def blocks(matching: Matching) -> Blocks:
    """Return the blocks of the square part in solving order."""
    pattern, regions = matching.pattern, parts(matching)
    rows = np.flatnonzero(~(regions.over_rows | regions.under_rows))
    if rows.size == pattern.shape[0] == pattern.shape[1]:
        order, begins = strong_components(pattern.indptr, pattern.indices, matching.row_of_col)
        return Blocks(order, matching.col_of_row[order], begins)
    cols = np.flatnonzero(~(regions.over_cols | regions.under_cols))
    inner = Pattern.of(pattern.matrix()[rows][:, cols])
    place = np.full(pattern.shape[1], -1)
    place[cols] = np.arange(cols.size)
    col_of_row = place[matching.col_of_row[rows]]
    row_of_col = np.empty_like(col_of_row)
    row_of_col[col_of_row] = np.arange(rows.size)
    order, begins = strong_components(inner.indptr, inner.indices, row_of_col)
    return Blocks(rows[order], cols[col_of_row[order]], begins)


def smallest_over_determined(matching: Matching) -> list[tuple[Int[Array, " k"], Int[Array, " k_less_one"]]]:
    """Return, per unmatched equation, a set of k equations in k - 1 unknowns; no member can be left out of it.

    The equations that alternating paths reach from one unmatched equation are a circuit of the transversal matroid:
    without any one of them the rest can be matched. With one equation too many it is the only such set, hence the
    smallest; with several, smaller ones may exist. Sorted by size.
    """
    pattern = matching.pattern
    sets = [reach(pattern.indptr, pattern.indices, matching.row_of_col, np.array([i])) for i in matching.free_rows]
    return sorted(((np.flatnonzero(rows), np.flatnonzero(cols)) for rows, cols in sets), key=lambda s: len(s[0]))


def smallest_under_determined(matching: Matching) -> list[tuple[Int[Array, " k_less_one"], Int[Array, " k"]]]:
    """Return, per unmatched unknown, k - 1 equations and k unknowns that only these equations contain."""
    flipped = Matching(matching.pattern.transposed, matching.row_of_col, matching.col_of_row)
    return [(rows, cols) for cols, rows in smallest_over_determined(flipped)]
