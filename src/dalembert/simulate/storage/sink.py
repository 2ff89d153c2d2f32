"""Runs written to files: the layout of a file, HDF5 as NetCDF-4 has it, and the blocks that a run adds to it."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.errors import MissingExtraError, ModelError
from dalembert.simulate.events.record import CERTIFICATE, Mode
from dalembert.types import Array

if TYPE_CHECKING:
    from dalembert.simulate.session import Session

# ----------------------------------------------------------------------------------------------------------------------
# The layout of a run's file: dimensions, variables, attributes; HDF5 as NetCDF-4 has it.
#
#     /t (time)  /q (time, configuration)  /v /acceleration (time, velocity)  /multipliers (time, row)  /work /step ...
#     /resume/checkpoint (block, number)  checkpoint_samples (block)  checkpoint_steps (block, 3)  event (event)
#     /resume/checksum (block, variable)
#
# A block is complete when its row of `checkpoint_samples` is there: that is written last, and only samples up to it
# count. Every block has a checksum (CRC-32) of its rows of each variable, every event one of its own, and the
# attributes that describe the run one together: HDF5 checks what it adds itself, and takes other bytes as they are.
# (Its own filter for that, Fletcher's, checks whole chunks: a writer that is killed within a chunk would take the
# samples before with it.)


SCHEMA = 2
"""Version of the layout; a file of a later one is refused. Before 2 contacts of shapes had modes of their own
(`FORMER_MODES`)."""

FORMER_MODES = np.array([Mode.STICK, Mode.SLIP, Mode.OPEN], np.int64)
"""Modes of contacts of shapes by their numbers in files of schema 1."""

DIMENSIONS = {
    "t": (), "q": ("configuration",), "v": ("velocity",), "acceleration": ("velocity",), "multipliers": ("row",),
    "work": (), "step": (), "heat": (), "contact_forces": ("contact_component",), "modes": ("contact",),
    "contact_moments": ("contact_component",), "contact_points": ("contact",), "contact_status": (),
    "contact_residual": (), "friction_work": (), "impulses": ("impulse_component",),
    "impact": ("certificate",),
    "relative_velocity": ("contact_component",), "x": ("unknown",), "rates": ("unknown",),
}  # fmt: skip
"""Second dimension of every field of a sample."""

COMPONENTS = {0: (), 1: ("",), 2: ("[0]", "[1]"), 3: (" x", " y", " z")}
"""Ends of the names of a contact's components, by their number."""

UNITS = {"t": "s", "work": "J", "heat": "J", "step": "s"}

CHUNK = 1024
"""Rows that a variable grows by at a time."""

CHECKPOINT = ("resume/checkpoint", "resume/checkpoint_steps", "resume/checkpoint_samples")
"""What a run goes on from, a row for each block."""

CHANGING = ("status", "message")
"""Attributes that are not part of the description of a run: a run ends with others than it began with."""

SHORTEST_NAME = 64
"""Bytes for the name of an event at least; a file that grows with its run has rows of one size."""


def event_type(session: Session) -> np.dtype[Any]:
    """Return the type of one event, with room for every name of a contact or an event of the run, in UTF-8."""
    names = [*session.extra.get("contact_names", ()), *(item.name for item in session.watches)]
    names += [item.contact for item in session.events]
    width = max([SHORTEST_NAME, *(len(name.encode()) for name in names)])
    fields = [("time", "f8"), ("index", "i8"), ("contact", f"S{width}"), ("old", "S16"), ("new", "S16")]
    return np.dtype([*fields, ("checksum", "u4")])


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
    widths = session.extra.get("contact_widths", (3,) * len(contacts))
    parts = tuple(f"{name}{part}" for name, width in zip(contacts, widths, strict=True) for part in COMPONENTS[width])
    return {
        "configuration": m.configuration_names, "velocity": m.coordinates, "row": m.names, "contact": contacts,
        "contact_component": parts, "certificate": CERTIFICATE if contacts else (),
        "impulse_component": tuple(f"{name} {part}" for name in contacts for part in ("x", "y", "z")),
        "unknown": getattr(m, "unknowns", ()),
    }  # fmt: skip


