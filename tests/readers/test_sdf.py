"""SDF: poses and frames by the specification's own words, dialects 1.4 to 1.11, nested models, loops, Cassie."""

from __future__ import annotations

import math

import numpy as np
import pytest

import dalembert as da
from dalembert.model import Placement
from tests.readers.placements import assert_same, placements
from tests.readers.robots import ROBOTS, SDFS

INERTIAL = "<inertial><mass>1</mass><inertia><ixx>1</ixx><iyy>1</iyy><izz>1</izz></inertia></inertial>"


def link(name: str, pose: str = "", inside: str = INERTIAL) -> str:
    return f'<link name="{name}">{pose}{inside}</link>\n'


def joint(name: str, parent: str, child: str, kind: str = "revolute", inside: str = "") -> str:
    return f'<joint name="{name}" type="{kind}"><parent>{parent}</parent><child>{child}</child>{inside}</joint>\n'


def model(inside: str, version: str = "1.9", name: str = "m", attributes: str = "") -> str:
    return f'<sdf version="{version}">\n<model name="{name}"{attributes}>\n{inside}</model></sdf>'


def axis(xyz: str, attributes: str = "", more: str = "") -> str:
    return f"<axis><xyz{attributes}>{xyz}</xyz>{more}</axis>"


@pytest.fixture
def load(tmp_path):
    def read(text: str, name: str = "m.sdf", **options) -> da.Mechanism:
        (tmp_path / name).write_text(text)
        return da.load(tmp_path / name, **options)

    return read


POSES = "<pose>1 0 0 0 0 0.5</pose>", "<pose>1 2 0 0.3 0 0.5</pose>"


def dialect(version: str, how: str) -> str:
    """Return one mechanism in a dialect: an axis along the model's y."""
    return model(link("a", POSES[0]) + link("b", POSES[1]) + joint("j", "a", "b", inside=how), version)


UNTURNED = Placement.from_rpy((0.3, 0, 0.5)).rotation.T @ np.array([0, 1.0, 0])


@pytest.mark.parametrize(
    ("version", "how"),
    [
        ("1.4", axis("0 2 0")),
        ("1.5", axis("0 2 0", more="<use_parent_model_frame>1</use_parent_model_frame>")),
        ("1.6", axis("0 1 0", more="<use_parent_model_frame>true</use_parent_model_frame>")),
        ("1.6", axis(" ".join(map(repr, UNTURNED.tolist())))),
        ("1.7", axis("0 1 0", ' expressed_in="__model__"')),
        ("1.11", axis("0 1 0", ' expressed_in="__model__"')),
        (
            "1.9",
            axis(" ".join(map(repr, UNTURNED.tolist())), more="<use_parent_model_frame>0</use_parent_model_frame>"),
        ),
    ],
)
def test_axes_in_every_dialect(load, version, how):
    """In all of them the axis is the model's y; in the joint's frame, which is b's, that is R^T y."""
    robot = load(dialect(version, how))
    np.testing.assert_allclose(robot.joint("j").axis, UNTURNED, atol=1e-15)
    places = placements(load(dialect(version, how), base="fixed"))
    assert_same(places["a"], Placement.from_rpy((0, 0, 0.5), (1, 0, 0)))
    assert_same(places["b"], Placement.from_rpy((0.3, 0, 0.5), (1, 2, 0)))


def test_joint_pose_is_in_the_child_and_may_be_relative(load):
    """<pose> of a joint is in its child's frame; `relative_to` moves it elsewhere, and links may follow the joint."""
    own = joint("j", "a", "b", inside="<pose>0 0 1 0 0 0</pose>" + axis("1 0 0"))
    robot = load(model(link("a") + link("b", "<pose>0 3 0 0 0 0</pose>") + own), base="fixed")
    assert robot.joint("j").placement.position.tolist() == [0, 3, 1]
    assert robot.joint("j").child_placement.position.tolist() == [0, 0, 1]
    chained = joint("j", "a", "b", inside='<pose relative_to="a">0 3 1 0 0 0</pose>' + axis("1 0 0"))
    text = model(link("a") + link("b", '<pose relative_to="j">0 0 -1 0 0 0</pose>') + chained)
    assert load(text, base="fixed") == robot


