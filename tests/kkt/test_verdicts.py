"""What a solve promises: every row of the table in the design, with names in the messages."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalembert import KKT, DalembertError, SolvabilityError, Status
from tests.kkt import oracles, strategies

CLOSE = 1e-8
"""Agreement with exact solutions of integer systems, relative to their largest entry."""

DOOR = KKT(
    np.diag([2.0, 2.0, 1.0]),
    [[1, 0, 0], [0, 1, 0], [1, 1, 0], [0, 0, 1]],
    names=["upper hinge", "lower hinge", "brace", "latch"],
    coordinates=["x", "y", "angle"],
)
"""A door with one hinge too many: brace = upper + lower hinge; the latch is on its own."""


# Row 1: full row rank, definite -> unique ---------------------------------------------------------------------------


@given(strategies.regular(), st.data())
def test_full_rank_and_definite_is_unique(system: strategies.System, data: st.DataObject) -> None:
    K = KKT(system.M, system.A)
    s = K.solve(data.draw(strategies.vectors(system.n)), data.draw(strategies.vectors(system.m)))
    assert s.status is Status.UNIQUE
    assert s.ok
    assert s.certificate.unique.all()
    assert s.certificate.rank == system.m
    assert s.certificate.inertia == (system.n, system.m, 0)
    assert s.multiplier_basis.shape == (system.m, 0)
    assert K.diagnose().verdict is Status.UNIQUE
    assert not K.diagnose().redundant


# Row 2: rank deficient, consistent -> unique a, family of lam --------------------------------------------------------


def test_redundant_rows_are_named_with_their_combination() -> None:
    report = DOOR.diagnose()
    assert report.verdict is Status.REDUNDANT
    assert report.redundant_names == ("brace",)
    np.testing.assert_allclose(report.redundant[2], [1, 1, 0, 0])
    assert "redundant: brace = upper hinge + lower hinge" in str(report)
    assert report.rank == 3
    assert report.rank_gap > 1e10


def test_uniqueness_follows_wojtyra() -> None:
    s = DOOR.solve([1, 2, 3])
    np.testing.assert_array_equal(s.certificate.unique, [False, False, False, True])
    np.testing.assert_array_equal(DOOR.diagnose().unique, [False, False, False, True])
    assert "reactions not unique: upper hinge, lower hinge, brace" in str(DOOR.diagnose())
    assert "reactions unique: latch" in str(DOOR.diagnose())
    assert "unique reactions: 1 of 4" in str(s.certificate)


def test_the_multiplier_basis_spans_the_family() -> None:
    s = DOOR.solve([1, 2, 3])
    np.testing.assert_allclose(DOOR.diagnose().multiplier_basis, [[-1], [-1], [1], [0]])
    for basis in (s.multiplier_basis, DOOR.diagnose().multiplier_basis):
        assert basis.shape == (4, 1)
        other = s.multipliers + 7 * basis[:, 0]
        np.testing.assert_allclose(DOOR.M @ s.acceleration + DOOR.A.T @ other, [1, 2, 3], atol=1e-14)


@given(strategies.redundant(), st.data())
def test_consistent_redundant_rows_give_unique_accelerations(system: strategies.System, data: st.DataObject) -> None:
    force, drift = data.draw(strategies.vectors(system.n)), data.draw(strategies.in_range(system))
    K = KKT(system.M, system.A)
    s = K.solve(force, drift)
    assert s.status is Status.REDUNDANT
    report = K.diagnose(drift)
    assert report.verdict is Status.REDUNDANT
    assert report.rank == s.certificate.rank == system.rank
    assert report.conflict is None
    assert report.multiplier_basis.shape == s.multiplier_basis.shape == (system.m, system.m - system.rank)
    # a reaction is unique exactly when leaving its row out lowers the rank
    alone = [strategies.exact_rank(np.delete(system.A, i, axis=0)) < system.rank for i in range(system.m)]
    np.testing.assert_array_equal(s.certificate.unique, alone)
    np.testing.assert_array_equal(report.unique, alone)


@given(strategies.redundant())
def test_each_combination_makes_its_row(system: strategies.System) -> None:
    report = KKT(system.M, system.A).diagnose()
    assert len(report.redundant) == system.m - system.rank
    kept = [i for i in range(system.m) if i not in report.redundant]
    assert strategies.exact_rank(system.A[kept]) == system.rank if kept else system.rank == 0
    for row, coefficients in report.redundant.items():
        assert coefficients[row] == 0.0
        terms = np.abs(coefficients) @ np.abs(system.A) + np.abs(system.A[row])
        assert np.all(np.abs(coefficients @ system.A - system.A[row]) <= 1e-10 * terms.max(initial=0))
        assert all(coefficients[other] == 0.0 for other in report.redundant)


@pytest.mark.parametrize("unit", [1e-12, 1e-6, 1.0, 1e6, 1e12])
def test_combinations_do_not_depend_on_the_units_of_rows(unit: float) -> None:
    report = KKT(np.eye(2), [[1, 0], [unit, 0]], names=["metre", "other unit"]).diagnose()
    assert len(report.redundant) == 1
    ((row, coefficients),) = report.redundant.items()
    np.testing.assert_allclose(coefficients[1 - row], unit if row == 1 else 1 / unit, rtol=1e-12)


def test_two_redundancies_in_different_units_are_both_named() -> None:
    A = np.array([[1, 0, 0], [1e6, 0, 0], [0, 1e6, 0], [0, 1e6, 0]])
    report = KKT(np.eye(3), A, names=["a", "b", "c", "d"]).diagnose()
    assert report.rank == 2
    assert len(report.redundant) == 2
    assert report.multiplier_basis.shape == (4, 2)
    for row, coefficients in report.redundant.items():
        np.testing.assert_allclose(coefficients @ A, A[row], rtol=1e-9)
        assert np.count_nonzero(coefficients) == 1


def test_a_zero_row_is_redundant_and_its_reaction_is_not_unique() -> None:
    K = KKT(np.eye(2), [[1, 0], [0, 0]], names=["wall", "nothing"])
    assert K.diagnose().redundant_names == ("nothing",)
    np.testing.assert_array_equal(K.solve([1, 1]).certificate.unique, [True, False])


def test_more_rows_than_coordinates() -> None:
    s = KKT(np.eye(1), np.ones((3, 1))).solve([6])
    np.testing.assert_allclose(s.multipliers, [2, 2, 2])
    assert s.status is Status.REDUNDANT


# the metric ----------------------------------------------------------------------------------------------------------


def test_default_metric_is_least_norm() -> None:
    np.testing.assert_allclose(KKT(np.eye(1), [[1], [2]]).solve([5]).multipliers, [1, 2])


@pytest.mark.parametrize("metric", [[1.0, 4.0], [[1.0, 0.0], [0.0, 4.0]]], ids=["vector", "matrix"])
def test_metric_as_vector_and_as_matrix(metric: list) -> None:
    # two supports share 5 N; minimise l1^2 + 4 l2^2: l1 = 4, l2 = 1
    np.testing.assert_allclose(KKT(np.eye(1), [[1], [1]], metric=metric).solve([5]).multipliers, [4, 1])


@given(strategies.redundant(scaled=False), st.data())
def test_multipliers_are_optimal_in_the_metric(system: strategies.System, data: st.DataObject) -> None:
    force, drift = data.draw(strategies.vectors(system.n)), data.draw(strategies.in_range(system))
    J = data.draw(strategies.integers(system.m, system.m, 2))
    W = J.T @ J + np.eye(system.m)
    s = KKT(system.M, system.A, metric=W).solve(force, drift)
    a, lam = oracles.exact_solution(system.M, system.A, force, -drift, W)
    np.testing.assert_allclose(s.multipliers, lam, atol=CLOSE * (1 + np.abs(lam).max()))
    np.testing.assert_allclose(s.acceleration, a, atol=CLOSE * (1 + np.abs(a).max()))


def test_multipliers_are_optimal_against_a_quadratic_program() -> None:
    W = np.array([[2.0, 0.5, 0, 0], [0.5, 3.0, 0, 0.1], [0, 0, 1.0, 0], [0, 0.1, 0, 5.0]])
    K = KKT(DOOR.M, DOOR.A, metric=W)
    s = K.solve([1, 2, 3], [0.5, 1.0, 1.5, 0.0])
    best = oracles.quadratic_program(W, np.zeros(4), DOOR.A.T, np.array([1.0, 2, 3]) - DOOR.M @ s.acceleration)
    np.testing.assert_allclose(s.multipliers, best, atol=1e-7)


def test_metric_does_not_change_what_is_unique() -> None:
    plain, weighted = DOOR.solve([3, 1, 2]), KKT(DOOR.M, DOOR.A, metric=[9, 1, 1, 5]).solve([3, 1, 2])
    np.testing.assert_allclose(weighted.acceleration, plain.acceleration, atol=1e-15)
    np.testing.assert_allclose(weighted.multipliers[3], plain.multipliers[3])
    assert not np.allclose(weighted.multipliers, plain.multipliers)


# Row 3: rank deficient, inconsistent ---------------------------------------------------------------------------------


def test_conflicting_rows_are_named_with_the_smallest_conflict() -> None:
    with pytest.raises(SolvabilityError) as caught:
        DOOR.solve([1, 2, 3], [1, 1, 3, 9])
    message, report = str(caught.value), caught.value.diagnosis
    assert "the smallest conflict: rows 'upper hinge', 'lower hinge', 'brace'" in message
    assert "latch" not in message.split("smallest conflict")[1].split("\n")[0]
    assert 'inconsistent="least_squares"' in message
    assert report.verdict is Status.INCONSISTENT
    assert report.conflict.rows == (0, 1, 2)
    assert report.conflict.smallest
    np.testing.assert_allclose(report.conflict.weights @ DOOR.A, 0.0, atol=1e-15)
    assert abs(report.conflict.mismatch) == pytest.approx(1.0)


def test_the_smallest_of_two_conflicts_is_named() -> None:
    A = [[1, 0, 0], [0, 1, 0], [1, 1, 0], [0, 0, 1], [0, 0, 2]]
    names = ["a", "b", "a and b", "c", "twice c"]
    with pytest.raises(SolvabilityError, match="rows 'c', 'twice c'"):
        KKT(np.eye(3), A, names=names).solve(np.zeros(3), [1, 1, 5, 1, 7])


def test_a_zero_row_that_asks_for_something_conflicts_alone() -> None:
    with pytest.raises(SolvabilityError, match="row 'nothing' is zero, yet asks"):
        KKT(np.eye(1), [[1], [0]], names=["wall", "nothing"]).solve([1], [0, 2])


@given(strategies.redundant(), st.data())
def test_inconsistent_rows_are_refused_and_the_conflict_is_real(system: strategies.System, data: st.DataObject) -> None:
    drift = data.draw(strategies.outside_range(system))
    K = KKT(system.M, system.A)
    with pytest.raises(SolvabilityError) as caught:
        K.solve(np.zeros(system.n), drift)
    conflict = caught.value.diagnosis.conflict
    assert K.diagnose(drift).verdict is Status.INCONSISTENT
    rows = list(conflict.rows)
    part = np.column_stack([system.A, drift])[rows]
    assert strategies.exact_rank(part) > strategies.exact_rank(system.A[rows])
    for left_out in rows:  # no smaller one inside
        fewer = [i for i in rows if i != left_out]
        if fewer:
            part = np.column_stack([system.A, drift])[fewer]
            assert strategies.exact_rank(part) == strategies.exact_rank(system.A[fewer])


@given(strategies.redundant(scaled=False), st.data())
def test_least_squares_on_request(system: strategies.System, data: st.DataObject) -> None:
    force, drift = data.draw(strategies.vectors(system.n)), data.draw(strategies.outside_range(system))
    s = KKT(system.M, system.A).solve(force, drift, inconsistent="least_squares")
    assert s.status is Status.LEAST_SQUARES
    assert s.certificate.conflict > 0
    normal = system.A.T @ (system.A @ s.acceleration + drift)  # least squares: the defect is orthogonal to range(A)
    size = np.abs(system.A.T) @ (np.abs(system.A) @ np.abs(s.acceleration) + np.abs(drift))
    assert np.all(np.abs(normal) <= CLOSE * (1 + size.max()))
    motion = force - system.M @ s.acceleration - system.A.T @ s.multipliers
    assert np.all(np.abs(motion) <= CLOSE * (1 + np.abs(force).max() + np.abs(s.multipliers).max() * 9))


def test_least_squares_follows_the_dual_of_the_metric() -> None:
    """Two gauges of one coordinate read 0 and 3; W = (2, 1) makes (c - c*)^T W^-1 (c - c*) least at c* = 2."""
    s = KKT(np.eye(1), [[1], [1]], metric=[2.0, 1.0]).solve([0], [0, -3], inconsistent="least_squares")
    np.testing.assert_allclose(s.acceleration, [2])


def test_rounding_among_dependent_rows_is_no_conflict() -> None:
    rng = np.random.default_rng(3)
    A = rng.standard_normal((3, 5))
    A = np.vstack([A, A[0] / 3 - A[1] * 0.7])
    drift = A @ rng.standard_normal(5)
    assert KKT(np.eye(5), A).solve(np.ones(5), drift).status is Status.REDUNDANT


def test_noise_in_a_drift_that_should_be_zero_is_no_conflict() -> None:
    """A_dot v of a mechanism at rest is rounding noise beside forces of order one."""
    K = KKT(np.eye(2), [[1, 1], [2, 2]])
    assert K.solve([3, 1], [1e-18, -1e-18]).status is Status.REDUNDANT


@pytest.mark.parametrize(
    ("angle", "tolerance", "verdict"),
    [(1e-9, None, Status.REDUNDANT), (1e-7, 1e-5, Status.INCONSISTENT)],
)
def test_diagnosis_and_solve_agree_on_nearly_dependent_rows(
    angle: float, tolerance: float | None, verdict: Status
) -> None:
    A = np.array([[1, 1, 0], [1, 1 + angle, 0], [0, 0, 1], [0, 0, 1]])
    drift = -np.array([0, 1e-3, 1, 1])
    K = KKT(np.eye(3), A, rank_tolerance=tolerance)
    report = K.diagnose(drift)
    assert report.verdict is verdict
    if verdict is Status.INCONSISTENT:
        assert report.conflict is not None
        with pytest.raises(SolvabilityError, match="'row 0', 'row 1'"):
            K.solve(np.zeros(3), drift)
    else:
        assert report.conflict is None
        assert K.solve(np.zeros(3), drift).status is verdict


# Row 4: free massless motion -----------------------------------------------------------------------------------------


def test_free_massless_motion_is_a_combination_of_coordinates() -> None:
    K = KKT(np.diag([1, 0, 0]), [[0, 1, -2]], coordinates=["crank", "rod", "pin"])
    report = K.diagnose()
    assert report.massless_motions in {("2 rod + pin",), ("rod + 0.5 pin",)}
    with pytest.raises(SolvabilityError, match="free massless motion") as caught:
        K.solve([1, 0, 0])
    assert 'massless="hold"' in str(caught.value)


@given(strategies.massless(), st.data())
def test_free_massless_motion_is_refused_or_held(system: strategies.System, data: st.DataObject) -> None:
    force, drift = data.draw(strategies.vectors(system.n)), data.draw(strategies.in_range(system))
    K = KKT(system.M, system.A)
    with pytest.raises(SolvabilityError) as caught:
        K.solve(force, drift)
    assert caught.value.diagnosis.verdict is Status.MASSLESS
    assert len(caught.value.diagnosis.massless_motions) == system.massless
    s = K.solve(force, drift, massless="hold")
    assert s.status is Status.HELD
    H = s.held.motions
    assert H.shape == (system.n, system.massless)
    a, lam = s.acceleration, s.multipliers
    forces = system.M @ a + system.A.T @ lam - H @ s.held.forces
    size = np.abs(system.M) @ np.abs(a) + np.abs(system.A.T) @ np.abs(lam) + np.abs(force)
    assert np.all(np.abs(forces - force) <= CLOSE * size.max(initial=1e-300))
    closing = np.abs(system.A) @ np.abs(a) + np.abs(drift)
    assert np.all(np.abs(system.A @ a + drift) <= CLOSE * closing.max(initial=0.0))
    assert np.all(np.abs(H.T @ a) <= CLOSE * np.abs(a).max())


def test_holding_changes_nothing_where_nothing_is_free() -> None:
    K = KKT(np.diag([1, 0]), [[2, -1]])
    s = K.solve([1, 0], massless="hold")
    assert s.status is Status.UNIQUE
    assert s.held is None
    np.testing.assert_allclose(s.acceleration, [1, 2], rtol=1e-15)


def test_hold_and_redundant_rows_and_metric_together() -> None:
    K = KKT(np.diag([1, 0]), [[1, 0], [1, 0]], metric=[1, 4], names=["left", "right"])
    s = K.solve([5, 7], massless="hold")
    assert s.status is Status.HELD
    np.testing.assert_allclose(s.acceleration, [0, 0], atol=1e-15)
    np.testing.assert_allclose(s.multipliers, [4, 1])
    np.testing.assert_array_equal(s.certificate.unique, [False, False])
    assert s.multipliers.shape == s.certificate.multiplier_error.shape == (2,)


# indefinite ----------------------------------------------------------------------------------------------------------


def test_negative_mass_along_an_admissible_motion_is_refused_by_name() -> None:
    K = KKT(np.diag([1, -1]), [[1, 0]], coordinates=["good", "bad"])
    with pytest.raises(SolvabilityError, match="negative mass along: bad") as caught:
        K.solve([1, 1])
    assert caught.value.diagnosis.verdict is Status.INDEFINITE


def test_negative_mass_that_the_rows_forbid_is_no_obstacle() -> None:
    s = KKT(np.diag([1, -1]), [[0, 1]]).solve([3, 2], [4])
    np.testing.assert_allclose(s.acceleration, [3, -4])
    np.testing.assert_allclose(s.multipliers, [-2])
    assert s.status is Status.UNIQUE


# Row 5: near-singular ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("exponent", range(1, 17))
def test_nearly_parallel_rows_are_never_silently_wrong(exponent: int) -> None:
    """Rows at an angle of 10^-k that no scaling can straighten."""
    angle = 10.0**-exponent
    A = np.array([[1.0, 1.0, 1.0], [1.0, 1.0 + angle, 1.0 - 2 * angle]])
    force, drift = np.array([1.0, 2.0, 4.0]), np.array([0.0, 0.0])
    s = KKT(np.eye(3), A).solve(force, drift)
    if A[0].tolist() == A[1].tolist() or s.status is Status.REDUNDANT:
        assert exponent >= 14
        return
    a, lam = oracles.mp_solution(np.eye(3), A, force, -drift)
    if s.ok:
        assert np.abs(s.acceleration - a).max() <= 1e-3 * np.abs(a).max()
        assert np.abs(s.multipliers - lam).max() <= 1e-3 * np.abs(lam).max()
    assert np.all(np.abs(s.acceleration - a) <= s.certificate.acceleration_error)
    assert np.all(np.abs(s.multipliers - lam) <= s.certificate.multiplier_error)
    assert s.certificate.condition >= 0.01 / angle


@given(strategies.solvable(), st.data())
def test_ok_means_three_certain_digits(system: strategies.System, data: st.DataObject) -> None:
    force, drift = data.draw(strategies.vectors(system.n)), data.draw(strategies.in_range(system))
    s = KKT(system.M, system.A).solve(force, drift)
    assert s.ok == (s.certificate.answer.bounds.relative_error <= 1e-3)


def test_ok_means_three_certain_digits_also_where_forces_almost_cancel() -> None:
    s = KKT(np.eye(2), [[1, 1]]).solve([1, 1 + 2.0**-44])
    truth = 2.0**-45
    certain = np.abs(s.acceleration - [-truth, truth]).max() <= 1e-3 * truth
    assert certain or not s.ok


# the certificate and the answer as objects ---------------------------------------------------------------------------


def test_certificate_reads_well() -> None:
    text = str(DOOR.solve([1, 2, 3]).certificate)
    for word in ("ok:", "residuals", "rank 3 of 4", "gap", "inertia", "condition", "relative error"):
        assert word in text


def test_answers_by_name() -> None:
    s = DOOR.solve([1, 2, 3], [0, 0, 0, -6])
    assert s["angle"] == pytest.approx(6)
    assert s["latch"] == pytest.approx(-s.multipliers[3])
    assert "upper hinge" in str(s)
    with pytest.raises(DalembertError, match="latch") as caught:
        s["latsh"]
    assert "did you mean" in str(caught.value)


def test_a_certificate_belongs_to_the_data_at_the_time_of_the_solve() -> None:
    """Simulations reuse their buffers; what is read from a certificate later must not change with them."""
    M, A, force, drift = np.diag([1.0, 2.0]), np.array([[1.0, 1.0]]), np.array([1.0, 2.0]), np.array([0.5])
    reference = KKT(M.copy(), A.copy()).solve(force.copy(), drift.copy())
    expected = reference.certificate.acceleration_error, reference.certificate.condition
    s = KKT(M, A).solve(force, drift)
    M *= 1e6
    A *= 3.0
    force *= 1e9
    drift *= -1e9
    np.testing.assert_allclose(s.certificate.acceleration_error, expected[0])
    np.testing.assert_allclose(s.certificate.condition, expected[1])


def test_a_system_keeps_its_matrices() -> None:
    M, A = np.diag([1.0, 2.0]), np.array([[1.0, 1.0]])
    K = KKT(M, A)
    before = K.solve([1, 2]).acceleration
    M[0, 0], A[0, 1] = 50.0, -3.0
    np.testing.assert_array_equal(K.solve([1, 2]).acceleration, before)


# batches: a status per sample ----------------------------------------------------------------------------------------


def batch_of_every_kind(copies: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, list[Status]]:
    """Return M, A, force, drift with one sample of every kind, repeated."""
    unit, rows = np.eye(2), np.array([[1.0, 1.0], [1.0, 0.0]])
    twice = np.array([[1.0, 1.0], [2.0, 2.0]])
    nan = np.full((2, 2), np.nan)
    skew = np.array([[1.0, 0.5], [0.0, 1.0]])
    kinds = [
        (unit, rows, [0.0, 0.0], Status.UNIQUE),
        (unit, twice, [1.0, 2.0], Status.REDUNDANT),
        (unit, twice, [1.0, 3.0], Status.INCONSISTENT),
        (np.diag([1.0, 0.0]), np.array([[1.0, 0.0], [2.0, 0.0]]), [0.0, 0.0], Status.MASSLESS),
        (np.diag([1.0, -1.0]), np.array([[1.0, 0.0], [2.0, 0.0]]), [0.0, 0.0], Status.INDEFINITE),
        (nan, rows, [0.0, 0.0], Status.NONFINITE),
        (unit, nan, [0.0, 0.0], Status.NONFINITE),
        (unit, rows, [np.inf, 0.0], Status.NONFINITE),
        (skew, rows, [0.0, 0.0], Status.NOT_SYMMETRIC),
    ]
    M, A, drift = (np.array([kind[i] for kind in kinds] * copies) for i in range(3))
    return M, A, np.tile([1.0, 2.0], (len(M), 1)), drift, [kind[3] for kind in kinds] * copies


@pytest.mark.parametrize("copies", [1, 8], ids=["one by one", "compiled"])
def test_a_batch_has_a_status_per_sample(copies: int) -> None:
    M, A, force, drift, expected = batch_of_every_kind(copies)
    s = KKT(M, A).solve(force, drift)
    np.testing.assert_array_equal(s.status, expected)
    solved = np.array([status.answered for status in expected])
    assert np.isfinite(s.acceleration[solved]).all()
    assert np.isnan(s.acceleration[~solved]).all()
    assert np.isnan(s.multipliers[~solved]).all()
    np.testing.assert_array_equal(s.ok, solved)
    text = str(s.certificate)
    assert f"{solved.sum()} of {solved.size} samples ok" in text
    assert Status.MASSLESS.message in text


@pytest.mark.parametrize("copies", [1, 8], ids=["one by one", "compiled"])
def test_a_batch_takes_the_options(copies: int) -> None:
    M, A, force, drift, expected = batch_of_every_kind(copies)
    s = KKT(M, A).solve(force, drift, massless="hold", inconsistent="least_squares")
    changed = {Status.MASSLESS: Status.HELD, Status.INCONSISTENT: Status.LEAST_SQUARES}
    np.testing.assert_array_equal(s.status, [changed.get(status, status) for status in expected])


def test_certificates_of_a_batch_by_index() -> None:
    M, A, force, drift, expected = batch_of_every_kind(1)
    certificate = KKT(M, A).solve(force, drift).certificate
    assert [certificate[i].status for i in range(len(expected))] == expected
    assert certificate[-1].status is expected[-1]
    assert certificate.rank[0] == 2
    assert certificate.rank[1] == 1
    with pytest.raises(IndexError):
        certificate[len(expected)]


def test_one_sample_of_a_batch_is_a_system() -> None:
    M, A, force, drift, _ = batch_of_every_kind(1)
    K = KKT(M, A, names=["left", "right"])
    with pytest.raises(SolvabilityError, match="'left', 'right'"):
        K[2].solve(force[2], drift[2])
