"""Hostile files: each is refused by its own words, or harmless; nothing outside the model's folder is opened."""

from __future__ import annotations

import sys
import tracemalloc

import pytest

import dalembert as da
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
