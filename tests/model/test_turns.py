"""Rotations between frames: residuals with one root, rates, steps that close, and half turns."""

from __future__ import annotations

from functools import cache

import casadi as ca
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

import dalembert as da
from dalembert.model.constraints import assemble
from dalembert.model.constraints.primitives import rotation_vector, tilt
from dalembert.model.mechanism.placement import Placement
from tests.reference import PlainKinematics

TURNING = [
    (da.Weld, {}),
    (da.Prismatic, {"axis": (0.6, 0.0, -0.8)}),
    (da.Revolute, {"axis": (0.6, 0.0, -0.8)}),
    (da.Cylindrical, {"axis": (0.6, 0.0, -0.8)}),
    (da.Planar, {"axis": (0.6, 0.0, -0.8)}),
]
"""Every constraint that holds axes parallel."""

FLIPS = [(1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0), (0.6, 0.0, 0.8), (-0.36, 0.48, 0.8), (2.0, -1.0, 3.0)]
"""Axes of half turns."""


@cache
def closing(kind):
    """Return two bodies with a constraint of this kind, compiled once."""
    return two_bodies(kind, dict(TURNING)[kind])


def two_bodies(kind, axes):
    b = da.Builder("two", gravity=(0, 0, 0))
    b.body("one", mass=1.0, inertia=(1, 2, 2.5))
    b.body("two", mass=2.0, inertia=(2, 1.5, 1))
    return b.build(base="floating").constrain(kind("one", "two", **axes))


def turned_by(vector, rng=None):
    """Return q of two bodies of which the first is turned by a rotation vector of the second's axes."""
    base = Rotation.from_quat(rng.standard_normal(4)) if rng is not None else Rotation.identity()
    one = base * Rotation.from_rotvec(vector)
    return np.concatenate([[0.1, 0.2, 0.3], one.as_quat(), [-0.2, 0.3, 0.1], base.as_quat()])


@pytest.mark.parametrize("axis", FLIPS)
@pytest.mark.parametrize("angle", [0.0, 1e-15, 1e-9, 1e-4, 0.5, 2.0, 2.2, 3.0, np.pi - 1e-4, np.pi - 1e-9, np.pi])
def test_rotation_vectors_have_all_digits(axis, angle):
    theta = angle * np.array(axis) / np.linalg.norm(axis)
    R = Rotation.from_rotvec(theta).as_matrix()
    found = rotation_vector(R)[:, 0]
    again = np.array(ca.Function("f", [], [rotation_vector(ca.SX(R))])()["o0"])[:, 0]
    np.testing.assert_allclose(found, again, atol=1e-15)
    if np.isclose(angle, np.pi, atol=1e-12) and found @ theta < 0:
        found = -found
    np.testing.assert_allclose(found, theta, rtol=1e-14, atol=1e-15)


@given(st.floats(0, np.pi), st.floats(-np.pi, np.pi))
def test_tilts_are_the_shortest_turn_onto_the_axis(polar, azimuth):
    """Turning (x, y, z) by the tilt gives (0, 0, 1): also from the opposite, where any axis across would do."""
    u = np.array([np.sin(polar) * np.cos(azimuth), np.sin(polar) * np.sin(azimuth), np.cos(polar)])
    turn = tilt(*(np.full((1, 1), x) for x in u))[:, 0]
    assert np.linalg.norm(turn) == pytest.approx(polar, abs=1e-12)
    np.testing.assert_allclose(Rotation.from_rotvec([*turn, 0.0]).apply(u), [0, 0, 1], atol=3e-9)


@pytest.mark.parametrize(("kind", "axes"), TURNING)
def test_only_the_aligned_position_is_closed(kind, axes):
    """Half a turn about any axis across is as far as can be, and the Jacobian keeps its rank there."""
    mechanism = two_bodies(kind, axes)
    angular = np.array(mechanism.all_constraints[0].angular())
    free = np.array(axes["axis"]) if kind in (da.Revolute, da.Cylindrical, da.Planar) else np.zeros(3)
    for axis in FLIPS:
        across = np.array(axis) - free * (free @ axis)
        q = turned_by(np.pi * across / np.linalg.norm(across), np.random.default_rng(3))
        assert np.linalg.norm(mechanism.constraint(q)[angular]) == pytest.approx(np.pi, abs=1e-7)
        assert np.linalg.matrix_rank(mechanism.jacobian(q), tol=1e-6) == len(mechanism.names)


