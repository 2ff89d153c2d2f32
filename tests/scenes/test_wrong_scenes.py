"""Scene files and command lines that are wrong: a message says where, what, and what to try. The list is the test."""

from __future__ import annotations

import re

import pytest

import dalembert as da
from dalembert.cli import main

BALL = """title = "ball"
parameters = { radius = 0.1 }

[[body]]
name = "ball"
mass = 1.0

[[joint]]
name = "up"
kind = "prismatic"
child = "ball"
axis = [0, 0, 1]

[[contact]]
sphere = { frame = "ball", radius = "radius" }
restitution = 0.5

[start.q]
up = 1.0

[simulate]
duration = 0.5
"""

WRONG: dict[str, tuple[str, str, tuple[str, ...]]] = {
    # name: (what stands in the file, what is written instead, words of the message)
    "a comma in a number": ("restitution = 0.5", "restitution = 0,5", (":16:", "written with a point")),
    "a file among the options": (
        "duration = 0.5",
        'duration = 0.5\noptions = { file = "/tmp/elsewhere.nc" }',
        (":23:", "has no key 'file'"),
    ),
    "a system among the options": ("duration = 0.5", "duration = 0.5\noptions = { system = 3 }", ("no key 'system'",)),
    "another duration": ("duration = 0.5", "duration = 0.5\noptions = { duration = 9 }", ("no key 'duration'",)),
    "an expression without end": ("restitution = 0.5", f'restitution = "{"1+" * 100_000}1"', ("is above the limit",)),
    "a text without quotes": ('kind = "prismatic"', "kind = prismatic", (":10:", "texts in quotes")),
    "a table twice": ("[simulate]", "[start.q]\n[simulate]", (":21:", "is there already")),
    "an axis of two numbers": ("axis = [0, 0, 1]", "axis = [0, 1]", (":12:", "three finite numbers")),
    "a body twice": ("[[joint]]", '[[body]]\nname = "ball"\n\n[[joint]]', (":8:", "body 'ball' is there already")),
    "bodies that stand still": ('kind = "prismatic"', 'kind = "fixed"', (":19:", "'up' is fixed")),
    "key misspelt": ("mass = 1.0", "masss = 1.0", (":6:", "[[body]] 1 has no key 'masss'", "did you mean 'mass'?")),
    "table misspelt": ("[[joint]]", "[[joints]]", (":8:", "the file has no key 'joints'", "'joint'")),
    "text for a number": ("restitution = 0.5", "restitution = [0.5]", (":16:", "a number, or an expression", "a list")),
    "key missing": ('child = "ball"\n', "", (":8:", "[[joint]] 1 needs the key 'child'")),
    "kind of joint of other tools": ('"prismatic"', '"slider"', (":10:", "no kind of joint 'slider'", "'prismatic'")),
    "no such body": ('child = "ball"', 'child = "bal"', (":11:", "there is no body", "'bal'", "did you mean 'ball'?")),
    "no such parameter": ('radius = "radius"', 'radius = "radus"', (":15:", "nothing is called 'radus'", "'radius'")),
    "an expression that is code": (
        'radius = "radius"',
        "radius = \"__import__('os')\"",
        (":15:", "'os'", "is no number, name or operator"),
    ),
    "an expression cut off": ('radius = "radius"', 'radius = "2*(radius"', (":15:", "expected ')'")),
    "no such function": (
        'radius = "radius"',
        'radius = "root(radius)"',
        (":15:", "no function is called 'root'", "sqrt"),
    ),
    "division by zero": ('radius = "radius"', 'radius = "1/0"', (":15:", "finite number")),
    "a frame that is not there": ('frame = "ball"', 'frame = "foot"', (":15:", "there is no frame 'foot'")),
    "restitution above one": ("restitution = 0.5", "restitution = 1.5", (":16:", "between 0 and 1")),
    "contact without a shape": (
        'sphere = { frame = "ball", radius = "radius" }\n',
        "",
        (":14:", "either a sphere or a box", "sphere = {"),
    ),
    "start of a joint that is not there": ("up = 1.0", "upp = 1.0", (":19:", "no joint or coordinate 'upp'", "'up'")),
    "too many numbers for a joint": ("up = 1.0", "up = [1.0, 2.0]", (":19:", "has 1 coordinates, not 2")),
    "method misspelt": (
        "duration = 0.5",
        'duration = 0.5\nmethod = "hybird"',
        (":23:", "'hybird'", "did you mean 'hybrid'?"),
    ),
    "no duration": ("duration = 0.5\n", "", (":21:", "'simulate' needs the key 'duration'")),
    "negative duration": ("duration = 0.5", "duration = -0.5", (":22:", "duration=-0.5")),
    "not TOML": ("[simulate]", "[simulate", (":21:", "Expected ']'")),
    "the same key twice": ("mass = 1.0", "mass = 1.0\nmass = 2.0", (":7:", "this key has a value already")),
    "force on nothing": ("[start.q]", "[force]\nwheel = 1.0\n\n[start.q]", (":19:", "no joint or coordinate 'wheel'")),
    "table of forces that is not there": (
        "[start.q]",
        '[force]\nup = { file = "torque.csv", column = "up" }\n\n[start.q]',
        (":19:", "'torque.csv' is not there", "--packages"),
    ),
    "a file outside of the folder": (
        "[start.q]",
        '[force]\nup = { file = "../../etc/passwd", column = "up" }\n\n[start.q]',
        (":19:", "outside of the scene's folder"),
    ),
    "constraint with a foreign key": (
        "[start.q]",
        '[[constraint]]\nkind = "point"\nframe = "ball"\nlength = 1.0\n\n[start.q]',
        (":21:", "kind 'point' has no key 'length'", "placement"),
    ),
    "no such kind of constraint": (
        "[start.q]",
        '[[constraint]]\nkind = "pointt"\nframe = "ball"\n\n[start.q]',
        (":19:", "no kind of constraint 'pointt'", "'point'"),
    ),
    "a plane that is nowhere": (
        "[start.q]",
        '[[constraint]]\nkind = "point_in_plane"\nframe = "ball"\nnormal = [1, 0, 0]\n\n[start.q]',
        (":18:", "needs the key 'other'", "or 'at'"),
    ),
    "friction law without its limit": (
        "[start.q]",
        '[[friction]]\nname = "rub"\nalong = "up"\nlaw = { kind = "stribeck", limit = 1.0 }\n\n[start.q]',
        (":21:", "the law 'stribeck' needs the key 'kinetic'"),
    ),
    "event that is an equation": (
        "[start.q]",
        '[[event]]\nname = "half"\nexpression = "up = 0.5"\n\n[start.q]',
        (":20:", "an expression has no '='"),
    ),
    "an output with a folder": (
        "[start.q]",
        '[output]\ncsv = "../table.csv"\n\n[start.q]',
        (":19:", "no folders in them"),
    ),
    "two joints for one body": (
        "[start.q]",
        '[[joint]]\nname = "hinge"\nkind = "revolute"\nchild = "ball"\n\n[start.q]',
        (":21:", "two joints carry the body 'ball'", "give it as a [[constraint]]"),
    ),
    "a start that misses a constraint": (
        "[start.q]",
        '[[constraint]]\nkind = "point"\nframe = "ball"\nat = [0, 0, 0.5]\n\n[start.q]',
        (":23:", "misses 'ball z' by 0.5", "assemble = true in [start] with hold = ["),
    ),
    "an axis without a direction": ("[0, 0, 1]", "[0, 0, 0]", (":12:", "the axis of joint 'up'", "not all zero")),
    "an inertia that no body has": (
        "mass = 1.0",
        "mass = 1.0\ninertia = [1.0, 0.1, 0.1]",
        (":7:", "triangle inequality", "correct it"),
    ),
    "a stop of a joint that is not there": (
        "[start.q]",
        '[[stop]]\njoints = ["upp"]\n\n[start.q]',
        (":19:", "there is no joint 'upp'", "did you mean 'up'?"),
    ),
    "an option of another method": (
        "duration = 0.5",
        "duration = 0.5\noptions = { stepp = 0.1 }",
        (":23:", "no key 'stepp'", "'stepper'"),
    ),
    "nothing that moves": (BALL, "[simulate]\nduration = 1.0\n", ("nothing that could move", "[[body]]")),
}
"""Wrong scenes by what is wrong in them."""


