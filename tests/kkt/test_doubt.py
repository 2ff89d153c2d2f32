"""Where verdicts could be wrong: mixed units, unrelated large numbers, ranks in doubt, structures at rest."""

from __future__ import annotations

import numpy as np
import pytest

from dalembert.errors import ModelError, SolvabilityError
from dalembert.kkt import KKT, Status
from dalembert.kkt.limits import CERTAIN
from dalembert.kkt.residual import estimated
from tests.kkt import oracles

TRIANGLE = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
"""The third row is the sum of the others; no reaction is unique."""


@pytest.mark.parametrize("units", [(1.0, 1.0), (64.0, 2.0**-20), (1.0, 1e-9), (1e8, 1e-8)])
def test_redundancy_is_told_in_any_units_of_coordinates(units):
    T = np.diag(units)
    report = KKT(T @ T, TRIANGLE @ T).diagnose()
    assert report.redundant_names == ("row 2",)
    np.testing.assert_allclose(report.redundant[2], [1.0, 1.0, 0.0], rtol=1e-9)
    assert not report.unique.any()


def test_a_conflict_is_seen_in_any_units_of_coordinates():
    T = np.array([2.0**19, 2.0**-16])
    with pytest.raises(SolvabilityError) as caught:
        KKT(np.diag(T * T), np.array([[-1, 1], [0, -1], [1, 0]]) * T).solve(T * [1, -1], drift=[1, 1, -1])
    assert caught.value.diagnosis.conflict.rows == (0, 1, 2)


@pytest.mark.parametrize(
    ("A", "force", "drift"),
    [
        ([[1, 0, 0], [0, 1, 0], [0, 1, 0]], [0, 0, 0], [-1e10, 0, -1]),
        ([[0, 1, 0], [0, 1, 0]], [1e14, 0, 0], [0, -1]),
    ],
    ids=["drift of another row", "force on another coordinate"],
)
def test_a_conflict_is_not_hidden_by_unrelated_large_numbers(A, force, drift):
    with pytest.raises(SolvabilityError, match="contradict"):
        KKT(np.eye(3), A).solve(force, drift)


LIGHT = np.diag([1e-8, 1e-16]), np.array([[0.0, 0.5], [0.0, 0.7]])
"""Two rows that hold a coordinate of very little mass."""


@pytest.mark.parametrize("copies", [1, 70])
def test_a_conflict_is_not_hidden_by_what_a_light_coordinate_would_do_without_rows(copies):
    """f / m = 1e16 is no measure of 1 and 2 that rows ask of it; at rest it may hide them, and nothing is certified."""
    M, A = LIGHT
    batch = KKT(np.tile(M, (copies, 1, 1)), A).solve([1.0, -1.0], [-1.0, -2.0])
    assert (np.ravel(batch.status) == Status.INCONSISTENT).all()
    assert KKT(M, A).solve([1.0, -1.0], [-1.0, -1.4]).status is Status.REDUNDANT
    resting = KKT(np.tile(M[1:, 1:], (copies, 1, 1)), A[:, 1:]).solve([-1.0], [-1.0, -2.0])
    assert (np.ravel(resting.status) == Status.ILL_CONDITIONED).all()


def test_multipliers_of_rows_of_very_different_lengths_keep_to_their_bars():
    """In the metric of the mass the rows of the light coordinate are 1e4 times longer: their basis is exact, too."""
    M = np.diag([3.294e-16, 4.997e-9, 2.514e-6])
    A = np.array([[-2.0, 2.0, 0.0], [0.5, 0.0, 0.0], [-4.0, 4.0, 0.0], [-0.125, 0.0, 0.0], [0.0, -0.5, 0.5]])
    f, a = np.array([2.75, -0.375, 1.5]), np.array([1.0, 1.1875, 3.1875])
    s = KKT(M, A).solve(f, -A @ a)
    np.testing.assert_allclose(s.acceleration, a, rtol=1e-14)
    pulled = f - M @ a  # A^T lam, which three springs take: two in parallel pairs, one alone
    spring = np.array([(pulled[1] + pulled[2]) / 2.0, pulled.sum() / 0.5, 2.0 * pulled[2]])
    lam = np.array(
        [spring[0] / 5.0, spring[1] * 16.0 / 17.0, spring[0] * 2.0 / 5.0, -spring[1] * 4.0 / 17.0, spring[2]]
    )
    assert (np.abs(s.multipliers - lam) <= 2.0 * s.certificate.multiplier_error).all()
    assert s.certificate.multiplier_error.max() < 1e-12


def test_asymmetry_is_not_hidden_by_unrelated_large_masses():
    with pytest.raises(ModelError, match=r"M\[1, 2\]"):
        KKT([[1e14, 0, 0], [0, 2, 1], [0, 0, 2]])


def test_the_smallest_conflict_is_found_among_many_rows():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((40, 60))
    A[39] = A[3] + A[17]
    with pytest.raises(SolvabilityError) as caught:
        KKT(np.eye(60), A).solve(np.zeros(60), np.eye(40)[39])
    conflict = caught.value.diagnosis.conflict
    assert conflict.rows == (3, 17, 39)
    assert conflict.smallest


def test_a_conflict_of_many_rows_is_irreducible_even_where_the_search_is_cut():
    """All 24 rows of a closed chain of differences take part; leaving out any one resolves the conflict."""
    n = 24
    A = np.eye(n) - np.roll(np.eye(n), 1, axis=1)
    with pytest.raises(SolvabilityError) as caught:
        KKT(np.eye(n), A).solve(np.zeros(n), np.eye(n)[0])
    conflict = caught.value.diagnosis.conflict
    assert conflict.rows == tuple(range(n))
    assert not conflict.smallest


