"""A published problem: how to build it, where it starts, what is known of its end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class Published:
    """A problem with reference values.

    Attributes
    ----------
    build
        Returns the system: a `Lagrangian` or a `DAE`.
    q, v
        Start (x and x' of a `DAE`).
    groups
        Group of unknowns -> name -> reference value at `t_end`; errors are relative to the largest value of a group.
    floor
        Accuracy of the reference, per group.
    """

    name: str
    build: Callable[[], Any]
    q: Any
    v: Any
    t_end: float
    groups: Mapping[str, Mapping[str, float]]
    mechanical: bool = True
    floor: Mapping[str, float] = field(default_factory=dict)

    def errors(self, result: Any) -> dict[str, float]:
        """Return the largest error of every group at the end, relative to the group's largest value."""
        found = {}
        for group, values in self.groups.items():
            reference = np.array(list(values.values()))
            reached = np.array([result[name][-1] for name in values])
            found[group] = float(np.abs(reached - reference).max() / np.abs(reference).max())
        return found
