"""Contacts in time: exact and published impacts, Zeno, friction, standing, misuse."""

from __future__ import annotations

from importlib.metadata import files
from pathlib import Path

import casadi as ca
import numpy as np
import pytest

import dalembert as da
from dalembert.simulate.contact import Box, Contact, Heightfield, JointLimits, Plane, Sphere
from dalembert.simulate.contact.complementarity import complementarity, impact_impulses
from dalembert.simulate.contact.shapes import pairs_of
from tests.reference.contact.geometry import Geometry
from tests.reference.contact.impacts import limit
from tests.simulate.contact_cases import (
    brick,
    cradle,
    impacting_stick,
    rocking_block,
    sliding_rod,
    tennis_ball,
    vertical_ball,
)

FINE = {"method": "hybrid", "rtol": 1e-11, "atol": 1e-12}


def impacts(run):
    """Return the times of impacts."""
    return np.array([event.time for event in run.events if event.new == "impact"])


def after(run, time):
    """Return the velocities just after an event."""
    return run.v[np.flatnonzero(run.t == time)[-1]]


def test_bouncing_ball_and_its_zeno_point_to_1e_12():
    e, first = 0.5, np.sqrt(2 / 9.81)
    run = da.simulate(vertical_ball(), 2.0, [1.0], contacts=[Contact(Sphere("ball"), restitution=e)], **FINE)
    times = impacts(run)
    exact = np.array([first * (1 + 2 * sum(e**j for j in range(1, k))) for k in range(1, times.size + 1)])
    assert times.size > 10
    np.testing.assert_allclose(times, exact, atol=1e-12)
    rest = [event.time for event in run.events if event.new == "rest"]
    np.testing.assert_allclose(rest, [first * (1 + 2 * e / (1 - e))], atol=1e-12)
    assert abs(run.q[-1, 0]) < 1e-14
    assert run.modes[-1, 0] == 0
    np.testing.assert_allclose(run.reactions["ball-ground"][-1], [0, 0, 9.81], atol=1e-12)
    assert np.abs(run.energy_residual).max() < 1e-9


def test_the_speed_of_a_ball_at_rest_has_no_zeros():
    """Behind the limit of its impacts the speed is zero, and stays so: hundreds of zeros were reported in turn."""
    events = {"top": lambda _t, _q, v: v[0], "time": lambda t, _q, _v: max(0.0, 1.4 - t)}
    run = da.simulate(
        vertical_ball(), 2.0, [0.5], contacts=[Contact(Sphere("ball"), restitution=0.6)], events=events, rtol=1e-9
    )
    tops = [event.time for event in run.events if event.contact == "top"]
    strikes = [event.time for event in run.events if event.new == "impact"]
    assert tops[0] == 0.0
    assert all(top < strike for top, strike in zip(tops, strikes, strict=True))  # one before each impact
    assert [event.time for event in run.events if event.contact == "time"] == [pytest.approx(1.4, abs=1e-12)]


def test_limits_of_sequences():
    assert limit(list(np.cumsum(1e-6 * 0.5 ** np.arange(6)))) == pytest.approx(2e-6, rel=1e-9)
    assert limit(list(np.cumsum(1e-6 * np.ones(6)))) == 0.0
    assert limit([0.0, 1.0]) == 0.0


def test_rocking_block_published_impacts():
    m, q, contacts = rocking_block()
    run = da.simulate(m, 0.5, q, contacts=contacts, **FINE)
    times = impacts(run)
    np.testing.assert_allclose(times, [0.1246522555169, 0.3204701138055, 0.4841383962339], atol=2e-11)
    first = np.flatnonzero(run.t == times[0])
    a, b = 0.0125, 0.05
    assert run.v[first[0], 2] == pytest.approx(-2.634710125149, abs=1e-9)
    assert run.v[first[-1], 2] / run.v[first[0], 2] == pytest.approx((2 * b**2 - a**2) / (2 * (a**2 + b**2)), abs=1e-10)
    assert [e.contact for e in run.events if e.new == "open"] == ["left", "right", "left"]


