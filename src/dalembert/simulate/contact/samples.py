"""What runs with contacts share: the user's function after a step; what there is when something ends the run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from dalembert.errors import ModelError, SolvabilityError
from dalembert.simulate.contact.ridges import say_ridges
from dalembert.simulate.equations.callbacks import CallError
from dalembert.simulate.session import Session
from dalembert.types import Array


def call_on_step(session: Session, t: float, q: Array, v: Array) -> None:
    """Call the user's function after a step; an error of it is named."""
    if session.on_step is None:
        return
    try:
        session.on_step(t, q.copy(), v.copy())
    except CallError as failed:
        said = f"{type(failed.error).__name__}: {failed.error}"
        raise ModelError(f"on_step failed at t = {t:.9g} s: {said}") from failed.error


@contextmanager
def guarded(session: Session, time: Callable[[], float], finish: Callable[[], None]) -> Iterator[None]:
    """Keep what there is, whatever ends the steps: no answer, an error in a Python function, the keyboard."""
    try:
        yield
    except SolvabilityError as refused:
        session.stop("no solution", str(refused))
    except Exception as error:
        session.extra["error"] = error, time()
        session.stop("stopped", str(error))
    finally:
        finish()
        if not session.blocks:
            session.blocks.append(_start_alone(session))
        say_ridges(session)


def _start_alone(session: Session) -> dict[str, Array]:
    """Return the initial state as the only sample: nothing is known there but itself."""
    m, none = session.mechanism, np.zeros(1)
    rows = {"acceleration": np.full((1, m.nv), np.nan), "multipliers": np.full((1, len(m.names)), np.nan)}
    start = {"t": np.array([session.settings.start]), "q": session.q[None].copy(), "v": session.v[None].copy()}
    return start | rows | {"work": none, "step": none.copy(), "heat": none.copy()}
