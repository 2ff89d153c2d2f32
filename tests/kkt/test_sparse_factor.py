"""Sparse factors of scalars: those of a mass matrix along its tree."""

from __future__ import annotations

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from dalembert.kkt.expressions.sparse_factor import dense, sparse, sparse_factor, tree_order
from tests.tree.mechanisms import KINDS, random_state, random_tree


@given(kinds=st.lists(st.sampled_from(KINDS), min_size=1, max_size=6), seed=st.integers(0, 10**6))
def test_factors_along_the_tree(kinds, seed):
    """M = L^T D L, with zeros where M has them (Featherstone 2008, sec. 6.5)."""
    mechanism = random_tree(kinds, seed)
    assume(mechanism.nv)
    q, v, _ = random_state(mechanism, seed, 1)
    M = np.atleast_2d(mechanism.compile("mass_matrix", backend="numpy")(q[0]))
    rows = [[float(x) for x in row] for row in M]
    factor = sparse_factor(rows, tree_order(mechanism.nv), mechanism.coordinates)
    L = np.eye(mechanism.nv)
    for k, column in factor.columns.items():
        for i, entry in column.items():
            L[k, i] = entry
    D = np.diag([factor.pivots[k] for k in range(mechanism.nv)])
    np.testing.assert_allclose(L.T @ D @ L, M, atol=1e-12 * np.abs(M).max())
    x = np.array(dense(factor.solve(sparse([float(x) for x in v[0]])), mechanism.nv))
    np.testing.assert_allclose(M @ x, v[0], atol=1e-9 * max(1.0, np.abs(M).max() * np.abs(x).max()))
