"""Studies in files: Zarr, a block of runs as a shard that its worker writes, and a flag when it is whole.

    study.zarr/  zarr.json                 description of the study
                 status, reason, end, ...  (runs, ...), one shard per block
                 inputs/k, kept/peak       what varied, what is kept
                 done                      (blocks,), one byte per block, written last
                 events/000012.parquet     all events of a block, where they are recorded

No shard has two writers, and a block whose flag is missing is computed again as a whole: whatever was killed, what has
its flag is right. A store is data: nothing in it is evaluated as code, and functions are given again.
"""

from __future__ import annotations

import errno
import json
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from dalembert.ensemble.blocks import EVENT_FIELDS, RunColumns, StudyJob, empty_arrays
from dalembert.errors import DalembertError, MissingExtraError, ModelError
from dalembert.types import Array

SCHEMA = 1
"""Version of the layout."""

CHUNK = 1000
"""Runs of a chunk inside a shard: what is read at once for a few runs."""

EVENTS = "events"


class StudyDiskError(DalembertError, OSError):
    """A block could not be written: the disk is full, or the store is gone."""


def _zarr() -> Any:
    try:
        import zarr
    except ImportError as error:
        raise MissingExtraError("zarr", "ensemble", "a study in files") from error
    return zarr


def block_size(size: int) -> int:
    """Return a block of about that many runs that chunks fill exactly."""
    return max(1, size) if size <= CHUNK else -(-size // CHUNK) * CHUNK


def array_path(name: str) -> str:
    """Return where an array lies in a store; letters that file systems do not take are written as %3A."""
    folder, slash, last = name.rpartition("/")
    return f"{folder}{slash}{quote(last, safe=' ')}"


def create(job: StudyJob, description: dict[str, Any], overwrite: bool = False) -> None:
    """Make the arrays of a store and its description; nothing is in it yet."""
    zarr, path = _zarr(), Path(job.store)
    if path.exists() and not overwrite:
        raise ModelError(
            f"{path} exists: da.ensemble.resume({str(path)!r}) goes on with it, overwrite=True begins again"
        )
    if path.exists():
        StoredColumns(path, "overwrite=True replaces stores of studies alone")  # nothing else is deleted
        shutil.rmtree(path)
    try:
        group = zarr.open_group(path, mode="w", zarr_format=3, attributes={"dalembert_study": json.dumps(description)})
        shard = min(job.block, max(job.runs, 1))
        for name, sample in empty_arrays(job, 1).items():
            inner = (min(shard, CHUNK), *sample.shape[1:])
            axes = ["run", *(f"{name.rpartition('/')[2]}_{k}" for k in range(1, sample.ndim))]
            group.create_array(
                array_path(name), shape=(job.runs, *sample.shape[1:]), dtype=sample.dtype, chunks=inner,
                shards=(shard, *sample.shape[1:]) if shard > CHUNK else None,
                fill_value=np.nan if sample.dtype.kind == "f" else 0, dimension_names=axes,
            )  # fmt: skip
        group.create_array("done", shape=(job.blocks,), dtype="u1", chunks=(1,), fill_value=0, compressors=None,
                           dimension_names=["block"])  # fmt: skip
        if job.record_events:
            group.create_group(EVENTS)
    except OSError as error:
        raise _disk_error(error, path) from error


def write_block(job: StudyJob, columns: RunColumns) -> None:
    """Write the columns of a block, its events, and then its flag."""
    try:
        group = _zarr().open_group(job.store, mode="r+")
        stop = columns.first + len(columns.arrays["status"])
        for name, rows in columns.arrays.items():
            group[array_path(name)][columns.first : stop] = rows
        if job.record_events:
            _write_events(job, columns)
        group["done"][columns.first // job.block] = 1
    except OSError as error:
        raise _disk_error(error, Path(job.store)) from error


def _disk_error(error: OSError, path: Path) -> StudyDiskError:
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    words = f"the disk of {path} is full" if full else f"{path} cannot be written: {error}"
    return StudyDiskError(
        f"{words}; blocks that are in the store are whole: make room, then da.ensemble.resume({str(path)!r})"
    )


def _write_events(job: StudyJob, columns: RunColumns) -> None:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise MissingExtraError("pyarrow", "ensemble", "a record of all events") from error
    kinds = (pa.int64(), pa.float64(), pa.string(), pa.string(), pa.string())
    rows = list(zip(*columns.events, strict=True)) or [()] * len(EVENT_FIELDS)
    table = pa.table(
        {name: pa.array(column, kind) for name, kind, column in zip(EVENT_FIELDS, kinds, rows, strict=True)}
    )
    part = Path(job.store) / EVENTS / f"{columns.first // job.block:06d}.parquet"
    partial = part.with_suffix(".partial")
    pq.write_table(table, partial)
    partial.replace(part)


def remove_partial(path: str | Path) -> None:
    """Remove files that writers which were killed have left half written beside whole ones."""
    for each in Path(path).rglob("*.partial"):
        each.unlink(missing_ok=True)


class StoredColumns:
    """The arrays of a store by name, read when they are asked for."""

    def __init__(self, path: str | Path, rule: str = "") -> None:
        self.path = Path(path)
        try:
            self.group = _zarr().open_group(self.path, mode="r")
            self.description: dict[str, Any] = json.loads(str(self.group.attrs["dalembert_study"]))
        except (OSError, KeyError, ValueError) as error:
            words = f"{self.path} is not the store of a study: {error}"
            raise ModelError(f"{words}; {rule}" if rule else words) from error
        if self.description.get("schema") != SCHEMA:
            raise ModelError(
                f"{self.path} has layout {self.description.get('schema')!r}, this version reads layout {SCHEMA}"
            )

    def __getitem__(self, name: str) -> Array:
        return np.asarray(self.group[array_path(name)][:])

    def row(self, name: str, i: int) -> Array:
        """Return what a run has of an array."""
        return np.asarray(self.group[array_path(name)][i])

    def done(self) -> Array:
        """Return whether each block is whole, (blocks,); a flag that cannot be read is not set."""
        flags = self.group["done"]
        try:
            return np.asarray(flags[:]) == 1
        except Exception:  # a flag that was cut while it was written
            return np.array([self._flag(flags, k) for k in range(flags.shape[0])])

    @staticmethod
    def _flag(flags: Any, k: int) -> bool:
        try:
            return int(np.asarray(flags[k])) == 1
        except Exception:
            return False

    def events(self) -> dict[str, list[Any]]:
        """Return all events of blocks that are whole, by column."""
        import pyarrow.parquet as pq

        found: dict[str, list[Any]] = {name: [] for name in EVENT_FIELDS}
        for block in np.flatnonzero(self.done()):
            part = self.path / EVENTS / f"{block:06d}.parquet"
            for name, column in pq.ParquetFile(part).read().to_pydict().items():
                found[name] += column
        return found
