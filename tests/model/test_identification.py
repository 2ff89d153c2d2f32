"""Regressors, base parameters and identification, against Pinocchio, published counts and known truths."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest

import dalembert as da
from dalembert.errors import ModelError, ShapeError, UnsupportedError
from dalembert.model import Inertia, Placement
from dalembert.model.mechanism.base_parameters import parameter_names, parameter_values, random_motions
from dalembert.model.mechanism.inertia import INERTIAL_NUMBERS
from tests.model.test_inverse_kinematics import stewart
from tests.tree.contacts import GO2, PANDA, Robot

Z1 = Robot("z1_description/urdf/z1.urdf", "fixed", (), 0)


@pytest.mark.parametrize("robot", [GO2, PANDA, Z1], ids=["go2", "panda", "z1"])
def test_regressor_as_pinocchio(robot):
    """`computeJointTorqueRegressor`: the ten columns of the body behind every joint."""
    tree, model = robot.tree(), robot.pinocchio()
    kernel, rng = tree.compile("regressor"), np.random.default_rng(2)
    for q in tree.random(rng, 2):
        v, a = rng.standard_normal((2, tree.nv))
        expected = pin.computeJointTorqueRegressor(model, model.createData(), q, v, a)
        found = kernel(q, v, a)
        joints = [i for i, joint in enumerate(tree.joints) if joint.kind != "fixed"]
        for k, i in enumerate(joints):
            block = expected[:, 10 * k : 10 * k + 10]
            np.testing.assert_allclose(found[:, 10 * i : 10 * i + 10], block, atol=1e-10 * np.abs(expected).max())


def test_numbers_and_back():
    inertia = Inertia(2.0, [0.1, -0.2, 0.3], np.diag([0.2, 0.3, 0.4]) + 0.01)
    expected = pin.Inertia(2.0, inertia.center, inertia.rotational).toDynamicParameters()
    np.testing.assert_allclose(inertia.numbers(), expected, rtol=1e-14)
    back = Inertia.of_numbers(inertia.numbers())
    np.testing.assert_allclose(back.rotational, inertia.rotational, rtol=1e-13)


def puma():
    """Return the PUMA 560 of the Robotics Toolbox (Corke): standard Denavit-Hartenberg, link 1 without mass."""
    right = np.pi / 2
    table = [
        (0.67183, 0, right),
        (0, 0.4318, 0),
        (0.15005, 0.0203, -right),
        (0.4318, 0, right),
        (0, 0, -right),
        (0, 0, 0),
    ]
    builder, parent = da.Builder("puma"), "world"
    for k, (d, a, alpha) in enumerate(table, start=1):
        place = Placement.from_rpy((0, 0, 0), (0, 0, d)) @ Placement.from_rpy((alpha, 0, 0), (a, 0, 0))
        builder.body(f"l{k}", mass=1.0, inertia=(0.1, 0.1, 0.1))
        axis = {"axis": (0, 0, 1), "child_placement": place.inverse()}
        builder.joint(f"j{k}", "revolute", parent=parent, child=f"l{k}", **axis)
        parent = f"l{k}"
    return builder.build()


def test_puma_has_36_base_parameters():
    """Gautier & Khalil 1990: 36 of 60; the first link shows by one number, its moment about the vertical axis."""
    base = puma().base_parameters()
    assert base.rank == 36
    assert not base.doubt
    assert base.kept > 1e-3
    assert base.dropped < 1e-12
    assert {name.split(":")[0] for name in base.unseen} == set(INERTIAL_NUMBERS) - {"Iyy"}
    assert "36 base parameters of 60" in str(base)


def test_base_parameters_explain_all_forces():
    """Y pi = Y[:, columns] (sums pi) for any pi: nothing is lost by leaving the others out."""
    mechanism = PANDA.tree()
    base, rng = mechanism.base_parameters(terms=("viscous", "armature")), np.random.default_rng(1)
    q, v, a = mechanism.random(rng), *rng.standard_normal((2, mechanism.nv))
    Y = mechanism.compile("regressor", terms=("viscous", "armature"))(q, v, a)
    for _ in range(3):
        pi = rng.standard_normal(len(base.names))
        np.testing.assert_allclose(Y[:, base.columns] @ (base.sums @ pi), Y @ pi, atol=1e-6 * np.abs(Y @ pi).max())
    assert base.names == parameter_names(mechanism, ("viscous", "armature"))


def four_bar(masses=(1.0, 2.0, 1.5)):
    """Return a plane four-bar linkage closed by a hinge of five rows: three of them say nothing in the plane."""
    builder = da.Builder("four_bar")
    for name, mass, length in zip(("crank", "coupler", "rocker"), masses, (0.3, 0.8, 0.6), strict=True):
        builder.body(name, mass=mass, center=(0.4 * length, 0.02, 0.0), inertia=(0.01, 0.06 * mass, 0.065 * mass))
    z = {"axis": (0, 0, 1)}
    builder.joint("crank", "revolute", parent="world", child="crank", **z)
    builder.joint("pin", "revolute", parent="crank", child="coupler", position=(0.3, 0, 0), **z)
    builder.joint("rocker", "revolute", parent="world", child="rocker", position=(0.7, 0, 0), **z)
    builder.frame("a", "coupler", position=(0.8, 0, 0))
    builder.frame("b", "rocker", position=(0.6, 0, 0))
    linkage = replace(builder.build(), gravity=(0.0, -9.81, 0.0))
    return linkage.constrain(da.Revolute("a", "b", axis=(0, 0, 1)))


def test_four_bar_identified_with_honest_intervals():
    """A loop with redundant rows, one motor, noise in its torque: 95 % intervals hold the truth 95 % of the time."""
    hits, fit = coverage(four_bar(), four_bar((1.3, 1.6, 2.0)), ["crank"], 60)
    bound = 4 * np.sqrt(0.95 * 0.05 / len(hits))  # base parameters of one fit are correlated: as if there were one each
    assert abs(np.mean(hits) - 0.95) < bound
    assert abs(fit.deviation - 0.05) < 0.02


def test_noise_that_is_not_what_intervals_are_made_for_is_told():
    """White and equal noise leaves no doubt; other sizes by joint, and noise that lasts, are named with what to do."""
    b = da.Builder("arm")
    for name, parent, at in (("upper", "world", 0.0), ("fore", "upper", 0.4)):
        b.body(name, mass=2.0, center=(0.2, 0.01, 0.02), inertia=(0.02, 0.1, 0.1))
        b.joint(name, "revolute", parent=parent, child=name, axis=(0, 1, 0), position=(at, 0, 0))
    arm = b.build()
    q, v, a = random_motions(arm, 60, 3)
    tau, white = np.asarray(arm.inverse(q, v, a)[0]), np.random.default_rng(5).standard_normal(v.shape)

    def doubt(errors, **options):
        return arm.identify(np.arange(len(q)), q, v, tau + errors, a, consistent=False, **options).doubt

    uneven = white * [0.5, 0.02]
    assert doubt(0.1 * white) == doubt(uneven, noise=[0.5, 0.02]) == doubt(0 * white) == ""
    assert "differs by joint" in doubt(uneven)
    assert "correlated from sample to sample" in doubt(0.1 * np.cumsum(white, axis=0))


def coverage(truth, model, motors, rounds):
    """Return which intervals of fits to noisy torques (deviation 0.05) hold the truth, (rounds, k), and a fit."""
    q, v, a = random_motions(truth, 30, 3)
    tau = truth.inverse(q, v, a, actuated=motors)[0]
    driven = np.isin(truth.coordinates, motors)
    rng, hits = np.random.default_rng(7), []
    for _ in range(rounds):
        noisy = tau + np.where(driven, 0.05 * rng.standard_normal(tau.shape), 0.0)
        fit = model.identify(np.arange(len(q)), q, v, noisy, a, actuated=motors, consistent=False)
        low, high = fit.intervals().T
        exact = fit.base.sums @ parameter_values(truth)
        hits.append((low <= exact) & (exact <= high))
    return np.array(hits), fit


def test_stewart_platform_identified_with_honest_intervals():
    """Six motors, loops of 18 rows, noise: 82 sums of 130 numbers show, and 95 % intervals hold them 95 % of the time.

    The forces of the legs determine the plate's mass with those of the rods above the feet, never one of them alone.
    """
    truth = stewart()[0]
    hits, fit = coverage(truth, truth, [f"leg{k}" for k in range(6)], 20)
    assert fit.base.rank == 82
    assert "m:plate + m:rod0" in str(fit)
    bound = 4 * np.sqrt(0.95 * 0.05 / len(hits))
    assert abs(np.mean(hits) - 0.95) < bound
    assert abs(fit.deviation - 0.05) < 0.02


def test_identified_inertias_are_those_of_bodies():
    """Noise makes least squares leave what bodies can have; with `consistent` no pseudo-inertia is negative."""
    truth = puma()
    q, v, a = random_motions(truth, 60, 1)
    q, v, a = q[:40], v[:40], a[:40]
    rng = np.random.default_rng(0)
    tau = truth.inverse(q, v, a).tau + 0.5 * rng.standard_normal(v.shape)
    free = truth.identify(np.arange(40), q, v, tau, a, consistent=False)
    held = truth.identify(np.arange(40), q, v, tau, a)
    assert any(body.inertia.problem() for body in free.mechanism.bodies)
    for body in held.mechanism.bodies:
        numbers = body.inertia.about_origin()
        J = np.zeros((4, 4))
        J[:3, :3] = 0.5 * np.trace(numbers) * np.eye(3) - numbers
        J[:3, 3] = J[3, :3] = body.inertia.mass * body.inertia.center
        J[3, 3] = body.inertia.mass
        assert np.linalg.eigvalsh(J)[0] > -1e-6


def test_exact_data_give_exact_numbers():
    """Without noise the truth comes back where it is determined, friction included; the rest stays as in the model."""
    truth, model = four_bar(), four_bar((1.3, 1.6, 2.0))
    q, v, a = random_motions(truth, 30, 3)
    tau = truth.inverse(q, v, a, actuated=["crank"])[0] + np.array([0.4, 0.0, 0.0]) * v
    fit = model.identify(np.arange(len(q)), q, v, tau, a, terms="viscous", actuated=["crank"], consistent=False)
    exact = parameter_values(truth, "viscous")
    exact[-3] = 0.4
    np.testing.assert_allclose(fit.estimates, fit.base.sums @ exact, atol=1e-7)
    np.testing.assert_allclose(fit.base.sums @ fit.parameters, fit.estimates, atol=1e-4)


def test_bad_samples_are_refused():
    tree = Z1.tree()
    with pytest.raises(ShapeError, match="v has shape"):
        tree.identify([0.0, 1.0], np.zeros((2, tree.nq)), np.zeros((3, tree.nv)), np.zeros((2, tree.nv)))
    with pytest.raises(ModelError, match="ascend"):
        tree.identify([0.0, 0.0], np.zeros((2, tree.nq)), np.zeros((2, tree.nv)), np.zeros((2, tree.nv)))
    with pytest.raises(ModelError, match="term of joints"):
        tree.base_parameters(terms="stiction")
    none = np.zeros((0, tree.nv))
    with pytest.raises(ModelError, match="one at least"):
        tree.identify([], np.zeros((0, tree.nq)), none, none)
    truth = four_bar()
    q, v, a = random_motions(truth, 30, 3)
    samples = np.arange(len(q)), q, v, truth.inverse(q, v, a, actuated=["crank"])[0], a
    with pytest.raises(ModelError, match="deviation > 0"):
        truth.identify(*samples, noise=0.0, actuated=["crank"], consistent=False)
    fit = truth.identify(*samples, actuated=["crank"], consistent=False)
    for level in (0.0, 1.0, 1.5, np.nan):
        with pytest.raises(ModelError, match="between 0 and 1"):
            fit.intervals(level)


def test_an_exciting_motion_tells_more():
    """The motion that was looked for is better conditioned than random series, and keeps to the arm's limits."""
    arm = Z1.tree()
    found = arm.excite(8.0, samples=60, tries=60, rng=1)
    singles = [arm.excite(8.0, samples=60, tries=1, rng=seed).condition for seed in range(4)]
    assert found.condition < min(singles)
    assert (found.q >= arm.lower).all()
    assert (found.q <= arm.upper).all()
    assert (np.abs(found.v) <= arm.velocity_limits).all()
    step = found.t[1] - found.t[0]
    slope = (np.roll(found.q, -1, axis=0) - np.roll(found.q, 1, axis=0)) / (2 * step)  # periodic
    k = 2 * np.pi * 5 / 8.0
    assert np.abs(slope - found.v).max() < 0.2 * (k * step) ** 2 * np.abs(found.v).max() + 1e-9
    Y = np.concatenate(list(arm.compile("regressor")(found.q, found.v, found.a)))[:, list(found.base.columns)]
    assert np.linalg.cond(Y / np.linalg.norm(Y, axis=0)) == pytest.approx(found.condition, rel=1e-6)
    with pytest.raises(UnsupportedError, match="open trees"):
        four_bar().excite(1.0)
