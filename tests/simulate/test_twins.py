"""The compiled contact engine beside its plain twin (`tests/reference/dry`) on random systems with dry friction."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

import dalembert as da
from dalembert.friction import Bounded, Dry, Hyperbolic, StaticKinetic, Stribeck
from dalembert.model import Matrices
from tests.reference.dry.simulate import simulate as simulate_dry

TIGHT = {"rtol": 1e-10, "atol": 1e-12}


def law_of(rng):
    """Return a random law."""
    limit = rng.uniform(0.3, 3.0)
    several = (
        Dry(limit),
        StaticKinetic(limit, 0.6 * limit),
        Hyperbolic(limit, 2.0),
        Stribeck(limit, 0.6 * limit, 0.2, viscous=0.05),
    )
    return several[rng.integers(4)]


def random_system(seed):
    """Return one to three masses on springs, pushed periodically, with up to four contacts, as Lagrangian and matrices.

    Directions are rows of -1, 0, 1, so that some depend on each other; the first may be a plane, surfaces may move.
    """
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(1, 4)), int(rng.integers(1, 5))
    masses, B = rng.uniform(0.5, 3.0, n), rng.normal(size=(n, n))
    K, damping = 8 * (B @ B.T) / n + 4 * np.eye(n), rng.uniform(0, 0.2)
    push, frequency = rng.uniform(0, 6, n), rng.uniform(1, 5)
    contacts, plane = [], rng.random() < 0.3
    for i in range(k):
        if plane and n >= 2 and i == 0:
            rows = np.eye(n)[:2].tolist()
            contacts.append(Bounded("c0", rows, law_of(rng), surface=[0.1, 0.0] if rng.random() < 0.5 else 0.0))
            continue
        row = np.zeros(n)
        while not row.any():
            row = rng.integers(-1, 2, n).astype(float)
        contacts.append(Bounded(f"c{i}", row, law_of(rng), surface=float(rng.choice([0.0, 0.0, 0.2, -0.3]))))
    q, v, t = ca.SX.sym("q", n), ca.SX.sym("v", n), ca.SX.sym("t")

    def rubs(one):
        speeds = [ca.dot(ca.DM(row), v) for row in np.atleast_2d(one.along)]
        return Bounded(one.name, speeds[0] if len(speeds) == 1 else speeds, one.law, surface=one.surface)

    lagrangian = da.Lagrangian(
        q, v, ca.dot(ca.DM(masses), v**2) / 2, ca.bilin(ca.DM(K), q, q) / 2,
        forces=ca.DM(push) * ca.sin(frequency * t) - damping * v, friction=[rubs(one) for one in contacts], time=t,
    )  # fmt: skip
    by_hand = Matrices(
        np.diag(masses), force=lambda q, v, t: push * np.sin(frequency * t) - damping * v - K @ q, friction=contacts
    )
    return lagrangian, by_hand, (rng.uniform(-0.5, 0.5, n), rng.choice([0.0, 0.2, 0.5, -0.3], n))


def moved(run):
    """Return events as (contact, before, after), and their times."""
    return [(e.contact, e.old, e.new) for e in run.events], np.array([e.time for e in run.events])


@pytest.mark.parametrize("seed", [0, 4, 5, 9, 13, 14, 15, 17, 18, 19, 21, 22])
def test_events_of_random_systems_by_both_engines(seed):
    system, _, start = random_system(seed)
    run, plain = da.simulate(system, 3.0, *start, **TIGHT), simulate_dry(system, 3.0, *start, **TIGHT)
    assert run.ok, run
    assert plain.ok, plain
    (words, times), (other, others) = moved(run), moved(plain)
    assert words == other
    assert len(words) >= 6
    np.testing.assert_allclose(times, others, rtol=0, atol=1e-9)
    np.testing.assert_allclose(run.q[-1], plain.q[-1], rtol=0, atol=1e-9)
    assert np.abs(run.energy_residual).max() <= 1e-8
    np.testing.assert_allclose(run.heat[-1], plain.heat[-1], rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("seed", [0, 9, 15])
def test_matrices_called_back_have_the_events_of_the_lagrangian(seed):
    """Of 15, a contact that had just let go was found at rest 5e-14 s later, and let go anew: 18 events for 16."""
    system, by_hand, start = random_system(seed)
    pair = [da.simulate(each, 3.0, *start, rtol=1e-11, atol=1e-13) for each in (system, by_hand)]
    (words, times), (other, others) = map(moved, pair)
    assert words == other
    assert words == moved(simulate_dry(system, 3.0, *start, rtol=1e-11, atol=1e-13))[0]
    # an event ends a segment, and each adds the error of its steps, which is held to the tolerance
    np.testing.assert_allclose(times, others, rtol=0, atol=len(times) * 1e-11)


@pytest.mark.parametrize("seed", [0, 9, 15])
def test_matrices_called_back_have_these_events_at_the_tolerance_of_the_others(seed):
    """Of 15, the error estimate of dop853 passes through zero in one step: 0.98 tolerances at 0.0825 s, 25 at 0.075 s,
    for a true error of 700; so times are held to 100 tolerances here."""
    system, by_hand, start = random_system(seed)
    (words, times), (other, others) = (moved(da.simulate(each, 3.0, *start, **TIGHT)) for each in (system, by_hand))
    assert words == other
    np.testing.assert_allclose(times, others, rtol=0, atol=100 * TIGHT["rtol"])


@pytest.mark.parametrize("seed", [23, 27, 47])
def test_contacts_that_arrive_together_stop_at_once(seed):
    """Contacts along one row with one surface stop together; the twin lets one slip on at zero velocity, or turns it
    first and stops it at the same instant: other words, the same motion."""
    system, _, start = random_system(seed)
    run, plain = da.simulate(system, 3.0, *start, **TIGHT), simulate_dry(system, 3.0, *start, **TIGHT)
    assert run.ok, run
    assert len(run.events) < len(plain.events)
    instants, others = moved(run)[1], moved(plain)[1]
    assert np.abs(instants[:, None] - others).min(axis=1).max() <= 1e-8
    np.testing.assert_allclose(run.q[-1], plain.q[-1], rtol=0, atol=1e-9)
    assert np.abs(run.energy_residual).max() <= 1e-8


def test_a_pair_of_zeros_that_the_twin_misses_is_found():
    """With short steps the twin sees both zeros, and agrees."""
    system, _, start = random_system(7)
    run = da.simulate(system, 3.0, *start, **TIGHT)
    fine = simulate_dry(system, 3.0, *start, max_step=0.004, **TIGHT)
    assert run.ok, run
    assert moved(run)[0] == moved(fine)[0]
    np.testing.assert_allclose(moved(run)[1], moved(fine)[1], rtol=0, atol=1e-8)
    np.testing.assert_allclose(run.q[-1], fine.q[-1], rtol=0, atol=1e-8)
    assert np.abs(run.energy_residual).max() <= 1e-8
