"""Tableaux of examples and robots against compiled dynamics and motions in time, which share no text with them."""

from __future__ import annotations

import numpy as np
import pytest

import dalembert as da
from dalembert.examples import crank_slider, stanford_arm, two_blocks
from dalembert.simulate import Problem
from dalembert.tableau import coordinates, newton_euler
from tests.tableau.robots import random_tree
from tests.tree.mechanisms import random_inertia, random_placement

BESIDE = 1e-4
"""Seconds between the states whose difference is an acceleration."""


def built(kinds: list[str], parents: list[str], seed: int, **build) -> da.Mechanism:
    """A mechanism with these joints between these bodies, frames and masses at random."""
    rng = np.random.default_rng(seed)
    b = da.Builder("built")
    for i, (kind, parent) in enumerate(zip(kinds, parents, strict=True)):
        b.body(f"b{i}", inertia=random_inertia(rng))
        b.joint(f"j{i}", kind, parent=parent, child=f"b{i}", axis=tuple(rng.standard_normal(3)),
                placement=random_placement(rng), child_placement=random_placement(rng))  # fmt: skip
    return b.build(**build)


ROBOTS = {
    "Stanford arm": stanford_arm,
    "branches of hinges and sliders": lambda: random_tree(6, 3),
    "slider, turntable, welded tool": lambda: built(
        ["prismatic", "continuous", "fixed", "revolute"], ["world", "b0", "b1", "b2"], 1
    ),
    "floating base with two limbs": lambda: built(
        ["free", "revolute", "prismatic", "revolute"], ["world", "b0", "b0", "b2"], 2
    ),
}


def start_of(mechanism: da.Mechanism) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A configuration, velocities and joint forces at random; no force acts in a free joint."""
    rng = np.random.default_rng(5)
    q, (v, tau) = mechanism.random(rng), rng.standard_normal((2, mechanism.nv))
    for joint in mechanism.joints:
        tau[mechanism.index_v(joint.name)] *= joint.kind != "free"
    return q, v, tau


@pytest.mark.parametrize("robot", ROBOTS)
def test_Y12_forward_and_inverse_tableaux_hold_along_a_simulated_motion(robot):
    """The motion is integrated with explicit steps; accelerations are differences of its velocities."""
    mechanism = ROBOTS[robot]()
    q, v, tau = start_of(mechanism)
    run = da.simulate(mechanism, 0.2, q, v, force=tau, rtol=1e-10, atol=1e-10)
    assert run.status == "completed"
    times = np.array([0.05, 0.1, 0.15])
    (x, speed), (_, before), (_, after) = (run.at(times + step) for step in (0.0, -BESIDE, BESIDE))
    observed = (after - before) / (2 * BESIDE)
    forward = newton_euler(mechanism, "essential", ("q", "qd", "tau"))
    known = {"q": coordinates(mechanism, x), "qd": speed}
    a = forward.solve({**known, "tau": np.tile(tau, (3, 1))}, newton=forward.newton(engine="loop"))["qdd"]
    size = max(1.0, np.abs(a).max())
    np.testing.assert_allclose(a, mechanism.forward(x, speed, np.tile(tau, (3, 1))).acceleration, atol=1e-9 * size)
    np.testing.assert_allclose(a, observed, atol=1e-4 * size)
    inverse = newton_euler(mechanism, "essential")
    back = inverse.solve({**known, "qdd": observed}, newton=inverse.newton(engine="loop"))["tau"]
    np.testing.assert_allclose(back, mechanism.inverse(x, speed, observed).tau, atol=1e-9 * np.abs(back).max())
    np.testing.assert_allclose(back, np.tile(tau, (3, 1)), atol=1e-3 * max(1.0, np.abs(back).max()))


def test_the_stanford_arm_is_a_mechanism_like_any_other():
    """Explicit steps, BDF and `Problem` lead to one place, and energy is kept; its parts have names."""
    arm = stanford_arm()
    assert arm.coordinates == tuple(f"joint{i + 1}" for i in range(6))
    assert arm.mass == pytest.approx(20.77)
    q, v = np.array([0.3, -0.7, 0.5, 0.4, -0.9, 0.6]), np.zeros(6)
    explicit = da.simulate(arm, 0.5, q, v, rtol=1e-10, atol=1e-10)
    stiff = da.simulate(arm, 0.5, q, v, method="bdf", rtol=1e-9, atol=1e-9)
    problem = Problem(arm).integrate((0.0, 0.5), q, v, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(stiff.q[-1], explicit.q[-1], atol=1e-6)
    np.testing.assert_allclose(problem.y[:6, -1], explicit.q[-1], atol=1e-6)
    kinetic, potential = arm.energy(explicit.q, explicit.v)
    np.testing.assert_allclose(kinetic + potential, (kinetic + potential)[0], atol=1e-6)
    assert "joint3" in arm.to_urdf()


def test_examples_are_systems_that_move():
    for system, start in ((crank_slider(), ([0.6, 1.2], [0.0, 0.0])), (two_blocks(), ([0.0, 0.0], [0.3, 0.3]))):
        run = da.simulate(system, 0.3, *start)
        assert run.status == "completed"
        assert np.abs(run.q[-1] - start[0]).max() > 1e-3


def test_tendons_act_in_problems_as_in_simulations():
    b = da.Builder("pulleys")
    for i, parent in enumerate(("world", "b0")):
        b.body(f"b{i}", mass=1.0, center=(0, 0, -0.5), inertia=(0.1, 0.1, 0.01))
        at = (0, 0, -1.0) if i else (0, 0, 0)
        b.joint(f"j{i}", "revolute", parent=parent, child=f"b{i}", axis=(0, 1, 0), position=at)
    b.tendon("belt", {"j0": 1.0, "j1": -0.5}, stiffness=30.0, damping=0.5)
    mechanism = b.build()
    q, v = np.array([0.4, -0.2]), np.zeros(2)
    explicit = da.simulate(mechanism, 0.5, q, v, rtol=1e-10, atol=1e-10)
    problem = Problem(mechanism).integrate((0.0, 0.5), q, v, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(problem.y[:2, -1], explicit.q[-1], atol=1e-6)


def test_a_gear_between_continuous_joints_counts_turns():
    """Half a turn for a turn: (cos, sin) cannot say which half, an angle that counts can."""
    b = da.Builder("gear")
    for i in range(2):
        b.body(f"wheel{i}", mass=1.0, inertia=(1.0, 1.0, 1.0))
        b.joint(f"axle{i}", "continuous", parent="world", child=f"wheel{i}", axis=(0, 0, 1), position=(3.0 * i, 0, 0))
    gear = b.build().constrain(da.Coupler({"axle0": 0.5, "axle1": -1.0}, name="gear"))
    torque = {"tau axle0": 5.0}
    angle = 0.5 * 5.0 / 1.25 * 5.0**2  # 1.25: inertia of both wheels at the first axle; eight turns
    result = Problem(gear, known=torque).integrate((0.0, 5.0), [0.0, 0.0], [0.0, 0.0], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(result.y[:2, -1], [angle, angle / 2], rtol=1e-7)
    run = da.simulate(gear, 5.0, force=[5.0, 0.0], method="bdf", rtol=1e-9, atol=1e-9)
    assert run.status == "completed"
    expected = np.array([np.cos(angle), np.sin(angle), np.cos(angle / 2), np.sin(angle / 2)])
    np.testing.assert_allclose(run.q[-1], expected, atol=1e-6)
