"""Kinds of joints: motion, subspace, bias and rate against Pinocchio and against their own derivatives."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pinocchio as pin
import pytest

from dalembert.model.joints import KINDS, as_array, as_expression
from dalembert.model.joints.rotations import plane
from tests.model.mechanisms import CASES, OBLIQUE, make_joint, pinocchio_joint

EVERY = [*CASES, ("planar", "x"), ("planar", "y"), ("planar", OBLIQUE), ("continuous", OBLIQUE), ("fixed", "x")]


def state(kind, seed=0):
    rng = np.random.default_rng(seed)
    unlimited = np.full(kind.nv, np.inf)
    return kind.random(rng, -unlimited, unlimited, ()), rng.standard_normal(kind.nv)


def test_every_kind_is_compared():
    assert {kind for kind, _ in EVERY} == set(KINDS)


@pytest.mark.parametrize(("name", "axis"), CASES)
def test_motion_subspace_and_bias_are_pinocchios(name, axis):
    """On a joint between the ground and a body, S is the body's Jacobian and the bias its acceleration at a = 0."""
    kind, joint = KINDS[name], make_joint(name, axis)
    model = pin.Model()
    model.addJoint(0, pinocchio_joint(name, axis), pin.SE3.Identity(), "j")
    data = model.createData()
    q, v = state(kind)
    pin.forwardKinematics(model, data, q, v, np.zeros(model.nv))
    R, p = kind.motion(joint, list(q))
    assert (kind.nq, kind.nv) == (model.nq, model.nv)
    np.testing.assert_allclose(as_array(R), data.oMi[1].rotation, atol=1e-14)
    np.testing.assert_allclose(as_array(p), data.oMi[1].translation, atol=1e-14)
    S = pin.computeJointJacobian(model, data, q, 1).reshape(6, model.nv)
    np.testing.assert_allclose(as_array(kind.subspace(joint, list(q))), S, atol=1e-14)
    np.testing.assert_allclose(as_array(kind.bias(joint, list(q), list(v))), data.a[1].vector, atol=1e-14)


@pytest.mark.parametrize(("name", "axis"), EVERY)
def test_rate_and_subspace_are_the_derivative_of_the_motion(name, axis):
    """d/dt X_FG = X_FG [S v]x with dq/dt = N(q) v, and d/dt (S v) at a = 0 is the bias."""
    kind, joint = KINDS[name], make_joint(name, axis)
    q, v = ca.SX.sym("q", kind.nq), ca.SX.sym("v", kind.nv)
    parts_q, parts_v = ca.vertsplit(q) if kind.nq else [], ca.vertsplit(v) if kind.nv else []
    R, p = (as_expression(each) for each in kind.motion(joint, parts_q))
    S = as_expression(kind.subspace(joint, parts_q))
    rate = as_expression(kind.rate(parts_q, parts_v)) if kind.nq else ca.SX(0, 1)
    twist = S @ v if kind.nv else ca.SX.zeros(6)
    along = [ca.jtimes(x, q, rate) if kind.nq else 0 * x for x in (R, p, twist)]
    errors = [along[0] - R @ ca.skew(twist[3:]), along[1] - R @ twist[:3]]
    errors.append(along[2] - as_expression(kind.bias(joint, parts_q, parts_v)))
    errors.append(R.T @ R - ca.SX.eye(3))
    numbers = ca.Function("e", [q, v], errors)(*state(kind, 3))
    for error in numbers:
        np.testing.assert_allclose(np.array(error), 0, atol=1e-14)


@pytest.mark.parametrize(("name", "axis"), EVERY)
def test_expressions_and_arrays_are_one_formula(name, axis):
    kind, joint = KINDS[name], make_joint(name, axis)
    q = np.stack([state(kind, seed)[0] for seed in range(4)])
    R, p = (as_array(each) for each in kind.motion(joint, list(q.T)))
    symbol = ca.SX.sym("q", kind.nq)
    parts = ca.vertsplit(symbol) if kind.nq else []
    function = ca.Function("X", [symbol], [as_expression(each) for each in kind.motion(joint, parts)])
    for i in range(4):
        turned, moved = function(q[i])
        np.testing.assert_allclose(np.broadcast_to(R, (4, 3, 3))[i], turned, atol=1e-15)
        np.testing.assert_allclose(np.broadcast_to(p, (4, 3))[i], np.array(moved)[:, 0], atol=1e-15)


def test_constant_entries_stay_constant():
    """A hinge about z turns x and y only: four entries depend on q, one is 1, the others are structural zeros."""
    q = ca.SX.sym("q")
    R, p = KINDS["revolute"].motion(make_joint("revolute", "z"), [q])
    assert as_expression(R).nnz() == 5
    assert as_expression(p).nnz() == 0
    assert R[2][2] == 1.0


@pytest.mark.parametrize("axis", [(1, 0, 0), (0, 1, 0), (0, 0, 1), (0, 0, -1), OBLIQUE])
def test_directions_of_a_plane_are_right_handed(axis):
    e1, e2 = plane(axis)
    frame = np.column_stack([e1, e2, axis])
    np.testing.assert_allclose(frame.T @ frame, np.eye(3), atol=1e-15)
    assert np.linalg.det(frame) > 0


def test_directions_of_the_coordinate_planes():
    assert plane((0, 0, 1)) == ([1, 0, 0], [0, 1, 0])
    assert plane((1, 0, 0)) == ([0, 1, 0], [0, 0, 1])
    assert plane((0, 1, 0)) == ([0, 0, 1], [1, 0, 0])