def test_frames_with_relative_to_and_attached_to(load):
    frames = (
        '<frame name="f" attached_to="b"><pose>0 0 1 0 0 0</pose></frame>'
        '<frame name="g" attached_to="f"><pose relative_to="a">0 0 5 0 0 0</pose></frame>'
        '<frame name="h"><pose relative_to="f">1 0 0 0 0 0</pose></frame>'
    )
    text = model(link("a") + link("b", "<pose>0 3 0 0 0 0</pose>") + frames + joint("j", "a", "b"))
    robot = load(text)
    assert (robot.frame("f").body, robot.frame("f").placement.position.tolist()) == ("b", [0, 0, 1])
    assert (robot.frame("g").body, robot.frame("g").placement.position.tolist()) == ("b", [0, -3, 5])
    assert (robot.frame("h").body, robot.frame("h").placement.position.tolist()) == ("a", [1, 3, 1])


def test_joints_between_frames(load):
    """Since 1.7 parent and child may be frames: the links they are attached to move."""
    frames = '<frame name="f" attached_to="a"/><frame name="g" attached_to="b"><pose>0 0 1 0 0 0</pose></frame>'
    robot = load(model(link("a") + link("b", "<pose>0 3 0 0 0 0</pose>") + frames + joint("j", "f", "g")), base="fixed")
    assert (robot.joint("j").parent, robot.joint("j").child) == ("a", "b")
    assert robot.joint("j").placement.position.tolist() == [0, 3, 1]


def test_pose_formats(load):
    degrees = load(model(link("a", '<pose degrees="true">1 2 3 90 0 0</pose>')), base="fixed")
    turned = load(model(link("a", '<pose rotation_format="quat_xyzw">1 2 3 1 0 0 1</pose>')), base="fixed")
    assert_same(placements(degrees)["a"], placements(turned)["a"])
    assert_same(placements(turned)["a"], Placement.from_rpy((math.pi / 2, 0, 0), (1, 2, 3)))


@pytest.mark.parametrize("form", ["", 'rotation_format="quat_xyzw"', 'rotation_format="euler_rpy"', 'degrees="true"'])
def test_an_empty_pose_is_the_identity(load, form):
    for text in ("", " \n"):
        robot = load(model(link("a", f"<pose {form}>{text}</pose>")), base="fixed")
        assert_same(placements(robot)["a"], Placement())


def test_flattened_models_keep_their_scoped_names(load):
    """Tools write "arm::hand" and "arm::__model__" as names of one flat model; they mean what nested ones did."""
    inner = f'<model name="arm"><pose>0 0 1 0 0 0</pose>{link("hand", "<pose>1 0 0 0 0 0</pose>")}</model>'
    nested = load(
        model(link("a") + inner + joint("j", "a", "arm::hand"), attributes=' canonical_link="a"'), base="fixed"
    )
    flat = (
        link("a")
        + '<frame name="arm::__model__" attached_to="arm::hand">'
        + '<pose relative_to="__model__">0 0 1 0 0 0</pose></frame>'
        + link("arm::hand", '<pose relative_to="arm::__model__">1 0 0 0 0 0</pose>')
        + joint("j", "a", "arm::hand")
    )
    for version in ("1.7", "1.9"):
        robot = load(model(flat, version, attributes=' canonical_link="a"'), base="fixed")
        assert [body.name for body in robot.bodies] == ["a", "arm::hand"]
        assert_same(placements(robot)["arm::hand"], placements(nested)["arm::hand"])
        assert robot.frame("arm::__model__").body == "arm::hand"
    with pytest.raises(da.ModelError, match="arm::hand"):
        load(model(flat + inner), base="fixed")
    for name in ("__a", "a__"):
        assert load(model(link(name))).bodies[0].name == name


def test_nested_models_are_scoped_and_placed(load):
    inner = f'<model name="arm"><pose>0 0 1 0 0 0</pose>{link("hand", "<pose>1 0 0 0 0 0</pose>")}</model>'
    text = model(link("a") + inner + joint("j", "a", "arm::hand"), attributes=' canonical_link="a"')
    robot = load(text, base="fixed")
    assert [body.name for body in robot.bodies] == ["a", "arm::hand"]
    assert placements(robot)["arm::hand"].position.tolist() == [1, 0, 1]
    placed = inner.replace('name="arm"', 'name="arm" placement_frame="hand"')
    assert placements(load(text.replace(inner, placed), base="fixed"))["arm::hand"].position.tolist() == [0, 0, 1]


