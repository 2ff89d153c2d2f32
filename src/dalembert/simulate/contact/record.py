"""Samples of a run with contacts, collected one by one."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalembert.simulate.smooth.session import FIELDS, Session

Array = np.ndarray


BLOCK = 200
"""Samples a block; steps from event to event are long."""


class Rows:
    """Rows of samples; `heat` is what impacts and sliding have taken so far."""

    def __init__(self, session: Session, contacts: int) -> None:
        self.session, self.contacts = session, contacts
        self.heat = self.work = 0.0
        self.names = (*FIELDS, "heat", "contact_forces", "modes")
        self.rows: dict[str, list[Any]] = {name: [] for name in self.names}

    @property
    def full(self) -> bool:
        """True when there are enough rows to hand over."""
        return len(self.rows["t"]) >= BLOCK

    def add(self, t: float, q: Array, v: Array, motion: Any, modes: Array, h: float) -> None:
        """Append a sample."""
        local = motion.r.reshape(self.contacts, 3)
        forces = np.einsum("kij,ki->kj", motion.x.axes, local).ravel()
        values = (t, q.copy(), v.copy(), motion.a, motion.lam, self.work, h, self.heat, forces, modes)
        for name, value in zip(self.names, values, strict=True):
            self.rows[name].append(value)

    def flush(self, checkpoint: dict[str, Array]) -> None:
        """Hand all samples over."""
        m, count = self.session.mechanism, len(self.rows["t"])
        width = {"q": m.nq, "v": m.nv, "acceleration": m.nv, "multipliers": len(m.names)}
        width |= {"contact_forces": 3 * self.contacts, "modes": self.contacts}
        block = {name: np.array(rows).reshape((count, width[name]) if name in width else (count,))
                 for name, rows in self.rows.items()}  # fmt: skip
        block["modes"] = block["modes"].astype(np.int64)
        for rows in self.rows.values():
            rows.clear()
        self.session.add(block, checkpoint)
