"""Mechanisms as MJCF: MuJoCo's mass matrix, bias and loop rows are ours; what joints carry; what is left out."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import dalembert as da
from tests.bridges.models import batch, four_bar, linkage
from tests.tree.robots import URDFS, robot


def opened(mechanism, q, v):
    """Return MuJoCo's model and data of the text, at a state: quaternions are [w x y z] there."""
    model = mujoco.MjModel.from_xml_string(mechanism.to_mjcf())
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = q, v
    mujoco.mj_forward(model, data)
    M = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, M)
    return model, data, M


def test_a_loop_has_the_same_rows():
    """Two points stand for a hinge: six rows that span our five."""
    m = four_bar()
    q, v = m.assemble([1.0, -0.7, -1.5]).q, np.array([0.3, 0.2, -0.4])
    _, data, M = opened(m, q, v)
    np.testing.assert_allclose(M, m.mass_matrix(q), rtol=0, atol=1e-13)
    np.testing.assert_allclose(data.qfrc_bias, m.bias(q, v), rtol=0, atol=1e-12)
    theirs, ours = data.efc_J.reshape(-1, 3)[: data.ne], m.jacobian(q)
    assert data.ne == 6
    assert np.abs(data.efc_pos[: data.ne]).max() < 1e-10
    ranks = [np.linalg.matrix_rank(rows, 1e-9) for rows in (theirs, ours, np.vstack([theirs, ours]))]
    assert ranks == [2, 2, 2]


def test_an_arm_and_its_bearings():
    """UR5: mass matrix and bias; armature, damping and friction of joints arrive."""
    mechanism, _, _ = robot(next(file for file in URDFS if file.endswith("/ur5_robot.urdf")), "fixed")
    from dataclasses import replace

    joints = tuple(
        replace(joint, armature=(0.1,), damping=(0.2,), friction=(0.3,)) if joint.kind == "revolute" else joint
        for joint in mechanism.joints
    )
    m = replace(mechanism, joints=joints)
    q, v, _ = batch(m, None)
    model, data, M = opened(m, q, v)
    np.testing.assert_allclose(M, m.mass_matrix(q), rtol=0, atol=1e-12)
    np.testing.assert_allclose(data.qfrc_bias, m.with_passive(False).bias(q, v), rtol=0, atol=1e-10)
    assert model.dof_armature == pytest.approx(0.1)
    assert model.dof_frictionloss == pytest.approx(0.3)
    assert model.dof_damping == pytest.approx(0.2 if m.passive else 0.0)


def test_a_flying_body_with_a_cardan_joint():
    b = da.Builder("bird")
    for name in ("trunk", "wing"):
        b.body(name, mass=1.0, inertia=(0.02, 0.03, 0.04), center=(0.1, 0.05, -0.2))
    b.joint("base", "free", "world", "trunk")
    b.joint("shoulder", "universal", "trunk", "wing", axis=(1, 0, 0), axis2=(0, 1, 0), position=(0, 0.3, 0))
    m = b.build()
    q, v, _ = batch(m, None)
    theirs = q.copy()
    theirs[3:7] = q[[6, 3, 4, 5]]
    R = m.kinematics(q, "trunk")[0]
    turned = v.copy()
    turned[:3] = R @ v[:3]  # MuJoCo's linear velocity of a free joint is in world axes
    M = opened(m, theirs, turned)[2]
    T = np.eye(m.nv)
    T[:3, :3] = R
    np.testing.assert_allclose(T.T @ M @ T, m.mass_matrix(q), rtol=0, atol=1e-13)


def test_what_cannot_be_said_is_named():
    with pytest.warns(da.ModelWarning, match=r"'rod' \(distance\)"):
        linkage().to_mjcf()
    with pytest.raises(da.UnsupportedError, match="'rod'"):
        linkage().to_mjcf(strict=True)
