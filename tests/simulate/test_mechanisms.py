"""Smooth mechanisms in time: published problems, invariants, controllers, events, misuse."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import dalembert as da
from dalembert.simulate.events.asked import Event
from dalembert.simulate.plots import PANELS
from dalembert.simulate.time_methods import METHODS
from tests.simulate.linkages import crank_rocker, pendulum


def flying_and_spinning():
    """Return a heavy top on a ball joint and a body that flies, with a state in which both turn."""
    b = da.Builder("top and stone")
    b.body("top", mass=1.0, center=(0, 0, 0.1), inertia=(0.02, 0.02, 0.01))
    b.joint("ball", "spherical", parent="world", child="top")
    b.body("stone", mass=0.3, center=(0.1, 0, 0), inertia=(0.01, 0.02, 0.015))
    b.joint("flight", "free", parent="world", child="stone")
    b.body("puck", mass=0.2, center=(0.02, 0.01, 0), inertia=(0.01, 0.02, 0.015))
    b.joint("ice", "planar", parent="world", child="puck", axis=(0, 1, 0))
    b.body("wheel", mass=0.2, center=(0.02, 0.01, 0), inertia=(0.01, 0.02, 0.015))
    b.joint("axle", "continuous", parent="puck", child="wheel", axis=(0, 1, 0))
    m = b.build()
    q = m.integrate(m.neutral(), 0.3 * np.arange(m.nv))
    return m, q, np.array([1.0, 0.2, 30.0, 1, 2, 3, 1, 2, 3, 1, -1, 4, 2.0])


def plain_run(m, q, v, duration, rtol):
    """Integrate the embedded equations dq/dt = N(q) v by SciPy: an oracle that shares no chart."""

    def rate(t, y):
        place = m.normalize(y[: m.nq])
        return np.concatenate([m.rate(place, y[m.nq :]), m.forward(place, y[m.nq :]).acceleration])

    found = solve_ivp(rate, (0, duration), np.concatenate([q, v]), "DOP853", rtol=rtol, atol=1e-12)
    return m.normalize(found.y[: m.nq, -1]), found.y[m.nq :, -1]


def test_rotations_agree_with_the_embedded_equations():
    m, q, v = flying_and_spinning()
    run = da.simulate(m, 0.7, q, v, rtol=1e-11, atol=1e-11)
    q_end, v_end = plain_run(m, q, v, 0.7, 1e-11)
    assert np.abs(m.difference(run.q[-1], q_end)).max() < 1e-8
    np.testing.assert_allclose(run.v[-1], v_end, atol=1e-7)
    assert np.ptp(run.energy.total) < 1e-8


def test_convergence_has_order_eight():
    m, q, v = flying_and_spinning()
    exact = da.simulate(m, 0.2, q, v, rtol=1e-13, atol=1e-13)
    errors = [np.abs(m.difference(da.simulate(m, 0.2, q, v, step=h).q[-1], exact.q[-1])).max() for h in (0.02, 0.01)]
    assert 6.8 < np.log2(errors[0] / errors[1]) < 9.5


def test_variational_steps_are_of_second_order_and_keep_energy():
    m, q, v = flying_and_spinning()
    exact = da.simulate(m, 0.2, q, v, rtol=1e-12, atol=1e-12)
    runs = [da.simulate(m, 0.2, q, v, method="variational", step=h) for h in (2e-3, 1e-3)]
    errors = [np.abs(m.difference(run.q[-1], exact.q[-1])).max() for run in runs]
    assert 1.8 < np.log2(errors[0] / errors[1]) < 2.2
    m, q, v = crank_rocker()
    run = da.simulate(m, 60.0, q, v, method="variational", step=5e-3)
    assert run.position_residual.max() < 1e-12
    half = run.t.size // 2
    swing = np.ptp(run.energy.total)
    assert abs(run.energy.total[:half].mean() - run.energy.total[half:].mean()) < 0.02 * swing
    assert swing < 0.02 * run.kinetic.max()


def test_long_run_of_a_four_bar_stays_on_its_constraints():
    m, q, v = crank_rocker()
    run = da.simulate(m, 100.0, q, v, step=2e-3, every=0.2)
    assert run.steps == 50_000
    assert run.t.size == 501
    assert run.position_residual.max() < 1e-10
    assert abs(run.energy.total[-1] - run.energy.total[0]) < 1e-9 * run.kinetic.max()


def torque_forms(m):
    """Return the same joint forces in every form that `torque` takes."""
    t, q, v = ca.SX.sym("t"), ca.SX.sym("q", m.nq), ca.SX.sym("v", m.nv)
    times = np.linspace(0, 2, 3)
    values = np.outer(times, [1.0, 0.0, 0.5])
    return {
        "expression": ca.Function("f", [t, q, v], [ca.vertcat(t, 0, 0.5 * t)]),
        "table": (times, values),
        "named": {"drive": (times, values[:, 0]), "pivot": ca.Function("g", [t, q, v], [0.5 * t])},
        "callable": lambda t, q, v: np.array([t, 0.0, 0.5 * t]),
    }


@pytest.mark.parametrize("form", ["expression", "table", "named", "callable"])
def test_every_form_of_torque_gives_the_same_motion(form):
    m, q, v = crank_rocker()
    forms = torque_forms(m)
    run = da.simulate(m, 2.0, q, v, force=forms[form], rtol=1e-11, atol=1e-11)
    reference = da.simulate(m, 2.0, q, v, force=forms["expression"], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(run.q[-1], reference.q[-1], atol=1e-8)
    assert np.abs(run.energy_residual).max() < 1e-7
    assert abs(run.work[-1]) > 0.1


def test_events_are_located_to_rounding():
    m = pendulum()
    t, q, v = ca.SX.sym("t"), ca.SX.sym("q", 1), ca.SX.sym("v", 1)
    bottom = ca.Function("bottom", [t, q, v], [q - 1.5 * np.pi])
    period = 2.367841947576237449303295
    for event in (bottom, lambda t, q, v: q[0] - 1.5 * np.pi):
        run = da.simulate(m, 3.0, [np.pi], [0.0], events={"bottom": event}, rtol=1e-13, atol=1e-13)
        np.testing.assert_allclose(
            [e.time for e in run.events], [period / 4, 3 * period / 4, 5 * period / 4], atol=1e-11
        )
    once = Event(bottom, terminal=True, direction=-1, name="once")
    run = da.simulate(m, 3.0, [np.pi], [0.0], events=[once])
    assert run.status == "event"
    assert len(run.events) == 1
    assert run.t[-1] == pytest.approx(3 * period / 4, abs=1e-7)


def test_between_samples_is_as_accurate_as_the_samples():
    run = da.simulate(pendulum(), 10.0, [np.pi], [0.0], rtol=1e-12, atol=1e-12)
    q, _ = run.at([0.5, 5.0])
    np.testing.assert_allclose(np.cos(q[:, 0]), [-0.39104879155054638769, -0.9423054350437573355], atol=1e-10)
    with pytest.raises(da.ModelError, match="outside"):
        run.at(11.0)


def test_names_reach_everything():
    m, q, v = crank_rocker()
    run = da.simulate(m, 1.0, q, v)
    np.testing.assert_array_equal(run["drive"], run.q[:, 0])
    np.testing.assert_array_equal(run["drive.v"], run.v[:, 0])
    np.testing.assert_array_equal(run["knee.a"], run.acceleration[:, 1])
    assert run.reactions["loop"].shape == (run.t.size, 2)
    _, lam, _ = m.forward(run.q, run.v, np.zeros((run.t.size, 3)), run.t)
    np.testing.assert_allclose(np.asarray(run.reactions), -lam, atol=1e-9)
    with pytest.raises(da.ModelError, match="drive"):
        run["driv"]


@pytest.mark.parametrize("what", [what for what in PANELS if what != "unknowns"])
def test_every_panel_is_drawn(what):
    m, q, v = crank_rocker()
    figure = da.simulate(m, 0.5, q, v).plot(what)
    assert figure.axes


def test_steps_are_told_and_samples_come_at_equal_times():
    m, q, v = crank_rocker()
    seen = []
    run = da.simulate(m, 1.0, q, v, on_step=lambda t, q, v: seen.append(t), every=0.1)
    np.testing.assert_allclose(run.t, np.linspace(0, 1, 11), atol=1e-12)
    assert len(seen) == run.steps
    fine = da.simulate(m, 1.0, q, v, rtol=1e-12, atol=1e-12, every=0.1)
    np.testing.assert_allclose(run.q, fine.q, atol=1e-6)


def test_a_controller_that_goes_wrong_is_told_with_its_time_and_the_motion_kept():
    m, q, v = crank_rocker()
    wrong = [
        (lambda t, q, v: np.zeros(3 if t < 3.2 else 2), da.ShapeError, r"shape \(2,\) at t = 3\.2"),
        (lambda t, q, v: np.array([0.0, np.nan if t >= 3.2 else 0.0, 0.0]), da.ModelError, r"nan at t = 3\.2"),
        (lambda t, q, v: np.zeros(3) / 1 if t < 3.2 else {}[1], da.ModelError, r"failed at t = 3\.2.*KeyError"),
    ]
    for torque, kind, words in wrong:
        with pytest.raises(kind, match=words) as caught:
            da.simulate(m, 5.0, q, v, force=torque)
        run = caught.value.trajectory
        assert 3.0 < run.t[-1] <= 3.25


def test_misuse_is_refused_in_words():
    m, q, v = crank_rocker()
    with pytest.raises(da.ModelError, match=r"misses 'loop.*assemble"):
        da.simulate(m, 1.0, q + 0.1, v)
    with pytest.raises(da.ModelError, match="project"):
        da.simulate(m, 1.0, q, v + 1.0)
    with pytest.raises(da.ShapeError, match=r"\(3,\)"):
        da.simulate(m, 1.0, q[:2], v)
    with pytest.raises(da.ModelError, match=r"drive.*nan"):
        da.simulate(m, 1.0, [np.nan, 0, 0], v)
    with pytest.raises(da.ModelError, match="dop853"):
        da.simulate(m, 1.0, q, v, method="dop835")
    with pytest.raises(da.ModelError, match="duration=-1"):
        da.simulate(m, -1, q, v)
    with pytest.raises(da.ModelError, match="drive"):
        da.simulate(m, 1.0, q, v, force={"driv": 1.0})
    with pytest.raises(da.ShapeError, match=r"\(3,\)"):
        da.simulate(m, 1.0, q, v, force=[1.0, 2.0])
    with pytest.raises(da.ModelError, match="step"):
        da.simulate(m, 1.0, q, v, method="variational")


def stiff_arm():
    """Return two links whose second hinge has a damper of 10^4 N m s/rad."""
    b = da.Builder("arm", gravity=(0, 0, -9.81))
    for i, parent in enumerate(("world", "link 0")):
        b.body(f"link {i}", mass=1.0, center=(0.5, 0, 0), inertia=(0.01, 0.1, 0.1))
        b.joint(f"joint {i}", "revolute" if i else "continuous", parent=parent, child=f"link {i}", axis=(0, 1, 0),
                position=(float(i), 0, 0), damping=1e4 * i)  # fmt: skip
    return b.build()


@pytest.mark.parametrize("method", ["bdf", "radau"])
def test_stiff_steppers_agree_with_the_explicit_one(method):
    m, q, v = crank_rocker()
    torque = torque_forms(m)
    exact = da.simulate(m, 1.0, q, v, force=torque["named"], rtol=1e-12, atol=1e-12)
    run = da.simulate(m, 1.0, q, v, force=torque["named"], method=method, rtol=1e-9, atol=1e-9)
    assert run.ok
    np.testing.assert_allclose(run.q[-1], exact.q[-1], atol=1e-5)
    np.testing.assert_allclose(np.asarray(run.reactions)[-1], np.asarray(exact.reactions)[-1], atol=1e-3)
    assert run.position_residual.max() < 1e-9


def test_auto_takes_implicit_steps_where_the_motion_is_stiff_and_says_so():
    m = stiff_arm()
    q = m.neutral()
    run = da.simulate(m, 5.0, q, rtol=1e-8, atol=1e-8)
    assert run.method == "bdf"
    assert "stiff" in run.reason
    assert run.steps < 2000
    explicit = da.simulate(m, 0.05, q, method="dop853", rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(run.at(0.05)[0], explicit.q[-1], atol=1e-5)
    called = da.simulate(m, 5.0, q, force=lambda t, q, v: np.zeros(2), rtol=1e-8, atol=1e-8)
    assert called.method == "bdf"
    np.testing.assert_allclose(called.q[-1], run.q[-1], atol=1e-5)
    with pytest.raises(da.UnsupportedError, match="angles and lengths"):
        da.simulate(flying_and_spinning()[0], 1.0, method="bdf")


def test_methods_are_a_list():
    smooth = {"dop853", "dopri5", "rk4", "bdf", "radau", "ida", "variational", "penalty"}
    rough = {"hybrid", "moreau", "fixed"}
    assert set(METHODS) == smooth | rough
    m, q, v = crank_rocker()
    with pytest.raises(da.ModelError, match="needs contacts"):
        da.simulate(m, 1.0, q, v, method="hybrid")


def test_lower_order_pair_agrees():
    m, q, v = crank_rocker()
    fine = da.simulate(m, 1.0, q, v, rtol=1e-12, atol=1e-12)
    run = da.simulate(m, 1.0, q, v, method="dopri5", rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(run.q[-1], fine.q[-1], atol=1e-6)