def test_deeply_nested_relative_frames(load):
    tip = '<frame name="tip"><pose>1 0 0 0 0 0</pose></frame>'
    inner = f'<model name="x"><pose relative_to="f">0 1 0 0 0 0</pose>{link("l")}{tip}</model>'
    frame = '<frame name="f"><pose>0 0 1 0 0 0</pose></frame>'
    text = model(link("a") + frame + inner + joint("j", "a", "x::l", inside='<pose relative_to="x::tip"/>'))
    robot = load(text, base="fixed")
    assert robot.joint("j").placement.position.tolist() == [1, 1, 1]
    assert robot.frame("x::tip").body == "x::l"


def test_kinds_of_joints(load):
    two = axis("0 0 1") + axis("0 1 0").replace("axis>", "axis2>")
    cases = {
        "revolute": ("revolute", axis("0 0 1")), "continuous": ("continuous", axis("0 0 1")),
        "prismatic": ("prismatic", axis("0 0 1")), "ball": ("spherical", ""), "fixed": ("fixed", ""),
        "universal": ("universal", two), "revolute2": ("universal", two), "screw": ("helical", axis("0 0 1")),
    }  # fmt: skip
    for kind, (mine, inside) in cases.items():
        robot = load(model(link("a") + link("b") + joint("j", "a", "b", kind, inside)), base="fixed")
        assert robot.joint("j").kind == mine


@pytest.mark.parametrize(
    ("inside", "pitch"),
    [
        ("<screw_thread_pitch>0.02</screw_thread_pitch>", 0.02 / (2 * math.pi)),
        ("<thread_pitch>-50</thread_pitch>", 0.02),
    ],
)
def test_screws_old_and_new(load, inside, pitch):
    """thread_pitch = -2 pi / screw_thread_pitch: radians per metre, left handed."""
    robot = load(model(link("a") + link("b") + joint("j", "a", "b", "screw", axis("0 0 1") + inside)))
    assert robot.joint("j").pitch == pytest.approx(pitch)


def test_limits_springs_and_dampers(load):
    more = (
        "<limit><lower>-1</lower><upper>1e16</upper><effort>-1</effort><velocity>3</velocity></limit>"
        "<dynamics><damping>0.1</damping><friction>0.2</friction><spring_stiffness>5</spring_stiffness>"
        "<spring_reference>0.3</spring_reference></dynamics>"
    )
    text = model(link("a") + link("b") + joint("j", "a", "b", inside=axis("0 0 1", more=more)))
    own = load(text).joint("j")
    assert (own.limits.lower, own.limits.upper) == ((-1.0,), ())
    assert (own.limits.effort, own.limits.velocity) == ((), (3.0,))
    assert (own.damping, own.friction, own.stiffness, own.rest) == ((0.1,), (0.2,), (5.0,), (0.3,))
    assert not load(text).passive


def test_what_holds_the_root(load):
    bodies = link("a", "<pose>0 0 2 0 0 0</pose>") + link("b") + joint("j", "a", "b", inside=axis("0 0 1"))
    floating = load(model(bodies))
    assert (floating.base, floating.nq, floating.joints[0].name) == ("floating", 8, "root_joint")
    assert any("(0, 0, 2)" in note for note in floating.notes)
    assert placements(load(model(bodies), base="fixed"))["a"].position.tolist() == [0, 0, 2]
    held = load(model(bodies + joint("w", "world", "a", "fixed")))
    assert (held.base, held.nq) == ("fixed", 1)
    assert load(model(bodies + joint("w", "world", "a", "fixed")), base="floating").nq == 8
    assert load(model("<static>true</static>" + bodies)).nq == 0
    with pytest.raises(da.ModelError, match="floating"):
        load(model(bodies + joint("w", "world", "a", "revolute")), base="floating")


def test_joints_that_close_loops(load):
    """A four-bar: the second joint to a body closes the loop; a body carried by none is attached by the reverse."""
    bar = link("a") + link("b") + link("c", "<pose>0 1 0 0 0 0</pose>")
    ring = joint("ab", "a", "b") + joint("bc", "b", "c") + joint("ac", "a", "c", "ball")
    robot = load(model(bar + ring))
    assert [each.name for each in robot.joints] == ["root_joint", "ab", "bc"]
    (loop,) = robot.loops
    assert (loop.name, loop.kind, loop.body, loop.other) == ("ac", "point", "a", "c")
    assert loop.placement.position.tolist() == [0, 1, 0]
    turned = load(
        model(bar + joint("ab", "a", "b", inside=axis("1 0 0")) + joint("cb", "c", "b", inside=axis("0 1 0")))
    )
    assert turned.joint("cb").parent == "b"
    assert turned.joint("cb").axis == (0.0, -1.0, 0.0)
    assert any("turned around" in note for note in turned.notes)


