"""Builder: what it makes, in which order, and what it says to every mistake."""

from __future__ import annotations

import re

import numpy as np
import pytest

import dalembert as da
from dalembert.model.mechanism.inertia import Inertia
from dalembert.model.mechanism.parts import Limits, Source
from dalembert.model.mechanism.placement import Placement

HERE = Source("robot.urdf", 12, '<joint name="elbow">')


def arm(**options):
    b = da.Builder("arm", **options)
    b.body("upper", mass=2.0, center=(0, 0, 0.5), inertia=(0.2, 0.2, 0.01))
    b.body("fore", mass=1.0, center=(0, 0, 0.4), inertia=(0.1, 0.0, 0.0, 0.1, 0.0, 0.01))
    b.joint("shoulder", "revolute", parent="world", child="upper", axis=(0, 1, 0), limits=(-1, 1))
    b.joint("elbow", "continuous", parent="upper", child="fore", axis=(0, 0, 2), position=(0, 0, 1))
    return b


def test_order_is_depth_first_as_added_or_by_name():
    b = da.Builder("tree")
    for name in ("c", "a", "b", "root"):
        b.body(name, mass=1.0)
    b.joint("j2", "revolute", parent="root", child="b")
    b.joint("j1", "revolute", parent="root", child="a")
    b.joint("j3", "revolute", parent="b", child="c")
    assert [j.name for j in b.build().joints] == ["root_joint", "j2", "j3", "j1"]
    named = b.build(base="floating", order="name")
    assert [j.name for j in named.joints] == ["root_joint", "j1", "j2", "j3"]
    assert [x.name for x in named.bodies] == ["root", "a", "b", "c"]
    assert named.parents == (-1, 0, 0, 2)
    assert named.joints[0].kind == "free"
    assert named.base == "floating"
    assert (named.nq, named.nv) == (10, 9)


def test_values_may_be_given_in_several_ways():
    b = arm()
    b.body("hand", inertia=Inertia(0.5, np.zeros(3), np.eye(3)))
    placement = Placement.from_rpy((0.1, 0.2, 0.3), (1, 2, 3))
    b.joint(
        "wrist", "spherical", parent="fore", child="hand", placement=placement,
        damping=0.1, armature=[1, 2, 3], limits={"effort": 5, "velocity": None},
    )  # fmt: skip
    for i, turn in enumerate([{"rpy": (0.1, 0.2, 0.3)}, {"rotation": placement.rotation},
                              {"rotation": placement.quaternion()}]):  # fmt: skip
        b.frame(f"f{i}", "hand", position=(1, 2, 3), **turn)
    robot = b.build()
    wrist = robot.joint("wrist")
    assert wrist.damping == (0.1, 0.1, 0.1)
    assert wrist.limits == Limits(effort=(5, 5, 5))
    assert robot.joint("elbow").axis == (0, 0, 1)
    for i in range(3):
        np.testing.assert_allclose(robot.frame(f"f{i}").placement.rotation, placement.rotation, atol=1e-15)
    np.testing.assert_array_equal(robot.armature, [0, 0, 1, 2, 3])


def test_base_auto_floats_what_has_mass():
    b = da.Builder()
    b.body("base_footprint")
    assert b.build(base="auto").base == "fixed"
    b = da.Builder()
    b.body("trunk", mass=1.0)
    assert b.build(base="auto").base == "floating"
    assert arm().build(base="auto").base == "fixed"


def test_a_body_called_world_is_a_body():
    b = da.Builder()
    b.body("world")
    b.body("link", mass=1.0)
    b.joint("j", "revolute", parent="world", child="link")
    robot = b.build()
    assert robot.ground == "universe"
    assert [x.name for x in robot.bodies] == ["world", "link"]


def test_several_floating_bodies_have_joints_of_their_own():
    b = arm()
    b.body("ball", mass=1.0)
    b.body("box", mass=1.0)
    robot = b.build(base="floating")
    assert {"ball_root_joint", "box_root_joint"} <= {j.name for j in robot.joints}
    assert robot.nv == 14


