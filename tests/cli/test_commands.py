"""The command line as a user runs it: exit codes, messages, no tracebacks."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from dalembert import __version__
from dalembert.cli import main
from dalembert.cli.main import COMMANDS
from dalembert.cli.warm import ENTRIES, GROUPS

SOLVABLE = 'mass = [[1, 0], [0, 0]]\nforce = [1, 0]\n[[constraint]]\nname = "slider"\nrow = [2, -1]\n'
FREE = 'coordinates = ["crank", "rod"]\nmass = [[1, 0], [0, 0]]\nforce = [1, 0]\n'
CONFLICT = SOLVABLE + '[[constraint]]\nname = "stop"\nrow = [4, -2]\ndrift = 1\n'


def called(*arguments: str, capsys) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as left:
        main(arguments)
    out, err = capsys.readouterr()
    return int(left.value.code or 0), out, err


@pytest.fixture
def system_file(tmp_path):
    def write(text: str) -> str:
        path = tmp_path / "system.toml"
        path.write_text(text)
        return str(path)

    return write


def test_version_as_a_process():
    run = subprocess.run([sys.executable, "-m", "dalembert", "--version"], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == f"dalembert {__version__}"


def test_check_solvable(system_file, capsys):
    code, out, err = called("check", system_file(SOLVABLE), capsys=capsys)
    assert (code, err) == (0, "")
    assert "slider" in out
    assert "unique accelerations" in out


@pytest.mark.parametrize(("text", "words"), [(FREE, "free massless motion: rod"), (CONFLICT, "'slider', 'stop'")])
def test_check_without_solution_exits_1_and_says_why(system_file, capsys, text, words):
    code, out, _ = called("check", system_file(text), capsys=capsys)
    assert code == 1
    assert words in out


@pytest.mark.parametrize(
    "arguments", [("check", "nowhere.toml"), ("check", "x.bad"), ("demo", "--report", "no/such/x.html")]
)
def test_misuse_exits_2_with_one_message(capsys, arguments):
    code, out, err = called(*arguments, capsys=capsys)
    assert (code, out) == (2, "")
    assert err.startswith("dalembert: error: ")
    assert "Traceback" not in err


@pytest.mark.parametrize("arguments", [("chek",), ("check",), ("demo", "--nothing"), ()])
def test_unknown_words_exit_2(capsys, arguments):
    code, _, err = called(*arguments, capsys=capsys)
    assert code == 2
    assert "Traceback" not in err


def test_the_overview_names_every_command(capsys):
    for arguments, wanted in ((("--help",), 0), (("help",), 0), ((), 2)):
        code, out, err = called(*arguments, capsys=capsys)
        assert code == wanted
        assert all(f"\n  {name} " in out + err for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_examples_and_json(name, capsys):
    code, out, _ = called(name, "--help", capsys=capsys)
    assert code == 0
    assert f"dalembert {name}" in out.split("usage:")[1].split("\n", 1)[1], "an example"
    assert "--json" in out
    assert "None" not in out


def test_debug_shows_the_traceback_and_keeps_the_exit_code(system_file, capsys):
    code, _, err = called("check", "nowhere.toml", "--debug", capsys=capsys)
    assert code == 2
    assert "Traceback" in err
    code, _, err = called("solve", system_file(FREE), "--debug", capsys=capsys)
    assert code == 1
    assert "Traceback" in err


def test_errors_are_data_where_data_is_asked_for(capsys):
    code, out, err = called("simulate", "nowhere.toml", "--json", capsys=capsys)
    assert code == 2
    assert json.loads(out)["kind"] == "ModelError"
    assert err.startswith("dalembert: error: ")


@pytest.mark.parametrize("words", ["scenes stanford_arm", "simulate --help"])
def test_a_pipe_that_is_closed_early_is_no_error(words):
    command = f"{sys.executable} -m dalembert {words}; echo code $? >&2"
    run = subprocess.run(["bash", "-c", f"({command}) | true"], capture_output=True, text=True)
    assert "Traceback" not in run.stderr
    assert "dalembert: error" not in run.stderr
    assert run.stderr.split("code ")[1].strip() in ("0", "141")


def test_completion_of_every_shell_knows_the_commands(capsys):
    scripts = {shell: called("completion", shell, capsys=capsys)[1] for shell in ("bash", "zsh", "fish")}
    assert all("simulate" in script and "bouncing_ball" in script for script in scripts.values())
    ask = f"{scripts['bash']}\nCOMP_WORDS=(dalembert simu) COMP_CWORD=1; _dalembert; echo ${{COMPREPLY[@]}}"
    run = subprocess.run(["bash", "-c", ask], capture_output=True, text=True, check=True)
    assert run.stdout.split()[0] == "simulate"
    ask = ask.replace("(dalembert simu)", "(dalembert simulate --rep)").replace("CWORD=1", "CWORD=2")
    run = subprocess.run(["bash", "-c", ask], capture_output=True, text=True, check=True)
    assert run.stdout.split()[0] == "--report"


def test_cache_counts_and_clears(tmp_path, monkeypatch, capsys):
    import casadi as ca

    from dalembert.kernel import Kernel

    monkeypatch.setenv("DALEMBERT_CACHE", str(tmp_path))
    x = ca.SX.sym("x")
    Kernel(ca.Function("f", [x], [ca.sin(x)]))(0.5)
    code, out, _ = called("cache", "--info", capsys=capsys)
    assert code == 0
    entries = len(list(tmp_path.iterdir()))
    assert entries
    assert f"entries  {entries}" in out
    assert str(tmp_path) in out
    assert called("cache", "--clear", capsys=capsys)[:2] == (0, f"{entries} entries removed\n")
    assert "entries  0" in called("cache", capsys=capsys)[1]
    assert called("cache", "--info", "--clear", capsys=capsys)[0] == 2


def test_demo_prints_equation_35_and_writes_the_report(tmp_path, capsys):
    target = tmp_path / "report.html"
    code, out, _ = called("demo", "crank", "--report", str(target), capsys=capsys)
    assert code == 0
    assert "equal to eq. (35): yes, to the last digit" in out
    assert "redundant: rear right" in out
    assert "contradict each other" in out
    assert out.rstrip().endswith(f"report: {target}")
    assert target.read_text().count("<svg") == 4


def test_show_draws_a_robot_file(tmp_path, capsys):
    path = tmp_path / "r.urdf"
    path.write_text('<robot name="r"><link name="base"/><gazebo/></robot>')
    code, out, _ = called("show", str(path), capsys=capsys)
    assert code == 0
    assert "base" in out
    assert "left out: 1 <gazebo>" in out
    assert called("show", str(path), "--urdf", capsys=capsys)[1].startswith("<?xml")
    assert called("show", str(tmp_path / "none.urdf"), capsys=capsys)[0] == 2


EQUATIONS = """
unknowns = ["x", "y", "u", "v", "lam"]
equation = [
  { name = "rate of x", text = "x' = u" },
  { name = "rate of y", text = "y' = v" },
  { name = "force x", text = "u' = -lam*x" },
  { name = "force y", text = "v' = -lam*y - 9.81" },
  { name = "rod", text = "x^2 + y^2 = 1" },
]
"""


def test_graph_of_a_solvable_system(system_file, tmp_path, capsys):
    picture = tmp_path / "graph.svg"
    code, out, err = called("graph", system_file(EQUATIONS), "-o", str(picture), capsys=capsys)
    assert (code, err) == (0, "")
    assert "structural index 3" in out
    assert "structurally solvable: 5 equations" in out
    assert picture.read_text().startswith("<svg")
    code, _, _ = called("graph", system_file(EQUATIONS), "-o", str(picture), "--kind", "matrix", capsys=capsys)
    assert code == 0
    assert "in solving order" in picture.read_text()


def test_graph_of_an_unsolvable_system_exits_1_and_names_the_misfit(system_file, tmp_path, capsys):
    wrong = EQUATIONS.replace("v' = -lam*y - 9.81", "x = 0.5").replace("x^2 + y^2 = 1", "x = 0.3")
    code, out, _ = called("graph", system_file(wrong), "-o", str(tmp_path / "graph.svg"), capsys=capsys)
    assert code == 1
    assert "2 equations for 1 unknown(s): equations 'force y', 'rod'" in out
    assert (tmp_path / "graph.svg").exists()


def test_graph_misuse_exits_2(system_file, tmp_path, capsys):
    code, _, err = called("graph", system_file("unknowns = 3"), capsys=capsys)
    assert code == 2
    assert "system.toml" in err
    code, _, err = called("graph", system_file(EQUATIONS), "-o", str(tmp_path / "no" / "graph.svg"), capsys=capsys)
    assert code == 2
    assert "folder" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--jobs", "0"), "at least 1"),
        (("--to", "a", "--shipped", "b"), "exclude each other"),
        (("smoth motion",), "there is no entry 'smoth motion'"),
    ],
)
def test_warm_refuses_what_it_does_not_know(arguments, message, capsys):
    code, _, error = called("warm", *arguments, capsys=capsys)
    assert code == 2
    assert message in " ".join(error.split())


def test_every_entry_of_warm_is_run_in_one_process():
    assert sorted(name for group in GROUPS for name in group) == sorted(ENTRIES)


def test_warm_fills_a_folder_that_travels(tmp_path, capsys):
    code, out, _ = called("warm", "--to", str(tmp_path), "batches of block systems", capsys=capsys)
    assert code == 0
    assert out.splitlines()[0] == f"export DALEMBERT_LOOPS={tmp_path / 'loops'}"
    assert list((tmp_path / "loops").rglob("*.nbc"))


def test_warm_names_the_entry_that_failed(monkeypatch, capsys):
    monkeypatch.setitem(ENTRIES, "sparse elimination", "raise RuntimeError('no memory')")
    monkeypatch.setitem(ENTRIES, "named equations in time", "import os; os._exit(3)")
    names = ("sparse elimination", "named equations in time")
    code, out, _ = called("warm", "--json", *names, capsys=capsys)
    assert code == 1
    entries = json.loads(out)["entries"]
    assert {name: bool(entry["error"]) for name, entry in entries.items()} == dict.fromkeys(names, True)
