"""The layout of a run's file: dimensions, variables, attributes; HDF5 as NetCDF-4 has it.

    /t (time)  /q (time, configuration)  /v /acceleration (time, velocity)  /multipliers (time, row)  /work /step ...
    /resume/checkpoint (block, number)  checkpoint_samples (block)  checkpoint_steps (block, 3)  event (event)

A block is complete when its row of `checkpoint_samples` is there: that is written last, and only samples up to it
count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.errors import MissingExtraError

if TYPE_CHECKING:
    from dalembert.simulate.session import Session

Array = np.ndarray

SCHEMA = 1
"""Version of the layout; a file of a later one is refused."""

DIMENSIONS = {
    "t": (), "q": ("configuration",), "v": ("velocity",), "acceleration": ("velocity",), "multipliers": ("row",),
    "work": (), "step": (), "heat": (), "contact_forces": ("contact_component",), "modes": ("contact",),
    "contact_status": (), "contact_residual": (), "friction_work": (),
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
