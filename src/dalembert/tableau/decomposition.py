"""Dulmage-Mendelsohn parts, blocks in solving order, and the smallest sets that do not fit.

A. L. Dulmage, N. S. Mendelsohn, "Coverings of bipartite graphs", Canad. J. Math. 10 (1958) 517-534; A. Pothen,
C.-J. Fan, "Computing the block triangular form of a sparse matrix", ACM TOMS 16 (1990) 303-324.

What alternating paths reach from an unmatched equation has more equations than unknowns (the over-determined part);
from an unmatched unknown, fewer (under-determined); the rest is square and falls apart into blocks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int

from dalembert.tableau.graph_loops import reach, strong_components
from dalembert.tableau.matching import Matching
from dalembert.tableau.pattern import Pattern

Array = np.ndarray


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
    pattern, found = matching.pattern, parts(matching)
    rows = np.flatnonzero(~(found.over_rows | found.under_rows))
    if rows.size == pattern.shape[0] == pattern.shape[1]:
        order, begins = strong_components(pattern.indptr, pattern.indices, matching.row_of_col)
        return Blocks(order, matching.col_of_row[order], begins)
    cols = np.flatnonzero(~(found.over_cols | found.under_cols))
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
    found = [reach(pattern.indptr, pattern.indices, matching.row_of_col, np.array([i])) for i in matching.free_rows]
    return sorted(((np.flatnonzero(rows), np.flatnonzero(cols)) for rows, cols in found), key=lambda s: len(s[0]))


def smallest_under_determined(matching: Matching) -> list[tuple[Int[Array, " k_less_one"], Int[Array, " k"]]]:
    """Return, per unmatched unknown, k - 1 equations and k unknowns that only these equations contain."""
    flipped = Matching(matching.pattern.transposed, matching.row_of_col, matching.col_of_row)
    return [(rows, cols) for cols, rows in smallest_over_determined(flipped)]
