"""What an MJCF file switches off, leaves to plugins or keeps in other folders, against MuJoCo itself."""

from __future__ import annotations

import struct
from pathlib import Path

import mujoco
import numpy as np
import pytest

import dalembert as da

ARM = """<mujoco><option>{}</option><worldbody>
<body name="a"><joint name="j" axis="0 1 0" damping=".3" stiffness="2" springref="20" frictionloss="1" range="-9 90"/>
<geom pos=".3 0 0" size=".1"/>
<body name="b" pos=".6 0 0" gravcomp=".4"><joint name="k" axis="0 1 0" {}/><geom pos=".2 0 0" size=".1"/></body></body>
</worldbody><tendon><fixed name="t" {}><joint joint="j" coef="1"/><joint joint="k" coef="-2"/></fixed></tendon>
<equality>{}</equality></mujoco>"""


@pytest.fixture
def load(tmp_path):
    def read(text: str, name: str = "m.xml", **options) -> da.Mechanism:
        (tmp_path / name).write_text(text)
        return da.load(tmp_path / name, **options)

    return read


def inverse(text: str, q, v, a) -> np.ndarray:
    """Return MuJoCo's inverse dynamics without what constraints do."""
    model = mujoco.MjModel.from_xml_string(text)
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    data = mujoco.MjData(model)
    data.qpos, data.qvel, data.qacc = q, v, a
    mujoco.mj_inverse(model, data)
    return data.qfrc_inverse


def noted(robot: da.Mechanism, words: str) -> bool:
    return any(words in note for note in robot.notes)


FLAGS = [
    "",
    "spring",
    "damper",
    "spring damper",
    "gravity",
    "frictionloss",
    "limit",
    "equality",
    "constraint",
    "actuation",
]


@pytest.mark.parametrize("flags", FLAGS)
def test_flags_of_passive_forces_act_as_in_mujoco(load, flags):
    """Springs, dampers, gravity and, where both of the first are off, gravity compensation."""
    given = "<flag {}/>".format(" ".join(f'{flag}="disable"' for flag in flags.split())) if flags else ""
    text = ARM.format(given, "", 'stiffness="3" damping=".2"', "")
    robot, rng = load(text), np.random.default_rng(3)
    for _ in range(3):
        q, v, a = rng.normal(size=(3, 2))
        np.testing.assert_allclose(robot.inverse(q, v, a).tau, inverse(text, q, v, a), rtol=1e-10, atol=1e-12)
    off = flags in ("frictionloss", "constraint")
    assert robot.joint("j").friction == (() if off else (1.0,))
    assert (robot.joint("j").limits.lower == ()) == (flags in ("limit", "constraint"))
    assert noted(robot, "limits, which the file switches off") == (flags in ("limit", "constraint"))
    assert noted(robot, "dry friction, which the file switches off") == off
    assert noted(robot, "spring, which the file switches off") == ("spring" in flags)
    assert noted(robot, "damping, which the file switches off") == ("damper" in flags)


@pytest.mark.parametrize("flag", ["equality", "constraint"])
@pytest.mark.parametrize("row", ['<joint joint1="j" joint2="k"/>', '<connect body1="b" anchor="0 0 0"/>'])
def test_equalities_that_the_file_switches_off_are_left_out(load, flag, row):
    robot = load(ARM.format(f'<flag {flag}="disable"/>', "", "", row))
    assert robot.names == ()
    assert noted(robot, "which the file switches off")
    assert len(load(ARM.format("", "", "", row)).names) > 0


@pytest.mark.parametrize(("scale", "rows"), [("0", 3), ("1e-3", 6), ("1", 6)])
def test_a_weld_without_torque_is_a_point(load, scale, rows):
    text = ARM.format("", "", "", f'<weld name="w" body1="b" torquescale="{scale}" anchor=".1 0 0"/>')
    robot, model = load(text), mujoco.MjModel.from_xml_string(text)
    assert len(robot.names) == rows
    np.testing.assert_allclose(robot.constraint(np.zeros(2)), 0, atol=1e-12)
    data = mujoco.MjData(model)
    data.qpos = q = np.array([0.3, -0.5])
    mujoco.mj_forward(model, data)
    gap = np.linalg.norm(data.efc_pos[:3])
    assert gap > 0.1
    np.testing.assert_allclose(np.linalg.norm(robot.constraint(q)[:3]), gap, rtol=1e-9)


