"""Seed 000 (Johnson, Block Matrix Solutions), line by line: the ledger's J1 to J14."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dalembert as da
from dalembert.kkt import Dagger, block_inverse, block_matrix
from tests.kkt import oracles, strategies

ROUNDING = 1e-12
"""Relative agreement of well-conditioned systems of a few rows: a thousand units of rounding."""

QP = 1e-6
"""Agreement with an interior-point method asked for 1e-10: its minimiser is good to the square root of that."""

SQRT3 = np.sqrt(3.0)

CRANK_SLIDER = da.KKT([[1, 0], [0, 0]], [[2, -1]], names=["slider"], coordinates=["theta1", "theta2"])
"""Seed 000, eqs. (32)-(34): second link massless, l1 = l2, m1 l1^2 / 4 + I1 = 1."""

# One massless leg, exact: shared/benchmarks/jbk_dagger_identities.json, case_one_massless_leg (confirmed with sympy).
# q = (x, y, theta), hip mass 2, massless leg of length 1 with pinned toe, theta = pi / 6.
LEG_M = np.diag([2.0, 2.0, 0.0])
LEG_A = np.array([[1.0, 0.0, SQRT3 / 2], [0.0, 1.0, 0.5]])
LEG_M_DAGGER = np.array(
    [[3 / 8, SQRT3 / 8, -SQRT3 / 4], [SQRT3 / 8, 1 / 8, -1 / 4], [-SQRT3 / 4, -1 / 4, 1 / 2]],
)
LEG_A_DAGGER = np.array([[1 / 4, -SQRT3 / 4, SQRT3 / 2], [-SQRT3 / 4, 3 / 4, 1 / 2]])
LEG_LAMBDA_DAGGER = np.array([[-1 / 2, SQRT3 / 2], [SQRT3 / 2, -3 / 2]])
LEG_V_MINUS = np.array([1.0, -2.0, 3.0])
LEG_V_PLUS = np.array([3 / 4 - SQRT3 / 2, -1 / 2 + SQRT3 / 4, 1 - SQRT3 / 2])
LEG_IMPULSE = np.array([1 / 2 + SQRT3, -3 - SQRT3 / 2])
LEG_ACCELERATION = np.array([7 / 8 - 3 * SQRT3, -1 - 7 * SQRT3 / 8, 5.0])
LEG_MULTIPLIERS = np.array([-7 / 4 + 6 * SQRT3, -18 + 7 * SQRT3 / 4])


def definite(rng: np.random.Generator, n: int) -> np.ndarray:
    J = rng.standard_normal((n, n))
    return J @ J.T + np.eye(n)


def random_system(seed: int, n: int, m: int, massless: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return M of rank n - massless (a full congruence, no zero rows) and A of full rank."""
    rng = np.random.default_rng(seed)
    J = rng.standard_normal((n - massless, n))
    return J.T @ J, rng.standard_normal((m, n))


def two_link_leg(t1: float, t2: float) -> da.KKT:
    """Return case_two_link_massless_leg of the same file: hip mass 2, two massless unit links, toe pinned."""
    A = [[1, 0, np.cos(t1), np.cos(t2)], [0, 1, np.sin(t1), np.sin(t2)]]
    return da.KKT(np.diag([2, 2, 0, 0]), A, names=["toe x", "toe y"], coordinates=["x", "y", "t1", "t2"])


# J1: (1)-(2) ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "m"), [(1, 1), (4, 2), (2, 5), (6, 6)])
@pytest.mark.parametrize("symmetric", [True, False])
def test_J1_block_inverse_is_a_left_and_a_right_inverse(n: int, m: int, symmetric: bool) -> None:
    whole = np.random.default_rng(n * m).standard_normal((n + m, n + m)) + (n + m) * np.eye(n + m)
    if symmetric:
        whole = whole + whole.T
    E, F, G, H = whole[:n, :n], whole[:n, n:], whole[n:, :n], whole[n:, n:]
    (P, Q), (R, S) = (blocks := block_inverse(E, F, G, H))[:2], blocks[2:]
    inverse = np.block([[P, Q], [R, S]])
    np.testing.assert_allclose(inverse @ whole, np.eye(n + m), atol=ROUNDING)
    np.testing.assert_allclose(whole @ inverse, np.eye(n + m), atol=ROUNDING)


