"""Contacts of what rotates: no gap closes unseen, however often a shape turns within a step."""

from __future__ import annotations

import numpy as np
import pytest

import dalembert as da
from dalembert.simulate.contact import Box, Contact, Heightfield, JointLimits, Plane, Sphere
from dalembert.simulate.contact.shapes import pairs_of
from dalembert.simulate.events.isolate import locate_zero
from dalembert.simulate.events.record import Mode
from tests.reference.contact.bounds import BoundedChain, MotionBounds, largest
from tests.reference.contact.geometry import Geometry
from tests.reference.contact.isolate import GapPoint, first_zero, least_value
from tests.reference.contact.mode_dynamics import Stage, TrialStep
from tests.simulate.contact_cases import plate

G = 9.81
DENSE = 10_000
"""Points of a flight at which the plain twin looks."""


def hinged_bar():
    """Return a balanced bar on a hinge: its angle is linear in time, and any step is exact."""
    b = da.Builder("bar", gravity=(0, 0, 0))
    b.body("bar", mass=1.0, inertia=(0.01, 0.1, 0.1))
    b.joint("turn", "revolute", parent="world", child="bar", axis=(0, -1, 0))
    return b.build()


def deepest(run, points, gap=lambda p: p[:, 1]):
    """Return the least gap of points (x, z) of a plate between samples, looked at 10^4 times in every flight."""
    least = np.inf
    for i in np.flatnonzero(np.diff(run.t) > 0.0):
        s = np.linspace(0.0, run.t[i + 1] - run.t[i], DENSE)
        (x, z, angle), (vx, vz, w), (ax, az, aw) = run.q[i], run.v[i], run.acceleration[i]
        if (run.modes[i] != Mode.OPEN).any() or abs(aw) > 1e-9:
            continue  # not in free flight
        x, z, angle = x + vx * s + ax * s * s / 2, z + vz * s + az * s * s / 2, angle + w * s
        for a, b in points:
            place = np.column_stack(
                [x + a * np.cos(angle) - b * np.sin(angle), z + a * np.sin(angle) + b * np.cos(angle)]
            )
            least = min(least, float(gap(place).min()))
    return least


@pytest.mark.parametrize("w", [5.0, 50.0])
def test_a_turning_bar_strikes_every_time(w):
    """A tip 0.5 m from the hinge over a plane: elastic strikes every 4 pi / 3 radians; all of them, on time."""
    contact = Contact(Sphere("bar", 0.05, (0.5, 0, 0)), Plane(offset=-0.3), restitution=1.0, name="tip")
    run = da.simulate(hinged_bar(), 3.5, [0.0], [w], contacts=[contact], method="hybrid", rtol=1e-9)
    times = [event.time for event in run.events if event.new == "impact"]
    first, apart = 7 * np.pi / 6 / w, 4 * np.pi / 3 / w
    np.testing.assert_allclose(times, np.arange(first, 3.5, apart), atol=1e-11)
    assert (0.5 * np.sin(run.q) > -0.25 - 1e-12).all()


@pytest.mark.parametrize("spin", [3.0, -20.0, 60.0])
@pytest.mark.parametrize("e", [0.0, 0.7])
def test_a_falling_bar_never_turns_through_the_ground(spin, e):
    m = plate("bar", 1.0, 1 / 12)
    ends = [(-0.5, 0.0), (0.5, 0.0)]
    contacts = [Contact(Sphere("bar", 0.0, (a, 0, b)), restitution=e, name=f"{a}") for a, b in ends]
    run = da.simulate(m, 0.8, [0, 1.2, 0.3], [0.5, 0.0, spin], contacts=contacts, method="hybrid", rtol=1e-9)
    assert run.ok, run.message
    assert run.events
    assert deepest(run, ends) > -1e-9
    assert np.abs(run.energy_residual).max() < 1e-7
    assert (np.diff(run.heat) > -1e-9).all()


