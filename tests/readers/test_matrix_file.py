"""Matrix files: the three formats say the same, and every refusal names the file and the place."""

from __future__ import annotations

import json

import numpy as np
import pytest

from dalembert.errors import ModelError, ShapeError, UnsupportedError
from dalembert.readers import read_matrices

TOML = """
coordinates = ["theta1", "theta2"]
mass = [[1.0, 0], [0, 0.0]]
force = [1.0, 0.5]

[[constraint]]
name = "slider"
row = [2, -1]
drift = 0.25
"""


def written(folder, name: str, text: str | bytes):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_formats_agree(tmp_path):
    content = {
        "mass": [[1, 0], [0, 0]],
        "coordinates": ["theta1", "theta2"],
        "force": [1, 0.5],
        "constraint": [{"name": "slider", "row": [2, -1], "drift": 0.25}],
    }
    np.savez(
        tmp_path / "s.npz",
        M=np.diag([1.0, 0.0]),
        A=[[2.0, -1.0]],
        force=[1.0, 0.5],
        drift=[0.25],
        names=["slider"],
        coordinates=["theta1", "theta2"],
    )
    paths = [written(tmp_path, "s.toml", TOML), written(tmp_path, "s.json", json.dumps(content)), tmp_path / "s.npz"]
    for problem in map(read_matrices, paths):
        assert problem.system.names == ("slider",)
        assert problem.system.coordinates == ("theta1", "theta2")
        s = problem.system.solve(problem.force, problem.drift)
        np.testing.assert_allclose(s.acceleration, [2.0, 4.25], rtol=1e-14)


@pytest.mark.parametrize(
    ("name", "text", "error", "words"),
    [
        ("s.toml", "mass = [[1, 2]]", ShapeError, "square"),
        ("s.toml", "mass = [[1]]\nspeed = 3", ModelError, "speed"),
        ("s.toml", "mass = [[1]", ModelError, "s.toml"),
        ("s.toml", 'mass = [["heavy"]]', ModelError, "mass"),
        ("s.toml", "mass = [[nan]]", ModelError, "nan"),
        ("s.toml", "mass = [[1]]\n[[constraint]]\nrow = [1, 2]", ShapeError, "row 0"),
        ("s.toml", "mass = [[1]]\nforce = [1, 2]", ShapeError, "force"),
        ("s.toml", "mass = []", ShapeError, "coordinates"),
        ("s.json", "{", ModelError, "s.json"),
        ("s.json", "[" * 100_000, ModelError, "s.json"),
        ("s.npz", b"not a zip", ModelError, "NPZ"),
        ("s.xyz", "", UnsupportedError, "xyz"),
    ],
)
def test_refusals_name_the_file_and_the_place(tmp_path, name, text, error, words):
    path = written(tmp_path, name, text)
    with pytest.raises(error, match=words) as caught:
        read_matrices(path)
    assert name in str(caught.value)


def test_missing_file(tmp_path):
    with pytest.raises(ModelError, match="cannot be read"):
        read_matrices(tmp_path / "none.toml")


def test_pickles_are_never_loaded(tmp_path):
    np.savez(tmp_path / "bad.npz", M=np.array([object()]))
    with pytest.raises(ModelError, match="NPZ"):
        read_matrices(tmp_path / "bad.npz")


def test_files_above_the_limit_are_refused_unread(tmp_path, monkeypatch):
    monkeypatch.setattr("dalembert.readers.matrix_file.LARGEST", 10)
    with pytest.raises(ModelError, match="limit"):
        read_matrices(written(tmp_path, "s.toml", TOML))
