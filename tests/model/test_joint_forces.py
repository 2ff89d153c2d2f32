"""Joint forces: against Pinocchio, MuJoCo, and the equations of bodies cut free; uniqueness, choice, cut and root."""

from __future__ import annotations

import itertools

import mujoco
import numpy as np
import pinocchio as pin
import pytest

import dalembert as da
from tests.reference.free_bodies import FreeBodies
from tests.simulate import overconstrained
from tests.tree import closed
from tests.tree.contacts import GO2

Z = (0, 0, 1)


def state(mechanism, seed=0, start=None):
    """Return a closed configuration, an admissible velocity and joint forces."""
    rng = np.random.default_rng(seed)
    q = mechanism.assemble(mechanism.neutral() if start is None else start).q
    v = mechanism.project(q, rng.standard_normal(mechanism.nv))[1]
    return q, v, rng.standard_normal(mechanism.nv)


# ----------------------------------------------------------------------------------------------------------------------
# Open trees: others' Newton-Euler.


def test_wrenches_of_a_tree_are_pinocchios_data_f():
    """The parent's force on the child in the joint's axes; Go2 flies, so that its base gets what motors give it."""
    robot, model = GO2.tree(), GO2.pinocchio()
    rng = np.random.default_rng(1)
    q, v, tau = robot.random(rng, 3), rng.standard_normal((3, robot.nv)), rng.standard_normal((3, robot.nv))
    forces = robot.joint_forces(q, v, tau)
    data = model.createData()
    for k in range(3):
        pin.rnea(model, data, q[k], v[k], pin.aba(model, data, q[k], v[k], tau[k]))
        for joint in robot.joints:
            if joint.kind == "revolute":
                expected = data.f[model.getJointId(joint.name)].vector
                np.testing.assert_allclose(forces[joint.name].wrench[k], expected, atol=1e-10)
    assert forces.unique.all()
    np.testing.assert_allclose(forces[robot.joints[0].name].working, tau[:, :6], atol=1e-9)
    knee = forces["FL_calf_joint"]
    axis = np.array([*np.zeros(3), *robot.joint("FL_calf_joint").axis])
    np.testing.assert_allclose(knee.working @ axis, tau[:, robot.index_v("FL_calf_joint")][:, 0], atol=1e-10)
    np.testing.assert_allclose(knee.constraint @ axis, 0, atol=1e-10)


ARM = """
<mujoco><option gravity="0.3 -0.2 -9.81"/><worldbody>
  <body pos="0.1 0 0.2" euler="20 10 0"><joint name="j1" type="hinge" axis="0 0 1" pos="0 0 0.1"/>
    <inertial pos="0.1 0.05 0.1" mass="2" fullinertia="0.03 0.04 0.05 0.002 0.001 0.003"/>
    <body name="plate" pos="0.2 0 0.1"><inertial pos="0 0.1 0" mass="0.5" diaginertia="0.01 0.01 0.02"/>
      <body pos="0.3 0.1 0" euler="0 40 0"><joint name="j2" type="slide" axis="1 0 0"/>
        <inertial pos="0 0 0.2" mass="1" diaginertia="0.02 0.02 0.01"/>
        <body pos="0 0 0.3"><joint name="j3" type="ball"/>
          <inertial pos="0.1 0 0" mass="0.7" diaginertia="0.01 0.03 0.02"/></body></body></body></body>
</worldbody></mujoco>"""


def test_wrenches_with_sliders_balls_and_welds_are_mujocos_cfrc_int(tmp_path):
    """Interaction forces of MuJoCo are in world axes about the centre of mass of the tree, [moment; force]."""
    file = tmp_path / "arm.xml"
    file.write_text(ARM)
    arm = da.load(file)
    model = mujoco.MjModel.from_xml_string(ARM)
    data = mujoco.MjData(model)
    rng = np.random.default_rng(2)
    q, v = arm.random(rng), rng.standard_normal(arm.nv)
    there = da.readers.state_map(arm, "mujoco")
    data.qpos[:], data.qvel[:] = there.to_q(q), there.to_v(q, v)
    mujoco.mj_forward(model, data)
    mujoco.mj_rnePostConstraint(model, data)
    forces = arm.joint_forces(q, v, axes="world")
    for i, at in enumerate(forces.table):
        body = i + 1
        R, p = arm.kinematics(q, at.child)
        point = p + R @ at.place.position
        moment, force = data.cfrc_int[body, :3], data.cfrc_int[body, 3:]
        lever = point - data.subtree_com[model.body_rootid[body]]
        np.testing.assert_allclose(forces.wrenches[i, :3], force, atol=1e-9)
        np.testing.assert_allclose(forces.wrenches[i, 3:], moment - np.cross(lever, force), atol=1e-9)


# ----------------------------------------------------------------------------------------------------------------------
# Loops: bodies cut free.

LINKAGES = {
    "slider-crank": (closed.slider_crank, np.array([0.7, -1.0, 1.1])),
    "four-bar": (lambda: closed.four_bar(da.Revolute, axis=Z), np.array([1.0, -0.5, 1.5])),
    "Stewart platform": (lambda: closed.stewart()[0], None),
    "Bennett": (overconstrained.bennett, None),
    "Bricard": (overconstrained.bricard, None),
    "three cranks": (closed.parallelogram, np.array([1.2, 1.2, 1.2, -1.2])),
    "door": (closed.door, None),
}


@pytest.mark.parametrize("name", LINKAGES)
def test_wrenches_of_loops_are_those_of_bodies_cut_free(name):
    """Unique components agree with maximal coordinates; the others differ by a member of their family."""
    make, start = LINKAGES[name]
    mechanism = make()
    start = closed.closed_configuration(mechanism) if name == "Stewart platform" else start
    q, v, tau = state(mechanism, start=start)
    forces = mechanism.joint_forces(q, v, tau)
    assert forces.status <= da.Status.REDUNDANT
    free = FreeBodies(mechanism, q, v, forces.acceleration, tau)
    size = np.abs(free.wrenches()).max()
    assert free.imbalance < 1e-9 * size
    np.testing.assert_array_equal(forces.unique, free.unique())
    assert len(forces.family) == free.null.shape[1]
    np.testing.assert_allclose(forces.wrenches[forces.unique], free.wrenches()[free.unique()], atol=1e-9 * size)
    rest = (forces.wrenches - free.wrenches()).ravel()
    basis = free.family().reshape(len(forces.family), rest.size).T
    np.testing.assert_allclose(basis @ np.linalg.lstsq(basis, rest, rcond=None)[0], rest, atol=1e-9 * size)
    members = forces.family.reshape(len(forces.family), rest.size).T
    np.testing.assert_allclose(basis @ np.linalg.lstsq(basis, members, rcond=None)[0], members, atol=1e-9)