@pytest.mark.parametrize(
    ("joint", "tendon", "words"),
    [
        ('stiffness="1 2"', "", "nonlinear part of its stiffness"),
        ('damping="1 0 2"', "", "nonlinear part of its damping"),
        ("", 'stiffness="0 2"', "nonlinear part of stiffness of tendon 't'"),
        ("", 'damping="3 4"', "nonlinear part of damping of tendon 't'"),
    ],
)
def test_polynomials_are_named(load, joint, tendon, words):
    assert noted(load(ARM.format("", joint, tendon, "")), words)
    off = '<flag spring="disable" damper="disable"/>'
    assert not noted(load(ARM.format(off, joint, tendon, "")), "nonlinear")


HELD = """<mujoco><worldbody><body name="a"><joint name="j" axis="0 1 0" {}/><geom pos=".3 0 0" size=".1"/>
<body name="b" pos=".6 0 0" gravcomp="1"><joint name="k" axis="0 1 0" {}/><geom pos=".2 0 0" size=".1"/></body></body>
</worldbody><actuator><motor joint="j"/></actuator></mujoco>"""
MOTOR = 'actuatorgravcomp="true"'


@pytest.mark.parametrize(("one", "two", "words"), [("", "", ""), (MOTOR, MOTOR, "part of tau"), (MOTOR, "", "passive")])
def test_gravity_that_motors_compensate_is_part_of_tau(load, one, two, words):
    text = HELD.format(one, two)
    robot, rng = load(text), np.random.default_rng(4)
    q, v, a = rng.normal(size=(3, 2))
    assert noted(robot, "motors compensate gravity") == bool(words)
    assert any(words in note for note in robot.notes)
    if one == two:
        np.testing.assert_allclose(robot.inverse(q, v, a).tau, inverse(text, q, v, a), rtol=1e-10)


FIELD = '<asset><hfield name="h" {} size="1 2 .5 .1"/></asset>'


@pytest.mark.parametrize("joint", ["", '<joint axis="0 1 0"/>'])
def test_the_mass_of_a_height_field_counts(load, joint):
    body = f'<body name="t">{joint}<geom type="hfield" hfield="h" pos=".1 0 .2"/></body>'
    arm = '<body name="a"><joint axis="0 1 0"/><geom pos=".3 0 0" size=".1"/></body>'
    text = f"<mujoco>{FIELD}<worldbody>{body}{arm}</worldbody></mujoco>"
    model = mujoco.MjModel.from_xml_string(text.format('nrow="3" ncol="4"'))
    for given in ('nrow="3" ncol="4"', 'file="there_is_none.png"'):
        robot = load(text.format(given))
        found = next(body for body in robot.bodies if body.name == "t").inertia
        assert found.mass == pytest.approx(model.body_mass[1], rel=1e-12)
        np.testing.assert_allclose(found.center, model.body_ipos[1], atol=1e-12)
        np.testing.assert_allclose(np.linalg.eigvalsh(found.rotational), np.sort(model.body_inertia[1]), rtol=1e-9)


def test_actuators_with_several_controls(load):
    """MuJoCo 4: `nu` counts controls, `nactuator` actuators."""
    ball = '<body name="c"><joint name="b" type="ball"/><geom size=".1"/></body>'
    hinge = '<body name="a"><joint name="j"/><geom size=".1"/></body>'
    motors = '<orientation name="o" joint="b"/><motor name="m" joint="j" gear="7"/>'
    text = f"<mujoco><worldbody>{ball}{hinge}</worldbody><actuator>{motors}</actuator></mujoco>"
    try:
        model = mujoco.MjModel.from_xml_string(text)
    except ValueError:
        pytest.skip("this MuJoCo has no actuators with several controls")
    assert model.nu > model.nactuator
    robot = load(text)
    assert [(each.name, each.gear) for each in robot.actuators] == [("m", 7.0)]
    assert noted(robot, "actuator 'o'")


def tetrahedron(path: Path, size: float) -> None:
    """Write an STL file."""
    corners = size * np.vstack([np.zeros(3), np.eye(3)])
    faces = ((0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3))
    path.parent.mkdir(parents=True, exist_ok=True)
    packed = b"".join(struct.pack("<12fH", 0, 0, 0, *corners[list(face)].ravel(), 0) for face in faces)
    path.write_bytes(bytes(80) + struct.pack("<I", len(faces)) + packed)


