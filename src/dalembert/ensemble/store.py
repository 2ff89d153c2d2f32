"""Studies in files: Zarr, a block of runs as a shard that its worker writes, and a flag when it is whole.

    study.zarr/  zarr.json                 description of the study
                 status, reason, end, ...  (runs, ...), one shard per block
                 inputs/k, kept/peak       what varied, what is kept
                 events/000012.parquet     all events of a block, where they are recorded
                 checksums                 (blocks, arrays), CRC-32 of what each block has of each array
                 done                      (blocks,), one byte per block, written last

No shard has two writers, and a block whose flag is missing is computed again as a whole: whatever was killed, what has
its flag is right. What is read is compared with its checksum: a damaged block is refused, or missing where that is
asked for, and `resume` computes it again. A store is data: nothing in it is evaluated as code, functions are given
again, and what a file says of sizes is compared with the description before anything is made of that size.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import tempfile
import zlib
from dataclasses import replace
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

TEXT, TEXT_CHECKSUM = "dalembert_study", "dalembert_checksum"
"""Attributes of a store: its description, and the CRC-32 of that."""

MOST_BLOCKS_READ = 10**8
"""Blocks of a store; more flags than this are no study."""

LONGEST_NUMBER = 20
"""Digits of the name of a chunk, at most."""

UNVERIFIED = "an earlier version made the store without checksums: what is read of it is not verified"


class StudyDiskError(DalembertError, OSError):
    """A block could not be written: the disk is full, or the store is gone."""


class DamagedStoreError(ModelError):
    """What a store holds is not what was written."""


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
        text = json.dumps(description)
        attributes = {TEXT: text, TEXT_CHECKSUM: zlib.crc32(text.encode())}
        group = zarr.open_group(path, mode="w", zarr_format=3, attributes=attributes)
        shard = min(job.block, max(job.runs, 1))
        for name, sample in empty_arrays(job, 1).items():
            inner = (min(shard, CHUNK), *sample.shape[1:])
            axes = ["run", *(f"{name.rpartition('/')[2]}_{k}" for k in range(1, sample.ndim))]
            group.create_array(
                array_path(name), shape=(job.runs, *sample.shape[1:]), dtype=sample.dtype, chunks=inner,
                shards=(shard, *sample.shape[1:]) if shard > CHUNK else None,
                fill_value=np.nan if sample.dtype.kind == "f" else 0, dimension_names=axes,
            )  # fmt: skip
        group.create_array("checksums", shape=(job.blocks, len(checked_names(job))), dtype="u4",
                           chunks=(1, len(checked_names(job))), fill_value=0, compressors=None,
                           dimension_names=["block", "array"])  # fmt: skip
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
        events = [_write_events(job, columns)] if job.record_events else []
        block = columns.first // job.block
        if "checksums" in group:  # not in stores of earlier versions
            sums = [checksum(name, block, rows) for name, rows in columns.arrays.items()]
            group["checksums"][block] = np.array(sums + events, np.uint32)
        group["done"][block] = 1
    except OSError as error:
        raise _disk_error(error, Path(job.store)) from error


def _disk_error(error: OSError, path: Path) -> StudyDiskError:
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    words = f"the disk of {path} is full" if full else f"{path} cannot be written: {error}"
    return StudyDiskError(
        f"{words}; blocks that are in the store are whole: make room, then da.ensemble.resume({str(path)!r})"
    )


def _write_events(job: StudyJob, columns: RunColumns) -> int:
    """Write the events of a block; return the checksum of their file."""
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
    part = events_path(job.store, columns.first // job.block)
    partial = part.with_suffix(".partial")
    pq.write_table(table, partial)
    written = file_checksum(partial)
    partial.replace(part)
    return written


def remove_partial(path: str | Path) -> None:
    """Remove files that writers which were killed have left half written beside whole ones."""
    for each in Path(path).rglob("*.partial"):
        each.unlink(missing_ok=True)


def events_path(store: str | Path, block: int) -> Path:
    """Return where the events of a block lie."""
    return Path(store) / EVENTS / f"{block:06d}.parquet"


def checked_names(job: StudyJob) -> list[str]:
    """Return what has a checksum in each block: the arrays by name, and the events where they are recorded."""
    return [*empty_arrays(job, 0), *([EVENTS] if job.record_events else [])]


def checksum(name: str, block: int, rows: Array) -> int:
    """Return the CRC-32 of what a block has of an array, with the name, the number of the block and the shape."""
    head = f"{name} {block} {rows.dtype.str} {rows.shape}".encode()
    return zlib.crc32(np.ascontiguousarray(rows).tobytes(), zlib.crc32(head)) if rows.size else 0


def file_checksum(path: Path) -> int:
    """Return the CRC-32 of a file."""
    return zlib.crc32(path.read_bytes())


def mend_layout(job: StudyJob, description: dict[str, Any]) -> None:
    """Write what a store says of the shapes of its arrays again, where that is not what its description asks for."""
    with tempfile.TemporaryDirectory() as folder:
        fresh = Path(folder) / "store"
        create(replace(job, store=str(fresh)), description)
        for each in fresh.rglob("zarr.json"):
            kept = Path(job.store) / each.relative_to(fresh)
            if each.parent != fresh and not (kept.exists() and kept.read_bytes() == each.read_bytes()):
                kept.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(each, kept)


class StoredColumns:
    """The arrays of a store by name, read when they are asked for; blocks that are not whole are missing.

    Parameters
    ----------
    rule
        What else is said where the path is no store.
    """

    def __init__(self, path: str | Path, rule: str = "") -> None:
        self.path = Path(path)
        try:
            self.group = _zarr().open_group(self.path, mode="r")
            text = str(self.group.attrs[TEXT])
            self.description: dict[str, Any] = json.loads(text)
            schema = self.description.get("schema")
        except MissingExtraError:
            raise
        except Exception as error:  # whatever Zarr makes of what lies there
            words = f"{self.path} is not the store of a study: {error}"
            raise ModelError(f"{words}; {rule}" if rule else words) from error
        written = self.group.attrs.get(TEXT_CHECKSUM)
        if written != zlib.crc32(text.encode()) and (written is not None or self.description.get("checksums")):
            raise DamagedStoreError(
                f"{self.path}: the description of the study is not what was written (its checksum is another): take a "
                "copy of the store, or begin the study again"
            )
        if schema != SCHEMA:
            raise ModelError(f"{self.path} has layout {schema!r}, this version reads layout {SCHEMA}")
        self.job: Any = None
        self.whole: Array | None = None
        self.last: tuple[str, int, Array] = ("", -1, np.zeros(0))
        self.arrays: dict[str, Any] = {}
        self.sums: dict[int, Array] = {}

    @property
    def note(self) -> str:
        """What is to be said of what is read."""
        return "" if self.description.get("checksums") else UNVERIFIED

    # --- what the description asks for ------------------------------------------------------------------------------

    def expect(self, job: StudyJob) -> None:
        """Note what arrays there must be; refuse a store in which they have other shapes."""
        self.job = job
        if job.block < 1 or job.runs < 1 or job.blocks > MOST_BLOCKS_READ:
            raise ModelError(f"{self.path}: {job.runs} runs in blocks of {job.block} are no study")
        names, piece = checked_names(job), min(job.block, job.runs)
        wanted = {
            name: (rows.dtype, (job.runs, *rows.shape[1:]), piece) for name, rows in empty_arrays(job, 1).items()
        } | {"done": (np.dtype("u1"), (job.blocks,), 1)}
        if self.description.get("checksums"):
            wanted["checksums"] = np.dtype("u4"), (job.blocks, len(names)), 1
        wrong = {name: words for name, each in wanted.items() if (words := self._differs(name, *each))}
        if len(wrong) == len(wanted):
            raise ModelError(f"{self.path} holds another study than it describes: {next(iter(wrong.values()))}")
        if wrong:
            raise DamagedStoreError(f"{self.path}: {next(iter(wrong.values()))}; {ADVICE}")

    def _differs(self, name: str, dtype: Any, shape: tuple[int, ...], piece: int) -> str:
        """Return what is wrong with an array, in words."""
        try:
            array = self._array(name)
            found = array.dtype, array.shape, (array.shards or array.chunks)[0]
        except DamagedStoreError as error:
            return str(error).removeprefix(f"{self.path}: ").removesuffix(f"; {ADVICE}")
        except Exception as error:  # a group, or what no array of Zarr is
            return f"{name!r} cannot be read: {_words(error)}"
        if found == (dtype, shape, piece):
            return ""
        return (
            f"{name!r} is {found[0]} {found[1]} in pieces of {found[2]}, and was {dtype} {shape} in pieces of {piece}"
        )

    def _array(self, name: str) -> Any:
        try:
            if name not in self.arrays:
                self.arrays[name] = self.group[array_path(name)]
            return self.arrays[name]
        except Exception as error:
            raise DamagedStoreError(f"{self.path}: {name!r} cannot be read: {_words(error)}; {ADVICE}") from error

    # --- blocks ---------------------------------------------------------------------------------------------------

    def done(self) -> Array:
        """Return whether each block is whole, (blocks,); a flag that cannot be read is not set."""
        if self.whole is not None:
            return self.whole
        blocks = self._array("done").shape[0]
        self.whole = whole = np.zeros(blocks, bool)
        folder = self.path / "done" / "c"
        for name in os.listdir(folder) if folder.is_dir() else ():  # chunk k is the file k, a byte
            k = int(name) if name.isdecimal() and len(name) < LONGEST_NUMBER else blocks
            if k < blocks:
                whole[k] = _bytes_of(folder / name) == b"\x01"
        return whole

    def leave_out_damaged(self) -> list[int]:
        """Read all blocks; those that are damaged are missing from now on. Return their numbers."""
        good, names = self.done().copy(), checked_names(self.job)
        for block in np.flatnonzero(good):
            try:
                for name in names:
                    self._verified_events(int(block)) if name == EVENTS else self._block(name, int(block))
            except DamagedStoreError:
                good[block] = False
        damaged = np.flatnonzero(self.done() & ~good).tolist()
        self.whole = good
        return damaged

    def _sum(self, name: str, block: int) -> int | None:
        """Return what was written as the checksum of a block, None in a store of an earlier version."""
        if not self.description.get("checksums"):
            return None
        names = checked_names(self.job)
        if block not in self.sums:  # a chunk is a file of numbers, not compressed
            content = _bytes_of(self.path / "checksums" / "c" / str(block) / "0")
            self.sums[block] = np.frombuffer(content, "<u4") if len(content) == 4 * len(names) else np.zeros(0, "<u4")
        if not self.sums[block].size:
            raise self._damaged(name, block, "its checksum cannot be read")
        return int(self.sums[block][names.index(name)])

    def _block(self, name: str, block: int, whole: Array | None = None) -> Array:
        """Return the rows of an array in a block, compared with their checksum; `whole` has all that was read."""
        first, stop = self.job.ends(block)
        try:
            rows = np.asarray(self._array(name)[first:stop]) if whole is None else whole[first:stop]
        except DamagedStoreError:
            raise
        except Exception as error:  # whatever Zarr and its codecs make of broken bytes
            raise self._damaged(name, block, _words(error)) from error
        written = self._sum(name, block)
        if written is not None and checksum(name, block, rows) != written:
            raise self._damaged(name, block, "its checksum is another")
        return rows

    def _damaged(self, name: str, block: int, why: str) -> DamagedStoreError:
        first, stop = self.job.ends(block)
        return DamagedStoreError(
            f"{self.path}: {name!r} of the runs {first} to {stop - 1} is not what was written ({why}); {ADVICE}"
        )

    # --- arrays ---------------------------------------------------------------------------------------------------

    def __getitem__(self, name: str) -> Array:
        arrays = empty_arrays(self.job, 1)
        if name not in arrays:
            raise DamagedStoreError(f"{self.path}: its description names {name!r} in one place and not in another")
        one = arrays[name]
        size = one.nbytes * self.job.runs
        if size > physical_memory():
            raise ModelError(f"{self.path}: {name!r} takes {size / 2**30:.3g} GiB, more than this machine has")
        rows, done = np.repeat(one, self.job.runs, axis=0), np.flatnonzero(self.done())
        try:
            whole = np.asarray(self._array(name)[:]) if done.size else None
        except Exception:  # block by block: which of them is it?
            whole = None
        for block in done:
            first, stop = self.job.ends(int(block))
            rows[first:stop] = self._block(name, int(block), whole)
        return rows

    def row(self, name: str, i: int) -> Array:
        """Return what a run has of an array."""
        block = i // self.job.block
        if not self.done()[block]:
            return empty_arrays(self.job, 1)[name][0]
        if self.last[:2] != (name, block):
            self.last = name, block, self._block(name, block)
        return self.last[2][i - self.job.ends(block)[0]]

    def events(self) -> dict[str, list[Any]]:
        """Return all events of blocks that are whole, by column."""
        import pyarrow.parquet as pq

        found: dict[str, list[Any]] = {name: [] for name in EVENT_FIELDS}
        for block in np.flatnonzero(self.done()):
            part = self._verified_events(int(block))
            try:
                columns = pq.ParquetFile(part).read().to_pydict()
                for name in EVENT_FIELDS:
                    found[name] += columns[name]
            except Exception as error:
                raise self._damaged(EVENTS, int(block), _words(error)) from error
        return found

    def _verified_events(self, block: int) -> Path:
        part, written = events_path(self.path, block), self._sum(EVENTS, block)
        try:
            if written is not None and file_checksum(part) != written:
                raise self._damaged(EVENTS, block, "its checksum is another")
        except OSError as error:
            raise self._damaged(EVENTS, block, _words(error)) from error
        return part


ADVICE = (
    "da.ensemble.resume of the store computes damaged blocks again, "
    'da.ensemble.open(path, damaged="missing") reads what is sound'
)


def _words(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error)[:200]}"


def _bytes_of(path: Path) -> bytes:
    """Return the content of a small file; nothing where it cannot be read."""
    try:
        return path.read_bytes()
    except OSError:
        return b""


def physical_memory() -> float:
    """Return the bytes of this machine's memory; inf where they are not known."""
    try:
        return float(os.sysconf("SC_PHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # Windows
        return np.inf