def test_J1_block_inverse_of_a_batch() -> None:
    whole = np.random.default_rng(1).standard_normal((7, 5, 5)) + 5 * np.eye(5)
    P, Q, R, S = block_inverse(whole[:, :3, :3], whole[:, :3, 3:], whole[:, 3:, :3], whole[:, 3:, 3:])
    inverse = np.concatenate([np.concatenate([P, Q], -1), np.concatenate([R, S], -1)], -2)
    np.testing.assert_allclose(inverse, np.linalg.inv(whole), atol=ROUNDING)


# J2: (3)-(4) ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "m"), [(1, 1), (3, 1), (5, 3), (8, 8)])
def test_J2_schur_route_equals_the_dense_inverse(n: int, m: int) -> None:
    M, A = definite(np.random.default_rng(n), n), np.random.default_rng(m).standard_normal((m, n))
    inverse = np.linalg.inv(oracles.dense_matrix(M, A))
    K = da.KKT(M, A, route="schur")
    for column, unit in enumerate(np.eye(n + m)):
        s = K.solve(unit[:n], -unit[n:])
        got = np.concatenate([s.acceleration, s.multipliers])
        np.testing.assert_allclose(got, inverse[:, column], atol=ROUNDING * np.abs(inverse).max())
        assert s.certificate.answer.factor.name == "schur"


# J3: (5), (34), (35) -------------------------------------------------------------------------------------------------


def test_J3_dagger_of_the_crank_slider_is_equation_35_to_the_last_digit() -> None:
    dagger = CRANK_SLIDER.dagger
    np.testing.assert_array_equal(dagger.M, [[1, 2], [2, 4]])
    np.testing.assert_array_equal(dagger.A, [[0, -1]])
    np.testing.assert_array_equal(dagger.Lambda, [[0]])


def test_J3_block_matrix_of_the_crank_slider_is_equation_34() -> None:
    np.testing.assert_array_equal(block_matrix(CRANK_SLIDER.M, CRANK_SLIDER.A), [[1, 0, 2], [0, 0, -1], [2, -1, 0]])


def test_J3_dagger_of_the_massless_leg_is_exact() -> None:
    dagger = da.KKT(LEG_M, LEG_A).dagger
    np.testing.assert_allclose(dagger.M, LEG_M_DAGGER, atol=1e-15)
    np.testing.assert_allclose(dagger.A, LEG_A_DAGGER, atol=1e-15)
    np.testing.assert_allclose(dagger.Lambda, LEG_LAMBDA_DAGGER, atol=1e-15)


@pytest.mark.parametrize(("n", "m", "massless"), [(3, 1, 1), (5, 3, 2), (6, 6, 4), (8, 5, 5)])
def test_J3_dagger_of_random_singular_masses(n: int, m: int, massless: int) -> None:
    M, A = random_system(n + m, n, m, massless)
    dagger = da.KKT(M, A).dagger
    inverse = np.linalg.inv(oracles.dense_matrix(M, A))
    scale = np.abs(inverse).max()
    np.testing.assert_allclose(dagger.M, inverse[:n, :n], atol=1e-10 * scale)
    np.testing.assert_allclose(dagger.A, inverse[n:, :n], atol=1e-10 * scale)
    np.testing.assert_allclose(dagger.Lambda, inverse[n:, n:], atol=1e-10 * scale)


def test_J3_dagger_of_a_singular_block_matrix_is_refused_by_name() -> None:
    K = da.KKT(np.eye(2), [[1, 1], [2, 2]], names=["left", "right"])
    with pytest.raises(da.SolvabilityError, match="right = 2 left"):
        _ = K.dagger


