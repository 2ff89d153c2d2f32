"""What a friction problem returns: accelerations, forces, index sets, certificate, and what is not unique."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from dalembert.friction.index_sets import IndexSets
from dalembert.friction.status import FrictionStatus

if TYPE_CHECKING:
    from dalembert.friction.uniqueness import UniquenessReport

Array = np.ndarray

OPTIMAL = 1e-10
"""Relative residual of the friction laws up to which an answer counts as one."""


@dataclass(frozen=True)
class FrictionCertificate:
    """Evidence for one answer.

    Attributes
    ----------
    method
        Which method found it.
    optimality
        Largest violation of the laws at contacts at rest and of the equations of motion, relative to the data that
        the contact's acceleration is summed from; 0 is exact. Forces that grow without bound make nothing small.
    excess
        Largest part by which a force exceeds its limit, relative to the limit.
    iterations
        Rounds of the method.
    note
        What else the method has to say.
    contradiction
        Where contacts contradict each other: names of contacts and constraint rows with weights, under which their rows
        sum to zero and their drifts do not (Farkas' lemma). Empty otherwise.
    """

    method: str
    optimality: float
    excess: float
    iterations: int
    note: str = ""
    contradiction: tuple[tuple[str, float], ...] = ()

    @property
    def ok(self) -> bool:
        """True when the friction laws hold to `OPTIMAL`."""
        return self.optimality <= OPTIMAL and self.excess <= OPTIMAL


@dataclass(frozen=True, eq=False)
class Resolution:
    """Answer of `resolve`.

    Attributes
    ----------
    acceleration
        a, (n,); NaN where there is none.
    forces
        Friction forces along the columns of W, on the system, (m,).
    multipliers
        lam of the constraint rows, (k,); the reactions are -lam.
    contact_acceleration
        xi'' = W^T a + contact_drift, (m,); exactly zero where a contact sticks.
    sets, status, certificate
        Who slides, sticks, is about to slip; the verdict; the evidence.
    names, coordinates
        Of contacts and coordinates.
    """

    acceleration: Float[Array, " n"]
    forces: Float[Array, " m"]
    multipliers: Float[Array, " k"]
    contact_acceleration: Float[Array, " m"]
    sets: IndexSets
    status: FrictionStatus
    certificate: FrictionCertificate
    names: tuple[str, ...]
    coordinates: tuple[str, ...]
    examine: Callable[[], UniquenessReport] = field(repr=False)

    @property
    def ok(self) -> bool:
        """True when the forces obey the friction laws."""
        return self.status.solved

    @property
    def by_name(self) -> Mapping[str, float]:
        """Friction force by contact."""
        return MappingProxyType(dict(zip(self.names, self.forces.tolist(), strict=False)))

    @cached_property
    def report(self) -> UniquenessReport:
        """What is unique and what is not, with the contacts named; computed when first asked for."""
        return self.examine()

    def __str__(self) -> str:
        lines = [
            f"{'ok' if self.ok else 'NOT OK'}: {self.status.message} ({self.certificate.method})",
            f"  {self.sets}",
        ]
        lines += [f"  {name:20s} force {T:+.6g}" for name, T in zip(self.names, self.forces, strict=False)]
        c = self.certificate
        lines += [
            f"  laws hold to {c.optimality:.1e}, limits to {c.excess:.1e}, {c.iterations} rounds {c.note}".rstrip()
        ]
        return "\n".join(lines)
