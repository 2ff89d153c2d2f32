"""Configurations on their manifolds, against Pinocchio; next to 0 and pi, and far beyond."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dalembert as da
from dalembert.model.joints import KINDS
from dalembert.model.joints import rotations as quat
from tests.model.mechanisms import row_of_joints

MECHANISM, MODEL = row_of_joints()
seeds = st.integers(0, 2**32 - 1)
sizes = st.sampled_from([0.0, 1e-300, 1e-16, 1e-12, 1e-8, 1e-4, 1e-2, 0.3, 1.0, 2.0])


def state(seed, size=1.0):
    rng = np.random.default_rng(seed)
    return MECHANISM.random(rng), size * rng.uniform(-1, 1, MECHANISM.nv)


def alone(kind):
    """Return a mechanism with one joint of a kind."""
    builder = da.Builder(kind)
    builder.body("b")
    builder.joint("j", kind, parent="world", child="b", axis=(0, 0, 1), pitch=0.2)
    return builder.build()


def same_configuration(mechanism, q0, q1, atol=1e-13):
    """Compare configurations; a quaternion and its negative are one rotation."""
    for joint in mechanism.joints:
        a, b = q0[mechanism.index_q(joint.name)], q1[mechanism.index_q(joint.name)]
        if joint.kind in ("spherical", "free"):
            a, b = (np.concatenate([x[:-4], x[-4:] * np.sign(x[-4:] @ a[-4:])]) for x in (a, b))
        np.testing.assert_allclose(a, b, atol=atol, rtol=1e-13)


def test_sizes_and_neutral_are_pinocchios():
    assert (MECHANISM.nq, MECHANISM.nv) == (MODEL.nq, MODEL.nv)
    np.testing.assert_array_equal(MECHANISM.neutral(), pin.neutral(MODEL))


@given(seeds, sizes)
def test_integrate_is_pinocchios(seed, size):
    q, v = state(seed, size)
    same_configuration(MECHANISM, MECHANISM.integrate(q, v), pin.integrate(MODEL, q, v))


@given(seeds, seeds)
def test_difference_is_pinocchios(seed, other):
    q0, q1 = MECHANISM.random(seed), MECHANISM.random(other)
    np.testing.assert_allclose(MECHANISM.difference(q0, q1), pin.difference(MODEL, q0, q1), atol=1e-9)


@given(seeds, seeds, st.floats(0, 1))
def test_interpolate_is_pinocchios(seed, other, u):
    """To 1e-9: Pinocchio's logarithm of a plane motion loses digits next to a half turn; u = 1 shows it."""
    q0, q1 = MECHANISM.random(seed), MECHANISM.random(other)
    same_configuration(MECHANISM, MECHANISM.interpolate(q0, q1, u), pin.interpolate(MODEL, q0, q1, u), atol=1e-9)
    same_configuration(MECHANISM, MECHANISM.interpolate(q0, q1, 1.0), q1, atol=1e-12)


@given(seeds, sizes)
def test_difference_undoes_integrate(seed, size):
    q, v = state(seed, size)
    np.testing.assert_allclose(MECHANISM.difference(q, MECHANISM.integrate(q, v)), v, rtol=1e-11, atol=4e-15)


@given(seeds, seeds)
def test_integrate_undoes_difference(seed, other):
    q0, q1 = MECHANISM.random(seed), MECHANISM.random(other)
    same_configuration(MECHANISM, MECHANISM.integrate(q0, MECHANISM.difference(q0, q1)), q1, atol=1e-12)


@given(seeds)
def test_rate_is_the_derivative_of_integrate(seed):
    q, v = state(seed)
    h = 1e-6
    numeric = (MECHANISM.integrate(q, h * v) - MECHANISM.integrate(q, -h * v)) / (2 * h)
    np.testing.assert_allclose(MECHANISM.rate(q, v), numeric, atol=1e-8)


@given(seeds, st.floats(-9, -1) | st.just(-np.inf))
def test_rotations_next_to_pi(seed, exponent):
    """The logarithm of a rotation by pi - d keeps all digits of the vector, where that of a matrix loses half."""
    rng = np.random.default_rng(seed)
    axis = rng.standard_normal(3)
    w = axis / np.linalg.norm(axis) * (np.pi - 10.0**exponent)
    back = quat.logarithm(quat.exponential(w))
    np.testing.assert_allclose(back * np.sign(back @ w), w, rtol=1e-14, atol=1e-15)
    linear = rng.standard_normal(3)
    np.testing.assert_allclose(quat.left_jacobian_inverse(w, quat.left_jacobian(w, linear)), linear, atol=1e-13)


@pytest.mark.parametrize("angle", [0.0, 1e-300, 1e-160, 1e-20, 1e-9, 1e-3, 0.0099, 0.0101, 0.1])
def test_tiny_rotations_keep_their_digits(angle):
    w = angle * np.array([0.6, 0.0, -0.8])
    np.testing.assert_allclose(quat.logarithm(quat.exponential(w)), w, rtol=1e-15)
    q = alone("planar").integrate([0, 0, 1, 0], [0.3, -0.2, angle])
    np.testing.assert_allclose(alone("planar").difference([0, 0, 1, 0], q), [0.3, -0.2, angle], rtol=1e-13)


@pytest.mark.parametrize("turns", [1, 7, 1000])
def test_large_rotations_wrap(turns):
    """A velocity of many turns leads to the rest of the division by 2 pi."""
    w = np.array([0.0, 0.0, 1.0])
    q = alone("spherical").integrate([0, 0, 0, 1], w * (2 * np.pi * turns + 0.5))
    np.testing.assert_allclose(alone("spherical").difference([0, 0, 0, 1], q), 0.5 * w, atol=1e-12)
    q = alone("continuous").integrate([1, 0], [2 * np.pi * turns + 0.5])
    np.testing.assert_allclose(alone("continuous").difference([1, 0], q), [0.5], atol=1e-12)