def test_a_box_and_an_offset_sphere_that_fly_and_turn():
    b = da.Builder("brick")
    b.body("brick", mass=2.0, inertia=(0.02, 0.02, 0.02))
    m = b.build(base="floating")
    q, v = m.neutral(), np.array([0.3, 0, 0, 0, 40.0, 0])
    q[2] = 0.8
    size, ball = np.array([0.6, 0.2, 0.1]), Sphere("brick", 0.05, (0.0, 0.0, 0.4))
    contacts = [Contact(Box("brick", tuple(size)), restitution=0.5, name="brick"), Contact(ball, restitution=0.5)]
    run = da.simulate(m, 0.6, q, v, contacts=contacts, method="hybrid", rtol=1e-9)
    assert run.ok, run.message
    first = next(event for event in run.events if event.new == "impact").time
    s = np.linspace(0.0, 0.6, 200_001)
    height = 0.8 - G * s * s / 2
    turned = 40.0 * s
    lowest = height - 0.3 * np.abs(np.sin(turned)) - 0.05 * np.abs(np.cos(turned))
    lowest = np.minimum(lowest, height + 0.4 * np.cos(turned) - 0.05)
    assert first == pytest.approx(s[np.argmax(lowest < 0.0)], abs=6e-6)
    g = Geometry(m, pairs_of(m, contacts))
    assert min(g.gaps(each).min() for each in run.q) > -1e-9


def test_a_dip_of_the_reaction_inside_a_step_is_seen():
    """An unbalanced wheel on a table: where its mass pulls up, the table lets go, and the wheel lands again."""
    b = da.Builder("hopper")
    b.body("frame", mass=1.0, inertia=(0.1, 0.1, 0.1))
    b.joint("z", "prismatic", parent="world", child="frame", axis=(0, 0, 1))
    b.body("mass", mass=0.2, center=(0.1, 0, 0), inertia=(1e-4, 1e-4, 1e-4))
    b.joint("turn", "revolute", parent="frame", child="mass", axis=(0, -1, 0))
    m = b.build()
    w = 28.0  # at the top 0.2 * 0.1 * (w^2 - 2 g / 0.1) = 11.76 N against a weight of 11.77 N; more before it
    contacts = [Contact(Sphere("frame"))]
    fine, loose = (
        da.simulate(m, 0.5, [0.0, 0.0], [0.0, w], contacts=contacts, method="hybrid", rtol=tol, atol=tol)
        for tol in (1e-10, 1e-4)
    )
    for run in (fine, loose):
        assert run.ok, run.message
        assert run.samples["contact_forces"].reshape(-1, 3)[:, 2].min() > -1e-6
        assert run.q[:, 0].min() > -1e-9
    assert [event.new for event in fine.events].count("open") >= 1
    assert [event.new for event in loose.events] == [event.new for event in fine.events]


def test_spheres_that_pass_each_other_on_two_arms():
    """Two arms turn against each other: their tips meet again and again."""
    b = da.Builder("arms", gravity=(0, 0, 0))
    for name, at in (("left", (-0.45, 0, 0)), ("right", (0.45, 0, 0))):
        b.body(name, mass=1.0, inertia=(0.1, 0.1, 0.1))
        b.joint(f"to {name}", "revolute", parent="world", child=name, axis=(0, 0, 1), position=at)
    m = b.build()
    tips = [Sphere(name, 0.03, (0.5, 0, 0)) for name in ("left", "right")]
    contact = Contact(*tips, restitution=1.0, name="tips")
    q, v = np.array([2.0, 2.5]), np.array([30.0, -22.0])
    s = np.linspace(0.0, 2.0, 400_001)
    angle = q[:, None] + v[:, None] * s
    ends = np.array([[-0.45], [0.45]]) + 0.5 * np.cos(angle), 0.5 * np.sin(angle)
    distance = np.hypot(ends[0][0] - ends[0][1], ends[1][0] - ends[1][1]) - 0.06
    run = da.simulate(m, 2.0, q, v, contacts=[contact], method="hybrid", rtol=1e-9)
    assert run.ok, run.message
    assert run.events[0].time == pytest.approx(s[np.argmax(distance < 0.0)], abs=1e-5)
    assert np.ptp(run.kinetic) < 1e-9


