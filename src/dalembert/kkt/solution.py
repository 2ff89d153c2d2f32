"""Answers of a block system with their certificate: accelerations and multipliers of a solve, jumps of an impact."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

import numpy as np

from dalembert.errors import ModelError
from dalembert.kkt.certificate import BatchCertificate, Certificate
from dalembert.names import near_matches
from dalembert.status import Status
from dalembert.types import Array

if TYPE_CHECKING:
    from jaxtyping import Float

    from dalembert.kkt.solve import Answer


class NamedSystem(Protocol):
    """Whatever names constraint rows and coordinates."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the constraint rows."""
        ...

    @property
    def coordinates(self) -> tuple[str, ...]:
        """Names of the coordinates."""
        ...


class Certified:
    """An answer with a certificate, whose verdict it shows."""

    certificate: Certificate | BatchCertificate

    @property
    def status(self) -> Status | Array:
        """The verdict, or an array of its codes for a batch."""
        return self.certificate.status

    @property
    def ok(self) -> bool | Array:
        """Shorthand for `certificate.ok`."""
        return self.certificate.ok


@dataclass(frozen=True, eq=False)
class Held:
    """Free massless motions that were held still on request.

    Attributes
    ----------
    motions
        The directions, (n, k), orthonormal.
    forces
        The generalised force along each that holding it takes, (k,); zero where nothing pushed.
    """

    motions: Float[Array, "n k"]
    forces: Float[Array, " k"]


@dataclass(frozen=True, eq=False)
class Solution(Certified):
    """Answer of M a + A^T lam = force, A a = -drift.

    Attributes
    ----------
    acceleration
        a, (..., n).
    multipliers
        lam, (..., m), in the sign of M a + A^T lam = force.
    certificate
        Residuals, rank, condition, uniqueness, verdict.
    system
        The system it belongs to, for the names of rows and coordinates.
    held
        What was held, if a massless motion was (single solves only).
    """

    acceleration: Float[Array, "*batch n"]
    multipliers: Float[Array, "*batch m"]
    certificate: Certificate | BatchCertificate
    system: NamedSystem = field(repr=False)
    held: Held | None = None

    @property
    def reactions(self) -> Float[Array, "*batch m"]:
        """The physical constraint forces, -lam: what the constraints exert on the system is A^T reactions."""
        return 0.0 - self.multipliers

    @property
    def multiplier_basis(self) -> Float[Array, "m k"]:
        """Basis of null(A^T): adding any combination of its columns to the multipliers gives another answer."""
        if isinstance(self.certificate, BatchCertificate):
            raise ModelError("multiplier_basis belongs to one sample: solve it alone, or take certificate[i]")
        return self.certificate.answer.multiplier_basis[: self.multipliers.size]

    @property
    def by_name(self) -> Mapping[str, Array]:
        """Accelerations by coordinate name and reactions by row name."""
        named = {name: self.acceleration[..., i] for i, name in enumerate(self.system.coordinates)}
        named |= {name: self.reactions[..., i] for i, name in enumerate(self.system.names)}
        return MappingProxyType(named)

    def __iter__(self) -> Iterator[Array | Status]:
        """Unpack as the outputs of a kernel: `acceleration, multipliers, status = ...`."""
        return iter((self.acceleration, self.multipliers, self.status))

    def __getitem__(self, name: str) -> Array:
        """Return the acceleration of a coordinate, or the reaction of a constraint row, by name."""
        named = self.by_name
        if name in self.system.names and name in self.system.coordinates:
            raise ModelError(f"{name!r} names a coordinate and a constraint row; use .acceleration or .reactions")
        if name not in named:
            near = near_matches(name, named)
            hint = f"; did you mean {', '.join(map(repr, near))}?" if near else ""
            raise ModelError(f"no coordinate or constraint row is called {name!r}{hint}")
        return named[name]

    def __str__(self) -> str:
        if isinstance(self.certificate, BatchCertificate):
            return str(self.certificate)
        rows = [
            (name, "acceleration", value)
            for name, value in zip(self.system.coordinates, self.acceleration, strict=True)
        ]
        rows += [(name, "reaction", value) for name, value in zip(self.system.names, self.reactions, strict=True)]
        width = max(len(name) for name, _, _ in rows)
        return "\n".join(
            [f"{name:{width}}  {what:12}  {value: .9g}" for name, what, value in rows] + [str(self.certificate)]
        )


def compiled_solution(
    system: NamedSystem,
    acceleration: Array,
    multipliers: Array,
    status: Array,
    terms: Callable[[Array], tuple[Array, Array, Array, Array]],
    by_kkt: Callable[[Array], Solution],
) -> Solution:
    """Return what compiled code has solved as a `Solution`; residuals and certificates are made when asked for.

    Parameters
    ----------
    system
        Whose rows and coordinates they are.
    acceleration, multipliers, status
        (..., n), (..., m), (...).
    terms
        Returns M (k, n, n), A (k, m, n), force (k, n), right side of the rows (k, m) of samples, counted in C order.
    by_kkt
        Solves such samples as a batch.
    """
    codes = np.asarray(status, dtype=np.uint8)
    flat = np.arange(codes.size).reshape(codes.shape)
    n, m = acceleration.shape[-1], multipliers.shape[-1]

    def sample(index: tuple[int, ...]) -> Answer:
        certificate = by_kkt(flat[index].reshape(1)).certificate
        assert isinstance(certificate, BatchCertificate)
        return certificate.sample((0,))

    def residuals() -> tuple[Array, Array]:
        from dalembert.kkt.residual import relative_residuals

        pairs = np.full((2, codes.size), np.nan)
        solved = np.flatnonzero(codes.reshape(-1) <= Status.ILL_CONDITIONED)
        a, lam = acceleration.reshape(codes.size, n), multipliers.reshape(codes.size, m)
        if solved.size:
            M, A, f, c = terms(solved)
            for k, i in enumerate(solved):
                pairs[:, i] = relative_residuals(M[k], A[k], f[k], c[k], a[i], lam[i])
        return pairs[0].reshape(codes.shape), pairs[1].reshape(codes.shape)

    return Solution(acceleration, multipliers, BatchCertificate(codes, residuals, sample), system)


# ----------------------------------------------------------------------------------------------------------------------
# Impacts: the velocity jump when constraints close (seed 000, end of section 3).
#
#     M v+ + A^T p = M v-,    A v+ = -e A v-
#
#     v+ = M+ M v- - e A+^T A v-        p = -(1 + e) Lambda+ A v-
#
# in dagger terms; with one e per row, e stands for the diagonal matrix. Plastic impact is e = 0.


@dataclass(frozen=True, eq=False)
class Impact(Certified):
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
