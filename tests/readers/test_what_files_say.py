"""What a file says must act, or be named: rotors, weightless links, coupled wheels, friction, odd signs, twins."""

from __future__ import annotations

import subprocess
import sys
import warnings

import numpy as np
import pytest

import dalembert as da
from dalembert.readers.sdf.scope import Scope
from tests.readers.test_sdf import INERTIAL, model
from tests.readers.test_sdf import joint as sdf_joint
from tests.readers.test_sdf import link as sdf_link
from tests.readers.test_urdf import LIMIT, joint, link, pair

mujoco = pytest.importorskip("mujoco")


@pytest.fixture
def load(tmp_path):
    def read(text: str, name: str = "r.urdf", **options) -> da.Mechanism:
        (tmp_path / name).write_text(text)
        return da.load(tmp_path / name, **options)

    return read


def transmission(inside: str) -> str:
    return (
        '<transmission name="t"><type>transmission_interface/SimpleTransmission</type><joint name="j"/>'
        f'<actuator name="m"><mechanicalReduction>10</mechanicalReduction>{inside}</actuator></transmission>'
    )


def test_motor_inertia_is_a_rotor_behind_the_reduction(load):
    """M gains reduction^2 J: 100 * 0.002."""
    plain, geared = (
        load(pair(more=transmission(each))) for each in ("", "<motorInertia>0.002</motorInertia><motorTorque/>")
    )
    assert geared.actuators[0].rotor_inertia == 0.002
    gained = geared.mass_matrix(np.zeros(1)) - plain.mass_matrix(np.zeros(1))
    np.testing.assert_allclose(gained, [[0.2]], rtol=1e-12)
    assert any("<motorTorque>" in note for note in geared.notes)


def test_two_rotors_are_refused(load):
    with pytest.raises(da.ModelError, match="given twice"):
        load(pair(more=transmission('<motorInertia>1</motorInertia><drake:rotor_inertia value="2"/>')))


@pytest.mark.parametrize("passive", ["auto", True, False])
def test_a_link_without_gravity_does_not_fall(load, passive):
    text = model(sdf_link("a", inside=INERTIAL + "<gravity>false</gravity>"))
    robot = load(text, "m.sdf", passive=passive)
    q, still = robot.neutral(), np.zeros(6)
    np.testing.assert_allclose(robot.forward(q, still).acceleration, 0, atol=1e-14)
    np.testing.assert_allclose(robot.gravity_torque(q), 0, atol=1e-14)
    np.testing.assert_allclose(robot.inverse(q, still, still).tau, 0, atol=1e-14)


WHEELS = link("a") + link("b") + link("c") + joint("j1", "a", "b", "continuous", "")


def test_a_coupled_wheel_turns_on_past_half_a_turn(load):
    """j2 = 2 j1 + 1 holds at every angle; (cos, sin) could not say how often j1 has turned."""
    mimic = LIMIT + '<mimic joint="j1" multiplier="2" offset="1"/>'
    robot = load(f'<robot name="r">{WHEELS}{joint("j2", "b", "c", "continuous", mimic)}</robot>')
    assert [each.kind for each in robot.joints if each.name != "root_joint"] == ["revolute", "revolute"]
    for angle in (-4.0, 3.0, 3.2, 40.0):
        np.testing.assert_allclose(robot.constraint([angle, 2 * angle + 1]), 0, atol=1e-12)
    assert sum("continuous, but coupled" in note for note in robot.notes) == 2


def test_a_builder_says_where_a_relation_jumps():
    b = da.Builder()
    b.body("a", mass=1.0)
    b.joint("wheel", "continuous", "world", "a")
    b.couple("gear", {"wheel": 2.0})
    assert any("counts within (-pi, pi]" in note for note in b.build().notes)


def test_friction_is_named(load):
    assert any("dry friction" in note for note in load(pair(LIMIT + '<dynamics friction="0.3"/>')).notes)
    mjcf = '<mujoco><worldbody><body><joint frictionloss="1"/><geom size="1"/></body></worldbody></mujoco>'
    assert any("dry friction" in note for note in load(mjcf, "m.xml").notes)


def test_negative_numbers_are_named(load):
    notes = load(pair('<limit lower="0" upper="1" effort="-2" velocity="-3"/><dynamics damping="-1"/>')).notes
    for word in ("effort limit", "velocity limit", "damping"):
        assert any(f"its {word} is negative" in note for note in notes)


