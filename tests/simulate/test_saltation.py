"""Derivatives of runs through impacts, stick and slip: closed forms with 30 digits, and differences of runs."""

from __future__ import annotations

import casadi as ca
import mpmath
import numpy as np
import pytest

import dalembert as da
from dalembert.errors import UnsupportedError
from dalembert.friction import Bounded, StaticKinetic

TIGHT = {"rtol": 1e-12, "atol": 1e-13}
G = 9.81


def slider(axis, stiffness=0.0, friction=0.0):
    """Return a body of 2 kg on a slide, with a spring and dry friction where wanted."""
    b = da.Builder("slider", gravity=(0.0, 0.0, -G if axis[2] else 0.0))
    b.body("body", mass=2.0, inertia=(0.1, 0.1, 0.1))
    b.joint("x", "prismatic", parent="world", child="body", axis=axis, stiffness=stiffness, friction=friction)
    return b.build()


def slopes(f, *point):
    """Return the gradient of a function of numbers, with 30 digits."""
    with mpmath.workdps(30):
        units = np.eye(len(point), dtype=int)
        return [float(mpmath.diff(f, tuple(map(mpmath.mpf, point)), tuple(map(int, unit)))) for unit in units]


def test_a_bouncing_ball_in_closed_form():
    """One impact: height and speed at the end by start and restitution, and the time of the impact."""
    ground = da.Contact(da.Sphere("body", 0.25), da.Plane(), restitution=0.6, name="ground")
    run = da.simulate(slider((0, 0, 1)), 0.8, [1.25], [0.5], contacts=[ground], **TIGHT)
    assert [event.new for event in run.events] == ["impact"]
    s = run.sensitivity(["q0", "v0", "restitution:ground", "mass:body"])

    def when(h, v):
        return (v + mpmath.sqrt(v**2 + 2 * G * h)) / G

    def height(h, v, e):
        rest = mpmath.mpf(0.8) - when(h, v)
        return e * mpmath.sqrt(v**2 + 2 * G * h) * rest - G * rest**2 / 2

    def speed(h, v, e):
        return e * mpmath.sqrt(v**2 + 2 * G * h) - G * (mpmath.mpf(0.8) - when(h, v))

    names = ("q0", "v0", "restitution:ground")
    for word, f in (("q", height), ("v", speed)):
        np.testing.assert_allclose([s[word, name][-1, 0, 0] for name in names], slopes(f, 1.0, 0.5, 0.6), atol=1e-9)
    np.testing.assert_allclose(s["q", "mass:body"][-1], 0.0, atol=1e-12)
    np.testing.assert_allclose([s.event_times[name][0, 0] for name in names[:2]], slopes(when, 1.0, 0.5), atol=1e-9)
    q, v = ca.SX.sym("q"), ca.SX.sym("v")
    g = run.gradient(ca.Function("loss", [q, v], [q * v]), list(names))
    expected = [run.v[-1, 0] * s["q", x][-1, 0, 0] + run.q[-1, 0] * s["v", x][-1, 0, 0] for x in names]
    np.testing.assert_allclose([g[x][0] for x in names], expected, atol=1e-11)


def test_an_oscillator_with_dry_friction_in_closed_form():
    """k 8, m 2, limit 1: it turns at -(q0 - 2/8) after half a period, and comes to rest at 2 q0/8-steps from there."""
    run = da.simulate(slider((1, 0, 0), 8.0, 1.0), 3.5, [0.6], [0.0], **TIGHT)
    assert [event.new for event in run.events] == ["slip+", "stick"]  # at pi/2 and pi seconds
    names = ["q0", "friction:friction of x", "stiffness:x"]
    s = run.sensitivity(names)
    # q = c + (q0 - c) cos(w t), c = f/k; then -c; the turns are at q0 -> -(q0 - 2 c) -> q0 - 4 c, where it rests
    np.testing.assert_allclose([s["q", x][-1, 0, 0] for x in names], [1.0, -0.5, 4 * 1.0 / 64], atol=1e-9)
    np.testing.assert_allclose([s["v", x][-1, 0, 0] for x in names], 0.0, atol=1e-10)
    k = int(np.searchsorted(run.t, 2.0))

    def place(q0, f, stiffness):
        w, c, t = mpmath.sqrt(stiffness / 2), f / stiffness, mpmath.mpf(float(run.t[k]))
        return -c + (q0 - 3 * c) * mpmath.cos(w * t)  # cos(w (t - pi/w)) = -cos(w t), and the amplitude is -(q0 - 3 c)

    np.testing.assert_allclose([s["q", x][k, 0, 0] for x in names], slopes(place, 0.6, 1.0, 8.0), atol=1e-9)
    np.testing.assert_allclose(s.event_times["stiffness:x"][:, 0], [-np.pi / 32, -np.pi / 16], atol=1e-9)
    with pytest.raises(UnsupportedError, match="slides from rest"):
        run.sensitivity("v0")


