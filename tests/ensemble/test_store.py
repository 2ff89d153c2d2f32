"""Stores of studies: every block has a checksum; what is damaged is refused by name, left out, or computed again."""

from __future__ import annotations

import json
import shutil
import zlib
from pathlib import Path

import numpy as np
import pytest

import dalembert as da
from dalembert.ensemble.store import DamagedStoreError, StoredColumns
from tests.ensemble.small import oscillator

RUNS, BLOCK = 10, 4


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A store of three blocks, and its study."""
    path = tmp_path_factory.mktemp("stores") / "study.zarr"
    study = da.ensemble(
        oscillator(), 0.5, [1.0], da.normal([0.0], 0.5), runs=RUNS, seed=4, parameters={"k": da.uniform(2.0, 6.0)},
        keep={"end": "q", "peak": ("q", "max")}, block=BLOCK, record_events=True, to=path, progress=False,
    )  # fmt: skip
    return path, study.arrays()


@pytest.fixture
def path(written, tmp_path):
    """A copy that a test may spoil."""
    copy = tmp_path / "study.zarr"
    shutil.copytree(written[0], copy)
    return copy


def flip(file, place=None):
    content = bytearray(file.read_bytes())
    content[len(content) // 2 if place is None else place] ^= 4
    file.write_bytes(content)


def files_of(path: Path):
    return {str(each.relative_to(path)): each.read_bytes() for each in path.rglob("*") if each.is_file()}


def all_of(path, make=da.ensemble.open):
    study = make(path)
    return study.arrays(), study.events()


ARRAYS = {
    "kept/end": "end", "kept/peak": "peak", "inputs/k": "k", "inputs/v": "v", "end_time": "end_time", "steps": "steps",
}  # fmt: skip


@pytest.mark.parametrize("array", [*ARRAYS, "status"])
def test_a_bit_that_flips_is_found_told_left_out_and_mended(written, path, array):
    kept = written[1][array]
    flip(path / array / "c" / ("1/0" if kept.ndim == 2 else "1"))
    study = da.ensemble.open(path)
    with pytest.raises(DamagedStoreError, match=rf"'{array}' of the runs 4 to 7 is not what was written.*resume"):
        study.arrays()
    sound = da.ensemble.open(path, damaged="missing")
    assert sound.status_counts == {"completed": 6, "missing": 4}
    there = sound.status == "completed"
    for name, rows in sound.arrays().items():
        np.testing.assert_array_equal(rows[there], written[1][name][there])
        assert np.isnan(rows[~there]).all() if rows.dtype.kind == "f" else not rows[~there].any()
    mended = da.ensemble.resume(path, progress=False, executor=None)
    assert mended.ok
    assert files_of(path) == files_of(written[0])


@pytest.mark.parametrize("file", ["checksums/c/0/0", "events/000002.parquet", "kept/end/zarr.json", "done/c/0"])
def test_what_goes_with_arrays_is_looked_at_too(written, path, file):
    """Checksums, events, shapes, flags: a flag that is not set makes its runs missing, and is no error."""
    place = (path / file).read_bytes().index(b'"shape"') + 1 if file.endswith("json") else None
    flip(path / file, place)
    if file.startswith("done"):
        assert da.ensemble.open(path).status_counts["missing"] == BLOCK
    else:
        with pytest.raises(da.ModelError):
            all_of(path)
    da.ensemble.resume(path, progress=False, executor=None)
    assert files_of(path) == files_of(written[0])


def test_a_description_that_is_not_what_was_written(path):
    file = path / "zarr.json"
    text = file.read_text()
    assert text.count('\\"seed\\": 4') == 1
    file.write_text(text.replace('\\"seed\\": 4', '\\"seed\\": 5'))
    for make in (da.ensemble.open, da.ensemble.resume):
        with pytest.raises(DamagedStoreError, match="the description of the study is not what was written"):
            make(path)


def described(path, change):
    """Change the description of a store, with the checksum that belongs to it."""
    content = json.loads((path / "zarr.json").read_text())
    description = json.loads(content["attributes"]["dalembert_study"])
    change(description)
    text = json.dumps(description)
    content["attributes"] |= {"dalembert_study": text, "dalembert_checksum": zlib.crc32(text.encode())}
    (path / "zarr.json").write_text(json.dumps(content))


def test_a_store_of_an_earlier_version_is_read_with_a_note(written, path):
    described(path, lambda description: description.pop("checksums"))
    content = json.loads((path / "zarr.json").read_text())
    del content["attributes"]["dalembert_checksum"]
    (path / "zarr.json").write_text(json.dumps(content))
    shutil.rmtree(path / "checksums")
    study = da.ensemble.open(path)
    assert "without checksums" in study.note
    assert study.note in str(study)
    for name, rows in study.arrays().items():
        np.testing.assert_array_equal(rows, written[1][name])
    (path / "done" / "c" / "1").unlink()
    assert da.ensemble.resume(path, progress=False, executor=None).ok
    assert not da.ensemble.open(written[0]).note


HOSTILE = {
    "as many runs as nobody has": lambda d: d["design"].update(runs=10**15),
    "blocks without end": lambda d: (d["design"].update(runs=10**15), d.update(block=10**13)),
    "no runs": lambda d: d["design"].update(runs=-3),
    "no block": lambda d: d.update(block=0),
    "a shape below zero": lambda d: d["shapes"].update(end=[-1]),
    "a shape without end": lambda d: d["shapes"].update(end=[10**15]),
    "no shapes": lambda d: d.pop("shapes"),
    "a design of another kind": lambda d: d.update(design=[1]),
    "keep that is none": lambda d: d.update(keep=3),
    "an experiment that is none": lambda d: d.update(experiment=None),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_a_store_says_is_not_believed(path, name):
    described(path, HOSTILE[name])
    (path / "done" / "c" / "1").unlink()
    for make in (da.ensemble.open, da.ensemble.resume):
        with pytest.raises(da.ModelError):
            all_of(path, make)


@pytest.mark.parametrize("shape", [[10**15], [10**15, 1], [-1], [], "x", None])
def test_shapes_of_arrays_are_those_of_the_description(path, shape):
    for name in ("kept/peak", "done", "status"):
        file = path / name / "zarr.json"
        content = json.loads(file.read_text())
        file.write_text(json.dumps(content | {"shape": shape}))
        with pytest.raises(da.ModelError):
            all_of(path)
        file.write_text(json.dumps(content))


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"null", b"{", b"\xff\xfe", b'{"zarr_format": 3, "node_type": "array"}']
)
def test_files_that_are_no_stores(path, content):
    (path / "zarr.json").write_bytes(content)
    with pytest.raises(da.ModelError, match="is not the store of a study"):
        StoredColumns(path)


def test_misuse_is_told(path):
    with pytest.raises(da.ModelError, match='neither "refused" nor "missing"'):
        da.ensemble.open(path, damaged="perhaps")
