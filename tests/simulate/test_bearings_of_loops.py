"""Journals in all four hinges of a four-bar, whichever hinge closes the loop, beside Newton's and Euler's equations."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import brentq
from scipy.spatial.transform import Rotation

import dalembert as da

BARS = {"crank": (0.5, 1.0), "coupler": (1.0, 2.0), "rocker": (0.8, 1.5)}  # lengths and masses
GROUND, MU, R, G, DRIVE = 1.1, 0.1, 0.02, 9.81, 3.0
HINGES = {
    "A": ("world", "crank", 0.0, 0.0),
    "B": ("crank", "coupler", 0.5, 0.0),
    "C": ("coupler", "rocker", 1.0, 0.8),
    "D": ("world", "rocker", GROUND, 0.0),
}


def four_bar(cut):
    """Return the linkage with one hinge as its loop; the tree hangs on the ground from the other side where it must."""
    b = da.Builder("four-bar", gravity=(0, -G, 0))
    for name, (length, mass) in BARS.items():
        moment = mass * length**2 / 12
        b.body(name, mass=mass, center=(length / 2, 0, 0), inertia=(1e-3, moment, moment))
    for name, (parent, child, x, y) in HINGES.items():
        if name == cut:
            b.loop(name, "revolute", child, parent, placement=(y, 0, 0), other_placement=(x, 0, 0), axis=(0, 0, 1))
            continue
        if (cut, name) in {("B", "C"), ("A", "B"), ("A", "C")}:
            parent, child, x, y = child, parent, y, x
        b.joint(name, "revolute", parent, child, axis=(0, 0, 1), placement=(x, 0, 0), child_placement=(y, 0, 0))
    return b.build()


def state(m, theta, w):
    """Return q and v of a linkage at an angle and a speed of the crank."""
    _, phi, psi, k, _ = positions(theta, w)
    angles = {"world": 0.0, "crank": theta, "coupler": phi, "rocker": psi}
    speeds = {"world": 0.0, "crank": w, "coupler": k[0] * w, "rocker": k[1] * w}
    return tuple(np.array([x[joint.child] - x[joint.parent] for joint in m.joints]) for x in (angles, speeds))


def positions(theta, w):
    """Return B, angles of coupler and rocker, their speeds per w, and their angular accelerations at a steady w."""
    (a, _), (b, _), (c, _) = BARS.values()
    B = a * np.exp(1j * theta)
    d = GROUND - B
    phi = np.angle(d) + np.arccos((b**2 + abs(d) ** 2 - c**2) / (2 * b * abs(d)))
    along, across = b * np.exp(1j * phi), B + b * np.exp(1j * phi) - GROUND
    E = np.array([[-along.imag, across.imag], [along.real, -across.real]])
    k = np.linalg.solve(E, [(-1j * B).real, (-1j * B).imag])
    rest = w**2 * (B + k[0] ** 2 * along - k[1] ** 2 * across)
    return B, phi, np.angle(across), k, np.linalg.solve(E, [rest.real, rest.imag])


def textbook(theta, w, drive=DRIVE):
    """Return the crank's acceleration, forces (4, 2) of A to D on their second bodies, and friction torques (4,).

    Newton's and Euler's equations of three bars, nine unknowns; torques and loads in turn until both fit.
    """
    B, phi, _, k, steady = positions(theta, w)
    C, D = B + np.exp(1j * phi), GROUND + 0j
    slow = (1j * B / 2, 1j * B + 1j * k[0] * (C - B) / 2, 1j * k[1] * (C - D) / 2)
    fast = (
        -(w**2) * B / 2,
        -(w**2) * B + (1j * steady[0] - (k[0] * w) ** 2) * (C - B) / 2,
        (1j * steady[1] - (k[1] * w) ** 2) * (C - D) / 2,
    )
    centres, turns, spins = (B / 2, (B + C) / 2, (C + D) / 2), (1.0, *k), (0.0, *steady)
    E, r = np.zeros((9, 9)), np.zeros(9)
    for bar, hinge, sign, place in (
        (0, 0, 1, 0j),
        (0, 1, -1, B),
        (1, 1, 1, B),
        (1, 2, -1, C),
        (2, 2, 1, C),
        (2, 3, 1, D),
    ):
        lever = place - centres[bar]
        E[3 * bar, 2 * hinge] = E[3 * bar + 1, 2 * hinge + 1] = sign
        E[3 * bar + 2, 2 * hinge : 2 * hinge + 2] += sign * np.array([-lever.imag, lever.real])
    for i, (length, mass) in enumerate(BARS.values()):
        moment = mass * length**2 / 12
        E[3 * i : 3 * i + 3, 8] = -mass * slow[i].real, -mass * slow[i].imag, -moment * turns[i]
        r[3 * i : 3 * i + 3] = mass * fast[i].real, mass * (fast[i].imag + G), moment * spins[i]
    signs = np.sign(w * np.array([1.0, k[0] - 1.0, k[1] - k[0], k[1]]))
    torque = np.zeros(4)
    for _ in range(100):
        acting = np.array([drive + torque[0] - torque[1], torque[1] - torque[2], torque[2] + torque[3]])
        x = np.linalg.solve(E, r - np.array([0, 0, acting[0], 0, 0, acting[1], 0, 0, acting[2]]))
        torque, before = -signs * MU * R * np.hypot(x[0:8:2], x[1:8:2]), torque
        if np.abs(torque - before).max() < 1e-14:
            break
    return x[8], x[:8].reshape(4, 2), torque


@pytest.mark.parametrize("cut", list(HINGES))
def test_friction_of_a_hinge_does_not_depend_on_the_cut(cut):
    """Acceleration, forces and torques are the textbook's; the hinge of the loop transmits its friction, too."""
    m = four_bar(cut)
    q, v = state(m, 0.7, 6.0)
    assert np.abs(m.constraint(q)).max() < 1e-14
    # the drive turns the crank, whatever its coordinates are
    drive = DRIVE * np.asarray(m.frame_jacobian(q, "crank", "world"))[5]
    loads = m.joint_forces(q, v, drive, bearings=dict.fromkeys(HINGES, (R, MU))).in_axes("world")
    alpha, forces, torques = textbook(0.7, 6.0)
    crank = np.asarray(m.frame_jacobian(q, "crank", "world"))[5] @ loads.acceleration
    assert crank == pytest.approx(alpha, rel=1e-10)
    for k, (name, (_, child, *_)) in enumerate(HINGES.items()):
        sign = 1.0 if loads[name].child == child else -1.0
        np.testing.assert_allclose(sign * loads[name].force[:2], forces[k], rtol=1e-10, atol=1e-9)
        assert sign * float(loads.friction[name]) == pytest.approx(torques[k], rel=1e-10)
        motor = DRIVE if name == "A" and cut != "A" else 0.0
        if cut != "A":  # else the drive acts as motors on coordinates, whose torques the tree transmits
            assert sign * loads[name].working[5] == pytest.approx(torques[k] + motor, rel=1e-9)


