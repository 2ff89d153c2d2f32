"""Dry friction of bearings in time: coast-down, a pendulum on a journal, stick and slip, what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import linprog

import dalembert as da
from dalembert.simulate.contact.resting_together import holding_torques
from tests.simulate.linkages import crank_rocker

MU, R, G = 0.2, 0.05, 9.81


def rotor(kind="continuous"):
    """Return a balanced disc on a horizontal shaft: the load is its weight, whatever it does."""
    b = da.Builder("rotor")
    b.body("disc", mass=4.0, inertia=(0.1, 0.2, 0.1))
    b.joint("shaft", kind, "world", "disc", axis=(0, 1, 0))
    return b.build()


def test_a_rotor_coasts_down_in_closed_form():
    """I w0 = mu r m g T: the load is known, so that the time is; then it stays."""
    journal = da.BearingFriction("journal", "shaft", MU, radius=R)
    run = da.simulate(rotor("revolute"), 8.0, [0.0], [10.0], contacts=[journal])
    assert run.method == "hybrid"
    torque = MU * R * 4.0 * G
    (stop,) = [each for each in run.events if each.new == "stick"]
    assert stop.time == pytest.approx(0.2 * 10.0 / torque, rel=1e-11)
    assert run.q[-1, 0] == pytest.approx(0.5 * 10.0 * stop.time, rel=1e-9)
    assert run.v[-1, 0] == 0.0
    np.testing.assert_allclose(run.energy_residual, 0.0, atol=1e-8)
    loads = run.joint_forces
    np.testing.assert_allclose(np.linalg.norm(loads["shaft"].force, axis=1), 4.0 * G, rtol=1e-9)
    sliding = run.t < stop.time
    np.testing.assert_allclose(loads["shaft"].working[sliding, 4], -torque, rtol=1e-7)


def test_a_rotor_sticks_until_the_motor_is_stronger():
    """A torque that grows breaks it loose at mu_s r m g, and then works against mu_k r m g."""
    journal = da.BearingFriction("journal", "shaft", da.StaticKinetic(0.3, 0.2), radius=R)
    run = da.simulate(rotor("revolute"), 2.0, [0.0], [0.0], contacts=[journal], force=([0.0, 2.0], [[0.0], [1.0]]))
    (start,) = [each for each in run.events if each.new.startswith("slip")]
    assert start.time == pytest.approx(2.0 * 0.3 * R * 4.0 * G, rel=1e-9)
    gained = (2.0**2 - start.time**2) / 4 - 0.2 * R * 4.0 * G * (2.0 - start.time)
    assert run.v[-1, 0] == pytest.approx(gained / 0.2, rel=1e-9)


def pendulum():
    """Return a bar on a journal, q = 0 along x, gravity along -z, its moment about the centre 0.05."""
    b = da.Builder("pendulum")
    b.body("bar", mass=2.0, center=(0.3, 0, 0), inertia=(0.05, 0.05, 0.05))
    b.joint("pivot", "revolute", "world", "bar", axis=(0, 1, 0))
    return b.build()


def by_scipy(q, duration):
    """Return (time, angle) of all turning points of the same pendulum by hand, with the journal's torque mu r |F|."""
    m, c, inertia = 2.0, 0.3, 0.05 + 2.0 * 0.09

    def acceleration(q, v, sign):
        a = 0.0
        for _ in range(60):
            x = c * (-np.cos(q) * v * v - np.sin(q) * a)
            z = c * (np.sin(q) * v * v - np.cos(q) * a)
            a, old = (m * G * c * np.cos(q) - sign * MU * R * m * np.hypot(x, z + G)) / inertia, a
            if abs(a - old) < 1e-15:
                break
        return a

    t, turns = 0.0, [(0.0, q)]
    while True:
        sign = np.sign(acceleration(q, 0.0, 0.0))
        if acceleration(q, 0.0, sign) * sign <= 0.0:
            return turns
        event = lambda t, y: y[1]  # noqa: E731
        event.terminal, event.direction = True, -sign
        run = solve_ivp(lambda t, y, s=sign: [y[1], acceleration(y[0], y[1], s)], (t, duration), [q, sign * 1e-13],
                        method="DOP853", rtol=1e-12, atol=1e-13, events=event)  # fmt: skip
        if run.status != 1:
            return turns
        t, q = float(run.t_events[0][0]), float(run.y_events[0][0][0])
        turns.append((t, q))


