"""URDF, corner by corner: what urdfdom and Pinocchio read, what tools have added, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import pinocchio as pin
import pytest

import dalembert as da
from dalembert.model import Placement

MASS = '<inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>'
LIMIT = '<limit lower="-1" upper="2" effort="3" velocity="4"/>'


def link(name: str, inside: str = MASS) -> str:
    return f'<link name="{name}">{inside}</link>\n'


def joint(name: str, parent: str, child: str, kind: str = "revolute", inside: str = LIMIT) -> str:
    ends = f'<parent link="{parent}"/><child link="{child}"/>'
    return f'<joint name="{name}" type="{kind}">{ends}{inside}</joint>\n'


def pair(inside: str = LIMIT, kind: str = "revolute", more: str = "") -> str:
    """Return a robot with one joint, from a to b."""
    return f'<robot name="r">\n{link("a")}{link("b")}{joint("j", "a", "b", kind, inside)}{more}</robot>'


@pytest.fixture
def load(tmp_path):
    def read(text: str | bytes, name: str = "r.urdf", **options) -> da.Mechanism:
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return da.load(path, **options)

    return read


@pytest.mark.parametrize(
    ("kind", "mine", "nq", "nv"),
    [
        ("revolute", "revolute", 1, 1),
        ("continuous", "continuous", 2, 1),
        ("prismatic", "prismatic", 1, 1),
        ("fixed", "fixed", 0, 0),
        ("floating", "free", 7, 6),
        ("planar", "planar", 4, 3),
        ("ball", "spherical", 4, 3),
        ("spherical", "spherical", 4, 3),
    ],
)
def test_every_type(load, kind, mine, nq, nv):
    robot = load(pair(kind=kind))
    assert robot.joint("j").kind == mine
    assert (robot.nq, robot.nv) == (nq, nv)


def test_drake_screw_and_universal(load):
    pitch = '<drake:screw_thread_pitch value="0.5"/>'
    text = pair(inside=pitch, kind="screw").replace("<joint", "<drake:joint").replace("</joint", "</drake:joint")
    assert load(text).joint("j").pitch == pytest.approx(0.5 / (2 * math.pi))
    assert load(pair(inside="", kind="universal")).joint("j").axis2 == (0.0, 1.0, 0.0)


def test_axis_default_and_length(load):
    """The axis is x where none is given, and is normalised."""
    assert load(pair()).joint("j").axis == (1.0, 0.0, 0.0)
    axis = load(pair(LIMIT + '<axis xyz=" 0\t3  -4 "/>')).joint("j").axis
    np.testing.assert_allclose(axis, [0, 0.6, -0.8], rtol=1e-15)
    np.testing.assert_allclose(load(pair(LIMIT + '<axis xyz="1e-30 0 0"/>')).joint("j").axis, [1, 0, 0])


def test_inertia_is_turned_by_its_origin(load):
    """I in the link's frame = R I' R^T, and Pinocchio agrees."""
    moments = '<inertia ixx="1" ixy=".1" ixz=".2" iyy="2" iyz=".3" izz="2.5"/>'
    inside = f'<inertial><origin xyz="1 2 3" rpy=".1 .2 .3"/><mass value="4"/>{moments}</inertial>'
    text = f'<robot name="r">{link("a")}{link("b", inside)}{joint("j", "a", "b")}</robot>'
    mine = load(text).body("b").inertia
    theirs = pin.buildModelFromXML(text).inertias[1]
    np.testing.assert_allclose(mine.center, theirs.lever)
    np.testing.assert_allclose(mine.rotational, theirs.inertia, rtol=1e-13)


def test_a_truncated_pi_stays_as_it_is(load):
    robot = load(pair(LIMIT + '<origin rpy="1.5708 0 0"/>'))
    assert robot.joint("j").placement.rotation[2, 2] == pytest.approx(math.cos(1.5708), abs=1e-15)
    exact = load(pair(LIMIT + '<origin rpy="1.5707963267948966 0 0"/>'))
    assert exact.joint("j").placement.rotation[2, 2] == 0.0


def test_quaternion_of_urdf_1_1(load):
    robot = load(pair(LIMIT + '<origin xyz="1 0 0" quat_xyzw="0 0 2 2"/>'))
    np.testing.assert_allclose(robot.joint("j").placement.rotation, [[0, -1, 0], [1, 0, 0], [0, 0, 1]], atol=1e-15)


def test_missing_inertial_is_massless(load):
    text = f'<robot name="r">{link("a", "")}{link("b")}{joint("j", "a", "b")}</robot>'
    assert load(text).body("a").inertia.is_zero()


def test_mimic_becomes_a_coupling(load):
    """q_b = 2 q_a + 0.5, written as q_b - 2 q_a = 0.5."""
    mimic = LIMIT + '<mimic joint="j" multiplier="2" offset="0.5"/>'
    (coupling,) = load(pair(more=link("c") + joint("k", "b", "c", inside=mimic))).couplings
    assert dict(coupling.terms) == {"k": 1.0, "j": -2.0}
    assert coupling.offset == 0.5


@pytest.mark.parametrize("other", ["nobody", "f"])
def test_a_mimic_without_a_partner_is_noted(load, other):
    more = link("c") + joint("f", "b", "c", "fixed", "") + link("d")
    more += joint("k", "b", "d", inside=LIMIT + f'<mimic joint="{other}"/>')
    robot = load(pair(more=more))
    assert not robot.couplings
    assert any("mimic" in note and other in note for note in robot.notes)


def test_children_come_by_joint_name(load):
    """Depth first, siblings sorted, as urdfdom's map has them; upper case before lower."""
    names = ["b", "a10", "a9", "Z", "a"]
    text = f'<robot name="r">{link("root")}' + "".join(link(n) + joint(f"j{n}", "root", n) for n in names) + "</robot>"
    order = [each.name for each in load(text).joints if each.kind != "fixed"]
    assert order == sorted(order) == list(pin.buildModelFromXML(text).names)[1:]