def test_J3_dagger_of_a_batch_is_nan_only_where_there_is_none() -> None:
    M = np.stack([np.eye(2), np.eye(2), np.full((2, 2), np.nan)])
    A = np.array([[[1.0, 1.0]], [[0.0, 0.0]], [[1.0, 1.0]]])
    dagger = da.KKT(M, A).dagger
    np.testing.assert_allclose(dagger.M[0], [[0.5, -0.5], [-0.5, 0.5]], atol=ROUNDING)
    assert np.isnan(dagger.M[1:]).all()


# J4: (6)-(9) ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "m"), [(2, 1), (5, 3), (7, 7)])
def test_J4_closed_forms_and_relations_for_invertible_masses(n: int, m: int) -> None:
    M, A = definite(np.random.default_rng(10 + n), n), np.random.default_rng(20 + m).standard_normal((m, n))
    dagger, Mi = da.KKT(M, A).dagger, np.linalg.inv(M)
    apparent = np.linalg.inv(A @ Mi @ A.T)
    close = {"atol": 1e-10 * np.abs(apparent).max()}
    np.testing.assert_allclose(dagger.M, Mi - Mi @ A.T @ apparent @ A @ Mi, **close)  # (6)
    np.testing.assert_allclose(dagger.A, apparent @ A @ Mi, **close)  # (7)
    np.testing.assert_allclose(dagger.Lambda, -apparent, **close)  # (8)
    np.testing.assert_allclose(dagger.A, -dagger.Lambda @ A @ Mi, **close)  # (9)
    np.testing.assert_allclose(dagger.M, Mi - Mi @ A.T @ dagger.A, **close)
    np.testing.assert_allclose(dagger.M, Mi - dagger.A.T @ A @ Mi, **close)


# J5: (10)-(14) -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "m", "massless"), [(2, 1, 0), (5, 3, 0), (5, 3, 2), (6, 6, 6)])
def test_J5_residuals_are_at_rounding(n: int, m: int, massless: int) -> None:
    residuals = da.KKT(*random_system(n * m, n, m, massless)).dagger.residuals()
    assert {"(11)", "(12)", "(13)", "(14)", "(17)", "(18)"} <= {name[:4] for name in residuals}
    assert max(float(value) for value in residuals.values()) < ROUNDING, residuals


@pytest.mark.parametrize("block", ["M", "A", "Lambda"])
@pytest.mark.parametrize("size", [1e-9, 1e-6, 1.0])
def test_J5_a_corrupted_dagger_is_caught(block: str, size: float) -> None:
    good = da.KKT(*random_system(3, 5, 3, 1)).dagger
    parts = {name: getattr(good, name).copy() for name in ("M", "A", "Lambda", "mass", "rows")}
    for entry in np.ndindex(parts[block].shape):
        corrupted = {**parts, block: parts[block].copy()}
        corrupted[block][entry] += size * np.abs(parts[block]).max()
        assert max(float(v) for v in Dagger(**corrupted).residuals().values()) > 1e-3 * size


# J6: (15)-(18) -------------------------------------------------------------------------------------------------------


@given(strategies.regular(scaled=False))
def test_J6_symmetry_signs_and_ranks(system: strategies.System) -> None:
    K = da.KKT(system.M, system.A)
    dagger, n, m = K.dagger, system.n, system.m
    nullity = n - system.mass_rank
    assert K.diagnose().dagger_ranks == (n - m, m - nullity)
    assert K.diagnose().mass_rank == system.mass_rank
    noise = 1e-11 * max(np.abs(block).max(initial=0.0) for block in (dagger.M, dagger.A, dagger.Lambda))
    for matrix, rank, sign in ((dagger.M, n - m, 1.0), (dagger.Lambda, m - nullity, -1.0)):
        np.testing.assert_array_equal(matrix, matrix.T)
        values = sign * np.linalg.eigvalsh(matrix) if matrix.size else np.zeros(0)
        assert np.all(values >= -noise)
        assert np.count_nonzero(values > noise) == rank


