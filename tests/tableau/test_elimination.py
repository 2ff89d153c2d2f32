"""Plans and engines against LAPACK; trouble provoked on purpose: detected, repaired, never wrong in silence."""

import casadi as ca
import numpy as np
import pytest
import scipy.sparse as sp
from benchmarks.inner_product import InnerProduct
from hypothesis import given, settings
from hypothesis import strategies as st

from dalembert.errors import ModelError, ShapeError, SolvabilityError
from dalembert.status import Status
from dalembert.tableau import ENGINES, Elimination, Pattern, eliminate, make_plan
from dalembert.tableau.elimination.engines import sound
from tests.reference.elimination import plain_solve
from tests.tableau.strategies import exactly, regular_matrices

TIGHT = 1e-11


@pytest.mark.parametrize("engine", ENGINES)
def test_Y11_every_engine_equals_lapack_on_fixed_systems(engine):
    rng = np.random.default_rng(8)
    for n, density in ((1, 1.0), (6, 0.4), (40, 0.06)):
        A = sp.csr_array(sp.random_array((n, n), density=density, rng=rng) + 3 * sp.diags_array(rng.uniform(1, 2, n)))
        A.sort_indices()
        b = rng.standard_normal((3, n))
        found = Elimination(make_plan(A, values=A.data), engine).solve(A.data, b)
        np.testing.assert_allclose(found.x, np.linalg.solve(A.toarray(), b.T).T, rtol=TIGHT, atol=TIGHT)
        assert (found.status == Status.PLANNED).all()
        assert (found.backward_error < 1e-14).all()


@given(matrix=regular_matrices(), seed=st.integers(0, 1000))
def test_Y11_the_looped_plan_equals_lapack_plain_elimination_and_inner_products(matrix, seed):
    b = np.random.default_rng(seed).standard_normal(matrix.shape[0])
    plan = make_plan(matrix, values=matrix.data)
    exact = np.linalg.solve(matrix.toarray(), b)
    looped = Elimination(plan, "loop").solve(matrix.data, b).x
    twins = plain_solve(plan, matrix.data, b), InnerProduct(plan).solve(matrix.data, b)
    for x in (looped, *twins):
        np.testing.assert_allclose(x, exact, rtol=1e-9, atol=1e-9 * np.abs(exact).max())


@given(regular_matrices(), st.sampled_from([1, 3]))
def test_plan_is_a_factorization_pattern(matrix, points):
    """L and U of the plan hold every entry that plain elimination in its order produces."""
    rng = np.random.default_rng(0)
    values = matrix.data * rng.uniform(0.9, 1.1, (points, matrix.nnz))
    plan = make_plan(matrix, values=values)
    A = matrix.toarray()[plan.rows][:, plan.cols]
    for first, last in zip(plan.begins[:-1], plan.begins[1:], strict=True):
        assert not A[first:last, last:].any()
        work = A[first:last, first:last].copy()
        for k in range(last - first):
            work[k + 1 :, k] /= work[k, k]
            work[k + 1 :, k + 1 :] -= np.outer(work[k + 1 :, k], work[k, k + 1 :])
        for k in range(last - first):
            low = set((plan.lower[plan.lower_indptr[first + k] : plan.lower_indptr[first + k + 1]] - first).tolist())
            up = set((plan.upper[plan.upper_indptr[first + k] : plan.upper_indptr[first + k + 1]] - first).tolist())
            assert set(np.flatnonzero(work[k, :k]).tolist()) <= low
            assert {k + 1 + j for j in np.flatnonzero(work[k, k + 1 :]).tolist()} <= up
            assert all(j < k for j in low)
            assert all(j > k for j in up)


def test_markowitz_keeps_an_arrow_sparse():
    """An arrow matrix fills completely in the given order and not at all from the other end."""
    n = 50
    A = np.eye(n) * 4
    A[0, :] = A[:, 0] = 1.0
    A[0, 0] = 4.0
    plan = make_plan(A, values=A[A != 0])
    assert plan.fill == 0
    assert plan.operations < 12 * n


def test_threshold_refuses_small_pivots():
    """[1e-14 1; 1 1]: elimination from the small corner would lose everything."""
    A = np.array([[1e-14, 1.0], [1.0, 1.0]])
    found = eliminate(A, values=A.ravel(), engine="loop").solve(A.ravel(), [1.0, 2.0])
    np.testing.assert_allclose(found.x, np.linalg.solve(A, [1.0, 2.0]), rtol=1e-14)
    assert found.growth[0] < 2


def test_pivots_are_sound_at_every_probed_point():
    """Each diagonal entry is tiny at one of two points: only the other diagonal serves both."""
    points = np.array([[1e-9, 1.0, 1.0, 1.0], [1.0, 1.0, 1.0, 1e-9]])
    plan = make_plan(np.ones((2, 2)), values=points)
    assert set(zip(plan.rows.tolist(), plan.cols.tolist(), strict=True)) == {(0, 1), (1, 0)}