def test_base(load):
    fixed, floating, auto = (load(pair(), base=base) for base in ("fixed", "floating", "auto"))
    assert (fixed.nq, auto.nq, floating.nq) == (1, 1, 8)
    assert floating.joints[0].name == "root_joint"
    assert any("base" in note for note in auto.notes)
    assert not any("base:" in note for note in fixed.notes)


def test_passive_forces_are_data_by_default(load):
    text = pair(LIMIT + '<dynamics damping="0.7" friction="0.2"/>')
    assert load(text).joint("j").damping == (0.7,)
    assert load(text).joint("j").friction == (0.2,)
    assert not load(text).passive
    assert any("passive" in note for note in load(text).notes)
    assert load(text, passive=True).passive


def test_limits(load):
    robot = load(pair())
    limits = robot.joint("j").limits
    assert (limits.lower, limits.upper, limits.effort, limits.velocity) == ((-1.0,), (2.0,), (3.0,), (4.0,))
    assert load(pair('<limit lower="-inf" upper="1e308" effort="1" velocity="1"/>')).joint("j").limits.upper == (
        math.inf,
    )
    assert any("no <limit>" in note for note in load(pair("")).notes)


def test_transmissions_become_actuators(load):
    more = (
        '<transmission name="t"><type>x</type><joint name="j"/>'
        '<actuator name="m"><mechanicalReduction>50</mechanicalReduction><drake:rotor_inertia value="1e-4"/></actuator>'
        '</transmission><transmission name="u"><joint name="j"/><joint name="j"/></transmission>'
        '<transmission name="w"><joint name="none"/><actuator name="z"/></transmission>'
    )
    robot = load(pair(more=more))
    (motor,) = robot.actuators
    assert (motor.name, motor.coordinate, motor.gear, motor.rotor_inertia, motor.effort) == ("m", "j", 50.0, 1e-4, 3.0)
    assert sum("<transmission>" in note for note in robot.notes) == 2


def test_what_is_left_out_is_listed(load):
    more = '<gazebo reference="a"><mu1>1</mu1></gazebo>\n<sensor name="imu"/><gazebo/><foo:bar/>'
    notes = load(pair(more=more)).notes
    assert any(note.startswith("left out: 2 <gazebo>") and "(a)" in note for note in notes)
    assert any("<sensor>" in note and "imu" in note for note in notes)
    assert any("<foo:bar>" in note for note in notes)