@pytest.mark.parametrize(("n", "m", "massless"), [(4, 2, 0), (4, 2, 1), (5, 3, 3), (6, 1, 1)])
def test_J6_numerical_ranks_and_null_spaces(n: int, m: int, massless: int) -> None:
    M, A = random_system(7, n, m, massless)
    dagger = da.KKT(M, A).dagger
    assert np.linalg.matrix_rank(dagger.M, tol=1e-9 * np.abs(dagger.M).max()) == n - m
    scale = np.abs(dagger.Lambda).max() or 1.0
    assert np.linalg.matrix_rank(dagger.Lambda, tol=1e-9 * max(scale, 1.0)) == m - massless
    null = np.linalg.svd(M)[2][n - massless :].T  # (15)-(16): A maps null(M) into null(Lambda+), injectively
    np.testing.assert_allclose(dagger.Lambda @ A @ null, 0.0, atol=1e-9 * max(scale, 1.0))
    assert np.linalg.matrix_rank(A @ null) == massless


def test_J6_a_single_constraint_on_singular_masses_has_zero_lambda() -> None:
    np.testing.assert_array_equal(da.KKT(np.diag([3, 0]), [[1, 5]]).dagger.Lambda, [[0]])


# J7: section 3 -------------------------------------------------------------------------------------------------------


@given(strategies.regular(definite=True, scaled=False, least_rows=1), st.data())
def test_J7_least_energy_velocity_is_optimal(system: strategies.System, data: st.DataObject) -> None:
    c = data.draw(strategies.vectors(system.m))
    K = da.KKT(system.M, system.A)
    v = K.least_energy_velocity(c)
    best = oracles.quadratic_program(system.M, np.zeros(system.n), system.A, c)
    np.testing.assert_allclose(v, best, atol=QP * (1 + np.abs(best).max()))
    np.testing.assert_allclose(v, K.dagger.A.T @ c, atol=1e-9 * (1 + np.abs(v).max()))
    assert v @ system.M @ v <= best @ system.M @ best * (1 + QP) + QP


@given(strategies.solvable(scaled=False), st.data())
def test_J7_projection_is_the_nearest_admissible_velocity(system: strategies.System, data: st.DataObject) -> None:
    v = data.draw(strategies.vectors(system.n))
    K = da.KKT(system.M, system.A)
    projected = K.project_velocity(v)
    size = 1 + np.abs(v).max() + np.abs(projected).max()
    if system.m:
        best = oracles.quadratic_program(system.M, -system.M @ v, system.A, np.zeros(system.m))
        np.testing.assert_allclose(projected, best, atol=QP * size)
    np.testing.assert_allclose(system.A @ projected, 0.0, atol=1e-9 * size * (1 + np.abs(system.A).max(initial=0)))
    np.testing.assert_allclose(K.project_velocity(projected), projected, atol=1e-9 * size)


def test_J7_an_admissible_velocity_is_left_alone() -> None:
    np.testing.assert_allclose(CRANK_SLIDER.project_velocity([3, 6]), [3, 6], rtol=1e-15)


# J8: (19)-(30) -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "m"), [(2, 1), (6, 4), (5, 5)])
def test_J8_dagger_traditional_and_block_solutions_agree(n: int, m: int) -> None:
    rng = np.random.default_rng(n + 10 * m)
    M, A = definite(rng, n), rng.standard_normal((m, n))
    force, drift = rng.standard_normal(n), rng.standard_normal(m)
    K = da.KKT(M, A)
    s, dagger, Mi = K.solve(force, drift), K.dagger, np.linalg.inv(M)
    lam = np.linalg.solve(A @ Mi @ A.T, A @ Mi @ force + drift)  # (25)
    for a, multipliers in (
        (dagger.M @ force - dagger.A.T @ drift, dagger.A @ force - dagger.Lambda @ drift),  # (23), (28), (30)
        (Mi @ (force - A.T @ lam), lam),  # (24), (25)
    ):
        np.testing.assert_allclose(s.acceleration, a, atol=1e-10 * (1 + np.abs(a).max()))
        np.testing.assert_allclose(s.multipliers, multipliers, atol=1e-10 * (1 + np.abs(lam).max()))
    np.testing.assert_allclose(M @ s.acceleration + A.T @ s.multipliers, force, atol=1e-10 * (1 + np.abs(lam).max()))
    np.testing.assert_allclose(A @ s.acceleration, -drift, atol=1e-10 * (1 + np.abs(s.acceleration).max()))
    np.testing.assert_array_equal(s.reactions, -s.multipliers)


