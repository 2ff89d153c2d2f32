"""The decorator of compiled loops: what its cache promises where files are damaged, planted, stale or not writable."""

from __future__ import annotations

import errno
import importlib.util
import os
import platform
import sys
from collections import Counter

import pytest

from dalembert.kernel import cache, loop_cache, loops

CALLED = """
from dalembert.kernel.loops import loop
FACTOR = 3.0
@loop()
def times(x):
    return FACTOR * x
"""
CALLER = """
from dalembert.kernel.loops import loop
from made_up_called import times
OFFSET = 1.0
@loop(nogil=True, error_model="numpy")
def line(x):
    return times(x) + OFFSET
"""


@pytest.fixture
def start(tmp_path, monkeypatch):
    """Return what a new start of Python would import: the two modules, anew."""
    monkeypatch.setattr(loop_cache, "PACKAGE", "made_up")
    monkeypatch.delenv(loop_cache.VARIABLE, raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    (tmp_path / "made_up_called.py").write_text(CALLED)
    (tmp_path / "made_up_caller.py").write_text(CALLER)

    def run():
        loop_cache._content.cache_clear()
        for name in ("made_up_called", "made_up_caller"):
            spec = importlib.util.spec_from_file_location(name, tmp_path / f"{name}.py")
            assert spec is not None
            assert spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            monkeypatch.setitem(sys.modules, name, module)
            code = compile((tmp_path / f"{name}.py").read_text(), str(tmp_path / f"{name}.py"), "exec")
            exec(code, vars(module))
        return sys.modules["made_up_caller"].line

    return run


def hits(line) -> int:
    return sum(line.stats.cache_hits.values())


def files(tmp_path, ending=""):
    return sorted((tmp_path / "__pycache__").glob(f"made_up_caller.line*{ending}"))


def test_the_second_start_takes_the_code(start, tmp_path):
    first = start()
    assert (first(2.0), hits(first)) == (7.0, 0)
    second = start()
    assert (second(2.0), hits(second)) == (7.0, 1)
    assert second(2) == 7.0
    third = start()
    assert (third(2), third(2.0), hits(third)) == (7.0, 7.0, 2)
    assert len(files(tmp_path, ".nbc")) == 2
    assert third.nopython_signatures


DAMAGE = {
    "cut": lambda data: data[: len(data) // 2],
    "empty": lambda data: b"",
    "a bit": lambda data: data[:-9] + bytes([data[-9] ^ 4]) + data[-8:],
    "something else": lambda data: b"\x80\x04K\x01." * 20,
    "an older one": lambda data: b"dalembert loops 0" + data[17:],
}


@pytest.mark.parametrize("ending", [".nbi", ".nbc"])
@pytest.mark.parametrize("damage", sorted(DAMAGE))
def test_damaged_files_are_made_again(start, tmp_path, damage, ending):
    start()(2.0)
    (path,) = files(tmp_path, ending)
    path.write_bytes(DAMAGE[damage](path.read_bytes()))
    line = start()
    assert (line(2.0), hits(line)) == (7.0, 0)
    again = start()
    assert (again(2.0), hits(again)) == (7.0, 1)


PLANTED = {
    "a link": lambda path, other: (other.write_bytes(path.read_bytes()), path.unlink(), path.symlink_to(other)),
    "writable by the group": lambda path, other: path.chmod(0o664),
    "a second name": lambda path, other: os.link(path, other),
}


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="file modes are POSIX")
@pytest.mark.parametrize("ending", [".nbi", ".nbc"])
@pytest.mark.parametrize("how", sorted(PLANTED))
def test_files_that_others_can_have_made_are_not_opened(start, tmp_path, how, ending):
    start()(2.0)
    for path in files(tmp_path):
        assert path.stat().st_mode & 0o077 == 0
    (path,) = files(tmp_path, ending)
    PLANTED[how](path, tmp_path / "other")
    line = start()
    assert (line(2.0), hits(line)) == (7.0, 0)


@pytest.mark.parametrize(
    ("name", "old", "new", "answer"),
    [
        ("made_up_called", "FACTOR * x", "FACTOR * x * x", 13.0),
        ("made_up_called", "FACTOR = 3.0", "FACTOR = 4.0", 9.0),
        ("made_up_caller", "OFFSET = 1.0", "OFFSET = 2.0", 8.0),
    ],
)
def test_what_a_loop_is_made_of_is_noticed_in_every_file(start, tmp_path, name, old, new, answer):
    """Numba itself looks at the file of the function alone, and runs the old code of what it calls."""
    assert start()(2.0) == 7.0
    path = tmp_path / f"{name}.py"
    path.write_text(path.read_text().replace(old, new))
    line = start()
    assert (line(2.0), hits(line)) == (answer, 0)


def test_comments_and_places_in_a_file_are_not_part_of_a_loop(start, tmp_path):
    assert start()(2.0) == 7.0
    for name in ("made_up_called", "made_up_caller"):
        path = tmp_path / f"{name}.py"
        path.write_text("# A comment.\n\n" + path.read_text() + "# Another.\n")
    line = start()
    assert (line(2.0), hits(line)) == (7.0, 1)


def test_options_of_a_called_loop_are_part_of_the_caller(start, tmp_path):
    assert start()(2.0) == 7.0
    path = tmp_path / "made_up_called.py"
    path.write_text(path.read_text().replace("@loop()", '@loop(fastmath={"contract"})'))
    line = start()
    assert (line(2.0), hits(line)) == (7.0, 0)


def test_a_full_disk_is_warned_of_once(start, monkeypatch):
    cache.warn_once.cache_clear()

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(loop_cache, "write_private", full)
    with pytest.warns(RuntimeWarning, match=r"cache of compiled loops .* cannot be written.*No space left") as caught:
        answers = [start()(2.0), start()(2)]
    assert answers == [7.0, 7.0]
    assert len(caught) == 1


def test_no_folder_at_all(start, monkeypatch):
    cache.warn_once.cache_clear()

    def nowhere(self, function):
        raise RuntimeError("no locator available")

    monkeypatch.setattr(loop_cache.FunctionCache, "__init__", nowhere)
    with pytest.warns(RuntimeWarning, match="no locator available; they are compiled at every start"):
        assert start()(2.0) == 7.0


def test_two_processes_may_give_two_codes_one_name(start, tmp_path):
    """Code is taken for the types it was compiled for, whatever the index says."""
    line = start()
    line(2.0)
    line(2)
    assert len(files(tmp_path, ".nbc")) == 2
    cached = line._cache
    index = cached._index(cached._folder, loop_cache.read_private)
    cached._write_index(cached._folder, dict(zip(index, reversed(list(index.values())), strict=True)))
    again = start()
    assert (again(2.0), again(2), hits(again)) == (7.0, 7.0, 0)


def test_arguments_whose_type_has_another_name_are_compiled_anew(start, tmp_path):
    """The names of named tuples are in the index, and not in the code: an index of another version cannot be read."""
    (tmp_path / "made_up_called.py").write_text(
        CALLED + "from typing import NamedTuple\nclass Pair(NamedTuple):\n    a: float\n    b: float\n"
    )
    (tmp_path / "made_up_caller.py").write_text(CALLER.replace("times(x) + OFFSET", "times(x.a) + OFFSET"))
    assert start()(sys.modules["made_up_called"].Pair(1.0, 2.0)) == 4.0
    source = (tmp_path / "made_up_called.py").read_text()
    (tmp_path / "made_up_called.py").write_text(source.replace("Pair", "Couple"))
    line = start()
    assert line(sys.modules["made_up_called"].Couple(1.0, 2.0)) == 4.0
    assert not hits(line)


def test_every_cached_loop_is_made_by_the_one_decorator():
    """No other file asks Numba for its own cache."""
    root = os.path.dirname(os.path.dirname(loops.__file__))
    found = []
    for folder, _, names in os.walk(root):
        for name in names:
            if name.endswith(".py") and (folder, name) != (os.path.dirname(loops.__file__), "loops.py"):
                with open(os.path.join(folder, name)) as file:
                    if "cache=True" in (text := file.read()) or '"cache": True' in text:
                        found.append(name)
    assert found == []


@pytest.fixture
def shipped(start, tmp_path, monkeypatch):
    """Return a folder with code of `line` as a wheel carries it, for a level of processors; nothing is stored."""
    folder = tmp_path / "_loops"
    monkeypatch.setattr(loop_cache, "building", [str(folder)])
    assert start()(2.0) == 7.0
    for path in (tmp_path / "__pycache__").glob("made_up*.nb?"):
        path.unlink()
    monkeypatch.setattr(loop_cache, "building", [])
    monkeypatch.setattr(loop_cache, "_shipped", lambda: str(folder))
    monkeypatch.setattr(loop_cache, "counts", Counter())
    return folder


def test_code_that_came_with_the_library_is_taken_first(start, shipped, tmp_path):
    assert (start()(2.0), loop_cache.counts) == (7.0, {"shipped": 1})
    assert files(tmp_path) == []


def test_shipped_code_is_read_where_nothing_can_be_written(start, shipped, monkeypatch):
    def nowhere(self, function):
        raise RuntimeError("no locator available")

    monkeypatch.setattr(loop_cache.FunctionCache, "__init__", nowhere)
    for path in shipped.rglob("*"):
        path.chmod(0o555 if path.is_dir() else 0o444)
    assert (start()(2.0), loop_cache.counts) == (7.0, {"shipped": 1})


@pytest.mark.parametrize("how", ["other types", "native", "off", "damaged", "edited"])
def test_what_shipped_code_does_not_serve_is_compiled(start, shipped, tmp_path, monkeypatch, how):
    value, answer = 2.0, 7.0
    if how == "other types":
        value = 2
    elif how in ("native", "off"):
        monkeypatch.setenv("DALEMBERT_LOOPS", how)
    elif how == "damaged":
        for path in shipped.rglob("*.nbc"):
            path.write_bytes(path.read_bytes()[:-1])
    else:
        (tmp_path / "made_up_called.py").write_text(CALLED.replace("3.0", "4.0"))
        answer = 9.0
    assert start()(value) == answer
    assert loop_cache.counts["shipped"] == 0
    assert loop_cache.counts["compiled"] == 2
    assert bool(files(tmp_path, ".nbc")) is (how != "off")


def test_stored_code_can_lie_in_a_folder_of_its_own(start, tmp_path, monkeypatch):
    monkeypatch.setenv("DALEMBERT_LOOPS", str(tmp_path / "travels"))
    assert start()(2.0) == 7.0
    assert files(tmp_path) == []
    monkeypatch.setattr(loop_cache, "counts", Counter())
    assert (start()(2.0), loop_cache.counts) == (7.0, {"stored": 1})
    assert list((tmp_path / "travels").rglob("*.nbc"))


def test_a_processor_below_the_level_takes_no_shipped_code(tmp_path, monkeypatch):
    folder = tmp_path / "_loops" / f"{loop_cache.PYTHON}-{platform.machine().lower()}"
    folder.mkdir(parents=True)
    monkeypatch.setattr(loop_cache, "__file__", str(tmp_path / "kernel" / "loop_cache.py"))
    level, _ = loop_cache.LEVELS[platform.machine().lower()]
    monkeypatch.setitem(loop_cache.LEVELS, platform.machine().lower(), (level, ()))
    loop_cache._shipped.cache_clear()
    assert loop_cache._shipped() == str(folder)
    monkeypatch.setitem(loop_cache.LEVELS, platform.machine().lower(), (level, ("no such feature",)))
    loop_cache._shipped.cache_clear()
    assert loop_cache._shipped() is None
    loop_cache._shipped.cache_clear()


def test_the_bar_says_what_is_compiled(start, monkeypatch, capsys):
    """After a moment of patience, on a terminal alone; the number of functions is known before they are compiled."""
    monkeypatch.setattr(loops, "PACKAGE", "made_up")
    monkeypatch.setattr(loops, "PATIENCE", 0.0)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    line = start()
    assert loop_cache.functions_of(line.py_func) == 2
    assert line(2.0) == 7.0
    assert "once on this machine" in capsys.readouterr().err
