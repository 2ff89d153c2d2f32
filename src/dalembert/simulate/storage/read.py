"""Runs read back: complete ones, and those that were killed, as far as they came."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dalembert.errors import DalembertError, MissingExtraError, ModelError
from dalembert.simulate.event import Event
from dalembert.simulate.mechanism_trajectory import MechanismTrajectory, trajectory_of
from dalembert.simulate.smooth.session import Session
from dalembert.simulate.storage.description import session_of
from dalembert.simulate.storage.layout import DIMENSIONS, SCHEMA, h5py, unpacked
from dalembert.simulate.storage.unfinished import is_unfinished, open_file

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
    session = session_of(file.attrs, given)
    blocks = file["resume/checkpoint_samples"].shape[0]
    count = int(file["resume/checkpoint_samples"][blocks - 1]) if blocks else 0
    if not count:
        raise ModelError(f"{path} holds no complete block: the run was stopped before the first one")
    block = {name: np.asarray(file[name][:count]) for name in DIMENSIONS if name in file}
    m = session.mechanism
    for name, width in (("multipliers", len(m.names)), ("q", m.nq), ("v", m.nv), ("acceleration", m.nv)):
        block.setdefault(name, np.zeros((count, width)))
    session.blocks.append(block)
    session.checkpoint = unpacked(
        np.asarray(file["resume/checkpoint"][blocks - 1]), str(file.attrs["checkpoint_layout"])
    )
    session.steps, session.rejected, session.evaluations = (int(x) for x in file["resume/checkpoint_steps"][blocks - 1])
    session.events += [
        Event(float(e["time"]), _word(e["contact"]), int(e["index"]), _word(e["old"]), _word(e["new"]))
        for e in np.asarray(file["resume/event"][:]) if e["time"] <= block["t"][-1]
    ]  # fmt: skip
    if "contact" in file:
        session.extra["contact_names"] = tuple(name.decode() for name in file["contact"][:])
    session.status, session.message = str(file.attrs["status"]), str(file.attrs["message"])
    if session.status == "running":
        session.message = f"the run was killed after t = {block['t'][-1]:.9g} s; da.resume continues it"
        session.status = "interrupted"
    return session


def _word(stored: bytes) -> str:
    """Return a name; files of schema 1 may have cut it within a letter."""
    return stored.decode(errors="ignore")