def test_a_point_that_turns_over_a_heightfield():
    x = np.linspace(-1, 1, 21)
    heights = 0.1 * np.sin(7 * x)
    ground = Heightfield(x, [-1.0, 1.0], np.tile(heights[:, None], (1, 2)))
    m = plate("bar", 1.0, 1 / 12)
    ends = [(-0.3, 0.0), (0.3, 0.0)]
    contacts = [Contact(Sphere("bar", 0.0, (a, 0, b)), ground, restitution=0.6, name=f"{a}") for a, b in ends]
    run = da.simulate(m, 0.6, [0, 0.7, 0.3], [0.3, 0.0, 45.0], contacts=contacts, method="hybrid", rtol=1e-9)
    assert run.ok, run.message
    assert deepest(run, ends, lambda p: p[:, 1] - np.interp(p[:, 0], x, heights)) > -1e-9


def test_joint_limits_of_a_fast_slider():
    """A mass on a spring between stops: swings many times a step at loose tolerances, and never beyond."""
    b = da.Builder("slider", gravity=(0, 0, 0))
    b.body("slider", mass=1.0)
    b.joint("x", "prismatic", parent="world", child="slider", axis=(1, 0, 0), stiffness=1e4, limits=(-0.05, 0.2))
    m = b.build()
    run = da.simulate(m, 1.0, [0.1], contacts=[JointLimits(restitution=1.0)], method="hybrid", rtol=1e-4, atol=1e-5)
    assert run.ok, run.message
    strikes = [event.time for event in run.events if event.new == "impact"]
    assert len(strikes) == pytest.approx(1.0 / (2 * 2 * np.pi / 3 / 100), abs=1)
    assert run.q.min() > -0.05 - 1e-9


def random_chain(rng):
    """Return a chain of joints of all kinds with a sphere at its end."""
    b, parent = da.Builder("chain"), "world"
    kinds = ["revolute", "prismatic", "helical", "universal", "spherical", "planar", "free", "fixed"]
    for k, kind in enumerate(rng.permutation(kinds)):
        b.body(f"b{k}", mass=1.0, inertia=(0.1, 0.1, 0.1))
        more = {"pitch": 0.3} if kind == "helical" else {}
        axis, axis2 = np.eye(3)[rng.permutation(3)[:2]]
        more |= {"axis": axis} if kind not in ("spherical", "free", "fixed") else {}
        more |= {"axis2": axis2} if kind == "universal" else {}
        b.joint(f"j{k}", str(kind), parent=parent, child=f"b{k}", position=rng.standard_normal(3), **more)
        parent = f"b{k}"
    return b.build(), Sphere(parent, 0.1, tuple(rng.standard_normal(3)))


@pytest.mark.parametrize("seed", range(8))
def test_bounds_of_shapes_hold_for_every_joint(seed):
    """Speeds and accelerations of the end of random chains of all joints never exceed their bounds."""
    rng = np.random.default_rng(seed)
    m, ball = random_chain(rng)
    chain = BoundedChain(m, ball)
    g = Geometry(m, pairs_of(m, [Contact(ball, Plane())]))
    for _ in range(10):
        q, v, a = m.random(int(rng.integers(1 << 30))), rng.standard_normal(m.nv), rng.standard_normal(m.nv)
        frame = g._moving(q, v)[ball.frame]
        _, J, speed, drift = frame.centre(ball)
        bounds = chain.bounds(q, 0.0, np.abs(v), np.abs(a))
        assert np.linalg.norm(speed) <= bounds[0] * (1 + 1e-12)
        assert np.linalg.norm(J @ a + drift) <= bounds[1] * (1 + 1e-12)


