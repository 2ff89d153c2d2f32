"""The contact engine: against its plain twin, closed forms, and systems that only it takes."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

import dalembert as da
from dalembert.examples import two_blocks
from dalembert.friction import Coulomb, Dry, JointFriction, StaticKinetic, Stribeck, Unilateral
from dalembert.simulate.contact import Contact, Heightfield, Plane, Sphere
from tests.reference.contact.hybrid import simulate_plain
from tests.reference.dry.simulate import simulate as simulate_dry
from tests.simulate.belt_events import EVENTS
from tests.simulate.contact_cases import (
    cam_follower,
    cradle,
    impacting_stick,
    rocking_block,
    tennis_ball,
    vertical_ball,
)
from tests.simulate.toys import hopper, woodpecker

TIGHT = {"rtol": 1e-10, "atol": 1e-12}


def moved(run):
    """Return the events of a run as (contact, before, after), and their times."""
    return [(e.contact, e.old, e.new) for e in run.events], np.array([e.time for e in run.events])


def bounces(e, h=0.9, g=9.81):
    """Return the times of all impacts of a ball that falls from h."""
    first = np.sqrt(2 * h / g)
    return lambda count: first + 2 * first * np.cumsum(np.concatenate([[0.0], e ** np.arange(1, count)]))


def test_a_ball_bounces_and_comes_to_rest():
    ball = [Contact(Sphere("ball", 0.1), restitution=0.8)]
    run = da.simulate(vertical_ball(), 5.0, [1.0], [0.0], contacts=ball, **TIGHT)
    assert run.ok, run
    times = np.array([e.time for e in run.events if e.new == "impact"])
    np.testing.assert_allclose(times, bounces(0.8)(times.size), rtol=0, atol=1e-11)
    rest = next(e.time for e in run.events if e.new == "rest")
    first = np.sqrt(2 * 0.9 / 9.81)
    np.testing.assert_allclose(rest, first + 2 * first * 0.8 / 0.2, atol=1e-9)
    np.testing.assert_allclose(run.q[-1, 0], 0.1, atol=1e-12)


def stick():
    m, q, v, contacts = impacting_stick()
    return (m, 2.0, q, v), {"contacts": contacts}


def tennis():
    m, q, v, contacts = tennis_ball()
    return (m, 3.0, q, v), {"contacts": contacts}


def rocking():
    m, q, contacts = rocking_block()
    return (m, 0.5, q), {"contacts": contacts}


def in_a_row():
    m, q, contacts = cradle(5)
    start = q - [0.1, 0.0, 0.0, 0.0, 0.0]
    return (m, 1.0, start, [1.0, 0.0, 0.0, 0.0, 0.0]), {"contacts": contacts, "impacts": "sequential"}


def hopping():
    m, spring, contacts = hopper()
    return (m, 1.0, [0.8, 0.5]), {"contacts": contacts, "force": spring}


def pecking():
    m, q, law, contacts = woodpecker()
    return (m, 0.15, q), {"contacts": contacts, "force": law}


def following():
    m, q, v, spring, contacts = cam_follower()
    return (m, 0.4, q, v), {"contacts": contacts, "force": spring}


def down_a_slope():
    """A point that slides down a slope, strikes the floor at its lower edge, slides on and stops."""
    b = da.Builder("point")
    b.body("cart")
    b.joint("x", "prismatic", parent="world", child="cart", axis=(1, 0, 0))
    b.body("point", mass=1.0, inertia=(0.1, 0.1, 0.1))
    b.joint("z", "prismatic", parent="cart", child="point", axis=(0, 0, 1))
    ground = Heightfield([-1.0, 0.0, 2.0], [-1.0, 1.0], np.tile([[0.5], [0.0], [0.0]], (1, 2)))
    return (b.build(), 1.5, [-0.5, 0.25], [0.0, 0.0]), {"contacts": [Contact(Sphere("point"), ground, friction=0.2)]}


def test_a_point_bounces_on_level_cells_as_on_a_plane():
    """Many short flights within one cell, over its edges, to rest: a heightfield without heights is a plane."""
    (m, *_), _ = down_a_slope()
    level = Heightfield([-1.0, 0.0, 0.3, 2.0], [-1.0, 1.0], np.zeros((4, 2)))
    runs = [
        da.simulate(
            m, 1.2, [-0.5, 0.2], [1.0, 0.0], contacts=[Contact(Sphere("point"), ground, 0.1, 0.5, name="point")],
            method="hybrid", **TIGHT,
        )
        for ground in (Plane(), level)
    ]  # fmt: skip
    assert runs[0].ok
    assert runs[1].ok, runs[1].message
    (words, times), (other, others) = moved(runs[0]), moved(runs[1])
    assert words == other
    assert words[-1][1:] == ("slip", "stick")
    np.testing.assert_allclose(others, times, rtol=0, atol=1e-10)
    np.testing.assert_allclose(runs[1].q[-1], runs[0].q[-1], atol=1e-10)


@pytest.mark.parametrize(
    "case",
    [stick, tennis, rocking, in_a_row, hopping, pecking, following, down_a_slope],
    ids=lambda case: case.__name__,
)
def test_the_engine_finds_the_events_of_its_plain_twin(case):
    given, options = case()
    plain = simulate_plain(*given, **options, **TIGHT)
    fast = da.simulate(*given, method="hybrid", **options, **TIGHT)
    assert plain.status == fast.status
    assert len(plain.events) >= 2
    (words, times), (other, others) = moved(plain), moved(fast)
    assert words == other
    np.testing.assert_allclose(others, times, rtol=0, atol=1e-8)
    np.testing.assert_allclose(fast.q[-1], plain.q[-1], rtol=0, atol=1e-8)
    np.testing.assert_allclose(fast.v[-1], plain.v[-1], rtol=0, atol=1e-7)


@pytest.mark.parametrize("method", ["auto", "hybrid", "dop853", "radau"])
def test_every_name_of_the_engine_finds_two_blocks_on_a_belt(method):
    """Against forty digits; where all contacts stick their rows depend on each other."""
    run = da.simulate(two_blocks(), 11.0, [0.0, 0.0], [0.3, 0.3], method=method, rtol=1e-12, atol=1e-14)
    assert run.method == "hybrid"
    words, times = moved(run)
    assert words == [tuple(each[1:]) for each in EVENTS[: len(words)]]
    assert len(words) == 13
    np.testing.assert_allclose(times, [float(each[0]) for each in EVENTS[:13]], rtol=0, atol=1e-11)


def bouncing_point(**options):
    """Return a point of 1 kg over the ground as a Lagrangian."""
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    floor = Unilateral("floor", v[0], gap=q[1], **options)
    return da.Lagrangian(q, v, ca.sumsqr(v) / 2, 9.81 * q[1], unilateral=[floor])


def test_a_lagrangian_bounces():
    run = da.simulate(bouncing_point(restitution=0.8), 5.0, [0.0, 0.9], [0.5, 0.0], **TIGHT)
    assert run.ok, run
    times = np.array([e.time for e in run.events if e.new == "impact"])
    np.testing.assert_allclose(times, bounces(0.8)(times.size), rtol=0, atol=1e-11)
    np.testing.assert_allclose(run.q[-1], [2.5, 0.0], atol=1e-10)


def test_a_lagrangian_slides_and_stops():
    mu, speed = 0.4, 1.0
    run = da.simulate(bouncing_point(law=mu), 1.0, [0.0, 0.0], [speed, 0.0], **TIGHT)
    assert run.ok, run
    stop = speed / (mu * 9.81)
    times = {(e.old, e.new): e.time for e in run.events}
    np.testing.assert_allclose(times["slip", "stick"], stop, atol=1e-11)
    np.testing.assert_allclose(run.q[-1, 0], speed * stop / 2, atol=1e-11)
    np.testing.assert_allclose(run.heat[-1], speed**2 / 2, rtol=1e-9)


def rubbing_pendulum(limit):
    """Return a rod on a hinge with dry friction."""
    b = da.Builder("pendulum")
    b.body("rod", mass=1.0, inertia=(0.02, 0.02, 0.02), center=(0, 0, -0.5))
    b.joint("hinge", "revolute", parent="world", child="rod", axis=(0, 1, 0), friction=limit)
    return b.build()


def test_joint_friction_acts_as_in_a_lagrangian():
    """A mechanism and the Lagrangian of the same pendulum: every stop and every start."""
    limit, inertia = 0.3, 0.02 + 0.25
    m = rubbing_pendulum(limit)
    run = da.simulate(m, 6.0, [1.2], [0.0], **TIGHT)
    assert run.status == "completed", run
    q, v = ca.SX.sym("q"), ca.SX.sym("v")
    twin = da.Lagrangian(q, v, inertia * v**2 / 2, -0.5 * 9.81 * ca.cos(q), friction=[JointFriction("hinge", 0, limit)])
    other = da.simulate(twin, 6.0, [1.2], [0.0], **TIGHT)
    np.testing.assert_allclose([e.time for e in run.events], [e.time for e in other.events], rtol=0, atol=1e-8)
    assert len(run.events) >= 6
    np.testing.assert_allclose(run.q[-1], other.q[-1], atol=1e-8)
    balance = np.asarray(run.energy.total) - run.energy.total[0] + run.heat
    np.testing.assert_allclose(balance, 0.0, atol=1e-7)


@pytest.mark.parametrize("law", [0.3, StaticKinetic(0.4, 0.25), Stribeck(0.4, 0.25, 0.1)])
def test_stick_slip_oscillator_by_both_engines(law):
    """A mass on a belt, held by a spring: reaction as load."""
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    system = da.Lagrangian(
        q, v, ca.sumsqr(v) / 2, q[0] ** 2 / 2 + 9.81 * q[1], constraints={"belt": q[1]},
        friction=[Coulomb("pad", v[0], law, normal="belt", surface=0.5)],
    )  # fmt: skip
    plain = simulate_dry(system, 30.0, [0.0, 0.0], [0.0, 0.0], **TIGHT)
    fast = da.simulate(system, 30.0, [0.0, 0.0], [0.0, 0.0], **TIGHT)
    assert plain.ok, plain
    assert fast.ok, fast
    (words, times), (other, others) = moved(plain), moved(fast)
    assert words == other
    assert words
    np.testing.assert_allclose(others, times, rtol=0, atol=1e-7)


def test_events_of_the_user_and_samples_at_equal_times():
    ball = [Contact(Sphere("ball", 0.1), restitution=0.8)]

    def apex(t, q, v):
        return v[0]

    apex.direction, apex.terminal = -1, 2
    run = da.simulate(vertical_ball(), 5.0, [1.0], [0.0], contacts=ball, events={"apex": apex}, every=0.05, **TIGHT)
    assert run.status == "event"
    first = np.sqrt(2 * 0.9 / 9.81)
    zeros = [e.time for e in run.events if e.contact == "apex"]
    np.testing.assert_allclose(zeros, [0.0, first * (1 + 0.8)], atol=1e-11)
    asked = 0.05 * np.arange(1, int(zeros[-1] / 0.05) + 1)
    assert np.isin(asked, run.t).all()


def test_a_run_with_joint_friction_is_stored_and_continued(tmp_path):
    def run(duration, **options):
        return da.simulate(rubbing_pendulum(0.1), duration, [2.5], [0.0], **TIGHT, **options)

    whole = run(4.0)
    run(2.0, file=tmp_path / "run.h5")
    resumed = da.resume(tmp_path / "run.h5", duration=4.0)
    np.testing.assert_allclose(moved(resumed)[1], moved(whole)[1], rtol=0, atol=1e-9)
    assert moved(resumed)[0] == moved(whole)[0]
    np.testing.assert_allclose(resumed.q[-1], whole.q[-1], atol=1e-9)


def sliding_pendulum():
    """Return a rod on a rubbing hinge whose tip strikes the ground and slides on it."""
    m = rubbing_pendulum(0.3)
    tip = Contact(Sphere("rod", 0.0, (0, 0, -1.0)), Plane((1, 0, 0), -0.1), friction=0.3, restitution=0.6, name="wall")
    return (m, 4.0, [-0.8], [0.0]), {"contacts": [tip], "method": "hybrid", **TIGHT}


@pytest.mark.parametrize("steps", [1, 7, 30])
def test_impacts_and_joint_friction_go_on_bit_for_bit(tmp_path, steps):
    """A run that the keyboard stops, and that goes on from its file, is the one that was never stopped."""
    given, options = sliding_pendulum()
    whole = da.simulate(*given, **options)
    assert {"impact", "stick"} <= {event.new for event in whole.events}
    seen = []

    def keyboard(t, q, v):
        seen.append(t)
        if len(seen) == steps:
            raise KeyboardInterrupt

    part = da.simulate(*given, **options, file=tmp_path / "run.h5", on_step=keyboard)
    assert part.status == "interrupted"
    run = da.resume(tmp_path / "run.h5")
    assert run.events == whole.events
    for name in whole.samples:
        np.testing.assert_array_equal(run.samples[name], whole.samples[name], err_msg=name)


def test_a_law_of_the_user_is_called():
    class Weak(Dry):
        """A law that loops do not know."""

    q, v = ca.SX.sym("q"), ca.SX.sym("v")
    runs = [
        da.simulate(
            da.Lagrangian(q, v, v**2 / 2, q**2 / 2, friction=[JointFriction("pad", 0, law)]), 10.0, [3.0], [0.0],
            method="hybrid", **TIGHT,
        )
        for law in (Dry(0.3), Weak(0.3))
    ]  # fmt: skip
    assert moved(runs[0])[0] == moved(runs[1])[0]
    np.testing.assert_allclose(moved(runs[0])[1], moved(runs[1])[1], rtol=0, atol=1e-12)
    np.testing.assert_allclose(moved(runs[0])[1][0], np.pi, atol=1e-9)


def test_a_contact_that_lets_go_and_comes_back_within_a_step_is_seen():
    """A plastic impact leaves an off-centre ball at rest; it slips back by 8 mm/s, sticks again, then slips forward.

    In the first step after it lets go its velocity goes through zero: friction along the motion would add energy.
    """
    b = da.Builder("off-centre ball", gravity=(0, 0, -9.81))
    b.body("cart")
    b.joint("x", "prismatic", parent="world", child="cart", axis=(1, 0, 0))
    b.body("lift")
    b.joint("z", "prismatic", parent="cart", child="lift", axis=(0, 0, 1))
    b.body("body", mass=1.0, inertia=(0.08, 0.08, 0.08))
    b.joint("angle", "revolute", parent="lift", child="body", axis=(0, -1, 0))
    m = b.build()
    ball = Contact(Sphere("body", 0.11102432, (0.35803478, 0.0, 0.08631118)), Plane(), friction=0.3, name="ball")
    start = [-0.26649435, 1.41315279, 2.31894371], [0.5920584, -1.73338157, 19.99109706]
    run, fine = (da.simulate(m, 0.8, *start, contacts=[ball], method="hybrid", **given) for given in ({}, TIGHT))
    assert run.ok, run
    assert moved(run)[0][-3:] == [("ball", "stick", "slip"), ("ball", "slip", "stick"), ("ball", "stick", "slip")]
    assert moved(run)[0] == moved(fine)[0]
    np.testing.assert_allclose(moved(run)[1], moved(fine)[1], rtol=0, atol=1e-7)
    np.testing.assert_allclose(run.q[-1], fine.q[-1], rtol=0, atol=1e-6)
    assert np.diff(run.energy.total).max() <= 1e-8