@pytest.mark.parametrize("folder", ["", 'meshdir="meshes"'])
@pytest.mark.parametrize("there", [["a.stl"], ["sub/a.stl"], ["meshes/a.stl"], ["sub/a.stl", "a.stl", "meshes/a.stl"]])
def test_meshes_of_included_files(tmp_path, folder, there):
    """MuJoCo looks in the main file's folder (and its meshdir) first, then beside the included file."""
    for size, name in enumerate(there):
        tetrahedron(tmp_path / name, 1.0 + size)
    body = '<worldbody><body name="b"><joint/><geom type="mesh" mesh="a"/></body></worldbody>'
    (tmp_path / "m.xml").write_text(f'<mujoco><compiler {folder}/><include file="sub/i.xml"/>{body}</mujoco>')
    (tmp_path / "sub").mkdir(exist_ok=True)
    (tmp_path / "sub/i.xml").write_text('<mujoco><asset><mesh file="a.stl"/></asset></mujoco>')
    try:
        mass = mujoco.MjModel.from_xml_path(str(tmp_path / "m.xml")).body_mass[1]
    except ValueError:
        with pytest.raises(da.ModelError, match=r"a\.stl.*was not found"):
            da.load(tmp_path / "m.xml")
        return
    assert da.load(tmp_path / "m.xml").bodies[0].inertia.mass == pytest.approx(mass, rel=1e-12)


def test_meshes_whose_path_is_stripped(tmp_path):
    """`strippath` leaves the name of a file without its folders, in MuJoCo and here."""
    mesh = '<asset><mesh name="m" file="elsewhere/a.stl"/></asset>'
    body = '<worldbody><body name="a"><joint/><geom type="mesh" mesh="m"/></body></worldbody>'
    (tmp_path / "m.xml").write_text(f'<mujoco><compiler strippath="true"/>{mesh}{body}</mujoco>')
    tetrahedron(tmp_path / "a.stl", 0.25)
    mass = mujoco.MjModel.from_xml_path(str(tmp_path / "m.xml")).body_mass[1]
    np.testing.assert_allclose(da.load(tmp_path / "m.xml").bodies[0].inertia.mass, mass, rtol=1e-12)


def test_an_included_file_is_the_one_that_mujoco_takes(tmp_path):
    body = '<mujoco><worldbody><body name="{}"><joint/><geom size="1"/></body></worldbody></mujoco>'
    (tmp_path / "sub").mkdir()
    (tmp_path / "m.xml").write_text('<mujoco><include file="sub/i.xml"/></mujoco>')
    (tmp_path / "sub/i.xml").write_text('<mujoco><include file="j.xml"/></mujoco>')
    (tmp_path / "sub/j.xml").write_text(body.format("beside"))
    (tmp_path / "j.xml").write_text(body.format("main"))
    for _ in range(2):
        expected = mujoco.MjModel.from_xml_path(str(tmp_path / "m.xml")).body(1).name
        assert da.load(tmp_path / "m.xml").bodies[0].name == expected
        (tmp_path / "j.xml").unlink(missing_ok=True)


PLUGIN = '<extension><plugin plugin="mujoco.pid"><instance name="p"/></plugin></extension>'
JOINTED = '<worldbody><body name="a"><joint name="j"/><geom size=".1"/>{}</body></worldbody>'


def test_plugins_of_actuators_are_named(load):
    for reference in ('plugin="mujoco.pid"', 'instance="p"'):
        text = f'<mujoco>{PLUGIN}{JOINTED.format("")}<actuator><plugin joint="j" {reference}/></actuator></mujoco>'
        assert noted(load(text), "the plugin 'mujoco.pid', which is not run")


def test_rotors_of_actuators_with_plugins_count(load):
    """What computes an actuator's force does not change its gear and rotor; defaults of <general> are theirs."""
    default = '<default><general armature="0.3" gear="2"/></default>'
    plugin = '<actuator><plugin name="p" joint="j" instance="p" actdim="0" forcerange="-5 5"/></actuator>'
    text = f"<mujoco>{PLUGIN}{default}{JOINTED.format('')}{plugin}</mujoco>"
    model, robot = mujoco.MjModel.from_xml_string(text), load(text)
    data, M = mujoco.MjData(model), np.zeros((1, 1))
    mujoco.mj_forward(model, data)
    mujoco.mj_fullM(model, data, M)
    np.testing.assert_allclose(robot.mass_matrix([0.3]), M, rtol=1e-12)
    assert M[0, 0] > 1.2
    assert [(motor.name, motor.gear, motor.effort) for motor in robot.actuators] == [("p", 2.0, 10.0)]


