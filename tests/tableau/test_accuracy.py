"""What is called solved is right: against sixty digits, whatever the scales; what is singular is named in any units."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import dalembert as da
from dalembert.errors import ModelError, SolvabilityError
from dalembert.status import Status
from dalembert.tableau import ENGINES, ElementAssembly, eliminate, rank_report
from dalembert.tableau.elimination.accuracy import ScaledFactors
from dalembert.tableau.elimination.elimination import Elimination
from dalembert.tableau.elimination.equilibration import equilibrate
from dalembert.tableau.elimination.plan import make_plan
from tests.tableau.strategies import exactly, regular_matrices

SKEWED = [1.0, 0.0, 1.0, 1e-10], [1e-8, 1e6 / 3]
"""x = (1e-8, 3e15): the residual of the first equation is small beside an unknown that does not enter it."""


@pytest.mark.parametrize("engine", ENGINES)
def test_an_unknown_that_does_not_enter_a_row_excuses_nothing(engine):
    solver = eliminate(np.ones((2, 2)), values=[1e-3, 1, 1, 1e-10], engine=engine)
    found = solver.solve(*map(np.array, SKEWED))
    np.testing.assert_allclose(found.x, [1e-8, (1e6 / 3 - 1e-8) * 1e10], rtol=1e-12)
    assert found.ok.all()


@pytest.mark.parametrize("engine", ["loop", "straight"])
def test_an_unknown_that_is_zero_by_symmetry_refuses_nothing(engine):
    """x1 = 0.1 + 0.2 - 0.3 is rounding, and so is every row that holds it and its multiple alone."""
    A = np.array([[1.0, 0.1, 0.2, -0.3], [-3.0, 1.0, 0.0, 0.0], [7.0, 1e-3, 1.0, 0.3], [0.2, 0.7, 0.1, 1.0]])
    solver = eliminate(A, engine=engine, preferred=[(0, 3), (3, 0)])
    rng = np.random.default_rng(0)
    data = A[A != 0.0]
    for _ in range(20):
        x = np.array([0.0, 0.0, *rng.uniform(1.0, 2.0, 2)])
        b = A @ x
        found = solver.solve(data, b)
        assert found.ok.all()
        np.testing.assert_allclose(found.x, x, atol=1e-14)


@settings(max_examples=25)
@given(regular_matrices(largest=6), st.integers(0, 10_000))
def test_solved_is_right_unknown_by_unknown(matrix, seed):
    """|x - A^-1 b| <= 1e-11 |A^-1| (|A| |x| + |b|), the reach of data to eleven digits, and <= 10 times `error`."""
    rng = np.random.default_rng(seed)
    n, N = matrix.shape[0], 6
    factor = rng.choice([0.0, 1e-12, 1e-6, 1.0, 1e6], (N, matrix.nnz), p=[0.05, 0.15, 0.2, 0.4, 0.2])
    data = matrix.data * factor * rng.uniform(0.5, 1.0, (N, matrix.nnz))
    b = rng.standard_normal((N, n)) * 10.0 ** rng.integers(-9, 9, (N, n))
    found = eliminate(matrix, values=matrix.data, engine="loop").solve(data, b)
    error = found.error
    for k in np.flatnonzero(found.ok):
        A = sp.csr_array((data[k], matrix.indices, matrix.indptr), shape=matrix.shape).toarray()
        x, inverse = exactly(A, b[k])
        off, reach = np.abs(found.x[k] - x), inverse @ (np.abs(A) @ np.abs(x) + np.abs(b[k]))
        assert (off <= 1e-11 * reach).all()
        assert (off <= 10 * error[k] + 1e-300).all()


@settings(max_examples=25)
@given(regular_matrices(largest=12), st.integers(0, 10_000), st.sampled_from([3, 8, 12]))
def test_scales_of_rows_and_unknowns_change_no_verdict(matrix, seed, decades):
    rng = np.random.default_rng(seed)
    n = matrix.shape[0]
    row, col = (10.0 ** rng.uniform(-decades, decades, n) for _ in range(2))
    rows = np.repeat(np.arange(n), np.diff(matrix.indptr))
    values = matrix.data * row[rows] * col[matrix.indices]
    assert rank_report(matrix, values).full
    x = rng.uniform(1.0, 2.0, n) * rng.choice([-1.0, 1.0], n)
    for probed in (matrix.data, values):
        found = eliminate(matrix, values=probed, engine="loop").solve(values, row * (matrix @ x))
        np.testing.assert_allclose(found.x * col, x, rtol=1e-9)


@settings(max_examples=25)
@given(st.integers(3, 9), st.integers(0, 10_000), st.sampled_from([0, 6, 12]))
def test_dependent_equations_are_the_same_in_any_units(n, seed, decades):
    """One row is the sum of two others: these three are named, and the relation holds in the scaled units."""
    rng = np.random.default_rng(seed)
    A = rng.uniform(0.5, 1.0, (n, n)) * rng.choice([-1.0, 1.0], (n, n)) + 3 * np.eye(n)
    A[2] = A[0] + 2 * A[1]
    row, col = (10.0 ** rng.uniform(-decades, decades, n) for _ in range(2))
    values = (row[:, None] * A * col).ravel()
    report = rank_report(np.ones((n, n)), values)
    assert [e for d in report.found for e in d.equations] == [("equation 0", "equation 1", "equation 2")]
    with pytest.raises(SolvabilityError, match="'equation 0', 'equation 1', 'equation 2'"):
        eliminate(np.ones((n, n)), values=A.ravel(), engine="loop").solve(values, row * rng.standard_normal(n))


def test_rounding_in_place_of_zero_sets_no_scale():
    """Two rows that differ by 1e-17 in an entry of no other use are dependent."""
    A = np.array([[1.0, 2.0, 1e-17], [1.0, 2.0, 7e-18], [0.0, 1.0, 1.0]])
    pattern = np.array([[1, 1, 1], [1, 1, 1], [0, 1, 1]])
    assert not rank_report(pattern, A[pattern != 0]).full
    with pytest.raises(SolvabilityError, match="'equation 0', 'equation 1'"):
        eliminate(pattern, engine="loop").solve(A[pattern != 0], np.ones(3))


def test_error_says_how_many_digits_are_right():
    """Hilbert's matrix: the backward error stays at rounding while digits are lost, and `error` tells."""
    for n, worst in ((3, 1e-11), (6, 1e-7), (9, 1e-2)):
        H = 1.0 / (np.arange(n)[:, None] + np.arange(n) + 1.0)
        b = np.ones(n)
        x, _ = exactly(H, b)
        for engine in ("straight", "loop"):
            found = eliminate(H, values=H.ravel(), engine=engine).solve(H.ravel(), b)
            off = np.abs(found.x - x)
            assert (off <= 10 * found.error).all()
            assert (found.error <= worst * np.abs(x).max()).all()
            assert found.error.max() > 1e-17 * np.linalg.cond(H)
    many = eliminate(H, values=H.ravel(), engine="loop").solve(np.stack([H.ravel()] * 2), np.stack([b, np.nan * b]))
    assert np.isfinite(many.error[0]).all()
    assert np.isnan(many.error[1]).all()


