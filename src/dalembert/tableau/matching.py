"""Matchings between equations and unknowns, and the cover that proves one maximal (seed 003, sec. 4.3).

Konig and Egervary: the largest matching has as many arcs as the smallest cover has vertices. A cover is a set of
equations and unknowns that touches every entry; whoever doubts that a matching is maximal counts the cover.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from jaxtyping import Bool, Int

from dalembert.tableau.graph_loops import augment, reach
from dalembert.tableau.pattern import Pattern

Array = np.ndarray


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
        own = pattern.indices[pattern.indptr[i] : pattern.indptr[i + 1]]
        if j in own and col_of_row[i] < 0 and row_of_col[j] < 0:
            col_of_row[i], row_of_col[j] = j, i
    augment(pattern.indptr, pattern.indices, col_of_row, row_of_col)
    return Matching(pattern, col_of_row, row_of_col)