def test_a_four_bar_with_journals_runs_through_its_dead_points():
    """Rocker and coupler turn back every turn: they stick nowhere, and every sample has the textbook's numbers."""
    m = four_bar("C")
    q, v = state(m, 1.0, 6.0)
    journals = [da.BearingFriction(f"journal {name}", name, MU, radius=R) for name in HINGES]
    run = da.simulate(m, 0.7, q, v, force=[DRIVE, 0.0, 0.0], contacts=journals)
    assert run.ok
    turned = [(each.contact, each.new) for each in run.events]
    assert turned == [("journal C", "slip-"), ("journal D", "slip-"), ("journal C", "slip+"), ("journal D", "slip+")]
    np.testing.assert_allclose(run.energy_residual, 0.0, atol=1e-6)
    loads = run.joint_forces.in_axes("world")
    instants = {each.time for each in run.events}
    samples = [i for i, t in enumerate(run.t) if t not in instants][::4]
    assert len(samples) > 5
    for i in samples:
        alpha, forces, torques = textbook(run.q[i, 0], run.v[i, 0])
        assert run.acceleration[i, 0] == pytest.approx(alpha, rel=1e-6, abs=1e-6)
        for k, name in enumerate(HINGES):
            np.testing.assert_allclose(loads[name].force[i, :2], forces[k], rtol=1e-6, atol=1e-6)
            assert loads[name].unique[i, [0, 1, 5]].all()
        assert loads["C"].working[i, 5] == pytest.approx(torques[2], rel=1e-6)


