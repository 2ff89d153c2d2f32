"""`dalembert graph` of robot files: URDF, SDF and MJCF; trees, loops and free bodies; what is left out is said."""

from __future__ import annotations

import pytest

from tests.cli.test_commands import called

INERTIAL = '<inertial><mass value="1"/><inertia ixx=".1" iyy=".1" izz=".1" ixy="0" ixz="0" iyz="0"/></inertial>'
LIMIT = '<limit lower="-1" upper="1" effort="1" velocity="1"/>'
URDF = f"""<robot name="two"><link name="base">{INERTIAL}</link><link name="upper">{INERTIAL}</link>
<link name="lower">{INERTIAL}</link>
<joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/><axis xyz="0 1 0"/>{LIMIT}</joint>
<joint name="elbow" type="revolute"><parent link="upper"/><child link="lower"/><origin xyz="0 0 -1"/><axis xyz="0 1 0"/>
<dynamics damping="0.1"/>{LIMIT}</joint></robot>"""
MIMIC = URDF.replace("<dynamics", '<mimic joint="shoulder" multiplier="2"/><dynamics')
BALL = URDF.replace('name="elbow" type="revolute"', 'name="elbow" type="floating"')
SDF = """<sdf version="1.7"><model name="slider"><link name="box"><inertial><mass>1</mass></inertial></link>
<joint name="rail" type="prismatic"><parent>world</parent><child>box</child><axis><xyz>1 0 0</xyz></axis></joint>
</model></sdf>"""
MJCF = """<mujoco><worldbody><body name="rod"><inertial pos="0 0 -1" mass="1" diaginertia=".1 .1 .1"/>
<joint name="hinge" axis="0 1 0" pos="0 0 .1" damping="1"/></body></worldbody></mujoco>"""
MJCF_BALL = MJCF.replace('name="hinge"', 'name="hinge" type="ball"')


@pytest.fixture
def robot(tmp_path):
    def write(text: str) -> str:
        path = tmp_path / ("robot.xml" if "<mujoco" in text else "robot.sdf" if "<sdf" in text else "robot.urdf")
        path.write_text(text)
        return str(path)

    return write


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (URDF, ("two: joint coordinates; known: q, qd, qdd", "springs and dampers", "32 equations, 32 blocks")),
        (MIMIC, ("known: q, qd, qdd, lam ", "32 equations, 32 blocks")),
        (BALL, ("two: maximal coordinates; known: every tau", "structural index 3, 14 degrees of freedom")),
        (SDF, ("slider: joint coordinates", "16 equations, 16 blocks")),
        (MJCF, ("joint coordinates", "left out: springs and dampers", "16 equations, 16 blocks")),
        (MJCF_BALL, ("joint coordinates", "18 equations, 18 blocks")),
    ],
)
def test_graph_of_a_robot(robot, tmp_path, capsys, text, words):
    if text in (MJCF, MJCF_BALL):
        pytest.importorskip("mujoco")
    picture = tmp_path / "graph.svg"
    code, out, err = called("graph", robot(text), "-o", str(picture), capsys=capsys)
    assert (code, err) == (0, "")
    for word in words:
        assert word in out
    assert picture.read_text().startswith("<svg")


def test_granularity_coordinates_and_known_are_chosen(robot, capsys):
    code, out, _ = called("graph", robot(URDF), "--granularity", "products", capsys=capsys)
    assert (code, "246 equations" in out) == (0, True)
    code, out, _ = called("graph", robot(URDF), "--coordinates", "maximal", capsys=capsys)
    assert (code, "38 equations" in out) == (0, True)
    code, out, _ = called("graph", robot(BALL), "--coordinates", "joint", capsys=capsys)
    assert (code, "37 equations" in out) == (0, True)
    code, out, _ = called("graph", robot(URDF), "--known", "q", "qd", "tau", capsys=capsys)
    assert (code, "known: q, qd, tau" in out) == (0, True)
    code, out, _ = called("graph", robot(URDF), "--known", "q", "qd", "qdd", "tau", capsys=capsys)
    assert (code, "'tau elbow'" in out) == (1, True)


def test_what_a_graph_cannot_show_is_named(robot, tmp_path, capsys):
    code, _, err = called("graph", robot(URDF), "--known", "speed", capsys=capsys)
    assert (code, "'speed'" in err) == (2, True)
    system = tmp_path / "system.toml"
    system.write_text('unknowns = ["x"]\n[equations]\none = "x = 1"\n')
    code, _, err = called("graph", str(system), "--known", "x", capsys=capsys)
    assert (code, "--known is for robot files" in err) == (2, True)
