"""The pages: they build without a warning, and the ledger names only what exists."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "dalembert"
LEDGER = ROOT / "docs" / "seeds.md"
COLUMNS = ["id", "result", "code", "test"]
NOT_YET = "not yet"
HOME = re.compile(r"Tests without a path are in `([^`]+)`")
REFERENCE = re.compile(r"`([^`:]+\.\w+)(?:::([\w.]+))?`")


@pytest.mark.parametrize("cells", ["off", pytest.param("force", marks=pytest.mark.slow)])
def test_docs_build_without_warnings(tmp_path, cells):
    """Without the cells of code, which `test_pages.py` runs; with them, as the published pages are built."""
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html"]
    command += ["-D", f"nb_execution_mode={cells}", "-d", str(tmp_path / "doctrees")]
    if cells == "off":
        command += ["-D", "suppress_warnings=myst-nb.lexer"]  # which language cells have is known when they have run
    command += [str(ROOT / "docs"), str(tmp_path / "html")]
    build = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert build.returncode == 0, "\n".join((build.stdout + build.stderr).splitlines()[-60:])
    assert (tmp_path / "html" / "index.html").exists()


def test_formulas_need_no_network():
    """MathJax lies beside the pages, with its licence."""
    path = re.search(r'^mathjax_path = "(.+)"', (ROOT / "docs" / "conf.py").read_text(), re.MULTILINE)
    assert path is not None
    assert (ROOT / "docs" / "_static" / path[1]).stat().st_size > 1_000_000
    assert (ROOT / "docs" / "_static" / path[1]).with_name("LICENSE").exists()


def test_ledger_names_only_what_exists():
    missing = [
        f"{line['id']} {column}: {path}{'::' + name if name else ''}"
        for line in ledger()
        for column in ("code", "test")
        for path, name in REFERENCE.findall(line[column])
        if not exists(path, name)
    ]
    assert not missing, "docs/seeds.md names what does not exist:\n" + "\n".join(missing)


def test_ledger_lines_are_complete():
    lines = {line["id"]: line for line in ledger()}
    counts = {"J": 17, "O": 16, "W": 6, "Y": 17}
    expected = [f"{seed}{i}" for seed, count in counts.items() for i in range(1, count + 1)]
    assert list(lines) == expected
    for name, line in lines.items():
        for column in ("code", "test"):
            assert line[column] == NOT_YET or REFERENCE.search(line[column]), f"{name}: no {column} named"
        assert (line["code"] == NOT_YET) == (line["test"] == NOT_YET), f"{name}: code or test alone"


def test_ledger_tests_carry_the_name_of_their_line():
    for line in ledger():
        for path, name in REFERENCE.findall(line["test"]):
            assert not path.startswith("tests/kkt/test_ledger") or name.startswith(f"test_{line['id']}_"), (path, name)


def ledger() -> list[dict[str, str]]:
    """Return the lines of every ledger table, in order; test names without a path get the one of their section."""
    lines: list[dict[str, str]] = []
    home = ""
    for text in LEDGER.read_text(encoding="utf-8").splitlines():
        if text.startswith("## "):
            home = ""
        elif stated := HOME.search(text):
            home = stated[1]
        if not text.startswith("|"):
            continue
        row = [cell.strip() for cell in text.strip().strip("|").split("|")]
        assert len(row) == len(COLUMNS), f"not {len(COLUMNS)} cells: {text}"
        if row != COLUMNS and set(row[0]) != {"-"}:
            row[-1] = re.sub(r"`(test_\w+)`", rf"`{home}::\1`", row[-1])
            lines.append(dict(zip(COLUMNS, row, strict=True)))
    return lines


def exists(path: str, name: str) -> bool:
    """Return whether a file exists, and in it a (dotted) class, function or method."""
    file = next((base / path for base in (ROOT, PACKAGE) if (base / path).is_file()), None)
    if file is None or not name:
        return file is not None
    body = ast.parse(file.read_text(encoding="utf-8")).body
    for part in name.split("."):
        found = [node for node in body if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == part]
        if not found:
            return False
        body = found[0].body
    return True


def test_limits_on_the_page_of_verdicts_exist():
    """Each name in the tables of limits is one of `kkt/limits.py`."""
    from dalembert.kkt import limits

    tables = (ROOT / "docs/verdict.md").read_text().partition("## Limits")[2]
    names = {name for line in tables.splitlines() if line.startswith("|") for name in re.findall(r"`(\w+)`", line)}
    assert len(names) > 30
    assert not {name for name in names if not hasattr(limits, name)}


@pytest.mark.parametrize("page", sorted((ROOT / "docs").rglob("*.md")), ids=lambda page: page.name)
def test_code_fits_its_column(page):
    """The column has room for 100 characters in the size of custom.css."""
    fence, wide = "", []
    for k, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("```"):
            fence = "" if fence else line
        elif fence.startswith(("```{code-cell}", "```python", "```toml")) and len(line) > 100:
            wide.append(k)
    assert not wide
