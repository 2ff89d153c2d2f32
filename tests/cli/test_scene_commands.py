"""Commands that work on scenes, robots and runs, as a user calls them."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

import dalembert as da
from tests.cli.test_commands import called

MATRICES = "M = [[1, 0], [0, 0]]\nA = [[2, -1]]\nnames = ['slider']\nforce = [1, 0]\n"


def test_simulate_says_what_happened_and_writes_what_is_asked_for(tmp_path, capsys):
    names = {"--csv": "run.csv", "-o": "run.nc", "--plot": "run.svg", "--report": "run.html"}
    files = [word for option, name in names.items() for word in (option, str(tmp_path / name))]
    code, out, err = called("simulate", "bouncing_ball", "--duration", "0.5", *files, capsys=capsys)
    assert (code, err) == (0, "")
    assert "floor: open -> impact" in out
    assert "ok   energy balance" in out
    assert all((tmp_path / name).stat().st_size > 100 for name in names.values())
    page = (tmp_path / "run.html").read_text()
    assert "dalembert simulate bouncing_ball --duration 0.5" in page
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", page)  # nothing is fetched
    again = da.Trajectory.load(tmp_path / "run.nc")
    assert again.t[-1] == 0.5
    code, out, _ = called("export", str(tmp_path / "run.nc"), "-o", str(tmp_path / "again.csv"), capsys=capsys)
    assert code == 0
    assert (tmp_path / "again.csv").read_text() == (tmp_path / "run.csv").read_text()


def test_simulate_as_data(capsys):
    code, out, _ = called(
        "simulate", "bouncing_ball", "--set", "height=0.5", "--duration", "0.4", "--json", capsys=capsys
    )
    found = json.loads(out)
    assert code == 0
    assert found["status"] == "completed"
    assert found["events"][0]["time"] == pytest.approx(np.sqrt(2 * 0.5 / 9.81), abs=1e-12)
    assert all(check["holds"] for check in found["checks"].values())
    code, out, _ = called("simulate", "bouncing_ball", "--duration", "0.4", "--quiet", capsys=capsys)
    assert len(out.splitlines()) == 1


def test_a_scene_writes_its_outputs_here(tmp_path, monkeypatch, capsys):
    text = da.scene("bouncing_ball").text.replace("[output]", '[output]\ncsv = "table.csv"')
    (tmp_path / "mine.toml").write_text(text)
    monkeypatch.chdir(tmp_path)
    code, out, _ = called("simulate", "mine.toml", "--duration", "0.3", capsys=capsys)
    assert code == 0
    assert "written: table.csv" in out
    assert (tmp_path / "table.csv").read_text().startswith("t [s],up [m]")


def test_a_massless_body_that_nothing_holds_is_refused(tmp_path, capsys):
    """A massless body that nothing holds: there is no acceleration."""
    (tmp_path / "loose.toml").write_text(
        '[[body]]\nname = "b"\n[[joint]]\nname = "j"\nkind = "prismatic"\nchild = "b"\n[simulate]\nduration = 1\n'
    )
    code, _, err = called("simulate", str(tmp_path / "loose.toml"), capsys=capsys)
    assert code == 2
    assert "nothing resists the coordinate 'j'" in err


def test_a_run_that_stops_on_the_way_exits_1(tmp_path, capsys):
    """A crank as long as its rod: where both are stretched the massless rod can fold, and nothing says how."""
    text = da.scene("crank_slider").text.replace("crank = 0.3, rod = 0.8", "crank = 0.5, rod = 0.4")
    (tmp_path / "stuck.toml").write_text(text.replace("drive = 1.0\npin = -1.3", "drive = 0.2\npin = -0.4"))
    code, out, _ = called("simulate", str(tmp_path / "stuck.toml"), capsys=capsys)
    assert code == 1
    assert "FAIL end reached" in out


def test_solve_a_scene_and_matrices_under_the_letters_of_the_field(tmp_path, capsys):
    code, out, _ = called("solve", "door", "--json", capsys=capsys)
    found = json.loads(out)
    assert code == 0
    assert found["reactions"]["low z"] == pytest.approx(20 * 9.81)
    assert found["unique"]["low z"] is True
    assert found["unique"]["low x"] is False
    code, out, _ = called("solve", "door", capsys=capsys)
    assert "one of many" in out
    assert re.search(r"low z +196.2 N +unique", out)
    path = tmp_path / "system.toml"
    path.write_text(MATRICES)
    code, out, _ = called("solve", str(path), "--json", capsys=capsys)
    assert code == 0
    assert json.loads(out)["acceleration"] == pytest.approx({"q0": 1.0, "q1": 2.0}, abs=1e-14)
    assert "unique accelerations" in called("check", str(path), capsys=capsys)[1]
    assert json.loads(called("check", str(path), "--json", capsys=capsys)[1])["solvable"] is True


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("M = ", "mass = [[1]]\nM = "), "given once"),
        (("names = ['slider']", "names = ['a', 'b']"), "names has 2 entries for 1 rows"),
        (("A = [[2, -1]]\n", ""), "names and drift go with A"),
        (("force", "forces"), "did you mean 'force'?"),
    ],
)
def test_matrices_that_contradict_themselves(change, words, tmp_path, capsys):
    path = tmp_path / "system.toml"
    path.write_text(MATRICES.replace(*change))
    code, _, err = called("check", str(path), capsys=capsys)
    assert code == 2
    assert words in err


def test_check_a_scene_with_a_report(tmp_path, capsys):
    code, out, _ = called("check", "door", "--samples", "0", "--report", str(tmp_path / "door.html"), capsys=capsys)
    assert code == 0
    assert "redundant: high" in out
    assert "redundant: high" in (tmp_path / "door.html").read_text()


def test_inverse_gives_back_the_forces_of_a_run(tmp_path, capsys):
    """Torques along the motion of the Stanford arm under its controller are those of the controller."""
    scene = da.scene("stanford_arm")
    run = scene.run(every=0.005, duration=0.5)
    run.to_csv(tmp_path / "motion.csv", "coordinates")
    target = tmp_path / "torques.csv"
    motion = str(tmp_path / "motion.csv")
    code, out, _ = called("inverse", "stanford_arm", "--motion", motion, "-o", str(target), capsys=capsys)
    assert code == 0
    assert "joint1" in out
    assert target.read_text().startswith("t [s],joint1 [N m],joint2 [N m],joint3 [N]")
    table = np.genfromtxt(target, delimiter=",", skip_header=1)
    k = run.t.size // 2  # the spline of the motion has no rates at its ends
    np.testing.assert_allclose(table[k, 1:], scene.force_at(run.t[k], run.q[k], run.v[k]), rtol=1e-3, atol=0.05)
    code, out, _ = called("inverse", "stanford_arm", "--motion", motion, "--json", capsys=capsys)
    assert json.loads(out)["failed"] == 0


def test_inverse_takes_rates_from_the_table_and_instants_once(tmp_path, capsys):
    """With velocities and accelerations in the table forces are exact, from its first row on; events stand twice."""
    scene = da.scene("stanford_arm")
    run = scene.run(every=0.02, duration=0.2)
    run.to_csv(tmp_path / "motion.csv")
    lines = (tmp_path / "motion.csv").read_text().splitlines()
    (tmp_path / "motion.csv").write_text("\n".join([*lines[:4], lines[3], *lines[4:]]))
    target = tmp_path / "torques.csv"
    motion = str(tmp_path / "motion.csv")
    code, out, _ = called("inverse", "stanford_arm", "--motion", motion, "-o", str(target), capsys=capsys)
    assert code == 0
    assert "spline" not in out
    table = np.genfromtxt(target, delimiter=",", skip_header=1)
    for k in (0, run.t.size // 2):
        np.testing.assert_allclose(table[k, 1:], scene.force_at(run.t[k], run.q[k], run.v[k]), atol=1e-6)
    (tmp_path / "motion.csv").write_text("\n".join([*lines[:4], lines[2], *lines[4:]]))
    code, _, error = called("inverse", "stanford_arm", "--motion", motion, capsys=capsys)
    assert code == 2
    assert "times must grow; line 5" in error


def test_sweep_prints_a_table_and_writes_it(tmp_path, capsys):
    arguments = ("sweep", "bouncing_ball", "--over", "restitution=0.2:0.8:3", "-o", str(tmp_path / "table.csv"))
    code, out, _ = called(*arguments, capsys=capsys)
    assert code == 0
    assert "rebound speed" in out
    assert len((tmp_path / "table.csv").read_text().splitlines()) == 4
    code, out, _ = called("sweep", "bouncing_ball", "--json", capsys=capsys)
    assert len(json.loads(out)["runs"]) == 4


def test_scenes_are_listed_printed_and_copied(tmp_path, capsys):
    code, out, _ = called("scenes", capsys=capsys)
    assert code == 0
    assert "bouncing_ball" in out
    assert "door" in json.loads(called("scenes", "--json", capsys=capsys)[1])
    assert called("scenes", "door", capsys=capsys)[1] == da.scene("door").text
    code, out, _ = called("scenes", "four_bar", "--copy", str(tmp_path / "mine.toml"), capsys=capsys)
    assert code == 0
    assert da.scene(tmp_path / "mine.toml").force
    assert called("scenes", "four_bar", "--copy", str(tmp_path / "mine.toml"), capsys=capsys)[0] == 2


def test_view_and_export_write_pages_and_models(tmp_path, capsys):
    code, _, _ = called("view", "door", "--still", "-o", str(tmp_path / "door.html"), capsys=capsys)
    assert code == 0
    assert "<script" in (tmp_path / "door.html").read_text()
    code, _, _ = called("export", "stanford_arm", "-o", str(tmp_path / "arm.urdf"), capsys=capsys)
    assert code == 0
    assert da.load(tmp_path / "arm.urdf").nv == 6
    code, out, _ = called("show", str(tmp_path / "arm.urdf"), "--json", capsys=capsys)
    assert json.loads(out)["nv"] == 6
    code, out, _ = called(
        "export", "door", "-o", str(tmp_path / "code"), "--function", "mass_matrix", "--json", capsys=capsys
    )
    assert code == 0
    assert any(path.suffix == ".c" for path in (tmp_path / "code").rglob("*"))


def test_export_names_what_a_format_cannot_say(tmp_path, capsys):
    """A loop that URDF has no words for is refused; with --drop-loops it goes, and the warning names it."""
    target = tmp_path / "four_bar.urdf"
    code, _, err = called("export", "four_bar", "-o", str(target), capsys=capsys)
    assert code == 2
    assert "constraint loop" in err
    assert "--drop-loops" in err
    assert not target.exists()
    code, _, err = called("export", "four_bar", "-o", str(target), "--drop-loops", capsys=capsys)
    assert code == 0
    assert "constraint loop; gravity" in err
    assert "1 [force], [start] of the scene" in err
    assert not da.load(target).all_constraints


def test_joint_forces_as_a_table_with_units_and_peaks(tmp_path, capsys):
    """The hinge of a pendulum that falls from the horizontal carries 3 m g at its lowest place (point mass)."""
    (tmp_path / "swing.toml").write_text(
        '[[body]]\nname = "bob"\nmass = 2.0\ncenter = [0, 0, -1.5]\n[[joint]]\nname = "hinge"\nkind = "revolute"\n'
        'child = "bob"\naxis = [0, 1, 0]\n[start.q]\nhinge = "pi/2"\n[simulate]\nduration = 3.0\n'
    )
    table = tmp_path / "loads.csv"
    line = ("simulate", str(tmp_path / "swing.toml"), "--joint-forces", str(table))
    code, out, _ = called(*line, capsys=capsys)
    assert code == 0
    assert "peak force, N" in out
    assert table.read_text().startswith("t [s],hinge fx [N],hinge fy [N],hinge fz [N],hinge mx [N m]")
    code, out, _ = called(*line, "--json", capsys=capsys)
    assert json.loads(out)["joint forces"]["hinge"]["force"] == pytest.approx(3 * 2.0 * 9.81, rel=1e-5)


def test_a_driven_crank_starts_at_the_speed_of_its_drive(tmp_path, capsys):
    """`hold` keeps the angle, not the speed; the work of a drive is no failure of the balance."""
    path = tmp_path / "driven.toml"
    path.write_text(
        'parameters = { speed = 3.0 }\n[[body]]\nname = "bar"\nmass = 2.0\ncenter = [0.5, 0, 0]\n'
        '[[joint]]\nname = "A"\nkind = "revolute"\nchild = "bar"\naxis = [0, 1, 0]\n'
        '[[constraint]]\nkind = "servo"\ncoordinate = "A"\nmotion = "0.2 + speed*t"\n'
        '[start]\nassemble = true\nhold = ["A"]\nq = { A = 0.2 }\n[simulate]\nduration = 0.5\n'
        '[sweep.measure]\ntorque = { of = "servo A", take = "range" }\n'
    )
    assert da.scene(path).start[1] == pytest.approx([3.0])
    code, out, _ = called("simulate", str(path), capsys=capsys)
    assert code == 0, out
    assert "energy balance" in out  # the work of the drive is counted
    code, out, _ = called("sweep", str(path), "--over", "speed=1,2", "--json", capsys=capsys)
    assert [row["speed"] for row in json.loads(out)["runs"]] == [1.0, 2.0]
    code, _, err = called("sweep", str(path), capsys=capsys)
    assert code == 2
    assert "with one of speed" in err


def test_velocities_have_one_notation_and_readers_take_both(tmp_path, capsys):
    run = da.scene("stanford_arm").run(every=0.02, duration=0.2)
    assert np.array_equal(run["joint1'"], run["joint1.v"])
    assert np.array_equal(run["joint1''"], run["joint1.a"])
    text = str(run.to_csv())
    assert "joint1.v [rad/s]" in text
    assert "'" not in text.splitlines()[0]
    primed = text.replace(".v [", "' [").replace(".a [", "'' [")
    tables = []
    for name, content in (("dots", text), ("primes", primed)):
        (tmp_path / f"{name}.csv").write_text(content)
        line = ("inverse", "stanford_arm", "--motion", str(tmp_path / f"{name}.csv"), "--json")
        tables.append(json.loads(called(*line, capsys=capsys)[1]))
        assert tables[-1]["splined"] == []
    assert tables[0]["peaks"] == tables[1]["peaks"]
    scene = da.scene("stanford_arm")
    (tmp_path / "stanford_arm.urdf").write_text((scene.path.parent / "stanford_arm.urdf").read_text())
    (tmp_path / "primes.toml").write_text(scene.text.replace(".v", "'"))
    other = da.scene(tmp_path / "primes.toml")
    q, v = np.full(6, 0.3), np.arange(6.0)
    assert np.array_equal(other.force_at(0.0, q, v), scene.force_at(0.0, q, v))


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (("simulat", "door", "--json"), "did you mean 'simulate'"),
        (("--json", "simulat", "door"), "did you mean 'simulate'"),
        (("--json",), "no command"),
        (("simulate", "--json"), "FILE is missing"),
        (("simulate", "door", "--durations", "1", "--json"), "--durations"),
        (("simulate", "door", "--duration", "long", "--json"), "--duration"),
    ],
)
def test_errors_before_a_command_is_read_are_data_too(line, words, capsys):
    code, out, _ = called(*line, capsys=capsys)
    assert code == 2
    assert words in json.loads(out)["error"]


def test_bench_measures_here(capsys):
    code, out, _ = called("bench", "bouncing_ball", "--batch", "10", "--json", capsys=capsys)
    assert code == 0
    assert json.loads(out)["times"]["forward"]["one state, us"] > 0.0


def test_the_demonstration_is_one_page_with_mechanisms_in_motion(tmp_path, capsys):
    target = tmp_path / "demo.html"
    code, out, _ = called("demo", "--report", str(target), capsys=capsys)
    assert code == 0
    assert "What to try next" in out
    page = target.read_text()
    assert page.count("<iframe") == 4
    assert all(f"<h2>{k}. " in page for k in range(1, 7))


def test_a_sweep_of_draws_goes_to_a_store_and_goes_on(tmp_path, capsys):
    """The same command again reads the store; one for another scene is refused."""
    store = tmp_path / "study.zarr"
    line = ("sweep", "bouncing_ball", "--over", "restitution=uniform(0.2,0.8)", "--runs", "6", "--seed", "3")
    code, out, _ = called(*line, "-o", str(store), capsys=capsys)
    assert code == 0, out
    assert "study of 6 runs (6 completed)" in out
    assert "rebound speed: 6 runs" in out
    (store / "done" / "c" / "0").write_bytes(b"")
    assert called(*line, "-o", str(store), capsys=capsys) == (code, out, "")
    for other in (("--runs", "7"), ("--seed", "4"), ("--design", "sobol"), ("--over", "restitution=uniform(0.2,0.9)")):
        changed, _, err = called(*line, *other, "-o", str(store), capsys=capsys)
        assert changed == 2
        assert "was begun with other" in err
    assert called("sweep", "bouncing_ball", "-o", str(store), capsys=capsys) == (code, out, "")
    study = da.ensemble.open(store)
    np.testing.assert_allclose(study["rebound speed"], study["restitution"] * np.sqrt(2 * 9.81), rtol=1e-9)
    code, _, err = called("sweep", "bouncing_ball", "--set", "height=2", "-o", str(store), capsys=capsys)
    assert code == 2
    assert "another scene" in err
