"""O8 with mass ratios of 1e8: rows at rest hold, certificates are measured, and reports claim what is proved alone."""

from __future__ import annotations

import numpy as np
import pytest

import dalembert.friction.resolve_coulomb as room
from dalembert.friction import Reacting, resolve
from dalembert.friction.coulomb_modes import room_in_disks

STEEP = {
    "M": np.array([[4263939.2865428, 17616015.8191779], [17616015.8191779, 72778765.24409235]]),
    "f": [-1.72790482, 2.70014371],
    "W": [[0.73509706], [-1.5239567]],
    "A": np.array([[0.66735701, 1.02439292]]),
}
"""One contact, M full with eigenvalues 2.9 and 7.7e7; without the contact the acceleration is 0.8."""


@pytest.mark.parametrize("unit", [1.0, 1e9, 1e-9])
def test_a_closed_normal_does_not_move_however_light(unit):
    data = STEEP | {"M": unit * STEEP["M"], "f": unit * np.array(STEEP["f"])}
    r = resolve(state=[0.0], laws=[Reacting(2.0, 0)], **data)
    assert r.ok
    assert np.abs(STEEP["A"] @ r.acceleration) <= 1e-15  # was 3e-11, with a certificate of 0
    assert r.forces[0] == pytest.approx(-2.0 * r.multipliers[0], rel=1e-12)
    balance = data["M"] @ r.acceleration + data["A"].T @ r.multipliers - data["f"] - np.ravel(data["W"]) * r.forces
    assert np.abs(balance).max() <= 1e-12 * unit


def test_rounding_is_no_second_answer():
    M = np.array([[56431.91899354, -140213.23744447], [-140213.23744447, 348392.40358498]])
    f = M @ np.array([0.70321151, 0.28302809])
    r = resolve(M, f, [[-0.96713014], [-2.444377]], [0], [Reacting(0.1, 0)], A=[[-0.03446513, -1.20626155]])
    assert r.report.accelerations_unique is not False
    assert not len(r.report.alternatives)


def test_the_associated_problem_has_its_own_report():
    data = {"M": np.diag([1.0, 8.0]), "f": [1.0, 0.0], "W": [[2.0], [1.0]], "state": [0.0], "laws": [Reacting(2.0, 0)]}
    assert resolve(A=[[0.0, 1.0]], **data).report.accelerations_unique is False
    report = resolve(A=[[0.0, 1.0]], associated=True, **data).report
    assert report.accelerations_unique is True
    assert "associated" in report.reason


def test_the_associated_problem_names_open_forces():
    A, W = [[0, 0, 1.0], [0, 0, 1.0]], [[1.0, 0, 1, 0], [0, 1, 0, 1], [0, 0, 0, 0]]
    laws = [Reacting(0.5, i, directions=2) for i in range(2)]
    report = resolve(np.eye(3), [1, 0, -10], W, [0] * 4, laws, A=A, associated=True, names=["left", "right"]).report
    assert report.undetermined == ("left", "right")
    assert report.forces_unique is False


def test_a_mode_that_does_not_obey_the_laws_is_no_answer(monkeypatch):
    c, s = np.cos(1.0), np.sin(1.0)
    data = {"M": np.diag([1.0, 1.0, 1 / 3]), "f": [0, -9.81, 0], "W": [[1.0], [0.0], [s]], "state": [-1.0]}
    monkeypatch.setattr(room, "all_solutions", lambda problem: [np.zeros(2)])
    r = resolve(laws=[Reacting(2.2, 0)], A=[[0.0, 1.0, -c]], **data)  # Painleve's rod: there is none
    assert not r.ok


def test_a_force_on_the_rim_of_its_disk_is_not_open_outward():
    A, mu = np.array([[0.0, 0.0, 1.0]]), 0.5
    one = np.array([0.95, np.sqrt(1.0 - 0.95**2)])
    problem = room.reaction_problem(
        np.eye(3), [*(5.0 * one), -10.0], np.eye(3)[:, :2], [0, 0], [Reacting(mu, 0, directions=2)], A, None, None,
        None, None, None, 0.0, None, None,
    )  # fmt: skip
    r = np.array([10.0, *(-5.0 * one)])
    along = np.array([0.0, one[1], -one[0]])
    assert room_in_disks(problem, r, along) <= 1e-4
    assert room_in_disks(problem, r, -along) <= 1e-4
    assert room_in_disks(problem, r, np.array([0.0, *one])) == 1.0
    assert room_in_disks(problem, r, np.array([1.0, *(-0.5 * one)])) == pytest.approx(1.0)
