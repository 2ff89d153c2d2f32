"""The block matrix of contact dynamics: motions that are certain, or refused; the rank is that of the one policy."""

from __future__ import annotations

import numpy as np
import pytest

from dalembert.errors import SolvabilityError
from dalembert.kkt import Status
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
