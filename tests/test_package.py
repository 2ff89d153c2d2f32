"""The package as others get it: the wheel, the light import, the public names."""

from __future__ import annotations

import ast
import importlib.util
import re
import subprocess
import sys
import tomllib
import venv
from importlib import import_module
from pathlib import Path

import pytest

import dalembert as da

ROOT = Path(__file__).parents[1]
HEAVY = ("casadi", "numba", "llvmlite", "matplotlib", "tyro", "rich")


def test_import_is_light():
    """`import dalembert` loads NumPy and SciPy; the rest comes on first use."""
    code = f"import sys, dalembert; print([name for name in {HEAVY} if name in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


@pytest.mark.parametrize("module", ["entry", "steppers.moreau", "contact.hybrid"])  # contacts are traced by CasADi
def test_runs_of_mechanisms_start_light(module):
    """On the way to `da.simulate` of a mechanism nothing is loaded that a run from the caches does not use."""
    traced = () if module == "entry" else ("casadi",)
    names = ("casadi", "jaxtyping", "scipy.integrate", "scipy.linalg", "scipy.optimize", "matplotlib", "rich")
    code = f"import sys, dalembert.simulate.{module}; print([m for m in {names} if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == str(list(traced))


def test_public_names_exist_and_are_documented():
    for name in da.__all__:
        assert getattr(da, name) is not None
        if name != "__version__":
            assert (getattr(da, name).__doc__ or "").strip(), name


def test_dir_shows_public_names_alone():
    assert dir(da) == sorted(da.__all__)


def test_names_of_rooms_exist():
    """What a room offers can be imported, names that come on first use among them."""
    for folder in sorted(path.parent for path in (ROOT / "src/dalembert").rglob("__init__.py")):
        room = import_module(".".join(folder.relative_to(ROOT / "src").parts))
        for name in getattr(room, "__all__", ()):
            assert getattr(room, name) is not None, f"{room.__name__}.{name}"


PAGES = sorted((ROOT / "src/dalembert").glob("*/**/README.md"))
MOST_LINES = 72
"""Lines of the README of a room or sub-room: a page."""


def files_of(folder: Path) -> list[Path]:
    """Return the files that the page of a folder names: not those of sub-rooms with a page of their own."""
    own = [page.parent for page in PAGES if page.parent != folder]
    inside = (path for path in folder.rglob("*.py") if path.name != "__init__.py")
    return [path for path in inside if not any(folder in other.parents and other in path.parents for other in own)]


def test_every_room_has_its_page():
    """Each room has a README of one page that names its files, those of sub-rooms without a page of their own too."""
    for room in sorted(path.parent for path in (ROOT / "src/dalembert").glob("*/__init__.py")):
        assert (room / "README.md").is_file(), room.name
    for page in PAGES:
        text = page.read_text()
        assert text.count("\n") <= MOST_LINES, f"{page.relative_to(ROOT)}: sub-rooms can have pages of their own"
        for file in files_of(page.parent):
            assert f"`{file.name}`" in text, f"{page.relative_to(ROOT)} does not name {file.name}"


def test_rooms_stand_in_one_order():
    """The order in which rooms may import each other is that of the table of rooms."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if "dalembert.kernel" in contract.get("layers", ()))
    names = [name.strip().removeprefix("dalembert.") for layer in layers for name in re.split("[|:]", layer)]
    table = re.findall(r"^\| `(\w+)(?:/|\.py)` \|", (ROOT / "src/dalembert/README.md").read_text(), re.MULTILINE)
    rooms = {path.parent.name for path in (ROOT / "src/dalembert").glob("*/__init__.py")}
    assert rooms <= set(table)
    assert [name for name in names if name in table] == table


ROW = re.compile(r"^\| (\*\*(?P<folder>[\w/]+)/\*\*|(?P<files>`[\w.]+`(, `[\w.]+`)*)) \|", re.MULTILINE)


def test_pages_name_only_what_exists():
    """In the tables of the READMEs every folder and file is there, a file below the folder that it is listed under."""
    for page in PAGES:
        folder, listed = page.parent, 0
        for row in ROW.finditer(page.read_text().partition("file | holds |")[2]):
            if row["folder"]:
                folder = page.parent / row["folder"]
                assert folder.is_dir(), f"{page.parent.name}/README.md: {row['folder']}/"
            for name in re.findall(r"`([^`]+)`", row["files"] or ""):
                assert (folder / name).is_file(), f"{page.parent.name}/README.md: {folder.name}/{name}"
                listed += 1
        assert listed == len(files_of(page.parent)), page.parent.name


def test_limits_have_names():
    """Where ranks and verdicts are decided, small numbers are constants with a name, not part of a comparison."""
    rooms = ("kkt", "friction", "model", "tree", "large", "tableau", "simulate")
    for file in sorted(path for room in rooms for path in (ROOT / "src/dalembert" / room).rglob("*.py")):
        for function in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(function, ast.FunctionDef):
                numbers = (node for line in function.body for node in ast.walk(line) if isinstance(node, ast.Constant))
                private = [x.value for x in numbers if isinstance(x.value, float) and 1e-200 < x.value < 1e-3]
                assert not private, f"{file.relative_to(ROOT)}, {function.name}: {private}"


def test_contributing_names_only_what_exists():
    """Files and folders that are to be opened or touched for a change are there."""
    paths = set(re.findall(r"`((?:\w+/)+[\w.*]*)`", (ROOT / "CONTRIBUTING.md").read_text()))
    assert len(paths) > 20
    missing = [
        path
        for path in paths
        if not any(list(home.glob(path)) for home in (ROOT, ROOT / "src", ROOT / "src/dalembert"))
    ]
    assert not missing


def test_examples_run(tmp_path):
    examples = sorted((ROOT / "examples").glob("*.py"))
    assert examples
    for example in examples:
        run = subprocess.run([sys.executable, str(example)], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert run.returncode == 0, f"{example.name}\n{run.stderr[-2000:]}"


@pytest.mark.slow
def test_wheel_installs_in_a_fresh_environment(tmp_path):
    """Build the wheel, install it alone, run the command and a solve from there."""
    build = [sys.executable, "-m", "build", "--wheel", "--outdir", str(tmp_path), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("dalembert-*.whl")
    venv.create(tmp_path / "fresh", with_pip=True)
    python = tmp_path / "fresh" / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", wheel], check=True, capture_output=True)
    solve = "import dalembert as da; print(da.KKT([[1, 0], [0, 0]], [[2, -1]]).solve([1, 0]).acceleration)"
    run = subprocess.run([python, "-c", solve], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[1. 2.]"
    version = subprocess.run([python.parent / "dalembert", "--version"], capture_output=True, text=True, check=True)
    assert version.stdout.strip() == f"dalembert {da.__version__}"


def test_version_stands_in_one_place():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert "version" in project["dynamic"]


def test_a_class_name_is_used_once_in_the_library():
    spec = importlib.util.spec_from_file_location("house", ROOT / "tools" / "house.py")
    assert spec is not None
    assert spec.loader is not None
    house = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(house)
    assert house.twice(house.sources(ROOT))[0] == []