def test_a_pendulum_on_a_journal_swings_as_scipy_says():
    """The load changes with angle, speed and friction itself; the last turning point sticks."""
    journal = da.BearingFriction("journal", "pivot", MU, radius=R)
    run = da.simulate(pendulum(), 30.0, [1.2], [0.0], contacts=[journal])
    turns = by_scipy(1.2, 30.0)
    assert len(turns) > 4
    angles = [float(run.q[int(np.flatnonzero(run.t == each.time)[0]), 0]) for each in run.events]
    times = [each.time for each in run.events]
    expected = dict(turns[1:])
    for t, angle in expected.items():
        k = int(np.argmin(np.abs(np.array(times) - t)))
        assert times[k] == pytest.approx(t, abs=1e-6)
        assert angles[k] == pytest.approx(angle, abs=1e-7)
    assert run.v[-1, 0] == 0.0
    assert run.q[-1, 0] == pytest.approx(turns[-1][1], abs=1e-7)
    np.testing.assert_allclose(run.energy_residual, 0.0, atol=1e-6)


def chain():
    b = da.Builder("chain")
    for i in range(2):
        b.body(f"bar {i}", mass=1.0, center=(0.25, 0, 0), inertia=(0.01, 0.03, 0.03))
        b.joint(f"hinge {i}", "revolute", f"bar {i - 1}" if i else "world", f"bar {i}", axis=(0, 1, 0),
                position=(0.5, 0, 0) if i else (0, 0, 0))  # fmt: skip
    return b.build()


def test_two_bearings_brake_each_other():
    """Accelerations of a run are those of `joint_forces(bearings=...)` at its states."""
    m = chain()
    journals = [da.BearingFriction(f"journal {i}", f"hinge {i}", 0.15, radius=0.03) for i in range(2)]
    run = da.simulate(m, 0.6, [0.1, 0.4], [1.0, -2.0], contacts=journals)
    moving = np.flatnonzero((np.abs(run.v) > 1e-3).all(axis=1))[::3]
    state = m.joint_forces(run.q[moving], run.v[moving], bearings=dict.fromkeys(("hinge 0", "hinge 1"), (0.03, 0.15)))
    np.testing.assert_allclose(run.acceleration[moving], state.acceleration, rtol=1e-9, atol=1e-9)
    assert moving.size > 5


def test_what_is_refused():
    journal = da.BearingFriction("journal", "lower", MU, radius=R)
    b = da.Builder("door")
    b.body("leaf", mass=20.0, center=(0.5, 0, 1), inertia=(7, 8.5, 1.7))
    b.joint("lower", "revolute", "world", "leaf", axis=(0, 0, 1))
    b.loop("upper", "revolute", "leaf", "world", placement=(0, 0, 1.8), other_placement=(0, 0, 1.8), axis=(0, 0, 1))
    with pytest.raises(da.ModelError, match="load of 'lower' is not unique"):
        da.simulate(b.build(), 1.0, v=[2.0], contacts=[journal])
    steep = da.BearingFriction("journal", "pivot", 3.0, radius=0.5)
    run = da.simulate(pendulum(), 1.0, [0.1], [1.0], contacts=[steep])
    assert run.status == "no solution"
    assert "'pivot'" in run.message
    assert "jam" in run.message
    m = chain()
    one = da.BearingFriction("journal", "hinge 0", 0.1, radius=0.03)
    with pytest.raises(da.ModelError, match="not beside 'plane'"):
        da.simulate(m, 0.1, contacts=[one, da.Bounded("plane", np.eye(2), 0.1)])
    with pytest.raises(da.ModelError, match="name of a joint"):
        da.BearingFriction("journal", 3, 0.1)
    with pytest.raises(da.ModelError, match="radius"):
        da.BearingFriction("journal", "hinge 0", 0.1, radius=0.0)


