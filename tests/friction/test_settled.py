"""O8 with mass ratios of 1e8 and loads that cancel: rows at rest hold, certificates are measured, reports proved."""

from __future__ import annotations

import numpy as np
import pytest

import dalembert.friction.cones.answer as room
from dalembert.friction import Reacting, resolve
from dalembert.friction.cones.modes import ModeAnswer, sides

STEEP = {
    "M": np.array([[4263939.2865428, 17616015.8191779], [17616015.8191779, 72778765.24409235]]),
    "f": [-1.72790482, 2.70014371],
    "W": [[0.73509706], [-1.5239567]],
    "A": np.array([[0.66735701, 1.02439292]]),
}
"""One contact, M full with eigenvalues 2.9 and 7.7e7; without the contact the acceleration is 0.8."""

HEAVY, ROUND = np.diag([692425.8448047191, 5067336.578436564]), np.eye(4) + 3.5e-16 * np.eye(4)[::-1]
"""Masses with which W^T M^-1 f is rounding."""


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


@pytest.mark.parametrize("unit", [1.0, 1e-9, 1e9])
def test_an_answer_of_rounding_is_no_second_one_where_nothing_moves(unit):
    """Loads and free motion are zero: drifts alone say what is large."""
    laws = [Reacting(1.0, 0), Reacting(0.3, 1), unit]
    drift = {"A": [[1.0], [-1.0]], "drift": unit * np.array([1.0, 0.0]), "contact_drift": unit * np.array([1.0, -2, 0])}
    report = resolve([[1.0]], [0.0], [[-2.0, 0.0, 2.0]], [0.0, -2.0, 0.0], laws, **drift).report
    assert report.accelerations_unique is True  # was False, for an alternative of 2e-16
    assert report.undetermined == ("contact 1", "contact 2")  # the normal may push against the contact that sticks


@pytest.mark.parametrize(
    ("data", "who"),
    [
        (  # a row that pulls against one that pushes: the two are one equation
            {"M": [[6.0, -4.0], [-4.0, 6.0]], "f": [-3.0, 3.0], "W": [[-2.0, -1.0], [-1.0, 2.0]], "state": [0.0, 0.0],
             "laws": [Reacting(0.3, 0, unilateral=False), Reacting(2.0, 1)], "contact_drift": [-2.0, 2.0],
             "A": [[1.0, -2.0], [-1.0, 2.0], [-2.0, 2.0]], "drift": [1.0, -1.0, 2.0]},
            ("contact 0", "contact 1"),
        ),
        (  # a normal without a row pushes as it likes
            {"M": [[2.0]], "f": [6.0], "W": [[2.0, 0.0]], "state": [0.0, -1.0],
             "laws": [Reacting(0.5, 0, directions=2)], "A": [[0.0]]},
            ("contact 0",),
        ),
    ],
)  # fmt: skip
def test_forces_that_another_mode_leaves_open_are_named(data, who):
    r = resolve(**data)
    assert r.ok
    assert r.report.accelerations_unique is True
    assert r.report.undetermined == who  # was (): the mode at hand leaves nothing open
    assert not r.report.forces_unique


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
    monkeypatch.setattr(room, "all_solutions", lambda problem: [ModeAnswer(np.zeros(2), np.zeros(1, dtype=bool))])
    r = resolve(laws=[Reacting(2.2, 0)], A=[[0.0, 1.0, -c]], **data)  # Painleve's rod: there is none
    assert not r.ok


@pytest.mark.parametrize(
    ("M", "f", "W", "limits", "a"),
    [
        (np.eye(2) - 1.5e-16 * np.eye(2)[::-1], [2, -4], [[4, 2, 4], [2, 1, 2]], [1.8, 0.7, 0], [2, -4]),
        (ROUND, [0, -1, 1, -3], [[-1, 1], [1, -1], [1, 0], [0, 0]], [2.7, 0.0], [0, -1, 1, -3]),
        (HEAVY, [1e5, 0], [[0, -1, 1, 0], [-1, 0, 1, -1]], [3e4, 3e5, 0, 2e3], [0, 0]),
    ],
)  # fmt: skip
def test_forces_that_do_not_load_the_contacts_are_answered(M, f, W, limits, a):
    r = resolve(M, f, W, np.zeros(len(limits)), limits)  # W^T M^-1 f is rounding
    assert r.ok
    assert r.acceleration == pytest.approx(a, abs=1e-14)


@pytest.mark.parametrize("angle", [0.3, 0.8, 2.0])
def test_what_a_force_may_become_is_inside_its_disk(angle):
    force = np.array([np.cos(angle), np.sin(angle)])
    normals, distance = np.array([n for n, _ in sides(force)]), np.array([d for _, d in sides(force)])
    assert (normals @ force <= distance + 1e-15).all()
    around = np.linspace(0.0, 2.0 * np.pi, 721)
    outside = 1.0001 * np.stack([np.cos(around), np.sin(around)])
    assert (normals @ outside > distance[:, None]).any(axis=0).all()