@pytest.mark.parametrize(
    ("kind", "mine"),
    [("revolute", "revolute"), ("continuous", "revolute"), ("fixed", "weld"), ("spherical", "point"), ("ball", "point"),
     ("prismatic", "prismatic"), ("universal", "universal"), ("planar", "planar"), ("cylindrical", "cylindrical")],
)  # fmt: skip
def test_constraint_elements_become_loops(load, kind, mine):
    inside = (
        '<parent link="b"/><child link="a"/><parent_origin xyz="1 0 0"/><child_origin xyz="0 1 0" rpy="0 0 1"/>'
        '<parent_axis xyz="0 0 2"/>'
    )
    (loop,) = load(pair(more=f'<constraint name="c" type="{kind}">{inside}</constraint>')).loops
    assert (loop.kind, loop.body, loop.other, loop.axis) == (mine, "b", "a", (0.0, 0.0, 1.0))
    assert loop.placement.position.tolist() == [1, 0, 0]
    assert loop.other_placement == Placement.from_rpy((0, 0, 1), (0, 1, 0))
    assert loop.source is not None
    assert loop.source.line == 5


@pytest.mark.parametrize("own", ["0 0 2", "0 0 -1", "1 2 3", "-1e-3 0 -1", "0 1 0"])
def test_a_child_axis_turns_the_child_s_frame(load, own):
    """The axis, given in both links, is the same line when the loop is closed: R_child axis = child_axis."""
    inside = f'<parent link="b"/><child link="a"/><parent_axis xyz="0 0 1"/><child_axis xyz="{own}"/>'
    (loop,) = load(pair(more=f'<constraint name="c" type="revolute">{inside}</constraint>')).loops
    given = np.array([float(x) for x in own.split()])
    np.testing.assert_allclose(loop.other_placement.rotation @ loop.axis, given / np.linalg.norm(given), atol=1e-12)


def test_every_loop_of_a_file_is_a_constraint(load):
    """The mechanism makes its rows of what the readers hand over."""
    inside = '<parent link="b"/><child link="a"/><parent_axis xyz="0 0 1"/><child_axis xyz="{}"/>'
    rows = {"revolute": 5, "fixed": 6, "ball": 3, "prismatic": 5, "universal": 4, "planar": 3, "cylindrical": 4}
    for kind, count in rows.items():
        axis = "0 1 0" if kind == "universal" else "0 0 1"
        robot = load(pair(more=f'<constraint name="c" type="{kind}">{inside.format(axis)}</constraint>'))
        assert len(robot.names) == count
        assert robot.jacobian(robot.neutral()).shape == (count, 1)


def test_loop_joints_of_old_drake(load):
    inside = '<link1 link="b" xyz="1 0 0"/><link2 link="a" xyz="0 1 0" rpy="0 0 0"/><axis xyz="0 0 1"/>'
    (loop,) = load(pair(more=f'<loop_joint name="c" type="continuous">{inside}</loop_joint>')).loops
    assert (loop.kind, loop.body, loop.other) == ("revolute", "b", "a")


def test_drake_constraints_and_springs(load):
    ball, spring = "drake:ball_constraint", "drake:linear_spring_damper"
    more = (
        f'<{ball}><{ball}_body_A name="a"/><{ball}_body_B name="b"/><{ball}_p_AP value="1 2 3"/></{ball}>'
        f'<{spring}><{spring}_body_A name="a"/><{spring}_body_B name="b"/><{spring}_p_AP value="0 0 1"/>'
        f'<{spring}_free_length value="2"/><{spring}_stiffness value="30"/><{spring}_damping value="4"/></{spring}>'
    )
    robot = load(pair(more=more))
    (loop,), (force,) = robot.loops, robot.springs
    assert loop.kind == "point"
    assert loop.placement.position.tolist() == [1, 2, 3]
    assert (force.stiffness, force.rest, force.damping) == (30, 2, 4)
    assert robot.frame(force.frame).placement.position.tolist() == [0, 0, 1]


@pytest.mark.parametrize(
    "start", [b"\xef\xbb\xbf", b'<?xml version="1.0" encoding="iso-8859-1"?>', b"<!-- c -->\n", b"\n\n"]
)
def test_beginnings(load, start):
    assert load(start + pair().encode()).nq == 1


def test_encodings(load):
    text = pair().replace('name="b"', 'name="Gelenk-Ä"').replace('child link="b"', 'child link="Gelenk-Ä"')
    for encoding in ("utf-8", "utf-16", "iso-8859-1", "cp1252"):
        content = f'<?xml version="1.0" encoding="{encoding}"?>{text}'.encode(encoding)
        assert load(content).bodies[1].name == "Gelenk-Ä"


