"""Units: answers do not depend on powers of two that M, A, forces or single coordinates and rows are multiplied by."""

from __future__ import annotations

import numpy as np
import pytest

from dalembert.kkt import KKT, Status


def system(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return M, A, force, drift: every other M singular, every third A redundant."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 5))
    m = int(rng.integers(1, n + 1))
    root = rng.normal(size=(n, n))
    M, A = root @ root.T + np.eye(n), rng.normal(size=(m, n))
    if m > 1 and seed % 3 == 0:
        A[-1] = 2.0 * A[0]
    if seed % 2:
        M = np.diag(np.diag(M))
        M[0, 0] = 0.0
    return M, A, rng.normal(size=n), -A @ rng.normal(size=n)


def numbers(M: np.ndarray, A: np.ndarray, force: np.ndarray, drift: np.ndarray, copies: int) -> tuple:
    """Return status, a and lam, of a batch of one or of many."""
    s = KKT(np.tile(M, (copies, 1, 1)), np.tile(A, (copies, 1, 1))).solve(force, drift)
    return Status(int(np.asarray(s.status)[0])), s.acceleration[0], s.multipliers[0]


@pytest.mark.parametrize("copies", [1, 70])
@pytest.mark.parametrize("unit", [60, -200, 480])
@pytest.mark.parametrize("what", ["M", "A", "force", "M and A", "M and force"])
def test_units_of_powers_of_two_change_no_bit(what: str, unit: int, copies: int) -> None:
    """Before, redundant rows and massless coordinates lost their last bits, and their status beyond 1e100."""
    i, j, k = (unit * (name in what) for name in ("M", "A", "force"))
    for seed in range(12) if copies == 1 else (0, 5):
        M, A, force, drift = system(seed)
        known = numbers(M, A, force, drift, copies)
        given = (np.ldexp(M, i), np.ldexp(A, j), np.ldexp(force, k), np.ldexp(drift, j + k - i))
        status, a, lam = numbers(*given, copies)
        assert status is known[0], seed
        found = np.ldexp(a, i - k), np.ldexp(lam, j - k)
        if copies > 1 and abs(unit) > 400:  # the compiled loop leaves such numbers to the plain one, whose bits differ
            np.testing.assert_allclose(np.concatenate(found), np.concatenate(known[1:]), rtol=1e-9, atol=1e-12)
        else:
            assert np.array_equal(found[0], known[1], equal_nan=True), seed
            assert np.array_equal(found[1], known[2], equal_nan=True), seed


@pytest.mark.parametrize("reach", [60, 200, 450])
def test_units_of_single_coordinates_hide_no_row_and_make_no_mass(reach: int) -> None:
    """Coordinates of units apart: such systems were MASSLESS, or NaN, or their answers not called ok."""
    rng = np.random.default_rng(reach)
    for seed in range(20):
        M, A, force, drift = system(seed)
        known = numbers(M, A, force, drift, 1)
        s = rng.integers(-reach, reach + 1, len(M))
        given = np.ldexp(M, s[:, None] + s), np.ldexp(A, s), np.ldexp(force, s), drift
        status, a, lam = numbers(*given, 1)
        assert status is known[0], seed
        if status.answered:
            np.testing.assert_allclose(np.ldexp(a, s), known[1], rtol=1e-8, atol=1e-11)
            np.testing.assert_allclose(A.T @ lam, A.T @ known[2], rtol=1e-8, atol=1e-11)


def test_a_row_that_vanishes_in_other_units_is_not_dropped() -> None:
    """Beside 1e200 a row of 1e-200 is zero in any common unit; it holds all the same, or the answer is not ok."""
    s = KKT(np.eye(2), [[1e-200, 2e-200], [1e200, 0.0]]).solve([1.0, 2.0])
    assert not s.ok
    np.testing.assert_allclose(s.acceleration, 0.0, atol=1e-12)
    np.testing.assert_allclose(s.reactions, [-1e200, 0.0], atol=1e-12)
    assert "row 0 is" in str(s.certificate)


@pytest.mark.parametrize("size", [1e-160, 1e-200, 1e160, 1e300])
@pytest.mark.parametrize("copies", [1, 70])
def test_digits_are_counted_where_squares_leave_the_range(size: float, copies: int) -> None:
    """Two equal masses that nearly hold each other: the answer has few digits, in whatever unit the forces are."""
    M = np.array([[1.0, 1.0], [1.0, 1.0 + 1e-13]])
    for unit in (1.0, size):
        s = KKT(np.tile(M, (copies, 1, 1))).solve(unit * np.array([1.0, 1.0 + 1e-15]))
        assert s.status[0] == Status.ILL_CONDITIONED
    far = KKT(np.eye(2)).solve([1e300, 1e-300])
    assert far.ok
    assert far.acceleration.tolist() == [1e300, 1e-300]


def test_massless_motions_are_held_in_the_users_units() -> None:
    """What is held is a motion of the user's coordinates, whatever units the block matrix is solved in."""
    M, A, force = np.diag([2.0, 0.0, 0.0]), np.array([[1.0, 1.0, 0.0]]), np.array([1.0, 2.0, 3.0])
    plain = KKT(M, A).solve(force, massless="hold")
    scaled = KKT(np.ldexp(M, 80), np.ldexp(A, -60)).solve(np.ldexp(force, 80), massless="hold")
    assert scaled.held is not None
    assert plain.held is not None
    np.testing.assert_allclose(scaled.held.motions, plain.held.motions, atol=1e-15)
    np.testing.assert_allclose(scaled.acceleration, plain.acceleration, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(scaled.held.forces, np.ldexp(plain.held.forces, 80), rtol=1e-12)
    residual = np.ldexp(M, 80) @ scaled.acceleration + np.ldexp(A, -60).T @ scaled.multipliers
    residual = residual - scaled.held.motions @ scaled.held.forces - np.ldexp(force, 80)
    np.testing.assert_allclose(residual, 0.0, atol=1e-12 * 2.0**80)


def test_bases_and_bars_of_redundant_rows_are_in_the_users_units() -> None:
    A = np.array([[1.0, 2.0], [2.0, 4.0], [1.0, 0.0]])
    units = np.array([40, 0, 3])
    s = KKT(np.eye(2), np.ldexp(A, units[:, None])).solve([1.0, 1.0])
    assert s.ok
    np.testing.assert_allclose(s.multiplier_basis.T @ np.ldexp(A, units[:, None]), 0.0, atol=1e-14)
    assert s.certificate.multiplier_error.shape == (3,)
    lam = s.multipliers
    exact = np.linalg.lstsq(np.ldexp(A, units[:, None]).T, np.array([1.0, 1.0]), rcond=None)[0]
    assert (np.abs(lam - exact) <= s.certificate.multiplier_error + 1e-12 * np.abs(exact).max()).all()
