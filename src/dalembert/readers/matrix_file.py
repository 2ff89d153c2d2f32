"""Reader of matrices from a file that a person wrote (TOML, JSON) or a program saved (NPZ).

    coordinates = ["theta1", "theta2"]        # optional
    mass = [[1.0, 0.0], [0.0, 0.0]]
    force = [1.0, 0.0]                        # optional

    [[constraint]]
    name = "slider"                           # optional
    row = [2.0, -1.0]
    drift = 0.0                               # optional

or with the letters of the field,

    M = [[1.0, 0.0], [0.0, 0.0]]
    A = [[2.0, -1.0]]
    names = ["slider"]                        # optional, as are drift, coordinates and force

An NPZ file holds M and A, and optionally force, drift, names and coordinates. Nothing in a file is evaluated as code.
"""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from dalembert.checks import floats
from dalembert.errors import ModelError, ShapeError, UnsupportedError
from dalembert.kkt import KKT
from dalembert.readers.files import read_text
from dalembert.types import Array

LARGEST = 64 * 2**20
"""Files above 64 MiB are refused before they are read."""


LARGEST_ARRAYS = 2**30
"""Bytes of the arrays in an NPZ file, which may be packed a thousand times smaller."""


class MatrixRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One constraint row of a file."""

    row: list[float]
    name: str | None = None
    drift: float = 0.0


class MatrixFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The layout of a TOML or JSON file."""

    mass: list[list[float]] | None = None
    coordinates: list[str] | None = None
    force: list[float] | None = None
    constraint: list[MatrixRow] = []
    M: list[list[float]] | None = None
    A: list[list[float]] | None = None
    names: list[str] | None = None
    drift: list[float] | None = None

    def matrix(self) -> list[list[float]]:
        """Return the mass matrix under either of its names."""
        if (self.mass is None) == (self.M is None):
            raise ModelError("the mass matrix is given once, as mass = [[...]] or as M = [[...]]")
        return self.mass if self.mass is not None else self.M or []

    def rows(self) -> list[MatrixRow]:
        """Return the constraint rows, of [[constraint]] tables or of A with names and drift."""
        if self.A is None:
            if self.names is not None or self.drift is not None:
                raise ModelError("names and drift go with A; a [[constraint]] has its own name and drift")
            return self.constraint
        if self.constraint:
            raise ModelError("constraint rows are given once, as A = [[...]] or as [[constraint]] tables")
        for what, values in (("names", self.names), ("drift", self.drift)):
            if values is not None and len(values) != len(self.A):
                raise ShapeError(f"{what} has {len(values)} entries for {len(self.A)} rows of A")
        names = self.names or [None] * len(self.A)
        return [MatrixRow(row, name, drift) for row, name, drift in
                zip(self.A, names, self.drift or [0.0] * len(self.A), strict=True)]  # fmt: skip


@dataclass(frozen=True)
class MatrixProblem:
    """A block matrix with its right sides; `force` is None where the file gives none."""

    system: KKT
    force: Array | None
    drift: Array

    def __post_init__(self) -> None:
        if self.drift.shape != (self.system.m,):
            raise ShapeError(f"drift has shape {self.drift.shape} for {self.system.m} constraint rows")
        for what, values in (("force", self.force), ("drift", self.drift)):
            if values is not None and not np.isfinite(values).all():
                raise ModelError(f"{what} holds NaN or infinity")