TROUBLE = np.array([[4.0, 1.0, 0.0, 1.0], [1.0, 3.0, 1.0, 0.0], [0.0, 1.0, 5.0, 1.0], [2.0, 0.0, 1.0, 4.0]])


def troubled(value: float) -> tuple[Elimination, np.ndarray]:
    """Return a solver planned for TROUBLE, and values whose first planned pivot is `value`."""
    pattern = Pattern.of(TROUBLE)
    solver = eliminate(pattern, values=TROUBLE[TROUBLE != 0], engine="straight")
    data = TROUBLE[TROUBLE != 0].copy()
    first = (pattern.rows == solver.plan.rows[0]) & (pattern.indices == solver.plan.cols[0])
    data[first] = value
    return solver, data


@pytest.mark.parametrize("value", [1e-7, 1e-10, 1e-14, 1e-300, 0.0])
def test_a_pivot_that_vanishes_is_repaired(value):
    solver, data = troubled(value)
    A = solver.plan.pattern.matrix(data).toarray()
    b = np.array([1.0, -2.0, 3.0, 0.5])
    found = solver.solve(data, b)
    np.testing.assert_allclose(found.x, np.linalg.solve(A, b), rtol=1e-12)
    assert found.backward_error[0] < 1e-13
    if value < 1e-12:
        assert found.status[0] == Status.REPLANNED
        assert solver.statistics.plans == 2
        again = solver.solve(data, 2 * b)
        assert again.status[0] == Status.REPLANNED
        assert solver.statistics.plans == 2  # the spare plan is used again


@pytest.mark.parametrize("engine", ["straight", "loop"])
def test_scales_of_1e12_are_solved(engine):
    rng = np.random.default_rng(3)
    A = sp.csr_array(sp.random_array((30, 30), density=0.12, rng=rng) + sp.diags_array(rng.uniform(2, 3, 30)))
    A.sort_indices()
    row, col = 10.0 ** rng.uniform(-6, 6, 30), 10.0 ** rng.uniform(-6, 6, 30)
    scaled = sp.csr_array(sp.diags_array(row) @ A @ sp.diags_array(col))
    solver = eliminate(A, values=A.data, engine=engine)
    x = rng.standard_normal(30)
    found = solver.solve(scaled.data, row * (A @ x))
    np.testing.assert_allclose(found.x, x / col, rtol=1e-9)
    assert found.backward_error[0] < 1e-13
    assert found.ok.all()


@pytest.mark.parametrize("engine", ENGINES)
def test_singular_values_are_never_answered(engine):
    """Rows 0 and 2 of a regular pattern made equal: single solves raise with names, batches mark the sample."""
    A = np.array([[1.0, 2.0, 0.0], [0.0, 1.0, 1.0], [1.0, 2.0, 1e-300]])
    names = ["first", "second", "third"]
    solver = eliminate(A, values=[1.0, 2.0, 1.0, 1.0, 2.0, 1.0, 1.0], equations=names, engine=engine)
    good, bad = np.array([1.0, 2.0, 1.0, 1.0, 2.0, 1.0, 1.0]), np.array([1.0, 2.0, 1.0, 1.0, 1.0, 2.0, 0.0])
    with pytest.raises(SolvabilityError, match="'first', 'third'") as raised:
        solver.solve(bad, [1.0, 2.0, 3.0])
    assert not raised.value.diagnosis.full
    found = solver.solve(np.stack([good, bad, good]), [1.0, 2.0, 3.0])
    assert found.status.tolist() == [Status.PLANNED, Status.SINGULAR, Status.PLANNED]
    assert np.isnan(found.x[1]).all()
    assert np.isfinite(found.x[[0, 2]]).all()
    assert solver.statistics.singular == 2


@given(regular_matrices(largest=10), st.integers(0, 10_000))
def test_no_sample_is_wrong_in_silence(matrix, seed):
    """Values far from the probed ones, zeros and huge numbers among them: right, or said not to be."""
    rng = np.random.default_rng(seed)
    data = matrix.data * rng.choice([0.0, 1e-12, 1.0, 1e6, -1.0], (20, matrix.nnz), p=[0.1, 0.1, 0.6, 0.1, 0.1])
    b = rng.standard_normal((20, matrix.shape[0]))
    found = Elimination(make_plan(matrix, values=matrix.data), "loop").solve(data, b)
    for k in range(20):
        A = sp.csr_array((data[k], matrix.indices, matrix.indptr), shape=matrix.shape).toarray()
        if found.ok[k]:
            residual, size = np.abs(A @ found.x[k] - b[k]), np.abs(A) @ np.abs(found.x[k]) + np.abs(b[k])
            if not (residual <= 1e-11 * size).all():  # then right unknown by unknown
                x, inverse = exactly(A, b[k])
                assert (np.abs(found.x[k] - x) <= 1e-11 * (inverse @ size)).all()
        else:
            row = 1 / np.maximum(np.abs(A).max(axis=1), 1e-300)
            scaled = row[:, None] * A
            scaled = scaled / np.maximum(np.abs(scaled).max(axis=0), 1e-300)
            assert np.linalg.cond(scaled) > 1e12