@pytest.mark.parametrize("cut", ["C", "A"])
def test_journals_that_rest_together_begin_to_move_where_sliding_has_no_acceleration(cut):
    """Four journals hold the linkage in many ways; the torque that moves it is the textbook's, for every cut."""
    m = four_bar(cut)
    q, v = state(m, 0.7, 0.0)
    slowly = 1e-12
    up, down = (brentq(lambda x, w=w: textbook(0.7, w, x)[0], 0.0, 20.0, xtol=1e-14) for w in (slowly, -slowly))
    middle = (up + down) / 2
    ramp = np.array([middle, 2 * up - middle])[:, None] * np.asarray(m.frame_jacobian(q, "crank", "world"))[5]
    journals = [da.BearingFriction(f"journal {name}", name, MU, radius=R) for name in HINGES]
    run = da.simulate(m, 1.0, q, v, force=([0.0, 1.0], ramp), contacts=journals)
    assert run.ok
    starts = {each.contact: each.time for each in run.events if each.old == "stick"}
    assert len(starts) == 4
    np.testing.assert_allclose(list(starts.values()), 0.5, rtol=1e-9)
    resting = run.t < 0.5
    np.testing.assert_allclose(run.v[resting], 0.0, atol=1e-14)
    loads = run.joint_forces
    for name in HINGES:
        assert not loads[name].unique[resting][:, [0, 1, 5]].any()
        assert loads[name].unique[-1, [0, 1, 5]].all()
        limit = MU * R * np.linalg.norm(loads[name].force[:, :2], axis=1)
        assert (
            np.abs(run.forces[:, run.contact_columns[f"journal {name}"]][resting, 0]) <= limit[resting] * (1 + 1e-6)
        ).all()


def test_dry_friction_of_a_loops_hinge_is_that_of_the_same_hinge_in_the_tree():
    """`JointFriction` along a hinge, by events and by time steps, with the loop cut there and elsewhere."""
    ends = {}
    for cut in ("C", "D"):
        m = four_bar(cut)
        q, v = state(m, 1.0, 6.0)
        rub = [da.JointFriction("rub", "C", 0.5)]
        ends[cut] = da.simulate(m, 0.3, q, v, contacts=rub)
        steps = da.simulate(m, 0.3, q, v, contacts=rub, method="moreau", step=1e-3)
        assert steps.heat[-1] == pytest.approx(ends[cut].heat[-1], rel=2e-2)
    assert ends["C"].heat[-1] == pytest.approx(ends["D"].heat[-1], rel=1e-6)
    assert ends["C"].q[-1, 0] == pytest.approx(ends["D"].q[-1, 0], abs=1e-7)


def test_loads_of_a_run_that_ends_where_it_begins():
    m = four_bar("C")
    q, v = state(m, 1.0, 6.0)
    steep = [da.BearingFriction(f"journal {name}", name, 5.0, radius=0.5) for name in "AC"]
    run = da.simulate(m, 0.1, q, v, contacts=steep)
    assert run.status == "no solution"
    assert set(run.joint_forces) == set(HINGES)
    with pytest.raises(da.ModelError, match="'power' is not one of"):
        run.joint_forces.plot("A", "power")


# ----------------------------------------------------------------------------------------------------------------------
# A slider-crank whose guide rubs by its load.


