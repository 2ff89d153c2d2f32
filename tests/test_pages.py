"""The pages with code: every cell runs, in order, without a warning, and what it ends with can be shown."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parents[1] / "docs"
CELL = re.compile(r"^```\{code-cell\} ipython3\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OPTION = re.compile(r"\A(?::[^\n]*\n)+")
PAGES = sorted(str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md") if CELL.search(path.read_text()))


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Return an IPython of its own, in an empty folder: as in the build, but without starting a process for a page."""
    interactive = pytest.importorskip("IPython.core.interactiveshell").InteractiveShell
    from traitlets.config import Config

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", os.environ["PATH"])  # pages change both for the commands that they run
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    interactive.clear_instance()
    yield interactive.instance(config=Config({"HistoryManager": {"enabled": False}}))
    interactive.clear_instance()


def cells(page: str) -> list[str]:
    """Return the code of a page, without the options of its cells."""
    return [OPTION.sub("", cell) for cell in CELL.findall((DOCS / page).read_text())]


@pytest.mark.parametrize("page", PAGES)
def test_every_cell_of_a_page_runs(page: str, shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    for code in cells(page):
        shell.run_cell(code).raise_error()
        assert not capsys.readouterr().err, code


def test_a_cell_that_fails_or_warns_is_seen(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ZeroDivisionError):
        shell.run_cell("1 / 0").raise_error()
    with pytest.raises(UserWarning):
        shell.run_cell("import warnings; warnings.warn('careful')").raise_error()
    capsys.readouterr()
    shell.run_cell("import sys; print('oh', file=sys.stderr)").raise_error()
    assert capsys.readouterr().err
