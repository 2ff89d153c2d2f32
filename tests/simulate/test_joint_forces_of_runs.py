"""Joint forces along runs: every stepper, contacts, peaks and duty cycles, tables and pictures."""

from __future__ import annotations

import csv

import casadi as ca
import matplotlib as mpl
import numpy as np
import pytest

import dalembert as da
from dalembert.simulate import joint_forces as loads_of_runs
from tests.reference.free_bodies import FreeBodies
from tests.simulate.linkages import crank_rocker

mpl.use("agg")

STEPPERS = ("dop853", "dopri5", "rk4", "bdf", "radau", "variational")


@pytest.fixture(scope="module")
def rocker():
    return crank_rocker()


@pytest.mark.parametrize("method", STEPPERS)
def test_every_stepper_has_the_wrenches_of_its_states(rocker, method):
    """Bodies cut free at the samples' states: as accurate as the accelerations of the stepper."""
    m, q, v = rocker
    fixed = {"step": 2e-3} if method in ("rk4", "variational") else {}
    run = da.simulate(m, 0.02, q, v, method=method, **fixed)
    forces = run.joint_forces
    assert forces.wrenches.shape == (run.t.size, 4, 6)
    assert forces.unique.all()
    for k in (1, run.t.size - 1):
        a = m.forward(run.q[k], run.v[k]).acceleration
        free = FreeBodies(m, run.q[k], run.v[k], a)
        np.testing.assert_allclose(forces.wrenches[k], free.wrenches(), atol=1e-10 * np.abs(free.wrenches()).max())


@pytest.mark.parametrize("method", ["bdf", "radau", "ida"])
def test_wrenches_of_implicit_runs_are_as_good_as_their_states(rocker, method):
    """Against dop853 at 1e-12: between steps, too, where rates of a stepper's polynomial have lost a power."""
    m, q, v = rocker
    exact = da.simulate(m, 0.3, q, v, method="dop853", rtol=1e-12, atol=1e-13, every=0.01).joint_forces.wrenches
    run = da.simulate(m, 0.3, q, v, method=method, every=0.01)
    error = np.abs(run.joint_forces.wrenches - exact).max() / np.abs(exact).max()
    assert error < 2e-7  # 3e-6 and more with the stepper's own accelerations


def test_wrenches_of_a_motion_that_is_known_in_part():
    """A shaft is turned as sin t, a pendulum hangs on it: wrenches of the states, the motor's torque in the shaft's."""
    b = da.Builder("two", gravity=(0, -9.81, 0))
    for i in (1, 2):
        b.body(f"bar {i}", mass=1.0, center=(0.5, 0, 0), inertia=(0.01, 0.09, 0.09))
        b.joint(
            f"hinge {i}", "revolute", "world" if i == 1 else "bar 1", f"bar {i}", axis=(0, 0, 1), position=(i - 1, 0, 0)
        )
    m = b.build()
    run = da.simulate(
        m, 1.0, [0.0, 0.0], [1.0, 0.0], known={"hinge 1": (np.sin, np.cos, lambda t: -np.sin(t))}, every=0.05
    )
    forces = run.joint_forces
    for k in (3, 20):
        v = run.v[k]
        M, h = m.mass_matrix(run.q[k]), m.bias(run.q[k], v)
        a = np.array([-np.sin(run.t[k]), 0.0])
        a[1] = (-h[1] - M[1, 0] * a[0]) / M[1, 1]
        torque = (M @ a + h)[0]
        free = FreeBodies(m, run.q[k], v, a, np.array([torque, 0.0]))
        np.testing.assert_allclose(forces.wrenches[k], free.wrenches(), atol=1e-10 * np.abs(free.wrenches()).max())
        assert forces["hinge 1"].working[k, 5] == pytest.approx(torque, rel=1e-9)


def test_loads_of_a_rotor():
    """A mass that turns steadily: m w^2 r all the time; twice the speed for a third of it gives the cubic mean."""
    b = da.Builder("rotor", gravity=(0, 0, 0))
    b.body("disc", mass=2.0, center=(0.1, 0, 0), inertia=(0.1, 0.1, 0.2))
    b.joint("shaft", "continuous", parent="world", child="disc", axis=(0, 0, 1))
    run = da.simulate(b.build(), 1.0, v=[10.0], every=0.1)
    loads = run.joint_forces
    assert loads.peak("shaft").force == pytest.approx(20.0)
    np.testing.assert_allclose(loads["shaft"].force, [[-20.0, 0, 0]] * run.t.size, atol=1e-9)
    np.testing.assert_allclose(loads.duty_cycle("shaft", [19.0, 21.0]), [1.0, 0.0])
    assert loads.equivalent_load("shaft") == pytest.approx(20.0)
    world = loads.in_axes("world")
    np.testing.assert_allclose(world["shaft"].force[:, 0], -20 * np.cos(10 * run.t), atol=1e-6)
    assert "shaft" in str(loads)
    assert "peak force" in str(loads)
    figure = loads.plot()
    assert figure.axes[0].get_lines()[0].get_label() == "shaft"
    assert run.plot("joint_forces").axes[0].has_data()
    with pytest.raises(da.ModelError, match="'force', 'moment'"):
        loads.duty_cycle("shaft", 1.0, what="torque")


