"""Heightfields: distances to a surface of bilinear cells, walls, cracks, risers and ridges."""

from __future__ import annotations

import numpy as np
import pytest

import dalembert as da
from dalembert.simulate.contact import Box, Contact, Heightfield, Sphere
from dalembert.simulate.contact.shapes import pairs_of
from dalembert.simulate.contact.surface_loops import REACH, SLOTS
from dalembert.simulate.steppers.moreau import Moreau
from tests.reference.contact.geometry import Geometry

G = 9.81


def along_x(x, heights):
    """Return a heightfield that does not change along y."""
    return Heightfield(x, [-2.0, 2.0], np.tile(np.array(heights)[:, None], (1, 2)))


def ball(radius=0.1, mass=1.0):
    b = da.Builder("ball")
    b.body("ball", mass=mass, inertia=(0.4 * mass * radius**2,) * 3)
    return b.build(base="floating")


def point():
    b = da.Builder("point")
    b.body("cart")
    b.joint("x", "prismatic", parent="world", child="cart", axis=(1, 0, 0))
    b.body("point", mass=1.0, inertia=(0.1, 0.1, 0.1))
    b.joint("z", "prismatic", parent="cart", child="point", axis=(0, 0, 1))
    return b.build()


WALL = along_x([-3.0, 1.0, 1.001, 4.0], [0.0, 0.0, 1.0, 1.0])
"""A floor, a riser of 1 m within 1 mm at x = 1, and a floor above it."""


def sampled_distance(field, c, reach, count=301):
    """Return the distance of a surface from c by sampling it, at most `reach`."""
    x, y = np.meshgrid(*(np.linspace(e - reach, e + reach, count) for e in c[:2]), indexing="ij")
    i = np.clip(np.searchsorted(field.x, x, side="right") - 1, 0, field.x.size - 2)
    j = np.clip(np.searchsorted(field.y, y, side="right") - 1, 0, field.y.size - 2)
    u = np.clip((x - field.x[i]) / np.diff(field.x)[i], 0, 1)
    w = np.clip((y - field.y[j]) / np.diff(field.y)[j], 0, 1)
    z = (1 - u) * ((1 - w) * field.z[i, j] + w * field.z[i, j + 1])
    z += u * ((1 - w) * field.z[i + 1, j] + w * field.z[i + 1, j + 1])
    return min(reach, float(np.sqrt(((x - c[0]) ** 2 + (y - c[1]) ** 2 + (z - c[2]) ** 2).min())))


def test_distances_are_those_of_a_sampled_surface():
    rng = np.random.default_rng(0)
    for _ in range(150):
        n = rng.integers(2, 6, 2)
        x, y = (np.cumsum(rng.uniform(0.05, 0.5, k)) for k in n)
        steep = rng.choice([0.1, 1.0, 3.0])
        field = Heightfield(x, y, rng.uniform(-0.5, 0.5, n) * steep)
        r = rng.uniform(0.1, 0.4)
        c = np.array([rng.uniform(x[0] - 0.5, x[-1] + 0.5), rng.uniform(y[0] - 0.5, y[-1] + 0.5), 0.0])
        c[2] = field.at(c)[0] + rng.uniform(-0.7, 1.4) * r
        distance, normals, places = field.nearest(c, r)
        sampled = sampled_distance(field, c, REACH * r)
        assert abs(distance[0]) <= sampled + 1e-9
        slope = field.steepness(0.0)
        assert abs(distance[0]) >= sampled - slope * REACH * r / 150
        assert np.sign(distance[0]) == np.sign(c[2] - field.at(c)[0])
        for d, normal, place in zip(distance, normals, places, strict=True):
            if normal.any():
                assert field.at(place)[0] == pytest.approx(place[2], abs=1e-9)
                np.testing.assert_allclose(place + d * normal, c, atol=1e-9)


def test_a_sphere_beside_a_wall_touches_twice_and_on_a_floor_of_cells_once():
    distance, normals, _ = WALL.nearest(np.array([0.9, 0.3, 0.1]), 0.1)
    np.testing.assert_allclose(normals[:2], [[0, 0, 1], [-1, 0, 1e-3]], atol=1e-6)
    np.testing.assert_allclose(distance[:2], [0.1, 0.1001], atol=1e-5)
    assert not normals[2].any()
    x = np.linspace(-1, 1, 41)
    floor = Heightfield(x, x, np.zeros((41, 41)))
    for c in ([0.0, 0.0, 0.1], [0.021, 0.05, 0.1], [1.3, -0.7, 0.11], [1.0, 1.0, 0.09]):
        distance, normals, _ = floor.nearest(np.array(c), 0.1)
        assert distance[0] == pytest.approx(c[2], abs=1e-12)
        assert not normals[1:].any()


def test_compiled_and_plain_pairs_agree(monkeypatch):
    m = ball()
    rng = np.random.default_rng(1)
    x = np.linspace(-0.5, 0.5, 6)
    field = Heightfield(x, x, 0.2 * rng.standard_normal((6, 6)))
    contacts = [Contact(Sphere("ball", 0.1), field), Contact(Box("ball", (0.2, 0.1, 0.1)), field, name="box")]
    g = Geometry(m, pairs_of(m, contacts, SLOTS))
    assert len(g.pairs) == SLOTS * 9
    made, init = [], Moreau.__init__
    monkeypatch.setattr(Moreau, "__init__", lambda self, session: (init(self, session), made.append(self))[0])
    high = m.neutral()
    high[2] = 5.0
    da.simulate(m, 1e-3, high, contacts=contacts, method="moreau")
    (stepper,) = made
    for seed in range(20):
        q = m.random(seed)
        q[:2], q[2] = 0.3 * q[:2], 0.1 + 0.1 * rng.random()
        plain, w = g.state(q, np.zeros(6)), stepper.memory.work
        w.q[:], w.v[:] = q, 0.0
        np.testing.assert_allclose(stepper._start_gaps(), plain.gaps, atol=1e-12)
        np.testing.assert_allclose(w.W, plain.W, atol=1e-9)


