"""Motions that the block matrix does not certify are not certified by the friction laws, either."""

from __future__ import annotations

import numpy as np
import pytest

from dalembert.friction import resolve
from dalembert.status import Status

NEARLY = np.array([[1.0, 0.0, 0.0], [1.0, 5e-13, 0.0]])
"""Rows between rounding and 1e-10: of rank one or two, as one reads them."""

W = np.array([[0.0], [0.0], [1.0]])


@pytest.mark.parametrize("method", ["exact", "flowchart", "switch", "regularised"])
@pytest.mark.parametrize("limit", [10.0, 0.5])
def test_no_method_certifies_what_the_block_matrix_does_not(method: str, limit: float) -> None:
    found = resolve(np.eye(3), [1.0, 2.0, 3.0], W, [0.0], [limit], method, A=NEARLY)
    assert not found.ok
    assert found.status in (Status.NOT_CONVERGED, Status.DECLINED, Status.NOT_OPTIMAL)


def test_exact_forces_say_why_they_are_in_doubt() -> None:
    found = resolve(np.eye(3), [1.0, 2.0, 3.0], W, [0.0], [10.0], A=NEARLY)
    assert found.status is Status.NOT_CONVERGED
    assert "three certain digits" in found.certificate.note


def test_sticking_rows_that_nearly_depend_on_constraints_are_in_doubt() -> None:
    """The constraint alone is certain; held together with the contact it is not."""
    found = resolve(
        np.eye(3), [1.0, 2.0, 3.0], [[1.0], [5e-13], [0.0]], [0.0], [10.0], "flowchart", A=[[1.0, 0.0, 0.0]]
    )
    assert found.status is Status.DECLINED


@pytest.mark.parametrize("method", ["exact", "flowchart", "switch"])
def test_dependent_rows_are_certified(method: str) -> None:
    found = resolve(np.eye(3), [1.0, 2.0, 3.0], W, [0.0], [10.0], method, A=[[1.0, 0.0, 0.0], [2.0, 0.0, 0.0]])
    assert found.ok
    np.testing.assert_allclose(found.acceleration, [0.0, 2.0, 0.0], atol=1e-15)
