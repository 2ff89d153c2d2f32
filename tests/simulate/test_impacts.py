"""Certificates of impacts: momentum, laws and energy of every instant, against the samples around it."""

from __future__ import annotations

from itertools import pairwise

import casadi as ca
import numpy as np
import pytest

import dalembert as da
from dalembert.friction import ExpressionLaw
from dalembert.simulate.contact import Contact, Sphere
from dalembert.simulate.contact.shapes import pairs_of
from dalembert.simulate.events.record import ImpactRecord
from tests.reference.contact.geometry import Geometry
from tests.simulate.contact_cases import brick, cradle, impacting_stick, rocking_block, tennis_ball, vertical_ball
from tests.simulate.toys import hopper


def around(run, impact):
    """Return the samples right before and right after an impact."""
    rows = np.flatnonzero(run.t == impact.time)
    return next((a, b) for a, b in pairwise(rows) if run.samples["impact"][b].any())


def rocking():
    """Return the rocking block with a start at rest."""
    m, q, contacts = rocking_block()
    return m, q, None, contacts


@pytest.mark.parametrize(("start", "duration"), [(impacting_stick, 1.0), (tennis_ball, 2.0), (rocking, 0.4)])
def test_J13_impact_momentum_and_energy_of_every_instant(start, duration):
    """The impulses of the record explain the jump of the samples, by terms that nobody of the engine computed.

    Newton's restitution with friction makes energy in the stick's impacts, and its certificates say so.
    """
    m, q, v, contacts = start()
    run = da.simulate(m, duration, q, v, contacts=contacts, method="hybrid", rtol=1e-9)
    assert len(run.impacts) == len({e.time for e in run.events if e.new == "impact"}) > 1
    assert all(impact.ok for impact in run.impacts) == (start is not impacting_stick)
    g = Geometry(m, pairs_of(m, contacts))
    for impact in run.impacts:
        assert impact.momentum_ok, impact
        assert impact.laws_ok, impact
        assert impact.energy_ok == (impact.heat > -1e-12), impact
        a, b = around(run, impact)
        x = g.state(run.q[a], run.v[a], impact.time)
        P = np.zeros(3 * len(contacts))
        for i, who in enumerate(run.contacts):
            P[3 * i : 3 * i + 3] = x.axes[i] @ impact.impulses.get(who, np.zeros(3))
            assert np.linalg.norm(P[3 * i + 1 : 3 * i + 3]) <= contacts[i].friction * P[3 * i] * (1 + 1e-9) + 1e-12
        np.testing.assert_allclose(x.M @ (run.v[b] - run.v[a]), x.W.T @ P, atol=1e-9)
        kinetic = [0.5 * u @ x.M @ u for u in (run.v[a], run.v[b])]
        np.testing.assert_allclose([impact.energy_before, impact.energy_after], kinetic, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(impact.heat, kinetic[0] - kinetic[1], atol=1e-9)


def test_redundant_impulses_are_named_so():
    m, contact = brick()
    q, v = m.neutral(), np.array([0, 0, -1.0, 0, 0, 0])
    q[2] = 0.04
    run = da.simulate(m, 0.1, q, v, contacts=[contact], method="hybrid", rtol=1e-9)
    assert run.impacts[0].status == da.Status.REDUNDANT
    assert run.impacts[0].ok
    total = sum(run.impacts[0].impulses.values())
    speed = np.sqrt(1.0 + 2 * 9.81 * 0.01)
    np.testing.assert_allclose(total, [0, 0, 2.0 * speed], atol=1e-9)
    run = da.simulate(vertical_ball(), 1.0, [0.5], contacts=[Contact(Sphere("ball"), restitution=0.5)], rtol=1e-9)
    assert {impact.status for impact in run.impacts} == {da.Status.UNIQUE}


def test_infinitely_many_impacts_are_completed_by_one_that_says_so():
    run = da.simulate(vertical_ball(), 2.0, [0.5], contacts=[Contact(Sphere("ball"), restitution=0.5)], rtol=1e-9)
    assert run.ok
    assert [impact.completes for impact in run.impacts] == [False] * (len(run.impacts) - 1) + [True]
    assert all(impact.ok for impact in run.impacts)


def test_massless_feet_land_without_impulse_and_an_impact_one_after_the_other_keeps_the_balance():
    m, spring, contacts = hopper()
    run = da.simulate(m, 1.0, [0.8, 0.5], contacts=contacts, force=spring, method="hybrid", rtol=1e-9)
    assert [impact.impulses for impact in run.impacts] == [{}, {}]
    assert all(impact.ok and abs(impact.heat) < 1e-12 for impact in run.impacts)
    m, q, contacts = cradle(5)
    q = q - [0.1, 0, 0, 0, 0]
    run = da.simulate(m, 1.0, q, [1.0, 0, 0, 0, 0], contacts=contacts, method="hybrid", impacts="sequential", rtol=1e-9)
    (impact,) = run.impacts
    assert impact.ok
    np.testing.assert_allclose([part[0] for part in impact.impulses.values()], 0.1, atol=1e-9)


def test_an_impact_that_gains_energy_or_misses_its_balance_is_not_certified():
    def record(**changes):
        numbers = {"momentum": 1e-15, "laws": 1e-15, "energy_before": 1.0, "energy_after": 0.5, "heat": 0.5}
        return ImpactRecord(0.0, {}, **numbers | changes, status=da.Status.UNIQUE)

    assert record().ok
    assert not record(momentum=1e-6).momentum_ok
    assert not record(laws=1e-6).laws_ok
    assert not record(heat=-1e-6).energy_ok
    assert "not certified" in str(record(heat=-1e-6))


def test_certificates_are_stored(tmp_path):
    options = {"contacts": [Contact(Sphere("ball"), restitution=0.5)], "rtol": 1e-9, "file": tmp_path / "run.h5"}
    run = da.simulate(vertical_ball(), 1.0, [0.5], **options)
    loaded = da.Trajectory.load(tmp_path / "run.h5")
    assert [str(each) for each in loaded.impacts] == [str(each) for each in run.impacts]
    assert loaded.impacts[0].impulses["ball-ground"][2] == run.impacts[0].impulses["ball-ground"][2] > 0.0


@pytest.mark.parametrize("impact", ["newton", "poisson"])
@pytest.mark.parametrize("law", [0.2, "expression"])
def test_laws_of_friction_act_in_impacts_of_both_kinds(law, impact):
    """A point mass at (0, 1) m strikes a floor askew: friction takes mu (1 + e) of the normal speed from its slip."""
    q, v, s = ca.SX.sym("q", 2), ca.SX.sym("v", 2), ca.SX.sym("s")
    mu = 0.2 if law == 0.2 else ExpressionLaw(s, 0.2 + 0.0 * s, 0.2)
    floor = da.Unilateral("floor", v[0], mu, gap=q[1], restitution=0.5, impact=impact)
    L = da.Lagrangian(q, v, kinetic=ca.dot(v, v) / 2, potential=9.81 * q[1], unilateral=[floor])
    run = da.simulate(L, 0.6, [0.0, 1.0], [3.0, 0.0])
    fall = np.sqrt(2 * 9.81)
    np.testing.assert_allclose(run.v[-1, 0], 3.0 - 0.2 * 1.5 * fall, rtol=1e-8)