def slider_crank(cut):
    """Return a slider-crank without redundant rows, its loop closed at the guide or at the rod's ball."""
    across = (0, 1, 0)
    b = da.Builder("slider-crank")
    for name, mass, centre in (("crank", 1.0, 0.15), ("pin", 0.05, 0.0), ("rod", 0.8, 0.4), ("piston", 1.5, 0.05)):
        b.body(name, mass=mass, center=(centre, 0, 0), inertia=(0.01, 0.02, 0.02))
    b.joint("A", "revolute", "world", "crank", axis=across)
    b.joint("pin", "prismatic", "crank", "pin", axis=across, placement=(0.3, 0, 0))
    b.joint("B", "revolute", "pin", "rod", axis=across)
    if cut == "guide":
        b.joint("C", "spherical", "rod", "piston", placement=(0.8, 0, 0))
        b.loop("guide", "prismatic", "piston", "world", axis=(1, 0, 0), other_placement=(0, 0, 0.1))
    else:
        b.joint("guide", "prismatic", "world", "piston", axis=(1, 0, 0), placement=(0, 0, 0.1))
        b.loop("C", "point", "rod", "piston", placement=(0.8, 0, 0))
    return b.build()


def running(m, angle, w):
    """Return q and v of the slider-crank at an angle and a speed of the crank."""
    rod = -np.arcsin((0.1 + 0.3 * np.sin(angle)) / 0.8)
    turn = -0.3 * np.cos(angle) * w / (0.8 * np.cos(rod))
    q, v = m.neutral(), np.zeros(m.nv)
    values = {"A": (angle, w), "B": (rod - angle, turn - w)}
    values["guide"] = 0.3 * np.cos(angle) + 0.8 * np.cos(rod), -0.3 * np.sin(angle) * w - 0.8 * np.sin(rod) * turn
    for name, (x, rate) in values.items():
        if name in m.coordinates:
            q[m.index_q(name)], v[m.index_v(name)] = x, rate
    if "guide" not in m.coordinates:  # the ball turns the piston back
        q[m.index_q("C")] = Rotation.from_rotvec([0, -rod, 0]).as_quat(scalar_first=bool(q[m.index_q("C")][0]))
        v[m.index_v("C")] = 0, -turn, 0
    return q, v


def test_a_slider_that_closes_a_loop_rubs_as_the_same_slider_in_the_tree():
    """Motion, loads, heat and the common end at rest; at the start the law mu N by hand."""
    runs = {}
    for cut in ("guide", "C"):
        m = slider_crank(cut)
        q, v = running(m, 0.7, 5.0)
        assert np.abs(m.constraint(q)).max() < 1e-14
        both = [da.BearingFriction("rub", "guide", 0.3), da.BearingFriction("journal", "A", 0.1, radius=0.02)]
        run = da.simulate(m, 1.3, q, v, contacts=both, every=0.1)
        assert run.ok
        runs[cut] = run, run.joint_forces.in_axes("world")
        at = m.joint_forces(q, v, bearings={"guide": 0.3, "A": (0.02, 0.1)}, axes="world")
        np.testing.assert_allclose(at["guide"].working[:3], at["guide"].force * [1, 0, 0], atol=1e-12)
        assert abs(at.friction["guide"]) == pytest.approx(0.3 * abs(at["guide"].force[2]), rel=1e-12)
    (one, loads), (two, others) = runs["guide"], runs["C"]
    assert {each.new for each in one.events[-2:]} == {"stick"}
    np.testing.assert_allclose([each.time for each in one.events], [each.time for each in two.events], rtol=1e-8)
    assert one.heat[-1] == pytest.approx(two.heat[-1], rel=1e-8)
    np.testing.assert_allclose(one.q[:, 0], two.q[:, 0], atol=1e-8)
    moving = one.t < one.events[-1].time - 1e-6
    for name in ("A", "B", "guide"):
        sign = -1.0 if name == "guide" and loads[name].child != others[name].child else 1.0
        np.testing.assert_allclose(loads[name].force[moving], sign * others[name].force[moving], atol=1e-6)
        assert loads[name].unique[moving].all()
        assert not loads[name].unique[-1].all()


