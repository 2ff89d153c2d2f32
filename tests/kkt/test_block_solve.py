"""The block system in straight-line code: against `kkt`, whatever the ranks of A and M."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalembert import KKT, Status
from dalembert.kkt.expressions.block_solver import BlockSolver, delassus
from dalembert.kkt.expressions.matrix_system import MatrixSystem
from dalembert.kkt.expressions.probing import probe


def tree_system(seed, n, m, dependent=0, massless=0):
    """M with the sparsity of a random tree, A with `dependent` of m rows implied by the others.

    The last `massless` coordinates carry no mass; the first rows of A see them, so that they cannot move freely.
    """
    rng = np.random.default_rng(seed)
    ancestors = np.eye(n, dtype=bool)
    for i in range(1, n):
        ancestors[i] |= ancestors[rng.integers(0, i)]
    L = np.where(ancestors, 0.3 * rng.normal(size=(n, n)), 0.0) * (1 - np.eye(n)) + np.eye(n)
    d = rng.uniform(0.5, 2.0, n)
    d[n - massless :] = 0.0
    rank = m - dependent
    seen = np.concatenate([np.arange(n - massless, n), rng.permutation(n - massless)])[:rank]
    A = np.where(ancestors[seen], 0.3 * rng.normal(size=(rank, n)), 0.0)
    A[np.arange(rank), seen] = 1.0
    A = np.vstack([A, rng.normal(size=(dependent, rank)) @ A])
    return L.T @ (d[:, None] * L), A, rng


def traced(M, A, metric=None):
    """Return the compiled-to-be solve as a CasADi function of numbers."""
    symbols = [ca.SX.sym(name, _pattern(x)) for name, x in (("M", M), ("A", A))]
    f, c = ca.SX.sym("f", M.shape[0]), ca.SX.sym("c", A.shape[0])
    needs = probe(M[None], A[None])
    system = MatrixSystem.of(*map(_rows, symbols), needs.massless)
    inputs = [*symbols[0].nonzeros(), *symbols[1].nonzeros(), *ca.vertsplit(f), *ca.vertsplit(c)]
    answer = BlockSolver.of(system, needs, metric).solve(ca.vertsplit(f), ca.vertsplit(c), inputs)
    outputs = [ca.vertcat(*x) for x in (answer.acceleration, answer.multipliers, [answer.status], answer.residuals)]
    function = ca.Function("block", [*symbols, f, c], outputs)

    def solve(M, A, f, c):
        a, lam, status, omega = (np.array(x).ravel() for x in function(M, A, f, c))
        return a, lam, Status(int(status[0])), omega

    return solve


def _rows(x):
    """Rows of scalars; structural zeros are floats."""
    return [[x[i, j] if x.has_nz(i, j) else 0.0 for j in range(x.shape[1])] for i in range(x.shape[0])]


def _pattern(x):
    rows, columns = (index.tolist() for index in np.nonzero(x))
    return ca.Sparsity.triplet(*x.shape, rows, columns)


CASES = [
    (10, 4, 0, 0),
    (18, 12, 0, 0),
    (10, 6, 2, 0),
    (6, 8, 4, 0),
    (12, 5, 0, 2),
    (12, 6, 2, 2),
    (8, 0, 0, 0),
    (1, 1, 0, 1),
]


@pytest.mark.parametrize(("n", "m", "dependent", "massless"), CASES)
def test_equals_the_dense_solve(n, m, dependent, massless):
    M, A, rng = tree_system(n * m, n, m, dependent, massless)
    f, c = rng.normal(size=n), A @ rng.normal(size=n)
    a, lam, status, omega = traced(M, A)(M, A, f, c)
    truth = KKT(M, A).solve(f, -c)
    np.testing.assert_allclose(a, truth.acceleration, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(lam, truth.multipliers, rtol=1e-10, atol=1e-11)
    assert status == truth.certificate.status
    assert omega.max() < 1e-13


@given(st.integers(0, 10_000), st.integers(1, 9), st.integers(0, 6), st.integers(0, 3), st.integers(0, 2))
def test_any_ranks(seed, n, m, dependent, massless):
    massless = min(massless, n)
    dependent = min(dependent, max(m - max(massless, 1), 0))
    m = min(m, n + dependent)
    if m - dependent < massless:
        massless = m - dependent
    M, A, rng = tree_system(seed, n, m, dependent, massless)
    f, c = rng.normal(size=n), A @ rng.normal(size=n)
    a, lam, status, _ = traced(M, A)(M, A, f, c)
    assert status == (Status.REDUNDANT if dependent else Status.UNIQUE)
    truth = KKT(M, A).solve(f, -c)
    np.testing.assert_allclose(a, truth.acceleration, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(lam, truth.multipliers, rtol=1e-8, atol=1e-8)


def test_least_norm_in_the_users_metric():
    M, A, rng = tree_system(5, 8, 6, dependent=3)
    weights = rng.uniform(0.1, 10.0, 6)
    f = rng.normal(size=8)
    _, lam, status, _ = traced(M, A, weights)(M, A, f, np.zeros(6))
    truth = KKT(M, A, metric=np.diag(weights)).solve(f)
    assert status == Status.REDUNDANT
    np.testing.assert_allclose(lam, truth.multipliers, rtol=1e-9, atol=1e-10)


def test_contradictory_rows_are_said_so():
    M, A, rng = tree_system(6, 8, 6, dependent=2)
    solve = traced(M, A)
    c = A @ rng.normal(size=8)
    assert solve(M, A, rng.normal(size=8), c)[2] == Status.REDUNDANT
    c[-1] += 1e-3
    assert solve(M, A, rng.normal(size=8), c)[2] == Status.INCONSISTENT


@pytest.mark.parametrize("part", [1.0, 0.01, 1e-3])
def test_a_row_may_have_a_small_part_in_a_dependence(part):
    """Code for a rank of two says nothing about rows that have three: it does not call them solved."""
    rng = np.random.default_rng(1)
    M, A = np.diag(rng.uniform(1, 2, 6)), rng.normal(size=(3, 6))
    A[0] = 0.8 * A[1] + part * A[2]
    solve, c = traced(M, A), A @ rng.normal(size=6)
    assert solve(M, A, rng.normal(size=6), c)[2] == Status.REDUNDANT
    assert solve(M, A, rng.normal(size=6), c + np.eye(3)[0])[2] == Status.INCONSISTENT
    A[0] += [0.01, 0, 0, 0, 0, 0.01]
    assert not solve(M, A, rng.normal(size=6), c)[2].answered


@pytest.mark.parametrize("size", [1e-2, 1e-4, 1e-7])
def test_an_independent_row_of_another_size_beside_redundant_ones(size):
    """It does not make their shift so small that rounding counts as a row."""
    rng = np.random.default_rng(0)
    M, A = np.eye(6), rng.normal(size=(4, 6))
    A[1], A[3] = 2 * A[0], size * A[3]
    f, c = rng.normal(size=6), A @ rng.normal(size=6)
    a, lam, status, _ = traced(M, A)(M, A, f, c)
    truth = KKT(M, A).solve(f, -c)
    assert status == Status.REDUNDANT
    np.testing.assert_allclose(a, truth.acceleration, atol=1e-8)
    np.testing.assert_allclose(lam * [1, 1, 1, size], truth.multipliers * [1, 1, 1, size], atol=1e-7)


def test_scales_that_are_too_far_apart_are_no_contradiction():
    """Redundant rows of sizes beyond what one shift can serve: for `KKT` to solve."""
    rng = np.random.default_rng(0)
    M, A = np.eye(6), rng.normal(size=(4, 6))
    A[1], A[3] = 2 * A[0], 1e-9 * A[2]
    a, *_, status, _ = traced(M, A)(M, A, rng.normal(size=6), A @ rng.normal(size=6))
    assert status == (Status.REDUNDANT if np.isfinite(a).all() else Status.DECLINED)


def test_rows_that_become_dependent_leave_the_plain_code():
    M, A, rng = tree_system(7, 8, 3)
    A[2] = A[0] + A[1]
    regular = np.where(A.any(axis=0), rng.normal(size=A.shape), 0.0)
    solve = traced(M, regular)
    assert solve(M, regular, rng.normal(size=8), np.zeros(3))[2] == Status.UNIQUE
    assert solve(M, A, rng.normal(size=8), np.zeros(3))[2] == Status.DECLINED


def test_free_massless_motion_is_said_so():
    M, A, rng = tree_system(8, 8, 3, massless=1)
    solve = traced(M, A)
    assert solve(M, A, rng.normal(size=8), np.zeros(3))[2] == Status.UNIQUE
    A = A.copy()
    A[:, -1] = 0.0
    assert solve(M, A, rng.normal(size=8), np.zeros(3))[2] == Status.MASSLESS


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_data_that_are_not_finite(bad):
    M, A, rng = tree_system(9, 6, 2)
    f = rng.normal(size=6)
    f[2] = bad
    assert traced(M, A)(M, A, f, np.zeros(2))[2] == Status.NONFINITE


def test_structure_at_rest():
    """Nothing moves and nothing pulls: zeros are an answer."""
    M, A, _ = tree_system(10, 6, 2)
    a, lam, status, _ = traced(M, A)(M, A, np.zeros(6), np.zeros(2))
    assert status == Status.UNIQUE
    assert not a.any()
    assert not lam.any()


def test_branches_do_not_fill_in():
    """A star of chains: the factor's entries are those of the mass matrix, the Delassus matrix is block diagonal."""
    M = np.kron(np.eye(4), np.ones((3, 3)) + np.eye(3) * 3)
    A = np.kron(np.eye(4), np.ones((1, 3)))
    M_, A_ = (_rows(ca.SX.sym(name, _pattern(x))) for name, x in (("M", M), ("A", A)))
    system = MatrixSystem.of(M_, A_)
    assert sum(len(column) for column in system.mass.columns.values()) == 4 * 3
    assert sum(not isinstance(entry, float) for row in delassus(system) for entry in row) == 4
