"""Ledger O1: systems assembled from parts, and the protocol that all systems satisfy."""

from __future__ import annotations

import numpy as np
import pytest

from dalembert.errors import ModelError, ShapeError, SolvabilityError
from dalembert.examples import crank_slider
from dalembert.model import Matrices, System, block_system, solve, unconstrained_acceleration

STIFFNESS = 14.0
"""Table 1 of seed 001, N/m."""


def springs(q: np.ndarray, v: np.ndarray, t: float) -> np.ndarray:
    """Elastic forces of seed 001, section 4: h = -k (2 q1 - q2, q2 - q1)."""
    return -STIFFNESS * np.array([2 * q[0] - q[1], q[1] - q[0]])


def two_blocks(rows: dict[str, list[float]]) -> Matrices:
    return Matrices({"x1": 4.0, "x2": 7.0}, rows, springs)


ALL_ROWS = {"belt 1": [1.0, 0.0], "belt 2": [0.0, 1.0], "between": [1.0, -1.0]}
STATE = np.array([0.3, -0.2]), np.zeros(2)


def test_O1_two_blocks_from_parts():
    """M, h and W = A^T come out as printed (eq. 21a), and (3), (6) hold."""
    system = two_blocks(ALL_ROWS)
    q, v = STATE
    assert isinstance(system, System)
    np.testing.assert_array_equal(system.mass_matrix(q, 0.0), np.diag([4.0, 7.0]))
    np.testing.assert_array_equal(system.jacobian(q, 0.0).T, [[1, 0, 1], [0, 1, -1]])
    h = springs(q, v, 0.0)
    np.testing.assert_allclose(unconstrained_acceleration(system, q, v), h / [4.0, 7.0], rtol=1e-15)


def test_O1_constrained_motion_satisfies_the_dae():
    """With the contact between the blocks alone: one common acceleration, and M a - h - W T = 0."""
    system = two_blocks({"between": [1.0, -1.0]})
    q, v = STATE
    s = solve(system, q, v)
    h = springs(q, v, 0.0)
    np.testing.assert_allclose(s.acceleration, np.full(2, h.sum() / 11.0), rtol=1e-14)
    W = system.jacobian(q, 0.0).T
    np.testing.assert_allclose(np.diag([4.0, 7.0]) @ s.acceleration, h + W @ s.reactions, rtol=1e-13, atol=1e-13)


def test_O1_all_contacts_stuck_are_redundant_and_named():
    system = two_blocks(ALL_ROWS)
    report = block_system(system, STATE[0]).diagnose()
    assert report.redundant_names == ("between",)
    assert not report.unique.any()
    s = solve(system, *STATE)
    assert s.ok
    np.testing.assert_allclose(s.acceleration, 0.0, atol=1e-14)


def test_unconstrained_acceleration_does_not_exist_for_a_massless_rod():
    with pytest.raises(SolvabilityError, match="theta2"):
        unconstrained_acceleration(crank_slider(), [0.4, 0.8], [0.0, 0.0])


def test_matrices_may_be_functions_of_state_and_time():
    """A bead on a wire that turns: the row and its drift depend on time."""
    system = Matrices(
        np.eye(2),
        rows=lambda q, t: np.array([[-np.sin(t), np.cos(t)]]),
        drift=lambda q, v, t: np.array(
            [-2 * (np.cos(t) * v[0] + np.sin(t) * v[1]) + np.sin(t) * q[0] - np.cos(t) * q[1]]
        ),
        coordinates=("x", "y"),
        names=("wire",),
    )
    radius, speed = 2.0, 0.7
    s = solve(system, [radius, 0.0], [speed, radius], t=0.0)
    np.testing.assert_allclose(s.acceleration, [0.0, 2 * speed], atol=1e-15)


@pytest.mark.parametrize(
    ("build", "error", "words"),
    [
        (lambda: Matrices({"x": 1.0}, {"row": [1.0, 2.0]}), ShapeError, "rows"),
        (lambda: Matrices(lambda q, t: np.eye(2)), ModelError, "coordinates"),
        (lambda: Matrices(np.eye(2), np.ones((1, 2)), force=[1.0]), ShapeError, "force"),
    ],
)
def test_wrong_parts_are_named(build, error, words):
    with pytest.raises(error, match=words):
        build()