def test_error_refuses_arrays_that_were_changed():
    values, right = np.array([2.0, 1.0, 1.0, 3.0]), np.array([1.0, 2.0])
    found = eliminate(np.ones((2, 2)), values=values, engine="straight").solve(values, right)
    right[0] = 5.0
    with pytest.raises(ModelError, match="changed after the solve"):
        _ = found.error


@settings(max_examples=60)
@given(st.integers(0, 12), st.integers(0, 10_000), st.sampled_from(["sparse", "dense row", "empty", "zeros", "equal"]))
def test_superlu_survives_any_matrix(n, seed, kind):
    """Empty and doubled columns, dense rows, 1 x 1, nothing at all: factors, or None."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, n)) * (rng.random((n, n)) < 0.3) * 10.0 ** rng.integers(-200, 200, (n, n))
    if n and kind == "dense row":
        A[rng.integers(n)] = 1.0
    if n and kind == "empty":
        A[:, rng.integers(n)] = 0.0
    if n > 1 and kind == "equal":
        A[:, 0] = A[:, -1]
    stored = sp.csr_array(np.ones((n, n))) if kind == "zeros" else sp.csr_array(A)
    if kind == "zeros":
        stored.data = A.ravel()
    factors = ScaledFactors.of(stored)
    singular = n == 0 or np.linalg.matrix_rank((A != 0) * rng.uniform(1, 2, (n, n))) < n
    assert not (singular and factors is not None)
    if factors is not None:
        assert factors.condition() >= 1.0 or np.isnan(factors.condition())
    row, col = equilibrate(stored)
    assert (row > 0).all()
    assert (np.frexp(np.concatenate([row, col]))[0] == 0.5).all()


def test_outcomes_of_the_skewed_system_are_counted():
    solver = eliminate(np.ones((2, 2)), values=[1e-3, 1, 1, 1e-10], engine="loop")
    assert solver.solve(*map(np.array, SKEWED)).status[0] == Status.REFINED
    assert solver.statistics.refined == 1


@pytest.mark.parametrize("engine", ["loop", "straight"])
@pytest.mark.parametrize("seed", range(3))
def test_sparse_right_sides_leave_zeros(engine, seed):
    """Bodies without a force stay at rest to the last bit: rounding in place of zero is no trouble."""
    b = da.Builder("balls")
    for i in range(12):
        b.body(f"b{i}", mass=1.0, inertia=(0.1, 0.2, 0.3))
        b.joint(f"free {i}", "free", parent="world", child=f"b{i}")
    assembly = ElementAssembly(b.build())
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(assembly.n)
    turned = np.array([name.startswith("e ") for name in assembly.pattern.unknowns])
    x[turned] = np.tile([0.0, 0.0, 0.0, 1.0], 12)
    values = assembly.jacobian(x, np.zeros(assembly.n), shift=100.0)
    solver = eliminate(assembly.pattern, values=values, paired=True, engine=engine)
    right = rng.standard_normal((40, assembly.n)) * (rng.random((40, assembly.n)) < 0.05)
    found = solver.solve(values, right)
    assert (found.status <= Status.REFINED).all()
    inverse = np.linalg.inv(assembly.pattern.matrix(values).toarray())
    reach = np.abs(np.where(np.abs(inverse) > 1e-12, inverse, 0.0)) @ np.abs(right.T)
    assert (reach == 0.0).any()
    assert (found.x.T[reach == 0.0] == 0.0).all()
    for k in range(5):
        x, _, status = solver._repair._superlu(values, right[k])
        assert status == Status.SUPERLU
        np.testing.assert_allclose(x, found.x[k], rtol=1e-9, atol=0.0)


def test_small_unknowns_are_not_taken_for_zero():
    """1e-25 beside numbers of size one is a number: what refinement leaves of its rounding is right."""
    A = np.array([[1.0, 0.1, 0.2, -0.3], [-3.0, 1.0, 0.0, 0.0], [7.0, 1e-3, 1.0, 0.3], [0.2, 0.7, 0.1, 1.0]])
    pattern = np.ones((4, 4))
    rng = np.random.default_rng(3)
    for size in (1e-8, 1e-15, 1e-17, 1e-25, 1e-200):
        b = np.array([0.0, size, *rng.uniform(1.0, 2.0, 2)])
        exact, inverse = exactly(A, b)
        found = eliminate(pattern, values=A.ravel(), engine="loop").solve(A.ravel(), b)
        reach = inverse @ (np.abs(A) @ np.abs(exact) + np.abs(b))
        assert (np.abs(found.x - exact) <= 1e-12 * reach).all()


def test_superlu_clears_zeros_and_keeps_the_rest():
    """Whole numbers with x0 = x1 = 0, found as rounding: conditions of 10 are no reason to refuse."""
    rng = np.random.default_rng(5)
    for _ in range(200):
        n = int(rng.integers(4, 8))
        A = np.round(rng.uniform(-10, 10, (n, n))) + np.diag(rng.choice([-30.0, 30.0], n))
        A[0] = [3.0, 7.0] + [0.0] * (n - 2)
        x = np.array([0.0, 0.0, *np.round(rng.uniform(10, 20, n - 2))])
        solver = eliminate(np.ones((n, n)), values=A.ravel() + 0.01, engine="loop")
        found, _, status = solver._repair._superlu(A.ravel(), A @ x)
        assert status == Status.SUPERLU
        np.testing.assert_allclose(found, x, rtol=1e-12, atol=1e-13)


def scaled_at_random(seed: int) -> tuple[sp.csr_array, np.ndarray, np.ndarray]:
    """Return a strongly diagonal sparse matrix, forty sets of values with entries scaled by 0, 1e-12 or 1e6, b."""
    rng = np.random.default_rng(seed)
    n, density = rng.integers(1, 11), rng.choice([0.02, 0.1, 0.3])
    A = rng.uniform(-1, 1, (n, n)) * (rng.random((n, n)) < density)
    signs = np.where(rng.random(n) < 0.5, -1.0, 1.0)
    A[np.arange(n), np.arange(n)] = signs * rng.uniform(1, 2, n) * (1 + np.abs(A).sum(axis=1))
    matrix = sp.csr_array(A[rng.permutation(n)][:, rng.permutation(n)])
    matrix.sort_indices()
    factors = rng.choice([0.0, 1e-12, 1.0, 1e6, -1.0], (40, matrix.nnz), p=[0.1, 0.1, 0.6, 0.1, 0.1])
    return matrix, matrix.data * factors, rng.standard_normal((40, n))


@pytest.mark.parametrize(
    ("seed", "sample"), [(1003044, 6), (1000606, 30), (5904, 8), (2256, 2), (1006915, 19), (1004866, 19)]
)
def test_poor_pivots_do_not_overrate_what_rounding_reaches(seed, sample):
    """Pivots of 1e-13 beside entries of 1: only five to ten digits were right, which the reach excused."""
    matrix, data, b = scaled_at_random(seed)
    found = Elimination(make_plan(matrix, values=matrix.data), "loop").solve(data, b)
    A = sp.csr_array((data[sample], matrix.indices, matrix.indptr), shape=matrix.shape).toarray()
    x, inverse = exactly(A, b[sample])
    reach = inverse @ (np.abs(A) @ np.abs(x) + np.abs(b[sample]))
    assert not found.ok[sample] or (np.abs(found.x[sample] - x) <= 1e-11 * reach).all()