def test_non_finite_samples_are_marked_alone():
    A = np.array([[2.0, 1.0], [1.0, 3.0]])
    solver = eliminate(A, values=A.ravel(), equations=["left", "right"])
    data = np.tile(A.ravel(), (3, 1))
    data[1, 2] = np.nan
    found = solver.solve(data, [1.0, 1.0])
    assert found.status.tolist() == [Status.PLANNED, Status.NONFINITE, Status.PLANNED]
    with pytest.raises(SolvabilityError, match=r"NaN or infinity in equation.* 'right'"):
        solver.solve(data[1], [1.0, 1.0])
    with pytest.raises(SolvabilityError, match="'left'"):
        solver.solve(A.ravel(), [np.inf, 1.0])


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_no_entry_that_is_not_finite_passes_the_compiled_verdict(value):
    """Each entry and right side in turn, in blocks of one equation and in one of three, single calls and batches."""
    A = np.array([[2.0, 0, 0, 0, 0], [1, 4, 1, 0, 0], [0, 1, 5, 1, 0], [0, 1, 0, 3, 0], [1, 0, 0, 1, 2.0]])
    good, b = A[A != 0], np.array([1.0, 2.0, 0.0, 1.0, 1.0])
    solver = eliminate(A, values=good, engine="straight")
    assert sorted(np.diff(solver.plan.begins)) == [1, 1, 3]
    assert solver.solve(good, b).status[0] == Status.PLANNED
    for k in range(len(good) + len(b)):
        data, right = good.copy(), b.copy()
        (data if k < len(good) else right)[k % len(good) if k < len(good) else k - len(good)] = value
        with pytest.raises(SolvabilityError, match="NaN or infinity"):
            solver.solve(data, right)
        both = solver.solve(np.stack([data, good]), np.stack([right, b]))
        assert both.status.tolist() == [Status.NONFINITE, Status.PLANNED]


@given(regular_matrices(largest=12), st.integers(0, 10_000))
@settings(max_examples=15, deadline=None)
def test_single_calls_and_batches_have_the_same_answer_and_checks(matrix, seed):
    """The verdict in the compiled code is that of `sound`; checks of straight-line code and of the loop agree."""
    rng = np.random.default_rng(seed)
    b, data = rng.standard_normal(matrix.shape[0]), matrix.data * rng.choice([1e-9, 1.0, 1.0, 1.0], matrix.nnz)
    plan = make_plan(matrix, values=matrix.data)
    straight, loop = Elimination(plan, "straight"), Elimination(plan, "loop")
    x, checks = straight._run.one(data, b)
    batch, found = straight._run(data[None], b[None])
    np.testing.assert_array_equal(batch[0], x)
    assert bool(checks[3]) == bool(sound(batch, found)[0])
    other = loop._run(data[None], b[None])[1][0]
    np.testing.assert_allclose(checks[1:3], other[1:3], rtol=1e-6)
    both = [each.solve(np.tile(data, (2, 1)), b) for each in (straight, loop)]
    np.testing.assert_array_equal(both[0].ok, both[1].ok)


def test_statistics_and_explanation():
    solver, data = troubled(0.0)
    b = np.ones((2, 4))
    solver.solve(np.stack([data, TROUBLE[TROUBLE != 0]]), b)
    text = solver.explain()
    assert "2 solves: planned 1, replanned 1; 2 plan(s)" in text
    assert "4 equations, 12 entries" in text
    assert "equation 0" in text


@pytest.mark.parametrize(
    ("values", "right", "error"),
    [
        (np.ones(3), np.ones(2), ShapeError),
        (np.ones(4), np.ones(3), ShapeError),
        (np.ones((2, 4)), np.ones((3, 2)), ShapeError),
        (np.ones((2, 2, 4)), np.ones(2), ShapeError),
    ],
)
def test_wrong_shapes_are_refused(values, right, error):
    solver = eliminate(np.ones((2, 2)), values=[2.0, 1.0, 1.0, 3.0], engine="loop")
    with pytest.raises(error):
        solver.solve(values, right)


def test_wrong_options_are_refused():
    with pytest.raises(ModelError, match="engine"):
        eliminate(np.eye(2), engine="quantum")
    with pytest.raises(ModelError, match=r"probed point 0 gives nan .*'unknown 1'.*'equation 1'"):
        make_plan(np.eye(2), values=[1.0, np.nan])
    with pytest.raises(ShapeError):
        make_plan(np.eye(2), values=np.ones((2, 3)))
    with pytest.raises(ShapeError):
        make_plan(np.eye(2), constant=np.ones(5))