def ball_crank(cut, angle, w):
    """Return a crank, a rod between balls and a piston on a guide through the crank's axis, with q and v."""
    b = da.Builder("ball crank", gravity=(0, -G, 0))
    b.body("crank", mass=1.0, center=(0.15, 0, 0), inertia=(0.002, 0.011, 0.012))
    b.body("rod", mass=0.7, center=(0.3, 0, 0), inertia=(0.012, 0.031, 0.04))
    b.body("piston", mass=0.4, inertia=(1e-3, 1e-3, 1e-3))
    b.joint("A", "revolute", "world", "crank", axis=(0, 0, 1))
    b.joint("B", "spherical", "crank", "rod", position=(0.3, 0, 0))
    if cut == "guide":
        b.joint("C", "spherical", "rod", "piston", position=(0.8, 0, 0))
        b.loop("guide", "prismatic", "piston", "world", axis=(1, 0, 0))
    else:
        b.joint("guide", "prismatic", "world", "piston", axis=(1, 0, 0))
        b.loop("C", "point", "rod", "piston", placement=(0.8, 0, 0))
    m = b.build()
    rod = -np.arcsin(0.3 * np.sin(angle) / 0.8)
    turn = -0.3 * np.cos(angle) * w / (0.8 * np.cos(rod))
    q, v = m.neutral(), np.zeros(m.nv)
    values = {"A": (angle, w), "B": (rod - angle, turn - w), "C": (-rod, -turn)}
    values["guide"] = 0.3 * np.cos(angle) + 0.8 * np.cos(rod), -0.3 * np.sin(angle) * w - 0.8 * np.sin(rod) * turn
    for joint in m.joints:
        x, rate = values[joint.name]
        ball = joint.kind == "spherical"
        q[m.index_q(joint.name)] = (0, 0, np.sin(x / 2), np.cos(x / 2)) if ball else x
        v[m.index_v(joint.name)] = (0, 0, rate) if ball else rate
    return m, q, v


@pytest.mark.parametrize("cut", ["guide", "C"])
@pytest.mark.parametrize("rtol", [1e-6, 1e-9])
def test_a_guide_rubs_on_through_the_dead_centre(cut, rtol):
    """The piston turns back while the crank runs on, wherever the loop is closed: SciPy has the crank's equation.

    I(s) s'' + I' s'^2 / 2 = Q - F sign(x') x_s: inertia, place of the piston and height as functions of the angle s.
    """
    force, start, w, end = 0.5, 0.9, 5.0, 0.6
    m, q, v = ball_crank(cut, start, w)
    run = da.simulate(m, end, q, v, contacts=[da.JointFriction("rub", "guide", force)], rtol=rtol, atol=rtol / 100)
    assert run.ok
    assert [each.new for each in run.events] == ["slip+"]

    def slope(s):
        """Return dx/ds of the piston."""
        return -0.3 * np.sin(s) * (1 + 0.3 * np.cos(s) / np.sqrt(0.64 - (0.3 * np.sin(s)) ** 2))

    def inertia(s):
        rod = -0.3 * np.cos(s) / np.sqrt(0.64 - (0.3 * np.sin(s)) ** 2)  # turns of the rod per turn of the crank
        angle = -np.arcsin(0.3 * np.sin(s) / 0.8)
        centre = 0.3j * np.exp(1j * s) + 0.3j * rod * np.exp(1j * angle)
        return 0.012 + 0.15**2 + 0.7 * abs(centre) ** 2 + 0.04 * rod**2 + 0.4 * slope(s) ** 2

    def rates(t, y, h=1e-5):
        bend = (inertia(y[0] + h) - inertia(y[0] - h)) / (2 * h)
        weight = G * np.cos(y[0]) * (1.0 * 0.15 + 0.7 * 0.3 * (1 - 0.3 / 0.8))
        return [y[1], (-weight - bend * y[1] ** 2 / 2 - force * np.sign(slope(y[0])) * slope(y[0])) / inertia(y[0])]

    turns, y = run.events[0].time, [start, w]
    assert abs(run.q[-1, m.index_q("A")][0]) > np.pi
    for first, last in ((0.0, turns), (turns, end)):
        y = solve_ivp(rates, (first, last), y, rtol=1e-10, atol=1e-12).y[:, -1]
    np.testing.assert_allclose((run.q[-1, m.index_q("A")][0], run.v[-1, m.index_v("A")][0]), y, rtol=20 * rtol)