def geared(*limits, rows=True):
    """Return two slides of 2 kg on springs of 8 N/m with dry friction; where coupled, y moves twice as far as x."""
    b = da.Builder("geared", gravity=(0.0, 0.0, 0.0))
    for name, axis, stiffness, limit in zip("xy", np.eye(3)[:2], (8.0, 8.0), limits, strict=True):
        b.body(name, mass=2.0, inertia=(0.1, 0.1, 0.1))
        b.joint(name, "prismatic", parent="world", child=name, axis=axis, stiffness=stiffness, friction=limit)
    return b.build().constrain(*[da.Coupler({"x": 2.0, "y": -1.0})] * rows)


def test_joints_of_one_freedom_turn_at_one_instant():
    """40 N/m, 10 kg, limit 1 + 2 y: as one oscillator; of joints that are not coupled, the first one is not decided."""
    c, names = 1.6 / 40.0, ["q0", "friction:friction of x", "friction:friction of y", "stiffness:x"]
    run = da.simulate(geared(1.0, 0.3), 4.0, [5.5 * c, 11.0 * c], [0.0, 0.0], **TIGHT)
    assert [event.new for event in run.events] == ["slip+", "slip+", "slip-", "slip-"]
    s = run.sensitivity(names)

    def place(q0, fx, fy, stiffness):
        k, t = stiffness + 32, mpmath.mpf(float(run.t[-1]))
        middle = (fx + 2 * fy) / k
        return middle + (q0 - 5 * middle) * mpmath.cos(mpmath.sqrt(k / 10) * t)

    expected = np.array(slopes(place, 5.5 * c, 1.0, 0.3, 8.0))
    expected[0] /= 5.0  # q0 of x alone goes along (1, 2) by a fifth
    np.testing.assert_allclose([s["q", x][-1, 0, 0] for x in names], expected, atol=1e-9)
    np.testing.assert_allclose([s["q", x][-1, 1, 0] for x in names], 2.0 * expected, atol=1e-9)
    resting = da.simulate(geared(1.0, 0.3), 3.0, [2.5 * c, 5.0 * c], [0.0, 0.0], **TIGHT)
    assert [event.new for event in resting.events][-2:] == ["stick", "stick"]
    np.testing.assert_allclose(resting.sensitivity(names)["v", "q0"][-1], 0.0, atol=1e-10)
    apart = da.simulate(geared(0.8, 0.4, rows=False), 3.0, [0.7, 0.7], [0.0, 0.0], **TIGHT)
    assert len({event.time for event in apart.events[:2]}) == 1
    with pytest.raises(UnsupportedError, match="comes first"):
        apart.sensitivity(names[:1])


