"""O9, O11: the seed's example, against 40-digit arithmetic, and beside the other methods."""

from __future__ import annotations

import json

import casadi as ca
import numpy as np
import pytest

import dalembert as da
from dalembert.examples import COMPARED, compare_methods, run_two_blocks, two_blocks
from dalembert.friction import Bounded, Hyperbolic
from dalembert.simulate.limits import CHANGE_WIDTH
from dalembert.simulate.plots import phases
from tests.cli.test_commands import called
from tests.simulate.belt_events import EVENTS

W = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, -1.0]])


@pytest.fixture(scope="module")
def run():
    return run_two_blocks(every=0.25)


def test_O9_every_event_to_30_seconds(run):
    assert run.ok
    assert [(e.contact, e.old, e.new) for e in run.events] == [row[1:] for row in EVENTS]
    found, expected = (np.array(x) for x in ([e.time for e in run.events], [float(row[0]) for row in EVENTS]))
    assert np.abs(found - expected).max() <= 3e-10


def test_O9_the_first_event_is_where_two_limits_hold_no_more(run):
    # 4.2 t = 4 + 5. Rounding of forces of 9 N, a few 1e-15 each, over 4.2 N/s moves it by up to 1.4e-14, as steps
    # are long or short; what is promised is the width of the bracket.
    assert run.events[0].time == pytest.approx(15.0 / 7.0, abs=CHANGE_WIDTH)


def test_O9_stick_phases_are_at_belt_velocity_and_blocks_move_together(run):
    np.testing.assert_array_equal(run.v[run.modes[:, 0] == 0, 0], 0.3)
    np.testing.assert_array_equal(run.v[run.modes[:, 1] == 0, 1], 0.3)
    together = run.modes[:, 2] == 0
    np.testing.assert_array_equal(run.v[together, 0], run.v[together, 1])
    np.testing.assert_array_equal(run.relative_velocity[run.modes == 0], 0.0)


def test_O9_redundant_forces_sum_to_the_elastic_force(run):
    stuck = np.flatnonzero((run.modes == 0).all(axis=1))
    assert stuck.size > 30
    for s in stuck:
        elastic = two_blocks().bias(run.q[s], run.v[s], 0.0)
        np.testing.assert_allclose(W @ run.forces[s], elastic, atol=2e-13)
        assert np.all(np.abs(run.forces[s]) <= [4.0, 7.0, 5.0])


def test_O9_forces_obey_the_laws_in_every_sample(run):
    for mode, force, xi in zip(run.modes, run.forces, run.relative_velocity, strict=True):
        for i, limit in enumerate((4.0, 7.0, 5.0)):
            if mode[i] == 0:
                assert abs(force[i]) <= limit
            else:
                assert mode[i] * xi[i] >= -1e-12
                assert force[i] == pytest.approx(-mode[i] * limit / (1.0 + 3.0 * abs(xi[i])), abs=1e-10)


def test_O9_energy_balance_closes(run):
    assert np.abs(run.energy_residual).max() <= 1e-10
    assert np.all(np.diff(run.heat) >= -1e-13)
    assert run.heat[-1] > 1.0


def test_O9_force_steps_at_the_end_of_slip_are_below_twice_the_limit(run):
    """Seed 001, end of sec. 4: at reversals the gap is twice the force, at the beginning of stick smaller."""
    for event in run.events:
        at = np.flatnonzero(run.t == event.time)
        before, after = run.forces[at[0], event.index], run.forces[at[-1], event.index]
        limit = (4.0, 7.0, 5.0)[event.index]
        if {event.old, event.new} == {"slip+", "slip-"}:
            assert abs(after - before) == pytest.approx(2 * limit, rel=1e-9)
        elif event.new == "stick":
            assert abs(after - before) < 2 * limit


