"""Energy of a system: kinetic and potential, by name."""

from __future__ import annotations

from typing import NamedTuple

from dalembert.types import Array


class Energy(NamedTuple):
    """Kinetic and potential energy, joules: one number each, or one per sample."""

    kinetic: Array
    potential: Array

    @property
    def total(self) -> Array:
        """Their sum."""
        return self.kinetic + self.potential
