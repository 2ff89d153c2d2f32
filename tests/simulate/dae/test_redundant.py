"""Constraints that depend on each other: rows left out are watched, and chosen anew where the choice fails."""

import casadi as ca
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import dalembert as da
from dalembert.simulate import Event, Problem

BARS = 3
SPEED = -8.0


def parallelogram():
    """Three parallel bars of length one under one coupler: 12 coordinates, 12 rows of rank 11, one freedom.

    With bars along the ground the rank is 10, and other branches of motion cross.
    """
    n = BARS + 1
    q, v = ca.SX.sym("q", 3 * n), ca.SX.sym("v", 3 * n)
    centre = [q[3 * i : 3 * i + 2] for i in range(n)]
    along = [ca.vertcat(ca.cos(q[3 * i + 2]), ca.sin(q[3 * i + 2])) for i in range(n)]
    rows = {}
    for i in range(BARS):
        rows[f"ground {i}"] = centre[i] - along[i] / 2 - ca.vertcat(i, 0)
        rows[f"pin {i}"] = centre[i] + along[i] / 2 - (centre[-1] + (i - 1) * along[-1])
    moments = [1 / 12] * BARS + [1 / 3]
    kinetic = sum(ca.sumsqr(v[3 * i : 3 * i + 2]) / 2 + moments[i] * v[3 * i + 2] ** 2 / 2 for i in range(n))
    names = [f"{axis} {i}" for i in range(n) for axis in ("x", "y", "angle")]
    potential = sum(9.81 * c[1] for c in centre)
    return da.Lagrangian(q, v, kinetic=kinetic, potential=potential, constraints=rows, coordinates=names)


def start(angle, speed=SPEED):
    c, s = np.cos(angle), np.sin(angle)
    q = [[i + c / 2, s / 2, angle] for i in range(BARS)] + [[1 + c, s, 0.0]]
    v = [[-s * speed / 2, c * speed / 2, speed]] * BARS + [[-s * speed, c * speed, 0.0]]
    return np.ravel(q), np.ravel(v)


def one_freedom(angle, t_end):
    """The same motion in the bars' angle: I theta'' = -k cos(theta)."""
    inertia, weight = BARS / 3 + 1, (BARS / 2 + 1) * 9.81
    found = solve_ivp(
        lambda t, y: [y[1], -weight / inertia * np.cos(y[0])], (0, t_end), [angle, SPEED], rtol=1e-12, atol=1e-12
    )
    return found.y[0, -1]


@pytest.mark.parametrize("angle", [0.3, np.pi / 2, 2.0])
def test_a_mechanism_with_dependent_rows_turns_through_its_singular_configurations(angle):
    """Six turns: each row that might have been left out is needed somewhere, and twice a turn the rank falls."""
    run = Problem(parallelogram()).integrate((0, 5), *start(angle), rtol=1e-8, atol=1e-8)
    assert run.success, run.message
    assert run.start.redundant == 1
    exact = one_freedom(angle, 5)
    steps = run.statistics.steps
    assert abs(run["angle 0"][-1] - exact) < steps * 1e-8 * (1 + abs(exact))  # each step adds a tolerance at most
    assert np.abs(parallelogram().constraint(run.y[:12].T)).max() < 10 * 1e-8 * (1 + np.abs(run.y[:12]).max())


def test_rows_are_chosen_anew_when_the_rank_was_not_what_it_seemed():
    """The start lies in the singular configuration: rank 10 there, 11 elsewhere.

    With 10 rows the bars part after some turns: by radians, and pins open by the length of a bar.
    """
    run = Problem(parallelogram(), formulation="index3").integrate((0, 5), *start(0.0), rtol=1e-8, atol=1e-8)
    assert run.success, run.message
    assert run.start.redundant == 2
    assert run.statistics.rechosen >= 1
    exact = one_freedom(0.0, 5)
    assert np.abs(parallelogram().constraint(run.y[:12].T)).max() < 10 * 1e-8 * (1 + np.abs(run.y[:12]).max())
    share = max(1.0, run.statistics.steps / 5 / np.abs(run.y[12:24]).max())  # index 3: velocities to a tolerance over h
    assert abs(run["angle 0"][-1] - exact) < run.statistics.steps * share * 1e-8 * (1 + abs(exact))
    assert "chosen anew" in str(run.statistics)


def test_a_rank_that_changes_for_good_is_told_by_name():
    """A second rod that is the first one until x = 0.5, and then another: no motion satisfies both."""
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    rod = ca.sumsqr(q) - 1
    other = rod + ca.if_else(q[0] > 0.5, (q[0] - 0.5) ** 3, 0)
    system = da.Lagrangian(q, v, kinetic=ca.sumsqr(v) / 2, constraints={"rod": rod, "other": other})
    run = Problem(system).integrate((0, 10), [-1.0, 0.0], [0.0, 1.0], rtol=1e-8, atol=1e-8)
    assert run.status == -1
    assert "rod" in run.message or "other" in run.message
    assert 0.45 < run["x_0" if "x_0" in run.names else run.names[0]][-1] < 0.6


def test_events_are_counted_across_a_new_choice_of_rows():
    """At looser tolerances the rows that were left out may agree to the end, by rounding alone."""
    system = parallelogram()
    angle = system.symbols.q[2]
    events = [Event(ca.sin(angle / 2), direction=1), Event(angle + 35.0, terminal=True)]
    run = Problem(system, formulation="index3", events=events).integrate((0, 9), *start(0.0), rtol=1e-8, atol=1e-8)
    assert run.status == 1
    assert run.statistics.rechosen >= 1
    assert [len(t) for t in run.t_events] == [3, 1]  # sin rises at -2 pi, -6 pi, -10 pi
    assert run["angle 0"][-1] == pytest.approx(-35.0, abs=1e-9)


def test_an_ensemble_may_need_different_rows():
    """Starts in and out of the singular configuration, in threads: each run is what it is alone."""
    problem = Problem(parallelogram())
    angles = (0.3, 0.0, 1.0)
    q, v = (np.array(part) for part in zip(*[start(a) for a in angles], strict=True))
    many = problem.integrate_many((0, 0.5), q, v, threads=2, rtol=1e-8, atol=1e-8)
    for angle, run in zip(angles, many, strict=True):
        assert run.success, run.message
        assert run["angle 0"][-1] == pytest.approx(one_freedom(angle, 0.5), abs=1e-4)


@pytest.mark.parametrize("tolerance", [1e-6, 1e-7])
def test_radau_in_index_3_stops_where_branches_cross(tolerance):
    """From the singular start it once went on along another branch, 32 rad off, and said the end was reached."""
    run = Problem(parallelogram(), formulation="index3").integrate(
        (0, 5), *start(0.0), rtol=tolerance, atol=tolerance, method="radau", first_step=1e-5
    )
    assert not run.success
    assert "another branch" in run.message
    assert run.t[-1] < 5.0
