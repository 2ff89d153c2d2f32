"""Compiled loop of balancing in the maximum norm, on logarithms."""

from __future__ import annotations

import numpy as np

from dalembert.tableau.graph_loops import compiled


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