def lever_over_the_floor(name=None):
    """Return a lever on a hinge, with a motor of the hinge's name, and the contact of the ball on its end."""
    b = da.Builder("lever")
    b.body("lever", mass=2.0, center=(0.5, 0, 0), inertia=(0.01, 0.2, 0.2))
    b.joint("hinge", "revolute", parent="world", child="lever", axis=(0, 1, 0), position=(0, 0, 0.3))
    b.frame("tip", "lever", position=(1.0, 0, 0))
    b.actuator("hinge", "hinge")
    return b.build(), da.Contact(da.Sphere("tip", radius=0.05), da.Plane(), friction=0.0, restitution=0.0, name=name)


@pytest.mark.parametrize("method", ["hybrid", "moreau"])
def test_contacts_are_part_of_the_balance(method):
    """A lever with a ball on its end falls onto the floor: hinge and floor share the weight, moment by moment."""
    lever, floor = lever_over_the_floor()
    options = {"step": 1e-3} if method == "moreau" else {}
    run = da.simulate(lever, 0.5, [0.2], [0.0], contacts=[floor], method=method, **options)
    forces = run.joint_forces.in_axes("world")
    (contact,) = run.contacts
    assert set(forces) == {"hinge", contact}
    tilt = float(run.q[-1, 0])
    lifted = 2.0 * 9.81 * 0.5 / 1.0  # both are vertical: the tilt drops out of their levers
    np.testing.assert_allclose(forces[contact].force[-1], [0, 0, lifted], atol=1e-3)
    np.testing.assert_allclose(forces["hinge"].force[-1], [0, 0, 2.0 * 9.81 - lifted], atol=1e-3)
    np.testing.assert_allclose(forces["hinge"].moment[-1], 0, atol=1e-3)
    assert tilt > 0.2
    assert forces.peak("hinge").force_time < 0.5


def test_contacts_and_motors_that_are_called_as_joints():
    """Each has its own name: the wrenches of a joint, of its motor and of a contact are three."""
    lever, floor = lever_over_the_floor("hinge")
    forces = da.simulate(lever, 0.5, [0.2], force=lambda t, q, v: [0.5], contacts=[floor]).joint_forces
    assert list(forces) == ["hinge", "contact hinge"]
    lifted = (2.0 * 9.81 * 0.5 * np.cos(0.25268) + 0.5) / np.cos(0.25268)  # sin: the ball's centre is 0.25 m lower
    assert forces["contact hinge"].force[-1, 2] == pytest.approx(lifted, rel=1e-4)
    assert forces["actuator hinge"].moment[-1, 1] == pytest.approx(0.5)
    assert forces["hinge"].working[-1, 4] == pytest.approx(0.5)
    assert "actuator hinge" in forces
    assert forces.get("actuator hinge").kind == "actuator"


def test_contacts_of_large_mechanisms_are_told_and_not_examined(monkeypatch):
    """Beyond a number of velocities nobody looks what is unique: forces are there, nothing is called unique."""
    monkeypatch.setattr(loads_of_runs, "LARGEST_SURVEYED", 0)
    lever, floor = lever_over_the_floor("ball")
    forces = da.simulate(lever, 0.5, [0.2], contacts=[floor]).joint_forces
    assert forces["ball"].force[-1, 2] == pytest.approx(9.81, rel=1e-6)
    assert not forces["ball"].unique[-1].any()
    assert not forces["hinge"].unique[-1].any()
    assert "not examined" in str(forces)