def test_a_block_on_a_belt_whose_friction_drops():
    """Sticking ends at a static limit above the kinetic one: a start earlier by dq is a motion earlier by dq / V."""
    belt = Bounded("belt", [1.0], StaticKinetic(3.0, 1.5), surface=0.4)
    block = slider((1, 0, 0), 8.0)
    run = da.simulate(block, 3.8, [0.1], [0.4], contacts=[belt], **TIGHT)
    assert [(event.old, event.new) for event in run.events][:2] == [("stick", "slip-"), ("slip-", "stick")]
    s = run.sensitivity(["q0", "v0", "stiffness:x"])
    stuck, slid = (np.flatnonzero(run.modes[:, 0] == mode) for mode in (0, -1))
    for k in (stuck[0], slid[len(slid) // 2], stuck[-1]):
        np.testing.assert_allclose(s["q", "q0"][k, 0, 0], run.v[k, 0] / 0.4, atol=1e-9)
    np.testing.assert_allclose(s["q", "v0"], 0.0, atol=1e-12)  # sticking leaves velocities no choice
    k = slid[len(slid) // 2]

    def place(stiffness):
        w, t = mpmath.sqrt(stiffness / 2), mpmath.mpf(float(run.t[k]))
        since = t - (3 / stiffness - mpmath.mpf(0.1)) / mpmath.mpf(0.4)
        middle = mpmath.mpf(1.5) / stiffness
        return middle + (3 / stiffness - middle) * mpmath.cos(w * since) + mpmath.mpf(0.4) / w * mpmath.sin(w * since)

    np.testing.assert_allclose(s["q", "stiffness:x"][k, 0], slopes(place, 8.0), atol=1e-9)


def block(*axes):
    """Return a box of 2 kg on slides of 1 kg each along axes, the last of them upwards, and the floor it rests on."""
    b = da.Builder("block")
    parent = "world"
    for name, axis in zip("xyz"[3 - len(axes) :], axes, strict=True):
        b.body(name, mass=2.0 if axis == axes[-1] else 1.0, inertia=(0.1, 0.1, 0.1))
        b.joint(name, "prismatic", parent=parent, child=name, axis=axis)
        parent = name
    return b.build(), [da.Contact(da.Sphere("z", 0.1), da.Plane(), friction=0.4, name="floor")]


def test_a_block_on_the_floor_stops_and_starts():
    """It rests there from the start, slides to a stop, and breaks loose under a growing force, in closed form."""
    mechanism, floor = block((1, 0, 0), (0, 0, 1))
    run = da.simulate(mechanism, 1.0, [0, 0.1], [2.0, 0], contacts=floor, **TIGHT)
    names = ["q0", "v0", "friction:floor", "mass:z"]
    s = run.sensitivity(names)
    place = lambda q, v, mu, m: q + v**2 / (2 * mu * m * G / (1 + m))  # noqa: E731
    for word, expected in (("q", slopes(place, 0.0, 2.0, 0.4, 2.0)), ("v", [0.0] * 4)):
        np.testing.assert_allclose([s[word, name][-1, 0, 0] for name in names], expected, atol=1e-9)
    np.testing.assert_allclose([s[word, name][:, 1] for word in "qv" for name in names[:2]], 0.0, atol=1e-12)
    g = run.gradient(lambda q, v: (q[0], [1.0, 0.0], [0.0, 0.0]), names)
    np.testing.assert_allclose([g[name][0] for name in names], slopes(place, 0.0, 2.0, 0.4, 2.0), atol=1e-9)

    t, q, v = ca.SX.sym("t"), ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    pull = ca.Function("pull", [t, q, v], [ca.vertcat(20.0 * t, 0.0)])
    run = da.simulate(mechanism, 1.0, [0, 0.1], [0, 0], force=pull, contacts=floor, **TIGHT)
    assert [event.old for event in run.events][-1] == "stick"
    s = run.sensitivity(names)
    place = lambda mu, m: 20.0 * (1 - mu * m * G / 20.0) ** 3 / (6 * (1 + m))  # noqa: E731
    np.testing.assert_allclose([s["q", name][-1, 0, 0] for name in names[2:]], slopes(place, 0.4, 2.0), atol=1e-9)


def test_a_frictionless_floor_and_one_under_two_points():
    """Without friction nothing sticks; where two points share the load, the friction of one has no derivative."""
    mechanism, floor = block((1, 0, 0), (0, 0, 1))
    slippery = [da.Contact(da.Sphere("z", 0.1), da.Plane(), name="floor")]
    for height in (0.1, 0.3):
        run = da.simulate(mechanism, 0.5, [0, height], [2.0, 0], contacts=slippery)
        np.testing.assert_allclose(run.sensitivity("v0")["q", "v0"][-1, 0], [0.5, 0.0], atol=1e-12)
    with pytest.raises(UnsupportedError, match="from one side"):
        run.sensitivity("friction:floor")
    other = da.Contact(da.Sphere("z", 0.1, at=(1.0, 0, 0)), da.Plane(), friction=0.4, name="other")
    run = da.simulate(mechanism, 0.3, [0, 0.1], [2.0, 0], contacts=[*floor, other], method="hybrid")
    np.testing.assert_allclose(run.sensitivity("v0")["q", "v0"][-1, 0], [0.3, 0.0], atol=1e-12)
    with pytest.raises(UnsupportedError, match="how their load is shared"):
        run.sensitivity("friction:other")


def test_sliding_in_a_plane_to_rest_is_refused():
    """The direction of sliding has no derivative where a contact that can slide both ways stops; before it has one."""
    mechanism, floor = block((1, 0, 0), (0, 1, 0), (0, 0, 1))
    run = da.simulate(mechanism, 0.5, [0, 0, 0.1], [1.0, 0.5, 0], contacts=floor)
    assert np.isfinite(run.sensitivity("v0")["q", "v0"]).all()
    run = da.simulate(mechanism, 2.0, [0, 0, 0.1], [1.0, 0.5, 0], contacts=floor)
    with pytest.raises(UnsupportedError, match="its direction of sliding has no derivative at rest"):
        run.sensitivity("v0")


def wheel(mu, e=0.4, bump=0.0):
    """Return a heavy wheel that falls onto a slope while it turns, and what it strikes."""
    b = da.Builder("wheel")
    b.body("x", mass=0.1, inertia=(0.1, 0.1, 0.1))
    b.body("z", mass=1.0, inertia=(0.1, 0.1, 0.1))
    b.body("wheel", mass=1.0 + bump, center=(0.02, 0, 0.01), inertia=(0.01, 0.01, 0.01))
    b.joint("x", "prismatic", parent="world", child="x", axis=(1, 0, 0))
    b.joint("z", "prismatic", parent="x", child="z", axis=(0, 0, 1))
    b.joint("r", "revolute", parent="z", child="wheel", axis=(0, 1, 0))
    shapes = da.Sphere("wheel", 0.1), da.Plane(normal=(0.1, 0, 1))
    return b.build(), [da.Contact(*shapes, friction=mu, restitution=e, name="foot")]


@pytest.mark.parametrize(("mu", "e"), [(0.02, 0.4), (0.5, 0.4), (0.15, 0.0)])
def test_impacts_with_friction(mu, e):
    """The impact slides, sticks, or is followed by sliding down the slope: differences of runs, extrapolated."""
    q, v = np.array([0, 0.5, 0.2]), np.array([1.0, 0.0, 3.0])
    names = ["q0", "v0", "mass:wheel", "friction:foot"]

    def end(dq=0.0, dv=0.0, dmass=0.0, dmu=0.0):
        system, contacts = wheel(mu + dmu, e, dmass)
        run = da.simulate(system, 0.6, q + dq, v + dv, contacts=contacts, **TIGHT)
        return np.concatenate([run.q[-1], run.v[-1]]), run

    run = end()[1]
    s = run.sensitivity(names)
    found = np.block([[s[a, b][-1] for b in names] for a in "qv"])
    h, columns = 1e-4, []
    units = [{"dq": x} for x in np.eye(3)] + [{"dv": x} for x in np.eye(3)] + [{"dmass": 1.0}, {"dmu": 1.0}]
    for unit in units:
        first = [
            (end(**{k: c * x for k, x in unit.items()})[0] - end(**{k: -c * x for k, x in unit.items()})[0]) / (2 * c)
            for c in (h, h / 2)
        ]
        columns.append((4 * first[1] - first[0]) / 3)
    expected = np.array(columns).T
    np.testing.assert_allclose(found, expected, atol=2e-8 * np.abs(expected).max())


def test_a_rod_that_strikes_with_friction():
    """One freedom, normal and tangent alike: friction takes part by its law alone; the run is known in closed form."""
    b = da.Builder("rod", gravity=(0.0, 0.0, 0.0))
    b.body("rod", mass=1.0, center=(0.3, 0, 0), inertia=(0.01, 0.05, 0.05))
    b.joint("hinge", "revolute", parent="world", child="rod", axis=(0, 1, 0), position=(0, 0, 0.3))
    tip = da.Contact(da.Sphere("rod", 0.0, at=(0.6, 0, 0)), da.Plane(), friction=0.3, restitution=0.5, name="tip")
    run = da.simulate(b.build(), 1.0, [-0.2], [1.0], contacts=[tip], method="hybrid", **TIGHT)
    s = run.sensitivity(["q0", "v0", "restitution:tip", "friction:tip"])
    struck = float(np.pi / 6)  # the tip is at 0.3 - 0.6 sin(q); at v it strikes when q is there, and leaves with -e v
    place = lambda q, v, e: struck - e * v * (1 - (struck - q) / v)  # noqa: E731
    expected = [*slopes(place, -0.2, 1.0, 0.5), 0.0]
    found = [s["q", name][-1, 0, 0] for name in ("q0", "v0", "restitution:tip", "friction:tip")]
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_what_has_no_derivative_is_refused():
    """Infinitely many impacts, two at once, and time steps."""
    ground = da.Contact(da.Sphere("body", 0.25), da.Plane(), restitution=0.3, name="ground")
    system = slider((0, 0, 1))
    run = da.simulate(system, 2.0, [0.4], [0.0], contacts=[ground])
    with pytest.raises(UnsupportedError, match="Zeno"):
        run.sensitivity("q0")
    run = da.simulate(system, 0.3, [0.4], [0.0], contacts=[ground], method="moreau", step=1e-3)
    with pytest.raises(UnsupportedError, match="located events"):
        run.sensitivity("q0")
    both = [ground, da.Contact(da.Sphere("body", 0.25, at=(1.0, 0, 0)), da.Plane(), restitution=0.3, name="other")]
    run = da.simulate(system, 0.3, [0.4], [0.0], contacts=both)
    with pytest.raises(UnsupportedError, match="'ground', 'other' strike at one instant"):
        run.sensitivity("q0")


def leg(friction=0.0, mass=2.0):
    """Return a body of 2 kg above a foot without mass that slides and is sprung, on the floor; z, y, length in turn."""
    b = da.Builder("leg")
    b.body("body", mass=mass, inertia=(0.1, 0.1, 0.1))
    b.joint("z", "prismatic", parent="world", child="body", axis=(0, 0, 1))
    b.body("shank")
    b.joint("y", "prismatic", parent="body", child="shank", axis=(0, 1, 0))
    b.body("foot")
    b.joint("length", "prismatic", parent="shank", child="foot", axis=(0, 0, -1))
    t, q, v = ca.SX.sym("t"), ca.SX.sym("q", 3), ca.SX.sym("v", 3)
    spring = ca.Function("spring", [t, q, v], [ca.vertcat(0.0, 0.0, 800.0 * (0.5 - q[2]))])
    return b.build(), spring, [da.Contact(da.Sphere("foot"), da.Plane(), friction=friction, name="foot")]


@pytest.mark.parametrize("law", ["hold", {"y": lambda k: -3.0 * k.coordinate("y")}])
def test_a_frictionless_foot_without_mass(law):
    """The body bounces on the spring at 20 rad/s, the foot slides as its law says, y exp(-3 t), or stands still."""
    mechanism, spring, floor = leg()
    options = {"contacts": floor, "force": spring, "massless": law, **TIGHT}
    run = da.simulate(mechanism, 0.1, [0.48, 0.2, 0.48], [0.0, -0.6 * (law != "hold"), 0.0], **options)
    assert run.status == "completed"
    s, decay = run.sensitivity(["q0", "v0", "mass:body"]), 1.0 if law == "hold" else np.exp(-0.3)
    np.testing.assert_allclose(s["q", "q0"][-1], [[np.cos(2), 0, 0], [0, decay, 0], [np.cos(2), 0, 0]], atol=1e-8)
    wave = np.sin(2) / 20
    np.testing.assert_allclose(s["q", "v0"][-1], [[wave, 0, 0], [0, 0, 0], [wave, 0, 0]], atol=1e-8)

    def height(mass):
        w, rest = mpmath.sqrt(800 / mass), mpmath.mpf(0.5) - mass * mpmath.mpf(G) / 800
        return rest + (mpmath.mpf(0.48) - rest) * mpmath.cos(w / 10)

    np.testing.assert_allclose(s["q", "mass:body"][-1, [0, 2], 0], slopes(height, 2.0) * 2, atol=1e-8)


def test_limbs_without_mass_that_land_are_refused_by_name():
    """In the air a held leg falls with its body; where it lands its velocity jumps, which has no derivative here."""
    mechanism, spring, floor = leg()
    options = {"contacts": floor, "force": spring, "massless": "hold", **TIGHT}
    fall = da.simulate(mechanism, 0.1, [0.8, 0.2, 0.5], [0.0, 0.0, 0.0], **options)
    s = fall.sensitivity(["q0", "v0"])
    np.testing.assert_allclose(s["q", "q0"][-1], np.eye(3), atol=1e-12)
    np.testing.assert_allclose(s["q", "v0"][-1], np.diag([0.1, 0.0, 0.0]), atol=1e-12)
    landed = da.simulate(mechanism, 0.3, [0.8, 0.2, 0.5], [0.0, 0.0, 0.0], **options)
    with pytest.raises(UnsupportedError, match="'length' jumps"):
        landed.sensitivity("q0")
