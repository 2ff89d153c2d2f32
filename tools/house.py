"""The house in figures: files, lines, importers, names used twice, modules on the way of six calls, deep imports.

A module is imported by a call, and executed where one of its functions runs (compiled loops are not seen).

python tools/house.py            # the table of this checkout
python tools/house.py OTHER      # beside that of another checkout, e.g. of an earlier commit
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path

WALKS = {
    "solve": "K = da.KKT([[1, 0], [0, 0]], [[2, -1]]); K.solve([1, 0])",
    "compile": """
b = da.Builder('pendulum')
b.body('bob', mass=1.0, inertia=[1e-3] * 3, center=(0, 0, -1))
b.joint('hinge', 'revolute', parent='world', child='bob', axis=(0, 1, 0))
b.build().compile()([0.3], [0.0], [0.0])
""",
    "simulate": """
b = da.Builder('pendulum')
b.body('bob', mass=1.0, inertia=[1e-3] * 3, center=(0, 0, -1))
b.joint('hinge', 'revolute', parent='world', child='bob', axis=(0, 1, 0))
da.simulate(b.build(), 1.0, [0.3], [0.0])
""",
    "friction": "from dalembert.friction import resolve; resolve([[1.0]], [0.5], [[1.0]], [0.0], [1.0])",
    "structure": """
from dalembert.tableau import newton_euler
try:
    from dalembert.examples import stanford_arm
except ImportError:
    from dalembert.tableau import stanford_arm
newton_euler(stanford_arm()).structure()
""",
    "integrate": """
import casadi as ca
try:
    from dalembert.simulate import Problem
except ImportError:
    from dalembert.tableau.time import Problem
q, v = ca.SX.sym('q'), ca.SX.sym('v')
L = da.Lagrangian(q, v, kinetic=v**2 / 2, potential=q**2 / 2)
Problem(L).integrate((0.0, 1.0), q=[1.0], v=[0.0])
""",
}
"""One small call for every way of the data through the house."""

COUNT = """
import sys, json
import dalembert as da
root, files = da.__file__.removesuffix('__init__.py'), set()
def note(frame, event, _):
    if event == 'call' and frame.f_code.co_name != '<module>' and frame.f_code.co_filename.startswith(root):
        files.add(frame.f_code.co_filename)