def test_redundant_rows_along_a_run():
    """Two hinges of a door: the family is the same at every sample, stiffnesses decide it, and a file keeps nothing."""
    b = da.Builder("door")
    b.body("leaf", mass=20.0, center=(0.5, 0, 1), inertia=(7, 8.5, 1.7))
    b.joint("lower", "revolute", parent="world", child="leaf", axis=(0, 0, 1), position=(0, 0, 0.2),
            child_placement=(0, 0, 0.2))  # fmt: skip
    b.loop("upper", "revolute", "leaf", "world", placement=(0, 0, 1.8), other_placement=(0, 0, 1.8), axis=(0, 0, 1))
    door = b.build()
    run = da.simulate(door, 0.2, v=[2.0], every=0.05)
    forces = run.joint_forces
    assert forces.family.shape == (run.t.size, 5, 2, 6)
    assert not forces["upper"].unique[:, :5].any()
    assert forces["upper"].unique[:, 5].all()
    np.testing.assert_allclose(forces["lower"].force[:, 2], 10 * 9.81, atol=1e-6)
    pair = forces.with_flexible({"lower": (1e6, 1e3), "upper": (3e6, 1e3)})
    assert pair.unique.all()
    np.testing.assert_allclose(pair["lower"].force[:, 2], 5 * 9.81, atol=1e-6)
    np.testing.assert_allclose(pair["upper"].force[:, 2], 15 * 9.81, atol=1e-6)
    assert "not unique: force x" in str(forces)


def test_a_lagrangian_has_no_joints():
    x, v = ca.SX.sym("x"), ca.SX.sym("v")
    run = da.simulate(da.Lagrangian(x, v, 0.5 * v**2, 0.5 * x**2), 0.1, [1.0], [0.0])
    with pytest.raises(da.UnsupportedError, match="of a Mechanism"):
        _ = run.joint_forces


def propped_bar():
    """Return a bar on a hinge over two smooth supports: one reaction more than equations."""
    b = da.Builder("bar")
    b.body("bar", mass=2.0, center=(0.5, 0, 0), inertia=(0.01, 0.2, 0.2))
    b.joint("hinge", "revolute", "world", "bar", axis=(0, 1, 0), position=(0, 0, 0.1))
    for i, x in enumerate((0.5, 1.0)):
        b.frame(f"foot {i}", "bar", position=(x, 0, -0.1))
    return b.build()


@pytest.mark.parametrize("options", [{"method": "hybrid"}, {"method": "moreau", "step": 1e-3}], ids=str)
def test_loads_beside_redundant_contacts_are_not_called_unique(options):
    feet = [da.Contact(da.Sphere(f"foot {i}", 0.0), friction=0.0) for i in range(2)]
    forces = da.simulate(propped_bar(), 0.05, [0.0], [0.0], contacts=feet, **options).joint_forces
    world = forces.in_axes("world")
    np.testing.assert_array_equal(world["hinge"].unique[-1], [True, True, False, True, True, True])
    for name in forces.contacts:
        np.testing.assert_array_equal(world[name].unique[-1, :3], [True, True, False])
    assert "one answer of many" in forces.choice
    assert "not unique: force z" in str(forces).splitlines()[2]


def test_time_steps_have_no_forces_at_their_first_sample():
    """No step lies before it; a hinge without a motor transmits no moment about its axis, at no time."""
    b = da.Builder("pendulum")
    b.body("bob", mass=1.0, center=(0.5, 0, 0), inertia=(0.01, 0.09, 0.09))
    b.joint("hinge", "revolute", "world", "bob", axis=(0, 1, 0))
    forces = da.simulate(b.build(), 0.1, [0.0], [0.0], method="moreau", step=1e-3).joint_forces
    assert np.isnan(forces["hinge"].wrench[0]).all()
    assert forces["hinge"].unique[1:].all()
    assert not forces.not_unique
    assert np.abs(forces["hinge"].moment[1:]).max() < 1e-3
    assert forces.peak("hinge").force < 4.0
    assert 2.5 < forces.equivalent_load("hinge") < 4.0
    assert "elbow" not in forces
    assert forces.get("elbow") is None
    for call in (lambda: forces.equivalent_load("hinge", 0.0), lambda: forces.duty_cycle("hinge", np.nan)):
        with pytest.raises(da.ModelError):
            call()


def test_motors_that_share_a_coordinate_have_no_force_of_their_own():
    b = da.Builder("arm")
    b.body("arm", mass=1.0, center=(0.5, 0, 0), inertia=(0.01, 0.09, 0.09))
    b.joint("hinge", "revolute", "world", "arm", axis=(0, 1, 0))
    for name, gear in (("one", 2.0), ("two", 3.0)):
        b.actuator(name, "hinge", gear=gear)
    m = b.build()
    forces = m.joint_forces([0.0], [0.0], m.torque([1.0, 1.0]))
    assert forces["hinge"].working[4] == pytest.approx(5.0)
    with pytest.raises(da.ModelError, match="one"):
        forces["one"]
    assert m.joint_forces([0.0], [np.inf]).status == da.Status.NONFINITE


