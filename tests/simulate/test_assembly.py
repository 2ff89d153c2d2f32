"""Loops closed from guesses, positions of rest, inverse dynamics along a motion."""

from __future__ import annotations

import numpy as np
import pytest

import dalembert as da
from tests.model.closed_loops import slider_crank, stewart
from tests.simulate.linkages import bricard, crank_rocker


def four_bar_with_spring():
    """Return IFToMM's four-bar with a diagonal spring: three moving bars of 1 m and 1 kg, k = 25 N/m, sqrt(2) m."""
    b = da.Builder("four-bar with spring", gravity=(0, -9.81, 0))
    rod = {"mass": 1.0, "center": (0.5, 0, 0), "inertia": (1e-6, 1 / 12, 1 / 12)}
    for name in ("left", "top", "right"):
        b.body(name, **rod)
        b.frame(f"{name} end", name, position=(1, 0, 0))
    b.joint("A", "revolute", parent="world", child="left", axis=(0, 0, 1))
    b.joint("B", "revolute", parent="left", child="top", axis=(0, 0, 1), position=(1, 0, 0))
    b.joint("D", "revolute", parent="world", child="right", axis=(0, 0, 1), position=(1, 0, 0))
    b.frame("origin", "world")
    b.spring("diagonal", "origin", "top end", stiffness=25.0, rest=np.sqrt(2.0))
    return b.build().constrain(da.PointOnLine("top end", "right end", axis=(0, 0, 1), name="C"))


@pytest.mark.parametrize("make", [slider_crank, bricard, lambda: crank_rocker()[0], lambda: stewart()[0]])
def test_loops_close_from_any_guess(make):
    m = make()
    rng = np.random.default_rng(5)
    start = {"crank-rocker": lambda: crank_rocker()[1], "Stewart platform": lambda: stewart()[1]}.get(
        m.name, m.neutral
    )()
    for _ in range(4):
        found = m.assemble(m.integrate(start, 0.6 * rng.standard_normal(m.nv)), rng.standard_normal(m.nv))
        assert found.ok, str(found)
        assert np.abs(m.constraint(found.q)).max() < 1e-11
        assert np.abs(m.constraint_velocity(found.q, found.v)).max() < 1e-11


def test_held_joints_stay():
    m, q, _ = crank_rocker()
    guess = q.copy()
    guess[0] = 2.0
    found = m.assemble(guess, hold=["drive"])
    assert found.ok
    assert found.q[0] == 2.0


def test_unreachable_targets_are_told_with_what_remains():
    b = da.Builder("arm")
    for i, parent in enumerate(("world", "link 0")):
        b.body(f"link {i}", mass=1.0, center=(0.5, 0, 0), inertia=(0.01, 0.1, 0.1))
        b.joint(f"joint {i}", "revolute", parent=parent, child=f"link {i}", axis=(0, 0, 1), position=(float(i), 0, 0))
    b.frame("hand", "link 1", position=(1, 0, 0))
    m = b.build().constrain(da.Point("hand", at=(0.0, 2.5, 0.0), name="target"))
    found = m.assemble([0.3, 0.2])
    assert not found.ok
    assert found.gap == pytest.approx(0.5, abs=1e-6)
    with pytest.raises(da.ModelError, match="no motion from here makes the gap smaller"):
        da.simulate(m, 1.0, found.q)
    with pytest.raises(da.ModelError, match=r"mechanism\.assemble\(q\) closes loops from a guess"):
        da.simulate(m, 1.0, [0.3, 0.2])
    assert "target" in str(found)
    np.testing.assert_allclose(found.q[:1], [np.pi / 2], atol=1e-4)
    with pytest.raises(da.SolvabilityError, match="loops"):
        m.equilibrium()


def test_iftomm_four_bar_rests_where_published():
    m = four_bar_with_spring()
    start = m.assemble([2.0, -1.8, 2.0]).q
    rest = m.equilibrium(start)
    # published as the angle at the corner from which the spring's diagonal starts
    diagonal = np.linalg.norm(m.kinematics(rest.q, "top end")[1])
    phi = 2 * np.arccos(diagonal / 2)
    assert phi == pytest.approx(2.234331019017585911443313, abs=1e-9)
    assert rest.stable
    frequency = np.sqrt(rest.stiffness[0])
    assert frequency == pytest.approx(abs(complex(-0.24238580931050509653, 2.1339550283483802956)), rel=1e-6)
    still = da.simulate(m, 1.0, rest.q)
    assert np.abs(still.q - rest.q).max() < 1e-8


def test_a_pendulum_rests_below_and_a_falling_body_nowhere():
    b = da.Builder("pendulum")
    b.body("bob", mass=2.0, center=(1, 0, 0))
    b.joint("hinge", "revolute", parent="world", child="bob", axis=(0, 1, 0))
    m = b.build()
    rest = m.equilibrium([0.3])
    assert rest.q[0] == pytest.approx(np.pi / 2, abs=1e-12)
    assert rest.stiffness[0] == pytest.approx(9.81, rel=1e-6)
    bent = m.equilibrium([1.2], torque=[5.0])
    assert np.cos(bent.q[0]) * 2.0 * 9.81 == pytest.approx(-5.0, abs=1e-9)
    b = da.Builder("stone")
    b.body("stone", mass=1.0, inertia=(1, 1, 1))
    with pytest.raises(da.SolvabilityError, match="no position of rest"):
        b.build(base="floating").equilibrium()


def test_inverse_dynamics_along_a_motion_with_a_loop():
    m, q, v = crank_rocker()
    run = da.simulate(m, 1.0, q, v, force=lambda t, q, v: np.array([3.0 * np.sin(4 * t), 0.0, 0.0]))
    tau, _, status = run.inverse(actuated=["drive"])
    np.testing.assert_allclose(tau[:, 0], 3.0 * np.sin(4 * run.t), atol=1e-8)
    np.testing.assert_allclose(tau[:, 1:], 0.0, atol=1e-12)
    shared, _, _ = run.inverse(actuated=["drive", "pivot"])
    assert ((shared**2).sum(axis=1) <= (tau**2).sum(axis=1) + 1e-9).all()
    a, _, _ = m.forward(run.q, run.v, shared, run.t)
    np.testing.assert_allclose(a, run.acceleration, atol=1e-7)
    assert (status <= 1).all()
