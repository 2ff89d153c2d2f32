"""The layout of a run's file: dimensions, variables, attributes; HDF5 as NetCDF-4 has it.

    /t (time)  /q (time, configuration)  /v /acceleration (time, velocity)  /multipliers (time, row)  /work /step ...
    /resume/checkpoint (block, number)  checkpoint_samples (block)  checkpoint_steps (block, 3)  event (event)
    /resume/checksum (block, variable)

A block is complete when its row of `checkpoint_samples` is there: that is written last, and only samples up to it
count. Every block has a checksum (CRC-32) of its rows of each variable, every event one of its own, and the
attributes that describe the run one together: HDF5 checks what it adds itself, and takes other bytes as they are. (Its
own filter for that, Fletcher's, checks whole chunks: a writer that is killed within a chunk would take the samples
before with it.)
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.errors import MissingExtraError
from dalembert.simulate.events.record import CERTIFICATE, Mode
from dalembert.types import Array

if TYPE_CHECKING:
    from dalembert.simulate.session import Session

SCHEMA = 2
"""Version of the layout; a file of a later one is refused. Before 2 contacts of shapes had modes of their own
(`FORMER_MODES`)."""

FORMER_MODES = np.array([Mode.STICK, Mode.SLIP, Mode.OPEN], np.int64)
"""Modes of contacts of shapes by their numbers in files of schema 1."""

DIMENSIONS = {
    "t": (), "q": ("configuration",), "v": ("velocity",), "acceleration": ("velocity",), "multipliers": ("row",),
    "work": (), "step": (), "heat": (), "contact_forces": ("contact_component",), "modes": ("contact",),
    "contact_status": (), "contact_residual": (), "friction_work": (), "impulses": ("impulse_component",),
    "impact": ("certificate",),
    "relative_velocity": ("contact_component",),
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