def mistakes():
    """Yield (what it is, what is done to the arm, what the message must say)."""
    nan = float("nan")

    def joint(**change):
        given = {"name": "wrist", "kind": "revolute", "parent": "fore", "child": "hand", "source": HERE} | change
        return lambda b: (b.body("hand"), b.joint(**given))

    yield "unknown kind", joint(kind="revolut"), "no kind of joint 'revolut'; did you mean 'revolute'"
    yield "unknown parent", joint(parent="for"), r"no body \(parent of joint 'wrist'\) 'for'; did you mean 'fore'"
    yield "unknown child", joint(child="Hand"), r"child of joint 'wrist'\) 'Hand'; did you mean 'hand'"
    yield "zero axis", joint(axis=(0, 0, 0)), "axis of joint 'wrist'.*not all zero"
    yield "NaN axis", joint(axis=(nan, 0, 1)), "axis of joint 'wrist'.*finite"
    yield "axis of two", joint(axis=(1, 0)), "axis of joint 'wrist' must be three"
    yield (
        "parallel axes",
        joint(kind="universal", axis=(0, 1, 0), axis2=(0, -2, 0)),
        "universal joint 'wrist' are parallel",
    )
    yield "infinite position", joint(position=(np.inf, 0, 0)), "joint 'wrist'.*not finite"
    yield "no rotation", joint(rotation=np.ones((3, 3))), "joint 'wrist': not a rotation matrix"
    yield "zero quaternion", joint(rotation=(0, 0, 0, 0)), "joint 'wrist': a quaternion"
    yield "both rotations", joint(rotation=np.eye(3), rpy=(0, 0, 0)), "one of rotation and rpy"
    yield "words for numbers", joint(position="here"), "position of joint 'wrist' must be real numbers, not 'here'"
    yield "limits the wrong way", joint(limits=(1, -1)), "lower limit .* exceeds the upper"
    yield "NaN limit", joint(limits=(nan, 1)), "lower limit of joint 'wrist' is NaN"
    yield "unknown limit", joint(limits={"efort": 1}), "no limit 'efort'; did you mean 'effort'"
    yield "three limits", joint(limits=(1, 2, 3)), "pair"
    yield "two dampings", joint(damping=(1, 2)), "damping of joint 'wrist': the joint has 1 velocities, but 2"
    yield "NaN damping", joint(damping=nan), "damping of joint 'wrist' must be finite"
    yield "negative armature", joint(armature=-1), "negative armature"
    yield "NaN pitch", joint(kind="helical", pitch=nan), "pitch of joint 'wrist'"
    yield (
        "second carrier",
        joint(child="fore", parent="world"),
        "two joints carry the body 'fore': 'elbow' and 'wrist'.*loop",
    )
    yield "carries the ground", joint(child="world"), "carries the ground 'world': swap"
    yield "same joint name", joint(name="elbow"), "joint 'elbow' is there already"
    yield "nameless", joint(name=" "), "name of a joint must be a word"


@pytest.mark.parametrize(("what", "change", "message"), list(mistakes()), ids=lambda x: x if isinstance(x, str) else "")
def test_mistakes_in_joints_name_part_and_source(what, change, message):
    def make(b):
        change(b)
        b.build()

    with pytest.raises(da.ModelError, match=message) as caught:
        make(arm())
    assert str(caught.value).startswith("robot.urdf:12"), what
    assert caught.value.source == HERE


OTHERS = [
    (lambda b: b.body("upper"), "body 'upper' is there already"),
    (lambda b: b.body("x", mass=-1.0), r"body 'x': the mass is negative \(-1 kg\).*strict=False"),
    (lambda b: b.body("x", mass=1.0, inertia=(1, 1, 3)), "body 'x'.*triangle inequality"),
    (lambda b: b.body("x", mass=1.0, inertia=(1, -1, 1)), "body 'x'.*negative principal moment"),
    (lambda b: b.body("x", mass=float("nan")), "body 'x'.*mass must be one finite"),
    (lambda b: b.body("x", mass=1, inertia=[[1, 2, 0], [0, 1, 0], [0, 0, 1]]), "body 'x'.*symmetric"),
    (lambda b: b.body("x", mass=1, inertia=(1, 2)), "body 'x'"),
    (lambda b: b.body("x", mass=1, inertia=Inertia(1.0)), "give one or the other"),
    (lambda b: b.frame("tip", "for"), "of frame 'tip'.*did you mean 'fore'"),
    (lambda b: b.frame("fore", "upper"), "has the name of a body"),
    (lambda b: (b.frame("tip", "fore"), b.frame("tip", "fore")), "frame 'tip' is there already"),
    (lambda b: b.spring("s", "fore", "worl", 1.0), "frame .of spring 's'.*did you mean 'world'"),
    (lambda b: b.spring("s", "fore", "world", np.inf), "spring 's' must be one finite"),
    (lambda b: b.actuator("m", "elbo"), "coordinate .of actuator 'm'.*did you mean 'elbow'"),
    (lambda b: b.actuator("m", "elbow", rotor_inertia=-1.0), "actuator 'm'.*must not be negative"),
    (lambda b: b.couple("c", {"elbow": 1, "shulder": 2}), "coupling 'c'.*did you mean 'shoulder'"),
    (lambda b: b.couple("c", {"elbow": 0}), "couples nothing"),
    (lambda b: b.loop("l", "hinge", "fore", "world"), "no kind of loop 'hinge'"),
    (lambda b: b.loop("l", "weld", "fore", "wold"), "body .of loop 'l'.*did you mean 'world'"),
    (lambda b: b.body("ball"), "1 bodies are carried by no joint: 'ball'.*base = 'floating'"),
]