def test_many_small_steps_stay_on_the_manifold():
    mechanism = alone("free")
    q = mechanism.neutral()
    for _ in range(2000):
        q = mechanism.integrate(q, [0.01, 0, 0, 0.3, 0.2, -0.1])
    assert abs(np.linalg.norm(q[3:]) - 1) < 1e-15


@pytest.mark.parametrize("kind", KINDS)
def test_batches_are_their_samples(kind):
    mechanism = alone(kind)
    rng = np.random.default_rng(1)
    q0, q1 = mechanism.random(rng, (3, 2)), mechanism.random(rng, (3, 2))
    v, u = rng.standard_normal((3, 2, mechanism.nv)), rng.random((3, 2))
    batch = [
        mechanism.integrate(q0, v),
        mechanism.difference(q0, q1),
        mechanism.interpolate(q0, q1, u),
        mechanism.normalize(2 * q0),
        mechanism.rate(q0, v),
    ]
    for i in np.ndindex(3, 2):
        one = [
            mechanism.integrate(q0[i], v[i]),
            mechanism.difference(q0[i], q1[i]),
            mechanism.interpolate(q0[i], q1[i], u[i]),
            mechanism.normalize(2 * q0[i]),
            mechanism.rate(q0[i], v[i]),
        ]
        for whole, single in zip(batch, one, strict=True):
            np.testing.assert_array_equal(whole[i], single)


def test_one_configuration_serves_a_batch_of_velocities():
    q, v = state(0)[0], np.zeros((4, MECHANISM.nv))
    assert MECHANISM.integrate(q, v).shape == (4, MECHANISM.nq)
    assert MECHANISM.interpolate(q, q, np.linspace(0, 1, 5)).shape == (5, MECHANISM.nq)


def test_random_keeps_the_limits():
    builder = da.Builder("limits")
    for name, kind, limits in [
        ("both", "revolute", (-0.5, 0.25)),
        ("low", "prismatic", (3, np.inf)),
        ("high", "revolute", (-np.inf, -8)),
        ("none", "prismatic", None),
        ("plate", "planar", ([-0.1, 2, -np.inf], [0.1, 2.5, np.inf])),
        ("flies", "free", ([5, 6, 7, -9, -9, -9], [5.5, 6.5, 7.5, 9, 9, 9])),
    ]:
        builder.body(name)
        builder.joint(f"j_{name}", kind, parent="world", child=name, limits=limits, axis=(0, 0, 1))
    mechanism = builder.build()
    q = mechanism.random(0, 1000)
    at = {joint.name: q[:, mechanism.index_q(joint.name)] for joint in mechanism.joints}
    assert at["j_both"].min() >= -0.5
    assert at["j_both"].max() <= 0.25
    assert np.ptp(at["j_both"]) > 0.7
    assert (at["j_low"] >= 3).all()
    assert (at["j_high"] <= -8).all()
    assert np.abs(at["j_none"]).max() <= 1
    assert at["j_plate"][:, 1].min() >= 2
    assert at["j_flies"][:, 2].max() <= 7.5
    np.testing.assert_allclose(np.linalg.norm(at["j_flies"][:, 3:], axis=1), 1, rtol=1e-15)
    np.testing.assert_array_equal(q, mechanism.random(0, 1000))


def test_random_rotations_are_uniform():
    """Uniform on SO(3): the mean of R is zero, and each entry has variance 1/3."""
    q = alone("spherical").random(0, 20000)
    R = np.array([pin.Quaternion(x).matrix() for x in q[:5000]])
    np.testing.assert_allclose(R.mean(axis=0), 0, atol=0.03)
    np.testing.assert_allclose((R**2).mean(axis=0), 1 / 3, atol=0.02)


def test_normalize_and_states_off_the_manifold():
    mechanism = alone("free")
    q = mechanism.neutral() * 3
    np.testing.assert_array_equal(mechanism.normalize(q), mechanism.neutral())
    with pytest.raises(da.ModelError, match=r"q\[3:7\] of a free joint is zero throughout"):
        mechanism.normalize(np.zeros(7))
    with pytest.raises(da.ModelError, match=r"free joint should have length one.*normalize"):
        mechanism.manifold.refuse_off_manifold(q)
    mechanism.manifold.refuse_off_manifold(mechanism.neutral() * (1 + 1e-8))
    with pytest.raises(da.ModelError, match="free joint should have length one"):
        mechanism.manifold.refuse_off_manifold(np.full(7, np.nan))
    mechanism.manifold.refuse_off_manifold(np.full((2, 7), np.nan))


def test_wrong_shapes_are_refused_with_both_numbers():
    with pytest.raises(da.ShapeError, match=r"q must have shape \(7,\).*it has \(3,\)"):
        alone("free").integrate(np.zeros(3), np.zeros(6))
    with pytest.raises(da.ShapeError, match=r"v must have shape \(6,\)"):
        alone("free").integrate(np.zeros(7), np.zeros(7))
    with pytest.raises(da.ShapeError, match="batches must agree"):
        alone("free").integrate(np.zeros((2, 7)), np.zeros((3, 6)))
    with pytest.raises(da.ShapeError, match="must be real numbers"):
        alone("free").integrate("seven", np.zeros(6))


def test_a_mechanism_without_coordinates():
    mechanism = alone("fixed")
    assert mechanism.neutral().shape == mechanism.random(0).shape == (0,)
    assert mechanism.integrate(np.zeros((4, 0)), np.zeros((4, 0))).shape == (4, 0)