@pytest.mark.parametrize("route", ["schur", "gauss", "short_form", "gram_form"])
def test_J8_the_traditional_routes_refuse_singular_masses(route: str) -> None:
    with pytest.raises(da.SolvabilityError, match="M is singular"):
        CRANK_SLIDER.solve([1, 0], route=route)
    np.testing.assert_allclose(CRANK_SLIDER.solve([1, 0]).acceleration, [1, 2], rtol=1e-15)


def test_J8_motion_of_the_massless_leg_is_exact() -> None:
    theta_rate = LEG_V_PLUS[2]
    drift = theta_rate**2 * np.array([-0.5, SQRT3 / 2])  # A_dot v for A = [[1, 0, cos], [0, 1, sin]] at pi / 6
    s = da.KKT(LEG_M, LEG_A).solve([0, -20, 0], drift)
    np.testing.assert_allclose(s.acceleration, LEG_ACCELERATION, rtol=1e-14)
    np.testing.assert_allclose(s.multipliers, LEG_MULTIPLIERS, rtol=1e-14)


# J9: (31)-(35) -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("force", [(1.0, 0.0), (0.3, -0.2)])
@pytest.mark.parametrize("drift", [0.0, 0.4])
def test_J9_small_masses_converge_to_the_massless_answer(force: tuple[float, float], drift: float) -> None:
    limit = da.KKT(oracles.two_link_mass(0.0), [[2, -1]]).solve(force, [drift])
    errors = []
    for m2 in (1e-2, 1e-4, 1e-6, 1e-8, 1e-10, 1e-12):
        s = da.KKT(oracles.two_link_mass(m2), [[2, -1]]).solve(force, [drift])
        assert s.ok
        error = np.abs(s.acceleration - limit.acceleration).max(), np.abs(s.multipliers - limit.multipliers).max()
        errors.append(max(error) / m2)
    # first order in m2, with the same constant throughout (the last one feels rounding of 1e-16 / 1e-12)
    np.testing.assert_allclose(errors[1:-1], errors[1], rtol=1e-2)
    assert errors[0] == pytest.approx(errors[1], rel=0.2)


def test_J9_massless_crank_slider_is_solved_exactly() -> None:
    s = CRANK_SLIDER.solve([5, 1], [3])
    np.testing.assert_array_equal(s.acceleration, [7, 17])  # M+ (5, 1) - A+^T 3
    np.testing.assert_array_equal(s.multipliers, [-1])  # A+ (5, 1) - Lambda+ 3
    assert s.status is da.Status.UNIQUE
    assert s.certificate.inertia == (2, 1, 0)


# J10: (33) -----------------------------------------------------------------------------------------------------------


def test_J10_free_massless_motion_is_named_by_coordinate() -> None:
    K = da.KKT(oracles.two_link_mass(0.0), None, coordinates=["crank", "rod"])
    assert K.diagnose().massless_motions == ("rod",)
    assert not K.diagnose().solvable
    with pytest.raises(da.SolvabilityError, match="free massless motion: rod") as caught:
        K.solve([1, 0])
    assert caught.value.diagnosis.verdict is da.Status.MASSLESS


def test_J10_aligned_massless_leg_is_ill_posed_and_bent_leg_is_not() -> None:
    bent = two_link_leg(np.pi / 6, np.pi / 3)
    assert bent.diagnose().verdict is da.Status.UNIQUE
    assert abs(np.linalg.det(oracles.dense_matrix(bent.M, bent.A))) == pytest.approx(1.0)
    aligned = two_link_leg(np.pi / 6, np.pi / 6).diagnose()
    assert aligned.verdict is da.Status.MASSLESS
    assert aligned.massless_motions == ("-t1 + t2",)
    assert aligned.inertia == (3, 2, 1)


