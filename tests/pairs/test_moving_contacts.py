"""Surfaces that move and gaps that curve, by located events and by time steps: closed forms."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

import dalembert as da
from dalembert.friction import Bounded, Unilateral
from dalembert.model import Matrices
from dalembert.simulate import Event
from tests.simulate.contact_cases import vertical_ball


def on_a_belt(written):
    """1 kg on a belt that runs at 1 m/s under 2 N of friction."""
    if written == "Matrices":
        return Matrices({"x": 1.0}, friction=[Bounded("belt", [1.0], 2.0, surface=1.0)])
    q, v = ca.SX.sym("q", 1), ca.SX.sym("v", 1)
    return da.Lagrangian(q, v, kinetic=v[0] ** 2 / 2, friction=[Bounded("belt", v[0], 2.0, surface=1.0)])


@pytest.mark.parametrize("written", ["Lagrangian", "Matrices"])
@pytest.mark.parametrize(("method", "near"), [("dopri5", 1e-9), ("radau", 1e-9), ("moreau", 3e-3)])
def test_a_belt_takes_a_block_along(written, method, near):
    """v = 2 t until it is 1 at t = 0.5; then the block sticks. Heat: 2 N times 0.25 m of sliding."""
    step = {"step": 1e-3} if method == "moreau" else {}
    run = da.simulate(on_a_belt(written), 1.0, [0.0], [0.0], method=method, every=0.05, **step)
    assert run.ok, run
    np.testing.assert_allclose(run.v[:, 0], np.minimum(2 * run.t, 1.0), atol=near)
    assert run.q[-1, 0] == pytest.approx(0.75, abs=near)
    assert run.heat[-1] == pytest.approx(0.5, abs=near)


@pytest.mark.parametrize(("method", "near"), [("dop853", 1e-9), ("rk4", 1e-9), ("radau", 1e-9), ("moreau", 3e-3)])
def test_a_floor_that_rises_strikes_with_its_own_speed(method, near):
    """The floor z = t meets a point at rest at z = 0.5: elastic, it leaves with twice the speed of the floor."""
    q, v, t = ca.SX.sym("q", 1), ca.SX.sym("v", 1), ca.SX.sym("t")
    floor = Unilateral("floor", gap=q[0] - t, restitution=1.0)
    point = da.Lagrangian(q, v, kinetic=v[0] ** 2 / 2, time=t, unilateral=[floor])
    step = {"step": 1e-3} if method in ("moreau", "rk4") else {}
    run = da.simulate(point, 1.0, [0.5], [0.0], method=method, every=0.125, **step)
    assert run.t[-1] == 1.0, run
    assert run.v[-1, 0] == pytest.approx(2.0, abs=near)
    assert run.q[-1, 0] == pytest.approx(1.5, abs=near)


def test_a_round_gap_of_matrices_is_that_of_the_lagrangian():
    """A point falls onto a cylinder of radius 1 beside its axis and flies away; the gap |q| - 1 as a function."""
    weight = np.array([0.0, -9.81])

    def gap(q):
        r = float(np.hypot(*q))
        return r - 1.0, q / r

    def drift(q, v):
        r = float(np.hypot(*q))
        return (float(v @ v) - float(q @ v / r) ** 2) / r

    round_floor = [Unilateral("cylinder", gap=gap, normal_drift=drift, restitution=0.7)]
    by_hand = Matrices({"x": 1.0, "y": 1.0}, force=weight, unilateral=round_floor)
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    floor = [Unilateral("cylinder", gap=ca.norm_2(q) - 1.0, restitution=0.7)]
    derived = da.Lagrangian(q, v, kinetic=ca.sumsqr(v) / 2, potential=9.81 * q[1], unilateral=floor)
    runs = [da.simulate(s, 0.6, [0.3, 1.4], [0.0, 0.0], rtol=1e-10, atol=1e-12) for s in (by_hand, derived)]
    assert runs[0].ok, runs[0]
    fall = np.sqrt(2 * (1.4 - np.sqrt(1 - 0.09)) / 9.81)
    impacts = [[e.time for e in run.events if e.new == "impact"] for run in runs]
    assert impacts[0][0] == pytest.approx(fall, abs=1e-10)
    np.testing.assert_allclose(impacts[0], impacts[1], atol=1e-9)
    np.testing.assert_allclose(runs[0].q[-1], runs[1].q[-1], atol=1e-8)


@pytest.mark.parametrize(
    ("gap", "words"),
    [
        (lambda q: (q[0], [1.0]), "normal_drift="),
        (([1.0, 0.0], 0.0), "the row of its gap has shape"),
        (([0.0], 0.0), "the row not zero"),
        (3.0, r"a gap is \(row, offset\)"),
    ],
)
def test_gaps_of_matrices_that_are_none_are_refused(gap, words):
    with pytest.raises((da.ModelError, da.ShapeError), match=words):
        Matrices({"x": 1.0}, unilateral=[Unilateral("floor", gap=gap)])


@pytest.mark.parametrize("method", ["dop853", "rk4"])
@pytest.mark.parametrize("written", ["Mechanism", "Lagrangian"])
@pytest.mark.parametrize(("direction", "words"), [(0, {"falling", "rising"}), (-1, {"falling"}), (1, {"rising"})])
def test_a_function_that_is_zero_where_a_gap_closes_is_so_at_every_impact(written, method, direction, words):
    """Rounding alone decides whether the function or the gap is zero first; t = t0 + 2 v (0.8 + 0.8^2 + ...) / g."""
    if written == "Mechanism":
        ball, q0, given = vertical_ball(), 1.0, {"contacts": [da.Contact(da.Sphere("ball", 0.1), restitution=0.8)]}
    else:
        q, v = ca.SX.sym("q"), ca.SX.sym("v")
        floor = da.Unilateral("floor", gap=q - 0.1, restitution=0.8)
        ball, q0, given = da.Lagrangian(q, v, kinetic=v**2 / 2, potential=9.81 * q, unilateral=[floor]), 1.0, {}
    touch = Event(lambda _t, q, _v: q[0] - 0.1, direction=direction, name="touch")
    run = da.simulate(
        ball, 3.4, [q0], [0.0], method=method, events=touch, step=0.02 if method == "rk4" else None, **given
    )
    fall = np.sqrt(1.8 / 9.81)
    exact = fall * (1 + 2 * np.cumsum(np.concatenate([[0.0], 0.8 ** np.arange(1, 40)])))
    exact = exact[exact < 3.4]
    for word in words:
        found = [e.time for e in run.events if (e.contact, e.new) == ("touch", word)]
        np.testing.assert_allclose(found, exact, atol=1e-9)
    assert sum(e.contact == "touch" for e in run.events) == len(words) * len(exact)


def test_two_methods_at_once_are_refused():
    with pytest.raises(da.ModelError, match="method='rk4' and stepper='radau': give one of them"):
        da.simulate(on_a_belt("Lagrangian"), 1.0, [0.0], [0.0], method="rk4", stepper="radau", step=0.1)