def called(arguments, capsys) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as left:
        main(arguments)
    out, err = capsys.readouterr()
    return int(left.value.code or 0), out, err


def test_the_right_scene_runs(tmp_path):
    path = tmp_path / "ball.toml"
    path.write_text(BALL)
    assert da.scene(path).run().ok


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_scene_is_refused_in_words(name, tmp_path, monkeypatch, capsys):
    old, new, words = WRONG[name]
    assert old in BALL
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ball.toml").write_text(BALL.replace(old, new, 1))
    code, _, err = called(["simulate", "ball.toml"], capsys)
    assert code == 2
    assert err.startswith("dalembert: error: ")
    assert "ball.toml" in err
    assert "Traceback" not in err
    assert not re.search(PYTHON, err), err
    for word in words:
        assert word in err, err


PYTHON = r"mechanism\.|Builder|\bda\.|True|False|None"
"""Words of Python, of which a scene has none."""

ARM = """<robot name="arm"><link name="base"/><link name="hand"><inertial><mass value="1"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="elbow" type="revolute"><parent link="base"/><child link="hand"/><axis xyz="0 1 0"/>
<limit lower="-1" upper="1" effort="1" velocity="1"/></joint></robot>"""

LINES: dict[str, tuple[list[str], str]] = {
    "command misspelt": (["simulat", "bouncing_ball"], "did you mean 'simulate'?"),
    "no such command": (["fly"], "dalembert --help lists all"),
    "scene misspelt": (["simulate", "bouncing_bal"], "did you mean 'bouncing_ball'?"),
    "no such file": (["simulate", "nowhere.toml"], "nowhere.toml"),
    "no such robot": (["simulate", "nowhere.urdf"], "no such file"),
    "unknown ending": (["simulate", "robot.stl"], ".urdf"),
    "parameter misspelt": (["simulate", "bouncing_ball", "--set", "restitutio=0.5"], "did you mean 'restitution'?"),
    "parameter without a value": (["simulate", "bouncing_ball", "--set", "restitution"], "name=number"),
    "report that is no page": (["simulate", "bouncing_ball", "--report", "page.pdf"], "must end in .html"),
    "report in no folder": (["simulate", "bouncing_ball", "--report", "no/where/page.html"], "folder does not exist"),
    "run in an unknown form": (["simulate", "bouncing_ball", "-o", "run.mat"], ".nc"),
    "method misspelt": (["simulate", "bouncing_ball", "--method", "dop835"], "did you mean 'dop853'"),
    "sweep without values": (["sweep", "door"], "no [sweep.parameters] in this scene"),
    "sweep without parameters": (["sweep", "door", "--over", "width=0.1,0.2"], "the scene has no parameters"),
    "sweep over nothing": (["sweep", "bouncing_ball", "--over", "restitution"], "name=values"),
    "motion that is not there": (["inverse", "stanford_arm", "--motion", "no.csv"], "no.csv"),
    "equations are no scene": (["simulate", "equations.toml"], "dalembert graph"),
    "matrices are no scene": (["simulate", "matrices.toml"], "dalembert check or solve"),
    "matrices without a force": (["solve", "matrices.toml"], "has no force"),
    "export to an unknown form": (["export", "door", "-o", "door.step"], ".urdf"),
    "option misspelt": (["simulate", "bouncing_ball", "--durations", "2"], "no option --durations; did you mean --dur"),
    "a word for a number": (["simulate", "bouncing_ball", "--duration", "two"], "--duration: 'two' is not a number"),
    "an option without its value": (["simulate", "bouncing_ball", "--duration"], "--duration needs a value"),
    "no file": (["simulate"], "FILE is missing: A scene"),
    "two files": (["simulate", "bouncing_ball", "door"], "'door' is one word too many"),
    "a choice misspelt": (
        ["solve", "door", "--base", "fxed"],
        "--base fxed: there is auto, fixed",
    ),
    "a shell that is none": (["completion", "fisch"], "did you mean fish?"),
    "a value that the option gave": (["simulate", "bouncing_ball", "--duration", "-1"], "error: --duration -1"),
    "a start that the option gave": (
        ["solve", "four_bar", "--start", "motr=1"],
        "error: --start motr=1: there",
    ),
    "a sweep that the option gave": (
        ["sweep", "bouncing_ball", "--over", "heigt=1,2"],
        "error: --over heigt=1,2",
    ),
    "a folder": (["simulate", "."], "not a folder"),
    "option misspelt and no file": (["view", "--bas", "fixed"], "there is no option --bas; did you mean --base"),
    "a motion that is no table": (["inverse", "stanford_arm", "--motion", "equations.toml"], "equations.toml"),
    "a sweep from one number": (["sweep", "bouncing_ball", "--over", "height=1:2"], "length=0.3:0.6:4"),
    "a picture that is no picture": (["simulate", "bouncing_ball", "--animation", "x.avi"], ".mp4"),
    "unit in a number": (["simulate", "bouncing_ball", "--duration", "1s"], "--duration: '1s' is not a number"),
    "a demonstration misspelt": (["demo", "cranck"], "did you mean crank?"),
    "a joint of another robot": (["simulate", "arm.urdf", "--start", "elbw=1"], "did you mean 'elbow'?"),
    "a foot without its radius": (["simulate", "arm.urdf", "--foot", "hand:big"], "'big' is not a radius in metres"),
    "a foot that is not there": (["simulate", "arm.urdf", "--foot", "hnd:0.02"], "did you mean 'hand'"),
    "a pose of a file without poses": (["simulate", "arm.urdf", "--pose", "home"], "no poses by name"),
    "half of a spring": (["simulate", "arm.urdf", "--hold", "80"], "--hold 80 is not STIFFNESS,DAMPING"),
    "a duration that is no number": (["simulate", "arm.urdf", "--duration", "nan"], "--duration nan: seconds are a"),
    "draws without their number": (["sweep", "bouncing_ball", "--over", "height=normal(1,0.1)"], "--runs"),
    "a table with a hole": (["inverse", "arm.urdf", "--motion", "hole.csv"], "hole.csv:5: '' in the column 'elbow'"),
    "a table with semicolons": (["inverse", "arm.urdf", "--motion", "semicolons.csv"], "separated by commas"),
    "a motion in one instant": (["inverse", "arm.urdf", "--motion", "instant.csv"], "1 different times"),
    "no motion": (["inverse", "arm.urdf"], "--motion is missing: CSV: a column t"),
    "no target": (["export", "arm.urdf"], "-o is missing: The target"),
    "a scene is no robot file": (["show", "four_bar"], "dalembert check has scenes"),
    "a scene has no graph": (["graph", "four_bar"], "robot files"),
    "copy of nothing": (["scenes", "--copy", "mine.toml"], "needs the name of a scene"),
}
"""Wrong command lines."""