REFUSED = {
    "two roots": (pair(more=link("c")), "2 bodies are carried by no joint|one root"),
    "no parent": (pair().replace('<parent link="a"/>', ""), '<joint name="j">: <parent> is missing'),
    "unknown parent": (pair().replace('parent link="a"', 'parent link="aa"'), "did you mean 'a'"),
    "unknown child": (pair().replace('child link="b"', 'child link="bb"'), "did you mean 'b'"),
    "two carriers": (pair(more=joint("k", "a", "b")), "closes a loop"),
    "self": (pair(more=link("c") + joint("k", "c", "c")), "cycle"),
    "cycle": (pair(more=link("c") + link("d") + joint("k", "c", "d") + joint("m", "d", "c")), "cycle"),
    "same link": (pair(more=link("b")), "'b' is there already, first in .*r.urdf:3"),
    "same joint": (pair(more=link("c") + joint("j", "a", "c")), "'j' is there already, first in .*r.urdf:4"),
    "no name": (pair().replace('<link name="a">', "<link>"), "'name' is missing"),
    "empty name": (pair().replace('<link name="a">', '<link name=" ">'), "'name' is empty"),
    "no type": (pair().replace(' type="revolute"', ""), "'type' is missing"),
    "unknown type": (pair(kind="wobbly"), "unknown type 'wobbly'"),
    "zero axis": (pair(LIMIT + '<axis xyz="0 0 0"/>'), "r.urdf:4 <axis>: the axis is zero"),
    "nan": (pair(LIMIT + '<origin xyz="0 nan 0"/>'), "r.urdf:4 <origin>: xyz = 'nan' is not a number"),
    "infinite": (pair(LIMIT + '<origin xyz="0 inf 0"/>'), "infinite"),
    "overflow": (pair(LIMIT + '<origin xyz="0 1e999 0"/>'), "beyond any machine"),
    "two numbers": (pair(LIMIT + '<origin xyz="0 1"/>'), "needs 3 numbers, not 2"),
    "comma": (pair(LIMIT + '<origin xyz="0,1 0 0"/>'), "decimals take a point"),
    "underscore": (pair(LIMIT + '<origin xyz="1_0 0 0"/>'), "is not a number"),
    "arabic digits": (pair(LIMIT + '<origin xyz="\u0661 0 0"/>'), "is not a number"),
    "macro": (pair(LIMIT + '<origin xyz="${x} 0 0"/>'), "xacro"),
    "negative mass": (pair().replace('mass value="1"', 'mass value="-1"'), "mass is negative"),
    "no mass": (pair().replace('<mass value="1"/>', ""), "<mass> is missing"),
    "no moment": (pair().replace('ixx="1"', ""), "'ixx' is missing"),
    "triangle": (pair().replace('ixx="1"', 'ixx="3"'), "triangle"),
    "limits": (pair('<limit lower="1" upper="-1" effort="1" velocity="1"/>'), "exceeds"),
    "nan limit": (pair('<limit lower="nan" upper="1" effort="1" velocity="1"/>'), "lower = 'nan'"),
    "two origins": (pair(LIMIT + "<origin/><origin/>"), "a second <origin>"),
    "mimics itself": (pair(LIMIT + '<mimic joint="j"/>'), "cannot mimic itself"),
    "quaternion": (pair(LIMIT + '<origin quat_xyzw="0 0 0 0"/>'), "not a rotation"),
    "loop of no kind": (pair(more='<constraint name="c" type="glue"/>'), "type 'glue'"),
    "loop to nowhere": (
        pair(more='<constraint name="c" type="ball"><parent link="a"/><child link="x"/></constraint>'),
        "no body",
    ),
    "nothing": ('<robot name="r"/>', "no <link>"),
}


@pytest.mark.parametrize("case", sorted(REFUSED))
def test_refusals_name_file_line_and_element(load, case):
    text, words = REFUSED[case]
    with pytest.raises(da.ModelError, match=words) as caught:
        load(text, strict=True)
    assert "r.urdf:" in str(caught.value)
    assert "<" in str(caught.value)


@pytest.mark.parametrize("name", ["r.xacro", "r.urdf.xacro", "r.urdf"])
def test_xacro_is_refused_with_what_to_do(load, name):
    with pytest.raises(da.UnsupportedError, match=r"xacro .* > robot\.urdf"):
        load('<robot name="r"><xacro:include filename="x"/></robot>', name)


def test_unphysical_on_request(load):
    robot = load(pair().replace('mass value="1"', 'mass value="-1"'), allow_unphysical=True)
    assert any("negative" in note for note in robot.notes)