def test_a_rocking_block_comes_to_rest_on_both_corners():
    """Corners strike in turn, ever faster: that is completed too, and nothing passes through the ground."""
    m, q, contacts = rocking_block()
    run = da.simulate(m, 2.0, q, contacts=contacts, method="hybrid", rtol=1e-9)
    assert run.ok
    assert [event.time for event in run.events if event.new == "rest"] == pytest.approx([1.8833874], abs=1e-6)
    np.testing.assert_allclose(run.q[-1, 1:], [0.05, 0.0], atol=1e-12)
    assert (run.modes[-1] == 0).all()
    assert np.abs(run.energy_residual).max() < 1e-9


def test_impacting_stick_published_velocities():
    m, q, v, contacts = impacting_stick()
    run = da.simulate(m, 0.1, q, v, contacts=contacts, **FINE)
    times = impacts(run)
    np.testing.assert_allclose(times[:1], [0.06027408909313], atol=1e-12)
    expected = [-0.5037327816692, -0.1294627240106, 1.6774607223128]
    np.testing.assert_allclose(after(run, times[0]), expected, atol=1e-11)


def test_tennis_ball_published_impacts_with_friction():
    m, q, v, contacts = tennis_ball()
    run = da.simulate(m, 1.2, q, v, contacts=contacts, **FINE)
    np.testing.assert_allclose(impacts(run), [0.3123105625618, 0.6246211251235, 0.9369316876853], atol=1e-12)
    np.testing.assert_allclose(run.q[-1], [0.66550815, 0.83863375, -1.61987034], atol=1e-8)


def test_newtons_cradle_hands_the_velocity_on():
    m, q, contacts = cradle()
    q[0] -= 0.1
    v = np.array([1.0, 0, 0, 0, 0])
    run = da.simulate(m, 0.3, q, v, contacts=contacts, method="hybrid", impacts="sequential", rtol=1e-9)
    np.testing.assert_allclose(run.v[-1], [0, 0, 0, 0, 1], atol=1e-12)
    together = da.simulate(m, 0.3, q, v, contacts=contacts, method="hybrid", rtol=1e-9)
    assert together.v[-1].sum() == pytest.approx(1.0, abs=1e-12)
    assert (together.v[-1] ** 2).sum() <= 1.0 + 1e-12
    assert (np.diff(together.v[-1]) >= -1e-12).all()


@pytest.mark.parametrize("law", ["newton", "poisson"])
def test_restitution_of_velocities_and_of_impulses_agree_for_one_contact_without_friction(law):
    contact = Contact(Sphere("ball"), restitution=0.6, impact=law)
    run = da.simulate(vertical_ball(), 0.6, [1.0], contacts=[contact], **FINE)
    time = impacts(run)[0]
    assert after(run, time)[0] == pytest.approx(0.6 * np.sqrt(2 * 9.81), abs=1e-11)


def test_poisson_and_newton_differ_with_friction():
    G = np.array([[2.0, 0.5, 0], [0.5, 1.0, 0], [0, 0, 1.0]])
    u = np.array([-1.0, 0.7, 0])
    found = {law: impact_impulses(G, u, np.array([0.3]), np.array([0.8]), [law]).r for law in ("newton", "poisson")}
    after_newton = G @ found["newton"] + u
    assert after_newton[0] == pytest.approx(0.8)
    compression = complementarity(G, u, np.array([0.3])).r
    assert found["poisson"][0] == pytest.approx(1.8 * compression[0])


def test_painleves_rod_is_named():
    m, q, contacts = sliding_rod(2.0)
    run = da.simulate(m, 0.2, q, [3.0, 0, 0], contacts=contacts, method="hybrid", rtol=1e-9)
    assert run.status == "no solution"
    assert "Painleve" in run.message
    assert "'tip'" in run.message
    assert "inconsistent" in run.message
    m, q, contacts = sliding_rod(0.5)
    assert da.simulate(m, 0.1, q, [3.0, 0, 0], contacts=contacts, method="hybrid", rtol=1e-9).ok


