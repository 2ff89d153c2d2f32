"""Runs read back, resumed bit for bit, or turned into an xarray.Dataset."""

from __future__ import annotations

import io
import json
import os
import struct
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dalembert.checks import is_number
from dalembert.errors import DalembertError, MissingExtraError, ModelError
from dalembert.simulate.events.record import EventRecord
from dalembert.simulate.session import Session
from dalembert.simulate.storage.sink import (
    CHECKPOINT,
    DIMENSIONS,
    FORMER_MODES,
    SCHEMA,
    checksum,
    description_checksums,
    event_checksums,
    h5py,
    unpacked,
    widths_of,
)
from dalembert.simulate.storage.text import session_of
from dalembert.simulate.table import RATES, configuration_units, row_units, velocity_units
from dalembert.simulate.trajectory import Trajectory, trajectory_of
from dalembert.types import Array

# ----------------------------------------------------------------------------------------------------------------------
# Runs read back: complete ones, and those that were killed, as far as they came.


ATTEMPTS, PAUSE = 3, 0.05
"""A file that is still being written may be read between two writes that belong together: so often is it tried, and so
many seconds apart."""


def load_run(path: Any, **given: Any) -> Trajectory:
    """Return the run in a file; `system`, `force`, `events`, `contacts` where the file could not hold them."""
    session = read_session(path, given)
    if "form" in session.extra:
        from dalembert.simulate.implicit import stored_trajectory

        return stored_trajectory(session)
    run = trajectory_of(session, tuple(session.extra.get("contact_names", ())))
    return replace(run, status=session.status, message=session.words)


def read_session(path: Any, given: dict[str, Any]) -> Session:
    """Return the session of a file with its samples, events and last checkpoint."""
    path = Path(path)
    if not path.is_file():
        raise ModelError(f"there is no file {path}")
    h5py()
    for attempt in range(ATTEMPTS):
        try:
            with open_file(path) as file:
                return _session(file, path, given)
        except MissingExtraError:
            raise
        except DalembertError as error:
            if str(path) in str(error):
                raise
            raise type(error)(f"{path}: {error}") from error
        except Exception as error:  # h5py, json and a description that fits no model raise what they like
            if attempt + 1 == ATTEMPTS or not is_unfinished(path):
                raise ModelError(f"{path} cannot be read as a run: {error}") from error
        time.sleep(PAUSE)
    raise AssertionError("unreachable")


def _session(file: Any, path: Path, given: dict[str, Any]) -> Session:
    if "schema" not in file.attrs or "resume" not in file:
        raise ModelError(f"{path} is no run of dalembert: it has no schema")
    if int(file.attrs["schema"]) > SCHEMA:
        raise ModelError(f"{path} has schema {file.attrs['schema']}; this version reads up to {SCHEMA}")
    _refuse_damaged_description(file, path)
    unknowns = tuple(name.decode() for name in file["unknown"][:]) if "unknown" in file else ()
    session = session_of(file.attrs, given | {"unknowns": unknowns})
    blocks = file["resume/checkpoint_samples"].shape[0]
    count = int(file["resume/checkpoint_samples"][blocks - 1]) if blocks else 0
    if not count:
        raise ModelError(f"{path} holds no complete block: the run was stopped before the first one")
    block = {name: _rows(file[name], count) for name in DIMENSIONS if name in file}
    events = np.asarray(file["resume/event"][:])
    _refuse_damaged(file, path, block, events)
    if int(file.attrs["schema"]) < 2 and "contact_status" in block:
        block["modes"] = FORMER_MODES[block["modes"]]
    m = session.system
    widths = (("multipliers", len(m.names)), ("q", m.nq), ("v", m.nv), ("acceleration", m.nv))
    for name, width in widths if "form" not in session.extra or m.moving is not None else ():
        block.setdefault(name, np.zeros((count, width)))
    session.blocks.append(block)
    session.checkpoint = unpacked(
        np.asarray(file["resume/checkpoint"][blocks - 1]), str(file.attrs["checkpoint_layout"])
    )
    session.steps, session.rejected, session.evaluations = (int(x) for x in file["resume/checkpoint_steps"][blocks - 1])
    session.events += [
        EventRecord(float(e["time"]), _word(e["contact"]), int(e["index"]), _word(e["old"]), _word(e["new"]))
        for e in events if e["time"] <= block["t"][-1]
    ]  # fmt: skip
    if "contact" in file:
        names = session.extra["contact_names"] = tuple(name.decode() for name in file["contact"][:])
        widths = widths_of(names, tuple(name.decode() for name in file["contact_component"][:]))
        if set(widths) - {3}:
            session.extra["contact_widths"] = widths
    session.status, session.message = str(file.attrs["status"]), str(file.attrs["message"])
    if session.status == "running":
        session.message = f"the run was killed after t = {block['t'][-1]:.9g} s; da.resume continues it"
        session.status = "interrupted"
    return session