def test_J10_condition_33_alone_is_not_enough_for_an_inverse() -> None:
    report = da.KKT(np.eye(2), [[1, 0], [1, 0]]).diagnose()
    assert report.solvable
    assert report.dagger_ranks is None


@given(strategies.systems())
def test_J10_reduced_mass_matrix_is_invertible_exactly_when_33_holds(system: strategies.System) -> None:
    report = da.KKT(system.M, system.A).diagnose()
    Z = oracles.integer_null(system.A)
    reduced_rank = strategies.exact_rank(Z.T @ system.M @ Z) if Z.size else 0
    assert report.solvable == (reduced_rank == Z.shape[1])
    assert report.massless.shape == (system.n, Z.shape[1] - reduced_rank)
    size = np.abs(report.massless).max(initial=1.0)
    bound = 1e-8 * size
    assert np.abs(system.M @ report.massless).max(initial=0.0) <= bound * np.abs(system.M).max()
    assert np.abs(system.A @ report.massless).max(initial=0.0) <= bound * np.abs(system.A).max(initial=0.0)


# J11: after (35) -----------------------------------------------------------------------------------------------------


def test_J11_holding_the_massless_link_leaves_the_first_link_alone() -> None:
    K = da.KKT(oracles.two_link_mass(0.0), None, coordinates=["crank", "rod"])
    s = K.solve([3, 0.5], massless="hold")
    np.testing.assert_allclose(s.acceleration, [3, 0], atol=1e-15)
    assert s.status is da.Status.HELD
    assert s.ok
    np.testing.assert_allclose(np.abs(s.held.motions), [[0], [1]])
    np.testing.assert_allclose(s.held.motions @ s.held.forces, [0, -0.5])  # against the push of 0.5


@given(st.integers(1, 4), st.integers(1, 3), st.data())
def test_J11_the_rest_moves_as_the_reduced_system(n: int, free: int, data: st.DataObject) -> None:
    M, A = data.draw(strategies.masses(n, definite=True)), data.draw(strategies.rows(n, data.draw(st.integers(0, n))))
    force, drift = data.draw(strategies.vectors(n + free)), -A @ data.draw(strategies.vectors(n))
    wide_M, wide_A = np.zeros((n + free, n + free)), np.zeros((len(A), n + free))
    wide_M[:n, :n], wide_A[:, :n] = M, A
    held = da.KKT(wide_M, wide_A).solve(force, drift, massless="hold")
    rest = da.KKT(M, A).solve(force[:n], drift)
    size = 1 + np.abs(rest.acceleration).max() + np.abs(rest.multipliers).max(initial=0)
    np.testing.assert_allclose(held.acceleration[:n], rest.acceleration, atol=1e-9 * size)
    np.testing.assert_allclose(held.acceleration[n:], 0.0, atol=1e-9 * size)
    np.testing.assert_allclose(held.multipliers, rest.multipliers, atol=1e-9 * size)
    np.testing.assert_allclose((held.held.motions @ held.held.forces)[n:], -force[n:], atol=1e-9 * size)


# J12: end of section 5 -----------------------------------------------------------------------------------------------

BLOCK_DIGITS = 1e-13
"""What the block form keeps at every mass ratio: thirteen digits."""