def test_a_sliding_block_stops_where_coulomb_says():
    contacts = [Contact(Sphere("brick", 0.03), friction=0.2, name="shoe")]
    b = da.Builder("sled")
    b.body("cart")
    b.joint("x", "prismatic", parent="world", child="cart", axis=(1, 0, 0))
    b.body("brick", mass=2.0, inertia=(0.1, 0.1, 0.1))
    b.joint("z", "prismatic", parent="cart", child="brick", axis=(0, 0, 1))
    m = b.build()
    run = da.simulate(m, 1.0, [0.0, 0.03], [1.0, 0.0], contacts=contacts, **FINE)
    stop = [event.time for event in run.events if event.new == "stick"]
    np.testing.assert_allclose(stop, [1.0 / (0.2 * 9.81)], atol=1e-11)
    np.testing.assert_allclose(run.q[-1], [0.5 / (0.2 * 9.81), 0.03], atol=1e-10)
    np.testing.assert_allclose(run.heat[-1], 1.0, atol=1e-9)
    stepped = da.simulate(m, 1.0, [0.0, 0.03], [1.0, 0.0], contacts=contacts, method="moreau", step=1e-3)
    np.testing.assert_allclose(stepped.q[-1], run.q[-1], atol=2e-3)
    assert stepped.v[-1, 0] == pytest.approx(0.0, abs=1e-14)


def test_both_methods_lay_a_brick_down_alike():
    m, contact = brick()
    q = m.neutral()
    q[2] = 0.1
    q = m.integrate(q, [0, 0, 0, 0.1, 0.05, 0.2])
    run = da.simulate(m, 1.0, q, contacts=[contact], method="moreau", step=5e-4)
    assert abs(run.q[-1, 2] - 0.03) < 1e-9
    assert np.abs(run.v[-1]).max() < 1e-9
    assert (run.modes[-1] == 0).sum() >= 3
    weight = sum(run.reactions[name][-1] for name in run.contacts)
    np.testing.assert_allclose(weight, [0, 0, 2 * 9.81], atol=1e-8)
    assert (np.diff(run.heat) > -1e-9).all()


def test_joint_limits_stop_and_let_go():
    b = da.Builder("arm")
    b.body("arm", mass=1.0, center=(0.5, 0, 0), inertia=(0.01, 0.1, 0.1))
    b.joint("hinge", "revolute", parent="world", child="arm", axis=(0, 1, 0), limits=(-1.0, 0.7))
    m = b.build()
    for method in ("hybrid", "moreau"):
        run = da.simulate(m, 2.0, [0.0], contacts=[JointLimits()], method=method, rtol=1e-9)
        assert run.q[-1, 0] == pytest.approx(0.7, abs=1e-6)
        assert run.v[-1, 0] == pytest.approx(0.0, abs=1e-9)
        assert run.ok


def test_heightfield_is_a_slope_with_its_normal():
    x = np.linspace(-2, 2, 9)
    slope = Heightfield(x, x, np.tile(0.3 * x[:, None], (1, 9)))
    height, n = slope.at(np.array([0.37, -0.2, 5.0]))
    assert height == pytest.approx(0.3 * 0.37)
    np.testing.assert_allclose(n, np.array([-0.3, 0, 1]) / np.hypot(0.3, 1))
    b = da.Builder("ball")
    b.body("ball", mass=1.0, inertia=(0.004, 0.004, 0.004))
    m = b.build(base="floating")
    q = m.neutral()
    q[2] = 0.1 * np.hypot(0.3, 1) + 1e-12
    contact = Contact(Sphere("ball", 0.1), slope, friction=1.0)
    run = da.simulate(m, 0.5, q, contacts=[contact], method="moreau", step=1e-3)
    down = 9.81 * 0.3 / np.hypot(0.3, 1) / (1 + 0.004 / (1.0 * 0.1**2))
    way = np.linalg.norm(run.q[-1, :3] - run.q[0, :3])
    assert way == pytest.approx(0.5 * down * 0.5**2, rel=5e-3)


