"""Runs read back, resumed bit for bit, or turned into an xarray.Dataset."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dalembert.checks import is_number
from dalembert.errors import DalembertError, MissingExtraError, ModelError
from dalembert.simulate.events.record import EventRecord
from dalembert.simulate.mechanism_trajectory import MechanismTrajectory, trajectory_of
from dalembert.simulate.session import Session
from dalembert.simulate.storage.layout import (
    CHECKPOINT,
    DIMENSIONS,
    SCHEMA,
    checksum,
    description_checksums,
    event_checksums,
    h5py,
    unpacked,
)
from dalembert.simulate.storage.text import session_of
from dalembert.simulate.storage.unfinished import is_unfinished, open_file

# ----------------------------------------------------------------------------------------------------------------------
# Runs read back: complete ones, and those that were killed, as far as they came.


Array = np.ndarray

ATTEMPTS, PAUSE = 3, 0.05
"""A file that is still being written may be read between two writes that belong together: so often is it tried, and so
many seconds apart."""


def load_run(path: Any, **given: Any) -> MechanismTrajectory:
    """Return the run in a file; `mechanism`, `torque`, `events`, `contacts` where the file could not hold them."""
    session = read_session(path, given)
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
    session = session_of(file.attrs, given)
    blocks = file["resume/checkpoint_samples"].shape[0]
    count = int(file["resume/checkpoint_samples"][blocks - 1]) if blocks else 0
    if not count:
        raise ModelError(f"{path} holds no complete block: the run was stopped before the first one")
    block = {name: _rows(file[name], count) for name in DIMENSIONS if name in file}
    events = np.asarray(file["resume/event"][:])
    _refuse_damaged(file, path, block, events)
    m = session.mechanism
    for name, width in (("multipliers", len(m.names)), ("q", m.nq), ("v", m.nv), ("acceleration", m.nv)):
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
        session.extra["contact_names"] = tuple(name.decode() for name in file["contact"][:])
    session.status, session.message = str(file.attrs["status"]), str(file.attrs["message"])
    if session.status == "running":
        session.message = f"the run was killed after t = {block['t'][-1]:.9g} s; da.resume continues it"
        session.status = "interrupted"
    return session


def _refuse_damaged_description(file: Any, path: Path) -> None:
    """Raise where the description of a run is not the one that was written; older files have no checksums of it."""
    stored = json.loads(str(file.attrs.get("checksums", "{}")))
    found = description_checksums(file, [name for name in stored if name != "contact"])
    for name, value in stored.items():
        if found.get(name) != value:
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
    wanted = count * int(np.prod(variable.shape[1:])) * variable.dtype.itemsize
    if not 0 <= count <= variable.shape[0] or variable.id.get_storage_size() < wanted:
        raise OSError(f"{variable.name} has fewer rows than the {count} of the run")
    return np.asarray(variable[:count])


def _word(stored: bytes) -> str:
    """Return a name; files of schema 1 may have cut it within a letter."""
    return stored.decode(errors="ignore")


# ----------------------------------------------------------------------------------------------------------------------
# `da.resume`: continue a run from its file, bit for bit as if it had never stopped.


def resume(
    file: Any, *, duration: float | None = None, progress: bool = False, mechanism: Any = None, torque: Any = None,
    events: Any = None, contacts: Any = None, on_step: Any = None,
) -> MechanismTrajectory:  # fmt: skip
    """Continue a run that was killed, interrupted or stopped, and write on in the same file.

    Parameters
    ----------
    file
        What `da.simulate(..., file=...)` or `run.save` has written.
    duration
        A new length of the whole run, seconds; by default the one it was begun with.
    progress
        Show a bar.
    mechanism, torque, events, contacts
        What the file could not hold: Python functions, and mechanisms with constraints made of them.
    on_step
        Called as (t, q, v) after every further step, as by `da.simulate`.

    Returns
    -------
    MechanismTrajectory
        The whole run, with what was in the file.
    """
    from dalembert.simulate.equations.callbacks import guarded_step
    from dalembert.simulate.mechanism import run_session
    from dalembert.simulate.storage.sink import FileSink

    session = read_session(file, {"mechanism": mechanism, "torque": torque, "events": events, "contacts": contacts})
    if session.extra["missing"]:
        word = session.extra["missing"][0]
        raise ModelError(f"{word} was a Python function, which a file cannot hold; give it again: {word}=...")
    if duration is not None:
        session.settings = replace(session.settings, duration=_longer(session, duration))
    session.status, session.message, session.on_step = "completed", "", guarded_step(on_step)
    old = _behind_checkpoint(session)
    sink = FileSink(file, session, replace=True)
    sink(old, session.checkpoint or {})
    if sink.failed:
        raise ModelError(f"the run cannot be written on: {sink.failed}")
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
        kept = int(point["kept"][0])
        block = {name: rows[:kept] for name, rows in block.items()}
        session.blocks[:] = [block] if kept else []
        session.events[:] = [each for each in session.events if each.time <= point["time"][0]]
    return block


# ----------------------------------------------------------------------------------------------------------------------
# A run as an xarray.Dataset: every quantity over time, with names and units.


def as_dataset(run: Any) -> Any:
    """Return the dataset."""
    try:
        import xarray
    except ImportError as error:
        raise MissingExtraError("xarray", "files", "A run as a dataset") from error
    m = run.mechanism
    coordinates: dict[str, Any] = {
        "t": ("t", run.t, {"units": "s"}),
        "configuration": list(m.configuration_names),
        "velocity": list(m.coordinates),
        "row": list(m.names),
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
        forces = np.asarray(run.forces).reshape(run.t.size, len(run.contacts), 3)
        variables["contact_forces"] = (("t", "contact", "axis"), forces, {"units": "N"})
        variables["heat"] = ("t", run.heat, {"units": "J"})
    attributes = {"mechanism": m.name, "method": run.method, "reason": run.reason, "status": run.status}
    return xarray.Dataset(variables, coordinates, attributes)