@pytest.mark.parametrize("e", [0.0, 0.5])
def test_a_rolling_sphere_stops_at_a_wall(e):
    m = ball()
    q, v = m.neutral(), np.array([3.0, 0, 0, 0, 30.0, 0])
    q[2] = 0.1
    contact = Contact(Sphere("ball", 0.1), WALL, friction=0.3, restitution=e, name="ball")
    run = da.simulate(m, 1.5, q, v, contacts=[contact], rtol=1e-9)
    assert run.method == "moreau"
    assert run.ok, run.message
    assert run.q[:, 0].max() < 0.901
    assert run.q[:, 2].min() > 0.0999
    assert run.energy.total[-1] < run.energy.total[0]
    assert np.abs(run.energy_residual).max() < 0.02 * run.kinetic[0]
    hybrid = da.simulate(m, 1.5, q, v, contacts=[contact], method="hybrid", rtol=1e-9)
    assert hybrid.status == "no solution"
    assert "'ball' comes to an edge" in hybrid.message
    assert hybrid.q[-1, 0] == pytest.approx(0.9, abs=2e-3)  # kept up to the wall, and not beyond


@pytest.mark.parametrize("e", [0.0, 1.0])
@pytest.mark.parametrize("height", [0.0, 0.5])
@pytest.mark.parametrize("method", ["hybrid", "moreau"])
def test_a_point_before_a_steep_riser_does_not_climb_it(method, height, e):
    """Flying, or sliding on the floor, at 2 m/s against a riser: thrown back or stopped, and no energy from nowhere."""
    contact = Contact(Sphere("point"), WALL, restitution=e, name="point")
    run = da.simulate(point(), 0.55, [0.0, height], [2.0, 0.0], contacts=[contact], method=method, rtol=1e-9)
    assert run.ok, run.message
    first = run.t < 0.31  # before it meets floor or riser
    np.testing.assert_allclose(run.q[first, 0], 2.0 * run.t[first], atol=1e-6)
    assert run.q[:, 0].max() < 1.002
    assert run.energy.total.max() < run.energy.total[0] + 2e-3
    late = G * 3.2 * 1e-3  # a step of 1 ms lands at up to 3.2 m/s anywhere in its way: weight times that
    assert np.abs(run.energy_residual).max() < (1e-6 if method == "hybrid" else late)
    assert run.v[-1, 0] == pytest.approx(-2.0 * e, abs=5e-3)  # thrown back, or stopped
    assert run.q[-1, 0] == pytest.approx(1.0 - 0.1 * e, abs=5e-3)


@pytest.mark.parametrize("method", ["hybrid", "moreau"])
def test_a_point_that_stops_right_before_an_edge_does_not_miss_it(method):
    """A step that ends within rounding of a riser: what follows is an impact, and no part of a smooth step."""
    for before in (0.0, 1e-15, 5e-13, 2e-12, 1e-9):
        contact = Contact(Sphere("point"), WALL, restitution=0.5, name="point")
        run = da.simulate(point(), 0.01, [1.0 - before, 0.0], [2.0, 0.0], contacts=[contact], method=method, rtol=1e-9)
        assert run.ok, run.message
        assert run.v[-1, 0] == pytest.approx(-1.0, abs=5e-3)
        assert np.abs(run.energy_residual).max() < (1e-6 if method == "hybrid" else 2e-3)
        if method == "hybrid":
            assert [event.new for event in run.events if event.new == "impact"]


def test_a_start_above_a_crack_is_taken():
    """A sphere over a crack that is narrower than itself rests on both rims."""
    crack = along_x([-1.0, -0.02, 0.0, 0.02, 1.0], [0.0, 0.0, -0.5, 0.0, 0.0])
    m = ball()
    q = m.neutral()
    q[2] = 0.12
    for method in ("hybrid", "moreau"):
        run = da.simulate(
            m, 0.4, q, contacts=[Contact(Sphere("ball", 0.1), crack, name="ball")], method=method, rtol=1e-9
        )
        if method == "moreau":
            assert run.ok, run.message
            assert run.q[-1, 2] == pytest.approx(np.sqrt(0.1**2 - 0.02**2), abs=1e-6)
        assert run.q[:, 2].min() > 0.0979


def test_a_ridge_in_a_box_is_named():
    """A plate of 1 m falls across a ridge of 0.4 m: its corners touch nothing, and the run says so."""
    ridge = along_x([-2.0, -0.1, 0.0, 0.1, 2.0], [0.0, 0.0, 0.4, 0.0, 0.0])
    b = da.Builder("plate")
    b.body("plate", mass=1.0, inertia=(0.1, 0.1, 0.1))
    m = b.build(base="floating")
    q = m.neutral()
    q[2] = 0.6
    contact = Contact(Box("plate", (1.0, 0.5, 0.1)), ridge, friction=0.5, name="plate")
    for method in ("moreau", "hybrid"):
        run = da.simulate(m, 0.6, q, contacts=[contact], method=method, rtol=1e-9)
        assert run.q[:, 2].min() < 0.3
        assert run.status == "inaccurate"
        assert "inside the box of contact 'plate'" in run.message
    run = da.simulate(m, 0.15, q, contacts=[contact], method="moreau")
    assert run.ok, run.message
