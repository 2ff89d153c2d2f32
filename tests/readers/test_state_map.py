"""States of other tools: every convention means what it says; Pinocchio and MuJoCo are asked themselves."""

from __future__ import annotations

import mujoco
import numpy as np
import pinocchio as pin
import pytest
from scipy.spatial.transform import Rotation

import dalembert as da
from dalembert.readers import CONVENTIONS, Convention, state_map
from tests.readers.mjcf_models import HUMANOID
from tests.readers.robots import ROBOTS

NAMES = sorted(CONVENTIONS)


def machine(ball: bool = True) -> da.Mechanism:
    """Return a mechanism with every kind of joint that anyone writes in a way of their own."""
    b = da.Builder("m")
    kinds = ["free", "continuous", "planar", "revolute", "prismatic", *(["spherical"] if ball else [])]
    parent = "world"
    for kind in kinds:
        b.body(kind, mass=1.0, inertia=(1.0, 1.0, 1.0))
        b.joint(f"j_{kind}", kind, parent, kind, axis=(0, 0, 1), position=(0.1, 0.2, 0.3))
        parent = kind
    return b.build()


def machine_for(name: str) -> da.Mechanism:
    return machine(CONVENTIONS[name].ball)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("batch", [(), (3,), (2, 4)])
def test_there_and_back(name, batch):
    robot = machine_for(name)
    states, rng = state_map(robot, name), np.random.default_rng(0)
    q = robot.random(1, batch or None)
    v, a, tau = (rng.normal(size=(*batch, robot.nv)) for _ in range(3))
    there = states.to_q(q), states.to_v(q, v)
    assert there[0].shape == (*batch, states.nq)
    np.testing.assert_allclose(states.from_q(there[0]), q, atol=1e-14)
    np.testing.assert_allclose(states.from_v(*there), v, atol=1e-13)
    np.testing.assert_allclose(states.from_a(*there, states.to_a(q, v, a)), a, atol=1e-12)
    np.testing.assert_allclose(states.from_tau(there[0], states.to_tau(q, tau)), tau, atol=1e-13)
    power = np.sum(v * tau, axis=-1)
    np.testing.assert_allclose(np.sum(there[1] * states.to_tau(q, tau), axis=-1), power, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_a_velocity_is_the_rate_of_its_configuration(name):
    """Differences of the tool's own arrays in time: what its velocity must be by its definition."""
    convention, robot = CONVENTIONS[name], machine_for(name)
    states, rng, h = state_map(robot, name), np.random.default_rng(2), 1e-6
    q, v = robot.random(3), rng.normal(size=robot.nv)
    before, after = (states.to_q(robot.integrate(q, sign * h * v)) for sign in (-1, 1))
    mine = states.to_v(q, v)
    place, turn = (slice(4, 7), slice(0, 4)) if convention.rotation_first else (slice(0, 3), slice(3, 7))
    linear, angular = (slice(3, 6), slice(0, 3)) if convention.angular_first else (slice(0, 3), slice(3, 6))
    R = Rotation.from_quat(states.to_q(q)[turn], scalar_first=convention.scalar_first)
    two = [Rotation.from_quat(x[turn], scalar_first=convention.scalar_first) for x in (before, after)]
    rate = (after[place] - before[place]) / (2 * h)
    spin = (two[1] * two[0].inv()).as_rotvec() / (2 * h)
    np.testing.assert_allclose(mine[linear], rate if convention.linear_in_world else R.inv().apply(rate), atol=1e-8)
    np.testing.assert_allclose(mine[angular], spin if convention.angular_in_world else R.inv().apply(spin), atol=1e-8)
    if convention.angles:
        rates = (after[7:11] - before[7:11]) / (2 * h)
        np.testing.assert_allclose(mine[6:10], rates, atol=1e-8)


@pytest.mark.parametrize("name", NAMES)
def test_an_acceleration_is_the_rate_of_the_velocity(name):
    robot = machine_for(name)
    states, rng, h = state_map(robot, name), np.random.default_rng(4), 1e-6
    q, v, a = robot.random(5), rng.normal(size=robot.nv), rng.normal(size=robot.nv)
    before, after = (states.to_v(robot.integrate(q, s * h * v), v + s * h * a) for s in (-1, 1))
    np.testing.assert_allclose(states.to_a(q, v, a), (after - before) / (2 * h), atol=1e-7)


def test_pinocchio_s_states_are_dalembert_s():
    path = ROBOTS / "tiago_pro_description/robots/tiago_pro.urdf"
    robot, model = da.load(path, "floating"), pin.buildModelFromUrdf(str(path), pin.JointModelFreeFlyer())
    states = state_map(robot, "pinocchio", model)
    q = pin.randomConfiguration(model, -np.ones(model.nq), np.ones(model.nq))
    v = np.random.default_rng(0).normal(size=model.nv)
    np.testing.assert_array_equal(states.from_q(q), q)
    np.testing.assert_array_equal(states.to_v(q, v), v)
    np.testing.assert_allclose(robot.integrate(q, v), pin.integrate(model, q, v), atol=1e-13)


def test_mujoco_agrees_on_integration(tmp_path):
    """A step of MuJoCo's own integration is `integrate` in between the two maps, up to the frame of the free joint."""
    (tmp_path / "m.xml").write_text(HUMANOID)
    robot, model = da.load(tmp_path / "m.xml"), mujoco.MjModel.from_xml_string(HUMANOID)
    states, rng, h = state_map(robot, "mujoco", model), np.random.default_rng(0), 1e-7
    q = robot.random(1)
    qpos, v = states.to_q(q), rng.normal(size=robot.nv)
    qvel = states.to_v(q, v)
    mujoco.mj_integratePos(model, qpos, qvel, h)
    np.testing.assert_allclose(qpos, states.to_q(robot.integrate(q, h * v)), atol=1e-12)


def test_a_urdf_read_by_mujoco_has_another_order(tmp_path):
    """Joints are matched by name."""
    path = ROBOTS / "go2_description/urdf/go2.urdf"
    robot = da.load(path)
    names = [joint.name for joint in robot.joints if joint.kind != "fixed"]
    states = state_map(robot, "mujoco", names[::-1])
    q = robot.random(0)
    np.testing.assert_array_equal(states.to_q(q), q[::-1])


@pytest.mark.parametrize(
    ("tool", "joints", "words"),
    [("simulink", None, "no convention 'simulink'"), ("mujoco", ["j_free"], "not there"), ("mujoco", ["x"], "not here"),
     ("drake", None, "ball joint"), ("mujoco", ["j_free"] * 2, "must be the same")],
)  # fmt: skip
def test_mistakes(tool, joints, words):
    with pytest.raises(da.DalembertError, match=words):
        state_map(machine(), tool, joints)


def test_shapes_are_checked():
    with pytest.raises(da.ShapeError, match="must have"):
        state_map(machine(), Convention()).to_q([0.0])


def test_mujoco_joints_without_names(tmp_path):
    """Unnamed joints on unnamed bodies, several on one: the reader's names, in MuJoCo's order."""
    import mujoco

    text = """<mujoco><worldbody>
      <body><joint axis="1 0 0"/><joint axis="0 1 0"/><geom size="1"/>
        <body pos="0 0 1"><joint type="slide"/><geom size="1"/></body></body>
      <body name="b"><joint/><joint type="slide"/><geom size="1"/></body></worldbody></mujoco>"""
    (tmp_path / "m.xml").write_text(text)
    robot, model = da.load(tmp_path / "m.xml"), mujoco.MjModel.from_xml_string(text)
    states = state_map(robot, "mujoco", model)
    q = np.arange(1.0, 6.0) / 10
    data = mujoco.MjData(model)
    data.qpos[:] = states.to_q(q)
    mujoco.mj_forward(model, data)
    np.testing.assert_allclose(robot.kinematics(q, robot.bodies[-1].name)[1], data.xpos[-1], atol=1e-14)


def test_pinocchio_has_cos_and_sin_of_a_joint_that_others_follow(tmp_path):
    """Loaded as an angle here, since a coupling counts its turns; dynamics agree through the map."""
    import pinocchio as pin

    inertia = '<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/>'
    body = f'<inertial><mass value="1"/><origin xyz="0 .1 .2"/>{inertia}</inertial>'
    links = "".join(f'<link name="{name}">{body}</link>' for name in "abc")
    ends = '<parent link="{}"/><child link="{}"/><origin xyz="0 0 1"/>'
    text = (
        f'<robot name="r">{links}<joint name="j" type="continuous">{ends.format("a", "b")}</joint>'
        f'<joint name="k" type="continuous">{ends.format("b", "c")}<mimic joint="j" multiplier="2"/></joint></robot>'
    )
    (tmp_path / "r.urdf").write_text(text)
    robot, model = da.load(tmp_path / "r.urdf"), pin.buildModelFromUrdf(str(tmp_path / "r.urdf"))
    states = state_map(robot, "pinocchio", model)
    assert (robot.nq, states.nq) == (2, 4)
    q, v, a = np.array([0.7, 1.4]), np.array([1.0, 2.0]), np.array([0.3, 0.6])
    there = states.to_q(q)
    np.testing.assert_allclose(states.from_q(there), q)
    expected = pin.rnea(model, model.createData(), there, states.to_v(q, v), states.to_a(q, v, a))
    np.testing.assert_allclose(states.to_tau(q, robot.inverse(q, v, a).tau), expected, rtol=1e-12)


TURNING = """<robot name="r"><link name="a"/>{}
<joint name="j1" type="continuous"><parent link="a"/><child link="b1"/></joint>
<joint name="j2" type="{}"><parent link="b1"/><child link="b2"/><limit lower="-99" upper="99" effort="1" velocity="1"/>
<mimic joint="j1" multiplier="2" offset="1"/></joint></robot>"""


@pytest.mark.parametrize("kind", ["revolute", "continuous"])
def test_turns_of_coupled_joints_come_back(tmp_path, kind):
    """Pinocchio keeps (cos, sin); the coupling j2 = 2 j1 + 1 says how often they have turned."""
    mass = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    links = "".join(f'<link name="b{i}">{mass}</link>' for i in (1, 2))
    (tmp_path / "r.urdf").write_text(TURNING.format(links, kind))
    robot = da.load(tmp_path / "r.urdf")
    model = pin.buildModelFromUrdf(str(tmp_path / "r.urdf"))
    states = state_map(robot, "pinocchio", model)
    angle = np.array([4.0, -20.0, 1.0])
    q = np.stack([angle, 2 * angle + 1], axis=-1)
    found = states.from_q(states.to_q(q))
    np.testing.assert_allclose(robot.constraint(found), 0, atol=1e-13)
    np.testing.assert_allclose(np.cos(found - q), 1, atol=1e-13)
    if kind == "revolute":
        np.testing.assert_allclose(found, q, atol=1e-13)
