"""The block matrix of contact dynamics: motions that are certain, or refused; the rank is that of the one policy."""

from __future__ import annotations

import numpy as np
import pytest

from dalembert.errors import SolvabilityError
from dalembert.kkt import Status
from dalembert.kkt.limits import CERTAIN
from dalembert.kkt.residual import estimated
from dalembert.simulate.contact.complementarity import Inverse


def test_a_free_motion_without_mass_is_refused_by_name() -> None:
    with pytest.raises(SolvabilityError, match="free massless motion: q1"):
        Inverse.of(np.diag([1.0, 0.0]), np.zeros((0, 2))).solve(np.array([[1.0], [0.0]]), np.zeros((0, 1)))


@pytest.mark.parametrize("mass", [1.0, 1e-9, 1e-14])
def test_light_masses_beside_redundant_rows_still_move(mass: float) -> None:
    inverse = Inverse.of(mass * np.eye(2), np.array([[1.0, 0.0], [1.0, 0.0]]))
    motion, _ = inverse.solve(np.array([[mass], [2.0 * mass]]), np.zeros((2, 1)))
    np.testing.assert_allclose(motion[:, 0], [0.0, 2.0], atol=1e-12)
    assert inverse.status is Status.REDUNDANT


@pytest.mark.parametrize("angle", [1e-8, 3e-8, 1e-7, 1e-5])
def test_rows_that_are_nearly_dependent_are_both_kept_or_in_doubt(angle: float) -> None:
    """Both rows say a = (1, 0); the force would have a_1 = 2."""
    inverse = Inverse.of(np.eye(3), np.array([[1.0, 0.0, 0.0], [1.0, angle, 0.0]]))
    motion, _ = inverse.solve(np.array([[1.0], [2.0], [3.0]]), np.ones((2, 1)))
    if inverse.status <= Status.LEAST_SQUARES:
        np.testing.assert_allclose(motion[:, 0], [1.0, 0.0, 3.0], atol=2e-3)
    else:
        with pytest.raises(SolvabilityError, match="nearly singular"):
            inverse.refuse_uncertain()


def test_infinite_data_are_told() -> None:
    with pytest.raises(SolvabilityError, match="no longer finite"):
        Inverse.of(np.eye(2), np.zeros((0, 2))).solve(np.array([[np.nan], [1.0]]), np.zeros((0, 1)))


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