def _refuse_damaged_description(file: Any, path: Path) -> None:
    """Raise where the description of a run is not the one that was written; older files have no checksums of it."""
    stored = json.loads(str(file.attrs.get("checksums", "{}")))
    checksums = description_checksums(file, [name for name in stored if name != "contact"])
    for name, value in stored.items():
        if checksums.get(name) != value:
            raise ModelError(f"{path} is damaged: {name!r}, which describes the run, is not what was written")


def _refuse_damaged(file: Any, path: Path, block: dict[str, Array], events: Array) -> None:
    """Raise where a block of a variable, or an event, has not the checksum that was written with it.

    Files of versions before checksums have none, and are read as they are.
    """
    if "checksum" in (events.dtype.names or ()):
        bad = np.flatnonzero(event_checksums(events) != events["checksum"])
        if bad.size:
            raise ModelError(f"{path} is damaged: event {bad[0]} in 'resume/event' is not the one that was written")
    if "resume/checksum" not in file:
        return
    checks = file["resume/checksum"]
    ends = np.asarray(file[CHECKPOINT[-1]][:])
    stored = np.asarray(checks[: ends.size])
    for column, name in enumerate(checks.attrs["variables"]):
        whole = file[name][: ends.size] if name in CHECKPOINT else block[name]
        for k, begin in enumerate([0, *ends[:-1]]):
            part = whole[k : k + 1] if name in CHECKPOINT else whole[begin : ends[k]]
            if checksum(np.asarray(part)) != stored[k, column]:
                where = f"block {k}" if name in CHECKPOINT else f"samples {begin} to {ends[k] - 1}"
                raise ModelError(f"{path} is damaged: {where} of {name!r} are not the numbers that were written")


def _rows(variable: Any, count: int) -> Array:
    """Return the first rows of a variable; one whose rows are not in the file is refused before memory is taken."""
    size = count * int(np.prod(variable.shape[1:])) * variable.dtype.itemsize
    if not 0 <= count <= variable.shape[0] or variable.id.get_storage_size() < size:
        raise OSError(f"{variable.name} has fewer rows than the {count} of the run")
    return np.asarray(variable[:count])


def _word(stored: bytes) -> str:
    """Return a name; files of schema 1 may have cut it within a letter."""
    return stored.decode(errors="ignore")


# ----------------------------------------------------------------------------------------------------------------------
# `da.resume`: continue a run from its file, bit for bit as if it had never stopped.


def resume(
    file: Any, *, duration: float | None = None, progress: bool | None = None, system: Any = None, force: Any = None,
    events: Any = None, contacts: Any = None, known: Any = None, on_step: Any = None,
) -> Trajectory:  # fmt: skip
    """Continue a run that was killed, interrupted or stopped, and write on in the same file.

    Parameters
    ----------
    file
        What `da.simulate(..., file=...)` or `run.save` has written.
    duration
        A new length of the whole run, seconds; by default the one it was begun with.
    progress
        Show a bar.
    system, force, events, contacts, known
        What the file could not hold: Python functions, `Matrices`, a `Tableau` or `DAE`, expressions of time in
        `known`, and mechanisms with constraints made of them.
    on_step
        Called as (t, q, v) after every further step, as by `da.simulate`.

    Returns
    -------
    Trajectory
        The whole run, with what was in the file.
    """
    from dalembert.simulate.entry import run_session
    from dalembert.simulate.equations.callbacks import guarded_step
    from dalembert.simulate.storage.sink import FileSink

    replacements = {"system": system, "force": force, "events": events, "contacts": contacts, "known": known}
    session = read_session(file, replacements)
    if session.extra["missing"]:
        keyword = session.extra["missing"][0]
        raise ModelError(f"{keyword} was a Python function, which a file cannot hold; give it again: {keyword}=...")
    if duration is not None:
        session.settings = replace(session.settings, duration=_longer(session, duration))
    session.status, session.message, session.on_step = "completed", "", guarded_step(on_step)
    old = _behind_checkpoint(session)
    sink = FileSink(file, session, replace=True)
    sink(old, session.checkpoint or {})
    if sink.failed:
        raise ModelError(f"the run cannot be written on: {sink.failed}")
    if "form" in session.extra:
        from dalembert.simulate.implicit import resume_implicit

        return resume_implicit(session, sink)
    return run_session(session, sink, progress)