def test_a_linkage_coasts_until_its_bearings_rest_together():
    """Two bearings of a loop come to rest at once and hold it: it stays, and how they share the load is not unique."""
    m, q, v = crank_rocker()
    names = [joint.name for joint in m.joints]
    several = [da.BearingFriction(f"journal {name}", name, 0.2, radius=0.05) for name in names[:2]]
    run = da.simulate(m, 20.0, q, v, contacts=several)
    assert run.ok
    stopped = run.t > run.events[-1].time
    assert {each.new for each in run.events[-2:]} == {"stick"}
    np.testing.assert_allclose(run.v[stopped], 0.0, atol=1e-14)
    np.testing.assert_allclose(run.energy_residual, 0.0, atol=1e-6)
    loads = run.joint_forces
    assert not loads[names[0]].unique[-1, :2].any()
    assert loads[names[0]].unique[0, [0, 1, 5]].all()
    for name in names[:2]:
        limit = 0.2 * 0.05 * np.linalg.norm(loads[name].force[stopped][:, :2], axis=1)
        friction = run.forces[:, run.contact_columns[f"journal {name}"]][stopped, 0]
        assert (np.abs(friction) <= limit * (1 + 1e-9)).all()


def test_torques_that_hold_two_motions_in_many_ways():
    """Five that rest hold two motions: torques balance, and where one is beyond its limit the largest part is least."""
    rng, beyond = np.random.default_rng(0), 0
    for _ in range(20):
        J, force, limits = rng.standard_normal((5, 2)), rng.standard_normal(2), rng.uniform(0.1, 1.0, 5)
        mobility = np.diag(rng.uniform(0.5, 2.0, 2))
        torques = holding_torques(J @ mobility @ J.T, J @ mobility @ force, limits)
        np.testing.assert_allclose(J.T @ torques, -force, atol=1e-10)
        rows = np.block([[np.eye(5), -limits[:, None]], [-np.eye(5), -limits[:, None]]])
        least = linprog(np.eye(6)[5], rows, np.zeros(10), np.c_[J.T, np.zeros(2)], -force, bounds=(None, None)).fun
        largest = np.abs(torques / limits).max()
        assert largest == pytest.approx(least, rel=1e-9) if largest > 1.0 else least <= largest * (1 + 1e-9)
        beyond += largest > 1.0
    assert 0 < beyond < 20


def test_friction_of_a_bearing_beside_that_of_a_joint():
    """A joint with a limit of its own loads the bearing: accelerations are those of the state with both torques."""
    m = chain()
    both = [da.BearingFriction("journal", "hinge 0", 0.15, radius=0.03), da.JointFriction("rub", "hinge 1", 0.4)]
    run = da.simulate(m, 0.6, [0.1, 0.4], [1.0, -2.0], contacts=both)
    moving = np.flatnonzero((np.abs(run.v) > 1e-3).all(axis=1))[::3]
    rubs = np.column_stack([np.zeros(moving.size), -0.4 * np.sign(run.v[moving, 1])])
    state = m.joint_forces(run.q[moving], run.v[moving], rubs, bearings={"hinge 0": (0.03, 0.15)})
    np.testing.assert_allclose(run.acceleration[moving], state.acceleration, rtol=1e-9, atol=1e-9)
    assert moving.size > 5


# ----------------------------------------------------------------------------------------------------------------------
# A bar whose upper end goes down a guide while its lower end, a ball, slides on the floor.

LENGTH, BAR, CART, BALL, FLOOR = 1.0, 2.0, 1.0, 0.05, 0.1