def read_matrices(path: str | Path) -> MatrixProblem:
    """Read a `.toml`, `.json` or `.npz` file; every refusal names the file and what is wrong in it."""
    path = Path(path)
    readers = {".toml": _read_text, ".json": _read_text, ".npz": _read_arrays}
    if path.suffix.lower() not in readers:
        endings = ", ".join(readers)
        raise UnsupportedError(f"{path}: files of type {path.suffix or '(none)'!r} are not read here; use {endings}")
    try:
        size = path.stat().st_size
    except (OSError, ValueError) as error:
        raise ModelError(f"{path}: cannot be read ({getattr(error, 'strerror', error)})") from error
    if not path.is_file():
        raise ModelError(f"{path}: not a file")
    if size > LARGEST:
        raise ModelError(f"{path}: {size / 2**20:.0f} MiB is above the limit of {LARGEST // 2**20} MiB")
    try:
        return readers[path.suffix.lower()](path)
    except (ModelError, ShapeError) as error:
        if str(error).startswith(str(path)):
            raise
        raise type(error)(f"{path}: {error}") from error


def _read_text(path: Path) -> MatrixProblem:
    """Read TOML or JSON."""
    content = read_text(path, MatrixFile, LARGEST)
    mass, rows = content.matrix(), content.rows()
    n = len(mass)
    if not n:
        raise ShapeError("mass is empty: a system without coordinates has no motion to solve for")
    for i, line in enumerate(mass):
        if len(line) != n:
            raise ShapeError(f"mass must be square: line {i} has {len(line)} entries, there are {n} lines")
    names = [row.name or f"row {i}" for i, row in enumerate(rows)]
    for name, constraint in zip(names, rows, strict=True):
        if len(constraint.row) != n:
            raise ShapeError(f"constraint {name!r} has {len(constraint.row)} entries for {n} coordinates")
    A = np.array([row.row for row in rows]).reshape(len(rows), n)
    system = KKT(np.array(mass, dtype=float), A, names, content.coordinates)
    return MatrixProblem(system, _force(content.force, n), np.array([row.drift for row in rows]))


def _read_arrays(path: Path) -> MatrixProblem:
    """Read NPZ, without pickles."""
    try:
        with zipfile.ZipFile(path) as whole:
            size = sum(entry.file_size for entry in whole.infolist())
        if size > LARGEST_ARRAYS:
            raise ModelError(f"{size / 2**20:.0f} MiB of arrays are above the limit of {LARGEST_ARRAYS // 2**20} MiB")
        with np.load(path, allow_pickle=False) as archive:
            arrays = {key: archive[key] for key in archive.files}
    except ModelError:
        raise
    except Exception as error:  # zip, NumPy's headers and the tokenizer that reads them have many words for damage
        raise ModelError(f"not a readable NPZ file ({type(error).__name__}: {error})") from error
    unknown = sorted(set(arrays) - {"M", "A", "force", "drift", "names", "coordinates"})
    if unknown or "M" not in arrays:
        raise ModelError(
            f"expected M, A, force, drift, names, coordinates; found {', '.join(sorted(arrays)) or 'nothing'}"
        )
    for key in ("names", "coordinates"):
        if key in arrays and (arrays[key].dtype.kind != "U" or arrays[key].ndim != 1):
            raise ModelError(
                f"{key} is a list of words, not an array of {arrays[key].dtype} with {arrays[key].ndim} axes"
            )
    for key in ("force", "drift"):
        if key in arrays and arrays[key].dtype.kind not in "fiub":
            raise ModelError(f"{key} has dtype {arrays[key].dtype}; real numbers are needed")
    names, coordinates = (None if key not in arrays else arrays[key].tolist() for key in ("names", "coordinates"))
    system = KKT(arrays["M"], arrays.get("A"), names, coordinates)
    if system.batch_shape:
        raise ShapeError(f"M and A must be one system; they are a batch of shape {system.batch_shape}")
    return MatrixProblem(system, _force(arrays.get("force"), system.n), arrays.get("drift", np.zeros(system.m)))


def _force(values: Array | list[float] | None, n: int) -> Array | None:
    """Return the force as an array, checked for its size."""
    if values is None:
        return None
    try:
        force = floats(values, "force")
    except ValueError as error:
        raise ModelError(f"force is not a list of numbers ({error})") from error
    if force.shape != (n,):
        raise ShapeError(f"force has shape {force.shape} for {n} coordinates")
    return force