def test_empty_batch():
    found = eliminate(np.eye(2), engine="loop").solve(np.ones((0, 2)), np.ones((0, 2)))
    assert found.x.shape == (0, 2)
    assert len(found.status) == 0


def newton_function() -> ca.Function:
    x, u = ca.SX.sym("x", 3), ca.SX.sym("u")
    return ca.Function("f", [x, u], [ca.vertcat(x[0] ** 2 + x[1] - u, x[1] * x[2] - 1, x[2] - x[0])])


@pytest.mark.parametrize("engine", ["straight", "loop"])
def test_newton_step_of_a_user_function(engine):
    """A user's own Newton iteration: residual, Jacobian, factors and solve in one call, batched."""
    f = newton_function()
    J = ca.Function("J", f.sx_in(), [ca.jacobian(f(*f.sx_in()), f.sx_in()[0])])
    newton = eliminate(f, engine=engine, points=[[[1.0, 1.0, 1.0], [2.0, 0.5, 2.0]], [[2.0], [4.0]]])
    u = np.linspace(2.0, 5.0, 7)[:, None]
    x = np.ones((7, 3))
    for k in range(7):
        expected = np.linalg.solve(np.array(J(x[k], u[k])), -np.array(f(x[k], u[k]))).ravel()
        np.testing.assert_allclose(newton.step(x[k], u[k]).step, expected, rtol=1e-12, atol=1e-14)
    for _ in range(12):
        x = x + newton.step(x, u).step
    residual = np.array([np.array(f(x[k], u[k])).ravel() for k in range(7)])
    assert np.abs(residual).max() < 1e-12


def test_newton_step_in_trouble_is_repaired():
    """At x0 = 0 the pivot 2 x0 vanishes; the step is still LAPACK's."""
    x = ca.SX.sym("x", 2)
    f = ca.Function("f", [x], [ca.vertcat(x[0] ** 2 + x[1] - 1, x[0] + x[1] ** 2)])
    newton = eliminate(f, points=[[[1.0, 0.1], [2.0, 0.2]]])
    start = np.array([0.0, 0.3])
    J = np.array([[0.0, 1.0], [1.0, 0.6]])
    expected = np.linalg.solve(J, -np.array(f(start)).ravel())
    np.testing.assert_allclose(newton.step(start).step, expected, rtol=1e-13)
    assert newton.statistics.replanned + newton.statistics.planned == 1
    with pytest.raises(SolvabilityError):
        newton.step(np.array([0.25, 1.0]))  # 4 x0 x1 = 1: singular


def test_unchecked_steps_mark_what_is_not_finite():
    newton = eliminate(newton_function(), checks=False, points=[[[1.0, 1.0, 1.0]], [[2.0]]])
    found = newton.step(np.array([[1.0, 1.0, 1.0], [np.nan, 0.0, 0.0]]), np.array([2.0]))
    assert found.linear.status.tolist() == [Status.PLANNED, Status.NONFINITE]


def test_newton_refuses_what_is_no_square_function():
    x = ca.SX.sym("x", 2)
    with pytest.raises(ShapeError):
        eliminate(ca.Function("f", [x], [x[0]]))
    with pytest.raises(ShapeError, match="1 inputs for 2"):
        eliminate(newton_function(), points=[[[1.0, 1.0, 1.0]], [[2.0]]]).step(np.ones(3))


def test_large_chains_have_linear_fill_and_operations():
    """Operations of the plan, not times: a band in random order, 10 times as long, costs 10 times as much."""

    def operations(n: int) -> int:
        rng = np.random.default_rng(n)
        bands = [rng.standard_normal(n - abs(k)) for k in range(-2, 3)]
        A = sp.csr_array(sp.diags_array(bands, offsets=range(-2, 3)))
        A = sp.csr_array(A[rng.permutation(n)][:, rng.permutation(n)])
        A.sort_indices()
        plan = make_plan(A, values=A.data)
        b = rng.standard_normal(n)
        found = Elimination(plan, "loop").solve(A.data, b)
        assert found.ok.all()
        assert np.abs(A @ found.x - b).max() < 1e-8 * np.abs(found.x).max()
        return plan.operations

    assert operations(20_000) < 11 * operations(2_000)


def test_zeros_that_make_columns_empty_are_singular_and_nothing_worse():
    solver = eliminate(np.eye(3) + np.eye(3, k=1), engine="loop")
    values = np.ones((4, solver.plan.pattern.entries))
    values[1:3, -1] = 0.0
    assert list(solver.solve(values, np.ones(3)).status == Status.SINGULAR) == [False, True, True, False]