def _longer(session: Session, duration: Any) -> float:
    """Return the new length of a run, which may not end before what is there."""
    there = float(session.blocks[0]["t"][-1]) - session.settings.start
    if not (is_number(duration) and np.isfinite(duration)):
        raise ModelError(f"duration={duration!r} must be a finite number, the length of the whole run in seconds")
    if duration < there:
        raise ModelError(f"duration={duration!r}: the file holds {there:.9g} s already")
    return float(duration)


def _behind_checkpoint(session: Session) -> dict[str, Array]:
    """Return the samples that a run goes on from: a stepper that restarts in blocks takes the last one again."""
    block, point = session.blocks[0], session.checkpoint or {}
    if "kept" in point:
        count = int(point["kept"][0])
        block = {name: rows[:count] for name, rows in block.items()}
        session.blocks[:] = [block] if count else []
        session.events[:] = [event for event in session.events if event.time <= point["time"][0]]
    return block


# ----------------------------------------------------------------------------------------------------------------------
# A run as an xarray.Dataset: every quantity over time, with names and units.


def as_dataset(run: Any) -> Any:
    """Return the dataset."""
    try:
        import xarray
    except ImportError as error:
        raise MissingExtraError("xarray", "files", "A run as a dataset") from error
    if "q" not in run.samples:
        axes = {"t": ("t", run.t, {"units": "s"}), "unknown": list(run.unknowns)}
        numbers = {"x": (("t", "unknown"), run.x), "rates": (("t", "unknown"), run.sample("rates"))}
        return xarray.Dataset(numbers, axes, {"method": run.method, "reason": run.reason, "status": run.status})
    m = run.moving
    coordinates: dict[str, Any] = {
        "t": ("t", run.t, {"units": "s"}),
        "configuration": list(m.configuration_names),
        "configuration_unit": ("configuration", list(configuration_units(m))),
        "velocity": list(m.coordinates),
        "velocity_unit": ("velocity", [RATES[unit][0] for unit in velocity_units(m)]),
        "row": list(m.names),
        "reaction_unit": ("row", list(row_units(m))),
    }
    if run.contacts:
        coordinates |= {"contact": list(run.contacts), "axis": ["x", "y", "z"]}
    variables: dict[str, Any] = {
        "q": (("t", "configuration"), run.q),
        "v": (("t", "velocity"), run.v),
        "acceleration": (("t", "velocity"), run.acceleration),
        "reactions": (("t", "row"), np.asarray(run.reactions)),
        "work": ("t", run.work, {"units": "J"}),
        "kinetic": ("t", run.kinetic, {"units": "J"}),
        "potential": ("t", run.potential, {"units": "J"}),
        "position_residual": ("t", run.position_residual),
        "velocity_residual": ("t", run.velocity_residual),
    }
    if run.contacts:
        variables["modes"] = (("t", "contact"), run.modes)
        if run.columns is None:
            forces = np.asarray(run.forces).reshape(run.t.size, len(run.contacts), 3)
            variables["contact_forces"] = (("t", "contact", "axis"), forces, {"units": "N"})
        else:
            variables["friction_forces"] = (("t", "direction"), run.forces, {"units": "N"})
        variables["heat"] = ("t", run.heat, {"units": "J"})
    attributes = {"system": m.name, "method": run.method, "reason": run.reason, "status": run.status}
    return xarray.Dataset(variables, coordinates, attributes)


# ----------------------------------------------------------------------------------------------------------------------
# HDF5 files for reading, whole or cut, finished or left behind by a process that was killed.
#
# HDF5's own way to read a file whose writer did not close it (single writer, multiple readers) takes what lies behind
# the end of the file as zeros and reads it again and again: a file that was cut in half keeps it busy for ever. So
# such a file is opened as one that was closed: its superblock (HDF5 File Format Specification 3.0, sec. II.A, version
# 3) is read here, and handed to HDF5 with the status flags cleared and the end of the file where it is. What is
# missing then fails its checksum, or is behind the end, at once. Nothing is written.
#
#     byte  0..7 signature   8 version   9, 10 sizes of offsets and lengths   11 status flags
#     12 base address   20 extension   28 end of file   36 root group   44 checksum (Jenkins' lookup3 of bytes 0..43)


SIGNATURE = b"\x89HDF\r\n\x1a\n"
SUPERBLOCK = 48
"""Bytes of a superblock of version 2 or 3 with offsets of eight bytes, as every run has it."""

