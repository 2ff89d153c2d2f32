"""Samples of a run with contacts, collected one by one; only complete steps count, whatever ends the run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from dalembert.errors import ModelError, SolvabilityError
from dalembert.simulate.contact.ridges import say_ridges
from dalembert.simulate.equations.callbacks import CallError
from dalembert.simulate.session import FIELDS, Session

Array = np.ndarray

CONTACT_FIELDS = ("heat", "contact_forces", "modes", "contact_status", "contact_residual")
"""What a sample of a run with contacts has besides: what was lost, forces, modes; verdict and residual of the solve."""

BLOCK = 200
"""Samples a block; steps from event to event are long."""


class SampleRows:
    """Rows of samples; `heat` is what impacts and sliding have taken so far, `work` what joint forces have done."""

    def __init__(self, session: Session, contacts: int) -> None:
        self.session, self.contacts = session, contacts
        self.heat = self.work = 0.0
        self.rows: dict[str, list[Any]] = {name: [] for name in (*FIELDS, *CONTACT_FIELDS)}
        self.complete: tuple[int, int, dict[str, Array]] | None = None

    @property
    def full(self) -> bool:
        """True when there are enough rows to hand over."""
        return len(self.rows["t"]) >= BLOCK

    def add(
        self, t: float, q: Array, v: Array, motion: Any, modes: Array, h: float, more: tuple[float, float] = (0.0, 0.0)
    ) -> None:
        """Append a sample; `more` work and heat than at the last step."""
        local = motion.r.reshape(self.contacts, 3)
        forces = np.einsum("kij,ki->kj", motion.x.axes, local).ravel()
        values = (t, q.copy(), v.copy(), motion.a, motion.lam, self.work + more[0], h, self.heat + more[1], forces,
                  modes, motion.status, motion.residual)  # fmt: skip
        for name, value in zip(self.rows, values, strict=True):
            self.rows[name].append(value)

    def step_is_complete(self, checkpoint: dict[str, Array]) -> None:
        """Note that all up to here belongs together, and from where the run would go on."""
        self.complete = len(self.rows["t"]), len(self.session.events), checkpoint

    def on_step(self, t: float, q: Array, v: Array) -> None:
        """Call the user's function after a step."""
        call_on_step(self.session, t, q, v)

    def flush(self) -> None:
        """Hand all complete samples over; what came after is dropped."""
        if self.complete is None:
            return
        count, events, checkpoint = self.complete
        del self.session.events[events:]
        m = self.session.mechanism
        width = {"q": m.nq, "v": m.nv, "acceleration": m.nv, "multipliers": len(m.names)}
        width |= {"contact_forces": 3 * self.contacts, "modes": self.contacts}
        block = {name: np.array(rows[:count]).reshape((count, width[name]) if name in width else (count,))
                 for name, rows in self.rows.items()}  # fmt: skip
        for name in ("modes", "contact_status"):
            block[name] = block[name].astype(np.int64)
        for rows in self.rows.values():
            rows.clear()
        self.complete = 0, events, checkpoint
        self.session.add(block, checkpoint)


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