@pytest.mark.parametrize("name", LINES)
def test_a_wrong_command_line_is_refused_in_words(name, tmp_path, monkeypatch, capsys):
    arguments, words = LINES[name]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "arm.urdf").write_text(ARM)
    (tmp_path / "hole.csv").write_text("# measured\nt,elbow\n0,1\n1,2\n2,\n3,4\n")
    (tmp_path / "semicolons.csv").write_text("t;elbow\n0;0,1\n1;0,2\n2;0,3\n")
    (tmp_path / "instant.csv").write_text("t,elbow\n1,1\n1,1\n")
    (tmp_path / "matrices.toml").write_text("M = [[1.0]]\n")
    (tmp_path / "equations.toml").write_text('unknowns = ["x"]\n[[equation]]\ntext = "x = 1"\n')
    code, out, err = called(arguments, capsys)
    assert code == 2
    assert out == ""
    assert err.startswith("dalembert: error: ")
    assert "Traceback" not in err
    assert not re.search(PYTHON, err), err
    assert words in err, err


def test_there_are_at_least_25_of_each():
    assert len(WRONG) >= 25
    assert len(LINES) >= 25


def test_bodies_that_stand_still_are_no_run(tmp_path, capsys):
    """A body that no joint carries is fixed: there is nothing to simulate."""
    path = tmp_path / "still.toml"
    path.write_text('[[body]]\nname = "ball"\nmass = 1.0\n\n[simulate]\nduration = 1.0\n')
    code, _, err = called(["simulate", str(path)], capsys)
    assert code == 2
    assert "nothing can move" in err
    assert "[[joint]]" in err