STATUS, END, CHECKSUM = 11, 28, 44
"""Places of the status flags, the end of the file and the checksum."""

OPEN_FOR_WRITING = 0b101
"""Flags of a file that is being written, or whose writer was killed."""

WORD = 0xFFFFFFFF


def open_file(path: Path) -> Any:
    """Return the `h5py.File`, to be closed by the caller; OSError where it is none, or cut off."""
    with path.open("rb") as stream:
        head = stream.read(SUPERBLOCK)
    if not head.startswith(SIGNATURE):
        raise OSError("it is no HDF5 file")
    if len(head) < SUPERBLOCK or head[8] not in (2, 3) or head[9] != 8:
        raise OSError("it is cut off, or an HDF5 file that no run has made")
    if path.stat().st_size <= SUPERBLOCK:
        raise OSError("its writer was killed before the first samples were in it: there is nothing to go on from")
    if not head[STATUS] & OPEN_FOR_WRITING:
        return h5py().File(path, "r")
    return h5py().File(_Closed(path), "r")


def is_unfinished(path: Path) -> bool:
    """Say whether a file is being written, or its writer was killed."""
    with path.open("rb") as stream:
        head = stream.read(SUPERBLOCK)
    return len(head) == SUPERBLOCK and bool(head[STATUS] & OPEN_FOR_WRITING)


class _Closed(io.RawIOBase):
    """A file as it would be had its writer closed it: another superblock, the rest from the disk."""

    def __init__(self, path: Path) -> None:
        self.stream = path.open("rb", buffering=0)
        self.length = os.fstat(self.stream.fileno()).st_size
        head = bytearray(self.stream.read(SUPERBLOCK) or b"")
        head[STATUS] &= ~OPEN_FOR_WRITING
        head[END : END + 8] = struct.pack("<Q", self.length)
        head[CHECKSUM:SUPERBLOCK] = struct.pack("<I", lookup3(bytes(head[:CHECKSUM])))
        self.head = bytes(head)
        self.place = 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the place."""
        return self.place

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to a place."""
        self.place = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self.place, os.SEEK_END: self.length}[whence]
        return self.place

    def readinto(self, buffer: Any) -> int:
        """Read all that is asked for; behind the end there is nothing, not even zeros."""
        view = memoryview(buffer).cast("B")
        self.stream.seek(self.place)
        data = self.stream.read(len(view)) or b""
        while len(data) < len(view) and (more := self.stream.read(len(view) - len(data))):
            data += more
        if len(data) < len(view):
            raise OSError("it is cut off")
        if self.place < SUPERBLOCK:
            data = (self.head[self.place :] + data[SUPERBLOCK - self.place :])[: len(view)]
        view[:] = data
        self.place += len(view)
        return len(view)

    def close(self) -> None:
        """Close the file on the disk."""
        self.stream.close()
        super().close()


def lookup3(data: bytes) -> int:
    """Return Bob Jenkins' `hashlittle` (lookup3.c, 2006), the checksum of HDF5's metadata."""
    a = b = c = (0xDEADBEEF + len(data)) & WORD
    while len(data) > 12:
        a, b, c = (x + y & WORD for x, y in zip((a, b, c), struct.unpack_from("<3I", data), strict=True))
        a = (a - c & WORD) ^ _rotated(c, 4)
        c = c + b & WORD
        b = (b - a & WORD) ^ _rotated(a, 6)
        a = a + c & WORD
        c = (c - b & WORD) ^ _rotated(b, 8)
        b = b + a & WORD
        a = (a - c & WORD) ^ _rotated(c, 16)
        c = c + b & WORD
        b = (b - a & WORD) ^ _rotated(a, 19)
        a = a + c & WORD
        c = (c - b & WORD) ^ _rotated(b, 4)
        b = b + a & WORD
        data = data[12:]
    if not data:
        return c
    a, b, c = (x + y & WORD for x, y in zip((a, b, c), struct.unpack("<3I", data.ljust(12, b"\0")), strict=True))
    c = (c ^ b) - _rotated(b, 14) & WORD
    a = (a ^ c) - _rotated(c, 11) & WORD
    b = (b ^ a) - _rotated(a, 25) & WORD
    c = (c ^ b) - _rotated(b, 16) & WORD
    a = (a ^ c) - _rotated(c, 4) & WORD
    b = (b ^ a) - _rotated(a, 14) & WORD
    return (c ^ b) - _rotated(b, 24) & WORD


def _rotated(x: int, k: int) -> int:
    return (x << k | x >> 32 - k) & WORD
