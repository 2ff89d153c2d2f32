"""Runs written to files, while they go on or at once, and the layout of these: HDF5 as NetCDF-4 has it."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.errors import ModelError
from dalembert.simulate.storage.file_layout import (
    CHECKPOINT,
    CHUNK,
    append,
    checksum,
    create,
    event_checksums,
    h5py,
    packed,
)
from dalembert.types import Array

if TYPE_CHECKING:
    from dalembert.simulate.session import Session

# ----------------------------------------------------------------------------------------------------------------------
# A file that grows with its run: every block complete before it counts, readable after the process was killed.
#
# HDF5's single-writer mode orders its writes so that the file is consistent at any time; a row of `checkpoint_samples`
# is written last and says how many samples count.


OVERHEAD = 1 << 18
"""Bytes for everything but samples in the space that is asked for before a block."""


class FileSink:
    """Takes blocks of a session to a file."""

    def __init__(self, path: Any, session: Session, replace: bool = False) -> None:
        if not isinstance(path, str | os.PathLike):
            raise ModelError(f"file={path!r} must be a path")
        self.path, self.session = Path(path), session
        h5py()
        if self.path.exists() and not replace:
            raise ModelError(f"{self.path} is there already: da.resume continues a run, or remove the file first")
        if not self.path.parent.is_dir():
            raise ModelError(f"{self.path}: there is no folder {self.path.parent}")
        _refuse_unwritable(self.path)
        self.replace = replace
        self.file: Any = None
        self.samples = self.events = self.used = 0
        self.failed = ""

    def __call__(self, block: dict[str, Array], checkpoint: dict[str, Array]) -> None:
        """Append a block; a disk that is full ends the writing, not the run."""
        if self.failed:
            return
        try:
            if self.file is None:
                self._open(block, checkpoint)
            self._reserve(block)
            self._append(block, checkpoint)
        except (OSError, RuntimeError) as error:
            self.failed = f"{self.path} ends at sample {self.samples}: {error}"
            self._abandon()

    def _open(self, block: dict[str, Array], checkpoint: dict[str, Array]) -> None:
        file = h5py().File(self._target, "w", libver="latest")
        try:
            create(file, self.session, block, checkpoint)
            file.flush()
        except BaseException:  # a file without its variables takes no block: the first error is the one to be read
            file.close()
            raise
        self.file, file.swmr_mode = file, True

    @property
    def _target(self) -> Path:
        """Where the file is: beside an old one until its first block is complete."""
        return self.path.with_name(self.path.name + ".new") if self.replace else self.path

    def _reserve(self, block: dict[str, Array]) -> None:
        """Ask the system for the space of a block beforehand: HDF5 does not survive a write that fails."""
        if not hasattr(os, "posix_fallocate"):
            return
        chunks = sum(CHUNK * rows[:1].nbytes for rows in block.values())
        need = sum(rows.nbytes for rows in block.values()) + chunks + OVERHEAD
        handle = os.open(self._target, os.O_RDWR)
        try:
            self.used = self.used or os.fstat(handle).st_size
            os.posix_fallocate(handle, 0, self.used + need)
            self.used += need - chunks - OVERHEAD * 3 // 4
        finally:
            os.close(handle)

    def _append(self, block: dict[str, Array], checkpoint: dict[str, Array]) -> None:
        written = {name: rows.astype(self.file[name].dtype) for name, rows in block.items() if name in self.file}
        for name, rows in written.items():
            append(self.file[name], rows)
        new = self.session.events[self.events :]
        if new:
            variable = self.file["resume/event"]
            rows = [(e.time, e.index, e.contact.encode(), e.old.encode(), e.new.encode(), 0) for e in new]
            events = np.array(rows, dtype=variable.dtype)
            cut = next((e for e, row in zip(new, events, strict=True) if row["contact"] != e.contact.encode()), None)
            if cut is not None:
                raise RuntimeError(f"there is no room for the name of the event {cut.contact!r}")
            events["checksum"] = event_checksums(events)
            append(variable, events)
        s = self.session
        self.samples += len(block["t"])
        self.events += len(new)
        steps = np.array([[s.steps, s.rejected, s.evaluations]])
        written |= dict(zip(CHECKPOINT, (packed(checkpoint)[None], steps, np.array([self.samples])), strict=True))
        checks = self.file["resume/checksum"]
        append(checks, np.array([[checksum(written[name]) for name in checks.attrs["variables"]]], dtype=np.uint32))
        for name in CHECKPOINT:  # the number of samples last: it makes the block count
            append(self.file[name], written[name])
        if self.replace:
            os.replace(self._target, self.path)
            self.replace = False

    def close(self) -> None:
        """Finish the file: status and message; then any NetCDF-4 reader takes it."""
        s = self.session
        if self.failed:
            s.message = f"{s.message} {self.failed}".strip()
            s.status = "disk full" if s.status == "completed" else s.status
            return
        if self.file is None:
            return
        try:
            self.file.close()
            with h5py().File(self.path, "r+", libver="latest") as file:
                file.attrs["status"], file.attrs["message"] = s.status, s.message
        except (OSError, RuntimeError) as error:
            s.stop("disk full", f"{self.path} could not be finished: {error}")

    def _abandon(self) -> None:
        """Let go of a file that cannot be written any more."""
        with suppress(OSError, RuntimeError, AttributeError):
            self.file.close()
        self.file = None


def _refuse_unwritable(path: Path) -> None:
    """Refuse a place where no file can be made, before anything is computed."""
    there = path.exists()
    try:
        with path.open("ab"):
            pass
    except OSError as error:
        raise ModelError(f"{path} cannot be written: {error.strerror or error}") from error
    if not there:
        path.unlink(missing_ok=True)


# ----------------------------------------------------------------------------------------------------------------------
# A finished run written at once, in the same layout as one that is written while it goes on.


FINAL = ".part"
"""Ending of the file while it is written: it gets its name when it is complete."""


def save_run(run: Any, path: Any) -> None:
    """Write a run; a file of that name is replaced when the new one is complete."""
    path = Path(path)
    part = path.with_name(path.name + FINAL)
    part.unlink(missing_ok=True)
    sink = FileSink(part, run.session)
    sink(dict(run.samples), run.session.checkpoint or {})
    sink.close()
    if sink.failed:
        part.unlink(missing_ok=True)
        raise ModelError(f"{path} could not be written: {sink.failed}")
    os.replace(part, path)
