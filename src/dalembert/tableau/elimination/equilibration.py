"""Equilibration of rows and columns in powers of two."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import min_weight_full_bipartite_matching

from dalembert.kernel.loops import compiled
from dalembert.tableau.structure.matching import augment
from dalembert.types import Array

if TYPE_CHECKING:
    from jaxtyping import Float

# ----------------------------------------------------------------------------------------------------------------------
# Compiled loop of balancing in the maximum norm, on logarithms.


@compiled
def balance(row_ptr, cols, row_sizes, col_ptr, rows, col_sizes, t, sweeps):
    """Find t in place such that max_j (s_kj + t_k - t_j) = max_i (s_ik + t_i - t_k), every k, other entries than k.

    A pair whose row or column has no other entry closes no cycle: its entries are kept at or below the diagonal's.
    """
    n = t.size
    for sweep in range(sweeps):
        moved = 0.0
        for step in range(n):
            k = step if sweep % 2 == 0 else n - 1 - step
            row = col = -np.inf
            for e in range(row_ptr[k], row_ptr[k + 1]):
                row = max(row, row_sizes[e] - t[cols[e]])
            for e in range(col_ptr[k], col_ptr[k + 1]):
                col = max(col, col_sizes[e] + t[rows[e]])
            wanted = t[k]
            if row > -np.inf and col > -np.inf:
                wanted = 0.5 * (col - row)
            elif row > -np.inf:
                wanted = min(wanted, -row)
            elif col > -np.inf:
                wanted = max(wanted, col)
            moved = max(moved, abs(wanted - t[k]))
            t[k] = wanted
        if moved < 0.5:
            break


# ----------------------------------------------------------------------------------------------------------------------
# Scales that do not depend on the units in which rows and unknowns came: D A E, powers of two.
#
# Symbols: l_ij = log2 |a_ij|; r, c exponents of the row and column scales; m(i) the column matched to row i.
#
# What no scaling changes are products along cycles of entries. So the matching of largest product is made the diagonal,
# its entries are brought to one (as I. S. Duff, J. Koster, "On algorithms for permuting large entries to the diagonal
# of a sparse matrix", SIAM J. Matrix Anal. Appl. 22 (2001) 973-996), and the scales left, t_k of pair k, make the
# largest other entries of row k and of column k equal (E. E. Osborne, "On pre-conditioning of matrices", J. ACM 7
# (1960) 338-345). Entries that are only rounding, cos(pi/2) = 6e-17, set no scale unless nothing else closes a cycle.


SWEEPS = 40
"""Of balancing, forwards and backwards in turn; it stops where no exponent changes by half a unit."""

LARGE = 1500
"""Rows up to which the matching of largest product is looked for."""

LARGEST = 900
"""Exponents of scales are kept below this, so that scales and their products with entries stay finite."""


def is_regular_pattern(A: Any) -> bool:
    """Whether the nonzeros of a square matrix have a perfect matching; zeros that are stored count as nothing."""
    return _matchable(_without_zeros(A))


def _matchable(kept: Any) -> bool:
    """Whether a matrix without stored zeros has a perfect matching; SciPy's search takes quadratic time on chains."""
    n = kept.shape[0]
    col_of_row, row_of_col = np.full(n, -1, np.int64), np.full(n, -1, np.int64)
    augment(kept.indptr.astype(np.int64), kept.indices.astype(np.int64), col_of_row, row_of_col)
    return bool((col_of_row >= 0).all())


def _without_zeros(A: Any) -> Any:
    """Return a copy, rows sorted, without stored zeros."""
    matrix = sp.csr_array(A, copy=True)
    matrix.eliminate_zeros()
    matrix.sort_indices()
    return matrix


def equilibrate(A: Any) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
    """Return row and column scales of a square sparse matrix, largest entries of rows and columns about one.

    Where the nonzeros have no perfect matching (the matrix is singular), and where there are more than LARGE rows (the
    matching costs more than linear time), rows and columns are brought to a geometric mean of one in turn.
    """
    matrix = _without_zeros(A)
    n = matrix.shape[0]
    if not matrix.nnz:
        return np.ones(n), np.ones(n)
    sizes = np.log2(np.abs(matrix.data))
    rows = np.repeat(np.arange(n), np.diff(matrix.indptr))
    matched = n <= LARGE and _matchable(matrix)
    row, col = (_balanced if matched else _geometric)(matrix, rows, sizes)
    levels = sizes + row[rows] + col[matrix.indices]
    row -= _largest(levels, rows, n)
    col -= _largest(sizes + row[rows] + col[matrix.indices], matrix.indices, n)
    return tuple(np.exp2(np.clip(np.round(e), -LARGEST, LARGEST)) for e in (row, col))  # type: ignore[return-value]


def _balanced(kept: Any, rows: Array, sizes: Array) -> tuple[Array, Array]:
    """Return exponents by matching and balancing."""
    n = kept.shape[0]
    whole = 1.0 + np.round(sizes.max() - sizes)  # whole numbers: the search does not end with others
    costs = sp.csr_array((whole, kept.indices, kept.indptr), shape=kept.shape)
    matched_rows, matched_cols = min_weight_full_bipartite_matching(costs)
    partner = np.empty(n, np.int64)
    partner[matched_rows] = matched_cols
    diagonal = np.empty(n)
    at = kept.indices == partner[rows]
    diagonal[rows[at]] = sizes[at]
    other = ~at
    row_of_col = np.argsort(partner)
    i, j = rows[other], row_of_col[kept.indices[other]]  # both count pairs, by their row
    level = sizes[other] - diagonal[i]
    by_col = np.argsort(j, kind="stable")
    t = np.zeros(n)
    row_ptr = np.searchsorted(i, np.arange(n + 1))
    col_ptr = np.searchsorted(j[by_col], np.arange(n + 1))
    balance(row_ptr, j, level, col_ptr, i[by_col], level[by_col], t, SWEEPS)
    return t - diagonal, -t[row_of_col]


def _geometric(kept: Any, rows: Array, sizes: Array) -> tuple[Array, Array]:
    """Return exponents that bring means of logarithms to zero, rows and columns in turn (Curtis and Reid 1972)."""
    n = kept.shape[0]
    row, col = np.zeros(n), np.zeros(n)
    in_row, in_col = (np.maximum(np.bincount(at, minlength=n), 1) for at in (rows, kept.indices))
    for _ in range(SWEEPS):
        row = -np.bincount(rows, sizes + col[kept.indices], minlength=n) / in_row
        col = -np.bincount(kept.indices, sizes + row[rows], minlength=n) / in_col
    return row, col


def _largest(values: Array, at: Array, n: int) -> Array:
    """Return the largest value at each place, zero where there is none."""
    largest = np.full(n, -np.inf)
    np.maximum.at(largest, at, values)
    return np.where(np.isfinite(largest), largest, 0.0)