def test_twin_links_and_missing_parents_are_said(load):
    with pytest.raises(da.ModelError, match="two of this name: link 'a' is there already"):
        load(f'<robot name="r">{link("a")}{link("a")}</robot>')
    text = f'<robot name="r">{"".join(link(x) for x in "abc")}{joint("j", "nowhere", "b")}</robot>'
    with pytest.raises(da.ModelError, match=r"there is no body .parent of joint 'j'. 'nowhere'"):
        load(text)


def test_links_called_world_and_universe(load):
    text = f'<robot name="r">{link("world", "")}{link("universe")}{joint("j", "world", "universe")}</robot>'
    assert load(text).ground == "ground"


def test_a_held_free_joint_and_an_axis_that_is_not_given_are_named(load):
    mjcf = '<mujoco><worldbody><body pos="0 0 1"><freejoint name="f"/><geom size="1"/></body></worldbody></mujoco>'
    assert any("free joint 'f' is held" in note for note in load(mjcf, "m.xml", base="fixed").notes)
    text = model(sdf_link("a") + sdf_link("b") + sdf_joint("j", "a", "b"))
    assert any("no <axis>" in note for note in load(text, "m.sdf").notes)


def test_warnings_of_mujoco_become_notes(load):
    mjcf = '<mujoco><worldbody><body><joint armature="-1"/><geom size="1"/></body></worldbody></mujoco>'
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(da.ModelError, match="negative armature"):
            load(mjcf, "m.xml")


@pytest.mark.parametrize("name", ["a&#10;b", "a&#7;b"])
def test_names_with_control_characters_are_refused(load, name):
    with pytest.raises(da.ModelError):
        load(f'<robot name="r">{link("a")}{link("b")}{joint(name, "a", "b")}</robot>')


def test_joints_whose_coordinates_are_called_alike_are_refused():
    b = da.Builder()
    b.body("a", mass=1.0)
    b.body("b", mass=1.0)
    b.joint("j", "free", "world", "a")
    b.joint("j.x", "revolute", "a", "b")
    with pytest.raises(da.ModelError, match=r"coordinate 'j.x' is there already"):
        b.build()


def frames(n: int) -> str:
    """Return n frames, each attached to the next, the last to a link that comes after all of them."""
    chain = "".join(f'<frame name="f{i}" attached_to="f{i + 1}"/>' for i in range(n))
    return model(f'{chain}<frame name="f{n}" attached_to="a"/>{sdf_link("a")}')


def test_chains_of_frames_are_followed_once(load, monkeypatch):
    """Each frame is asked once for what it is attached to: the work is linear in their number."""
    asked = []
    follow = Scope._next
    monkeypatch.setattr(Scope, "_next", lambda self, name, by: asked.append(name) or follow(self, name, by))
    assert load(frames(500), "m.sdf").frame("f0").body == "a"
    assert len(asked) == 501


def test_frames_attached_in_a_circle_are_refused(load):
    text = model(sdf_link("a") + '<frame name="f" attached_to="g"/><frame name="g" attached_to="f"/>')
    with pytest.raises(da.ModelError, match="in a circle"):
        load(text, "m.sdf")


def test_a_robot_is_read_without_scipy_and_casadi(tmp_path):
    (tmp_path / "r.urdf").write_text(pair())
    code = f"import dalembert as da, sys; da.load({str(tmp_path / 'r.urdf')!r}); print(*sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"scipy", "casadi", "mujoco", "numba"} & set(found.stdout.split())


MISUSE = {
    "no path": lambda: da.load(None),
    "bytes": lambda: da.load(b"robot.urdf"),
    "packages": lambda: da.load("robot.urdf", packages=3),
    "package folders": lambda: da.load("robot.urdf", packages=[3]),
}


@pytest.mark.parametrize("what", list(MISUSE))
def test_misuse_of_load(what):
    with pytest.raises(da.DalembertError):
        MISUSE[what]()


MOTORS = """<mujoco><worldbody><body name="a"><joint name="j" {}/><geom size=".1"/></body></worldbody>
<actuator><motor name="m" joint="j" gear="10" {}/></actuator></mujoco>"""

NEGATIVE = '<limit lower="-1" upper="2" effort="-3" velocity="4"/>'


def mimic(name: str, other: str, parent: str, child: str) -> str:
    return joint(name, parent, child, inside=f'{LIMIT}<mimic joint="{other}"/>')


