"""Contacts that contradict each other, Painleve's paradox, penetration, events in order, data that do not act."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest

import dalembert as da
from dalembert.friction import JointFriction, StaticKinetic
from dalembert.simulate.contact import Contact, JointLimits, Plane, Sphere, hybrid
from dalembert.simulate.contact.complementarity import complementarity
from dalembert.simulate.contact.engine import ContactEngine
from tests.simulate.contact_cases import plate, sliding_rod, vertical_ball

CAMPAIGN = Path(__file__).parents[2] / "benchmarks" / "campaigns" / "contacts.py"


def press():
    """Return a ball between a plate that a servo drives at 0.5 m/s and a wall, its start and contacts.

    The plate meets the ball at 0.2 s, the ball the wall at 0.5 s.
    """
    b = da.Builder("press", gravity=(0, 0, 0))
    b.body("plate", mass=1.0, inertia=(0.1, 0.1, 0.1))
    b.joint("push", "prismatic", parent="world", child="plate", axis=(1, 0, 0))
    b.body("ball", mass=1.0, inertia=(0.004, 0.004, 0.004))
    b.joint("x", "prismatic", parent="world", child="ball", axis=(1, 0, 0))
    m = b.build().constrain(da.Servo("push", lambda t: 0.5 * t))
    ball = Sphere("ball", 0.05)
    contacts = [
        Contact(ball, Sphere("plate", 0.05), name="plate on ball"),
        Contact(ball, Plane((-1, 0, 0), -0.4), name="ball on wall"),
    ]
    return m, [0.0, 0.2], [0.5, 0.0], contacts


@pytest.mark.parametrize("method", ["hybrid", "moreau"])
def test_a_driven_plate_does_not_push_a_ball_into_a_wall(method):
    m, q, v, contacts = press()
    run = da.simulate(m, 1.0, q, v, contacts=contacts, method=method, rtol=1e-9)
    assert run.status == "no solution"
    assert not run.ok
    assert "'plate on ball', 'ball on wall'" in run.message
    assert re.search(r"t = 0\.(499|5)", run.message)
    assert "row 0" not in run.message
    assert run.t[-1] == pytest.approx(0.5, abs=2e-3 if method == "moreau" else 1e-9)
    assert run.q[-1, 1] == pytest.approx(0.35, abs=2e-3 if method == "moreau" else 1e-9)  # kept up to the conflict
    assert run.q[:, 1].max() < 0.35 + 1e-9


def test_valid_motion_before_a_contradiction_is_kept_with_its_samples():
    m, q, v, contacts = press()
    run = da.simulate(m, 1.0, q, v, contacts=contacts, method="hybrid", every=0.1, rtol=1e-9)
    np.testing.assert_allclose(run["x"][np.searchsorted(run.t, [0.3, 0.4])], [0.25, 0.3], atol=1e-9)


def jaws(e, mu=0.0):
    """Return a part between two jaws that servos close at 0.3 and 0.7 m/s, its start and contacts: no room at 0.6 s."""
    b = da.Builder("jaws", gravity=(0, 0, 0))
    for name in ("left", "right", "part"):
        b.body(name, mass=1.0, inertia=(0.01, 0.01, 0.01))
        b.joint(f"x {name}", "prismatic", parent="world", child=name, axis=(1, 0, 0))
    m = b.build().constrain(da.Servo("x left", lambda t: 0.3 * t), da.Servo("x right", lambda t: -0.7 * t))
    ends = (("left", -0.5), ("right", 0.5))
    contacts = [
        Contact(Sphere("part", 0.1), Sphere(name, 0.1, (x, 0, 0)), friction=mu, restitution=e, name=f"{name} jaw")
        for name, x in ends
    ]
    return m, [0.0, 0.0, 0.0], [0.3, -0.7, 0.0], contacts


@pytest.mark.parametrize("e", [0.0, 0.5])
@pytest.mark.parametrize("method", ["hybrid", "moreau"])
def test_jaws_that_close_name_each_other_however_the_part_bounces(method, e):
    """A part that bounces strikes one jaw at a time: the laws of impact hold, and the room is gone."""
    m, q, v, contacts = jaws(e, mu=0.3)
    run = da.simulate(m, 0.8, q, v, contacts=contacts, method=method, max_step=2e-3)
    assert run.status == "no solution"
    assert "'left jaw', 'right jaw'" in run.message
    assert run.t[-1] == pytest.approx(0.6, abs=1e-9 if method == "hybrid" else 4e-3)
    assert "energy" not in run.message


@pytest.mark.parametrize("method", ["hybrid", "moreau"])
def test_what_drives_bring_in_at_an_impact_is_no_gain_of_contacts(method):
    """A plate at 0.5 m/s strikes a ball of 1 kg with e = 1/2: 3/8 of the energy of their approach becomes heat."""
    m, q, v, contacts = press()
    contact = Contact(contacts[0].shape, contacts[0].other, restitution=0.5)
    run = da.simulate(m, 0.4, q, v, contacts=[contact], method=method, step=2e-3)
    assert run.ok, run.message
    assert run.v[-1, 1] == pytest.approx(0.75)
    assert run.heat[-1] == pytest.approx(0.5 * 0.5**2 * (1 - 0.5**2))


def test_laws_are_measured_against_the_data():
    """Two jaws on a part that cannot give way: impulses grow without end, and are no answer."""
    G = np.zeros((6, 6))
    G[::3, ::3] = [[1.0, -1.0], [-1.0, 1.0]]
    g = np.array([-1.0, 0, 0, -1.0, 0, 0])
    answer = complementarity(G, g, np.zeros(2))
    assert not answer.ok
    assert answer.contradiction(["left", "right"]) == "'left', 'right'"
    assert complementarity(G, np.array([-1.0, 0, 0, 2.0, 0, 0]), np.zeros(2)).ok
    ground = complementarity(np.eye(3), np.array([-1e-3, 2e-4, 0]), np.array([0.5]))
    assert ground.ok
    np.testing.assert_allclose(ground.r, [1e-3, -2e-4, 0], atol=1e-12)


def test_time_steps_through_painleves_paradox_say_so():
    m, q, contacts = sliding_rod(2.0)
    run = da.simulate(m, 0.1, q, [3.0, 0, 0], contacts=contacts, method="moreau")
    assert run.status == "indeterminate"
    assert not run.ok
    assert "Painleve" in run.message
    assert "'tip'" in run.message
    assert "t = 0 s" in run.message
    m, q, contacts = sliding_rod(0.5)
    run = da.simulate(m, 0.1, q, [3.0, 0, 0], contacts=contacts, method="moreau")
    assert run.ok, run.message


def test_time_steps_that_leave_an_indeterminate_state_say_so():
    """Spinning at 8 rad/s lifts the tip of Painleve's rod, u_N' = G N + b: N = 0 is an answer, N = -b / G another."""
    spin, c = 8.0, 0.5 * np.cos(np.deg2rad(45.0))
    b = c * spin**2 - 9.81
    for mu, status in ((2.0, "indeterminate"), (0.5, "completed")):
        G = 1.0 + 12.0 * c**2 - mu * 12.0 * c**2
        assert (b > 0.0 > G) == (mu == 2.0)
        m, q, contacts = sliding_rod(mu)
        v = [3.0 - c * spin, -c * spin, spin]
        run = da.simulate(m, 0.02, q, v, contacts=contacts, method="moreau")
        assert run.status == status, run.message
        if mu == 2.0:
            assert "steps that slide through Painleve's paradox: 1, the first at t = 0 s" in run.message
            assert "Painleve" in da.simulate(m, 0.02, q, v, contacts=contacts, method="hybrid").message


@pytest.mark.parametrize("e", [0.3, 0.6])
def test_events_are_in_order_around_the_limit_of_impacts(e):
    """Two balls that bounce side by side, one of them falling onto the other's limit; a user's event between."""
    b = da.Builder("pair")
    for name in ("a", "b"):
        b.body(name, mass=1.0, inertia=(0.004, 0.004, 0.004))
        b.joint(f"z {name}", "prismatic", parent="world", child=name, axis=(0, 0, 1))
    m = b.build()
    contacts = [Contact(Sphere(name), restitution=e, name=name) for name in ("a", "b")]
    end = np.sqrt(2 / 9.81) * (1 + 2 * e / (1 - e))

    def soon(t, q, v):
        return t - (end - 1e-6)

    for height in (1.0, 1.0 + 2e-5, 0.999):
        run = da.simulate(m, 3.0, [1.0, height], contacts=contacts, method="hybrid", events=soon, rtol=1e-9)
        times = [event.time for event in run.events]
        assert times == sorted(times)
        assert max(times) <= run.t[-1]
        for name in ("a", "b"):
            words = [event.new for event in run.events if event.contact == name]
            assert words[-2:] == ["closed", "rest"]
            assert set(words[:-2]) == {"impact"}
        rest = next(event.time for event in run.events if event.new == "rest" and event.contact == "a")
        assert rest == pytest.approx(end, abs=1e-9)
        assert (np.diff(run.t) >= 0.0).all()


def test_rest_comes_through_a_file(tmp_path):
    contacts = [Contact(Sphere("ball"), restitution=0.5)]
    run = da.simulate(
        vertical_ball(), 2.0, [1.0], contacts=contacts, method="hybrid", file=tmp_path / "run.h5", rtol=1e-9
    )
    assert run.events[-1].new == "rest"
    assert da.Trajectory.load(tmp_path / "run.h5").events == run.events


def kane_levinson(law="newton"):
    """Return a body whose corner strikes with friction, its start, and what Newton's law adds to its energy, joules.

    Symbols: u contact velocity (normal N, tangent T), G^-1 = [[a, c], [c, a]] the mass that the corner feels. It sticks
    with u_N+ = -e u_N- and gains (a e^2 u_N^2 - u-^T G^-1 u-) / 2; at u_T- = -c u_N- / a most of all (T. R. Kane, D. A.
    Levinson, "Dynamics", 1985, section 5.8).
    """
    arm, inertia, e = 0.3, 0.02, 0.9
    G = np.eye(2) + arm**2 / inertia
    (a, c), _ = np.linalg.inv(G)
    u = np.array([-1.0, c / a])
    contact = Contact(Sphere("rod", 0.0, (arm, 0, -arm)), friction=1.0, restitution=e, impact=law, name="corner")
    start = [0, arm + 1e-3, 0], [u[1], u[0], 0]
    return plate("rod", 1.0, inertia, gravity=0.0), start, contact, (a * e**2 - u @ np.linalg.inv(G) @ u) / 2


def test_impacts_that_gain_energy_are_counted_and_said(tmp_path):
    m, (q, v), contact, gain = kane_levinson()
    whole = da.simulate(m, 0.01, q, v, contacts=[contact], method="hybrid", rtol=1e-9)
    assert whole.energy.total[-1] - whole.energy.total[0] == pytest.approx(gain, rel=1e-6)
    assert whole.status == "inaccurate"
    assert not whole.ok
    assert f"impacts that gain energy: 1, the first {gain:.3g} J at t = 0.001 s" in whole.message

    def keyboard(t, q, v):
        if t > 0.002:
            raise KeyboardInterrupt

    path, options = tmp_path / "run.h5", {"contacts": [contact], "method": "hybrid", "max_step": 1e-3}
    part = da.simulate(m, 0.01, q, v, file=path, on_step=keyboard, **options)
    assert part.status == "interrupted"
    run = da.resume(path)
    assert run.t[-1] == 0.01
    assert run.status == "inaccurate"
    assert run.message == whole.message
    m, (q, v), contact, _ = kane_levinson("poisson")
    run = da.simulate(m, 0.01, q, v, contacts=[contact], method="hybrid", rtol=1e-9)
    assert run.ok, run.message
    assert run.energy.total[-1] < run.energy.total[0]


def test_time_steps_that_gain_energy_are_counted_and_said(tmp_path):
    m, (q, v), contact, gain = kane_levinson()
    options = {"contacts": [contact], "method": "moreau", "step": 1e-4, "every": 1e-3}
    run = da.simulate(m, 0.01, q, v, file=tmp_path / "run.h5", **options)
    assert run.energy.total[-1] - run.energy.total[0] == pytest.approx(gain, rel=1e-6)
    assert run.status == "inaccurate"
    assert f"impacts that gain energy: 1, the first {gain:.3g} J at t = 0.001 s" in run.message
    assert da.resume(tmp_path / "run.h5", duration=0.012).message == run.message
    m, (q, v), contact, _ = kane_levinson("poisson")
    run = da.simulate(m, 0.01, q, v, **(options | {"contacts": [contact]}))
    assert run.ok, run.message


def test_time_steps_without_certain_digits_are_counted_and_said():
    """Two sliders of 1e-10 and 1 kg, one on the other, and two rows that differ by 1 %: 1e-14 of a pivot is left."""
    b = da.Builder("sliders")
    for name, parent, mass in (("a", "world", 1e-10), ("b", "a", 1.0), ("c", "world", 1.0), ("d", "world", 1.0)):
        b.body(name, mass=mass, inertia=(0.1, 0.1, 0.1))
        b.joint(f"z {name}", "prismatic", parent=parent, child=name, axis=(0, 0, 1))
    b.couple("one", {"z c": 1.0, "z d": 1.0})
    m, contact = b.build(), Contact(Sphere("c"), Plane(offset=-1.0))
    run = da.simulate(m, 0.01, contacts=[contact], method="moreau")
    assert run.ok, run.message
    b.couple("two", {"z c": 1.0, "z d": 1.01})
    run = da.simulate(b.build(), 0.01, contacts=[contact], method="moreau")
    assert run.status == "inaccurate"
    assert "fewer than three certain digits: 10, the first at t = 0 s" in run.message
    assert (run.samples["contact_status"][1:] == da.Status.ILL_CONDITIONED).all()


def test_events_that_may_be_missing_are_not_forgotten_by_a_file(tmp_path):
    def buzz(t, q, v):
        return 1.5 + np.sin(1e7 * t)

    contact = [Contact(Sphere("ball"))]
    path, events = tmp_path / "run.h5", {"buzz": buzz}
    run = da.simulate(
        vertical_ball(), 0.002, [1.0], contacts=contact, method="hybrid", events=events, file=path, rtol=1e-9
    )
    assert "may be missing" in run.message
    count = int(re.search(r"(\d+)", run.message).group())  # type: ignore[union-attr]
    longer = da.resume(path, duration=0.0022, events=events)
    assert int(re.search(r"(\d+)", longer.message).group()) >= count  # type: ignore[union-attr]


def test_energy_is_a_witness_of_runs_from_event_to_event(monkeypatch):
    """A bouncing bar keeps its balance; with heat that is not what impacts take, the run says so."""
    m, e = plate("bar", 1.0, 1 / 12), 0.7
    contacts = [Contact(Sphere("bar", 0.0, (a, 0, 0)), restitution=e, name=f"{a}") for a in (-0.5, 0.5)]
    start = [0, 1.2, 0.3], [0.5, 0.0, 3.0]
    assert da.simulate(m, 0.8, *start, contacts=contacts, method="hybrid", rtol=1e-9).ok
    samples = ContactEngine.samples

    def without_heat(run):
        block = samples(run)
        return block | {"heat": np.zeros_like(block["heat"])}

    monkeypatch.setattr(ContactEngine, "samples", without_heat)
    run = da.simulate(m, 0.8, *start, contacts=contacts, method="hybrid", rtol=1e-9)
    assert run.status == "inaccurate"
    assert "energy balance" in run.message


def campaign_of_contacts():
    """Return the topic of the campaign that drops rotating shapes."""
    spec = importlib.util.spec_from_file_location("campaign_of_contacts", CAMPAIGN)
    assert spec is not None
    assert spec.loader is not None
    campaign = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(campaign)
    return campaign


@pytest.mark.parametrize("seed", [(26111, 141), (26111, 420)])
def test_a_foot_that_turns_back_at_an_edge_of_a_heightfield_stays_there(seed):
    """Nobody moves it along its velocity until another edge comes: the oracle of the campaign looks for such leaps."""
    verdict, words = campaign_of_contacts().trial(np.random.default_rng(seed))
    assert verdict == "refused"
    assert words.startswith("chattering")


@pytest.mark.parametrize("seed", [148, 170])
def test_the_campaign_calls_a_gain_of_energy_wrong_unless_it_is_said(seed, monkeypatch):
    campaign = campaign_of_contacts()
    verdict, words = campaign.trial(np.random.default_rng(seed))
    assert verdict == "refused"
    assert words.startswith("inaccurate: impacts that gain")
    monkeypatch.setattr(hybrid, "IMPACT_GAIN", np.inf)  # nobody says it: the run is completed
    verdict, words = campaign.trial(np.random.default_rng(seed))
    assert verdict == "wrong"
    assert "J gained" in words


def arm(**more):
    """Return an arm on a hinge with data of many kinds."""
    b = da.Builder("arm")
    b.body("arm", mass=1.0, center=(0.5, 0, 0), inertia=(0.01, 0.1, 0.1))
    b.joint("hinge", "revolute", parent="world", child="arm", axis=(0, 1, 0), **more)
    return b


@pytest.mark.parametrize("method", ["dop853", "dopri5", "rk4", "radau"])
def test_joint_friction_acts_by_every_method_between_events(method):
    """3 N m hold an arm of 1 kg whose centre is 0.5 m away only once it is low enough: it falls, slower than free."""
    m, step = arm(friction=3.0).build(), {"step": 1e-3} if method == "rk4" else {}
    run = da.simulate(m, 0.05, [0.0], method=method, **step)
    assert run.status == "completed"
    assert run.ignored == ()
    inertia = 0.1 + 0.25
    assert run.acceleration[0, 0] == pytest.approx((9.81 * 0.5 - 3.0) / inertia, rel=1e-9)


@pytest.mark.parametrize("method", ["bdf", "variational"])
def test_steppers_without_joint_friction_say_so(method, tmp_path):
    m = arm(friction=3.0).build()
    far = [Contact(Sphere("arm", 0.1, (1, 0, 0)), Plane(offset=-5.0))]
    more = {"step": 1e-3} if method == "variational" else {}
    assert da.simulate(m, 0.05, [0.0], method="hybrid", contacts=far).ignored == ()
    run = da.simulate(m, 0.05, [0.0], method=method, file=tmp_path / "run.h5", **more)
    assert any("dry friction of 'hinge'" in note for note in run.notes)
    assert "dry friction" in run.message
    assert "dry friction of 'hinge'" in str(run)
    assert run.status == "simplified"
    assert not run.ok
    assert run.ignored == ("dry friction of joints",)
    loaded = da.Trajectory.load(tmp_path / "run.h5")
    assert (loaded.status, loaded.ignored) == (run.status, run.ignored)
    assert loaded.notes == run.notes
    assert loaded.message == run.message


def test_joint_friction_is_left_out_where_that_is_asked_for(tmp_path):
    """friction=False moves the arm as one without friction, and says so; a repetition and the file know it."""
    m, bare = arm(friction=3.0).build(), arm().build()
    run = da.simulate(m, 0.05, [0.0], friction=False, file=tmp_path / "run.h5")
    assert run.method == "dop853"
    np.testing.assert_array_equal(run.q, da.simulate(bare, 0.05, [0.0]).q)
    assert (run.status, run.ignored) == ("simplified", ("dry friction of joints",))
    assert run.notes == ("dry friction of 'hinge' does not act (friction=False)",)
    for again in (da.Trajectory.load(tmp_path / "run.h5"), run.repeat()):
        assert (again.status, again.ignored, again.notes) == (run.status, run.ignored, run.notes)
    far = [Contact(Sphere("arm", 0.1, (1, 0, 0)), Plane(offset=-5.0))]
    falling = da.simulate(m, 0.05, [0.0], contacts=far, method="hybrid", friction=False)
    assert falling.ignored == run.ignored
    assert falling.q[-1] == pytest.approx(run.q[-1], rel=1e-7)


def test_joint_friction_is_missed_in_a_run_with_known_torques():
    run = da.simulate(arm(friction=3.0).build(), 0.05, [0.0], known={"tau hinge": 1.0})
    assert (run.status, run.ignored) == ("simplified", ("dry friction of joints",))
    assert run.notes == ("dry friction of 'hinge' does not act (implicit form)",)
    assert da.simulate(arm().build(), 0.05, [0.0], known={"tau hinge": 1.0}).ok


def test_what_friction_takes_is_told():
    m = arm(friction=3.0).build()
    by_steps, located = (da.simulate(m, 0.05, [0.0], method=way, step=1e-3) for way in ("moreau", "hybrid"))
    assert by_steps.ok
    np.testing.assert_allclose(by_steps.q[-1], located.q[-1], atol=1e-4)
    rubs = [JointFriction("rub", "hinge", StaticKinetic(2.0, 1.0))]
    with pytest.raises(da.UnsupportedError, match="one limit of friction for rest and motion"):
        da.simulate(m, 0.05, [0.0], method="moreau", contacts=rubs)
    with pytest.raises(da.ModelError, match=r"friction=0\.3 must be True or False"):
        da.simulate(m, 0.05, [0.0], friction=0.3)
    with pytest.raises(da.ModelError, match="make it without them"):
        da.simulate(da.examples.two_blocks(), 0.05, friction=False)


def test_all_kinds_of_data_that_do_not_act_are_named():
    b = arm(friction=1.0, damping=0.1, stiffness=2.0, armature=0.1,
            limits={"lower": -1.0, "upper": 1.0, "velocity": 3.0, "effort": 5.0})  # fmt: skip
    m = b.build(passive=False)
    notes = " ".join(da.simulate(m, 0.01, [0.0], force=[1.0], method="bdf", rtol=1e-9).notes)
    for words in ("dry friction", "damping and springs", "limits of 'hinge'", "limits of speed", "limits of effort"):
        assert words in notes
    assert "armature" not in notes  # acts, in M
    run = da.simulate(m.with_passive(True), 0.01, [0.0], contacts=[JointLimits()], rtol=1e-9)
    said = " ".join(run.notes)
    assert "limits of 'hinge'" not in said
    assert "damping" not in said
    assert "effort" not in said
    plain = da.simulate(vertical_ball(), 0.01, [1.0], rtol=1e-9)
    assert plain.notes == ()
    assert plain.message == ""


def test_data_that_would_have_changed_a_motion_are_in_its_status():
    """Limits that were kept change nothing; those that were passed, and dampers that do not act, do."""

    def run(passive=True, contacts=None, **more):
        return da.simulate(arm(**more).build(passive=passive), 0.5, [0.0], contacts=contacts)

    assert run(limits=(-1.0, 2.0)).status == "completed"
    passed = run(limits=(-1.0, 0.3))
    assert passed.status == "simplified"
    assert "without limits of 'hinge' (passed at t = 0.2" in passed.message
    stopped = run(limits=(-1.0, 0.3), contacts=[JointLimits()])
    assert (stopped.status, stopped.ignored) == ("completed", ())
    assert run(damping=0.1, stiffness=1.0).status == "completed"
    assert run(damping=0.1, passive=False).status == "simplified"
    assert run(limits={"velocity": 0.1}).ignored == ("limits of speed",)


def test_stops_that_joints_of_several_coordinates_do_not_have_are_named():
    b = da.Builder("joint")
    b.body("body", mass=1.0, inertia=(0.1, 0.1, 0.1))
    b.joint("cross", "universal", parent="world", child="body", axis=(1, 0, 0), axis2=(0, 1, 0), limits=(-0.1, 0.1))
    b.body("more", mass=1.0, inertia=(0.1, 0.1, 0.1))
    b.joint("hinge", "revolute", parent="body", child="more", axis=(1, 0, 0), limits=(-0.1, 0.1))
    run = da.simulate(b.build(), 0.05, v=[3.0, 0.0, 0.0], contacts=[JointLimits()], rtol=1e-9)
    assert any("limits of 'cross' are not watched" in note for note in run.notes)
    assert run.status == "simplified"


def test_collision_shapes_of_a_file_are_in_the_reason_of_a_run_without_contacts():
    b = da.Builder("box")
    b.body("box", mass=1.0, inertia=(0.1, 0.1, 0.1))
    b.note("collision shapes are not used: 1 on 1 bodies (box)")
    m = b.build(base="floating")
    run = da.simulate(m, 0.01, rtol=1e-9)
    assert "collision shapes are not used: 1 on 1 bodies (box)" in run.reason
    assert any(note.startswith("collision shapes") for note in run.notes)
    run = da.simulate(m, 0.01, contacts=[Contact(Sphere("box", 0.1), Plane(offset=-1.0))], rtol=1e-9)
    assert "collision" not in run.reason


def test_penetration_is_a_residual_of_time_steps():
    """Steps of 0.05 s turn a bar by radians: what they cannot follow they say."""
    m = plate("bar", 1.0, 1 / 12)
    ends = ((0.5, "right"), (-0.5, "left"))
    contacts = [Contact(Sphere("bar", 0.0, (a, 0, 0)), friction=0.3, name=name) for a, name in ends]
    run = da.simulate(m, 2.0, [0, 0.6, 0.4], [0, -3.0, 60.0], contacts=contacts, method="moreau", step=0.05)
    ends = run.q[:, 1] - 0.5 * np.abs(np.sin(run.q[:, 2]))
    assert ends.min() < -1e-3
    assert run.status == "inaccurate"
    assert "penetration" in run.message


@pytest.mark.parametrize("method", [{"method": "hybrid"}, {"method": "moreau", "step": 1e-3}])
def test_parts_too_small_for_limits_in_metres_are_refused(method):
    """A ball of a nanometre lay still where one of a metre slid on: gaps and speeds of contacts are told in metres."""
    b = da.Builder("ball", gravity=(0, 0, -9.81e-9))
    b.body("ball", mass=1.0)
    b.joint("z", "prismatic", parent="world", child="ball", axis=(0, 0, 1))
    contact = Contact(Sphere("ball", 1e-10), Plane(), name="floor")
    with pytest.raises(da.ModelError, match=r"1e-09 m in size(.|\n)*unit of length"):
        da.simulate(b.build(), 0.1, [1.1e-9], contacts=[contact], **method)


@pytest.mark.parametrize("contacts", [[JointLimits()], JointLimits()])
def test_stops_of_joints_do_not_silence_the_note_on_collision_shapes(contacts):
    b = da.Builder("arm")
    b.body("arm", mass=1.0, inertia=(0.1, 0.1, 0.1))
    b.joint("hinge", "revolute", parent="world", child="arm", axis=(1, 0, 0), limits=(-1.0, 1.0))
    b.note("collision shapes are not used: 1 on 1 bodies (arm)")
    run = da.simulate(b.build(), 0.01, contacts=contacts, rtol=1e-9)
    assert "collision shapes are not used: 1 on 1 bodies (arm)" in run.reason
    assert any(note.startswith("collision shapes") for note in run.notes)
    assert "collision shapes" in run.message
