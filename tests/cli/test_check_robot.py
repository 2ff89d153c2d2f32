"""`dalembert check robot.urdf`: exit codes, words, JSON and misuse, as a user meets them."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from dalembert.cli.check import WORDS
from tests.cli.test_commands import SOLVABLE, called
from tests.tree.robots import ROBOTS

LINK = (
    '<link name="{}"><inertial><mass value="{}"/><origin xyz="0 0 -0.2"/>'
    '<inertia ixx="{}" iyy="{}" izz="{}" ixy="0" ixz="0" iyz="0"/></inertial></link>'
)
JOINT = (
    '<joint name="{}" type="{}"><parent link="{}"/><child link="{}"/><origin xyz="0 0 {}" rpy="0 {} 0"/>'
    '<axis xyz="0 1 0"/></joint>'
)


def arm(lower: float = 1.0) -> str:
    """Return a planar arm of two links of 0.4 m, bent, with a hand; `lower` is the mass of the second link."""
    links = LINK.format("upper", 2, 0.05, 0.05, 0.01)
    links += LINK.format("lower", lower, 0.03 * lower, 0.03 * lower, 0.01 * lower)
    joints = (
        ("shoulder", "continuous", "base", "upper", 0, 0),
        ("elbow", "continuous", "upper", "lower", -0.4, 0.9),
        ("wrist", "fixed", "lower", "hand", -0.4, 0),
    )
    joined = "".join(JOINT.format(*joint) for joint in joints)
    return f'<robot name="arm"><link name="base"/><link name="hand"/>{links}{joined}</robot>'


@pytest.fixture
def check(tmp_path, capsys):
    def run(*words: str, text: str | None = None) -> tuple[int, str, str]:
        path = tmp_path / "arm.urdf"
        path.write_text(text or arm())
        return called("check", str(path), *words, capsys=capsys)

    return run


def test_words(check):
    code, out, err = check("--point", "hand", "--samples", "2")
    assert (code, err) == (0, "")
    assert "hand: point, 3 rows" in out
    assert "neutral: constraints met" in out
    assert "redundant: hand y = 0" in out
    assert "reactions unique: hand x, hand z" in out
    assert "random 2: constraints met (largest gap 0.0e+00)\n  as at neutral" in out


def test_json_has_every_key(check):
    code, out, err = check("--weld", "hand", "--samples", "1", "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    about = "mechanism source bodies nq nv mass loops couplings rows notes solvable configurations"
    assert list(found) == about.split()
    assert (found["mechanism"], found["nv"], found["mass"], found["solvable"]) == ("arm", 2, 3.0, True)
    assert found["source"].endswith("arm.urdf")
    assert len(found["rows"]) == 6
    assert [each["configuration"] for each in found["configurations"]] == ["neutral", "random 1"]
    neutral, other = found["configurations"]
    keys = (
        "configuration closed gap widest verdict message rank rows mass_rank degrees_of_freedom redundant inconsistent"
    )
    assert list(neutral) == [*keys.split(), "massless", "unique_reactions", "reactions_not_unique"]
    assert (neutral["verdict"], neutral["rank"], neutral["degrees_of_freedom"]) == ("redundant", 2, 0)
    for each in (neutral, other):
        assert sorted(each["unique_reactions"] + each["reactions_not_unique"]) == sorted(found["rows"])
        assert set(each["redundant"]) < set(found["rows"])
        assert len(each["redundant"]) == each["rows"] - each["rank"]


GIVEN = {
    "point": ("hand", 3),
    "weld": ("hand", 6),
    "distance": ("hand:base:0.5", 1),
    "revolute": ("hand:base:y", 5),
    "prismatic": ("hand:base:z", 5),
    "cylindrical": ("hand:base:x", 4),
    "planar": ("hand:base:y", 3),
    "universal": ("hand::y:x", 4),
    "coupler": ("shoulder=1,elbow=-2:0.1", 1),
    "point_on_line": ("hand:base:z", 2),
    "point_in_plane": ("hand:base:0,0,1", 1),
    "rolling": ("hand::0.3:y", 3),
    "servo": ("elbow:0.4", 1),
}


@pytest.mark.parametrize("word", WORDS)
def test_every_word_makes_its_rows(check, word):
    value, rows = GIVEN[word]
    code, out, _ = check(f"--{word.replace('_', '-')}", value, "--samples", "0", "--json")
    found = json.loads(out)
    assert code == 0
    assert len(found["rows"]) == rows
    assert len(found["configurations"]) == 1
    assert found["configurations"][0]["closed"]


def test_names_with_colons_are_one_part(check):
    text = arm().replace('"hand"', '"arm::hand"').replace('"elbow"', '"arm::elbow"')
    code, out, _ = check("--revolute", "arm::hand::y", "--servo", "arm::elbow:0.4", "--samples", "0", text=text)
    assert code == 0
    assert "arm::hand: revolute, 5 rows" in out
    assert "servo arm::elbow" in out


def test_words_add_up(check):
    code, out, _ = check("--point", "hand", "--point", "lower:base", "--samples", "0", "--json")
    found = json.loads(out)
    assert found["rows"] == ["hand x", "hand y", "hand z", *(f"lower-base {axis}" for axis in "xyz")]
    assert code == 1  # the elbow is 0.4 m from the shoulder, and cannot be drawn to it
    assert not found["configurations"][0]["closed"]


def test_what_holds_the_same_frame_twice_gets_names_of_its_own(check):
    words = ("--point", "hand", "--point", "hand", "--weld", "hand", "--servo", "elbow:0.4", "--servo", "elbow:0.5")
    code, out, err = check(*words, "--samples", "0", "--json")
    found = json.loads(out)
    assert (code, err) == (1, "")  # the two servos
    assert found["rows"][::3][:4] == ["hand x", "hand (point) x", "hand (weld) x", "hand (weld): rotation about x"]
    assert found["rows"][-2:] == ["servo elbow", "servo elbow (servo)"]
    assert found["configurations"][0]["widest"].startswith("servo elbow")


def test_a_row_that_is_rounding_is_said_to_be_zero(check):
    """Axes that lean by 1e-9: the rotation about x is rounding, and leaves that about y unique."""
    text = arm().replace("0 1 0", "1e-9 1 0")
    code, out, _ = check("--weld", "hand", "--samples", "0", text=text)
    assert code == 0
    assert "redundant: hand: rotation about x = 0\n" in out
    assert "e+0" not in out.split("redundant:", 1)[1]


def test_out_of_reach_exits_1_and_names_the_row(check):
    code, out, _ = check("--distance", "hand:base:5", "--samples", "1")
    assert code == 1
    assert "constraints NOT met" in out
    assert "hand-base: distance" in out


def test_a_massless_link_is_solvable_once_it_is_held(check):
    code, out, _ = check("--samples", "0", "--json", text=arm(0.0))
    found = json.loads(out)
    assert (code, found["solvable"]) == (1, False)
    assert found["configurations"][0]["verdict"] == "massless"
    assert found["configurations"][0]["massless"] == ["elbow"]
    code, out, _ = check("--distance", "hand:base:0.5", "--samples", "0", "--json", text=arm(0.0))
    assert (code, json.loads(out)["solvable"]) == (0, True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--point", "hnad"), "there is no frame 'hnad'; did you mean 'hand'?"),
        (("--point", "hand:base:upper"), "3 parts; write FRAME or FRAME:OTHER"),
        (("--weld", "hand:"), "--weld 'hand:': nothing stands after ':' for the other"),
        (("--weld", ":hand"), "a name is missing"),
        (("--point", "hand:hand"), "it would hold nothing or be impossible"),
        (("--distance", "hand:base"), "write FRAME:OTHER:LENGTH"),
        (("--distance", "hand:base:long"), "'long' is no length in metres"),
        (("--distance", "hand:base:nan"), "length"),
        (("--revolute", "hand:base:y:z"), "4 parts; write FRAME:OTHER:AXIS"),
        (("--planar", "hand:base:w"), "--planar 'hand:base:w': 'w' is no part of an axis"),
        (("--planar", "hand:base:1,0"), "'1,0' is no axis: x, y, z, -x"),
        (("--planar", "hand:base:0,0,0"), "axis"),
        (("--universal", "hand:base:x:-x"), "are parallel"),
        (("--coupler", "shoulder"), "'shoulder' is not coordinate=factor"),
        (("--coupler", "shoulder=1,shoulder=2"), "is there twice"),
        (("--coupler", "shoulder=1,elbwo=2"), "did you mean 'elbow'?"),
        (("--coupler", "shoulder=0"), "couples nothing"),
        (("--servo", "elbow"), "write JOINT:VALUE"),
        (("--servo", "elbow:up"), "'up' is no number"),
        (("--servo", "elbwo:1"), "did you mean 'elbow'?"),
        (("--servo", "wrist:1"), "no single length or angle"),
        (("--rolling", "hand:base"), "write FRAME:OTHER:RADIUS"),
        (("--rolling", "hand::-1"), "must be more than zero"),
        (("--line", "hand:bse"), "did you mean 'base'?"),
        (("--revolut", "hand:base:y"), "--revolute"),
        (("--point", "hand", "--samples", "-1"), "--samples -1 --seed 0"),
        (("--point", "hand", "--seed", "-1"), "--samples 3 --seed -1"),
        (("--base", "swimming"), "swimming"),
    ],
)
def test_misuse_exits_2_with_one_message(check, words, said):
    code, out, err = check(*words)
    assert (code, out) == (2, "")
    assert said in " ".join(err.split())
    assert "Traceback" not in err


def test_matrices_take_no_constraints(tmp_path, capsys):
    path = tmp_path / "system.toml"
    path.write_text(SOLVABLE)
    code, out, err = called("check", str(path), "--point", "foot", capsys=capsys)
    assert (code, out) == (2, "")
    assert "are for robot files" in err


def test_a_quadruped_as_a_process():
    """Go2 on its feet: twelve rows of rank twelve, six motions left, every reaction unique."""
    file = ROBOTS / "go2_description" / "urdf" / "go2.urdf"
    feet = [word for leg in ("FL", "FR", "RL", "RR") for word in ("--point", f"{leg}_foot")]
    command = [sys.executable, "-m", "dalembert", "check", str(file), "--base", "floating", *feet]
    run = subprocess.run([*command, "--samples", "1", "--json"], capture_output=True, text=True, check=True)
    found = json.loads(run.stdout)
    assert (found["nv"], len(found["rows"]), found["solvable"]) == (18, 12, True)
    for each in found["configurations"]:
        assert (each["verdict"], each["rank"], each["degrees_of_freedom"]) == ("unique", 12, 6)
        assert each["reactions_not_unique"] == []


def test_inertias_that_no_body_can_have_are_warned_of_and_refused_on_request(check):
    text = arm().replace('izz="0.01"', 'izz="0.5"', 1)
    code, out, err = check(text=text)
    assert (code, err.count("dalembert: warning: ")) == (0, 1)
    assert "no body can have" in err
    code, out, err = check("--strict", text=text)
    assert (code, out) == (2, "")
    assert "dalembert: error: " in err
    assert "triangle inequality" in err