def test_rows_are_the_derivatives_of_gaps_and_velocities():
    b = da.Builder("two")
    b.body("one", mass=1.0, inertia=(0.1, 0.1, 0.1))
    b.joint("first", "free", parent="world", child="one")
    b.body("other", mass=1.0, inertia=(0.1, 0.1, 0.1))
    b.joint("second", "free", parent="world", child="other")
    m = b.build()
    q = m.random(1)
    q[7:10] = q[:3] + np.array([1.0, 0.4, 0.3])
    v = np.random.default_rng(2).standard_normal(m.nv)
    contacts = [
        Contact(Sphere("one", 0.2, (0.1, 0.2, 0.3)), Plane((0.2, -0.3, 1.0), -2.0), name="ground"),
        Contact(Sphere("one", 0.2, (0.1, 0, 0)), Sphere("other", 0.1, (0, 0.1, 0)), name="pair"),
    ]
    g = Geometry(m, pairs_of(m, contacts))
    x, h = g.state(q, v), 1e-6
    ahead, behind = (m.integrate(q, s * h * v) for s in (1, -1))
    np.testing.assert_allclose((g.gaps(ahead) - g.gaps(behind)) / (2 * h), (x.W @ v)[::3], atol=1e-8)
    u = [(g.state(place, v).W @ v)[[0, 1, 2, 3]] for place in (ahead, behind)]
    # in the free joint a constant body velocity is no straight motion: J_dot v belongs to a = 0, as here
    np.testing.assert_allclose((u[0] - u[1]) / (2 * h), x.contact_drift[[0, 1, 2, 3]], atol=1e-6)


@pytest.mark.parametrize("height", [0.45, 0.5])
def test_go2_dropped_stands_without_drift_or_sinking(height):
    found = [p for p in files("example-robot-data") or () if p.name == "go2.urdf"]
    if not found:
        pytest.skip("example-robot-data has no go2.urdf")
    m = da.load(Path(str(found[0].locate())), base="floating")
    q = m.neutral()
    q[7:], q[2] = np.tile([0.0, 0.8, -1.6], 4), height
    feet = ("FL_foot", "FR_foot", "RL_foot", "RR_foot")
    contacts = [Contact(Sphere(foot, 0.022), friction=0.8, name=foot) for foot in feet]
    t, x, y = ca.SX.sym("t"), ca.SX.sym("q", m.nq), ca.SX.sym("v", m.nv)
    law = ca.Function("pd", [t, x, y], [ca.vertcat(ca.SX.zeros(6), 100 * (q[7:] - x[7:]) - 4 * y[6:])])
    run = da.simulate(m, 10.0, q, contacts=contacts, force=law, step=2e-3)
    assert run.ok
    assert run.samples["contact_residual"].max() < 1e-8
    stand, late = np.searchsorted(run.t, 0.5), np.searchsorted(run.t, 8.0)
    assert (run.modes[stand:] == 0).all()
    g = Geometry(m, pairs_of(m, contacts))
    states = [(i, g.state(run.q[i], run.v[i])) for i in range(stand, run.t.size, 50)]
    # rows hold in the middle of a step: while feet roll, gaps at its end follow by the square of the step
    assert max(np.abs(x.gaps).max() for _, x in states) < 3e-8
    assert max(np.abs(x.gaps).max() for i, x in states if i >= late) < 1e-12  # no sinking
    assert max(np.abs(x.W @ run.v[i]).max() for i, x in states) < 1e-4  # rows hold in the middle of a step
    assert max(np.abs(x.W @ run.v[i]).max() for i, x in states if i >= late) < 1e-11  # no creep
    # what moves after landing is the sway of the body on its controlled legs: a damped oscillation that dies out
    assert np.abs(run.q[late:, :3] - run.q[-1, :3]).max() < 1e-9
    sway = [np.abs(run.v[np.searchsorted(run.t, s) : np.searchsorted(run.t, s + 1.0)]).max() for s in range(1, 8)]
    assert (np.diff(np.log(sway)) < -1.0).all()
    weight = sum(run.reactions[foot][-1][2] for foot in feet)
    assert weight == pytest.approx(9.81 * m.mass, rel=1e-9)
    torque = np.asarray(law(0.0, run.q[-1], run.v[-1])).ravel()
    found = m.bias(run.q[-1], run.v[-1])
    x = g.state(run.q[-1], run.v[-1])
    forces = np.concatenate([x.axes[k] @ run.reactions[foot][-1] for k, foot in enumerate(feet)])
    np.testing.assert_allclose(found, torque + x.W.T @ forces, atol=1e-6)  # an equilibrium of all forces


