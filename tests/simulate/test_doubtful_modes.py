"""A mode of dry friction whose rows are nearly dependent, or that friction makes singular: refused in words."""

from __future__ import annotations

import numpy as np
import pytest

from dalembert.errors import SolvabilityError
from dalembert.model import Matrices
from tests.reference.dry.dynamics import Dynamics


def solved(angle: float) -> np.ndarray:
    """Return the motion where rows say a = (1, 1); elimination of the block matrix loses all digits of the second."""
    rows = np.array([[1.0, 0.0, 0.0], [1.0, angle, 0.0]])
    right = np.array([1.0, 2.0, 3.0, 1.0, 1.0 + angle])
    return Dynamics(Matrices(np.eye(3), rows))._solved(np.eye(3), rows, rows.T, right)


def test_a_mode_with_nearly_dependent_rows_is_right() -> None:
    np.testing.assert_allclose(solved(1e-9)[:3], [1.0, 1.0, 3.0], atol=1e-3)


def test_a_mode_with_rows_in_doubt_is_refused() -> None:
    with pytest.raises(SolvabilityError, match="nearly dependent"):
        solved(1e-10)


def test_friction_that_cancels_the_inertia_is_named() -> None:
    dynamics = Dynamics(Matrices(np.eye(2), np.array([[1.0, 0.0]])))
    columns = np.array([[0.0], [1.0]])
    with pytest.raises(SolvabilityError, match="Painleve"):
        dynamics._solved(np.eye(2), np.array([[1.0, 0.0]]), columns, np.array([1.0, 1.0, 0.0]))