@pytest.mark.parametrize(("kind", "axes"), TURNING)
def test_where_it_is_closed_the_rate_is_the_derivative_and_the_drift_the_second(kind, axes):
    """d phi/dt = rate at phi = 0 for any v; d^2 phi/dt^2 = A a + drift for admissible v; by central differences."""
    mechanism = two_bodies(kind, axes)
    rng = np.random.default_rng(0)
    q, v = mechanism.project(turned_by([0.3, -0.2, 0.4], rng), rng.standard_normal(12))
    assert abs(mechanism.constraint_velocity(q, v)).max() < 1e-12
    h = 1e-4
    for speed, admissible in ((v, True), (rng.standard_normal(12), False)):
        before, here, after = (mechanism.constraint(mechanism.integrate(q, k * h * speed)) for k in (-1, 0, 1))
        np.testing.assert_allclose((after - before) / (2 * h), mechanism.constraint_velocity(q, speed), atol=1e-6)
        if admissible:
            np.testing.assert_allclose((after - 2 * here + before) / h**2, mechanism.drift(q, speed), atol=1e-5)


@pytest.mark.parametrize(("kind", "axes"), TURNING)
@given(st.integers(0, 10**6))
def test_projection_closes_from_any_turn(kind, axes, seed):
    """From random rotations and from exact half turns `project` finds the aligned position, never the opposite one."""
    mechanism = closing(kind)
    rng = np.random.default_rng(seed)
    vector = rng.standard_normal(3)
    vector *= (np.pi if seed % 2 else rng.uniform(0, np.pi)) / np.linalg.norm(vector)
    q = mechanism.project(turned_by(vector, rng))
    one, two = Rotation.from_quat(q[3:7]), Rotation.from_quat(q[10:14])
    relative = (two.inv() * one).as_matrix()
    if kind in (da.Weld, da.Prismatic):
        np.testing.assert_allclose(relative, np.eye(3), atol=1e-10)
    else:
        np.testing.assert_allclose(relative @ axes["axis"], axes["axis"], atol=1e-10)


def test_a_weld_moves_about_the_axis_of_the_turn_in_one_step():
    """Of a body alone the step by the rotation vector is exact, whatever the angle."""
    b = da.Builder("one", gravity=(0, 0, 0))
    b.body("one", mass=1.0, inertia=(1, 1, 1))
    mechanism = b.build(base="floating").constrain(da.Weld("one", at=(0, 0, 0)))
    q = np.array([0, 0, 0, *Rotation.from_rotvec([1.0, -2.0, 2.1]).as_quat()])
    step = mechanism.compile("project_step")(q, np.zeros(1))[0]
    np.testing.assert_allclose(mechanism.constraint(mechanism.integrate(q, step)), 0, atol=1e-14)


def test_a_hinge_that_can_only_be_assembled_the_wrong_way_round_is_refused():
    """A link whose axis is fixed in the plane cannot turn it over: the row is named, with half a turn."""
    b = da.Builder("flat", gravity=(0, 0, 0))
    for i in range(2):
        b.body(f"link{i}", mass=1.0, center=(0.5, 0, 0), inertia=(0.1, 0.1, 0.1))
        b.joint(f"hinge{i}", "revolute", parent=f"link{i - 1}" if i else "world", child=f"link{i}", axis=(0, 0, 1),
                position=(1.0 if i else 0.0, 0, 0))  # fmt: skip
    turned = Placement.from_quaternion((1.0, 0.0, 0.0, 0.0), (1.2, 0.3, 0.0))
    flat = b.build().constrain(da.Revolute("link1", placement=(1, 0, 0), at=turned, axis=(0, 0, 1), name="pin"))
    with pytest.raises(da.SolvabilityError, match=r"pin: rotation about y' \(3\.1\)"):
        flat.project([0.4, 0.5])
    assert np.isnan(flat.project(np.array([[0.4, 0.5]]))).all()


@pytest.mark.parametrize(("kind", "axes"), TURNING)
def test_stabilisation_turns_back_from_far(kind, axes):
    """The rate of turning decays by kp times the angle times its axis: both sides of phi'' = -kp phi, at rest."""
    mechanism = two_bodies(kind, axes | {"stabilize": (4.0, 1.0)})
    q = turned_by([0.9, -2.0, 1.5], np.random.default_rng(1))
    a = mechanism.forward(q, np.zeros(12), np.zeros(12), 0.0).acceleration
    np.testing.assert_allclose(mechanism.jacobian(q) @ a, -4.0 * mechanism.constraint(q), atol=1e-10)


def test_plain_twin_at_half_turns():
    for kind, axes in TURNING:
        mechanism = two_bodies(kind, axes)
        for axis in FLIPS:
            q = turned_by(np.pi * np.array(axis) / np.linalg.norm(axis))
            plain = assemble(PlainKinematics(mechanism, q, np.zeros(12), 0.0)).residual[:, 0]
            found = mechanism.constraint(q)
            np.testing.assert_allclose(np.linalg.norm(found), np.linalg.norm(plain), atol=1e-9)
