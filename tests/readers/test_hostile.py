"""Hostile files: each is refused by its own words, or harmless; nothing outside the model's folder is opened."""

from __future__ import annotations

import contextlib
import os
import sys
import tracemalloc

import numpy as np
import pytest

import dalembert as da
from dalembert.readers import read_matrices
from dalembert.readers.equation_file import read_equations, read_pattern
from tests.readers.hostile import CORPUS, Hostile

OPENED: list[str] = []
WATCHING = [False]


def _watch(event: str, arguments: tuple) -> None:
    if WATCHING[0] and event == "open" and isinstance(arguments[0], str):
        OPENED.append(arguments[0])


sys.addaudithook(_watch)


def written(case: Hostile, folder):
    folder.mkdir()
    path = folder / case.file
    if callable(case.content):
        case.content(path)
    else:
        path.write_bytes(case.content.encode() if isinstance(case.content, str) else case.content)
    return path


def test_the_corpus_is_large():
    assert len(CORPUS) >= 70


@pytest.mark.parametrize("name", sorted(CORPUS))
def test_refused_or_harmless(tmp_path, name):
    case = CORPUS[name]
    path = written(case, tmp_path / "model")
    if case.words is None:
        robot = da.load(path)
        assert "secret" not in str(robot)
        return
    with pytest.raises(da.DalembertError, match=case.words) as caught:
        da.load(path)
    message = str(caught.value)
    assert str(path.parent) in message
    assert len(message) < 3000
    assert "secret" not in message


@pytest.mark.parametrize("name", sorted(name for name, case in CORPUS.items() if "mesh" in name or "include" in name))
def test_nothing_outside_the_folder_is_opened(tmp_path, name):
    path = written(CORPUS[name], tmp_path / "model")
    da.load(written(Hostile("w.urdf", '<robot name="r"><link name="a"/></robot>', None), tmp_path / "warm"))
    OPENED.clear()
    WATCHING[0] = True
    try:
        da.load(path)
    except da.DalembertError:
        pass
    finally:
        WATCHING[0] = False
    model = str((tmp_path / "model").resolve())
    assert [name for name in OPENED if not name.endswith((".py", ".pyc", ".so")) and not name.startswith(model)] == []