def test_plugins_of_bodies_are_refused_by_name(load):
    text = f"<mujoco>{PLUGIN}{JOINTED.format(chr(10) + '<plugin instance=' + chr(34) + 'p' + chr(34) + '/>')}</mujoco>"
    with pytest.raises(da.UnsupportedError, match=r"m\.xml:2 <plugin>: forces of the plugin 'mujoco\.pid'"):
        load(text)


def test_shapes_of_plugins(load):
    """A shape that a plugin makes does not matter where the body has an <inertial>, and is named where it does."""
    mesh = '<asset><mesh name="m"><plugin plugin="mujoco.sdf.torus"/></mesh></asset>'
    geom = '<geom type="sdf" mesh="m"><plugin plugin="mujoco.sdf.torus"/></geom>'
    extension = '<extension><plugin plugin="mujoco.sdf.torus"/></extension>'
    body = f'<mujoco>{extension}{mesh}<worldbody><body name="a"><joint/>{{}}{geom}</body></worldbody></mujoco>'
    robot = load(body.format('<inertial pos="0 0 0" mass="2" diaginertia="1 1 1"/>'))
    assert robot.bodies[0].inertia.mass == 2
    assert noted(robot, "mujoco.sdf.torus")
    with pytest.raises(da.UnsupportedError, match=r"m\.xml.*'a'.*'mujoco\.sdf\.torus'.*<inertial>"):
        load(body.format(""))


@pytest.mark.parametrize(
    "inside",
    [
        '<flexcomp name="f" type="grid" count="2 2 2"/>',
        '<composite type="cable" count="3 1 1"/>',
        '</worldbody><deformable><skin/><flex name="f"/></deformable><worldbody>',
    ],
)
def test_advice_for_soft_bodies_does_not_lead_back(load, inside):
    """What MuJoCo writes still holds <flex>: the advice is not to let it write."""
    with pytest.raises(da.UnsupportedError, match="not read") as caught:
        load(f"<mujoco><worldbody>{inside}</worldbody></mujoco>")
    assert "compile" not in str(caught.value)


def test_skins_are_no_soft_bodies(load, tmp_path):
    """They are pictures on rigid bodies, and stand in <deformable> beside soft bodies, also in included files."""
    bone = '<bone body="a" bindpos="0 0 0" bindquat="1 0 0 0" vertid="0 1 2" vertweight="1 1 1"/>'
    skin = f'<skin name="s" vertex="0 0 0 1 0 0 0 1 0" face="0 1 2">{bone}</skin>'
    text = f'<mujoco>{JOINTED.format("")}<deformable><include file="i.xml"/></deformable></mujoco>'
    (tmp_path / "i.xml").write_text(f"<mujoco>{skin}</mujoco>")
    robot = load(text)
    assert mujoco.MjModel.from_xml_path(str(tmp_path / "m.xml")).nskin == 1
    assert robot.nv == 1
    assert noted(robot, "left out: 1 <deformable>")
    (tmp_path / "i.xml").write_text("<mujoco>\n<flex/></mujoco>")
    with pytest.raises(da.UnsupportedError, match=r"i\.xml:2 <flex>: soft bodies"):
        load(text)


def test_advice_for_attached_models_leads_to_a_file_that_loads(tmp_path):
    (tmp_path / "part.xml").write_text(
        '<mujoco><worldbody><body name="p"><joint/><geom size="1"/></body></worldbody></mujoco>'
    )
    asset = '<asset><model name="n" file="part.xml"/></asset>'
    attach = f'{asset}<worldbody><attach model="n" body="p" prefix="x_"/></worldbody>'
    path, new = tmp_path / "m.xml", tmp_path / "new.xml"
    path.write_text(f"<mujoco>{attach}</mujoco>")
    with pytest.raises(da.UnsupportedError, match="attached models") as caught:
        da.load(path)
    advice = str(caught.value).split("read that: ")[1]
    exec(advice, {"mujoco": mujoco, "path": str(path), "new": str(new)})
    assert da.load(new).bodies[0].name == "x_p"


