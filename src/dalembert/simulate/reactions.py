"""Reactions of a run by the name of a row, a constraint or a frame."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np

from dalembert.errors import ModelError

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Reactions(Mapping[str, Array]):
    """Forces and moments of the constraints on the mechanism: rows (N,), constraints, frames and contacts (N, k)."""

    table: Array
    rows: tuple[str, ...]
    groups: dict[str, list[int]]
    contacts: dict[str, Array]

    @classmethod
    def of(cls, run: Any) -> Reactions:
        """Collect the reactions of a run; they are the negative of its multipliers."""
        m = run.mechanism
        groups: dict[str, list[int]] = {}
        for i, number in enumerate(m.row_groups):
            constraint = m.all_constraints[number]
            for name in {constraint.label, getattr(constraint, "frame", constraint.label)}:
                groups.setdefault(name, []).append(i)
        forces = run.samples.get("contact_forces")
        contacts = {} if forces is None else {name: forces[:, 3 * k : 3 * k + 3] for k, name in enumerate(run.contacts)}
        return cls(0.0 - run.samples["multipliers"], tuple(m.names), groups, contacts)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Return all rows (N, m)."""
        return np.asarray(self.table, dtype=dtype)

    def __getitem__(self, name: str) -> Array:
        """Return the reaction of a row (N,), or of a constraint, a frame or a contact (N, k)."""
        if name in self.rows:
            return self.table[:, self.rows.index(name)]
        if name in self.groups:
            return self.table[:, self.groups[name]]
        if name in self.contacts:
            return self.contacts[name]
        near = get_close_matches(name, [*self.rows, *self.groups, *self.contacts], n=3)
        hint = f"; did you mean {', '.join(map(repr, near))}?" if near else ""
        raise ModelError(f"no constraint or contact is called {name!r}{hint}")

    def __iter__(self) -> Iterator[str]:
        return iter((*self.rows, *self.contacts))

    def __len__(self) -> int:
        return len(self.rows) + len(self.contacts)
