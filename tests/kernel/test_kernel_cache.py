"""The cache: hits, misses, damage, privacy, processes that race."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import warnings

import casadi as ca
import numpy as np
import pytest

from dalembert.kernel import Kernel, cache, cache_info, clear_cache
from dalembert.kernel.llvm import engine as cpu_engine


@pytest.fixture
def folder(tmp_path, monkeypatch):
    path = tmp_path / "cache"
    monkeypatch.setenv("DALEMBERT_CACHE", str(path))
    return path


def make(factor=3.0, **options):
    x = ca.SX.sym("x", 2)
    return Kernel(ca.Function("f", [x], [ca.sin(x) * factor]), **options)


def entry(folder):
    """Return the entry of the kernel; the smaller one is the code of single calls."""
    return max(folder.glob("*.kernel"), key=lambda path: path.stat().st_size)


def test_second_kernel_comes_from_the_cache_without_tracing(folder, monkeypatch):
    first = make()
    assert not first.report().from_cache

    def trap(*_):
        raise AssertionError("traced although cached")

    monkeypatch.setattr(cpu_engine, "_compile", trap)
    second = make()
    assert second.report().from_cache
    assert second.report().operations == first.report().operations
    np.testing.assert_array_equal(second(np.ones((9, 2))), first(np.ones((9, 2))))


def test_what_changes_the_code_changes_the_key(folder):
    make()
    for options in ({"factor": 4.0}, {"dtype": "float32"}, {"width": 2}):
        assert not make(**options).report().from_cache
    assert make(threads=2).report().from_cache


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[: len(data) // 2],
        lambda data: data[:-1],
        lambda data: b"",
        lambda data: data[:200] + bytes([data[200] ^ 1]) + data[201:],
        lambda data: data[:-50] + bytes([data[-50] ^ 128]) + data[-49:],
        lambda data: b"something else" + data,
    ],
)
def test_damaged_entries_are_rebuilt(folder, damage):
    expected = make()(np.ones((9, 2)))
    path = entry(folder)
    whole = path.read_bytes()
    path.write_bytes(damage(whole))
    again = make()
    assert not again.report().from_cache
    np.testing.assert_array_equal(again(np.ones((9, 2))), expected)
    assert make().report().from_cache


def test_an_entry_under_another_name_is_not_used(folder):
    make()
    path = entry(folder)
    name = path.name.removesuffix(".kernel")
    assert cache.read(name) is not None
    other = "0" * len(name)
    path.rename(path.with_name(other + ".kernel"))
    assert cache.read(other) is None


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="file modes are POSIX")
def test_the_folder_is_private(folder):
    make()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(entry(folder).stat().st_mode) & 0o077 == 0
    folder.chmod(0o777)
    with pytest.warns(RuntimeWarning, match="others can write"):
        assert cache.read("0") is None


PLANTED = {
    "a link": lambda path, other: (path.unlink(), path.symlink_to(other)),
    "a second name": lambda path, other: os.link(path, other.with_suffix(".link")),
    "writable by the group": lambda path, other: path.chmod(0o660),
    "writable by all": lambda path, other: path.chmod(0o606),
    "a pipe": lambda path, other: (path.unlink(), os.mkfifo(path)),
}


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="file modes are POSIX")
@pytest.mark.parametrize("how", sorted(PLANTED))
def test_a_file_that_others_can_have_made_is_not_run(folder, tmp_path, how):
    """The folder was open to all for a while and is private again: what was put there then is not trusted."""
    expected = make()(np.ones((9, 2)))
    path, other = entry(folder), tmp_path / "other"
    other.write_bytes(path.read_bytes())
    other.chmod(0o600)
    PLANTED[how](path, other)
    folder.chmod(0o700)
    again = make()
    assert not again.report().from_cache
    np.testing.assert_array_equal(again(np.ones((9, 2))), expected)


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="file modes are POSIX")
def test_a_file_of_another_user_is_not_run(folder, monkeypatch):
    make()
    path = entry(folder)
    name = path.name.removesuffix(".kernel")
    assert cache.read(name) is not None
    mine, real = os.getuid(), os.fstat

    def planted(handle):
        state = list(real(handle))
        state[4] = mine + 1
        return os.stat_result(state)

    monkeypatch.setattr(cache.os, "fstat", planted)
    assert cache.read(name) is None


def test_info_and_clear(folder):
    assert (cache_info().entries, cache_info().bytes) == (0, 0)
    make()
    info = cache_info()
    assert info.folder == folder
    assert info.entries >= 1
    assert info.bytes == sum(path.stat().st_size for path in folder.iterdir())
    assert clear_cache() == info.entries
    assert cache_info().entries == 0


@pytest.mark.parametrize("word", ["off", "OFF", "0", "no", "False", " off "])
def test_off(folder, monkeypatch, word):
    monkeypatch.setenv("DALEMBERT_CACHE", word)
    assert cache_info() == cache.CacheInfo(None, 0, 0)
    assert not make().report().from_cache
    assert not make().report().from_cache
    assert clear_cache() == 0


def test_an_entry_that_cannot_be_removed_does_not_stop_the_others(folder, monkeypatch):
    make()
    make(factor=4.0)
    paths = sorted(folder.glob("*.kernel"))
    stuck, remove = paths[0], type(paths[0]).unlink

    def unlink(path, *arguments, **options):
        if path == stuck:
            raise PermissionError("not yours")
        return remove(path, *arguments, **options)

    monkeypatch.setattr(type(stuck), "unlink", unlink)
    with pytest.warns(RuntimeWarning, match="cannot be removed: not yours"):
        assert clear_cache() == len(paths) - 1
    assert list(folder.glob("*.kernel")) == [stuck]


def test_what_dead_processes_left_is_removed(folder):
    make()
    old, new = folder / "x.part", folder / "y.part"
    for path in (old, new):
        path.write_bytes(b"half")
    os.utime(old, (1e9, 1e9))
    cache._tidy.cache_clear()
    make(factor=5.0)
    assert not old.exists()
    assert new.exists()
    os.utime(new, (1e9, 1e9))
    clear_cache()
    assert not new.exists()


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="file modes are POSIX")
def test_a_warning_is_given_once(folder, recwarn):
    make()
    folder.chmod(0o777)
    warnings.simplefilter("always")
    for factor in (6.0, 7.0):
        make(factor=factor)
    assert len([w for w in recwarn if "others can write" in str(w.message)]) == 1


def test_default_folder_is_the_users(monkeypatch):
    monkeypatch.delenv("DALEMBERT_CACHE")
    folder = cache.cache_folder()
    assert folder is not None
    assert folder.parts[-2:] == ("dalembert", "kernels")


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_warns(tmp_path, monkeypatch):
    tmp_path.chmod(0o500)
    monkeypatch.setenv("DALEMBERT_CACHE", str(tmp_path / "cache"))
    with pytest.warns(RuntimeWarning, match="cannot be written"):
        make()


def test_a_path_that_is_a_file_warns(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_text("")
    monkeypatch.setenv("DALEMBERT_CACHE", str(path))
    path.chmod(0o600)
    with pytest.warns(RuntimeWarning, match="cannot be written"):
        assert make()(np.ones(2)).shape == (2,)


RACE = """
import casadi as ca, numpy as np
from dalembert.kernel import Kernel
x = ca.SX.sym("x", 4)
y = x
for k in range(40):
    y = ca.sin(y) * ca.cos(x) + y / (2 + y * y)
print(Kernel(ca.Function("f", [x], [y]))(np.ones((9, 4))).sum().hex())
"""


def test_processes_that_race(folder):
    runs = [subprocess.Popen([sys.executable, "-c", RACE], stdout=subprocess.PIPE, text=True) for _ in range(4)]
    answers = {run.communicate()[0] for run in runs}
    assert all(run.returncode == 0 for run in runs)
    assert len(answers) == 1
    assert not list(folder.glob("*.part"))