def test_misuse_of_contacts_is_refused_in_words():
    m = vertical_ball()
    with pytest.raises(da.ModelError, match=r"interpenetrates \(metres, radians\): 'ball-ground' by 0\.5"):
        da.simulate(m, 1.0, [-0.5], contacts=[Contact(Sphere("ball"))], rtol=1e-9)
    with pytest.raises(da.ModelError, match="bal"):
        da.simulate(m, 1.0, [1.0], contacts=[Contact(Sphere("bal"))], rtol=1e-9)
    with pytest.raises(da.ModelError, match="no contact"):
        da.simulate(m, 1.0, [1.0], contacts=["ball"], rtol=1e-9)
    with pytest.raises(da.ModelError, match=r"restitution=1\.5"):
        Contact(Sphere("ball"), restitution=1.5)
    with pytest.raises(da.ModelError, match="two contacts"):
        da.simulate(m, 1.0, [1.0], contacts=[Contact(Sphere("ball")), Contact(Sphere("ball"))], rtol=1e-9)
    with pytest.raises(da.ModelError, match="impacts="):
        da.simulate(m, 1.0, [1.0], contacts=[Contact(Sphere("ball"))], method="hybrid", impacts="all", rtol=1e-9)
    with pytest.raises(da.ShapeError, match="three finite"):
        Box("ball", (1, 2))
    for wrong, words in (
        (lambda: Contact(Sphere("ball"), restitution="high"), "restitution='high'"),
        (lambda: Contact(Sphere("ball"), friction="rough"), "friction='rough'"),
        (lambda: Sphere("ball", "large"), "radius='large'"),
        (lambda: Plane(offset=np.nan), "offset=nan"),
    ):
        with pytest.raises(da.ModelError, match=words):
            wrong()


def test_event_driven_runs_go_on_bit_for_bit(tmp_path):
    contacts = [Contact(Sphere("ball"), restitution=0.8)]
    whole = da.simulate(vertical_ball(), 3.0, [1.0], contacts=contacts, method="hybrid", force=[1.0], rtol=1e-9)
    seen = []

    def keyboard(t, q, v):
        seen.append(t)
        if len(seen) == 5:
            raise KeyboardInterrupt

    path = tmp_path / "run.h5"
    part = da.simulate(
        vertical_ball(), 3.0, [1.0], contacts=contacts, method="hybrid", force=[1.0], rtol=1e-9, file=path,
        on_step=keyboard,
    )  # fmt: skip
    assert part.t[-1] < 3.0
    run = da.resume(path)
    np.testing.assert_array_equal(run.q, whole.q)
    assert run.events == whole.events
    assert run.steps == whole.steps
    assert np.abs(run.energy_residual).max() < 1e-9
    assert abs(run.work[-1]) > 0.5


def test_runs_with_contacts_are_stored_and_go_on(tmp_path):
    m, contact = brick()
    q = m.neutral()
    q[2] = 0.2
    whole = da.simulate(m, 0.5, q, contacts=[contact], step=1e-3)
    part = []

    def keyboard(t, q, v):
        part.append(t)
        if len(part) == 300:
            raise KeyboardInterrupt

    run = da.simulate(m, 0.5, q, contacts=[contact], step=1e-3, file=tmp_path / "run.h5", on_step=keyboard)
    assert run.status == "interrupted"
    done = da.resume(tmp_path / "run.h5")
    np.testing.assert_array_equal(done.q, whole.q)
    np.testing.assert_array_equal(done.forces, whole.forces)
    assert done.contacts == whole.contacts
    assert done.plot(("contacts", "energy", "reactions")).axes
