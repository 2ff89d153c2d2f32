"""`da.resume`: continue a run from its file, bit for bit as if it had never stopped."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.errors import ModelError
from dalembert.simulate.mechanism_trajectory import MechanismTrajectory

if TYPE_CHECKING:
    from dalembert.simulate.smooth.session import Session

Array = np.ndarray


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
    from dalembert.simulate.mechanism import run_session
    from dalembert.simulate.smooth.callbacks import guarded_step
    from dalembert.simulate.storage.read import read_session
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
    if not (isinstance(duration, float | int | np.floating | np.integer) and np.isfinite(duration)):
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