def test_reversed_joints_move_the_same(load):
    """A chain written from its end, and the same from its beginning, at the same coordinates."""
    rng = np.random.default_rng(0)
    two = axis("0 0 1") + axis("0 1 0").replace("axis>", "axis2>")
    for kind, inside in (
        ("revolute", axis("0 1 2")),
        ("prismatic", axis("0 1 2")),
        ("screw", axis("1 1 2")),
        ("universal", two),
    ):
        bodies = link("a") + link("b", "<pose>0 3 0 0.1 0.2 0.3</pose>")
        pose = '<pose relative_to="__model__">0 0 1 0.3 0 0.7</pose>'
        hold = joint("w", "world", "a", "fixed")
        forth = load(model(bodies + hold + joint("j", "a", "b", kind, pose + inside)))
        back = load(model(bodies + hold + joint("j", "b", "a", kind, pose + inside)))
        assert back.joint("j").parent == "a"
        q = rng.uniform(-1, 1, forth.nq)
        inverse = placements(
            load(model(bodies + joint("w", "world", "b", "fixed") + joint("j", "b", "a", kind, pose + inside))), q
        )
        relative = inverse["a"].inverse() @ inverse["b"]
        mine = placements(back, q[::-1])
        assert_same(mine["a"].inverse() @ mine["b"], relative)


def test_gearboxes(load):
    """theta_2 = -ratio theta_1, angles from the reference body to the parent and to the child."""
    bodies = link("base") + link("motor") + link("arm")
    joints = joint("m", "base", "motor", inside=axis("0 0 1")) + joint("o", "base", "arm", inside=axis("0 0 -1"))
    gear = "<gearbox_reference_body>base</gearbox_reference_body><gearbox_ratio>0.04</gearbox_ratio>"
    gear += axis("0 0 1") + axis("0 0 1").replace("axis>", "axis2>")
    (coupling,) = load(model(bodies + joints + joint("g", "motor", "arm", "gearbox", gear))).couplings
    assert dict(coupling.terms) == {"o": -1.0, "m": pytest.approx(0.04)}
    other = load(model(bodies + joints + joint("g", "motor", "arm", "gearbox", gear.replace("0 0 1", "0 1 0"))))
    assert not other.couplings
    assert any("gearbox" in note for note in other.notes)


def test_mimic_axes(load):
    """q = multiplier (leader - reference) + offset."""
    mimic = '<mimic joint="j"><multiplier>3</multiplier><offset>0.5</offset><reference>0.1</reference></mimic>'
    joints = joint("j", "a", "b", inside=axis("0 0 1")) + joint("k", "b", "c", inside=axis("0 0 1", more=mimic))
    (coupling,) = load(model(link("a") + link("b") + link("c") + joints, "1.11")).couplings
    assert dict(coupling.terms) == {"k": 1.0, "j": -3.0}
    assert coupling.offset == pytest.approx(0.2)


def test_default_inertia_is_sdf_s_own(load):
    robot = load(model(link("a", inside="")))
    assert robot.mass == 1.0
    assert any("default" in note for note in robot.notes)


def test_links_without_gravity(load):
    robot = load(model(link("a", inside=INERTIAL + "<gravity>false</gravity>")), passive=True)
    assert robot.body("a").compensation == 1.0
    np.testing.assert_allclose(robot.bias(robot.neutral(), np.zeros(6)), 0, atol=1e-14)


def test_worlds(load):
    one = f'<model name="m">{link("a")}</model>'
    robot = load(f'<sdf version="1.8"><world name="w"><gravity>0 0 -3</gravity>{one}</world></sdf>', "w.world")
    assert (robot.gravity, robot.bodies[0].name) == ((0.0, 0.0, -3.0), "a")


def test_two_models_of_a_world(load):
    models = "".join(f'<model name="{name}">{link("a")}</model>' for name in "mn")
    robot = load(f'<sdf version="1.8"><world name="w">{models}</world></sdf>')
    assert [body.name for body in robot.bodies] == ["m::a", "n::a"]
    assert robot.nq == 14