def ladder():
    b = da.Builder("ladder")
    b.body("cart", mass=CART, inertia=(0.1, 0.1, 0.1))
    b.joint("guide", "prismatic", "world", "cart", axis=(0, 0, 1))
    moment = BAR * LENGTH**2 / 12
    b.body("bar", mass=BAR, center=(LENGTH / 2, 0, 0), inertia=(1e-3, moment, moment))
    b.joint("hinge", "revolute", "cart", "bar", axis=(0, 1, 0))
    return b.build()


def ladder_by_hand(angle, w):
    """Return angular acceleration and force of the hinge on the bar: Newton and Euler, with mu N and mu r |F|."""
    c, s, half = np.cos(angle), np.sin(angle), LENGTH / 2
    slip, torque = -FLOOR * np.sign(-(LENGTH * s + BALL) * w), 0.0
    E = np.array([
        [-BAR * half * s, -1, 0, -slip],
        [BAR * half * c, 0, -1, -1],
        [CART * LENGTH * c, 0, 1, 0],
        [BAR * LENGTH**2 / 12, -half * s, -half * c, (half * s + BALL) * slip + half * c],
    ])  # fmt: skip
    fast = w * w * np.array([BAR * half * c, BAR * half * s, CART * LENGTH * s, 0.0])
    for _ in range(60):
        x = np.linalg.solve(E, fast + np.array([0.0, -BAR * G, -CART * G, torque]))
        torque = -np.sign(w) * MU * R * np.hypot(x[1], x[2])
    return x[0], x[1:3]


def test_friction_of_a_bearing_beside_a_contact_that_slides():
    """The floor's force and its friction are part of the hinge's load."""
    floor = da.Contact(da.Sphere("bar", BALL, at=(LENGTH, 0, 0)), da.Plane(), friction=FLOOR)
    journal = da.BearingFriction("journal", "hinge", MU, radius=R)
    angle, w = 0.9, -0.3
    start = [LENGTH * np.sin(angle) + BALL, angle], [LENGTH * np.cos(angle) * w, w]
    run = da.simulate(ladder(), 0.35, *start, contacts=[floor, journal], every=0.05)
    assert run.ok
    hinge = run.joint_forces.in_axes("world")["hinge"]
    samples = np.flatnonzero(run.t > 0.0)
    assert len(samples) > 5
    for i in samples:
        turn, force = ladder_by_hand(run.q[i, 1], run.v[i, 1])
        assert run.acceleration[i, 1] == pytest.approx(turn, rel=1e-9)
        np.testing.assert_allclose(hinge.force[i, [0, 2]], force, atol=1e-9)
    np.testing.assert_allclose(run.energy_residual, 0.0, atol=1e-6)


def test_a_bearing_that_rests_together_with_a_contact_is_refused():
    """Floor and hinge hold the bar at rest; how they share that is no number's affair."""
    rough = da.Contact(da.Sphere("bar", BALL, at=(LENGTH, 0, 0)), da.Plane(), friction=1.0)
    journal = da.BearingFriction("journal", "hinge", MU, radius=R)
    run = da.simulate(ladder(), 0.1, [LENGTH * np.sin(1.4) + BALL, 1.4], [0.0, 0.0], contacts=[rough, journal])
    assert run.status == "no solution"
    assert "'hinge' rest, and closed contacts hold them, too" in run.message


def test_files_keep_bearings(tmp_path):
    journal = da.BearingFriction("journal", "pivot", da.StaticKinetic(0.25, MU), radius=R)
    run = da.simulate(pendulum(), 1.0, [1.2], [0.0], contacts=[journal])
    run.save(tmp_path / "run.h5")
    again = da.Trajectory.load(tmp_path / "run.h5").repeat()
    np.testing.assert_array_equal(again.q, run.q)
    assert [str(each) for each in again.events] == [str(each) for each in run.events]
