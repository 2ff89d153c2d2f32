"""Robot files without a scene: where they start, what they stand on, what of their data acts."""

from __future__ import annotations

import json

import numpy as np
import pytest

import dalembert as da
from tests.cli.test_commands import called

HOPPER = """<robot name="hopper">
  <link name="trunk"><inertial><mass value="4"/>
    <inertia ixx=".1" ixy="0" ixz="0" iyy=".1" iyz="0" izz=".1"/></inertial></link>
  <link name="leg"><inertial><origin xyz="0 0 -0.2"/><mass value="1"/>
    <inertia ixx=".02" ixy="0" ixz="0" iyy=".02" iyz="0" izz=".001"/></inertial></link>
  <link name="foot"/>
  <joint name="slide" type="prismatic"><parent link="trunk"/><child link="leg"/><axis xyz="0 0 1"/>
    <limit lower="-0.3" upper="-0.1" velocity="9" effort="900"/><dynamics damping="1"/></joint>
  <joint name="ankle" type="fixed"><parent link="leg"/><child link="foot"/><origin xyz="0 0 -0.4"/></joint>
</robot>"""

POSES = """<robot name="hopper">
  <group_state name="crouch" group="all"><joint name="root_joint" value="1 2 3 0 0 0 1"/>
    <joint name="slide" value="-0.15"/></group_state>
</robot>"""


@pytest.fixture
def hopper(tmp_path):
    (tmp_path / "urdf").mkdir()
    (tmp_path / "srdf").mkdir()
    (tmp_path / "srdf" / "hopper.srdf").write_text(POSES)
    path = tmp_path / "urdf" / "hopper_long.urdf"
    path.write_text(HOPPER)
    return path


def simulated(path, *options, capsys):
    code, out, _ = called("simulate", str(path), "--duration", "0.05", *options, "--json", capsys=capsys)
    return code, json.loads(out)


def test_a_robot_starts_inside_of_its_limits_and_stops_at_them(hopper, capsys):
    """Zero lies outside of the limits [-0.3, -0.1]: the joint starts at -0.1, and falls to its lower stop."""
    code, found = simulated(hopper, "--every", "0.01", capsys=capsys)
    assert (code, found["status"]) == (0, "completed")
    assert -0.3 <= found["final"]["slide"] < -0.1


def test_a_robot_stands_on_its_foot_where_its_pose_is(hopper, tmp_path, capsys):
    table = tmp_path / "run.csv"
    code, found = simulated(
        hopper, "--pose", "crouch", "--foot", "foot:0.02", "--hold", "3000,60", "--csv", str(table), capsys=capsys
    )
    assert code == 0
    first = dict(zip(*(line.split(",") for line in table.read_text().splitlines()[:2]), strict=True))
    assert float(first["root_joint.x [m]"]) == 1.0
    assert float(first["root_joint.z [m]"]) == pytest.approx(0.02 + 0.4 + 0.15)
    assert found["final"]["root_joint.z"] == pytest.approx(0.57, abs=0.02)


def test_data_that_are_left_out_on_request_are_named_and_no_failure(hopper, capsys):
    code, found = simulated(hopper, "--without", "limits", "--without", "damping", capsys=capsys)
    assert (code, found["status"]) == (0, "simplified")
    assert any("limits of 'slide' are not watched" in note for note in found["notes"])
    assert any("damping and springs of 'slide' do not act" in note for note in found["notes"])
    assert not any("JointLimits" in note or "with_passive" in note for note in found["notes"])


def test_solve_at_a_state_that_is_given(hopper, capsys):
    code, out, _ = called(
        "solve", str(hopper), "--start", "slide=-0.2", "--start", "slide.v=1", "--json", capsys=capsys
    )
    assert code == 0
    assert json.loads(out)["acceleration"]["slide"] == pytest.approx(-9.81)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--pose", "crouching"), "did you mean 'crouch'?"),
        (("--foot", "feet"), "there is no frame 'feet'"),
        (("--foot", "foot:x"), "'x' is not a radius in metres"),
        (("--start", "slid=1"), "did you mean 'slide'?"),
        (("--start", "slide=0.2"), "'slide upper' by 0.3"),
        (("--hold", "80"), "STIFFNESS,DAMPING"),
        (("--without", "limit"), "did you mean 'limits'?"),
    ],
)
def test_options_that_are_wrong(hopper, options, words, capsys):
    code, _, err = called("simulate", str(hopper), *options, capsys=capsys)
    assert code == 2
    assert words in err
    assert ".urdf:1" not in err


def test_options_of_robots_are_not_those_of_scenes(capsys):
    code, _, err = called("simulate", "door", "--foot", "edge", capsys=capsys)
    assert code == 2
    assert "for robot files" in err
    code, out, _ = called("simulate", "bouncing_ball", "--start", "up=2", "--duration", "0.1", "--json", capsys=capsys)
    assert code == 0
    fall = 2 - 9.81 / 2 * 0.1**2
    assert json.loads(out)["final"]["up"] == pytest.approx(fall)


def test_a_scene_names_a_pose_and_stands_on_the_ground(hopper):
    scene = hopper.parent / "scene.toml"
    scene.write_text(
        '[model]\nfile = "hopper_long.urdf"\nbase = "floating"\n[[contact]]\nsphere = { frame = "foot" }\n'
        'ground = { offset = 0.5 }\n[start]\npose = "crouch"\non_ground = true\n[simulate]\nduration = 0.1\n'
    )
    q, _ = da.scene(scene).start
    np.testing.assert_allclose(q, [1, 2, 0.5 + 0.4 + 0.15, 0, 0, 0, 1, -0.15], atol=1e-12)


def test_inverse_dynamics_of_a_floating_base_from_a_table(hopper, tmp_path, capsys):
    """Along a free fall nothing is needed; forces of the base are those that the ground must give."""
    table = tmp_path / "fall.csv"
    simulated(hopper, "--base", "floating", "--pose", "crouch", "--every", "0.01", "--csv", str(table), capsys=capsys)
    line = ("inverse", str(hopper), "--base", "floating", "--motion", str(table), "--json")
    code, out, _ = called(*line, capsys=capsys)
    found = json.loads(out)
    assert (code, found["splined"]) == (0, [])
    assert all(abs(each["peak"]) < 1e-6 for each in found["peaks"].values())
    head, *rows = (line.split(",") for line in table.read_text().splitlines())
    keep = [k for k, name in enumerate(head) if not name.endswith((".v [m/s]", ".v [rad/s]"))]
    table.write_text("\n".join(",".join(row[k] for k in keep) for row in (head, *rows)))
    code, _, err = called(*line, capsys=capsys)
    assert code == 2
    assert "the table needs the columns" in err
