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