def test_more_parameters_than_a_scene_has_are_refused(tmp_path):
    file = tmp_path / "many.toml"
    names = "".join(f'p{k} = "p{k - 1} + 1"\n' for k in range(1, 20_000))
    file.write_text(
        BALL.replace("parameters = { radius = 0.1 }\n", "") + f"[parameters]\nradius = 0.1\np0 = 0\n{names}"
    )
    with pytest.raises(da.ModelError, match="20001 parameters are above the limit"):
        _ = da.scene(file).parameters


def test_options_of_scenes_are_those_of_methods():
    """Every option of a method has its key, but what goes on to others; nothing else has one."""
    from inspect import signature

    from dalembert.scenes.keys import OptionsTable
    from dalembert.simulate.time_methods import METHODS

    words = {"event_tolerance", "form", "release", "slack", "associated"}
    for method in METHODS.values():
        words |= {
            name
            for name, p in signature(method.load()).parameters.items()
            if name != "session" and p.kind is not p.VAR_KEYWORD
        }
    assert set(OptionsTable.__struct_fields__) == words


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["sweep", "SCENE", "--over", "radius=normal(0.1,0.01)", "--runs", "-3"], "runs=-3: at least one"),
        (["sweep", "SCENE", "--over", "radius=normal(0.1,0.01)", "--runs", "0"], "runs=0: at least one"),
        (["sweep", "SCENE", "--over", "radius=normal(0.1,0.01)", "--runs", "2", "--seed", "-1"], "seed=-1 must not"),
        (["sweep", "SCENE", "--over", "radius=normal(0.1,0.01)", "--runs", "9" * 5000], "more than 18 digits"),
        (["sweep", "SCENE", "--over", "radius=0:1:1000000000"], "above the limit"),
        (["sweep", "SCENE", "--over", f"radius=0:1:{'9' * 5000}"], "above the limit"),
        (["check", "SCENE", "--samples", "-3"], "--samples -3"),
        (["check", "SCENE", "--seed", "-3"], "--seed -3"),
        (["bench", "SCENE", "--batch", "0"], "--batch 0"),
        (["warm", "--to", "FILE/loops"], "cannot be written"),
        (["warm", "--to", "~nosuchuser/loops"], "cannot be written"),
        (["warm", "--shipped", "FILE/loops"], "cannot be written"),
    ],
)
def test_numbers_and_places_that_no_command_takes(words, said, tmp_path, capsys):
    """An answer in one short sentence, before any work, exit code 2."""
    scene, file = tmp_path / "ball.toml", tmp_path / "file"
    scene.write_text(BALL)
    file.write_text("")
    with pytest.raises(SystemExit) as end:
        main([word.replace("SCENE", str(scene)).replace("FILE", str(file)) for word in words])
    told = capsys.readouterr().err
    assert end.value.code == 2
    assert said in told
    assert len(told) < 500
    assert "Traceback" not in told


def test_a_cache_in_the_home_of_nobody_is_said(monkeypatch, capsys):
    monkeypatch.setenv("DALEMBERT_CACHE", "~nosuchuser/kernels")
    with pytest.raises(SystemExit) as end:
        main(["cache"])
    assert end.value.code == 2
    assert "DALEMBERT_CACHE='~nosuchuser/kernels' names no folder" in capsys.readouterr().err
