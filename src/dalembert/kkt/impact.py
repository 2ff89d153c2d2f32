"""Impacts: the velocity jump when constraints close (seed 000, end of section 3).

    M v+ + A^T p = M v-,    A v+ = -e A v-

    v+ = M+ M v- - e A+^T A v-        p = -(1 + e) Lambda+ A v-

in dagger terms; with one e per row, e stands for the diagonal matrix. Plastic impact is e = 0.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float

from dalembert.kkt.certificate import BatchCertificate, Certificate
from dalembert.kkt.solution import NamedSystem
from dalembert.kkt.status import Status
from dalembert.types import Array


@dataclass(frozen=True, eq=False)
class Impact:
    """Result of an impact.

    Attributes
    ----------
    velocity
        v+, (..., n).
    impulse
        p, (..., m), in the sign of M v+ + A^T p = M v-; the physical impulse on the system is A^T reactions.
    energy_before, energy_after
        Kinetic energy, (...). It never grows for one common e in [0, 1]; with different e per row it may
        (Newton's law of restitution, not the solve, is at fault then).
    certificate
        As for a solve; `status` and `ok` are its verdict. Look at it before the velocity.
    system
        The system it belongs to, for the names of rows and coordinates.
    """

    velocity: Float[Array, "*batch n"]
    impulse: Float[Array, "*batch m"]
    energy_before: Float[Array, "*batch"] | float
    energy_after: Float[Array, "*batch"] | float
    certificate: Certificate | BatchCertificate
    system: NamedSystem = field(repr=False)

    @property
    def status(self) -> Status | Array:
        """The verdict, or an array of its codes for a batch."""
        return self.certificate.status

    @property
    def ok(self) -> bool | Array:
        """Shorthand for `certificate.ok`."""
        return self.certificate.ok

    @property
    def reactions(self) -> Float[Array, "*batch m"]:
        """The physical impulses, -p."""
        return 0.0 - self.impulse

    @property
    def energy_loss(self) -> Float[Array, "*batch"] | float:
        """Kinetic energy lost; negative where restitution per row has created some."""
        return self.energy_before - self.energy_after

    def __str__(self) -> str:
        if isinstance(self.certificate, BatchCertificate):
            return str(self.certificate)
        rows = [(name, "velocity", x) for name, x in zip(self.system.coordinates, self.velocity, strict=True)]
        rows += [(name, "impulse", x) for name, x in zip(self.system.names, self.reactions, strict=True)]
        width = max(len(name) for name, *_ in rows)
        lines = [f"{name:{width}}  {what:8}  {value: .9g}" for name, what, value in rows]
        energy = f"kinetic energy {self.energy_before:.6g} before, {self.energy_after:.6g} after"
        return "\n".join([*lines, energy, str(self.certificate)])


def kinetic_energy(M: Float[Array, "*batch n n"], v: Float[Array, "*batch2 n"]) -> Float[Array, "*batch3"] | float:
    """Return v^T M v / 2 per sample."""
    return 0.5 * np.einsum("...i,...ij,...j->...", v, M, v)