def test_collision_shapes_are_named(load):
    """One note for every format: nobody who drops a robot on the ground should be surprised."""
    body = '<geom type="plane" size="1 1 1"/><body name="a"><joint/><geom size=".1" {}/></body>'
    mjcf = f"<mujoco>{{}}<worldbody>{body}</worldbody></mujoco>"
    assert noted(load(mjcf.format("", "")), "collision shapes are not used: 2 on 2 bodies (world, a)")
    assert noted(load(mjcf.format("", 'contype="0" conaffinity="0"')), "1 on 1 bodies (world)")
    assert not noted(load(mjcf.format('<option><flag contact="disable"/></option>', "")), "collision shapes")
    shape = "<collision><geometry><sphere radius='1'/></geometry></collision>"
    urdf = f'<robot name="r"><link name="a">{shape * 2}</link></robot>'
    assert noted(
        load(urdf, "r.urdf"), "collision shapes are not used: 2 on 1 bodies (a); without contacts= of simulate"
    )
    sdf = '<sdf version="1.9"><model name="m"><link name="a"><collision name="c"/></link></model></sdf>'
    assert noted(load(sdf, "m.sdf"), "collision shapes are not used: 1 on 1 bodies (a)")
    assert not noted(load('<robot name="r"><link name="a"/></robot>', "r.urdf"), "collision shapes")


@pytest.mark.parametrize(("shares", "acts"), [((-0.4, 0.0), False), ((-0.4, 0.7), True), ((0.0, 0.7), True)])
def test_negative_shares_of_weight_act_as_in_mujoco(load, shares, acts):
    """MuJoCo looks for weights that are held up only where some body has a positive share."""
    text = ARM.replace('gravcomp=".4"', f'gravcomp="{shares[0]}"')
    text = text.replace('name="a"', f'name="a" gravcomp="{shares[1]}"').format("", "", "", "")
    robot, (q, v, a) = load(text), np.random.default_rng(5).normal(size=(3, 2))
    np.testing.assert_allclose(robot.inverse(q, v, a).tau, inverse(text, q, v, a), rtol=1e-10, atol=1e-12)
    assert noted(robot, "left out: gravcomp = -0.4 of body 'b'") != acts


@pytest.mark.parametrize("row", ['<weld site1="s" site2="t"/>', '<connect site1="s" site2="t"/>'])
def test_an_equality_of_a_body_with_itself_is_left_out(load, row):
    """Between places that agree its rows are zero; between two places it contradicts itself."""
    sites = '<site name="s" pos="0 0 .1"/><site name="t" pos="0 0 .1"/><geom pos=".3 0 0" size=".1"/>'
    text = ARM.replace('<geom pos=".3 0 0" size=".1"/>', sites).format("", "", "", row)
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    assert not np.any(data.efc_J[: data.ne * model.nv])
    robot = load(text)
    assert not robot.names
    assert noted(robot, "which joins 'a' to itself")
    with pytest.raises(da.ModelError, match="joins 'a' to itself"):
        load(text.replace('"t" pos="0 0 .1"', '"t" pos="0 0 .2"'))


@pytest.mark.parametrize("target", ['tendon="t"', 'joint="ball"'])
def test_rotors_of_actuators_that_are_left_out_are_said(load, target):
    """MuJoCo counts their inertia in M, through a tendon and on a ball joint, too."""
    ball = '<body pos="1 0 0"><joint name="ball" type="ball"/><geom size=".1"/></body></worldbody>'
    text = ARM.format("", "", "", "").replace("</worldbody>", ball)
    motor = f'<actuator><motor {target} armature="0.25"/></actuator></mujoco>'
    heavier = mujoco.MjModel.from_xml_string(text.replace("</mujoco>", motor))
    lighter = mujoco.MjModel.from_xml_string(text)
    mass = [np.zeros((5, 5)), np.zeros((5, 5))]
    for model, M in zip((heavier, lighter), mass, strict=True):
        data = mujoco.MjData(model)
        mujoco.mj_forward(model, data)
        mujoco.mj_fullM(model, data, M)
    assert np.abs(mass[0] - mass[1]).max() > 0.2
    assert noted(load(text.replace("</mujoco>", motor)), "armature = 0.25")