def test_joints_of_a_world(load):
    """Models that a world joins move as one model with the same links; its frames are the ground's or a link's."""
    pose, turn = "<pose>0 0 1 0 0.3 0</pose>", "<pose>0 1 0 0.2 0 0</pose>"
    hinges = [axis("0 1 0"), f"<pose>0.1 0 0 0 0 0.4</pose>{axis('1 0 0')}"]
    parts = f'<model name="m">{pose}{link("a")}</model><model name="n">{turn}{link("b", POSES[0])}</model>'
    frames = '<frame name="post"><pose>1 0 0 0 0 0</pose></frame><frame name="tip" attached_to="n::b"/>'
    joints = joint("i", "post", "m::a", inside=hinges[0]) + joint("j", "m::a", "n::b", inside=hinges[1])
    robot = load(f'<sdf version="1.11"><world name="w">{parts}{frames}{joints}</world></sdf>')
    joints = joint("i", "world", "m::a", inside=hinges[0]) + joint("j", "m::a", "n::b", inside=hinges[1])
    whole = load(model(parts + joints))
    assert [b.name for b in robot.bodies] == ["m::a", "n::b"]
    assert [(f.name, f.body) for f in robot.frames] == [("post", "world"), ("tip", "n::b")]
    q = [0.4, -0.7]
    for name in ("m::a", "n::b"):
        for one, other in zip(robot.kinematics(q, name), whole.kinematics(q, name), strict=True):
            np.testing.assert_allclose(one, other, atol=1e-14)
    with pytest.raises(da.ModelError, match="cannot be a child"):
        load(f'<sdf version="1.11"><world name="w">{parts}{frames}{joint("j", "m::a", "post")}</world></sdf>')


def test_merged_models(load, tmp_path):
    """A model that is merged moves as one that is nested at the same place; its parts have names of the outer one."""
    frames = '<frame name="f"><pose>0 1 0 0 0 0</pose></frame><frame name="g" attached_to="y"/>'
    inside = (
        link("x", POSES[0]) + link("y", "<pose relative_to='f'>1 0 0 0 0 0</pose>") + frames
        + joint("k", "x", "y", inside=axis("0 1 0", ' expressed_in="__model__"'))
    )  # fmt: skip
    (tmp_path / "part.sdf").write_text(model(inside, name="inner"))
    include = "<include {}><uri>part.sdf</uri><pose>0 0 1 0.1 0.2 0.3</pose></include>"
    outer = link("a") + joint("w", "world", "a", "fixed")
    whole = load(model(outer + include.format('merge="true"') + joint("j", "a", "x", inside=axis("1 0 0"))))
    nested = load(model(outer + include.format("") + joint("j", "a", "inner::x", inside=axis("1 0 0"))))
    assert [body.name for body in whole.bodies] == ["a", "x", "y"]
    q = [0.4, -0.7]
    for name in ("x", "y", "f", "g"):
        for one, other in zip(whole.kinematics(q, name), nested.kinematics(q, f"inner::{name}"), strict=True):
            np.testing.assert_allclose(one, other, atol=1e-14)
    with pytest.raises(da.ModelError, match="the name is taken"):
        load(model(link("x") + include.format('merge="true"')))


def test_includes(load, tmp_path):
    (tmp_path / "part").mkdir()
    (tmp_path / "part" / "model.sdf").write_text(model(link("x", "<pose>1 0 0 0 0 0</pose>"), name="inner"))
    (tmp_path / "part" / "model.config").write_text('<model><name>p</name><sdf version="1.9">model.sdf</sdf></model>')
    include = "<include><uri>{}</uri><name>arm</name><pose>0 0 1 0 0 0</pose></include>"
    text = model(link("a") + include + joint("j", "a", "arm::x"))
    for uri, packages in (
        ("part/model.sdf", None),
        ("part", None),
        ("model://part", tmp_path),
        ("model://q", {"q": tmp_path / "part"}),
    ):
        robot = load(text.format(uri), base="fixed", packages=packages)
        assert placements(robot)["arm::x"].position.tolist() == [1, 0, 1]
    with pytest.raises(da.ModelError, match=r"m.sdf:.*<uri>.*was not found"):
        load(text.format("model://elsewhere/model.sdf"))