sys.setprofile(note)
{walk}
sys.setprofile(None)
print(json.dumps([sum(name.split('.')[0] == 'dalembert' for name in sys.modules), len(files)]))
"""


PARALLEL = {
    "answer": "of bounded and of cone problems",
    "batch": "many states at once: block systems, contacts",
    "derivatives": "of a kernel; of recursions over trees",
    "engine": "of every backend; of contacts in time",
    "entry": "the one call of a room: runs, studies of many runs",
    "functions": "kernels as functions of other libraries; elementary functions in vector code",
    "inputs": "what comes in, checked: matrices, named equations",
    "joint_forces": "traced; of a state; along a run",
    "joints": "of every file format; of models and of loops",
    "limits": "one table of tolerances per room",
    "mjcf": "read; written",
    "passive": "springs and dampers: traced, in loops",
    "pictures": "of structures, of studies",
    "plan": "of an elimination, of a study",
    "printer": "of every backend",
    "reader": "of every file format",
    "requests": "what a mechanism can be compiled to: the table, and who fills it",
    "routes": "ways through the block matrix: numbers, expressions",
    "solve": "block systems, mechanisms, named equations",
}
"""File names that parallel rooms share, and of what."""


def sources(root: Path) -> dict[str, ast.Module]:
    """Return the parsed files of the library by module name."""
    files = sorted((root / "src").rglob("*.py"))
    name = {file: ".".join(file.relative_to(root / "src").with_suffix("").parts) for file in files}
    return {name[file].removesuffix(".__init__"): ast.parse(file.read_text(encoding="utf-8")) for file in files}


def importers(trees: dict[str, ast.Module]) -> Counter[str]:
    """Return how many files import each module."""
    count: Counter[str] = Counter()
    for name, tree in trees.items():
        targets = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                targets |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        count.update(target for target in targets if target in trees and target != name)
    return count


def twice(trees: dict[str, ast.Module]) -> tuple[list[str], list[str]]:
    """Return the public class names and the file names that are used more than once, without need.

    Commands are called by their words, the first file of a room as the room, files of parallel rooms alike: `PARALLEL`.
    """
    paths = [name.split(".") for name in trees]
    stems = Counter(path[-1] for path in paths if path[:2] != ["dalembert", "cli"] and path[-1] != path[-2:][0])
    classes = defaultdict(set)
    for name, tree in trees.items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                classes[node.name].add(name)
    return sorted(name for name, homes in classes.items() if len(homes) > 1), sorted(
        stem for stem, count in stems.items() if count > 1 and stem not in PARALLEL
    )


def deep_imports(root: Path) -> list[str]:
    """Return what tests import from inside a room that is not the one they mirror; `tests/reference` may."""
    rooms = {path.parent.name for path in (root / "src/dalembert").glob("*/__init__.py")}
    imports = []
    for file in sorted((root / "tests").rglob("*.py")):
        place = file.relative_to(root / "tests")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("dalembert."):
                room, *inside = str(node.module).split(".")[1:]
                if room in rooms and inside and place.parts[0] not in (room, "reference"):
                    imports += [f"{place}: {node.module}.{alias.name}" for alias in node.names]
    return imports


def walked(root: Path, walk: str) -> list[list[int | None]]:
    """Return how many modules of the library a call imports and executes, in a fresh process; None where it fails.

    The first time kernels are traced and compiled; the second time they come from the cache.
    """
    code, path = COUNT.format(walk=walk), str(root / "src")
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "PYTHONPATH": path, "DALEMBERT_CACHE": folder}
        command = [sys.executable, "-c", code]
        runs = [subprocess.run(command, capture_output=True, text=True, env=environment) for _ in range(2)]
    return [json.loads(run.stdout.splitlines()[-1]) if run.returncode == 0 else [None, None] for run in runs]


def sizes(root: Path) -> dict[str, tuple[int, int]]:
    """Return files and lines of every room; files beside the rooms under "shared"."""
    count: dict[str, tuple[int, int]] = {}
    for file in sorted((root / "src/dalembert").rglob("*.py")):
        inside = file.relative_to(root / "src/dalembert").parts
        room = inside[0] if len(inside) > 1 else "shared"
        files, lines = count.get(room, (0, 0))
        count[room] = files + 1, lines + len(file.read_text(encoding="utf-8").splitlines())
    return count


def figures(root: Path, walks: bool = True) -> dict[str, int | None]:
    """Return all figures of one checkout; the ways of the six calls take a minute."""
    trees = sources(root)
    count = importers(trees)
    classes, stems = twice(trees)
    rows: dict[str, int | None] = {
        "files": len(trees),
        "lines": sum(lines for _, lines in sizes(root).values()),
        "files with one importer": sum(count[name] == 1 for name in trees),
        "class names used twice": len(classes),
        "file names used twice": len(stems),
        "deep imports of foreign rooms in tests": len(deep_imports(root)),
    }
    for name, walk in WALKS.items() if walks else ():
        for again, (imported, executed) in zip(("", ", again"), walked(root, walk), strict=True):
            rows[f"modules imported by {name}{again}"] = imported
            rows[f"modules executed by {name}{again}"] = executed
    return rows


def main() -> None:
    """Print the table, and what stands in the way of one name for one thing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("others", nargs="*", type=Path, help="other checkouts, for columns beside this one")
    parser.add_argument("--no-walks", action="store_true", help="do not run the six calls")
    arguments = parser.parse_args()
    roots = [*arguments.others, Path(__file__).resolve().parent.parent]
    columns = [figures(root, not arguments.no_walks) for root in roots]
    for row in columns[-1]:
        print(f"{row:<42}" + "".join(f"{'fails' if (x := column[row]) is None else x:>10}" for column in columns))
    print("\nroom: files, lines")
    rooms = [sizes(root) for root in roots]
    for room in sorted(set().union(*rooms)):
        cells = ["{:>6} {:>7}".format(*column[room]) if room in column else f"{'-':>6} {'-':>7}" for column in rooms]
        print(f"{room:<42}" + "".join(f"{cell:>16}" for cell in cells))
    classes, stems = twice(sources(roots[-1]))
    print("\nclass names used twice:", ", ".join(classes) or "none")
    print("file names used twice:", ", ".join(stems) or "none")
    print("deep imports of foreign rooms in tests:", *deep_imports(roots[-1]), sep="\n    ")


if __name__ == "__main__":
    main()
