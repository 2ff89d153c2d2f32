"""Massless legs and the woodpecker toy: against closed forms and against independent integration of every phase."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import dalembert as da
from dalembert.simulate.contact import Contact
from dalembert.simulate.events.record import Mode
from tests.simulate.toys import MU, hopper, runner, woodpecker, woodpecker_equations

FINE = {"method": "hybrid", "rtol": 1e-11, "atol": 1e-12}


def times(run, old, new):
    """Return the times of one kind of event."""
    return np.array([e.time for e in run.events if (e.old, e.new) == (old, new)])


def test_J13_a_massless_leg_lands_without_loss_and_lifts_off_where_its_force_ends():
    m, spring, contacts = hopper()
    run = da.simulate(m, 2.0, [0.8, 0.5], contacts=contacts, force=spring, **FINE)
    fall, w, speed = np.sqrt(2 * 0.3 / 9.81), np.sqrt(800.0 / 2.0), np.sqrt(2 * 9.81 * 0.3)
    stance = 2 * (np.pi - np.arctan2(speed / w, 9.81 / w**2)) / w
    period = stance + 2 * speed / 9.81
    np.testing.assert_allclose(times(run, "open", "impact"), fall + period * np.arange(3), atol=1e-11)
    np.testing.assert_allclose(times(run, "closed", "open"), fall + stance + period * np.arange(3), atol=1e-11)
    assert abs(run.heat[-1]) < 1e-13
    assert np.abs(run.energy_residual).max() < 1e-9
    flight = run.modes[:, 0] == Mode.OPEN
    assert np.abs(run.v[flight, 1]).max() == 0.0
    assert (run.samples["contact_status"][flight] == da.Status.HELD).all()
    np.testing.assert_allclose(run.reactions["foot"][~flight, 2], 800 * (0.5 - run.q[~flight, 1]), atol=1e-7)
    before, after = (run.v[np.flatnonzero(run.t == times(run, "open", "impact")[0])[i]] for i in (0, -1))
    np.testing.assert_allclose(after, [before[0], before[0]], rtol=1e-14)


def test_a_runner_on_a_massless_leg_against_the_spring_mass_model_in_two_coordinates():
    stiffness, lean = 20000.0, 0.25
    m, spring, contacts = runner(stiffness)
    run = da.simulate(m, 0.4, [0, np.cos(lean) + 0.05, -lean, 1.0], [3.0, 0, 0, 0], contacts=contacts, force=spring,
                      **FINE)  # fmt: skip
    landed, left = times(run, "open", "impact")[0], times(run, "closed", "open")[0]
    assert landed == pytest.approx(np.sqrt(2 * 0.05 / 9.81), abs=1e-11)
    start = np.array([3.0 * landed, np.cos(lean), 3.0, -9.81 * landed])
    foot = start[0] + np.sin(lean)

    def stance(t, y):
        leg = np.hypot(y[0] - foot, y[1])
        force = stiffness * (1.0 - leg) / leg / 80.0
        return [y[2], y[3], force * (y[0] - foot), force * y[1] - 9.81]

    def full(t, y):
        return np.hypot(y[0] - foot, y[1]) - 1.0 if t > 1e-3 else -1.0

    full.terminal, full.direction = True, 1
    exact = solve_ivp(stance, (0, 1), start, method="DOP853", rtol=1e-12, atol=1e-13, events=full)
    assert left - landed == pytest.approx(exact.t_events[0][0], abs=1e-9)
    at = np.flatnonzero(run.t == left)[-1]
    np.testing.assert_allclose([*run.q[at, :2], *run.v[at, :2]], exact.y_events[0][0], atol=1e-8)


def test_massless_legs_that_cannot_stand_are_named():
    m, spring, contacts = runner()
    start = [0, np.cos(0.9) + 0.01, -0.9, 1.0]
    run = da.simulate(m, 0.3, start, [1.0, 0, 0, 0], contacts=contacts, force=spring, **FINE)
    assert run.status == "no solution"
    assert "massless limb" in run.message
    assert "'foot'" in run.message
    chosen = da.simulate(m, 0.01, start, contacts=contacts, force=spring, step=1e-3)
    assert chosen.method == "hybrid"
    assert "massless limbs" in chosen.reason
    with pytest.raises(da.UnsupportedError, match="massless"):
        da.simulate(m, 0.3, start, contacts=contacts, force=spring, method="moreau")
    m, _, contacts = hopper()
    run = da.simulate(m, 0.5, [0.6, 0.5], contacts=contacts, force=[0.0, -5.0], **FINE)
    assert run.status == "no solution"
    assert "off the ground" in run.message


def phases(run):
    """Return (first, last, closed, sliding) of the stretches between events, and (before, after) of impacts."""
    jumps = [
        i for i in range(run.t.size - 1) if run.t[i] == run.t[i + 1] and not np.array_equal(run.v[i], run.v[i + 1])
    ]
    marks = sorted({0, run.t.size - 1, *jumps, *(i + 1 for i in jumps),
                    *(i for i in range(1, run.t.size) if (run.modes[i] != run.modes[i - 1]).any())})  # fmt: skip
    stretches = [(a, b) for a, b in pairwise(marks) if run.t[b] > run.t[a]]
    return stretches, [(i, i + 1) for i in jumps]


def test_woodpecker_every_phase_and_impact_against_lagranges_equations():
    m, q, law, contacts = woodpecker()
    run = da.simulate(m, 0.3, q, contacts=contacts, force=law, method="hybrid", rtol=1e-10, atol=1e-12)
    assert run.ok
    toy = woodpecker_equations()
    kinds = {(e.contact, e.new) for e in run.events}
    assert kinds >= {("lower edge", "slip"), ("lower edge", "stick"), ("beak", "impact"), ("upper edge", "impact")}
    stretches, impacts = phases(run)
    assert len(stretches) >= 8
    for a, b in stretches:
        mode = run.modes[a]

        def rate(t, y, mode=mode):
            M, f, _, W, drift, _, _ = (np.asarray(each) for each in toy(y[:3], y[3:]))
            rows, columns = [], []
            for k in range(3):
                if mode[k] != Mode.OPEN:
                    rows.append(2 * k)
                    slip = np.sign(float(W[2 * k + 1] @ y[3:])) if mode[k] == Mode.SLIP else 0.0
                    columns.append(W[2 * k] - MU * slip * W[2 * k + 1])
                if mode[k] == Mode.STICK:
                    rows.append(2 * k + 1)
                    columns.append(W[2 * k + 1])
            size = 3 + len(rows)
            K, right = np.zeros((size, size)), np.zeros(size)
            K[:3, :3], right[:3] = M, f.ravel()
            for i, (row, column) in enumerate(zip(rows, columns, strict=True)):
                K[:3, 3 + i], K[3 + i, :3], right[3 + i] = -column, W[row], -drift[row, 0]
            return np.concatenate([y[3:], np.linalg.solve(K, right)[:3]])

        start = np.concatenate([run.q[a], run.v[a]])
        if mode.min() == Mode.SLIP:  # sliding that begins from rest has no direction yet
            start[3:] += 1e-12 * run.acceleration[a]
        end = solve_ivp(rate, (run.t[a], run.t[b]), start, method="DOP853", rtol=1e-11, atol=1e-13).y[:, -1]
        np.testing.assert_allclose(end, np.concatenate([run.q[b], run.v[b]]), atol=2e-7)
    for a, b in impacts:
        M, _, gaps, W, _, _, _ = (np.asarray(each) for each in toy(run.q[a], run.v[a]))
        touching = [k for k in range(3) if abs(gaps[k, 0]) < 1e-9]
        rows = np.array([2 * k + j for k in touching for j in range(2)])
        P = np.linalg.lstsq(W[rows].T, M @ (run.v[b] - run.v[a]), rcond=None)[0]
        np.testing.assert_allclose(W[rows].T @ P, M @ (run.v[b] - run.v[a]), atol=1e-12)
        for j, k in enumerate(touching if len(touching) == 1 else ()):  # with more, impulses are not unique
            normal, friction = P[2 * j], P[2 * j + 1]
            before, after, slip = W[2 * k] @ run.v[a], W[2 * k] @ run.v[b], W[2 * k + 1] @ run.v[b]
            assert normal > -1e-14
            assert abs(friction) <= MU * normal + 1e-13
            assert after == pytest.approx(-(0.5 if k == 0 else 0.0) * before, abs=1e-9)
            assert abs(slip) < 1e-9 or friction == pytest.approx(-np.sign(slip) * MU * normal, rel=1e-6)
    assert np.abs(run.energy_residual).max() < 1e-10 * np.abs(run.energy.total).max() + 1e-11
    assert run.heat[-1] > 0.0


def test_plastic_impacts_go_through_kkt_with_the_contacts_that_stay():
    from dalembert.simulate.contact.complementarity import Limbs
    from dalembert.simulate.contact.shapes import pairs_of
    from tests.reference.contact.geometry import Geometry
    from tests.reference.contact.impacts import Collision
    from tests.simulate.contact_cases import brick

    m, contact = brick()
    q = m.neutral()
    q[2] = 0.03
    v = np.array([0, 0, -1.0, 0, 0.1, 0])
    for friction, restitution in ((0.6, 0.0), (0.0, 0.0), (0.0, 0.5)):
        pairs = pairs_of(m, [Contact(contact.shape, friction=friction, restitution=restitution, name="brick")])
        g = Geometry(m, pairs)
        x = g.state(q, v)
        collision = Collision(g, "simultaneous", Limbs(x.M))
        after, impulses = collision.resolve(x, v, x.gaps < 1e-9, np.zeros(8, bool))
        (certificate,) = collision.certificates
        assert certificate.status == da.Status.REDUNDANT
        stays = np.flatnonzero((x.gaps < 1e-9) & (impulses[::3] != 0.0))
        rows = np.concatenate([3 * stays, 3 * stays + 1, 3 * stays + 2]) if friction else 3 * stays
        e = np.where(np.arange(rows.size) < stays.size, restitution, 0.0)
        np.testing.assert_allclose(after, da.KKT(x.M, x.W[rows]).impact(v, e).velocity, atol=1e-12)
        np.testing.assert_allclose(x.M @ (after - v), x.W.T @ impulses, atol=1e-12)
        np.testing.assert_allclose((x.W @ after)[3 * stays], -restitution * (x.W @ v)[3 * stays], atol=1e-12)