def widths_of(contacts: tuple[str, ...], parts: tuple[str, ...]) -> tuple[int, ...]:
    """Return how many components every contact has, from their names in a file."""
    widths, rest = [], list(parts)
    for name in contacts:
        width = next(n for n in (3, 2, 1, 0) if rest[:n] == [f"{name}{part}" for part in COMPONENTS[n]])
        widths, rest = [*widths, width], rest[width:]
    return tuple(widths)


def create(file: Any, session: Session, block: dict[str, Array], checkpoint: dict[str, Array]) -> None:
    """Make all variables, empty, with names along their dimensions and everything that repeats the run."""
    from dalembert.simulate.storage.text import describe

    described = describe(session) | {"checkpoint_layout": _layout_text(checkpoint)}
    for name, text in described.items():
        file.attrs[name] = text
    time = file.create_dataset("t", (0,), "f8", maxshape=(None,), chunks=(CHUNK,))
    time.make_scale("t")
    time.attrs["units"] = "s"
    for dimension, names in names_of(session).items():
        if names:
            scale = file.create_dataset(dimension, data=np.array(names, dtype=object), dtype=h5py().string_dtype())
            scale.make_scale(dimension)
    file.attrs["checksums"] = json.dumps(
        description_checksums(file, [name for name in described if name not in CHANGING])
    )
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
    numbers = sum(array.size for array in checkpoint.values())
    for name, width, kind in zip(CHECKPOINT, ((numbers,), (3,), ()), ("f8", "i8", "i8"), strict=True):
        file.create_dataset(name, (0, *width), kind, maxshape=(None, *width), chunks=(64, *width))
    file.create_dataset("resume/event", (0,), event_type(session), maxshape=(None,), chunks=(256,))
    checked = [*reversed(CHECKPOINT), *(name for name in block if name in file)]
    width = len(checked)
    checks = file.create_dataset("resume/checksum", (0, width), "u4", maxshape=(None, width), chunks=(64, width))
    checks.attrs["variables"] = checked


def append(variable: Any, rows: Array) -> None:
    """Append rows to a variable and hand them to the system."""
    count = variable.shape[0]
    variable.resize(count + len(rows), axis=0)
    variable[count:] = rows
    variable.flush()


def checksum(rows: Array) -> int:
    """Return the CRC-32 of the bytes of an array."""
    return zlib.crc32(rows.tobytes())


def event_checksums(events: Array) -> Array:
    """Return the checksum of every event, of all its fields but that one."""
    names = [name for name in events.dtype.names or () if name != "checksum"]
    rows = [b"".join(np.asarray(e[name]).tobytes() for name in names) for e in events]
    return np.array([zlib.crc32(row) for row in rows], dtype=np.uint32)


def description_checksums(file: Any, names: Iterable[str]) -> dict[str, int]:
    """Return the checksums of attributes, and of the names of contacts; zero where there is no such attribute."""
    texts = {name: str(file.attrs.get(name, "")) for name in names}
    if "contact" in file:
        texts["contact"] = "\n".join(name.decode() for name in file["contact"][:])
    return {name: zlib.crc32(text.encode()) for name, text in texts.items()}


def packed(checkpoint: dict[str, Array]) -> Array:
    """Return a checkpoint as one row of numbers; whole numbers below 2^53 are exact."""
    return np.concatenate([np.ravel(checkpoint[name]).astype(float) for name in sorted(checkpoint)])


def unpacked(row: Array, layout: str) -> dict[str, Array]:
    """Return the checkpoint of a row."""
    from dalembert.simulate.storage.text import number_type

    arrays, place = {}, 0
    for name, shape, kind in json.loads(layout):
        size = int(np.prod(shape))
        arrays[name] = row[place : place + size].reshape(shape).astype(number_type(kind))
        place += size
    return arrays


def _layout_text(checkpoint: dict[str, Array]) -> str:
    return json.dumps(
        [[name, list(checkpoint[name].shape), str(checkpoint[name].dtype)] for name in sorted(checkpoint)]
    )


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
    session = run.session or run.solution.session
    part = path.with_name(path.name + FINAL)
    part.unlink(missing_ok=True)
    sink = FileSink(part, session)
    sink(dict(run.samples), session.checkpoint or {})
    sink.close()
    if sink.failed:
        part.unlink(missing_ok=True)
        raise ModelError(f"{path} could not be written: {sink.failed}")
    os.replace(part, path)
