"""Samples of a run with contacts, collected one by one; only complete steps count, whatever ends the run."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalembert.simulate.contact.run_end import call_on_step
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