def test_memory_stays_in_proportion(tmp_path):
    """A file of 1 MB needs tens of MB, not gigabytes."""
    path = tmp_path / "r.urdf"
    path.write_text('<robot name="r"><link name="l"/>' + "<gazebo><a/></gazebo>" * 5_000 + "</robot>")
    tracemalloc.start()
    da.load(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100 * path.stat().st_size


def test_packages_and_folders(tmp_path):
    """Only declared packages are looked into, and only where their folder is."""
    mesh = '<link name="a"><visual><geometry><mesh filename="{}"/></geometry></visual></link>'
    path = tmp_path / "model" / "r.urdf"
    path.parent.mkdir()
    for folder in ("pkg", "other"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "m.stl").write_text("")
    (path.parent / "m.stl").write_text("")

    def missing(reference: str, packages=None) -> bool:
        path.write_text(f'<robot name="r">{mesh.format(reference)}</robot>')
        return any("meshes were not found" in note for note in da.load(path, packages=packages).notes)

    assert not missing("m.stl")
    assert not missing("file://" + str(path.parent / "m.stl"))
    assert not missing("./x/../m.stl")
    assert missing("../pkg/m.stl")
    assert missing("package://pkg/m.stl")
    assert not missing("package://pkg/m.stl", {"pkg": tmp_path / "pkg"})
    assert not missing("package://pkg/m.stl", [tmp_path])
    assert not missing("package://pkg/m.stl", str(tmp_path))
    assert missing("package://pkg/../other/m.stl", {"pkg": tmp_path / "pkg"})
    assert missing("package://../other/m.stl", {"pkg": tmp_path / "pkg"})
    with pytest.raises(da.ModelError, match="is not a folder"):
        missing("m.stl", {"pkg": tmp_path / "nowhere"})


@pytest.mark.parametrize(("options", "words"), [({"base": "flying"}, "flying"), ({"passive": "maybe"}, "maybe")])
def test_wrong_options(tmp_path, options, words):
    (tmp_path / "r.urdf").write_text('<robot name="r"><link name="a"/></robot>')
    with pytest.raises(da.ModelError, match=words):
        da.load(tmp_path / "r.urdf", **options)


DIGITS = "9" * 5000
MATRICES = {
    "many digits": ("m.toml", f"force = [1]\nmass = [[{DIGITS}]]", r"m\.toml:2: a number of 5000 digits"),
    "many digits below zero": ("m.toml", f"mass = [[-{DIGITS}]]", r"m\.toml:1: a number of 5000 digits"),
    "many digits in JSON": ("m.json", f'{{"mass": [[{DIGITS}]]}}', r"m\.json:1: a number of 5000 digits"),
    "many digits with lines": ("m.toml", f"mass = [[{'9_' * 5000}9]]", r"m\.toml: "),
    "a key of many parts": ("m.toml", "mass = [[1]]\n" + "a." * 20_000 + "b = 1", r"m\.toml:2: a key of more than"),
    "a table of many parts": ("m.toml", f"['a'{'.a' * 9_000}]\nb = 1", r"m\.toml:1: a key of more than"),
    "deep arrays": ("m.toml", f"mass = {'[' * 9000}{']' * 9000}", r"m\.toml: nested too deeply"),
    "not finite": ("m.toml", "mass = [[nan]]", r"m\.toml: M\[0, 0\] is nan"),
}


@pytest.mark.parametrize("what", sorted(MATRICES))
def test_hostile_matrices(tmp_path, what):
    name, text, words = MATRICES[what]
    (tmp_path / name).write_text(text)
    with pytest.raises(da.DalembertError, match=words):
        read_matrices(tmp_path / name)


EQUATION = 'unknowns = ["x"]\n[[equation]]\ntext = "{}"\n'
EQUATIONS = {
    "many digits": ("parameters = {g = " + DIGITS + "}\n" + EQUATION.format("x = g"), r"e\.toml:1: a number of 5000"),
    "many digits in an equation": (EQUATION.format("x = " + DIGITS), r"e\.toml:3: a number of 5000 digits"),
    "a large number": (EQUATION.format("x = 1e999"), r"e\.toml: .*beyond any machine"),
    "not finite": ("parameters = {g = nan}\n" + EQUATION.format("x = g"), r"e\.toml: the parameter 'g' is nan"),
    "infinite": ("parameters = {g = -inf}\n" + EQUATION.format("x = g"), r"e\.toml: the parameter 'g' is -inf"),
}


@pytest.mark.parametrize("what", sorted(EQUATIONS))
def test_hostile_equations(tmp_path, what):
    text, words = EQUATIONS[what]
    (tmp_path / "e.toml").write_text(text)
    with pytest.raises(da.DalembertError, match=words):
        read_equations(tmp_path / "e.toml")


def test_points_in_texts_and_numbers_are_no_keys(tmp_path):
    terms = " + ".join(["1.5*x"] * 100)
    (tmp_path / "e.toml").write_text(EQUATION.format(terms) + "# 1.2.3" + ".4" * 100 + "\nname = 'a.b.c'")
    assert len(read_equations(tmp_path / "e.toml").equations) == 1
    row = ", ".join(["1.5"] * 100)
    (tmp_path / "m.toml").write_text(f"mass = [[2.0]]\nforce = [\n1.25\n]\n# {row}")
    assert read_matrices(tmp_path / "m.toml").system.n == 1


ARRAYS = {
    "words as drift": {"A": np.ones((1, 2)), "drift": np.array(["z"])},
    "complex drift": {"A": np.ones((1, 2)), "drift": np.array([1j])},
    "complex force": {"force": np.array([1j, 2])},
    "numbers as names": {"coordinates": np.array([1.0, 2.0])},
}


@pytest.mark.parametrize("what", sorted(ARRAYS))
def test_hostile_arrays(tmp_path, what):
    np.savez(tmp_path / "m.npz", M=np.eye(2), **ARRAYS[what])
    with pytest.raises(da.ModelError, match=r"m\.npz: "):
        read_matrices(tmp_path / "m.npz")


def test_damaged_archives(tmp_path):
    np.savez(tmp_path / "m.npz", M=np.eye(2))
    whole, path = (tmp_path / "m.npz").read_bytes(), tmp_path / "d.npz"
    rng = np.random.default_rng(5)
    for _ in range(300):
        data = bytearray(whole)
        for at in rng.integers(0, len(data), rng.integers(1, 5)):
            data[at] = rng.integers(256)
        path.write_bytes(data)
        with contextlib.suppress(da.DalembertError):
            read_matrices(path)


def test_an_array_larger_than_its_file_is_refused(tmp_path):
    (tmp_path / "p.mtx").write_text("%%MatrixMarket matrix array real general\n1000000 1000000\n1\n")
    with pytest.raises(da.ModelError, match=r"p\.mtx: 1000000 x 1000000 numbers"):
        read_pattern(tmp_path / "p.mtx")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes are POSIX")
@pytest.mark.parametrize("name", ["m.toml", "m.npz"])
def test_a_pipe_is_not_waited_for(tmp_path, name):
    os.mkfifo(tmp_path / name)
    for read in (read_matrices, read_equations) if name == "m.toml" else (read_matrices,):
        with pytest.raises(da.ModelError, match="not a file"):
            read(tmp_path / name)


def test_kinds_of_elements_left_out_are_counted(tmp_path):
    kinds = "".join(f"<x{i}/>" for i in range(5000))
    (tmp_path / "r.urdf").write_text(f'<robot name="r"><link name="a"/>{kinds}</robot>')
    notes = da.load(tmp_path / "r.urdf").notes
    assert len(notes) < 300
    assert any("4800 more kinds" in note for note in notes)