@pytest.mark.parametrize(("g", "zero", "most"), [
    (lambda s: 0.3 - s, 0.3, 4),
    (lambda s: np.cos(3.0 * s), np.pi / 6.0, 12),
    (lambda s: 1e-9 - s**9, 0.1, 60),  # flat
    (lambda s: np.exp(-40.0 * s) - 0.5, np.log(2.0) / 40.0, 30),  # one end is far larger than the other
    (lambda s: 1.0 if s < 0.7 else -1e-12, 0.7, 130),  # a jump
    (lambda s: np.inf if s < 0.2 else 0.6 - s, 0.6, 20),  # a margin without a limit
    (lambda s: 0.0 if s < 1e-15 else 1.0 - 3.0 * s**2, 3.0**-0.5, 20),  # zero by rounding at the start
])  # fmt: skip
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_one_search_locates_every_zero(g, zero, most, sign):
    """Right behind the zero, within the tolerance, in a few trials where the function is smooth."""
    asked = []

    def value(s):
        asked.append(s)
        return float(sign * g(s))

    found = locate_zero(value, sign, 0.0, 1.0, float(sign * g(0.0)), float(sign * g(1.0)), 1e-13)
    assert found == 1.0 or found in asked
    assert sign * value(found) <= 0.0
    assert found == pytest.approx(zero, abs=2e-13)
    assert len(asked) <= most


def test_first_zeros_against_dense_sampling():
    """Random sums of sines with their exact bounds: the first zero is that of 10^5 samples."""
    rng = np.random.default_rng(3)
    found = 0
    for _ in range(200):
        w, a, p = rng.uniform(1, 60, 4), rng.standard_normal(4), rng.uniform(0, 6, 4)
        shift = rng.uniform(0.5, 1.1) * np.abs(a).sum()

        def look(s, w=w, a=a, p=p, shift=shift):
            return GapPoint(s, shift + a @ np.sin(w * s + p), (a * w) @ np.cos(w * s + p))

        if look(0.0).g <= 0.0:
            continue
        L, K = np.abs(a * w).sum(), np.abs(a * w * w).sum()
        s = np.linspace(0, 1, 100_001)
        values = shift + a @ np.sin(np.outer(w, s) + p[:, None])
        for bounds in ((L, K), (L, np.inf), (np.inf, K)):
            got = first_zero(look, look(0.0), look(1.0), *bounds, 1e-13, 1e-9, 100_000)
            assert got.found == bool((values < 0.0).any())
            if got.found:
                found += 1
                assert got.low.s <= s[np.argmax(values < 0.0)]
                assert got.high.s >= s[np.argmax(values < 0.0) - 1]
        piece = sorted(rng.uniform(0, 1, 2))
        inside = (s >= piece[0]) & (s <= piece[1])
        if inside.any():
            assert least_value(look(piece[0]), look(piece[1]), L, K) <= values[inside].min() + 1e-12
    assert found > 50


def test_bounds_of_a_step_come_from_its_stages():
    m = hinged_bar()
    contacts = pairs_of(m, [Contact(Sphere("bar", 0.05, (0.5, 0, 0)), Plane(offset=-2.0))])

    class Moved:
        a = np.array([-3.0])

    shot = TrialStep(
        0.1, np.zeros(1), np.array([2.0]), 0.0, 0.0, 0.0, (Stage(0.0, np.array([-2.0]), Moved(), np.zeros(2)),)
    )  # type: ignore[arg-type]
    speeds, accelerations = largest(shot)
    assert accelerations[0] == pytest.approx(4.5)
    assert speeds[0] == pytest.approx(2.0 + 0.14 * 0.1 * 4.5)
    L, K = MotionBounds(m, contacts).of(type("Here", (), {"q": np.zeros(1)})(), shot)
    assert L[0] == pytest.approx(0.5 * speeds[0])
    assert K[0] == pytest.approx(0.5 * (accelerations[0] + speeds[0] ** 2))