def traditional(M: np.ndarray, A: np.ndarray, f: np.ndarray, drift: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (24)-(25) as written, with an explicit inverse of M."""
    Mi = np.linalg.inv(M)
    lam = np.linalg.inv(A @ Mi @ A.T) @ (A @ Mi @ f + drift)
    return Mi @ (f - A.T @ lam), lam


@pytest.mark.parametrize("exponent", range(17))
def test_J12_the_block_form_keeps_its_digits_at_every_mass_ratio(exponent: int) -> None:
    M, A = oracles.two_link_mass(10.0**-exponent), np.array([[2.0, -1.0]])
    force, drift = np.array([0.3, -0.7]), np.array([0.9])
    a, lam = oracles.mp_solution(M, A, force, -drift)
    s = da.KKT(M, A).solve(force, drift)
    dagger = da.KKT(M, A).dagger
    assert s.ok
    for got in (s.acceleration, dagger.M @ force - dagger.A.T @ drift):
        assert np.abs(got - a).max() <= BLOCK_DIGITS * np.abs(a).max()
    assert np.abs(s.multipliers - lam).max() <= BLOCK_DIGITS * np.abs(lam).max()


def test_J12_the_traditional_form_loses_the_digits_of_the_mass_ratio() -> None:
    A, force, drift = np.array([[2.0, -1.0]]), np.array([0.3, -0.7]), np.array([0.9])
    errors = []
    for exponent in (0, 4, 8, 12, 16):
        M = oracles.two_link_mass(10.0**-exponent)
        truth = oracles.mp_solution(M, A, force, -drift)[0]
        errors.append(np.abs(traditional(M, A, force, drift)[0] - truth).max() / np.abs(truth).max())
    assert errors[0] < 1e-14
    assert errors[2] > 1e-10
    assert errors[3] > 1e-6
    assert errors[4] > 1e-2


@pytest.mark.parametrize("exponent", [0, 4, 8, 12, 16])
@pytest.mark.parametrize("seed", range(3))
def test_J12_chains_of_mixed_masses(exponent: int, seed: int) -> None:
    """Heavy and light point masses in a row, linked by distances: A is full, and every other mass is tiny."""
    rng, n, m = np.random.default_rng(seed), 8, 5
    M = np.diag(np.where(np.arange(n) % 2, 10.0**-exponent, 1.0))
    A = rng.integers(-3, 4, (m, n)) + np.eye(m, n)
    force, drift = rng.standard_normal(n), rng.standard_normal(m)
    a, lam = oracles.mp_solution(M, A, force, -drift)
    s = da.KKT(M, A).solve(force, drift)
    cond = s.certificate.condition
    assert s.ok
    assert np.abs(s.acceleration - a).max() <= 1e-13 * cond * np.abs(a).max()
    assert np.abs(s.acceleration - a).max() <= 1e-11 * np.abs(a).max()
    assert np.abs(s.multipliers - lam).max() <= 1e-11 * np.abs(lam).max()


# J13: impact ---------------------------------------------------------------------------------------------------------


def test_J13_plastic_impact_of_the_massless_leg_is_exact() -> None:
    hit = da.KKT(LEG_M, LEG_A).impact(LEG_V_MINUS)
    np.testing.assert_allclose(hit.velocity, LEG_V_PLUS, rtol=1e-14)
    np.testing.assert_allclose(hit.impulse, LEG_IMPULSE, rtol=1e-14)
    np.testing.assert_array_equal(hit.reactions, -hit.impulse)


@pytest.mark.parametrize("e", [0.0, 0.3, 1.0])
def test_J13_impact_follows_the_formula_in_dagger_terms(e: float) -> None:
    M, A = random_system(5, 6, 3, 2)
    K, v = da.KKT(M, A), np.arange(1.0, 7.0)
    hit, dagger = K.impact(v, e), K.dagger
    np.testing.assert_allclose(hit.velocity, dagger.M @ M @ v - e * dagger.A.T @ A @ v, atol=1e-11)
    np.testing.assert_allclose(hit.impulse, -(1 + e) * dagger.Lambda @ A @ v, atol=1e-11)


@given(strategies.solvable(), st.data(), st.floats(0, 1))
def test_J13_impact_momentum_and_energy(system: strategies.System, data: st.DataObject, e: float) -> None:
    v = data.draw(strategies.vectors(system.n))
    hit = da.KKT(system.M, system.A).impact(v, e)
    momentum = np.abs(system.M) @ (np.abs(v) + np.abs(hit.velocity)) + np.abs(system.A.T) @ np.abs(hit.impulse)
    defect = system.M @ (hit.velocity - v) + system.A.T @ hit.impulse
    assert np.all(np.abs(defect) <= 1e-10 * momentum.max(initial=0) + 1e-300)
    closing = np.abs(system.A) @ (np.abs(v) + np.abs(hit.velocity))
    assert np.all(np.abs(system.A @ hit.velocity + e * system.A @ v) <= 1e-9 * closing.max(initial=0) + 1e-300)
    scale = np.abs(system.M).max() * (np.abs(v).max() + np.abs(hit.velocity).max()) ** 2
    assert hit.energy_after <= hit.energy_before + 1e-10 * scale
    np.testing.assert_allclose(hit.energy_loss, hit.energy_before - hit.energy_after)


def test_J13_elastic_impact_keeps_the_energy() -> None:
    M, A = random_system(11, 6, 3, 1)
    hit = da.KKT(M, A).impact(np.arange(6.0), 1.0)
    assert hit.energy_after == pytest.approx(hit.energy_before, rel=1e-12)


def test_J13_restitution_per_contact() -> None:
    # two unit masses, each against its own wall: one stops dead, the other bounces
    hit = da.KKT(np.eye(2), np.eye(2)).impact([1, 2], [0.0, 0.5])
    np.testing.assert_allclose(hit.velocity, [0, -1], atol=1e-15)
    np.testing.assert_allclose(hit.reactions, [-1, -3], atol=1e-15)


def test_J13_impacts_of_a_batch() -> None:
    M, A = random_system(12, 4, 2)
    v = np.random.default_rng(0).standard_normal((5, 3, 4))
    hits = da.KKT(M, A).impact(v, 0.5)
    assert hits.energy_before.shape == (5, 3)
    for index in np.ndindex(5, 3):
        one = da.KKT(M, A).impact(v[index], 0.5)
        np.testing.assert_allclose(hits.velocity[index], one.velocity, atol=ROUNDING)
        np.testing.assert_allclose(hits.impulse[index], one.impulse, atol=ROUNDING)
        np.testing.assert_allclose(hits.energy_after[index], one.energy_after, atol=ROUNDING)


@pytest.mark.parametrize("e", [0.0, 0.5, 1.0])
def test_J13_redundant_contacts_with_an_admissible_velocity_change_nothing(e: float) -> None:
    """A v is zero up to rounding: its noise is no contradiction among the rows."""
    A = np.array([[0.1, 0.2, -0.3], [0.3, 0.6, -0.9], [0.7, 1.4, -2.1]])
    v = np.ones(3)
    np.testing.assert_allclose(da.KKT(np.eye(3), A).impact(v, e).velocity, v, atol=1e-14)


# J14: practice problems ----------------------------------------------------------------------------------------------


@given(strategies.regular())
def test_J14_lambda_is_minus_A_dagger_M_A_dagger_transposed(system: strategies.System) -> None:
    dagger = da.KKT(system.M, system.A).dagger
    size = np.abs(dagger.A).max(initial=0) ** 2 * np.abs(system.M).max() + np.abs(dagger.Lambda).max(initial=0)
    defect = dagger.Lambda + dagger.A @ system.M @ dagger.A.T
    assert np.all(np.abs(defect) <= 1e-9 * size)


def injective_surjective(matrix: np.ndarray) -> tuple[bool, bool]:
    rank = np.linalg.matrix_rank(matrix, tol=1e-9 * max(np.abs(matrix).max(), 1e-3))
    return bool(rank == matrix.shape[1]), bool(rank == matrix.shape[0])


def test_J14_injective_and_surjective_maps_for_invertible_masses() -> None:
    M, A = random_system(4, 5, 2)
    dagger = da.KKT(M, A).dagger
    assert injective_surjective(M) == (True, True)
    assert injective_surjective(A) == (False, True)
    assert injective_surjective(A.T) == (True, False)
    assert injective_surjective(dagger.M) == (False, False)
    assert injective_surjective(dagger.A) == (False, True)
    assert injective_surjective(dagger.A.T) == (True, False)
    assert injective_surjective(dagger.Lambda) == (True, True)


def test_J14_injective_and_surjective_maps_for_singular_masses() -> None:
    M, A = random_system(4, 5, 2, massless=1)
    dagger = da.KKT(M, A).dagger
    assert injective_surjective(M) == (False, False)
    assert injective_surjective(dagger.M) == (False, False)
    assert injective_surjective(dagger.A) == (False, True)
    assert injective_surjective(dagger.Lambda) == (False, False)
