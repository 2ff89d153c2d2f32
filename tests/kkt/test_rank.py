"""The one policy of rank: rows in the metric of the mass, in any units and precision, by every route alike."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalembert import KKT, ModelError, SolvabilityError, Status
from dalembert.kkt import FACTORISATIONS
from dalembert.kkt.limits import DOUBT, FILE, doubt_level, rounding_level
from dalembert.kkt.rows import independent_rows, row_structure
from tests.kkt import strategies

Array = np.ndarray

ROUNDING_COLUMN = np.array([[1e-3, 0.0, 1e-16], [2e-3, 0.0, -1e-16], [1.0, 1.0, 0.0]])
"""Rows of a simulator: the third column is rounding beside the others, and the first two rows are parallel."""

FORCE = np.array([1.0, 2.0, 3.0])


def dependent_rows(rng: np.random.Generator, m: int, n: int, rank: int) -> Array:
    """Return rows of that rank, exact up to the rounding of one product."""
    return rng.standard_normal((m, rank)) @ rng.standard_normal((rank, n))


def mass(rng: np.random.Generator, n: int, condition: float = 100.0) -> Array:
    """Return a definite mass matrix."""
    Q, _ = np.linalg.qr(rng.standard_normal((n, n)))
    M = (Q * np.geomspace(1.0, 1.0 / condition, n)) @ Q.T
    return 0.5 * (M + M.T)


# columns and rows of rounding ----------------------------------------------------------------------------------------


def test_a_column_of_rounding_makes_no_row_of_its_own_without_saying_so() -> None:
    s = KKT(np.eye(3), ROUNDING_COLUMN).solve(FORCE)
    assert s.status is Status.ILL_CONDITIONED
    assert "the rank is in doubt" in str(s.certificate)
    assert KKT(np.eye(3), ROUNDING_COLUMN).diagnose().verdict is Status.ILL_CONDITIONED


@pytest.mark.parametrize("options", [{"rank_tolerance": 1e-6}, {"rank": 2}, {"groups": [0, 0, 0]}])
def test_a_column_of_rounding_is_dropped_where_the_user_says_what_is_rounding(options: dict) -> None:
    s = KKT(np.eye(3), ROUNDING_COLUMN, **options).solve(FORCE)
    assert s.status is Status.REDUNDANT
    assert s.certificate.rank == 2
    np.testing.assert_allclose(s.acceleration, [0.0, 0.0, 3.0], atol=1e-12)
    assert np.all(np.abs(s.acceleration - [0.0, 0.0, 3.0]) <= s.certificate.acceleration_error)


@pytest.mark.parametrize("light", [1e-6, 1e-3, 1.0, 1e3])
def test_rounding_beside_its_row_is_rounding_in_any_units_of_coordinates(light: float) -> None:
    A = np.array([[1.0, 0.0, 1e-16], [2.0, 0.0, -1e-16], [1.0, 1.0, 0.0]])
    T = np.array([light, 1.0, 1.0 / light])
    s = KKT(np.diag(T * T), A * T).solve(T * FORCE)
    assert s.status is Status.REDUNDANT
    np.testing.assert_allclose(T * s.acceleration, [0.0, 0.0, 3.0], atol=1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_rows_that_depend_up_to_rounding_have_their_rank(seed: int) -> None:
    """As contact Jacobians of simulators: rank 10 of 12, with light and heavy coordinates."""
    rng = np.random.default_rng(seed)
    T = 10.0 ** rng.uniform(-4, 4, 20)
    A, M = dependent_rows(rng, 12, 20, 10), mass(rng, 20, 1e3)
    A = A * (1.0 + 4e-16 * rng.standard_normal(A.shape))
    s = KKT(T[:, None] * M * T, A * T).solve(T * rng.standard_normal(20))
    assert s.status is Status.REDUNDANT
    assert s.certificate.rank == 10


def test_a_row_that_is_rounding_beside_the_others_is_named() -> None:
    A = np.array([[1.0, 0.0, 0.0], [1e-17, -2e-17, 1e-17], [0.0, 1.0, 0.0]])
    alone = KKT(np.eye(3), A).solve(FORCE)
    assert alone.status is Status.ILL_CONDITIONED
    assert "row 1 is 2e-17 of the longest" in str(alone.certificate)
    together = KKT(np.eye(3), A, groups=[0, 0, 0]).solve(FORCE)
    assert together.status is Status.REDUNDANT
    np.testing.assert_allclose(together.acceleration, [0.0, 0.0, 3.0], atol=1e-15)
    np.testing.assert_array_equal(together.certificate.unique, [True, False, True])


def test_groups_keep_the_units_of_different_constraints_apart() -> None:
    A = np.array([[1e-20, 0.0, 0.0], [0.0, 1.0, 0.0]])
    s = KKT(np.eye(3), A, groups=[0, 1]).solve(FORCE)
    assert s.status is Status.UNIQUE
    np.testing.assert_allclose(s.acceleration, [0.0, 0.0, 3.0], atol=1e-12)


# units ---------------------------------------------------------------------------------------------------------------


@given(st.integers(0, 10_000))
def test_no_units_change_the_rank(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 8))
    m = int(rng.integers(1, 8))
    rank = int(rng.integers(1, min(m, n) + 1))
    A, M = dependent_rows(rng, m, n, rank), mass(rng, n)
    if rng.random() < 0.4:  # a massless coordinate, and one that is massless in a combination
        M[0] = M[:, 0] = 0.0
    T, R = 10.0 ** rng.uniform(-8, 8, n), 10.0 ** rng.uniform(-5, 5, m)
    plain = row_structure(A, M)
    scaled = row_structure(R[:, None] * A * T, T[:, None] * M * T)
    assert plain.rank == scaled.rank == rank
    assert plain.ambiguous == scaled.ambiguous
    np.testing.assert_allclose(scaled.s[:rank], plain.s[:rank], rtol=1e-6)
    np.testing.assert_array_equal(plain.unique, scaled.unique)


@given(strategies.systems())
def test_the_rank_is_the_exact_one_where_masses_are_singular_too(system: strategies.System) -> None:
    found = row_structure(system.A, system.M)
    assert found.rank == system.rank
    assert not found.ambiguous
    chosen = independent_rows(system.A, system.M)
    assert strategies.exact_rank(system.A[chosen]) == system.rank == chosen.size if chosen.size else system.rank == 0


# precision -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [np.float32, np.float16])
def test_rows_in_few_digits_depend_within_these_digits(kind: type) -> None:
    row = np.random.default_rng(0).standard_normal(4).astype(kind)
    A = np.array([row, kind(0.7) * row])
    assert A.dtype == kind
    s = KKT(np.eye(4), A).solve([1, 2, 3, 4])
    assert s.status is Status.REDUNDANT
    assert np.abs(s.multipliers).max() < 10.0
    once = KKT(np.eye(4), A[:1].astype(float)).solve([1, 2, 3, 4])
    np.testing.assert_allclose(s.acceleration, once.acceleration, atol=20 * float(np.finfo(kind).eps))
    assert np.all(np.abs(s.acceleration - once.acceleration) <= 2 * s.certificate.acceleration_error)


def test_a_single_precision_mass_matrix_is_singular_within_its_digits() -> None:
    J = np.random.default_rng(1).standard_normal((3, 5)).astype(np.float32)
    M = J.T @ J
    assert KKT(M).diagnose().mass_rank == 3
    with pytest.raises(SolvabilityError, match="moves no mass"):
        KKT(M).solve(np.ones(5))


def test_single_precision_right_sides_agree_within_their_digits() -> None:
    rng = np.random.default_rng(2)
    A = dependent_rows(rng, 3, 5, 2).astype(np.float32)
    drift = (A.astype(float) @ rng.standard_normal(5)).astype(np.float32)
    s = KKT(np.eye(5), A).solve(np.ones(5), drift)
    assert s.status is Status.REDUNDANT
    with pytest.raises(SolvabilityError, match="contradict"):
        KKT(np.eye(5), A).solve(np.ones(5), drift + np.float32([0, 0, 1e-2]))


@pytest.mark.parametrize("copies", [1, 70])
def test_a_batch_keeps_the_precision_of_its_arrays(copies: int) -> None:
    row = np.random.default_rng(0).standard_normal(4).astype(np.float32)
    A = np.array([row, np.float32(0.7) * row])
    system = KKT(np.eye(4), np.broadcast_to(A, (copies, 2, 4)))
    s = system.solve([1, 2, 3, 4])
    np.testing.assert_array_equal(s.status, Status.REDUNDANT)
    assert system[0].solve([1, 2, 3, 4]).status is Status.REDUNDANT


# doubt ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("exponent", range(4, 17))
def test_near_parallel_rows_are_unique_in_doubt_or_redundant(exponent: int) -> None:
    angle = 10.0**-exponent
    A = np.array([[1.0, 1.0, 1.0], [1.0, 1.0 + angle, 1.0 - 2 * angle]])
    found = row_structure(A, np.eye(3))
    s = KKT(np.eye(3), A).solve(FORCE)
    if found.rank == 1:
        assert s.status is Status.REDUNDANT
        assert exponent >= 15
    elif found.kept <= DOUBT:
        assert s.status is Status.ILL_CONDITIONED
        assert rounding_level(2, 3) <= found.kept * found.s[0]
    else:
        assert s.status is Status.UNIQUE
        assert exponent <= 9


@pytest.mark.parametrize("light", [1e-4, 1e-6, 3e-7])
@pytest.mark.parametrize("apart", [1e-13, 1e-12])
@pytest.mark.parametrize("copies", [1, 70])
def test_a_light_motion_does_not_hide_that_rows_are_independent(light: float, apart: float, copies: int) -> None:
    """The light motion lengthens both rows; beside it what is between them looks like rounding, and is not."""
    M, A = np.array([[1.0, 1.0 - light], [1.0 - light, 1.0]]), np.array([[1.0, -1.0], [1.0, -1.0 + apart]])
    found = KKT(np.tile(M, (copies, 1, 1)), np.tile(A, (copies, 1, 1))).solve([1.0, 2.0], [-1.0, -1.0])
    assert not np.any(found.certificate.ok)
    told = KKT(M, A).solve([1.0, 2.0], [-1.0, -1.0])
    assert "in doubt" in str(told.certificate)
    assert KKT(M, A, rank_tolerance=1e-9).solve([1.0, 2.0], [-1.0, -1.0]).status is Status.REDUNDANT
    rounded = np.array([[1.0, -1.0], [1.0, -1.0 + 2.3e-16]])
    assert KKT(M, rounded).solve([1.0, 2.0], [-1.0, -1.0]).status is Status.REDUNDANT


def test_limits_of_precision() -> None:
    eps = float(np.finfo(np.float32).eps)
    assert doubt_level() == DOUBT
    assert rounding_level(3, 4, eps) < doubt_level(eps) < 1e-3


@pytest.mark.parametrize("route", ["auto", *FACTORISATIONS])
@pytest.mark.parametrize("copies", [1, 70], ids=["single", "batch"])
@pytest.mark.parametrize("exponent", [3, 6, 9, 11, 13, 16])
def test_no_route_is_surer_than_the_rank(route: str, copies: int, exponent: int) -> None:
    """A light coordinate, or an angle, brings rows near to each other in the metric of the mass."""
    near = 10.0**-exponent
    cases = [
        (np.eye(2), [[2 * near, -1.0], [near, -1.0]]),
        (np.diag([1.0, near**2]), [[2.0, -1.0], [1.0, -1.0]]),
        (np.diag([1.0, 1.0, 0.0]), [[1.0, near, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]),
    ]
    for M, A in cases:
        A = np.array(A)
        n, found = len(M), row_structure(A, M)
        try:
            s = KKT(np.tile(M, (copies, 1, 1)), np.tile(A, (copies, 1, 1))).solve(np.ones(n), route=route)
        except SolvabilityError:
            continue
        for status in np.unique(s.status):
            if Status(status) is Status.UNIQUE:
                assert found.rank == len(A)
                assert not found.ambiguous
            if Status(status) is Status.REDUNDANT:
                assert found.rank < len(A)


@pytest.mark.parametrize("copies", [1, 70], ids=["single", "batch"])
def test_a_tolerance_binds_the_fast_routes_too(copies: int) -> None:
    A = np.array([[1.0, 0.0, 0.0], [1.0, 1e-3, 0.0]])
    s = KKT(np.eye(3), np.tile(A, (copies, 1, 1)), rank_tolerance=1e-2).solve(FORCE)
    np.testing.assert_array_equal(s.status, Status.REDUNDANT)
    np.testing.assert_allclose(s.acceleration[0], [0.0, 2.0, 3.0], atol=1e-2)
    rank = KKT(np.eye(3), np.tile(A, (copies, 1, 1)), rank=1).solve(FORCE)
    np.testing.assert_array_equal(rank.status, Status.REDUNDANT)


# a rank that is given ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("distance", [1e-12, 1e-8, 1e-4, 1e-2])
@pytest.mark.parametrize("seed", range(5))
def test_a_given_rank_is_kept_off_the_manifold(distance: float, seed: int) -> None:
    """Rows off by a distance from rank 3: the answer is off by no more than that, and is not a rank of its own."""
    rng = np.random.default_rng(seed)
    A, M = dependent_rows(rng, 5, 6, 3), mass(rng, 6)
    drift = A @ rng.standard_normal(6)
    near = A + distance * rng.standard_normal(A.shape)
    force = rng.standard_normal(6)
    s = KKT(M, near, rank=3).solve(force, drift, inconsistent="least_squares")
    assert s.ok
    assert s.certificate.rank == 3
    exact = KKT(M, A).solve(force, drift).acceleration
    assert np.abs(s.acceleration - exact).max() <= 1e3 * distance * (1 + np.abs(exact).max())


def test_what_a_given_rank_does_not_explain_is_a_contradiction() -> None:
    A = np.array([[1.0, 0.0], [1.0, 1e-8]])
    with pytest.raises(SolvabilityError, match="contradict"):
        KKT(np.eye(2), A, rank=1).solve([0, 0], [0.0, 1.0])
    assert KKT(np.eye(2), A, rank=1).solve([0, 0], [1.0, 1.0]).status is Status.REDUNDANT


def test_a_given_rank_that_is_lost_is_a_singular_configuration() -> None:
    s = KKT(np.eye(2), [[1.0, 0.0], [1.0, 1e-17]], rank=2).solve([1, 1])
    assert s.status is Status.ILL_CONDITIONED
    assert "a singular configuration" in str(s.certificate)


@pytest.mark.parametrize("rank", [-1, 3, 1.5, True, "two"])
def test_an_impossible_rank_is_refused(rank: object) -> None:
    with pytest.raises(ModelError, match="whole number from 0 to 2"):
        KKT(np.eye(3), np.ones((2, 3)), rank=rank)


@pytest.mark.parametrize("groups", [[0], [0, 1, 2], [0.5, 1.0], "ab"])
def test_groups_are_one_number_per_row(groups: object) -> None:
    with pytest.raises(ModelError, match="2 whole numbers"):
        KKT(np.eye(3), np.ones((2, 3)), groups=groups)


def test_dependent_rows_of_a_tolerance_share_one_answer() -> None:
    """File digits: rows that agree to seven digits, at six."""
    rng = np.random.default_rng(4)
    A = dependent_rows(rng, 4, 6, 2)
    A = A * (1 + 1e-8 * rng.standard_normal(A.shape))
    s = KKT(np.eye(6), A, rank_tolerance=FILE).solve(np.ones(6))
    assert s.status is Status.REDUNDANT
    assert s.certificate.residual_motion <= 1e-14
    assert s.certificate.acceleration_error.max() < 1e-5
    assert np.abs(A @ s.acceleration).max() <= 1e-6


# bars ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("angle", [1e-10, 1e-9, 1e-6, 1e-3])
def test_bars_contain_what_was_removed(angle: float) -> None:
    """Two rows say 0 and 1.6e-10 / angle for a coordinate: its bar reaches both, and ok needs three digits of all."""
    A = [[1, 0], [1, angle], [1, angle]]
    s = KKT(np.eye(2), A).solve([0, 0], [-1, -1, -1 - 1.6e-10])
    bar = s.certificate.acceleration_error[1]
    assert s.certificate.conflict > 1e-11
    for says in (0.0, 1.6e-10 / angle):
        assert abs(s.acceleration[1] - says) <= bar * (1 + 1e-3)
    assert s.ok == (angle == 1e-3)  # at 1e-6 the multipliers are uncertain


# dagger terms have no status -----------------------------------------------------------------------------------------


def test_there_are_no_dagger_terms_where_the_rank_is_in_doubt() -> None:
    with pytest.raises(SolvabilityError, match="in doubt"):
        _ = KKT(np.eye(3), ROUNDING_COLUMN).dagger


# impacts -------------------------------------------------------------------------------------------------------------


def test_an_impact_has_a_status() -> None:
    hit = KKT(np.eye(2), [[1.0, 0.0]]).impact([1.0, 2.0])
    assert hit.ok
    assert hit.status is Status.UNIQUE
    doubtful = KKT(np.eye(3), ROUNDING_COLUMN).impact(FORCE)
    assert not doubtful.ok
    assert doubtful.status is Status.ILL_CONDITIONED


@pytest.mark.parametrize("copies", [3, 70])
def test_a_batch_of_impacts_has_a_status_per_sample(copies: int) -> None:
    A = np.tile(ROUNDING_COLUMN, (copies, 1, 1))
    A[1] = np.eye(3)
    hit = KKT(np.eye(3), A).impact(FORCE)
    assert hit.status[1] == Status.UNIQUE
    assert (np.delete(hit.status, 1) == Status.ILL_CONDITIONED).all()
    np.testing.assert_array_equal(hit.ok, np.arange(copies) == 1)


def test_velocities_without_a_status_are_certified_or_refused() -> None:
    doubtful = KKT(np.eye(3), ROUNDING_COLUMN)
    with pytest.raises(SolvabilityError, match="in doubt"):
        doubtful.project_velocity(FORCE)
    with pytest.raises(SolvabilityError, match="in doubt"):
        doubtful.least_energy_velocity([1.0, 2.0, 3.0])
    batch = KKT(np.eye(3), np.array([ROUNDING_COLUMN, np.eye(3)])).project_velocity(FORCE)
    assert np.isnan(batch[0]).all()
    np.testing.assert_allclose(batch[1], 0.0, atol=1e-15)
