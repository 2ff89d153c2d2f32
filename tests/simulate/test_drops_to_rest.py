"""Bodies on several points come to rest: impacts, slips and sticks that pile up over several contacts end together."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import dalembert as da

GRAVITY = 9.81


@cache
def body(inertia):
    """Return a free body of 1 kg."""
    b = da.Builder("body", gravity=(0, 0, -GRAVITY))
    b.body("body", mass=1.0, inertia=inertia)
    b.joint("float", "free", parent="world", child="body")
    return b.build()


def dropped(seed, points, inertia, friction, restitution, impact="newton"):
    """Return the run of a body on points, dropped from 1 m at a random tilt."""
    rng = np.random.default_rng(seed)
    axis, angle = rng.normal(size=3), rng.uniform(0.0, np.pi)
    q = np.array([0, 0, 1.0, *(axis / np.linalg.norm(axis) * np.sin(angle / 2)), np.cos(angle / 2)])
    contacts = [
        da.Contact(da.Sphere("body", 0.0, at), da.Plane(), friction, restitution, impact, f"foot {k}")
        for k, at in enumerate(points)
    ]
    return da.simulate(body(inertia), 2.0, q, contacts=contacts, method="hybrid")


STICK = ((-0.5, 0, 0), (0.5, 0, 0)), (0.01, 0.09, 0.09)
TRIPOD = ((0.3, 0.02, -0.22), (-0.07, 0.29, -0.37), (-0.12, -0.27, -0.32)), (0.028, 0.034, 0.037)


def rests(run):
    """Check that a run ends at rest, with its energy in heat; its impulses balance the momentum."""
    assert run.ok, run.message
    balance = run.energy.total + run.heat
    np.testing.assert_allclose(balance, balance[0], atol=1e-7 * run.energy.total[0])
    assert np.diff(run.energy.total).max() < 1e-7
    assert np.abs(run.v[-1]).max() < 1e-6
    assert all(impact.momentum <= 1e-8 and impact.laws_ok for impact in run.impacts)


@pytest.mark.parametrize("seed", range(8))
def test_a_stick_comes_to_rest_on_its_two_ends(seed):
    """Its ends struck in turn without end, at 1e-9 m/s."""
    run = dropped(seed, *STICK, friction=0.4, restitution=0.1)
    rests(run)
    assert run.forces[-1, 2] + run.forces[-1, 5] == pytest.approx(GRAVITY, rel=1e-9)
    assert len(run.events) < 60


@pytest.mark.parametrize(("seed", "restitution"), [(k, e) for k in range(6) for e in (0.0, 0.1)])
def test_a_tripod_comes_to_rest_on_its_three_feet(seed, restitution):
    """Feet that stuck and slipped in turn while others struck ended runs at changes of mode without end."""
    run = dropped(seed, *TRIPOD, friction=0.8, restitution=restitution)
    assert run.ok, run.message
    balance = run.energy.total + run.heat
    np.testing.assert_allclose(balance, balance[0], atol=1e-7 * run.energy.total[0])