def test_the_lagrangian_gives_the_same_events():
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    blocks = da.Lagrangian(
        q, v, kinetic=2.0 * v[0] ** 2 + 3.5 * v[1] ** 2, potential=7.0 * q[0] ** 2 + 7.0 * (q[1] - q[0]) ** 2,
        friction=[
            Bounded("belt 1", v[0], Hyperbolic(4.0), surface=0.3),
            Bounded("belt 2", q[1], Hyperbolic(7.0), surface=0.3),  # by its displacement
            Bounded("between", v[0] - v[1], Hyperbolic(5.0)),
        ],
    )  # fmt: skip
    run = da.simulate(blocks, 5.0, [0.0, 0.0], [0.3, 0.3], rtol=1e-11)
    assert [(e.contact, e.old, e.new) for e in run.events] == [row[1:] for row in EVENTS[: len(run.events)]]
    np.testing.assert_allclose(
        [e.time for e in run.events], [float(r[0]) for r in EVENTS[: len(run.events)]], atol=1e-8
    )
    with pytest.raises(da.UnsupportedError, match="resolve"):
        blocks.solve([0.0, 0.0], [0.3, 0.3])
    with pytest.raises(da.UnsupportedError, match="resolve"):
        blocks.forward([0.0, 0.0], [0.3, 0.3])


def test_O11_other_methods_beside_the_exact_one():
    rows = {row["method"]: row for row in compare_methods(duration=2.3, step=0.1)}
    assert set(rows) == set(COMPARED)
    assert rows["exact, events"]["creep"] == 0.0
    assert rows["exact, fixed step"]["creep"] == 0.0
    assert rows["flowchart"]["error"] <= 0.11
    assert rows["regularised"]["creep"] > 1e-4  # drift, the price of a slope


def test_O11_the_short_form_breaks_where_only_the_blocks_stick():
    """Unequal masses, the contact between them alone at rest: the fixed-step run stops and says why."""
    options = {"method": "fixed", "step": 0.05, "stepper": "rk4", "resolver": "flowchart"}
    run = da.simulate(two_blocks(), 0.2, [0.5, 0.6], [0.1, 0.1], form="short", **options)
    assert run.status == "no solution"
    assert "range condition" in run.message
    assert da.simulate(two_blocks(), 0.2, [0.5, 0.6], [0.1, 0.1], **options).ok


def test_phases_and_figures(run):
    shown = phases(run)
    assert shown[0][2] == ("belt 1", "belt 2", "between")
    assert shown[0][1] == pytest.approx(15 / 7)
    figure = run.plot(("velocities", "forces", "coordinates"))
    assert len(figure.axes) == 3
    with pytest.raises(da.ModelError, match="colours"):
        run.plot(("colours",))


def test_names_and_words(run):
    np.testing.assert_array_equal(run["q1"], run.q[:, 0])
    np.testing.assert_array_equal(run["q2.v"], run.v[:, 1])
    np.testing.assert_array_equal(run["between"], run.forces[:, 2])
    assert run["q1.a"].shape == run.t.shape
    with pytest.raises(da.ModelError, match="did you mean 'between'"):
        run["betwen"]
    assert "38 events" in str(run)
    assert "belt 1: stick -> slip-" in str(run)


def test_demo_belt_json(capsys, monkeypatch):
    monkeypatch.setattr("dalembert.cli.demo.DURATION", 5.0)
    code, out, _ = called("demo", "belt", "--json", capsys=capsys)
    assert code == 0
    events = json.loads(out)["events"]
    first = [row for row in EVENTS if float(row[0]) < 5.0]
    assert [(e["contact"], e["from"], e["to"]) for e in events] == [row[1:] for row in first]
    assert all(abs(e["time"] - float(row[0])) <= 3e-12 for e, row in zip(events, first, strict=True))


def test_demo_belt_report(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr("dalembert.cli.demo.SHORT", 0.1)
    monkeypatch.setattr("dalembert.cli.demo.DURATION", 2.5)
    monkeypatch.chdir(tmp_path)
    code, out, _ = called("demo", "belt", capsys=capsys)
    assert code == 0
    assert "largest creep on the belt       0.0e+00" in out
    assert (tmp_path / "dalembert-belt.html").read_text().count("<svg") == 3
