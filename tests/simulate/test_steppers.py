"""Every smooth stepper takes what `da.simulate` promises; the compiled explicit loop beside its plain twin."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
import scipy.integrate

import dalembert as da
from dalembert.simulate import runge_kutta
from dalembert.simulate.events.asked import Event
from dalembert.simulate.steppers import stiff
from dalembert.simulate.steppers.explicit import PAIRS
from tests.reference.explicit import Plain
from tests.simulate.linkages import crank_rocker
from tests.simulate.test_mechanisms import flying_and_spinning, stiff_arm, torque_forms

SMOOTH = {
    "dop853": ({"rtol": 1e-10, "atol": 1e-10}, 1e-7),
    "dopri5": ({"rtol": 1e-9, "atol": 1e-9}, 1e-6),
    "bdf": ({"rtol": 1e-9, "atol": 1e-9}, 1e-6),
    "radau": ({"rtol": 1e-9, "atol": 1e-9}, 1e-6),
    "variational": ({"step": 1e-3}, 1e-5),
}
"""Steppers without contacts: options, and the error they reach."""


def push(t, q, v):
    return np.array([np.sin(3 * t) - 0.2 * v[0], 0.0, 0.5 * t - 0.1 * q[2]])


def pushed(m):
    t, q, v = ca.SX.sym("t"), ca.SX.sym("q", m.nq), ca.SX.sym("v", m.nv)
    tau = ca.vertcat(ca.sin(3 * t) - 0.2 * v[0], 0, 0.5 * t - 0.1 * q[2])
    return ca.Function("push", [t, q, v], [tau]), ca.Function("level", [t, q, v], [ca.sin(q[0])])


@pytest.fixture(scope="module")
def exact():
    m, q, v = crank_rocker()
    torque, level = pushed(m)
    options = {"force": torque, "events": {"level": level}, "rtol": 1e-12, "atol": 1e-12}
    return da.simulate(m, 1.0, q, v, **options)


@pytest.mark.parametrize("how", ["compiled", "called"])
@pytest.mark.parametrize("method", SMOOTH)
def test_every_stepper_takes_functions_and_events_compiled_or_called(method, how, exact):
    m, q, v = crank_rocker()
    torque, level = pushed(m)
    options, error = SMOOTH[method]
    seen = []
    if how == "called":
        torque, level = push, lambda t, q, v: np.sin(q[0])
        options = options | {"on_step": lambda t, q, v: seen.append(t)}
    run = da.simulate(m, 1.0, q, v, method=method, force=torque, events={"level": level}, **options)
    assert run.ok
    np.testing.assert_allclose(run.q[-1], exact.q[-1], atol=error)
    assert [(e.contact, e.new) for e in run.events] == [(e.contact, e.new) for e in exact.events]
    np.testing.assert_allclose([e.time for e in run.events], [e.time for e in exact.events], atol=error)
    assert run.work[-1] == pytest.approx(exact.work[-1], abs=error)
    assert len(seen) == (run.steps if how == "called" else 0)
    assert seen == sorted(seen)
    np.testing.assert_allclose(run.at(0.4567)[0], exact.at(0.4567)[0], atol=error)


@pytest.mark.parametrize("method", SMOOTH)
def test_a_terminal_event_ends_the_run_where_it_happens(method, exact):
    m, q, v = crank_rocker()
    torque, level = pushed(m)
    options, error = SMOOTH[method]
    events = [Event(level, True, -1, "falls"), Event(level, direction=1, name="rises")]
    run = da.simulate(m, 1.0, q, v, method=method, force=torque, events=events, every=0.1, **options)
    assert run.status == "event"
    assert "falls" in run.message
    assert run.t[-1] == pytest.approx(exact.events[0].time, abs=error)
    assert abs(np.sin(run.q[-1, 0])) < 1e-9
    np.testing.assert_allclose(run.t[:-1], 0.1 * np.arange(run.t.size - 1), atol=1e-12)


@pytest.mark.parametrize("method", SMOOTH)
@pytest.mark.parametrize(
    ("torque", "kind", "words"),
    [
        (lambda t, q, v: np.zeros(3 if t < 0.32 else 2), da.ShapeError, r"shape \(2,\) at t = 0\.32"),
        (lambda t, q, v: np.array([0.0, np.nan if t >= 0.32 else 0.0, 0.0]), da.ModelError, r"nan at t = 0\.32"),
        (lambda t, q, v: np.zeros(3) if t < 0.32 else {}[1], da.ModelError, r"failed at t = 0\.32.*KeyError"),
    ],
)
def test_a_controller_that_goes_wrong_is_told_with_its_time_and_the_motion_kept(method, torque, kind, words):
    m, q, v = crank_rocker()
    with pytest.raises(kind, match=words) as caught:
        da.simulate(m, 0.5, q, v, force=torque, method=method, **SMOOTH[method][0])
    assert 0.25 < caught.value.trajectory.t[-1] <= 0.33


@pytest.mark.parametrize("method", ["bdf", "radau"])
def test_implicit_runs_go_on_bit_for_bit(method, tmp_path, monkeypatch):
    monkeypatch.setattr(stiff, "BLOCK", 100)
    m, q, v = crank_rocker()
    torque, level = pushed(m)
    options = {"force": torque, "method": method, "events": {"level": level}, "rtol": 1e-9, "atol": 1e-9}
    whole = da.simulate(m, 1.0, q, v, **options)
    taken = []

    def keyboard(t, q, v):
        taken.append(t)
        if len(taken) == 250:
            raise KeyboardInterrupt

    part = da.simulate(m, 1.0, q, v, on_step=keyboard, file=tmp_path / "run.h5", **options)
    assert part.status == "interrupted"
    assert 200 < part.steps < whole.steps
    run = da.resume(tmp_path / "run.h5")
    for name in ("t", "q", "v", "work"):
        np.testing.assert_array_equal(run.samples[name], whole.samples[name])
    assert run.steps == whole.steps
    assert run.events == whole.events


def test_a_stiff_controller_given_as_a_function_is_stable():
    """A damper of 10^4 N m s/rad in Python: explicit steps would be a hundred times shorter."""
    m = stiff_arm().with_passive(False)
    run = da.simulate(m, 2.0, force=lambda t, q, v: np.array([0.0, -1e4 * v[1]]), rtol=1e-7, atol=1e-7)
    assert run.method == "bdf"
    assert run.steps < 1000
    built_in = da.simulate(stiff_arm(), 2.0, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(run.q[-1], built_in.q[-1], atol=1e-4)


@pytest.mark.parametrize("method", ["bdf", "radau"])
def test_equal_times_are_those_asked_for(method):
    m, q, v = crank_rocker()
    fine = da.simulate(m, 1.0, q, v, rtol=1e-12, atol=1e-12, every=0.1)
    run = da.simulate(m, 1.0, q, v, method=method, rtol=1e-9, atol=1e-9, every=0.1)
    np.testing.assert_allclose(run.t, np.linspace(0, 1, 11), atol=1e-12)
    np.testing.assert_allclose(run.q, fine.q, atol=1e-6)
    np.testing.assert_allclose(run.at(0.55)[0], fine.at(0.55)[0], atol=1e-6)


def test_what_a_stepper_cannot_do_is_refused_in_words():
    m, q, v = crank_rocker()
    with pytest.raises(da.UnsupportedError, match="chooses its steps"):
        da.simulate(m, 1.0, q, v, method="bdf", step=1e-3)
    with pytest.raises(da.UnsupportedError, match="angles and lengths, not free, planar, spherical"):
        da.simulate(flying_and_spinning()[0], 1.0, method="radau")


@pytest.mark.parametrize("method", PAIRS)
@pytest.mark.parametrize("make", [crank_rocker, flying_and_spinning])
def test_the_compiled_loop_agrees_with_its_plain_twin(make, method):
    m, q, v = make()
    run = da.simulate(m, 0.5, q, v, method=method, rtol=1e-8, atol=1e-8)
    plain = Plain(m, lambda t, q, v: np.zeros(m.nv), method, 1e-8, 1e-8)
    for k in range(run.t.size - 1):
        _, y = plain.stages(run.t[k], run.q[k], run.v[k], run.step[k + 1])
        place, speed = plain.settle(run.t[k + 1], run.q[k], y)
        assert np.abs(m.difference(run.q[k + 1], place)).max() < 1e-12
        np.testing.assert_allclose(speed, run.v[k + 1], atol=1e-11 * (1 + np.abs(speed).max()))
    t, places, _ = plain.run(0.0, 0.5, q, v, run.step[1])
    np.testing.assert_allclose(t, run.t, rtol=1e-5)
    assert np.abs(m.difference(run.q[-1], places[-1])).max() < 1e-7


def test_the_plain_twin_takes_forces():
    m, q, v = crank_rocker()
    forms = torque_forms(m)
    run = da.simulate(m, 0.3, q, v, force=forms["table"], rtol=1e-9, atol=1e-9)
    plain = Plain(m, forms["callable"], "dop853", 1e-9, 1e-9)
    _, places, _ = plain.run(0.0, 0.3, q, v, run.step[1])
    np.testing.assert_allclose(places[-1], run.q[-1], atol=1e-8)


def nan_late(m):
    t, q, v = ca.SX.sym("t"), ca.SX.sym("q", m.nq), ca.SX.sym("v", m.nv)
    return ca.Function("late", [t, q, v], [ca.sqrt(0.3 - t) + 1])


@pytest.mark.parametrize(
    ("change", "kind", "words"),
    [
        ({"forse": 1.0}, da.ModelError, "no option 'forse'.*did you mean 'force'"),
        ({"impacts": "simultaneous"}, da.ModelError, "no option 'impacts'"),
        ({"t": np.nan}, da.ModelError, "t=nan"),
        ({"on_step": 3}, da.ModelError, "on_step is int"),
        ({"on_step": lambda t, q, v: 1 / 0}, da.ModelError, "failed at t = .*ZeroDivisionError"),
        ({"events": [lambda t, q, v: q]}, da.ShapeError, r"shape \(3,\) at t = 0"),
        ({"events": [lambda t, q, v: np.nan if t > 0.3 else 1.0]}, da.ModelError, r"event 0 is nan at t = 0\.3"),
        ({"events": [lambda t, q, v: 1 / 0]}, da.ModelError, "failed at t = 0 s: ZeroDivisionError"),
        ({"force": ([0.0, 0.2], np.ones((2, 3)))}, da.ModelError, "from 0 to 0.2 s and the run from 0 to 0.5 s"),
        ({"force": ca.SX.sym("t")}, da.ModelError, "casadi.Function"),
        ({"force": {"drive": lambda t, q, v: np.ones(2)}}, da.ShapeError, r"'drive' has shape \(2,\) at t = 0"),
    ],
)
@pytest.mark.parametrize("method", ["dop853", "bdf", "variational"])
def test_bad_input_is_named(method, change, kind, words):
    m, q, v = crank_rocker()
    with pytest.raises(kind, match=words) as caught:
        da.simulate(m, 0.5, q, v, **({"method": method} | SMOOTH[method][0] | change))
    if "on_step" in change and callable(change["on_step"]):
        assert caught.value.trajectory.t.size > 1


@pytest.mark.parametrize("method", ["dop853", "variational"])
def test_a_compiled_event_that_is_no_number_ends_the_run(method):
    m, q, v = crank_rocker()
    run = da.simulate(m, 0.5, q, v, method=method, events={"late": nan_late(m)}, **SMOOTH[method][0])
    assert run.status == "no solution"
    assert "'late' is nan" in run.message
    assert 0.2 < run.t[-1] <= 0.3


def test_other_things_than_systems_are_refused():
    with pytest.raises(da.ModelError, match=r"not str; da\.load"):
        da.simulate("robot.urdf", 1.0)


def test_a_dict_may_hold_functions_beside_tables_and_numbers(exact):
    m, q, v = crank_rocker()
    t, x, y = ca.SX.sym("t"), ca.SX.sym("q", 3), ca.SX.sym("v", 3)
    torque = {
        "drive": lambda t, q, v: np.sin(3 * t) - 0.2 * v[0],
        "pivot": ca.Function("f", [t, x, y], [0.5 * t - 0.1 * x[2]]),
        "knee": ([0.0, 2.0], [0.0, 0.0]),
    }
    run = da.simulate(m, 1.0, q, v, force=torque, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(run.q[-1], exact.q[-1], atol=1e-7)


def test_the_end_is_a_sample_whatever_is_asked_for():
    m, q, v = crank_rocker()
    for method, (options, _) in SMOOTH.items():
        run = da.simulate(m, 0.25, q, v, method=method, every=0.1, **options)
        np.testing.assert_allclose(run.t, [0.0, 0.1, 0.2, 0.25], atol=1e-12)


def test_a_mechanism_that_cannot_move_stays():
    b = da.Builder("post")
    b.body("post", mass=1.0)
    b.joint("weld", "fixed", parent="world", child="post")
    assert da.simulate(b.build(), 1.0).ok


@pytest.mark.parametrize("method", SMOOTH)
def test_a_controller_that_fails_at_once_leaves_the_start(method):
    m, q, v = crank_rocker()
    for torque, words in (
        (lambda t, q, v: {}[1], r"force \(<lambda>\) failed at t = 0 s: KeyError"),
        (lambda t, q, v: np.zeros(3) + 1j, "complex numbers at t = 0 s"),
    ):
        for chosen in (method, "auto"):
            options = SMOOTH[method][0] if chosen == method else {}
            with pytest.raises(da.DalembertError, match=words) as caught:
                da.simulate(m, 0.5, q, v, force=torque, method=chosen, **options)
            assert caught.value.trajectory.t.tolist() == [0.0]


def test_a_controller_that_fails_when_read_back_keeps_the_motion():
    m, q, v = crank_rocker()
    calls = []

    def battery(t, q, v):
        calls.append(t)
        if len(calls) > 500:
            raise RuntimeError("empty")
        return np.zeros(3)

    with pytest.raises(da.ModelError, match=r"battery.*empty") as caught:
        da.simulate(m, 0.5, q, v, force=battery, method="bdf")
    assert caught.value.trajectory.t.size > 1
    assert np.isnan(caught.value.trajectory.work).all()


@pytest.mark.parametrize("method", SMOOTH)
def test_reactions_under_a_curved_python_law_are_those_of_the_same_expression(method):
    """The joint forces at a sample are those of its own state, not of the last one."""
    m, q, v = crank_rocker()
    s = ca.SX.sym("t"), ca.SX.sym("q", 3), ca.SX.sym("v", 3)
    law = ca.Function(
        "law", s, [ca.vertcat(5 * ca.sin(2 * s[1][0]) - 0.1 * s[2][0], 0, ca.cos(s[1][2]) * s[2][2] ** 2)]
    )
    options = {"method": method, "every": 0.1, **SMOOTH[method][0]}
    compiled = da.simulate(m, 1.0, q, v, force=law, **options)
    called = da.simulate(
        m, 1.0, q, v, force=lambda t, q, v: np.array([5 * np.sin(2 * q[0]) - 0.1 * v[0], 0, np.cos(q[2]) * v[2] ** 2]),
        **options,
    )  # fmt: skip
    assert called.ok
    np.testing.assert_allclose(called.reactions["loop"], compiled.reactions["loop"], atol=2e-5)


@pytest.mark.parametrize("method", SMOOTH)
def test_an_expression_that_is_no_number_is_named(method):
    m, q, v = crank_rocker()
    s = ca.SX.sym("t"), ca.SX.sym("q", 3), ca.SX.sym("v", 3)
    law = ca.Function("law", s, [ca.vertcat(ca.sqrt(0.1 - s[0]), 0, 0)])
    run = da.simulate(m, 0.5, q, v, force=law, method=method, **SMOOTH[method][0])
    assert run.status == "no solution"
    assert run.t[-1] == pytest.approx(0.1, abs=1e-3)
    assert "force[0] is nan at t = 0.1" in run.message


@pytest.mark.parametrize("method", SMOOTH)
def test_states_next_to_a_sample_differ_by_rounding(method):
    m, q, v = crank_rocker()
    run = da.simulate(m, 1.0, q, v, method=method, every=0.1, **SMOOTH[method][0])
    for t in run.t[1:-1]:
        np.testing.assert_allclose(run.at(np.nextafter(t, 2.0))[0], run.at(t)[0], atol=1e-14)


def test_a_python_law_too_stiff_for_variational_steps_is_told():
    m, q, v = crank_rocker()
    run = da.simulate(m, 1.0, q, v, force=lambda t, q, v: -1e5 * v, method="variational", step=1e-2)
    assert run.status == "no solution"
    assert "do not settle" in run.message


@pytest.mark.parametrize("name", ["RK45", "DOP853"])
def test_tables_are_those_of_scipy(name):
    ours, theirs = getattr(runge_kutta, name), getattr(scipy.integrate, name)
    tables = [table for table in vars(ours) if not table.startswith("_")]
    assert len(tables) >= 5
    for table in tables:
        assert (getattr(ours, table) == getattr(theirs, table)).all(), table


@pytest.mark.parametrize("options", [{"step": 1e-15}, {"max_step": 1e-15}, {"step": 1e-15, "every": 0.1}])
@pytest.mark.parametrize("method", ["rk4", "dop853"])
def test_steps_without_end_are_refused(method, options):
    with pytest.raises(da.ModelError, match=r"1e\+15 steps in 1 s"):
        da.simulate(stiff_arm(), 1.0, method=method, **options)
