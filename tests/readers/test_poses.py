"""Configurations by name: where a file draws its model, keyframes, group states, and poses of one's own."""

from __future__ import annotations

import numpy as np
import pytest

import dalembert as da
from dalembert.errors import ModelError
from dalembert.examples import two_blocks
from dalembert.readers.srdf import read_poses, srdf_of

KEYED = """<mujoco model="dropped"><worldbody>
  <body name="trunk" pos="1 2 0.7" quat="0.8 0 0.6 0"><freejoint name="base"/>
    <geom type="box" size=".1 .1 .1" mass="2"/>
    <body name="leg" pos="0 0 -.1"><joint name="hip" axis="0 1 0" ref="0.3"/><geom type="sphere" size=".05" mass="1"/>
      <body name="toe" pos="0 0 -.2"><joint name="ankle" type="ball"/><geom type="sphere" size=".02" mass=".2"/></body>
    </body></body></worldbody>
  <keyframe><key name="home" qpos="0 0 0.5 1 0 0 0 -0.4 0.6 0 0.8 0"/>
    <key qpos="0 0 2 0 1 0 0 0.1 1 0 0 0" qvel="1 0 0 0 0 0 0 0 0 0"/></keyframe>
</mujoco>"""

SDF = """<sdf version="1.9"><model name="box"><pose>1 0 3 0 0 1.5707963267948966</pose>
  <link name="box"><inertial><mass>2</mass><inertia><ixx>.1</ixx><iyy>.1</iyy><izz>.1</izz></inertia></inertial></link>
</model></sdf>"""


@pytest.fixture
def keyed(tmp_path):
    path = tmp_path / "dropped.xml"
    path.write_text(KEYED)
    return da.load(path)


@pytest.mark.parametrize("name", [None, "home", "key 1"])
def test_poses_of_a_file_are_where_mujoco_puts_its_bodies(keyed, name, tmp_path):
    mujoco = pytest.importorskip("mujoco")
    model = mujoco.MjModel.from_xml_string(KEYED)
    data = mujoco.MjData(model)
    if name is None:
        mujoco.mj_resetData(model, data)
    else:
        mujoco.mj_resetDataKeyframe(model, data, 0 if name == "home" else 1)
    mujoco.mj_kinematics(model, data)
    for body in ("trunk", "leg", "toe"):
        rotation, position = keyed.kinematics(keyed.pose(name), frame=body)
        np.testing.assert_allclose(position, data.body(body).xpos, atol=1e-12)
        np.testing.assert_allclose(rotation.ravel(), data.body(body).xmat, atol=1e-12)


def test_velocities_of_a_keyframe_are_left_out_by_name(keyed):
    assert any("keyframe 'key 1': its velocities are left out" in note for note in keyed.notes)


def test_a_run_starts_where_the_file_puts_the_robot_or_in_a_pose_by_name(keyed):
    assert np.array_equal(da.simulate(keyed, 0.01).q[0], keyed.pose())
    assert np.array_equal(da.simulate(keyed, 0.01, "home").q[0], keyed.pose("home"))
    with pytest.raises(ModelError, match="no pose 'hoem'"):
        da.simulate(keyed, 0.01, "hoem")


def test_a_pose_goes_with_what_is_made_of_the_mechanism(keyed):
    standing = keyed.constrain(da.Point("trunk", at=(1, 2, 0.7)))
    assert np.array_equal(standing.pose("home"), keyed.pose("home"))


def test_a_held_root_has_no_pose_of_its_own(tmp_path):
    path = tmp_path / "dropped.xml"
    path.write_text(KEYED)
    held = da.load(path, base="fixed")
    assert held.pose("home")[0] == -0.4
    assert held.nq == len(held.pose("home")) == 5


def test_a_model_of_sdf_starts_where_its_pose_is(tmp_path):
    path = tmp_path / "box.sdf"
    path.write_text(SDF)
    box = da.load(path)
    np.testing.assert_allclose(box.pose(), [1, 0, 3, 0, 0, 0.5**0.5, 0.5**0.5], atol=1e-15)
    assert np.array_equal(box.neutral(), [0, 0, 0, 0, 0, 0, 1])


def test_poses_of_ones_own_and_mistakes_in_them():
    b = da.Builder("arm")
    b.body("link", mass=1.0, center=(0.5, 0, 0), inertia=(0.1, 0.1, 0.1))
    b.joint("hinge", "revolute", "world", "link", axis=(0, 1, 0))
    b.pose("raised", {"hinge": -1.2})
    arm = b.build()
    assert arm.pose("raised") == [-1.2]
    assert np.array_equal(arm.pose(), arm.neutral())
    with pytest.raises(ModelError, match="did you mean 'raised'"):
        arm.pose("rised")
    b.pose("wrong", {"hing": 0.1})
    with pytest.raises(ModelError, match="joint \\(of pose 'wrong'\\) 'hing'"):
        b.build()
    with pytest.raises(ModelError, match="finite"):
        b.pose("nan", {"hinge": float("nan")})


def test_poses_of_a_lagrangian_are_refused_by_name():
    with pytest.raises(ModelError, match=r"q='home'.*those of a mechanism"):
        da.simulate(two_blocks(), 0.1, "home")


def test_the_srdf_beside_a_robot_has_its_poses(tmp_path):
    """Robot and poses in folders of their own, as packages of ROS keep them; the poses are found by the first word."""
    states = """<robot name="hopper"><group_state name="crouch" group="all">
      <joint name="root_joint" value="1 2 3 0 0 0 1"/><joint name="slide" value="-0.15"/></group_state></robot>"""
    for folder, name, text in (("urdf", "hopper_long.urdf", ""), ("srdf", "hopper.srdf", states)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / name).write_text(text)
    robot = tmp_path / "urdf" / "hopper_long.urdf"
    assert srdf_of(robot).name == "hopper.srdf"
    assert read_poses(robot) == {"crouch": {"root_joint": (1, 2, 3, 0, 0, 0, 1), "slide": (-0.15,)}}