@pytest.mark.parametrize("m", [30, 50])
@pytest.mark.parametrize("angle", [1e-6, 1e-10, 1e-12, 1e-13, 1e-14])
def test_nearly_parallel_rows_are_right_or_in_doubt(m, angle):
    """Positive rows, n = 60, two of them at a small angle: an answer that is ok agrees with 50 digits."""
    rng = np.random.default_rng(m)
    n = 60
    A = rng.uniform(0.5, 1.0, (m, n))
    A[1] = A[0] + angle * A[1]
    M, f, c = np.diag(rng.uniform(0.5, 2.0, n)), rng.standard_normal(n), rng.standard_normal(m)
    K = KKT(M, A)
    if angle <= 1e-13 and K.diagnose(-c).verdict is Status.INCONSISTENT:
        return  # parallel to rounding: then these right sides do contradict each other
    s = K.solve(f, -c)
    if s.ok:
        a, _ = oracles.mp_solution(M, A, f, c)
        assert np.abs(s.acceleration - a).max() <= 1e-13 * s.certificate.condition * np.abs(a).max()
    else:
        assert s.status is Status.ILL_CONDITIONED
        assert angle <= 1e-10


def test_a_rank_in_doubt_is_said_and_the_user_may_decide():
    """A singular value between rounding and 1e-10: not ok by default, ok with a tolerance set."""
    A = np.array([[1.0, 1.0, 1.0], [1.0, 1.0, 1.0 + 5e-13]])
    doubtful = KKT(np.eye(3), A).solve([1.0, 2.0, 3.0])
    assert not doubtful.ok
    assert "in doubt" in str(doubtful.certificate)
    assert "in doubt" in str(KKT(np.eye(3), A).diagnose())
    decided = KKT(np.eye(3), A, rank_tolerance=1e-12).solve([1.0, 2.0, 3.0])
    assert decided.status is Status.REDUNDANT
    np.testing.assert_allclose(decided.acceleration, [-1.0, 0.0, 1.0], atol=1e-12)


@pytest.mark.parametrize("unit", [1.0, 128.0, 1e6])
def test_a_locked_coordinate_in_other_units_is_no_false_alarm(unit):
    T = np.diag([1.0, unit])
    s = KKT(T @ T, np.array([[0, 1], [0, 0], [1, 0], [1, 0]]) @ T).solve([0, 0], [-1, 0, 0, 0])
    assert s.status is Status.REDUNDANT
    np.testing.assert_allclose(s.acceleration, [0.0, 1.0 / unit], atol=1e-15)


def test_an_indefinite_mass_that_vanishes_on_an_admissible_motion_is_refused():
    """M q1 is not zero, yet q1 alone is admissible and has no mass: the block matrix is singular."""
    M = [[3.0, 3.0, 2.0], [3.0, 0.0, -2.0], [2.0, -2.0, -3.0]]
    K = KKT(M, [[1.0, 0.0, 2.0], [-1.0, 0.0, 1.0]])
    assert K.diagnose().massless_motions == ("q1",)
    with pytest.raises(SolvabilityError, match="moves no mass"):
        K.solve([3.0, 3.0, -3.0])


@pytest.mark.parametrize("second", [[0, 0, 0], [1, 0, 0]], ids=["zero", "twice"])
def test_a_rank_that_rows_do_not_have_is_in_doubt(second):
    """Data are finite, and nothing overflows: what is wrong is the rank that was given."""
    solution = KKT(np.eye(3), [[1, 0, 0], second], rank=2).solve([1, 2, 3], [-1, -second[0]])
    assert solution.status is Status.ILL_CONDITIONED
    assert np.isfinite(solution.acceleration).all()
    assert "rank is known as 2" in solution.system.diagnose().doubt


def test_rows_that_only_the_metric_tells_apart_are_in_doubt():
    """In units of powers of two a coupled mass hides what its square root shows: ill conditioned, not infinite."""
    rng, refused = np.random.default_rng(5551), 0
    for _ in range(400):
        root, units = rng.normal(size=(3, 3)), 10.0 ** rng.uniform(-3, 3, 3)
        M = (root @ root.T + np.eye(3)) * np.outer(units, units)
        A = rng.normal(size=(3, 2)) @ rng.normal(size=(2, 3)) * 10.0 ** rng.uniform(-6, 6, (3, 1)) * units
        A[:, 1] = np.abs(A).max(axis=1) * rng.normal(size=3) * 1e-16
        solution = KKT(M, A).solve(units * rng.normal(size=3), -A @ rng.normal(size=3))
        refused += solution.status is Status.ILL_CONDITIONED
    assert refused > 100


@pytest.mark.parametrize("seed", range(20))
def test_the_estimate_of_elimination_sees_lost_digits(seed: int) -> None:
    """Against exact data: where the estimate promises three digits, they are right."""
    rng = np.random.default_rng(seed)
    angle = 10.0 ** -rng.uniform(2, 7.5)
    K = np.zeros((5, 5))
    K[:3, :3] = np.eye(3)
    K[3:, :3] = [[1.0, 0.0, 0.0], [1.0, angle, 0.0]]
    K[:, 3:] = np.vstack([K[3:, :3].T, np.zeros((2, 2))])
    b = np.array([1.0, 2.0, 3.0, 1.0, 1.0 + angle])
    x, error = estimated(K, b, 3)
    exact = np.array([1.0, (b[4] - 1.0) / angle, 3.0])
    if error <= CERTAIN:
        np.testing.assert_allclose(x[:3], exact, atol=10 * CERTAIN)
    else:
        assert angle < 1e-5
