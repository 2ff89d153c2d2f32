"""What does not depend on how a mechanism is described: joints in the tree or as loops, order, balance of energy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dalembert as da
from dalembert.model.constraints import assemble
from dalembert.model.joints import KINDS as JOINTS
from dalembert.model.mechanism.placement import Placement
from tests import reference as plain
from tests.model.mechanisms import random_tree
from tests.reference import PlainKinematics, State

TREE_AND_LOOP = [
    ("spherical", da.Point, {}),
    ("fixed", da.Weld, {}),
    ("revolute", da.Revolute, {"axis": (0.6, 0.0, -0.8)}),
    ("continuous", da.Revolute, {"axis": (0.0, 0.0, 1.0)}),
    ("prismatic", da.Prismatic, {"axis": (0.6, 0.0, -0.8)}),
    ("planar", da.Planar, {"axis": (0.6, 0.0, -0.8)}),
    ("universal", da.Universal, {"axis": (0.6, 0.0, -0.8), "axis2": (0.0, 1.0, 0.0)}),
]


def accelerate(mechanism, q, v, tau):
    """Return accelerations by plain algorithms and `KKT`."""
    state = State.at(mechanism, q, v)
    rows = assemble(PlainKinematics(mechanism, q, v))
    bias = plain.rnea(state, v, np.zeros(mechanism.nv))
    K = da.KKT(plain.crba(state), rows.jacobian, mechanism.names, mechanism.coordinates)
    return K.solve(tau - bias, rows.drift[:, 0], inconsistent="least_squares").acceleration  # conflicts of rounding


def body_accelerations(mechanism, q, v, tau):
    """Return [a; wd] of the bodies "one" and "two" in world axes."""
    a = accelerate(mechanism, q, v, tau)
    frames = [PlainKinematics(mechanism, q, v).frame(name) for name in ("one", "two")]
    return np.concatenate([frame.jacobian @ a + frame.drift[:, 0] for frame in frames])


def parts(rng):
    """Return a builder with two bodies, and where the joint is on each."""
    b = da.Builder("two")
    for name in ("two", "one"):
        b.body(name, mass=rng.uniform(0.5, 2), center=rng.uniform(-0.2, 0.2, 3), inertia=rng.uniform(0.6, 1.0, 3))
    places = [Placement.from_quaternion(rng.standard_normal(4), rng.uniform(-1, 1, 3)) for _ in "ab"]
    return b, *places


@pytest.mark.parametrize(("kind", "constraint", "axes"), TREE_AND_LOOP)
@given(st.integers(0, 10**6))
def test_a_joint_of_the_tree_and_a_loop_move_alike(kind, constraint, axes, seed):
    """Body two flies and carries body one by a joint; or both fly, and a constraint closes the loop."""
    rng = np.random.default_rng(seed)
    b, on_two, on_one = parts(rng)
    turned = {"axis": axes["axis2"], "axis2": axes["axis"]} if kind == "universal" else axes  # axis is on `frame` there
    b.joint("j", kind, parent="two", child="one", placement=on_two, child_placement=on_one, **turned)
    in_tree = b.build(base="floating")
    q, v = in_tree.random(rng), rng.standard_normal(in_tree.nv)
    moving = PlainKinematics(in_tree, q, v)

    b, _, _ = parts(np.random.default_rng(seed))
    loop = constraint("one", "two", placement=on_one, at=on_two, **axes)
    free = b.build(base="floating").constrain(loop)
    q_free, v_free = [], []
    for name in ("two", "one"):
        frame = moving.frame(name)
        place = Placement(frame.rotation, frame.position[:, 0])
        q_free += [*place.position, *place.quaternion()]
        v_free += [*(frame.rotation.T @ frame.v)[:, 0], *(frame.rotation.T @ frame.w)[:, 0]]
    rows = assemble(PlainKinematics(free, q_free, v_free))
    np.testing.assert_allclose(rows.residual, 0, atol=1e-13)
    np.testing.assert_allclose(rows.rate, 0, atol=1e-12)
    expected = body_accelerations(in_tree, q, v, np.zeros(in_tree.nv))
    found = body_accelerations(free, np.array(q_free), np.array(v_free), np.zeros(12))
    np.testing.assert_allclose(found, expected, atol=1e-9 * (1 + np.abs(expected).max()))


def constrained_tree(seed):
    """Return a random tree with a loop and a contact, an admissible velocity and forces."""
    kinds = [kind for kind in JOINTS if kind != "fixed"]
    mechanism = random_tree(seed, 6, kinds)
    loop = da.Point("f3", "f5") if seed % 2 else da.Distance("f3", "f5", length=1.0)
    mechanism = mechanism.constrain(loop, da.PointInPlane("f4", normal=(1, 2, 3)))
    rng = np.random.default_rng(seed)
    q, v, tau = mechanism.random(rng), rng.standard_normal(mechanism.nv), rng.standard_normal(mechanism.nv)
    A = assemble(PlainKinematics(mechanism, q, v)).jacobian
    return mechanism, q, v - np.linalg.pinv(A) @ A @ v, tau


@given(st.integers(0, 10**6))
def test_constraint_forces_do_no_work(seed):
    """d'Alembert: along an admissible motion the energy changes by the power of the applied forces alone."""
    mechanism, q, v, tau = constrained_tree(seed)
    a = accelerate(mechanism, q, v, tau)
    h = 1e-5

    def energy(step):
        moved = mechanism.integrate(q, step * v + step**2 / 2 * a)
        return sum(plain.energy(State.at(mechanism, moved), v + step * a))

    change = (energy(h) - energy(-h)) / (2 * h)
    assert change == pytest.approx(tau @ v, abs=1e-6 * (1 + np.abs(v).max() * np.abs(a).max() * 10))


@given(st.integers(0, 10**6))
def test_gauss_least_constraint(seed):
    """Of all accelerations that the rows allow, the actual one is nearest to the free one in the metric M."""
    mechanism, q, v, tau = constrained_tree(seed)
    a, free = accelerate(mechanism, q, v, tau), accelerate(mechanism.open_tree(), q, v, tau)
    M, A = plain.crba(State.at(mechanism, q)), assemble(PlainKinematics(mechanism, q, v)).jacobian
    null = np.linalg.svd(A)[2][np.linalg.matrix_rank(A) :]
    slope = null @ M @ (a - free)
    np.testing.assert_allclose(slope, 0, atol=1e-9 * (1 + np.abs(M).max() * np.abs(a - free).max()))


@given(st.integers(0, 10**6))
def test_order_of_bodies_does_not_matter(seed):
    """The same parts with every body's children the other way round: accelerations agree by name."""
    mechanism, q, v, tau = constrained_tree(seed)
    b = da.Builder(mechanism.name)
    for body in mechanism.bodies:
        b.body(body.name, inertia=body.inertia)
    b.joints = {joint.name: joint for joint in reversed(mechanism.joints)}
    b.frames = {frame.name: frame for frame in mechanism.frames}
    other = replace(b.build(), constraints=mechanism.constraints)
    iq = np.concatenate([np.arange(mechanism.nq)[mechanism.index_q(joint.name)] for joint in other.joints])
    iv = np.concatenate([np.arange(mechanism.nv)[mechanism.index_v(joint.name)] for joint in other.joints])
    a = accelerate(mechanism, q, v, tau)
    np.testing.assert_allclose(accelerate(other, q[iq], v[iv], tau[iv]), a[iv], atol=1e-8 * (1 + np.abs(a).max()))