REFUSED = {
    "relative circle": model(link("a", '<pose relative_to="b"/>') + link("b", '<pose relative_to="a"/>')),
    "relative to itself": model(link("a", '<pose relative_to="a"/>')),
    "attached circle": model(link("a") + '<frame name="f" attached_to="g"/><frame name="g" attached_to="f"/>'),
    "unknown frame": model(link("a", '<pose relative_to="nowhere"/>')),
    "unknown child": model(link("a") + joint("j", "a", "b")),
    "world as child": model(link("a") + joint("j", "a", "world")),
    "itself": model(link("a") + joint("j", "a", "a")),
    "same name": model(link("a") + link("a")),
    "name of a joint": model(link("a") + link("b") + joint("a", "a", "b")),
    "reserved": model(link("__model__")),
    "world": model(link("world")),
    "five numbers": model(link("a", "<pose>0 0 0 0 0</pose>")),
    "nan": model(link("a", "<pose>0 nan 0 0 0 0</pose>")),
    "zero axis": model(link("a") + link("b") + joint("j", "a", "b", inside=axis("0 0 0"))),
    "no axis2": model(link("a") + link("b") + joint("j", "a", "b", "universal", axis("0 0 1"))),
    "type": model(link("a") + link("b") + joint("j", "a", "b", "glue")),
    "no model": '<sdf version="1.9"/>',
    "two models": model(link("a")).replace("</sdf>", '<model name="n"/></sdf>'),
    "canonical": model(link("a") + '<frame name="f"/>', attributes=' canonical_link="x"'),
    "version": model(link("a"), "one"),
    "no version": model(link("a")).replace(' version="1.9"', ""),
    "expressed": model(link("a") + link("b") + joint("j", "a", "b", inside=axis("0 0 1", ' expressed_in="x"'))),
    "thread": model(
        link("a") + link("b") + joint("j", "a", "b", "screw", axis("0 0 1") + "<thread_pitch>0</thread_pitch>")
    ),
    "truth": model("<static>maybe</static>" + link("a")),
    "mimic": model(link("a") + link("b") + joint("j", "a", "b", inside=axis("0 0 1", more='<mimic joint="x"/>'))),
    "negative mass": model(link("a", inside="<inertial><mass>-1</mass></inertial>")),
}


@pytest.mark.parametrize("case", sorted(REFUSED))
def test_refusals_name_file_and_line(load, case):
    with pytest.raises(da.ModelError, match=r"m\.sdf:\d+ <"):
        load(REFUSED[case], strict=True)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (model(link("a"), "2.0"), "1.4 to 1.12"),
        (model(link("a", inside='<inertial auto="true"/>')), "computed from shapes"),
        (model("<pose relative_to='x'/>" + link("a")), "relative to others"),
        ('<sdf version="1.9"><include merge="true"><uri>x</uri></include></sdf>', "only a model can merge"),
    ],
)
def test_unsupported(load, text, words):
    with pytest.raises(da.UnsupportedError, match=words):
        load(text)


@pytest.mark.parametrize("name", SDFS)
def test_cassie_closes_its_loops_where_the_file_puts_it(name):
    """At the file's own pose every loop is closed: its two frames stand on each other."""
    robot = da.load(ROBOTS / name, "fixed" if "reduced" not in name else "auto", allow_unphysical=True)
    places = placements(robot)
    whole = name.endswith("/cassie.sdf")
    assert sorted(loop.kind for loop in robot.loops) == ["point"] * 4 + ["prismatic"] * 2 * whole
    for loop in robot.loops:
        one, two = places[loop.body] @ loop.placement, places[loop.other] @ loop.other_placement
        np.testing.assert_allclose(one.position, two.position, atol=1e-12)
    assert len(robot.couplings) == 10 * whole
    assert robot.mass > 30


def test_cassie_is_a_system_with_rows():
    """Four points, twelve rows; where the file puts Cassie the loops are closed, and moving them apart costs rank."""
    robot = da.load(ROBOTS / "cassie_description/robots/cassie_v2.sdf")
    A = robot.jacobian(robot.neutral())
    assert len(robot.names) == 12
    assert A.shape == (12, 28)
    assert np.linalg.matrix_rank(A, tol=1e-2) >= 8


def test_cassie_as_agility_gives_it():
    """33 kg less its feet's plates; 23 bodies; the springs of the knees and heels are kept."""
    robot = da.load(ROBOTS / "cassie_description/robots/cassie_v2.sdf")
    assert len(robot.bodies) == 23
    assert robot.mass == pytest.approx(32.94, abs=0.01)
    assert {joint.name for joint in robot.joints if joint.stiffness} == {
        f"{side}-{name}-joint" for side in ("left", "right") for name in ("knee-shin", "tarsus-spring")
    }