NOTED = {
    "negative effort of a motor": ("r.urdf", pair(NEGATIVE, more=transmission("")), "the motor has no limit"),
    "misspelt rotation": ("r.urdf", pair(LIMIT + '<origin wxyz="0 0 1 0"/>'), "<origin> (its attribute 'wxyz'"),
    "unknown attribute": ("r.urdf", pair().replace('name="j"', 'name="j" speed="3"'), "its attribute 'speed'"),
    "axis without xyz": ("r.urdf", pair(LIMIT + "<axis/>"), "no xyz; URDF's default"),
    "version": ("r.urdf", pair().replace("<robot", '<robot version="9.9"'), "version '9.9'"),
    "limits of a continuous joint": ("r.urdf", pair(kind="continuous"), "lower and upper of a continuous joint"),
    "mimics in a circle": (
        "r.urdf",
        f'<robot name="r">{link("a")}{link("b")}{link("c")}'
        f'{mimic("j", "k", "a", "b")}{mimic("k", "j", "b", "c")}</robot>',
        "circle, j -> k -> j",
    ),
    "stops of an axis": (
        "m.sdf",
        model(sdf_link("a") + sdf_link("b") + sdf_joint("j", "a", "b", inside="<axis><xyz>0 0 1</xyz><limit><lower>-1"
              "</lower><upper>1</upper><stiffness>5</stiffness><dissipation>2</dissipation></limit></axis>")),
        "<dissipation> (in <limit>)",
    ),
    "uneven range of a joint": ("m.xml", MOTORS.format('actuatorfrcrange="-3 5"', ""), "forces from -3 to 5"),
    "uneven range of a motor": ("m.xml", MOTORS.format("", 'forcerange="-7 2"'), "forces from -7 to 2"),
}  # fmt: skip
"""A file, and what is to be said about it."""


@pytest.mark.parametrize("what", list(NOTED))
def test_what_is_not_used_is_noted(load, what):
    name, text, words = NOTED[what]
    assert any(words in note for note in load(text, name).notes)


def test_usual_attributes_are_not_noted(load):
    drake = pair().replace("<robot", '<robot xmlns:drake="http://drake.mit.edu" version="1.0"')
    assert not any("attribute" in note or "version" in note for note in load(drake).notes)


def test_a_canonical_link_must_exist(load):
    with pytest.raises(da.ModelError, match="no link or frame 'zz'"):
        load(model(sdf_link("a"), attributes=' canonical_link="zz"'), "m.sdf")


def test_a_chain_of_300_bodies(load):
    body = '<body><joint axis="0 1 0"/><geom size=".1"/>'
    text = f"<mujoco><worldbody>{body * 300}{'</body>' * 300}</worldbody></mujoco>"
    assert load(text, "m.xml").nv == 300
    with pytest.raises(da.ModelError, match="451 deep"):
        load(text.replace(body * 300, body * 470), "m.xml")


FLAT = INERTIAL.replace("<izz>1<", "<izz>3<")
"""Moments 1, 1, 3: more about z than the sum of the others."""


def test_inertias_that_no_body_can_have_load_with_a_warning(load):
    """The same words for every format that can say them; `strict` refuses, by file and line."""
    flat = pair().replace('izz="1"', 'izz="3"')
    for text, name in ((flat, "r.urdf"), (model(sdf_link("a", inside=FLAT)), "m.sdf")):
        with pytest.warns(da.ModelWarning, match=rf"{name}.*no body can have.*'a'.*strict=True refuses") as caught:
            robot = load(text, name)
        assert len(caught) == 1
        assert any("body 'a': " in note and "adds no negative eigenvalue" in note for note in robot.notes)
        assert load(text, name, allow_unphysical=True).notes == robot.notes
        with pytest.raises(da.ModelError, match=rf'{name}:\d+ <link name="a">.*triangle inequality'):
            load(text, name, strict=True)


@pytest.mark.parametrize("moments", ["1 1 3", "1 1 -1"])
def test_mujoco_itself_refuses_inertias_that_no_body_can_have(load, moments):
    inertial = f'<inertial pos="0 0 0" mass="1" diaginertia="{moments}"/>'
    text = f"<mujoco><worldbody>\n<body><joint/>{inertial}</body></worldbody></mujoco>"
    with pytest.raises(da.ModelError, match=r"m\.xml.*MuJoCo says.*inertia"):
        load(text, "m.xml")