@pytest.mark.parametrize(("change", "message"), OTHERS, ids=[message for _, message in OTHERS])
def test_mistakes_in_other_parts(change, message):
    def make(b):
        change(b)
        for name in set(b.bodies) - {"upper", "fore", "ball"}:
            b.joint(f"j_{name}", "fixed", parent="world", child=name)
        b.build(strict=True)

    with pytest.raises(da.ModelError, match=message):
        make(arm())


def test_a_cycle_is_named():
    b = arm()
    for one, next_one in (("a", "b"), ("b", "c"), ("c", "a")):
        b.body(one)
        b.joint(f"j_{one}", "revolute", parent=next_one, child=one)
    with pytest.raises(da.ModelError, match="cycle that nothing holds: 'a' <- 'b' <- 'c' <- 'a'"):
        b.build()


def test_nothing_can_float():
    with pytest.raises(da.ModelError, match=r"no body is free to float.*'world' holds 'upper'"):
        arm().build(base="floating")
    with pytest.raises(da.ModelError, match="no base 'flaoting'; did you mean 'floating'"):
        arm().build(base="flaoting")
    with pytest.raises(da.ModelError, match="no order"):
        arm().build(order="alphabet")


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"mass": -1.0}, r"the mass is negative \(-1 kg\); taken as it is: the mass matrix is not positive definite"),
        ({"mass": 1.0, "inertia": (1, -1, 1)}, "negative principal moment.*not positive definite"),
        ({"mass": 1.0, "inertia": (1, 1, 3)}, "triangle inequality.*adds no negative eigenvalue"),
    ],
)
def test_unphysical_inertias_load_with_a_warning_and_a_note(values, words):
    b = arm()
    b.body("x", **values)
    b.joint("j", "fixed", parent="fore", child="x")
    with pytest.warns(da.ModelWarning, match=r"1 inertias that no body can have.*'x'.*strict=True refuses") as caught:
        robot = b.build()
    assert caught[0].filename == __file__
    (note,) = robot.notes
    assert re.search(f"body 'x': .*{words}", note)
    assert b.build(allow_unphysical=True).notes == robot.notes
    with pytest.raises(da.ModelError, match=r"body 'x'.*strict=False"):
        b.build(strict=True)
    with pytest.raises(da.ModelError, match="give one of them"):
        b.build(strict=True, allow_unphysical=True)


def test_massless_bodies_are_legal():
    b = da.Builder()
    b.body("rod")
    b.joint("hinge", "revolute", parent="world", child="rod")
    assert b.build().mass == 0


@pytest.mark.parametrize("gravity", [(0, 0), (0, 0, float("nan")), 9.81])
def test_gravity_is_three_finite_numbers(gravity):
    with pytest.raises(da.ModelError, match="gravity is three finite numbers"):
        da.Builder(gravity=gravity)


def test_a_long_chain():
    """Thousands of bodies, one on the other: no recursion."""
    b = da.Builder()
    for i in range(4000):
        b.body(f"b{i}")
        b.joint(f"j{i}", "revolute", parent=f"b{i - 1}" if i else "world", child=f"b{i}")
    robot = b.build()
    assert robot.nv == 4000
    assert "3700 more bodies" in str(robot)
    with pytest.raises(da.ModelError, match="no body 'b7x'"):
        robot.body("b7x")
