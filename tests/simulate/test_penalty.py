"""Springs and dampers in place of rows (Oprea, sec. 1), beside exact rows and closed forms."""

from __future__ import annotations

from functools import cache

import casadi as ca
import numpy as np
import pytest

import dalembert as da

G, FINE = 9.81, {"rtol": 1e-10, "atol": 1e-12}


@cache
def held(twice=False):
    """Return a mass of 2 kg that a row holds at height zero, or two rows that say the same."""
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    rows = {"floor": q[1], **({"again": 2.0 * q[1]} if twice else {})}
    return da.Lagrangian(q, v, ca.sumsqr(v), 2.0 * G * q[1], constraints=rows)


@cache
def pendulums():
    """Return a double pendulum whose end is tied to a post, and a start."""
    b = da.Builder("tied")
    for name in ("upper", "lower"):
        b.body(name, mass=1.0, center=(0.25, 0, 0), inertia=(1e-3, 0.02, 0.02))
    b.joint("A", "revolute", parent="world", child="upper", axis=(0, 1, 0))
    b.joint("B", "revolute", parent="upper", child="lower", axis=(0, 1, 0), position=(0.5, 0, 0))
    b.frame("end", "lower", position=(0.5, 0, 0))
    m = b.build().constrain(da.Distance("end", at=(0.4, 0, 0.3), length=0.6))
    q, v = m.project(np.array([0.4, 1.0]), [1.0, 0.0])
    return m, q, v


def test_O13_a_spring_in_place_of_a_row_swings_as_in_closed_form():
    """z = -(g / w^2) (1 - cos w t): a row without damping sags by m g / k and swings about that for ever."""
    k = 800.0
    run = da.simulate(held(), 1.0, [0, 0], [0.5, 0], method="penalty", stiffness=k, damping=0.0, **FINE)
    w = np.sqrt(k / 2.0)
    np.testing.assert_allclose(run.q[:, 1], -G / w**2 * (1 - np.cos(w * run.t)), atol=1e-9)
    np.testing.assert_allclose(run.q[:, 0], 0.5 * run.t, atol=1e-12)
    np.testing.assert_allclose(run.reactions["floor"], -k * run.q[:, 1], rtol=1e-12)
    damped = da.simulate(held(), 2.0, [0, 0], [0, 0], method="penalty", stiffness=k, **FINE)  # critically
    assert damped.q[-1, 1] == pytest.approx(-2.0 * G / k, rel=1e-6)
    assert damped.reactions["floor"][-1] == pytest.approx(2.0 * G, rel=1e-6)


def test_O13_drift_stiffness_and_cost_beside_exact_rows():
    """Drift falls as 1 / k, evaluations of explicit steps grow as sqrt(k); the motion tends to that of exact rows."""
    m, q, v = pendulums()
    exact = da.simulate(m, 0.5, q, v, **FINE)
    stiffness = np.array([1e4, 1e5, 1e6])
    runs = [da.simulate(m, 0.5, q, v, method="penalty", stiffness=k, every=0.05) for k in stiffness]
    drift = np.array([run.position_residual.max() for run in runs])
    far = np.array([np.abs(run.q[-1] - exact.q[-1]).max() for run in runs])
    cost = np.array([run.statistics.evaluations for run in runs])
    assert (drift[:-1] / drift[1:] > 5.0).all()
    assert (far[:-1] / far[1:] > 5.0).all()
    assert (cost[1:] / cost[:-1] > 1.5).all()
    assert exact.position_residual.max() < 1e-13
    assert exact.statistics.evaluations < cost[0]
    implicit = da.simulate(m, 0.5, q, v, method="penalty", stiffness=1e6, stepper="bdf")
    np.testing.assert_allclose(implicit.q[-1], runs[2].q[-1], atol=1e-5)


def test_O13_redundant_rows_share_by_stiffness():
    run = da.simulate(held(True), 3.0, [0, 0], [0, 0], method="penalty", stiffness=[300.0, 100.0], **FINE)
    floor, again = (run.reactions[name][-1] for name in ("floor", "again"))
    assert floor + 2.0 * again == pytest.approx(2.0 * G, rel=1e-6)
    assert again / floor == pytest.approx(2.0 * 100.0 / 300.0, rel=1e-9)
    assert da.simulate(held(True), 0.1, [0, 0], [0, 0]).position_residual.max() < 1e-14


def test_O13_forces_act_beside_the_springs():
    push = da.simulate(held(), 1.0, [0, 0], [0, 0], method="penalty", stiffness=1e4, force=[3.0, 0.0], **FINE)
    assert push.q[-1, 0] == pytest.approx(3.0 / 2.0 / 2.0, rel=1e-9)
    assert push.at(0.5)[0][0] == pytest.approx(3.0 / 2.0 / 8.0, rel=1e-4)  # between samples, by a cubic


def test_O13_what_a_comparison_does_without_is_refused():
    m, q, v = pendulums()
    penalty = {"method": "penalty", "stiffness": 1e4}
    for options, words in (
        ({"events": lambda t, q, v: q[0]}, "events="), ({"force": lambda t, q, v: [0.0, 0.0]}, "Python function"),
        ({"on_step": lambda t, q, v: None}, "on_step="),
    ):  # fmt: skip
        with pytest.raises(da.UnsupportedError, match=words):
            da.simulate(m, 0.1, q, v, **penalty, **options)
    with pytest.raises(da.UnsupportedError, match="has none"):
        da.simulate(m.open_tree(), 0.1, q, v, **penalty)
    with pytest.raises(da.ModelError, match="needs stiffness="):
        da.simulate(m, 0.1, q, v, method="penalty")
    with pytest.raises(da.ModelError, match="one for each row"):
        da.simulate(m, 0.1, q, v, method="penalty", stiffness=[1.0, 2.0])
    with pytest.raises(da.ModelError, match="stepper"):
        da.simulate(m, 0.1, q, v, stepper="euler", **penalty)
    slides = da.Lagrangian(*(x := (ca.SX.sym("q"), ca.SX.sym("v"))), 0, constraints={"held": x[0]})
    with pytest.raises(da.UnsupportedError, match="weighs nothing"):
        da.simulate(slides, 0.1, [0.0], [0.0], **penalty)