@pytest.mark.parametrize("method", ["dop853", "bdf"])
def test_motors_along_a_run(method):
    """A motor with a gear drives an arm: its share of the hinge's wrench, beside the spring's."""
    b = da.Builder("arm")
    b.body("arm", mass=1.0, center=(0.5, 0, 0), inertia=(0.01, 0.09, 0.09))
    b.joint("hinge", "revolute", "world", "arm", axis=(0, 1, 0), stiffness=3.0)
    b.actuator("drive", "hinge", gear=20.0)
    m = b.build()
    run = da.simulate(
        m, 0.5, [0.2], [0.0], force=lambda t, q, v: m.torque([0.1 * np.cos(5 * t)]), method=method, every=0.05
    )
    forces = run.joint_forces
    np.testing.assert_allclose(forces["drive"].moment[:, 1], 2.0 * np.cos(5 * run.t), atol=1e-12)
    np.testing.assert_allclose(forces["hinge"].working[:, 4], 2.0 * np.cos(5 * run.t) - 3.0 * run.q[:, 0], atol=1e-9)
    assert forces["drive"].unique.all()


def test_the_motor_of_a_known_motion_has_its_torque():
    b = da.Builder("arm", gravity=(0, 0, 0))
    b.body("arm", mass=1.0, center=(0.5, 0, 0), inertia=(0.01, 0.09, 0.09))
    b.joint("hinge", "revolute", "world", "arm", axis=(0, 1, 0))
    b.actuator("drive", "hinge")
    run = da.simulate(b.build(), 1.0, [0.0], [1.0], known={"hinge": (np.sin, np.cos, lambda t: -np.sin(t))}, every=0.1)
    forces = run.joint_forces
    np.testing.assert_allclose(forces["drive"].moment[:, 1], -0.34 * np.sin(run.t), atol=1e-9)
    np.testing.assert_allclose(forces["hinge"].working, forces["drive"].wrench, atol=1e-9)


def test_a_file_of_peaks_has_the_peaks(rocker, tmp_path):
    """A line per joint, with the numbers that `peak` and `equivalent_load` return."""
    m, q, v = rocker
    loads = da.simulate(m, 0.1, q, v).joint_forces
    loads.peaks_to_csv(tmp_path / "peaks.csv")
    head, *lines = csv.reader((tmp_path / "peaks.csv").read_text().splitlines())
    assert head[:3] == ["joint", "peak force [N]", "at [s]"]
    assert [line[0] for line in lines] == list(loads)
    for line in lines:
        peak = loads.peak(line[0])
        assert (float(line[1]), float(line[2])) == (peak.force, peak.force_time)
        assert float(line[5]) == loads.equivalent_load(line[0])


@pytest.mark.parametrize("method", ["dop853", "moreau"])
def test_pictures_name_the_components_that_are_open(method):
    """What a hinge shares with a weld is all that it bears, and with a plane that guides the leaf what is across it."""
    step = {"step": 1e-2} if method == "moreau" else {}
    for kind, force in (("weld", "force"), ("planar", "force z")):
        b = da.Builder("leaf")
        b.body("leaf", mass=20.0, center=(0.5, 0, 1), inertia=(7, 8.5, 1.7))
        b.joint("hinge", "revolute", parent="world", child="leaf", axis=(0, 0, 1))
        b.loop("guide", kind, "leaf", "world", **({} if kind == "weld" else {"axis": (0, 0, 1)}))
        forces = da.simulate(b.build(), 0.05, method=method, **step).joint_forces
        for what, free in (("force", force), ("moment", "moment x, y")):
            label = forces.plot("hinge", what).axes[0].get_lines()[0].get_label()
            assert label == f"hinge ({free} not unique)"
    b = da.Builder("arm")
    b.body("arm", mass=2.0, center=(0.5, 0, 0), inertia=(0.01, 0.2, 0.2))
    b.joint("hinge", "revolute", parent="world", child="arm", axis=(0, 1, 0))
    arm = da.simulate(b.build(), 0.05, method=method, **step).joint_forces
    assert arm.plot().axes[0].get_lines()[0].get_label() == "hinge"  # moreau has no forces at its first sample


def test_contacts_that_share_a_load_are_not_unique_by_name(tmp_path):
    """A table on four legs: the legs are named with the joints, in the attribute and in the report."""
    b = da.Builder("table")
    b.body("table", mass=10.0, center=(0, 0, 0.7), inertia=(1, 1, 1))
    b.joint("flight", "free", "world", "table")
    for i, (x, y) in enumerate([(1, 0), (0, 1), (-1, 0), (0, -1)]):
        b.frame(f"foot {i}", "table", position=(x, y, 0))
    feet = [da.Contact(da.Sphere(f"foot {i}"), friction=0.0) for i in range(4)]
    run = da.simulate(b.build(), 0.01, contacts=feet)
    assert run.joint_forces.not_unique == dict.fromkeys(run.contacts, ("force z",))
    run.report(tmp_path / "table.html")
    page = (tmp_path / "table.html").read_text()
    assert page.count("not unique: force z") >= 4
