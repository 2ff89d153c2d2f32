"""Runs written to files, while they go on or at once, and the layout of these: HDF5 as NetCDF-4 has it."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.errors import MissingExtraError, ModelError

if TYPE_CHECKING:
    from dalembert.simulate.session import Session

# ----------------------------------------------------------------------------------------------------------------------
# A file that grows with its run: every block complete before it counts, readable after the process was killed.
#
# HDF5's single-writer mode orders its writes so that the file is consistent at any time; a row of `checkpoint_samples`
# is written last and says how many samples count.


Array = np.ndarray


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
        for name, rows in block.items():
            if name in self.file:
                append(self.file[name], rows)
        new = self.session.events[self.events :]
        if new:
            variable = self.file["resume/event"]
            rows = [(e.time, e.index, e.contact.encode(), e.old.encode(), e.new.encode()) for e in new]
            written = np.array(rows, dtype=variable.dtype)
            cut = next((e for e, row in zip(new, written, strict=True) if row["contact"] != e.contact.encode()), None)
            if cut is not None:
                raise RuntimeError(f"there is no room for the name of the event {cut.contact!r}")
            append(variable, written)
        append(self.file["resume/checkpoint"], packed(checkpoint)[None])
        s = self.session
        append(self.file["resume/checkpoint_steps"], np.array([[s.steps, s.rejected, s.evaluations]]))
        self.samples += len(block["t"])
        self.events += len(new)
        append(self.file["resume/checkpoint_samples"], np.array([self.samples]))
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


# ----------------------------------------------------------------------------------------------------------------------
# The layout of a run's file: dimensions, variables, attributes; HDF5 as NetCDF-4 has it.
#
#     /t (time)  /q (time, configuration)  /v /acceleration (time, velocity)  /multipliers (time, row)  /work /step ...
#     /resume/checkpoint (block, number)  checkpoint_samples (block)  checkpoint_steps (block, 3)  event (event)
#
# A block is complete when its row of `checkpoint_samples` is there: that is written last, and only samples up to it
# count.


SCHEMA = 1
"""Version of the layout; a file of a later one is refused."""

DIMENSIONS = {
    "t": (), "q": ("configuration",), "v": ("velocity",), "acceleration": ("velocity",), "multipliers": ("row",),
    "work": (), "step": (), "heat": (), "contact_forces": ("contact_component",), "modes": ("contact",),
    "contact_status": (), "contact_residual": (),
}  # fmt: skip
"""Second dimension of every field of a sample."""

UNITS = {"t": "s", "work": "J", "heat": "J", "step": "s"}

CHUNK = 1024
"""Rows that a variable grows by at a time."""

SHORTEST_NAME = 64
"""Bytes for the name of an event at least; a file that grows with its run has rows of one size."""


def event_type(session: Session) -> np.dtype[Any]:
    """Return the type of one event, with room for every name of a contact or an event of the run, in UTF-8."""
    names = [*session.extra.get("contact_names", ()), *(each.name for each in session.watches)]
    names += [each.contact for each in session.events]
    width = max([SHORTEST_NAME, *(len(name.encode()) for name in names)])
    return np.dtype([("time", "f8"), ("index", "i8"), ("contact", f"S{width}"), ("old", "S16"), ("new", "S16")])


def h5py() -> Any:
    """Return the module, or say how to get it."""
    try:
        import h5py
    except ImportError as error:
        raise MissingExtraError("h5py", "files", "Writing and reading runs") from error
    return h5py


def names_of(session: Session) -> dict[str, tuple[str, ...]]:
    """Return the names along every second dimension."""
    m = session.system
    contacts = tuple(session.extra.get("contact_names", ()))
    parts = tuple(f"{name} {part}" for name in contacts for part in ("x", "y", "z"))
    return {
        "configuration": m.configuration_names, "velocity": m.coordinates, "row": m.names, "contact": contacts,
        "contact_component": parts,
    }  # fmt: skip


def create(file: Any, session: Session, block: dict[str, Array], checkpoint: dict[str, Array]) -> None:
    """Make all variables, empty, with names along their dimensions and everything that repeats the run."""
    from dalembert.simulate.storage.text import describe

    for name, text in describe(session).items():
        file.attrs[name] = text
    file.attrs["checkpoint_layout"] = _layout_text(checkpoint)
    time = file.create_dataset("t", (0,), "f8", maxshape=(None,), chunks=(CHUNK,))
    time.make_scale("t")
    time.attrs["units"] = "s"
    for dimension, names in names_of(session).items():
        if names:
            scale = file.create_dataset(dimension, data=np.array(names, dtype=object), dtype=h5py().string_dtype())
            scale.make_scale(dimension)
    for name, rows in block.items():
        if name == "t" or (rows.ndim > 1 and rows.shape[1] == 0):
            continue
        width = rows.shape[1:]
        variable = file.create_dataset(name, (0, *width), rows.dtype, maxshape=(None, *width), chunks=(CHUNK, *width))
        variable.dims[0].attach_scale(time)
        for k, dimension in enumerate(DIMENSIONS[name]):
            variable.dims[k + 1].attach_scale(file[dimension])
        if name in UNITS:
            variable.attrs["units"] = UNITS[name]
    numbers = sum(each.size for each in checkpoint.values())
    for name, width, kind in (
        ("resume/checkpoint", (numbers,), "f8"),
        ("resume/checkpoint_steps", (3,), "i8"),
        ("resume/checkpoint_samples", (), "i8"),
    ):
        file.create_dataset(name, (0, *width), kind, maxshape=(None, *width), chunks=(64, *width))
    file.create_dataset("resume/event", (0,), event_type(session), maxshape=(None,), chunks=(256,))


def append(variable: Any, rows: Array) -> None:
    """Append rows to a variable and hand them to the system."""
    count = variable.shape[0]
    variable.resize(count + len(rows), axis=0)
    variable[count:] = rows
    variable.flush()


def packed(checkpoint: dict[str, Array]) -> Array:
    """Return a checkpoint as one row of numbers; whole numbers below 2^53 are exact."""
    return np.concatenate([np.ravel(checkpoint[name]).astype(float) for name in sorted(checkpoint)])


def unpacked(row: Array, layout: str) -> dict[str, Array]:
    """Return the checkpoint of a row."""
    import json

    from dalembert.simulate.storage.text import number_type

    found, place = {}, 0
    for name, shape, kind in json.loads(layout):
        size = int(np.prod(shape))
        found[name] = row[place : place + size].reshape(shape).astype(number_type(kind))
        place += size
    return found


def _layout_text(checkpoint: dict[str, Array]) -> str:
    import json

    return json.dumps(
        [[name, list(checkpoint[name].shape), str(checkpoint[name].dtype)] for name in sorted(checkpoint)]
    )
